/*
 * engine.c
 *		The loop: record what came back, claim what is due, start, wait.
 */
#include "engine/engine_internal.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "compat.h"
#include "engine/fault.h"
#include "store/arming.h"
#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/recovery.h"
#include "store/tx.h"

#define SAVE_CLOCK_EVERY_US	INT64CONST(10000000)
#define LOOK_AGAIN_US		INT64CONST(100000)	/* due, but not to be had just now */

/* The engine of this process, for exits that skip the ordinary way out. */
static ArEngine *current_engine = NULL;

static bool
acquire_fd(void *owner)
{
	return AcquireExternalFD();
}

static void
release_fd(void *owner)
{
	ReleaseExternalFD();
}

/* Runs before the locks of the process are given up, so the sockets are closed first. */
static void
close_at_exit(int code, Datum argument)
{
	ar_engine_abandon();
}

static void
open_transport(ArEngine *engine)
{
	static bool exit_callback_set = false;
	ArTransportHooks hooks = {ar_gate_may_send, acquire_fd, release_fd, engine};
	char		error[256];

	if (!exit_callback_set)
	{
		before_shmem_exit(close_at_exit, (Datum) 0);
		exit_callback_set = true;
	}
	if (!ar_transport_init(error, sizeof(error)) ||
		(engine->transport = ar_transport_create(&hooks, error, sizeof(error))) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("could not open the HTTP transport: %s", error)));
}

static ArEngine *
make_engine(bool in_call)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "action_reconcile engine", ALLOCSET_DEFAULT_SIZES);
	ArEngine   *engine = MemoryContextAllocZero(context, sizeof(ArEngine));

	engine->context = context;
	engine->turn_context = AllocSetContextCreate(context, "engine turn", ALLOCSET_DEFAULT_SIZES);
	engine->in_call = in_call;
	engine->look_for_work = true;
	engine->look_at_us = -1;
	engine->save_clock_at_us = -1;
	engine->disarmed_because = "it has not been looked at yet";
	dlist_init(&engine->flying);
	dlist_init(&engine->landed);
	engine->checked_size = 64;
	engine->checked = MemoryContextAlloc(context, sizeof(pg_uuid_t) * engine->checked_size);
	return engine;
}

/* In a transaction; remembers the extension. In CALL mode a fresh one, whatever the caller had set. */
static bool
find_extension(bool in_call)
{
	bool		found;

	if (in_call)
	{
		MemoryContext context = CurrentMemoryContext;

		SPI_connect_ext(SPI_OPT_NONATOMIC);
		SPI_commit();
		SPI_finish();
		MemoryContextSwitchTo(context);
		return ar_tx_init(true);
	}
	StartTransactionCommand();
	found = ar_tx_init(false);
	CommitTransactionCommand();
	return found;
}

/* Take the lock, recover what the holder before left open. */
static ArEngineStart
take_over(void)
{
	int			recovered;
	ArTxBegin	begun = ar_tx_begin();

	if (begun != AR_TX_OPEN)
		return begun == AR_TX_BUSY ? AR_ENGINE_BUSY : AR_ENGINE_ABSENT;
	if (!ar_engine_lock_take())
	{
		ar_tx_rollback();
		return AR_ENGINE_HELD;
	}
	ar_store_clock_resume();
	recovered = ar_store_recover();
	ar_tx_commit();
	if (recovered > 0)
		ereport(LOG,
				(errmsg("%d attempts were found open and are outcome_unknown", recovered),
				 errdetail("The engine that sent them is gone. They are looked up when their gates open.")));
	return AR_ENGINE_STARTED;
}

/* Not worth failing for: entries without a partition of their own go to history_default. */
static void
make_partitions(ArEngine *engine)
{
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		if (ar_tx_begin() == AR_TX_OPEN)
		{
			ar_store_create_partitions();
			ar_tx_commit();
		}
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		ar_engine_swallow_error(engine);
	}
	PG_END_TRY();
}

ArEngineStart
ar_engine_start(bool in_call, ArEngine **result)
{
	ArEngineStart started;
	ArEngine   *engine;
	MemoryContext caller;

	if (!find_extension(in_call))
		return AR_ENGINE_ABSENT;
	started = take_over();
	if (started != AR_ENGINE_STARTED)
		return started;
	engine = make_engine(in_call);
	current_engine = engine;
	caller = MemoryContextSwitchTo(engine->turn_context);
	open_transport(engine);
	make_partitions(engine);
	MemoryContextSwitchTo(caller);
	*result = engine;
	return AR_ENGINE_STARTED;
}

