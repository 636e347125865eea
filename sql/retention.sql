-- What leaves, what stays, and what is still known of what has left.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
-- An action that took its only step so long ago, as a restored dump would bring it.
CREATE FUNCTION pg_temp.stage(number integer, state reconcile.state, age interval DEFAULT '100 days', operation text DEFAULT 'retention',
	intent_key text DEFAULT NULL, ordering_key text DEFAULT NULL, artifact_id text DEFAULT NULL, depends_on uuid[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	at timestamptz := now() - $3;
	hash bytea := reconcile.history_hash(pg_temp.id($1), 1, at, NULL, 'submit', NULL, $2, pg_temp.standing_of($2), '{"submit": {}}', 'test', '\x');
BEGIN
	INSERT INTO reconcile.action (action_id, operation, payload, intent_key, ordering_key, artifact_id, depends_on, client_reference, provider, submitter, submitted_at, fingerprint,
			state, standing, queued, due_at, version, event, evidence, actor, recorded_at, transaction, chain_head)
	SELECT pg_temp.id($1), o.operation, jsonb_build_object('n', $1), $5, $6, $7, $8, 'reference-' || $1, o.provider, session_user, at,
			reconcile.intent_fingerprint('POST', o.path, jsonb_build_object('n', $1)), $2, pg_temp.standing_of($2), $2 = 'planned', at, 1, 'submit', '{"submit": {}}', 'test', at, '3', hash
	  FROM reconcile.operation o WHERE o.operation = $4;
	INSERT INTO reconcile.history (action_id, version, recorded_at, event, to_state, standing, evidence, actor, transaction, previous_hash, hash)
		VALUES (pg_temp.id($1), 1, at, 'submit', $2, pg_temp.standing_of($2), '{"submit": {}}', 'test', '3', '\x', hash);
END $$;
CREATE FUNCTION pg_temp.stage_try(action integer, number integer, state reconcile.state, idempotency_key text DEFAULT NULL, age interval DEFAULT '100 days', late interval DEFAULT '0') RETURNS void LANGUAGE sql AS $$
	INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, idempotency_key,
		request_hash, epoch, dispatched_at, ended_at, window_us, late_arrival_us, gate_us, state, standing, event, evidence, version)
	SELECT gen_random_uuid(), pg_temp.id($1), $2, a.provider, 1, 1, 'https://elsewhere.example', $4, '\x00', 1, now() - $5, now() - $5,
		(extract(epoch FROM $6) * 1000000)::bigint, 0, 0, $3, pg_temp.standing_of($3), 'claim', '{}', 1
	  FROM reconcile.action a WHERE a.action_id = pg_temp.id($1)
$$;
-- The last digits of ids.
CREATE FUNCTION pg_temp.numbers(ids uuid[]) RETURNS integer[] LANGUAGE sql AS $$
	SELECT array_agg(right(i::text, 12)::integer ORDER BY i) FROM unnest($1) i $$;
CREATE FUNCTION pg_temp.step(batch_size integer DEFAULT 100, after uuid DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT format('archived %s, forgotten %s, %s', archived, forgotten, CASE WHEN done THEN 'done' ELSE 'there is more' END) FROM reconcile.maintain_step($2, NULL, NULL, $1) $$;
SELECT pg_temp.define('retention'), pg_temp.define('other'), pg_temp.define('exempt');
UPDATE reconcile.operation SET artifact_path = '$.id', headers = '{"Key": "{idempotency_key}"}', key_lifetime = '30 days', key_lifetime_source = 'documented' WHERE operation = 'other';

-- One of each state, and one of each thing that is not over yet.
SELECT count(pg_temp.stage(n::integer, s)) FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x (s, n);
SELECT count(pg_temp.stage(n, 'succeeded')) FROM generate_series(20, 39) n;
-- Without a rule nothing leaves.
SELECT count(*), because FROM reconcile.kept_because(ARRAY(SELECT action_id FROM reconcile.action WHERE provider = 'retention')) GROUP BY because ORDER BY because COLLATE "C";
SELECT pg_temp.step();
INSERT INTO reconcile.retention_rule (keep_finished) VALUES ('90 days');
INSERT INTO reconcile.retention_rule (provider, keep_finished) VALUES ('exempt', NULL);
SELECT provider, keep_finished, keep_receipt, keep_archived FROM reconcile.provider_retention WHERE provider IN ('retention', 'exempt') ORDER BY 1;
SELECT pg_temp.refusal(s) FROM (VALUES (1, $$INSERT INTO reconcile.retention_rule (keep_finished) VALUES ('1 year')$$),
	(2, $$INSERT INTO reconcile.retention_rule (provider, keep_finished) VALUES ('nobody', '1 year')$$),
	(3, $$UPDATE reconcile.retention_rule SET keep_finished = '1 hour'$$),
	(4, $$UPDATE reconcile.retention_rule SET keep_archived = '-1 day'$$)) x (n, s) ORDER BY n;

-- What keeps an action. Each is final and old enough.
SELECT pg_temp.stage_try(21, 1, 'outcome_unknown'), pg_temp.stage_try(21, 2, 'succeeded');
SELECT pg_temp.stage_try(22, 1, 'delivered');
SELECT pg_temp.stage_try(23, 1, 'outcome_unknown', 'key 23'), pg_temp.stage_try(23, 2, 'succeeded', 'key 23');	-- one of two requests under one key: it goes
SELECT pg_temp.stage_try(24, 1, 'succeeded', late => '200 days');
INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, kind, asked_at, asked_us) VALUES (gen_random_uuid(), pg_temp.id(25), 1, 1, 'list_scan', now(), 0);
INSERT INTO reconcile.inbox (provider, says, reference, evidence, action_id) VALUES ('retention', 'executed', 'reference-26', '{}', pg_temp.id(26));
INSERT INTO reconcile.incident (kind, provider, operation, action_id, details) VALUES ('duplicate', 'retention', 'retention', pg_temp.id(27), '{}');
INSERT INTO reconcile.incident (kind, provider, operation, action_id, details, closed_at, closed_by, closing_reason)
	VALUES ('duplicate', 'retention', 'retention', pg_temp.id(28), '{}', now(), 'test', 'closed: it goes');
SELECT pg_temp.stage(40, 'planned', depends_on => ARRAY[pg_temp.id(29)]);
SELECT pg_temp.stage(41, 'safe_to_retry', depends_on => ARRAY[pg_temp.id(30)]);
SELECT pg_temp.stage(42, 'cancelled', depends_on => ARRAY[pg_temp.id(31)]);	-- both go
SELECT items FROM reconcile.bulk_preview('look_up_now', ARRAY[pg_temp.id(32)]);
SELECT items FROM reconcile.bulk_preview('look_up_now', ARRAY[pg_temp.id(33)]);
UPDATE reconcile.bulk_batch SET applied_at = now(), applied_by = 'test', reason = 'test' WHERE batch = (SELECT max(batch) FROM reconcile.bulk_batch);
SELECT pg_temp.stage(43, 'succeeded', '80 days'), pg_temp.stage(44, 'succeeded', operation => 'exempt');
SELECT pg_temp.stage(45, 'rejected', operation => 'other');
-- The key of this one is alive for ten days more.
INSERT INTO reconcile.retention_rule (provider, keep_finished) VALUES ('other', '10 days');
SELECT pg_temp.stage(46, 'succeeded', '20 days', 'other'), pg_temp.stage_try(46, 1, 'succeeded', 'key 46', '20 days');
ALTER TABLE reconcile.action DISABLE TRIGGER USER;
UPDATE reconcile.action SET key_first_at = recorded_at WHERE action_id IN (pg_temp.id(45), pg_temp.id(46));
UPDATE reconcile.action SET gate_us = 1 WHERE action_id = pg_temp.id(20);
UPDATE reconcile.action SET chain_head = '\x0000000000000000000000000000000000000000000000000000000000000000' WHERE action_id = pg_temp.id(34);
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_1_prepare;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_2_guard;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_3_inserted;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_3_updated;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_no_truncate;
-- Ordering keys: of each, from the lowest id on.
SELECT pg_temp.stage(50, 'rejected', ordering_key => 'a'), pg_temp.stage(51, 'succeeded', ordering_key => 'a'), pg_temp.stage(52, 'planned', ordering_key => 'a');
SELECT pg_temp.stage(53, 'succeeded', ordering_key => 'b'), pg_temp.stage(54, 'rejected', ordering_key => 'b');
SELECT pg_temp.stage(55, 'rejected', ordering_key => 'c'), pg_temp.stage(56, 'succeeded', ordering_key => 'c');
SELECT pg_temp.stage(57, 'succeeded', ordering_key => 'd');

SELECT pg_temp.numbers(array_agg(action_id)) AS actions, because FROM reconcile.kept_because(ARRAY(SELECT action_id FROM reconcile.action WHERE provider IN ('retention', 'other', 'exempt')))
GROUP BY because ORDER BY because COLLATE "C" NULLS FIRST;
SAVEPOINT canary;
-- The newest success of an operation that tests its lookups by it.
INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path, canary) VALUES ('retention', 'list_by_reference', '/things?r={client_reference}', '$[*]', '$.r', 'newest');
SELECT because FROM reconcile.kept_because(ARRAY[pg_temp.id(57)]);
ROLLBACK TO canary;

