/*
 * guard.c
 *		The triggers that refuse every step the transition table does not hold.
 *
 * A step is announced by version = version + 1 together with its event, its
 * target state and its evidence; any other change of what a row says about the
 * world is refused, for the owner of the table as for everybody.  The triggers
 * read no table, so that a claim of many rows stays one statement.  Rows are
 * deleted only on the way that retention.c knows.
 *
 * A row inserted with a version is a restored one and is taken as it is:
 * refusing it would make dumps impossible to restore.  Whether it is honest is
 * for verify_history() to say.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"

#include "core/lifecycle.h"
#include "store/chain.h"
#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/guard.h"
#include "store/retention.h"
#include "store/row.h"
#include "types/enums.h"
#include "types/standing_type.h"

PG_FUNCTION_INFO_V1(ar_action_guard);
PG_FUNCTION_INFO_V1(ar_attempt_guard);
PG_FUNCTION_INFO_V1(ar_refuse_change);

#define MAX_KEY_BYTES		255
#define MAX_REFERENCE_BYTES	200
#define MAX_PAYLOAD_BYTES	(1024 * 1024)
#define REFERENCE_CHARACTERS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-"

/* The last transaction of this backend in which the status of an action changed. */
static FullTransactionId status_changed_in = {0};

/* Columns of an action that plan the next step and say nothing about the world. */
static const char *const action_planning[] = {
	"due_at", "gate_us", "eligible_at", "failures", "negatives", "inconclusives", "replacements", "lookup_position", "waits", NULL
};

/* What a transition may change besides. */
static const char *const action_transition[] = {
	"due_at", "gate_us", "eligible_at", "failures", "negatives", "inconclusives", "replacements", "lookup_position",
	"state", "standing", "queued", "attempts", "dispatch_id", "artifact_id",
	"priority", "waits", "held", "held_because", "approved_by", "after_failure",
	"looked_at", "looked_boot_us", "looked_lifetime", "existed", "before_digest",
	"idempotency_key", "key_generation", "key_first_at", "key_first_boot_us", "key_first_boot",
	"version", "event", "attempt_number", "evidence", "actor", "recorded_at", "transaction", "chain_head", NULL
};

/* And what only erasing may. */
static const char *const action_redaction[] = {
	"payload", "redacted_at", "state", "standing", "queued", "due_at", "version", "event", "attempt_number", "evidence", "actor", "recorded_at", "transaction", "chain_head", NULL
};

static const char *const attempt_planning[] = {"response_body", NULL};
static const char *const attempt_transition[] = {
	"response_body", "state", "standing", "event", "evidence", "version", "ended_at", "gate_us", "http_status", "artifact_id", "poll_url", NULL
};

static ArState
row_state(const ArRow *row)
{
	char	   *label = ar_enum_label(ar_row_get(row, "state"));
	ArState		state;

	if (!ar_state_parse(label, &state))
		elog(ERROR, "state \"%s\" is not in the transition table", label);
	return state;
}

static bool
evidence_holds(Datum evidence, const char *key)
{
	Jsonb	   *document = DatumGetJsonbP(evidence);
	JsonbValue	name;

	if (!JB_ROOT_IS_OBJECT(document))
		return false;
	name.type = jbvString;
	name.val.string.val = (char *) key;
	name.val.string.len = (int) strlen(key);
	return findJsonbValueFromContainer(&document->root, JB_FOBJECT, &name) != NULL;
}

/* Who takes the step: the session user, and that it was the engine, if it was. */
static const char *
actor_name(void)
{
	const char *user = GetUserNameFromId(GetSessionUserId(), false);

	return ar_engine_is_here() ? psprintf("engine (%s)", user) : user;
}

/* No step may put an attempt on the queue without proof that the one before did not happen. */
static void
check_queue(const char *id, const ArRow *old_row, const ArRow *new_row, ArEvent event, ArState to)
{
	bool		was_queued = DatumGetBool(ar_row_get(old_row, "queued"));
	bool		is_queued = DatumGetBool(ar_row_get(new_row, "queued"));
	char	   *event_before = ar_row_text(old_row, "event");

	/* The end of a request that was sent again proves nothing about the ones before it. */
	if (is_queued && strcmp(event_before, ar_event_name(AR_EVENT_RESEND)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("action \"%s\" cannot be queued by the end of a request that was sent again", id),
				 errhint("The attempts before it may have happened.")));
	if (!ar_queue_may_become(was_queued, event, to, is_queued))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("action \"%s\" cannot become %s by %s with queued %s", id, ar_state_name(to),
						ar_event_name(event), is_queued ? "true" : "false"),
				 errhint("A further attempt needs proof that the one before did not happen.")));
}

