-- Whole requests: keys, documents, forms; and the questions about them.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SET search_path = reconcile, public;

-- An operation as the table would hold it, with these columns different.
CREATE FUNCTION pg_temp.op(columns jsonb) RETURNS reconcile.operation LANGUAGE sql STABLE AS $$
	SELECT jsonb_populate_record(NULL::reconcile.operation,
		'{"operation": "o", "provider": "p", "method": "POST", "path": "/x", "headers": {"Content-Type": "application/json"}, "body_format": "json"}'::jsonb || $1)
$$;
CREATE FUNCTION pg_temp.made(columns jsonb, payload jsonb, key text DEFAULT 'k-1', OUT path text, OUT headers text[], OUT body text) LANGUAGE sql STABLE AS $$
	SELECT * FROM reconcile.render_request(pg_temp.op($1), 'r-1', $2, $3)
$$;
CREATE FUNCTION pg_temp.refused(columns jsonb, payload jsonb, key text DEFAULT 'k-1') RETURNS SETOF text LANGUAGE sql AS $$
	SELECT pg_temp.refusal(format('SELECT reconcile.render_request(pg_temp.op(%L), ''r-1'', %L, %L)', $1, $2, $3))
$$;

-- the plain payload, digit for digit
SELECT * FROM pg_temp.made('{}', '{"amount": 20.00, "big": 12345678901234567890.10, "t": "ü\"", "n": null, "l": [1, {}]}');
SELECT * FROM pg_temp.made('{"method": "DELETE"}', '{"a": 1}');
SELECT * FROM pg_temp.made('{"method": "DELETE", "reference_body_path": ["ref"]}', '{"a": 1}');
SELECT * FROM pg_temp.made('{"body_format": "none"}', '{"a": 1}');
SELECT * FROM pg_temp.made('{"body_format": "none", "headers": {"Content-Type": "text/plain", "Accept": "*/*"}}', '{"a": 1}');

-- the key in each place
SELECT headers FROM pg_temp.made('{"headers": {"Idempotency-Key": "{idempotency_key}"}}', '{}');
SELECT headers FROM pg_temp.made('{"headers": {"Idempotency-Key": "\"{idempotency_key}\""}}', '{}') AS structured_field;
SELECT path FROM pg_temp.made('{"path": "/x?requestId={idempotency_key}&a={a}"}', '{"a": "&requestId=b"}', 'k/1?');
SELECT path FROM pg_temp.made('{"path": "/x/{idempotency_key}"}', '{}');
SELECT body FROM pg_temp.made('{"key_body_path": ["meta", "key"], "reference_body_path": ["meta", "ref"]}', '{"meta": {"a": 1}}');
SELECT body FROM pg_temp.made('{"body_document": {"idempotency_key": "{idempotency_key}", "order": "{payload}"}}', '{"a": 1, "idempotency_key": "theirs"}');
SELECT body FROM pg_temp.made('{"body_template": "{\"k\": \"{idempotency_key}\"}"}', '{}', 'k"1');
SELECT body FROM pg_temp.made('{"body_format": "form", "key_body_path": ["key"], "reference_body_path": ["metadata", "ref"]}', '{"a": 1}');

-- used where there is none
SELECT n, pg_temp.refused(c, '{"idempotency_key": "theirs"}', NULL) FROM unnest(ARRAY['{"path": "/x/{idempotency_key}"}', '{"headers": {"K": "{idempotency_key}"}}',
	'{"body_document": {"k": "{idempotency_key}"}}', '{"body_document": {"k": "k-{idempotency_key}"}}', '{"body_template": "{idempotency_key}"}', '{"key_body_path": ["k"]}']::jsonb[]) WITH ORDINALITY AS x(c, n);
SELECT body FROM pg_temp.made('{"body_document": {"k": "{idempotency_key?}", "a": 1}}', '{}', NULL);
SELECT * FROM reconcile.render_request(pg_temp.op('{}'), NULL, '{}');
SELECT * FROM reconcile.try_render_request(pg_temp.op('{"path": "/{idempotency_key}"}'), 'r-1', '{}');
SELECT * FROM reconcile.try_render_request(pg_temp.op('{"path": "/{idempotency_key}"}'), 'r-1', '{}', 'k-1');

-- does the request hold them?
SELECT c AS columns, takes_key(pg_temp.op(c)), sends_reference(pg_temp.op(c)) FROM unnest(ARRAY['{}', '{"path": "/x?k={idempotency_key}"}', '{"path": "/{client_reference}"}',
	'{"headers": {"K": "a{idempotency_key}", "R": "{client_reference}"}}', '{"headers": {"{idempotency_key}": "a", "R": "{client_references} {client_reference }"}}',
	'{"key_body_path": ["k"]}', '{"reference_body_path": ["k"]}', '{"body_document": {"a": [{"b": "{idempotency_key?}", "{client_reference}": 1}]}}', '{"body_document": "{client_reference}"}',
	'{"body_template": "{idempotency_key}{client_reference}"}', '{"body_format": "none", "path": "/{idempotency_key}"}', '{"headers": null, "path": null}']::jsonb[]) WITH ORDINALITY AS x(c, n) ORDER BY n;

