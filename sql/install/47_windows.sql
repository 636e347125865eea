-- Windows: how long effects take to show, what follows from it, and what is done when a window was too short.

CREATE PROCEDURE reconcile.require_commit(caller text)
	AS 'MODULE_PATHNAME', 'ar_require_commit' LANGUAGE C;
COMMENT ON PROCEDURE reconcile.require_commit(text) IS
	'Called first by a procedure that commits: error 25001, naming the caller, inside a transaction block or a function.';

CREATE FUNCTION reconcile.await_engine(timeout interval) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_await_engine' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.await_engine(interval) IS
	'Wait until this database''s engine has committed something or the time is up, at most a second. May also return early: look again.';

CREATE FUNCTION reconcile.duration_text(duration interval) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s numeric := extract(epoch FROM $1);
	whole bigint := round(s);
BEGIN
	RETURN CASE
		WHEN s < 0 THEN '-' || reconcile.duration_text(-$1)
		WHEN s = 0 THEN '0 s'
		WHEN s < 0.0095 THEN trim_scale(round(s * 1000, 2)) || ' ms'
		WHEN s < 0.9995 THEN round(s * 1000) || ' ms'
		WHEN s < 59.95 THEN trim_scale(round(s, 1)) || ' s'
		WHEN whole < 3600 THEN concat_ws(' ', whole / 60 || ' min', nullif(whole % 60, 0) || ' s')
		WHEN whole < 86400 THEN concat_ws(' ', whole / 3600 || ' h', nullif(whole % 3600 / 60, 0) || ' min')
		ELSE concat_ws(' ', whole / 86400 || ' d', nullif(whole % 86400 / 3600, 0) || ' h') END;
END $$;
COMMENT ON FUNCTION reconcile.duration_text(interval) IS
	'A duration for people, to two or three digits: 450 ms, 1.3 s, 2 min 5 s. Elapsed time: a day is 24 hours.';

-- ---------------------------------------------------------------- from lags to a window

CREATE FUNCTION reconcile.lag_bound_rank(samples integer) RETURNS integer
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	n float8 := $1;
	log_p float8 := $1 * ln(0.99::float8);	-- of exactly "beyond" samples beyond the quantile
	cumulative float8 := 0;
	beyond integer := 0;
BEGIN
	IF $1 < 1 THEN
		RETURN NULL;
	END IF;
	-- So many samples may lie above the bound without making it a bound in less than 95 % of all cases.
	LOOP
		cumulative := cumulative + CASE WHEN log_p < -700 THEN 0 ELSE exp(log_p) END;
		EXIT WHEN cumulative > 0.05;
		beyond := beyond + 1;
		log_p := log_p + ln((n - beyond + 1) / beyond) + ln(0.01::float8 / 0.99);
	END LOOP;
	RETURN $1 - greatest(beyond - 1, 0);
END $$;
COMMENT ON FUNCTION reconcile.lag_bound_rank(integer) IS
	'Which of so many samples, in ascending order, is with 95 % confidence not below the 99 % quantile, whatever the distribution; the last one where even that is not (below 299).';

CREATE FUNCTION reconcile.recommend_window(lags_us bigint[], safety numeric DEFAULT 3, floor_us bigint DEFAULT 0,
		OUT samples integer, OUT needed integer, OUT bound interval, OUT covers numeric, OUT recommended interval)
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sorted bigint[] := ARRAY(SELECT l FROM unnest($1) l WHERE l IS NOT NULL ORDER BY l);
	bound_us bigint;