/* Refuses what the table does not hold, in the words of the rule. */
static void
check_transition(const char *kind, const char *id, int subject, const ArRow *old_row, const ArRow *new_row)
{
	ArState		from = row_state(old_row);
	ArState		to = row_state(new_row);
	ArStanding	standing_before = ar_datum_standing(ar_row_get(old_row, "standing"));
	ArStanding	standing = ar_datum_standing(ar_row_get(new_row, "standing"));
	char	   *event_name = text_to_cstring(DatumGetTextPP(ar_row_get(new_row, "event")));
	ArEvent		event;
	const ArTransition *rule;

	if (!ar_event_parse(event_name, &event))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" cannot change by \"%s\": there is no such event", kind, id, event_name),
				 errhint("The view reconcile.transition_rule lists every legal step.")));
	rule = ar_transition_find(subject, from, event, to);
	if (rule == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" cannot go from %s to %s by %s", kind, id,
						ar_state_name(from), ar_state_name(to), event_name),
				 errhint("The view reconcile.transition_rule lists every legal step.")));
	if (rule->actor == AR_BY_ENGINE && !ar_engine_is_here())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\": only the engine may record %s", kind, id, event_name),
				 errdetail("The rule is: %s.", rule->meaning),
				 errhint("Only the process that sends knows what was sent.")));
	if (!ar_state_allows_standing(to, standing))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" cannot be %s with standing %s", kind, id,
						ar_state_name(to), ar_standing_name(standing))));
	if (!ar_standing_may_become(standing_before, standing) ||
		(standing != standing_before && (to == AR_MANUAL_REVIEW || ar_event_keeps_standing(event))))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" cannot go from standing %s to %s", kind, id,
						ar_standing_name(standing_before), ar_standing_name(standing)),
				 errhint("Confirmed delivery and acceptance are never taken back, and only evidence changes either.")));
	if (subject == AR_OF_ACTION)
		check_queue(id, old_row, new_row, event, to);
	if (subject == AR_OF_ACTION && ar_resolved_status(standing) != ar_resolved_status(standing_before))
		status_changed_in = GetTopFullTransactionId();
	if (!evidence_holds(ar_row_get(new_row, "evidence"), rule->evidence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" cannot go from %s to %s without evidence \"%s\"", kind, id,
						ar_state_name(from), ar_state_name(to), rule->evidence)));
}

static void
refuse_difference(const char *kind, const char *id, const char *column)
{
	if (column != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("column \"%s\" of %s \"%s\" cannot be changed", column, kind, id),
				 errhint("What it says is settled by transitions with evidence; see reconcile.transition_rule.")));
}

static void
refuse_delete(const char *kind, const char *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s \"%s\" cannot be deleted", kind, id),
			 errhint("What was done to the outside world stays on record.")));
}

/* Is this the row of an action that is just moving into the archive, or out of it? */
static bool
is_leaving(const TriggerData *trigger)
{
	TupleDesc	descriptor = RelationGetDescr(trigger->tg_relation);
	int			column = SPI_fnumber(descriptor, "action_id");
	bool		is_null = true;
	Datum		action_id;

	if (!TRIGGER_FIRED_BY_DELETE(trigger->tg_event) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || column <= 0)
		return false;
	action_id = SPI_getbinval(trigger->tg_trigtuple, descriptor, column, &is_null);
	return !is_null && ar_store_is_leaving(action_id);
}

/* Whoever says that it may leave, what is not over stays. */
static bool
is_over(const ArRow *row)
{
	ArState		state = row_state(row);

	return ar_resolved_status(ar_datum_standing(ar_row_get(row, "standing"))) != AR_STATUS_DENIED_UNRESOLVED &&
		state != AR_SAFE_TO_RETRY && state != AR_SUBMITTED && !DatumGetBool(ar_row_get(row, "queued"));
}

/* Is the version of the new row the next one? Any other number but the same is refused. */
static bool
is_transition(const char *kind, const char *id, const ArRow *old_row, const ArRow *new_row)
{
	int			old_version = DatumGetInt32(ar_row_get(old_row, "version"));
	int			new_version = DatumGetInt32(ar_row_get(new_row, "version"));

	if (new_version != old_version && new_version != old_version + 1)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s \"%s\" is at version %d: version %d cannot follow", kind, id, old_version, new_version)));
	return new_version != old_version;
}

