/*
 * gate.c
 *		The last-instant check, and driving the transport through it.
 *
 * The check runs inside libcurl's pre-request callback: after connect and
 * TLS, before the first byte.  Nothing may throw there and nothing may wait
 * there, so the transaction is opened and the tables are locked before libcurl
 * is entered, the action's own lock is only tried, and an error ends as "do
 * not send".  Any doubt at all ends as "do not send".
 */
#include "engine/engine_internal.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "engine/fault.h"
#include "store/arming.h"
#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/tx.h"

/* Why the attempt must not be sent, or NULL.  May ereport. */
static const char *
objection(ArEngine *engine, ArDispatch *dispatch)
{
	const char *problem;

	/* A process that was stopped for long must not send under a gate that was set for a prompt send. */
	if (ar_monotonic_us() - dispatch->claimed_us > dispatch->attempt_timeout_us)
		return "its time to be sent has passed";
	if (engine->stalled_because != NULL)
		return "the database cannot be written, so its end could not be recorded";
	if (engine->checked_count >= engine->checked_size || !ar_action_lock_try(&dispatch->action_id))
		return "somebody is confirming the action";
	engine->checked[engine->checked_count++] = dispatch->action_id;
	problem = ar_store_check_dispatch(dispatch, engine->epoch);
	if (problem == NULL && dispatch->drill == AR_DRILL_REQUEST_LOST && dispatch->number == 1)
	{
		dispatch->drilled = true;
		return "the request is lost: this is a drill";
	}
	return problem == NULL ? NULL : MemoryContextStrdup(dispatch->context, problem);
}

ArSendDecision
ar_gate_may_send(void *owner, void *cookie)
{
	ArEngine   *engine = owner;
	ArErrand   *errand = cookie;
	ArDispatch *dispatch = errand->dispatch;
	MemoryContext context = CurrentMemoryContext;

	dispatch->check_done = true;
	engine->unchecked--;
	if (!engine->check_open || engine->check_broken)
	{
		dispatch->refusal = "the state could not be read again";
		return AR_SEND_REFUSE;
	}

	HOLD_INTERRUPTS();
	PG_TRY();
	{
		dispatch->refusal = objection(engine, dispatch);
	}
	PG_CATCH();
	{
		/*
		 * The transaction is lost; it is rolled back when libcurl has
		 * returned, and the error told then: telling could throw.
		 */
		HOLD_INTERRUPTS();		/* the error has cleared the count */
		MemoryContextSwitchTo(context);
		engine->check_error = geterrcode();
		FlushErrorState();
		engine->check_broken = true;
		dispatch->refusal = "the state could not be read again";
	}
	PG_END_TRY();
	RESUME_INTERRUPTS();
	MemoryContextSwitchTo(context);

	if (dispatch->refusal != NULL)
		return AR_SEND_REFUSE;
	ar_fault_point("before_first_byte");
	engine->counts.sent++;
	return AR_SEND_GO;
}

/* The libcurl call that ran the check has returned: a confirmation may have the action again. */
void
ar_gate_after_call(void *owner)
{
	ArEngine   *engine = owner;

	if (!engine->check_broken)
	{
		for (int i = 0; i < engine->checked_count; i++)
			ar_action_lock_give(&engine->checked[i]);
	}
	engine->checked_count = 0;
}

/*
 * Is there a transaction in which writes may be checked?  Also that the token
 * file still stands, and tells what is about to leave: so a data directory
 * that is put back to before that is noticed.
 */
static bool
open_check(ArEngine *engine)
{
	int64		epoch;
	const char *problem;

	if (!ar_engine_begin(engine))
		return false;
	problem = ar_arming_problem(&epoch);
	if (problem == NULL)
		problem = ar_arming_mark(engine->position);
	if (problem != NULL || epoch != engine->epoch)
	{
		if (problem != NULL)
			ereport(LOG, (errmsg("nothing is let go: %s", problem)));
		ar_tx_commit();
		return false;
	}
	return true;
}

/* Let libcurl do whatever is ready; writes pass the check on their way. */
void
ar_gate_drive(ArEngine *engine)
{
	engine->check_broken = false;
	engine->checked_count = 0;
	if (engine->unchecked > engine->checked_size)
	{
		engine->checked_size = engine->unchecked + 64;
		engine->checked = repalloc(engine->checked, sizeof(pg_uuid_t) * engine->checked_size);
	}
	engine->check_open = engine->unchecked > 0 && open_check(engine);
	ar_transport_step(engine->transport, ar_gate_after_call, engine);
	if (engine->check_open)
	{
		engine->check_open = false;
		if (engine->check_broken)
		{
			ar_tx_rollback();
			ereport(LOG,
					(errcode(engine->check_error),
					 errmsg("the last-instant check met an error with SQLSTATE %s: nothing more was let go",
							unpack_sql_state(engine->check_error))));
		}
		else
			ar_tx_commit();
	}
	if (ar_transport_failure(engine->transport) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				 errmsg("the HTTP transport cannot go on: %s", ar_transport_failure(engine->transport)),
				 errhint("What was in flight is outcome_unknown and will be looked up.")));
}
