/*
 * record.c
 *		Putting results into the database, without ever losing or repeating one.
 *
 * Many results go into one transaction.  If that fails, each is recorded on
 * its own, so that one poison row cannot hold up the others; a result that
 * cannot be stored even then is recorded as what it then is: unknown.  Only
 * the recording is ever repeated.
 */
#include "engine/engine_internal.h"

#include "utils/memutils.h"

#include "core/schedule.h"
#include "engine/fault.h"
#include "store/clock.h"
#include "store/recovery.h"
#include "store/tx.h"

#define RECORD_BATCH		128
#define RECORD_DELAY_US		10000
#define LOCKED_RETRY_US		50000
#define STORE_ATTEMPTS		3

static bool
is_ready(const ArErrand *errand, int64 now)
{
	return errand->retry_at_us <= now;
}

/*
 * A few milliseconds of patience make batches, and batches make speed; alone
 * on its way, nobody is waited for.
 */
bool
ar_record_is_due(const ArEngine *engine)
{
	int64		now;
	dlist_iter	iter;

	now = ar_monotonic_us();
	if (engine->ended_count == 0 || now < ar_engine_not_before_us(engine))
		return false;
	if (engine->ended_count < RECORD_BATCH && engine->open_writes > engine->ended_count &&
		now - engine->ended_since_us < RECORD_DELAY_US)
		return false;
	dlist_foreach(iter, (dlist_head *) &engine->ended)
	{
		if (is_ready(dlist_container(ArErrand, node, iter.cur), now))
			return true;
	}
	return false;
}

static void
postpone(ArErrand *errand, int64 pause_us)
{
	errand->retry_at_us = ar_monotonic_us() + pause_us;
}

/* Its result has failed alone so often that it is not even looked at any more. */
static bool
cannot_be_stored(const ArErrand *errand)
{
	return errand->record_failures >= STORE_ATTEMPTS;
}

/* The ends of the given writes, as they are to be stored now. Needs a transaction. */
static ArAttemptEnd *
describe_ends(ArErrand **errands, int count)
{
	ArAttemptEnd *ends = palloc(sizeof(ArAttemptEnd) * Max(count, 1));
	ArErrand  **readable = palloc(sizeof(ArErrand *) * Max(count, 1));
	int			readable_count = 0;

	for (int i = 0; i < count; i++)
	{
		if (!cannot_be_stored(errands[i]))
			readable[readable_count++] = errands[i];
	}
	ar_send_judge(readable, readable_count);
	for (int i = 0; i < count; i++)
	{
		if (cannot_be_stored(errands[i]))
			ar_send_degrade_end(errands[i], &ends[i]);
		else
			ar_send_describe_end(errands[i], &ends[i]);
	}
	return ends;
}

/* An answer with further pages to read is not recorded yet: it goes on after the commit. */
static bool
record_answer(ArErrand *errand)
{
	ArAnswer	answer;

	if (cannot_be_stored(errand))
	{
		errand->goes_on = false;
		ar_ask_degrade_answer(errand, &answer);
	}
	else
	{
		ar_ask_read(errand);
		if (errand->goes_on)
			return false;
		ar_ask_describe_answer(errand, &answer);
	}
	return ar_store_record_answer(errand->question, &answer);
}

/*
 * Record these errands in the open transaction.  done[i] says which are dealt
 * with once it commits.
 */
static void
record_in_transaction(ArEngine *engine, ArErrand **errands, int count, bool *done)
{
	ArErrand  **writes = palloc(sizeof(ArErrand *) * Max(count, 1));
	int		   *places = palloc(sizeof(int) * Max(count, 1));
	int			write_count = 0;
	ArAttemptEnd *ends;
	bool	   *recorded;
	bool	   *vanished;
	bool		unknown = false;

	for (int i = 0; i < count; i++)
	{
		done[i] = false;
		if (errands[i]->dispatch != NULL)
		{
			places[write_count] = i;
			writes[write_count++] = errands[i];
		}
		else
		{
			done[i] = record_answer(errands[i]);
		}
	}
	if (write_count == 0)
		return;
	ends = describe_ends(writes, write_count);
	ar_limits_note(engine, writes, ends, write_count);
	recorded = palloc(sizeof(bool) * write_count);
	vanished = palloc(sizeof(bool) * write_count);
	ar_store_record_ends(ends, write_count, recorded, vanished);
	for (int i = 0; i < write_count; i++)
	{
		done[places[i]] = recorded[i] || vanished[i];
		unknown = unknown || ends[i].ask_in_us >= 0;
		if (vanished[i])
			ereport(LOG,
					(errmsg("the result of an attempt of action with reference \"%s\" could not be stored: the action has moved on",
							writes[i]->dispatch->client_reference)));
	}
	if (unknown)
		ar_store_surrender(ar_lower_now());
}

