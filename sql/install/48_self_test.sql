-- Rehearsing what happens when an answer is lost, before the first real action.

CREATE TABLE reconcile.self_test_result (
	run uuid NOT NULL,
	operation text COLLATE "C" NOT NULL REFERENCES reconcile.operation ON DELETE CASCADE,
	operation_version integer NOT NULL,
	scenario text NOT NULL,
	capability text NOT NULL,
	expected text NOT NULL,
	held boolean,
	detail text NOT NULL,
	action_id uuid,
	started_at timestamptz NOT NULL,
	ended_at timestamptz NOT NULL,
	PRIMARY KEY (run, scenario, capability),
	CONSTRAINT self_test_result_scenario CHECK (scenario IN ('probe', 'answer_lost', 'request_lost'))
);
COMMENT ON TABLE reconcile.self_test_result IS 'What self_test() found: one row for each capability that a scenario was to show.';
COMMENT ON COLUMN reconcile.self_test_result.run IS 'Which call of self_test().';
COMMENT ON COLUMN reconcile.self_test_result.operation_version IS 'The definition that was tested; a later one has not been.';
COMMENT ON COLUMN reconcile.self_test_result.scenario IS
	'probe: an ordinary success; answer_lost: carried out, but its answer was thrown away; request_lost: taken for sent, though nothing was.';
COMMENT ON COLUMN reconcile.self_test_result.held IS 'Was it as expected? NULL: it was not tried, and detail says why.';
COMMENT ON COLUMN reconcile.self_test_result.detail IS 'What was seen.';
CREATE INDEX self_test_result_of_operation ON reconcile.self_test_result (operation, ended_at);

CREATE FUNCTION reconcile.self_test_plan(operation text, OUT lost_answer text, OUT lost_request text, OUT needed interval)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	p reconcile.provider;
	rule record;
	window_s numeric;
	key_s numeric;
	longest_s numeric := 0;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = o.provider;
	-- A key that is dead, or may be, when its turn comes, is not sent again.
	key_s := coalesce(extract(epoch FROM o.key_lifetime) - extract(epoch FROM o.key_margin), 0);
	FOR rule IN SELECT l.*, coalesce(l.window_source, p.window_source) AS source FROM reconcile.lookup_rule l WHERE l.operation = $1 ORDER BY l.position LOOP
		window_s := extract(epoch FROM coalesce(rule.consistency_window, p.consistency_window));
		CONTINUE WHEN rule.kind = 'replay_by_key'
			AND key_s <= 2 * extract(epoch FROM p.attempt_timeout) + 2 * extract(epoch FROM p.late_arrival_max) + window_s;
		lost_answer := coalesce(lost_answer, CASE rule.kind WHEN 'replay_by_key' THEN 'replay' ELSE 'lookup' END);
		lost_request := coalesce(lost_request, CASE WHEN rule.kind = 'replay_by_key' THEN 'replay' WHEN rule.absence_proves THEN 'absence' END);
		longest_s := greatest(longest_s, window_s + extract(epoch FROM rule.negative_spacing)
			* (1 + greatest(rule.min_negatives, CASE rule.source WHEN 'assumed' THEN 2 ELSE 1 END)));
	END LOOP;
	lost_answer := coalesce(lost_answer, 'review');
	lost_request := coalesce(lost_request, 'review');
	needed := make_interval(secs => ceil(10 + 2 * extract(epoch FROM p.attempt_timeout) + extract(epoch FROM p.late_arrival_max) + longest_s)::float8);
END $$;
COMMENT ON FUNCTION reconcile.self_test_plan(text) IS
	'What the lookup rules of an operation are good for. lost_answer is settled by: lookup, replay (the same request again with its key), review. lost_request: absence (proven, then safe to retry or replaced), replay, review. needed: how long self_test() may take.';