-- In steps, as maintain() takes them; what stays, stays as it was.
CREATE TEMP TABLE receipt AS SELECT action_id, reconcile.receipt(action_id) FROM reconcile.action WHERE provider = 'retention';
CREATE TEMP TABLE before AS SELECT * FROM reconcile.action WHERE provider IN ('retention', 'other', 'exempt');
SELECT pg_temp.step(10), pg_temp.step();
SELECT pg_temp.numbers(array_agg(action_id)) AS archived FROM reconcile.archived_action;
-- The first of the key c is gone, so its last may go too.
SELECT pg_temp.step(), pg_temp.step();
SELECT count(*) AS different FROM before b FULL JOIN reconcile.action a USING (action_id) WHERE to_jsonb(a) <> to_jsonb(b)
	OR b.action_id IS NULL AND a.provider IN ('retention', 'other', 'exempt')
	OR a.action_id IS NULL AND NOT EXISTS (SELECT FROM reconcile.archived_action x WHERE x.action_id = b.action_id);
SELECT count(*) AS left_behind FROM reconcile.archived_action x WHERE EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = x.action_id)
	OR EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = x.action_id) OR EXISTS (SELECT FROM reconcile.lookup k WHERE k.action_id = x.action_id);
SELECT pg_temp.numbers(array_agg(action_id)) AS tampered_with FROM reconcile.verify_history() WHERE action_id <= pg_temp.id(99);

