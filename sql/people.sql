-- What people do: settle, hold back, approve, let go, withdraw, repeat; and many at a time.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('people');
-- Times are of no interest here.
CREATE FUNCTION pg_temp.said(statement text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT replace(regexp_replace(r, '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z', 'TIME', 'g'), session_user, 'USER') FROM pg_temp.refusal($1) r
$$;
-- An action with one attempt that is as it is.
CREATE FUNCTION pg_temp.stage(n integer, state reconcile.state, attempt reconcile.state DEFAULT NULL, operation text DEFAULT 'people') RETURNS uuid LANGUAGE sql AS $$
	SELECT pg_temp.stage_action(pg_temp.id($1), $4, $2);
	SELECT pg_temp.stage_attempt(pg_temp.id(100 * $1 + 1), pg_temp.id($1), 1, coalesce($3, $2));
	SELECT pg_temp.id($1)
$$;
CREATE FUNCTION pg_temp.stands(n integer) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s %s version %s, artifact %s, attempts %s', a.state, a.standing, a.version, coalesce(a.artifact_id, '-'),
		(SELECT string_agg(format('%s %s by %s%s', t.number, t.state, t.event, ' ' || t.artifact_id), ', ' ORDER BY t.number) FROM reconcile.attempt t WHERE t.action_id = a.action_id))
	FROM reconcile.action a WHERE a.action_id = pg_temp.id($1)
$$;

-- ---------------------------------------------------------------- resolve
-- Four decisions about an unknown outcome, and what each leaves behind.
SELECT pg_temp.stage(1, 'outcome_unknown'), pg_temp.stage(2, 'outcome_unknown'), pg_temp.stage(3, 'manual_review', 'outcome_unknown'), pg_temp.stage(4, 'manual_review', 'outcome_unknown');
SELECT reconcile.resolve(pg_temp.id(1), 'executed', 'seen in their console', 'obj-1', evidence => '{"ticket": 7, "note": null}'),
	reconcile.resolve(pg_temp.id(2), 'not_executed', 'they say no'), reconcile.resolve(pg_temp.id(3), 'accepted', 'done by phone'),
	reconcile.resolve(pg_temp.id(4), 'rejected', 'refused by phone', 'obj-4');
SELECT n, pg_temp.stands(n) FROM generate_series(1, 4) n;
SELECT action_id, version, event, from_state, to_state, attempt_number, standing, evidence, actor = session_user AS actor FROM reconcile.history
WHERE action_id = ANY (ARRAY(SELECT pg_temp.id(n) FROM generate_series(1, 4) n)) AND version > 1 ORDER BY action_id;
-- Said again it changes nothing; said otherwise it is refused, with who decided, and when.
SELECT reconcile.resolve(pg_temp.id(1), 'executed', 'again'), reconcile.resolve(pg_temp.id(1), 'executed', 'again', 'obj-1', 1), reconcile.resolve(pg_temp.id(1), 'accepted', 'again'),
	reconcile.resolve(pg_temp.id(2), 'not_executed', 'again', expected_version => 1), reconcile.resolve(pg_temp.id(3), 'executed', 'again'), reconcile.resolve(pg_temp.id(4), 'rejected', 'again');
SELECT pg_temp.said(format('SELECT reconcile.resolve(pg_temp.id(%s), %L, ''otherwise'')', n, d))
FROM (VALUES (1, 'not_executed'), (2, 'executed'), (3, 'rejected'), (4, 'accepted')) AS x(n, d) ORDER BY n;
SELECT pg_temp.said($$SELECT reconcile.resolve(pg_temp.id(1), 'executed', 'another object', 'obj-9')$$);
SELECT n, pg_temp.stands(n) FROM generate_series(1, 4) n;

