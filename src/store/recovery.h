/*
 * recovery.h
 *		What the engine does with the database besides sending and asking.
 */
#ifndef AR_RECOVERY_H
#define AR_RECOVERY_H

#include "postgres.h"

#include "datatype/timestamp.h"

/*
 * Everything that engines before this epoch left open becomes outcome_unknown,
 * with a gate counted from now: nobody knows when its bytes stopped.  Returns
 * how many attempts that were; *left_open says that some row was locked: try
 * again later.  Needs an open engine transaction and the engine lock. May ereport.
 */
extern int	ar_store_recover(int64 epoch, bool *left_open);

/*
 * Those whose gate lies not after "gate_us" and that nobody can be asked about
 * any more go to manual_review; and so do those that have waited too long for
 * a verdict which cannot be asked for.  Return how many.  Need an open engine
 * transaction. May ereport.
 */
extern int	ar_store_surrender(int64 gate_us);
extern int	ar_store_give_up_waiting(void);

/* Read the durable clock into this process; make it this database's; write it back. Same conditions. */
extern void ar_store_clock_resume(void);
extern void ar_store_clock_own(void);
extern void ar_store_clock_save(void);

/* When there is next something to do, as pauses from now in microseconds; -1: nothing in sight. */
typedef struct ArAgenda
{
	int64		send_in_us;
	int64		ask_in_us;
	int64		expire_in_us;
	bool		paced;			/* something is due and waits for the rate of its provider */
	bool		gate_open_later;	/* a gate is waited for: the clock must be kept */
} ArAgenda;

/* Pauses until the limits of a provider leave room; negative: something else than time has to make it. */
typedef struct ArProviderWaits
{
	const char *provider;
	int64		send_us;
	bool		paced;			/* the rate is waited for */
	int64		resend_us;
	int64		ask_us;
} ArProviderWaits;

extern void ar_store_agenda(const ArProviderWaits *waits, int count, ArAgenda *agenda);

/* Monthly partitions of the history, some months ahead. False: others use the history just now. */
extern bool ar_store_create_partitions(void);

#endif							/* AR_RECOVERY_H */
