-- Triggers: what is filled in, what is refused, what is put into the history.
-- All ENABLE ALWAYS, so that session_replication_role cannot switch them off.

CREATE FUNCTION reconcile.may_see(submitter name) RETURNS boolean
	LANGUAGE sql STABLE STRICT PARALLEL SAFE
	RETURN submitter = session_user OR pg_has_role(session_user, 'reconcile_reader', 'MEMBER');
COMMENT ON FUNCTION reconcile.may_see(name) IS 'A submitter sees its own actions; readers, operators and admins see all.';

CREATE FUNCTION reconcile.installation_prefix() RETURNS text
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	result text;
BEGIN
	SELECT prefix INTO result FROM reconcile.installation;
	IF NOT FOUND THEN
		INSERT INTO reconcile.installation (prefix) VALUES (substr(replace(gen_random_uuid()::text, '-', ''), 1, 8))
			ON CONFLICT DO NOTHING;
		SELECT prefix INTO STRICT result FROM reconcile.installation;
	END IF;
	RETURN result;
END $$;
COMMENT ON FUNCTION reconcile.installation_prefix() IS 'The prefix of this installation''s client references; made at the first call.';

CREATE FUNCTION reconcile.caller_reference(op reconcile.operation, given text) RETURNS text
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	result text := $2;
	characters text := CASE op.reference_format WHEN 'hex' THEN '0-9a-f' WHEN 'base32hex' THEN '0-9a-v' ELSE '0-9A-Za-z' END;
BEGIN
	IF $2 = '' THEN
		RAISE EXCEPTION 'client reference for operation "%" is empty', op.operation USING ERRCODE = '22023', HINT = 'Leave it out to get a fresh one.';
	END IF;
	IF NOT op.reference_is_global THEN
		result := reconcile.installation_prefix() || CASE op.reference_format WHEN 'uuid' THEN '-' ELSE '' END || result;
	END IF;
	-- What no operation takes, the guard refuses for all of them.
	IF op.reference_max_length < 200 AND length(result) > op.reference_max_length THEN
		RAISE EXCEPTION 'client reference "%" is too long: operation "%" takes % characters', result, op.operation, op.reference_max_length
			USING ERRCODE = '22023', HINT = 'Leave it out to get a fresh one.';
	END IF;
	IF op.reference_format <> 'uuid' AND result !~ ('^[' || characters || ']+$') THEN
		RAISE EXCEPTION 'client reference "%" cannot be sent: operation "%" takes only [%]', result, op.operation, characters
			USING ERRCODE = '22023', HINT = 'Leave it out to get a fresh one.';
	END IF;
	RETURN result;
END $$;
COMMENT ON FUNCTION reconcile.caller_reference(reconcile.operation, text) IS
	'A caller''s own reference as it goes out: with the installation''s prefix, unless the operation takes it for globally unique. Error 22023 if the provider cannot keep it.';

CREATE FUNCTION reconcile.lock_ordering_key(submitter name, ordering_key text, action_id uuid) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_lock_ordering_key' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.lock_ordering_key(name, text, uuid) IS
	'Wait, to the end of the transaction, until nobody else submits with an ordering key of a submitter. true: the id is the last one that new_action_id() has made in this session, so nobody knows it yet.';

CREATE FUNCTION reconcile.dependency_values(depends_on uuid[], sample text DEFAULT NULL) RETURNS jsonb
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_build_object('depends_on', jsonb_object_agg(d.place, jsonb_build_object('artifact_id', coalesce(a.artifact_id, $2),
		'client_reference', a.client_reference)))
	  FROM unnest($1) WITH ORDINALITY AS d(action_id, place) JOIN reconcile.action a ON a.action_id = d.action_id $$;
COMMENT ON FUNCTION reconcile.dependency_values(uuid[], text) IS
	'What a request may name of the actions it depends on: {depends_on.1.artifact_id}, {depends_on.1.client_reference}; the sample stands for an id that is not known yet.';

CREATE FUNCTION reconcile.action_prepare() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
	winner uuid;
	winner_fingerprint reconcile.intent_fingerprint;
	is_fresh boolean;