/* An engine transaction, or false if none is to be had now. */
bool
ar_engine_begin(ArEngine *engine)
{
	if (engine->gone || ar_monotonic_us() < engine->busy_until_us)
		return false;
	switch (ar_tx_begin())
	{
		case AR_TX_OPEN:
			if (engine->busy_count > 0)
				ereport(LOG, (errmsg("the engine's tables are free again after %d tries", engine->busy_count)));
			engine->busy_count = 0;
			return true;
		case AR_TX_BUSY:
			if (engine->busy_count++ == 0)
				ereport(LOG, (errmsg("the engine waits: a table of the extension is locked")));
			engine->busy_until_us = ar_monotonic_us() + LOOK_AGAIN_US * Min(engine->busy_count, 10);
			return false;
		case AR_TX_GONE:
			engine->gone = true;
			return false;
	}
	return false;
}

/* For a PG_CATCH block: the failed transaction goes, the engine stays. A cancel is not ours to swallow. */
void
ar_engine_swallow_error(ArEngine *engine)
{
	if (engine->in_call && geterrcode() == ERRCODE_QUERY_CANCELED)
		PG_RE_THROW();
	EmitErrorReport();
	FlushErrorState();
	ar_tx_rollback();
}

static void
set_disarmed(ArEngine *engine, const char *because)
{
	bool		was_armed = engine->disarmed_because == NULL;

	if (because != NULL && !was_armed && strcmp(because, engine->disarmed_because) == 0)
		return;
	if (because != NULL)
		ereport(LOG,
				(errmsg("this database (OID %u) sends nothing: %s", MyDatabaseId, because),
				 errhint("If this is the database that is to act, call reconcile.arm(reason).")));
	engine->disarmed_because = because ? MemoryContextStrdup(engine->context, because) : NULL;
}

/*
 * May anything be sent or asked?  In the open transaction.  A new arming, or
 * the first look of this engine, begins a new epoch: then the answer is "not
 * in this transaction", and *new_epoch is to be put into the file after it.
 */
static bool
is_armed(ArEngine *engine, int64 *new_epoch)
{
	int64		epoch;
	const char *problem = ar_arming_problem(&epoch);

	*new_epoch = 0;
	if (problem != NULL)
		set_disarmed(engine, problem);
	else if (epoch != engine->epoch)
		*new_epoch = ar_arming_advance();
	else
		set_disarmed(engine, NULL);
	return problem == NULL && *new_epoch == 0;
}

static void
enter_epoch(ArEngine *engine, int64 epoch)
{
	const char *problem = ar_arming_advance_file(epoch);

	if (problem != NULL)
	{
		set_disarmed(engine, problem);
		engine->look_for_work = false;
		engine->look_at_us = ar_monotonic_us() + 10 * LOOK_AGAIN_US;
		return;
	}
	engine->epoch = epoch;
	set_disarmed(engine, NULL);
}

/* Nothing was to be had: expire what is late, and find out when to look again. */
static void
plan_ahead(ArEngine *engine)
{
	ArAgenda	agenda;
	int64		next = -1;
	int64		candidates[3];
	int64		now = ar_monotonic_us();

	ar_store_expire();
	ar_store_agenda(&agenda);
	candidates[0] = agenda.send_in_us;
	candidates[1] = agenda.ask_in_us;
	candidates[2] = agenda.expire_in_us;
	for (int i = 0; i < 3; i++)
	{
		if (candidates[i] >= 0 && (next < 0 || candidates[i] < next))
			next = candidates[i];
	}
	engine->nothing_due = next != 0;
	/* What is due and was not to be had is locked, or waits for room at its provider. */
	if (next == 0)
		next = LOOK_AGAIN_US;
	engine->look_at_us = next < 0 ? -1 : now + next;
	engine->save_clock_at_us = agenda.gate_open_later ? now + SAVE_CLOCK_EVERY_US : -1;
}

typedef struct Work
{
	ArFlight  **results;
	bool	   *done;
	int			result_count;
	ArDispatch **dispatches;
	int			dispatch_count;
	ArQuestion **questions;
	int			question_count;
	int64		new_epoch;
} Work;

