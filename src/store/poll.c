/*
 * poll.c
 *		Which delivered actions are asked for their verdict.
 */
#include "store/question.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "store/statement.h"

#define MICROSECONDS(span) "(extract(epoch FROM " span ") * 1000000)::bigint"

/*
 * A LIMIT makes the planner look the attempts up for each action, where it
 * might read all there are for a join.
 *
 * The gate of the action is taken, so that it is asked once at a time; its state stays.
 */
static ArStatement poll_statement = {
	"WITH due AS ("
	" SELECT d.* FROM unnest($5, $6) AS p(provider, room) CROSS JOIN LATERAL (SELECT a.action_id, t.number FROM reconcile.action a CROSS JOIN LATERAL (SELECT x.number FROM reconcile.attempt x"
	"  WHERE x.action_id = a.action_id AND x.state = 'delivered' AND x.event IN ('answered_async', 'found', 'confirm', 'resolve') ORDER BY x.number DESC LIMIT 1) t"
	" WHERE a.provider = p.provider AND a.state = 'delivered' AND a.gate_us <= $1 AND EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)"
	" ORDER BY a.gate_us LIMIT p.room FOR NO KEY UPDATE OF a SKIP LOCKED) d LIMIT $2"
	"), moved AS ("
	" UPDATE reconcile.action a SET gate_us = NULL FROM due"
	" WHERE a.action_id = due.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM due)) RETURNING a.*, due.number"
	"), asked AS ("
	" INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, kind, asked_at, asked_us)"
	" SELECT gen_random_uuid(), m.action_id, m.version, $4, 'poll', $3, $1 FROM moved m RETURNING lookup_id, action_id)"
	" SELECT k.lookup_id, m.action_id, m.version, m.operation, m.provider, m.client_reference, m.inconclusives,"
	"  $3 >= t.ended_at + o.acceptance_max_age, t.base_url, CASE WHEN b.path IS NULL THEN t.poll_url END,"
	"  r.path, r.headers, p.credential, b.state_path::text, b.accepted, b.rejected, b.artifact_path::text,"
	"  " MICROSECONDS("b.pause") ", " MICROSECONDS("b.pause_max") ", " MICROSECONDS("b.timeout") ","
	"  p.max_response_bytes, p.allow_http, p.allow_private_addresses, p.ca_file, coalesce(m.drill = 'probe', false)"
	" FROM moved m JOIN asked k USING (action_id)"
	" CROSS JOIN LATERAL (SELECT x.ended_at, x.base_url, x.poll_url FROM reconcile.attempt x"
	"  WHERE x.action_id = m.action_id AND x.number = m.number LIMIT 1) t"
	" JOIN reconcile.operation o ON o.operation = m.operation"
	" JOIN reconcile.provider p ON p.provider = m.provider"
	" JOIN reconcile.poll_rule b ON b.operation = m.operation"
	" CROSS JOIN LATERAL reconcile.try_render_question(b.path, b.headers, NULL, m.client_reference, m.payload, m.idempotency_key,"
	"  jsonb_build_object('artifact_id', m.artifact_id)) r",
	6, {INT8OID, INT8OID, TIMESTAMPTZOID, INT8OID, TEXTARRAYOID, INT4ARRAYOID}
};

static ArQuestion *
read_poll(MemoryContext parent, uint64 row, int64 asked_us, ArMoment asked)
{
	MemoryContext context = AllocSetContextCreate(parent, "poll", ALLOCSET_SMALL_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	ArQuestion *q = palloc0(sizeof(ArQuestion));
	ArReading  *r = &q->reading;

	q->context = context;
	q->kind = AR_ASK_FOR_VERDICT;
	q->delivered = true;
	q->asked_us = asked_us;
	q->asked = asked;
	ar_result_uuid(row, 1, &q->lookup_id);
	ar_result_uuid(row, 2, &q->action_id);
	q->version = (int) ar_result_int64(row, 3, 0);
	q->operation = ar_result_text(row, 4);
	q->provider = ar_result_text(row, 5);
	q->client_reference = ar_result_text(row, 6);
	q->inconclusives = (int) ar_result_int64(row, 7, 0);
	q->overdue = ar_result_bool(row, 8);
	q->base_url = ar_result_text(row, 9);
	q->url = ar_result_text(row, 10);
	q->method = "GET";
	q->asked_for.path = ar_result_text(row, 11);
	q->asked_for.headers = ar_result_text_array(row, 12, &q->asked_for.header_strings);
	q->credential = ar_result_text(row, 13);
	r->state_path = ar_result_text(row, 14);
	r->accepted = ar_result_text_array(row, 15, &r->accepted_count);
	r->rejected = ar_result_text_array(row, 16, &r->rejected_count);
	r->artifact_path = ar_result_text(row, 17);
	q->pause_us = ar_result_int64(row, 18, 0);
	q->pause_max_us = ar_result_int64(row, 19, 0);
	q->timeout_us = ar_result_int64(row, 20, 0);
	q->max_response_bytes = (int) ar_result_int64(row, 21, 0);
	q->allow_http = ar_result_bool(row, 22);
	q->allow_private_addresses = ar_result_bool(row, 23);
	q->ca_file = ar_result_text(row, 24);
	q->probe = ar_result_bool(row, 25);
	MemoryContextSwitchTo(caller);
	return q;
}

int
ar_store_poll(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions)
{
	ArMoment	now = ar_moment_now();
	int64		asked_us = ar_lower_now();
	Datum		values[6];
	uint64		rows;

	values[0] = Int64GetDatum(asked_us);
	values[1] = Int64GetDatum(limits->limit);
	values[2] = TimestampTzGetDatum(now.wall);
	values[3] = Int64GetDatum(limits->epoch);
	ar_room_datums(limits->rooms, limits->room_count, &values[4]);
	rows = ar_statement_run(&poll_statement, values, NULL);
	*questions = palloc(sizeof(ArQuestion *) * Max(rows, 1));
	for (uint64 row = 0; row < rows; row++)
		(*questions)[row] = read_poll(parent, row, asked_us, now);
	return (int) rows;
}
