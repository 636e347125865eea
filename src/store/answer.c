/*
 * answer.c
 *		What the answer to a lookup changes.
 */
#include "store/question.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/lifecycle.h"
#include "store/statement.h"

static ArStatement keep_statement = {
	"UPDATE reconcile.lookup SET answered_at = $2, result = $3, reason = $4, http_status = $5, matches = $6, artifact_id = $7"
	" WHERE lookup_id = $1",
	7, {UUIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, INT4OID, INT4OID, TEXTOID}
};

/* Lock the action if it still is what it was when it was asked about. */
static ArStatement lock_statement = {
	"SELECT a.version = $2 FROM reconcile.action a WHERE a.action_id = $1 FOR NO KEY UPDATE SKIP LOCKED",
	2, {UUIDOID, INT4OID}
};

/*
 * What was found is credited to the last attempt that may have left; if every
 * attempt was thought not to have happened, to the last one: its late
 * confirmation.
 */
static ArStatement credit_statement = {
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = 'found', state = 'succeeded', standing = 'confirmed/accepted',"
	" evidence = $2::jsonb, artifact_id = $3"
	" WHERE t.action_id = $1 AND t.number = (SELECT x.number FROM reconcile.attempt x WHERE x.action_id = $1"
	"  ORDER BY (x.state IN ('outcome_unknown', 'delivered')) DESC, x.number DESC LIMIT 1)",
	3, {UUIDOID, TEXTOID, TEXTOID}
};

/* Absence settles only attempts whose gate was open when the question was asked. */
static ArStatement absent_statement = {
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = 'absent', state = 'safe_to_retry', standing = 'failed/pending',"
	" evidence = $2::jsonb WHERE t.action_id = $1 AND t.state = 'outcome_unknown' AND t.gate_us <= $3",
	3, {UUIDOID, TEXTOID, INT8OID}
};

static ArStatement step_statement = {
	"WITH stepped AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = $2, state = $3::reconcile.state, standing = $4::reconcile.standing,"
	"  attempt_number = NULL, queued = ($3 = 'planned'), evidence = $5::jsonb, artifact_id = coalesce($6, a.artifact_id),"
	"  gate_us = $7, eligible_at = CASE WHEN $7 IS NOT NULL THEN $9 + $8 * interval '1 microsecond' END,"
	"  due_at = CASE WHEN $3 = 'planned' THEN $9 + $8 * interval '1 microsecond' ELSE a.due_at END,"
	"  negatives = $10, inconclusives = $11, replacements = a.replacements + $12,"
	"  looked_at = coalesce($13, a.looked_at), looked_boot_us = coalesce($14, a.looked_boot_us),"
	"  looked_lifetime = coalesce($15, a.looked_lifetime)"
	" WHERE a.action_id = $1 RETURNING a.action_id, a.state, reconcile.resolved_status(a.standing) AS status)"
	" SELECT CASE WHEN s.status <> 'DENIED_UNRESOLVED' THEN pg_notify('reconcile',"
	"  json_build_object('action_id', s.action_id, 'state', s.state, 'status', s.status)::text) END FROM stepped s",
	15, {UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, TIMESTAMPTZOID, INT4OID, INT4OID, INT4OID,
	TIMESTAMPTZOID, INT8OID, TEXTOID}
};

/* The transition that a step means for this action. */
static void
choose_transition(const ArQuestion *question, const ArAnswer *answer, ArEvent *event, ArState *state)
{
	*event = AR_EVENT_INCONCLUSIVE;
	*state = AR_MANUAL_REVIEW;
	switch (answer->step)
	{
		case AR_STEP_FOUND:
			*event = AR_EVENT_FOUND;
			*state = AR_SUCCEEDED;
			return;
		case AR_STEP_ABSENT_ONCE:
			*event = AR_EVENT_ABSENT_ONCE;
			*state = AR_OUTCOME_UNKNOWN;
			return;
		case AR_STEP_ABSENT:
			*event = AR_EVENT_ABSENT;
			*state = answer->replace ? AR_PLANNED : AR_SAFE_TO_RETRY;
			return;
		case AR_STEP_INCONCLUSIVE:
			*event = AR_EVENT_INCONCLUSIVE;
			*state = question->delivered ? AR_DELIVERED : question->queued ? AR_PLANNED : AR_OUTCOME_UNKNOWN;
			return;
		case AR_STEP_GIVE_UP:
			*event = AR_EVENT_INCONCLUSIVE;
			*state = question->queued ? AR_SAFE_TO_RETRY : AR_MANUAL_REVIEW;
			return;
	}
}