CREATE FUNCTION reconcile.self_test_findings(operation text, probe uuid, answer_lost uuid, request_lost uuid,
		OUT scenario text, OUT capability text, OUT expected text, OUT held boolean, OUT detail text, OUT action_id uuid)
	RETURNS SETOF record
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	plan record;
	a reconcile.action;
	first_attempt reconcile.attempt;
	worked boolean;
	answered boolean;
	lost boolean;
	matches integer;
	story text;
	rule record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	SELECT * INTO plan FROM reconcile.self_test_plan($1);

	FOR scenario, action_id IN VALUES ('probe', $2), ('answer_lost', $3), ('request_lost', $4) LOOP
		SELECT * INTO a FROM reconcile.action x WHERE x.action_id = self_test_findings.action_id;
		SELECT * INTO first_attempt FROM reconcile.attempt x WHERE x.action_id = self_test_findings.action_id AND x.number = 1;
		story := concat_ws('; ', format('%s, %s', a.state, CASE a.attempts WHEN 1 THEN '1 attempt' ELSE a.attempts || ' attempts' END),
			nullif(first_attempt.evidence->'transfer'->>'error', ''),
			'status ' || first_attempt.http_status,
			(SELECT 'lookups: ' || string_agg(x.result || ' (' || x.reason || ')', ', ' ORDER BY x.asked_at)
			   FROM (SELECT * FROM reconcile.lookup y WHERE y.action_id = self_test_findings.action_id AND y.result IS NOT NULL ORDER BY y.asked_at DESC LIMIT 3) x));
		worked := a.state = 'succeeded' OR a.state = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule x WHERE x.operation = $1);

		IF scenario = 'probe' THEN
			capability := 'works';
			expected := 'the example is carried out, and answered';
			answered := EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event LIKE 'answered%' AND h.event <> 'answered_unreadable');
			held := worked AND answered;
			detail := story;
			RETURN NEXT;
			CONTINUE WHEN NOT coalesce(worked, false);

			capability := 'returns an id';
			expected := 'the answer carries the provider''s id of what was made';
			IF o.artifact_path IS NULL AND o.artifact_header IS NULL
				AND NOT EXISTS (SELECT FROM reconcile.response_rule x WHERE x.operation = $1 AND x.artifact_path IS NOT NULL)
				AND NOT EXISTS (SELECT FROM reconcile.poll_rule x WHERE x.operation = $1 AND x.artifact_path IS NOT NULL) THEN
				held := NULL;
				detail := 'not run because the operation does not say where (artifact_path, artifact_header)';
			ELSE
				held := answered AND a.artifact_id IS NOT NULL;
				detail := CASE WHEN held THEN 'its id is ' || a.artifact_id ELSE story END;
			END IF;
			RETURN NEXT;

			FOR rule IN
				SELECT l.position, l.kind, coalesce(l.consistency_window, p.consistency_window) AS consistency_window, min(s.lag_us) AS lag_us,
						min(l.position) OVER () AS first
				  FROM reconcile.lookup_rule l JOIN reconcile.provider p ON p.provider = o.provider
				  LEFT JOIN reconcile.window_sample s ON s.operation = $1 AND s.position = l.position AND s.action_id = a.action_id
				 WHERE l.operation = $1 AND l.kind <> 'replay_by_key' GROUP BY l.position, l.kind, 3 ORDER BY l.position
			LOOP
				capability := format('is shown by lookup %s', rule.position);
				expected := format('%s shows it within its window of %s', rule.kind, reconcile.duration_text(rule.consistency_window));
				IF rule.lag_us IS NOT NULL THEN
					held := rule.lag_us * interval '1 microsecond' <= rule.consistency_window;
					detail := format('seen after %s', reconcile.duration_text(rule.lag_us * interval '1 microsecond'));
				ELSIF EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = a.action_id AND l.position = rule.position) THEN
					held := false;
					detail := concat_ws('; ', 'not seen', story);
				ELSE
					held := NULL;
					detail := CASE rule.position WHEN rule.first THEN 'not run because it was not asked' ELSE 'not run because an earlier lookup did not show it' END;
				END IF;
				RETURN NEXT;
			END LOOP;
			CONTINUE;
		END IF;

		IF scenario = 'answer_lost' THEN
			capability := 'settles a lost answer';
			expected := CASE plan.lost_answer
				WHEN 'lookup' THEN 'the lookup finds it, so it succeeds and is not sent again'
				WHEN 'replay' THEN 'the same request with its key is answered as the first one was, so it succeeds'
				ELSE 'a person has to decide, and it is not sent again' END;
			held := CASE plan.lost_answer WHEN 'lookup' THEN worked AND a.attempts = 1
				WHEN 'replay' THEN worked ELSE a.state = 'manual_review' AND a.attempts = 1 END;
		ELSE
			capability := 'settles a lost request';
			expected := CASE plan.lost_request
				WHEN 'absence' THEN 'the lookup proves that it did not happen' || CASE o.on_absent WHEN 'replace' THEN ', so it is replaced' ELSE ', so it is safe to retry' END
				WHEN 'replay' THEN 'the same request with its key is carried out, once'
				ELSE 'a person has to decide, and it is not sent again' END;
			held := CASE plan.lost_request
				WHEN 'absence' THEN first_attempt.state = 'safe_to_retry' AND first_attempt.event = 'absent'
					AND CASE a.attempts WHEN 1 THEN a.state = 'safe_to_retry' ELSE worked END
				WHEN 'replay' THEN worked ELSE a.state = 'manual_review' AND a.attempts = 1 END;
		END IF;
		IF action_id IS NULL THEN
			held := NULL;
			detail := 'not run because the ordinary success did not come';
			RETURN NEXT;
			CONTINUE;
		END IF;
		lost := EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event = 'answer_lost');
		held := coalesce(held AND lost, false);
		detail := CASE WHEN NOT lost THEN 'the answer was not taken for lost; ' ELSE '' END || story;
		RETURN NEXT;

		CONTINUE WHEN scenario <> 'answer_lost' OR plan.lost_answer <> 'lookup';
		capability := 'makes it once';
		expected := 'the lookup shows exactly one';
		SELECT x.matches INTO matches FROM reconcile.lookup x WHERE x.action_id = self_test_findings.action_id AND x.result IN ('found', 'ambiguous')
		 ORDER BY x.asked_at DESC LIMIT 1;
		held := coalesce(matches = 1, false);
		detail := format('it showed %s', coalesce(matches, 0));
		RETURN NEXT;
	END LOOP;
