-- What people do: settle, repeat, withdraw, hold back, let go; one action at a time, or many with a preview.

CREATE TABLE reconcile.bulk_batch (
	batch bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	what text NOT NULL,
	decision text,
	filter jsonb NOT NULL,
	previewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	previewed_by name NOT NULL DEFAULT session_user,
	preview_reason text,
	applied_at timestamptz,
	applied_by name,
	reason text,
	CONSTRAINT bulk_batch_what CHECK (what IN ('release', 'cancel', 'replace', 'abandon', 'look_up_now', 'resolve')),
	CONSTRAINT bulk_batch_decision CHECK ((what = 'resolve') = (decision IS NOT NULL)),
	CONSTRAINT bulk_batch_applied CHECK ((applied_at IS NULL) = (applied_by IS NULL) AND (applied_by IS NULL) = (reason IS NULL))
);
COMMENT ON TABLE reconcile.bulk_batch IS 'One step that is to be taken for many actions: previewed by bulk_preview(), taken once by bulk_apply().';
COMMENT ON COLUMN reconcile.bulk_batch.filter IS 'By what the actions were chosen.';
COMMENT ON COLUMN reconcile.bulk_batch.reason IS 'Of whoever applied it; in the history of each action with the number of the batch.';
COMMENT ON SEQUENCE reconcile.bulk_batch_batch_seq IS 'Numbers batches.';

CREATE TABLE reconcile.bulk_item (
	batch bigint NOT NULL,
	action_id uuid NOT NULL,
	version integer NOT NULL,
	state reconcile.state NOT NULL,
	fingerprint reconcile.intent_fingerprint NOT NULL,
	result text,
	detail text,
	PRIMARY KEY (batch, action_id),
	CONSTRAINT bulk_item_result CHECK (result IN ('done', 'skipped', 'refused'))
);
COMMENT ON TABLE reconcile.bulk_item IS 'An action of a batch as it was previewed, and what came of it.';
COMMENT ON COLUMN reconcile.bulk_item.version IS 'The version that was previewed: an action that has moved on since is skipped.';
COMMENT ON COLUMN reconcile.bulk_item.fingerprint IS 'The intent that was previewed, which a release approves.';
COMMENT ON COLUMN reconcile.bulk_item.result IS 'done; skipped: it has moved on or somebody holds it; refused: the step is not possible; NULL: not applied yet.';
COMMENT ON COLUMN reconcile.bulk_item.detail IS 'The state it has now, or why it was left.';

-- What is written down reads the same for everybody, whatever the session's DateStyle is.
CREATE FUNCTION reconcile.instant_words(instant timestamptz) RETURNS text
	LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
COMMENT ON FUNCTION reconcile.instant_words(timestamptz) IS 'An instant as text, ISO 8601 in UTC, to the millisecond.';

-- How long the provider's "not found" proves nothing about an action.
CREATE FUNCTION reconcile.window_open_until(action_id uuid) RETURNS timestamptz
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT max(w.closes_at)
	  FROM reconcile.attempt t
	 CROSS JOIN LATERAL (SELECT coalesce(t.ended_at, t.dispatched_at) + (t.late_arrival_us + t.window_us) * interval '1 microsecond' AS closes_at) w
	 WHERE t.action_id = $1 AND t.state IN ('submitted', 'outcome_unknown') AND w.closes_at > statement_timestamp()
	   AND t.gate_us > (SELECT coalesce(max(c.elapsed_us), 0) FROM reconcile.clock c) $$;
COMMENT ON FUNCTION reconcile.window_open_until(uuid) IS
	'When the consistency window of the last attempt that may have happened closes, by the wall clock; NULL if it is closed: by the wall clock, or by the stored logical clock, which is never ahead and is the one that the engine goes by.';

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
	IF NOT FOUND THEN
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
		AND NOT EXISTS (SELECT FROM reconcile.action x WHERE x.action_id = $1 AND x.submitter = session_user) THEN
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
		queued = true, waits = x.ordering_key IS NOT NULL, held = false, held_because = NULL, due_at = clock_timestamp(), gate_us = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, failures = 0,
		looked_at = CASE WHEN x.looked_at IS NULL AND EXISTS (SELECT FROM reconcile.lookup_rule l
			WHERE l.operation = x.operation AND l.kind <> 'replay_by_key' AND l.absence_proves) THEN '-infinity' ELSE x.looked_at END,
		evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
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
	   SET version = x.version + 1, event = 'abandon', state = 'abandoned', attempt_number = NULL,
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
	RETURN target;
