/*
 * claim.c
 *		Making the intent to send durable.
 */
#include "store/dispatch.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/statement.h"

/* What a claim needs to know of an action. */
#define CLAIMED_COLUMNS \
	"a.action_id, a.operation, a.provider, a.client_reference, a.payload, a.depends_on, a.attempts, a.looked_at, a.inconclusives," \
	" a.idempotency_key, a.key_generation, a.key_first_at, a.key_first_boot_us, a.key_first_boot, a.not_after"

#define PROVIDER_IS_NOT_PAUSED \
	"(SELECT x.paused_at IS NULL FROM reconcile.provider x WHERE x.provider = p.provider)" \
	" AND NOT EXISTS (SELECT FROM reconcile.pause_period s WHERE s.scope = 'everything' AND s.resumed_at IS NULL)"

/* What arm() has noted is not sent before it has been presumed to have left; see rearming.c. No EXISTS: it is looked up row by row. */
#define NOT_NOTED \
	"(SELECT true FROM reconcile.rearming n WHERE n.action_id = a.action_id LIMIT 1) IS NULL"

/*
 * Every gate stands in the one statement: due, not expired, not paused, room
 * left at the provider, and for what rests on a look before the send, one that
 * is fresh by the upper clock.  SKIP LOCKED: a row somebody holds is simply
 * not claimed now.  Providers are taken in the order in which they are given,
 * so that one with much to do is not always the first.
 *
 * Here and elsewhere "= ANY (...)" repeats a join condition: it makes the
 * planner look rows up in the index even if it believes the table is empty.
 */
#define DUE_ACTIONS \
	" SELECT d.*, 0 AS rule_position" \
	" FROM unnest($1, $2) AS p(provider, room)" \
	" CROSS JOIN LATERAL (SELECT q.* FROM generate_series(2, -2, -1) AS s(priority) CROSS JOIN LATERAL (" \
	"  SELECT " CLAIMED_COLUMNS " FROM reconcile.action a" \
	"  WHERE a.provider = p.provider AND a.state = 'planned' AND NOT a.waits AND NOT a.held AND a.priority = s.priority AND a.due_at <= $3" \
	"   AND (a.not_after IS NULL OR a.not_after > $3)" \
	"   AND (a.looked_at IS NULL OR (a.looked_lifetime = $6 AND $7 - a.looked_boot_us BETWEEN 0 AND 60000000" \
	"        AND a.looked_at <= $3 AND a.looked_at > $3 - interval '60 seconds'))" \
	"   AND a.action_id <> ALL ($9) AND " OPERATION_IS_NOT_PAUSED " AND " NOT_NOTED \
	"  ORDER BY a.due_at, a.action_id" \
	"  LIMIT p.room" \
	"  FOR NO KEY UPDATE SKIP LOCKED) q LIMIT p.room) d" \
	" WHERE " PROVIDER_IS_NOT_PAUSED " LIMIT $8"

/* Unknown outcomes whose next rule is to send the very same request again. */
#define DUE_RESENDS \
	" SELECT d.*" \
	" FROM unnest($1, $2) AS p(provider, room)" \
	" CROSS JOIN LATERAL (" \
	"  SELECT " CLAIMED_COLUMNS ", l.position AS rule_position FROM reconcile.action a" \
	"  CROSS JOIN LATERAL (SELECT x.position, x.kind FROM reconcile.lookup_rule x" \
	"   WHERE x.operation = a.operation AND x.position >= a.lookup_position ORDER BY x.position LIMIT 1) l" \
	"  WHERE a.provider = p.provider AND a.state = 'outcome_unknown' AND a.gate_us <= $4 AND l.kind = 'replay_by_key'" \
	"   AND a.action_id <> ALL ($9) AND " OPERATION_IS_NOT_PAUSED " AND " NOT_NOTED \
	"  ORDER BY a.gate_us" \
	"  LIMIT p.room" \
	"  FOR NO KEY UPDATE OF a SKIP LOCKED) d" \
	" WHERE " PROVIDER_IS_NOT_PAUSED " LIMIT $8"

#define KEY_IS_ALIVE(row, op, prov) \
	"reconcile.key_is_alive(" op ".key_lifetime, " op ".key_margin," \
	" (extract(epoch FROM " prov ".attempt_timeout + " prov ".late_arrival_max) * 1000000)::bigint," \
	" " row ".key_first_at, " row ".key_first_boot_us, " row ".key_first_boot, $3, $7, $10, (SELECT max(c.wall_at) FROM reconcile.clock c))"

