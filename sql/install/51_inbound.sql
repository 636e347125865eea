-- What is said about actions without being asked for.

CREATE FUNCTION reconcile.try_lock_action(action_id uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_try_lock_action' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.try_lock_action(uuid) IS
	'Take the lock that the last check before a send takes too, to the end of the transaction, without waiting: false if the action is just being sent.';

CREATE FUNCTION reconcile.open_incident(kind text, action_id uuid, details jsonb) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO reconcile.incident (kind, provider, operation, action_id, details)
	SELECT $1, a.provider, a.operation, a.action_id, $3 FROM reconcile.action a WHERE a.action_id = $2
	ON CONFLICT (action_id, kind) DO NOTHING $$;
COMMENT ON FUNCTION reconcile.open_incident(text, uuid, jsonb) IS 'Record that something is that must not be: one incident of a kind for an action.';

-- A submitter speaks of its own actions only; whoever operates, and the provider itself, of all. A role that is gone speaks of none.
CREATE FUNCTION reconcile.may_speak_of(sender name, verified boolean, submitter name) RETURNS boolean
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT $2 OR $1 = $3 OR EXISTS (SELECT FROM pg_roles r WHERE r.rolname = $1 AND pg_has_role(r.oid, 'reconcile_operator', 'MEMBER')) $$;
COMMENT ON FUNCTION reconcile.may_speak_of(name, boolean, name) IS
	'Whether what that sender brings counts for an action of that submitter: it is the submitter, or an operator, or the provider''s signature was verified.';

CREATE FUNCTION reconcile.spoken_names(client_reference text) RETURNS text[]
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN ARRAY[$1, (SELECT ltrim(substr($1, length(x.prefix) + 1), '-') FROM reconcile.installation x WHERE x.only_row AND starts_with($1, x.prefix))];
END $$;
COMMENT ON FUNCTION reconcile.spoken_names(text) IS 'By which names a client reference may be spoken of: as it is, or without the installation''s prefix.';

CREATE FUNCTION reconcile.action_spoken_of(provider text, reference text, artifact_id text, sender name, verified boolean DEFAULT false) RETURNS uuid
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH named AS (
		SELECT x.action_id, x.client_reference FROM reconcile.action x
		 WHERE x.provider = $1 AND x.client_reference = ANY (ARRAY[$2,
			(SELECT prefix FROM reconcile.installation WHERE only_row) || '-' || $2, (SELECT prefix FROM reconcile.installation WHERE only_row) || $2])
		   AND reconcile.may_speak_of($4, $5, x.submitter)
		UNION ALL
		SELECT x.action_id, x.client_reference FROM reconcile.archived_action x
		 WHERE x.provider = $1 AND x.client_reference = ANY (ARRAY[$2,
			(SELECT prefix FROM reconcile.installation WHERE only_row) || '-' || $2, (SELECT prefix FROM reconcile.installation WHERE only_row) || $2])
		   AND reconcile.may_speak_of($4, $5, x.submitter)
	), made AS (
		(SELECT x.action_id FROM reconcile.action x
		 WHERE $2 IS NULL AND x.provider = $1 AND x.artifact_id = $3 AND reconcile.may_speak_of($4, $5, x.submitter) LIMIT 2)
		UNION ALL
		(SELECT x.action_id FROM reconcile.archived_action x
		 WHERE $2 IS NULL AND x.provider = $1 AND x.artifact_id = $3 AND reconcile.may_speak_of($4, $5, x.submitter) LIMIT 2))
	SELECT coalesce((SELECT n.action_id FROM named n ORDER BY n.client_reference = $2 DESC, n.action_id LIMIT 1),
		(SELECT (array_agg(m.action_id))[1] FROM made m HAVING count(*) = 1)) $$;
COMMENT ON FUNCTION reconcile.action_spoken_of(text, text, text, name, boolean) IS
	'The action of that reference, with or without the installation''s prefix, or else the only one of that artifact id, also if it is archived; NULL if there is none that the sender may speak of.';

-- One equality at a time: that is what an index is always used for.
CREATE FUNCTION reconcile.has_unmatched_word(provider text, client_reference text, submitter name) RETURNS boolean
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET jit = off AS $$
BEGIN
	RETURN EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.provider = $1 AND i.reference = $2
			AND reconcile.may_speak_of(i.sender, i.verified, $3))
		OR EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.provider = $1
			AND i.reference = (reconcile.spoken_names($2))[2] AND reconcile.may_speak_of(i.sender, i.verified, $3));
