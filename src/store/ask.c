/*
 * ask.c
 *		Which actions are to be looked up, and with what questions.
 */
#include "store/question.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "store/recovery.h"
#include "store/statement.h"

#define MICROSECONDS(span) "(extract(epoch FROM " span ") * 1000000)::bigint"
#define UNIX_MICROSECONDS(instant) "(extract(epoch FROM " instant ") * 1000000)::bigint"

#define CONDITIONS(of, template) "reconcile.try_render_values(" template ", " of ".client_reference, " of ".payload, " of ".idempotency_key)"

#define BODY_MATCH(of) "(" CONDITIONS(of, "CASE WHEN l.body_match IS NOT NULL THEN jsonb_build_object('$', l.body_match) END") ")[2]"

/*
 * What a question needs, for the rows of the CTEs "moved" (the actions, with
 * rule_position) and "asked".  The canary is looked for among the newest
 * actions only: their ids are in the order of time.
 */
#define QUESTIONS \
	"), asked AS (" \
	" INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, position, kind, asked_at, asked_us)" \
	" SELECT gen_random_uuid(), m.action_id, m.version, $4, l.position, l.kind, $3, $1" \
	" FROM moved m JOIN reconcile.lookup_rule l ON l.operation = m.operation AND l.position = m.rule_position" \
	" RETURNING lookup_id, action_id, position)" \
	" SELECT k.lookup_id, m.action_id, m.version, m.operation, m.provider, m.client_reference, l.position," \
	"  NOT EXISTS (SELECT FROM reconcile.lookup_rule x WHERE x.operation = m.operation AND x.position > l.position" \
	"   AND (x.kind <> 'replay_by_key' OR m.state = 'reconciling'))," \
	"  m.state = 'delivered', CASE m.state WHEN 'succeeded' THEN coalesce(m.drill = 'probe', false) END, coalesce(t.none_did, true), coalesce(t.one_refused, false), o.effect, m.existed, m.before_digest," \
	"  coalesce(t.last_gate_us, 0), " UNIX_MICROSECONDS("e.first_at - l.skew") ", " UNIX_MICROSECONDS("least($3, t.last_gate_at) + l.skew") "," \
	"  m.negatives, m.inconclusives, m.replacements," \
	"  coalesce(t.base_url, p.base_url), l.method, r.path, r.headers, r.body, c.client_reference, cr.path, cr.headers, cr.body," \
	"  " CONDITIONS("c", "l.match_values") ", " BODY_MATCH("c") "," \
	"  p.credential, l.absence_proves, coalesce(l.window_source, p.window_source) = 'assumed', l.min_negatives," \
	"  " MICROSECONDS("l.negative_spacing") ", " MICROSECONDS("l.pause") ", " MICROSECONDS("l.pause_max") ", l.max_inconclusive," \
	"  o.on_absent = 'replace', o.max_replacements, " MICROSECONDS("o.retry_pause") ", " MICROSECONDS("o.retry_pause_max") "," \
	"  " MICROSECONDS("l.timeout") ", p.max_response_bytes, p.allow_http, p.allow_private_addresses, p.ca_file," \
	"  l.found_statuses, l.absent_statuses, l.items_path::text, l.reference_path::text, l.reference_match = 'contains', " BODY_MATCH("m") "," \
	"  " CONDITIONS("m", "l.match_values") ", l.match_is_unique, l.created_path::text," \
	"  l.exclude_path::text, l.gone_path::text, l.incomplete_if::text, l.artifact_path::text, lower(l.artifact_header)," \
	"  l.paging, l.paging_path::text, l.paging_parameter, l.paging_more::text, l.paging_body_path IS NOT NULL, l.page_size, l.max_pages," \
	"  EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = m.operation), l.body_match IS NOT NULL," \
	"  coalesce(t.decided, false), coalesce(t.was_queued, false)" \
	" FROM moved m JOIN asked k USING (action_id)" \
	" JOIN reconcile.operation o ON o.operation = m.operation" \
	" JOIN reconcile.provider p ON p.provider = m.provider" \
	" JOIN reconcile.lookup_rule l ON l.operation = m.operation AND l.position = k.position" \
	" LEFT JOIN LATERAL (SELECT max(x.gate_us - x.window_us + " MICROSECONDS("coalesce(l.consistency_window, p.consistency_window)") ")" \
	"   FILTER (WHERE x.state NOT IN ('safe_to_retry', 'rejected')) AS last_gate_us, bool_or(x.state = 'rejected') AS one_refused," \
	"  bool_and(x.event IN ('not_sent', 'not_executed') OR o.effect = 'delete' AND x.request_hash = '' AND x.state = 'safe_to_retry') AS none_did," \
	"  bool_or(x.event = 'presume' AND x.evidence #>> '{arming,found}' = 'planned') AS was_queued," \
	"  bool_or(x.state = 'safe_to_retry' AND x.event = 'resolve') AS decided," \
	"  max(x.ended_at + (x.late_arrival_us + " MICROSECONDS("coalesce(l.consistency_window, p.consistency_window)") ") * interval '1 microsecond')" \
	"   FILTER (WHERE x.state NOT IN ('safe_to_retry', 'rejected')) AS last_gate_at," \
	"  min(x.dispatched_at) AS first_at, (array_agg(x.base_url ORDER BY x.number DESC))[1] AS base_url" \
	"  FROM reconcile.attempt x WHERE x.action_id = m.action_id) t ON true" \
	" CROSS JOIN LATERAL (SELECT coalesce(t.first_at, m.submitted_at) AS first_at) e" \
	" LEFT JOIN LATERAL (SELECT l.canary_reference AS client_reference, '{}'::jsonb AS payload, NULL::text AS idempotency_key," \
	"   NULL::text AS artifact_id, $3 AS first_at WHERE l.canary = 'fixed'" \
	"  UNION ALL (SELECT n.client_reference, n.payload, n.idempotency_key, n.artifact_id, n.submitted_at FROM" \
	"   (SELECT y.* FROM reconcile.action y ORDER BY y.action_id DESC LIMIT 1000) n" \
	"   WHERE l.canary = 'newest' AND o.effect = 'create' AND n.operation = m.operation AND n.state = 'succeeded'" \
	"    AND n.recorded_at < $3 - coalesce(l.consistency_window, p.consistency_window) ORDER BY n.action_id DESC LIMIT 1)) c ON true" \
	" CROSS JOIN LATERAL reconcile.try_render_question(l.path, l.headers, l.body, m.client_reference, m.payload, m.idempotency_key," \
	"  reconcile.question_values(m.artifact_id, e.first_at, $3, l.skew)) r" \
	" LEFT JOIN LATERAL reconcile.try_render_question(l.path, l.headers, l.body, c.client_reference, c.payload, c.idempotency_key," \
	"  reconcile.question_values(c.artifact_id, c.first_at, $3, l.skew)) cr ON c.client_reference IS NOT NULL"

