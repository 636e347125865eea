-- Events: what is read from them, how a source is defined by a profile, and what an unsigned one counts for.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers

-- what can be signed
SELECT t, reconcile.signed_text_is_valid(t) FROM unnest(ARRAY['body', '{body}', '{timestamp}.{body}', 'v0:{timestamp}:{body}', '{id}.{timestamp}.{body}', '{body}{body}', '{body', '{secret}{body}', '{timestamp}']) t;
-- a condition holds if it finds something that is neither false nor null
SELECT c, reconcile.condition_holds('{"a": 1, "f": false, "n": null, "z": 0, "s": "", "l": [false, 2]}', c::jsonpath) FROM unnest(ARRAY[
	'$.a', '$.b', '$.f', '$.n', '$.z', '$.s', '$.l', '$.l[0]', '$.l[*]', '$.a == 1', '$.a == 2', '$ ? (@.a == 1)', '$ ? (@.a == 2)', '$.s.double()', 'strict $.b']) c;
-- text: the first scalar, digit for digit
SELECT p, reconcile.text_at('{"i": 12345678901234567890123, "d": 1.50, "t": "x", "b": true, "n": null, "e": " ", "o": {"x": 1}, "l": [{}, 7]}', p::jsonpath, 30)
FROM unnest('{$.i,$.d,$.t,$.b,$.n,$.e,$.o,$.l[*],$.z}'::text[]) p;
SELECT reconcile.text_at('{"t": "abc"}', '$.t', 2) AS "longer than that";
-- times
SELECT t, reconcile.event_time(t, '2030-01-01 00:00:00+00') FROM unnest(ARRAY['1700000000', '1700000000.25', '1700000000250', '2023-11-14T22:13:20Z', '2023-11-14T22:13:20.5+02:00', '2023-11-14T22:13:20', '2023-11-14',
	'1900000000', 'now', 'infinity', 'tomorrow', '2023-13-01', '14.11.2023', '-5', '']) t;
-- headers
SELECT n, reconcile.event_header('{"Content-Type": "text/plain", "X-One": ["1"], "X-Two": ["1", "2"], "X-Three": 3, "x-four": "a", "X-FOUR": "b"}', n) FROM unnest('{content-type,CONTENT-TYPE,x-one,x-none}'::text[]) n;
SELECT n, pg_temp.refusal(format('SELECT reconcile.event_header(%L, %L)', '{"X-Two": ["1", "2"], "X-Three": 3, "x-four": "a", "X-FOUR": "b"}', n)) FROM unnest('{X-Two,X-Three,X-Four}'::text[]) n;
SELECT pg_temp.refusal('SELECT reconcile.event_header(''[]'', ''x'')');

BEGIN;
-- A profile with events.
CREATE TEMP TABLE given AS SELECT $profile${
	"profile": "shop", "profile_version": 1, "provider": {"base_url": "https://shop.example"},
	"operations": {"shop.order": {"path": "/orders", "reference_body_path": ["ref"], "artifact_path": "$.id", "example": {}}},
	"events": {"scheme": "hmac", "secret": "shop_hook", "signature_header": "X-Signature", "signature_encoding": "hex", "signed_text": "{body}", "event_id_path": "$.id",
		"rules": [{"condition": "$ ? (@.type == \"paid\")", "says": "accepted", "reference_path": "$.ref", "occurred_path": "$.at", "because": "the manual"},
			{"condition": "$ ? (@.type == \"refused\")", "says": "rejected", "reference_path": "$.ref", "because": "the manual"}]},
	"facts": [{"about": "events.scheme", "says": "It is signed so.", "source": "https://shop.example/hooks", "read_on": "2100-01-01", "mark": "documented"}]
}$profile$::jsonb AS profile;
CREATE FUNCTION pg_temp.profile(version integer, path text DEFAULT NULL, value jsonb DEFAULT NULL) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_set(CASE WHEN $2 IS NULL THEN profile WHEN $3 IS NULL THEN profile #- $2::text[] ELSE jsonb_set(profile, $2::text[], $3) END, '{profile_version}', to_jsonb($1)) FROM given
$$;
SELECT path, value, pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.profile(1, path, value))) AS refusal FROM (VALUES
	(1, '{events}', '[]'::jsonb), (2, '{events,scheme}', NULL), (3, '{events,rules}', NULL), (4, '{events,rules}', '{}'), (5, '{events,secrets}', '"x"'), (6, '{events,rules,0,provider}', '"x"'),
	(7, '{events,rules,1,says}', NULL), (8, '{events,rules,1,condition}', '"$."'), (10, '{events,signed_text}', '"body"'), (11, '{events,secret}', NULL),
	(12, '{events,rules,0,says}', '"maybe"'), (13, '{events,rules,0,reference_path}', NULL), (14, '{facts,0,about}', '"event.scheme"'), (15, '{events,tolerance}', '"a while"')) AS x(n, path, value) ORDER BY n;