/*
 * A key is kept as long as it can do its work.  What is queued is known not to
 * have happened, so it may have another one: if the operation has changed and
 * the bytes may have, and after an absence that was proven, or decided, if the provider may have
 * forgotten the key, knows it with something else, or would only repeat the
 * stored failure.  An attempt that was presumed only (without a hash) changes
 * no key: if another copy is still alive, both must send the same one.
 */
#define KEY_GENERATION \
	"CASE WHEN a.attempts > 0 AND a.idempotency_key IS NOT NULL AND o.key_format <> 'reference'" \
	"  AND (SELECT true FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.idempotency_key = a.idempotency_key AND t.request_hash <> ''" \
	"   AND (t.operation_version <> o.version OR t.event IN ('absent', 'resolve') AND t.state = 'safe_to_retry' AND (NOT " KEY_IS_ALIVE("a", "o", "p") \
	"    OR o.key_replay = 'stored_reply' AND t.http_status IS NOT NULL" \
	"    OR (SELECT true FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event = 'key_mismatch' LIMIT 1))) LIMIT 1)" \
	" THEN a.key_generation + 1 ELSE a.key_generation END"

#define MICROSECONDS(span) "(extract(epoch FROM " span ") * 1000000)::bigint"

/* The request of each row of "due", under the key of that generation. */
#define REQUEST_OF_DUE(generation, alive) \
	" SELECT a.action_id, gen_random_uuid() AS dispatch_id, o.version AS operation_version, p.version AS provider_version," \
	"  p.base_url, o.method, r.path, r.headers, r.body, o.artifact_path::text AS artifact_path, lower(o.artifact_header) AS artifact_header," \
	"  " MICROSECONDS("p.connect_timeout") " AS connect_timeout_us," \
	"  " MICROSECONDS("p.attempt_timeout") " AS attempt_timeout_us," \
	"  " MICROSECONDS("coalesce(l.consistency_window, p.consistency_window)") " AS window_us," \
	"  " MICROSECONDS("p.late_arrival_max") " AS late_us," \
	"  " MICROSECONDS("o.retry_pause") " AS retry_pause_us," \
	"  " MICROSECONDS("o.retry_pause_max") " AS retry_pause_max_us," \
	"  p.max_response_bytes, p.allow_http, p.allow_private_addresses, p.ca_file, p.credential," \
	"  EXISTS (SELECT FROM reconcile.response_rule s WHERE s.operation = o.operation) AS has_rules," \
	"  " MICROSECONDS("o.retry_after_max") " AS retry_after_max_us," \
	"  k.idempotency_key, g.generation, a.idempotency_key IS NOT NULL AND (a.attempts = 0 OR g.generation <> a.key_generation) AS fresh_key," \
	"  a.not_after, o.effect, coalesce(l.kind = 'replay_by_key', false) AS replay_first, " alive " AS alive, a.rule_position," \
	"  o.key_replay = 'stored_reply' AS replay_is_stored, e.pause_us AS resend_pause_us, e.pause_max_us AS resend_pause_max_us, e.max_inconclusive," \
	"  (SELECT " MICROSECONDS("coalesce(x.consistency_window, p.consistency_window)") " FROM reconcile.lookup_rule x" \
	"   WHERE a.rule_position > 0 AND x.operation = o.operation AND x.position > a.rule_position ORDER BY x.position LIMIT 1) AS next_window_us," \
	"  l.kind IS NOT NULL AS can_ask, b.url_header, b.url_path::text AS url_path, coalesce(" MICROSECONDS("b.pause") ", " MICROSECONDS("o.acceptance_max_age") ") AS verdict_us," \
	"  sha256(convert_to(concat_ws(E'\\n', o.method, r.path, array_to_string(r.headers, E'\\n'), r.body), 'UTF8')) AS request_hash" \
	" FROM due a" \
	" JOIN reconcile.operation o ON o.operation = a.operation" \
	" JOIN reconcile.provider p ON p.provider = a.provider" \
	" LEFT JOIN LATERAL (SELECT x.kind, x.consistency_window FROM reconcile.lookup_rule x" \
	"  WHERE x.operation = o.operation ORDER BY x.position LIMIT 1) l ON true" \
	" LEFT JOIN LATERAL (SELECT " MICROSECONDS("x.pause") " AS pause_us, " MICROSECONDS("x.pause_max") " AS pause_max_us, x.max_inconclusive" \
	"  FROM reconcile.lookup_rule x WHERE x.operation = o.operation AND x.position = a.rule_position) e ON true" \
	" LEFT JOIN reconcile.poll_rule b ON b.operation = o.operation" \
	" CROSS JOIN LATERAL (SELECT " generation " AS generation) g" \
	" CROSS JOIN LATERAL (SELECT CASE WHEN g.generation = a.key_generation THEN a.idempotency_key" \
	"  ELSE reconcile.make_identifier(a.action_id, g.generation, o.key_format) END AS idempotency_key) k" \
	" CROSS JOIN LATERAL reconcile.try_render_request(o, a.client_reference, a.payload, k.idempotency_key," \
	"  CASE WHEN a.depends_on IS NOT NULL THEN reconcile.dependency_values(a.depends_on) END) r"