BEGIN
	IF $2 IS NULL OR $2 NOT BETWEEN 1 AND 100 THEN
		RAISE EXCEPTION 'the safety factor must be between 1 and 100, not %', $2
			USING ERRCODE = '22023', HINT = 'The default is 3. A smaller factor needs more samples.';
	END IF;
	samples := cardinality(sorted);
	needed := ceil(ln(0.05) / ln(1 - power(0.01, 1 / $2)));
	IF samples = 0 THEN
		RETURN;
	END IF;
	bound_us := sorted[reconcile.lag_bound_rank(samples)];
	bound := bound_us * interval '1 microsecond';
	covers := least(round(power(0.05, 1.0 / samples), 3), 0.99);
	IF samples >= needed THEN
		recommended := ceil(greatest(bound_us * $2, sorted[samples], coalesce($3, 0), 1000000) / 100000) * interval '0.1 second';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.recommend_window(bigint[], numeric, bigint) IS
	'The window that measured lags (microseconds) speak for: an upper bound of the 99 % quantile (lag_bound_rank) times the safety factor, never below the largest lag, floor_us or a second, in tenths of a second. '
	'Of fewer than 299 samples the largest bounds a lower quantile only: covers says which, with 95 % confidence. The factor has to make up for that; were the tail exponential, it does from "needed" samples on (13 for a factor of 3, 29 for 2, 299 for 1), and recommended is NULL below. Error 22023: factor out of range.';

-- ---------------------------------------------------------------- a window that was broken

CREATE VIEW reconcile.window_violation AS
	SELECT i.incident_id, i.opened_at, i.provider, i.operation, (v.one->>'position')::integer AS position, i.action_id,
		(v.one->>'lag_us')::bigint * interval '1 microsecond' AS lag,
		(v.one->>'old_window_us')::bigint * interval '1 microsecond' AS old_window,
		(v.one->>'new_window_us')::bigint * interval '1 microsecond' AS new_window,
		v.one->>'window_of' AS window_of, v.one->>'outcome' AS outcome, i.closed_at
	FROM reconcile.incident i
	CROSS JOIN LATERAL jsonb_array_elements(jsonb_build_array(i.details - 'also') || coalesce(i.details->'also', '[]')) AS v (one)
	WHERE i.kind = 'window_violation';
COMMENT ON VIEW reconcile.window_violation IS 'Objects that showed after a window had closed, one row for each action and lookup rule, and what became of the window.';
COMMENT ON COLUMN reconcile.window_violation.lag IS 'So long after the end of its attempt the object was seen.';
COMMENT ON COLUMN reconcile.window_violation.window_of IS 'Whose window it is: the lookup rule''s own, or the provider''s.';
COMMENT ON COLUMN reconcile.window_violation.outcome IS
	'widened; pinned: left as it is; wide enough; locked: to be widened, but somebody held the row.';

CREATE FUNCTION reconcile.note_window_violation(action_id uuid, "position" integer, lag_us bigint) RETURNS boolean
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
	rule reconcile.lookup_rule;
	p reconcile.provider;
	own boolean;
	held boolean;
	old_us bigint;
	new_us bigint;
	outcome text;
	seen jsonb;