/* The rule that an action is asked by next: never one that sends. What is only watched needs none: then it is watched no more. */
#define CURRENT_RULE \
	" LEFT JOIN LATERAL (SELECT x.position, x.kind FROM reconcile.lookup_rule x" \
	"  WHERE x.operation = a.operation AND x.position >= a.lookup_position" \
	"   AND (a.state = 'outcome_unknown' OR x.kind <> 'replay_by_key') ORDER BY x.position LIMIT 1) l ON true"

/* No EXISTS, for which the planner might read all attempts there are. */
#define WAITS_FOR_VERDICT \
	"coalesce((SELECT true FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state = 'delivered'" \
	" AND t.event IN ('answered_async', 'found', 'confirm', 'resolve') LIMIT 1), false)"

/* A delivered or succeeded action keeps its state while it is asked about; its gate is taken so that it is asked once. */
static ArStatement ask_statement = {
	"WITH due AS ("
	" SELECT d.* FROM unnest($5, $6) AS p(provider, room) CROSS JOIN LATERAL (SELECT a.action_id, a.state, l.position FROM reconcile.action a"
	CURRENT_RULE
	" WHERE a.provider = p.provider AND a.state IN ('outcome_unknown', 'delivered', 'succeeded') AND a.gate_us <= $1 AND (l.kind <> 'replay_by_key' OR l.kind IS NULL AND a.state = 'succeeded')"
	"  AND (a.state <> 'delivered' OR NOT " WAITS_FOR_VERDICT ")"
	" ORDER BY a.gate_us LIMIT p.room FOR NO KEY UPDATE OF a SKIP LOCKED) d LIMIT $2"
	"), unknown AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'ask', state = 'reconciling', lookup_position = due.position,"
	"  evidence = jsonb_build_object('lookup', jsonb_build_object('rule', due.position, 'asked_us', $1, 'gate_us', a.gate_us))"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	"  AND due.state = 'outcome_unknown' RETURNING a.*, due.position AS rule_position"
	"), quiet AS ("
	" UPDATE reconcile.action a SET gate_us = NULL, lookup_position = coalesce(due.position, a.lookup_position)"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	"  AND due.state <> 'outcome_unknown' RETURNING a.*, due.position AS rule_position"
	"), moved AS (SELECT * FROM unknown UNION ALL SELECT * FROM quiet"
	QUESTIONS,
	6, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTARRAYOID, INT4ARRAYOID}
};

