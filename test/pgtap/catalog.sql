-- What must hold in the catalog, whatever is added.
BEGIN;
SELECT plan(30);

-- Functions that run with the rights of their owner.
SELECT set_eq($$SELECT proname::text FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND prosecdef AND prorettype <> 'trigger'::regtype$$,
	ARRAY['submit', 'cancel', 'hold', 'release', 'replace', 'abandon', 'resolve', 'bulk_preview', 'bulk_apply', 'receipt', 'installation_prefix', 'caller_reference', 'confirm', 'verdict', 'receive_event', 'action_as_of', 'day_report', 'close_incident', 'redact', 'look_up_now', 'create_history_partitions', 'engine', 'arm', 'arm_if_first', 'preview', 'note_window_violation', 'submit_drill', 'keep_concurrency',
		'nobody_works_because', 'health_facts', 'overdue', 'is_readable', 'locked_rows', 'blocking', 'open_actions', 'metrics_of_tables', 'finished_actions', 'lookup_results', 'rows_inserted', 'verify_receipt', 'maintain_step', 'drop_empty_history_partitions'], 'only these functions run with the rights of their owner');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND prosecdef
	AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']$$, 'each with a search_path of its own');
SELECT is_empty($$SELECT oid::regprocedure, setting FROM pg_proc, unnest(proconfig) setting WHERE pronamespace = 'reconcile'::regnamespace AND prosecdef
	AND setting ~ '^search_path=' AND setting <> 'search_path=pg_catalog, pg_temp'$$, 'and of no other');
SELECT is_empty($$SELECT p.oid::regprocedure, t.typname FROM pg_proc p JOIN pg_type t ON t.oid = ANY (proargtypes) WHERE pronamespace = 'reconcile'::regnamespace AND prosecdef
	AND t.typname IN ('regclass', 'regproc', 'regprocedure', 'regtype', 'cstring', 'internal', 'anyelement')$$, 'none of them is handed something to run');
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'reconcile'::regnamespace AND lanname = 'plpgsql' AND prokind = 'f'
	AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']$$, 'so has every function in PL/pgSQL');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND proleakproof
	AND proname !~ '^(standing|intent_fingerprint)_(eq|ne|lt|le|gt|ge|cmp|hash|hash_extended)$'$$, 'only comparisons are leakproof');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc p WHERE pronamespace = 'reconcile'::regnamespace AND NOT EXISTS (
	SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' AND extname = 'action_reconcile')$$,
	'every function belongs to the extension');

-- Triggers.
SELECT is_empty($$SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
	WHERE relnamespace = 'reconcile'::regnamespace AND NOT tgisinternal AND tgenabled <> 'A'
	AND relname NOT IN ('provider', 'operation', 'response_rule', 'lookup_rule', 'poll_rule')$$, 'every guard fires always, also for replication');
SELECT set_eq($$SELECT relname || ' ' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'reconcile'::regnamespace AND NOT tgisinternal
	AND tgparentid = 0 AND relname !~ '^history_[0-9]'$$,
	ARRAY['action action_1_prepare', 'action action_2_guard', 'action action_3_inserted', 'action action_3_updated', 'action action_no_truncate',
		'attempt attempt_guard', 'attempt attempt_no_truncate', 'history history_append_only', 'history history_no_truncate',
		'history_default history_no_truncate', 'joined_submission joined_append_only', 'joined_submission joined_no_truncate', 'archived_action archived_append_only', 'archived_action archived_no_truncate', 'provider provider_changed', 'provider provider_paused', 'operation operation_changed', 'lookup_rule lookup_rule_changed',
		'response_rule rule_changed', 'lookup_rule rule_changed', 'poll_rule rule_changed',
		'provider definition_holds', 'operation definition_holds', 'response_rule definition_holds', 'lookup_rule definition_holds', 'poll_rule definition_holds'], 'the triggers');
SELECT is_empty($$SELECT tgrelid::regclass FROM pg_trigger WHERE tgname = 'definition_holds' AND NOT (tgdeferrable AND tginitdeferred)$$,
	'a definition is judged when all of it is there');
SELECT is(pg_get_triggerdef(oid), 'CREATE TRIGGER history_append_only BEFORE DELETE OR UPDATE ON reconcile.history FOR EACH ROW EXECUTE FUNCTION reconcile.refuse_change()',
	'the history is guarded row by row') FROM pg_trigger WHERE tgrelid = 'reconcile.history'::regclass AND tgname = 'history_append_only';
SELECT is(pg_get_triggerdef(oid), 'CREATE TRIGGER action_2_guard BEFORE INSERT OR DELETE OR UPDATE ON reconcile.action FOR EACH ROW EXECUTE FUNCTION reconcile.action_guard()',
	'actions are guarded row by row') FROM pg_trigger WHERE tgrelid = 'reconcile.action'::regclass AND tgname = 'action_2_guard';
SELECT is(pg_get_triggerdef(oid), 'CREATE TRIGGER attempt_guard BEFORE INSERT OR DELETE OR UPDATE ON reconcile.attempt FOR EACH ROW EXECUTE FUNCTION reconcile.attempt_guard()',
	'attempts are guarded row by row') FROM pg_trigger WHERE tgrelid = 'reconcile.attempt'::regclass AND tgname = 'attempt_guard';
