-- Recording an intent: joining, repeating, refusing.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
INSERT INTO reconcile.installation (prefix) VALUES ('test') ON CONFLICT (only_row) DO UPDATE SET prefix = 'test';
SELECT pg_temp.define('submit');
INSERT INTO reconcile.operation (operation, provider, method, path, headers, body_template, reference_is_global) VALUES
	('submit.text', 'submit', 'PUT', '/cal/{client_reference}', '{"Content-Type": "text/calendar", "X-Room": "{room}"}', 'UID:{client_reference} {title}', true);
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path) VALUES ('submit.ref', 'submit', '/things/{kind}', '{meta,ref}');
INSERT INTO reconcile.operation (operation, provider, path, body_template, reference_is_global) VALUES ('submit.json', 'submit', '/json', '{"ref": "{client_reference}", "title": "{title}"}', true);
-- Each kind of answer once: which action it is, by the order of first appearance.
CREATE TEMP TABLE seen (n int GENERATED ALWAYS AS IDENTITY, action_id uuid PRIMARY KEY);
CREATE FUNCTION pg_temp.submitted(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	EXECUTE 'SELECT * FROM reconcile.submit(' || arguments || ')' INTO r;
	INSERT INTO seen (action_id) SELECT r.action_id WHERE NOT EXISTS (SELECT FROM seen s WHERE s.action_id = r.action_id);
	RETURN format('action %s: %s %s, joined %s', (SELECT n FROM seen s WHERE s.action_id = r.action_id), r.state, r.status, r.joined);
END $$;

-- What comes back.
SELECT state, status, joined, advice, next_step_at = now() AS due_now, next_step_at >= now() AS due, reference = action_id::text AS own_reference,
	fingerprint OPERATOR(reconcile.=) reconcile.intent_fingerprint('POST', '/things', '{"n": 0}') AS fingerprint_of_intent
FROM reconcile.submit('submit', '{"n": 0}');

-- Without a key: equal intents are one action while it is unresolved.
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 2}'$$);
SELECT pg_temp.submitted($$'submit', '{"b": 2, "a": 1}'$$);
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 3}'$$);
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 2}', on_duplicate => 'new'$$);
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 2}', on_duplicate => 'new'$$);
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 2}'$$);
SELECT deliberate_repeat, evidence FROM reconcile.action JOIN seen USING (action_id) ORDER BY n;
SELECT reconcile.cancel(action_id, 'a test') FROM seen WHERE n = 1;
SELECT pg_temp.submitted($$'submit', '{"a": 1, "b": 2}'$$);

-- With a key: the same action for ever, also when it is resolved; another payload is an error.
SELECT pg_temp.submitted($$'submit', '{"k": 1}', 'key-1'$$);
SELECT pg_temp.submitted($$'submit', '{"k": 1}', 'key-1'$$);
SELECT pg_temp.submitted($$'submit', '{"k": 1}', 'key-2'$$);
SELECT pg_temp.submitted($$'submit', '{"k": 1}'$$);
SELECT pg_temp.submitted($$'submit', '{"k": 1}', 'key-1', on_duplicate => 'new'$$);
SELECT pg_temp.refusal($$SELECT reconcile.submit('submit', '{"k": 2}', 'key-1')$$);
SELECT pg_temp.submitted($$'submit.text', '{"room": "a", "title": "k"}', 'key-1'$$);
SELECT reconcile.cancel(action_id, 'a test') FROM reconcile.action WHERE intent_key = 'key-1' AND operation = 'submit';
SELECT pg_temp.submitted($$'submit', '{"k": 1}', 'key-1'$$);

-- After proof of absence the same intent is a replacement of that very action.
SELECT pg_temp.stage_action(pg_temp.id(50), 'submit', 'safe_to_retry');
SELECT action_id, state, status, joined FROM reconcile.submit('submit', jsonb_build_object('id', pg_temp.id(50)));
SELECT version, event, from_state, to_state, evidence FROM reconcile.history WHERE action_id = pg_temp.id(50) ORDER BY version;

-- A plain INSERT fails where submit() joins, and names the winner.
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(1), 'submit', '{"plain": 1}');
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload) VALUES ('submit', '{"plain": 1}')$$);
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload) SELECT 'submit', '{"plain": 2}' FROM generate_series(1, 2)$$);
INSERT INTO reconcile.action (action_id, operation, payload, deliberate_repeat) VALUES (pg_temp.id(2), 'submit', '{"plain": 1}', true);
INSERT INTO reconcile.action (action_id, operation, payload, intent_key) VALUES (pg_temp.id(3), 'submit', '{"plain": 1}', 'key-3');
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload, intent_key) VALUES ('submit', '{"plain": 1}', 'key-3')$$);
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload, intent_key) VALUES ('submit', '{"plain": 33}', 'key-3')$$);
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload, intent_key, deliberate_repeat) VALUES ('submit', '{"plain": 1}', 'key-3', true)$$);
-- What follows from the operation is not for the INSERT to say.
INSERT INTO reconcile.action (action_id, operation, payload, provider, submitter, state, standing, queued, attempts, actor)
VALUES (pg_temp.id(4), 'submit', '{"plain": 4}', 'another', 'somebody', 'succeeded', 'confirmed/accepted', false, 0, 'somebody');
SELECT provider, submitter = session_user AS ours, state, standing, queued, actor = session_user AS actor, version FROM reconcile.action WHERE action_id = pg_temp.id(4);