END $$;
COMMENT ON FUNCTION reconcile.has_unmatched_word(text, text, name) IS
	'Whether something was said about that reference by somebody who may, and has not found its action yet.';

-- What was said before it could be known of which action: it was not there, or the id of its object. Each action looks for its own
-- words by an index, whatever the planner thinks of the table's size: there may be very many that are about nothing of ours.
CREATE FUNCTION reconcile.match_inbox(actions uuid[]) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_nestloop = on
	SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
	IF cardinality($1) = 0 THEN
		RETURN;
	END IF;
	UPDATE reconcile.inbox i SET action_id = m.action_id FROM (
		SELECT u.inbox_id, a.action_id FROM reconcile.action a
		 CROSS JOIN LATERAL unnest(reconcile.spoken_names(a.client_reference)) s (name)
		 CROSS JOIN LATERAL (SELECT x.inbox_id FROM reconcile.inbox x
			WHERE x.provider = a.provider AND x.reference = s.name AND x.action_id IS NULL AND x.applied_at IS NULL
			  AND reconcile.may_speak_of(x.sender, x.verified, a.submitter) FOR UPDATE SKIP LOCKED) u
		 WHERE a.action_id = ANY ($1)) m
	 WHERE i.inbox_id = m.inbox_id;
	UPDATE reconcile.inbox i SET action_id = m.action_id FROM (
		SELECT u.inbox_id, a.action_id FROM reconcile.action a
		 CROSS JOIN LATERAL (SELECT x.inbox_id FROM reconcile.inbox x
			WHERE x.provider = a.provider AND x.artifact_id = a.artifact_id AND x.reference IS NULL AND x.action_id IS NULL AND x.applied_at IS NULL
			  AND reconcile.may_speak_of(x.sender, x.verified, a.submitter)
			  AND NOT EXISTS (SELECT FROM reconcile.action o WHERE o.provider = a.provider AND o.artifact_id = a.artifact_id AND o.action_id <> a.action_id)
			  AND NOT EXISTS (SELECT FROM reconcile.archived_action o WHERE o.provider = a.provider AND o.artifact_id = a.artifact_id)
			FOR UPDATE SKIP LOCKED) u
		 WHERE a.action_id = ANY ($1) AND a.artifact_id IS NOT NULL) m
	 WHERE i.inbox_id = m.inbox_id;
END $$;
COMMENT ON FUNCTION reconcile.match_inbox(uuid[]) IS
	'Give to these actions what was said of their reference, or of the object that is theirs alone, and has no action yet.';

-- How an action that was delivered by somebody's word goes on: polled, or waiting for its verdict no longer than allowed.
CREATE FUNCTION reconcile.verdict_gate(op reconcile.operation) RETURNS bigint
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = op.operation) THEN 0
		ELSE (SELECT coalesce(max(c.elapsed_us), 0) FROM reconcile.clock c) + (extract(epoch FROM op.acceptance_max_age) * 1000000)::bigint END $$;
COMMENT ON FUNCTION reconcile.verdict_gate(reconcile.operation) IS 'When an action that is delivered is next asked about, or given up waiting for, on the logical clock, microseconds.';

