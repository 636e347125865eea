-- Following actions: where each stands, what a caller may do, what waits.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('views');
CREATE TEMP TABLE health_before AS SELECT * FROM reconcile.health;
-- An action in every state.
SELECT count(pg_temp.stage_action(pg_temp.id(n::int), 'views', s)) FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n);
SELECT state, delivery, acceptance, status, attempts, next_step_at, advice, may_repeat FROM reconcile.action_status WHERE provider = 'views' ORDER BY action_id;
SELECT operation, provider, client_reference, intent_key, submitter = session_user AS ours, artifact_id, submitted_at, since, version
FROM reconcile.action_status WHERE action_id = pg_temp.id(1);

-- unresolved: DENIED_UNRESOLVED and no other
SELECT state, last_event, why, since, uncertain_since, next_step, next_step_at, advice, evidence, version FROM reconcile.unresolved WHERE provider = 'views' ORDER BY action_id;
SELECT count(*) AS differences FROM
	(SELECT action_id FROM reconcile.action_status WHERE status = 'DENIED_UNRESOLVED') s FULL JOIN (SELECT action_id FROM reconcile.unresolved) u USING (action_id)
WHERE s.action_id IS NULL OR u.action_id IS NULL;

-- advice: a text for every state, and "do not repeat" exactly while unresolved
SELECT count(*) AS states, count(reconcile.advice(s)) AS advised,
	bool_and((reconcile.advice(s) LIKE '%do not repeat%') = (reconcile.resolved_status(pg_temp.standing_of(s)) = 'DENIED_UNRESOLVED')) AS as_the_status
FROM unnest(enum_range(NULL::reconcile.state)) s;

-- action_history: the time in a state is the time to the next entry
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(20), 'views', '{}');
SELECT reconcile.cancel(pg_temp.id(20), 'not wanted');
SELECT version, attempt_number, event, from_state, to_state, delivery, acceptance, status, time_in_state >= '0' AS stayed, evidence, actor = session_user AS actor
FROM reconcile.action_history WHERE action_id = pg_temp.id(20) ORDER BY version;

-- health: counts, and the providers that are paused
SELECT reconcile.pause('views', 'a test');
SELECT h.due - b.due AS due, h.in_flight - b.in_flight AS in_flight, h.unknown - b.unknown AS unknown, h.in_review - b.in_review AS in_review,
	h.paused_providers, h.worker_pid, h.lock_holder_pid, h.armed, h.disarmed_because IS NOT NULL AS because
FROM reconcile.health h, health_before b;

-- people's steps: what they need, when they are possible, and that doing one twice is doing it once
SELECT s AS state, pg_temp.refusal(format('SELECT reconcile.%s(pg_temp.id(%s), ''a test'')', f, n)) AS refusal
FROM unnest('{cancel,replace,look_up_now}'::text[]) f, unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n)
WHERE (f, s) NOT IN (('cancel', 'planned'), ('cancel', 'cancelled'), ('replace', 'safe_to_retry'), ('replace', 'planned'),
	('look_up_now', 'manual_review'), ('look_up_now', 'outcome_unknown'), ('look_up_now', 'reconciling'), ('look_up_now', 'delivered')) ORDER BY f, s;
SELECT pg_temp.refusal(s) FROM unnest(ARRAY[$$SELECT reconcile.cancel(pg_temp.id(99), 'x')$$, $$SELECT reconcile.cancel(pg_temp.id(1), NULL)$$,
	$$SELECT reconcile.replace(pg_temp.id(9), E' \n')$$, $$SELECT reconcile.look_up_now(NULL, 'x')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
-- looking up needs a rule to ask by, and starts where the attempts left off: the last gate, the standing as it is
SELECT pg_temp.refusal($$SELECT reconcile.look_up_now(pg_temp.id(5), 'a test')$$);
UPDATE reconcile.operation SET reference_body_path = '{ref}' WHERE operation = 'views';
INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path) VALUES ('views', 'list_by_reference', '/things?r={client_reference}', '$[*]', '$.r');
SELECT count(pg_temp.stage_attempt(pg_temp.id(100 + n), pg_temp.id(5), n, 'outcome_unknown')) AS attempts FROM generate_series(1, 2) n;
INSERT INTO reconcile.attempt SELECT (jsonb_populate_record(t, jsonb_build_object('dispatch_id', pg_temp.id(103), 'number', 3, 'gate_us', 4711))).* FROM reconcile.attempt t WHERE dispatch_id = pg_temp.id(101);
INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(30), 'client_reference', 'taken', 'intent_key', 'taken', 'standing', 'confirmed/pending', 'gate_us', 42))).*
FROM reconcile.action a WHERE action_id = pg_temp.id(5);
SELECT reconcile.look_up_now(pg_temp.id(30), 'taken'), reconcile.look_up_now(pg_temp.id(30), 'again');
SELECT state, standing, gate_us, evidence FROM reconcile.action WHERE action_id = pg_temp.id(30);
SELECT reconcile.cancel(pg_temp.id(1), 'first'), reconcile.replace(pg_temp.id(9), 'first'), reconcile.look_up_now(pg_temp.id(5), 'first');
SELECT reconcile.cancel(pg_temp.id(1), 'second'), reconcile.replace(pg_temp.id(9), 'second'), reconcile.look_up_now(pg_temp.id(5), 'second');
SELECT action_id, version, event, from_state, to_state, standing, evidence FROM reconcile.history
WHERE action_id IN (pg_temp.id(1), pg_temp.id(5), pg_temp.id(9)) ORDER BY action_id, version;
SELECT action_id, state, queued, due_at IS NOT NULL AS due, gate_us FROM reconcile.action
WHERE action_id IN (pg_temp.id(1), pg_temp.id(5), pg_temp.id(9)) ORDER BY action_id;

-- receipt
SELECT key, value FROM jsonb_each(reconcile.receipt(pg_temp.id(2))) ORDER BY key COLLATE "C";
SELECT jsonb_path_query_array(reconcile.receipt(pg_temp.id(20)), '$.state_history[*].state') AS states,
	reconcile.receipt(pg_temp.id(20))->>'chain_head' = reconcile.receipt(pg_temp.id(20))#>>'{state_history,-1,hash}' AS head_is_last;
SELECT reconcile.receipt(pg_temp.id(99)) IS NULL AS none;

-- wait: what could never come to an end is refused
SELECT pg_temp.refusal(s) FROM unnest(ARRAY[$$SELECT reconcile.wait(pg_temp.id(99), '1 ms')$$, $$SELECT reconcile.wait(pg_temp.id(20), '61 seconds')$$,
	$$SELECT reconcile.wait(pg_temp.id(20), '-1 second')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
SELECT action_id, state, status FROM reconcile.wait(pg_temp.id(8), '0');
SELECT action_id, state, status FROM reconcile.wait(pg_temp.id(3), '0');
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(21), 'views', '{"n": 21}');
SELECT pg_temp.refusal($$SELECT reconcile.wait(pg_temp.id(21), '1 ms')$$);
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pg_temp.refusal($$SELECT reconcile.wait(pg_temp.id(8), '1 ms')$$);
ROLLBACK;
