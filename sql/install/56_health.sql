-- Does it work, and if not, why, since when, and what helps? Every figure comes from an index of what is open, or from the
-- catalog, so that looking costs the same whatever has been finished. A plan that may not scan has an absurd cost, for which
-- the server would compile it: hence jit = off.

CREATE FUNCTION reconcile.clock_reading(OUT lifetime text, OUT monotonic_us bigint)
	AS 'MODULE_PATHNAME', 'ar_clock_reading' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.clock_reading() IS 'The lifetime of this postmaster and the machine''s monotonic clock, microseconds, as the table clock holds them.';

CREATE FUNCTION reconcile.engine_tables() RETURNS text[]
	AS 'MODULE_PATHNAME', 'ar_engine_tables' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.engine_tables() IS 'The tables that every transaction of the engine needs: while somebody locks one of them against writing, it waits.';

CREATE FUNCTION reconcile.lower_clock() RETURNS bigint
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT max(c.elapsed_us + CASE WHEN c.lifetime = r.lifetime THEN greatest(r.monotonic_us - c.monotonic_us, 0) ELSE 0 END)
	  FROM reconcile.clock c, reconcile.clock_reading() r $$;
COMMENT ON FUNCTION reconcile.lower_clock() IS 'The logical clock of this database now, microseconds: what gate_us is compared with. NULL: it has never run.';

CREATE VIEW reconcile.guard AS
	WITH expected (relation, guard) AS (
		VALUES ('action', 'action_1_prepare'), ('action', 'action_2_guard'), ('action', 'action_3_inserted'), ('action', 'action_3_updated'), ('action', 'action_no_truncate'),
			('attempt', 'attempt_guard'), ('attempt', 'attempt_no_truncate'), ('history', 'history_append_only'), ('history', 'history_no_truncate'),
			('joined_submission', 'joined_append_only'), ('joined_submission', 'joined_no_truncate'), ('archived_action', 'archived_append_only'), ('archived_action', 'archived_no_truncate')
		UNION ALL
		SELECT c.relname, g FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
			CROSS JOIN unnest('{history_append_only,history_no_truncate}'::text[]) g WHERE i.inhparent = 'reconcile.history'::pg_catalog.regclass
	)
	SELECT e.relation, e.guard, CASE WHEN t.tgenabled IS NULL THEN 'missing' WHEN t.tgenabled = 'A' THEN 'on' WHEN t.tgenabled = 'D' THEN 'disabled' ELSE 'not always on' END AS state
	FROM expected e LEFT JOIN pg_catalog.pg_class c ON c.relname = e.relation AND c.relnamespace = 'reconcile'::pg_catalog.regnamespace
	LEFT JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid AND t.tgname = e.guard AND NOT t.tgisinternal
	UNION ALL
	SELECT c.relname, t.tgname, 'disabled' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_trigger t ON t.tgrelid = c.oid
	WHERE c.relnamespace = 'reconcile'::pg_catalog.regnamespace AND t.tgenabled = 'D' AND (c.relname, t.tgname) NOT IN (SELECT relation, guard FROM expected);
COMMENT ON VIEW reconcile.guard IS
	'The triggers that refuse illegal changes, on every table and partition, and any other trigger that is switched off. state must be "on": missing and disabled ones refuse nothing, "not always on" ones not for replication.';

CREATE FUNCTION reconcile.partitions_until() RETURNS timestamptz
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
	WITH RECURSIVE part AS (
		SELECT b[1]::timestamptz AS low, b[2]::timestamptz AS high
		  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		 CROSS JOIN LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') b
		 WHERE i.inhparent = 'reconcile.history'::regclass AND b IS NOT NULL
	), run AS (
		SELECT p.high FROM part p WHERE p.low <= now() AND p.high > now()
		UNION ALL SELECT p.high FROM run r JOIN part p ON p.low = r.high
	)
	SELECT max(high) FROM run $$;
COMMENT ON FUNCTION reconcile.partitions_until() IS 'Until when, without a gap from now on, the history has monthly partitions; NULL: it has none for now.';

