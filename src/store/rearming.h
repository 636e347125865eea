/*
 * rearming.h
 *		What was recorded before this database was armed anew.
 */
#ifndef AR_REARMING_H
#define AR_REARMING_H

#include "postgres.h"

#include "utils/uuid.h"

/*
 * Note every action that another copy of this database may have sent, or may
 * be sending.  Needs SPI in an open transaction, that of the arming.  May
 * ereport on database errors.
 */
extern void ar_store_note_for_rearming(void);

/* Has this database anything that another copy of it could have sent, or was it ever armed? Same conditions. */
extern bool ar_store_is_known(void);

/* Are there noted actions that are to be dealt with? Needs an open engine transaction. */
extern bool ar_store_any_noted(void);

/* One round over what was noted. */
typedef struct ArPresumption
{
	pg_uuid_t	after;			/* where it goes on */
	bool		goes_on;
	int			count;			/* attempts presumed so far */
} ArPresumption;

/*
 * Of the next noted actions, give an attempt that is presumed to have left to
 * each that may be sent, and take them off the list.  One that somebody holds
 * stays on it for the next round.  Needs an open engine transaction and the
 * engine lock.  May ereport on database errors.
 */
extern void ar_store_presume(int64 epoch, ArPresumption *round);

#endif							/* AR_REARMING_H */
