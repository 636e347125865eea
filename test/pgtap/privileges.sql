-- Who may do what: nothing is for everybody, and each role does what it is for.
BEGIN;
SELECT plan(133);

-- The roles.
SELECT has_role(r, format('role %s exists', r)) FROM unnest('{reconcile_reader,reconcile_submitter,reconcile_operator,reconcile_admin}'::name[]) r;
SELECT is_empty($$SELECT rolname FROM pg_roles WHERE rolname ~ '^reconcile_' AND (rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication)$$,
	'none of them can log in or has a power of its own');
SELECT is_member_of('reconcile_reader', 'reconcile_operator', 'an operator is a reader');
SELECT is_member_of('reconcile_operator', 'reconcile_admin', 'an admin is an operator');
SELECT ok(NOT pg_has_role('reconcile_submitter', 'reconcile_reader', 'MEMBER'), 'a submitter is no reader');
SELECT ok(NOT pg_has_role('reconcile_reader', 'reconcile_submitter', 'MEMBER'), 'a reader is no submitter');

-- Nothing to PUBLIC. An empty list would be the default, which has PUBLIC in it for functions.
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace
	AND (proacl IS NULL OR EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0))$$, 'no function is for PUBLIC');
SELECT is_empty($$SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND EXISTS (SELECT FROM aclexplode(relacl) WHERE grantee = 0)$$,
	'no table or view is for PUBLIC');
SELECT is_empty($$SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'reconcile'::regnamespace
	AND EXISTS (SELECT FROM aclexplode(attacl) WHERE grantee = 0)$$, 'no column is for PUBLIC');
SELECT is_empty($$SELECT nspname FROM pg_namespace WHERE nspname = 'reconcile' AND (nspacl IS NULL OR EXISTS (SELECT FROM aclexplode(nspacl) WHERE grantee = 0))$$,
	'the schema is not for PUBLIC');
SELECT is_empty($$SELECT grantee::regrole FROM pg_namespace, aclexplode(nspacl) WHERE nspname = 'reconcile' AND privilege_type = 'CREATE' AND grantee NOT IN (nspowner, 'reconcile_owner'::regrole)$$,
	'nobody creates objects in it, but the owner of the rest');
SELECT set_eq($$SELECT attname::text FROM pg_attribute, aclexplode(attacl) WHERE attrelid = 'reconcile.action'::regclass AND grantee = 'reconcile_submitter'::regrole
	AND privilege_type = 'INSERT'$$, ARRAY['action_id', 'operation', 'payload', 'intent_key', 'client_reference', 'deliberate_repeat', 'not_before', 'not_after',
	'priority', 'ordering_key', 'after_failure', 'depends_on'],
	'a submitter inserts what it wants, and nothing about where it stands');
SELECT is_empty($$SELECT relname, grantee::regrole, privilege_type FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'reconcile'::regnamespace
	AND grantee <> relowner AND relname IN ('action', 'attempt', 'lookup', 'history', 'history_default', 'clock', 'arming', 'installation') AND privilege_type <> 'SELECT'$$,
	'nobody writes what happened, by whole tables');
SELECT is_empty($$SELECT relname, grantee::regrole FROM pg_class, aclexplode(relacl) WHERE relnamespace = 'reconcile'::regnamespace AND relname = 'arming' AND grantee <> relowner$$,
	'nobody reads or writes the arming');

-- People of each kind, and one of none.
CREATE ROLE tap_submitter LOGIN;	GRANT reconcile_submitter TO tap_submitter;
CREATE ROLE tap_other LOGIN;		GRANT reconcile_submitter TO tap_other;
CREATE ROLE tap_reader LOGIN;		GRANT reconcile_reader TO tap_reader;
CREATE ROLE tap_operator LOGIN;		GRANT reconcile_operator TO tap_operator;
CREATE ROLE tap_admin LOGIN;		GRANT reconcile_admin TO tap_admin;
CREATE ROLE tap_nobody LOGIN;
-- What the tests count with was made by the first user.
DO $$ BEGIN
	EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
	EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
END $$;

-- An admin defines.
SET SESSION AUTHORIZATION tap_admin;
SELECT lives_ok($$INSERT INTO reconcile.provider (provider, base_url) VALUES ('tap', 'https://tap.example')$$, 'an admin defines a provider');
SELECT lives_ok($$INSERT INTO reconcile.operation (operation, provider, path, reference_body_path) VALUES ('tap', 'tap', '/x', '{ref}')$$, 'an admin defines an operation');
SELECT lives_ok($$INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path) VALUES ('tap', 'list_by_reference', '/x?r={client_reference}', '$[*]', '$.r')$$,
	'an admin defines a lookup');