CREATE FUNCTION reconcile.overdue(OUT provider text, OUT since timestamptz) RETURNS SETOF record
	LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
	WITH clock AS MATERIALIZED (
		SELECT clock_timestamp() AS wall, reconcile.lower_clock() AS lower_us, w.last_turn_at FROM reconcile.worker_state() w
	), open AS MATERIALIZED (
		-- A rate spreads out what there is to do: then it counts that the engine is at it.
		SELECT l.provider, l.sends_when IS NULL AND NOT coalesce(c.last_turn_at > c.wall - interval '1 min' - 1 / l.max_rate * interval '1 s', false) AS sends,
			l.lookups_in_flight < l.max_lookups_in_flight AND NOT coalesce(c.last_turn_at > c.wall - interval '1 min' - 1 / l.max_lookup_rate * interval '1 s', false) AS asks,
			coalesce(l.paused_operations, '{}') AS paused_operations
		  FROM reconcile.provider_limits l, clock c
	)
	SELECT o.provider, d.due_at FROM clock c, open o
	  CROSS JOIN LATERAL (SELECT min(x.due_at) AS due_at FROM generate_series(-2, 2) s(priority) CROSS JOIN LATERAL (
		SELECT a.due_at FROM reconcile.action a WHERE a.provider = o.provider AND a.state = 'planned' AND NOT a.waits AND NOT a.held
			AND a.priority = s.priority AND a.operation <> ALL (o.paused_operations) ORDER BY a.due_at LIMIT 1) x) d
	 WHERE o.sends AND d.due_at < c.wall - interval '5 s'
		-- What waits for its turn while others are being sent is a backlog, and nobody's fault.
		AND NOT EXISTS (SELECT FROM reconcile.action a WHERE a.provider = o.provider AND a.state = 'submitted' AND a.recorded_at > c.wall - interval '1 min')
	UNION ALL
	SELECT o.provider, c.wall - (c.lower_us - d.gate_us) * interval '1 microsecond' FROM clock c, open o
	  CROSS JOIN LATERAL (SELECT a.gate_us FROM reconcile.action a WHERE a.provider = o.provider AND a.state IN ('outcome_unknown', 'delivered', 'succeeded') AND a.gate_us IS NOT NULL
			AND CASE WHEN a.state = 'outcome_unknown' AND coalesce((SELECT l.kind FROM reconcile.lookup_rule l
				WHERE l.operation = a.operation AND l.position >= a.lookup_position ORDER BY l.position LIMIT 1) = 'replay_by_key', false)
				THEN o.sends AND a.operation <> ALL (o.paused_operations) ELSE o.asks END
		ORDER BY a.gate_us LIMIT 1) d
	 WHERE d.gate_us < c.lower_us - 5000000
		AND NOT EXISTS (SELECT FROM reconcile.lookup k JOIN reconcile.action b USING (action_id)
			WHERE k.answered_at IS NULL AND k.asked_at > c.wall - interval '1 min' AND b.provider = o.provider) $$;
COMMENT ON FUNCTION reconcile.overdue() IS
	'What has been due for more than 5 seconds although neither a limit nor a pause holds it back, and nobody works on it: by provider the oldest action to be sent, and the oldest question to be asked. Needs no engine to say so.';

CREATE FUNCTION reconcile.is_readable(tables text[]) RETURNS boolean
	LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE 'LOCK TABLE ' || (SELECT string_agg(format('ONLY reconcile.%I', t), ', ') FROM unnest($1) t) || ' IN ACCESS SHARE MODE NOWAIT';
	RETURN true;
EXCEPTION WHEN lock_not_available THEN
	RETURN false;
END $$;
COMMENT ON FUNCTION reconcile.is_readable(text[]) IS
	'Can these tables be read now, without waiting for somebody who alters one of them, or waits to? Then they stay so to the end of the transaction.';

-- Rows of actions that have been due for a while, and whose last writer or locker is still at work.
CREATE FUNCTION reconcile.locked_rows(OUT action_id uuid, OUT locker xid) RETURNS SETOF record
	LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
	(SELECT a.action_id, a.xmax FROM reconcile.provider p JOIN reconcile.action a ON a.provider = p.provider WHERE a.state = 'planned' AND NOT a.waits AND NOT a.held
		AND a.due_at < clock_timestamp() - interval '5 s' AND a.xmax <> '0'::xid LIMIT 100)
	UNION ALL
	(SELECT a.action_id, a.xmax FROM reconcile.action a WHERE a.state IN ('outcome_unknown', 'delivered', 'succeeded') AND a.gate_us IS NOT NULL
		AND a.gate_us < (SELECT reconcile.lower_clock()) - 5000000 AND a.xmax <> '0'::xid LIMIT 100) $$;
COMMENT ON FUNCTION reconcile.locked_rows() IS 'Up to 200 actions that have been due for 5 seconds, and the transaction that last touched or locked their row.';

CREATE FUNCTION reconcile.blocking(engine_pid integer, OUT pid integer, OUT holds text) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	late uuid[];
	lockers xid[];
