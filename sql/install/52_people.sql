-- What people do to one action: repeat, withdraw, hold back, let go, ask now. What they say of its outcome is in 52_resolve.

-- What is written down reads the same for everybody, whatever the session's DateStyle is.
CREATE FUNCTION reconcile.instant_words(instant timestamptz) RETURNS text
	LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
COMMENT ON FUNCTION reconcile.instant_words(timestamptz) IS 'An instant as text, ISO 8601 in UTC, to the millisecond.';

-- How long the provider's "not found" proves nothing about an action.
CREATE FUNCTION reconcile.window_open_until(action_id uuid) RETURNS timestamptz
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT max(s.closes_at) FROM (
		SELECT w.closes_at
		  FROM reconcile.attempt t
		 CROSS JOIN LATERAL (SELECT coalesce(t.ended_at, t.dispatched_at) + (t.late_arrival_us + t.window_us) * interval '1 microsecond' AS closes_at) w
		 WHERE t.action_id = $1 AND t.state IN ('submitted', 'outcome_unknown') AND w.closes_at > statement_timestamp()
		   AND t.gate_us > (SELECT coalesce(max(c.elapsed_us), 0) FROM reconcile.clock c)
		UNION ALL
		-- Another copy may have sent it up to the moment at which this one was armed.
		SELECT r.noted_at + p.late_arrival_max + coalesce(l.consistency_window, p.consistency_window)
		  FROM reconcile.rearming r JOIN reconcile.action a ON a.action_id = r.action_id JOIN reconcile.provider p ON p.provider = a.provider
		  LEFT JOIN LATERAL (SELECT x.consistency_window FROM reconcile.lookup_rule x
			WHERE x.operation = a.operation AND x.kind <> 'replay_by_key' ORDER BY x.position LIMIT 1) l ON true
		 WHERE r.action_id = $1) s
	 WHERE s.closes_at > statement_timestamp() $$;
COMMENT ON FUNCTION reconcile.window_open_until(uuid) IS
	'When the consistency window of the last attempt that may have happened closes, by the wall clock; NULL if it is closed: by the wall clock, or by the stored logical clock, which is never ahead and is the one that the engine goes by. For an action recorded before the database was armed anew, counted from the arming.';

-- The row, locked, for a step by a person.  Nobody waits long: the engine holds rows for moments, a person may for hours.
CREATE FUNCTION reconcile.lock_for_person(action_id uuid, verb text, reason text) RETURNS reconcile.action
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
BEGIN
	IF $3 IS NULL OR $3 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to % action "%"', $2, $1
			USING ERRCODE = '22023', HINT = 'It is kept in the history.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1 FOR NO KEY UPDATE;
	IF NOT FOUND AND EXISTS (SELECT FROM reconcile.archived_action x WHERE x.action_id = $1) THEN
		RAISE EXCEPTION 'cannot % action "%": it is archived', $2, $1
			USING ERRCODE = '55000', HINT = 'How it ended is in reconcile.action_status; nothing about it changes any more.';
	ELSIF a.action_id IS NULL THEN
		RAISE EXCEPTION 'action "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	RETURN a;
EXCEPTION WHEN lock_not_available THEN
	RAISE EXCEPTION 'cannot % action "%": somebody else is working on it', $2, $1
		USING ERRCODE = 'lock_not_available', HINT = 'Nothing was changed. Try again when they have finished.';
END $$;
COMMENT ON FUNCTION reconcile.lock_for_person(uuid, text, text) IS
	'An action, locked for a step by a person. Errors: 22023 no reason, 42704 no such action, 55P03 somebody else holds it.';

