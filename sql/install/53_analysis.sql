-- For those who look back: how things stood, how providers do, what a day brought; and erasing what must not be kept.

CREATE FUNCTION reconcile.action_as_of(at timestamptz, action_id uuid DEFAULT NULL)
	RETURNS TABLE (action_id uuid, operation text, provider text, client_reference text, submitter name, state reconcile.state,
		delivery reconcile.delivery, acceptance reconcile.acceptance, status reconcile.status, since timestamptz, version integer,
		last_event text, evidence jsonb, actor text)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.submitter, h.to_state, reconcile.delivery(h.standing),
		reconcile.acceptance(h.standing), reconcile.resolved_status(h.standing), h.recorded_at, h.version, h.event, h.evidence, h.actor
	  FROM (SELECT DISTINCT ON (x.action_id) x.* FROM reconcile.history x
			 WHERE x.recorded_at <= $1 AND ($2 IS NULL OR x.action_id = $2)
			 ORDER BY x.action_id, x.version DESC) h
	  JOIN reconcile.action a ON a.action_id = h.action_id
	 WHERE reconcile.may_see(a.submitter) $$;
COMMENT ON FUNCTION reconcile.action_as_of(timestamptz, uuid) IS
	'Where every action, or one of them, stood at that instant, by what had been recorded until then. Actions recorded later are not there.';

CREATE VIEW reconcile.provider_scorecard AS
	WITH attempted AS (
		SELECT a.operation, count(*) AS attempts,
			count(*) FILTER (WHERE first.event = 'not_sent') AS not_sent,
			count(*) FILTER (WHERE first.event = 'not_executed') AS not_executed,
			count(*) FILTER (WHERE first.event IN ('answer_lost', 'recover', 'answered_unreadable')) AS lost,
			percentile_cont(0.5) WITHIN GROUP (ORDER BY t.ended_at - t.dispatched_at) AS median_answer,
			percentile_cont(0.99) WITHIN GROUP (ORDER BY t.ended_at - t.dispatched_at) AS p99_answer
		  FROM reconcile.attempt t JOIN reconcile.action a USING (action_id)
		  LEFT JOIN LATERAL (SELECT h.event FROM reconcile.history h
			WHERE h.action_id = t.action_id AND h.attempt_number = t.number AND h.event NOT IN ('claim', 'resend') ORDER BY h.version LIMIT 1) first ON true
		 GROUP BY a.operation
	), doubted AS (
		SELECT a.operation, count(*) AS doubted,
			count(*) FILTER (WHERE s.event = 'found') AS settled_by_lookup,
			count(*) FILTER (WHERE s.event = 'absent') AS settled_by_absence,
			count(*) FILTER (WHERE s.event IN ('confirm', 'refuse')) AS settled_by_event,
			count(*) FILTER (WHERE s.event LIKE 'answered\_%') AS settled_by_key,
			count(*) FILTER (WHERE s.event = 'resolve') AS settled_by_person,
			count(*) FILTER (WHERE s.event IS NULL) AS open,
			percentile_cont(0.5) WITHIN GROUP (ORDER BY s.recorded_at - u.since) AS median_doubt,
			max(s.recorded_at - u.since) AS longest_doubt
		  FROM (SELECT h.action_id, min(h.recorded_at) AS since, min(h.version) AS version FROM reconcile.history h
				 WHERE h.to_state = 'outcome_unknown' GROUP BY h.action_id) u
		  JOIN reconcile.action a USING (action_id)
		  LEFT JOIN LATERAL (SELECT h.event, h.recorded_at FROM reconcile.history h WHERE h.action_id = u.action_id AND h.version > u.version
			AND h.to_state IN ('succeeded', 'rejected', 'delivered', 'safe_to_retry') ORDER BY h.version LIMIT 1) s ON true
		 GROUP BY a.operation
	), counted AS (
		SELECT a.operation, count(*) AS actions,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'CONFIRMED') AS confirmed,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'FAILED') AS failed,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'DENIED_UNRESOLVED') AS unresolved,
			count(*) FILTER (WHERE a.state = 'manual_review') AS in_review,
			max(a.recorded_at) FILTER (WHERE a.state = 'succeeded') AS last_success
		  FROM reconcile.action a GROUP BY a.operation
	), incidents AS (
		SELECT i.operation, count(*) FILTER (WHERE i.kind = 'duplicate') AS duplicates,
			count(*) FILTER (WHERE i.kind = 'window_violation') AS window_violations,
			count(*) FILTER (WHERE i.kind = 'contradiction') AS contradictions,
			count(*) FILTER (WHERE i.closed_at IS NULL) AS open_incidents
		  FROM reconcile.incident i GROUP BY i.operation
	)
	SELECT o.provider, o.operation, coalesce(c.actions, 0) AS actions, coalesce(c.confirmed, 0) AS confirmed, coalesce(c.failed, 0) AS failed,
		coalesce(c.unresolved, 0) AS unresolved, coalesce(c.in_review, 0) AS in_review, c.last_success,
		coalesce(t.attempts, 0) AS attempts, coalesce(t.not_sent, 0) AS not_sent, coalesce(t.not_executed, 0) AS not_executed,
		coalesce(t.lost, 0) AS answers_lost, round(100.0 * t.lost / nullif(t.attempts, 0), 2) AS answers_lost_percent,
		t.median_answer, t.p99_answer,
		coalesce(d.settled_by_lookup, 0) AS settled_by_lookup, coalesce(d.settled_by_absence, 0) AS settled_by_absence,
		coalesce(d.settled_by_event, 0) AS settled_by_event, coalesce(d.settled_by_key, 0) AS settled_by_key,
		coalesce(d.settled_by_person, 0) AS settled_by_person, coalesce(d.open, 0) AS still_open, d.median_doubt, d.longest_doubt,
		coalesce(i.duplicates, 0) AS duplicates, coalesce(i.window_violations, 0) AS window_violations,
		coalesce(i.contradictions, 0) AS contradictions, coalesce(i.open_incidents, 0) AS open_incidents
	  FROM reconcile.operation o
	  LEFT JOIN counted c USING (operation) LEFT JOIN attempted t USING (operation)
	  LEFT JOIN doubted d USING (operation) LEFT JOIN incidents i USING (operation);