CREATE FUNCTION reconcile.apply_to_action(said reconcile.inbox, a reconcile.action, event text, target reconcile.state) RETURNS void
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
	credited integer;
	others bigint;
	becomes reconcile.standing := CASE target WHEN 'succeeded' THEN 'confirmed/accepted' WHEN 'rejected' THEN 'confirmed/rejected' ELSE 'confirmed/pending' END;
	proof jsonb := jsonb_build_object('event', jsonb_strip_nulls(jsonb_build_object('inbox_id', said.inbox_id, 'says', said.says, 'event_id', said.event_id,
		'occurred_at', said.occurred_at, 'artifact_id', said.artifact_id, 'sender', said.sender, 'verified', nullif(said.verified, false),
		-- The words themselves stay in the inbox, where they can be erased.
		'evidence_digest', 'sha256:' || encode(sha256(convert_to(said.evidence::text, 'UTF8')), 'hex'))));
BEGIN
	SELECT * INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	SELECT t.number INTO credited FROM reconcile.attempt t
	 WHERE t.action_id = a.action_id AND t.state IN ('delivered', 'outcome_unknown', 'safe_to_retry', 'rejected')
	   AND (t.state <> 'rejected' OR a.state = 'rejected')
	 ORDER BY t.state = 'delivered' DESC, t.artifact_id = said.artifact_id DESC NULLS LAST, t.state = 'outcome_unknown' DESC, t.event = 'not_sent', t.number DESC LIMIT 1;
	UPDATE reconcile.attempt t SET version = t.version + 1, event = $3, state = target, standing = becomes, evidence = proof,
		artifact_id = CASE t.number WHEN credited THEN coalesce(said.artifact_id, t.artifact_id) ELSE t.artifact_id END
	 WHERE t.action_id = a.action_id
	   -- Those that may have happened at one time carry one key: they are one request, and it is refused.
	   AND (t.number = credited OR $3 = 'refuse' AND t.state IN ('delivered', 'outcome_unknown'));
	-- If another one may have happened too, it is seen after its gate whether there are two.
	SELECT max(t.gate_us) INTO others FROM reconcile.attempt t
	 WHERE t.action_id = a.action_id AND t.number <> credited AND t.state = 'outcome_unknown' AND t.idempotency_key IS NULL;
	UPDATE reconcile.action x SET version = x.version + 1, event = $3, state = target, standing = becomes, attempt_number = credited,
		queued = false, waits = false, held = false, held_because = NULL, evidence = proof,
		artifact_id = CASE a.state WHEN 'succeeded' THEN x.artifact_id ELSE coalesce(said.artifact_id, x.artifact_id) END,
		gate_us = CASE target WHEN 'succeeded' THEN others WHEN 'delivered' THEN reconcile.verdict_gate(op) END, negatives = 0, inconclusives = 0
	 WHERE x.action_id = a.action_id;
	IF reconcile.resolved_status(becomes) <> reconcile.resolved_status(a.standing) THEN
		PERFORM pg_notify('reconcile', json_build_object('action_id', a.action_id, 'state', target, 'status', reconcile.resolved_status(becomes))::text);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.apply_to_action(reconcile.inbox, reconcile.action, text, reconcile.state) IS
	'One step of an action and of the attempt that it is credited to, by what the provider said; a refusal is of every attempt that may have happened.';

-- What follows from a word about an action that stands as it does. Returns the result for the inbox.
CREATE FUNCTION reconcile.weigh(said reconcile.inbox, a reconcile.action) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	yes boolean := said.says IN ('executed', 'accepted');
	decides reconcile.state;
	older boolean;
	spare integer;
	details jsonb := jsonb_strip_nulls(jsonb_build_object('state', a.state, 'artifact_id', a.artifact_id,
		'said', said.says, 'said_of', said.artifact_id, 'inbox_id', said.inbox_id, 'occurred_at', said.occurred_at));