END $$;
COMMENT ON FUNCTION reconcile.self_test_findings(text, uuid, uuid, uuid) IS
	'What the three drills of an operation show, as rows for self_test_result. NULL for a drill that was not made.';

CREATE FUNCTION reconcile.self_test_begin(operation text, INOUT payload jsonb, max_duration interval, OUT until timestamptz, OUT reason text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	plan record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;
	SELECT * INTO plan FROM reconcile.self_test_plan($1);
	IF $3 IS NULL OR extract(epoch FROM $3) < extract(epoch FROM plan.needed) THEN
		RAISE EXCEPTION 'a self-test of operation "%" may take %, longer than max_duration', $1, reconcile.duration_text(plan.needed)
			USING ERRCODE = '22023', DETAIL = 'It waits for the end of an attempt, late arrival, the longest window of its lookups, and repeated negatives.',
			HINT = format('Pass max_duration => ''%s s''.', extract(epoch FROM plan.needed)::integer);
	END IF;
	until := clock_timestamp() + extract(epoch FROM $3) * interval '1 second';
	IF o.effect <> 'create' THEN
		reason := format('not run because each scenario of a %s needs an object of its own', o.effect);
		RETURN;
	END IF;
	BEGIN
		payload := reconcile.drill_payload($1, $2);
	EXCEPTION WHEN invalid_parameter_value OR object_not_in_prerequisite_state THEN
		reason := 'not run because ' || SQLERRM;
	END;
END $$;
COMMENT ON FUNCTION reconcile.self_test_begin(text, jsonb, interval) IS
	'May self_test() begin? reason: why nothing can be tried. Errors: 42704 no such operation, 22023 it would take longer than it may.';

CREATE FUNCTION reconcile.self_test_step(operation text, payload jsonb, over boolean, INOUT probe uuid, INOUT answer_lost uuid, INOUT request_lost uuid,
		OUT done boolean, OUT drive boolean)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	made uuid[];
	unsettled integer;
	longest interval;
	a reconcile.action;
	watched boolean;
	e record;
BEGIN
	probe := coalesce(probe, reconcile.submit_drill($1, $2, 'probe'::text));
	made := array_remove(ARRAY[probe, answer_lost, request_lost], NULL);
	-- Counted before the probe is looked at: what was settled then still is.
	SELECT count(*) INTO unsettled FROM reconcile.action x WHERE x.action_id = ANY (made)
		AND x.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'delivered')
		AND NOT (x.state = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule r WHERE r.operation = $1));
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = probe;
	-- Its windows are how long it is looked for, and no longer.
	SELECT max(r.consistency_window) INTO longest FROM reconcile.window_report r WHERE r.operation = $1;
	watched := (a.gate_us IS NOT NULL OR EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = probe AND l.answered_at IS NULL))
		AND clock_timestamp() < a.recorded_at + (extract(epoch FROM coalesce(longest, '0')) + 5) * interval '1 second';
	SELECT * INTO e FROM reconcile.engine();
	drive := e.worker_pid IS NULL AND e.lock_holder_pid IS NULL;
	done := $3 OR NOT e.armed
		OR EXISTS (SELECT FROM reconcile.provider p WHERE p.provider = a.provider AND p.paused_at IS NOT NULL);
	IF done THEN
		PERFORM reconcile.withdraw_drills(made, 'the self-test is over'::text);
	ELSIF unsettled = 0 AND answer_lost IS NULL AND a.state IN ('succeeded', 'delivered') THEN
		answer_lost := reconcile.submit_drill($1, $2, 'answer_lost'::text);
		request_lost := reconcile.submit_drill($1, $2, 'request_lost'::text);
	ELSE
		done := unsettled = 0 AND NOT (watched AND a.state IN ('succeeded', 'delivered'));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.self_test_step(text, jsonb, boolean, uuid, uuid, uuid) IS
	'One step of self_test(): submits the drills, first the ordinary one, and says when all are settled. drive: there is no engine, so the caller has to be it.';