BEGIN
	IF NEW.version IS NOT NULL THEN
		RETURN NEW;				-- a restored row is complete as it is
	END IF;
	SELECT * INTO op FROM reconcile.operation o WHERE o.operation = NEW.operation;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', NEW.operation
			USING ERRCODE = 'undefined_object', HINT = 'Define it in reconcile.operation; the names are in that table.';
	END IF;
	NEW.provider := op.provider;
	NEW.submitter := session_user;
	-- The order of the ids is the order in which they are committed. What has been committed while the lock was waited for
	-- is seen by the next statement only.
	is_fresh := reconcile.lock_ordering_key(NEW.submitter, NEW.ordering_key, NEW.action_id);
	IF is_fresh AND EXISTS (SELECT FROM reconcile.action a WHERE a.submitter = NEW.submitter AND a.ordering_key = NEW.ordering_key AND a.action_id > NEW.action_id) THEN
		NEW.action_id := reconcile.new_action_id();
	END IF;
	NEW.submitted_at := clock_timestamp();
	NEW.due_at := greatest(NEW.not_before, NEW.submitted_at);
	NEW.fingerprint := reconcile.intent_fingerprint(op.method, op.path, NEW.payload);
	IF NEW.client_reference IS NULL THEN
		NEW.client_reference := reconcile.make_identifier(NEW.action_id, 0, op.reference_format);
	ELSE
		NEW.client_reference := reconcile.caller_reference(op, NEW.client_reference);
	END IF;
	IF EXISTS (SELECT FROM reconcile.archived_action x WHERE x.action_id = NEW.action_id)
		OR EXISTS (SELECT FROM reconcile.archived_action x WHERE x.provider = NEW.provider AND x.client_reference = NEW.client_reference) THEN
		PERFORM reconcile.refuse_archived(NEW.action_id, NEW.provider, NEW.client_reference);
	END IF;
	NEW.key_generation := 0;
	IF reconcile.takes_key(op) THEN
		NEW.idempotency_key := CASE op.key_format WHEN 'reference' THEN NEW.client_reference
			ELSE reconcile.make_identifier(NEW.action_id, 0, op.key_format) END;
	END IF;
	IF NEW.depends_on IS NOT NULL AND (cardinality(NEW.depends_on) = 0 OR cardinality(NEW.depends_on) <>
			(SELECT count(DISTINCT d.action_id) FROM (SELECT a.action_id FROM reconcile.action a
				WHERE a.action_id = ANY (NEW.depends_on) AND reconcile.may_see(a.submitter) FOR KEY SHARE) d)) THEN	-- none of them is archived meanwhile
		RAISE EXCEPTION 'depends_on of an action names actions that do not exist, or are not yours, or one of them twice'
			USING ERRCODE = '22023', HINT = 'Give the action_ids that submit() has returned. What is archived is over long since, and nothing can depend on it.';
	END IF;
	IF NEW.ordering_key !~ '[^[:space:]]' OR octet_length(NEW.ordering_key) > 255 THEN
		RAISE EXCEPTION 'ordering_key of an action is blank or too long'
			USING ERRCODE = '22023', HINT = 'Use up to 255 bytes, or leave it out.';
	END IF;
	NEW.waits := NEW.ordering_key IS NOT NULL OR NEW.depends_on IS NOT NULL;
	NEW.held := NEW.held OR op.requires_approval;
	NEW.held_because := CASE WHEN op.requires_approval THEN 'it waits for approval' WHEN NEW.held THEN coalesce(NEW.held_because, 'it waits for approval') END;
	-- What a lost delete or update has done can only be told by who knows what was there before.
	IF op.effect <> 'create' AND EXISTS (SELECT FROM reconcile.lookup_rule l
			WHERE l.operation = op.operation AND l.kind <> 'replay_by_key' AND l.absence_proves) THEN
		NEW.looked_at := '-infinity';
	END IF;
	-- submit() has looked, and joins what it finds; of two at the same time, an index decides.
	IF current_setting('action_reconcile.joining', true) = 'on' THEN
		NULL;
	ELSIF NEW.intent_key IS NOT NULL THEN
		SELECT a.action_id, a.fingerprint INTO winner, winner_fingerprint FROM reconcile.action a
		 WHERE a.submitter = NEW.submitter AND a.operation = NEW.operation AND a.intent_key = NEW.intent_key;
		IF winner IS NULL THEN
			SELECT x.action_id, x.fingerprint INTO winner, winner_fingerprint FROM reconcile.archived_action x
			 WHERE x.submitter = NEW.submitter AND x.operation = NEW.operation AND x.intent_key = NEW.intent_key;
		END IF;
		IF winner IS NOT NULL THEN
			RAISE EXCEPTION 'intent key "%" already names action "%"', NEW.intent_key, winner
				USING ERRCODE = 'unique_violation',
				DETAIL = format('That action has the fingerprint %s, this one %s.', winner_fingerprint, NEW.fingerprint),
				HINT = CASE WHEN winner_fingerprint OPERATOR(reconcile.=) NEW.fingerprint THEN 'It is the same intent: follow that action. submit() would have returned it.'
					ELSE 'A changed payload is a new intent and needs a key of its own.' END;
		END IF;
	ELSIF NOT NEW.deliberate_repeat THEN
		SELECT a.action_id INTO winner FROM reconcile.action a
		 WHERE a.fingerprint OPERATOR(reconcile.=) NEW.fingerprint AND a.operation = NEW.operation
		   AND a.submitter = NEW.submitter AND a.intent_key IS NULL AND NOT a.deliberate_repeat
		   AND a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered');
		IF FOUND THEN
			RAISE EXCEPTION 'an equal intent for operation "%" is not resolved yet: action "%"', NEW.operation, winner
				USING ERRCODE = 'unique_violation',
				DETAIL = format('Both have the fingerprint %s.', NEW.fingerprint),
				HINT = 'Follow that action instead of repeating it; if a second equal effect is really wanted, insert with deliberate_repeat = true.';
		END IF;
	END IF;
	-- Everything that could make the request impossible is refused now, with the caller's words still there.
	PERFORM reconcile.render_request(op, NEW.client_reference, NEW.payload, NEW.idempotency_key,
		CASE WHEN NEW.depends_on IS NOT NULL THEN reconcile.dependency_values(NEW.depends_on, 'id') END);
	RETURN NEW;
