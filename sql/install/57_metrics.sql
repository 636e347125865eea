-- The same as numbers, for whoever watches by machine.

-- Small tables are counted. Of large ones always the same few blocks are read, so that the figure is cheap and steady.
CREATE FUNCTION reconcile.finished_actions(OUT provider text, OUT state reconcile.state, OUT actions double precision) RETURNS SETOF record
	LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	blocks bigint := pg_relation_size('reconcile.action') / current_setting('block_size')::integer;
	share double precision := least(100, 100 * 500.0 / greatest(blocks, 1));
BEGIN
	RETURN QUERY SELECT a.provider, a.state, round(count(*) * 100 / share) FROM reconcile.action a TABLESAMPLE SYSTEM (share) REPEATABLE (0)
		WHERE a.state NOT IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered') GROUP BY a.provider, a.state;
END $$;
COMMENT ON FUNCTION reconcile.finished_actions() IS 'Settled actions by provider and state: counted up to 4 MB of them, beyond that estimated from a sample of 500 blocks.';

CREATE FUNCTION reconcile.lookup_results(OUT result text, OUT lookups double precision) RETURNS SETOF record
	LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	blocks bigint := pg_relation_size('reconcile.lookup') / current_setting('block_size')::integer;
	share double precision := least(100, 100 * 500.0 / greatest(blocks, 1));
BEGIN
	RETURN QUERY SELECT k.result, round(count(*) * 100 / share) FROM reconcile.lookup k TABLESAMPLE SYSTEM (share) REPEATABLE (0)
		WHERE k.answered_at IS NOT NULL GROUP BY k.result;
END $$;
COMMENT ON FUNCTION reconcile.lookup_results() IS 'Answered lookups and polls by result: counted up to 4 MB of them, beyond that estimated from a sample of 500 blocks.';

CREATE FUNCTION reconcile.rows_inserted(OUT relation text, OUT inserted bigint) RETURNS SETOF record
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT t, pg_stat_get_tuples_inserted(('reconcile.' || t)::regclass) FROM unnest('{action,attempt,lookup}'::text[]) t $$;
COMMENT ON FUNCTION reconcile.rows_inserted() IS 'How many actions, attempts and lookups were recorded, by the server''s cumulative statistics: those of transactions that were rolled back too, and since these were last reset.';

CREATE FUNCTION reconcile.history_rows() RETURNS double precision
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(sum(greatest(c.reltuples, 0)), 0) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'reconcile.history'::regclass $$;
COMMENT ON FUNCTION reconcile.history_rows() IS 'Entries of the history, as the last VACUUM or ANALYZE has left them in the catalog.';

CREATE FUNCTION reconcile.metrics_of_tables(OUT name text, OUT labels jsonb, OUT value double precision) RETURNS SETOF record
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off SET lock_timeout = '5s' AS $$
#variable_conflict use_column
BEGIN
	IF NOT reconcile.is_readable('{action,provider,operation,lookup,incident,breaker,pause_period}') THEN
		RETURN;
	END IF;
	RETURN QUERY WITH load AS MATERIALIZED (
		SELECT o.provider, o.state, count(*) AS actions, array_agg(greatest(extract(epoch FROM clock_timestamp() - o.since), 0)::double precision) AS ages
		  FROM reconcile.open_actions() o GROUP BY o.provider, o.state
	), age AS MATERIALIZED (
		SELECT l.provider, count(*) AS actions, max(a) AS oldest, percentile_disc('{0.5,0.95,0.99}'::double precision[]) WITHIN GROUP (ORDER BY a) AS percentiles
		  FROM load l CROSS JOIN unnest(l.ages) a GROUP BY l.provider
	)
	SELECT 'actions', jsonb_build_object('provider', l.provider, 'state', l.state), l.actions::double precision FROM load l
	UNION ALL SELECT 'unresolved', jsonb_build_object('provider', p.provider), coalesce(a.actions, 0) FROM reconcile.provider p LEFT JOIN age a ON a.provider = p.provider
	UNION ALL SELECT 'unresolved_age_seconds', jsonb_build_object('provider', a.provider, 'percentile', q.name), q.value FROM age a
		CROSS JOIN LATERAL unnest('{50,95,99,100}'::text[], a.percentiles || a.oldest) AS q (name, value)
	UNION ALL SELECT 'finished', jsonb_build_object('provider', f.provider, 'state', f.state), f.actions FROM reconcile.finished_actions() f
	UNION ALL SELECT 'lookups', jsonb_build_object('result', k.result), k.lookups FROM reconcile.lookup_results() k
	UNION ALL SELECT 'incidents_open', jsonb_build_object('kind', k), (SELECT count(*) FROM reconcile.incident i WHERE i.kind = k AND i.closed_at IS NULL)
		FROM unnest('{window_violation,duplicate,contradiction}'::text[]) k
	UNION ALL SELECT 'incidents', jsonb_build_object('kind', k), (SELECT count(*) FROM reconcile.incident i WHERE i.kind = k)
		FROM unnest('{window_violation,duplicate,contradiction}'::text[]) k
	UNION ALL SELECT 'paused', jsonb_strip_nulls(jsonb_build_object('scope', p.scope, 'provider', CASE p.scope WHEN 'provider' THEN p.name END,
			'operation', CASE p.scope WHEN 'operation' THEN p.name END)), 1 FROM reconcile.pause_period p WHERE p.resumed_at IS NULL AND p.paused_by <> 'engine'
	UNION ALL SELECT 'credential_refused', jsonb_build_object('provider', p.provider), coalesce(p.paused_by = 'engine', false)::integer FROM reconcile.provider p
	UNION ALL SELECT v.name, jsonb_build_object('provider', l.provider), v.value FROM reconcile.provider_limits l CROSS JOIN LATERAL (VALUES
		('ambiguity_budget', l.ambiguity_budget::double precision), ('ambiguity_used', l.uncertain + l.in_flight), ('breaker_open', (l.breaker <> 'closed')::integer)) v (name, value);