BEGIN
	IF reconcile.is_readable('{action,provider,clock}') THEN
		SELECT array_agg(r.action_id), array_agg(r.locker) INTO late, lockers FROM reconcile.locked_rows() r;
	END IF;
	RETURN QUERY WITH lock AS MATERIALIZED (
		SELECT l.* FROM pg_locks l WHERE l.pid IS DISTINCT FROM $1 AND l.pid IS DISTINCT FROM pg_backend_pid()
			AND (l.locktype = 'transactionid' OR l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
	), direct AS (
		-- The engine never waits for a table: it tries again. So it is in nobody's queue, and is kept out also by one who waits.
		SELECT l.pid, format('table %s (%s%s)', c.relname, l.mode, CASE WHEN NOT l.granted THEN ', waited for' ELSE '' END) AS holds
		  FROM lock l JOIN pg_class c ON c.oid = l.relation
		 WHERE l.locktype = 'relation' AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
			AND c.relnamespace = 'reconcile'::regnamespace
			AND (c.relname = ANY (reconcile.engine_tables()) OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND i.inhparent = 'reconcile.history'::regclass))
		UNION SELECT l.pid, 'the extension itself' FROM lock l JOIN pg_extension e ON l.objid = e.oid AND e.extname = 'action_reconcile'
		 WHERE l.locktype = 'object' AND l.classid = 'pg_extension'::regclass AND l.mode = 'AccessExclusiveLock'
		UNION SELECT l.pid, format('the row of action %s, which is due', min(t.action_id::text)) FROM unnest(late, lockers) t (action_id, locker)
		  JOIN lock l ON l.locktype = 'transactionid' AND l.transactionid = t.locker
		 WHERE l.granted AND l.mode = 'ExclusiveLock' GROUP BY l.pid
		UNION SELECT b, 'what the engine waits for' FROM unnest(pg_blocking_pids($1)) b
	), found AS (
		SELECT coalesce(d.pid, 0) AS pid, string_agg(d.holds, ', ' ORDER BY d.holds) AS holds FROM direct d GROUP BY 1
	)
	SELECT f.pid, f.holds FROM found f
	UNION ALL SELECT b, 'what process ' || min(f.pid) || ' waits for' FROM found f CROSS JOIN unnest(pg_blocking_pids(f.pid)) b
	 WHERE b NOT IN (SELECT x.pid FROM found x) GROUP BY b;
END $$;
COMMENT ON FUNCTION reconcile.blocking(integer) IS 'The processes of blockers(), and what each holds.';

CREATE FUNCTION reconcile.blockers(engine_pid integer)
	RETURNS TABLE (pid integer, holds text, waits_for integer[], state text, since timestamptz, application_name text, user_name name)
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT b.pid, b.holds, nullif(pg_blocking_pids(b.pid), '{}'), CASE WHEN b.pid = 0 THEN 'prepared transaction' ELSE s.state END,
		coalesce(s.xact_start, s.query_start), s.application_name, s.usename
	  FROM reconcile.blocking($1) b LEFT JOIN pg_stat_activity s ON s.pid = b.pid AND b.pid <> 0 ORDER BY 5 $$;
COMMENT ON FUNCTION reconcile.blockers(integer) IS
	'Who keeps the engine with that pid from working: whoever locks, or waits to lock, a table of the engine against writing, holds the row of an action that has been due for 5 seconds, or stands before the engine in a lock''s queue; and who those wait for. since: when their transaction began; it and state of other roles'' sessions are shown to members of pg_read_all_stats only. pid 0: a prepared transaction, see pg_prepared_xacts.';

CREATE FUNCTION reconcile.open_actions(OUT provider text, OUT state reconcile.state, OUT since timestamptz) RETURNS SETOF record
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
	SELECT a.provider, a.state, greatest(a.submitted_at, a.not_before) FROM reconcile.action a
	 WHERE a.state IN ('planned', 'submitted') AND (a.not_before IS NULL OR a.not_before <= now())
	UNION ALL SELECT a.provider, a.state, greatest(a.submitted_at, a.not_before) FROM reconcile.action a WHERE a.state IN ('outcome_unknown', 'reconciling', 'manual_review')
	UNION ALL SELECT a.provider, a.state, greatest(a.submitted_at, a.not_before) FROM reconcile.action a WHERE a.state = 'delivered' AND a.gate_us IS NOT NULL
	-- One that is just being asked about has no gate.
	UNION ALL SELECT a.provider, a.state, greatest(a.submitted_at, a.not_before) FROM (SELECT DISTINCT k.action_id FROM reconcile.lookup k WHERE k.answered_at IS NULL) k
	  JOIN reconcile.action a USING (action_id) WHERE a.state = 'delivered' AND a.gate_us IS NULL $$;
COMMENT ON FUNCTION reconcile.open_actions() IS 'Every unresolved action that may be sent already or has been, and since when it was to be done: its submission, or its not_before.';