BEGIN
	IF $2 IS NULL OR $3 IS NULL OR $3 < 0 THEN
		RAISE EXCEPTION 'a violation has a position and a lag, not % and %', $2, $3
			USING ERRCODE = '22023', HINT = 'The lag is in microseconds after the end of the attempt.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'action "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	IF EXISTS (SELECT FROM reconcile.window_violation v WHERE v.action_id = $1 AND v.position = $2 AND v.outcome <> 'locked') THEN
		RETURN true;
	END IF;
	SELECT * INTO rule FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.position = $2;
	own := coalesce(rule.consistency_window IS NOT NULL, false);
	-- The engine waits for nobody's row.
	IF own THEN
		-- That of the operation too, whose version counts the changes of its rules.
		PERFORM FROM reconcile.lookup_rule l JOIN reconcile.operation o ON o.operation = l.operation
		 WHERE l.operation = a.operation AND l.position = $2 FOR NO KEY UPDATE SKIP LOCKED;
	ELSE
		PERFORM FROM reconcile.provider x WHERE x.provider = a.provider FOR NO KEY UPDATE SKIP LOCKED;
	END IF;
	held := NOT FOUND;
	SELECT * INTO rule FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.position = $2;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = a.provider;
	old_us := extract(epoch FROM CASE WHEN own THEN rule.consistency_window ELSE p.consistency_window END) * 1000000;
	new_us := greatest(old_us, least($3::numeric * 2, 5184000000000));
	outcome := CASE WHEN held THEN 'locked'
		WHEN p.window_pinned OR coalesce(rule.window_pinned, false) THEN 'pinned'
		WHEN new_us = old_us THEN 'wide enough'
		ELSE 'widened' END;
	-- From now on it rests on what was observed; a profile that says less does not take that back.
	IF outcome = 'widened' AND own THEN
		UPDATE reconcile.lookup_rule l SET consistency_window = new_us * interval '1 microsecond', window_source = 'measured'
		 WHERE l.operation = a.operation AND l.position = $2;
	ELSIF outcome = 'widened' THEN
		UPDATE reconcile.provider x SET consistency_window = new_us * interval '1 microsecond', window_source = 'measured'
		 WHERE x.provider = a.provider;
	END IF;
	seen := jsonb_strip_nulls(jsonb_build_object('position', $2, 'lag_us', $3, 'outcome', outcome,
		'window_of', CASE WHEN own THEN 'lookup rule' ELSE 'provider' END,
		'old_window_us', old_us, 'old_source', CASE WHEN own THEN rule.window_source ELSE p.window_source END,
		'new_window_us', CASE WHEN outcome = 'widened' THEN new_us ELSE old_us END));
	INSERT INTO reconcile.incident AS i (kind, provider, operation, action_id, details)
		VALUES ('window_violation', a.provider, a.operation, $1, seen)
	ON CONFLICT (action_id, kind) DO UPDATE SET details = CASE
		WHEN (i.details->>'position')::integer = $2 THEN seen || jsonb_strip_nulls(jsonb_build_object('also', i.details->'also'))
		ELSE i.details || jsonb_build_object('also', (SELECT coalesce(jsonb_agg(e), '[]')
			FROM jsonb_array_elements(coalesce(i.details->'also', '[]')) e WHERE (e->>'position')::integer <> $2) || seen) END;
	RAISE LOG 'the window of % "%" was too short for action "%": seen after %, the window was %', CASE WHEN own THEN 'a lookup of operation' ELSE 'provider' END,
		CASE WHEN own THEN a.operation ELSE a.provider END, $1, reconcile.duration_text($3 * interval '1 microsecond'),
		reconcile.duration_text(old_us * interval '1 microsecond') USING DETAIL = 'The window: ' || outcome || '.';
	RETURN NOT held;
END $$;
COMMENT ON FUNCTION reconcile.note_window_violation(uuid, integer, bigint) IS
	'An object that this lookup rule had not shown in time was seen, so many microseconds after the end of its attempt: opens the incident and widens the window to twice that lag, never narrower and not if it is pinned. '
	'A window widened so counts as measured. Once per action and rule; false if the window''s row was locked by somebody, then it is to be called again. Errors: 42704 no such action, 22023 no lag.';

-- ---------------------------------------------------------------- what was measured

