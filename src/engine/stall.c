/*
 * stall.c
 *		A database that cannot be written, for now: a full disk, no memory for
 *		locks, a limit of the server, transactions that are read-only, a lock
 *		on a partition.
 *
 * What came back is kept in memory and stored when that is possible again;
 * until then nothing new is claimed, and nothing that was claimed leaves.  So
 * nothing is ever sent whose end could not be recorded.
 */
#include "engine/engine_internal.h"

#include "core/schedule.h"
#include "store/clock.h"
#include "store/tx.h"

#define PAUSE_US			INT64CONST(500000)
#define PAUSE_MAX_US		INT64CONST(10000000)

const char	ar_engine_read_only_reason[] = "transactions are read-only: default_transaction_read_only is on";
static const char busy_reason[] = "a table of the extension is locked";

/* Is it the server that cannot do it, whatever the row? */
bool
ar_engine_stalls_on(int code)
{
	switch (ERRCODE_TO_CATEGORY(code))
	{
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_SYSTEM_ERROR:
			return true;
		default:
			return code == ERRCODE_READ_ONLY_SQL_TRANSACTION || code == ERRCODE_LOCK_NOT_AVAILABLE;
	}
}

void
ar_engine_stall(ArEngine *engine, const ErrorData *error)
{
	char	   *because = MemoryContextStrdup(engine->context, error->message);
	bool		is_news = engine->stalled_because == NULL || strcmp(because, engine->stalled_because) != 0;

	if (is_news)
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("the engine cannot write to the database and sends nothing: %s", because),
				 error->detail ? errdetail_internal("%s", error->detail) : 0,
				 errhint("What comes back is kept in memory and stored when that is possible again.")));
	if (engine->stalled_because != NULL)
		pfree(engine->stalled_because);
	engine->stalled_because = because;
	engine->stall_count++;
	engine->stalled_until_us = ar_monotonic_us() + ar_backoff_us(PAUSE_US, PAUSE_MAX_US, engine->stall_count, 0.5);
	ar_engine_wake(engine);
}

static bool
has_unstored(const ArEngine *engine)
{
	dlist_iter	iter;

	dlist_foreach(iter, (dlist_head *) &engine->ended)
	{
		if (dlist_container(ArErrand, node, iter.cur)->unstored)
			return true;
	}
	return false;
}

/* Something was committed.  A small write may have found room where a large one has not: it ends when nothing is left to store. */
void
ar_engine_stall_may_end(ArEngine *engine)
{
	if (engine->stalled_because == NULL || has_unstored(engine))
		return;
	ereport(LOG, (errmsg("the engine can write to the database again, after %d tries", engine->stall_count)));
	pfree(engine->stalled_because);
	engine->stalled_because = NULL;
	engine->stalled_until_us = 0;
	engine->stall_count = 0;
	ar_engine_wake(engine);
}

const char *
ar_engine_stalled_because(const ArEngine *engine)
{
	if (ar_tx_read_only())
		return ar_engine_read_only_reason;
	if (engine->stalled_because != NULL)
		return engine->stalled_because;
	return engine->busy_count > 0 ? busy_reason : NULL;
}

/* Is there reason and leave to look for something new? */
bool
ar_engine_may_look(const ArEngine *engine)
{
	return engine->look_for_work && !engine->draining && (engine->stalled_because == NULL || !has_unstored(engine));
}

int64
ar_engine_not_before_us(const ArEngine *engine)
{
	int64		not_before = Max(engine->busy_until_us, engine->stalled_until_us);

	/* A reload wakes us when it is over. */
	return ar_tx_read_only() ? ar_monotonic_us() + PAUSE_MAX_US : not_before;
}
