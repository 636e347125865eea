/*
 * recovery.c
 *		What the engine does with the database besides sending and asking.
 */
#include "store/recovery.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/limits.h"
#include "store/statement.h"

/*
 * What an engine of an earlier epoch left open.  The end of such an attempt is
 * unknown, so it counts as ended now.  A row that somebody holds is left for
 * the next time.
 */
static ArStatement recover_attempts_statement = {
	"WITH stale AS ("
	" SELECT t.action_id, t.number, greatest(t.gate_us, $1 + t.late_arrival_us + t.window_us) AS gate_us"
	" FROM reconcile.action a JOIN reconcile.attempt t ON t.action_id = a.action_id AND t.dispatch_id = a.dispatch_id"
	" WHERE a.state = 'submitted' AND t.state = 'submitted' AND t.epoch < $3"
	"  AND t.action_id = ANY (ARRAY(SELECT x.action_id FROM reconcile.action x WHERE x.state = 'submitted'))"
	" FOR NO KEY UPDATE SKIP LOCKED"
	"), attempts AS ("
	" UPDATE reconcile.attempt t SET version = t.version + 1, event = 'recover', state = 'outcome_unknown', ended_at = $2,"
	"  gate_us = s.gate_us, evidence = jsonb_build_object('recovery', jsonb_build_object('found', 'submitted', 'epoch', t.epoch))"
	" FROM stale s WHERE t.action_id = s.action_id AND t.number = s.number"
	"  AND t.action_id = ANY (ARRAY(SELECT action_id FROM stale)))"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'recover', state = 'outcome_unknown',"
	"  gate_us = s.gate_us, eligible_at = $2 + (s.gate_us - $1) * interval '1 microsecond',"
	"  evidence = jsonb_build_object('recovery', jsonb_build_object('found', 'submitted', 'dispatch_id', a.dispatch_id))"
	" FROM stale s WHERE a.action_id = s.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM stale))",
	3, {INT8OID, TIMESTAMPTZOID, INT8OID}
};

static ArStatement recover_lookups_statement = {
	"WITH stale AS ("
	" SELECT k.lookup_id, k.action_id FROM reconcile.lookup k JOIN reconcile.action a ON a.action_id = k.action_id"
	" WHERE k.answered_at IS NULL AND k.epoch < $3"
	"  AND a.action_id = ANY (ARRAY(SELECT x.action_id FROM reconcile.lookup x WHERE x.answered_at IS NULL))"
	" FOR NO KEY UPDATE SKIP LOCKED"
	"), lost AS ("
	" UPDATE reconcile.lookup k SET answered_at = $2, result = 'lost', reason = 'the engine that asked is gone'"
	" FROM stale s WHERE k.lookup_id = s.lookup_id AND k.lookup_id = ANY (ARRAY(SELECT lookup_id FROM stale))"
	"), delivered AS ("
	" UPDATE reconcile.action a SET gate_us = $1"
	" WHERE a.action_id = ANY (ARRAY(SELECT action_id FROM stale)) AND a.state IN ('delivered', 'succeeded') AND a.gate_us IS NULL)"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'recover', attempt_number = NULL,"
	"  state = CASE WHEN a.queued THEN 'planned'::reconcile.state ELSE 'outcome_unknown' END,"
	"  gate_us = CASE WHEN a.queued THEN NULL ELSE coalesce(a.gate_us, $1) END, due_at = coalesce(a.due_at, $2),"
	"  evidence = jsonb_build_object('recovery', jsonb_build_object('found', 'reconciling'))"
	" WHERE a.action_id = ANY (ARRAY(SELECT action_id FROM stale)) AND a.state = 'reconciling'",
	3, {INT8OID, TIMESTAMPTZOID, INT8OID}
};