/* Put the entry that this row announces into its chain. */
static void
extend_chain(ArRow *row, const ArRow *old_row)
{
	ArHistoryEntry entry = {0};
	TimestampTz recorded_at = Max(ar_wall_now(), GetCurrentStatementStartTimestamp());
	bytea	   *hash = palloc(VARHDRSZ + AR_DIGEST_LENGTH);

	if (old_row != NULL)
	{
		bytea	   *previous = DatumGetByteaPP(ar_row_get(old_row, "chain_head"));

		/* Time in a history does not run backwards, whatever the wall clock does. */
		recorded_at = Max(recorded_at, DatumGetTimestampTz(ar_row_get(old_row, "recorded_at")));
		entry.from_state = ar_state_name(row_state(old_row));
		entry.previous_hash = VARDATA_ANY(previous);
		entry.previous_length = (int) VARSIZE_ANY_EXHDR(previous);
	}
	ar_row_set(row, "actor", CStringGetTextDatum(actor_name()));
	ar_row_set(row, "recorded_at", TimestampTzGetDatum(recorded_at));
	ar_row_set(row, "transaction", FullTransactionIdGetDatum(GetTopFullTransactionId()));

	entry.action_id = ar_row_get(row, "action_id");
	entry.version = DatumGetInt32(ar_row_get(row, "version"));
	entry.recorded_at = recorded_at;
	entry.has_attempt = !ar_row_is_null(row, "attempt_number");
	entry.attempt_number = entry.has_attempt ? DatumGetInt32(ar_row_get(row, "attempt_number")) : 0;
	entry.event = ar_row_text(row, "event");
	entry.to_state = ar_state_name(row_state(row));
	entry.standing = ar_standing_name(ar_datum_standing(ar_row_get(row, "standing")));
	entry.evidence = ar_row_text(row, "evidence");
	entry.actor = actor_name();

	SET_VARSIZE(hash, VARHDRSZ + AR_DIGEST_LENGTH);
	ar_chain_hash(&entry, (uint8 *) VARDATA(hash));
	ar_row_set(row, "chain_head", PointerGetDatum(hash));
}

static Oid
column_type(const ArRow *row, const char *name)
{
	return TupleDescAttr(row->descriptor, ar_row_column(row, name))->atttypid;
}

static void
refuse_value(const char *column, const char *problem, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("%s of an action %s", column, problem),
			 errhint("%s", hint),
			 err_generic_string(PG_DIAG_COLUMN_NAME, column)));
}

static void
check_finite(const ArRow *row, const char *column)
{
	if (!ar_row_is_null(row, column) && TIMESTAMP_NOT_FINITE(DatumGetTimestampTz(ar_row_get(row, column))))
		refuse_value(column, "is infinite", "Give an instant, or leave it out.");
}

/*
 * What a caller may say about an action.  Checked here and not by constraints,
 * which would be checked again at each of its transitions.
 */
static void
check_new_action(const ArRow *row)
{
	char	   *key = ar_row_text(row, "intent_key");
	char	   *reference = ar_row_text(row, "client_reference");
	Datum		payload = ar_row_get(row, "payload");

	if (key != NULL && (strlen(key) > MAX_KEY_BYTES || strspn(key, " \t\r\n\f\v") == strlen(key)))
		refuse_value("intent_key", "is blank or too long",
					 "Use up to 255 bytes, or leave it out: then equal intents are told by their fingerprint.");
	if (reference == NULL || *reference == '\0' || strlen(reference) > MAX_REFERENCE_BYTES ||
		strspn(reference, REFERENCE_CHARACTERS) != strlen(reference) ||
		strcmp(reference, ".") == 0 || strcmp(reference, "..") == 0)
		refuse_value("client_reference", "cannot be sent and asked for everywhere",
					 "Use up to 200 letters, digits and . _ ~ -, or leave it out to get a fresh one.");
	if (toast_raw_datum_size(payload) > MAX_PAYLOAD_BYTES)
		refuse_value("payload", "is larger than one megabyte", "Send large content elsewhere and refer to it.");
	check_finite(row, "not_before");
	check_finite(row, "not_after");
	if (!ar_row_is_null(row, "not_before") && !ar_row_is_null(row, "not_after") &&
		DatumGetTimestampTz(ar_row_get(row, "not_before")) > DatumGetTimestampTz(ar_row_get(row, "not_after")))
		refuse_value("not_after", "lies before not_before", "Such an action could never be sent.");
}

/* A fresh action is planned, whatever the insert said. */
static void
start_action(ArRow *row)
{
	char	   *evidence = psprintf("{\"submit\": {\"deliberate_repeat\": %s}}",
									DatumGetBool(ar_row_get(row, "deliberate_repeat")) ? "true" : "false");

	check_new_action(row);
	ar_row_set(row, "version", Int32GetDatum(1));
	ar_row_set(row, "state", ar_enum_datum(column_type(row, "state"), ar_state_name(AR_PLANNED)));
	ar_row_set(row, "standing", CharGetDatum((char) AR_PENDING_PENDING));
	ar_row_set(row, "queued", BoolGetDatum(true));
	ar_row_set(row, "event", CStringGetTextDatum("submit"));
	ar_row_set(row, "evidence", DirectFunctionCall1(jsonb_in, CStringGetDatum(evidence)));
	extend_chain(row, NULL);
}