-- What is known of what has left.
SELECT a.state, a.status, a.attempts, a.advice, a.may_repeat, a.version, a.archived_at = now() AS archived FROM reconcile.action_status a WHERE a.action_id = pg_temp.id(23);
SELECT reconcile.receipt(pg_temp.id(23)) - '{archived_at,chain_head,intent_fingerprint}'::text[] AS receipt;
SELECT count(*) AS kept_copies, count(*) FILTER (WHERE NOT EXISTS (SELECT FROM reconcile.verify_receipt(r.receipt))) AS genuine FROM receipt r JOIN reconcile.archived_action USING (action_id);
SELECT pg_temp.numbers(array_agg(action_id)) AS of_those_here FROM receipt r WHERE EXISTS (SELECT FROM reconcile.verify_receipt(r.receipt));
SELECT what, v.version, v.problem FROM receipt r CROSS JOIN LATERAL (VALUES
	('a word changed', jsonb_set(r.receipt, '{state_history,0,actor}', '"somebody else"')),
	('an entry left out', jsonb_set(r.receipt, '{state_history}', '[]')),
	('another action', jsonb_set(r.receipt, '{operation_id}', to_jsonb(pg_temp.id(99))))) x (what, changed)
	CROSS JOIN LATERAL reconcile.verify_receipt(changed) v WHERE r.action_id = pg_temp.id(23) ORDER BY what, v.problem COLLATE "C";

