-- Windows: from lags to a recommendation, what a broken window does, the report, the picture, and what is refused.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers

-- durations for people
SELECT d, reconcile.duration_text(d) FROM unnest('{0,0.4 ms,5 ms,450 ms,999.6 ms,1.25 s,59.94 s,59.96 s,61 s,3600 s,90 min,1 day,36 h,1 month,-3 s}'::interval[]) d;

-- which of n samples bounds the 99 % quantile: the known sizes are 299, 473, 628, 773
SELECT n, n - reconcile.lag_bound_rank(n) AS from_the_top FROM unnest('{1,20,298,299,472,473,627,628,772,773,1000000}'::integer[]) n;
SELECT reconcile.lag_bound_rank(0) AS none;

-- the recommendation: factor times bound, tenths of a second, never below the largest, the floor or a second
SELECT safety, r.* FROM unnest('{1,2,3,10}'::numeric[]) safety,
	reconcile.recommend_window(ARRAY(SELECT n * 100000 FROM generate_series(1, 20) n), safety) r;
SELECT n, (reconcile.recommend_window(ARRAY(SELECT 500000 FROM generate_series(1, n)))).* FROM unnest('{0,12,13,40}'::integer[]) n;
SELECT (reconcile.recommend_window(ARRAY(SELECT n * 10000 FROM generate_series(1, 500) n), 1)).*;
SELECT (reconcile.recommend_window(ARRAY(SELECT n FROM generate_series(1, 20) n), 3, 90000000)).recommended AS floored,
	(reconcile.recommend_window(ARRAY(SELECT n FROM generate_series(1, 20) n))).recommended AS a_second,
	(reconcile.recommend_window(ARRAY[NULL, 400001] || array_fill(1::bigint, '{20}'))).recommended AS rounded_up;
SELECT pg_temp.refusal(format('SELECT reconcile.recommend_window(''{}'', %s)', s)) FROM unnest('{0.9,101}'::text[]) WITH ORDINALITY x (s, n) ORDER BY n;
SELECT pg_temp.refusal('SELECT reconcile.recommend_window(''{}'', NULL)');

BEGIN;
SELECT pg_temp.define('window');
SELECT pg_temp.define('other');
UPDATE reconcile.operation SET reference_body_path = '{ref}', example = '{"n": 1}' WHERE operation IN ('window', 'other');
INSERT INTO reconcile.lookup_rule (operation, position, kind, path, items_path, reference_path, consistency_window, window_source) VALUES
	('window', 1, 'list_by_reference', '/things?r={client_reference}', '$[*]', '$.r', NULL, NULL),
	('window', 2, 'search', '/search?q={client_reference}', '$[*]', '$.r', '2 minutes', 'documented'),
	('other', 1, 'list_by_reference', '/things?r={client_reference}', '$[*]', '$.r', NULL, NULL);
CREATE TEMP VIEW report AS SELECT operation, position, kind, consistency_window, window_source, window_of, pinned, probes, lookups, lag_p50, lag_p90, lag_p99, lag_max,
	last_sample_at, violations, worst_violation, recommended_window, verdict FROM reconcile.window_report WHERE provider IN ('window', 'other') ORDER BY operation DESC, position;
\pset expanded on
SELECT * FROM report WHERE operation = 'window';
-- a few samples, enough samples, samples of the other kind, a maximum beyond the window
INSERT INTO reconcile.window_sample (operation, position, action_id, source, sampled_at, lag_us, lag_low_us, concurrency)
SELECT 'window', 1, pg_temp.id(n), 'probe', '2026-01-02 03:04:00+00'::timestamptz + n * interval '10 seconds', n * 100000, (n - 1) * 100000, 4 FROM generate_series(1, 5) n;
SELECT verdict FROM report WHERE operation = 'window' AND position = 1;
INSERT INTO reconcile.window_sample (operation, position, action_id, source, sampled_at, lag_us, lag_low_us, concurrency)
SELECT 'window', 1, pg_temp.id(n), 'probe', '2026-01-02 03:04:00+00'::timestamptz + n * interval '10 seconds', n * 100000, (n - 1) * 100000, 4 FROM generate_series(6, 20) n;
INSERT INTO reconcile.window_sample (operation, position, action_id, source, sampled_at, lag_us)
SELECT 'window', 1, pg_temp.id(n), 'lookup', '2026-01-02 03:04:05+00'::timestamptz + n * interval '10 seconds', 31000000 FROM generate_series(1, 3) n;
SELECT * FROM report WHERE operation = 'window' AND position = 1;
SAVEPOINT windows;
UPDATE reconcile.provider SET consistency_window = '5 s', window_pinned = true WHERE provider = 'window';
SELECT pinned, verdict FROM report WHERE operation = 'window' AND position = 1;
UPDATE reconcile.provider SET consistency_window = '1.9 s' WHERE provider = 'window';
SELECT verdict FROM report WHERE operation = 'window' AND position = 1;
ROLLBACK TO windows;
\pset expanded off

