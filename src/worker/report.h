/*
 * report.h
 *		How it stands with the worker of this database, for those who ask.
 */
#ifndef AR_REPORT_H
#define AR_REPORT_H

#include "postgres.h"

#include "utils/timestamp.h"

typedef struct ArWorkerReport
{
	const char *state;			/* one word, see ar_worker_report() */
	int			launcher_pid;	/* or 0 */
	int			worker_pid;		/* or 0 */
	int			failures;		/* ends or failed starts in a row */
	TimestampTz last_turn;		/* of whoever was the engine last, since the server was started; or 0 */
} ArWorkerReport;

/*
 * The state of this database's worker: running, starting, failing (it ended,
 * or could not be started, and will be tried again), no_room (all worker slots
 * of the server are taken), held_off (a statement needs the database for
 * itself), absent (it found no extension), left_out (the
 * launcher has no place for this database), not_listed, no_launcher,
 * not_preloaded.  Locks for a moment; needs no transaction. Never throws but
 * for lack of memory.
 */
extern void ar_worker_report(ArWorkerReport *report);

/* The engine of this process has done a turn. Costs next to nothing. */
extern void ar_report_turn(void);

/* Does action_reconcile.databases give that database a worker? Result lives as long as the current memory context. */
extern bool ar_database_is_listed(const char *database);

#endif							/* AR_REPORT_H */