COMMENT ON VIEW reconcile.provider_scorecard IS
	'How each operation has done: how many answers were lost, how the doubt was settled and how long it took, and what must not have been. Reads everything that is kept.';
COMMENT ON COLUMN reconcile.provider_scorecard.answers_lost IS 'Attempts whose answer did not come, or could not be read.';
COMMENT ON COLUMN reconcile.provider_scorecard.median_doubt IS 'From the first time that an outcome was unknown until it was settled.';

CREATE FUNCTION reconcile.close_incident(incident_id bigint, reason text) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	i reconcile.incident;
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to close incident "%"', $1 USING ERRCODE = '22023', HINT = 'Say what it was, and what was done about it.';
	END IF;
	SELECT * INTO i FROM reconcile.incident x WHERE x.incident_id = $1 FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'incident "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.incident.';
	END IF;
	IF i.closed_at IS NOT NULL THEN
		RAISE EXCEPTION 'incident "%" was closed by "%" at %', $1, i.closed_by, i.closed_at
			USING ERRCODE = '55000', DETAIL = i.closing_reason, HINT = 'It is closed once.';
	END IF;
	UPDATE reconcile.incident x SET closed_at = clock_timestamp(), closed_by = session_user, closing_reason = $2 WHERE x.incident_id = $1;
END $$;
COMMENT ON FUNCTION reconcile.close_incident(bigint, text) IS 'Somebody has looked into an incident, and says what it was. Errors: 42704 no such incident, 55000 it is closed already, 22023 no reason.';

CREATE FUNCTION reconcile.redact(action_id uuid, reason text) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to redact action "%"', $1 USING ERRCODE = '22023', HINT = 'It is kept in the history.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1 FOR UPDATE;
	IF NOT FOUND THEN
		IF EXISTS (SELECT FROM reconcile.archived_action x WHERE x.action_id = $1) THEN
			UPDATE reconcile.inbox i SET evidence = '{}', body = NULL WHERE i.action_id = $1;
			RETURN;			-- the archive has neither payload nor bodies
		END IF;
		RAISE EXCEPTION 'action "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	IF a.redacted_at IS NOT NULL THEN
		RETURN;
	END IF;
	IF a.state NOT IN ('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned') OR a.gate_us IS NOT NULL THEN
		RAISE EXCEPTION 'action "%" cannot be redacted: it is % (version %)', $1, a.state, a.version
			USING ERRCODE = '55000', DETAIL = 'Its payload is still needed to ask about it or to send it again.',
			HINT = CASE a.state WHEN 'safe_to_retry' THEN 'Abandon it first, if it is not wanted any more.' ELSE 'Settle it first.' END;
	END IF;
	UPDATE reconcile.action x SET version = x.version + 1, event = 'redact', attempt_number = NULL, payload = '{}', redacted_at = clock_timestamp(),
		evidence = jsonb_build_object('reason', $2) WHERE x.action_id = $1;
	UPDATE reconcile.attempt t SET response_body = NULL WHERE t.action_id = $1;
	UPDATE reconcile.inbox i SET evidence = '{}', body = NULL WHERE i.action_id = $1;
END $$;
COMMENT ON FUNCTION reconcile.redact(uuid, text) IS
	'Remove the payload of a settled action, the bodies of its answers and of what was said about it. Fingerprint, times, verdicts and a chain that can be verified stay. Doing it twice is doing it once. Errors: 55000 it is not settled, 42704 no such action, 22023 no reason.';

