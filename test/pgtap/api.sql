-- The interface that applications, operators and analysts build on.
BEGIN;
SELECT plan(28);

-- The words, in the order in which they sort.
SELECT enum_has_labels('reconcile', 'delivery', ARRAY['pending', 'confirmed', 'failed'], 'delivery has three values');
SELECT enum_has_labels('reconcile', 'acceptance', ARRAY['pending', 'accepted', 'rejected'], 'acceptance has three values');
SELECT enum_has_labels('reconcile', 'status', ARRAY['CONFIRMED', 'FAILED', 'DENIED_UNRESOLVED'], 'status has three values');
SELECT enum_has_labels('reconcile', 'state', ARRAY['planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered',
	'succeeded', 'rejected', 'safe_to_retry', 'cancelled', 'expired', 'abandoned'], 'state has twelve values');
SELECT enum_has_labels('reconcile', 'window_source', ARRAY['documented', 'measured', 'assumed'], 'a window has three sources');
SELECT has_type('reconcile', 'standing', 'there is the type standing');
SELECT has_type('reconcile', 'intent_fingerprint', 'there is the type intent_fingerprint');
SELECT results_eq($$SELECT typlen::int, typbyval FROM pg_type WHERE oid = 'reconcile.standing'::regtype$$, $$VALUES (1, true)$$,
	'a standing is one byte, passed by value');
SELECT results_eq($$SELECT typlen::int, typbyval FROM pg_type WHERE oid = 'reconcile.intent_fingerprint'::regtype$$, $$VALUES (32, false)$$,
	'a fingerprint is 32 bytes');