-- What it needs.
SELECT pg_temp.stage(5, 'manual_review', 'outcome_unknown');
SELECT pg_temp.said(s) FROM unnest(ARRAY[$$SELECT reconcile.resolve(pg_temp.id(5), 'maybe', 'x')$$, $$SELECT reconcile.resolve(pg_temp.id(5), NULL, 'x')$$,
	$$SELECT reconcile.resolve(pg_temp.id(5), 'executed', ' ')$$, $$SELECT reconcile.resolve(pg_temp.id(5), 'executed', NULL)$$,
	$$SELECT reconcile.resolve(pg_temp.id(5), 'executed', 'x', '')$$, $$SELECT reconcile.resolve(pg_temp.id(5), 'not_executed', 'x', 'obj-5')$$,
	$$SELECT reconcile.resolve(pg_temp.id(99), 'executed', 'x')$$,
	$$SELECT reconcile.resolve(pg_temp.id(5), 'executed', 'x', expected_version => 7)$$,
	$$SELECT reconcile.resolve(pg_temp.id(5), 'executed', 'x', 'obj-1')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
SELECT reconcile.resolve(pg_temp.id(5), 'executed', 'x', expected_version => 1), pg_temp.stands(5);

-- Every state from which nothing is to be decided says why.
SELECT count(pg_temp.stage(10 + n::int, s)) FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n);
SELECT s AS state, r FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n), pg_temp.said(format('SELECT reconcile.resolve(pg_temp.id(%s), ''not_executed'', ''x'')', 10 + n)) r
WHERE s NOT IN ('outcome_unknown', 'manual_review', 'safe_to_retry', 'abandoned');

-- What the provider has taken can be given its verdict, not be undone.
SELECT pg_temp.stage(30, 'delivered'), pg_temp.stage(31, 'delivered'), pg_temp.stage(32, 'manual_review', 'delivered');
INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(33), 'client_reference', 'taken', 'intent_key', 'taken', 'standing', 'confirmed/pending'))).*
FROM reconcile.action a WHERE action_id = pg_temp.id(32);
SELECT pg_temp.stage_attempt(pg_temp.id(3301), pg_temp.id(33), 1, 'delivered');
SELECT pg_temp.said($$SELECT reconcile.resolve(pg_temp.id(33), 'not_executed', 'x')$$);
SELECT reconcile.resolve(pg_temp.id(30), 'executed', 'known'), reconcile.resolve(pg_temp.id(30), 'accepted', 'x'), reconcile.resolve(pg_temp.id(31), 'rejected', 'x'), reconcile.resolve(pg_temp.id(33), 'executed', 'x');
SELECT n, pg_temp.stands(n) FROM unnest('{30,31,33}'::int[]) n;
-- Where the verdict comes later, "executed" means delivered, and is waited for.
INSERT INTO reconcile.operation (operation, provider, path, acceptance_max_age) VALUES ('people.async', 'people', '/async', '1 hour');
INSERT INTO reconcile.poll_rule (operation, path, state_path, accepted, rejected) VALUES ('people.async', '/async/{client_reference}', '$.state', '{done}', '{failed}');
SELECT pg_temp.stage(40, 'outcome_unknown', operation => 'people.async'), pg_temp.stage(41, 'outcome_unknown', operation => 'people.async');
SELECT reconcile.resolve(pg_temp.id(40), 'executed', 'x'), reconcile.resolve(pg_temp.id(40), 'executed', 'x'), reconcile.resolve(pg_temp.id(41), 'accepted', 'x');
SELECT n, pg_temp.stands(n), gate_us FROM unnest('{40,41}'::int[]) n JOIN reconcile.action ON action_id = pg_temp.id(n);
SELECT reconcile.resolve(pg_temp.id(40), 'rejected', 'x'), pg_temp.stands(40);