END $$;
COMMENT ON FUNCTION reconcile.look_up_step(uuid, text, jsonb) IS 'The inner form of look_up_now().';

CREATE FUNCTION reconcile.look_up_now(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.look_up_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.look_up_now(uuid, text) IS
	'Start another round of lookups for an action in manual_review; still never before its gate. What is to be asked anyway is asked at its gate, without the pause after answers that proved nothing. Errors: 55000 in any other state or without a lookup rule, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

-- ---------------------------------------------------------------- the verdict of a person

-- What the decision makes of the action.
CREATE FUNCTION reconcile.resolved_state(a reconcile.action, decision text) RETURNS reconcile.state
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE $2
		WHEN 'accepted' THEN 'succeeded'
		WHEN 'rejected' THEN 'rejected'
		WHEN 'executed' THEN CASE WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)
			OR EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event = 'answered_async') THEN 'delivered' ELSE 'succeeded' END
		-- A "no" to one attempt is what remains when the others did not happen.
		WHEN 'not_executed' THEN CASE WHEN EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state = 'rejected')
			THEN 'rejected' ELSE 'safe_to_retry' END
	END::reconcile.state $$;
COMMENT ON FUNCTION reconcile.resolved_state(reconcile.action, text) IS
	'The state in which a decision leaves an action. executed means delivered where the verdict comes later: the operation is polled, or it was answered so.';

-- Does the decision only repeat what is settled already?
CREATE FUNCTION reconcile.decision_stands(a reconcile.action, decision text, artifact_id text) RETURNS boolean
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT ($3 IS NULL OR $3 = a.artifact_id) AND (a.event = 'resolve' AND a.evidence->>'decision' = $2
		OR CASE $2 WHEN 'executed' THEN a.state IN ('delivered', 'succeeded') WHEN 'accepted' THEN a.state = 'succeeded'
			WHEN 'rejected' THEN a.state = 'rejected' ELSE a.state IN ('safe_to_retry', 'abandoned') END) $$;
COMMENT ON FUNCTION reconcile.decision_stands(reconcile.action, text, text) IS 'Whether a decision says what is settled already: then nothing is to be done.';