SELECT * FROM reconcile.define_provider(pg_temp.profile(1));
SELECT changed FROM reconcile.define_provider(pg_temp.profile(1));
SELECT to_jsonb(s) - 'provider' AS source FROM reconcile.event_source s;
SELECT position, condition, says, reference_path, occurred_path FROM reconcile.event_rule ORDER BY position;
-- What is different here stays over new versions; a rule that is gone goes.
SELECT changed FROM reconcile.define_provider(pg_temp.profile(2, '{events,rules,1}'), '{"events": {"secret": "ours", "account_path": "$.account", "account": "a1"}}');
SELECT changed FROM reconcile.define_provider(pg_temp.profile(3));
SELECT secret, account FROM reconcile.event_source;
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L, %L)', pg_temp.profile(4), o)) FROM unnest('{"{\"events\": {\"rules\": []}}","{\"events\": 1}"}'::jsonb[]) o;
-- A profile without events leaves what there is.
SELECT changed FROM reconcile.define_provider(pg_temp.profile(5, '{events}') #- '{facts}', '{}');
SELECT count(*) FROM reconcile.event_source;
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L, %L)', pg_temp.profile(6, '{events}') #- '{facts}', '{"events": {"secret": "ours"}}'));
-- The secret cannot be read here, whatever is sent.
SELECT pg_temp.refusal($$SELECT * FROM reconcile.receive_event('shop', '{"X-Signature": "00"}', '{}')$$);
SELECT pg_temp.refusal($$SELECT * FROM reconcile.receive_event('nobody', '{}', '{}')$$);

-- Without a signature an event counts as much as its sender.
SELECT pg_temp.define('bare');
UPDATE reconcile.operation SET reference_body_path = '{ref}', reference_is_global = true WHERE operation = 'bare';
INSERT INTO reconcile.event_source (provider, scheme, event_id_path) VALUES ('bare', 'none', '$.id');
INSERT INTO reconcile.event_rule (provider, position, condition, says, reference_path, artifact_path, because) VALUES ('bare', 1, '$.ok', 'executed', '$.ref', '$.thing', 'a test');
CREATE ROLE regress_events_one LOGIN; GRANT reconcile_submitter TO regress_events_one;
CREATE ROLE regress_events_two LOGIN; GRANT reconcile_submitter TO regress_events_two;
CREATE ROLE regress_events_operator LOGIN; GRANT reconcile_operator TO regress_events_operator;
SELECT pg_temp.stage_action(pg_temp.id(n), 'bare', 'outcome_unknown', 'regress_events_one') IS NOT NULL AS staged FROM generate_series(1, 3) n;
SELECT pg_temp.stage_attempt(pg_temp.id(10 + n), pg_temp.id(n), 1, 'outcome_unknown') IS NOT NULL AS staged FROM generate_series(1, 3) n;
-- As a restore would bring them.
ALTER TABLE reconcile.action DISABLE TRIGGER action_2_guard;
UPDATE reconcile.action SET attempts = 1 WHERE provider = 'bare';
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_2_guard;
CREATE TEMP TABLE told (n serial, action_id uuid, result text);
GRANT ALL ON told, told_n_seq TO PUBLIC;
DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace); END $$;
SET SESSION AUTHORIZATION regress_events_two;
INSERT INTO told (action_id, result) SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e1", "ok": true, "ref": "00000000-0000-7000-8000-000000000001"}');
SET SESSION AUTHORIZATION regress_events_one;
INSERT INTO told (action_id, result) SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e1", "ok": true, "ref": "00000000-0000-7000-8000-000000000002"}');
SET SESSION AUTHORIZATION regress_events_operator;
INSERT INTO told (action_id, result) SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e1", "ok": true, "ref": "00000000-0000-7000-8000-000000000003"}');
INSERT INTO told (action_id, result) SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e1", "ok": true, "ref": "00000000-0000-7000-8000-000000000003"}');
INSERT INTO told (action_id, result) SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e2", "ok": false, "ref": "00000000-0000-7000-8000-000000000003"}');
RESET SESSION AUTHORIZATION;
SELECT * FROM told ORDER BY n;
SELECT provider, event_id, says, reference, sender, verified FROM reconcile.unmatched_event;
SELECT event_id, says, sender, verified, result, convert_from(body, 'UTF8') AS body FROM reconcile.inbox WHERE provider = 'bare' ORDER BY inbox_id;
-- An object that two actions have is neither's.
SELECT reconcile.action_spoken_of('bare', NULL, 'object', 'nobody', true) IS NULL AS none_has_it;
ALTER TABLE reconcile.action DISABLE TRIGGER action_2_guard;
UPDATE reconcile.action SET artifact_id = 'object' WHERE action_id = pg_temp.id(1);
SELECT reconcile.action_spoken_of('bare', NULL, 'object', 'nobody', true) AS one_has_it, reconcile.action_spoken_of('bare', NULL, 'object', 'nobody', false) AS not_for_nobody,
	reconcile.action_spoken_of('bare', 'other', 'object', 'nobody', true) AS not_with_another_reference;
UPDATE reconcile.action SET artifact_id = 'object' WHERE action_id = pg_temp.id(2);
SELECT reconcile.action_spoken_of('bare', NULL, 'object', 'nobody', true) AS two_have_it;
-- A step that is refused is an incident; the word stays, and nothing is waited for.
CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not like this' USING ERRCODE = '55000'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON reconcile.attempt FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse();
SELECT action_id, result FROM reconcile.receive_event('bare', '{}', '{"id": "e3", "ok": true, "ref": "00000000-0000-7000-8000-000000000001"}');
SELECT kind, details - 'inbox_id' AS details FROM reconcile.incident WHERE provider = 'bare';
SELECT state FROM reconcile.action WHERE action_id = pg_temp.id(1);
ROLLBACK;