-- Several attempts: a verdict is on all that are not settled, and the fold holds.
SELECT pg_temp.stage(50, 'outcome_unknown'), pg_temp.stage(51, 'outcome_unknown'), pg_temp.stage(52, 'outcome_unknown');
SELECT count(pg_temp.stage_attempt(pg_temp.id(100 * n + 2), pg_temp.id(n), 2, CASE n WHEN 52 THEN 'rejected'::reconcile.state ELSE 'outcome_unknown' END)) FROM generate_series(50, 52) n;
SELECT reconcile.resolve(pg_temp.id(50), 'executed', 'x', 'obj-50'), reconcile.resolve(pg_temp.id(51), 'not_executed', 'x'), reconcile.resolve(pg_temp.id(52), 'not_executed', 'x');
SELECT n, pg_temp.stands(n) FROM generate_series(50, 52) n;
SELECT reconcile.resolve(pg_temp.id(52), 'not_executed', 'again');
SELECT count(*) FROM reconcile.fold_violation() WHERE action_id = ANY (ARRAY(SELECT pg_temp.id(n) FROM generate_series(50, 52) n));

-- Inside the window "it did not happen" is refused, or forced, which is kept with the risk.
SELECT pg_temp.stage(60, 'manual_review', 'outcome_unknown'), pg_temp.stage(61, 'outcome_unknown'), pg_temp.stage(62, 'outcome_unknown');
INSERT INTO reconcile.attempt SELECT (jsonb_populate_record(t, jsonb_build_object('number', 2, 'dispatch_id', pg_temp.id(100 * n + 2), 'gate_us', 4711, 'window_us', 3600000000,
	'dispatched_at', now(), 'ended_at', now()))).* FROM generate_series(60, 62) n JOIN reconcile.attempt t ON t.dispatch_id = pg_temp.id(100 * n + 1);
SELECT pg_temp.said($$SELECT reconcile.resolve(pg_temp.id(60), 'not_executed', 'x')$$);
SELECT pg_temp.said($$SELECT reconcile.resolve(pg_temp.id(60), 'not_executed', 'x', force => NULL)$$);
SELECT reconcile.resolve(pg_temp.id(61), 'executed', 'this can be seen at any time');
SELECT reconcile.resolve(pg_temp.id(60), 'not_executed', 'they swear to it', force => true);
SELECT regexp_replace(evidence::text, '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z', 'TIME') AS evidence FROM reconcile.action WHERE action_id = pg_temp.id(60);
SELECT pg_temp.stands(60);
-- The logical clock of the engine can tell too that it has closed.
SAVEPOINT clock;
INSERT INTO reconcile.clock (lifetime, elapsed_us, monotonic_us, wall_at) VALUES ('a test', 4711, 0, now());
SELECT reconcile.window_open_until(pg_temp.id(62)), reconcile.resolve(pg_temp.id(62), 'not_executed', 'x', force => true);
SELECT evidence FROM reconcile.action WHERE action_id = pg_temp.id(62);
ROLLBACK TO clock;

-- What the provider has said, and is not applied yet, comes before what a person says.
INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(65), 'client_reference', 'spoken-of', 'intent_key', 'spoken-of', 'attempts', 1))).*
FROM reconcile.action a WHERE action_id = pg_temp.id(13);
SELECT pg_temp.stage_attempt(pg_temp.id(6501), pg_temp.id(65), 1, 'outcome_unknown');
INSERT INTO reconcile.inbox (provider, says, reference, artifact_id, evidence, action_id) VALUES ('people', 'executed', 'spoken-of', 'obj-65', '{}', pg_temp.id(65));
SELECT pg_temp.said($$SELECT reconcile.resolve(pg_temp.id(65), 'not_executed', 'x')$$);
SELECT reconcile.resolve(pg_temp.id(65), 'executed', 'x'), pg_temp.stands(65);

-- If it did happen in the end, that is an incident, with who was wrong.
INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(66), 'client_reference', 'spoken-late', 'intent_key', 'spoken-late', 'attempts', 1))).*
FROM reconcile.action a WHERE action_id = pg_temp.id(13);
SELECT pg_temp.stage_attempt(pg_temp.id(6601), pg_temp.id(66), 1, 'outcome_unknown');
SELECT reconcile.resolve(pg_temp.id(66), 'not_executed', 'not in their list');
SELECT result FROM reconcile.confirm('spoken-late', 'obj-66', provider => 'people');
SELECT pg_temp.stands(66);
SELECT reconcile.resolve(pg_temp.id(66), 'executed', 'as they say'), kind, details - 'decided_at' - 'decided_by' AS details, details->>'decided_by' = session_user AS decided_by
FROM reconcile.incident WHERE action_id = pg_temp.id(66);