/* What is queued goes out only on a look that is fresh by the upper clock, at a surface whose negatives count. */
static ArStatement ask_again_statement = {
	"WITH due AS ("
	" SELECT d.* FROM unnest($5, $6) AS p(provider, room) CROSS JOIN LATERAL (SELECT a.action_id, l.position FROM reconcile.action a"
	" CROSS JOIN LATERAL (SELECT x.position FROM reconcile.lookup_rule x WHERE x.operation = a.operation"
	"  AND x.kind <> 'replay_by_key' ORDER BY x.absence_proves DESC, x.position LIMIT 1) l"
	" WHERE a.provider = p.provider AND a.state = 'planned' AND a.looked_at IS NOT NULL AND NOT a.waits AND NOT a.held AND a.due_at <= $3"
	"  AND " OPERATION_IS_NOT_PAUSED
	"  AND (a.not_after IS NULL OR a.not_after > $3)"
	"  AND NOT (a.looked_lifetime IS NOT DISTINCT FROM $7 AND coalesce($8 - a.looked_boot_us, -1) BETWEEN 0 AND 60000000"
	"       AND a.looked_at <= $3 AND a.looked_at > $3 - interval '60 seconds')"
	" ORDER BY a.due_at LIMIT p.room FOR NO KEY UPDATE OF a SKIP LOCKED) d LIMIT $2"
	"), moved AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'look_again', state = 'reconciling', attempt_number = NULL,"
	"  evidence = jsonb_build_object('lookup', jsonb_strip_nulls(jsonb_build_object('rule', due.position, 'asked_us', $1,"
	"   'previous_look_at', nullif(a.looked_at, '-infinity'))))"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	" RETURNING a.*, due.position AS rule_position"
	QUESTIONS,
	8, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTARRAYOID, INT4ARRAYOID, TEXTOID, INT8OID}
};

static int *
read_statuses(uint64 row, int column, int *count)
{
	bool		is_null;
	Datum		value = SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &is_null);
	Datum	   *elements;
	bool	   *nulls;
	int		   *statuses;

	deconstruct_array(DatumGetArrayTypeP(value), INT4OID, sizeof(int32), true, TYPALIGN_INT, &elements, &nulls, count);
	statuses = palloc(sizeof(int) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		statuses[i] = nulls[i] ? 0 : DatumGetInt32(elements[i]);
	return statuses;
}

/* Columns are read in the order in which the statement lists them. */
static void
read_request(ArQuestion *q, uint64 row, int column)
{
	q->base_url = ar_result_text(row, column++);
	q->method = ar_result_text(row, column++);
	q->asked_for.path = ar_result_text(row, column++);
	q->asked_for.headers = ar_result_text_array(row, column++, &q->asked_for.header_strings);
	q->asked_for.body = ar_result_text(row, column++);
	q->canary_reference = ar_result_text(row, column++);
	q->canary.path = ar_result_text(row, column++);
	q->canary.headers = ar_result_text_array(row, column++, &q->canary.header_strings);
	q->canary.body = ar_result_text(row, column++);
	q->canary_values = ar_result_text_array(row, column++, &q->canary_value_strings);
	q->canary_body_match = ar_result_text(row, column++);
	q->credential = ar_result_text(row, column++);
	q->absence_proves = ar_result_bool(row, column++);
	q->window_assumed = ar_result_bool(row, column++);
	q->min_negatives = (int) ar_result_int64(row, column++, 1);
	q->negative_spacing_us = ar_result_int64(row, column++, 0);
	q->pause_us = ar_result_int64(row, column++, 0);
	q->pause_max_us = ar_result_int64(row, column++, 0);
	q->max_inconclusive = (int) ar_result_int64(row, column++, 1);
	q->replace_when_absent = ar_result_bool(row, column++);
	q->max_replacements = (int) ar_result_int64(row, column++, 0);
	q->retry_pause_us = ar_result_int64(row, column++, 0);
	q->retry_pause_max_us = ar_result_int64(row, column++, 0);
	q->timeout_us = ar_result_int64(row, column++, 0);
	q->max_response_bytes = (int) ar_result_int64(row, column++, 0);
	q->allow_http = ar_result_bool(row, column++);
	q->allow_private_addresses = ar_result_bool(row, column++);
	q->ca_file = ar_result_text(row, column++);
}