/* The attempts of "claimed", and what the engine is told about them. */
#define ATTEMPTS_OF_CLAIMED \
	"), attempted AS (" \
	" INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url," \
	"  request_hash, idempotency_key, epoch, dispatched_at, window_us, late_arrival_us, gate_us, evidence)" \
	" SELECT c.dispatch_id, c.action_id, c.attempts, c.provider, c.provider_version, c.operation_version, c.base_url," \
	"  c.request_hash, c.idempotency_key, $5, $3, c.window_us, c.late_us, c.gate_us, '{}'" \
	" FROM claimed c" \
	")" \
	" SELECT c.action_id, c.dispatch_id, c.version, c.attempts, c.failures, c.operation, c.provider, c.client_reference," \
	"  c.base_url, c.method, c.path, c.headers, c.body, c.artifact_path, c.artifact_header," \
	"  c.connect_timeout_us, c.attempt_timeout_us, c.window_us, c.late_us, c.retry_pause_us, c.retry_pause_max_us," \
	"  c.max_response_bytes, c.allow_http, c.allow_private_addresses, c.ca_file, c.has_rules, c.retry_after_max_us," \
	"  c.operation_version, c.idempotency_key IS NOT NULL, c.effect, c.existed, c.drill, c.replay_first, c.rule_position," \
	"  c.replay_is_stored, c.resend_pause_us, c.resend_pause_max_us, c.max_inconclusive, c.inconclusives," \
	"  c.url_header, c.url_path, c.verdict_us, c.credential, c.next_window_us," \
	"  c.attempts > 1 AND (SELECT true FROM reconcile.attempt t WHERE t.action_id = c.action_id AND t.idempotency_key = c.idempotency_key" \
	"   AND t.event <> 'not_sent' LIMIT 1), c.can_ask" \
	" FROM claimed c"

#define CLAIMED_ROW \
	" RETURNING a.version, a.attempts, a.failures, a.operation, a.provider, a.client_reference, a.gate_us, a.existed, a.drill, a.inconclusives, q.*"

#define DISPATCH_EVIDENCE \
	"jsonb_build_object('dispatch', jsonb_strip_nulls(jsonb_build_object('dispatch_id', q.dispatch_id, 'epoch', $5," \
	"   'provider_version', q.provider_version, 'operation_version', q.operation_version, 'idempotency_key', q.idempotency_key)))"

#define CLAIM_PARAMETERS \
	10, {TEXTARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID, INT8OID, INT8OID, TEXTOID, INT8OID, INT8OID, UUIDARRAYOID, TEXTOID}

static ArStatement claim_statement = {
	"WITH due AS ("
	DUE_ACTIONS
	"), request AS ("
	REQUEST_OF_DUE(KEY_GENERATION, "true")
	"), claimed AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'claim', state = 'submitted', queued = false,"
	"  attempts = a.attempts + 1, attempt_number = a.attempts + 1, dispatch_id = q.dispatch_id,"
	"  gate_us = $4 + q.attempt_timeout_us + q.late_us + q.window_us,"
	"  eligible_at = $3 + (q.attempt_timeout_us + q.late_us + q.window_us) * interval '1 microsecond',"
	"  idempotency_key = q.idempotency_key, key_generation = q.generation,"
	"  key_first_at = CASE WHEN q.fresh_key THEN $3 ELSE a.key_first_at END,"
	"  key_first_boot_us = CASE WHEN q.fresh_key THEN $7 ELSE a.key_first_boot_us END,"
	"  key_first_boot = CASE WHEN q.fresh_key THEN $10 ELSE a.key_first_boot END, lookup_position = 0, inconclusives = 0,"
	"  evidence = " DISPATCH_EVIDENCE
	" FROM request q WHERE a.action_id = q.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM request))"
	CLAIMED_ROW
	ATTEMPTS_OF_CLAIMED,
	CLAIM_PARAMETERS
};

