-- The catalogue: every profile loads, is what it claims to be, and can be previewed; and the schema of the files knows the tables.
BEGIN;
SELECT no_plan();

\set folder `echo "$AR_SOURCE_DIR/profiles"`
\set schema `cat "$AR_SOURCE_DIR/profiles/schema.json"`
\set files `cd "$AR_SOURCE_DIR/profiles" && ls | grep '\.json$' | grep -vx schema.json | sed 's/\.json$//' | tr '\n' ' '`

-- The catalogue holds what the folder holds.
SELECT set_eq('SELECT profile FROM reconcile.profile_catalog', string_to_array(trim(:'files'), ' '), 'every file of profiles/ is in the catalogue, and nothing else');
SELECT cmp_ok(count(*), '>=', 15::bigint, 'at least 15 providers') FROM reconcile.profile_catalog;
SELECT cmp_ok(sum(operations), '>=', 20::bigint, 'with at least 20 operations') FROM reconcile.profile_catalog;
SELECT throws_ok('UPDATE reconcile.profile_catalog SET profile_version = 9', '428C9', NULL, 'what the catalogue says of a profile is what the profile says');

-- The first definition of all arms; not the second, nor one beside an action.
SELECT is(armed, false, 'nothing is armed') FROM reconcile.health;
CREATE TEMP TABLE adopted AS SELECT c.profile, a.* FROM (SELECT profile FROM reconcile.profile_catalog ORDER BY profile LIMIT 1) c, reconcile.adopt_profile(c.profile) a;
SELECT is(armed, true, 'an admin''s first definition arms') FROM reconcile.health;
SELECT is(reason, 'first define_provider', 'and says why') FROM reconcile.arming;
DELETE FROM reconcile.arming;

-- Each of them.
INSERT INTO adopted SELECT c.profile, a.* FROM reconcile.profile_catalog c, reconcile.adopt_profile(c.profile) a WHERE c.profile NOT IN (SELECT profile FROM adopted);
SELECT is(armed, false, 'where providers are, a definition arms nothing') FROM reconcile.health;
SELECT is(a.operations, (SELECT array_agg(k ORDER BY k COLLATE "C") FROM jsonb_object_keys(c.document -> 'operations') k), c.profile || ' loads')
	FROM reconcile.profile_catalog c JOIN adopted a USING (profile) ORDER BY c.profile;
SELECT is(a.changed, '{}', c.profile || ' is loaded once') FROM reconcile.profile_catalog c, reconcile.adopt_profile(c.profile) a ORDER BY c.profile;
SELECT is(tier::text, claims::text, operation || ' is ' || tier) FROM reconcile.provider_grade ORDER BY operation;
SELECT is_empty($$SELECT operation FROM reconcile.operation WHERE example IS NULL$$, 'each operation has an example');
SELECT isnt(on_lost_answer, NULL, operation || ': ' || on_lost_answer) FROM reconcile.provider_grade ORDER BY operation;
SELECT is(ARRAY(SELECT p.part FROM reconcile.preview(o.operation) p),
		'request'::text || ARRAY(SELECT format('lookup %s', l.position) FROM reconcile.lookup_rule l WHERE l.operation = o.operation ORDER BY l.position)
			|| ARRAY(SELECT 'poll'::text FROM reconcile.poll_rule p WHERE p.operation = o.operation), o.operation || ' can be previewed')
	FROM reconcile.operation o ORDER BY o.operation;
SELECT is_empty($$SELECT o.operation, p.part FROM reconcile.operation o, reconcile.preview(o.operation) p
	WHERE p.headers::text ~ '\{credential\}|Bearer|Basic' OR p.url !~ '^https://' OR concat(p.url, p.body) ~ '\{(client_reference|idempotency_key|credential|artifact_id|since_unix|since_iso)\}'$$,
	'with nothing left to be filled in, and no credential');
SELECT is_empty($$SELECT o.operation FROM reconcile.operation o, reconcile.preview(o.operation) p WHERE p.part = 'request' AND reconcile.sends_reference(o)
	AND position(reconcile.make_identifier('00000000-0000-7000-8000-000000000000', 0, o.reference_format) in concat(p.url, p.headers, p.body)) = 0$$, 'and the reference in what is said to send it');