CREATE VIEW reconcile.window_report AS
	SELECT o.provider, o.operation, l.position, l.kind, w.consistency_window, w.window_source, w.window_of, w.pinned,
		s.probes, s.lookups, s.lag_p50, s.lag_p90, s.lag_p99, s.lag_max, s.last_sample_at, v.violations, v.worst_violation,
		r.recommended AS recommended_window,
		CASE WHEN v.violations > 0 THEN
				format('window is broken: object seen %s after its attempt, when the window was %s; %s', reconcile.duration_text(v.worst_violation),
					reconcile.duration_text(v.old_window), CASE v.outcome WHEN 'pinned' THEN 'it is pinned' WHEN 'locked' THEN 'it has not been widened yet'
						ELSE 'it is ' || reconcile.duration_text(w.consistency_window) || ' now' END)
			WHEN s.probes = 0 THEN format('nothing measured yet: CALL reconcile.measure_window(%L)', o.operation)
			WHEN s.lag_max > w.consistency_window THEN
				format('window is too short: measured maximum %s exceeds the window of %s', reconcile.duration_text(s.lag_max), reconcile.duration_text(w.consistency_window))
			WHEN r.recommended IS NULL THEN
				format('measured maximum %s is within the window of %s, but %s samples are too few: %s are needed', reconcile.duration_text(s.lag_max),
					reconcile.duration_text(w.consistency_window), s.probes, r.needed)
			WHEN r.recommended > w.consistency_window THEN
				format('measured maximum %s is within the window of %s, but close to it: %s is recommended', reconcile.duration_text(s.lag_max),
					reconcile.duration_text(w.consistency_window), reconcile.duration_text(r.recommended))
			ELSE format('measured maximum %s is within the window of %s', reconcile.duration_text(s.lag_max), reconcile.duration_text(w.consistency_window))
		END AS verdict
	FROM reconcile.lookup_rule l
	JOIN reconcile.operation o ON o.operation = l.operation
	JOIN reconcile.provider p ON p.provider = o.provider
	CROSS JOIN LATERAL (SELECT coalesce(l.consistency_window, p.consistency_window) AS consistency_window,
			coalesce(l.window_source, p.window_source) AS window_source,
			CASE WHEN l.consistency_window IS NULL THEN 'provider' ELSE 'lookup rule' END AS window_of,
			p.window_pinned OR l.window_pinned AS pinned) w
	CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE x.source = 'probe') AS probes,
			count(*) FILTER (WHERE x.source = 'lookup') AS lookups,
			percentile_disc(0.5) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p50,
			percentile_disc(0.9) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p90,
			percentile_disc(0.99) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p99,
			max(x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_max,
			max(x.sampled_at) AS last_sample_at,
			array_agg(x.lag_us) FILTER (WHERE x.source = 'probe') AS lags_us
		FROM reconcile.window_sample x WHERE x.operation = l.operation AND x.position = l.position) s
	CROSS JOIN LATERAL (SELECT count(*) AS violations, max(y.lag) AS worst_violation,
			(array_agg(y.old_window ORDER BY y.lag DESC))[1] AS old_window, (array_agg(y.outcome ORDER BY y.lag DESC))[1] AS outcome
		FROM reconcile.window_violation y WHERE y.operation = l.operation AND y.position = l.position AND y.closed_at IS NULL) v
	CROSS JOIN LATERAL reconcile.recommend_window(s.lags_us, 3, (extract(epoch FROM v.worst_violation) * 2000000)::bigint) r
	WHERE l.kind <> 'replay_by_key';
COMMENT ON VIEW reconcile.window_report IS
	'For each lookup rule: its window, how long effects really take to show, and whether the one is long enough for the other.';
COMMENT ON COLUMN reconcile.window_report.window_of IS 'Whose window it is: the lookup rule''s own, or the provider''s.';
COMMENT ON COLUMN reconcile.window_report.probes IS 'Samples of measure_window() and self_test(), which asked from the first moment on. The lags are theirs.';
COMMENT ON COLUMN reconcile.window_report.lookups IS 'Samples of ordinary lookups. These ask after the window only, so each is an upper bound and says nothing about shorter windows.';
COMMENT ON COLUMN reconcile.window_report.lag_max IS 'The longest time from the end of an attempt to the first question that showed its effect.';
COMMENT ON COLUMN reconcile.window_report.violations IS 'Open incidents of objects that showed too late for this rule.';
COMMENT ON COLUMN reconcile.window_report.recommended_window IS 'See recommend_window(), with a safety factor of 3; NULL while there are too few probes.';

-- ---------------------------------------------------------------- measuring

CREATE FUNCTION reconcile.submit_drill(operation text, payload jsonb, drill text) RETURNS uuid
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO reconcile.action (operation, payload, deliberate_repeat, drill) VALUES ($1, $2, true, $3) RETURNING action_id $$;
COMMENT ON FUNCTION reconcile.submit_drill(text, jsonb, text) IS
	'Record an action that is a part of a measurement or a rehearsal: real, sent as any other, and marked (action.drill). For measure_window() and self_test().';