CREATE FUNCTION reconcile.check_decision(action_id uuid, decision text, artifact_id text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $2 IS NULL OR $2 NOT IN ('executed', 'not_executed', 'accepted', 'rejected') THEN
		RAISE EXCEPTION 'a decision is executed, not_executed, accepted or rejected, not "%"', $2
			USING ERRCODE = '22023', HINT = 'executed: the provider has it; accepted, rejected: its verdict.';
	END IF;
	IF $3 !~ '[^[:space:]]' OR octet_length($3) > 500 OR $2 = 'not_executed' AND $3 IS NOT NULL THEN
		RAISE EXCEPTION 'the artifact id of action "%" cannot be "%"', $1, $3
			USING ERRCODE = '22023', HINT = 'It is the provider''s id of what was made; leave it out if it is not known, or if nothing was made.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_decision(uuid, text, text) IS 'Error 22023 if a decision or its artifact id cannot be meant.';

-- What speaks against the decision, for an action that can be settled.
CREATE FUNCTION reconcile.check_contradiction(a reconcile.action, decision text, artifact_id text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	proof reconcile.attempt;
	owner uuid;
BEGIN
	SELECT t.* INTO proof FROM reconcile.attempt t WHERE t.action_id = a.action_id AND reconcile.delivery(t.standing) = 'confirmed' AND t.state <> 'rejected'
	 ORDER BY t.number DESC LIMIT 1;
	IF reconcile.delivery(a.standing) = 'confirmed' AND $2 = 'not_executed' THEN
		PERFORM reconcile.refuse_step(a, 'resolve', format('The provider has it: attempt %s is %s by "%s".', proof.number, proof.state, proof.event),
			'What can be said is its verdict: accepted or rejected.');
	END IF;
	IF reconcile.delivery(a.standing) = 'confirmed' AND $2 = 'executed' AND reconcile.resolved_state(a, $2) = 'delivered' THEN
		PERFORM reconcile.refuse_step(a, 'resolve', 'That the provider has it is known already; what is missing is its verdict.',
			'Say accepted or rejected.');
	END IF;
	SELECT x.action_id INTO owner FROM reconcile.action x
	 WHERE x.provider = a.provider AND x.artifact_id = $3 AND x.action_id <> a.action_id LIMIT 1;
	IF owner IS NOT NULL THEN
		RAISE EXCEPTION 'artifact "%" is no evidence for action "%": it belongs to action "%"', $3, a.action_id, owner
			USING ERRCODE = 'unique_violation', HINT = 'One object confirms one action.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_contradiction(reconcile.action, text, text) IS
	'Errors: 55000 the decision contradicts what is proven, or adds nothing; 23505 the object belongs to another action.';

-- "It did not happen" is too early while it may still show; whoever says it all the same has it on record.
CREATE FUNCTION reconcile.risk_of_absence(a reconcile.action, force boolean) RETURNS text
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	open_until timestamptz := reconcile.window_open_until(a.action_id);
BEGIN
	IF open_until IS NULL THEN
		RETURN NULL;
	END IF;
	IF NOT coalesce($2, false) THEN
		PERFORM reconcile.refuse_step(a, 'resolve',
			format('The consistency window is open until %s, by the wall clock: until then "not there" proves nothing, and it may still happen.', reconcile.instant_words(open_until)),
			'Wait for it; or, if it is certain, force => true, which is recorded with the risk.');
	END IF;
	RETURN format('the consistency window is open until %s: it may still happen', reconcile.instant_words(open_until));
END $$;
COMMENT ON FUNCTION reconcile.risk_of_absence(reconcile.action, boolean) IS
	'The risk of saying now that an action did not happen, in words; NULL if its window is closed. Error 55000 if it is open and force is not set.';

-- Writes the decision into the attempts and the action; everything has been checked.
CREATE FUNCTION reconcile.settle_by_decision(a reconcile.action, decision text, artifact_id text, proof jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	op reconcile.operation;
	target reconcile.state := reconcile.resolved_state(a, $2);
	each_target reconcile.state := CASE $2 WHEN 'not_executed' THEN 'safe_to_retry' ELSE target END;
	becomes reconcile.standing;
	credited integer;
	id text := $3;
BEGIN
	SELECT * INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	-- What has no id of the provider's goes by the reference.
	IF id IS NULL AND target IN ('delivered', 'succeeded') AND a.artifact_id IS NULL AND op.artifact_path IS NULL AND op.artifact_header IS NULL THEN
		id := a.client_reference;
	END IF;
	SELECT max(t.number) INTO credited FROM reconcile.attempt t
	 WHERE t.action_id = a.action_id AND (t.state = 'outcome_unknown' OR t.state = 'delivered' AND target IN ('succeeded', 'rejected'));
	UPDATE reconcile.attempt t
	   SET version = t.version + 1, event = 'resolve', state = each_target, standing = s.standing, evidence = $4,
		artifact_id = CASE WHEN t.number = credited THEN coalesce(id, t.artifact_id) ELSE t.artifact_id END
	  FROM (SELECT (CASE each_target WHEN 'delivered' THEN 'confirmed/pending' WHEN 'succeeded' THEN 'confirmed/accepted'
			WHEN 'rejected' THEN 'confirmed/rejected' ELSE 'failed/pending' END)::reconcile.standing AS standing) s
	 WHERE t.action_id = a.action_id AND (t.state = 'outcome_unknown' OR t.state = 'delivered' AND target IN ('succeeded', 'rejected'));
	SELECT reconcile.fold(coalesce(array_agg(t.standing), '{}'), false) INTO becomes FROM reconcile.attempt t WHERE t.action_id = a.action_id;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'resolve', state = target, standing = becomes, attempt_number = credited, queued = false,
		artifact_id = coalesce(id, x.artifact_id), gate_us = CASE target WHEN 'delivered' THEN reconcile.verdict_gate(op) END, eligible_at = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, evidence = $4
	 WHERE x.action_id = a.action_id;
	PERFORM reconcile.notify_change(a, target, becomes);
	RETURN target;
END $$;
COMMENT ON FUNCTION reconcile.settle_by_decision(reconcile.action, text, text, jsonb) IS
	'Settle an action, and every attempt of it that is not, by the decision of a person.';

CREATE FUNCTION reconcile.note_wrong_decision(action_id uuid) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT reconcile.open_incident('contradiction', $1, jsonb_build_object('decision', h.evidence->>'decision', 'decided_by', h.actor, 'decided_at', h.recorded_at,
		'reason', h.evidence->>'reason', 'forced', coalesce((h.evidence->>'forced')::boolean, false)))
	  FROM (SELECT x.* FROM reconcile.history x WHERE x.action_id = $1 AND x.event IN ('resolve', 'claim') ORDER BY x.version DESC LIMIT 1) h
	 WHERE h.event = 'resolve' AND h.evidence->>'decision' = 'not_executed' $$;
COMMENT ON FUNCTION reconcile.note_wrong_decision(uuid) IS 'It did happen: if a person had decided that it did not, that is an incident, with who and why.';

CREATE FUNCTION reconcile.resolve_step(action_id uuid, decision text, reason text, artifact_id text, expected_version integer, evidence jsonb,
		force boolean, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
	risk text;
BEGIN
	PERFORM reconcile.check_decision($1, $2, $4);
	-- The lock that the last check before a send takes, and every confirmation: what is under way there is not waited for.
	IF NOT reconcile.try_lock_action($1) THEN
		RAISE EXCEPTION 'cannot resolve action "%": it is being sent, confirmed or settled at this moment', $1
			USING ERRCODE = 'lock_not_available', HINT = 'Nothing was changed. Look again at where it stands, then decide.';
	END IF;
	a := reconcile.lock_for_person($1, 'resolve', $3);
	-- What the provider has said meanwhile comes first.
	IF a.state IN ('outcome_unknown', 'manual_review', 'delivered') AND EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = $1 AND i.applied_at IS NULL) THEN
		PERFORM reconcile.apply_inbox_row(i.inbox_id) FROM reconcile.inbox i WHERE i.action_id = $1 AND i.applied_at IS NULL ORDER BY i.inbox_id;
		SELECT x.* INTO a FROM reconcile.action x WHERE x.action_id = $1;
	END IF;
	IF reconcile.decision_stands(a, $2, $4) THEN
		RETURN a.state;
	END IF;
	IF $5 <> a.version THEN
		RAISE EXCEPTION 'action "%" is at version %, not %: it is % now', $1, a.version, $5, a.state
			USING ERRCODE = 'serialization_failure', DETAIL = format('Its last step was "%s" by %s at %s.', a.event, a.actor, reconcile.instant_words(a.recorded_at)),
			HINT = 'Look again at where it stands, then decide.';
	END IF;
	IF a.state NOT IN ('outcome_unknown', 'manual_review', 'delivered') THEN
		PERFORM reconcile.refuse_step(a, 'resolve', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	PERFORM reconcile.check_contradiction(a, $2, $4);
	IF $2 = 'not_executed' THEN
		risk := reconcile.risk_of_absence(a, $7);
	END IF;
	RETURN reconcile.settle_by_decision(a, $2, $4, jsonb_strip_nulls(jsonb_build_object('decision', $2, 'reason', $3, 'artifact_id', $4,
		'forced', CASE WHEN risk IS NOT NULL THEN true END, 'risk', risk)) || CASE WHEN $6 IS NULL THEN '{}' ELSE jsonb_build_object('evidence', $6) END || $8);
END $$;
COMMENT ON FUNCTION reconcile.resolve_step(uuid, text, text, text, integer, jsonb, boolean, jsonb) IS 'The inner form of resolve().';

CREATE FUNCTION reconcile.resolve(action_id uuid, decision text, reason text, artifact_id text DEFAULT NULL, expected_version integer DEFAULT NULL,
		evidence jsonb DEFAULT NULL, force boolean DEFAULT false) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.resolve_step($1, $2, $3, $4, $5, $6, $7, '{}') $$;
COMMENT ON FUNCTION reconcile.resolve(uuid, text, text, text, integer, jsonb, boolean) IS
	'Settle an action whose outcome is not known (outcome_unknown, manual_review), or give the verdict on what is delivered, by the word of a person, who is recorded. executed: it happened; not_executed: it did not, so that it is safe_to_retry; accepted, rejected: the provider''s verdict. Before its consistency window has closed, by the wall clock, not_executed is refused unless force is set, which is recorded with the risk. expected_version: the version that was looked at. The same decision again changes nothing. Errors: 55000 it is not to be decided, is decided otherwise, or the decision contradicts what is proven; 40001 it is not at expected_version; 23505 the object belongs to another action; 55P03 it is being worked on at this moment; 42704 no such action; 22023 no reason, or no such decision.';

-- ---------------------------------------------------------------- many actions

-- The states in which a step is possible at all: what is chosen by other marks than its ids is in one of them.
CREATE FUNCTION reconcile.bulk_states(what text) RETURNS reconcile.state[]
	LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE $1 WHEN 'release' THEN '{planned}' WHEN 'cancel' THEN '{planned}' WHEN 'replace' THEN '{safe_to_retry}'
		WHEN 'abandon' THEN '{safe_to_retry}' WHEN 'look_up_now' THEN '{outcome_unknown,manual_review}'
		WHEN 'resolve' THEN '{outcome_unknown,manual_review,delivered}' END::reconcile.state[] $$;
COMMENT ON FUNCTION reconcile.bulk_states(text) IS 'The states in which a step of a batch is possible; NULL if there is no such step.';

CREATE FUNCTION reconcile.bulk_preview(what text, action_ids uuid[] DEFAULT NULL, provider text DEFAULT NULL, operation text DEFAULT NULL,
		state reconcile.state DEFAULT NULL, held boolean DEFAULT NULL, submitter name DEFAULT NULL, submitted_before timestamptz DEFAULT NULL,
		reason text DEFAULT NULL, max_items integer DEFAULT 1000)
	RETURNS TABLE (batch bigint, items bigint, left_out bigint, totals jsonb, sample jsonb)
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	step text := split_part($1, ' ', 1);
	said text := nullif(split_part($1, ' ', 2), '');
	most integer := 10000;
	made bigint;
	matching bigint;
BEGIN
	IF $1 IS NULL OR reconcile.bulk_states(step) IS NULL OR step = 'resolve' AND (said IS NULL OR said NOT IN ('executed', 'not_executed', 'accepted', 'rejected'))
		OR step <> 'resolve' AND said IS NOT NULL OR split_part($1, ' ', 3) <> '' THEN
		RAISE EXCEPTION 'there is no step "%" for many actions', $1
			USING ERRCODE = '22023', HINT = 'Say release, cancel, replace, abandon, look_up_now, or resolve executed, resolve not_executed, resolve accepted, resolve rejected.';
	END IF;
	-- Each item that is resolved takes a lock of its own in the shared table of locks.
	IF step = 'resolve' THEN
		most := 1000;
	END IF;
	IF $10 IS NULL OR $10 NOT BETWEEN 1 AND most THEN
		RAISE EXCEPTION 'max_items must be between 1 and %, not %', most, $10
			USING ERRCODE = '22023', HINT = 'What is left out of a batch is for the next one.';
	END IF;
	INSERT INTO reconcile.bulk_batch AS b (what, decision, filter, preview_reason)
		VALUES (step, said, jsonb_strip_nulls(jsonb_build_object('action_ids', to_jsonb($2), 'provider', $3, 'operation', $4, 'state', $5, 'held', $6,
			'submitter', $7, 'submitted_before', $8)), $9)
		RETURNING b.batch INTO made;
	WITH chosen AS (
		SELECT a.action_id, a.version, a.state, a.fingerprint, a.priority FROM reconcile.action a
		 WHERE ($2 IS NULL OR a.action_id = ANY ($2)) AND ($3 IS NULL OR a.provider = $3) AND ($4 IS NULL OR a.operation = $4)
		   AND ($5 IS NULL OR a.state = $5) AND ($6 IS NULL OR a.held = $6) AND ($7 IS NULL OR a.submitter = $7)
		   AND ($8 IS NULL OR a.submitted_at < $8)
		   AND ($2 IS NOT NULL OR a.state = ANY (reconcile.bulk_states(step)) AND (step <> 'release' OR a.held OR a.waits))
	), kept AS (
		INSERT INTO reconcile.bulk_item (batch, action_id, version, state, fingerprint)
		SELECT made, c.action_id, c.version, c.state, c.fingerprint FROM chosen c ORDER BY c.priority DESC, c.action_id LIMIT $10)
	SELECT count(*) INTO matching FROM chosen;
	RETURN QUERY SELECT made, t.items, matching - t.items, t.totals,
		(SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.action_id), '[]') FROM (
			SELECT a.action_id, a.operation, a.client_reference, a.state, a.recorded_at AS since, i.version, i.fingerprint::text AS fingerprint
			  FROM reconcile.bulk_item i JOIN reconcile.action a ON a.action_id = i.action_id WHERE i.batch = made ORDER BY i.action_id LIMIT 10) s)
	  FROM (SELECT coalesce(sum(g.count), 0)::bigint AS items, coalesce(jsonb_agg(to_jsonb(g) ORDER BY g.provider, g.operation, g.state), '[]') AS totals FROM (
			SELECT a.provider, a.operation, i.state, count(*) AS count, min(a.submitted_at) AS oldest
			  FROM reconcile.bulk_item i JOIN reconcile.action a ON a.action_id = i.action_id WHERE i.batch = made GROUP BY 1, 2, 3) g) t;
END $$;
COMMENT ON FUNCTION reconcile.bulk_preview(text, uuid[], text, text, reconcile.state, boolean, name, timestamptz, text, integer) IS
	'Choose the actions for one step, and change nothing: what is release, cancel, replace, abandon, look_up_now, or resolve with a decision. Without action_ids only actions in a state that allows the step are chosen. Returns the number of the batch for bulk_apply(), how many are in it and how many of those that match are not (the most urgent and oldest come first), totals by provider, operation and state, and the first ten. Error 22023 if there is no such step, or max_items is out of range.';

CREATE FUNCTION reconcile.bulk_step(b reconcile.bulk_batch, i reconcile.bulk_item, reason text) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	more jsonb := jsonb_build_object('batch', b.batch);
BEGIN
	CASE b.what
		WHEN 'cancel' THEN RETURN reconcile.cancel_step(i.action_id, $3, more);
		WHEN 'replace' THEN RETURN reconcile.replace_step(i.action_id, $3, more);
		WHEN 'abandon' THEN RETURN reconcile.abandon_step(i.action_id, $3, more);
		WHEN 'look_up_now' THEN RETURN reconcile.look_up_step(i.action_id, $3, more);
		WHEN 'release' THEN RETURN reconcile.release_step(i.action_id, $3, i.fingerprint, more);
		WHEN 'resolve' THEN RETURN reconcile.resolve_step(i.action_id, b.decision, $3, NULL, i.version, NULL, false, more);
	END CASE;
END $$;
COMMENT ON FUNCTION reconcile.bulk_step(reconcile.bulk_batch, reconcile.bulk_item, text) IS 'The step of a batch for one of its actions.';

-- One item: done, or left alone with the reason.  What it changes is undone if it is refused, and nothing else.
CREATE FUNCTION reconcile.bulk_item_apply(b reconcile.bulk_batch, i reconcile.bulk_item, reason text, OUT result text, OUT detail text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	found_version integer;
	found_state reconcile.state;
BEGIN
	SELECT a.version, a.state INTO found_version, found_state FROM reconcile.action a WHERE a.action_id = i.action_id FOR NO KEY UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		result := 'skipped';
		detail := 'busy: somebody else is working on it';
	ELSIF found_version <> i.version THEN
		result := 'skipped';
		detail := format('version moved: previewed as %s at version %s, it is %s at version %s', i.state, i.version, found_state, found_version);
	ELSE
		result := 'done';
		detail := reconcile.bulk_step(b, i, $3)::text;
	END IF;
EXCEPTION
	WHEN serialization_failure OR lock_not_available OR deadlock_detected THEN
		result := 'skipped';
		detail := 'busy: ' || SQLERRM;
	WHEN object_not_in_prerequisite_state OR invalid_parameter_value OR insufficient_privilege OR unique_violation OR undefined_object THEN
		result := 'refused';
		GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
		detail := concat_ws(' ', SQLERRM || '.', nullif(detail, ''));
END $$;
COMMENT ON FUNCTION reconcile.bulk_item_apply(reconcile.bulk_batch, reconcile.bulk_item, text) IS
	'Take the step of a batch for one of its actions, in a subtransaction of its own, without waiting for anybody.';

CREATE FUNCTION reconcile.bulk_apply(batch bigint, reason text)
	RETURNS TABLE (action_id uuid, result text, detail text)
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	b reconcile.bulk_batch;
	i reconcile.bulk_item;
	outcome record;
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to apply batch "%"', $1
			USING ERRCODE = '22023', HINT = 'It is kept in the history of each action.';
	END IF;
	SELECT x.* INTO b FROM reconcile.bulk_batch x WHERE x.batch = $1 FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		IF EXISTS (SELECT FROM reconcile.bulk_batch x WHERE x.batch = $1) THEN
			RAISE EXCEPTION 'batch "%" is being applied at this moment', $1
				USING ERRCODE = 'lock_not_available', HINT = 'Its results are in reconcile.bulk_item when that is done.';
		END IF;
		RAISE EXCEPTION 'batch "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'bulk_preview() makes one and returns its number.';
	END IF;
	IF b.applied_at IS NULL THEN
		FOR i IN SELECT x.* FROM reconcile.bulk_item x WHERE x.batch = $1 ORDER BY x.action_id LOOP
			SELECT * INTO outcome FROM reconcile.bulk_item_apply(b, i, $2);
			UPDATE reconcile.bulk_item x SET result = outcome.result, detail = outcome.detail WHERE x.batch = $1 AND x.action_id = i.action_id;
		END LOOP;
		UPDATE reconcile.bulk_batch x SET applied_at = clock_timestamp(), applied_by = session_user, reason = $2 WHERE x.batch = $1;
	END IF;
	RETURN QUERY SELECT x.action_id, x.result, x.detail FROM reconcile.bulk_item x WHERE x.batch = $1 ORDER BY x.action_id;
END $$;
COMMENT ON FUNCTION reconcile.bulk_apply(bigint, text) IS
	'Take the step of a previewed batch, once: each action by itself, none whose version has moved since the preview, and none that somebody else is working on. Returns for each: done with its state, skipped or refused with the reason. A second call takes no step and returns the same. Errors: 22023 no reason, 42704 no such batch, 55P03 it is being applied at this moment.';

-- ---------------------------------------------------------------- what waits for a person

-- A row that cannot be shown must not hide the others.
CREATE FUNCTION reconcile.try_preview(action_id uuid, OUT method text, OUT url text, OUT headers jsonb, OUT body text, OUT note text)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	SELECT p.method, p.url, p.headers, p.body, p.note INTO method, url, headers, body, note
	  FROM reconcile.preview($1) p WHERE p.part = 'request';
EXCEPTION WHEN data_exception OR undefined_object THEN
	note := 'the request cannot be made from the present definition: ' || SQLERRM;
END $$;
COMMENT ON FUNCTION reconcile.try_preview(uuid) IS 'The request of an action as preview() shows it, or a note why it cannot be shown.';

CREATE FUNCTION reconcile.attempts_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('number', t.number, 'state', t.state, 'sent_at', t.dispatched_at, 'ended_at', t.ended_at,
			'to', t.base_url, 'http_status', t.http_status, 'artifact_id', t.artifact_id, 'idempotency_key', t.idempotency_key,
			'request_hash', encode(t.request_hash, 'hex'), 'event', t.event, 'says', reconcile.evidence_words(t.evidence))) ORDER BY t.number)
	  FROM reconcile.attempt t WHERE t.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.attempts_summary(uuid) IS 'What is known about each attempt of an action; NULL if there is none.';

CREATE FUNCTION reconcile.lookups_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN count(*) > 0 THEN jsonb_strip_nulls(jsonb_build_object('asked', count(*), 'first_at', min(l.asked_at), 'last_at', max(l.asked_at),
			'found', nullif(count(*) FILTER (WHERE l.result = 'found'), 0), 'absent', nullif(count(*) FILTER (WHERE l.result = 'absent'), 0),
			'inconclusive', nullif(count(*) FILTER (WHERE l.result IN ('inconclusive', 'ambiguous', 'lost')), 0),
			'last_kind', (array_agg(l.kind ORDER BY l.asked_at DESC))[1], 'last_result', (array_agg(l.result ORDER BY l.asked_at DESC))[1],
			'last_reason', (array_agg(l.reason ORDER BY l.asked_at DESC))[1], 'last_http_status', (array_agg(l.http_status ORDER BY l.asked_at DESC))[1])) END
	  FROM reconcile.lookup l WHERE l.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.lookups_summary(uuid) IS 'How often the provider was asked about an action, and what it said; NULL if never.';

-- What follows if "it did not happen" is said of something that did.
CREATE FUNCTION reconcile.risk_of_repeating(a reconcile.action) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
	c record;
	dead_at timestamptz;
BEGIN
	SELECT o.* INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	c := reconcile.capabilities(op);
	dead_at := a.key_first_at + c.key_lifetime - c.key_margin - c.needed;
	RETURN concat_ws(' ', 'If it is sent again and the first one did happen:',
		CASE WHEN a.idempotency_key IS NOT NULL AND dead_at > statement_timestamp()
			THEN format('until %s the provider takes it for the same one, by its idempotency key; after that', reconcile.instant_words(dead_at)) END,
		CASE WHEN op.effect <> 'create' THEN format('the %s is done a second time.', op.effect)
			WHEN c.has_query THEN 'the provider is asked first, so that there is a second effect only if it does not show the first.'
			ELSE 'there is a second effect, and nothing prevents it.' END);
END $$;
COMMENT ON FUNCTION reconcile.risk_of_repeating(reconcile.action) IS 'What sending again would risk, by the capabilities of the operation.';

CREATE VIEW reconcile.review_queue WITH (security_barrier) AS
	SELECT a.action_id, a.version,
		CASE WHEN a.state = 'manual_review' THEN 'resolve' WHEN n.approval THEN 'approve' ELSE 'release' END AS needs,
		a.operation, a.provider, a.client_reference, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery, a.priority, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.held THEN a.held_because ELSE coalesce(r.meaning, a.event) || coalesce(': ' || reconcile.evidence_words(a.evidence), '') END AS why,
		p.method, p.url, p.headers, p.body, p.note, a.fingerprint, a.artifact_id,
		reconcile.attempts_summary(a.action_id) AS attempts, reconcile.lookups_summary(a.action_id) AS lookups,
		w.open_until AS window_open_until, g.tier, g.query_surface,
		CASE WHEN a.state <> 'manual_review' THEN NULL
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN '{accepted,rejected}'::text[]
			ELSE '{executed,not_executed,accepted,rejected}' END AS decisions,
		CASE WHEN a.state = 'manual_review' THEN
			'If you say that it happened and it did not: it is CONFIRMED for whoever relies on it, nobody sends it again, and the effect is missing.' END AS if_executed_but_not,
		CASE WHEN a.state = 'manual_review' THEN reconcile.risk_of_repeating(a) END AS if_repeated,
		CASE WHEN n.approval THEN format('read the request; then release(%L, reason, %L), or cancel it', a.action_id, a.fingerprint)
			WHEN a.held THEN format('release(%L, reason), or cancel it', a.action_id)
			WHEN w.open_until IS NOT NULL THEN format('only "it happened" can be seen yet; "it did not" cannot before %s', reconcile.instant_words(w.open_until))
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN format('ask the provider for its verdict on %s; then resolve(%L, ''accepted'' or ''rejected'', reason, expected_version => %s)',
				coalesce(a.artifact_id, a.client_reference), a.action_id, a.version)
			WHEN a.event = 'inconclusive' THEN format('find out why its lookups prove nothing, then look_up_now(%L, reason); or look for %s yourself, then resolve() with expected_version => %s',
				a.action_id, a.client_reference, a.version)
			ELSE format('look for %s at the provider; then resolve(%L, ''executed'' or ''not_executed'', reason, expected_version => %s)', a.client_reference, a.action_id, a.version)
		END AS suggested
	FROM reconcile.action a
	JOIN reconcile.provider_grade g ON g.operation = a.operation
	LEFT JOIN (SELECT DISTINCT ON (t.event, t.to_state) t.event, t.to_state, t.meaning FROM reconcile.transition_rule t
		WHERE t.subject = 'action' ORDER BY t.event, t.to_state, t.from_state) r ON r.event = a.event AND r.to_state = a.state
	CROSS JOIN LATERAL (SELECT reconcile.awaits_approval(a) AS approval) n
	CROSS JOIN LATERAL (SELECT CASE WHEN a.state = 'manual_review' THEN reconcile.window_open_until(a.action_id) END AS open_until) w
	CROSS JOIN LATERAL reconcile.try_preview(a.action_id) p
	WHERE (a.state = 'manual_review' OR a.state = 'planned' AND a.held) AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.review_queue IS
	'Everything that waits for a person, with all that is needed to decide: what was sent or is to be, what is known, what each choice risks, and what to do next. Secrets are masked as in preview().';
COMMENT ON COLUMN reconcile.review_queue.version IS 'To be passed to resolve() as expected_version.';
COMMENT ON COLUMN reconcile.review_queue.needs IS 'resolve: nobody but a person can tell what happened; approve: somebody has to approve it before it is sent; release: somebody holds it.';
COMMENT ON COLUMN reconcile.review_queue.why IS 'Why it waits: the last evidence, or the reason of whoever holds it.';
COMMENT ON COLUMN reconcile.review_queue.body IS 'As it is made from the present definition; request_hash in attempts is of what was sent.';
COMMENT ON COLUMN reconcile.review_queue.attempts IS 'Each attempt: when, to which address, with which key, what came back, the hash of the request.';
COMMENT ON COLUMN reconcile.review_queue.lookups IS 'How often the provider was asked, and what it said; NULL: never.';
COMMENT ON COLUMN reconcile.review_queue.window_open_until IS 'Until then "not there" proves nothing; NULL: its window is closed.';
COMMENT ON COLUMN reconcile.review_queue.decisions IS 'What resolve() takes now.';
COMMENT ON COLUMN reconcile.review_queue.if_executed_but_not IS 'What "it happened" risks.';
COMMENT ON COLUMN reconcile.review_queue.if_repeated IS 'What "it did not happen" risks, once it is sent again.';
