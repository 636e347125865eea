/*
 * claim.c
 *		Making the intent to send durable, and looking once more before it is sent.
 */
#include "store/dispatch.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/standing.h"
#include "store/clock.h"
#include "store/statement.h"

/*
 * Every gate stands in the one statement: due, not expired, provider not
 * paused, room left at the provider, and for a replacement a proof of absence
 * that is fresh by the upper clock.  SKIP LOCKED: a row somebody holds is
 * simply not claimed now.
 *
 * Here and elsewhere "= ANY (...)" repeats a join condition: it makes the
 * planner look rows up in the index even if it believes the table is empty.
 */
#define DUE_ACTIONS \
	" SELECT d.*" \
	" FROM reconcile.provider p" \
	" LEFT JOIN unnest($1, $2) AS o(provider, open) ON o.provider = p.provider" \
	" CROSS JOIN LATERAL (" \
	"  SELECT a.action_id, a.operation, a.provider, a.client_reference, a.payload FROM reconcile.action a" \
	"  WHERE a.provider = p.provider AND a.state = 'planned' AND a.due_at <= $3" \
	"   AND (a.not_after IS NULL OR a.not_after > $3)" \
	"   AND (a.looked_at IS NULL OR (a.looked_lifetime = $6 AND $7 - a.looked_boot_us BETWEEN 0 AND 60000000" \
	"        AND a.looked_at <= $3 AND a.looked_at > $3 - interval '60 seconds'))" \
	"   AND a.action_id <> ALL ($9)" \
	"  ORDER BY a.due_at, a.action_id" \
	"  LIMIT greatest(p.max_in_flight - coalesce(o.open, 0), 0)" \
	"  FOR NO KEY UPDATE SKIP LOCKED) d" \
	" WHERE p.paused_at IS NULL ORDER BY p.provider LIMIT $8"

#define CLAIM_PARAMETERS \
	9, {TEXTARRAYOID, INT4ARRAYOID, TIMESTAMPTZOID, INT8OID, INT8OID, TEXTOID, INT8OID, INT8OID, UUIDARRAYOID}

static ArStatement claim_statement = {
	"WITH due AS ("
	DUE_ACTIONS
	"), request AS ("
	" SELECT a.action_id, gen_random_uuid() AS dispatch_id, o.version AS operation_version, p.version AS provider_version,"
	"  p.base_url, o.method, r.path, r.headers, r.body, o.artifact_path::text AS artifact_path, lower(o.artifact_header) AS artifact_header,"
	"  (extract(epoch FROM p.connect_timeout) * 1000000)::bigint AS connect_timeout_us,"
	"  (extract(epoch FROM p.attempt_timeout) * 1000000)::bigint AS attempt_timeout_us,"
	"  (extract(epoch FROM coalesce(l.consistency_window, p.consistency_window)) * 1000000)::bigint AS window_us,"
	"  (extract(epoch FROM p.late_arrival_max) * 1000000)::bigint AS late_us,"
	"  (extract(epoch FROM o.retry_pause) * 1000000)::bigint AS retry_pause_us,"
	"  (extract(epoch FROM o.retry_pause_max) * 1000000)::bigint AS retry_pause_max_us,"
	"  p.max_response_bytes, p.allow_http, p.allow_private_addresses, p.ca_file,"
	"  EXISTS (SELECT FROM reconcile.response_rule s WHERE s.operation = o.operation) AS has_rules,"
	"  (extract(epoch FROM o.retry_after_max) * 1000000)::bigint AS retry_after_max_us"
	" FROM due a"
	" JOIN reconcile.operation o ON o.operation = a.operation"
	" JOIN reconcile.provider p ON p.provider = a.provider"
	" LEFT JOIN reconcile.lookup_rule l ON l.operation = o.operation"
	" CROSS JOIN LATERAL reconcile.try_render_request(o, a.client_reference, a.payload) r"
	"), claimed AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'claim', state = 'submitted', queued = false,"
	"  attempts = a.attempts + 1, attempt_number = a.attempts + 1, dispatch_id = q.dispatch_id,"
	"  gate_us = $4 + q.attempt_timeout_us + q.late_us + q.window_us,"
	"  eligible_at = $3 + (q.attempt_timeout_us + q.late_us + q.window_us) * interval '1 microsecond',"
	"  evidence = jsonb_build_object('dispatch', jsonb_build_object('dispatch_id', q.dispatch_id, 'epoch', $5,"
	"   'provider_version', q.provider_version, 'operation_version', q.operation_version))"
	" FROM request q WHERE a.action_id = q.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM request))"
	" RETURNING a.version, a.attempts, a.failures, a.operation, a.provider, a.client_reference, a.gate_us, q.*"
	"), attempted AS ("
	" INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url,"
	"  request_hash, epoch, dispatched_at, window_us, late_arrival_us, gate_us, evidence)"
	" SELECT c.dispatch_id, c.action_id, c.attempts, c.provider, c.provider_version, c.operation_version, c.base_url,"
	"  sha256(convert_to(concat_ws(E'\\n', c.method, c.path, array_to_string(c.headers, E'\\n'), c.body), 'UTF8')),"
	"  $5, $3, c.window_us, c.late_us, c.gate_us, '{}'"
	" FROM claimed c"
	")"
	" SELECT c.action_id, c.dispatch_id, c.version, c.attempts, c.failures, c.operation, c.provider, c.client_reference,"
	"  c.base_url, c.method, c.path, c.headers, c.body, c.artifact_path, c.artifact_header,"
	"  c.connect_timeout_us, c.attempt_timeout_us, c.window_us, c.late_us, c.retry_pause_us, c.retry_pause_max_us,"
	"  c.max_response_bytes, c.allow_http, c.allow_private_addresses, c.ca_file, c.has_rules, c.retry_after_max_us,"
	"  c.operation_version"
	" FROM claimed c",
	CLAIM_PARAMETERS
};