-- ---------------------------------------------------------------- withdraw, hold back, let go
-- cancel: what has left cannot be called back.
SELECT pg_temp.stage_action(pg_temp.id(70), 'people', 'planned'), pg_temp.stage(71, 'planned', 'safe_to_retry'), pg_temp.stage(72, 'planned', 'outcome_unknown');
SELECT reconcile.cancel(pg_temp.id(70), 'x'), reconcile.cancel(pg_temp.id(70), 'again'), reconcile.cancel(pg_temp.id(71), 'x');
SELECT pg_temp.said($$SELECT reconcile.cancel(pg_temp.id(72), 'x')$$);
SELECT s AS state, r FROM unnest('{submitted,outcome_unknown,reconciling,manual_review,delivered,succeeded,safe_to_retry}'::reconcile.state[]) WITH ORDINALITY AS x(s, n),
	pg_temp.said(format('SELECT reconcile.cancel(pg_temp.id(%s), ''x'')', 10 + array_position(enum_range(NULL::reconcile.state), s))) r ORDER BY x.n;

-- hold and release
SELECT pg_temp.stage_action(pg_temp.id(80), 'people', 'planned');
SELECT reconcile.release(pg_temp.id(80), 'nothing to do'), reconcile.hold(pg_temp.id(80), 'not on a Friday'), reconcile.hold(pg_temp.id(80), 'again');
SELECT state, held, held_because, version FROM reconcile.action WHERE action_id = pg_temp.id(80);
SELECT state, next_step_at, may_repeat FROM reconcile.action_status WHERE action_id = pg_temp.id(80);
SELECT state, why, next_step, next_step_at FROM reconcile.unresolved WHERE action_id = pg_temp.id(80);
SELECT reconcile.release(pg_temp.id(80), 'Monday'), reconcile.release(pg_temp.id(80), 'again');
SELECT version, event, from_state, to_state, evidence FROM reconcile.history WHERE action_id = pg_temp.id(80) AND version > 1 ORDER BY version;
SELECT pg_temp.said(s) FROM unnest(ARRAY[$$SELECT reconcile.hold(pg_temp.id(13), 'x')$$, $$SELECT reconcile.release(pg_temp.id(12), 'x')$$, $$SELECT reconcile.hold(pg_temp.id(80), '')$$,
	$$SELECT reconcile.release(pg_temp.id(99), 'x')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;

-- Approval: by the fingerprint, once, and by another person where the operation says so.
INSERT INTO reconcile.operation (operation, provider, path, requires_approval) VALUES ('people.by_two', 'people', '/by-two', true);
INSERT INTO reconcile.operation (operation, provider, path, requires_approval, approver_is_another) VALUES ('people.approved', 'people', '/approved', true, false);
UPDATE reconcile.operation SET approver_is_another = false WHERE operation = 'people';
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(90), 'people.approved', '{"n": 90}'), (pg_temp.id(91), 'people.by_two', '{"n": 91}');
SELECT count(*) FROM reconcile.submit('people', '{"n": 92}', client_reference => 'asked', hold => true);
SELECT operation, held, held_because FROM reconcile.action WHERE operation ~ '^people\.' AND held OR client_reference ~ 'asked' ORDER BY payload;
SELECT reconcile.hold(pg_temp.id(90), 'does not take the need for approval away');
SELECT pg_temp.said(s) FROM unnest(ARRAY[$$SELECT reconcile.release(pg_temp.id(90), 'x')$$,
	$$SELECT reconcile.release(pg_temp.id(90), 'x', fingerprint) FROM reconcile.action WHERE action_id = pg_temp.id(91)$$,
	$$SELECT reconcile.release(pg_temp.id(91), 'x', fingerprint) FROM reconcile.action WHERE action_id = pg_temp.id(91)$$,
	$$SELECT reconcile.release(action_id, 'x') FROM reconcile.action WHERE client_reference ~ 'asked'$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
SELECT reconcile.release(action_id, 'read and approved', fingerprint), reconcile.release(action_id, 'again', fingerprint) FROM reconcile.action WHERE action_id = pg_temp.id(90) OR client_reference ~ 'asked';
SELECT held, held_because, approved_by = session_user AS approved, version, event, evidence FROM reconcile.action WHERE action_id = pg_temp.id(90);
-- Used once: what is held later is let go without it, and what is repeated stays approved.
SELECT reconcile.hold(pg_temp.id(90), 'wait'), reconcile.release(pg_temp.id(90), 'go'), approved_by = session_user AS approved FROM reconcile.action WHERE action_id = pg_temp.id(90);

-- What waits behind something that FAILED goes when a person says so.
INSERT INTO reconcile.action (action_id, operation, payload, ordering_key) VALUES (pg_temp.id(95), 'people', '{"n": 95}', 'k'), (pg_temp.id(96), 'people', '{"n": 96}', 'k');
SELECT reconcile.release(pg_temp.id(96), 'too early: the one before is not settled'), next_step FROM reconcile.unresolved WHERE action_id = pg_temp.id(96);
SELECT reconcile.cancel(pg_temp.id(95), 'not wanted');
SELECT next_step FROM reconcile.unresolved WHERE action_id = pg_temp.id(96);
SELECT reconcile.release(pg_temp.id(96), 'goes without it'), reconcile.release(pg_temp.id(96), 'again');
SELECT waits, after_failure, version, evidence FROM reconcile.action WHERE action_id = pg_temp.id(96);

-- ---------------------------------------------------------------- repeat, give up
SELECT pg_temp.stage(110, 'safe_to_retry'), pg_temp.stage(111, 'safe_to_retry');
SELECT reconcile.replace(pg_temp.id(110), 'x'), reconcile.replace(pg_temp.id(110), 'again'), reconcile.abandon(pg_temp.id(111), 'x'), reconcile.abandon(pg_temp.id(111), 'again');
SELECT state, version, queued, looked_at, evidence FROM reconcile.action WHERE action_id IN (pg_temp.id(110), pg_temp.id(111)) ORDER BY action_id;
SELECT pg_temp.said(s) FROM unnest(ARRAY[$$SELECT reconcile.replace(pg_temp.id(111), 'x')$$, $$SELECT reconcile.replace(pg_temp.id(13), 'x')$$, $$SELECT reconcile.abandon(pg_temp.id(110), 'x')$$,
	$$SELECT reconcile.abandon(pg_temp.id(13), 'x')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
-- Where the provider can be asked, what a person has said is looked at before anything is sent again.
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path) VALUES ('people.asked', 'people', '/asked', '{ref}');
INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path) VALUES ('people.asked', 'list_by_reference', '/asked?r={client_reference}', '$[*]', '$.r');
SELECT pg_temp.stage(115, 'manual_review', 'outcome_unknown', operation => 'people.asked');
SELECT reconcile.resolve(pg_temp.id(115), 'not_executed', 'x'), reconcile.replace(pg_temp.id(115), 'x');
SELECT state, looked_at FROM reconcile.action WHERE action_id = pg_temp.id(115);
-- look_up_now: what waits only because answers proved nothing is asked at its gate; what is spaced on purpose is not.
SELECT pg_temp.stage(116, 'outcome_unknown', operation => 'people.asked'), pg_temp.stage(117, 'outcome_unknown', operation => 'people.asked');
UPDATE reconcile.action SET gate_us = 1000000000, eligible_at = '2026-01-02 04:00:00+00', inconclusives = 3, negatives = CASE action_id WHEN pg_temp.id(117) THEN 1 ELSE 0 END
WHERE action_id IN (pg_temp.id(116), pg_temp.id(117));
SELECT reconcile.look_up_now(pg_temp.id(116), 'now'), reconcile.look_up_now(pg_temp.id(117), 'now');
SELECT gate_us, eligible_at, version FROM reconcile.action WHERE action_id IN (pg_temp.id(116), pg_temp.id(117)) ORDER BY action_id;
SELECT state, may_repeat FROM reconcile.action_status WHERE action_id = ANY (ARRAY(SELECT pg_temp.id(10 + n) FROM generate_series(1, 12) n)) ORDER BY action_id;

-- ---------------------------------------------------------------- the review queue
SELECT pg_temp.stage(120, 'manual_review', 'outcome_unknown'), pg_temp.stage(121, 'manual_review', 'outcome_unknown', operation => 'people.asked');
SELECT action_id, version, needs, operation, state, delivery, why, method, url, headers, body, note, fingerprint, attempts, lookups, window_open_until, tier, query_surface, decisions,
	if_executed_but_not, if_repeated, suggested FROM reconcile.review_queue WHERE action_id IN (pg_temp.id(120), pg_temp.id(91)) ORDER BY action_id \gx
SELECT needs, why, lookups, tier, query_surface, decisions, if_repeated FROM reconcile.review_queue WHERE action_id = pg_temp.id(121) \gx
SELECT needs, decisions, state, delivery FROM reconcile.review_queue WHERE action_id = pg_temp.id(32);
-- One that cannot be shown hides no other.
SELECT reconcile.hold(pg_temp.id(80), 'to be seen');
UPDATE reconcile.operation SET body_document = '{"must": "{not_there}"}' WHERE operation = 'people';
SELECT note FROM reconcile.review_queue WHERE action_id = pg_temp.id(80);
SELECT needs, why, state FROM reconcile.review_queue WHERE action_id = pg_temp.id(91);
UPDATE reconcile.operation SET body_document = NULL WHERE operation = 'people';

-- ---------------------------------------------------------------- many
SELECT pg_temp.define('bulk');
SELECT count(pg_temp.stage_action(pg_temp.id(200 + n), 'bulk', 'planned')) FROM generate_series(1, 12) n;
SELECT count(reconcile.hold(pg_temp.id(200 + n), 'an outage')) FROM generate_series(1, 12) n;
-- bulk_preview numbers batches; the tests do not know from where.
CREATE TEMP TABLE made (name text, batch bigint);
CREATE FUNCTION pg_temp.preview(name text, arguments text) RETURNS TABLE (items bigint, left_out bigint, totals jsonb, sample bigint) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
	EXECUTE 'SELECT * FROM reconcile.bulk_preview(' || $2 || ')' INTO r;
	INSERT INTO made VALUES ($1, r.batch);
	RETURN QUERY SELECT r.items, r.left_out, r.totals, jsonb_array_length(r.sample)::bigint;
END $$;
CREATE FUNCTION pg_temp.apply(name text, reason text DEFAULT 'the outage is over') RETURNS TABLE (n text, result text, detail text) LANGUAGE sql AS $$
	SELECT ltrim(right(x.action_id::text, 12), '0'), x.result, regexp_replace(x.detail, '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z', 'TIME') FROM made m, reconcile.bulk_apply(m.batch, $2) x WHERE m.name = $1 ORDER BY x.action_id
$$;
SELECT * FROM pg_temp.preview('release', $$'release', provider => 'bulk', held => true, reason => 'is it over?'$$);
SELECT jsonb_array_elements(sample) - 'since' - 'fingerprint' AS sample FROM reconcile.bulk_preview('release', provider => 'bulk', max_items => 1);
SELECT items, left_out FROM reconcile.bulk_preview('release', provider => 'bulk', max_items => 5);
SELECT count(*) FILTER (WHERE held) AS still_held FROM reconcile.action WHERE provider = 'bulk';
-- Three have moved on meanwhile.
SELECT count(reconcile.release(pg_temp.id(n), 'by itself')) FROM unnest('{203,207}'::int[]) n;
SELECT reconcile.cancel(pg_temp.id(209), 'by itself');
SELECT * FROM pg_temp.apply('release');
SELECT * FROM pg_temp.apply('release', 'again') WHERE result = 'done';
SELECT count(*) AS entries, count(DISTINCT evidence->>'batch') AS batches, bool_and(evidence->>'reason' = 'the outage is over') AS reason, bool_and(actor = session_user) AS actor
FROM reconcile.history WHERE action_id::text ~ '0000002[01][0-9]$' AND evidence ? 'batch';
SELECT what, decision, filter, preview_reason, reason, applied_by = session_user AS applied FROM reconcile.bulk_batch WHERE batch = (SELECT batch FROM made WHERE name = 'release');
-- What is chosen by its ids is refused with the reason, one by one.
SELECT pg_temp.stage(220, 'manual_review', 'outcome_unknown', operation => 'bulk'), pg_temp.stage(221, 'outcome_unknown', operation => 'bulk'), pg_temp.stage(222, 'succeeded', operation => 'bulk');
UPDATE reconcile.attempt SET response_body = NULL WHERE action_id = pg_temp.id(221);
INSERT INTO reconcile.attempt SELECT (jsonb_populate_record(t, jsonb_build_object('number', 2, 'dispatch_id', pg_temp.id(22102), 'gate_us', 4711, 'window_us', 3600000000,
	'dispatched_at', now(), 'ended_at', now()))).* FROM reconcile.attempt t WHERE t.dispatch_id = pg_temp.id(22101);
SELECT * FROM pg_temp.preview('resolve', $$'resolve not_executed', ARRAY(SELECT pg_temp.id(n) FROM generate_series(219, 222) n)$$);
SELECT * FROM pg_temp.apply('resolve', 'the provider lost a day');
SELECT pg_temp.stands(220);
SELECT items FROM pg_temp.preview('replace', $$'replace', operation => 'bulk'$$);
SELECT * FROM pg_temp.apply('replace', 'once more');
SELECT items FROM pg_temp.preview('cancel', $$'cancel', operation => 'bulk', submitted_before => '2026-01-03'$$);
SELECT result, count(*) FROM pg_temp.apply('cancel', 'nobody wants them') GROUP BY 1;
SELECT items FROM pg_temp.preview('look', $$'look_up_now', ARRAY[pg_temp.id(121)]$$);
SELECT * FROM pg_temp.apply('look', 'repaired');
-- A release in bulk approves what was previewed, if the approver may.
SELECT items, totals->0->>'operation' AS operation FROM pg_temp.preview('approve', $$'release', operation => 'people.by_two'$$);
SELECT n, result, regexp_replace(detail, '"' || session_user || '"', '"USER"') AS detail FROM pg_temp.apply('approve', 'all fine');
SELECT pg_temp.said(s) FROM unnest(ARRAY[$$SELECT * FROM reconcile.bulk_preview('delete')$$, $$SELECT * FROM reconcile.bulk_preview('resolve')$$, $$SELECT * FROM reconcile.bulk_preview('resolve maybe')$$,
	$$SELECT * FROM reconcile.bulk_preview('cancel all')$$, $$SELECT * FROM reconcile.bulk_preview(NULL)$$, $$SELECT * FROM reconcile.bulk_preview('cancel', max_items => 0)$$,
	$$SELECT * FROM reconcile.bulk_preview('resolve executed', max_items => 1001)$$, $$SELECT * FROM reconcile.bulk_apply(0, 'x')$$, $$SELECT * FROM reconcile.bulk_apply(0, ' ')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;

SELECT count(*) AS broken_histories FROM reconcile.verify_history() WHERE action_id NOT IN (pg_temp.id(33), pg_temp.id(65), pg_temp.id(66));
ROLLBACK;