static bool
redacts(const ArRow *new_row)
{
	char	   *event = ar_row_text(new_row, "event");

	return event != NULL && strcmp(event, ar_event_name(AR_EVENT_REDACT)) == 0;
}

bool
ar_guard_status_changed(void)
{
	FullTransactionId now = GetTopFullTransactionIdIfAny();

	return FullTransactionIdIsValid(now) && FullTransactionIdEquals(now, status_changed_in);
}

Datum
ar_action_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	ArRow	   *old_row;
	ArRow	   *new_row;
	char	   *id;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
		elog(ERROR, "action_guard was not called as a row trigger before the change");
	old_row = ar_row_read(trigger->tg_relation, trigger->tg_trigtuple);
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
	{
		if (!ar_row_is_null(old_row, "version"))
			return PointerGetDatum(trigger->tg_trigtuple);
		start_action(old_row);
		return PointerGetDatum(ar_row_tuple(old_row));
	}

	id = ar_row_text(old_row, "action_id");
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
	{
		if (!is_leaving(trigger) || !is_over(old_row))
			refuse_delete("action", id);
		return PointerGetDatum(trigger->tg_trigtuple);
	}
	new_row = ar_row_read(trigger->tg_relation, trigger->tg_newtuple);
	if (!is_transition("action", id, old_row, new_row))
	{
		refuse_difference("action", id, ar_row_difference(old_row, new_row, action_planning));
		return PointerGetDatum(trigger->tg_newtuple);
	}
	refuse_difference("action", id, ar_row_difference(old_row, new_row, redacts(new_row) ? action_redaction : action_transition));
	check_transition("action", id, AR_OF_ACTION, old_row, new_row);
	extend_chain(new_row, old_row);
	return PointerGetDatum(ar_row_tuple(new_row));
}

/* A fresh attempt is a claim, or presumed to have left elsewhere; either is the engine's to record. */
static void
start_attempt(ArRow *row, const char *id)
{
	char	   *event = ar_row_text(row, "event");
	bool		presumed;

	if (!ar_engine_is_here())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("attempt \"%s\": only the engine may record an attempt", id),
				 errhint("Submit an action instead.")));
	presumed = event != NULL && strcmp(event, ar_event_name(AR_EVENT_PRESUME)) == 0;
	ar_row_set(row, "version", Int32GetDatum(1));
	ar_row_set(row, "state", ar_enum_datum(column_type(row, "state"), ar_state_name(presumed ? AR_OUTCOME_UNKNOWN : AR_SUBMITTED)));
	ar_row_set(row, "standing", CharGetDatum((char) AR_PENDING_PENDING));
	ar_row_set(row, "event", CStringGetTextDatum(ar_event_name(presumed ? AR_EVENT_PRESUME : AR_EVENT_CLAIM)));
}

Datum
ar_attempt_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	ArRow	   *old_row;
	ArRow	   *new_row;
	char	   *id;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) || !TRIGGER_FIRED_BEFORE(trigger->tg_event))
		elog(ERROR, "attempt_guard was not called as a row trigger before the change");
	old_row = ar_row_read(trigger->tg_relation, trigger->tg_trigtuple);
	id = ar_row_text(old_row, "dispatch_id");
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
	{
		if (!ar_row_is_null(old_row, "version"))
			return PointerGetDatum(trigger->tg_trigtuple);
		start_attempt(old_row, id);
		return PointerGetDatum(ar_row_tuple(old_row));
	}
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
	{
		if (!is_leaving(trigger))
			refuse_delete("attempt", id);
		return PointerGetDatum(trigger->tg_trigtuple);
	}
	new_row = ar_row_read(trigger->tg_relation, trigger->tg_newtuple);
	if (!is_transition("attempt", id, old_row, new_row))
	{
		refuse_difference("attempt", id, ar_row_difference(old_row, new_row, attempt_planning));
		return PointerGetDatum(trigger->tg_newtuple);
	}
	refuse_difference("attempt", id, ar_row_difference(old_row, new_row, attempt_transition));
	check_transition("attempt", id, AR_OF_ATTEMPT, old_row, new_row);
	return PointerGetDatum(trigger->tg_newtuple);
}

Datum
ar_refuse_change(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	const char *verb;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "refuse_change was not called as a trigger");
	if (is_leaving(trigger))
		return PointerGetDatum(trigger->tg_trigtuple);
	verb = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? "UPDATE" :
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? "DELETE" : "TRUNCATE";
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s on table \"%s\" is refused", verb, RelationGetRelationName(trigger->tg_relation)),
			 errhint("What was recorded stays as it was recorded.")));
	PG_RETURN_NULL();
}