BEGIN
	IF said.says = 'ignored' THEN
		RETURN 'ignored';
	END IF;
	decides := CASE WHEN said.says = 'rejected' THEN 'rejected' WHEN said.says = 'accepted' THEN 'succeeded'
		WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation) THEN 'delivered'
		WHEN EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.event = 'answered_async') THEN 'delivered'
		ELSE 'succeeded' END;
	SELECT coalesce(bool_or(i.occurred_at > said.occurred_at), false) INTO older FROM reconcile.inbox i
	 WHERE i.action_id = a.action_id AND i.result IN ('applied', 'known');

	IF NOT EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.event <> 'not_sent') THEN
		-- Of this installation nothing has left: whatever they saw was not ours, or this is a copy.
		PERFORM reconcile.open_incident('contradiction', a.action_id, details);
		IF a.state = 'planned' AND NOT a.held THEN
			UPDATE reconcile.action x SET version = x.version + 1, event = 'hold', held = true,
				held_because = 'the provider speaks of it, but it was never sent', evidence = jsonb_build_object('reason',
				'the provider speaks of it, but it was never sent', 'inbox_id', said.inbox_id) WHERE x.action_id = a.action_id;
		END IF;
		RETURN 'contradiction';
	END IF;
	IF a.state = 'succeeded' THEN
		IF NOT yes THEN
			PERFORM CASE WHEN NOT older THEN reconcile.open_incident('contradiction', a.action_id, details) END;
			RETURN CASE WHEN older THEN 'older' ELSE 'contradiction' END;
		END IF;
		IF said.artifact_id IS NULL OR said.artifact_id = a.artifact_id
			OR EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.artifact_id = said.artifact_id) THEN
			RETURN 'known';
		END IF;
		-- It was known to have happened, but not yet what it has made.
		IF a.artifact_id IS NULL AND NOT EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.artifact_id IS NOT NULL)
			AND NOT EXISTS (SELECT FROM reconcile.action o WHERE o.provider = a.provider AND o.artifact_id = said.artifact_id)
			AND NOT EXISTS (SELECT FROM reconcile.archived_action o WHERE o.provider = a.provider AND o.artifact_id = said.artifact_id) THEN
			UPDATE reconcile.action x SET version = x.version + 1, event = 'confirm', attempt_number = NULL, artifact_id = said.artifact_id,
				evidence = jsonb_build_object('event', jsonb_strip_nulls(jsonb_build_object('inbox_id', said.inbox_id, 'says', said.says, 'event_id', said.event_id,
					'occurred_at', said.occurred_at, 'artifact_id', said.artifact_id, 'sender', said.sender, 'verified', nullif(said.verified, false))))
			 WHERE x.action_id = a.action_id;
			RETURN 'applied';
		END IF;
		PERFORM reconcile.open_incident('duplicate', a.action_id, details);
		SELECT t.number INTO spare FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state IN ('outcome_unknown', 'safe_to_retry') LIMIT 1;
		IF spare IS NULL THEN
			RETURN 'contradiction';
		END IF;
		PERFORM reconcile.apply_to_action(said, a, 'confirm', 'succeeded');
		RETURN 'applied';
	END IF;
	IF a.state = 'rejected' THEN
		IF said.says <> 'accepted' THEN
			RETURN 'known';
		END IF;
		IF older THEN
			RETURN 'older';
		END IF;
		PERFORM reconcile.open_incident('contradiction', a.action_id, details);
		PERFORM reconcile.apply_to_action(said, a, 'confirm', 'succeeded');
		RETURN 'applied';
	END IF;
	IF reconcile.delivery(a.standing) = 'confirmed' AND said.says = 'executed' THEN
		RETURN 'known';
	END IF;
	IF older AND NOT yes THEN
		RETURN 'older';
	END IF;
	IF reconcile.delivery(a.standing) = 'failed' OR a.queued THEN
		-- Proven not to have happened, and it did.
		IF NOT yes THEN
			RETURN 'known';
		END IF;
		PERFORM reconcile.note_late_confirmation(a.action_id), reconcile.note_wrong_decision(a.action_id);
	END IF;
	PERFORM reconcile.apply_to_action(said, a, CASE WHEN yes THEN 'confirm' ELSE 'refuse' END, decides);
	RETURN 'applied';
