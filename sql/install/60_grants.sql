-- Who owns what, and who may do what. Nothing to PUBLIC; four roles, granted like pg_monitor, and an owner that nobody is.

-- Two databases at a time may get the extension: the second one waits here, and finds the roles.
LOCK TABLE pg_catalog.pg_authid IN SHARE ROW EXCLUSIVE MODE;

DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['reconcile_owner', 'reconcile_reader', 'reconcile_submitter', 'reconcile_operator', 'reconcile_admin'] LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role);
		END IF;
	END LOOP;
	IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'reconcile_owner'
			AND (rolsuper OR rolcanlogin OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)) THEN
		RAISE EXCEPTION 'role "reconcile_owner" can log in, or has a power of its own'
			USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'ALTER ROLE reconcile_owner NOLOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS, or rename it.';
	END IF;
	IF EXISTS (SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles r ON r.oid IN (m.roleid, m.member) WHERE r.rolname = 'reconcile_owner') THEN
		RAISE EXCEPTION 'role "reconcile_owner" has members, or is a member of another role'
			USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'Whoever is a member could change what happened: revoke the memberships (they are in pg_auth_members), or rename the role.';
	END IF;
END $$;

-- Functions that run with their owner's rights, and the engine, have those of a role that cannot log in, has no members and
-- no power over the rest of the database. The schema stays with who installs, for a dump names its owner before there is a role.
-- A new object needs nothing: everything that the scripts before this one make is found here, and what
-- reconcile_owner makes later is its own. This stands before the grants, since a dump compares these with what they were first.
GRANT USAGE, CREATE ON SCHEMA reconcile TO reconcile_owner;
DO $$
DECLARE
	kind text;
	member text;
BEGIN
	FOR kind, member IN SELECT CASE WHEN o.type IN ('function', 'procedure', 'aggregate') THEN 'routine' ELSE o.type END, o.identity
		FROM pg_catalog.pg_depend d
		JOIN pg_catalog.pg_extension e ON d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid,
			LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, d.objsubid) o
		WHERE e.extname = 'action_reconcile' AND d.deptype = 'e' AND d.classid <> 'pg_catalog.pg_cast'::pg_catalog.regclass
			-- The sequence of an identity column goes with its table.
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend i WHERE i.classid = d.classid AND i.objid = d.objid AND i.objsubid = 0 AND i.deptype = 'i')
		-- The months of the history are no members; an upgrade may find some.
		UNION SELECT 'table', h.inhrelid::pg_catalog.regclass::text FROM pg_catalog.pg_inherits h WHERE h.inhparent = 'reconcile.history'::pg_catalog.regclass
	LOOP
		EXECUTE pg_catalog.format('ALTER %s %s OWNER TO reconcile_owner', kind, member);
	END LOOP;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA reconcile FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reconcile FROM PUBLIC;

GRANT USAGE ON SCHEMA reconcile TO reconcile_reader, reconcile_submitter, reconcile_operator, reconcile_admin;

-- The types and the pure functions about them are for everybody who can see the schema.
DO $$
DECLARE
	f pg_catalog.regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'reconcile'::pg_catalog.regnamespace AND p.provolatile = 'i' AND p.prokind = 'f'
			AND p.proname NOT LIKE 'try\_%' LOOP
		EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO reconcile_reader, reconcile_submitter, reconcile_operator, reconcile_admin', f);
	END LOOP;
END $$;

GRANT reconcile_reader TO reconcile_operator;
GRANT reconcile_operator TO reconcile_admin;

-- The views and functions of this group show a submitter its own actions only.
GRANT SELECT ON reconcile.transition_rule, reconcile.action_status, reconcile.action_history, reconcile.unresolved
	TO reconcile_reader, reconcile_submitter;
GRANT EXECUTE ON FUNCTION reconcile.transition_rules(), reconcile.nobody_works_because(), reconcile.may_see(name), reconcile.receipt(uuid), reconcile.verify_receipt(jsonb),
	reconcile.wait(uuid, interval), reconcile.wait_until_resolved(uuid, interval),
	reconcile.preview(uuid), reconcile.preview(text, jsonb, text) TO reconcile_reader, reconcile_submitter;