END $$;
COMMENT ON FUNCTION reconcile.metrics_of_tables() IS 'What the view metrics counts by provider and kind. Waits for nobody: while somebody alters one of the tables there is nothing.';

CREATE VIEW reconcile.metrics AS
	WITH h AS MATERIALIZED (
		SELECT f.*, clock_timestamp() AS now FROM reconcile.health f
	), sample (name, labels, value) AS (
		SELECT s.name, '{}'::jsonb, s.value FROM h CROSS JOIN LATERAL (VALUES
			('engine_up', h.engine_up::integer::double precision),
			('engine_idle_seconds', greatest(extract(epoch FROM h.now - h.last_sign_of_life), 0)),
			('worker_failures', h.worker_failures),
			('armed', h.armed::integer),
			('stalled', (h.stalled_because IS NOT NULL)::integer),
			('blockers', cardinality(h.blocked_by)),
			('overdue_seconds', CASE WHEN h.due IS NOT NULL THEN coalesce(greatest(extract(epoch FROM h.now - h.overdue_since), 0), 0) END),
			('due', h.due),
			('in_flight', h.in_flight),
			('unresolved_oldest_seconds', CASE WHEN h.due IS NOT NULL THEN coalesce(greatest(extract(epoch FROM h.now - h.oldest_unresolved), 0), 0) END),
			('review', h.in_review),
			('review_oldest_seconds', CASE WHEN h.due IS NOT NULL THEN coalesce(greatest(extract(epoch FROM h.now - h.oldest_in_review), 0), 0) END),
			('lookups_failing', h.lookups_failing),
			('inbox_waiting', h.inbox_waiting),
			('inbox_oldest_seconds', CASE WHEN h.due IS NOT NULL THEN coalesce(greatest(extract(epoch FROM h.now - h.inbox_waiting_since), 0), 0) END),
			('inbox_unmatched', h.inbox_unmatched),
			('guards_missing', cardinality(h.guards_missing)),
			('partitions_ahead_seconds', CASE WHEN h.armed THEN coalesce(greatest(extract(epoch FROM h.partitions_until - h.now), 0), 0) END),
			('history_default_entries', h.default_entries),
			('history_entries', reconcile.history_rows()),
			('wall_clock_behind_seconds', extract(epoch FROM h.wall_clock_behind)),
			('gates_late_seconds', extract(epoch FROM h.gates_late)),
			('oldest_transaction_seconds', coalesce(greatest(extract(epoch FROM h.now - h.oldest_transaction_since), 0), 0)),
			('sampled_timestamp_seconds', extract(epoch FROM h.now))) AS s (name, value)
		UNION ALL SELECT t.name, t.labels, t.value FROM reconcile.metrics_of_tables() t
		UNION ALL SELECT CASE r.relation WHEN 'action' THEN 'submitted' WHEN 'attempt' THEN 'attempts' ELSE 'questions' END, '{}', r.inserted FROM reconcile.rows_inserted() r
	), family (position, name, type, help) AS (VALUES
		(1, 'engine_up', 'gauge', 'Is an engine there: the worker, or a session that runs it. Without the preloaded library: in the last 3 minutes.'),
		(2, 'engine_idle_seconds', 'gauge', 'Since an engine last did something; one that has nothing to do does nothing.'),
		(3, 'worker_failures', 'gauge', 'Ends and failed starts of the worker in a row.'),
		(4, 'armed', 'gauge', 'May this database send and ask.'),
		(5, 'stalled', 'gauge', 'Does the engine send nothing because the database cannot be written.'),
		(6, 'blockers', 'gauge', 'Sessions that keep the engine from a table or a row.'),
		(7, 'overdue_seconds', 'gauge', 'For how long the oldest thing is due that nothing holds back and nobody works on.'),
		(8, 'due', 'gauge', 'Actions that could be sent now.'),
		(9, 'in_flight', 'gauge', 'Actions whose attempt is on its way.'),
		(10, 'actions', 'gauge', 'Unresolved actions that may be sent already or have been.'),
		(11, 'unresolved', 'gauge', 'The same by provider, also where there are none.'),
		(12, 'unresolved_oldest_seconds', 'gauge', 'Age of the oldest of them, since it was to be done.'),
		(13, 'unresolved_age_seconds', 'gauge', 'Percentiles of that age; 100 is the oldest.'),
		(14, 'finished', 'gauge', 'Settled actions; an estimate where there are many.'),
		(15, 'submitted', 'counter', 'Actions recorded, by the cumulative statistics of the server.'),
		(16, 'attempts', 'counter', 'Attempts recorded, likewise.'),
		(17, 'questions', 'counter', 'Lookups and polls recorded, likewise.'),
		(18, 'lookups', 'gauge', 'Answered lookups and polls by result; an estimate where there are many.'),
		(19, 'lookups_failing', 'gauge', 'Actions about which the provider was asked at least twice, with answers that prove nothing.'),
		(20, 'review', 'gauge', 'Actions that only a person can settle.'),
		(21, 'review_oldest_seconds', 'gauge', 'For how long the oldest of them waits.'),
		(22, 'incidents_open', 'gauge', 'Incidents that nobody has closed.'),
		(23, 'incidents', 'counter', 'Incidents that were opened.'),
		(24, 'paused', 'gauge', 'Pauses by people that last: of everything, a provider or an operation.'),
		(25, 'ambiguity_budget', 'gauge', 'Nothing new is sent to the provider while so much is uncertain or being sent.'),
		(26, 'ambiguity_used', 'gauge', 'Actions that are uncertain or being sent.'),
		(27, 'breaker_open', 'gauge', 'Could the provider not be reached, so that only probes go.'),
		(28, 'credential_refused', 'gauge', 'Was it paused because the provider refuses our credential.'),
		(29, 'inbox_waiting', 'gauge', 'Events about known actions that are not applied yet.'),
		(30, 'inbox_oldest_seconds', 'gauge', 'For how long the oldest of them waits.'),
		(31, 'inbox_unmatched', 'gauge', 'Events that no action is known for.'),
		(32, 'guards_missing', 'gauge', 'Triggers that do not refuse what they should.'),
		(33, 'partitions_ahead_seconds', 'gauge', 'For how long the history has monthly partitions.'),
		(34, 'history_default_entries', 'gauge', 'Entries of the history outside of them, counted up to 1000.'),
		(35, 'history_entries', 'gauge', 'Entries of the history, by the last VACUUM or ANALYZE.'),
		(36, 'wall_clock_behind_seconds', 'gauge', 'How far the wall clock is behind its latest stored reading.'),
		(37, 'gates_late_seconds', 'gauge', 'How much later than announced the next question can be asked.'),
		(38, 'oldest_transaction_seconds', 'gauge', 'Age of the oldest transaction, which keeps dead rows from being cleaned up.'),
		(39, 'sampled_timestamp_seconds', 'gauge', 'When this was read, seconds since 1970.'))
	SELECT 'action_reconcile_' || f.name AS name, s.labels, s.value, f.type, f.help
	FROM family f JOIN sample s ON s.name = f.name WHERE s.value IS NOT NULL
	ORDER BY f.position, s.labels;
