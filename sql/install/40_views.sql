-- What can be read: the rules, where actions stand, what is unresolved.

CREATE FUNCTION reconcile.transition_rules(OUT subject text, OUT from_state reconcile.state, OUT event text,
		OUT to_state reconcile.state, OUT evidence text, OUT actor text, OUT meaning text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'ar_transition_rules' LANGUAGE C STABLE STRICT ROWS 40 PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.transition_rules() IS 'The transition table of the library; see the view transition_rule.';

CREATE VIEW reconcile.transition_rule AS
	SELECT subject, from_state, event, to_state, evidence, actor, meaning FROM reconcile.transition_rules();
COMMENT ON VIEW reconcile.transition_rule IS
	'Every legal step: of what, from which state, by which event, to which state, with which evidence, by whom.';

CREATE FUNCTION reconcile.advice(state reconcile.state) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN CASE state
		WHEN 'planned' THEN 'queued: do not repeat, follow this action'
		WHEN 'submitted' THEN 'being sent: do not repeat, follow this action'
		WHEN 'outcome_unknown' THEN 'not known yet: do not repeat, the provider is asked when its answer can be trusted'
		WHEN 'reconciling' THEN 'not known yet: do not repeat, the provider is being asked'
		WHEN 'manual_review' THEN 'not known: do not repeat, a person has to decide'
		WHEN 'delivered' THEN 'the provider has it and has not decided yet: do not repeat'
		WHEN 'succeeded' THEN 'done'
		WHEN 'rejected' THEN 'the provider said no: change the request before trying again'
		WHEN 'safe_to_retry' THEN 'proven not to have happened: submit the same intent again, or call replace()'
		WHEN 'cancelled' THEN 'withdrawn before anything was sent'
		WHEN 'expired' THEN 'its time passed before anything was sent'
		WHEN 'abandoned' THEN 'given up after proof that it did not happen'
	END;
COMMENT ON FUNCTION reconcile.advice(reconcile.state) IS 'What a caller, human or model, may do about an action in this state.';

CREATE VIEW reconcile.action_status WITH (security_barrier) AS
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.intent_key, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery,
		reconcile.acceptance(a.standing) AS acceptance,
		reconcile.resolved_status(a.standing) AS status,
		a.artifact_id, a.attempts, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.state = 'planned' AND NOT a.held AND NOT a.waits THEN a.due_at
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice,
		a.state IN ('safe_to_retry', 'cancelled', 'expired', 'abandoned') AS may_repeat,
		a.fingerprint, a.version, a.transaction, NULL::timestamptz AS archived_at
	FROM reconcile.action a
	WHERE reconcile.may_see(a.submitter)
	UNION ALL
	SELECT x.action_id, x.operation, x.provider, x.client_reference, x.intent_key, x.submitter, x.state,
		reconcile.delivery(x.standing), reconcile.acceptance(x.standing), reconcile.resolved_status(x.standing),
		x.artifact_id, x.attempts, x.submitted_at, x.recorded_at, NULL, reconcile.advice(x.state), x.state IN ('cancelled', 'expired', 'abandoned'),
		x.fingerprint, x.version, '0', x.archived_at
	FROM reconcile.archived_action x
	WHERE reconcile.may_see(x.submitter);
COMMENT ON VIEW reconcile.action_status IS 'Where each action stands, and what a caller may do about it; also of what is archived.';
COMMENT ON COLUMN reconcile.action_status.archived_at IS 'When it was moved into archived_action; NULL: it is still here. Its state changes no more.';
COMMENT ON COLUMN reconcile.action_status.next_step_at IS
	'Not earlier than this: the next send of a planned action, the next question about an unresolved one. NULL: it waits for somebody, or nothing is to come.';
COMMENT ON COLUMN reconcile.action_status.may_repeat IS
	'May the same intent be submitted again? Only what is settled as not having happened; false as long as it is not known, and if it has happened or was refused.';

-- What was learned at a step, for people; the whole of it is in the evidence itself.
CREATE FUNCTION reconcile.evidence_words(evidence jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT nullif(concat_ws(', ',
		'decided: ' || ($1->>'decision'), $1->>'reason', $1->>'risk',
		'the provider says ' || ($1 #>> '{event,says}'),
		coalesce($1 #>> '{transfer,reason}', $1 #>> '{lookup,reason}', $1 #>> '{poll,reason}'),
		'answer ' || coalesce($1 #>> '{transfer,http_status}', $1 #>> '{lookup,http_status}', $1 #>> '{poll,http_status}'),
		coalesce($1 #>> '{transfer,error}', $1 #>> '{lookup,error}', $1 #>> '{poll,error}'),
		coalesce($1 #>> '{lookup,problem}', $1 #>> '{poll,problem}'),
		'found ' || ($1 #>> '{recovery,found}'), $1 #>> '{arming,reason}', 'not after ' || ($1->>'not_after')), '') $$;
COMMENT ON FUNCTION reconcile.evidence_words(jsonb) IS 'The gist of the evidence of a step, in words; NULL if it says no more than that the step was taken.';

CREATE VIEW reconcile.action_history WITH (security_barrier) AS
	SELECT h.action_id, h.version, h.recorded_at, h.attempt_number, h.event, h.from_state, h.to_state,
		reconcile.delivery(h.standing) AS delivery,
		reconcile.acceptance(h.standing) AS acceptance,
		reconcile.resolved_status(h.standing) AS status,
		lead(h.recorded_at) OVER w - h.recorded_at AS time_in_state,
		h.evidence, h.actor
	FROM reconcile.history h JOIN reconcile.action a USING (action_id)
	WHERE reconcile.may_see(a.submitter)
	WINDOW w AS (PARTITION BY h.action_id ORDER BY h.version);
COMMENT ON VIEW reconcile.action_history IS 'Every step of every action, with the time it stayed there; NULL for the present state.';

CREATE FUNCTION reconcile.engine(OUT worker_pid integer, OUT lock_holder_pid integer, OUT armed boolean, OUT disarmed_because text,
		OUT stalled_because text)
	AS 'MODULE_PATHNAME', 'ar_engine_state' LANGUAGE C VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION reconcile.engine() IS
	'Is this database''s worker alive, who holds the engine lock, may the engine send, and why does the worker send nothing although it may? Reads the token file.';

CREATE FUNCTION reconcile.worker_state(OUT state text, OUT launcher_pid integer, OUT worker_pid integer, OUT failures integer, OUT last_turn_at timestamptz)
	AS 'MODULE_PATHNAME', 'ar_worker_state' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.worker_state() IS
	'How it stands with the worker of this database: running, starting, failing (it ended or could not be started, so many times in a row, and is tried again), no_room (all worker slots are taken), held_off (a statement needs the database for itself), absent, left_out, not_listed, no_launcher or not_preloaded; and when an engine of this database last did a turn since the server was started.';

CREATE FUNCTION reconcile.nobody_works_because() RETURNS text
	LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN NOT e.armed THEN 'this database sends and asks nothing: ' || e.disarmed_because
		WHEN e.stalled_because IS NOT NULL THEN 'the engine sends nothing: ' || e.stalled_because
		WHEN coalesce(e.lock_holder_pid, e.worker_pid) IS NULL AND NOT (w.state = 'not_preloaded'
			AND EXISTS (SELECT FROM reconcile.clock c WHERE c.wall_at > clock_timestamp() - interval '3 min')) THEN 'no engine is at work: see health_check' END
	  FROM reconcile.engine() e, reconcile.worker_state() w $$;
COMMENT ON FUNCTION reconcile.nobody_works_because() IS 'Why nobody works on the actions of this database now; NULL: an engine does, or, without the preloaded library, did in the last 3 minutes.';

CREATE VIEW reconcile.unresolved WITH (security_barrier) AS
	WITH limits AS MATERIALIZED (SELECT * FROM reconcile.provider_limits)
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.submitter, a.state, a.event AS last_event,
		coalesce(r.meaning, 'it has been recorded') || coalesce(': ' || reconcile.evidence_words(a.evidence), '') AS why,
		a.recorded_at AS since,
		(SELECT min(t.dispatched_at) FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state IN ('submitted', 'outcome_unknown', 'delivered')) AS uncertain_since,
		CASE a.state
			WHEN 'planned' THEN CASE
				WHEN a.held THEN 'somebody releases it; it is held because: ' || a.held_because
				WHEN a.waits AND EXISTS (SELECT FROM reconcile.action b WHERE b.action_id = ANY (a.depends_on) AND b.state <> 'succeeded')
					THEN 'it is sent when these have succeeded: ' || array_to_string(a.depends_on, ', ')
				WHEN a.waits AND EXISTS (SELECT FROM reconcile.action b WHERE b.action_id = ANY (a.depends_on) AND b.artifact_id IS NULL)
					THEN 'it is sent when somebody tells the id of what was made, with confirm(), by the action that it depends on: ' || array_to_string(a.depends_on, ', ')
				WHEN a.waits THEN coalesce((SELECT format('it is sent when action %s is settled%s', b.action_id,
						CASE WHEN reconcile.resolved_status(b.standing) = 'FAILED' AND NOT a.after_failure THEN ', which has FAILED: somebody releases it' ELSE '' END)
					  FROM reconcile.action b WHERE b.submitter = a.submitter AND b.ordering_key = a.ordering_key AND b.action_id <> a.action_id
						-- An earlier one that was replaced comes after what has overtaken it.
						AND (b.action_id < a.action_id OR NOT b.waits AND reconcile.resolved_status(b.standing) = 'DENIED_UNRESOLVED')
					 ORDER BY b.action_id > a.action_id DESC, b.action_id DESC LIMIT 1), 'it is sent')
				WHEN p.paused_because IS NOT NULL OR a.due_at <= now() AND p.sends_when IS NOT NULL THEN 'it is sent when ' || p.sends_when
				WHEN a.operation = ANY (p.paused_operations) THEN (SELECT format('it is sent when somebody resumes operation "%s", paused by %s because: %s', s.name, s.paused_by, s.reason)
					FROM reconcile.pause_period s WHERE s.scope = 'operation' AND s.name = a.operation AND s.resumed_at IS NULL)
				WHEN a.looked_at IS NOT NULL THEN 'the provider is asked, then it is sent'
				WHEN a.due_at <= now() AND p.max_rate IS NOT NULL THEN format('it is sent in its turn: provider "%s" gets at most %s in a second', p.provider, p.max_rate)
				ELSE 'it is sent' END
			WHEN 'submitted' THEN 'its answer comes, or the time limit of the attempt'
			WHEN 'outcome_unknown' THEN 'the provider is asked'
			WHEN 'reconciling' THEN 'the provider answers what it was asked'
			WHEN 'manual_review' THEN 'a person decides: see review_queue, and resolve()'
			WHEN 'delivered' THEN CASE WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)
				THEN 'the provider is asked for its verdict' ELSE 'the verdict of the provider comes, or is given up waiting for' END
		END AS next_step,
		CASE WHEN a.state = 'planned' AND NOT a.held AND NOT a.waits AND p.paused_because IS NULL AND a.operation <> ALL (coalesce(p.paused_operations, '{}'))
			THEN greatest(a.due_at, p.probe_at)
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice, a.evidence, a.version,
		(SELECT reconcile.nobody_works_because()) AS nobody_works_because
	FROM reconcile.action a
	LEFT JOIN limits p ON p.provider = a.provider
	LEFT JOIN (SELECT DISTINCT ON (t.event, t.to_state) t.event, t.to_state, t.meaning FROM reconcile.transition_rules() t
		WHERE t.subject = 'action' ORDER BY t.event, t.to_state, t.from_state) r ON r.event = a.event AND r.to_state = a.state
	WHERE a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
		AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.unresolved IS 'Every action that is DENIED_UNRESOLVED: why, since when, and what happens next.';
COMMENT ON COLUMN reconcile.unresolved.why IS 'Its last step, and what was learned with it.';
COMMENT ON COLUMN reconcile.unresolved.since IS 'When it took that step.';
COMMENT ON COLUMN reconcile.unresolved.uncertain_since IS 'When the first attempt began whose outcome or verdict is open; NULL: none has left.';
COMMENT ON COLUMN reconcile.unresolved.next_step IS 'What it waits for.';
COMMENT ON COLUMN reconcile.unresolved.nobody_works_because IS 'Why the engine does not take the next step now, whatever the action; NULL: it does.';