CREATE FUNCTION reconcile.health_facts(OUT worker_pid integer, OUT lock_holder_pid integer, OUT armed boolean, OUT disarmed_because text, OUT stalled_because text,
		OUT due bigint, OUT in_flight bigint, OUT unknown bigint, OUT in_review bigint, OUT paused_providers text[],
		OUT engine_up boolean, OUT worker_state text, OUT worker_failures integer, OUT last_sign_of_life timestamptz, OUT blocked_by integer[],
		OUT overdue_since timestamptz, OUT overdue_provider text, OUT oldest_unresolved timestamptz, OUT oldest_in_review timestamptz, OUT incidents_open bigint,
		OUT credentials_refused text[], OUT pauses text[], OUT breakers_open text[], OUT budgets_used text[], OUT lookups_failing bigint, OUT inbox_waiting bigint, OUT inbox_waiting_since timestamptz, OUT inbox_unmatched bigint,
		OUT guards_missing text[], OUT partitions_until timestamptz, OUT default_entries bigint, OUT wall_clock_behind interval, OUT gates_late interval)
	RETURNS record LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
	lower_us bigint;
BEGIN
	SELECT w.state, w.failures, w.last_turn_at, w.worker_pid INTO worker_state, worker_failures, last_sign_of_life, worker_pid FROM reconcile.worker_state() w;
	IF reconcile.is_readable('{arming,clock}') THEN
		SELECT e.worker_pid, e.lock_holder_pid, e.armed, e.disarmed_because, e.stalled_because
		  INTO worker_pid, lock_holder_pid, armed, disarmed_because, stalled_because FROM reconcile.engine() e;
		lower_us := reconcile.lower_clock();
		SELECT greatest(max(c.wall_at) - clock_timestamp(), '0') INTO wall_clock_behind FROM reconcile.clock c;
		-- Without the library in the server's memory: the clock is stored by each engine when it begins, and while something is open.
		last_sign_of_life := coalesce(last_sign_of_life, (SELECT max(c.wall_at) FROM reconcile.clock c WHERE c.wall_at <= clock_timestamp()));
	END IF;
	engine_up := coalesce(lock_holder_pid, worker_pid) IS NOT NULL OR worker_state = 'not_preloaded' AND coalesce(last_sign_of_life > clock_timestamp() - interval '3 min', false);
	SELECT coalesce(array_agg(b.pid ORDER BY b.pid), '{}') INTO blocked_by FROM reconcile.blocking(coalesce(lock_holder_pid, worker_pid)) b;
	SELECT coalesce(array_agg(format('%s on %s is %s', g.guard, g.relation, g.state) ORDER BY g.relation, g.guard), '{}') INTO guards_missing FROM reconcile.guard g WHERE g.state <> 'on';
	partitions_until := reconcile.partitions_until();
	-- What cannot be read now stays unknown: whoever looks must not wait for what keeps the engine waiting.
	IF NOT reconcile.is_readable('{action,provider,operation,lookup_rule,lookup,incident,inbox,breaker,pause_period,history_default}') THEN
		RETURN;
	END IF;

	SELECT count(*) FILTER (WHERE a.state = 'planned' AND NOT a.waits AND NOT a.held AND a.due_at <= clock_timestamp()), count(*) FILTER (WHERE a.state = 'submitted')
	  INTO due, in_flight FROM reconcile.action a WHERE a.state IN ('planned', 'submitted');
	SELECT count(*) FILTER (WHERE a.state <> 'manual_review'), count(*) FILTER (WHERE a.state = 'outcome_unknown' AND a.inconclusives >= 2),
		count(*) FILTER (WHERE a.state = 'manual_review'), min(a.recorded_at) FILTER (WHERE a.state = 'manual_review')
	  INTO unknown, lookups_failing, in_review, oldest_in_review FROM reconcile.action a WHERE a.state IN ('outcome_unknown', 'reconciling', 'manual_review');
	SELECT min(o.since) INTO oldest_unresolved FROM reconcile.open_actions() o;
	SELECT o.provider, o.since INTO overdue_provider, overdue_since FROM reconcile.overdue() o ORDER BY o.since LIMIT 1;
	SELECT array_agg(p.provider ORDER BY p.provider), array_agg(p.provider ORDER BY p.provider) FILTER (WHERE p.paused_by = 'engine')
	  INTO paused_providers, credentials_refused FROM reconcile.provider p WHERE p.paused_at IS NOT NULL;
	SELECT array_agg(concat_ws(' ', p.scope, nullif(p.name, '')) ORDER BY p.scope, p.name) INTO pauses FROM reconcile.pause_period p
	 WHERE p.resumed_at IS NULL AND p.paused_by <> 'engine';
	SELECT array_agg(l.provider ORDER BY l.provider) FILTER (WHERE l.breaker <> 'closed'), array_agg(l.provider ORDER BY l.provider) FILTER (WHERE l.uncertain + l.in_flight >= l.ambiguity_budget)
	  INTO breakers_open, budgets_used FROM reconcile.provider_limits l;

	SELECT count(*) INTO incidents_open FROM reconcile.incident i WHERE i.closed_at IS NULL;
	SELECT count(*), min(i.received_at) INTO inbox_waiting, inbox_waiting_since FROM reconcile.inbox i WHERE i.applied_at IS NULL AND i.action_id IS NOT NULL;
	SELECT (SELECT count(*) FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.reference IS NOT NULL)
		+ (SELECT count(*) FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.reference IS NULL) INTO inbox_unmatched;
	SELECT count(*) INTO default_entries FROM (SELECT FROM reconcile.history_default LIMIT 1000) h;
	SELECT greatest((a.gate_us - lower_us) * interval '1 microsecond' - (a.eligible_at - clock_timestamp()), '0') INTO gates_late FROM reconcile.action a
	 WHERE a.state IN ('outcome_unknown', 'delivered', 'succeeded') AND a.gate_us IS NOT NULL AND a.gate_us > lower_us ORDER BY a.gate_us LIMIT 1;
	gates_late := coalesce(gates_late, '0');