CREATE FUNCTION reconcile.drill_payload(operation text, payload jsonb) RETURNS jsonb
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	p reconcile.provider;
	e record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;
	IF $2 IS NULL AND o.example IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no example payload', $1
			USING ERRCODE = '22023', HINT = 'Pass payload => …, or set operation.example. It is really sent.';
	END IF;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = o.provider;
	IF p.paused_at IS NOT NULL THEN
		RAISE EXCEPTION 'provider "%" is paused: %', p.provider, p.paused_reason
			USING ERRCODE = '55000', HINT = 'See reconcile.resume().';
	END IF;
	SELECT * INTO e FROM reconcile.engine();
	IF NOT e.armed THEN
		RAISE EXCEPTION 'this database sends nothing: %', e.disarmed_because
			USING ERRCODE = '55000', HINT = 'If this is the database that is to act, call reconcile.arm(reason).';
	END IF;
	RETURN coalesce($2, o.example);
END $$;
COMMENT ON FUNCTION reconcile.drill_payload(text, jsonb) IS
	'The payload of drills of an operation, its example by default. Errors: 42704 no such operation, 22023 no payload, 55000 nothing can be sent now.';

CREATE FUNCTION reconcile.drill_state(actions uuid[], OUT action_id uuid, OUT outcome text, OUT lag_us bigint) RETURNS SETOF record
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id,
		CASE WHEN s.action_id IS NOT NULL THEN 'visible'
			WHEN a.state IN ('rejected', 'safe_to_retry', 'cancelled', 'expired', 'abandoned', 'manual_review') THEN a.state::text
			-- A probe is watched while it has a gate or an open question.
			WHEN a.state = 'succeeded' AND a.gate_us IS NULL
				AND NOT EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = a.action_id AND l.answered_at IS NULL) THEN 'never seen'
			ELSE 'open' END,
		s.lag_us
	  FROM reconcile.action a
	  LEFT JOIN (SELECT x.action_id, min(x.lag_us) AS lag_us FROM reconcile.window_sample x
		WHERE x.operation IN (SELECT o.operation FROM reconcile.action o WHERE o.action_id = ANY ($1))
			AND x.action_id = ANY ($1) AND x.source = 'probe' GROUP BY x.action_id) s USING (action_id)
	 WHERE a.action_id = ANY ($1) $$;
COMMENT ON FUNCTION reconcile.drill_state(uuid[]) IS 'Where probes stand: visible, with its lag in microseconds; open; never seen; or the state that it failed with.';

CREATE FUNCTION reconcile.keep_concurrency(actions uuid[], concurrency integer) RETURNS void
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE reconcile.window_sample s SET concurrency = $2
	 WHERE s.operation IN (SELECT a.operation FROM reconcile.action a WHERE a.action_id = ANY ($1) AND a.drill = 'probe')
		AND s.action_id = ANY ($1) AND s.source = 'probe' AND s.concurrency IS NULL $$;
COMMENT ON FUNCTION reconcile.keep_concurrency(uuid[], integer) IS 'How many probes were open at a time, written to the samples of these, where it is not yet.';