GRANT SELECT ON reconcile.health, reconcile.provider, reconcile.operation, reconcile.response_rule, reconcile.lookup_rule, reconcile.poll_rule, reconcile.action,
	reconcile.attempt, reconcile.lookup, reconcile.history, reconcile.joined_submission, reconcile.archived_action, reconcile.retention_rule, reconcile.provider_retention,
	reconcile.inbox, reconcile.unmatched_event, reconcile.event_source, reconcile.event_rule, reconcile.incident, reconcile.window_sample, reconcile.profile_catalog, reconcile.profile_fact, reconcile.provider_override,
	reconcile.provider_grade, reconcile.review_queue, reconcile.bulk_batch, reconcile.bulk_item, reconcile.clock,
	reconcile.breaker, reconcile.pause_period, reconcile.provider_limits, reconcile.rearming, reconcile.arming_summary TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.capabilities(reconcile.operation), reconcile.missing_for(reconcile.tier, reconcile.operation),
	reconcile.query_surface(reconcile.operation), reconcile.on_lost_answer(reconcile.operation) TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.engine(), reconcile.library_version(), reconcile.verify_history(uuid), reconcile.fold_violation(),
	reconcile.history_hash(uuid, integer, timestamptz, integer, text, reconcile.state, reconcile.state, reconcile.standing, jsonb, text, bytea)
	TO reconcile_reader;

GRANT INSERT (action_id, operation, payload, intent_key, client_reference, deliberate_repeat, not_before, not_after,
	priority, ordering_key, after_failure, depends_on)
	ON reconcile.action TO reconcile_submitter;
-- For INSERT ... RETURNING action_id. Row security hides the rows of others; the extension's own functions are above it.
GRANT SELECT (action_id) ON reconcile.action TO reconcile_submitter;
ALTER TABLE reconcile.action ENABLE ROW LEVEL SECURITY;
CREATE POLICY action_visible ON reconcile.action FOR SELECT USING (reconcile.may_see(submitter));
CREATE POLICY action_insert ON reconcile.action FOR INSERT WITH CHECK (submitter = session_user);
GRANT EXECUTE ON FUNCTION reconcile.new_action_id(),
	reconcile.submit(text, jsonb, text, text, timestamptz, timestamptz, integer, text, uuid[], text, boolean, boolean) TO reconcile_submitter;

-- A submitter may withdraw its own actions; what else is done to an action by hand is the operators'.
GRANT EXECUTE ON FUNCTION reconcile.cancel(uuid, text) TO reconcile_submitter, reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.hold(uuid, text), reconcile.release(uuid, text, reconcile.intent_fingerprint), reconcile.replace(uuid, text),
	reconcile.abandon(uuid, text), reconcile.look_up_now(uuid, text), reconcile.resolve(uuid, text, text, text, integer, jsonb, boolean),
	reconcile.bulk_preview(text, uuid[], text, text, reconcile.state, boolean, name, timestamptz, text, integer), reconcile.bulk_apply(bigint, text),
	reconcile.pause(text, text, text), reconcile.resume(text, text), reconcile.pause_scope(text, text), reconcile.wake() TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.instant_words(timestamptz), reconcile.window_open_until(uuid), reconcile.awaits_approval(reconcile.action), reconcile.try_preview(uuid),
	reconcile.attempts_summary(uuid), reconcile.lookups_summary(uuid), reconcile.risk_of_repeating(reconcile.action) TO reconcile_reader;
GRANT UPDATE (paused_at, paused_reason) ON reconcile.provider TO reconcile_operator;
GRANT INSERT (scope, name, reason), UPDATE (resumed_at, resumed_by) ON reconcile.pause_period TO reconcile_operator;
GRANT UPDATE (open_until_us, open_until) ON reconcile.breaker TO reconcile_operator;

GRANT INSERT, UPDATE, DELETE ON reconcile.provider, reconcile.operation, reconcile.response_rule, reconcile.lookup_rule, reconcile.poll_rule TO reconcile_admin;
GRANT EXECUTE ON PROCEDURE reconcile.run(interval, boolean, integer, integer, integer, integer) TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.arm(text), reconcile.create_history_partitions(integer) TO reconcile_admin;
GRANT INSERT, UPDATE, DELETE ON reconcile.profile_fact, reconcile.provider_override, reconcile.event_source, reconcile.event_rule TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.adopt_profile(text, jsonb, text), reconcile.define_provider(jsonb, jsonb, text),
	reconcile.check_profile(jsonb), reconcile.check_profile_row(jsonb, text, text, text[], text[]), reconcile.check_profile_rows(jsonb, text, text, text[]),
	reconcile.check_profile_keys(jsonb, text, text[], text[]), reconcile.check_profile_value(jsonb, text, text, text, text), reconcile.profile_columns(text),
	reconcile.profile_refused(text, text), reconcile.check_profile_version(jsonb, text), reconcile.arm_if_first(), reconcile.whole_row(text, jsonb),
	reconcile.apply_row(text, jsonb, jsonb, boolean), reconcile.keep_widened(jsonb, jsonb, text), reconcile.drop_rules(text, jsonb),
	reconcile.apply_rules(text, jsonb), reconcile.apply_facts(text, jsonb), reconcile.apply_events(text, jsonb, jsonb),
	reconcile.check_definition(reconcile.operation), reconcile.check_key(reconcile.operation), reconcile.check_rules(reconcile.operation),
	reconcile.refuse_definition(text, text, text) TO reconcile_admin;