-- Nobody changes the archive, not even its owner; and nothing leaves but by the two functions, which decide by themselves.
SELECT pg_temp.refusal(s) FROM (VALUES (1, $$UPDATE reconcile.archived_action SET state = 'succeeded'$$), (2, $$DELETE FROM reconcile.archived_action$$),
	(3, $$TRUNCATE reconcile.archived_action$$), (4, $$DELETE FROM reconcile.action WHERE action_id = pg_temp.id(54)$$), (5, $$DELETE FROM reconcile.history WHERE action_id = pg_temp.id(54)$$),
	(6, $$INSERT INTO reconcile.archived_action SELECT (x).* FROM (SELECT x FROM reconcile.archived_action x LIMIT 1) y$$)) x (n, s) ORDER BY n;
SELECT reconcile.let_go(ARRAY(SELECT action_id FROM reconcile.action WHERE action_id <= pg_temp.id(99))) AS gone,
	reconcile.let_archived_go(ARRAY(SELECT action_id FROM reconcile.archived_action)) AS forgotten;
-- A trigger of somebody's cannot use the moment in which others leave.
SAVEPOINT trick;
SELECT pg_temp.stage(60, 'succeeded');
CREATE FUNCTION pg_temp.trick() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM reconcile.history WHERE action_id = pg_temp.id(52); RETURN NULL; END $$;
CREATE TRIGGER trick AFTER DELETE ON reconcile.action FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.trick();
SELECT pg_temp.refusal($$SELECT reconcile.let_go(ARRAY[pg_temp.id(60)])$$);
ROLLBACK TO trick;

-- The same again.
SELECT pg_temp.stage(61, 'succeeded', intent_key => 'order 61', artifact_id => 'artifact-61'), pg_temp.stage(62, 'cancelled', intent_key => 'order 62');
UPDATE reconcile.retention_rule SET keep_receipt = true WHERE provider IS NULL;
SELECT pg_temp.step();
SELECT action_id, state, status, joined, may_repeat FROM reconcile.submit('retention', '{"n": 61}', 'order 61');
SELECT action_id, state, joined FROM reconcile.submit('retention', '{"n": 62}', 'order 62');
SELECT count(*) AS joined_submissions FROM reconcile.joined_submission WHERE action_id = pg_temp.id(61);
SELECT pg_temp.refusal(s) FROM (VALUES (1, $$SELECT reconcile.submit('retention', '{"n": 0}', 'order 61')$$),
	(2, $$INSERT INTO reconcile.action (operation, payload, intent_key) VALUES ('retention', '{"n": 61}', 'order 61')$$),
	(3, $$INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(61), 'retention', '{"n": 61}')$$),
	(4, $$SELECT reconcile.submit('retention', '{"n": "new"}', depends_on => ARRAY[pg_temp.id(61)])$$),
	(5, $$SELECT reconcile.cancel(pg_temp.id(61), 'too late')$$), (6, $$SELECT reconcile.resolve(pg_temp.id(61), 'accepted', 'too late')$$),
	(7, $$DELETE FROM reconcile.operation WHERE operation = 'retention'$$)) x (n, s) ORDER BY n;
