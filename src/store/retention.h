/*
 * retention.h
 *		What leaves the tables, and the one way in which it can.
 */
#ifndef AR_RETENTION_H
#define AR_RETENTION_H

#include "postgres.h"

#include "utils/array.h"

/*
 * Move those of these actions into the archive that nothing keeps; remove those
 * of these from the archive that are old enough.  Return how many.  Both decide
 * by themselves, whoever calls.  SPI must not be connected.  May ereport.
 */
extern int	ar_store_let_go(ArrayType *actions);
extern int	ar_store_let_archived_go(ArrayType *actions);

/*
 * For the guards: is this action just leaving, so that its rows may be deleted?
 * Never true outside the two functions above.  Never throws.
 */
extern bool ar_store_is_leaving(Datum action_id);

#endif							/* AR_RETENTION_H */
