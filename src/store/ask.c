/*
 * ask.c
 *		Which actions are to be looked up.
 */
#include "store/question.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "store/statement.h"

/* What a question needs, for the rows of a CTE "asked(action_id, lookup_id)" and "moved". */
#define QUESTION_COLUMNS \
	" SELECT k.lookup_id, m.action_id, m.version, m.provider, m.client_reference, m.state = 'delivered', m.queued," \
	"  coalesce(t.last_gate_us, 0), m.negatives, m.inconclusives, m.replacements," \
	"  coalesce(t.base_url, p.base_url), r.path, r.headers, l.found_statuses, l.absent_statuses," \
	"  l.items_path::text, l.reference_path::text, replace(l.body_match, '{client_reference}', m.client_reference)," \
	"  l.artifact_path::text, lower(l.artifact_header), coalesce(l.window_source, p.window_source) = 'assumed', l.min_negatives," \
	"  (extract(epoch FROM l.negative_spacing) * 1000000)::bigint, (extract(epoch FROM l.pause) * 1000000)::bigint," \
	"  (extract(epoch FROM l.pause_max) * 1000000)::bigint, l.max_inconclusive, o.on_absent = 'replace', o.max_replacements," \
	"  (extract(epoch FROM o.retry_pause) * 1000000)::bigint, (extract(epoch FROM o.retry_pause_max) * 1000000)::bigint," \
	"  (extract(epoch FROM l.timeout) * 1000000)::bigint, p.max_response_bytes, p.allow_http, p.allow_private_addresses, p.ca_file" \
	" FROM moved m JOIN asked k USING (action_id)" \
	" JOIN reconcile.operation o ON o.operation = m.operation" \
	" JOIN reconcile.provider p ON p.provider = m.provider" \
	" JOIN reconcile.lookup_rule l ON l.operation = m.operation" \
	" CROSS JOIN LATERAL reconcile.try_render_lookup(l, m.client_reference) r" \
	" LEFT JOIN LATERAL (SELECT max(x.gate_us) FILTER (WHERE x.state <> 'safe_to_retry') AS last_gate_us," \
	"  (array_agg(x.base_url ORDER BY x.number DESC))[1] AS base_url" \
	"  FROM reconcile.attempt x WHERE x.action_id = m.action_id) t ON true"

#define ASKED_CTE \
	"), asked AS (" \
	" INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, kind, asked_at, asked_us)" \
	" SELECT gen_random_uuid(), action_id, version, $4, 'list_by_reference', $3, $1 FROM moved RETURNING lookup_id, action_id)"

/* A delivered action keeps its state while it is asked about; its gate is taken so that it is asked once. */
static ArStatement ask_statement = {
	"WITH due AS ("
	" SELECT a.action_id, a.state FROM reconcile.action a"
	" WHERE a.state IN ('outcome_unknown', 'delivered') AND a.gate_us <= $1"
	"  AND EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation)"
	" ORDER BY a.gate_us LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED"
	"), unknown AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'ask', state = 'reconciling',"
	"  evidence = jsonb_build_object('lookup', jsonb_build_object('asked_us', $1, 'gate_us', a.gate_us))"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	"  AND due.state = 'outcome_unknown' RETURNING a.*"
	"), delivered AS ("
	" UPDATE reconcile.action a SET gate_us = NULL"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due))"
	"  AND due.state = 'delivered' RETURNING a.*"
	"), moved AS (SELECT * FROM unknown UNION ALL SELECT * FROM delivered"
	ASKED_CTE
	QUESTION_COLUMNS,
	4, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID}
};

/* A replacement goes out only on a proof of absence that is fresh by the upper clock. */
static ArStatement ask_again_statement = {
	"WITH due AS ("
	" SELECT a.action_id FROM reconcile.action a JOIN reconcile.provider p ON p.provider = a.provider"
	" WHERE a.state = 'planned' AND a.looked_at IS NOT NULL AND a.due_at <= $3 AND p.paused_at IS NULL"
	"  AND NOT (a.looked_lifetime = $5 AND $6 - a.looked_boot_us BETWEEN 0 AND 60000000"
	"       AND a.looked_at <= $3 AND a.looked_at > $3 - interval '60 seconds')"
	"  AND EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation)"
	" ORDER BY a.due_at LIMIT $2 FOR NO KEY UPDATE OF a SKIP LOCKED"
	"), moved AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'look_again', state = 'reconciling', attempt_number = NULL,"
	"  evidence = jsonb_build_object('lookup', jsonb_build_object('asked_us', $1, 'previous_look_at', a.looked_at))"
	" FROM due WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due)) RETURNING a.*"
	ASKED_CTE
	QUESTION_COLUMNS,
	6, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTOID, INT8OID}
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