END $$;
COMMENT ON FUNCTION reconcile.health_facts() IS 'What the view health says of the engine and of what it works on. Reads the token file and the lock table; waits for nobody: figures of tables that somebody alters are NULL.';

-- With the rights of who asks: what sessions of others do is shown to members of pg_read_all_stats.
CREATE FUNCTION reconcile.health_of_sessions(engine_pid integer, OUT waits_for text, OUT transaction_since timestamptz, OUT oldest_pid integer, OUT oldest_since timestamptz)
	RETURNS record LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	WITH session AS MATERIALIZED (
		SELECT s.pid, s.wait_event_type, s.wait_event, s.xact_start, s.backend_type, s.backend_xmin IS NOT NULL OR s.backend_xid IS NOT NULL AS holds
		  FROM pg_stat_activity s WHERE s.datname = current_database()
	), oldest AS (
		SELECT s.pid, s.xact_start AS since FROM session s WHERE s.holds AND s.xact_start IS NOT NULL AND s.pid <> pg_backend_pid() AND s.backend_type <> 'autovacuum worker'
		UNION ALL SELECT 0, x.prepared FROM pg_prepared_xacts x WHERE x.database = current_database()
		 ORDER BY since LIMIT 1
	)
	SELECT e.wait_event_type || ': ' || e.wait_event, CASE WHEN e.backend_type = 'client backend' THEN e.xact_start END, o.pid, o.since
	  FROM (VALUES (1)) one LEFT JOIN session e ON e.pid = $1 LEFT JOIN oldest o ON true $$;
COMMENT ON FUNCTION reconcile.health_of_sessions(integer) IS
	'What the engine waits for, when a CALL run() began its present transaction (it begins one at least each second), and the oldest transaction of this database.';

CREATE FUNCTION reconcile.rough_words(elapsed interval) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN s >= 172800 THEN floor(s / 86400) || ' d' WHEN s >= 7200 THEN floor(s / 3600) || ' h' WHEN s >= 120 THEN floor(s / 60) || ' min' ELSE greatest(floor(s), 0) || ' s' END
	  FROM extract(epoch FROM $1) s $$;
COMMENT ON FUNCTION reconcile.rough_words(interval) IS 'An elapsed time, rounded down to what matters: 90 s, 5 min, 24 h, 7 d.';

CREATE VIEW reconcile.health AS
	SELECT f.worker_pid, f.lock_holder_pid, f.armed, f.disarmed_because, f.stalled_because, f.due, f.in_flight, f.unknown, f.in_review, f.paused_providers,
		f.engine_up, f.worker_state, f.worker_failures, greatest(f.last_sign_of_life, s.transaction_since) AS last_sign_of_life, s.waits_for AS engine_waits_for, f.blocked_by,
		f.overdue_since, f.overdue_provider, f.oldest_unresolved, f.oldest_in_review, f.incidents_open, f.credentials_refused, f.pauses, f.breakers_open, f.budgets_used, f.lookups_failing,
		f.inbox_waiting, f.inbox_waiting_since, f.inbox_unmatched, f.guards_missing, f.partitions_until, f.default_entries, f.wall_clock_behind, f.gates_late,
		s.oldest_pid AS oldest_transaction_pid, s.oldest_since AS oldest_transaction_since
	FROM reconcile.health_facts() f CROSS JOIN LATERAL reconcile.health_of_sessions(f.lock_holder_pid) s;
