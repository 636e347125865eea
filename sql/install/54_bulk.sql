-- What people do to many actions at once: chosen and shown first, then done one by one.

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
		detail := CASE WHEN EXISTS (SELECT FROM reconcile.archived_action x WHERE x.action_id = i.action_id) THEN 'it is archived'
			ELSE 'busy: somebody else is working on it' END;
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