GRANT EXECUTE ON FUNCTION reconcile.confirm(text, text, jsonb, text, text, timestamptz), reconcile.verdict(text, text, jsonb, text, text, timestamptz) TO reconcile_submitter, reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.receive_event(text, jsonb, bytea), reconcile.receive_event(text, jsonb, text) TO reconcile_submitter, reconcile_operator;

GRANT SELECT ON reconcile.provider_scorecard TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.action_as_of(timestamptz, uuid), reconcile.day_report(date, text) TO reconcile_reader, reconcile_submitter;
GRANT EXECUTE ON FUNCTION reconcile.close_incident(bigint, text) TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.redact(uuid, text) TO reconcile_admin;

-- Health and metrics tell of everything; submitters are not told.
GRANT SELECT ON reconcile.health_check, reconcile.guard, reconcile.metrics TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.health_facts(), reconcile.worker_state(), reconcile.clock_reading(), reconcile.lower_clock(), reconcile.partitions_until(), reconcile.overdue(),
	reconcile.blocking(integer), reconcile.blockers(integer), reconcile.health_of_sessions(integer), reconcile.metrics_of_tables(), reconcile.rows_inserted(),
	reconcile.history_rows(),
	reconcile.metrics_text() TO reconcile_reader;

-- Measuring and rehearsing: an admin's; what they found is for readers.
GRANT SELECT ON reconcile.window_report, reconcile.window_violation, reconcile.self_test_result TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.window_plot(text), reconcile.plot_time_axis(timestamptz, timestamptz), reconcile.window_of(text),
	reconcile.drill_state(uuid[]), reconcile.self_test_plan(text), reconcile.self_test_findings(text, uuid, uuid, uuid) TO reconcile_reader;
GRANT INSERT, DELETE ON reconcile.self_test_result TO reconcile_admin;
GRANT EXECUTE ON PROCEDURE reconcile.require_commit(text),
	reconcile.measure_window(text, integer, integer, jsonb, boolean, numeric, interval, integer, interval, interval, boolean),
	reconcile.self_test(text, jsonb, boolean, interval, uuid, integer) TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.await_engine(interval), reconcile.is_over(timestamptz), reconcile.submit_drill(text, jsonb, text), reconcile.keep_concurrency(uuid[], integer),
	reconcile.drill_payload(text, jsonb), reconcile.withdraw_drills(uuid[], text), reconcile.measure_begin(text, integer, integer, jsonb, numeric, interval),
	reconcile.measure_step(text, jsonb, integer, integer, boolean, uuid[], text), reconcile.measure_end(text, uuid[], integer, numeric, boolean),
	reconcile.self_test_begin(text, jsonb, interval), reconcile.self_test_step(text, jsonb, boolean, uuid, uuid, uuid),
	reconcile.self_test_end(uuid, text, boolean, text, uuid, uuid, uuid) TO reconcile_admin;

-- What leaves is an admin's to say; why something stays is for readers.
GRANT INSERT, UPDATE, DELETE ON reconcile.retention_rule TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.kept_because(uuid[]), reconcile.with_whole_history(uuid[]), reconcile.standing_jobs() TO reconcile_reader;
GRANT EXECUTE ON PROCEDURE reconcile.maintain(integer, interval, integer, integer, bigint, bigint, integer) TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.maintain_begin(interval, integer), reconcile.maintain_step(uuid, bigint, bigint, integer),
	reconcile.drop_empty_history_partitions(), reconcile.schedule_jobs(boolean), reconcile.unschedule_jobs(), reconcile.check_pg_cron() TO reconcile_admin;
