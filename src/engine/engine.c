/*
 * engine.c
 *		The engine's life: becoming the engine of a database, and ceasing to be it.
 */
#include "engine/engine_internal.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/recovery.h"
#include "store/tx.h"

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
	engine->clock_saved_us = ar_monotonic_us();
	engine->turn_context = AllocSetContextCreate(context, "engine turn", ALLOCSET_DEFAULT_SIZES);
	engine->in_call = in_call;
	engine->look_for_work = true;
	engine->look_at_everything = true;
	engine->look_at_us = -1;
	engine->disarmed_because = "it has not been looked at yet";
	dlist_init(&engine->open);
	dlist_init(&engine->ended);
	engine->checked_size = 64;
	engine->checked = MemoryContextAlloc(context, sizeof(pg_uuid_t) * engine->checked_size);
	return engine;
}

/*
 * Take the lock.  What the holder before left open is recovered when the
 * database is found armed, before anything else is done in it: one that is not
 * may be a restore that is still under way, and is left as it is.
 */
static ArEngineStart
take_over(void)
{
	ArTxBegin	begun = ar_tx_begin();

	switch (begun)
	{
		case AR_TX_OPEN:
			break;
		case AR_TX_BUSY:
			return AR_ENGINE_BUSY;
		case AR_TX_READ_ONLY:
			return AR_ENGINE_READ_ONLY;
		case AR_TX_GONE:
			return AR_ENGINE_ABSENT;
	}
	if (!ar_engine_lock_take())
	{
		ar_tx_rollback();
		return AR_ENGINE_HELD;
	}
	ar_store_clock_resume();
	ar_tx_commit();
	return AR_ENGINE_STARTED;
}

ArEngineStart
ar_engine_start(bool in_call, ArEngine **result)
{
	ArEngineStart started;
	ArEngine   *engine;
	MemoryContext caller;

	if (!ar_tx_init(in_call))
		return AR_ENGINE_ABSENT;
	started = take_over();
	if (started != AR_ENGINE_STARTED)
		return started;
	engine = make_engine(in_call);
	current_engine = engine;
	caller = MemoryContextSwitchTo(engine->turn_context);
	open_transport(engine);
	MemoryContextSwitchTo(caller);
	*result = engine;
	return AR_ENGINE_STARTED;
}

/* Even a lock may be too much for a server that is short of everything. */
static ArTxBegin
begin_or_stall(ArEngine *engine)
{
	MemoryContext context = CurrentMemoryContext;
	volatile ArTxBegin begun = AR_TX_BUSY;

	PG_TRY();
	{
		begun = ar_tx_begin();
	}
	PG_CATCH();
	{
		if (!ar_engine_stalls_on(geterrcode()))
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		ar_engine_swallow_error(engine);
		begun = AR_TX_READ_ONLY;
	}
	PG_END_TRY();
	return begun;
}

/* An engine transaction, or false if none is to be had now. */
bool
ar_engine_begin(ArEngine *engine)
{
	if (engine->gone || ar_monotonic_us() < ar_engine_not_before_us(engine))
		return false;
	switch (begin_or_stall(engine))
	{
		case AR_TX_OPEN:
			if (engine->busy_count > 0)
				ereport(LOG, (errmsg("the engine's tables are free again after %d tries", engine->busy_count)));
			engine->busy_count = 0;
			return true;
		case AR_TX_BUSY:
			if (engine->busy_count++ == 0)
				ereport(LOG, (errmsg("the engine waits: a table of the extension is locked")));
			engine->busy_until_us = ar_monotonic_us() + AR_LOOK_AGAIN_US * Min(engine->busy_count, 10);
			return false;
		case AR_TX_READ_ONLY:
			return false;
		case AR_TX_GONE:
			engine->gone = true;
			return false;
	}
	return false;
}

/*
 * For a PG_CATCH block: the failed transaction goes, the engine stays.  The
 * error goes to the log, not to the client of a CALL that goes on.  A cancel is
 * not ours to swallow.
 */
