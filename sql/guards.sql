-- What nobody can do, not even the owner of the tables.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
-- Entries go to the partition of their month; stay there whichever month it is.
SELECT reconcile.create_history_partitions(1) >= 0 AS partitions;
SELECT pg_temp.define('guards');
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(1), 'guards', '{"n": 1}');
SELECT pg_temp.stage_action(pg_temp.id(2), 'guards', 'outcome_unknown');
SELECT pg_temp.stage_attempt(pg_temp.id(102), pg_temp.id(2), 1, 'outcome_unknown');
SELECT tableoid::regclass AS monthly FROM reconcile.history WHERE action_id = pg_temp.id(1) \gset

CREATE TEMP TABLE attack (n int GENERATED ALWAYS AS IDENTITY, what text, statement text);
GRANT SELECT ON attack TO reconcile_owner;
INSERT INTO attack (what, statement) VALUES
	('an illegal step', $$UPDATE reconcile.action SET version = 2, event = 'replace', state = 'planned' WHERE action_id = pg_temp.id(1)$$),
	('a step of the engine', $$UPDATE reconcile.action SET version = 2, event = 'claim', state = 'submitted', queued = false, evidence = '{"dispatch": 1}' WHERE action_id = pg_temp.id(1)$$),
	('cancelling what may have left', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', standing = 'failed/pending', evidence = '{"reason": "x"}' WHERE action_id = pg_temp.id(2)$$),
	('an event that is none', $$UPDATE reconcile.action SET version = 2, event = 'bribe', state = 'succeeded' WHERE action_id = pg_temp.id(1)$$),
	('a verdict before delivery', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', standing = 'pending/accepted', evidence = '{"reason": "x"}' WHERE action_id = pg_temp.id(1)$$),
	('a verdict with a state that has none', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', queued = false, standing = 'confirmed/accepted', evidence = '{"reason": "x"}' WHERE action_id = pg_temp.id(1)$$),
	('a step that leaves the queue running', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', standing = 'failed/pending', evidence = '{"reason": "x"}' WHERE action_id = pg_temp.id(1)$$),
	('a step without its evidence', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', queued = false, standing = 'failed/pending', evidence = '{"reasons": "x"}' WHERE action_id = pg_temp.id(1)$$),
	('evidence that is no object', $$UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', queued = false, standing = 'failed/pending', evidence = '["reason"]' WHERE action_id = pg_temp.id(1)$$),
	('a version left out', $$UPDATE reconcile.action SET version = 3, event = 'cancel', state = 'cancelled' WHERE action_id = pg_temp.id(1)$$),
	('a version taken back', $$UPDATE reconcile.action SET version = 0, event = 'cancel', state = 'cancelled' WHERE action_id = pg_temp.id(1)$$),
	('no version', $$UPDATE reconcile.action SET version = NULL WHERE action_id = pg_temp.id(1)$$),
	('a state without a step', $$UPDATE reconcile.action SET state = 'succeeded' WHERE action_id = pg_temp.id(1)$$),
	('another payload', $$UPDATE reconcile.action SET payload = '{"n": 2}' WHERE action_id = pg_temp.id(1)$$),
	('another payload in a legal step', $$UPDATE reconcile.action SET payload = '{}', version = 2, event = 'cancel', state = 'cancelled', queued = false, standing = 'failed/pending', evidence = '{"reason": "x"}' WHERE action_id = pg_temp.id(1)$$),
	('another id', $$UPDATE reconcile.action SET action_id = pg_temp.id(9) WHERE action_id = pg_temp.id(1)$$),
	('deleting an action', $$DELETE FROM reconcile.action WHERE action_id = pg_temp.id(1)$$),
	('truncating the actions', $$TRUNCATE reconcile.action$$),
	('recording an attempt', $$INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch, dispatched_at, window_us, late_arrival_us, gate_us, evidence)
		SELECT pg_temp.id(103), action_id, 1, provider, 1, 1, 'https://guards.example', '\x', 1, now(), 0, 0, 0, '{}' FROM reconcile.action WHERE action_id = pg_temp.id(1)$$),
	('ending an attempt', $$UPDATE reconcile.attempt SET version = 2, event = 'found', state = 'succeeded', standing = 'confirmed/accepted', evidence = '{"lookup": 1}' WHERE dispatch_id = pg_temp.id(102)$$),
	('a state of an attempt without a step', $$UPDATE reconcile.attempt SET state = 'succeeded', standing = 'confirmed/accepted' WHERE dispatch_id = pg_temp.id(102)$$),
	('an earlier gate of an attempt', $$UPDATE reconcile.attempt SET gate_us = -1 WHERE dispatch_id = pg_temp.id(102)$$),
	('a version of an attempt left out', $$UPDATE reconcile.attempt SET version = 3 WHERE dispatch_id = pg_temp.id(102)$$),
	('deleting an attempt', $$DELETE FROM reconcile.attempt WHERE dispatch_id = pg_temp.id(102)$$),
	('truncating the attempts', $$TRUNCATE reconcile.attempt$$),
	('editing the history', $$UPDATE reconcile.history SET event = 'submit' WHERE action_id = pg_temp.id(1)$$),
	('editing a partition', $$UPDATE reconcile.history_default SET evidence = '{}'$$),
	('deleting history', $$DELETE FROM reconcile.history WHERE action_id = pg_temp.id(1)$$),
	('truncating the history', $$TRUNCATE reconcile.history$$),
	('truncating a partition', $$TRUNCATE reconcile.history_default$$),
	('truncating the partition of a month', 'TRUNCATE ' || :'monthly'),
	('editing the partition of a month', 'UPDATE ' || :'monthly' || ' SET event = ''submit'''),
	('truncating everything', $$TRUNCATE reconcile.action, reconcile.attempt, reconcile.history CASCADE$$);

SELECT what, pg_temp.refusal(statement) FROM attack ORDER BY n;

-- The same as the owner of the tables, who is no superuser, and with triggers of replication only.
CREATE TEMP TABLE refused AS SELECT n, what, (SELECT string_agg(r, E'\n') FROM pg_temp.refusal(statement) r) AS by_superuser FROM attack;
GRANT SELECT ON refused TO reconcile_owner;
SET ROLE reconcile_owner;
SELECT count(*) FILTER (WHERE now_refused = by_superuser) AS same, count(*) AS attacks,
	array_agg(what || ': ' || now_refused) FILTER (WHERE now_refused IS DISTINCT FROM by_superuser) AS other
FROM (SELECT what, by_superuser, (SELECT string_agg(r, E'\n') FROM pg_temp.refusal(statement) r) AS now_refused
	FROM attack JOIN refused USING (n, what)) x;
RESET ROLE;
SET session_replication_role = replica;
SELECT count(*) FILTER (WHERE now_refused = by_superuser) AS same, count(*) AS attacks,
	array_agg(what || ': ' || now_refused) FILTER (WHERE now_refused IS DISTINCT FROM by_superuser) AS other
FROM (SELECT what, by_superuser, (SELECT string_agg(r, E'\n') FROM pg_temp.refusal(statement) r) AS now_refused
	FROM attack JOIN refused USING (n, what)) x;
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(3), 'guards', '{"n": 3}') RETURNING state, standing, version;
SELECT event, to_state FROM reconcile.history WHERE action_id = pg_temp.id(3);
RESET session_replication_role;

-- Nothing of all that has left a trace.
SELECT action_id, state, standing, version, payload FROM reconcile.action WHERE provider = 'guards' ORDER BY action_id;
SELECT action_id, version, event FROM reconcile.history WHERE action_id BETWEEN pg_temp.id(1) AND pg_temp.id(9) ORDER BY 1, 2;
SELECT state, version, gate_us FROM reconcile.attempt WHERE dispatch_id = pg_temp.id(102);
ROLLBACK;
