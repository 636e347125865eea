-- The type intent_fingerprint, and the fingerprint of an intent.
\getenv abs_srcdir PG_ABS_SRCDIR
\getenv abs_builddir PG_ABS_BUILDDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SET search_path = reconcile, public;

-- Computed by Python:
--   c = json.dumps({"method": method.upper(), "path": path, "payload": json.loads(payload)}, sort_keys=True, separators=(",", ":"))
--   "sha256:" + hashlib.sha256(c.encode("utf-8")).hexdigest()
CREATE TEMP TABLE vector (n int, name text, method text, path text, payload jsonb, expected text);
INSERT INTO vector VALUES
	(1, 'empty object', 'POST', '/articles',
		'{}',
		'sha256:e38b65faed7c93578d0d3c1c66618d7f7b20c335ae73d98991572aedf12f3733'),
	(2, 'keys are sorted', 'POST', '/articles',
		'{"title": "Timeout", "a": 1, "bb": 2, "b": [3, {"z": null, "y": true}]}',
		'sha256:3bfe9d28a005c0a6ace506424e041a1c89edfafcfb7644ea0d45894e4d1cd3b2'),
	(3, 'method in lower case', 'post', '/articles',
		'{"title": "Timeout", "a": 1, "bb": 2, "b": [3, {"z": null, "y": true}]}',
		'sha256:3bfe9d28a005c0a6ace506424e041a1c89edfafcfb7644ea0d45894e4d1cd3b2'),
	(4, 'another method', 'PUT', '/articles',
		'{"title": "Timeout", "a": 1, "bb": 2, "b": [3, {"z": null, "y": true}]}',
		'sha256:8f394ec56ff583a32bb4780b2e8c6359287fdb28501c089cae9833988cc20676'),
	(5, 'another path', 'POST', '/article',
		'{"title": "Timeout", "a": 1, "bb": 2, "b": [3, {"z": null, "y": true}]}',
		'sha256:45384aeaca991406877186accf0fdef7ec9e3e497bbe0308062ea069c2c9fbfc'),
	(6, 'keys of several lengths', 'POST', '/k',
		'{"aa": 1, "b": 2, "a": 3, "B": 4, "": 5}',
		'sha256:99d77c6fd38c681de1e6e7268b47c2baa907b43aa37ee4fc1392808ca75e2b54'),
	(7, 'not ASCII', 'POST', E'/\u00fc',
		'{"\u00e4": "\u20ac \ud83d\ude00", "z": "\u007f"}',
		'sha256:9e83a66de01c3eeb5ff17a40fe1bef359fe1526a5437c0acf75310d5df86dd70'),
	(8, 'keys beyond the BMP', 'POST', '/k',
		'{"\uffff": 1, "\ud800\udc00": 2}',
		'sha256:080241eb1353ff6434de0b8c89fb72d9b08e157bd1206cd98ff921811ce2fffd'),
	(9, 'escapes', 'POST', '/e',
		'{"s": "quote \" backslash \\ slash / tab \t newline \n bell \u0007"}',
		'sha256:4d5d113df580295993ae6d12441eeaa14862b6070fdf94bac7cb2c4a658924c8'),
	(10, 'integers', 'POST', '/n',
		'[0, -1, 12345678901234567890123456789012345678901234567890]',
		'sha256:b9608e7c1d7fc906bde9ec244321dd6fd32478f4b074974312a6e5c1d7a4fc5c'),
	(11, 'fractions', 'POST', '/n',
		'[0.1, -2.5, 3.0, 1234567.891, 0.00001, 1e-7]',
		'sha256:97052806e94744247430af9e1dd67c158b4f094d2ed1b63c6fc387afe542c86f'),
	(12, 'text alone', 'DELETE', '/x',
		'"text"',
		'sha256:9aa45c83b3b1720f1adeed668527e5eafccf9a6c7773c2de9df085a4ff340845'),
	(13, 'null alone', 'PATCH', '/x',
		'null',
		'sha256:e56c4980d76a0e36c0254ee8b2a1a1584b6add6457fd45810edecf7ba08bb157'),
	(14, 'nested empties', 'POST', '/x',
		'[[], {}, [{}], ""]',
		'sha256:e4a17096e2a683bb03346e2ea3875f23f74f505ac85216c2e5889a3038515208');
SELECT name, intent_fingerprint(method, path, payload)::text = expected AS agrees FROM vector ORDER BY n;
SELECT name, intent_fingerprint(method, path, payload) FROM vector WHERE n <= 2 ORDER BY n;

-- the order of keys and the spaces of a text do not count, its values do
SELECT intent_fingerprint('POST', '/x', '{"a":1,"b":2}') = intent_fingerprint('post', '/x', ' { "b" : 2, "a" : 1 } ') AS same,
	intent_fingerprint('POST', '/x', '{"a":1}') = intent_fingerprint('POST', '/x', '{"a":"1"}') AS text_is_number,
	intent_fingerprint('POST', '/x', '{"a":null}') = intent_fingerprint('POST', '/x', '{}') AS null_is_nothing,
	intent_fingerprint('POST', '/x', '1') = intent_fingerprint('POST', '/x', '1.0') AS one_is_one_point_zero;