-- a document: a placeholder alone takes the value with its type, in a longer text scalars are written
SELECT body FROM pg_temp.made('{"body_document": {"n": "{n}", "b": "{b}", "o": "{o}", "l": ["{l}", "x{n}", "{o.k}"], "z": "{z}", "t": "{n}-{b}-{t}", "lit": [1, null, true, "}{"]}}',
	'{"n": 20.00, "b": false, "o": {"k": [1]}, "l": [1, "2"], "z": null, "t": "\"\n{n}"}');
SELECT body FROM unnest(ARRAY['{"body_document": "{payload}"}', '{"body_document": ["{payload}", "{a}"]}', '{"body_document": "{client_reference}"}',
	'{"body_document": 7}', '{"body_document": {}}', '{"body_document": []}', '{"body_document": {"{a}": 1, "payload": "x"}}', '{"body_document": {"d": {"a": "{payload}"}}, "reference_body_path": ["d", "a", "ref"]}']::jsonb[]) WITH ORDINALITY AS x(c, n),
	pg_temp.made(c, '{"a": [1.0]}') ORDER BY n;
SELECT pg_temp.made('{"body_document": ["{payload}"]}', p) FROM unnest('{7,"\"x\"","null"}'::jsonb[]) p;
-- what may be missing is left out, whole
SELECT body FROM pg_temp.made('{"body_document": {"a": "{a?}", "b": {"c": "x {c.d?} y", "e": "{n?}"}, "l": ["{a?}", "{n?}", "z{a?}"], "m": {"a": "{a?}"}, "n": "{n?}", "t": "{n?}, if there is one"}}', '{"n": null}');
SELECT body FROM pg_temp.made('{"body_document": {"a": "{a?}", "c": "x {c.d?} y"}}', '{"a": 1, "c": {"d": 2}}');
SELECT n, pg_temp.refused(c, '{"o": {}, "z": null}') FROM unnest(ARRAY['{"body_document": {"a": "{a}"}}', '{"body_document": ["x{a}"]}', '{"body_document": "x{o}"}', '{"body_document": {"a": "x{o?}"}}',
	'{"body_document": {"a": "x{z}"}}', '{"body_document": {"a": "x{payload}"}}', '{"body_document": "{a?}"}']::jsonb[]) WITH ORDINALITY AS x(c, n) ORDER BY n;

-- a form
SELECT headers, body FROM pg_temp.made('{"body_format": "form", "headers": {"Idempotency-Key": "{idempotency_key}", "Content-Type": "application/json"}, "reference_body_path": ["metadata", "reference"]}',
	'{"amount": 2000, "currency": "usd", "rate": 20.00, "confirm": true, "off_session": false, "customer": null, "description": "Ü & Co = 100%+\n",
	"payment_method_types": ["card", "sepa debit"], "metadata": {"order": "6735"}, "items": [{"price": "p_1", "quantity": 2}, {"price": "p_2", "tax": [1, [2]]}], "none": {}, "empty": []}');
SELECT headers FROM unnest(ARRAY['{}', '{"content-type": "Application/JSON"}', '{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}', '{"Content-Type": "text/plain", "A": "b"}']::jsonb[]) WITH ORDINALITY AS x(h, n),
	pg_temp.made(jsonb_build_object('body_format', 'form', 'headers', h), '{"a": ""}') ORDER BY n;
SELECT body FROM pg_temp.made('{"body_format": "form", "body_document": {"a": "{a}", "b": ["{b?}", "{c?}", null, "{d}"]}}', '{"a": {"x y": [true]}, "c": 1, "d": "2"}');
SELECT body = '' AS empty FROM pg_temp.made('{"body_format": "form"}', '{"a": null, "b": [], "c": {"d": {}}}');
SELECT p, pg_temp.refused('{"body_format": "form"}', p) FROM unnest(ARRAY['[1]', '"a"', 'null', '{"": 1}', '{"metadata[ref]": "theirs"}', '{"a": {"b]": 1}}', '{"a": [{"[": 1}]}']::jsonb[]) p;
-- the template of a form takes values encoded, by its content type
SELECT body FROM pg_temp.made('{"headers": {"Content-Type": "application/x-www-form-urlencoded"}, "body_template": "a={a}&r={client_reference}"}', '{"a": "1&admin=true\n"}');
-- every byte in a form
SELECT reconcile.render('{a}', 'form', 'r', jsonb_build_object('a', (SELECT string_agg(chr(c), '' ORDER BY c) FROM generate_series(1, 127) c)));

