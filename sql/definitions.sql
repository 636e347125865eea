-- Providers, operations and lookup rules: what is refused, by the name of the rule.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('definitions');
-- Only what sends its reference can be looked up by it.
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path) VALUES ('definitions.ref', 'definitions', '/things', '{ref}');
-- Rows that are accepted, and for each refused one what is different about it.
CREATE TEMP TABLE sound (target text, columns jsonb);
INSERT INTO sound VALUES
	('provider', '{"provider": "p", "base_url": "https://api.example/v1"}'),
	('operation', '{"operation": "o", "provider": "definitions", "path": "/x"}'),
	('lookup_rule get', '{"operation": "definitions.ref", "kind": "get_by_reference", "path": "/x/{client_reference}", "absent_statuses": "{404}", "reference_path": "$.ref"}'),
	('lookup_rule list', '{"operation": "definitions.ref", "kind": "list_by_reference", "path": "/x?ref={client_reference}", "items_path": "$.data[*]", "reference_path": "$.ref"}');
CREATE FUNCTION pg_temp.insertion(target text, change jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT format('INSERT INTO reconcile.%I (%s) VALUES (%s)', split_part($1, ' ', 1), string_agg(quote_ident(key), ', '), string_agg(quote_nullable(value), ', '))
	FROM sound s, jsonb_each_text(s.columns || $2) WHERE s.target = $1
$$;
CREATE TEMP TABLE unsound (n int GENERATED ALWAYS AS IDENTITY, target text, change jsonb);
INSERT INTO unsound (target, change) SELECT t, jsonb_strip_nulls(jsonb_build_object(c, v)) || CASE WHEN v IS NULL THEN jsonb_build_object(c, NULL) ELSE '{}' END FROM (VALUES
	('provider', 'provider', ARRAY['P', '9p', 'a b', '', repeat('p', 64)]),
	('provider', 'base_url', ARRAY['ftp://a.example', 'https://', 'https://a.example/', 'https://user:pw@a.example', 'https://a.example?x=1',
		'https://a.example/v1#f', 'https://a.example/a b', E'https://a.example/\r\nX', 'https:///x', 'http://a.example']),
	('provider', 'consistency_window', ARRAY['-1 second', '61 days', NULL]),
	('provider', 'window_source', ARRAY['guessed']),
	('provider', 'late_arrival_max', ARRAY['-1 second', '8 days']),
	('provider', 'max_in_flight', ARRAY['0', '1001']),
	('provider', 'max_rate', ARRAY['0', '-1', '10001']),
	('provider', 'ambiguity_budget', ARRAY['0', '1000001']),
	('provider', 'max_lookups_in_flight', ARRAY['0', '1001']),
	('provider', 'max_lookup_rate', ARRAY['0', '10001']),
	('provider', 'breaker_after', ARRAY['0', '1000001']),
	('provider', 'breaker_pause', ARRAY['0', '6 minutes']),
	('provider', 'breaker_pause_max', ARRAY['4 seconds', '25 hours']),
	('provider', 'connect_timeout', ARRAY['0', '6 minutes']),
	('provider', 'attempt_timeout', ARRAY['0', '2 hours']),
	('provider', 'max_response_bytes', ARRAY['1023', '67108865']),
	('provider', 'paused_reason', ARRAY['why']),
	('provider', 'paused_at', ARRAY['2026-01-01']),
	('operation', 'operation', ARRAY['O', 'a/b']),
	('operation', 'provider', ARRAY['nobody']),
	('operation', 'method', ARRAY['GET', 'post', 'CONNECT', E'POST /x HTTP/1.1\r\n']),
	('operation', 'path', ARRAY['x', '', '/a b', '/a#b', E'/a\nb', 'https://other.example/']),
	('operation', 'headers', ARRAY['[]', '"X-A: b"', '{"Content-Length": "1"}', '{"X-A": 1}']),
	('operation', 'on_absent', ARRAY['retry']),
	('operation', 'max_replacements', ARRAY['-1', '101']),
	('operation', 'retry_pause', ARRAY['0', '2 minutes']),
	('operation', 'retry_pause_max', ARRAY['2 days']),
	('operation', 'retry_after_max', ARRAY['-1 second', '8 days']),
	('operation', 'artifact_path', ARRAY['$.']),
	('lookup_rule get', 'operation', ARRAY['nothing']),
	('lookup_rule get', 'position', ARRAY['2', '0']),
	('lookup_rule get', 'kind', ARRAY['search']),
	('lookup_rule get', 'path', ARRAY['/x', '', 'x/{client_reference}', '/a b/{client_reference}', '/x/../{client_reference}']),
	('lookup_rule get', 'headers', ARRAY['[]', '{"Host": "other.example"}', '{"X-A": ""}']),
	('lookup_rule get', 'items_path', ARRAY['$.data[*]']),
	('lookup_rule get', 'reference_path', ARRAY[NULL]),
	('lookup_rule get', 'body_match', ARRAY['UID:{client_reference}']),
	('lookup_rule get', 'absent_statuses', ARRAY['{}', '{404,200}']),
	('lookup_rule get', 'found_statuses', ARRAY['{}']),
	('lookup_rule get', 'consistency_window', ARRAY['5 seconds']),
	('lookup_rule get', 'window_source', ARRAY['measured']),
	('lookup_rule get', 'min_negatives', ARRAY['0', '21']),
	('lookup_rule get', 'negative_spacing', ARRAY['-1 second', '8 days']),
	('lookup_rule get', 'pause', ARRAY['0', '2 minutes']),
	('lookup_rule get', 'pause_max', ARRAY['8 days']),
	('lookup_rule get', 'max_inconclusive', ARRAY['0', '1001']),
	('lookup_rule get', 'timeout', ARRAY['0', '11 minutes']),
	('lookup_rule list', 'items_path', ARRAY[NULL]),
	('lookup_rule list', 'reference_path', ARRAY[NULL]),
	('lookup_rule list', 'body_match', ARRAY['{client_reference}'])) AS x(t, c, vs), unnest(vs) v;
INSERT INTO unsound (target, change) VALUES
	('operation', '{"body_template": "x", "reference_body_path": "{ref}"}'),
	('operation', '{"artifact_path": "$.id", "artifact_header": "Location"}'),
	('lookup_rule get', '{"artifact_path": "$.id", "artifact_header": "Location"}'),
	('lookup_rule get', '{"body_match": "UID:", "reference_path": null}'),
	('lookup_rule get', '{"consistency_window": "-1 second", "window_source": "measured"}');

-- The sound ones are; so each refusal is about the change alone.
SELECT target, pg_temp.refusal(pg_temp.insertion(target, '{}')) LIKE 'ACCEPTED%' AS accepted FROM sound ORDER BY target;
CREATE TEMP TABLE answers AS
	SELECT n, target, change, (SELECT string_agg(r, ' ') FROM pg_temp.refusal(pg_temp.insertion(target, change)) r) AS answer FROM unsound;
SELECT target, change, regexp_replace(answer, ': new row for relation.*| HINT: .*', '') AS refused FROM answers ORDER BY n;
-- Every check of the three tables has refused something here, but for two: headers that are no object are refused by the trigger before.
SELECT conrelid::regclass AS "table", conname AS "check that refused nothing" FROM pg_constraint
WHERE contype = 'c' AND conrelid IN ('reconcile.provider'::regclass, 'reconcile.operation'::regclass, 'reconcile.lookup_rule'::regclass)
	AND NOT EXISTS (SELECT FROM answers WHERE answer LIKE '23514 ' || conname || ':%') ORDER BY 1, 2;

-- Hosts, ports and prefixes that are sound.
SELECT u AS base_url, pg_temp.refusal(pg_temp.insertion('provider', jsonb_build_object('base_url', u, 'allow_http', true))) LIKE 'ACCEPTED%' AS accepted
FROM unnest('{http://127.0.0.1:8080,"https://[::1]:8443/v1","https://api.example/a/b%20c"}'::text[]) u ORDER BY u COLLATE "C";

-- What a lookup needs of its operation: that it sends what is asked for, and that what is found, or not, is its own.
CREATE TEMP TABLE shape (n int GENERATED ALWAYS AS IDENTITY, columns jsonb);
INSERT INTO shape (columns) VALUES ('{}'), ('{"path": "/x/{client_reference}"}'), ('{"path": "/x?r={client_reference}"}'), ('{"headers": {"Idempotency-Key": "{client_reference}"}}'),
	('{"body_template": "ref={client_reference}"}'), ('{"reference_body_path": "{ref}"}'), ('{"path": "/x/{name}", "body_template": "{reference}"}'),
	('{"method": "PUT"}'), ('{"method": "PUT", "path": "/x/{client_reference}"}'), ('{"method": "PUT", "path": "/x/{client_reference}.ics", "body_template": "UID:{client_reference}"}'),
	('{"method": "PUT", "headers": {"X-R": "{client_reference}"}}'), ('{"method": "PUT", "body_template": "{client_reference}"}'), ('{"method": "PUT", "reference_body_path": "{ref}"}'),
	('{"method": "PATCH", "path": "/x/{client_reference}"}'), ('{"method": "PATCH", "reference_body_path": "{ref}"}'), ('{"method": "DELETE", "path": "/x/{client_reference}"}');
CREATE FUNCTION pg_temp.with_rule(shape jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT pg_temp.insertion('operation', $1) || '; ' || pg_temp.insertion('lookup_rule list', '{"operation": "o"}') || '; SET CONSTRAINTS ALL IMMEDIATE'
$$;
SELECT columns, (SELECT regexp_replace(string_agg(r, ' '), 'ACCEPTED.*', 'ACCEPTED') FROM pg_temp.refusal(pg_temp.with_rule(columns)) r) AS "with a rule" FROM shape ORDER BY n;
-- All of them are operations, though.
SELECT count(*) AS shapes, count(*) FILTER (WHERE r LIKE 'ACCEPTED%') AS accepted FROM shape, pg_temp.refusal(pg_temp.insertion('operation', columns)) r;
-- An operation that has its rule stays one that can be looked up.
SELECT columns, (SELECT regexp_replace(string_agg(r, ' '), 'ACCEPTED.*', 'ACCEPTED') FROM pg_temp.refusal(pg_temp.with_rule('{"reference_body_path": "{ref}"}') || format('; UPDATE reconcile.operation SET (%s) = ROW (%s) WHERE operation = ''o''', names, vals)) r) AS "changed to"
FROM (SELECT n, columns, string_agg(quote_ident(key), ', ') AS names, string_agg(quote_nullable(value), ', ') AS vals
	FROM shape, jsonb_each_text('{"method": "POST", "path": "/x", "headers": {}, "body_template": null, "reference_body_path": null}' || columns) GROUP BY n, columns) x ORDER BY n;
-- A question may name the reference, and members of the payload, in its headers.
SELECT pg_temp.refusal(pg_temp.insertion('lookup_rule get', '{"headers": {"X-Ref": "{client_reference} {name}", "Accept": "text/calendar"}}')) LIKE 'ACCEPTED%' AS accepted;

-- Versions count changes of what is sent, and a pause is none.
UPDATE reconcile.provider SET max_in_flight = 2 WHERE provider = 'definitions' RETURNING version;
UPDATE reconcile.provider SET max_in_flight = 2, ca_file = ca_file WHERE provider = 'definitions' RETURNING version AS "nothing changed";
UPDATE reconcile.provider SET version = 77 WHERE provider = 'definitions' RETURNING version AS "no version by hand";
SAVEPOINT as_it_was;
UPDATE reconcile.provider SET paused_at = now(), paused_reason = 'x', version = 1 WHERE provider = 'definitions' RETURNING version AS "nor with a pause";
UPDATE reconcile.provider SET paused_reason = 'y' WHERE provider = 'definitions' RETURNING version AS "another reason";
UPDATE reconcile.provider SET paused_at = NULL, paused_reason = NULL, attempt_timeout = '9 s' WHERE provider = 'definitions' RETURNING version AS "a change beside a pause";
ROLLBACK TO as_it_was;
SELECT reconcile.pause('definitions', 'a test');
SELECT reconcile.pause('definitions', 'again');
SELECT version, paused_at IS NOT NULL AS paused, paused_reason FROM reconcile.provider WHERE provider = 'definitions';
SELECT reconcile.resume('definitions');
SELECT version, paused_at, paused_reason FROM reconcile.provider WHERE provider = 'definitions';
UPDATE reconcile.operation SET version = 77, path = '/other' WHERE operation = 'definitions' RETURNING version;
SELECT pg_temp.refusal(s) FROM unnest(ARRAY[$$SELECT reconcile.pause('nobody', 'x')$$, $$SELECT reconcile.resume('nobody')$$,
	$$SELECT reconcile.pause('definitions', E' \t')$$, $$SELECT reconcile.pause('definitions', NULL)$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;

-- What cannot change: names, and the address while something is unresolved there.
SELECT pg_temp.refusal(s) FROM unnest(ARRAY[$$UPDATE reconcile.provider SET provider = 'renamed' WHERE provider = 'definitions'$$,
	$$UPDATE reconcile.operation SET operation = 'renamed' WHERE operation = 'definitions'$$,
	$$UPDATE reconcile.operation SET headers = '{"Host": "x"}' WHERE operation = 'definitions'$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
UPDATE reconcile.provider SET base_url = 'https://new.example' WHERE provider = 'definitions' RETURNING base_url;
SELECT count(pg_temp.stage_action(pg_temp.id(n::int), 'definitions', s)) FROM unnest('{planned,succeeded,safe_to_retry}'::reconcile.state[]) WITH ORDINALITY x(s, n);
UPDATE reconcile.provider SET base_url = 'https://newer.example' WHERE provider = 'definitions' RETURNING base_url;
SELECT s AS state, pg_temp.refusal(format($q$SELECT pg_temp.stage_action(pg_temp.id(9), 'definitions', %L);
	UPDATE reconcile.provider SET base_url = 'https://newest.example' WHERE provider = 'definitions'$q$, s))
FROM unnest('{submitted,outcome_unknown,reconciling,manual_review,delivered}'::reconcile.state[]) s ORDER BY s;
-- Something planned has been nowhere yet, unless an attempt of it has ended already.
SELECT attempts, (SELECT string_agg(r, ' ') FROM pg_temp.refusal(format($q$INSERT INTO reconcile.action
	SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(8), 'client_reference', 'r', 'payload', '{"n": 8}'::jsonb, 'intent_key', 'k', 'attempts', %s))).* FROM reconcile.action a WHERE action_id = pg_temp.id(1);
	UPDATE reconcile.provider SET base_url = 'https://newest.example' WHERE provider = 'definitions'$q$, attempts)) r) LIKE 'ACCEPTED%' AS accepted
FROM generate_series(0, 2) attempts;
SELECT pg_temp.refusal($$DELETE FROM reconcile.operation WHERE operation = 'definitions'$$);
SELECT pg_temp.refusal($$DELETE FROM reconcile.provider WHERE provider = 'definitions'$$);

-- A rule cannot go while something may have to be asked by it: for each state, and with a proof of absence that a replacement rests on.
DO $$ BEGIN EXECUTE pg_temp.insertion('lookup_rule list', '{}'); END $$;
INSERT INTO reconcile.operation (operation, provider, path) VALUES ('definitions.other', 'definitions', '/{client_reference}');
CREATE FUNCTION pg_temp.resting(state reconcile.state, looked_at timestamptz, change text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(CASE WHEN r LIKE 'ACCEPTED%' THEN 'ACCEPTED' ELSE r END, ' ') FROM pg_temp.refusal(format($q$SELECT pg_temp.stage_action(pg_temp.id(10), 'definitions.ref', %L);
		INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(11), 'client_reference', 'r', 'intent_key', 'k', 'looked_at', %L))).*
		FROM reconcile.action a WHERE action_id = pg_temp.id(10) AND %L IS NOT NULL;
		%s WHERE operation = 'definitions.ref'$q$, $1, $2, $2, $3)) r
$$;
SELECT s AS state, a IS NOT NULL AS proof, pg_temp.resting(s, a, 'DELETE FROM reconcile.lookup_rule') AS deleted
FROM unnest(enum_range(NULL::reconcile.state)) s, unnest('{2026-01-02,NULL}'::timestamptz[]) a WHERE a IS NULL OR s IN ('planned', 'safe_to_retry', 'succeeded') ORDER BY 1, 2;
SELECT count(*) AS states, count(*) FILTER (WHERE pg_temp.resting(s, NULL, 'DELETE FROM reconcile.lookup_rule') = pg_temp.resting(s, NULL, 'UPDATE reconcile.lookup_rule SET operation = ''definitions.other''')) AS "moved as deleted",
	count(*) FILTER (WHERE pg_temp.resting(s, NULL, 'UPDATE reconcile.lookup_rule SET pause = ''2 s'', path = ''/y?ref={client_reference}''') = 'ACCEPTED') AS changed
FROM unnest(enum_range(NULL::reconcile.state)) s;
ROLLBACK;