END $$;
COMMENT ON FUNCTION reconcile.action_prepare() IS 'Trigger: fills in what follows from the operation, and refuses an action whose request could not be made.';

CREATE FUNCTION reconcile.action_guard() RETURNS trigger
	AS 'MODULE_PATHNAME', 'ar_action_guard' LANGUAGE C;
COMMENT ON FUNCTION reconcile.action_guard() IS
	'Trigger: refuses every change of an action that transition_rule does not hold, and continues its hash chain. SQLSTATE 55000.';

CREATE FUNCTION reconcile.attempt_guard() RETURNS trigger
	AS 'MODULE_PATHNAME', 'ar_attempt_guard' LANGUAGE C;
COMMENT ON FUNCTION reconcile.attempt_guard() IS
	'Trigger: refuses every change of an attempt that transition_rule does not hold. SQLSTATE 55000.';

CREATE FUNCTION reconcile.action_inserted() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
	-- Restored rows bring their history along: only rows made by this very transaction are new.
	INSERT INTO reconcile.history (action_id, version, recorded_at, attempt_number, event, from_state, to_state,
			standing, evidence, actor, transaction, previous_hash, hash)
	SELECT n.action_id, n.version, n.recorded_at, n.attempt_number, n.event, NULL, n.state,
			n.standing, n.evidence, n.actor, n.transaction, ''::bytea, n.chain_head
	  FROM new_rows n
	 WHERE n.transaction = pg_current_xact_id() AND n.recorded_at >= statement_timestamp() AND n.version = 1;
	-- What was said about it before it was there; only by somebody who may.
	IF EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.reference IS NOT NULL) THEN
		PERFORM reconcile.match_inbox(ARRAY(SELECT n.action_id FROM new_rows n WHERE reconcile.has_unmatched_word(n.provider, n.client_reference, n.submitter)));
	END IF;
	PERFORM reconcile.wake();
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.action_inserted() IS 'Trigger: begins the history of new actions and wakes the engine when they commit.';

