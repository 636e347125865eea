-- Time and names as the engine asks for them: whether a key is alive, when a
-- question may be asked and what it may name, and how a caller's reference goes out.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SET search_path = reconcile, public;

-- A key is alive only if every clock says so, so long after the first send on each of them; a clock that was set back says nothing.
CREATE FUNCTION pg_temp.alive(lifetime text, margin text, needed interval, wall interval, boot interval, same_boot boolean, latest interval) RETURNS boolean LANGUAGE sql AS $$
	SELECT key_is_alive($1::interval, $2::interval, (extract(epoch FROM $3) * 1000000)::bigint, '2026-01-02 03:04:05+00', 500, 'this',
		'2026-01-02 03:04:05+00'::timestamptz + $4, 500 + (extract(epoch FROM $5) * 1000000)::bigint, CASE WHEN $6 THEN 'this' ELSE 'next' END, '2026-01-02 03:04:05+00'::timestamptz + $7)
$$;
SELECT what, pg_temp.alive(lifetime, margin, needed, wall, boot, same_boot, latest) FROM (VALUES
	(1, 'fresh', '1 day', '1 minute', interval '90 s', interval '0', interval '0', true, interval '0'),
	(2, 'an hour old', '1 day', '1 minute', '90 s', '1 h', '1 h', true, '1 h'),
	(3, 'the last microsecond', '1 day', '0', '90 s', '23:58:29.999999', '1 h', true, '0'),
	(4, 'and none longer', '1 day', '0', '90 s', '23:58:30', '1 h', true, '0'),
	(5, 'the margin is kept away', '1 day', '1 minute', '90 s', '23:57:30', '1 h', true, '0'),
	(6, 'to the last microsecond', '1 day', '1 minute', '90 s', '23:57:29.999999', '1 h', true, '0'),
	(7, 'nothing needed', '1 day', '0', '0', '23:59:59.999999', '1 h', true, '0'),
	(8, 'the boot clock says that it is too late', '1 day', '0', '0', '1 h', '24 h', true, '0'),
	(9, 'or not', '1 day', '0', '0', '1 h', '23:59:59.999999', true, '0'),
	(10, 'after another boot only the wall clock counts', '1 day', '0', '0', '1 h', '1000 h', false, '0'),
	(11, 'and says that it is too late', '1 day', '0', '0', '24 h', '0', false, '0'),
	(12, 'the wall clock was set back before the first send', '1 day', '0', '0', '-1 us', '1 h', true, '-1 h'),
	(13, 'or to before what it said last', '1 day', '0', '0', '1 h', '1 h', true, '1 h 0.000001 s'),
	(14, 'the boot clock was', '1 day', '0', '0', '1 h', '-1 us', true, '0'),
	(15, 'no clock has been read since', '1 day', '0', '0', '1 h', '1 h', true, NULL),
	(16, 'a day is 24 hours', '1 day', '0', '0', '23:59:59', '0', true, '0'),
	(17, 'a month is 30 days', '1 month', '0', '0', '719:59:59', '0', true, '0'),
	(18, 'and not longer', '1 month', '0', '0', '720 h', '0', true, '0'),
	(19, 'a margin longer than the lifetime', '1 h', '1 day', '0', '0', '0', true, '0'),
	(20, 'a negative margin gives nothing', '1 h', '-1 day', '0', '1 h', '0', true, '0'),
	(21, 'no lifetime', '0', '0', '0', '0', '0', true, '0'),
	(22, 'less than none', '-1 day', '0', '0', '0', '0', true, '0'),
	(23, 'a need that is no time', '1 day', '0', '-1 us', '0', '0', true, '0'),
	(24, 'a lifetime longer than time', '178000000 years', '0', '90 s', '1000 h', '0', true, '0'))
	AS x(n, what, lifetime, margin, needed, wall, boot, same_boot, latest) ORDER BY n;

-- What is not known is no life; only the latest reading may be missing.
CREATE FUNCTION pg_temp.alive(VARIADIC a text[]) RETURNS boolean LANGUAGE sql AS $$
	SELECT key_is_alive(a[1]::interval, a[2]::interval, a[3]::bigint, a[4]::timestamptz, a[5]::bigint, a[6], a[7]::timestamptz, a[8]::bigint, a[9], a[10]::timestamptz)
$$;
SELECT n AS missing, pg_temp.alive(VARIADIC (SELECT array_agg(CASE WHEN i = n THEN NULL ELSE v END ORDER BY i) FROM unnest('{1 day,1 minute,90,2026-01-01 00:00+00,5,b,2026-01-01 01:00+00,9,b,2026-01-01 00:30+00}'::text[])
	WITH ORDINALITY AS y(v, i))) AS alive FROM generate_series(0, 10) n ORDER BY n;