END $$;
COMMENT ON FUNCTION reconcile.weigh(reconcile.inbox, reconcile.action) IS
	'What follows from a word of the provider about an action that stands as it does; returns the result for the inbox.';

-- The same about one that is archived: nothing about it changes any more, so whatever speaks against it is for people.
CREATE FUNCTION reconcile.weigh_archived(said reconcile.inbox, x reconcile.archived_action) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	against text := CASE
		WHEN said.says = 'ignored' THEN NULL
		WHEN x.state = 'succeeded' AND said.says = 'rejected' THEN 'contradiction'
		WHEN x.state = 'succeeded' AND said.artifact_id <> x.artifact_id THEN 'duplicate'
		WHEN x.state = 'rejected' AND said.says = 'accepted' THEN 'contradiction'
		WHEN x.state IN ('cancelled', 'expired', 'abandoned') AND said.says <> 'rejected' THEN 'contradiction' END;
BEGIN
	IF said.says = 'ignored' THEN
		RETURN 'ignored';
	ELSIF against IS NULL THEN
		RETURN 'known';
	ELSIF x.last_word_at > said.occurred_at AND x.state IN ('succeeded', 'rejected') AND against = 'contradiction' THEN
		RETURN 'older';
	END IF;
	INSERT INTO reconcile.incident (kind, provider, operation, action_id, details)
	VALUES (against, x.provider, x.operation, x.action_id, jsonb_strip_nulls(jsonb_build_object('state', x.state, 'artifact_id', x.artifact_id, 'archived_at', x.archived_at,
		'said', said.says, 'said_of', said.artifact_id, 'inbox_id', said.inbox_id, 'occurred_at', said.occurred_at)))
	ON CONFLICT (action_id, kind) DO NOTHING;
	RETURN 'contradiction';
END $$;
COMMENT ON FUNCTION reconcile.weigh_archived(reconcile.inbox, reconcile.archived_action) IS
	'What follows from a word of the provider about an archived action: an incident, if it speaks against how that ended. Returns the result for the inbox.';

CREATE FUNCTION reconcile.note_late_confirmation(action_id uuid) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT reconcile.note_window_violation($1, coalesce(a.lookup_position, 1), (extract(epoch FROM clock_timestamp() - t.ended_at) * 1000000)::bigint)
	  FROM (SELECT max(x.ended_at) AS ended_at FROM reconcile.attempt x WHERE x.action_id = $1 AND x.event = 'absent') t,
		LATERAL (SELECT min(l.position) AS lookup_position FROM reconcile.lookup_rule l JOIN reconcile.action x ON x.operation = l.operation
			WHERE x.action_id = $1 AND l.kind <> 'replay_by_key' AND l.absence_proves) a
	 WHERE t.ended_at IS NOT NULL $$;
COMMENT ON FUNCTION reconcile.note_late_confirmation(uuid) IS 'An attempt that lookups had proven not to have happened did happen: the window was broken.';

CREATE FUNCTION reconcile.apply_inbox_row(inbox_id bigint) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	said reconcile.inbox;
	a reconcile.action;
	gone reconcile.archived_action;
	outcome text;