-- The two transition tables are as large as a statement, which the planner cannot know: never a nested loop.
CREATE FUNCTION reconcile.action_updated() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET enable_seqscan = off AS $$
BEGIN
	INSERT INTO reconcile.history (action_id, version, recorded_at, attempt_number, event, from_state, to_state,
			standing, evidence, actor, transaction, previous_hash, hash)
	SELECT n.action_id, n.version, n.recorded_at, n.attempt_number, n.event, o.state, n.state,
			n.standing, n.evidence, n.actor, n.transaction, o.chain_head, n.chain_head
	  FROM new_rows n JOIN old_rows o USING (action_id)
	 WHERE n.version > o.version;
	-- Mostly nothing waits for its action, which is seen at once.
	IF EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.reference IS NOT NULL)
		OR EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL AND i.reference IS NULL) THEN
		PERFORM reconcile.match_inbox(ARRAY(SELECT n.action_id FROM new_rows n JOIN old_rows o USING (action_id)
			WHERE n.version > o.version AND (o.state = 'submitted' OR n.artifact_id IS DISTINCT FROM o.artifact_id)));
	END IF;
	PERFORM reconcile.wake();
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.action_updated() IS 'Trigger: appends the transitions of a statement to the history and wakes the engine when they commit.';

CREATE FUNCTION reconcile.wake() RETURNS void
	AS 'MODULE_PATHNAME', 'ar_wake' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.wake() IS 'Wake this database''s engine when the current transaction commits; does nothing without a worker.';

CREATE TRIGGER action_1_prepare BEFORE INSERT ON reconcile.action
	FOR EACH ROW EXECUTE FUNCTION reconcile.action_prepare();
CREATE TRIGGER action_2_guard BEFORE INSERT OR UPDATE OR DELETE ON reconcile.action
	FOR EACH ROW EXECUTE FUNCTION reconcile.action_guard();
CREATE TRIGGER action_3_inserted AFTER INSERT ON reconcile.action
	REFERENCING NEW TABLE AS new_rows
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.action_inserted();
CREATE TRIGGER action_3_updated AFTER UPDATE ON reconcile.action
	REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.action_updated();
CREATE TRIGGER action_no_truncate BEFORE TRUNCATE ON reconcile.action
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_1_prepare;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_2_guard;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_3_inserted;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_3_updated;
ALTER TABLE reconcile.action ENABLE ALWAYS TRIGGER action_no_truncate;

CREATE TRIGGER attempt_guard BEFORE INSERT OR UPDATE OR DELETE ON reconcile.attempt
	FOR EACH ROW EXECUTE FUNCTION reconcile.attempt_guard();
CREATE TRIGGER attempt_no_truncate BEFORE TRUNCATE ON reconcile.attempt
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.attempt ENABLE ALWAYS TRIGGER attempt_guard;
ALTER TABLE reconcile.attempt ENABLE ALWAYS TRIGGER attempt_no_truncate;