-- What is called: names, arguments with their defaults, results.
CREATE TEMP TABLE called (call text, result text);
INSERT INTO called VALUES
	('submit(operation text, payload jsonb, intent_key text DEFAULT NULL::text, client_reference text DEFAULT NULL::text, not_before timestamp with time zone DEFAULT NULL::timestamp with time zone, not_after timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT 0, ordering_key text DEFAULT NULL::text, depends_on uuid[] DEFAULT NULL::uuid[], on_duplicate text DEFAULT ''join''::text, after_failure boolean DEFAULT false, hold boolean DEFAULT false)',
	 'TABLE(action_id uuid, state reconcile.state, status reconcile.status, joined boolean, advice text, next_step_at timestamp with time zone, fingerprint reconcile.intent_fingerprint, reference text, may_repeat boolean)'),
	('wait(action_id uuid, timeout interval DEFAULT ''00:00:30''::interval)', 'SETOF reconcile.action_status'),
	('receipt(action_id uuid)', 'jsonb'),
	('cancel(action_id uuid, reason text)', 'reconcile.state'),
	('replace(action_id uuid, reason text)', 'reconcile.state'),
	('look_up_now(action_id uuid, reason text)', 'reconcile.state'),
	('hold(action_id uuid, reason text)', 'reconcile.state'),
	('release(action_id uuid, reason text, fingerprint reconcile.intent_fingerprint DEFAULT NULL::reconcile.intent_fingerprint)', 'reconcile.state'),
	('abandon(action_id uuid, reason text)', 'reconcile.state'),
	('resolve(action_id uuid, decision text, reason text, artifact_id text DEFAULT NULL::text, expected_version integer DEFAULT NULL::integer, evidence jsonb DEFAULT NULL::jsonb, force boolean DEFAULT false)', 'reconcile.state'),
	('bulk_preview(what text, action_ids uuid[] DEFAULT NULL::uuid[], provider text DEFAULT NULL::text, operation text DEFAULT NULL::text, state reconcile.state DEFAULT NULL::reconcile.state, held boolean DEFAULT NULL::boolean, submitter name DEFAULT NULL::name, submitted_before timestamp with time zone DEFAULT NULL::timestamp with time zone, reason text DEFAULT NULL::text, max_items integer DEFAULT 1000)',
	 'TABLE(batch bigint, items bigint, left_out bigint, totals jsonb, sample jsonb)'),
	('bulk_apply(batch bigint, reason text)', 'TABLE(action_id uuid, result text, detail text)'),
	('window_open_until(action_id uuid)', 'timestamp with time zone'),
	('receive_event(provider text, headers jsonb, body bytea)', 'TABLE(inbox_id bigint, action_id uuid, result text)'),
	('receive_event(provider text, headers jsonb, body text)', 'TABLE(inbox_id bigint, action_id uuid, result text)'),
	('pause(provider text DEFAULT NULL::text, reason text DEFAULT NULL::text, operation text DEFAULT NULL::text)', 'void'),
	('resume(provider text DEFAULT NULL::text, operation text DEFAULT NULL::text)', 'void'),
	('arm(reason text)', 'void'),
	('verify_history(action_id uuid DEFAULT NULL::uuid, OUT action_id uuid, OUT version integer, OUT problem text)', 'SETOF record'),
	('fold_violation(OUT action_id uuid, OUT standing reconcile.standing, OUT folded reconcile.standing)', 'SETOF record'),
	('create_history_partitions(months_ahead integer DEFAULT 3)', 'integer'),
	('kept_because(actions uuid[])', 'TABLE(action_id uuid, because text)'),
	('verify_receipt(receipt jsonb, OUT version bigint, OUT problem text)', 'SETOF record'),
	('schedule_jobs(run boolean DEFAULT NULL::boolean)', 'TABLE(job text, schedule text, command text)'),
	('unschedule_jobs()', 'integer'),
	('engine(OUT worker_pid integer, OUT lock_holder_pid integer, OUT armed boolean, OUT disarmed_because text, OUT stalled_because text)', 'record'),
	('intent_fingerprint(method text, path text, payload jsonb)', 'reconcile.intent_fingerprint'),
	('delivery(standing reconcile.standing)', 'reconcile.delivery'),
	('acceptance(standing reconcile.standing)', 'reconcile.acceptance'),
	('resolved_status(standing reconcile.standing)', 'reconcile.status'),
	('standing(delivery reconcile.delivery, acceptance reconcile.acceptance)', 'reconcile.standing'),
	('fold(attempts reconcile.standing[], queued boolean)', 'reconcile.standing'),
	('advice(state reconcile.state)', 'text'),
	('new_action_id()', 'uuid'),
	('capability_tier(returns_artifact boolean, takes_key boolean, key_lifetime interval, key_margin interval, has_query boolean, reference_queryable boolean, key_age interval DEFAULT ''00:00:00''::interval, needed interval DEFAULT ''00:00:00''::interval)', 'reconcile.tier'),
	('define_provider(profile jsonb, overrides jsonb DEFAULT NULL::jsonb, INOUT provider text DEFAULT NULL::text, OUT profile_version integer, OUT operations text[], OUT changed text[])', 'record'),
	('preview(action_id uuid)', 'TABLE(part text, method text, url text, headers jsonb, body text, note text)'),
	('preview(operation text, payload jsonb DEFAULT NULL::jsonb, client_reference text DEFAULT NULL::text)', 'TABLE(part text, method text, url text, headers jsonb, body text, note text)'),
	('adopt_profile(profile text, overrides jsonb DEFAULT NULL::jsonb, INOUT provider text DEFAULT NULL::text, OUT profile_version integer, OUT operations text[], OUT changed text[])', 'record'),
	('make_identifier(action_id uuid, generation integer, format text)', 'text'),
	('takes_key(op reconcile.operation)', 'boolean'),
	('sends_reference(op reconcile.operation)', 'boolean'),
	('render_request(op reconcile.operation, client_reference text, payload jsonb, idempotency_key text DEFAULT NULL::text, extra jsonb DEFAULT NULL::jsonb, OUT path text, OUT headers text[], OUT body text)', 'record'),
	('render_question(path text, headers jsonb, body jsonb, client_reference text, payload jsonb, idempotency_key text, extra jsonb, OUT path text, OUT headers text[], OUT body text)', 'record'),
	('run(IN max_duration interval DEFAULT ''00:00:50''::interval, IN stop_when_idle boolean DEFAULT true, INOUT holder_pid integer DEFAULT NULL::integer, INOUT sent integer DEFAULT NULL::integer, INOUT answered integer DEFAULT NULL::integer, INOUT asked integer DEFAULT NULL::integer)', NULL);
