/*
 * wake.h
 *		Waking the worker at commit, and whoever waits for a result.
 */
#ifndef AR_WAKE_H
#define AR_WAKE_H

#include "postgres.h"

/* Once per backend, in _PG_init: hooks on commit, on CREATE and DROP of extensions and databases. */
extern void ar_wake_init(void);

/* Wake this database's worker, and who waits for results, when the current transaction commits. Never throws. */
extern void ar_wake_at_commit(void);

/* In the worker: was its slot woken since the last call? */
struct ArWorkerSlot;
extern bool ar_wake_consume(struct ArWorkerSlot *slot);

/*
 * Sleep until results are committed or the time is up; true if it is up.
 * Without shared memory it sleeps a short while. Serves interrupts.
 */
extern bool ar_wake_wait(int64 until_monotonic_us);
extern void ar_wake_wait_end(void);

/* The pid of this database's worker, or 0. */
extern int	ar_wake_worker_pid(void);

/* Why this database's worker sends nothing although it may, palloc'ed, or NULL. */
extern char *ar_wake_worker_stalled_because(void);

#endif							/* AR_WAKE_H */