CREATE FUNCTION reconcile.refuse_step(a reconcile.action, verb text, why text, hint text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'cannot % action "%": it is % (version %)', $2, a.action_id, a.state, a.version
		USING ERRCODE = '55000', DETAIL = $3, HINT = coalesce($4, reconcile.advice(a.state) || '.');
END $$;
COMMENT ON FUNCTION reconcile.refuse_step(reconcile.action, text, text, text) IS
	'Error 55000 about a step that is not possible, with the state, the version and the reason: always.';

-- Why a step is not possible from where it stands.
CREATE FUNCTION reconcile.why_not(a reconcile.action) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.state = 'planned' AND a.attempts = 0 THEN 'It has not been sent yet.'
		WHEN a.state = 'planned' THEN 'A further attempt is queued already.'
		WHEN a.state = 'submitted' THEN 'It is being sent at this moment: what has left cannot be called back.'
		WHEN a.state = 'reconciling' THEN 'The provider is being asked about it at this moment.'
		WHEN a.state IN ('outcome_unknown', 'manual_review') AND reconcile.delivery(a.standing) <> 'confirmed'
			THEN 'An attempt may have happened: it cannot be called back or repeated, only settled.'
		WHEN a.state IN ('delivered', 'manual_review') THEN 'The provider has it.'
		ELSE coalesce((SELECT format('It became %s by "%s" at %s, by %s%s.', h.to_state, h.event, reconcile.instant_words(h.recorded_at), h.actor,
				coalesce(': ' || (h.evidence->>'reason'), ''))
			  FROM reconcile.history h WHERE h.action_id = a.action_id AND h.to_state = a.state AND h.from_state IS DISTINCT FROM h.to_state
			 ORDER BY h.version DESC LIMIT 1), 'It is settled.')
	END $$;
COMMENT ON FUNCTION reconcile.why_not(reconcile.action) IS 'What stands in the way of a step, in words; for what is settled, who settled it, and when.';

CREATE FUNCTION reconcile.why_not_hint(a reconcile.action) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.state = 'planned' THEN 'To keep it back, call hold(); to withdraw it, cancel().'
		WHEN a.state IN ('submitted', 'reconciling') THEN 'Its answer decides; try again in a moment.'
		WHEN a.state IN ('outcome_unknown', 'manual_review', 'delivered') THEN 'Wait for the verdict, or settle it with resolve().'
		WHEN a.state = 'safe_to_retry' THEN 'To send it again, call replace(); to give it up for good, abandon().'
		ELSE 'Its history is in reconcile.action_history.' END $$;
COMMENT ON FUNCTION reconcile.why_not_hint(reconcile.action) IS 'What could be done instead.';

CREATE FUNCTION reconcile.notify_change(before reconcile.action, state reconcile.state, standing reconcile.standing) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT pg_notify('reconcile', json_build_object('action_id', before.action_id, 'state', $2, 'status', reconcile.resolved_status($3))::text)
	 WHERE reconcile.resolved_status($3) <> reconcile.resolved_status(before.standing) $$;
COMMENT ON FUNCTION reconcile.notify_change(reconcile.action, reconcile.state, reconcile.standing) IS 'NOTIFY reconcile, if the status of an action changes with this step.';

-- ---------------------------------------------------------------- one action
-- Each step has an inner form, which a batch uses too: its last argument is added to the evidence.

CREATE FUNCTION reconcile.cancel_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'cancel', $2);
	left_over reconcile.standing;
BEGIN
	IF a.state = 'cancelled' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'cancel', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	-- What follows from its attempts once nothing is queued.
	SELECT reconcile.fold(coalesce(array_agg(t.standing), '{}'), false) INTO left_over FROM reconcile.attempt t WHERE t.action_id = $1;
	IF left_over OPERATOR(reconcile.<>) 'failed/pending'::reconcile.standing THEN
		PERFORM reconcile.refuse_step(a, 'cancel', format('Its attempts stand at %s: one of them is not proven not to have happened.', left_over));
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'cancel', state = 'cancelled', standing = 'failed/pending', attempt_number = NULL,
		queued = false, waits = false, held = false, held_because = NULL, evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	PERFORM reconcile.notify_change(a, 'cancelled', 'failed/pending');
	RETURN 'cancelled';
END $$;
COMMENT ON FUNCTION reconcile.cancel_step(uuid, text, jsonb) IS 'The inner form of cancel().';