static ArStatement left_open_statement = {
	"SELECT EXISTS (SELECT FROM reconcile.attempt t WHERE t.state = 'submitted' AND t.epoch < $1"
	"  AND t.action_id = ANY (ARRAY(SELECT x.action_id FROM reconcile.action x WHERE x.state = 'submitted')))"
	" OR EXISTS (SELECT FROM reconcile.lookup k WHERE k.answered_at IS NULL AND k.epoch < $1)",
	1, {INT8OID}
};

int
ar_store_recover(int64 epoch, bool *left_open)
{
	Datum		values[3];
	int			recovered;

	values[0] = Int64GetDatum(ar_lower_now());
	values[1] = TimestampTzGetDatum(ar_wall_now());
	values[2] = Int64GetDatum(epoch);
	recovered = (int) ar_statement_run(&recover_attempts_statement, values, NULL);
	ar_statement_run(&recover_lookups_statement, values, NULL);
	ar_statement_run(&left_open_statement, &values[2], NULL);
	*left_open = ar_result_bool(0, 1);
	ar_store_surrender(PG_INT64_MAX);
	return recovered;
}

/* No EXISTS, for which the planner might read all attempts there are. */
#define WAITS_FOR_VERDICT \
	"coalesce((SELECT true FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state = 'delivered'" \
	" AND t.event IN ('answered_async', 'found', 'confirm', 'resolve') LIMIT 1), false)"

/* Nothing is left to ask. What waits for a verdict is not given up here: that may still come by itself. */
static ArStatement surrender_statement = {
	"WITH mute AS ("
	" SELECT a.action_id FROM reconcile.action a"
	" WHERE a.state IN ('outcome_unknown', 'delivered') AND a.gate_us IS NOT NULL AND a.gate_us <= $1"
	"  AND NOT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.position >= a.lookup_position"
	"   AND (a.state = 'outcome_unknown' OR l.kind <> 'replay_by_key'))"
	"  AND (a.state = 'outcome_unknown' OR NOT " WAITS_FOR_VERDICT ")"
	" FOR NO KEY UPDATE SKIP LOCKED)"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'no_query_surface', state = 'manual_review',"
	"  attempt_number = NULL, gate_us = NULL,"
	"  evidence = jsonb_build_object('lookup', jsonb_build_object('reason', CASE WHEN a.lookup_position > 0"
	"   THEN 'no lookup rule is left to ask by' ELSE 'the operation has no lookup rule' END))"
	" FROM mute WHERE a.action_id = mute.action_id",
	1, {INT8OID}
};

/* Nor can it be asked for a verdict, and none has come. */
static ArStatement overdue_statement = {
	"WITH mute AS ("
	" SELECT a.action_id FROM reconcile.action a"
	" WHERE a.state = 'delivered' AND a.gate_us <= $1 AND " WAITS_FOR_VERDICT
	"  AND NOT EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)"
	" FOR NO KEY UPDATE SKIP LOCKED)"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'overdue', state = 'manual_review',"
	"  attempt_number = NULL, gate_us = NULL,"
	"  evidence = jsonb_build_object('poll', jsonb_build_object('reason', 'no verdict came, and the operation has no poll rule'))"
	" FROM mute WHERE a.action_id = mute.action_id",
	1, {INT8OID}
};

int
ar_store_surrender(int64 gate_us)
{
	Datum		values[1] = {Int64GetDatum(gate_us)};

	return (int) ar_statement_run(&surrender_statement, values, NULL);
}

int
ar_store_give_up_waiting(void)
{
	Datum		values[1] = {Int64GetDatum(ar_lower_now())};

	return (int) ar_statement_run(&overdue_statement, values, NULL);
}

static ArStatement read_clock_statement = {
	"SELECT elapsed_us, monotonic_us, lifetime FROM reconcile.clock ORDER BY (lifetime = $1) DESC, elapsed_us DESC",
	1, {TEXTOID}
};