SELECT intent_fingerprint(NULL, '/x', '{}') IS NULL AS no_method, intent_fingerprint('POST', NULL, '{}') IS NULL AS no_path,
	intent_fingerprint('POST', '/x', NULL) IS NULL AS no_payload;

-- intents without a canonical text
SELECT pg_temp.refusal($$SELECT reconcile.intent_fingerprint('POST', '/x', ('[1, 1' || repeat('0', 400) || '.5]')::jsonb)$$);
SELECT pg_temp.refusal($$SELECT reconcile.intent_fingerprint('POST', '/x', '{"a": -1e-400}')$$);
SELECT pg_temp.refusal($$SELECT reconcile.intent_fingerprint('POST', '/x', (repeat('[', 1001) || repeat(']', 1001))::jsonb)$$);
SELECT pg_temp.refusal($$SELECT reconcile.intent_fingerprint('PO' || chr(233) || 'T', '/x', '{}')$$);

-- text in and out
CREATE FUNCTION pg_temp.text_refusal(value text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(r, E'\n') FROM pg_temp.refusal(format('SELECT %L::reconcile.intent_fingerprint', $1)) r
$$;
SELECT ('sha256:' || repeat('0123456789abcdef', 4))::intent_fingerprint;
SELECT pg_temp.text_refusal('sha256:' || repeat('0123456789ABCDEF', 4));
SELECT pg_temp.text_refusal('sha256:' || repeat('0', 63));
SELECT pg_temp.text_refusal('sha256:' || repeat('0', 65));
SELECT pg_temp.text_refusal('sha256:' || repeat('0', 63) || 'g');
SELECT pg_temp.text_refusal(repeat('0', 64));
SELECT pg_temp.text_refusal('SHA256:' || repeat('0', 64));
SELECT pg_temp.text_refusal('');

-- binary in and out
\set file :abs_builddir '/results/fingerprint.bin'
CREATE TEMP TABLE copied AS SELECT n, intent_fingerprint(method, path, payload) AS f FROM vector;
COPY copied TO :'file' (FORMAT binary);
CREATE TEMP TABLE back (LIKE copied);
COPY back FROM :'file' (FORMAT binary);
SELECT count(*) AS rows, bool_and(x.f = y.f AND x.f::text = y.f::text) AS same, max(pg_column_size(y.f)) AS bytes
FROM copied x JOIN back y USING (n);
SELECT encode(intent_fingerprint_send(f), 'hex') = substr(f::text, 8) AS sent_as_is FROM copied WHERE n = 1;
-- too short, too long
\set statement 'COPY back (f) FROM ' '''' :file '''' ' (FORMAT binary)'
COPY (SELECT decode(repeat('00', 31), 'hex')) TO :'file' (FORMAT binary);
SELECT pg_temp.refusal(:'statement');
COPY (SELECT decode(repeat('00', 33), 'hex')) TO :'file' (FORMAT binary);
SELECT pg_temp.refusal(:'statement');

-- operators: the order of the bytes, first and last byte count
CREATE TEMP TABLE four AS SELECT ('sha256:' || h)::intent_fingerprint AS f, n FROM unnest(ARRAY[
	repeat('0', 64), repeat('0', 63) || '1', '7f' || repeat('f', 62), '80' || repeat('0', 62)]) WITH ORDINALITY AS x(h, n);
SELECT count(*) AS pairs,
	bool_and((x.f < y.f) = (x.n < y.n)) AS lt, bool_and((x.f <= y.f) = (x.n <= y.n)) AS le,
	bool_and((x.f = y.f) = (x.n = y.n)) AS eq, bool_and((x.f <> y.f) = (x.n <> y.n)) AS ne,
	bool_and((x.f >= y.f) = (x.n >= y.n)) AS ge, bool_and((x.f > y.f) = (x.n > y.n)) AS gt,
	bool_and(sign(intent_fingerprint_cmp(x.f, y.f)) = sign(x.n - y.n)) AS cmp,
	bool_and((intent_fingerprint_hash(x.f) = intent_fingerprint_hash(y.f)) = (x.n = y.n)) AS hash,
	bool_and((intent_fingerprint_hash_extended(x.f, 7) = intent_fingerprint_hash_extended(y.f, 7)) = (x.n = y.n)) AS hash_extended
FROM four x, four y;
SELECT bool_and(intent_fingerprint_hash_extended(f, 0)::bit(32) = intent_fingerprint_hash(f)::bit(32)) AS seed_0_agrees FROM four;
SELECT right(f::text, 4) AS ends_in FROM four ORDER BY f DESC;

-- indexes
CREATE TEMP TABLE many AS SELECT intent_fingerprint('POST', '/x', to_jsonb(i)) AS f, i FROM generate_series(1, 2000) i;
CREATE UNIQUE INDEX many_btree ON many (f);
ANALYZE many;
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE f = intent_fingerprint('POST', '/x', '77');
SELECT i FROM many WHERE f = intent_fingerprint('POST', '/x', '77');
SELECT pg_temp.refusal('INSERT INTO many SELECT f FROM many WHERE i = 1');
DROP INDEX many_btree;
CREATE INDEX many_hash ON many USING hash (f);
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE f = intent_fingerprint('POST', '/x', '78');
SELECT i FROM many WHERE f = intent_fingerprint('POST', '/x', '78');
SELECT count(DISTINCT f) FROM many;
