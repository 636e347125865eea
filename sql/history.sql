-- The history: what cannot be refused, because somebody has switched the guards off, is found.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('history');
SELECT count(pg_temp.stage_action(pg_temp.id(n), 'history', 'safe_to_retry')) FROM generate_series(1, 9) n;
SELECT count(reconcile.replace(pg_temp.id(n), 'wanted')) FROM generate_series(1, 9) n;
SELECT count(reconcile.cancel(pg_temp.id(n), 'not wanted')) FROM generate_series(1, 9) n;
SELECT version, event, from_state, to_state, standing, evidence, octet_length(hash) AS bytes,
	previous_hash = coalesce(lag(hash) OVER (ORDER BY version), '\x') AS continues, recorded_at >= lag(recorded_at) OVER (ORDER BY version) AS later
FROM reconcile.history WHERE action_id = pg_temp.id(1) ORDER BY version;
SELECT count(*) AS problems FROM reconcile.verify_history() WHERE action_id <= pg_temp.id(9);

-- Every column counts in the hash.
SELECT column_changed, x.other <> (SELECT hash FROM reconcile.history WHERE action_id = pg_temp.id(1) AND version = 2) AS differs
FROM reconcile.history h, LATERAL (VALUES
	('(none)', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, to_state, standing, evidence, actor, previous_hash)),
	('action_id', reconcile.history_hash(pg_temp.id(2), version, recorded_at, attempt_number, event, from_state, to_state, standing, evidence, actor, previous_hash)),
	('version', reconcile.history_hash(action_id, 3, recorded_at, attempt_number, event, from_state, to_state, standing, evidence, actor, previous_hash)),
	('recorded_at', reconcile.history_hash(action_id, version, recorded_at + '1 microsecond', attempt_number, event, from_state, to_state, standing, evidence, actor, previous_hash)),
	('attempt_number', reconcile.history_hash(action_id, version, recorded_at, 0, event, from_state, to_state, standing, evidence, actor, previous_hash)),
	('event', reconcile.history_hash(action_id, version, recorded_at, attempt_number, 'claim', from_state, to_state, standing, evidence, actor, previous_hash)),
	('from_state', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, NULL, to_state, standing, evidence, actor, previous_hash)),
	('to_state', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, 'expired', standing, evidence, actor, previous_hash)),
	('standing', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, to_state, 'failed/pending', evidence, actor, previous_hash)),
	('evidence', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, to_state, standing, '{}', actor, previous_hash)),
	('actor', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, to_state, standing, evidence, actor || ' ', previous_hash)),
	('previous_hash', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event, from_state, to_state, standing, evidence, actor, hash)),
	-- a text that moves from one column to the next is another text
	('border', reconcile.history_hash(action_id, version, recorded_at, attempt_number, event || from_state::text, NULL, to_state, standing, evidence, actor, previous_hash))
) AS x(column_changed, other) WHERE h.action_id = pg_temp.id(1) AND version = 2 ORDER BY column_changed COLLATE "C";
-- The settings of the session do not count.
SET timezone = 'Asia/Tokyo';
SET datestyle = 'German';
SET extra_float_digits = 0;
SELECT count(*) AS problems FROM reconcile.verify_history() WHERE action_id <= pg_temp.id(9);
SET timezone = 'UTC';
SET datestyle = 'Postgres, MDY';

-- A superuser switches the guards off and edits.
ALTER TABLE reconcile.history DISABLE TRIGGER USER;
ALTER TABLE reconcile.history_default DISABLE TRIGGER USER;
SELECT format('ALTER TABLE %s DISABLE TRIGGER USER', inhrelid::regclass) FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass \gexec
ALTER TABLE reconcile.action DISABLE TRIGGER USER;
UPDATE reconcile.history SET evidence = '{"reason": "nicer"}' WHERE action_id = pg_temp.id(1) AND version = 2;
UPDATE reconcile.history SET recorded_at = recorded_at - interval '1 hour' WHERE action_id = pg_temp.id(2) AND version = 3;
DELETE FROM reconcile.history WHERE action_id = pg_temp.id(3) AND version = 2;
DELETE FROM reconcile.history WHERE action_id = pg_temp.id(4) AND version = 3;
DELETE FROM reconcile.history WHERE action_id = pg_temp.id(5) AND version = 1;
DELETE FROM reconcile.history WHERE action_id = pg_temp.id(6);
-- with a hash that fits the entry
UPDATE reconcile.history SET actor = 'somebody else', hash = reconcile.history_hash(action_id, version, recorded_at, attempt_number, event,
	from_state, to_state, standing, evidence, 'somebody else', previous_hash) WHERE action_id = pg_temp.id(7) AND version = 2;
-- the action moved without an entry
UPDATE reconcile.action SET state = 'succeeded', standing = 'confirmed/accepted', version = 4, chain_head = decode(repeat('00', 32), 'hex') WHERE action_id = pg_temp.id(8);
SELECT action_id, version, problem FROM reconcile.verify_history() WHERE action_id <= pg_temp.id(9) ORDER BY action_id, version, problem COLLATE "C";
SELECT action_id, version, problem FROM reconcile.verify_history(pg_temp.id(3)) ORDER BY 1, 2, 3;
SELECT action_id, version, problem FROM reconcile.verify_history(pg_temp.id(9)) ORDER BY 1, 2, 3;
SELECT action_id, standing, folded FROM reconcile.fold_violation() WHERE action_id <= pg_temp.id(9) ORDER BY action_id;
ROLLBACK;

-- Partitions: a month each, with their guards, and none twice.
BEGIN;
SELECT pg_temp.refusal('SELECT reconcile.create_history_partitions(' || n || ')') FROM unnest('{-1,121}'::int[]) n ORDER BY n;
SELECT reconcile.create_history_partitions(2) >= 2 AS made, reconcile.create_history_partitions(2) AS again;
SELECT count(*) >= 2 AS monthly, count(*) FILTER (WHERE tgs = '{history_append_only,history_no_truncate}') = count(*) AS all_guarded
FROM (SELECT array_agg(tgname ORDER BY tgname) FILTER (WHERE tgenabled = 'A') AS tgs FROM pg_inherits LEFT JOIN pg_trigger ON tgrelid = inhrelid
	WHERE inhparent = 'reconcile.history'::regclass GROUP BY inhrelid) x;
ROLLBACK;
