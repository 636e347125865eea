/*
 * engine.h
 *		The loop that carries actions out and settles lost answers.
 *
 * The same engine runs in the worker and in CALL reconcile.run():
 *
 *		record what came back -> claim what is due -> start transfers -> wait
 *
 * No transaction, snapshot or lock on a table is held while it waits.
 */
#ifndef AR_ENGINE_H
#define AR_ENGINE_H

#include "postgres.h"

typedef struct ArEngine ArEngine;

typedef enum ArEngineStart
{
	AR_ENGINE_STARTED,
	AR_ENGINE_HELD,				/* another process is this database's engine */
	AR_ENGINE_BUSY,				/* a table is locked exclusively: try later */
	AR_ENGINE_READ_ONLY,		/* default_transaction_read_only: nothing is to be written */
	AR_ENGINE_ABSENT			/* the extension is not (or no longer) here */
} ArEngineStart;

typedef struct ArEngineCounts
{
	int64		sent;			/* attempts whose first byte was allowed to leave */
	int64		answered;		/* attempts recorded with a complete answer */
	int64		asked;			/* lookups recorded */
} ArEngineCounts;

/*
 * Become the engine of this database: take the lock, open the transport.  What
 * an earlier engine left open is recovered by the first turn that finds the
 * database armed, before anything is sent.  In the worker it must be called
 * outside a transaction, in CALL mode inside one.  May ereport.  On STARTED
 * the engine is *engine until ar_engine_stop.
 */
extern ArEngineStart ar_engine_start(bool in_call, ArEngine **engine);

/*
 * One turn: everything that can be done without waiting.  False if the
 * extension has vanished: stop at once.  May ereport; the engine must then be
 * abandoned.
 */
extern bool ar_engine_turn(ArEngine *engine);

/* How long the caller may sleep, in milliseconds: 0 not at all, -1 until woken. */
extern long ar_engine_sleep_ms(const ArEngine *engine);

/*
 * Sleep until the network, the latch or the time has something for the engine,
 * at most that long.  Serves interrupts. No transaction is open in the worker.
 */
extern void ar_engine_wait(ArEngine *engine, long timeout_ms);

/* Something was committed for it: look for due work in the next turn. */
extern void ar_engine_wake(ArEngine *engine);

/* Claim and ask nothing new from now on, because the process ends soon, or because another engine follows in peace. */
extern void ar_engine_drain(ArEngine *engine);
extern void ar_engine_retire(ArEngine *engine);

/* Are transfers or unrecorded results open? */
extern bool ar_engine_is_idle(const ArEngine *engine);

/* Has it nothing due now either? Only meaningful after a turn. */
extern bool ar_engine_has_nothing_due(const ArEngine *engine);

extern const ArEngineCounts *ar_engine_counts(const ArEngine *engine);

/* Why it may not send, or NULL if this database is armed. */
extern const char *ar_engine_disarmed_because(const ArEngine *engine);

/*
 * Why nothing is sent just now although the database is armed, or NULL: it
 * cannot be written, or somebody holds a table.
 */
extern const char *ar_engine_stalled_because(const ArEngine *engine);
extern const char ar_engine_read_only_reason[];

/*
 * Close every socket, record what is still open as what it is, give the lock
 * back.  May ereport; ar_engine_abandon then does the rest.
 */
extern void ar_engine_stop(ArEngine *engine);

/* Close every socket and give the lock back, touching no table: for error paths. Never throws. */
extern void ar_engine_abandon(void);

#endif							/* AR_ENGINE_H */