BEGIN
	SELECT * INTO said FROM reconcile.inbox i WHERE i.inbox_id = $1 AND i.applied_at IS NULL FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	IF said.action_id IS NULL THEN
		said.action_id := reconcile.action_spoken_of(said.provider, said.reference, said.artifact_id, said.sender, said.verified);
		UPDATE reconcile.inbox i SET action_id = said.action_id WHERE i.inbox_id = $1 AND said.action_id IS NOT NULL;
	END IF;
	-- Never waited for: what is being sent, or held by somebody, is left to the engine.
	IF said.action_id IS NULL OR NOT reconcile.try_lock_action(said.action_id) THEN
		RETURN NULL;
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = said.action_id FOR NO KEY UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		SELECT * INTO gone FROM reconcile.archived_action x WHERE x.action_id = said.action_id;
	END IF;
	IF NOT FOUND OR a.state = 'submitted' THEN
		RETURN NULL;
	END IF;
	outcome := CASE WHEN a.action_id IS NOT NULL THEN reconcile.weigh(said, a) ELSE reconcile.weigh_archived(said, gone) END;
	UPDATE reconcile.inbox i SET applied_at = clock_timestamp(), result = outcome WHERE i.inbox_id = $1;
	RETURN outcome;
EXCEPTION
	WHEN serialization_failure OR lock_not_available OR deadlock_detected THEN
		RETURN NULL;
	WHEN object_not_in_prerequisite_state THEN
		-- A step that the rules refuse must neither lose the word nor stop the engine.
		PERFORM reconcile.open_incident('contradiction', said.action_id, jsonb_build_object('problem', SQLERRM, 'said', said.says, 'inbox_id', said.inbox_id));
		UPDATE reconcile.inbox i SET action_id = said.action_id, applied_at = clock_timestamp(), result = 'contradiction' WHERE i.inbox_id = $1;
		RETURN 'contradiction';
END $$;
COMMENT ON FUNCTION reconcile.apply_inbox_row(bigint) IS
	'Apply something from the inbox, if its action is there and free; returns its result, or NULL: then the engine will apply it.';

CREATE FUNCTION reconcile.take_in(provider text, event_id text, says text, reference text, artifact_id text, occurred_at timestamptz, evidence jsonb,
		verified boolean DEFAULT false, body bytea DEFAULT NULL,
		OUT inbox_id bigint, OUT action_id uuid, OUT result text)
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	INSERT INTO reconcile.inbox AS i (provider, event_id, says, reference, artifact_id, occurred_at, evidence, verified, body, action_id)
		VALUES ($1, $2, $3, $4, $5, $6, coalesce($7, '{}'), $8, $9, reconcile.action_spoken_of($1, $4, $5, session_user, $8))
		ON CONFLICT (provider, event_id) WHERE event_id IS NOT NULL DO NOTHING
		RETURNING i.inbox_id INTO take_in.inbox_id;
	IF take_in.inbox_id IS NULL THEN
		SELECT i.inbox_id, i.action_id, coalesce(i.result, 'stored') INTO take_in.inbox_id, take_in.action_id, take_in.result
		  FROM reconcile.inbox i WHERE i.provider = $1 AND i.event_id = $2;
		RETURN;
	END IF;
	result := coalesce(CASE WHEN $3 = 'ignored' THEN 'ignored' ELSE reconcile.apply_inbox_row(take_in.inbox_id) END, 'stored');
	UPDATE reconcile.inbox i SET applied_at = clock_timestamp(), result = 'ignored' WHERE i.inbox_id = take_in.inbox_id AND $3 = 'ignored';
	SELECT i.action_id INTO take_in.action_id FROM reconcile.inbox i WHERE i.inbox_id = take_in.inbox_id;
	PERFORM reconcile.wake();
END $$;
COMMENT ON FUNCTION reconcile.take_in(text, text, text, text, text, timestamptz, jsonb, boolean, bytea) IS
	'Store a word about an action, and apply it if the action is free. The same event_id of a provider is stored once. result: as inbox.result, or stored: it is applied later.';