/* Returns the column after the last one that was read. */
static int
read_reading(ArReading *r, uint64 row, int column)
{
	r->found_statuses = read_statuses(row, column++, &r->found_status_count);
	r->absent_statuses = read_statuses(row, column++, &r->absent_status_count);
	r->items_path = ar_result_text(row, column++);
	r->reference_path = ar_result_text(row, column++);
	r->contains = ar_result_bool(row, column++);
	r->body_match = ar_result_text(row, column++);
	r->values = ar_result_text_array(row, column++, &r->value_strings);
	r->unique = ar_result_bool(row, column++);
	r->created_path = ar_result_text(row, column++);
	r->exclude_path = ar_result_text(row, column++);
	r->gone_path = ar_result_text(row, column++);
	r->incomplete_if = ar_result_text(row, column++);
	r->artifact_path = ar_result_text(row, column++);
	r->artifact_header = ar_result_text(row, column++);
	r->paging = ar_result_text(row, column++);
	r->paging_path = ar_result_text(row, column++);
	r->paging_parameter = ar_result_text(row, column++);
	r->paging_more = ar_result_text(row, column++);
	r->pages_by_body = ar_result_bool(row, column++);
	r->page_size = (int) ar_result_int64(row, column++, 0);
	r->max_pages = (int) ar_result_int64(row, column++, 1);
	return column;
}

static ArBefore
read_before(uint64 row, int column)
{
	char	   *existed = ar_result_text(row, column);

	if (existed == NULL)
		return AR_BEFORE_UNKNOWN;
	return *existed == 't' ? AR_BEFORE_THERE : AR_BEFORE_NOT_THERE;
}

/* Of a success it is asked whether a probe shows, or whether there are two; otherwise, what happened. */
static ArQuestionKind
read_kind(const char *is_probe)
{
	if (is_probe == NULL)
		return AR_ASK_WHAT_HAPPENED;
	return *is_probe == 't' ? AR_ASK_WHEN_VISIBLE : AR_ASK_FOR_DUPLICATES;
}

#define FIRST_REQUEST_COLUMN	22
#define FIRST_READING_COLUMN	50

/* A condition without a text could not be made: nothing would match it, and that would look like an absence. */
static bool
lacks_a_text(char **values, int value_strings)
{
	for (int i = 1; i < value_strings; i += 2)
	{
		if (values[i] == NULL)
			return true;
	}
	return false;
}

/* A question that cannot be put whole is not asked. */
static void
drop_unmakeable(ArQuestion *q, bool by_body)
{
	if (lacks_a_text(q->reading.values, q->reading.value_strings) || (by_body && q->reading.body_match == NULL))
		q->asked_for.path = NULL;
	if (lacks_a_text(q->canary_values, q->canary_value_strings) || (by_body && q->canary_body_match == NULL))
		q->canary.path = NULL;
}

