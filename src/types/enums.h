/*
 * enums.h
 *		Our SQL enums seen from C: labels, never positions or OIDs.
 */
#ifndef AR_ENUMS_H
#define AR_ENUMS_H

#include "fmgr.h"

/* The label of an enum datum, palloc'ed. Needs a transaction. */
extern char *ar_enum_label(Datum value);

/* The datum with this label, of the enum that the running function returns. Needs a transaction. */
extern Datum ar_result_enum(FunctionCallInfo fcinfo, const char *label);

/* The datum with this label of that enum type. Needs a transaction. */
extern Datum ar_enum_datum(Oid type, const char *label);

#endif							/* AR_ENUMS_H */