/* After the commit: what is stored may go, what was locked is tried again. */
static void
settle(ArEngine *engine, ArErrand **errands, int count, const bool *done)
{
	for (int i = 0; i < count; i++)
	{
		if (!done[i] && errands[i]->goes_on)
		{
			ar_ask_go_on(engine, errands[i]);
			continue;
		}
		errands[i]->unstored = false;
		if (!done[i])
		{
			postpone(errands[i], LOCKED_RETRY_US);
			continue;
		}
		if (errands[i]->question != NULL)
			engine->counts.asked++;
		else if (ar_send_classify(errands[i]) == AR_TRANSFER_ANSWERED)
			engine->counts.answered++;
		ar_errand_free(engine, errands[i]);
	}
	engine->ended_since_us = ar_monotonic_us();
	ar_engine_stall_may_end(engine);
	/* Room has been made; and what was planned knows nothing of the gates that have just been set. */
	engine->look_for_work = true;
	ar_engine_look_soon(engine);
}

/* The errands whose result may be tried now; palloc'ed. */
int
ar_record_ready(ArEngine *engine, ArErrand ***errands)
{
	int64		now = ar_monotonic_us();
	int			count = 0;
	dlist_iter	iter;

	*errands = palloc(sizeof(ArErrand *) * Max(engine->ended_count, 1));
	dlist_foreach(iter, &engine->ended)
	{
		ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);

		if (is_ready(errand, now))
			(*errands)[count++] = errand;
	}
	return count;
}

void
ar_record_batch(ArEngine *engine, ArErrand **errands, int count, bool *done)
{
	record_in_transaction(engine, errands, count, done);
	if (count > 0)
		ar_fault_point("record_before_commit");
}

void
ar_record_committed(ArEngine *engine, ArErrand **errands, int count, const bool *done)
{
	if (count > 0)
		ar_fault_point("record_after_commit");
	settle(engine, errands, count, done);
}

/* Errors of the server's day, not of the result: a full disk, a lock, a shutdown. */
static bool
may_pass(int code)
{
	switch (ERRCODE_TO_CATEGORY(code))
	{
		case MAKE_SQLSTATE('4', '0', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '3', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '5', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '7', '0', '0', '0'):
		case MAKE_SQLSTATE('5', '8', '0', '0', '0'):
			return true;
		default:
			return false;
	}
}

/* The database could not be written: none of these is at fault, and all are kept. */
void
ar_record_stalled(ArErrand **errands, int count)
{
	for (int i = 0; i < count; i++)
		errands[i]->unstored = true;
}

/* One result in a transaction of its own. */
static void
record_one(ArEngine *engine, ArErrand *errand)
{
	MemoryContext context = CurrentMemoryContext;
	bool		done = false;
	int			code;

	if (!ar_engine_begin(engine))
		return;
	PG_TRY();
	{
		record_in_transaction(engine, &errand, 1, &done);
		ar_tx_commit();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		code = geterrcode();
		if (!may_pass(code))
			errand->record_failures++;
		if (ar_engine_stalls_on(code))
			ar_record_stalled(&errand, 1);
		ar_engine_swallow_error(engine);
		postpone(errand, ar_backoff_us(1000000, 60000000, Max(errand->record_failures, 1), 0.5));
		return;
	}
	PG_END_TRY();
	settle(engine, &errand, 1, &done);
}

void
ar_record_one_by_one(ArEngine *engine)
{
	ArErrand  **errands;
	int			count = ar_record_ready(engine, &errands);

	for (int i = 0; i < count && !engine->gone; i++)
		record_one(engine, errands[i]);
}