COMMENT ON VIEW reconcile.metrics IS
	'Health and load as numbers, by names, labels and units (seconds) of OpenMetrics. Reads indexes of what is open, the catalog, and samples of what is finished.';
COMMENT ON COLUMN reconcile.metrics.name IS 'The name of the family; a counter''s sample is called name_total.';
COMMENT ON COLUMN reconcile.metrics.type IS 'gauge or counter.';

CREATE FUNCTION reconcile.metrics_escape(text text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT replace(replace(replace($1, '\', '\\'), '"', '\"'), E'\n', '\n') $$;
COMMENT ON FUNCTION reconcile.metrics_escape(text) IS 'A label''s value or a help text as OpenMetrics wants it.';

CREATE FUNCTION reconcile.metrics_text() RETURNS text
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 AS $$
	WITH line AS (
		SELECT m.name, m.type, m.help, m.position, m.name || CASE m.type WHEN 'counter' THEN '_total' ELSE '' END
			|| CASE WHEN m.labels = '{}' THEN '' ELSE '{' || (SELECT string_agg(format('%s="%s"', l.key, reconcile.metrics_escape(l.value)), ',' ORDER BY l.key) FROM jsonb_each_text(m.labels) l) || '}' END
			|| ' ' || m.value AS sample
		  FROM (SELECT x.*, row_number() OVER () AS position FROM reconcile.metrics x) m
	), family AS (
		SELECT min(l.position) AS position, format(E'# TYPE %s %s\n%s# HELP %s %s\n', l.name, l.type, CASE WHEN l.name LIKE '%\_seconds' THEN format(E'# UNIT %s seconds\n', l.name) ELSE '' END,
			l.name, reconcile.metrics_escape(l.help)) || string_agg(l.sample, E'\n' ORDER BY l.position) AS lines
		  FROM line l GROUP BY l.name, l.type, l.help
	)
	SELECT string_agg(f.lines, E'\n' ORDER BY f.position) || E'\n# EOF\n' FROM family f $$;
COMMENT ON FUNCTION reconcile.metrics_text() IS 'The view metrics as OpenMetrics text, for whatever serves or stores it for a collector.';