SELECT lives_ok($$UPDATE reconcile.provider SET max_in_flight = 3$$, 'an admin changes a provider');
SELECT lives_ok($$UPDATE reconcile.lookup_rule SET pause = '2 s'$$, 'an admin changes a lookup');
SELECT lives_ok($$INSERT INTO reconcile.event_source (provider, scheme) VALUES ('tap', 'none')$$, 'an admin defines a source of events');
SELECT lives_ok($$INSERT INTO reconcile.event_rule (provider, position, condition, says, reference_path, because) VALUES ('tap', 1, '$.ref', 'executed', '$.ref', 'a test')$$, 'and what they mean');
SELECT lives_ok($$SELECT reconcile.arm('a test')$$, 'an admin arms');
SELECT is(armed, true, 'which arms, although the record is for nobody') FROM reconcile.health;
SELECT throws_ok($$SELECT * FROM reconcile.arming$$, '42501', NULL, 'an admin does not read the token');
SELECT throws_ok($$INSERT INTO reconcile.arming SELECT$$, '42501', NULL, 'or write it');
SELECT throws_ok($$TRUNCATE reconcile.lookup_rule$$, '42501', NULL, 'an admin does not take the rules away all at once');
SELECT lives_ok($$SELECT reconcile.create_history_partitions(1)$$, 'an admin makes partitions');
SELECT lives_ok($$SELECT * FROM reconcile.health$$, 'an admin reads health');
SELECT throws_ok($$INSERT INTO reconcile.action (operation, payload) VALUES ('tap', '{}')$$, '42501', NULL, 'an admin does not submit');
SELECT throws_ok($$UPDATE reconcile.action SET state = 'succeeded'$$, '42501', NULL, 'an admin does not write what happened');
SELECT throws_ok($$DELETE FROM reconcile.history$$, '42501', NULL, 'an admin does not delete history');

-- A submitter submits, and follows its own.
SET SESSION AUTHORIZATION tap_other;
SELECT lives_ok($$SELECT * FROM reconcile.submit('tap', '{"n": 1}')$$, 'another submitter submits');
SET SESSION AUTHORIZATION tap_submitter;
SELECT results_eq($$SELECT joined FROM reconcile.submit('tap', '{"n": 1}')$$, $$VALUES (false)$$, 'an equal intent of another submitter is not joined');
SELECT lives_ok($$INSERT INTO reconcile.action (action_id, operation, payload, intent_key, client_reference, deliberate_repeat, not_before, not_after)
	VALUES ('00000000-0000-7000-8000-000000000001', 'tap', '{"n": 2}', 'key', 'mine', false, '2001-01-01', '2099-01-01')$$, 'a submitter inserts the columns that are its own');
SELECT throws_ok(format('INSERT INTO reconcile.action (operation, payload, %I) VALUES (''tap'', ''{}'', NULL)', c), '42501', NULL, format('but not %s', c))
	FROM unnest('{state,standing,version,submitter,provider,fingerprint,queued,due_at,gate_us,actor,evidence,chain_head}'::text[]) c;
SELECT lives_ok($$INSERT INTO reconcile.action (operation, payload) VALUES ('tap', '{"n": 3}') RETURNING action_id$$, 'a submitter learns the id of what it inserted');
SELECT results_eq($$INSERT INTO reconcile.action (action_id, operation, payload) VALUES ('00000000-0000-7000-8000-000000000002', 'tap', '{"n": 4}'), ('00000000-0000-7000-8000-000000000003', 'tap', '{"n": 5}') RETURNING action_id$$,
	ARRAY['00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000003']::uuid[], 'of each of them');
SELECT throws_ok(format('INSERT INTO reconcile.action (operation, payload) VALUES (''tap'', ''{}'') RETURNING %I', c), '42501', NULL, format('but not its %s', c))
	FROM unnest('{payload,state,submitter,chain_head}'::text[]) c;