CREATE FUNCTION reconcile.provider_of_reference(reference text, provider text) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	found_at text[];
BEGIN
	IF $2 IS NOT NULL THEN
		IF NOT EXISTS (SELECT FROM reconcile.provider p WHERE p.provider = $2) THEN
			RAISE EXCEPTION 'provider "%" does not exist', $2 USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.provider.';
		END IF;
		RETURN $2;
	END IF;
	SELECT array_agg(p.provider ORDER BY p.provider) INTO found_at FROM reconcile.provider p
	 WHERE reconcile.action_spoken_of(p.provider, $1, NULL, session_user) IS NOT NULL;
	IF cardinality(found_at) = 1 THEN
		RETURN found_at[1];
	END IF;
	RAISE EXCEPTION 'reference "%" names % of your actions', $1, CASE WHEN found_at IS NULL THEN 'none' ELSE 'several' END
		USING ERRCODE = CASE WHEN found_at IS NULL THEN 'undefined_object' ELSE 'ambiguous_alias' END,
		HINT = 'Say of which provider: then it is kept until there is an action of that name.';
END $$;
COMMENT ON FUNCTION reconcile.provider_of_reference(text, text) IS
	'The provider at which a reference names an action. Errors: 42704 there is no such provider or action, 42P09 there are several.';

-- An event id of a caller's is the caller's own: it cannot stand in the way of an event of the provider.
CREATE FUNCTION reconcile.confirm(reference text, artifact_id text DEFAULT NULL, evidence jsonb DEFAULT '{}', provider text DEFAULT NULL,
		event_id text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL)
	RETURNS TABLE (action_id uuid, state reconcile.state, status reconcile.status, result text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	taken record;
BEGIN
	SELECT * INTO taken FROM reconcile.take_in(reconcile.provider_of_reference($1, $4), 'from ' || session_user || ': ' || $5, 'executed', $1, $2, $6, $3);
	RETURN QUERY SELECT s.action_id, s.state, s.status, taken.result FROM (SELECT taken.action_id) t LEFT JOIN reconcile.action_status s ON s.action_id = t.action_id;
END $$;
COMMENT ON FUNCTION reconcile.confirm(text, text, jsonb, text, text, timestamptz) IS
	'The provider has been seen to have carried out the action of that client reference. Never waits: result says whether it was applied, is known already, or is stored to be applied when the action is free or appears. A queued replacement is cancelled with it.';

CREATE FUNCTION reconcile.verdict(reference text, verdict text, evidence jsonb DEFAULT '{}', provider text DEFAULT NULL,
		event_id text DEFAULT NULL, occurred_at timestamptz DEFAULT NULL)
	RETURNS TABLE (action_id uuid, state reconcile.state, status reconcile.status, result text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	taken record;
	at_provider text := reconcile.provider_of_reference($1, $4);
	stands record;
BEGIN
	IF $2 IS NULL OR $2 NOT IN ('accepted', 'rejected') THEN
		RAISE EXCEPTION 'a verdict is accepted or rejected, not "%"', $2 USING ERRCODE = '22023', HINT = 'To say that the provider has it, call confirm().';
	END IF;
	SELECT s.* INTO stands FROM reconcile.action_status s WHERE s.action_id = reconcile.action_spoken_of(at_provider, $1, NULL, session_user);
	IF FOUND AND stands.delivery <> 'confirmed' THEN
		RAISE EXCEPTION 'action "%" cannot have a verdict: its delivery is % (state %)', stands.action_id, stands.delivery, stands.state
			USING ERRCODE = '55000', HINT = 'If the provider was seen to have it, call confirm() first.';
	END IF;
	SELECT * INTO taken FROM reconcile.take_in(at_provider, 'from ' || session_user || ': ' || $5, $2, $1, NULL, $6, $3);
	RETURN QUERY SELECT s.action_id, s.state, s.status, taken.result FROM (SELECT taken.action_id) t LEFT JOIN reconcile.action_status s ON s.action_id = t.action_id;
END $$;
COMMENT ON FUNCTION reconcile.verdict(text, text, jsonb, text, text, timestamptz) IS
	'The provider''s verdict on an action that it has: accepted or rejected. Error 55000 as long as its delivery is not confirmed. Otherwise as confirm().';