CREATE FUNCTION reconcile.self_test_end(run uuid, operation text, keep boolean, reason text, probe uuid, answer_lost uuid, request_lost uuid,
		OUT lines text[], OUT failed integer)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	IF NOT $3 THEN
		DELETE FROM reconcile.self_test_result r WHERE r.operation = $2;
	END IF;
	INSERT INTO reconcile.self_test_result (run, operation, operation_version, scenario, capability, expected, held, detail, action_id, started_at, ended_at)
	SELECT $1, $2, o.version, f.scenario, f.capability, f.expected, CASE WHEN $4 IS NULL THEN f.held END, coalesce($4, f.detail), f.action_id,
			coalesce(a.submitted_at, clock_timestamp()), clock_timestamp()
	  FROM reconcile.self_test_findings($2, $5, $6, $7) f
	  JOIN reconcile.operation o ON o.operation = $2
	  LEFT JOIN reconcile.action a ON a.action_id = f.action_id;
	SELECT array_agg(format('%s, %s: %s', r.scenario, r.capability, CASE r.held WHEN true THEN 'held: ' || r.detail
				WHEN false THEN format('DID NOT HOLD: expected: %s; seen: %s', r.expected, r.detail) ELSE r.detail END)
			ORDER BY array_position('{probe,answer_lost,request_lost}', r.scenario), r.ctid),
			CASE WHEN count(r.held) > 0 THEN count(*) FILTER (WHERE NOT r.held) END
	  INTO lines, failed FROM reconcile.self_test_result r WHERE r.run = $1;
END $$;
COMMENT ON FUNCTION reconcile.self_test_end(uuid, text, boolean, text, uuid, uuid, uuid) IS
	'The end of self_test(): keeps what was found, and says it.';

CREATE PROCEDURE reconcile.self_test(operation text, payload jsonb DEFAULT NULL, keep boolean DEFAULT true, max_duration interval DEFAULT '10 minutes',
		INOUT run uuid DEFAULT NULL, INOUT failed integer DEFAULT NULL)
	LANGUAGE plpgsql AS $$
-- Every name is qualified and no operator is used: there can be no SET search_path on what commits.
DECLARE
	setting pg_catalog.record;
	step pg_catalog.record;
	probe pg_catalog.uuid;
	answer_lost pg_catalog.uuid;
	request_lost pg_catalog.uuid;
	lines pg_catalog.text[];
	line pg_catalog.text;
	idle boolean;
	holder integer;
	sent integer;
	answered integer;
	asked integer;
BEGIN
	CALL reconcile.require_commit('reconcile.self_test');
	SELECT b.* INTO setting FROM reconcile.self_test_begin($1, $2, $4) b;
	idle := setting.reason IS NOT NULL;
	LOOP
		EXIT WHEN idle;
		SELECT s.* INTO step FROM reconcile.self_test_step($1, setting.payload, reconcile.is_over(setting.until), probe, answer_lost, request_lost) s;
		COMMIT;
		probe := step.probe;
		answer_lost := step.answer_lost;
		request_lost := step.request_lost;
		EXIT WHEN step.done;
		IF step.drive THEN
			CALL reconcile.run('300 ms', false, holder, sent, answered, asked);
		ELSE
			PERFORM reconcile.await_engine('300 ms');
		END IF;
	END LOOP;
	run := pg_catalog.gen_random_uuid();
	SELECT e.lines, e.failed INTO lines, failed FROM reconcile.self_test_end(run, $1, $3, setting.reason, probe, answer_lost, request_lost) e;
	COMMIT;
	FOREACH line IN ARRAY lines LOOP
		RAISE NOTICE '%', line;
	END LOOP;
END $$;
COMMENT ON PROCEDURE reconcile.self_test(text, jsonb, boolean, interval, uuid, integer) IS
	'Rehearse lost answers with real, marked writes, at a test account: an ordinary success; one whose answer is thrown away; one that is taken for sent though nothing was. What held is in self_test_result, and told. '
	'failed counts what did not hold; NULL if nothing could be tried. keep => false forgets earlier results of the operation. Without a worker it runs the engine itself. Errors: 25001 inside a transaction block, 42704 no such operation, 22023 max_duration is shorter than what it may take.';