/*
 * In time, the same bytes to the same address under a key that is alive, and
 * that the provider does not know with another request, or it is not sent: then
 * the next rule is to say what happened.
 */
static ArStatement resend_statement = {
	"WITH due AS ("
	DUE_RESENDS
	"), request AS ("
	REQUEST_OF_DUE("a.key_generation", KEY_IS_ALIVE("a", "o", "p"))
	"), same AS ("
	" SELECT q.* FROM request q WHERE q.alive AND q.path IS NOT NULL AND (q.not_after IS NULL OR q.not_after > $3) AND (SELECT true FROM reconcile.attempt t"
	"   WHERE t.action_id = q.action_id AND t.idempotency_key = q.idempotency_key"
	"    AND (t.request_hash <> q.request_hash OR t.base_url <> q.base_url OR t.event = 'key_mismatch') LIMIT 1) IS NULL"
	"), passed AS ("
	" UPDATE reconcile.action a SET lookup_position = d.rule_position + 1, inconclusives = 0,"
	"  gate_us = greatest(a.gate_us, reconcile.next_gate(a.action_id, d.rule_position + 1))"
	" FROM due d WHERE a.action_id = d.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	"  AND a.action_id <> ALL (ARRAY(SELECT action_id FROM same))"
	"), claimed AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'resend', state = 'submitted',"
	"  attempts = a.attempts + 1, attempt_number = a.attempts + 1, dispatch_id = q.dispatch_id,"
	"  gate_us = $4 + q.attempt_timeout_us + q.late_us + q.window_us,"
	"  eligible_at = $3 + (q.attempt_timeout_us + q.late_us + q.window_us) * interval '1 microsecond',"
	"  evidence = " DISPATCH_EVIDENCE
	" FROM same q WHERE a.action_id = q.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM same))"
	CLAIMED_ROW
	ATTEMPTS_OF_CLAIMED,
	CLAIM_PARAMETERS
};

/* The parameters that a claim has no use for are named, so that they have their types. */
static ArStatement next_statement = {
	"SELECT n.action_id FROM (" DUE_ACTIONS ") n WHERE $4 IS NOT NULL AND $5 IS NOT NULL AND $10 IS NOT NULL",
	CLAIM_PARAMETERS
};

static ArDrill
read_drill(const char *name)
{
	if (name == NULL)
		return AR_DRILL_NONE;
	if (strcmp(name, "probe") == 0)
		return AR_DRILL_PROBE;
	return strcmp(name, "answer_lost") == 0 ? AR_DRILL_ANSWER_LOST : AR_DRILL_REQUEST_LOST;
}

/* What follows the request itself: its key, its rules, what its end is to lead to. */
static void
read_plan(ArDispatch *d, uint64 row)
{
	char	   *effect = ar_result_text(row, 30);

	d->sends_key = ar_result_bool(row, 29);
	if (!ar_effect_parse(effect, &d->effect))
		elog(ERROR, "effect \"%s\" is not known", effect);
	d->existed = ar_result_bool(row, 31);
	d->drill = read_drill(ar_result_text(row, 32));
	d->replay_first = ar_result_bool(row, 33);
	d->rule_position = (int) ar_result_int64(row, 34, 0);
	d->replay_is_stored = ar_result_bool(row, 35);
	d->resend_pause_us = ar_result_int64(row, 36, 0);
	d->resend_pause_max_us = ar_result_int64(row, 37, 0);
	d->max_inconclusive = (int) ar_result_int64(row, 38, 1);
	d->inconclusives = (int) ar_result_int64(row, 39, 0);
	d->poll_header = ar_result_text(row, 40);
	d->poll_path = ar_result_text(row, 41);
	d->verdict_us = ar_result_int64(row, 42, 0);
	d->credential = ar_result_text(row, 43);
	d->next_window_us = ar_result_int64(row, 44, -1);
	d->key_was_sent = ar_result_bool(row, 45);
	d->can_ask = ar_result_bool(row, 46);
}