-- what measure_window would change: the rule's own window, or the provider's, unless it got shorter for others
SELECT o AS operation, w.* FROM unnest('{window,other}'::text[]) o, reconcile.window_of(o) w ORDER BY o;
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path) VALUES ('beside', 'other', '/beside', '{ref}');
SELECT shared FROM reconcile.window_of('other');
SELECT position, shared FROM reconcile.window_of('beside');

-- a violation opens one incident for an action, and widens to twice the lag
SELECT count(pg_temp.stage_action(pg_temp.id(n), CASE WHEN n < 50 THEN 'window' ELSE 'other' END, 'succeeded')) FROM generate_series(41, 60) n;
CREATE TEMP VIEW violation AS SELECT operation, position, action_id, lag, old_window, new_window, window_of, outcome, closed_at FROM reconcile.window_violation
	WHERE provider IN ('window', 'other') ORDER BY operation DESC, action_id, position;
CREATE TEMP VIEW windows AS SELECT provider AS of, consistency_window, window_source FROM reconcile.provider WHERE provider IN ('window', 'other')
	UNION ALL SELECT operation || ' ' || position, consistency_window, window_source FROM reconcile.lookup_rule WHERE operation = 'window' ORDER BY 1;
SELECT reconcile.note_window_violation(pg_temp.id(41), 1, 45000000);
SELECT reconcile.note_window_violation(pg_temp.id(41), 1, 55000000) AS again;
SELECT * FROM violation;
SELECT * FROM windows;
-- seen by another rule too: the same incident, that rule's own window
SELECT reconcile.note_window_violation(pg_temp.id(41), 2, 150000000), reconcile.note_window_violation(pg_temp.id(41), 2, 1);
-- a smaller lag narrows nothing; a pinned window stays; neither is wider than a window may be
SELECT reconcile.note_window_violation(pg_temp.id(42), 1, 1000000);
UPDATE reconcile.lookup_rule SET window_pinned = true WHERE operation = 'window' AND position = 2;
SELECT reconcile.note_window_violation(pg_temp.id(42), 2, 999000000);
UPDATE reconcile.provider SET window_pinned = true WHERE provider = 'window';
SELECT reconcile.note_window_violation(pg_temp.id(43), 1, 999000000);
SELECT reconcile.note_window_violation(pg_temp.id(51), 1, 8640000000000);
SELECT * FROM violation;
SELECT * FROM windows;
SELECT operation, position, violations, worst_violation, recommended_window, verdict FROM report;
SELECT count(*) AS incidents, count(DISTINCT action_id) AS actions FROM reconcile.incident WHERE provider IN ('window', 'other');
SELECT details FROM reconcile.incident WHERE action_id = pg_temp.id(41);
-- a rule that is gone leaves the provider's window
SELECT reconcile.note_window_violation(pg_temp.id(52), 9, 1);
-- closed incidents count no more
UPDATE reconcile.incident SET closed_at = opened_at, closed_by = session_user, closing_reason = 'a test' WHERE provider = 'window';
SELECT violations, verdict FROM report WHERE operation = 'window' AND position = 1;
SELECT pg_temp.refusal(s) FROM unnest(ARRAY['SELECT reconcile.note_window_violation(pg_temp.id(99), 1, 1)', 'SELECT reconcile.note_window_violation(pg_temp.id(41), NULL, 1)',
	'SELECT reconcile.note_window_violation(pg_temp.id(41), 1, -1)']) WITH ORDINALITY x (s, n) ORDER BY n;

-- the picture is XML, and every mark stands where it belongs
SELECT reconcile.xml_text(E'<a href="x">R&D \'s \x07</a>');
CREATE TEMP TABLE plot AS SELECT reconcile.window_plot('window')::xml AS svg;
CREATE FUNCTION pg_temp.all_of(path text) RETURNS SETOF text LANGUAGE sql AS
	$$ SELECT unnest(xpath($1, svg, '{{s,http://www.w3.org/2000/svg}}'))::text FROM plot $$;
SELECT pg_temp.all_of('/s:svg/@role'), pg_temp.all_of('/s:svg/s:title/text()'), pg_temp.all_of('/s:svg/@aria-labelledby');
SELECT pg_temp.all_of('/s:svg/s:desc/text()');
SELECT pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "end"]/text()') AS lags;
SELECT pg_temp.all_of('//s:text[@class = "label"]/text()') AS windows;
SELECT count(*) AS probes FROM pg_temp.all_of('//s:g[s:title]/s:circle');
SELECT count(*) AS lookups FROM pg_temp.all_of('//s:g[s:title]/s:path[@class = "lookup"]');
SELECT count(*) AS violations FROM pg_temp.all_of('//s:g[s:title]/s:path[@class = "violation"]');
-- linear and without violations: lags of 0.1 s to 2 s, a window of 4 s, one probe every ten seconds
DELETE FROM reconcile.incident WHERE provider = 'window';
DELETE FROM reconcile.window_sample WHERE source = 'lookup';
DELETE FROM reconcile.lookup_rule WHERE operation = 'window' AND position = 2;
UPDATE reconcile.provider SET consistency_window = '4 s', window_source = 'measured' WHERE provider = 'window';
UPDATE plot SET svg = reconcile.window_plot('window')::xml;
SELECT pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "end"]/text()') AS lag, pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "end"]/@y') AS y;
SELECT pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "middle"]/text()') AS time, pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "middle"]/@x') AS x;
SELECT pg_temp.all_of('//s:g[s:title]/s:title/text()') AS title, pg_temp.all_of('//s:g[s:title]/s:circle/@cx') AS x, pg_temp.all_of('//s:g[s:title]/s:circle/@cy') AS y,
	pg_temp.all_of('//s:g[s:title]/s:path[@class = "between"]/@d') AS between;