-- Instants and readings that no clock gives make no key young.
SELECT f AS first_at, n AS now_at, b AS boot, pg_temp.alive('1 day', '0', '0', f, '0', 'b', n, '0', b, NULL) AS alive
FROM unnest('{-infinity,infinity,2026-01-01 00:00+00}'::text[]) WITH ORDINALITY AS x(f, i), unnest('{-infinity,infinity,2026-01-01 01:00+00}'::text[]) WITH ORDINALITY AS y(n, j), unnest('{b,c}'::text[]) b ORDER BY i, j, b;
SELECT pg_temp.alive('1 day', '0', '0', '2026-01-01 00:00+00', f, 'b', '2026-01-01 01:00+00', n, 'b', NULL) AS alive, f AS first_boot, n AS now_boot
FROM unnest('{-9223372036854775808,0,9223372036854775807}'::text[]) f, unnest('{-9223372036854775808,0,9223372036854775807}'::text[]) n ORDER BY f::bigint, n::bigint;

-- When a question may be asked, by each rule's own window. Seconds on the logical clock.
BEGIN;
SELECT pg_temp.define('gate');
UPDATE provider SET consistency_window = '30 s' WHERE provider = 'gate';
UPDATE operation SET headers = '{"Idempotency-Key": "{idempotency_key}"}', reference_body_path = '{ref}', key_lifetime = '1 day', key_lifetime_source = 'documented' WHERE operation = 'gate';
INSERT INTO lookup_rule (operation, position, kind, path, items_path, reference_path, consistency_window, window_source) VALUES
	('gate', 2, 'replay_by_key', NULL, NULL, NULL, '5 s', 'documented'),
	('gate', 4, 'list_by_reference', '/things?r={client_reference}', '$[*]', '$.r', NULL, NULL),
	('gate', 7, 'search', '/search?q={client_reference}', '$[*]', '$.r', '1 day', 'documented');
-- An attempt that ended at 1000 s, late by at most 60 s, claimed under a window of so many seconds.
CREATE FUNCTION pg_temp.attempt_of(action int, number int, state reconcile.state, ended int, window_s int) RETURNS uuid LANGUAGE sql AS $$
	INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch, dispatched_at,
		window_us, late_arrival_us, gate_us, state, standing, event, evidence, version)
	SELECT pg_temp.id($1 * 100 + $2), pg_temp.id($1), $2, 'gate', 1, 1, 'https://gate.example', '\x00', 1, now(), $5 * 1000000, 60000000, ($4 + 60 + $5) * 1000000::bigint,
		$3, pg_temp.standing_of($3), 'claim', '{}', 1 RETURNING dispatch_id
$$;
CREATE FUNCTION pg_temp.gates(action int) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(format('%s: %s', n, coalesce((next_gate(pg_temp.id($1), n) / 1000000.0)::numeric(20, 3)::text, 'none')), ', ' ORDER BY n) FROM unnest('{-1,0,1,2,3,4,5,7,8,100}'::int[]) n
$$;
SELECT count(pg_temp.stage_action(pg_temp.id(n), 'gate', s::reconcile.state)) FROM (VALUES (1, 'outcome_unknown'), (2, 'outcome_unknown'), (3, 'delivered'), (4, 'safe_to_retry'), (5, 'outcome_unknown'), (6, 'planned')) AS x(n, s);
SELECT count(pg_temp.attempt_of(action, number, s::reconcile.state, ended, w)) FROM (VALUES (1, 1, 'outcome_unknown', 1000, 30), (2, 1, 'outcome_unknown', 1000, 5), (2, 2, 'outcome_unknown', 1200, 5),
	(2, 3, 'safe_to_retry', 5000, 5), (2, 4, 'rejected', 6000, 5), (3, 1, 'delivered', 1000, 0), (4, 1, 'safe_to_retry', 1000, 30), (5, 1, 'outcome_unknown', 1300, 5), (5, 2, 'outcome_unknown', 1000, 5)) AS x(action, number, s, ended, w);
SELECT a AS action, pg_temp.gates(a) FROM generate_series(1, 6) a ORDER BY a;
-- With another window of the provider, which counts where a rule has none of its own.
UPDATE provider SET consistency_window = '1 h' WHERE provider = 'gate';
SELECT pg_temp.gates(1);
SELECT pg_temp.gates(99), next_gate(NULL, 1), next_gate(pg_temp.id(1), NULL);
ROLLBACK;

-- What a question may name: the times of its action, as far off as clocks may be.
\set first '''2026-03-08 06:59:59.25+00''::timestamptz'
\set now '''2026-03-08 08:00:00.75+00''::timestamptz'
SELECT question_values('a-1', :first, :now, '0'), question_values(NULL, :first, :now, '5 minutes');
SELECT question_values('', :first, :now, '1 day') - 'artifact_id' AS a_day_is_24_hours;
SELECT v ->> 'since_unix' AS since, (v ->> 'since_unix')::bigint = floor(extract(epoch FROM (v ->> 'since_iso')::timestamptz)) AS since_agrees,
	v ->> 'until_unix' AS until, (v ->> 'until_unix')::bigint = extract(epoch FROM (v ->> 'until_iso')::timestamptz) AS until_agrees,
	to_timestamp((v ->> 'since_unix')::bigint) <= :first AND to_timestamp((v ->> 'until_unix')::bigint) >= :now AS holds_all