/* That the wall clock was set back is not forgotten: until it has caught up, it says nothing about the age of a key. */
static ArStatement save_clock_statement = {
	"INSERT INTO reconcile.clock AS c (elapsed_us, monotonic_us, lifetime, wall_at)"
	" VALUES ($1, $2, $3, greatest($4, (SELECT max(x.wall_at) FROM reconcile.clock x)))"
	" ON CONFLICT (lifetime) DO UPDATE SET elapsed_us = greatest(c.elapsed_us, excluded.elapsed_us),"
	"  monotonic_us = excluded.monotonic_us, wall_at = excluded.wall_at",
	4, {INT8OID, INT8OID, TEXTOID, TIMESTAMPTZOID}
};

static ArStatement forget_clocks_statement = {
	"DELETE FROM reconcile.clock WHERE lifetime <> $1 AND elapsed_us <= $2", 2, {TEXTOID, INT8OID}
};

/*
 * The furthest reading counts.  There is a row for each postmaster lifetime,
 * because a restore brings the row of another one along.
 */
void
ar_store_clock_resume(void)
{
	Datum		values[1] = {CStringGetTextDatum(ar_lifetime())};
	uint64		rows = ar_statement_run(&read_clock_statement, values, NULL);

	ar_lower_clock_resume(0, 0, "");
	for (uint64 row = 0; row < rows; row++)
		ar_lower_clock_resume(ar_result_int64(row, 1, 0), ar_result_int64(row, 2, 0), ar_result_text(row, 3));
}

/* From here on the clock is this database's: an armed one's, for a restore brings the clock of a disarmed one along. */
void
ar_store_clock_own(void)
{
	Datum		values[2] = {CStringGetTextDatum(ar_lifetime()), 0};

	ar_store_clock_resume();
	ar_store_clock_save();
	values[1] = Int64GetDatum(ar_lower_now());
	ar_statement_run(&forget_clocks_statement, values, NULL);
}

void
ar_store_clock_save(void)
{
	int64		monotonic = ar_monotonic_us();
	Datum		values[4];

	values[0] = Int64GetDatum(ar_lower_at(monotonic));
	values[1] = Int64GetDatum(monotonic);
	values[2] = CStringGetTextDatum(ar_lifetime());
	values[3] = TimestampTzGetDatum(ar_wall_now());
	ar_statement_run(&save_clock_statement, values, NULL);
}

#define IS_RESEND \
	"(a.state = 'outcome_unknown' AND coalesce((SELECT l.kind FROM reconcile.lookup_rule l WHERE l.operation = a.operation" \
	" AND l.position >= a.lookup_position ORDER BY l.position LIMIT 1) = 'replay_by_key', false))"

#define FIRST_GATE(condition) \
	"(SELECT a.gate_us FROM reconcile.action a WHERE a.provider = p.provider AND a.state IN ('outcome_unknown', 'delivered', 'succeeded')" \
	" AND a.gate_us IS NOT NULL AND " condition " ORDER BY a.gate_us LIMIT 1)"

/*
 * Of each provider what is due next, and not before its limits leave room for
 * it; a negative pause says that something else than time has to make room.
 * Never further ahead than a day: what is to be slept over may be infinitely far.
 */