SELECT set_has($$SELECT format('%s(%s)', proname, pg_get_function_arguments(oid)), CASE prokind WHEN 'f' THEN pg_get_function_result(oid) END
	FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace$$, 'SELECT * FROM called', 'every call of the interface is there, with its arguments and result');
SELECT results_eq($$SELECT proname::text COLLATE "default" FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND prokind = 'p' ORDER BY 1$$, ARRAY['maintain', 'measure_window', 'require_commit', 'run', 'self_test'],
	'four procedures, and what three of them begin with');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND prokind = 'p' AND (prosecdef OR proconfig IS NOT NULL)$$,
	'which have neither SET nor SECURITY DEFINER, for they commit');
SELECT is_empty($$SELECT proname FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND provolatile <> 'i'
	AND proname IN ('delivery', 'acceptance', 'resolved_status', 'standing', 'fold', 'intent_fingerprint', 'advice', 'capability_tier', 'make_identifier', 'takes_key', 'sends_reference')
	OR pronamespace = 'reconcile'::regnamespace AND provolatile <> 'i' AND proname ~ '^(try_)?render(_|$)' AND proname <> 'try_render_lookup'$$,
	'what follows from its arguments alone is immutable');

-- What is read.
CREATE FUNCTION pg_temp.columns_of(name text) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT attname || ' ' || format_type(atttypid, atttypmod) COLLATE "default" FROM pg_attribute
	WHERE attrelid = ('reconcile.' || $1)::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
$$;
SELECT results_eq($$SELECT pg_temp.columns_of('action_status')$$, ARRAY['action_id uuid', 'operation text', 'provider text', 'client_reference text',
	'intent_key text', 'submitter name', 'state reconcile.state', 'delivery reconcile.delivery', 'acceptance reconcile.acceptance',
	'status reconcile.status', 'artifact_id text', 'attempts integer', 'submitted_at timestamp with time zone', 'since timestamp with time zone',
	'next_step_at timestamp with time zone', 'advice text', 'may_repeat boolean', 'fingerprint reconcile.intent_fingerprint', 'version integer', 'transaction xid8', 'archived_at timestamp with time zone'],
	'action_status');
SELECT results_eq($$SELECT pg_temp.columns_of('action_history')$$, ARRAY['action_id uuid', 'version integer', 'recorded_at timestamp with time zone',
	'attempt_number integer', 'event text', 'from_state reconcile.state', 'to_state reconcile.state', 'delivery reconcile.delivery',
	'acceptance reconcile.acceptance', 'status reconcile.status', 'time_in_state interval', 'evidence jsonb', 'actor text'], 'action_history');
SELECT results_eq($$SELECT pg_temp.columns_of('unresolved')$$, ARRAY['action_id uuid', 'operation text', 'provider text', 'client_reference text',
	'submitter name', 'state reconcile.state', 'last_event text', 'why text', 'since timestamp with time zone', 'uncertain_since timestamp with time zone',
	'next_step text', 'next_step_at timestamp with time zone', 'advice text', 'evidence jsonb', 'version integer', 'nobody_works_because text'], 'unresolved');
SELECT results_eq($$SELECT pg_temp.columns_of('review_queue')$$, ARRAY['action_id uuid', 'version integer', 'needs text', 'operation text', 'provider text', 'client_reference text',
	'submitter name', 'state reconcile.state', 'delivery reconcile.delivery', 'priority smallint', 'submitted_at timestamp with time zone', 'since timestamp with time zone',
	'why text', 'method text', 'url text', 'headers jsonb', 'body text', 'note text', 'fingerprint reconcile.intent_fingerprint', 'artifact_id text', 'attempts jsonb', 'lookups jsonb',
	'window_open_until timestamp with time zone', 'tier reconcile.tier', 'query_surface text', 'decisions text[]', 'if_executed_but_not text', 'if_repeated text', 'suggested text'], 'review_queue');
