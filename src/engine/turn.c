/*
 * turn.c
 *		One turn of the loop: record what came back, claim what is due, start.
 */
#include "engine/engine_internal.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine/fault.h"
#include "store/arming.h"
#include "store/clock.h"
#include "store/recovery.h"
#include "store/tx.h"
#include "store/wall.h"

static bool partitions_created;

static void
create_partitions(void)
{
	partitions_created = ar_store_create_partitions();
}

/*
 * Not worth failing for: entries without a partition of their own go to
 * history_default.  Not before the database is armed: a dump that is being
 * restored brings the partitions of its history along.
 */
static void
make_partitions(ArEngine *engine)
{
	bool		asked;

	partitions_created = false;
	asked = ar_engine_in_transaction(engine, create_partitions);
	engine->partitions_at_us = ar_monotonic_us() + (partitions_created ? AR_MAKE_PARTITIONS_EVERY_US :
		asked ? AR_MAKE_PARTITIONS_SOON_US : AR_MAKE_PARTITIONS_LATER_US);
}

/* Nothing was to be had: expire what is late, and find out when to look again. */
static void
plan_ahead(ArEngine *engine)
{
	ArAgenda	agenda;
	ArProviderWaits *waits;
	int			wait_count;
	int64		next = -1;
	int64		candidates[6];
	int64		now = ar_monotonic_us();

	/* Others may come after what has expired, or need it. */
	if (ar_store_expire() > 0)
		ar_engine_wake(engine);
	wait_count = ar_limits_waits(engine, &waits);
	ar_store_agenda(waits, wait_count, &agenda);
	/* What waits for the wall clock does not rely on its running on: somebody may set it. */
	candidates[0] = Min(agenda.send_in_us, AR_LOOK_AT_WALL_EVERY_US);
	candidates[1] = agenda.ask_in_us;
	candidates[2] = Min(agenda.expire_in_us, AR_LOOK_AT_WALL_EVERY_US);
	candidates[3] = engine->dependents.wanted ? Max(engine->dependents.not_before_us - now, 1) : -1;
	candidates[4] = engine->keys.wanted ? Max(engine->keys.not_before_us - now, 1) : -1;
	candidates[5] = engine->beside_pauses.wanted ? Max(engine->beside_pauses.not_before_us - now, 1) : -1;
	for (int i = 0; i < lengthof(candidates); i++)
	{
		if (candidates[i] >= 0 && (next < 0 || candidates[i] < next))
			next = candidates[i];
	}
	if (engine->recovery_left || engine->noted_left)
		next = 0;
	engine->nothing_due = next != 0 && !agenda.paced && !engine->dependents.wanted && !engine->keys.wanted &&
		!engine->beside_pauses.wanted;
	/* A few at a time is better than one by one. */
	if (agenda.paced && next < AR_LOOK_SOON_US)
		next = AR_LOOK_SOON_US;
	/* What is due and was not to be had is locked, or waits for room: results make room. */
	if (next == 0)
		next = ar_engine_is_idle(engine) && engine->skipped_count == 0 ? AR_LOOK_AGAIN_US : 10 * AR_LOOK_AGAIN_US;
	engine->look_at_us = next < 0 ? -1 : now + next;
	engine->gate_waited_for = agenda.gate_open_later;
}

typedef struct Work
{
	ArErrand  **results;
	bool	   *done;
	int			result_count;
	ArDispatch **dispatches;
	int			dispatch_count;
	ArDispatch **resends;
	int			resend_count;
	ArQuestion **questions;
	int			question_count;
	int64		new_epoch;
	int64		position;		/* of this claim among all; 0: nothing was claimed */
} Work;

/*
 * What was planned no longer counts.  Results will make room and commits will
 * wake us; for what time alone brings we look at everything in a little while,
 * when there may be leisure to plan anew.
 */
void
ar_engine_look_soon(ArEngine *engine)
{
	int64		soon = ar_monotonic_us() + AR_LOOK_SOON_US;

	engine->nothing_due = false;
	if (engine->look_at_us < 0 || engine->look_at_us > soon)
		engine->look_at_us = soon;
}

/* The more there is that waits, the longer it takes to see whose turn has come: a tenth of the time at most. */
static void
look_at_leisure(ArLeisure *leisure, void (*look) (void))
{
	int64		start = ar_monotonic_us();
	int64		end;

	leisure->wanted = start < leisure->not_before_us;
	if (leisure->wanted)
		return;
	look();
	end = ar_monotonic_us();
	leisure->not_before_us = end + 9 * (end - start);
}

