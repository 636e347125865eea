/*
 * operate.c
 *		SQL-callable functions that operate the engine: arm, wake, wait, run.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "api/elapsed.h"
#include "engine/engine.h"
#include "settings.h"
#include "store/arming.h"
#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/extension.h"
#include "store/status.h"
#include "worker/report.h"
#include "worker/wake.h"

PG_FUNCTION_INFO_V1(ar_arm);
PG_FUNCTION_INFO_V1(ar_wake);
PG_FUNCTION_INFO_V1(ar_engine_state);
PG_FUNCTION_INFO_V1(ar_wait_until_resolved);
PG_FUNCTION_INFO_V1(ar_run);

#define WAIT_MAXIMUM_US	INT64CONST(60000000)
#define RUN_MAXIMUM_US	INT64CONST(86400000000)
#define RUN_LOOK_EVERY_US	INT64CONST(500000)

Datum
ar_arm(PG_FUNCTION_ARGS)
{
	char	   *reason = PG_ARGISNULL(0) ? "" : text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (strspn(reason, " \t\r\n") == strlen(reason))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a reason is required to arm a database"),
				 errhint("Say why this database, and not a copy of it, is the one that acts.")));
	ar_extension_require();
	ar_arming_arm(reason);
	ar_wake_at_commit();
	PG_RETURN_VOID();
}

Datum
ar_wake(PG_FUNCTION_ARGS)
{
	ar_wake_at_commit();
	PG_RETURN_VOID();
}

Datum
ar_engine_state(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor;
	Datum		values[5];
	bool		nulls[5] = {0};
	char	   *stalled = ar_wake_worker_stalled_because();
	int			worker = ar_wake_worker_pid();
	int			holder = ar_engine_lock_holder();
	const char *problem;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	problem = ar_extension_problem();
	if (problem == NULL)
		problem = ar_arming_state();
	values[0] = Int32GetDatum(worker);
	nulls[0] = worker == 0;
	values[1] = Int32GetDatum(holder);
	nulls[1] = holder == 0;
	values[2] = BoolGetDatum(problem == NULL);
	values[3] = problem ? CStringGetTextDatum(problem) : (Datum) 0;
	nulls[3] = problem == NULL;
	values[4] = stalled ? CStringGetTextDatum(stalled) : (Datum) 0;
	nulls[4] = stalled == NULL;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls)));
}

/* Refuses what could never see the result, or would wait for itself. */
static void
check_wait(const pg_uuid_t *action_id, int64 timeout)
{
	char	   *id = DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(action_id)));

	if (timeout < 0 || timeout > WAIT_MAXIMUM_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the timeout must be between 0 and 60 seconds"),
				 errhint("Call wait() again to wait longer; LISTEN reconcile tells of every result.")));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot wait in a transaction that is not READ COMMITTED"),
				 errdetail("Its snapshot would never show the result.")));
	switch (ar_store_visibility(action_id))
	{
		case AR_NO_ACTION:
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("action \"%s\" does not exist", id),
					 errhint("Or it is not yours to see.")));
			break;
		case AR_OWN_UNCOMMITTED:
			ereport(ERROR,
					(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
					 errmsg("cannot wait for action \"%s\": this transaction has not committed it", id),
					 errhint("Commit first; nothing is sent before.")));
			break;
		case AR_UNRESOLVED:
		case AR_RESOLVED:
			break;
	}
}

/* False if the time was up first. */
static bool
wait_until(const pg_uuid_t *action_id, int64 until)
{
	while (ar_store_visibility(action_id) != AR_RESOLVED)
	{
		if (ar_wake_wait(until))
			return false;
	}
	return true;
}

Datum
ar_wait_until_resolved(PG_FUNCTION_ARGS)
{
	pg_uuid_t	action_id = *PG_GETARG_UUID_P(0);
	int64		timeout = ar_elapsed_us(PG_GETARG_INTERVAL_P(1));
	int64		until;
	volatile bool resolved = false;

	check_wait(&action_id, timeout);
	until = ar_monotonic_us() + timeout;
	PG_TRY();
	{
		resolved = wait_until(&action_id, until);
	}
	PG_FINALLY();
	{
		ar_wake_wait_end();
	}
	PG_END_TRY();
	PG_RETURN_BOOL(resolved);
}

/* The time is up: nothing more is sent, and what is open is waited for as long as a worker that stops would wait. */
static void
finish_open(ArEngine *engine)
{
	int64		until = ar_monotonic_us() + (int64) ar_setting_drain_timeout_ms * 1000;

	ar_engine_retire(engine);
	while (!ar_engine_is_idle(engine))
	{
		int64		left = until - ar_monotonic_us();
		long		sleep = ar_engine_sleep_ms(engine);

		if (left <= 0)
			break;
		left = left / 1000 + 1;
		ar_engine_wait(engine, sleep < 0 || sleep > left ? (long) left : sleep);
		if (!ar_engine_turn(engine))
			break;
	}
}