SELECT results_eq($$SELECT action_id FROM reconcile.action EXCEPT SELECT action_id FROM reconcile.action_status$$, $$SELECT NULL::uuid WHERE false$$, 'it sees the ids of its own actions only');
SELECT results_eq($$SELECT count(*) FROM reconcile.action$$, $$SELECT count(*) FROM reconcile.action_status$$, 'and of all of them');
SELECT throws_ok(format('SELECT %I FROM reconcile.action', c), '42501', NULL, format('by its id alone, not by %s', c)) FROM unnest('{payload,intent_key,fingerprint}'::text[]) c;
SELECT results_eq($$SELECT count(DISTINCT submitter), count(*) FILTER (WHERE action_id = '00000000-0000-7000-8000-000000000001') FROM reconcile.action_status$$, $$VALUES (1::bigint, 1::bigint)$$, 'it sees its own in action_status');
SELECT results_eq($$SELECT count(DISTINCT submitter), count(*) FILTER (WHERE action_id = '00000000-0000-7000-8000-000000000001') FROM reconcile.unresolved$$, $$VALUES (1::bigint, 1::bigint)$$, 'in unresolved');
SELECT set_eq($$SELECT DISTINCT actor FROM reconcile.action_history$$, ARRAY['tap_submitter'], 'and in action_history');
SELECT lives_ok($$SELECT * FROM reconcile.transition_rule$$, 'it reads the rules');
SELECT isnt(reconcile.receipt('00000000-0000-7000-8000-000000000001'), NULL, 'it has a receipt');
SELECT throws_ok($$SELECT reconcile.wait('00000000-0000-7000-8000-000000000001', '0')$$, '25001', NULL, 'it may wait, after its commit');
SELECT throws_ok(s, '42501', NULL, 'it cannot ' || s) FROM unnest(ARRAY['SELECT * FROM reconcile.action', 'SELECT * FROM reconcile.attempt', 'SELECT * FROM reconcile.history',
	'SELECT * FROM reconcile.provider', 'SELECT * FROM reconcile.health', 'UPDATE reconcile.action SET payload = ''{}''', 'DELETE FROM reconcile.action', 'TRUNCATE reconcile.action',
	$$SELECT reconcile.cancel_step('00000000-0000-7000-8000-000000000001', 'x', '{}')$$, $$SELECT reconcile.hold('00000000-0000-7000-8000-000000000001', 'x')$$,
	$$SELECT reconcile.release('00000000-0000-7000-8000-000000000001', 'x')$$, $$SELECT reconcile.replace('00000000-0000-7000-8000-000000000001', 'x')$$,
	$$SELECT reconcile.abandon('00000000-0000-7000-8000-000000000001', 'x')$$, $$SELECT reconcile.resolve('00000000-0000-7000-8000-000000000001', 'executed', 'x')$$,
	$$SELECT reconcile.bulk_preview('cancel')$$, $$SELECT reconcile.bulk_apply(1, 'x')$$, 'SELECT * FROM reconcile.review_queue', 'SELECT * FROM reconcile.bulk_item',
	$$SELECT reconcile.pause('tap', 'x')$$, $$SELECT reconcile.arm('x')$$, $$CALL reconcile.run('0')$$,
	$$SELECT reconcile.look_up_now('00000000-0000-7000-8000-000000000001', 'x')$$, $$SELECT * FROM reconcile.engine()$$, $$SELECT reconcile.create_history_partitions(1)$$]) s;
SELECT is(reconcile.cancel('00000000-0000-7000-8000-000000000002', 'changed my mind'), 'cancelled', 'it withdraws its own');
SELECT lives_ok($$SELECT * FROM reconcile.receive_event('tap', '{}', '{"ref": "x"}')$$, 'it hands in events');
SELECT throws_ok(s, '42501', NULL, 'it cannot ' || s) FROM unnest(ARRAY['SELECT * FROM reconcile.event_source', 'SELECT * FROM reconcile.unmatched_event',
	$$SELECT reconcile.take_in('tap', NULL, 'executed', 'x', NULL, NULL, NULL, true)$$]) s;
SET SESSION AUTHORIZATION tap_other;
SELECT throws_ok($$SELECT reconcile.cancel('00000000-0000-7000-8000-000000000001', 'x')$$, '42704', NULL, 'nobody else withdraws it, or learns that it is there');
SELECT is(reconcile.receipt('00000000-0000-7000-8000-000000000001'), NULL, 'nobody else has that receipt');
SELECT throws_ok($$SELECT reconcile.wait('00000000-0000-7000-8000-000000000001', '0')$$, '42704', NULL, 'or can wait for it');
SELECT is_empty($$SELECT * FROM reconcile.action_status WHERE action_id = '00000000-0000-7000-8000-000000000001'$$, 'or can see it');
SELECT is_empty($$SELECT action_id FROM reconcile.action WHERE action_id = '00000000-0000-7000-8000-000000000001'$$, 'or that it exists');
SELECT results_eq($$SELECT count(*) FROM reconcile.action$$, $$VALUES (1::bigint)$$, 'only its own does');