/* Everything of one turn that needs the database, in the open transaction. */
static void
work_in_transaction(ArEngine *engine, bool record, bool look, Work *work)
{
	if (record)
	{
		work->result_count = ar_record_ready(engine, &work->results);
		work->done = palloc(sizeof(bool) * Max(work->result_count, 1));
		ar_record_batch(engine, work->results, work->result_count, work->done);
	}
	if (!look)
		return;
	engine->look_for_work = false;
	engine->look_at_us = -1;
	engine->nothing_due = true;
	if (!is_armed(engine, &work->new_epoch))
	{
		engine->look_for_work = work->new_epoch != 0;
		return;
	}
	work->dispatch_count = ar_send_claim(engine, &work->dispatches);
	work->question_count = ar_ask_claim(engine, &work->questions);
	if (work->dispatch_count + work->question_count == 0)
		plan_ahead(engine);
	else
	{
		ar_store_clock_save();
		engine->nothing_due = false;
		engine->look_for_work = true;
		if (work->dispatch_count > 0)
			ar_fault_point("claim_before_commit");
	}
}

/* Only what is committed may leave. */
static void
carry_out(ArEngine *engine, Work *work)
{
	if (work->results != NULL)
		ar_record_committed(engine, work->results, work->result_count, work->done);
	if (work->new_epoch != 0)
		enter_epoch(engine, work->new_epoch);
	if (work->dispatch_count > 0)
		ar_fault_point("claim_after_commit");
	ar_send_start(engine, work->dispatches, work->dispatch_count);
	ar_ask_start(engine, work->questions, work->question_count);
}

/*
 * Recording and claiming share a transaction, for its commit is the dearest
 * part of both.  If it fails, the results are recorded one by one, and a claim
 * that fails on its own is no longer caught.
 */
static void
work_once(ArEngine *engine, bool record, bool look)
{
	MemoryContext context = CurrentMemoryContext;
	Work		work = {0};
	volatile bool failed = false;

	if (!ar_engine_begin(engine))
		return;
	if (!record)
	{
		work_in_transaction(engine, false, look, &work);
		ar_tx_commit();
		carry_out(engine, &work);
		return;
	}
	PG_TRY();
	{
		work_in_transaction(engine, record, look, &work);
		ar_tx_commit();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		ar_engine_swallow_error(engine);
		failed = true;
	}
	PG_END_TRY();
	if (failed)
	{
		engine->one_by_one = true;
		engine->look_for_work = true;
	}
	else
		carry_out(engine, &work);
}

static void
collect(ArEngine *engine)
{
	ArExchange *exchange;
	bool		any = false;

	while ((exchange = ar_transport_collect(engine->transport)) != NULL)
	{
		ar_flight_land(engine, exchange->cookie, exchange, NULL);
		any = true;
	}
	if (any)
		ar_fault_point("after_answer");
}

static void
save_clock(ArEngine *engine)
{
	engine->save_clock_at_us = ar_monotonic_us() + SAVE_CLOCK_EVERY_US;
	if (!ar_engine_begin(engine))
		return;
	ar_store_clock_save();
	ar_tx_commit();
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
	if (engine->look_at_us >= 0 && now >= engine->look_at_us)
		engine->look_for_work = true;
	look = engine->look_for_work && !engine->draining;

	if (engine->one_by_one)
	{
		engine->one_by_one = false;
		ar_record_one_by_one(engine);
	}
	else if (ar_record_is_due(engine) || (look && now >= engine->busy_until_us))
		work_once(engine, ar_record_is_due(engine), look);
	if (engine->save_clock_at_us >= 0 && now >= engine->save_clock_at_us)
		save_clock(engine);

	MemoryContextSwitchTo(caller);
	MemoryContextReset(engine->turn_context);
	return !engine->gone;
}

static long
milliseconds_until(int64 moment, int64 now)
{
	return moment <= now ? 0 : (long) ((moment - now + 999) / 1000);
}

static long
sooner(long one, long other)
{
	return one < 0 ? other : other < 0 ? one : Min(one, other);
}

