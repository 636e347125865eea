-- What arm() notes, and what arming_summary says beforehand. All in one transaction, which no engine sees.
BEGIN;
SELECT plan(24);

CREATE FUNCTION pg_temp.summary() RETURNS SETOF text LANGUAGE sql AS
	$$ SELECT format('%s %s: %s %s', armed, operation, becomes, actions) FROM reconcile.arming_summary ORDER BY 1 $$;

SELECT throws_ok($$SELECT reconcile.arm(' ')$$, '22023', NULL, 'a reason is required');
SELECT is_empty('SELECT pg_temp.summary()', 'an empty database has nothing to be told of');
SELECT lives_ok($$SELECT reconcile.arm('the first time')$$, 'an empty database is armed');
SELECT is(disarmed_because, NULL, 'which is no arming anew') FROM reconcile.arming;
SELECT is_empty('TABLE reconcile.rearming', 'and notes nothing');

INSERT INTO reconcile.provider (provider, base_url, allow_http, allow_private_addresses, consistency_window, late_arrival_max)
	VALUES ('p', 'http://127.0.0.1:9', true, true, '1 hour', '1 minute');
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path, artifact_path, headers, key_lifetime, key_lifetime_source) VALUES
	('asked', 'p', '/asked', '{ref}', '$.id', '{}', NULL, NULL), ('mute', 'p', '/mute', '{ref}', '$.id', '{}', NULL, NULL),
	('by_key', 'p', '/by_key', '{ref}', '$.id', '{"Idempotency-Key": "{idempotency_key}"}', '1 day', 'documented');
INSERT INTO reconcile.lookup_rule (operation, position, kind, path, items_path, reference_path)
	VALUES ('asked', 1, 'list_by_reference', '/asked?ref={client_reference}', '$.data[*]', '$.ref');
INSERT INTO reconcile.lookup_rule (operation, position, kind) VALUES ('by_key', 1, 'replay_by_key');
SELECT count(s.*) FROM (VALUES ('asked', 1, NULL), ('asked', 2, now() + interval '1 day'), ('mute', 1, NULL), ('mute', 2, now() + interval '1 day'), ('by_key', 1, NULL)) v (operation, n, not_before)
	CROSS JOIN LATERAL reconcile.submit(v.operation, jsonb_build_object('n', v.n), not_before => v.not_before) s;
SELECT count(*) FROM reconcile.submit('asked', '{"held": true}', hold => true);

SELECT results_eq('SELECT pg_temp.summary()', ARRAY['t asked: held 1', 't asked: sent when due 2', 't by_key: sent when due 1', 't mute: sent when due 2'],
	'what was recorded while it was armed is sent');
SELECT lives_ok($$SELECT reconcile.arm('again')$$, 'an armed database is armed again');
SELECT is_empty('TABLE reconcile.rearming', 'which notes nothing');
SELECT is(disarmed_because, NULL, 'for it was not disarmed') FROM reconcile.arming;

UPDATE reconcile.arming SET timeline = timeline + 1;
SELECT is(armed, false, 'on another timeline it is disarmed') FROM reconcile.engine();
SELECT results_eq('SELECT pg_temp.summary()', ARRAY['f asked: looked up, then held 1', 'f asked: looked up, then sent 1', 'f asked: sent when due 1',
	'f by_key: handed to a person 1', 'f mute: handed to a person 1', 'f mute: sent when due 1'], 'and tells what arming it will do');
SELECT lives_ok($$SELECT reconcile.arm('promoted')$$, 'it is armed anew');
SELECT is(disarmed_because, 'it was armed on another timeline: it has been restored or promoted since', 'and keeps why it was not') FROM reconcile.arming;
SELECT results_eq($$SELECT count(*), bool_and(due) FROM reconcile.rearming$$, 'VALUES (6::bigint, true)', 'all that was there is noted');
SELECT results_eq('SELECT pg_temp.summary()', ARRAY['t asked: looked up, then held 1', 't asked: looked up, then sent 1', 't asked: sent when due 1',
	't by_key: handed to a person 1', 't mute: handed to a person 1', 't mute: sent when due 1'], 'the same is to come now');
SELECT count(*) FROM reconcile.submit('asked', '{"n": 3}');
SELECT is_empty($$SELECT FROM reconcile.rearming r JOIN reconcile.action a USING (action_id) WHERE a.payload = '{"n": 3}'$$, 'what comes later is not noted');
SELECT cmp_ok(reconcile.window_open_until(action_id), '>', clock_timestamp() + interval '55 minutes', 'what is noted has a window that begins with the arming')
	FROM reconcile.action WHERE payload = '{"n": 1}' AND operation = 'asked';
SELECT is(reconcile.window_open_until(action_id), NULL, 'what is not has none') FROM reconcile.action WHERE payload = '{"n": 3}';

-- Questions that a dump has brought along.
INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, position, kind, asked_at, asked_us)
	SELECT gen_random_uuid(), action_id, 1, 4711, 1, 'list_by_reference', now(), 1 FROM reconcile.action LIMIT 1;
DELETE FROM reconcile.arming;
SELECT lives_ok($$SELECT reconcile.arm('restored')$$, 'a restored dump is armed');
SELECT is(epoch, 4712::bigint, 'its epochs come after those of the original') FROM reconcile.arming;
SELECT is(disarmed_because, 'it was never armed, or is a restored copy', 'and what it holds is not its own') FROM reconcile.arming;

SET SESSION AUTHORIZATION DEFAULT;
CREATE ROLE arming_reader IN ROLE reconcile_reader;
CREATE ROLE arming_submitter IN ROLE reconcile_submitter;
SET ROLE arming_reader;
SELECT isnt_empty('SELECT * FROM reconcile.arming_summary', 'a reader is told');
SELECT isnt_empty('SELECT * FROM reconcile.rearming', 'and sees what is left to be dealt with');
SET ROLE arming_submitter;
SELECT throws_ok('SELECT * FROM reconcile.arming_summary', '42501', NULL, 'a submitter is not');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