-- A file knows the columns of the tables, and no others; its enumerations are theirs.
SELECT set_eq(format('SELECT jsonb_object_keys(%L::jsonb #> %L)', :'schema', ARRAY['$defs', d, 'properties']),
		format('SELECT name FROM reconcile.profile_columns(%L) UNION SELECT unnest(%L::text[])', part, more), 'profiles/schema.json knows the columns of ' || part)
	FROM (VALUES ('provider', 'provider', '{}'), ('operation', 'operation', '{answers,lookups,poll}'), ('answers', 'answer', '{}'), ('lookups', 'lookup', '{}'), ('poll', 'poll', '{}'), ('facts', 'fact', '{}'), ('events', 'events', '{rules}'), ('rules', 'rule', '{}')) AS x(part, d, more);
SELECT is(ARRAY(SELECT jsonb_array_elements_text(:'schema'::jsonb #> ARRAY['$defs', d, 'enum'])), enum_range, 'and the values of ' || d)
	FROM (VALUES ('tier', enum_range(NULL::reconcile.tier)::text[]), ('answer_class', enum_range(NULL::reconcile.answer_class)::text[]), ('window_source', enum_range(NULL::reconcile.window_source)::text[])) AS x(d, enum_range);
SELECT is_empty(format($$SELECT v FROM jsonb_path_query(%L::jsonb, '$."$defs".*.properties.*.enum[*]') v WHERE NOT EXISTS (
	SELECT FROM pg_constraint WHERE contype = 'c' AND connamespace = 'reconcile'::regnamespace AND position(quote_literal(v #>> '{}') in pg_get_constraintdef(oid)) > 0)$$, :'schema'), 'every other value that it lists is one of a check');

-- Who may: an admin adopts; a reader reads what follows; a submitter previews its own.
CREATE ROLE tap_admin LOGIN;		GRANT reconcile_admin TO tap_admin;
CREATE ROLE tap_reader LOGIN;		GRANT reconcile_reader TO tap_reader;
CREATE ROLE tap_submitter LOGIN;	GRANT reconcile_submitter TO tap_submitter;
CREATE ROLE tap_other LOGIN;		GRANT reconcile_submitter TO tap_other;
DO $$ BEGIN
	EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
	EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
END $$;
SET SESSION AUTHORIZATION tap_admin;
SELECT lives_ok($$SELECT reconcile.adopt_profile('github', '{"base_url": "https://github.test", "max_in_flight": 2}', 'github_test')$$, 'an admin adopts a profile');
SELECT lives_ok($$SELECT reconcile.adopt_profile('github', provider => 'github_test')$$, 'again');
SELECT is(base_url, 'https://github.test', 'with what is different here') FROM reconcile.provider WHERE provider = 'github_test';
SELECT lives_ok($$SELECT * FROM reconcile.provider_grade$$, 'an admin reads the grades');
SELECT throws_ok($$UPDATE reconcile.profile_catalog SET document = '{}'$$, '42501', NULL, 'an admin does not change the catalogue');
SET SESSION AUTHORIZATION tap_reader;
SELECT cmp_ok(count(*), '>', 20::bigint, 'a reader reads the grades') FROM reconcile.provider_grade;
SELECT lives_ok($$SELECT * FROM reconcile.profile_catalog, reconcile.profile_fact, reconcile.provider_override LIMIT 1$$, 'the catalogue, the facts and what is different here');
SELECT throws_ok($$SELECT reconcile.adopt_profile('stripe')$$, '42501', NULL, 'a reader adopts nothing');
SET SESSION AUTHORIZATION tap_submitter;
SELECT s.action_id AS mine FROM reconcile.submit('github_test.issue.create', '{"owner": "o", "repo": "r", "title": "t", "body": "b", "labels": []}') s \gset
SELECT isnt_empty(format('SELECT * FROM reconcile.preview(%L::uuid)', :'mine'), 'a submitter previews its own action');
SELECT isnt_empty($$SELECT * FROM reconcile.preview('github_test.issue.create')$$, 'and an operation');
SELECT throws_ok($$SELECT reconcile.define_provider('{}')$$, '42501', NULL, 'a submitter defines nothing');
SELECT throws_ok($$SELECT * FROM reconcile.provider_grade$$, '42501', NULL, 'and reads no grades');
SET SESSION AUTHORIZATION tap_other;
SELECT throws_ok(format('SELECT * FROM reconcile.preview(%L::uuid)', :'mine'), '42704', NULL, 'nobody else previews that action');
SET SESSION AUTHORIZATION tap_reader;
SELECT isnt_empty(format('SELECT * FROM reconcile.preview(%L::uuid)', :'mine'), 'but a reader does');
RESET SESSION AUTHORIZATION;

SELECT * FROM finish();
ROLLBACK;