CREATE FUNCTION reconcile.day_report(day date, zone text DEFAULT 'UTC')
	RETURNS TABLE (provider text, operation text, sent bigint, answered_yes bigint, answered_no bigint, answers_lost bigint,
		seen_there bigint, proven_absent bigint, only_here bigint, only_there bigint, open_now bigint, incidents bigint, verdict text)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH bounds AS (
		SELECT $1::timestamp AT TIME ZONE $2 AS low, ($1 + 1)::timestamp AT TIME ZONE $2 AS high
	), tried AS (
		SELECT a.provider, a.operation, a.action_id, a.state, t.number, t.state AS attempt_state,
			(SELECT h.event FROM reconcile.history h WHERE h.action_id = t.action_id AND h.attempt_number = t.number
				AND h.event NOT IN ('claim', 'resend') ORDER BY h.version LIMIT 1) AS ended_by,
			-- Its effect was seen at the provider by something other than its own answer.
			EXISTS (SELECT FROM reconcile.lookup k WHERE k.action_id = t.action_id AND k.result = 'found')
				OR EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = t.action_id AND i.says IN ('executed', 'accepted')) AS seen,
			EXISTS (SELECT FROM reconcile.incident c WHERE c.action_id = t.action_id AND c.kind = 'contradiction') AS contradicted
		  FROM bounds b JOIN reconcile.attempt t ON t.dispatched_at >= b.low AND t.dispatched_at < b.high
		  JOIN reconcile.action a ON a.action_id = t.action_id
		 WHERE reconcile.may_see(a.submitter)
	), counted AS (
		SELECT t.operation, count(*) FILTER (WHERE t.ended_by IS DISTINCT FROM 'not_sent') AS sent,
			count(*) FILTER (WHERE t.ended_by IN ('answered_accepted', 'answered_async', 'answered_unreadable')) AS answered_yes,
			count(*) FILTER (WHERE t.ended_by IN ('answered_rejected', 'not_executed')) AS answered_no,
			count(*) FILTER (WHERE t.ended_by IN ('answer_lost', 'recover', 'key_mismatch')) AS answers_lost,
			count(*) FILTER (WHERE t.seen AND t.attempt_state = 'succeeded') AS seen_there,
			count(*) FILTER (WHERE t.attempt_state = 'safe_to_retry' AND t.ended_by IN ('answer_lost', 'recover')) AS proven_absent,
			count(*) FILTER (WHERE t.contradicted) AS only_here,
			count(DISTINCT t.action_id) FILTER (WHERE t.state IN ('submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')) AS open_now
		  FROM tried t GROUP BY t.operation
	), strange AS (
		SELECT i.provider, count(*) AS only_there FROM bounds b JOIN reconcile.inbox i ON i.received_at >= b.low AND i.received_at < b.high
		 WHERE i.action_id IS NULL AND i.says <> 'ignored' AND pg_has_role(session_user, 'reconcile_reader', 'MEMBER') GROUP BY i.provider
	), wrong AS (
		SELECT i.operation, count(*) AS incidents FROM bounds b JOIN reconcile.incident i ON i.opened_at >= b.low AND i.opened_at < b.high
		 WHERE pg_has_role(session_user, 'reconcile_reader', 'MEMBER') GROUP BY i.operation
	)
	SELECT o.provider, o.operation, coalesce(c.sent, 0), coalesce(c.answered_yes, 0), coalesce(c.answered_no, 0), coalesce(c.answers_lost, 0),
		coalesce(c.seen_there, 0), coalesce(c.proven_absent, 0), coalesce(c.only_here, 0), coalesce(s.only_there, 0), coalesce(c.open_now, 0), coalesce(w.incidents, 0),
		CASE WHEN coalesce(w.incidents, 0) + coalesce(c.only_here, 0) > 0 THEN 'look at the incidents'
			WHEN coalesce(c.open_now, 0) > 0 THEN 'not settled yet'
			WHEN coalesce(s.only_there, 0) > 0 THEN 'the provider speaks of something that is not known here'
			WHEN coalesce(c.sent, 0) = 0 THEN 'clean: nothing was sent' ELSE 'clean' END
	  FROM reconcile.operation o
	  LEFT JOIN counted c ON c.operation = o.operation
	  LEFT JOIN wrong w ON w.operation = o.operation
	  LEFT JOIN strange s ON s.provider = o.provider
	 ORDER BY o.provider, o.operation $$;
COMMENT ON FUNCTION reconcile.day_report(date, text) IS
	'What was sent on a day of that time zone, against what was seen at the provider, for every operation, also where nothing happened: answers, what lookups and events showed, what was proven absent; only_here is what we count as done and the provider does not show, only_there what the provider speaks of and nobody here knows (per provider). Rests on what was asked and said; it asks nothing itself.';