SELECT pg_temp.all_of('//s:path[@class = "window"]/@d') AS windows;
SELECT pg_temp.all_of('//s:text[@class = "label"]/text()') AS label;
-- what came too late has a mark of its own: 3 s, at 03:06
INSERT INTO reconcile.incident (kind, provider, operation, action_id, opened_at, details)
	VALUES ('window_violation', 'window', 'window', pg_temp.id(41), '2026-01-02 03:06:00+00', '{"position": 1, "lag_us": 3000000, "outcome": "wide enough"}');
INSERT INTO reconcile.window_sample (operation, position, action_id, source, sampled_at, lag_us) VALUES ('window', 1, pg_temp.id(42), 'lookup', '2026-01-02 03:05:00+00', 4000000);
UPDATE plot SET svg = reconcile.window_plot('window')::xml;
SELECT pg_temp.all_of('//s:g[s:title]/s:path[@class = "violation"]/@d') AS violation, pg_temp.all_of('//s:g[s:title]/s:path[@class = "lookup"]/@d') AS lookup;
-- nothing to show is shown, too; and over decades the axis is logarithmic
UPDATE plot SET svg = reconcile.window_plot('beside')::xml;
SELECT pg_temp.all_of('//s:text[not(@class) and @y = "195"]/text()');
INSERT INTO reconcile.window_sample (operation, position, action_id, source, sampled_at, lag_us) SELECT 'beside', 1, pg_temp.id(1), 'probe', '2026-01-02 03:04:05+00'::timestamptz + n * interval '1 day', 10 ^ n FROM generate_series(3, 9) n;
UPDATE plot SET svg = reconcile.window_plot('beside')::xml;
SELECT pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "end"]/text()') AS lag, pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "end"]/@y') AS y;
SELECT pg_temp.all_of('//s:g[s:title]/s:circle/@cx') AS x, pg_temp.all_of('//s:g[s:title]/s:circle/@cy') AS y;
SELECT pg_temp.all_of('//s:text[@class = "tick" and @text-anchor = "middle"]/text()') AS day;
SELECT pg_temp.refusal('SELECT reconcile.window_plot(''none'')');

-- a drill is an action like any other, but marked
SELECT count(reconcile.submit_drill('other', '{"n": 2}', d)) FROM unnest('{probe,answer_lost,request_lost}'::text[]) d;
SELECT drill, state, deliberate_repeat, payload FROM reconcile.action WHERE operation = 'other' AND drill IS NOT NULL ORDER BY drill;
SELECT pg_temp.refusal('SELECT reconcile.submit_drill(''other'', ''{}'', ''other'')');
SELECT outcome, count(*) FROM reconcile.drill_state(ARRAY(SELECT action_id FROM reconcile.action WHERE provider IN ('window', 'other'))) GROUP BY 1 ORDER BY 1;
ROLLBACK;

-- What the procedures refuse, before anything is written.
\set SHOW_CONTEXT never
SELECT pg_temp.define('measure');
BEGIN;
CALL reconcile.measure_window('measure');
ROLLBACK;
BEGIN;
CALL reconcile.self_test('measure');
ROLLBACK;
SELECT pg_temp.refusal(s) FROM unnest(ARRAY['CALL reconcile.measure_window(''measure'')', 'CALL reconcile.self_test(''measure'')']) WITH ORDINALITY x (s, n) ORDER BY n;
CALL reconcile.measure_window('none');
CALL reconcile.measure_window('measure');
CALL reconcile.measure_window('measure', payload => '{}');
CALL reconcile.measure_window('measure', 0);
CALL reconcile.measure_window('measure', concurrency => 0);
CALL reconcile.measure_window('measure', safety => 0.5);
CALL reconcile.measure_window('measure', max_duration => '0');
SELECT reconcile.pause('measure', 'a test');
CALL reconcile.measure_window('measure', payload => '{}');
SELECT reconcile.resume('measure');
CALL reconcile.self_test('none');
CALL reconcile.self_test('measure', max_duration => '20 s');
-- What cannot be tried is said, not counted as good or bad.
SET client_min_messages = notice;
CALL reconcile.self_test('measure', keep => false) \gset
\echo failed is set: :{?failed}
SET client_min_messages = warning;
SELECT scenario, capability, held, detail FROM reconcile.self_test_result WHERE operation = 'measure' ORDER BY scenario, capability;
SELECT count(*) FROM reconcile.action WHERE operation = 'measure';
DELETE FROM reconcile.self_test_result WHERE operation = 'measure';
DELETE FROM reconcile.operation WHERE operation = 'measure';
DELETE FROM reconcile.provider WHERE provider = 'measure';