static ArStatement agenda_statement = {
	"WITH p AS (SELECT * FROM unnest($3, $4, $5, $6, $7) AS x(provider, send_us, paced, resend_us, ask_us))"
	" SELECT s.send_us, coalesce(s.paced, false) OR coalesce(g.paced, false), least(g.ask_us, g.resend_us),"
	"  (SELECT (extract(epoch FROM least(min(a.not_after), $1 + interval '1 day') - $1) * 1000000)::bigint"
	"   FROM reconcile.action a WHERE a.state = 'planned' AND a.not_after IS NOT NULL HAVING min(a.not_after) IS NOT NULL),"
	"  EXISTS (SELECT FROM reconcile.inbox i WHERE i.applied_at IS NULL AND i.action_id IS NOT NULL)"
	" FROM (SELECT min(greatest(d.due_us, p.send_us)) FILTER (WHERE p.send_us >= 0) AS send_us, bool_or(p.paced AND d.due_us <= 0) AS paced"
	"   FROM p CROSS JOIN generate_series(2, -2, -1) AS s(priority)"
	"   CROSS JOIN LATERAL (SELECT (extract(epoch FROM least(a.due_at, $1 + interval '1 day') - $1) * 1000000)::bigint AS due_us"
	"    FROM reconcile.action a WHERE a.provider = p.provider AND a.state = 'planned' AND NOT a.waits AND NOT a.held AND a.priority = s.priority"
	"     AND " OPERATION_IS_NOT_PAUSED " ORDER BY a.due_at LIMIT 1) d WHERE p.send_us >= 0) s"
	" CROSS JOIN (SELECT min(greatest(f.ask_gate - $2, p.ask_us)) FILTER (WHERE f.ask_gate IS NOT NULL) AS ask_us,"
	"   min(greatest(f.resend_gate - $2, p.resend_us)) FILTER (WHERE f.resend_gate IS NOT NULL) AS resend_us,"
	"   bool_or(f.ask_gate <= $2 AND p.ask_us > 0) AS paced"
	"   FROM p CROSS JOIN LATERAL (SELECT CASE WHEN p.ask_us >= 0 THEN " FIRST_GATE("NOT " IS_RESEND) " END AS ask_gate,"
	"    CASE WHEN p.resend_us >= 0 AND EXISTS (SELECT FROM reconcile.operation o JOIN reconcile.lookup_rule l ON l.operation = o.operation"
	"     WHERE o.provider = p.provider AND l.kind = 'replay_by_key') THEN " FIRST_GATE(IS_RESEND " AND " OPERATION_IS_NOT_PAUSED) " END AS resend_gate) f) g",
	7, {TIMESTAMPTZOID, INT8OID, TEXTARRAYOID, INT8ARRAYOID, BOOLARRAYOID, INT8ARRAYOID, INT8ARRAYOID}
};

static int64
pause_or_nothing(int column)
{
	int64		pause = ar_result_int64(0, column, -1);
	bool		is_null;

	(void) SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &is_null);
	return is_null ? -1 : Max(pause, 0);
}

void
ar_store_agenda(const ArProviderWaits *waits, int count, ArAgenda *agenda)
{
	static const Oid types[] = {TEXTOID, INT8OID, BOOLOID, INT8OID, INT8OID};
	ArArray		arrays[lengthof(types)];
	Datum		values[lengthof(types) + 2];

	for (int i = 0; i < lengthof(types); i++)
		ar_array_init(&arrays[i], types[i]);
	for (int i = 0; i < count; i++)
	{
		ar_array_add_text(&arrays[0], waits[i].provider);
		ar_array_add(&arrays[1], Int64GetDatum(waits[i].send_us), false);
		ar_array_add(&arrays[2], BoolGetDatum(waits[i].paced), false);
		ar_array_add(&arrays[3], Int64GetDatum(waits[i].resend_us), false);
		ar_array_add(&arrays[4], Int64GetDatum(waits[i].ask_us), false);
	}
	values[0] = TimestampTzGetDatum(ar_wall_now());
	values[1] = Int64GetDatum(ar_lower_now());
	for (int i = 0; i < lengthof(types); i++)
		values[i + 2] = ar_array_datum(&arrays[i]);
	ar_statement_run(&agenda_statement, values, NULL);
	agenda->send_in_us = pause_or_nothing(1);
	agenda->paced = ar_result_bool(0, 2);
	agenda->ask_in_us = pause_or_nothing(3);
	agenda->expire_in_us = pause_or_nothing(4);
	/* What came in and could not be applied is held by somebody, or about something that is being sent. */
	if (ar_result_bool(0, 5))
		agenda->send_in_us = 0;
	agenda->gate_open_later = agenda->ask_in_us > 0;
}

static ArStatement partitions_statement = {
	"SELECT reconcile.create_history_partitions()", 0, {0}
};

bool
ar_store_create_partitions(void)
{
	ar_statement_run(&partitions_statement, NULL, NULL);
	return ar_result_int64(0, 1, -1) >= 0;
}