COMMENT ON VIEW reconcile.health IS 'One row: does the engine of this database work, may it send, and what waits for it. What of it is wrong, and what helps, says health_check.';
COMMENT ON COLUMN reconcile.health.worker_pid IS 'The background worker of this database; NULL: there is none, worker_state says why.';
COMMENT ON COLUMN reconcile.health.lock_holder_pid IS 'The engine: the worker, or a session that runs it by CALL run(). It is alive as long as it is named here, also when it sleeps.';
COMMENT ON COLUMN reconcile.health.disarmed_because IS 'Why nothing is sent or asked; NULL: it is armed.';
COMMENT ON COLUMN reconcile.health.stalled_because IS 'Why the worker sends nothing although it may; NULL: nothing prevents it.';
COMMENT ON COLUMN reconcile.health.due IS 'Actions that could be sent now, those of paused providers too. This and what else is counted is NULL while somebody alters one of the tables.';
COMMENT ON COLUMN reconcile.health.in_flight IS 'Actions whose attempt is on its way.';
COMMENT ON COLUMN reconcile.health.unknown IS 'Actions in outcome_unknown and reconciling: they may have happened, and are asked about.';
COMMENT ON COLUMN reconcile.health.in_review IS 'Actions that only a person can settle.';
COMMENT ON COLUMN reconcile.health.engine_up IS 'Is there an engine: the worker, or a session that runs it. Without the preloaded library: in the last 3 minutes.';
COMMENT ON COLUMN reconcile.health.worker_state IS 'See worker_state().';
COMMENT ON COLUMN reconcile.health.worker_failures IS 'How often in a row the worker has ended, or could not be started.';
COMMENT ON COLUMN reconcile.health.last_sign_of_life IS
	'When an engine last did something; one that has nothing to do does nothing. Without the preloaded library: when it last began, or kept its clock.';
COMMENT ON COLUMN reconcile.health.engine_waits_for IS 'What its process waits for now; Extension: it sleeps until something is due or committed. NULL: it works, or is not there, or you are no member of pg_read_all_stats.';
COMMENT ON COLUMN reconcile.health.blocked_by IS 'The processes that keep it from a table or a row; see blockers().';
COMMENT ON COLUMN reconcile.health.overdue_since IS 'Since when the oldest thing is due that nothing holds back and nobody works on; NULL: there is none. See overdue().';
COMMENT ON COLUMN reconcile.health.oldest_unresolved IS 'When the oldest unresolved action was to be done.';
COMMENT ON COLUMN reconcile.health.oldest_in_review IS 'Since when the oldest one waits for a person.';
COMMENT ON COLUMN reconcile.health.credentials_refused IS 'Providers that were paused because they refuse our credential.';
COMMENT ON COLUMN reconcile.health.pauses IS 'What people have paused: everything, providers, operations; see pause_period.';
COMMENT ON COLUMN reconcile.health.breakers_open IS 'Providers whose breaker is not closed: they could not be reached; see provider_limits.';
COMMENT ON COLUMN reconcile.health.budgets_used IS 'Providers whose ambiguity budget is used up: nothing new is sent to them.';
COMMENT ON COLUMN reconcile.health.lookups_failing IS 'Actions about which the provider was asked at least twice, with answers that prove nothing.';
COMMENT ON COLUMN reconcile.health.inbox_waiting IS 'Events and words about known actions that are not applied yet.';
COMMENT ON COLUMN reconcile.health.inbox_unmatched IS 'Events and words that no action is known for; see unmatched_event.';
COMMENT ON COLUMN reconcile.health.guards_missing IS 'Triggers that do not refuse what they should; see guard.';
COMMENT ON COLUMN reconcile.health.partitions_until IS 'Until when the history has monthly partitions; NULL: for now it has none.';
COMMENT ON COLUMN reconcile.health.default_entries IS 'Entries in history_default, counted up to 1000.';
COMMENT ON COLUMN reconcile.health.wall_clock_behind IS 'How far the wall clock is behind its latest stored reading: until it has caught up, no idempotency key counts as alive.';
COMMENT ON COLUMN reconcile.health.gates_late IS 'How much later than eligible_at says the next gate opens, because time that nobody could measure, as over a restart, does not count.';
COMMENT ON COLUMN reconcile.health.oldest_transaction_pid IS 'The oldest transaction of this database, which keeps dead rows from being cleaned up; 0: a prepared one. Those of other roles are seen by members of pg_read_all_stats.';