-- A reader reads everything, and changes nothing.
SET SESSION AUTHORIZATION tap_reader;
SELECT results_eq($$SELECT count(DISTINCT submitter) FROM reconcile.action_status$$, $$VALUES (2::bigint)$$, 'a reader sees the actions of all');
SELECT lives_ok($$SELECT * FROM reconcile.health$$, 'a reader reads health');
SELECT is(armed, true, 'and sees that it is armed, although it reads no token') FROM reconcile.health;
SELECT throws_ok($$SELECT * FROM reconcile.arming$$, '42501', NULL, 'a reader does not read the token');
SELECT results_eq($$SELECT count(DISTINCT submitter) FROM reconcile.action$$, $$VALUES (2::bigint)$$, 'a reader sees the rows of all');
SELECT is_empty($$SELECT * FROM reconcile.verify_history()$$, 'a reader verifies the history');
SELECT is_empty($$SELECT * FROM reconcile.fold_violation()$$, 'a reader checks the fold');
SELECT throws_ok($$SELECT * FROM reconcile.submit('tap', '{}')$$, '42501', NULL, 'a reader does not submit');
SELECT throws_ok($$SELECT reconcile.cancel('00000000-0000-7000-8000-000000000001', 'x')$$, '42501', NULL, 'a reader does not cancel');
SELECT throws_ok($$SELECT reconcile.resolve('00000000-0000-7000-8000-000000000001', 'executed', 'x')$$, '42501', NULL, 'a reader does not settle');
SELECT lives_ok($$SELECT * FROM reconcile.review_queue$$, 'a reader sees what waits for a person');

SELECT lives_ok($$SELECT * FROM reconcile.unmatched_event, reconcile.event_source, reconcile.event_rule$$, 'a reader sees events without an action');
SELECT throws_ok($$SELECT * FROM reconcile.receive_event('tap', '{}', '{}')$$, '42501', NULL, 'a reader hands in none');

-- An operator operates, and defines nothing.
SET SESSION AUTHORIZATION tap_operator;
SELECT lives_ok($$SELECT * FROM reconcile.receive_event('tap', '{}', '{"ref": "x"}')$$, 'an operator hands in events');
SELECT lives_ok($$SELECT reconcile.pause('tap', 'a test'), reconcile.resume('tap')$$, 'an operator pauses and resumes');
SELECT is(reconcile.hold('00000000-0000-7000-8000-000000000001', 'a test'), 'planned', 'an operator holds the actions of others');
SELECT results_eq($$SELECT needs, why FROM reconcile.review_queue WHERE action_id = '00000000-0000-7000-8000-000000000001'$$, $$VALUES ('release', 'a test')$$, 'and finds them in the queue');
SELECT is(reconcile.release('00000000-0000-7000-8000-000000000001', 'a test'), 'planned', 'and releases them');
SELECT is(reconcile.cancel('00000000-0000-7000-8000-000000000001', 'a test'), 'cancelled', 'an operator cancels');
SELECT throws_ok(s, '55000', NULL, 'an operator may ' || s) FROM unnest(ARRAY[$$SELECT reconcile.replace('00000000-0000-7000-8000-000000000001', 'x')$$,
	$$SELECT reconcile.abandon('00000000-0000-7000-8000-000000000001', 'x')$$, $$SELECT reconcile.resolve('00000000-0000-7000-8000-000000000001', 'executed', 'x')$$,
	$$SELECT reconcile.look_up_now('00000000-0000-7000-8000-000000000001', 'x')$$]) s;
SELECT results_eq($$SELECT result FROM reconcile.bulk_apply((SELECT batch FROM reconcile.bulk_preview('release', ARRAY['00000000-0000-7000-8000-000000000001'::uuid])), 'x')$$, ARRAY['refused'], 'an operator does many at a time');
SELECT throws_ok($$SELECT reconcile.release_step('00000000-0000-7000-8000-000000000001', 'x', NULL, '{}')$$, '42501', NULL, 'an operator does not go round the checks');
SELECT throws_ok($$UPDATE reconcile.bulk_batch SET applied_at = NULL$$, '42501', NULL, 'or round the record of a batch');
SELECT throws_ok($$CALL reconcile.run('0')$$, '25001', NULL, 'an operator runs the engine, outside a transaction');
SELECT throws_ok($$UPDATE reconcile.provider SET base_url = 'https://evil.example'$$, '42501', NULL, 'an operator does not redirect a provider');
SELECT throws_ok($$SELECT reconcile.arm('x')$$, '42501', NULL, 'an operator does not arm');
SELECT throws_ok($$SELECT reconcile.submit('tap', '{}')$$, '42501', NULL, 'an operator does not submit');
RESET SESSION AUTHORIZATION;
SELECT results_eq($$SELECT actor FROM reconcile.history WHERE action_id = '00000000-0000-7000-8000-000000000001' ORDER BY version$$, ARRAY['tap_submitter', 'tap_operator', 'tap_operator', 'tap_operator'],
	'the history names who did what');

SET SESSION AUTHORIZATION tap_nobody;
SELECT throws_ok($$SELECT * FROM reconcile.transition_rule$$, '42501', NULL, 'one of no role sees nothing');
RESET SESSION AUTHORIZATION;
SELECT * FROM finish();
ROLLBACK;
