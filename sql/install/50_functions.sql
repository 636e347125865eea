-- What applications and operators call.

CREATE FUNCTION reconcile.submit(operation text, payload jsonb, intent_key text DEFAULT NULL, client_reference text DEFAULT NULL,
		not_before timestamptz DEFAULT NULL, not_after timestamptz DEFAULT NULL, priority integer DEFAULT 0,
		ordering_key text DEFAULT NULL, depends_on uuid[] DEFAULT NULL, on_duplicate text DEFAULT 'join',
		after_failure boolean DEFAULT false, hold boolean DEFAULT false)
	RETURNS TABLE (action_id uuid, state reconcile.state, status reconcile.status, joined boolean, advice text,
		next_step_at timestamptz, fingerprint reconcile.intent_fingerprint, reference text, may_repeat boolean)
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET action_reconcile.joining = 'on' AS $$
#variable_conflict use_column
DECLARE
	op reconcile.operation;
	found_action reconcile.action;
	wanted reconcile.intent_fingerprint;
	made uuid;
BEGIN
	IF $10 IS NULL OR $10 NOT IN ('join', 'new') THEN
		RAISE EXCEPTION 'on_duplicate must be join or new, not "%"', $10
			USING ERRCODE = '22023', HINT = 'join returns the unresolved action with the same intent; new records a deliberate repetition.';
	END IF;
	SELECT * INTO op FROM reconcile.operation o WHERE o.operation = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'Define it in reconcile.operation; the names are in that table.';
	END IF;
	wanted := reconcile.intent_fingerprint(op.method, op.path, $2);

	FOR round IN 1 .. 10 LOOP
		found_action := NULL;
		IF $3 IS NOT NULL THEN
			SELECT * INTO found_action FROM reconcile.action a
			 WHERE a.submitter = session_user AND a.operation = $1 AND a.intent_key = $3;
			IF NOT FOUND THEN
				-- In this order: what moves into the archive meanwhile is there by then.
				SELECT x.action_id, x.fingerprint, x.state INTO found_action.action_id, found_action.fingerprint, found_action.state FROM reconcile.archived_action x
				 WHERE x.submitter = session_user AND x.operation = $1 AND x.intent_key = $3;
			END IF;
			IF FOUND AND found_action.fingerprint OPERATOR(reconcile.<>) wanted THEN
				RAISE EXCEPTION 'intent key "%" already names another intent: action "%"', $3, found_action.action_id
					USING ERRCODE = 'unique_violation',
					DETAIL = format('That action has the fingerprint %s, this call %s.', found_action.fingerprint, wanted),
					HINT = 'A changed payload is a new intent and needs a key of its own.';
			END IF;
		ELSIF $10 = 'join' THEN
			SELECT * INTO found_action FROM reconcile.action a
			 WHERE a.fingerprint OPERATOR(reconcile.=) wanted AND a.operation = $1 AND a.submitter = session_user
			   AND a.intent_key IS NULL AND NOT a.deliberate_repeat
			   AND a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered');
			IF NOT FOUND THEN
				-- The same intent after proof of absence continues that very action, so that a late confirmation still protects it.
				SELECT * INTO found_action FROM reconcile.action a
				 WHERE a.fingerprint OPERATOR(reconcile.=) wanted AND a.operation = $1 AND a.submitter = session_user
				   AND a.intent_key IS NULL AND NOT a.deliberate_repeat AND a.state = 'safe_to_retry'
				 ORDER BY a.submitted_at DESC LIMIT 1;
			END IF;
		END IF;

		IF found_action.action_id IS NOT NULL THEN
			IF found_action.state = 'safe_to_retry' THEN
				-- Somebody else may do the same at the same time: whoever locks it first queues it.
				SELECT * INTO found_action FROM reconcile.action a WHERE a.action_id = found_action.action_id FOR UPDATE;
				IF found_action.state = 'safe_to_retry' THEN
					PERFORM reconcile.replace(found_action.action_id, 'the same intent was submitted again'::text);
				END IF;
			END IF;
			INSERT INTO reconcile.joined_submission (action_id, joined_at, joined_by, state)
				VALUES (found_action.action_id, clock_timestamp(), session_user, found_action.state);
			RETURN QUERY SELECT s.action_id, s.state, s.status, true, s.advice, s.next_step_at, s.fingerprint, s.client_reference, s.may_repeat
				FROM reconcile.action_status s WHERE s.action_id = found_action.action_id;
			RETURN;
		END IF;

		INSERT INTO reconcile.action AS a (operation, payload, intent_key, client_reference, not_before, not_after, deliberate_repeat,
				priority, ordering_key, depends_on, after_failure, held)
			VALUES ($1, $2, $3, $4, $5, $6, $10 = 'new', coalesce($7, 0), $8, $9, coalesce($11, false), coalesce($12, false))
			ON CONFLICT DO NOTHING RETURNING a.action_id INTO made;
		IF made IS NOT NULL THEN
			RETURN QUERY SELECT s.action_id, s.state, s.status, false, s.advice, s.next_step_at, s.fingerprint, s.client_reference, s.may_repeat
				FROM reconcile.action_status s WHERE s.action_id = made;
			RETURN;
		END IF;
		IF $4 IS NOT NULL AND round > 1 THEN
			RAISE EXCEPTION 'client reference "%" is already used at provider "%"', $4, op.provider
				USING ERRCODE = 'unique_violation', HINT = 'One reference names one action; leave it out to get a fresh one.';
		END IF;
	END LOOP;
	RAISE EXCEPTION 'the intent could not be recorded: equal ones keep coming and going'
		USING ERRCODE = 'serialization_failure', HINT = 'Submit it again.';