CREATE VIEW reconcile.health_check AS
	WITH h AS MATERIALIZED (SELECT f.*, clock_timestamp() AS now FROM reconcile.health f)
	SELECT c.name, coalesce(c.ok, true) AS ok, CASE WHEN NOT c.ok THEN c.level ELSE 'ok' END AS level, coalesce(c.detail, 'not known while a table is locked') AS detail,
		CASE WHEN NOT c.ok THEN c.hint END AS hint
	FROM h CROSS JOIN LATERAL (VALUES
	(1, 'engine', h.engine_up, 'critical',
		CASE WHEN h.lock_holder_pid = h.worker_pid THEN format('worker %s is at work', h.worker_pid)
			WHEN h.lock_holder_pid IS NOT NULL THEN format('process %s is at work, by CALL run()', h.lock_holder_pid)
			WHEN h.worker_pid IS NOT NULL THEN format('worker %s is about to start', h.worker_pid)
			WHEN h.worker_state = 'not_preloaded' THEN 'no process is at work, and there is no worker: the library is not preloaded'
			WHEN h.worker_state = 'not_listed' THEN format('there is no worker: action_reconcile.databases does not name database "%s"', current_database())
			WHEN h.worker_state = 'no_launcher' THEN 'there is no worker, and no launcher that could start one'
			WHEN h.worker_state = 'no_room' THEN format('there is no worker: all worker slots of the server are taken (tried %s times)', h.worker_failures)
			WHEN h.worker_state = 'failing' THEN format('there is no worker: it has ended %s times in a row', h.worker_failures)
			WHEN h.worker_state = 'held_off' THEN 'there is no worker while a statement needs the database for itself'
			WHEN h.worker_state = 'left_out' THEN 'there is no worker: the launcher has no place for this database, or may not connect to it'
			ELSE 'there is no worker yet' END || coalesce('; last sign of life ' || reconcile.rough_words(h.now - h.last_sign_of_life) || ' ago', '; no sign of life so far'),
		CASE h.worker_state WHEN 'not_preloaded' THEN 'Add action_reconcile to shared_preload_libraries and restart, or let something CALL reconcile.run() again and again.'
			WHEN 'not_listed' THEN 'Name it in action_reconcile.databases, and reload.'
			WHEN 'no_launcher' THEN 'Raise max_worker_processes and restart, if the log says that there are too many background workers; otherwise it comes back within seconds.'
			WHEN 'no_room' THEN 'Raise max_worker_processes and restart, or end what takes the slots: see backend_type in pg_stat_activity.'
			WHEN 'failing' THEN 'It is started again, after up to a minute. The server''s log says why it ended.'
			WHEN 'left_out' THEN 'A template, or a database that takes no connections, gets no worker; nor does the 65th database: name those that need one in action_reconcile.databases.'
			WHEN 'held_off' THEN 'It comes back when that statement has ended: see pg_stat_activity.'
			ELSE 'It is started within seconds.' END),
	(2, 'armed', h.armed, 'critical', CASE WHEN h.armed THEN 'this database may send' ELSE 'this database sends and asks nothing: ' || h.disarmed_because END,
		'If this is the database that is to act, and not a copy of it, call reconcile.arm(reason).'),
	(3, 'stalled', h.stalled_because IS NULL, 'critical', coalesce('the engine sends nothing: ' || h.stalled_because, 'the engine can use its tables'),
		'It tries again by itself, at the latest after a minute: see blocked; make room on the disk, or let the database be written again.'),
	(4, 'blocked', h.blocked_by = '{}', 'critical', CASE WHEN h.blocked_by = '{}' THEN 'nobody keeps it from a table or a row' ELSE 'kept from a table or a row by process ' || array_to_string(h.blocked_by, ', ') END,
		format('SELECT * FROM reconcile.blockers(%s); then let it end, or pg_terminate_backend(pid). 0 is a prepared transaction.', coalesce(h.lock_holder_pid, h.worker_pid, 0))),
	(5, 'overdue', h.incidents_open IS NULL OR coalesce(h.overdue_since > h.now - interval '1 min', true), 'critical',
		coalesce('for ' || reconcile.rough_words(h.now - h.overdue_since) || ' something has been due at provider ' || h.overdue_provider || ', and nobody works on it', 'nothing that could be done is left undone'),
		'See engine, armed and blocked first; then the server''s log, where the engine says what fails.'),
	(6, 'guards', h.guards_missing = '{}', 'critical', CASE WHEN h.guards_missing = '{}' THEN 'every trigger is on' ELSE array_to_string(h.guards_missing, ', ') END,
		'Until it is on again, illegal changes are not refused: ALTER TABLE ... ENABLE ALWAYS TRIGGER; then fold_violation() and verify_history() tell what has been done meanwhile.'),
	(7, 'incidents', h.incidents_open = 0, 'critical', h.incidents_open || ' open', 'SELECT * FROM reconcile.incident WHERE closed_at IS NULL; then close_incident().'),
	(8, 'credentials', h.credentials_refused IS NULL, 'critical', CASE WHEN h.due IS NOT NULL THEN coalesce('refused by ' || array_to_string(h.credentials_refused, ', '), 'no provider refuses ours') END,
		'Put the credential right in its file; then resume(provider).'),
	(9, 'review', h.in_review = 0, 'warning', h.in_review || coalesce(' wait for a person, the oldest for ' || reconcile.rough_words(h.now - h.oldest_in_review), ' wait for a person'),
		'SELECT * FROM reconcile.review_queue ORDER BY priority DESC, since.'),
	(10, 'lookups', h.lookups_failing = 0, 'warning', h.lookups_failing || ' actions were asked about at least twice without an answer that proves anything',
		'SELECT reason, http_status, count(*) FROM reconcile.lookup WHERE result = ''inconclusive'' AND asked_at > now() - interval ''1 hour'' GROUP BY 1, 2.'),
	(11, 'paused', h.pauses IS NULL, 'warning', CASE WHEN h.due IS NOT NULL THEN coalesce('sending is paused: ' || array_to_string(h.pauses, ', '), 'nobody has paused anything') END,
		'SELECT scope, name, paused_at, paused_by, reason FROM reconcile.pause_period WHERE resumed_at IS NULL; then resume().'),
	(12, 'budget', h.budgets_used IS NULL, 'critical', CASE WHEN h.due IS NOT NULL THEN coalesce('so much is uncertain that nothing new is sent to ' || array_to_string(h.budgets_used, ', '), 'no ambiguity budget is used up') END,
		'SELECT * FROM reconcile.provider_limits; then settle what is uncertain: unresolved says what it waits for, review_queue what waits for you.'),
	(13, 'breaker', h.breakers_open IS NULL, 'warning', CASE WHEN h.due IS NOT NULL THEN coalesce('could not be reached: ' || array_to_string(h.breakers_open, ', '), 'every provider can be reached, as far as it was tried') END,
		'SELECT provider, breaker, failures, probe_at, breaker_reason FROM reconcile.provider_limits; a probe goes by itself; resume(provider) lets one go at once.'),
	(14, 'inbox', coalesce(h.inbox_waiting_since > h.now - interval '1 min', true), 'warning',
		h.inbox_waiting || ' events wait to be applied' || coalesce(', the oldest for ' || reconcile.rough_words(h.now - h.inbox_waiting_since), '') || '; ' || h.inbox_unmatched || ' match no action',
		'What is about an action that somebody holds, or that is being sent, waits for it; otherwise the engine does not work.'),
	(15, 'oldest', coalesce(h.oldest_unresolved > h.now - interval '1 day', true), 'warning', coalesce('the oldest unresolved action is from ' || reconcile.instant_words(h.oldest_unresolved), 'nothing is unresolved'),
		'SELECT * FROM reconcile.unresolved ORDER BY since LIMIT 10: next_step says what it waits for.'),
	(16, 'clock', h.wall_clock_behind < interval '5 s' AND h.gates_late < interval '1 hour', 'warning',
		'the wall clock is ' || reconcile.rough_words(h.wall_clock_behind) || ' behind its latest stored reading; the next gate opens ' || reconcile.rough_words(h.gates_late) || ' later than eligible_at says',
		'While the wall clock is behind, nothing is sent again by its key. Set the machine''s clock right; if an earlier reading was wrong, a superuser corrects reconcile.clock.wall_at.'),
	(17, 'partitions', NOT h.armed OR coalesce(h.partitions_until > h.now + interval '20 days', false) AND h.default_entries = 0, 'warning',
		'the history has monthly partitions until ' || coalesce(reconcile.instant_words(h.partitions_until), 'now') || '; ' || h.default_entries || CASE WHEN h.default_entries = 1000 THEN ' or more' ELSE '' END || ' entries outside of them',
		'SELECT reconcile.create_history_partitions(). A month that has entries in history_default already stays there.'),
	(18, 'horizon', coalesce(h.oldest_transaction_since > h.now - interval '1 hour', true), 'warning',
		coalesce('the oldest transaction is that of process ' || h.oldest_transaction_pid || ', since ' || reconcile.instant_words(h.oldest_transaction_since), 'no transaction is open'),
		'It keeps dead rows from being cleaned up, and what is due is found ever more slowly: let it end, or end it.')
	) AS c (position, name, ok, level, detail, hint)
	ORDER BY 2, 3, c.position;
COMMENT ON VIEW reconcile.health_check IS
	'One row a check, what is wrong first: is it ok, how bad is it, what is seen, and what helps. SELECT bool_and(ok) FROM reconcile.health_check is the shortest monitor.';
COMMENT ON COLUMN reconcile.health_check.level IS 'ok; warning: to be looked at in working hours; critical: nothing is sent, or something is wrong that must not be.';
COMMENT ON COLUMN reconcile.health_check.detail IS 'What is seen.';
COMMENT ON COLUMN reconcile.health_check.hint IS 'What helps; NULL if it is ok.';
