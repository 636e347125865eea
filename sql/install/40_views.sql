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
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT CASE state
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
	END $$;
COMMENT ON FUNCTION reconcile.advice(reconcile.state) IS 'What a caller, human or model, may do about an action in this state.';

CREATE VIEW reconcile.action_status WITH (security_barrier) AS
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.intent_key, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery,
		reconcile.acceptance(a.standing) AS acceptance,
		reconcile.resolved_status(a.standing) AS status,
		a.artifact_id, a.attempts, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.state = 'planned' THEN a.due_at
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice,
		a.fingerprint, a.version, a.transaction
	FROM reconcile.action a
	WHERE reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.action_status IS 'Where each action stands, and what a caller may do about it.';
COMMENT ON COLUMN reconcile.action_status.next_step_at IS 'Not earlier than this: the next send of a planned action, the next question about an unresolved one.';

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

CREATE VIEW reconcile.unresolved WITH (security_barrier) AS
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.submitter, a.state, a.event AS last_event,
		a.evidence AS why, a.recorded_at AS since,
		CASE WHEN a.state = 'planned' THEN a.due_at
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice
	FROM reconcile.action a
	WHERE a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
		AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.unresolved IS 'Every action that is DENIED_UNRESOLVED: why, since when, and what happens next.';

CREATE FUNCTION reconcile.engine(OUT worker_pid integer, OUT lock_holder_pid integer, OUT armed boolean, OUT disarmed_because text)
	AS 'MODULE_PATHNAME', 'ar_engine_state' LANGUAGE C VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION reconcile.engine() IS
	'Is this database''s worker alive, who holds the engine lock, and may the engine send? Reads the token file.';

CREATE VIEW reconcile.health AS
	SELECT e.worker_pid, e.lock_holder_pid, e.armed, e.disarmed_because,
		(SELECT count(*) FROM reconcile.action WHERE state = 'planned' AND due_at <= now()) AS due,
		(SELECT count(*) FROM reconcile.action WHERE state = 'submitted') AS in_flight,
		(SELECT count(*) FROM reconcile.action WHERE state IN ('outcome_unknown', 'reconciling')) AS unknown,
		(SELECT count(*) FROM reconcile.action WHERE state = 'manual_review') AS in_review,
		(SELECT array_agg(provider ORDER BY provider) FROM reconcile.provider WHERE paused_at IS NOT NULL) AS paused_providers
	FROM reconcile.engine() e;
COMMENT ON VIEW reconcile.health IS 'One row: does the engine of this database work, may it send, and what waits for it.';