END $$;
COMMENT ON FUNCTION reconcile.submit(text, jsonb, text, text, timestamptz, timestamptz, integer, text, uuid[], text, boolean, boolean) IS
	'Record an intent. The action with the same intent_key, or without a key the unresolved one with the same fingerprint, comes back instead of a second one (joined); one that was proven not to have happened is queued again; on_duplicate => new records a deliberate repetition. priority is from -2 to 2; actions with one ordering_key go out one after another; depends_on are actions that must have succeeded; hold keeps it back until release(). Errors: 42704 no such operation, 23505 the key names another intent, 22023 the request could not be made.';

CREATE FUNCTION reconcile.arm(reason text) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_arm' LANGUAGE C VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION reconcile.arm(text) IS
	'Allow this database to send: writes a fresh token into the file in action_reconcile.arming_dir. A copy of the database has no such file and sends nothing. Errors: 22023 no reason, 55000 no usable directory.';

CREATE FUNCTION reconcile.wait_until_resolved(action_id uuid, timeout interval) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_wait_until_resolved' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.wait_until_resolved(uuid, interval) IS 'Wait until an action is no longer DENIED_UNRESOLVED; see wait().';

CREATE FUNCTION reconcile.wait(action_id uuid, timeout interval DEFAULT '30 seconds') RETURNS SETOF reconcile.action_status
	LANGUAGE plpgsql VOLATILE STRICT ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM reconcile.wait_until_resolved($1, $2);
	RETURN QUERY SELECT * FROM reconcile.action_status s WHERE s.action_id = $1;
END $$;
COMMENT ON FUNCTION reconcile.wait(uuid, interval) IS
	'Wait, at most a minute, until an action is resolved, and return where it stands; look at status, it may still be DENIED_UNRESOLVED. Errors: 42704 no such action, 25001 in REPEATABLE READ or with the caller''s own uncommitted action, 22023 timeout out of range.';

