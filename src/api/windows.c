/*
 * windows.c
 *		What the procedures that measure and rehearse need beyond PL/pgSQL.
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "worker/wake.h"

PG_FUNCTION_INFO_V1(ar_require_commit);
PG_FUNCTION_INFO_V1(ar_await_engine);

#define AWAIT_MAXIMUM_US	INT64CONST(1000000)

/*
 * Called first by a procedure that is going to commit, so that it is refused
 * in our words and before it has done anything: PL/pgSQL would fail at its
 * first COMMIT only, and cannot catch that.
 */
Datum
ar_require_commit(PG_FUNCTION_ARGS)
{
	CallContext *call = fcinfo->context != NULL && IsA(fcinfo->context, CallContext) ?
		castNode(CallContext, fcinfo->context) : NULL;

	if (call == NULL || call->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot be called inside a transaction block or a function", text_to_cstring(PG_GETARG_TEXT_PP(0))),
				 errhint("It commits on its way. CALL it on its own.")));
	PG_RETURN_VOID();
}

/*
 * A commit between the caller's last look and this call is not waited for
 * again, which is why the wait is short.
 */
Datum
ar_await_engine(PG_FUNCTION_ARGS)
{
	Interval   *timeout = PG_GETARG_INTERVAL_P(0);
	int64		until = ar_monotonic_us() + Max(Min(timeout->time, AWAIT_MAXIMUM_US), 0);

	PG_TRY();
	{
		/* The first call may only have made ready to sleep. */
		if (!ar_wake_wait(until))
			(void) ar_wake_wait(until);
	}
	PG_FINALLY();
	{
		ar_wake_wait_end();
	}
	PG_END_TRY();
	PG_RETURN_VOID();
}