FROM unnest('{0,0.25 s,0.5 s,0.75 s,1 h}'::interval[]) WITH ORDINALITY AS x(skew, n), question_values(NULL, :first, :now, skew) v ORDER BY n;
-- In whatever time zone the session is.
SET timezone = 'America/New_York';
SELECT question_values('a-1', :first, :now, '1 day');
SET timezone = 'UTC';
SELECT question_values(NULL, NULL, :now, '0'), question_values(NULL, :first, NULL, '0'), question_values(NULL, :first, :now, NULL);
-- A time before 1970 has a number too.
SELECT question_values(NULL, '1969-12-31 23:59:58.5+00', '1970-01-01 00:00:00+00', '0');

-- A caller's own reference as it goes out.
BEGIN;
INSERT INTO installation (prefix) VALUES ('0a1b2c3d') ON CONFLICT (only_row) DO UPDATE SET prefix = '0a1b2c3d';
SELECT pg_temp.define('reference');
CREATE FUNCTION pg_temp.op(format text, longest int, global boolean) RETURNS reconcile.operation LANGUAGE sql AS $$
	SELECT jsonb_populate_record(o, jsonb_build_object('reference_format', $1, 'reference_max_length', $2, 'reference_is_global', $3)) FROM reconcile.operation o WHERE operation = 'reference'
$$;
SELECT format, given, global, caller_reference(pg_temp.op(format, 200, global), given)
FROM (VALUES (1, 'uuid', 'order-7'), (2, 'hex', '7f'), (3, 'base32hex', '7v'), (4, 'base62', 'aZ9')) AS x(n, format, given), unnest('{f,t}'::boolean[]) global ORDER BY n, global;
-- As long as the provider keeps, and not a character longer; the prefix counts.
SELECT n, refusal FROM (VALUES (1, 'uuid', 40, false, 31), (2, 'uuid', 40, false, 32), (3, 'uuid', 40, true, 40), (4, 'uuid', 40, true, 41), (5, 'hex', 36, false, 28), (6, 'hex', 36, false, 29),
	(7, 'base62', 22, true, 22), (8, 'base62', 22, true, 23), (9, 'uuid', 200, true, 201)) AS x(n, format, longest, global, given),
	pg_temp.refusal(format('SELECT reconcile.caller_reference(pg_temp.op(%L, %s, %L), repeat(''a'', %s))', format, longest, global, given)) refusal ORDER BY n;
-- In the characters of its format; what no operation takes is refused for all of them, by the guard of the insert.
SELECT format, given, refusal FROM (VALUES (1, 'hex', 'abcg'), (2, 'hex', 'ABC'), (3, 'hex', 'a-b'), (4, 'base32hex', 'abw'), (5, 'base32hex', 'ABC'), (6, 'base62', 'a_b'), (7, 'base62', 'é'), (8, 'base62', ''),
	(9, 'uuid', 'a b'), (10, 'hex', E'ab\ncd')) AS x(n, format, given),
	pg_temp.refusal(format('SELECT reconcile.caller_reference(pg_temp.op(%L, 200, true), %L)', format, given)) refusal ORDER BY n;
SELECT caller_reference(pg_temp.op('hex', 200, false), NULL) IS NULL AS none_given;
-- Through an insert.
UPDATE operation SET reference_format = 'base62', reference_max_length = 30 WHERE operation = 'reference';
INSERT INTO action (action_id, operation, payload, client_reference) VALUES (pg_temp.id(1), 'reference', '{"n": 1}', 'Abc9');
INSERT INTO action (action_id, operation, payload) VALUES (pg_temp.id(2), 'reference', '{"n": 2}');
SELECT client_reference FROM action WHERE operation = 'reference' ORDER BY action_id;
SELECT r AS given, refusal FROM unnest(ARRAY['a-b', repeat('a', 23)]) WITH ORDINALITY AS x(r, n),
	pg_temp.refusal(format('INSERT INTO reconcile.action (operation, payload, client_reference) VALUES (''reference'', ''{"n": 3}'', %L)', r)) refusal ORDER BY n;
-- The first reference makes the prefix, once and for all.
DELETE FROM installation;
SELECT installation_prefix() ~ '^[0-9a-f]{8}$' AS made, installation_prefix() = installation_prefix() AS kept;
SELECT count(*), bool_and(prefix = installation_prefix()) AS kept FROM installation;
ROLLBACK;