CREATE FUNCTION reconcile.receipt_of(a reconcile.action) RETURNS jsonb
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
	SELECT jsonb_build_object(
		'operation_id', a.action_id,
		'operation', a.operation,
		'client_reference', a.client_reference,
		'state', a.state,
		'status', reconcile.resolved_status(a.standing),
		'intent_fingerprint', a.fingerprint::text,
		'external_id', a.artifact_id,
		'chain_head', encode(a.chain_head, 'hex'),
		'joined_submissions', (
			SELECT coalesce(jsonb_agg(jsonb_build_object('joined_at', j.joined_at, 'joined_by', j.joined_by, 'state', j.state)
					ORDER BY j.joined_at), '[]')
			  FROM reconcile.joined_submission j WHERE j.action_id = a.action_id),
		'state_history', (
			SELECT jsonb_agg(jsonb_build_object(
					'state', h.to_state, 'standing', h.standing::text, 'event', h.event, 'attempt', h.attempt_number,
					'recorded_at', h.recorded_at, 'actor', h.actor, 'evidence', h.evidence,
					'hash', encode(h.hash, 'hex')) ORDER BY h.version)
			  FROM reconcile.history h WHERE h.action_id = a.action_id)) $$;
COMMENT ON FUNCTION reconcile.receipt_of(reconcile.action) IS 'The receipt of an action that is not archived.';

CREATE FUNCTION reconcile.receipt_of(x reconcile.archived_action) RETURNS jsonb
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
	SELECT coalesce(x.receipt, jsonb_build_object(
		'operation_id', x.action_id,
		'operation', x.operation,
		'client_reference', x.client_reference,
		'state', x.state,
		'status', reconcile.resolved_status(x.standing),
		'intent_fingerprint', x.fingerprint::text,
		'external_id', x.artifact_id,
		'chain_head', encode(x.chain_head, 'hex'),
		'state_history', NULL)) || jsonb_build_object('archived_at', x.archived_at) $$;
COMMENT ON FUNCTION reconcile.receipt_of(reconcile.archived_action) IS
	'The receipt of an archived action: as it was kept, or without its history, which is gone.';

