/*
 * rearming.c
 *		What was recorded before this database was armed anew.
 *
 * A copy knows what was to be sent, and not what has been sent since by the
 * database it was copied from.  So arm() notes everything that may have been,
 * and the engine gives each of these actions an attempt that is presumed to
 * have left, before it sends anything of it: then the windows, the lookups and
 * the people that settle any unknown outcome settle this one.  Such an attempt
 * has no request_hash, for nobody knows what was sent.
 */
#include "store/rearming.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/statement.h"

#define BATCH 1000

static ArStatement known_statement = {
	"SELECT EXISTS (SELECT FROM reconcile.arming) OR EXISTS (SELECT FROM reconcile.clock) OR EXISTS (SELECT FROM reconcile.action)",
	0, {0}
};

/* What waits for a person is due when that person lets it go on; see replace_step() and look_up_step(). */
static ArStatement note_statement = {
	"INSERT INTO reconcile.rearming (action_id, noted_at, due)"
	" SELECT a.action_id, $1, a.state NOT IN ('manual_review', 'safe_to_retry') FROM reconcile.action a"
	" WHERE a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'safe_to_retry')"
	" ON CONFLICT (action_id) DO NOTHING",
	1, {TIMESTAMPTZOID}
};

/* What an earlier arming has noted, and nobody is about to let go on. */
static ArStatement note_again_statement = {
	"UPDATE reconcile.rearming r SET noted_at = $1"
	" WHERE r.action_id IN (SELECT x.action_id FROM reconcile.rearming x FOR NO KEY UPDATE SKIP LOCKED)",
	1, {TIMESTAMPTZOID}
};

static ArStatement forget_statement = {
	"DELETE FROM reconcile.rearming r USING reconcile.action a WHERE a.action_id = r.action_id AND NOT r.due"
	" AND a.state NOT IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'safe_to_retry')",
	0, {0}
};

static ArStatement any_statement = {
	"SELECT EXISTS (SELECT FROM reconcile.rearming r WHERE r.due)", 0, {0}
};

/*
 * It may have left at any time since it was submitted, as far as lookups that
 * are limited to a span of time are concerned, and it ends now, as far as its
 * window is concerned.  What is not to be sent for long cannot have been; an
 * hour is more than clocks differ.  A request by its key would not be the same
 * one: that is no way to ask.
 */