static ArDispatch *
read_dispatch(MemoryContext parent, uint64 row)
{
	MemoryContext context = AllocSetContextCreate(parent, "attempt", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	ArDispatch *d = palloc0(sizeof(ArDispatch));

	d->context = context;
	ar_result_uuid(row, 1, &d->action_id);
	ar_result_uuid(row, 2, &d->dispatch_id);
	d->version = (int) ar_result_int64(row, 3, 0);
	d->number = (int) ar_result_int64(row, 4, 0);
	d->failures = (int) ar_result_int64(row, 5, 0);
	d->operation = ar_result_text(row, 6);
	d->provider = ar_result_text(row, 7);
	d->client_reference = ar_result_text(row, 8);
	d->base_url = ar_result_text(row, 9);
	d->method = ar_result_text(row, 10);
	d->path = ar_result_text(row, 11);
	d->headers = ar_result_text_array(row, 12, &d->header_strings);
	d->body = ar_result_text(row, 13);
	d->artifact_path = ar_result_text(row, 14);
	d->artifact_header = ar_result_text(row, 15);
	d->connect_timeout_us = ar_result_int64(row, 16, 0);
	d->attempt_timeout_us = ar_result_int64(row, 17, 0);
	d->window_us = ar_result_int64(row, 18, 0);
	d->late_arrival_us = ar_result_int64(row, 19, 0);
	d->retry_pause_us = ar_result_int64(row, 20, 0);
	d->retry_pause_max_us = ar_result_int64(row, 21, 0);
	d->max_response_bytes = (int) ar_result_int64(row, 22, 0);
	d->allow_http = ar_result_bool(row, 23);
	d->allow_private_addresses = ar_result_bool(row, 24);
	d->ca_file = ar_result_text(row, 25);
	d->has_rules = ar_result_bool(row, 26);
	d->retry_after_max_us = ar_result_int64(row, 27, 0);
	d->operation_version = (int) ar_result_int64(row, 28, 0);
	read_plan(d, row);
	d->claimed_us = ar_monotonic_us();
	MemoryContextSwitchTo(caller);
	return d;
}

static void
fill_claim(const ArClaimLimits *limits, Datum *values)
{
	ArArray		skipped;
	ArMoment	now = ar_moment_now();

	ar_array_init(&skipped, UUIDOID);
	for (int i = 0; i < limits->skipped_count; i++)
		ar_array_add(&skipped, UUIDPGetDatum(&limits->skipped[i]), false);
	ar_room_datums(limits->rooms, limits->room_count, values);
	values[2] = TimestampTzGetDatum(now.wall);
	values[3] = Int64GetDatum(ar_lower_now());
	values[4] = Int64GetDatum(limits->epoch);
	values[5] = CStringGetTextDatum(now.lifetime);
	values[6] = Int64GetDatum(now.boot_us);
	values[7] = Int64GetDatum(limits->limit);
	values[8] = ar_array_datum(&skipped);
	values[9] = CStringGetTextDatum(now.boot);
}

static int
claim(ArStatement *statement, MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches)
{
	Datum		values[10];
	uint64		rows;

	fill_claim(limits, values);
	rows = ar_statement_run(statement, values, NULL);

	*dispatches = palloc(sizeof(ArDispatch *) * Max(rows, 1));
	for (uint64 row = 0; row < rows; row++)
		(*dispatches)[row] = read_dispatch(parent, row);
	return (int) rows;
}

int
ar_store_claim(MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches)
{
	return claim(&claim_statement, parent, limits, dispatches);
}

int
ar_store_claim_resends(MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches)
{
	int			count = claim(&resend_statement, parent, limits, dispatches);

	for (int i = 0; i < count; i++)
		(*dispatches)[i]->resend = true;
	return count;
}

bool
ar_store_next_due(const ArClaimLimits *limits, pg_uuid_t *action_id)
{
	Datum		values[10];

	fill_claim(limits, values);
	return ar_statement_run(&next_statement, values, NULL) > 0 && ar_result_uuid(0, 1, action_id);
}