static ArQuestion *
read_question(MemoryContext parent, uint64 row, int64 asked_us, ArMoment asked)
{
	MemoryContext context = AllocSetContextCreate(parent, "lookup", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	ArQuestion *q = palloc0(sizeof(ArQuestion));

	q->context = context;
	q->asked_us = asked_us;
	q->asked = asked;
	ar_result_uuid(row, 1, &q->lookup_id);
	ar_result_uuid(row, 2, &q->action_id);
	q->version = (int) ar_result_int64(row, 3, 0);
	q->provider = ar_result_text(row, 4);
	q->client_reference = ar_result_text(row, 5);
	q->delivered = ar_result_bool(row, 6);
	q->queued = ar_result_bool(row, 7);
	q->last_gate_us = ar_result_int64(row, 8, 0);
	q->negatives = (int) ar_result_int64(row, 9, 0);
	q->inconclusives = (int) ar_result_int64(row, 10, 0);
	q->replacements = (int) ar_result_int64(row, 11, 0);
	q->base_url = ar_result_text(row, 12);
	q->path = ar_result_text(row, 13);
	q->headers = ar_result_text_array(row, 14, &q->header_strings);
	q->found_statuses = read_statuses(row, 15, &q->found_status_count);
	q->absent_statuses = read_statuses(row, 16, &q->absent_status_count);
	q->items_path = ar_result_text(row, 17);
	q->reference_path = ar_result_text(row, 18);
	q->body_match = ar_result_text(row, 19);
	q->artifact_path = ar_result_text(row, 20);
	q->artifact_header = ar_result_text(row, 21);
	q->window_assumed = ar_result_bool(row, 22);
	q->min_negatives = (int) ar_result_int64(row, 23, 1);
	q->negative_spacing_us = ar_result_int64(row, 24, 0);
	q->pause_us = ar_result_int64(row, 25, 0);
	q->pause_max_us = ar_result_int64(row, 26, 0);
	q->max_inconclusive = (int) ar_result_int64(row, 27, 1);
	q->replace_when_absent = ar_result_bool(row, 28);
	q->max_replacements = (int) ar_result_int64(row, 29, 0);
	q->retry_pause_us = ar_result_int64(row, 30, 0);
	q->retry_pause_max_us = ar_result_int64(row, 31, 0);
	q->timeout_us = ar_result_int64(row, 32, 0);
	q->max_response_bytes = (int) ar_result_int64(row, 33, 0);
	q->allow_http = ar_result_bool(row, 34);
	q->allow_private_addresses = ar_result_bool(row, 35);
	q->ca_file = ar_result_text(row, 36);
	MemoryContextSwitchTo(caller);
	return q;
}

int
ar_store_ask(MemoryContext parent, int64 epoch, int limit, ArQuestion ***questions)
{
	ArMoment	now = ar_moment_now();
	int64		asked_us = ar_lower_now();
	Datum		values[6];
	int			count = 0;

	*questions = palloc(sizeof(ArQuestion *) * Max(limit, 1) * 2);
	values[0] = Int64GetDatum(asked_us);
	values[1] = Int64GetDatum(limit);
	values[2] = TimestampTzGetDatum(now.wall);
	values[3] = Int64GetDatum(epoch);
	values[4] = CStringGetTextDatum(now.lifetime);
	values[5] = Int64GetDatum(now.boot_us);
	for (int i = 0; i < 2; i++)
	{
		uint64		rows = ar_statement_run(i == 0 ? &ask_statement : &ask_again_statement, values, NULL);

		for (uint64 row = 0; row < rows; row++)
			(*questions)[count++] = read_question(parent, row, asked_us, now);
	}
	return count;
}