-- A partition made later has the guards too.
DO $$ BEGIN PERFORM reconcile.create_history_partitions(1); END $$;
SELECT is_empty($$SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass AND
	(SELECT count(*) FROM pg_trigger WHERE tgrelid = inhrelid AND tgenabled = 'A' AND tgfoid = 'reconcile.refuse_change()'::regprocedure) <> 2$$,
	'every partition of the history has both guards');
SELECT cmp_ok(count(*), '>=', 3::bigint, 'months and the rest') FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass;

-- Who sees which rows: the policies are the only ones, and nobody who is not above them is let off.
SELECT set_eq($$SELECT relname || ' ' || relrowsecurity || ' ' || relforcerowsecurity FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND (relrowsecurity OR relforcerowsecurity)$$,
	ARRAY['action true false'], 'row security is on the actions; the extension''s own functions are above it');
SELECT policies_are('reconcile', 'action', ARRAY['action_visible', 'action_insert'], 'by two policies');
SELECT is((SELECT string_agg(polname || ' ' || polcmd::text || ' ' || polpermissive || ' ' || coalesce(pg_get_expr(polqual, polrelid), '-') || ' ' || coalesce(pg_get_expr(polwithcheck, polrelid), '-'), E'\n' ORDER BY polname)
	FROM pg_policy WHERE polrelid = 'reconcile.action'::regclass), E'action_insert a true - (submitter = SESSION_USER)\naction_visible r true reconcile.may_see(submitter) -',
	'one sees what may be seen, the other inserts in its own name');
SELECT is_empty($$SELECT viewname FROM pg_views WHERE schemaname = 'reconcile' AND definition ~ 'may_see' AND NOT EXISTS (
	SELECT FROM pg_class WHERE oid = format('reconcile.%I', viewname)::regclass AND reloptions @> '{security_barrier=true}')$$, 'every view that hides rows is a barrier');

-- The functions that a trigger or a policy calls as the caller are ones that the caller may call.
SELECT is_empty($$SELECT grantee FROM unnest('{reconcile_submitter,reconcile_reader,reconcile_operator,reconcile_admin}'::text[]) grantee
	WHERE NOT has_function_privilege(grantee, 'reconcile.may_see(name)', 'EXECUTE')$$, 'whoever sees rows may ask which');

-- Keys that the promises rest on.
SELECT is_empty($$SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass AND NOT EXISTS (
	SELECT FROM pg_index WHERE indrelid = inhrelid AND indisunique AND indisvalid AND indpred IS NULL
	AND pg_get_indexdef(indexrelid) LIKE '%(action_id, version)')$$, 'one version of an action has one entry, in each partition of the history');
SELECT is_empty($$SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'reconcile.history'::regclass$$,
	'and the parent has no index, which a restored partition would have to match');
SELECT is(array_agg(attname::text), '{lifetime}', 'the clock has a row for each lifetime')
	FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey) WHERE indrelid = 'reconcile.clock'::regclass AND indisprimary;

SELECT index_is_unique('reconcile', 'action', 'action_reference', 'one reference is one action at a provider');
SELECT index_is_unique('reconcile', 'action', 'action_intent', 'one intent key is one action of a submitter and operation');
SELECT index_is_unique('reconcile', 'action', 'action_unresolved_intent', 'one unresolved intent is one action');
SELECT is(pg_get_expr(indpred, indrelid) LIKE '%' || string_agg(format('''%s''::reconcile.state', s), ', ' ORDER BY s) || '%', true,
	'which counts every state that is DENIED_UNRESOLVED')
	FROM pg_index, unnest('{planned,submitted,outcome_unknown,reconciling,manual_review,delivered}'::reconcile.state[]) s
	WHERE indexrelid = 'reconcile.action_unresolved_intent'::regclass GROUP BY indpred, indrelid;
SELECT col_is_pk('reconcile', 'attempt', ARRAY['action_id', 'number'], 'an attempt has one number of its action');

-- What a dump carries: everything but the arming.
SELECT set_eq($$SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'action_reconcile'$$,
	ARRAY['reconcile.installation', 'reconcile.provider', 'reconcile.operation', 'reconcile.response_rule', 'reconcile.lookup_rule', 'reconcile.poll_rule', 'reconcile.profile_fact', 'reconcile.provider_override', 'reconcile.event_source', 'reconcile.event_rule',
		'reconcile.action', 'reconcile.attempt', 'reconcile.inbox', 'reconcile.inbox_inbox_id_seq', 'reconcile.bulk_batch', 'reconcile.bulk_batch_batch_seq', 'reconcile.bulk_item', 'reconcile.incident', 'reconcile.incident_incident_id_seq', 'reconcile.window_sample', 'reconcile.window_sample_sample_id_seq',
		'reconcile.lookup', 'reconcile.history', 'reconcile.history_default', 'reconcile.joined_submission', 'reconcile.archived_action', 'reconcile.retention_rule', 'reconcile.clock', 'reconcile.pause_period', 'reconcile.pause_period_pause_id_seq', 'reconcile.self_test_result'], 'a dump carries the definitions and what happened');
SELECT is_empty($$SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'p') AND relname NOT IN ('arming', 'rearming', 'profile_catalog', 'breaker')
	AND NOT relispartition AND NOT oid = ANY ((SELECT extconfig FROM pg_extension WHERE extname = 'action_reconcile')::oid[])$$, 'of every table but the arming, the catalogue and the breakers');
SELECT * FROM finish();
ROLLBACK;
