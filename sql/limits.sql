-- Limits: what pauses say and record, what a view shows of each limit, and in which words one waits.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('limits');
SELECT pg_temp.define('other');
CREATE FUNCTION pg_temp.worded(said text) RETURNS text LANGUAGE sql STABLE AS $$ SELECT replace($1, 'by ' || session_user, 'by USER') $$;

-- who is to be paused, and why
SELECT pg_temp.refusal(s) FROM unnest(ARRAY[$$SELECT reconcile.pause('nobody', 'x')$$, $$SELECT reconcile.pause(operation => 'nothing', reason => 'x')$$,
	$$SELECT reconcile.pause('limits', 'x', 'limits')$$, $$SELECT reconcile.pause('limits')$$, $$SELECT reconcile.pause(operation => 'limits', reason => E' \n')$$,
	$$SELECT reconcile.pause()$$, $$SELECT reconcile.resume('nobody')$$, $$SELECT reconcile.resume(operation => 'nothing')$$,
	$$SELECT reconcile.resume('limits', 'limits')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;

-- pausing twice keeps the first reason, resuming twice is resuming once, and what else is paused stays so
CREATE TEMP VIEW pauses AS SELECT scope, name, reason, paused_by = session_user AS by_me, resumed_at IS NOT NULL AS over, resumed_by = session_user AS by_me_too
	FROM reconcile.pause_period ORDER BY pause_id;
SELECT reconcile.pause('limits', 'first'), reconcile.pause(operation => 'limits', reason => 'first'), reconcile.pause(reason => 'first');
SELECT reconcile.pause('limits', 'second'), reconcile.pause(operation => 'limits', reason => 'second'), reconcile.pause(reason => 'second');
SELECT * FROM pauses;
SELECT paused_reason, paused_by = session_user AS by_me, version FROM reconcile.provider WHERE provider = 'limits';
SELECT reconcile.resume(), reconcile.resume();
SELECT * FROM pauses;
SELECT reconcile.resume('limits'), reconcile.resume('limits'), reconcile.resume(operation => 'limits'), reconcile.resume(operation => 'limits');
SELECT * FROM pauses;
SELECT paused_at, paused_reason, paused_by FROM reconcile.provider WHERE provider = 'limits';
-- an UPDATE by hand is recorded too
UPDATE reconcile.provider SET paused_at = now(), paused_reason = 'by hand' WHERE provider = 'other';
UPDATE reconcile.provider SET paused_at = NULL, paused_reason = NULL WHERE provider = 'other';
SELECT count(*) AS recorded, bool_and(over) AS over FROM pauses WHERE reason = 'by hand';

-- what the view shows, and what one waits for: the first that holds
CREATE TEMP VIEW shown AS SELECT in_flight, max_in_flight AS most, uncertain, ambiguity_budget AS budget, breaker, failures, pg_temp.worded(sends_when) AS sends_when
	FROM reconcile.provider_limits WHERE provider = 'limits';
CREATE TEMP VIEW step AS SELECT pg_temp.worded(next_step) AS next_step, next_step_at IS NOT NULL AS at FROM reconcile.unresolved WHERE action_id = pg_temp.id(1);
SELECT pg_temp.stage_action(pg_temp.id(1), 'limits', 'planned') IS NOT NULL AS staged;
SELECT * FROM shown;
SELECT * FROM step;
SELECT count(pg_temp.stage_action(pg_temp.id(10 + n), 'limits', 'submitted')) FROM generate_series(1, 2) n;
SELECT count(pg_temp.stage_action(pg_temp.id(20 + n::integer), 'limits', s)) FROM unnest('{outcome_unknown,reconciling,manual_review,delivered,succeeded}'::reconcile.state[]) WITH ORDINALITY AS x(s, n);
UPDATE reconcile.provider SET max_in_flight = 2 WHERE provider = 'limits';
SELECT * FROM shown;
SELECT * FROM step;
UPDATE reconcile.provider SET ambiguity_budget = 5 WHERE provider = 'limits';
SELECT * FROM shown;
SELECT * FROM step;
INSERT INTO reconcile.breaker (provider, failures, trips, open_until_us, opened_at, open_until, reason) VALUES ('limits', 10, 1, 1, '2026-01-01', '2026-01-01', 'answer 503');
SELECT * FROM shown;
SELECT * FROM step;
UPDATE reconcile.breaker SET open_until = '2126-01-01', open_until_us = 100000000000000;
SELECT * FROM shown;
SELECT * FROM step;
SELECT reconcile.pause('limits', 'why not');
SELECT * FROM shown;
SELECT * FROM step;
SELECT reconcile.pause(reason => 'the end');
SELECT * FROM shown;
SELECT * FROM step;
SELECT reconcile.resume();
-- who resumes a provider lets a probe go
SELECT reconcile.resume('limits');
SELECT breaker, probe_at <= clock_timestamp() AS now FROM reconcile.provider_limits WHERE provider = 'limits';
DELETE FROM reconcile.breaker;
UPDATE reconcile.provider SET ambiguity_budget = NULL, max_in_flight = 100, max_rate = 2.5 WHERE provider = 'limits';
SELECT * FROM step;
SELECT reconcile.pause(operation => 'limits', reason => 'a broken template');
SELECT paused_operations FROM reconcile.provider_limits WHERE provider = 'limits';
SELECT * FROM step;
ROLLBACK;