static ArStatement presume_statement = {
	"WITH batch AS MATERIALIZED ("
	" SELECT r.action_id FROM reconcile.rearming r WHERE r.due AND r.action_id > $1 ORDER BY r.action_id LIMIT $2"
	"), free AS MATERIALIZED ("
	" SELECT a.action_id, a.state, a.operation, a.provider, a.attempts, a.idempotency_key, a.submitted_at,"
	"  a.state = 'outcome_unknown' OR a.state = 'planned' AND (a.attempts > 0 OR a.not_before IS NULL OR a.not_before <= $3 + interval '1 hour') AS may_be_sent"
	" FROM reconcile.action a WHERE a.action_id = ANY (ARRAY(SELECT action_id FROM batch)) AND a.state NOT IN ('submitted', 'reconciling')"
	" FOR NO KEY UPDATE SKIP LOCKED"
	"), presumed AS MATERIALIZED ("
	" SELECT f.*, gen_random_uuid() AS dispatch_id, p.version AS provider_version, o.version AS operation_version, p.base_url, l.position,"
	"  s.late_us, s.window_us, $4 + s.late_us + s.window_us AS gate_us,"
	"  jsonb_build_object('arming', jsonb_build_object('found', f.state, 'reason', CASE WHEN l.position IS NULL"
	"   THEN 'another copy of this database may have sent it before this one was armed, and no lookup rule asks the provider'"
	"   ELSE 'another copy of this database may have sent it before this one was armed' END)) AS evidence"
	" FROM free f JOIN reconcile.operation o ON o.operation = f.operation JOIN reconcile.provider p ON p.provider = f.provider"
	" LEFT JOIN LATERAL (SELECT x.position, x.consistency_window FROM reconcile.lookup_rule x"
	"  WHERE x.operation = f.operation AND x.kind <> 'replay_by_key' ORDER BY x.position LIMIT 1) l ON true"
	" CROSS JOIN LATERAL (SELECT (extract(epoch FROM p.late_arrival_max) * 1000000)::bigint AS late_us,"
	"  (extract(epoch FROM coalesce(l.consistency_window, p.consistency_window)) * 1000000)::bigint AS window_us) s"
	" WHERE f.may_be_sent"
	"), attempts AS ("
	" INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url,"
	"  request_hash, idempotency_key, epoch, event, dispatched_at, ended_at, window_us, late_arrival_us, gate_us, evidence)"
	" SELECT q.dispatch_id, q.action_id, q.attempts + 1, q.provider, q.provider_version, q.operation_version, q.base_url,"
	"  '', q.idempotency_key, $5, 'presume', q.submitted_at, $3, q.window_us, q.late_us, q.gate_us, q.evidence FROM presumed q"
	"), actions AS ("
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'presume', queued = false,"
	"  state = (CASE WHEN q.position IS NULL THEN 'manual_review' ELSE 'outcome_unknown' END)::reconcile.state,"
	"  attempts = a.attempts + 1, attempt_number = a.attempts + 1, dispatch_id = q.dispatch_id,"
	"  gate_us = CASE WHEN q.position IS NOT NULL THEN greatest(a.gate_us, q.gate_us) END,"
	"  eligible_at = CASE WHEN q.position IS NOT NULL THEN $3 + (greatest(a.gate_us, q.gate_us) - $4) * interval '1 microsecond' END,"
	"  lookup_position = coalesce(q.position, 0), negatives = 0, inconclusives = 0, failures = 0,"
	/* the other copy may have sent its key first: no earlier than this, on a machine whose boot is not ours */
	"  key_first_at = CASE WHEN a.idempotency_key IS NOT NULL THEN coalesce(a.key_first_at, a.submitted_at) END,"
	"  key_first_boot_us = CASE WHEN a.idempotency_key IS NOT NULL THEN coalesce(a.key_first_boot_us, 0) END,"
	"  key_first_boot = CASE WHEN a.idempotency_key IS NOT NULL THEN coalesce(a.key_first_boot, '') END,"
	"  evidence = q.evidence"
	" FROM presumed q WHERE a.action_id = q.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM presumed))"
	"), settled AS ("
	" DELETE FROM reconcile.rearming r WHERE r.action_id = ANY (ARRAY(SELECT action_id FROM free WHERE state NOT IN ('manual_review', 'safe_to_retry')))"
	"), asleep AS ("
	" UPDATE reconcile.rearming r SET due = false WHERE r.action_id = ANY (ARRAY(SELECT action_id FROM free WHERE state IN ('manual_review', 'safe_to_retry')))"
	")"
	" SELECT (SELECT action_id FROM batch ORDER BY action_id DESC LIMIT 1), (SELECT count(*) FROM batch), (SELECT count(*) FROM presumed)",
	5, {UUIDOID, INT8OID, TIMESTAMPTZOID, INT8OID, INT8OID}
};

bool
ar_store_is_known(void)
{
	return ar_statement_run(&known_statement, NULL, NULL) == 1 && ar_result_bool(0, 1);
}

void
ar_store_note_for_rearming(void)
{
	Datum		values[1] = {TimestampTzGetDatum(ar_wall_now())};

	ar_statement_run(&forget_statement, NULL, NULL);
	ar_statement_run(&note_again_statement, values, NULL);
	ar_statement_run(&note_statement, values, NULL);
}

bool
ar_store_any_noted(void)
{
	return ar_statement_run(&any_statement, NULL, NULL) == 1 && ar_result_bool(0, 1);
}

void
ar_store_presume(int64 epoch, ArPresumption *round)
{
	Datum		values[5];

	values[0] = UUIDPGetDatum(&round->after);
	values[1] = Int64GetDatum(BATCH);
	values[2] = TimestampTzGetDatum(ar_wall_now());
	values[3] = Int64GetDatum(ar_lower_now());
	values[4] = Int64GetDatum(epoch);
	ar_statement_run(&presume_statement, values, NULL);
	round->goes_on = ar_result_int64(0, 2, 0) == BATCH;
	round->count += (int) ar_result_int64(0, 3, 0);
	if (round->goes_on)
		ar_result_uuid(0, 1, &round->after);
	else
		memset(&round->after, 0, sizeof(round->after));
}