static Datum
text_or_null(const char *text, char *null_flag)
{
	*null_flag = text == NULL ? 'n' : ' ';
	return text == NULL ? (Datum) 0 : CStringGetTextDatum(text);
}

static void
keep_fact(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[7];
	char		nulls[7] = {' ', ' ', ' ', ' ', ' ', ' ', ' '};

	values[0] = UUIDPGetDatum(&question->lookup_id);
	values[1] = TimestampTzGetDatum(ar_wall_now());
	values[2] = CStringGetTextDatum(ar_lookup_result_name(answer->result));
	values[3] = CStringGetTextDatum(answer->reason);
	values[4] = Int32GetDatum(answer->http_status);
	nulls[4] = answer->http_status == 0 ? 'n' : ' ';
	values[5] = Int32GetDatum(answer->matches);
	values[6] = text_or_null(answer->artifact_id, &nulls[6]);
	ar_statement_run(&keep_statement, values, nulls);
}

static void
settle_attempts(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[3];
	char		nulls[3] = {' ', ' ', ' '};

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = CStringGetTextDatum(answer->evidence);
	if (answer->step == AR_STEP_FOUND)
	{
		values[2] = text_or_null(answer->artifact_id, &nulls[2]);
		ar_statement_run(&credit_statement, values, nulls);
	}
	else if (answer->step == AR_STEP_ABSENT)
	{
		values[2] = Int64GetDatum(question->asked_us);
		ar_statement_run(&absent_statement, values, NULL);
	}
}

static void
step_action(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[15];
	char		nulls[15];
	ArEvent		event;
	ArState		state;
	ArStanding	current = question->delivered ? AR_CONFIRMED_PENDING : AR_PENDING_PENDING;
	bool		asks_again;
	bool		absent = answer->step == AR_STEP_ABSENT;

	choose_transition(question, answer, &event, &state);
	asks_again = state == AR_OUTCOME_UNKNOWN || state == AR_DELIVERED;
	memset(nulls, ' ', sizeof(nulls));
	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = CStringGetTextDatum(ar_event_name(event));
	values[2] = CStringGetTextDatum(ar_state_name(state));
	values[3] = CStringGetTextDatum(ar_standing_name(ar_state_standing(state, current)));
	values[4] = CStringGetTextDatum(answer->evidence);
	values[5] = text_or_null(answer->artifact_id, &nulls[5]);
	values[6] = Int64GetDatum(ar_lower_now() + answer->pause_us);
	nulls[6] = asks_again ? ' ' : 'n';
	values[7] = Int64GetDatum(answer->pause_us);
	values[8] = TimestampTzGetDatum(ar_wall_now());
	values[9] = Int32GetDatum(answer->step == AR_STEP_ABSENT_ONCE ? question->negatives + 1 : absent ? 0 : question->negatives);
	values[10] = Int32GetDatum(answer->step == AR_STEP_INCONCLUSIVE ? question->inconclusives + 1 : 0);
	values[11] = Int32GetDatum(absent && answer->replace && !question->queued ? 1 : 0);
	values[12] = TimestampTzGetDatum(question->asked.wall);
	values[13] = Int64GetDatum(question->asked.boot_us);
	values[14] = CStringGetTextDatum(question->asked.lifetime);
	if (!absent)
		nulls[12] = nulls[13] = nulls[14] = 'n';
	ar_statement_run(&step_statement, values, nulls);
}

bool
ar_store_record_answer(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[2];

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = Int32GetDatum(question->version);
	if (ar_statement_run(&lock_statement, values, NULL) == 0)
		return false;
	if (ar_result_bool(0, 1))
	{
		settle_attempts(question, answer);
		step_action(question, answer);
	}
	keep_fact(question, answer);
	return true;
}