CREATE FUNCTION reconcile.host_is_allowed(address text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_host_is_allowed' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION reconcile.host_is_allowed(text) IS 'Whether action_reconcile.allowed_hosts names the host of that address, or names none.';

CREATE FUNCTION reconcile.provider_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	open_actions bigint;
BEGIN
	-- A dump is restored as it is; its requests are tested when they are made.
	IF (TG_OP = 'INSERT' OR NEW.base_url IS DISTINCT FROM OLD.base_url) AND current_setting('check_function_bodies') <> 'off'
		AND NOT reconcile.host_is_allowed(NEW.base_url) THEN
		RAISE EXCEPTION 'provider "%" cannot be at %: action_reconcile.allowed_hosts does not name that host', NEW.provider, NEW.base_url
			USING ERRCODE = '42501', HINT = 'Who may set it in postgresql.conf decides where this server connects to.';
	END IF;
	IF TG_OP = 'INSERT' THEN
		RETURN NEW;
	END IF;
	IF NEW.provider IS DISTINCT FROM OLD.provider THEN
		RAISE EXCEPTION 'provider "%" cannot be renamed', OLD.provider
			USING ERRCODE = '55000', HINT = 'Define a new provider under the new name.';
	END IF;
	IF NEW.base_url IS DISTINCT FROM OLD.base_url THEN
		LOCK TABLE reconcile.action IN SHARE ROW EXCLUSIVE MODE;
		SELECT count(*) INTO open_actions FROM reconcile.action a
		 WHERE a.provider = OLD.provider AND (a.state IN ('submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
			OR a.state = 'planned' AND a.attempts > 0);
		IF open_actions > 0 THEN
			RAISE EXCEPTION 'the address of provider "%" cannot change while % of its actions are unresolved', OLD.provider, open_actions
				USING ERRCODE = '55000', HINT = 'Their lookups must go where the attempts went. Settle them first, or define a new provider.';
		END IF;
	END IF;
	-- Through another account it would be asked, and sent again, where the attempts have never been.
	IF NEW.credential IS DISTINCT FROM OLD.credential THEN
		LOCK TABLE reconcile.action IN SHARE ROW EXCLUSIVE MODE;
		SELECT count(*) INTO open_actions FROM reconcile.action a
		 WHERE a.provider = OLD.provider AND (a.state IN ('submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
			OR a.state = 'planned' AND a.attempts > 0 AND a.looked_at IS NOT NULL);
		IF open_actions > 0 THEN
			RAISE EXCEPTION 'the credential of provider "%" cannot be another one while % of its actions may have happened', OLD.provider, open_actions
				USING ERRCODE = '55000', HINT = 'If it is for the same account, put its content into the file that is named now. Otherwise settle them first, or define a new provider.';
		END IF;
	END IF;
	IF NEW.paused_at IS NULL THEN
		NEW.paused_by := NULL;
	ELSIF OLD.paused_at IS NULL THEN
		NEW.paused_by := coalesce(NEW.paused_by, session_user);
	END IF;
	PERFORM reconcile.wake();
	-- A pause is no change of what the provider is.
	IF to_jsonb(NEW) - '{version,paused_at,paused_reason,paused_by}'::text[] IS DISTINCT FROM
		to_jsonb(OLD) - '{version,paused_at,paused_reason,paused_by}'::text[] THEN
		NEW.version := OLD.version + 1;
	ELSE
		NEW.version := OLD.version;
	END IF;
	RETURN NEW;
END $$;
COMMENT ON FUNCTION reconcile.provider_changed() IS 'Trigger: counts the version of a provider; refuses another address or credential while actions are unresolved (SQLSTATE 55000), and a host that action_reconcile.allowed_hosts does not name (42501).';
CREATE TRIGGER provider_changed BEFORE INSERT OR UPDATE ON reconcile.provider
	FOR EACH ROW EXECUTE FUNCTION reconcile.provider_changed();

CREATE FUNCTION reconcile.provider_paused() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF NEW.paused_at IS NULL THEN
		UPDATE reconcile.pause_period s SET resumed_at = clock_timestamp(), resumed_by = session_user
		 WHERE s.scope = 'provider' AND s.name = NEW.provider AND s.resumed_at IS NULL;
	ELSE
		INSERT INTO reconcile.pause_period (scope, name, paused_at, paused_by, reason)
		VALUES ('provider', NEW.provider, NEW.paused_at, NEW.paused_by, NEW.paused_reason);
	END IF;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.provider_paused() IS 'Trigger: keeps the periods in which a provider was paused.';
CREATE TRIGGER provider_paused AFTER UPDATE OF paused_at ON reconcile.provider
	FOR EACH ROW WHEN ((OLD.paused_at IS NULL) <> (NEW.paused_at IS NULL)) EXECUTE FUNCTION reconcile.provider_paused();

CREATE FUNCTION reconcile.operation_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		-- An action that is being recorded just now counts too.
		LOCK TABLE reconcile.action IN SHARE ROW EXCLUSIVE MODE;
		IF EXISTS (SELECT FROM reconcile.action a WHERE a.operation = OLD.operation)
			OR EXISTS (SELECT FROM reconcile.archived_action x WHERE x.operation = OLD.operation) THEN
			RAISE EXCEPTION 'operation "%" cannot be deleted: it has actions', OLD.operation
				USING ERRCODE = '55000', HINT = 'What was done with it stays explained by it.';
		END IF;
		RETURN OLD;
	END IF;
	IF TG_OP = 'UPDATE' THEN
		IF NEW.operation IS DISTINCT FROM OLD.operation OR NEW.provider IS DISTINCT FROM OLD.provider THEN
			RAISE EXCEPTION 'operation "%" can be neither renamed nor moved to another provider', OLD.operation
				USING ERRCODE = '55000', HINT = 'Define a new operation.';
		END IF;
		NEW.version := OLD.version + 1;
	END IF;
	NEW.effect := coalesce(NEW.effect, CASE NEW.method WHEN 'DELETE' THEN 'delete' WHEN 'PATCH' THEN 'update' ELSE 'create' END);
	PERFORM reconcile.check_header_names(NEW.headers);
	RETURN NEW;
END $$;
COMMENT ON FUNCTION reconcile.operation_changed() IS 'Trigger: counts the version of an operation; refuses what could not be sent or explained. SQLSTATE 55000 or 22023.';
CREATE TRIGGER operation_changed BEFORE INSERT OR UPDATE OR DELETE ON reconcile.operation
	FOR EACH ROW EXECUTE FUNCTION reconcile.operation_changed();

CREATE FUNCTION reconcile.lookup_rule_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sample jsonb;
	open_actions bigint;
BEGIN
	IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (NEW.operation IS DISTINCT FROM OLD.operation OR NEW.kind = 'replay_by_key' AND OLD.kind <> 'replay_by_key') THEN
		LOCK TABLE reconcile.action IN SHARE ROW EXCLUSIVE MODE;
		SELECT count(*) INTO open_actions FROM reconcile.action a
		 WHERE a.operation = OLD.operation AND (a.state IN ('submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
			OR a.looked_at IS NOT NULL AND a.state IN ('planned', 'safe_to_retry'));
		IF open_actions > 0 THEN
			RAISE EXCEPTION 'the lookup rule of operation "%" cannot go while % of its actions rest on it', OLD.operation, open_actions
				USING ERRCODE = '55000', HINT = 'Settle them first, or change the rule.';
		END IF;
		IF TG_OP = 'DELETE' THEN
			RETURN OLD;
		END IF;
	END IF;
	PERFORM reconcile.check_header_names(NEW.headers);
	-- With something for every member of the payload that it names, a question can be made; what it proves is judged at commit.
	IF NEW.path LIKE '/%' THEN	-- otherwise the constraint speaks
		SELECT coalesce(jsonb_object_agg(k, 'x'), '{}') INTO sample FROM unnest(reconcile.payload_keys(concat(NEW.path, NEW.headers, NEW.body))) k;
		PERFORM reconcile.render_question(NEW.path, NEW.headers, NEW.body, 'reference', sample, 'key', '{"artifact_id": "id", "since_unix": 0, "since_iso": "x", "until_unix": 0, "until_iso": "x"}');
	END IF;
	RETURN NEW;
END $$;
COMMENT ON FUNCTION reconcile.lookup_rule_changed() IS
	'Trigger: refuses questions that could not be made (22023), and taking away a rule that actions rest on (55000).';
CREATE TRIGGER lookup_rule_changed BEFORE INSERT OR UPDATE OR DELETE ON reconcile.lookup_rule
	FOR EACH ROW EXECUTE FUNCTION reconcile.lookup_rule_changed();

-- An attempt names the version of the definition it was made and read by, and the rules are a part of it.
CREATE FUNCTION reconcile.rule_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	changed text;
BEGIN
	-- A dump that is being restored brings the version along. A window is no part of how requests and answers are read,
	-- and the engine, which widens it, waits for nobody.
	IF current_setting('check_function_bodies') = 'off' OR TG_OP = 'UPDATE' AND
		to_jsonb(NEW) - '{consistency_window,window_source}'::text[] = to_jsonb(OLD) - '{consistency_window,window_source}'::text[] THEN
		RETURN NULL;
	END IF;
	FOREACH changed IN ARRAY array_remove(ARRAY[CASE WHEN TG_OP <> 'INSERT' THEN OLD.operation END,
			CASE WHEN TG_OP <> 'DELETE' THEN NEW.operation END], NULL) LOOP
		-- As long as nobody has acted by it, it is still being written.
		UPDATE reconcile.operation o SET version = o.version
		 WHERE o.operation = changed AND EXISTS (SELECT FROM reconcile.action a WHERE a.operation = changed);
	END LOOP;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.rule_changed() IS 'Trigger: counts the version of an operation that has actions when one of its rules changes.';
CREATE TRIGGER rule_changed AFTER INSERT OR UPDATE OR DELETE ON reconcile.response_rule
	FOR EACH ROW EXECUTE FUNCTION reconcile.rule_changed();
CREATE TRIGGER rule_changed AFTER INSERT OR UPDATE OR DELETE ON reconcile.lookup_rule
	FOR EACH ROW EXECUTE FUNCTION reconcile.rule_changed();
CREATE TRIGGER rule_changed AFTER INSERT OR UPDATE OR DELETE ON reconcile.poll_rule
	FOR EACH ROW EXECUTE FUNCTION reconcile.rule_changed();

CREATE FUNCTION reconcile.next_gate(action_id uuid, from_position integer) RETURNS bigint
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT max(t.gate_us - t.window_us - CASE l.kind WHEN 'replay_by_key' THEN t.late_arrival_us ELSE 0 END
			+ (extract(epoch FROM coalesce(l.consistency_window, p.consistency_window)) * 1000000)::bigint)
	  FROM reconcile.action a
	  JOIN reconcile.provider p ON p.provider = a.provider
	  JOIN reconcile.attempt t ON t.action_id = a.action_id AND t.state IN ('outcome_unknown', 'delivered')
	 CROSS JOIN LATERAL (SELECT x.kind, x.consistency_window FROM reconcile.lookup_rule x
		WHERE x.operation = a.operation AND x.position >= $2 ORDER BY x.position LIMIT 1) l
	 WHERE a.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.next_gate(uuid, integer) IS
	'When the first lookup rule from that position on may be asked about an action, on the logical clock of this database, microseconds: no sooner than its window after the last moment at which an attempt could still have taken effect. NULL if there is no such rule.';

CREATE FUNCTION reconcile.question_values(artifact_id text, first_at timestamptz, now_at timestamptz, skew interval) RETURNS jsonb
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_strip_nulls(jsonb_build_object('artifact_id', $1,
		'since_unix', floor(extract(epoch FROM $2) - extract(epoch FROM $4))::bigint,
		'since_iso', to_char((to_timestamp(extract(epoch FROM $2) - extract(epoch FROM $4))) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
		'until_unix', ceil(extract(epoch FROM $3) + extract(epoch FROM $4))::bigint,
		'until_iso', to_char((to_timestamp(ceil(extract(epoch FROM $3) + extract(epoch FROM $4)))) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))) $$;
COMMENT ON FUNCTION reconcile.question_values(text, timestamptz, timestamptz, interval) IS
	'What a question may name besides the payload: artifact_id, and since and until, in seconds since 1970 and as ISO 8601: from the first send to now, each less or more by the skew.';

CREATE FUNCTION reconcile.try_render_values(match_values jsonb, client_reference text, payload jsonb, idempotency_key text) RETURNS text[]
	LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	result text[] := '{}';
	path text;
	template text;
BEGIN
	IF $1 IS NULL THEN
		RETURN NULL;
	END IF;
	FOR path, template IN SELECT key, value FROM jsonb_each_text($1) ORDER BY key LOOP
		IF position('{idempotency_key}' in template) > 0 THEN
			template := replace(template, '{idempotency_key}', $4);
		END IF;
		result := result || ARRAY[path, reconcile.render(template, 'text', $2, $3)];
	END LOOP;
	RETURN result;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
	RETURN ARRAY['$', NULL];
END $$;
COMMENT ON FUNCTION reconcile.try_render_values(jsonb, text, jsonb, text) IS
	'The conditions of a lookup_rule with the values of an action: jsonpath, expected text, jsonpath, ... A condition that cannot be made has no text: then the question cannot be asked, for nothing would match, and that would look like an absence. NULL without conditions.';
