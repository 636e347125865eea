/*
 * rules.c
 *		What an operation's own rules say about answers.
 */
#include "store/rules.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "store/statement.h"

/*
 * The first rule whose conditions all hold.  A rule that wants to see the body
 * stops the search when the body cannot be read: whether it would have held is
 * not known, so neither is what comes after it.
 */
static ArStatement judge_statement = {
	"WITH answer AS ("
	" SELECT a.place, a.operation, a.status, a.headers::jsonb AS headers, reconcile.try_jsonb(a.body) AS document, a.resend"
	" FROM unnest($1, $2, $3, $4, $5, $6) AS a(place, operation, status, body, headers, resend))"
	" SELECT a.place, d.position, CASE WHEN d.blind THEN CASE WHEN a.status < 300 THEN 'unreadable' ELSE 'unknown' END ELSE d.class END,"
	"  d.stored_reply AND NOT d.blind, d.artifact_path"
	" FROM answer a CROSS JOIN LATERAL ("
	"  SELECT r.position, r.class::text AS class, r.body_path IS NOT NULL AND a.document IS NULL AS blind, r.stored_reply, r.artifact_path::text AS artifact_path"
	"  FROM reconcile.response_rule r WHERE r.operation = a.operation"
	"   AND (r.statuses IS NULL OR a.status = ANY (r.statuses))"
	"   AND (r.applies_to = 'any' OR (r.applies_to = 'replay') = a.resend)"
	"   AND (r.header_name IS NULL OR a.headers ->> r.header_name = r.header_value)"
	"   AND (r.body_path IS NULL OR a.document IS NULL OR jsonb_path_exists(a.document, r.body_path, '{}', true))"
	"  ORDER BY r.position LIMIT 1) d",
	6, {INT4ARRAYOID, TEXTARRAYOID, INT4ARRAYOID, TEXTARRAYOID, TEXTARRAYOID, BOOLARRAYOID}
};

void
ar_store_judge(ArRuling *rulings, int count)
{
	static const Oid types[] = {INT4OID, TEXTOID, INT4OID, TEXTOID, TEXTOID, BOOLOID};
	ArArray		arrays[lengthof(types)];
	Datum		values[lengthof(types)];
	uint64		rows;

	for (int i = 0; i < lengthof(types); i++)
		ar_array_init(&arrays[i], types[i]);
	for (int i = 0; i < count; i++)
	{
		ar_array_add(&arrays[0], Int32GetDatum(i), false);
		ar_array_add_text(&arrays[1], rulings[i].operation);
		ar_array_add(&arrays[2], Int32GetDatum(rulings[i].http_status), false);
		ar_array_add_text(&arrays[3], rulings[i].body);
		ar_array_add_text(&arrays[4], rulings[i].headers);
		ar_array_add(&arrays[5], BoolGetDatum(rulings[i].resend), false);
		rulings[i].position = 0;
	}
	for (int i = 0; i < lengthof(types); i++)
		values[i] = ar_array_datum(&arrays[i]);
	rows = ar_statement_run(&judge_statement, values, NULL);
	for (uint64 row = 0; row < rows; row++)
	{
		ArRuling   *ruling = &rulings[ar_result_int64(row, 1, 0)];

		if (!ar_answer_class_parse(ar_result_text(row, 3), &ruling->answer))
			continue;
		ruling->position = (int) ar_result_int64(row, 2, 0);
		ruling->stored_reply = ar_result_bool(row, 4);
		ruling->artifact_path = ar_result_text(row, 5);
	}
}