-- no place for the reference or the key
SELECT n, pg_temp.refused(c, '{"m": 1}') FROM unnest(ARRAY['{"key_body_path": ["m", "k"]}', '{"key_body_path": []}', '{"key_body_path": ["a", null]}', '{"reference_body_path": ["m", "k"]}',
	'{"key_body_path": ["a"], "reference_body_path": ["a", "b"]}', '{"key_body_path": ["a"], "reference_body_path": ["a"]}', '{"body_document": "{m}", "key_body_path": ["a"]}', '{"body_format": "xml"}']::jsonb[]) WITH ORDINALITY AS x(c, n) ORDER BY n;
-- too much
SELECT pg_temp.refusal($$SELECT reconcile.render_request(pg_temp.op('{}'), 'r', jsonb_build_object('a', repeat('x', 1048576)))$$);
SELECT pg_temp.refusal($$SELECT reconcile.render_request(pg_temp.op('{"body_format": "form"}'), 'r', jsonb_build_object('a', repeat('&', 349526)))$$);
SELECT length(body) FROM reconcile.render_request(pg_temp.op('{"body_format": "form"}'), 'r', jsonb_build_object('a', repeat('&', 349524)));
SELECT pg_temp.refusal($$SELECT reconcile.render_request(pg_temp.op('{"headers": {"A": "{a}"}}'), 'r', jsonb_build_object('a', repeat('x', 8001)))$$);
SELECT pg_temp.refused('{"path": "/{a}/x"}', '{"a": ".."}');

-- questions: further values come before those of the payload
SELECT * FROM render_question('/x/{artifact_id}?since={since_unix}&r={client_reference}', '{"Authorization": "{credential}", "A": "{a}"}', NULL, 'r-1', '{"a": "of the payload", "artifact_id": "theirs"}', NULL,
	'{"artifact_id": "o/1", "since_unix": 1700000000}');
SELECT * FROM render_question('/search', '{"Accept": "application/json"}', '{"filter": {"property": "Ref", "equals": "{client_reference}"}, "limit": "{limit}", "cursor": "{cursor?}"}', 'r-1', NULL, NULL, '{"limit": 100}');
SELECT * FROM render_question('/search', '{"content-type": "application/graphql+json"}', '{"k": "{idempotency_key}"}', NULL, NULL, 'k-1', NULL);
SELECT * FROM render_question(NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT n, pg_temp.refusal(format('SELECT reconcile.render_question(%L, %L, %L, %L, %L, NULL, NULL)', p, h, b, r, v)) FROM (VALUES (1, '/{client_reference}', '{}', NULL, NULL, '{"client_reference": "theirs"}'),
	(2, '/{idempotency_key}', '{}', NULL, 'r', '{}'), (3, '/{since_unix}', '{}', NULL, 'r', '{}'), (4, '/{a}', '{}', NULL, 'r', '{"a": ".."}'), (5, '/x', '[]', NULL, 'r', '{}'),
	(6, '/x', '{}', '{"a": "{payload}"}', 'r', NULL), (7, '/x', '{"A": "{a}"}', NULL, 'r', '{"a": "\r\nB: c"}')) AS x(n, p, h, b, r, v) ORDER BY n;
SELECT * FROM try_render_question('/{a}', '{}', NULL, 'r', '{}', NULL, NULL);
SELECT * FROM try_render_question('/{a}', '{}', NULL, 'r', '{"a": 1}', NULL, '{}');

-- identifiers: one for each action and generation
SELECT f AS format, g AS generation, make_identifier('0196ff00-1234-7000-8000-0123456789ab', g, f), length(make_identifier('0196ff00-1234-7000-8000-0123456789ab', g, f))
FROM unnest('{uuid,hex,base32hex,base62}'::text[]) WITH ORDINALITY AS x(f, n), generate_series(0, 1) g ORDER BY n, g;
SELECT make_identifier('0196ff00-1234-7000-8000-0123456789ab', 2, 'hex') = left(encode(sha256('\x0196ff001234700080000123456789ab00000002'), 'hex'), 32) AS as_documented,
	uuid(make_identifier('0196ff00-1234-7000-8000-0123456789ab', 3, 'uuid'))::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' AS version_4;
SELECT f AS format, count(*), count(DISTINCT make_identifier(('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, g, f)) AS different,
	bool_and(make_identifier(('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, g, f) ~ CASE f WHEN 'base62' THEN '^[0-9A-Za-z]{22}$' WHEN 'base32hex' THEN '^[0-9a-v]{26}$' ELSE '^[0-9a-f-]{32,36}$' END) AS in_alphabet
FROM unnest('{uuid,hex,base32hex,base62}'::text[]) f, generate_series(0, 499) i, generate_series(0, 3) g GROUP BY f ORDER BY f;
SELECT pg_temp.refusal(format('SELECT reconcile.make_identifier(''00000000-0000-7000-8000-000000000001'', %s, %L)', g, f)) FROM (VALUES (0, 'base64'), (-1, 'uuid'), (0, 'reference')) AS x(g, f);
