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
	"UPDATE reconcile.lookup SET answered_at = $2, result = $3, reason = $4, http_status = $5, matches = $6, artifact_id = $7,"
	" pages = $8, objects = $9 WHERE lookup_id = $1",
	9, {UUIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, INT4OID, INT4OID, TEXTOID, INT4OID, INT4OID}
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
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = $4, state = $5::reconcile.state, standing = $6::reconcile.standing,"
	" evidence = $2::jsonb, artifact_id = coalesce($3, t.artifact_id)"
	" WHERE t.action_id = $1 AND t.number = (SELECT x.number FROM reconcile.attempt x WHERE x.action_id = $1 AND x.state <> 'rejected'"
	"  ORDER BY (x.state = 'delivered') DESC, (x.state = 'outcome_unknown') DESC, x.number DESC LIMIT 1)",
	6, {UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

/*
 * Attempts with one key are one request to the provider: what it refuses, it
 * refuses for all of them; a person may have said of several that it has them.
 */
static ArStatement refused_statement = {
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = 'poll_rejected', state = 'rejected', standing = 'confirmed/rejected',"
	" evidence = $2::jsonb FROM reconcile.action a WHERE a.action_id = $1 AND t.action_id = $1"
	" AND (t.state = 'delivered' OR t.state = 'outcome_unknown' AND t.idempotency_key = a.idempotency_key)",
	2, {UUIDOID, TEXTOID}
};

/* Only where every gate was open when the question was asked: the judgement has seen to it. */
static ArStatement absent_statement = {
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = 'absent', state = 'safe_to_retry', standing = 'failed/pending',"
	" evidence = $2::jsonb WHERE t.action_id = $1 AND t.state = 'outcome_unknown'",
	2, {UUIDOID, TEXTOID}
};

#define MAY_STILL_BE_SENT "$3 IN ('planned', 'outcome_unknown', 'manual_review', 'safe_to_retry')"

static ArStatement step_statement = {
	"WITH stepped AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = $2, state = $3::reconcile.state, standing = $4::reconcile.standing,"
	"  attempt_number = NULL, queued = ($3 = 'planned'), evidence = $5::jsonb, artifact_id = coalesce($6, a.artifact_id),"
	"  gate_us = CASE WHEN $16 > 0 THEN greatest($7, reconcile.next_gate($1, $16)) ELSE $7 END,"
	"  eligible_at = CASE WHEN $7 IS NOT NULL THEN $9 + $8 * interval '1 microsecond' END,"
	"  due_at = CASE WHEN $3 = 'planned' THEN greatest(a.not_before, $9 + $8 * interval '1 microsecond') ELSE a.due_at END,"
	/* what was neither let go nor had its turn when it was presumed to have left is not now either, unless it did leave */
	"  held = a.held AND " MAY_STILL_BE_SENT ", held_because = CASE WHEN " MAY_STILL_BE_SENT " THEN a.held_because END, waits = a.waits AND " MAY_STILL_BE_SENT ","
	"  negatives = $10, inconclusives = $11, replacements = a.replacements + $12,"
	"  looked_at = coalesce($13, a.looked_at), looked_boot_us = coalesce($14, a.looked_boot_us),"
	"  looked_lifetime = coalesce($15, a.looked_lifetime), lookup_position = CASE WHEN $16 > 0 THEN $16 ELSE a.lookup_position END,"
	"  existed = coalesce($17, a.existed), before_digest = coalesce($18, a.before_digest)"
	" WHERE a.action_id = $1 RETURNING a.action_id, a.state, reconcile.resolved_status(a.standing) AS status)"
	" SELECT CASE WHEN s.status <> 'DENIED_UNRESOLVED' THEN pg_notify('reconcile',"
	"  json_build_object('action_id', s.action_id, 'state', s.state, 'status', s.status)::text) END FROM stepped s",
	18, {UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, TIMESTAMPTZOID, INT4OID, INT4OID, INT4OID,
	TIMESTAMPTZOID, INT8OID, TEXTOID, INT4OID, BOOLOID, TEXTOID}
};

/* What is only watched makes no step: it is planned when to ask again. */
static ArStatement watch_statement = {
	"UPDATE reconcile.action a SET gate_us = $2, eligible_at = $3, inconclusives = $4, lookup_position = $5 WHERE a.action_id = $1",
	5, {UUIDOID, INT8OID, TIMESTAMPTZOID, INT4OID, INT4OID}
};

/* The transition that a step means for this action. */
static void
choose_transition(const ArQuestion *question, const ArAnswer *answer, ArEvent *event, ArState *state)
{
	bool		queued = question->kind == AR_ASK_BEFORE_SEND;
	ArState		waiting = question->delivered ? AR_DELIVERED : queued ? AR_PLANNED : AR_OUTCOME_UNKNOWN;

	*event = AR_EVENT_INCONCLUSIVE;
	*state = waiting;
	switch (answer->step)
	{
		case AR_STEP_FOUND:
			*event = AR_EVENT_FOUND;
			*state = question->awaits_verdict ? AR_DELIVERED : AR_SUCCEEDED;
			return;
		case AR_STEP_ABSENT_ONCE:
			*event = AR_EVENT_ABSENT_ONCE;
			return;
		case AR_STEP_ABSENT:
			*event = AR_EVENT_ABSENT;
			*state = question->one_refused ? AR_REJECTED : answer->replace ? AR_PLANNED : AR_SAFE_TO_RETRY;
			return;
		case AR_STEP_GIVE_UP:
			*state = queued ? AR_SAFE_TO_RETRY : AR_MANUAL_REVIEW;
			return;
		case AR_STEP_LOOKED_BEFORE:
			*event = AR_EVENT_LOOKED_BEFORE;
			return;
		case AR_STEP_ACCEPTED:
			*event = AR_EVENT_POLL_ACCEPTED;
			*state = AR_SUCCEEDED;
			return;
		case AR_STEP_REJECTED:
			*event = AR_EVENT_POLL_REJECTED;
			*state = AR_REJECTED;
			return;
		case AR_STEP_OVERDUE:
			*event = AR_EVENT_OVERDUE;
			*state = AR_MANUAL_REVIEW;
			return;
		case AR_STEP_INCONCLUSIVE:
		case AR_STEP_NEXT_RULE:
		case AR_STEP_PENDING:
		case AR_STEP_SEEN:
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
	Datum		values[9];
	char		nulls[9] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};

	values[0] = UUIDPGetDatum(&question->lookup_id);
	values[1] = TimestampTzGetDatum(ar_wall_now());
	values[2] = CStringGetTextDatum(ar_lookup_result_name(answer->result));
	values[3] = CStringGetTextDatum(answer->reason);
	values[4] = Int32GetDatum(answer->http_status);
	nulls[4] = answer->http_status == 0 ? 'n' : ' ';
	values[5] = Int32GetDatum(answer->matches);
	values[6] = text_or_null(answer->artifact_id, &nulls[6]);
	values[7] = Int32GetDatum(answer->pages);
	values[8] = Int32GetDatum(answer->objects);
	ar_statement_run(&keep_statement, values, nulls);
}

static void
credit(const ArQuestion *question, const ArAnswer *answer, ArEvent event, ArState state)
{
	Datum		values[6];
	char		nulls[6] = {' ', ' ', ' ', ' ', ' ', ' '};

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = CStringGetTextDatum(answer->evidence);
	values[2] = text_or_null(answer->artifact_id, &nulls[2]);
	values[3] = CStringGetTextDatum(ar_event_name(event));
	values[4] = CStringGetTextDatum(ar_state_name(state));
	values[5] = CStringGetTextDatum(ar_standing_name(ar_state_standing(state, AR_CONFIRMED_PENDING)));
	ar_statement_run(&credit_statement, values, nulls);
}

/* What an answer proves, it proves for attempts. */
static void
settle_attempts(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[2] = {UUIDPGetDatum(&question->action_id), CStringGetTextDatum(answer->evidence)};

	switch (answer->step)
	{
		case AR_STEP_FOUND:
			credit(question, answer, AR_EVENT_FOUND, question->awaits_verdict ? AR_DELIVERED : AR_SUCCEEDED);
			break;
		case AR_STEP_ACCEPTED:
			credit(question, answer, AR_EVENT_POLL_ACCEPTED, AR_SUCCEEDED);
			break;
		case AR_STEP_REJECTED:
			credit(question, answer, AR_EVENT_POLL_REJECTED, AR_REJECTED);
			ar_statement_run(&refused_statement, values, NULL);
			break;
		case AR_STEP_ABSENT:
			ar_statement_run(&absent_statement, values, NULL);
			break;
		default:
			break;
	}
}

/* Counts of what has been asked in vain, as the step leaves them. */
static void
count_answers(const ArQuestion *question, const ArAnswer *answer, int *negatives, int *inconclusives)
{
	*negatives = question->negatives;
	*inconclusives = 0;
	if (answer->step == AR_STEP_ABSENT_ONCE)
		(*negatives)++;
	else if (answer->step == AR_STEP_INCONCLUSIVE)
		*inconclusives = question->inconclusives + 1;
	else if (answer->step == AR_STEP_ABSENT || answer->step == AR_STEP_NEXT_RULE || answer->step == AR_STEP_LOOKED_BEFORE)
		*negatives = 0;
}

static void
step_action(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[18];
	char		nulls[18];
	ArEvent		event;
	ArState		state;
	ArStanding	current = question->delivered ? AR_CONFIRMED_PENDING : AR_PENDING_PENDING;
	bool		looked = answer->step == AR_STEP_ABSENT || answer->step == AR_STEP_LOOKED_BEFORE;
	int			negatives;
	int			inconclusives;

	choose_transition(question, answer, &event, &state);
	count_answers(question, answer, &negatives, &inconclusives);
	memset(nulls, ' ', sizeof(nulls));
	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = CStringGetTextDatum(ar_event_name(event));
	values[2] = CStringGetTextDatum(ar_state_name(state));
	values[3] = CStringGetTextDatum(ar_standing_name(ar_state_standing(state, current)));
	values[4] = CStringGetTextDatum(answer->evidence);
	values[5] = text_or_null(answer->artifact_id, &nulls[5]);
	values[6] = Int64GetDatum(ar_lower_now() + answer->pause_us);
	nulls[6] = state == AR_OUTCOME_UNKNOWN || state == AR_DELIVERED || (state == AR_SUCCEEDED && question->probe) ? ' ' : 'n';
	values[7] = Int64GetDatum(answer->pause_us);
	values[8] = TimestampTzGetDatum(ar_wall_now());
	values[9] = Int32GetDatum(negatives);
	values[10] = Int32GetDatum(inconclusives);
	values[11] = Int32GetDatum(answer->step == AR_STEP_ABSENT && state == AR_PLANNED && question->kind != AR_ASK_BEFORE_SEND && !question->was_queued ? 1 : 0);
	values[12] = TimestampTzGetDatum(question->asked.wall);
	values[13] = Int64GetDatum(question->asked.boot_us);
	values[14] = CStringGetTextDatum(question->asked.lifetime);
	if (!looked)
		nulls[12] = nulls[13] = nulls[14] = 'n';
	values[15] = Int32GetDatum(answer->step == AR_STEP_NEXT_RULE ? question->position + 1 : 0);
	values[16] = BoolGetDatum(answer->before == AR_BEFORE_THERE);
	nulls[16] = answer->before == AR_BEFORE_UNKNOWN ? 'n' : ' ';
	values[17] = text_or_null(answer->digest, &nulls[17]);
	ar_statement_run(&step_statement, values, nulls);
}

static void
watch_on(const ArQuestion *question, const ArAnswer *answer)
{
	Datum		values[5];
	char		nulls[5] = {' ', ' ', ' ', ' ', ' '};
	bool		seen = answer->step == AR_STEP_SEEN;

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = Int64GetDatum(ar_lower_now() + answer->pause_us);
	values[2] = TimestampTzGetDatum(ar_wall_now() + answer->pause_us);
	if (answer->pause_us < 0)
		nulls[1] = nulls[2] = 'n';
	values[3] = Int32GetDatum(seen ? 0 : question->inconclusives + 1);
	values[4] = Int32GetDatum(seen ? question->position + 1 : question->position);
	ar_statement_run(&watch_statement, values, nulls);
}

/* What the answer says about the provider, besides the action. */
static void
observe(const ArQuestion *question, const ArAnswer *answer)
{
	if (answer->step == AR_STEP_SEEN)
		ar_store_note_visible(question, true);
	if (question->delivered && question->kind == AR_ASK_WHAT_HAPPENED && answer->result == AR_LOOKUP_ABSENT)
		ar_store_note_incident(question, answer, "contradiction");
	if (answer->canary_missing)
		ar_store_note_canary_missing(question);
	if (question->kind == AR_ASK_FOR_DUPLICATES && answer->matches > 1)
		ar_store_note_incident(question, answer, "duplicate");
	if (answer->step != AR_STEP_FOUND)
		return;
	ar_store_note_visible(question, false);
	if (question->kind == AR_ASK_BEFORE_SEND && !question->never_sent)
		ar_store_note_wrong_decision(question);
	/* It was not there when it should have been: after the window, or after its absence was proven. */
	if (question->effect == AR_EFFECT_CREATE &&
		(question->negatives > 0 || (question->kind == AR_ASK_BEFORE_SEND && !question->never_sent)))
		ar_store_note_violation(question);
	if (question->effect == AR_EFFECT_CREATE && answer->matches > 1)
		ar_store_note_incident(question, answer, "duplicate");
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
		if (answer->step == AR_STEP_SEEN || answer->step == AR_STEP_PENDING)
			watch_on(question, answer);
		else
		{
			settle_attempts(question, answer);
			step_action(question, answer);
		}
		observe(question, answer);
	}
	keep_fact(question, answer);
	return true;
}
