/*
 * record.c
 *		Recording the ends of attempts, many in one statement.
 */
#include "store/dispatch.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/redact.h"
#include "core/standing.h"
#include "store/clock.h"
#include "store/statement.h"

#define KEPT_BODY_BYTES 8192

/*
 * In action_id order, so that two recorders could not block each other, and
 * SKIP LOCKED, so that none waits at all.  The engine's claim is the fence: a
 * row that is no longer submitted under this dispatch is not touched.
 */
static ArStatement record_statement = {
	"WITH ended AS ("
	" SELECT e.*, CASE WHEN e.pass_rule > 0 THEN greatest($19 + e.ask_in_us, reconcile.next_gate(e.action_id, e.pass_rule + 1))"
	"  ELSE $19 + e.ask_in_us END AS gate_us"
	" FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
	"  AS e(action_id, dispatch_id, event, attempt_state, attempt_standing, action_state, action_standing, evidence,"
	"   http_status, artifact_id, body, attempt_gate_us, ask_in_us, due_in_us, pass_rule, inconclusives, poll_url)"
	" JOIN reconcile.action a ON a.action_id = e.action_id"
	" WHERE a.action_id = ANY ($1) AND a.state = 'submitted' AND a.dispatch_id = e.dispatch_id"
	" ORDER BY a.action_id FOR NO KEY UPDATE OF a SKIP LOCKED"
	"), attempts AS ("
	" UPDATE reconcile.attempt t SET version = t.version + 1, event = e.event, state = e.attempt_state::reconcile.state,"
	"  standing = e.attempt_standing::reconcile.standing, evidence = e.evidence::jsonb, ended_at = $18, http_status = e.http_status,"
	"  artifact_id = e.artifact_id, response_body = e.body, gate_us = coalesce(e.attempt_gate_us, t.gate_us), poll_url = e.poll_url"
	" FROM ended e WHERE t.action_id = e.action_id AND t.dispatch_id = e.dispatch_id AND t.action_id = ANY ($1)"
	"), actions AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = e.event, state = e.action_state::reconcile.state,"
	"  standing = e.action_standing::reconcile.standing, queued = (e.action_state = 'planned'), evidence = e.evidence::jsonb,"
	"  artifact_id = coalesce(e.artifact_id, a.artifact_id), gate_us = e.gate_us,"
	"  eligible_at = $18 + (e.gate_us - $19) * interval '1 microsecond',"
	"  due_at = CASE WHEN e.action_state = 'planned' THEN $18 + e.due_in_us * interval '1 microsecond' ELSE a.due_at END,"
	"  failures = CASE WHEN e.event IN ('not_sent', 'not_executed') THEN a.failures + 1 ELSE 0 END,"
	"  lookup_position = CASE WHEN e.pass_rule > 0 THEN e.pass_rule + 1 ELSE a.lookup_position END, inconclusives = e.inconclusives"
	" FROM ended e WHERE a.action_id = e.action_id AND a.action_id = ANY ($1)"
	" RETURNING a.action_id, a.state, reconcile.resolved_status(a.standing) AS status"
	")"
	" SELECT c.action_id, CASE WHEN c.status <> 'DENIED_UNRESOLVED' THEN pg_notify('reconcile',"
	"  json_build_object('action_id', c.action_id, 'state', c.state, 'status', c.status)::text) END"
	" FROM actions c",
	19, {UUIDARRAYOID, UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TEXTARRAYOID,
	INT4ARRAYOID, TEXTARRAYOID, BYTEAARRAYOID, INT8ARRAYOID, INT8ARRAYOID, INT8ARRAYOID, INT4ARRAYOID, INT4ARRAYOID, TEXTARRAYOID,
	TIMESTAMPTZOID, INT8OID}
};

#define ARRAYS 17

/* An operation's standing in its new state; the fold of one end over ended ones. */
static const char *
standing_in(ArState state)
{
	return ar_standing_name(ar_state_standing(state, AR_PENDING_PENDING));
}

static Datum
kept_body(const ArAttemptEnd *end)
{
	size_t		kept = Min(end->body_len, KEPT_BODY_BYTES);
	bytea	   *body = palloc(VARHDRSZ + kept);

	SET_VARSIZE(body, VARHDRSZ + kept);
	memcpy(VARDATA(body), end->body, kept);
	ar_redact_named(VARDATA(body), kept);
	return PointerGetDatum(body);
}