/* The parameters that a claim has no use for are named, so that they have their types. */
static ArStatement next_statement = {
	"SELECT n.action_id FROM (" DUE_ACTIONS ") n WHERE $4 IS NOT NULL AND $5 IS NOT NULL",
	CLAIM_PARAMETERS
};

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
	d->claimed_us = ar_monotonic_us();
	MemoryContextSwitchTo(caller);
	return d;
}

static void
fill_claim(const ArClaimLimits *limits, Datum *values)
{
	ArArray		providers;
	ArArray		counts;
	ArArray		skipped;
	ArMoment	now = ar_moment_now();

	ar_array_init(&providers, TEXTOID);
	ar_array_init(&counts, INT4OID);
	ar_array_init(&skipped, UUIDOID);
	for (int i = 0; i < limits->open_count; i++)
	{
		ar_array_add_text(&providers, limits->open[i].provider);
		ar_array_add(&counts, Int32GetDatum(limits->open[i].open), false);
	}
	for (int i = 0; i < limits->skipped_count; i++)
		ar_array_add(&skipped, UUIDPGetDatum(&limits->skipped[i]), false);
	values[0] = ar_array_datum(&providers);
	values[1] = ar_array_datum(&counts);
	values[2] = TimestampTzGetDatum(now.wall);
	values[3] = Int64GetDatum(ar_lower_now());
	values[4] = Int64GetDatum(limits->epoch);
	values[5] = CStringGetTextDatum(now.lifetime);
	values[6] = Int64GetDatum(now.boot_us);
	values[7] = Int64GetDatum(limits->limit);
	values[8] = ar_array_datum(&skipped);
}

int
ar_store_claim(MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches)
{
	Datum		values[9];
	uint64		rows;

	fill_claim(limits, values);
	rows = ar_statement_run(&claim_statement, values, NULL);

	*dispatches = palloc(sizeof(ArDispatch *) * Max(rows, 1));
	for (uint64 row = 0; row < rows; row++)
		(*dispatches)[row] = read_dispatch(parent, row);
	return (int) rows;
}

bool
ar_store_next_due(const ArClaimLimits *limits, pg_uuid_t *action_id)
{
	Datum		values[9];

	fill_claim(limits, values);
	return ar_statement_run(&next_statement, values, NULL) > 0 && ar_result_uuid(0, 1, action_id);
}

/*
 * The world may have moved between the claim and the first byte: everything
 * the send depends on is read again, in a snapshot of this moment.
 */
static ArStatement check_statement = {
	"SELECT CASE"
	" WHEN a.state <> 'submitted' OR a.dispatch_id <> $2 OR a.version <> $3 THEN 'the action has moved on'"
	" WHEN (SELECT p.paused_at FROM reconcile.provider p WHERE p.provider = a.provider) IS NOT NULL THEN 'the provider is paused'"
	" WHEN a.not_after <= $4 THEN 'its time has passed'"
	" WHEN (SELECT m.epoch FROM reconcile.arming m WHERE m.only_row) IS DISTINCT FROM $5 THEN 'this database is not armed'"
	" END"
	" FROM reconcile.action a WHERE a.action_id = $1",
	5, {UUIDOID, UUIDOID, INT4OID, TIMESTAMPTZOID, INT8OID}
};

const char *
ar_store_check_dispatch(const ArDispatch *dispatch, int64 epoch)
{
	Datum		values[5];

	values[0] = UUIDPGetDatum(&dispatch->action_id);
	values[1] = UUIDPGetDatum(&dispatch->dispatch_id);
	values[2] = Int32GetDatum(dispatch->version);
	values[3] = TimestampTzGetDatum(ar_wall_now());
	values[4] = Int64GetDatum(epoch);
	if (ar_statement_run(&check_statement, values, NULL) != 1)
		return "the action is gone";
	return ar_result_text(0, 1);
}

static ArStatement expire_statement = {
	"WITH late AS ("
	" SELECT action_id FROM reconcile.action WHERE state = 'planned' AND not_after <= $1"
	" ORDER BY not_after LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED)"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'expire', state = 'expired',"
	"  standing = 'failed/pending', queued = false, attempt_number = NULL,"
	"  evidence = jsonb_build_object('not_after', a.not_after)"
	" FROM late WHERE a.action_id = late.action_id"
	" RETURNING pg_notify('reconcile', json_build_object('action_id', a.action_id, 'state', a.state, 'status', 'FAILED')::text)",
	1, {TIMESTAMPTZOID}
};

int
ar_store_expire(void)
{
	Datum		values[1];

	values[0] = TimestampTzGetDatum(ar_wall_now());
	return (int) ar_statement_run(&expire_statement, values, NULL);
}