static ArQuestion *
read_question(MemoryContext parent, uint64 row, bool before_send, int64 asked_us, ArMoment asked)
{
	MemoryContext context = AllocSetContextCreate(parent, "lookup", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	ArQuestion *q = palloc0(sizeof(ArQuestion));
	char	   *effect = ar_result_text(row, 13);
	int			next_column;

	q->context = context;
	q->kind = before_send ? AR_ASK_BEFORE_SEND : read_kind(ar_result_text(row, 10));
	q->asked_us = asked_us;
	q->asked = asked;
	ar_result_uuid(row, 1, &q->lookup_id);
	ar_result_uuid(row, 2, &q->action_id);
	q->version = (int) ar_result_int64(row, 3, 0);
	q->operation = ar_result_text(row, 4);
	q->provider = ar_result_text(row, 5);
	q->client_reference = ar_result_text(row, 6);
	q->position = (int) ar_result_int64(row, 7, 0);
	q->last_rule = ar_result_bool(row, 8);
	q->delivered = ar_result_bool(row, 9);
	q->never_sent = ar_result_bool(row, 11);
	q->one_refused = ar_result_bool(row, 12);
	if (!ar_effect_parse(effect, &q->effect))
		elog(ERROR, "effect \"%s\" is not known", effect);
	q->before = read_before(row, 14);
	q->before_digest = ar_result_text(row, 15);
	q->last_gate_us = ar_result_int64(row, 16, 0);
	q->since_us = ar_result_int64(row, 17, 0);
	q->until_us = ar_result_int64(row, 18, 0);
	q->negatives = (int) ar_result_int64(row, 19, 0);
	q->inconclusives = (int) ar_result_int64(row, 20, 0);
	q->replacements = (int) ar_result_int64(row, 21, 0);
	read_request(q, row, FIRST_REQUEST_COLUMN);
	next_column = read_reading(&q->reading, row, FIRST_READING_COLUMN);
	q->awaits_verdict = ar_result_bool(row, next_column);
	drop_unmakeable(q, ar_result_bool(row, next_column + 1));
	q->decided = ar_result_bool(row, next_column + 2);
	q->was_queued = ar_result_bool(row, next_column + 3);
	MemoryContextSwitchTo(caller);
	return q;
}

static int
ask(ArStatement *statement, MemoryContext parent, const ArAskLimits *limits, bool before_send, ArQuestion ***questions)
{
	ArMoment	now = ar_moment_now();
	int64		asked_us = ar_lower_now();
	Datum		values[8];
	uint64		rows;

	values[0] = Int64GetDatum(asked_us);
	values[1] = Int64GetDatum(limits->limit);
	values[2] = TimestampTzGetDatum(now.wall);
	values[3] = Int64GetDatum(limits->epoch);
	ar_room_datums(limits->rooms, limits->room_count, &values[4]);
	values[6] = CStringGetTextDatum(now.lifetime);
	values[7] = Int64GetDatum(now.boot_us);
	rows = ar_statement_run(statement, values, NULL);
	*questions = palloc(sizeof(ArQuestion *) * Max(rows, 1));
	for (uint64 row = 0; row < rows; row++)
		(*questions)[row] = read_question(parent, row, before_send, asked_us, now);
	return (int) rows;
}

int
ar_store_ask(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions)
{
	ar_store_surrender(ar_lower_now());
	ar_store_give_up_waiting();
	return ask(&ask_statement, parent, limits, false, questions);
}

int
ar_store_ask_again(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions)
{
	return ask(&ask_again_statement, parent, limits, true, questions);
}

static ArStatement cursor_statement = {
	"SELECT jsonb_set($1::jsonb, l.paging_body_path, CASE WHEN l.paging NOT IN ('offset', 'page') THEN to_jsonb($2)"
	"  ELSE to_jsonb($2::bigint + CASE WHEN jsonb_typeof($1::jsonb #> l.paging_body_path) = 'number'"
	"   THEN ($1::jsonb #>> l.paging_body_path)::bigint ELSE (l.paging = 'page')::integer END) END, true)::text"
	" FROM reconcile.lookup_rule l"
	" WHERE l.operation = $3 AND l.position = $4",
	4, {TEXTOID, TEXTOID, TEXTOID, INT4OID}
};

char *
ar_store_body_with_cursor(const ArQuestion *question, const char *body, const char *cursor)
{
	Datum		values[4];

	values[0] = CStringGetTextDatum(body);
	values[1] = CStringGetTextDatum(cursor);
	values[2] = CStringGetTextDatum(question->operation);
	values[3] = Int32GetDatum(question->position);
	return ar_statement_run(&cursor_statement, values, NULL) == 1 ? ar_result_text(0, 1) : NULL;
}
