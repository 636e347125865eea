-- The type standing: five pairs and no other, by whatever way one comes in.
\getenv abs_srcdir PG_ABS_SRCDIR
\getenv abs_builddir PG_ABS_BUILDDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SET search_path = reconcile, public;

-- all nine pairs, as text and by the constructor
CREATE FUNCTION pg_temp.answer(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	EXECUTE statement INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT d AS delivery, a AS acceptance,
	pg_temp.answer(format('SELECT %L::reconcile.standing', d || '/' || a)) AS from_text,
	pg_temp.answer(format('SELECT reconcile.standing(%L, %L)', d, a)) AS from_pair
FROM unnest(enum_range(NULL::delivery)) d, unnest(enum_range(NULL::acceptance)) a ORDER BY d, a;

-- other texts
SELECT pg_temp.refusal(format('SELECT %L::reconcile.standing', t)) FROM unnest(ARRAY['', 'confirmed', 'confirmed/',
	'/accepted', 'Confirmed/accepted', ' confirmed/accepted', 'confirmed/accepted ', 'confirmed/accepted/pending', '2']) WITH ORDINALITY AS x(t, n) ORDER BY n;
SELECT pg_temp.refusal($$SELECT reconcile.standing('pending', 'accepted')$$);
SELECT pg_temp.refusal($$SELECT reconcile.standing('failed', 'rejected')$$);
SELECT standing(NULL::delivery, 'pending'), NULL::standing IS NULL AS is_null;

-- what follows from a standing
CREATE TEMP TABLE five AS
	SELECT s::standing, n FROM unnest('{pending/pending,confirmed/pending,confirmed/accepted,confirmed/rejected,failed/pending}'::text[])
		WITH ORDINALITY AS x(s, n);
SELECT s, delivery(s), acceptance(s), resolved_status(s), standing(delivery(s), acceptance(s)) = s AS back, pg_column_size(s) AS bytes
FROM five ORDER BY s;

-- every operator against the order of the five, and the support functions against the operators
SELECT count(*) AS pairs,
	bool_and((x.s < y.s) = (x.n < y.n)) AS lt, bool_and((x.s <= y.s) = (x.n <= y.n)) AS le,
	bool_and((x.s = y.s) = (x.n = y.n)) AS eq, bool_and((x.s <> y.s) = (x.n <> y.n)) AS ne,
	bool_and((x.s >= y.s) = (x.n >= y.n)) AS ge, bool_and((x.s > y.s) = (x.n > y.n)) AS gt,
	bool_and(sign(standing_cmp(x.s, y.s)) = sign(x.n - y.n)) AS cmp,
	bool_and((standing_hash(x.s) = standing_hash(y.s)) = (x.n = y.n)) AS hash,
	bool_and((standing_hash_extended(x.s, 7) = standing_hash_extended(y.s, 7)) = (x.n = y.n)) AS hash_extended
FROM five x, five y;
SELECT bool_and(standing_hash_extended(s, 0)::bit(32) = standing_hash(s)::bit(32)) AS seed_0_agrees,
	bool_or(standing_hash_extended(s, 1) = standing_hash_extended(s, 2)) AS seed_ignored FROM five;

-- indexes, joins, aggregates
CREATE TEMP TABLE many AS SELECT s, n, i FROM five, generate_series(1, 400) i;
CREATE INDEX many_btree ON many (s);
ANALYZE many;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE s = 'failed/pending';
SELECT count(*), min(n), max(n) FROM many WHERE s = 'failed/pending';
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE s >= 'confirmed/rejected';
SELECT count(*), min(n), max(n) FROM many WHERE s >= 'confirmed/rejected';
SELECT s, count(*) FROM many GROUP BY s ORDER BY s DESC;
DROP INDEX many_btree;
CREATE INDEX many_hash ON many USING hash (s);
EXPLAIN (COSTS OFF) SELECT i FROM many WHERE s = 'confirmed/pending';
SELECT count(*), min(n), max(n) FROM many WHERE s = 'confirmed/pending';
RESET enable_seqscan;
RESET enable_bitmapscan;
SET enable_mergejoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM five x JOIN five y USING (s);
SELECT count(*) FROM five x JOIN many y USING (s);
SET enable_hashjoin = off;
SET enable_mergejoin = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM five x JOIN five y USING (s);
SELECT count(*) FROM five x JOIN many y USING (s);
RESET enable_mergejoin;
RESET enable_nestloop;
RESET enable_hashjoin;

-- arrays
SELECT array_agg(s ORDER BY s DESC) AS agg, 'failed/pending' = ANY (array_agg(s)) AS has,
	array_agg(s ORDER BY s)::text::standing[] = array_agg(s ORDER BY s) AS back FROM five;
SELECT pg_temp.refusal($$SELECT '{pending/pending,pending/accepted}'::reconcile.standing[]$$);

-- binary in and out
\set file :abs_builddir '/results/standing.bin'
CREATE TEMP TABLE copied (s standing, list standing[], n bigint);
INSERT INTO copied SELECT s, ARRAY[s, 'failed/pending'], n FROM five UNION ALL SELECT NULL, NULL, 6;
COPY copied TO :'file' (FORMAT binary);
CREATE TEMP TABLE back (LIKE copied);
COPY back FROM :'file' (FORMAT binary);
SELECT n, s, list FROM back ORDER BY n;
SELECT count(*) AS differences FROM copied x JOIN back y USING (n) WHERE x.s IS DISTINCT FROM y.s OR x.list IS DISTINCT FROM y.list;
-- a byte that is no standing
COPY (SELECT chr(code)::"char" FROM unnest('{6}'::int[]) code) TO :'file' (FORMAT binary);
\set statement 'COPY back (s) FROM ' '''' :file '''' ' (FORMAT binary)'
SELECT pg_temp.refusal(:'statement');
COPY (SELECT int2 '1') TO :'file' (FORMAT binary);
SELECT pg_temp.refusal(:'statement');

-- the fold: any order, and who wins
SELECT a AS attempts, q AS queued, fold(a, q), resolved_status(fold(a, q)) FROM (VALUES
	(1, '{}'::standing[], false), (2, '{}', true),
	(3, '{failed/pending}', false), (4, '{failed/pending}', true),
	(5, '{pending/pending,confirmed/rejected}', false), (6, '{confirmed/rejected,pending/pending}', false),
	(7, '{failed/pending,confirmed/rejected}', false), (8, '{confirmed/rejected}', true),
	(9, '{pending/pending,confirmed/pending}', true), (10, '{confirmed/rejected,confirmed/accepted,pending/pending}', true)
) AS x(n, a, q) ORDER BY n;
SELECT pg_temp.refusal($$SELECT reconcile.fold('{failed/pending,NULL}', false)$$);