static void
fill_parameters(const ArAttemptEnd *ends, int count, Datum *values)
{
	ArArray		arrays[ARRAYS];
	static const Oid types[ARRAYS] = {
		UUIDOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, BYTEAOID,
		INT8OID, INT8OID, INT8OID, INT4OID, INT4OID, TEXTOID
	};

	for (int i = 0; i < ARRAYS; i++)
		ar_array_init(&arrays[i], types[i]);
	for (int i = 0; i < count; i++)
	{
		const ArAttemptEnd *end = &ends[i];

		ar_array_add(&arrays[0], UUIDPGetDatum(&end->action_id), false);
		ar_array_add(&arrays[1], UUIDPGetDatum(&end->dispatch_id), false);
		ar_array_add_text(&arrays[2], ar_event_name(end->event));
		ar_array_add_text(&arrays[3], ar_state_name(end->attempt_state));
		ar_array_add_text(&arrays[4], standing_in(end->attempt_state));
		ar_array_add_text(&arrays[5], ar_state_name(end->action_state));
		ar_array_add_text(&arrays[6], standing_in(end->action_state));
		ar_array_add_text(&arrays[7], end->evidence);
		ar_array_add(&arrays[8], Int32GetDatum(end->http_status), end->http_status == 0);
		ar_array_add_text(&arrays[9], end->artifact_id);
		ar_array_add(&arrays[10], end->body_len > 0 ? kept_body(end) : (Datum) 0, end->body_len == 0);
		ar_array_add(&arrays[11], Int64GetDatum(end->attempt_gate_us), end->attempt_gate_us == 0);
		ar_array_add(&arrays[12], Int64GetDatum(end->ask_in_us), end->ask_in_us < 0);
		ar_array_add(&arrays[13], Int64GetDatum(end->due_in_us), false);
		ar_array_add(&arrays[14], Int32GetDatum(end->pass_rule), false);
		ar_array_add(&arrays[15], Int32GetDatum(end->inconclusives), false);
		ar_array_add_text(&arrays[16], end->poll_url);
	}
	for (int i = 0; i < ARRAYS; i++)
		values[i] = ar_array_datum(&arrays[i]);
	values[ARRAYS] = TimestampTzGetDatum(ar_wall_now());
	values[ARRAYS + 1] = Int64GetDatum(ar_lower_now());
}

/* A stored reply is the reply to the attempts before, too. */
static ArStatement settle_statement = {
	"UPDATE reconcile.attempt t SET version = t.version + 1, event = 'replayed', state = 'rejected', standing = 'confirmed/rejected',"
	"  evidence = a.evidence"
	" FROM reconcile.action a WHERE a.action_id = ANY ($1) AND t.action_id = a.action_id AND t.action_id = ANY ($1)"
	"  AND a.state = 'rejected' AND t.state = 'outcome_unknown' AND t.idempotency_key = a.idempotency_key",
	1, {UUIDARRAYOID}
};

static ArStatement still_open_statement = {
	"SELECT e.dispatch_id FROM unnest($1, $2) AS e(action_id, dispatch_id) JOIN reconcile.action a USING (action_id)"
	" WHERE a.action_id = ANY ($1) AND a.state = 'submitted' AND a.dispatch_id = e.dispatch_id",
	2, {UUIDARRAYOID, UUIDARRAYOID}
};

static ArStatement pause_statement = {
	"UPDATE reconcile.provider p SET paused_at = $2, paused_by = 'engine', paused_reason = 'the provider refuses our credential: answer 401'"
	" WHERE p.provider IN (SELECT x.provider FROM reconcile.provider x WHERE x.paused_at IS NULL AND x.provider IN"
	"  (SELECT a.provider FROM reconcile.action a WHERE a.action_id = ANY ($1)) FOR NO KEY UPDATE SKIP LOCKED)",
	2, {UUIDARRAYOID, TIMESTAMPTZOID}
};

/* Mark the ends whose id is in column 1 of the current result. */
static void
mark(const ArAttemptEnd *ends, int count, uint64 rows, bool by_dispatch, bool *marks)
{
	for (uint64 row = 0; row < rows; row++)
	{
		pg_uuid_t	id;

		ar_result_uuid(row, 1, &id);
		for (int i = 0; i < count; i++)
		{
			const pg_uuid_t *candidate = by_dispatch ? &ends[i].dispatch_id : &ends[i].action_id;

			if (memcmp(candidate, &id, sizeof(id)) == 0)
			{
				marks[i] = true;
				break;
			}
		}
	}
}

/* Run a statement over the actions of those ends that are marked. */
static void
for_marked(ArStatement *statement, const ArAttemptEnd *ends, int count, size_t mark_offset, Datum now)
{
	ArArray		actions;
	int			marked = 0;
	Datum		values[2];

	ar_array_init(&actions, UUIDOID);
	for (int i = 0; i < count; i++)
	{
		if (*(const bool *) ((const char *) &ends[i] + mark_offset))
		{
			ar_array_add(&actions, UUIDPGetDatum(&ends[i].action_id), false);
			marked++;
		}
	}
	if (marked == 0)
		return;
	values[0] = ar_array_datum(&actions);
	values[1] = now;
	ar_statement_run(statement, values, NULL);
}

void
ar_store_record_ends(const ArAttemptEnd *ends, int count, bool *recorded, bool *vanished)
{
	Datum		values[ARRAYS + 2];
	uint64		rows;

	memset(recorded, 0, count * sizeof(bool));
	memset(vanished, 0, count * sizeof(bool));
	fill_parameters(ends, count, values);
	rows = ar_statement_run(&record_statement, values, NULL);
	mark(ends, count, rows, false, recorded);

	if (rows < (uint64) count)
	{
		bool	   *open = palloc0(count * sizeof(bool));

		mark(ends, count, ar_statement_run(&still_open_statement, values, NULL), true, open);
		for (int i = 0; i < count; i++)
			vanished[i] = !recorded[i] && !open[i];
	}
	for_marked(&settle_statement, ends, count, offsetof(ArAttemptEnd, settles_earlier), values[ARRAYS]);
	for_marked(&pause_statement, ends, count, offsetof(ArAttemptEnd, pause_provider), values[ARRAYS]);
}