long
ar_engine_sleep_ms(const ArEngine *engine)
{
	int64		now = ar_monotonic_us();
	int64		not_before = engine->busy_until_us;
	long		sleep = -1;
	dlist_iter	iter;

	if (engine->one_by_one || (engine->look_for_work && !engine->draining))
		sleep = milliseconds_until(not_before, now);
	if (engine->look_at_us >= 0 && !engine->draining)
		sleep = sooner(sleep, milliseconds_until(engine->look_at_us, now));
	if (engine->save_clock_at_us >= 0)
		sleep = sooner(sleep, milliseconds_until(engine->save_clock_at_us, now));
	if (engine->landed_count > 0)
	{
		int64		earliest = PG_INT64_MAX;

		dlist_foreach(iter, (dlist_head *) &engine->landed)
			earliest = Min(earliest, dlist_container(ArFlight, node, iter.cur)->retry_at_us);
		earliest = Max(earliest, not_before);
		if (!ar_record_is_due(engine))
			earliest = Max(earliest, now + 1000);
		sleep = sooner(sleep, milliseconds_until(earliest, now));
	}
	return sleep;
}

void
ar_engine_wait(ArEngine *engine, long timeout_ms)
{
	static uint32 wait_event = 0;
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	bool		open = ar_transport_in_flight(engine->transport) > 0;

	Assert(!ar_tx_is_open());
	if (engine->flying_writes > engine->unchecked)
		ar_fault_point("after_request");
	if (wait_event == 0)
		wait_event = ar_wait_event(open ? "ActionReconcileNetwork" : "ActionReconcileMain");
	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	if (open)
		events |= WL_SOCKET_READABLE;
	WaitLatchOrSocket(MyLatch, events, open ? ar_transport_fd(engine->transport) : PGINVALID_SOCKET,
					  timeout_ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

void
ar_engine_wake(ArEngine *engine)
{
	engine->look_for_work = true;
}

void
ar_engine_drain(ArEngine *engine)
{
	engine->draining = true;
}

bool
ar_engine_is_idle(const ArEngine *engine)
{
	return engine->flying_writes + engine->flying_lookups + engine->landed_count == 0;
}

bool
ar_engine_has_nothing_due(const ArEngine *engine)
{
	return engine->nothing_due && !engine->look_for_work;
}

const ArEngineCounts *
ar_engine_counts(const ArEngine *engine)
{
	return &engine->counts;
}

const char *
ar_engine_disarmed_because(const ArEngine *engine)
{
	return engine->disarmed_because;
}

/* What never reached its first byte is provably not sent; the rest is unknown. */
static void
land_everything(ArEngine *engine)
{
	dlist_mutable_iter iter;

	ar_transport_destroy(engine->transport);
	engine->transport = NULL;
	dlist_foreach_modify(iter, &engine->flying)
	{
		ArFlight   *flight = dlist_container(ArFlight, node, iter.cur);

		ar_flight_land(engine, flight, NULL, "the engine stopped");
	}
}

static void
log_unstored(ArEngine *engine)
{
	dlist_iter	iter;

	dlist_foreach(iter, &engine->landed)
	{
		ArFlight   *flight = dlist_container(ArFlight, node, iter.cur);

		if (flight->dispatch != NULL)
			ereport(LOG,
					(errmsg("the result of an attempt of action with reference \"%s\" could not be stored",
							flight->dispatch->client_reference),
					 errdetail("Whether the provider carried it out is not known.")));
	}
}

void
ar_engine_stop(ArEngine *engine)
{
	MemoryContext caller = MemoryContextSwitchTo(engine->turn_context);

	land_everything(engine);
	if (engine->landed_count > 0 && !engine->gone)
	{
		engine->busy_until_us = 0;
		ar_record_one_by_one(engine);
	}
	log_unstored(engine);
	MemoryContextSwitchTo(caller);
	ar_engine_abandon();
}

void
ar_engine_abandon(void)
{
	ArEngine   *engine = current_engine;

	current_engine = NULL;
	if (engine != NULL && engine->transport != NULL)
		ar_transport_destroy(engine->transport);
	ar_engine_lock_give();
	if (engine != NULL)
	{
		dlist_iter	iter;

		/* exchanges are not the memory context's */
		dlist_foreach(iter, &engine->landed)
		{
			ArFlight   *flight = dlist_container(ArFlight, node, iter.cur);

			if (flight->exchange != NULL)
				ar_exchange_free(flight->exchange);
		}
		MemoryContextDelete(engine->context);
	}
}