UPDATE reconcile.operation SET reference_is_global = true WHERE operation = 'retention';
SELECT pg_temp.refusal($$SELECT reconcile.submit('retention', '{"n": "new"}', client_reference => 'reference-61')$$);
SELECT jsonb_path_query_array(reconcile.receipt(pg_temp.id(61)), '$.state_history[*].state') AS whole_receipt, count(*) AS problems
FROM reconcile.verify_receipt(reconcile.receipt(pg_temp.id(61)));
SELECT state, status FROM reconcile.wait(pg_temp.id(61), '1 second');
SELECT reconcile.redact(pg_temp.id(61), 'there is nothing');

-- What is said late: kept with the action that it is about, and an incident if it speaks against it.
SELECT pg_temp.stage(63, 'rejected'), pg_temp.step();
SELECT n, said, c.action_id, c.result FROM (VALUES
	(1, 'executed', 'reference-61', NULL), (2, 'executed', 'reference-61', 'artifact-61'), (3, 'executed', 'reference-61', 'artifact-62'),
	(4, 'rejected', 'reference-61', NULL), (5, 'executed', 'reference-62', NULL), (6, 'executed', 'reference-63', NULL), (7, 'accepted', 'reference-63', NULL),
	(8, 'executed', NULL, 'artifact-61')) x (n, said, reference, artifact)
CROSS JOIN LATERAL reconcile.take_in('retention', NULL, said, reference, artifact, now(), '{}') c ORDER BY n;
SELECT kind, action_id, details - '{inbox_id,occurred_at,archived_at}'::text[] AS details FROM reconcile.incident WHERE provider = 'retention' AND action_id >= pg_temp.id(60) ORDER BY action_id, kind COLLATE "C";
SELECT count(*) AS unmatched FROM reconcile.unmatched_event WHERE provider = 'retention';
SELECT result, state, status FROM reconcile.confirm('reference-61', provider => 'retention');
-- Said before it left, and applied by the engine afterwards.
INSERT INTO reconcile.inbox (provider, says, reference, evidence, action_id) VALUES ('retention', 'executed', 'reference-61', '{}', pg_temp.id(61));
SELECT reconcile.apply_inbox_row(inbox_id) FROM reconcile.inbox WHERE action_id = pg_temp.id(61) AND applied_at IS NULL;

-- What leaves the archive too: by a rule, and not before its incidents are closed.
SAVEPOINT kept;
ALTER TABLE reconcile.archived_action DISABLE TRIGGER USER;
UPDATE reconcile.archived_action SET archived_at = now() - interval '2 years' WHERE action_id IN (pg_temp.id(57), pg_temp.id(61));
ALTER TABLE reconcile.archived_action ENABLE ALWAYS TRIGGER archived_append_only;
SELECT pg_temp.step();
UPDATE reconcile.retention_rule SET keep_archived = '1 year' WHERE provider IS NULL;
SELECT pg_temp.step();
SELECT count(reconcile.close_incident(incident_id, 'looked into')) FROM reconcile.incident WHERE action_id = pg_temp.id(61);
SELECT pg_temp.step();
SELECT count(*) FROM reconcile.action_status WHERE action_id IN (pg_temp.id(57), pg_temp.id(61));
SELECT joined FROM reconcile.submit('retention', '{"n": 61}', 'order 61');
ROLLBACK TO kept;

-- Arguments, and where it cannot run.
SELECT pg_temp.refusal(format('SELECT reconcile.maintain_begin(%L, %L)', d, b)) FROM (VALUES ('-1 s', 1), ('2 days', 1), (NULL, 1), ('1 s', 0), ('1 s', 10001)) x (d, b);
SAVEPOINT call;
\set SHOW_CONTEXT never
CALL reconcile.maintain();
ROLLBACK TO call;
-- Without pg_cron.
SELECT pg_temp.refusal('SELECT reconcile.schedule_jobs()');
SELECT pg_temp.refusal('SELECT reconcile.unschedule_jobs()');
ROLLBACK;