/* Everything of one turn that needs the database, in the open transaction. */
static void
work_in_transaction(ArEngine *engine, bool record, bool look, Work *work)
{
	bool		asking;

	if (record)
	{
		work->result_count = ar_record_ready(engine, &work->results);
		work->done = palloc(sizeof(bool) * Max(work->result_count, 1));
		ar_record_batch(engine, work->results, work->result_count, work->done);
	}
	if (!look)
		return;
	engine->look_for_work = false;
	if (!ar_armed_look(engine, &work->new_epoch))
	{
		engine->nothing_due = true;
		if (work->new_epoch != 0)
			ar_engine_wake(engine);
		return;
	}
	asking = engine->look_at_everything;
	if (asking && engine->recovery_left)
		ar_armed_recover(engine, engine->epoch);
	if (asking && !ar_armed_presume(engine))
	{
		ar_engine_wake(engine);
		return;
	}
	engine->look_at_everything = false;
	if (asking)
	{
		ar_store_follow_wall();
		ar_store_apply_inbox();
		/* In this order: what is withdrawn may be what others come after. */
		look_at_leisure(&engine->dependents, ar_store_let_dependents_go);
		look_at_leisure(&engine->keys, ar_store_let_keys_go);
	}
	ar_limits_read(engine);
	work->dispatch_count = ar_send_claim(engine, &work->dispatches);
	if (asking)
	{
		work->resend_count = ar_send_claim_resends(engine, &work->resends);
		work->question_count = ar_ask_claim(engine, &work->questions);
	}
	if (asking && work->dispatch_count + work->resend_count + work->question_count == 0)
		plan_ahead(engine);
	else
	{
		ar_engine_look_soon(engine);
		engine->look_for_work = work->dispatch_count >= (engine->claim_one ? 1 : AR_CLAIM_LIMIT);
	}
	ar_limits_end_look(engine);
	if (work->dispatch_count + work->resend_count > 0)
	{
		work->position = ar_arming_count_claim();
		ar_fault_point("claim_before_commit");
	}
}

/* Only what is committed may leave. */
static void
carry_out(ArEngine *engine, Work *work)
{
	if (work->results != NULL)
		ar_record_committed(engine, work->results, work->result_count, work->done);
	if (work->new_epoch != 0 && ar_armed_enter(engine, work->new_epoch))
		make_partitions(engine);
	if (work->position != 0)
	{
		engine->position = work->position;
		ar_fault_point("claim_after_commit");
	}
	ar_send_start(engine, work->dispatches, work->dispatch_count);
	ar_send_start(engine, work->resends, work->resend_count);
	ar_ask_start(engine, work->questions, work->question_count);
}

/* Do one turn's work in one transaction; 0, or the error because of which nothing was done. */
static int
try_work(ArEngine *engine, bool record, bool look, Work *work)
{
	MemoryContext context = CurrentMemoryContext;
	volatile int failed = 0;

	PG_TRY();
	{
		work_in_transaction(engine, record, look, work);
		ar_tx_commit();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		failed = geterrcode();
		ar_engine_swallow_error(engine);
	}
	PG_END_TRY();
	return failed;
}

/*
 * A claim has failed for a reason that is no result's.  First one action at a
 * time is claimed, until one fails alone: that one is left alone for a while.
 * What fails for no action in particular ends the engine; another one will try.
 */
static void
isolate_claim(ArEngine *engine)
{
	bool		found;

	if (!engine->claim_one)
	{
		engine->claim_one = true;
		return;
	}
	if (!ar_engine_begin(engine))
		return;
	found = ar_send_skip_next(engine);
	ar_tx_commit();
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("nothing can be claimed"),
				 errhint("The log says why, just before this line.")));
	engine->claim_one = false;
	engine->skipped_until_us = ar_monotonic_us() + AR_SKIP_FOR_US;
}

/*
 * Recording and claiming share a transaction, for its commit is the dearest
 * part of both.  If it fails, the results are recorded one by one, and then it
 * is seen whether claiming alone fails too.
 */
static void
work_once(ArEngine *engine, bool record, bool look)
{
	Work		work = {0};
	int			failed;

	if (!ar_engine_begin(engine))
		return;
	failed = try_work(engine, record, look, &work);
	if (failed == 0)
	{
		carry_out(engine, &work);
		ar_engine_stall_may_end(engine);
		return;
	}
	if (record)
	{
		engine->one_by_one = true;
		if (ar_engine_stalls_on(failed))
			ar_record_stalled(work.results, work.result_count);
	}
	else if (!ar_engine_stalls_on(failed))
		isolate_claim(engine);
	ar_engine_wake(engine);
}

static void
collect(ArEngine *engine)
{
	ArExchange *exchange;
	bool		any = false;

	while ((exchange = ar_transport_collect(engine->transport)) != NULL)
	{
		ar_errand_end(engine, exchange->cookie, exchange, NULL);
		any = true;
	}
	if (any)
		ar_fault_point("after_answer");
}

/* A long-lived engine makes the partitions of the months to come; an idle one when there is something to do again. */
static void
keep_partitions(ArEngine *engine, int64 now)
{
	if (engine->disarmed_because != NULL || engine->look_at_us < 0 || now < engine->partitions_at_us)
		return;
	make_partitions(engine);
}

bool
ar_engine_turn(ArEngine *engine)
{
	MemoryContext caller = MemoryContextSwitchTo(engine->turn_context);
	int64		now = ar_monotonic_us();
	bool		look;

	if (ar_transport_in_flight(engine->transport) > 0)
		ar_gate_drive(engine);
	collect(engine);
	if (engine->skipped_count > 0 && now >= engine->skipped_until_us)
	{
		engine->skipped_count = 0;
		ar_engine_wake(engine);
	}
	if (engine->look_at_us >= 0 && now >= engine->look_at_us)
	{
		engine->look_at_us = -1;
		ar_engine_wake(engine);
	}
	look = ar_engine_may_look(engine) && now >= ar_engine_not_before_us(engine);

	if (engine->one_by_one && now >= ar_engine_not_before_us(engine))
	{
		engine->one_by_one = false;
		ar_record_one_by_one(engine);
	}
	else if (ar_record_is_due(engine) || look)
		work_once(engine, ar_record_is_due(engine), look);
	ar_armed_keep(engine, now);
	keep_partitions(engine, now);

	MemoryContextSwitchTo(caller);
	MemoryContextReset(engine->turn_context);
	return !engine->gone;
}