/* The engine's loop in the calling backend. Commits of others do not wake a session, so it looks about itself. */
static void
run_engine(ArEngine *engine, int64 until, bool stop_when_idle)
{
	int64		look_at = ar_monotonic_us() + RUN_LOOK_EVERY_US;

	while (ar_engine_turn(engine))
	{
		int64		now = ar_monotonic_us();
		int64		left = Min(until, look_at) - now;
		long		sleep = ar_engine_sleep_ms(engine);

		ar_report_turn();
		if (stop_when_idle && ar_engine_is_idle(engine) && ar_engine_has_nothing_due(engine))
			return;
		if (now >= until)
		{
			finish_open(engine);
			return;
		}
		left = Max(left, 0) / 1000 + 1;
		ar_engine_wait(engine, sleep < 0 || sleep > left ? (long) left : sleep);
		if (ar_monotonic_us() >= look_at)
		{
			ar_engine_wake(engine);
			look_at = ar_monotonic_us() + RUN_LOOK_EVERY_US;
		}
	}
}

static Datum
run_result(TupleDesc descriptor, int holder, const ArEngineCounts *counts)
{
	Datum		values[4];
	bool		nulls[4] = {holder == 0, false, false, false};

	values[0] = Int32GetDatum(holder);
	values[1] = Int32GetDatum((int32) counts->sent);
	values[2] = Int32GetDatum((int32) counts->answered);
	values[3] = Int32GetDatum((int32) counts->asked);
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}

/*
 * The row type of the result, found before the engine runs: the extension may
 * be dropped meanwhile.
 */
static TupleDesc
result_descriptor(FunctionCallInfo fcinfo)
{
	MemoryContext caller = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	descriptor = BlessTupleDesc(CreateTupleDescCopy(descriptor));
	MemoryContextSwitchTo(caller);
	return descriptor;
}

/* Become the engine and run it; the pid of the holder if another process is the engine. */
static int
become_engine(int64 duration, bool stop_when_idle, ArEngineCounts *counts)
{
	ArEngine   *engine = NULL;
	int			holder = 0;

	switch (ar_engine_start(true, &engine))
	{
		case AR_ENGINE_STARTED:
			run_engine(engine, ar_monotonic_us() + duration, stop_when_idle);
			*counts = *ar_engine_counts(engine);
			if (ar_engine_stalled_because(engine) != NULL)
				ereport(WARNING,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("the engine sends nothing: %s", ar_engine_stalled_because(engine))));
			ar_engine_stop(engine);
			break;
		case AR_ENGINE_HELD:
			holder = ar_engine_lock_holder();
			ereport(NOTICE, (errmsg("process %d is the engine of this database", holder)));
			break;
		case AR_ENGINE_BUSY:
			ereport(NOTICE, (errmsg("a table of the extension is locked: try again later")));
			break;
		case AR_ENGINE_READ_ONLY:
			ereport(ERROR,
					(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
					 errmsg("the engine cannot run in a session whose transactions are read-only"),
					 errhint("Nothing is sent that could not be recorded. Set default_transaction_read_only to off.")));
			break;
		case AR_ENGINE_ABSENT:
			break;
	}
	return holder;
}

static void
check_run(FunctionCallInfo fcinfo)
{
	CallContext *call = fcinfo->context != NULL && IsA(fcinfo->context, CallContext) ?
		castNode(CallContext, fcinfo->context) : NULL;

	if (call == NULL || call->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("reconcile.run cannot be called inside a transaction block or a function"),
				 errhint("It commits before it sends. CALL it on its own.")));
	if (PG_ARGISNULL(0) || ar_elapsed_us(PG_GETARG_INTERVAL_P(0)) < 0 ||
		ar_elapsed_us(PG_GETARG_INTERVAL_P(0)) > RUN_MAXIMUM_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_duration must be between 0 and 1 day")));
}

Datum
ar_run(PG_FUNCTION_ARGS)
{
	ArEngineCounts counts = {0};
	volatile int holder = 0;
	TupleDesc	descriptor;

	check_run(fcinfo);
	descriptor = result_descriptor(fcinfo);
	PG_TRY();
	{
		holder = become_engine(ar_elapsed_us(PG_GETARG_INTERVAL_P(0)), PG_ARGISNULL(1) || PG_GETARG_BOOL(1), &counts);
	}
	PG_CATCH();
	{
		ar_engine_abandon();
		PG_RE_THROW();
	}
	PG_END_TRY();
	return run_result(descriptor, holder, &counts);
}
