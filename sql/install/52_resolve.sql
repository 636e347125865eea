-- What a person says of an outcome: resolve(), and what is checked before.

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
	 WHERE x.provider = a.provider AND x.artifact_id = $3 AND x.action_id <> a.action_id
	UNION ALL
	SELECT x.action_id FROM reconcile.archived_action x WHERE x.provider = a.provider AND x.artifact_id = $3 LIMIT 1;
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
		waits = x.waits AND target = 'safe_to_retry', held = x.held AND target = 'safe_to_retry', held_because = CASE target WHEN 'safe_to_retry' THEN x.held_because END,
		artifact_id = coalesce(id, x.artifact_id), gate_us = CASE target WHEN 'delivered' THEN reconcile.verdict_gate(op) END, eligible_at = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, evidence = $4
	 WHERE x.action_id = a.action_id;
	-- A person has answered for what another copy may have done, where nothing else can be asked.
	DELETE FROM reconcile.rearming r WHERE r.action_id = a.action_id
		AND NOT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.kind <> 'replay_by_key');
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
