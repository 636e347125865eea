-- The interface of measuring and rehearsing, and who may use it.
BEGIN;
SELECT plan(22);

CREATE TEMP TABLE called (call text, result text);
INSERT INTO called VALUES
	('measure_window(IN operation text, IN samples integer DEFAULT 20, IN concurrency integer DEFAULT 4, IN payload jsonb DEFAULT NULL::jsonb, IN apply boolean DEFAULT false, IN safety numeric DEFAULT 3, IN max_duration interval DEFAULT ''00:10:00''::interval, INOUT visible integer DEFAULT NULL::integer, INOUT slowest interval DEFAULT NULL::interval, INOUT recommended interval DEFAULT NULL::interval, INOUT applied boolean DEFAULT NULL::boolean)', NULL),
	('self_test(IN operation text, IN payload jsonb DEFAULT NULL::jsonb, IN keep boolean DEFAULT true, IN max_duration interval DEFAULT ''00:10:00''::interval, INOUT run uuid DEFAULT NULL::uuid, INOUT failed integer DEFAULT NULL::integer)', NULL),
	('note_window_violation(action_id uuid, "position" integer, lag_us bigint)', 'boolean'),
	('recommend_window(lags_us bigint[], safety numeric DEFAULT 3, floor_us bigint DEFAULT 0, OUT samples integer, OUT needed integer, OUT bound interval, OUT covers numeric, OUT recommended interval)', 'record'),
	('window_plot(operation text)', 'text'),
	('submit_drill(operation text, payload jsonb, drill text)', 'uuid');
SELECT set_has($$SELECT format('%s(%s)', proname, pg_get_function_arguments(oid)), CASE prokind WHEN 'f' THEN pg_get_function_result(oid) END
	FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace$$, 'SELECT * FROM called', 'every call is there, with its arguments and result');

CREATE FUNCTION pg_temp.columns_of(name text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT attname || ' ' || format_type(atttypid, atttypmod) COLLATE "default" FROM pg_attribute
	WHERE attrelid = ('reconcile.' || $1)::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
$$;
SELECT results_eq($$SELECT pg_temp.columns_of('window_report')$$, ARRAY['provider text', 'operation text', 'position integer', 'kind text', 'consistency_window interval',
	'window_source reconcile.window_source', 'window_of text', 'pinned boolean', 'probes bigint', 'lookups bigint', 'lag_p50 interval', 'lag_p90 interval', 'lag_p99 interval',
	'lag_max interval', 'last_sample_at timestamp with time zone', 'violations bigint', 'worst_violation interval', 'recommended_window interval', 'verdict text'], 'window_report');
SELECT results_eq($$SELECT pg_temp.columns_of('window_violation')$$, ARRAY['incident_id bigint', 'opened_at timestamp with time zone', 'provider text', 'operation text',
	'position integer', 'action_id uuid', 'lag interval', 'old_window interval', 'new_window interval', 'window_of text', 'outcome text', 'closed_at timestamp with time zone'],
	'window_violation');
SELECT results_eq($$SELECT pg_temp.columns_of('self_test_result')$$, ARRAY['run uuid', 'operation text', 'operation_version integer', 'scenario text', 'capability text',
	'expected text', 'held boolean', 'detail text', 'action_id uuid', 'started_at timestamp with time zone', 'ended_at timestamp with time zone'], 'self_test_result');

-- What the procedures say needs no search_path of the caller's: every name is qualified, and there are no operators.
SELECT is_empty($$SELECT proname, m[1] FROM pg_proc, regexp_matches(prosrc, '(?:FROM|JOIN|CALL|PERFORM) +([a-z_]+)(?=[ (;])', 'g') m
	WHERE pronamespace = 'reconcile'::regnamespace AND proname IN ('measure_window', 'self_test')$$, 'the procedures qualify what they read and call');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND proname IN ('measure_window', 'self_test')
	AND regexp_replace(prosrc, ':=|\.\*|--[^\n]*|''[^'']*''', '', 'g') ~ '[-+*/<>=~!@#%^&|]'$$, 'and use no operator');

CREATE ROLE tap_reader LOGIN;		GRANT reconcile_reader TO tap_reader;
CREATE ROLE tap_operator LOGIN;		GRANT reconcile_operator TO tap_operator;
CREATE ROLE tap_admin LOGIN;		GRANT reconcile_admin TO tap_admin;
DO $$ BEGIN
	EXECUTE format('GRANT ALL ON ALL TABLES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
	EXECUTE format('GRANT ALL ON ALL SEQUENCES IN SCHEMA %I TO PUBLIC', pg_my_temp_schema()::regnamespace);
END $$;
INSERT INTO reconcile.provider (provider, base_url) VALUES ('tap', 'https://tap.example');
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path, example) VALUES ('tap', 'tap', '/x', '{ref}', '{}');
INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path) VALUES ('tap', 'list_by_reference', '/x?r={client_reference}', '$[*]', '$.r');

SET SESSION AUTHORIZATION tap_reader;
SELECT lives_ok($$SELECT * FROM reconcile.window_report$$, 'a reader reads the report');
SELECT lives_ok($$SELECT * FROM reconcile.window_violation$$, 'and the violations');
SELECT lives_ok($$SELECT * FROM reconcile.self_test_result$$, 'and the self-tests');
SELECT isnt(reconcile.window_plot('tap'), NULL, 'and draws the plot');
SELECT lives_ok($$SELECT * FROM reconcile.self_test_plan('tap')$$, 'and asks what a self-test would do');
SELECT throws_ok($$SELECT reconcile.submit_drill('tap', '{}', 'probe')$$, '42501', NULL, 'a reader makes no drill');
SELECT throws_ok($$SELECT reconcile.note_window_violation(NULL, 1, 1)$$, '42501', NULL, 'and notes no violation');

SET SESSION AUTHORIZATION tap_operator;
SELECT throws_ok($$CALL reconcile.measure_window('tap')$$, '42501', NULL, 'an operator does not measure');
SELECT throws_ok($$CALL reconcile.self_test('tap')$$, '42501', NULL, 'or rehearse');
SELECT throws_ok($$SELECT reconcile.submit_drill('tap', '{}', 'probe')$$, '42501', NULL, 'or make a drill');

SET SESSION AUTHORIZATION tap_admin;
SELECT throws_ok($$CALL reconcile.measure_window('tap')$$, '25001', NULL, 'an admin measures, outside a transaction');
SELECT throws_ok($$CALL reconcile.self_test('tap')$$, '25001', NULL, 'and rehearses');
SELECT lives_ok($$SELECT reconcile.submit_drill('tap', '{}', 'probe')$$, 'an admin makes a drill');
SELECT throws_ok($$INSERT INTO reconcile.action (operation, payload, drill) VALUES ('tap', '{}', 'probe')$$, '42501', NULL, 'but not by hand');
SELECT throws_ok($$SELECT reconcile.note_window_violation(NULL, 1, 1)$$, '42501', NULL, 'an admin notes no violation: the engine does');
SELECT throws_ok($$INSERT INTO reconcile.window_sample (operation, position, action_id, source, lag_us) VALUES ('tap', 1, gen_random_uuid(), 'probe', 1)$$, '42501', NULL,
	'or a sample');
RESET SESSION AUTHORIZATION;
SELECT * FROM finish();
ROLLBACK;