CREATE FUNCTION reconcile.withdraw_drills(actions uuid[], reason text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	planned uuid;
BEGIN
	FOR planned IN SELECT a.action_id FROM reconcile.action a WHERE a.action_id = ANY ($1) AND a.state = 'planned' LOOP
		BEGIN
			PERFORM reconcile.cancel(planned, $2);
		EXCEPTION WHEN object_not_in_prerequisite_state OR lock_not_available THEN
			-- The engine has it, or had it since this looked: it is sent, and ends like any other.
			NULL;
		END;
	END LOOP;
END $$;
COMMENT ON FUNCTION reconcile.withdraw_drills(uuid[], text) IS 'Cancels those of these drills that have not left. One that is leaving at this moment stays as it is.';

CREATE FUNCTION reconcile.measure_step(operation text, payload jsonb, samples integer, concurrency integer, over boolean,
		INOUT actions uuid[], INOUT progress text, OUT news boolean, OUT done boolean, OUT drive boolean)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	visible integer;
	failed integer;
	open_now integer;
	slowest bigint;
	said text := $7;
	e record;
BEGIN
	SELECT count(*) FILTER (WHERE d.outcome = 'visible'), count(*) FILTER (WHERE d.outcome NOT IN ('visible', 'open')),
			count(*) FILTER (WHERE d.outcome = 'open'), max(d.lag_us)
	  INTO visible, failed, open_now, slowest FROM reconcile.drill_state($6) d;
	PERFORM reconcile.keep_concurrency($6, $4);
	progress := format('%s of %s visible', visible, $3)
		|| coalesce(', slowest ' || reconcile.duration_text(slowest * interval '1 microsecond'), '') || coalesce(', ' || nullif(failed, 0) || ' failed', '');
	news := progress IS DISTINCT FROM said AND (said IS NOT NULL OR visible + failed > 0);
	-- What cannot be sent, or fails all the time, is not tried again and again.
	done := $5 OR failed > visible + 2 OR visible + failed >= $3
		OR EXISTS (SELECT FROM reconcile.operation o JOIN reconcile.provider p ON p.provider = o.provider WHERE o.operation = $1 AND p.paused_at IS NOT NULL);
	SELECT * INTO e FROM reconcile.engine();
	drive := e.worker_pid IS NULL AND e.lock_holder_pid IS NULL;
	done := done OR NOT e.armed;
	IF done THEN
		PERFORM reconcile.withdraw_drills($6, 'the measurement is over'::text);
	ELSE
		actions := $6 || ARRAY(SELECT reconcile.submit_drill($1, $2, 'probe'::text)
			FROM generate_series(1, least($4 - open_now, $3 - cardinality($6))));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.measure_step(text, jsonb, integer, integer, boolean, uuid[], text) IS
	'One step of measure_window(): says how far it is, submits what is missing, withdraws what has not left when it is over. drive: there is no engine, so the caller has to be it.';

CREATE FUNCTION reconcile.window_of(operation text, OUT "position" integer, OUT own boolean, OUT pinned boolean, OUT consistency_window interval,
		OUT window_source reconcile.window_source, OUT shared boolean)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT l.position, l.consistency_window IS NOT NULL, p.window_pinned OR l.window_pinned, coalesce(l.consistency_window, p.consistency_window),
		coalesce(l.window_source, p.window_source),
		EXISTS (SELECT FROM reconcile.operation other LEFT JOIN reconcile.lookup_rule r ON r.operation = other.operation
			WHERE other.provider = o.provider AND r.consistency_window IS NULL AND r.kind IS DISTINCT FROM 'replay_by_key'
				AND NOT (other.operation = o.operation AND r.position = l.position))
	  FROM reconcile.operation o
	  JOIN reconcile.provider p ON p.provider = o.provider
	  JOIN reconcile.lookup_rule l ON l.operation = o.operation
	 WHERE o.operation = $1 AND l.kind <> 'replay_by_key'
	 ORDER BY l.position LIMIT 1 $$;
COMMENT ON FUNCTION reconcile.window_of(text) IS
	'The window that an operation''s first question waits for, and whether it is the rule''s own; shared: others rest on the same one. No row in position if it has no lookup rule.';

CREATE FUNCTION reconcile.measure_end(operation text, actions uuid[], wanted integer, safety numeric, apply boolean,
		OUT visible integer, OUT slowest interval, OUT recommended interval, OUT applied boolean, OUT message text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	w record;
	r record;
	lags bigint[];
	missing text;
	floor_us bigint;
	change text;
BEGIN
	SELECT * INTO w FROM reconcile.window_of($1);
	SELECT array_agg(d.lag_us) FILTER (WHERE d.outcome = 'visible') INTO lags FROM reconcile.drill_state($2) d;
	SELECT string_agg(format('%s %s', n, outcome), ', ' ORDER BY n DESC, outcome) INTO missing
	  FROM (SELECT CASE d.outcome WHEN 'open' THEN 'not seen yet' ELSE d.outcome END AS outcome, count(*) AS n
		FROM reconcile.drill_state($2) d WHERE d.outcome <> 'visible' GROUP BY 1) x;
	SELECT (extract(epoch FROM max(v.lag)) * 2000000)::bigint INTO floor_us FROM reconcile.window_violation v
	 WHERE v.operation = $1 AND v.position = w.position AND v.closed_at IS NULL;
	SELECT * INTO r FROM reconcile.recommend_window(lags, $4, floor_us);
	visible := r.samples;
	slowest := (SELECT max(l) FROM unnest(lags) l) * interval '1 microsecond';
	applied := false;
	IF missing IS NOT NULL OR visible < $3 THEN
		message := format('%s of %s probes became visible%s: no window is recommended', visible, $3, coalesce(' (' || missing || ')', ''))
			|| coalesce((SELECT format('; provider "%s" is paused: %s', p.provider, p.paused_reason) FROM reconcile.operation o
				JOIN reconcile.provider p ON p.provider = o.provider WHERE o.operation = $1 AND p.paused_at IS NOT NULL), '')
			|| coalesce((SELECT '; this database sends nothing: ' || e.disarmed_because FROM reconcile.engine() e WHERE NOT e.armed), '');
		RETURN;
	ELSIF r.recommended IS NULL THEN
		message := format('%s samples are too few for a safety factor of %s: %s are needed, so no window is recommended', visible, $4, r.needed);
		RETURN;
	END IF;
	recommended := r.recommended;
	message := format('the slowest of %s took %s, which bounds %s %% of all writes with 95 %% confidence; recommended window: %s',
		visible, reconcile.duration_text(slowest), trim_scale(r.covers * 100), reconcile.duration_text(recommended));
	change := format('%s (%s)', reconcile.duration_text(w.consistency_window), w.window_source);
	IF w.pinned THEN
		message := message || format('; the window is pinned and stays %s', change);
	ELSIF NOT $5 THEN
		message := message || format(' instead of %s; apply => true would set it', change);
	ELSE
		-- What was measured here says nothing about others that rest on the provider's window: those keep it.
		IF w.own OR w.shared AND recommended < w.consistency_window THEN
			UPDATE reconcile.lookup_rule l SET consistency_window = recommended, window_source = 'measured'
			 WHERE l.operation = $1 AND l.position = w.position;
		ELSE
			UPDATE reconcile.provider p SET consistency_window = recommended, window_source = 'measured'
			  FROM reconcile.operation o WHERE o.operation = $1 AND p.provider = o.provider;
		END IF;
		applied := true;
		message := message || format(', set instead of %s', change);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.measure_end(text, uuid[], integer, numeric, boolean) IS
	'The end of measure_window(): what the probes say, in words, and the change of the window if it is wanted, allowed and warranted.';

CREATE FUNCTION reconcile.measure_begin(operation text, samples integer, concurrency integer, INOUT payload jsonb, safety numeric, max_duration interval,
		OUT until timestamptz)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	w record;
	needed integer;
BEGIN
	IF $2 IS NULL OR $2 NOT BETWEEN 1 AND 10000 OR $3 IS NULL OR $3 NOT BETWEEN 1 AND 100 THEN
		RAISE EXCEPTION 'samples must be between 1 and 10000, concurrency between 1 and 100'
			USING ERRCODE = '22023', HINT = 'Each sample is a real write.';
	END IF;
	IF $6 IS NULL OR extract(epoch FROM $6) NOT BETWEEN 1 AND 604800 THEN
		RAISE EXCEPTION 'max_duration must be between 1 second and 7 days' USING ERRCODE = '22023';
	END IF;
	needed := (reconcile.recommend_window('{}', $5)).needed;
	payload := reconcile.drill_payload($1, $4);
	SELECT * INTO w FROM reconcile.window_of($1);
	IF w."position" IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no lookup rule that shows what it makes', $1
			USING ERRCODE = '55000', HINT = 'Without one there is no window to measure. Define it in reconcile.lookup_rule.';
	END IF;
	IF $2 < needed THEN
		RAISE NOTICE '% samples will be too few to recommend a window: % are needed for a safety factor of %', $2, needed, $5;
	END IF;
	until := clock_timestamp() + extract(epoch FROM $6) * interval '1 second';
END $$;
COMMENT ON FUNCTION reconcile.measure_begin(text, integer, integer, jsonb, numeric, interval) IS
	'Checks what measure_window() is asked for. Errors: 22023 an argument, 42704 no such operation, 55000 nothing to measure, or nothing can be sent now.';

CREATE FUNCTION reconcile.is_over(until timestamptz) RETURNS boolean
	LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$ SELECT clock_timestamp() >= $1 $$;
COMMENT ON FUNCTION reconcile.is_over(timestamptz) IS 'Has this instant passed?';

CREATE PROCEDURE reconcile.measure_window(operation text, samples integer DEFAULT 20, concurrency integer DEFAULT 4, payload jsonb DEFAULT NULL,
		apply boolean DEFAULT false, safety numeric DEFAULT 3, max_duration interval DEFAULT '10 minutes',
		INOUT visible integer DEFAULT NULL, INOUT slowest interval DEFAULT NULL, INOUT recommended interval DEFAULT NULL, INOUT applied boolean DEFAULT NULL)
	LANGUAGE plpgsql AS $$
-- Every name is qualified and no operator is used: there can be no SET search_path on what commits.
DECLARE
	probe pg_catalog.jsonb;
	until pg_catalog.timestamptz;
	step pg_catalog.record;
	actions pg_catalog.uuid[] := ARRAY[]::pg_catalog.uuid[];
	progress pg_catalog.text;
	message pg_catalog.text;
	holder integer;
	sent integer;
	answered integer;
	asked integer;
BEGIN
	CALL reconcile.require_commit('reconcile.measure_window');
	SELECT b.payload, b.until INTO probe, until FROM reconcile.measure_begin($1, $2, $3, $4, $6, $7) b;
	LOOP
		SELECT s.* INTO step FROM reconcile.measure_step($1, probe, $2, $3, reconcile.is_over(until), actions, progress) s;
		COMMIT;
		actions := step.actions;
		progress := step.progress;
		IF step.news THEN
			RAISE NOTICE '%', progress;
		END IF;
		EXIT WHEN step.done;
		IF step.drive THEN
			CALL reconcile.run('300 ms', false, holder, sent, answered, asked);
		ELSE
			PERFORM reconcile.await_engine('300 ms');
		END IF;
	END LOOP;
	SELECT e.visible, e.slowest, e.recommended, e.applied, e.message INTO visible, slowest, recommended, applied, message
	  FROM reconcile.measure_end($1, actions, $2, $6, $5) e;
	COMMIT;
	RAISE NOTICE '%', message;
END $$;
COMMENT ON PROCEDURE reconcile.measure_window(text, integer, integer, jsonb, boolean, numeric, interval, integer, interval, interval, boolean) IS
	'Measure how long the writes of an operation take to show in its first lookup rule: real writes, marked as probes, at most "concurrency" open at a time, each asked for until it is seen. Tells how far it is, keeps every sample (window_sample), and recommends a window (recommend_window). '
	'apply => true sets it, as measured: the rule''s own window; or the provider''s, unless that made it shorter for others, then it becomes the rule''s own; never a pinned one, and never when a probe failed or was not seen within max_duration. '
	'Without a worker it runs the engine itself. Errors: 25001 inside a transaction block, 22023 an argument, 42704 no such operation, 55000 nothing to measure, or nothing can be sent now.';
