/*
 * observe.c
 *		What is learned about a provider on the way.
 */
#include "store/question.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "store/statement.h"

static ArStatement owner_statement = {
	"SELECT 1 FROM reconcile.action a WHERE a.provider = $1 AND a.artifact_id = $2 AND a.operation = $3 AND a.action_id <> $4"
	" UNION ALL SELECT 1 FROM reconcile.archived_action x WHERE x.provider = $1 AND x.artifact_id = $2 AND x.operation = $3 LIMIT 1",
	4, {TEXTOID, TEXTOID, TEXTOID, UUIDOID}
};

bool
ar_store_owned_by_other(const ArQuestion *question, const char *artifact_id)
{
	Datum		values[4];

	values[0] = CStringGetTextDatum(question->provider);
	values[1] = CStringGetTextDatum(artifact_id);
	values[2] = CStringGetTextDatum(question->operation);
	values[3] = UUIDPGetDatum(&question->action_id);
	return ar_statement_run(&owner_statement, values, NULL) > 0;
}

/* From the end of the last attempt that counts (of one presumed to have left elsewhere nobody knows it) to the question that saw it, and to the last one that did not. */
#define LAG_OF_ACTION \
	" FROM (SELECT max(t.ended_at) AS ended_at FROM reconcile.attempt t WHERE t.action_id = $1" \
	"   AND t.state IN ('succeeded', 'outcome_unknown', 'delivered') HAVING bool_and(t.request_hash <> '')) t" \
	" LEFT JOIN LATERAL (SELECT max(k.asked_at) AS asked_at FROM reconcile.lookup k WHERE k.action_id = $1 AND k.position = $2" \
	"   AND k.result IN ('absent', 'inconclusive') AND k.http_status IS NOT NULL AND k.asked_at BETWEEN t.ended_at AND $3) n ON true" \
	" WHERE t.ended_at <= $3"

static ArStatement visible_statement = {
	"INSERT INTO reconcile.window_sample (operation, position, action_id, source, lag_us, lag_low_us)"
	" SELECT $4, $2, $1, $5, (extract(epoch FROM $3 - t.ended_at) * 1000000)::bigint,"
	"  (extract(epoch FROM n.asked_at - t.ended_at) * 1000000)::bigint"
	LAG_OF_ACTION,
	5, {UUIDOID, INT4OID, TIMESTAMPTZOID, TEXTOID, TEXTOID}
};

void
ar_store_note_visible(const ArQuestion *question, bool probe)
{
	Datum		values[5];

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = Int32GetDatum(question->position);
	values[2] = TimestampTzGetDatum(question->asked.wall);
	values[3] = CStringGetTextDatum(question->operation);
	values[4] = CStringGetTextDatum(probe ? "probe" : "lookup");
	ar_statement_run(&visible_statement, values, NULL);
}

/* That a person, and no lookup, has said that it was not there says nothing about the window. */
static ArStatement violation_statement = {
	"SELECT reconcile.note_window_violation($1, $2, (extract(epoch FROM $3 - t.ended_at) * 1000000)::bigint)"
	" FROM (SELECT max(t.ended_at) AS ended_at FROM reconcile.attempt t WHERE t.action_id = $1) t WHERE t.ended_at <= $3"
	"  AND EXISTS (SELECT FROM reconcile.lookup k WHERE k.action_id = $1 AND k.result = 'absent')",
	3, {UUIDOID, INT4OID, TIMESTAMPTZOID}
};

void
ar_store_note_violation(const ArQuestion *question)
{
	Datum		values[3];

	values[0] = UUIDPGetDatum(&question->action_id);
	values[1] = Int32GetDatum(question->position);
	values[2] = TimestampTzGetDatum(question->asked.wall);
	ar_statement_run(&violation_statement, values, NULL);
}

static ArStatement decision_statement = {
	"SELECT reconcile.note_wrong_decision($1)", 1, {UUIDOID}
};

void
ar_store_note_wrong_decision(const ArQuestion *question)
{
	Datum		values[1] = {UUIDPGetDatum(&question->action_id)};

	ar_statement_run(&decision_statement, values, NULL);
}

static ArStatement incident_statement = {
	"INSERT INTO reconcile.incident (kind, provider, operation, action_id, details)"
	" VALUES ($5, $1, $2, $3, $4::jsonb) ON CONFLICT (action_id, kind) DO NOTHING",
	5, {TEXTOID, TEXTOID, UUIDOID, TEXTOID, TEXTOID}
};

void
ar_store_note_incident(const ArQuestion *question, const ArAnswer *answer, const char *kind)
{
	Datum		values[5];

	values[0] = CStringGetTextDatum(question->provider);
	values[1] = CStringGetTextDatum(question->operation);
	values[2] = UUIDPGetDatum(&question->action_id);
	values[3] = CStringGetTextDatum(answer->evidence);
	values[4] = CStringGetTextDatum(kind);
	ar_statement_run(&incident_statement, values, NULL);
}

/* The canary is an action of ours, unless it is a fixed object. */
static ArStatement canary_statement = {
	"INSERT INTO reconcile.incident (kind, provider, operation, action_id, details)"
	" SELECT 'contradiction', a.provider, a.operation, a.action_id, jsonb_build_object('reason', 'accepted, and not shown any more by the lookup for another action',"
	"  'rule', $3, 'asked_at', $4, 'asked_for', $5) FROM reconcile.action a"
	" WHERE a.provider = $1 AND a.client_reference = $2 AND a.state = 'succeeded' ON CONFLICT (action_id, kind) DO NOTHING",
	5, {TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID, UUIDOID}
};

void
ar_store_note_canary_missing(const ArQuestion *question)
{
	Datum		values[5];

	values[0] = CStringGetTextDatum(question->provider);
	values[1] = CStringGetTextDatum(question->canary_reference);
	values[2] = Int32GetDatum(question->position);
	values[3] = TimestampTzGetDatum(question->asked.wall);
	values[4] = UUIDPGetDatum(&question->action_id);
	ar_statement_run(&canary_statement, values, NULL);
}
