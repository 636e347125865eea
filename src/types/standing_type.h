/*
 * standing_type.h
 *		The SQL type "standing" seen from C.
 */
#ifndef AR_STANDING_TYPE_H
#define AR_STANDING_TYPE_H

#include "core/standing.h"

extern ArStanding ar_datum_standing(Datum value);

#endif							/* AR_STANDING_TYPE_H */