-- When: not before, not after.
SELECT state, next_step_at FROM reconcile.submit('submit', '{"t": 1}', not_before => '2099-01-01', not_after => '2099-01-02');
SELECT next_step_at >= now() AS due_now FROM reconcile.submit('submit', '{"t": 2}', not_before => '2001-01-01');
SELECT pg_temp.refusal($$SELECT reconcile.submit('submit', '{"t": 3}', not_before => '2099-01-02', not_after => '2099-01-01')$$);

-- The reference: the installation's prefix, unless the operation declares it to be unique by itself.
SELECT reference FROM reconcile.submit('submit', '{"r": 1}', client_reference => 'mine-1');
SELECT reference FROM reconcile.submit('submit.text', '{"room": "a", "title": "r"}', client_reference => 'mine-1');
SELECT pg_temp.refusal($$SELECT reconcile.submit('submit', '{"r": 2}', client_reference => 'mine-1')$$);
SELECT pg_temp.refusal($$SELECT reconcile.submit('submit', '{"r": 2}', 'key-r', 'mine-1')$$);
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload, client_reference) VALUES ('submit', '{"r": 2}', 'mine-1')$$);
SELECT r AS reference, pg_temp.refusal(format($$SELECT reconcile.submit('submit.text', '{"room": "a", "title": "x"}', client_reference => %L)$$, r))
FROM unnest(ARRAY['', 'a b', 'a/b', '..', '.', E'a\r\nb', 'ä', repeat('r', 201)]) WITH ORDINALITY AS x(r, n) ORDER BY n;

-- Also where the reference is in no path: a proxy folds such a name away in the question.
SELECT r AS reference, pg_temp.refusal(format($$SELECT reconcile.submit('submit.json', '{"title": "x"}', client_reference => %L)$$, r)) FROM unnest('{.,..}'::text[]) r;
SELECT reference FROM reconcile.submit('submit.json', '{"title": "..."}', client_reference => '...');
-- A title is the title and no more, also in a template of JSON.
SELECT reference FROM reconcile.submit('submit.json', '{"title": "x\"\n, \"amount\": 100"}', client_reference => 'json-1');
SELECT r.body, r.body::jsonb->>'title' = a.payload->>'title' AS the_title FROM reconcile.action a JOIN reconcile.operation o USING (operation),
	reconcile.render_request(o, a.client_reference, a.payload) r WHERE client_reference = 'json-1';
SELECT pg_temp.refusal($$SELECT reconcile.submit('submit.json', '{"title": null}')$$);

-- A place for the reference that is none: nothing is sent without it.
SELECT p AS place, pg_temp.refusal(format($q$UPDATE reconcile.operation SET reference_body_path = %L WHERE operation = 'submit.ref'; SELECT reconcile.submit('submit.ref', '{"kind": "a"}')$q$, p)) AS refusal
FROM unnest('{"{}","{a,NULL}","{NULL}","{{a}}"}'::text[]) WITH ORDINALITY AS x(p, n) ORDER BY n;

-- What could not be sent is refused now, with the caller's words still there.
SELECT pg_temp.refusal('SELECT reconcile.submit(' || a || ')') FROM unnest(ARRAY[
	$$'nothing', '{}'$$, $$NULL, '{}'$$, $$'submit', NULL$$, $$'submit', '{}', on_duplicate => 'maybe'$$, $$'submit', '{}', on_duplicate => NULL$$,
	$$'submit', '{}', ' '$$, $$'submit', '{}', repeat('k', 256)$$,
	$$'submit.text', '{"title": "x"}'$$, $$'submit.text', '{"room": "a\r\nX-Evil: b", "title": "x"}'$$, $$'submit.text', '{"room": "a", "title": "x\ny"}'$$,
	$$'submit.text', '{"room": "", "title": "x"}'$$, $$'submit.ref', '{"kind": ".."}'$$, $$'submit.ref', '{"kind": ""}'$$, $$'submit.ref', '{"kind": ["a"]}'$$,
	$$'submit.ref', '[1]'$$, $$'submit.ref', '{"kind": "a", "meta": 1}'$$, $$'submit', '{"n": -1e-400}'$$,
	$$'submit', jsonb_build_object('x', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 40000) i))$$
	]) WITH ORDINALITY AS x(a, n) ORDER BY n;
SELECT pg_temp.refusal($$INSERT INTO reconcile.action (operation, payload) VALUES ('nothing', '{}')$$);
SELECT pg_temp.submitted($$'submit.ref', '{"kind": "a/b"}'$$);

-- Nothing of what was refused is half stored: every action has its one entry, every entry its action.
SELECT count(*) AS actions, count(*) FILTER (WHERE h.version = 1) AS with_entry FROM reconcile.action a LEFT JOIN reconcile.history h USING (action_id, version)
WHERE a.provider = 'submit' AND a.version = 1;
SELECT count(*) FROM reconcile.verify_history() v JOIN reconcile.action a USING (action_id) WHERE a.provider = 'submit';
SELECT count(*) FROM reconcile.fold_violation() v JOIN reconcile.action a USING (action_id) WHERE a.provider = 'submit';
ROLLBACK;