void
ar_engine_swallow_error(ArEngine *engine)
{
	ErrorData  *error;

	if (engine->in_call && geterrcode() == ERRCODE_QUERY_CANCELED)
		PG_RE_THROW();
	MemoryContextSwitchTo(TopMemoryContext);
	error = CopyErrorData();
	FlushErrorState();
	if (ar_engine_stalls_on(error->sqlerrcode))
		ar_engine_stall(engine, error);
	else
		ereport(LOG,
				(errcode(error->sqlerrcode),
				 errmsg("the engine met an error and goes on: %s", error->message),
				 error->detail ? errdetail_internal("%s", error->detail) : 0,
				 error->context ? errcontext("%s", error->context) : 0));
	FreeErrorData(error);
	ar_tx_rollback();
}

bool
ar_engine_in_transaction(ArEngine *engine, void (*work) (void))
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool done = false;

	if (!ar_engine_begin(engine))
		return false;
	PG_TRY();
	{
		work();
		ar_tx_commit();
		done = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		ar_engine_swallow_error(engine);
	}
	PG_END_TRY();
	return done;
}

void
ar_engine_wake(ArEngine *engine)
{
	engine->look_for_work = true;
	engine->look_at_everything = true;
}

void
ar_engine_retire(ArEngine *engine)
{
	engine->draining = true;
}

void
ar_engine_drain(ArEngine *engine)
{
	ar_engine_retire(engine);
	ar_tx_commit_locally();
}

bool
ar_engine_is_idle(const ArEngine *engine)
{
	return engine->open_writes + engine->open_lookups + engine->ended_count == 0;
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

#define REFERENCES_TOLD	20

/* The database may be about to go, and with it all that is recorded about them. */
static void
log_open(ArEngine *engine)
{
	StringInfoData references;
	dlist_iter	iter;
	int			told = 0;

	if (engine->open_writes == 0)
		return;
	initStringInfo(&references);
	dlist_foreach(iter, &engine->open)
	{
		ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);

		if (errand->dispatch != NULL && told++ < REFERENCES_TOLD)
			appendStringInfo(&references, "%s\"%s\"", told > 1 ? ", " : "", errand->dispatch->client_reference);
	}
	ereport(LOG,
			(errmsg_plural("%d request is open when the engine stops", "%d requests are open when the engine stops",
						   engine->open_writes, engine->open_writes),
			 errdetail("References: %s%s. Whether the provider carries them out is not known.",
					   references.data, told > REFERENCES_TOLD ? ", ..." : "")));
}

/*
 * A write that never reached its first byte is provably not sent; another one
 * is unknown.  A question without an answer says nothing at all, and is taken
 * back as if the engine had died.
 */
static void
end_everything(ArEngine *engine)
{
	dlist_mutable_iter iter;

	log_open(engine);
	ar_transport_destroy(engine->transport);
	engine->transport = NULL;
	dlist_foreach_modify(iter, &engine->open)
	{
		ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);

		ar_errand_end(engine, errand, NULL, "the engine stopped");
		if (errand->question != NULL)
			ar_errand_free(engine, errand);
	}
}

/* Everything of this epoch that could be recorded has been. */
static void
take_back_questions(void)
{
	bool		left_open;

	ar_store_recover(current_engine->epoch + 1, &left_open);
}

static void
log_unstored(ArEngine *engine)
{
	dlist_iter	iter;

	dlist_foreach(iter, &engine->ended)
	{
		ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);

		if (errand->dispatch != NULL)
			ereport(LOG,
					(errmsg("the result of an attempt of action with reference \"%s\" could not be stored",
							errand->dispatch->client_reference),
					 errdetail("Whether the provider carried it out is not known.")));
	}
}

void
ar_engine_stop(ArEngine *engine)
{
	MemoryContext caller = MemoryContextSwitchTo(engine->turn_context);
	bool		asking = engine->open_lookups > 0 || engine->ended_count > 0;

	end_everything(engine);
	engine->busy_until_us = engine->stalled_until_us = 0;
	if (engine->ended_count > 0 && !engine->gone)
		ar_record_one_by_one(engine);
	if (asking && !engine->gone)
		(void) ar_engine_in_transaction(engine, take_back_questions);
	log_unstored(engine);
	ar_armed_leave(engine);
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
		dlist_foreach(iter, &engine->ended)
		{
			ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);

			if (errand->exchange != NULL)
				ar_exchange_free(errand->exchange);
		}
		MemoryContextDelete(engine->context);
	}
}