CREATE FUNCTION reconcile.cancel(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	-- An application may withdraw what it has asked for, and learns nothing about what others have.
	IF NOT pg_has_role(session_user, 'reconcile_operator', 'MEMBER')
		AND NOT EXISTS (SELECT FROM reconcile.action_status x WHERE x.action_id = $1 AND x.submitter = session_user) THEN
		RAISE EXCEPTION 'action "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'Or it is not yours.';
	END IF;
	RETURN reconcile.cancel_step($1, $2, '{}');
END $$;
COMMENT ON FUNCTION reconcile.cancel(uuid, text) IS
	'Withdraw an action that has not left: a submitter its own, an operator any. Twice is once. Errors: 55000 an attempt may have left, which cannot be called back, only settled; 42704 no such action, or not yours; 22023 no reason; 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.hold(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'hold', $2);
BEGIN
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'hold', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF NOT a.held THEN
		UPDATE reconcile.action x
		   SET version = x.version + 1, event = 'hold', attempt_number = NULL, held = true, held_because = $2,
			evidence = jsonb_build_object('reason', $2)
		 WHERE x.action_id = $1;
	END IF;
	RETURN a.state;
END $$;
COMMENT ON FUNCTION reconcile.hold(uuid, text) IS
	'Keep a planned action back until release(). Held twice, it keeps the first reason. Errors: 55000 it is not planned any more, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

-- Must somebody who read the request approve it?
CREATE FUNCTION reconcile.awaits_approval(a reconcile.action) RETURNS boolean
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.held AND a.approved_by IS NULL AND (a.held_because = 'it waits for approval'
		OR coalesce((SELECT o.requires_approval FROM reconcile.operation o WHERE o.operation = a.operation), false)) $$;
COMMENT ON FUNCTION reconcile.awaits_approval(reconcile.action) IS 'Is it held until its intent is approved? Approved once, it stays approved, whatever happens to its attempts.';

CREATE FUNCTION reconcile.check_approval(a reconcile.action, fingerprint reconcile.intent_fingerprint) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $2 IS NULL THEN
		RAISE EXCEPTION 'action "%" waits for approval: its release must name the fingerprint of what it approves', a.action_id
			USING ERRCODE = '22023', HINT = format('Read reconcile.preview(''%s''), and pass fingerprint from reconcile.review_queue.', a.action_id);
	END IF;
	IF a.submitter = session_user AND EXISTS (SELECT FROM reconcile.operation o WHERE o.operation = a.operation AND o.approver_is_another) THEN
		RAISE EXCEPTION 'action "%" cannot be approved by "%", who submitted it', a.action_id, session_user
			USING ERRCODE = 'insufficient_privilege', HINT = format('Operation "%s" wants another person.', a.operation);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_approval(reconcile.action, reconcile.intent_fingerprint) IS
	'Errors: 22023 no fingerprint is named, 42501 the approver is the submitter and must not be.';

CREATE FUNCTION reconcile.release_step(action_id uuid, reason text, fingerprint reconcile.intent_fingerprint, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'release', $2);
	approves boolean := reconcile.awaits_approval(a);
	before reconcile.action;
	passes boolean;
BEGIN
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'release', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF $3 OPERATOR(reconcile.<>) a.fingerprint THEN
		RAISE EXCEPTION 'cannot release action "%": it is not what is approved', $1
			USING ERRCODE = '55000', DETAIL = format('Its intent has the fingerprint %s, the release names %s.', a.fingerprint, $3),
			HINT = format('Read reconcile.preview(''%s'') again.', $1);
	END IF;
	IF approves THEN
		PERFORM reconcile.check_approval(a, $3);
	END IF;
	SELECT b.* INTO before FROM reconcile.action b
	 WHERE a.waits AND b.submitter = a.submitter AND b.ordering_key = a.ordering_key AND b.action_id < a.action_id
	 ORDER BY b.action_id DESC LIMIT 1;
	passes := coalesce(NOT a.after_failure AND reconcile.resolved_status(before.standing) = 'FAILED', false);
	IF a.held OR passes THEN
		UPDATE reconcile.action x
		   SET version = x.version + 1, event = 'release', attempt_number = NULL, held = false, held_because = NULL,
			approved_by = CASE WHEN approves THEN session_user ELSE x.approved_by END, after_failure = x.after_failure OR passes,
			evidence = jsonb_strip_nulls(jsonb_build_object('reason', $2, 'was_held_because', a.held_because,
				'approves', CASE WHEN approves THEN a.fingerprint::text END,
				'after_failure_of', CASE WHEN passes THEN before.action_id END)) || $4
		 WHERE x.action_id = $1;
	END IF;
	RETURN a.state;
END $$;
COMMENT ON FUNCTION reconcile.release_step(uuid, text, reconcile.intent_fingerprint, jsonb) IS 'The inner form of release().';

CREATE FUNCTION reconcile.release(action_id uuid, reason text, fingerprint reconcile.intent_fingerprint DEFAULT NULL) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.release_step($1, $2, $3, '{}') $$;
COMMENT ON FUNCTION reconcile.release(uuid, text, reconcile.intent_fingerprint) IS
	'Let a held action go. If it waits for approval, this approves it, once, and must name the fingerprint of its intent. If the action before it with the same ordering_key has FAILED, it goes in spite of that. Twice is once. Errors: 55000 it is not planned, or has another fingerprint; 22023 no fingerprint or no reason; 42501 the operation wants another approver than the submitter; 42704 no such action; 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.replace_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'replace', $2);
BEGIN
	IF a.state = 'planned' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'safe_to_retry' THEN
		PERFORM reconcile.refuse_step(a, 'replace', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	-- What has gone out meanwhile with the same ordering_key is settled first.
	-- Where the provider can be asked, it is asked first: also if a person, and no lookup, has said that it did not happen.
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'replace', state = 'planned', standing = 'pending/pending', attempt_number = NULL,
		queued = true, waits = x.waits OR x.ordering_key IS NOT NULL, due_at = greatest(x.not_before, clock_timestamp()), gate_us = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, failures = 0,
		looked_at = CASE WHEN x.looked_at IS NULL AND EXISTS (SELECT FROM reconcile.lookup_rule l
			WHERE l.operation = x.operation AND l.kind <> 'replay_by_key' AND l.absence_proves) THEN '-infinity' ELSE x.looked_at END,
		evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	-- What was settled before the database was armed anew is looked at anew.
	UPDATE reconcile.rearming r SET due = true WHERE r.action_id = $1;
	PERFORM reconcile.notify_change(a, 'planned', 'pending/pending');
	RETURN 'planned';
END $$;
COMMENT ON FUNCTION reconcile.replace_step(uuid, text, jsonb) IS 'The inner form of replace().';

CREATE FUNCTION reconcile.replace(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.replace_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.replace(uuid, text) IS
	'Queue a replacement of an action that did not happen, as a lookup, an answer or a person has settled. Where the provider can be asked, it is asked again first, unless that was done within the last minute. Twice is once. Errors: 55000 in any other state, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.abandon_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'abandon', $2);
BEGIN
	IF a.state = 'abandoned' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'safe_to_retry' THEN
		PERFORM reconcile.refuse_step(a, 'abandon', reconcile.why_not(a),
			CASE WHEN a.state = 'planned' THEN 'To withdraw it, call cancel().' ELSE reconcile.why_not_hint(a) END);
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'abandon', state = 'abandoned', attempt_number = NULL, waits = false, held = false, held_because = NULL,
		evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	RETURN 'abandoned';
END $$;
COMMENT ON FUNCTION reconcile.abandon_step(uuid, text, jsonb) IS 'The inner form of abandon().';

CREATE FUNCTION reconcile.abandon(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.abandon_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.abandon(uuid, text) IS
	'Give an action up that did not happen: the same intent becomes a new action then. Twice is once. Errors: 55000 in any other state than safe_to_retry, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.look_up_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'look up', $2);
	target reconcile.state := CASE reconcile.delivery(a.standing) WHEN 'confirmed' THEN 'delivered' ELSE 'outcome_unknown' END;
	-- What the provider has taken is asked for its verdict: no window stands before that.
	last_gate bigint := coalesce((SELECT max(t.gate_us) FROM reconcile.attempt t
		WHERE t.action_id = $1 AND t.event NOT IN ('answered_async', 'found', 'confirm', 'resolve')), 0);
BEGIN
	IF a.state IN ('outcome_unknown', 'reconciling', 'delivered') AND NOT a.queued THEN
		-- It is to be asked anyway. What is put off only because earlier answers proved nothing is asked at its gate.
		UPDATE reconcile.action x SET gate_us = g.gate_us, eligible_at = x.eligible_at - (x.gate_us - g.gate_us) * interval '1 microsecond'
		  FROM (SELECT greatest(last_gate, reconcile.next_gate($1, a.lookup_position)) AS gate_us) g
		 WHERE x.action_id = $1 AND a.state = 'outcome_unknown' AND a.negatives = 0 AND a.inconclusives > 0 AND x.gate_us > g.gate_us;
		RETURN a.state;
	END IF;
	IF a.state <> 'manual_review' THEN
		PERFORM reconcile.refuse_step(a, 'look up', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF NOT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation)
		AND NOT (target = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)) THEN
		RAISE EXCEPTION 'action "%" cannot be looked up: operation "%" has no lookup rule', $1, a.operation
			USING ERRCODE = '55000', HINT = 'Define one in reconcile.lookup_rule, if the provider can be asked.';
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'look_up_now', state = target, attempt_number = NULL, lookup_position = 0,
		gate_us = coalesce(x.gate_us, last_gate), eligible_at = greatest(reconcile.window_open_until($1), clock_timestamp()),
		inconclusives = 0, negatives = 0, evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	UPDATE reconcile.rearming r SET due = true WHERE r.action_id = $1;
	RETURN target;
END $$;
COMMENT ON FUNCTION reconcile.look_up_step(uuid, text, jsonb) IS 'The inner form of look_up_now().';

CREATE FUNCTION reconcile.look_up_now(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.look_up_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.look_up_now(uuid, text) IS
	'Start another round of lookups for an action in manual_review; still never before its gate. What is to be asked anyway is asked at its gate, without the pause after answers that proved nothing. Errors: 55000 in any other state or without a lookup rule, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';