CREATE FUNCTION reconcile.receipt(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT reconcile.receipt_of(a) FROM reconcile.action a WHERE a.action_id = $1 AND reconcile.may_see(a.submitter)
	UNION ALL
	SELECT reconcile.receipt_of(x) FROM reconcile.archived_action x WHERE x.action_id = $1 AND reconcile.may_see(x.submitter) $$;
COMMENT ON FUNCTION reconcile.receipt(uuid) IS
	'Everything that happened to an action, as one document: states, evidence, external id, hashes. Of an archived action: with archived_at, and with state_history only if that was kept. NULL if there is no such action.';

CREATE FUNCTION reconcile.verify_receipt(receipt jsonb, OUT version bigint, OUT problem text) RETURNS SETOF record
	LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
	WITH entry AS (
		SELECT e.version, e.entry ->> 'hash' AS hash, encode(reconcile.history_hash(($1 ->> 'operation_id')::uuid, e.version::integer,
				(e.entry ->> 'recorded_at')::timestamptz, (e.entry ->> 'attempt')::integer, e.entry ->> 'event',
				(lag(e.entry) OVER w ->> 'state')::reconcile.state, (e.entry ->> 'state')::reconcile.state,
				(e.entry ->> 'standing')::reconcile.standing, e.entry -> 'evidence', e.entry ->> 'actor',
				coalesce(decode(lag(e.entry) OVER w ->> 'hash', 'hex'), '\x')), 'hex') AS expected
		  FROM jsonb_array_elements(CASE jsonb_typeof($1 -> 'state_history') WHEN 'array' THEN $1 -> 'state_history' ELSE '[]' END)
			WITH ORDINALITY AS e (entry, version)
		WINDOW w AS (ORDER BY e.version)
	), head AS (
		SELECT encode(a.chain_head, 'hex') AS hash FROM reconcile.action a WHERE a.action_id = ($1 ->> 'operation_id')::uuid AND reconcile.may_see(a.submitter)
		UNION ALL
		SELECT encode(x.chain_head, 'hex') FROM reconcile.archived_action x WHERE x.action_id = ($1 ->> 'operation_id')::uuid AND reconcile.may_see(x.submitter)
	)
	SELECT e.version, 'was changed after it was written' FROM entry e WHERE e.hash IS DISTINCT FROM e.expected
	UNION ALL
	SELECT NULL, 'there is no such action' WHERE NOT EXISTS (SELECT FROM head)
	UNION ALL
	SELECT (SELECT max(e.version) FROM entry e), 'does not end where the action stands'
	 WHERE EXISTS (SELECT FROM head) AND NOT EXISTS (SELECT FROM head h JOIN entry e ON e.hash = h.hash AND e.version = (SELECT max(m.version) FROM entry m))
	 ORDER BY 1 NULLS LAST $$;
COMMENT ON FUNCTION reconcile.verify_receipt(jsonb) IS
	'What is wrong with a copy of receipt() that was kept elsewhere: its hash chain is computed anew and compared with the chain head of the action, also of an archived one. No row means that it is genuine and complete.';

CREATE FUNCTION reconcile.verify_history(action_id uuid DEFAULT NULL, OUT action_id uuid, OUT version integer, OUT problem text)
	RETURNS SETOF record
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH entry AS (
		SELECT h.*, lag(h.hash) OVER w AS hash_before, lag(h.version) OVER w AS version_before,
			lag(h.to_state) OVER w AS state_before
		  FROM reconcile.history h
		 WHERE $1 IS NULL OR h.action_id = $1
		WINDOW w AS (PARTITION BY h.action_id ORDER BY h.version)
	)
	SELECT e.action_id, e.version, p.problem
	  FROM entry e CROSS JOIN LATERAL (VALUES
		(e.version IS DISTINCT FROM coalesce(e.version_before, 0) + 1, 'entries are missing before this one'),
		(e.previous_hash IS DISTINCT FROM coalesce(e.hash_before, ''::bytea), 'does not continue the entry before'),
		(e.from_state IS DISTINCT FROM e.state_before, 'does not start where the entry before ended'),
		(e.hash IS DISTINCT FROM reconcile.history_hash(e.action_id, e.version, e.recorded_at, e.attempt_number, e.event,
			e.from_state, e.to_state, e.standing, e.evidence, e.actor, e.previous_hash), 'was changed after it was written')
	  ) AS p (bad, problem)
	 WHERE p.bad
	UNION ALL
	SELECT a.action_id, a.version, 'the history does not end where the action stands'
	  FROM reconcile.action a
	 WHERE ($1 IS NULL OR a.action_id = $1)
	   AND NOT EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.version = a.version AND h.hash = a.chain_head)
	 ORDER BY 1, 2 $$;
COMMENT ON FUNCTION reconcile.verify_history(uuid) IS
	'What is wrong with the history of an action, or of all of them: no row means that every chain is whole.';

CREATE FUNCTION reconcile.fold_violation(OUT action_id uuid, OUT standing reconcile.standing, OUT folded reconcile.standing)
	RETURNS SETOF record
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id, a.standing, f.folded
	  FROM reconcile.action a
	  CROSS JOIN LATERAL (
		SELECT reconcile.fold(coalesce(array_agg(t.standing), '{}'), a.queued) AS folded
		  FROM reconcile.attempt t WHERE t.action_id = a.action_id) f
	 WHERE a.standing OPERATOR(reconcile.<>) f.folded $$;
COMMENT ON FUNCTION reconcile.fold_violation() IS 'Actions whose standing does not follow from their attempts: must be empty.';

CREATE PROCEDURE reconcile.run(max_duration interval DEFAULT '50 seconds', stop_when_idle boolean DEFAULT true,
		INOUT holder_pid integer DEFAULT NULL, INOUT sent integer DEFAULT NULL, INOUT answered integer DEFAULT NULL, INOUT asked integer DEFAULT NULL)
	AS 'MODULE_PATHNAME', 'ar_run' LANGUAGE C;
COMMENT ON PROCEDURE reconcile.run(interval, boolean, integer, integer, integer, integer) IS
	'Run the engine in this session, for a database without the worker. Returns at once with the holder''s pid if another engine works. stop_when_idle ends it when nothing is due or open. Cannot run inside a transaction block.';
