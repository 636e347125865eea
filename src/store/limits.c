/*
 * limits.c
 *		Reading the limits of the providers, and writing their breakers.
 */
#include "store/limits.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/statement.h"

#define MICROSECONDS(span) "(extract(epoch FROM " span ") * 1000000)::bigint"

/* Rates go as events in 1000000 seconds, so that no fraction is lost. What is beyond the budget need not be counted. */
static ArStatement read_statement = {
	"SELECT p.provider, p.paused_at IS NOT NULL OR e.everything, p.max_in_flight, (coalesce(p.max_rate, 0) * 1000000)::bigint,"
	" coalesce(p.ambiguity_budget, 0), CASE WHEN p.ambiguity_budget IS NOT NULL THEN (SELECT count(*) FROM"
	"  (SELECT 1 FROM reconcile.action a WHERE a.provider = p.provider AND a.state IN ('outcome_unknown', 'reconciling', 'manual_review')"
	"    LIMIT p.ambiguity_budget) u) END,"
	" p.max_lookups_in_flight, (coalesce(p.max_lookup_rate, 0) * 1000000)::bigint, coalesce(p.breaker_after, 0),"
	" " MICROSECONDS("p.breaker_pause") ", " MICROSECONDS("p.breaker_pause_max") ", b.failures, b.trips, b.open_until_us,"
	" EXISTS (SELECT FROM reconcile.pause_period s JOIN reconcile.operation o ON o.operation = s.name"
	"  WHERE s.scope = 'operation' AND s.resumed_at IS NULL AND o.provider = p.provider)"
	" FROM (SELECT EXISTS (SELECT FROM reconcile.pause_period s WHERE s.scope = 'everything' AND s.resumed_at IS NULL) AS everything) e"
	" CROSS JOIN reconcile.provider p LEFT JOIN reconcile.breaker b ON b.provider = p.provider ORDER BY p.provider",
	0, {0}
};

int
ar_store_read_limits(ArProvider **providers)
{
	uint64		rows = ar_statement_run(&read_statement, NULL, NULL);

	*providers = palloc0(sizeof(ArProvider) * Max(rows, 1));
	for (uint64 row = 0; row < rows; row++)
	{
		ArProvider *p = &(*providers)[row];
		ArProviderLimits *l = &p->limits;

		p->name = ar_result_text(row, 1);
		l->paused = ar_result_bool(row, 2);
		l->max_in_flight = (int) ar_result_int64(row, 3, 0);
		l->max_rate = (double) ar_result_int64(row, 4, 0) / 1000000;
		l->ambiguity_budget = (int) ar_result_int64(row, 5, 0);
		l->uncertain = (int) ar_result_int64(row, 6, 0);
		l->max_lookups_in_flight = (int) ar_result_int64(row, 7, 0);
		l->max_lookup_rate = (double) ar_result_int64(row, 8, 0) / 1000000;
		l->breaker_rule.after = (int) ar_result_int64(row, 9, 0);
		l->breaker_rule.pause_us = ar_result_int64(row, 10, 0);
		l->breaker_rule.pause_max_us = ar_result_int64(row, 11, 0);
		l->breaker.failures = (int) ar_result_int64(row, 12, 0);
		l->breaker.trips = (int) ar_result_int64(row, 13, 0);
		l->breaker.open_until_us = ar_result_int64(row, 14, 0);
		p->operation_paused = ar_result_bool(row, 15);
	}
	return (int) rows;
}

void
ar_room_datums(const ArProviderRoom *rooms, int count, Datum *values)
{
	ArArray		names;
	ArArray		counts;

	ar_array_init(&names, TEXTOID);
	ar_array_init(&counts, INT4OID);
	for (int i = 0; i < count; i++)
	{
		ar_array_add_text(&names, rooms[i].provider);
		ar_array_add(&counts, Int32GetDatum(rooms[i].room), false);
	}
	values[0] = ar_array_datum(&names);
	values[1] = ar_array_datum(&counts);
}

/* Only an engine makes rows, so that one which is missing can be made without waiting for anybody. */
static ArStatement write_statement = {
	"WITH changed AS ("
	" SELECT * FROM unnest($1, $2, $3, $4, $5) AS c(provider, failures, trips, open_until_us, reason)"
	"), free AS ("
	" SELECT b.provider FROM reconcile.breaker b WHERE b.provider = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED"
	"), known AS ("
	" UPDATE reconcile.breaker b SET failures = c.failures, trips = c.trips, open_until_us = c.open_until_us, reason = coalesce(c.reason, b.reason),"
	"  opened_at = CASE WHEN c.open_until_us > 0 THEN coalesce(b.opened_at, $6) END,"
	"  open_until = CASE WHEN c.open_until_us > 0 THEN $6 + (c.open_until_us - $7) * interval '1 microsecond' END"
	" FROM changed c JOIN free f ON f.provider = c.provider WHERE b.provider = c.provider AND b.provider = ANY ($1))"
	" INSERT INTO reconcile.breaker (provider, failures, trips, open_until_us, reason, opened_at, open_until)"
	" SELECT c.provider, c.failures, c.trips, c.open_until_us, c.reason, CASE WHEN c.open_until_us > 0 THEN $6 END,"
	"  CASE WHEN c.open_until_us > 0 THEN $6 + (c.open_until_us - $7) * interval '1 microsecond' END FROM changed c"
	" WHERE NOT EXISTS (SELECT FROM reconcile.breaker b WHERE b.provider = c.provider)",
	7, {TEXTARRAYOID, INT4ARRAYOID, INT4ARRAYOID, INT8ARRAYOID, TEXTARRAYOID, TIMESTAMPTZOID, INT8OID}
};

void
ar_store_write_breakers(const ArBreakerChange *changes, int count)
{
	static const Oid types[] = {TEXTOID, INT4OID, INT4OID, INT8OID, TEXTOID};
	ArArray		arrays[lengthof(types)];
	Datum		values[lengthof(types) + 2];

	for (int i = 0; i < lengthof(types); i++)
		ar_array_init(&arrays[i], types[i]);
	for (int i = 0; i < count; i++)
	{
		const ArBreaker *b = &changes[i].provider->limits.breaker;

		ar_array_add_text(&arrays[0], changes[i].provider->name);
		ar_array_add(&arrays[1], Int32GetDatum(b->failures), false);
		ar_array_add(&arrays[2], Int32GetDatum(b->trips), false);
		ar_array_add(&arrays[3], Int64GetDatum(b->open_until_us), false);
		ar_array_add_text(&arrays[4], changes[i].reason);
	}
	for (int i = 0; i < lengthof(types); i++)
		values[i] = ar_array_datum(&arrays[i]);
	values[lengthof(types)] = TimestampTzGetDatum(ar_wall_now());
	values[lengthof(types) + 1] = Int64GetDatum(ar_lower_now());
	ar_statement_run(&write_statement, values, NULL);
}