SELECT results_eq($$SELECT pg_temp.columns_of('health')$$, ARRAY['worker_pid integer', 'lock_holder_pid integer', 'armed boolean', 'disarmed_because text', 'stalled_because text',
	'due bigint', 'in_flight bigint', 'unknown bigint', 'in_review bigint', 'paused_providers text[]', 'engine_up boolean', 'worker_state text', 'worker_failures integer',
	'last_sign_of_life timestamp with time zone', 'engine_waits_for text', 'blocked_by integer[]', 'overdue_since timestamp with time zone', 'overdue_provider text',
	'oldest_unresolved timestamp with time zone', 'oldest_in_review timestamp with time zone', 'incidents_open bigint', 'credentials_refused text[]', 'pauses text[]', 'breakers_open text[]', 'budgets_used text[]', 'lookups_failing bigint',
	'inbox_waiting bigint', 'inbox_waiting_since timestamp with time zone', 'inbox_unmatched bigint', 'guards_missing text[]', 'partitions_until timestamp with time zone',
	'default_entries bigint', 'wall_clock_behind interval', 'gates_late interval', 'oldest_transaction_pid integer', 'oldest_transaction_since timestamp with time zone'], 'health');
SELECT results_eq($$SELECT pg_temp.columns_of('arming_summary')$$, ARRAY['armed boolean', 'provider text', 'operation text', 'becomes text', 'actions bigint', 'oldest timestamp with time zone'], 'arming_summary');
SELECT results_eq($$SELECT pg_temp.columns_of('transition_rule')$$, ARRAY['subject text', 'from_state reconcile.state', 'event text',
	'to_state reconcile.state', 'evidence text', 'actor text', 'meaning text'], 'transition_rule');
SELECT results_eq($$SELECT pg_temp.columns_of('provider_grade')$$, ARRAY['operation text', 'provider text', 'profile text', 'profile_version integer',
	'effect text', 'claims reconcile.tier', 'tier reconcile.tier', 'key_lifetime interval', 'key_lifetime_source reconcile.window_source',
	'tier_after_key reconcile.tier', 'query_surface text', 'on_lost_answer text', 'missing text'], 'provider_grade');
SELECT results_eq($$SELECT pg_temp.columns_of('profile_catalog')$$, ARRAY['profile text', 'profile_version integer', 'title text', 'documentation text',
	'operations integer', 'facts integer', 'unproven_facts integer', 'document jsonb'], 'profile_catalog');
SELECT views_are('reconcile', ARRAY['action_status', 'action_history', 'unresolved', 'review_queue', 'health', 'health_check', 'guard', 'metrics', 'provider_limits', 'transition_rule', 'provider_grade', 'window_report', 'window_violation', 'provider_scorecard', 'unmatched_event', 'arming_summary', 'provider_retention'], 'there are these views');

-- What is inserted without submit().
SELECT col_default_is('reconcile', 'action', 'action_id', 'reconcile.new_action_id()', 'an action makes its own id');
SELECT col_not_null('reconcile', 'action', 'operation', 'an action names its operation');

-- Ids: ordered by time, and never the same.
SELECT matches(reconcile.new_action_id()::text, '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 'an action id is a uuid of version 7');
SELECT is(count(DISTINCT id), 10000::bigint, 'ten thousand ids are all different') FROM (SELECT reconcile.new_action_id() AS id FROM generate_series(1, 10000)) x;
SELECT ok(abs(extract(epoch FROM clock_timestamp()) * 1000 - ('x' || left(replace(reconcile.new_action_id()::text, '-', ''), 12))::bit(48)::bigint) < 60000,
	'and begins with the milliseconds since 1970');

SELECT * FROM finish();
ROLLBACK;
