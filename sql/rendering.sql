-- Templates: what is filled in, and what would break out of its place.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SET search_path = reconcile, public;

-- the three parts
SELECT render('/cal/{client_reference}.ics', 'path', 'a-1', '{}');
SELECT render('/users/{name}/things?q={name}&n={n}&b={b}', 'path', 'r', '{"name": "a b/c?d&e=ü", "n": 12.50, "b": true}');
SELECT render('ref={client_reference}; name={name}', 'header', 'r', '{"name": "a b/c?d&e=ü"}');
SELECT render('BEGIN:{client_reference} {name}', 'text', 'r', '{"name": "a b/c?d&e=ü", "unused": [1]}');
SELECT render('{empty}|{name}', 'text', 'r', '{"empty": "", "name": "x"}');
SELECT pg_temp.refusal($$SELECT reconcile.render('x', 'body', 'r', '{}')$$);
SELECT render('', 'path', 'r', '{}') = '' AS empty, render('', 'text', 'r', '{}') = '' AS empty;

-- inside a JSON string: whatever the value is, the string ends where the template ends it
SELECT render('{"t": "{t}", "ref": "{client_reference}"}', 'json', 'r-1', jsonb_build_object('t', E'a"b\\c\n\t\r' || chr(1) || chr(8) || '/ü' || chr(8232)));
SELECT c AS code, render('{"t": "{t}"}', 'json', 'r', jsonb_build_object('t', chr(c)))::jsonb->>'t' = chr(c) AS reads_back
FROM unnest('{1,8,9,10,12,13,31,34,39,47,92,123,125,127,133,8232,65279,128512}'::int[]) c WHERE c < 128 OR getdatabaseencoding() = 'UTF8' ORDER BY c;
SELECT render('{"t": "{t}"}', 'json', 'r', jsonb_build_object('t', t))::jsonb = jsonb_build_object('t', t) AS the_value_and_no_more, t
FROM unnest(ARRAY['', 'x", "admin": "true', '\', '\"', '\\", "a": "b', '{t}', '{client_reference}', '\u0022', '}{']) t;
SELECT render('{"n": {n}, "b": {b}, "e": "{e}"}', 'json', 'r', '{"n": 12.50, "b": false, "e": ""}');
SELECT pg_temp.refusal(format('SELECT reconcile.render(''{"t": "{t}"}'', ''json'', ''r'', %L)', p)) FROM unnest('{"{}","{\"t\": null}","{\"t\": {\"a\": 1}}"}'::text[]) WITH ORDINALITY AS x(p, n) ORDER BY n;

-- the template of a body is one of JSON by its content type, and by nothing else
CREATE FUNCTION pg_temp.body(headers jsonb) RETURNS text LANGUAGE sql AS $$
	SELECT r.body FROM jsonb_populate_record(NULL::reconcile.operation, jsonb_build_object('method', 'POST', 'path', '/x', 'headers', $1, 'body_template', '{t}')) op,
		reconcile.render_request(op, 'r', '{"t": "a\"b"}') r
$$;
SELECT h AS headers, pg_temp.body(h) FROM unnest(ARRAY['{"Content-Type": "application/json"}', '{"content-type": "application/merge-patch+JSON; charset=utf-8"}', '{}',
	'{"Content-Type": "text/calendar"}', '{"Content-Type": "text/plain", "Accept": "application/json"}', '{"Content-Type": "text/plain", "X-Json": "1"}']::jsonb[]) WITH ORDINALITY AS x(h, n) ORDER BY n;
SELECT render(NULL, 'path', 'r', '{}') IS NULL AS strict;

-- a value is no template, and braces around what is no name stand for themselves
SELECT render('{a} {b}', 'text', 'r', '{"a": "{client_reference}", "b": "{b}"}');
SELECT render('{ } {} {a-b} { a} {"x": {a}} {a', 'text', 'r', '{"a": 1}');
-- the reference is the action's, whatever the payload holds
SELECT render('{client_reference}', 'text', 'real', '{"client_reference": "false"}');

-- values that are missing, or are no scalar
SELECT pg_temp.refusal($$SELECT reconcile.render('/x/{nothing}', 'path', 'r', '{"a": 1}')$$);
SELECT pg_temp.refusal(format('SELECT reconcile.render(''{a}'', ''text'', ''r'', %L)', p))
FROM unnest('{"{\"a\": null}","{\"a\": [1]}","{\"a\": {\"b\": 1}}","[\"a\"]","\"a\""}'::text[]) WITH ORDINALITY AS x(p, n) ORDER BY n;

-- control characters, in every part; C1 and line separators are no line ends of HTTP
SELECT p AS part, c AS code, pg_temp.refusal(format('SELECT reconcile.render(%L, %L, ''r'', jsonb_build_object(''a'', ''x'' || chr(%s) || ''y''))',
	'/{a}', p, c)) AS refusal
FROM unnest('{path,header,text}'::text[]) p, unnest('{1,9,10,13,31,127}'::int[]) c ORDER BY p, c;
SELECT render('/{a}', 'path', 'r', jsonb_build_object('a', chr(133) || chr(8232) || '~'));
SELECT pg_temp.refusal($$SELECT reconcile.render('/{client_reference}', 'path', E'a\r\nb', '{}')$$);
-- empty values move a path to another object, and leave a header without a value
SELECT pg_temp.refusal($$SELECT reconcile.render('/{a}', 'path', 'r', '{"a": ""}')$$);
SELECT pg_temp.refusal($$SELECT reconcile.render('{a}', 'header', 'r', '{"a": ""}')$$);

-- segments that would be folded away
SELECT t AS template, pg_temp.refusal(format('SELECT reconcile.render(%L, ''path'', %L, ''{}'')', t, r)) AS refusal
FROM (VALUES (1, '/x/{client_reference}', '..'), (2, '/x/{client_reference}/y', '.'), (3, '/x/{client_reference}?y', '..'),
	(4, '/../{client_reference}', 'r'), (5, '/./{client_reference}', 'r'), (6, '/x//{client_reference}', 'r'),
	(7, '//{client_reference}', 'r')) AS x(n, t, r) ORDER BY n;
SELECT t AS template, render(t, 'path', r, '{}') FROM (VALUES (1, '/x/{client_reference}', '...'), (2, '/x/{client_reference}', '.a'),
	(3, '/x/{client_reference}/', 'r'), (4, '/x?p=/../{client_reference}', '..'), (5, '/', 'r'),
	(6, '/x/{client_reference}', '%2e%2e'), (7, '/x/{client_reference}', 'a/../b')) AS x(n, t, r) ORDER BY n;

-- headers
SELECT render_headers('{"Content-Type": "application/json", "Idempotency-Key": "{client_reference}", "X-N": "{n}"}', 'r-1', '{"n": 7}');
SELECT render_headers('{}', 'r', '{}');
SELECT pg_temp.refusal(format('SELECT reconcile.render_headers(%L, ''r'', %L)', h, p)) FROM (VALUES
	(1, '{"X-A": "{a}"}', '{"a": "b\r\nX-B: c"}'), (2, '{"X-A": "{a}"}', '{}'), (3, '{"X-A": "{a}"}', '{"a": ""}'),
	(4, '{"X-A": ""}', '{}'), (5, '{"X-A": 1}', '{}'), (6, '{"X-A": ["a"]}', '{}'), (7, '{"X-A": null}', '{}'), (8, '[]', '{}'), (9, '"X"', '{}')
) AS x(n, h, p) ORDER BY n;

-- header names: tokens only, and none that frames the message
SELECT pg_temp.refusal(format('SELECT reconcile.check_header_names(jsonb_build_object(%L, ''v''))', name))
FROM unnest(ARRAY['Host', 'content-length', 'Transfer-Encoding', 'CONNECTION', 'Expect', 'Upgrade', 'TE', 'Trailer', 'Keep-Alive',
	'Accept-Encoding', 'Proxy-Authorization', '', 'X A', 'X:A', E'X\r\nA', 'X-Ü', repeat('x', 129)]) WITH ORDINALITY AS x(name, n) ORDER BY n;
SELECT check_header_names(jsonb_build_object('X-!#$%&''*+.^_`|~9', 'v', repeat('x', 128), E'a\tb')) IS NOT NULL AS accepted;
SELECT pg_temp.refusal($$SELECT reconcile.check_header_names(jsonb_build_object('X-A', E'a\nb'))$$);

-- the reference inside a JSON body
SELECT render_json('{"a": 1}', '{ref}', 'r'), render_json('{"m": {"k": 1}}', '{m,ref}', 'r'), render_json('{}', '{a,b,c}', 'r'),
	render_json('{"ref": "theirs"}', '{ref}', 'r') AS ours_wins;
SELECT pg_temp.refusal(format('SELECT reconcile.render_json(%L, %L, ''r'')', b, p)) FROM (VALUES
	(1, '[1]', '{ref}'), (2, '"a"', '{ref}'), (3, '{"m": 1}', '{m,ref}'), (5, '{"m": null}', '{m,ref}'),
	(6, '{}', '{}'), (7, '{"m": [{}]}', '{m,0,ref}'), (8, '{"m": {"k": "v"}}', '{m,k,ref}')) AS x(n, b, p) ORDER BY n;
-- whatever is accepted carries the reference there
SELECT count(*) AS bodies, bool_and(reconcile.render_json(b, p, 'r') #>> p = 'r') AS carried
FROM unnest(ARRAY['{}', '{"a": {}}', '{"a": {"b": 1}}', '{"a": {"b": {"c": null}}}', '{"b": [1], "a": {"z": [2]}}']::jsonb[]) b,
	unnest('{a/b,c,a/y/x/w,0,-1/0}'::text[]) q, string_to_array(q, '/') p;

-- nested values: the exact key wins, then the dots lead inside
SELECT render('/{a.b}/{c.d.e}/{f.g.h}', 'path', 'r', '{"a.b": "exact", "a": {"b": "nested"}, "c": {"d": {"e": 1}}, "f": {"g.h": true}}');
SELECT render('{a.} {.a} {a..b} {a.b?} {a?} {?}', 'text', 'r', '{}') AS no_names;
SELECT pg_temp.refusal(format('SELECT reconcile.render(''{a.b}'', ''text'', ''r'', %L)', p))
FROM unnest('{"{\"a\": 1}","{\"a\": {\"b\": null}}","{\"a\": {\"b\": {}}}","{\"a\": [{\"b\": 1}]}"}'::text[]) WITH ORDINALITY AS x(p, n) ORDER BY n;
SELECT pg_temp.refusal(format('SELECT reconcile.render(''/x{a?}'', %L, ''r'', ''{"a": 1}'')', p)) FROM unnest('{path,header}'::text[]) p;
-- dots that are written otherwise are the same segment
SELECT t AS template, pg_temp.refusal(format('SELECT reconcile.render(%L, ''path'', ''.'', ''{}'')', t)) AS refusal
FROM unnest(ARRAY['/%2e%2E/x', '/x/.%2e', '/x/%2E?y', '/x/%2e{client_reference}/y', '/x/{client_reference}%2E']) WITH ORDINALITY AS x(t, n) ORDER BY n;
SELECT render('/%2e%2e%2e/%2ex/%252e', 'path', 'r', '{}');
-- limits of the parts
SELECT p AS part, n, pg_temp.refusal(format('SELECT length(reconcile.render(''/{a}'', %L, ''r'', jsonb_build_object(''a'', repeat(''x'', %s))))', p, n - 1)) ~ '^ACCEPTED' AS accepted
FROM (VALUES ('path', 8000), ('header', 8000), ('text', 1048576), ('json', 1048576), ('form', 1048576)) x(p, most), generate_series(most, most + 1) n ORDER BY most, p, n;
SELECT pg_temp.refusal($$SELECT reconcile.render('/{a}', 'path', 'r', jsonb_build_object('a', repeat('ü', 1400)))$$);
SELECT pg_temp.refusal($$SELECT reconcile.render('{a}', 'header', 'r', jsonb_build_object('a', repeat('x', 8001)))$$);
SELECT pg_temp.refusal($$SELECT reconcile.render('{a}', 'text', 'r', jsonb_build_object('a', repeat('x', 1048577)))$$);
-- the credential is named by the template alone
SELECT render_headers('{"Authorization": "Bearer {credential}", "X-A": "{a}"}', 'r', '{"credential": "theirs", "a": "{credentials}"}');
SELECT pg_temp.refusal(format('SELECT reconcile.render(%L, ''header'', ''r'', %L)', t, p)) FROM (VALUES
	(1, '{a}', '{"a": "{credential}"}'), (2, '{a}dential}', '{"a": "{cre"}'), (3, '{credential}{a}', '{"a": "x{credential}"}')) AS x(n, t, p) ORDER BY n;
SELECT render('/{credential}', 'path', 'r', '{"credential": "of the payload"}');
-- no key where none can be
SELECT pg_temp.refusal($$SELECT reconcile.render('/{idempotency_key}', 'path', 'r', '{"idempotency_key": "theirs"}')$$);
-- a header has one name, in whatever case
SELECT pg_temp.refusal($$SELECT reconcile.check_header_names('{"Content-Type": "a", "X": "b", "content-TYPE": "c"}')$$);
