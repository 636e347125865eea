-- What can be done about a lost answer: derived from the definition, never typed in.

CREATE FUNCTION reconcile.capability_tier(returns_artifact boolean, takes_key boolean, key_lifetime interval, key_margin interval,
		has_query boolean, reference_queryable boolean, key_age interval DEFAULT '0', needed interval DEFAULT '0') RETURNS reconcile.tier
	AS 'MODULE_PATHNAME', 'ar_capability_tier_of' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.capability_tier(boolean, boolean, interval, interval, boolean, boolean, interval, interval) IS
	'The tier of an operation with these capabilities whose key was first sent key_age ago; needed is how long a request may take to arrive. Elapsed times; what is NULL is not known and counts as not there.';

CREATE FUNCTION reconcile.payload_keys(template text) RETURNS text[]
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(array_agg(DISTINCT m[1]), '{}') FROM regexp_matches($1, '\{([^{}"?]+)\??\}', 'g') m
	 WHERE m[1] NOT IN ('client_reference', 'idempotency_key', 'artifact_id', 'payload', 'credential', 'since_unix', 'since_iso', 'until_unix', 'until_iso')
$$;
COMMENT ON FUNCTION reconcile.payload_keys(text) IS 'The members of the payload that a template names.';

CREATE FUNCTION reconcile.asks_by_reference(op reconcile.operation, rule reconcile.lookup_rule, takes_key boolean, sends_reference boolean) RETURNS boolean
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN rule.kind = 'replay_by_key' THEN false
		-- What is changed or deleted has a name of its own, and the question names it too.
		WHEN op.effect <> 'create' AND reconcile.payload_keys(op.path) && reconcile.payload_keys(concat(rule.path, rule.match_values, rule.body_match))
			AND (op.effect = 'delete' OR rule.match_values IS NOT NULL OR rule.body_match IS NOT NULL) THEN true
		-- The reference names what is deleted only where the caller chooses it.
		WHEN op.effect = 'delete' THEN op.reference_is_global AND position('{client_reference}' in op.path) > 0 AND position('{client_reference}' in rule.path) > 0
		-- And only what is written into the object tells a change of it.
		WHEN op.effect = 'update' AND op.reference_body_path IS NULL AND position('{client_reference}' in concat(op.body_template, op.body_document)) = 0 THEN false
		ELSE sends_reference AND (rule.reference_path IS NOT NULL
				OR position('{client_reference}' in concat(rule.match_values, rule.body_match, CASE rule.kind WHEN 'get_by_reference' THEN rule.path END)) > 0)
			OR takes_key AND position('{idempotency_key}' in concat(rule.match_values, rule.body_match, CASE rule.kind WHEN 'get_by_reference' THEN rule.path END)) > 0
	END
$$;
COMMENT ON FUNCTION reconcile.asks_by_reference(reconcile.operation, reconcile.lookup_rule, boolean, boolean) IS
	'Does this lookup find an object by what was sent to name it: the client reference, the key, or the name of what is changed or deleted?';

CREATE FUNCTION reconcile.capabilities(op reconcile.operation, OUT returns_artifact boolean, OUT takes_key boolean, OUT key_lifetime interval,
		OUT key_margin interval, OUT has_query boolean, OUT sends_reference boolean, OUT reference_queryable boolean, OUT needed interval)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	takes_key := reconcile.takes_key(op);
	sends_reference := reconcile.sends_reference(op) OR takes_key AND op.key_format = 'reference';
	key_lifetime := CASE WHEN takes_key THEN op.key_lifetime END;
	key_margin := op.key_margin;
	SELECT count(*) > 0, coalesce(bool_or(reconcile.asks_by_reference(op, l, takes_key, sends_reference)), false)
	  INTO has_query, reference_queryable
	  FROM reconcile.lookup_rule l WHERE l.operation = op.operation AND l.kind <> 'replay_by_key';
	-- What can be asked for by its name needs no other id.
	returns_artifact := op.artifact_path IS NOT NULL OR op.artifact_header IS NOT NULL OR reference_queryable
		OR op.method = 'PUT' AND position('{client_reference}' in op.path) > 0
		OR EXISTS (SELECT FROM reconcile.response_rule r WHERE r.operation = op.operation AND r.artifact_path IS NOT NULL)
		OR EXISTS (SELECT FROM reconcile.poll_rule p WHERE p.operation = op.operation AND p.artifact_path IS NOT NULL);
	SELECT p.attempt_timeout + p.late_arrival_max INTO needed FROM reconcile.provider p WHERE p.provider = op.provider;
END $$;
COMMENT ON FUNCTION reconcile.capabilities(reconcile.operation) IS
	'What an operation can rely on, read from its request and its rules. needed: how long a request may take to arrive, its timeout and the provider''s late_arrival_max.';

CREATE FUNCTION reconcile.missing_for(tier reconcile.tier, op reconcile.operation) RETURNS text[]
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
	missing text[] := '{}';
BEGIN
	c := reconcile.capabilities(op);
	IF $1 IN ('FULL', 'RECONCILABLE', 'PARTIAL') AND NOT c.returns_artifact AND NOT ($1 = 'RECONCILABLE' AND NOT c.reference_queryable) THEN
		missing := missing || 'no artifact id is read from the answer'::text;
	END IF;
	IF $1 IN ('FULL', 'KEYED') THEN
		IF NOT c.takes_key THEN
			missing := missing || 'the request carries no idempotency key'::text;
		ELSIF c.key_lifetime IS NULL THEN
			missing := missing || 'the lifetime of the key is unknown'::text;
		ELSIF reconcile.capability_tier(false, true, c.key_lifetime, c.key_margin, false, false, '0', c.needed) <> 'KEYED' THEN
			missing := missing || format('the lifetime of the key, %s, is too short for a margin of %s and the %s that a request may take',
				reconcile.elapsed_words(c.key_lifetime), reconcile.elapsed_words(c.key_margin), reconcile.elapsed_words(c.needed));
		END IF;
	END IF;
	IF $1 = 'FULL' AND NOT c.has_query THEN
		missing := missing || 'there is no lookup rule'::text;
	ELSIF $1 = 'RECONCILABLE' AND NOT c.reference_queryable THEN
		IF op.effect = 'create' AND NOT c.sends_reference THEN
			missing := missing || 'the reference is not sent'::text;
		END IF;
		missing := missing || CASE WHEN c.has_query AND op.effect = 'create' THEN 'no lookup rule asks by the reference'
			WHEN c.has_query THEN 'no lookup rule asks for what the path names' ELSE 'there is no lookup rule' END::text;
	END IF;
	RETURN missing;
END $$;
COMMENT ON FUNCTION reconcile.missing_for(reconcile.tier, reconcile.operation) IS 'What an operation lacks for a tier, in words; empty if it bears it.';

CREATE FUNCTION reconcile.elapsed_words(elapsed interval) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	WITH given AS (SELECT round(extract(epoch FROM $1)::numeric, 6) AS s)
	SELECT CASE WHEN s = 0 THEN '0 s' WHEN s % 86400 = 0 AND s > 86400 THEN format('%s d', (s / 86400)::bigint) WHEN s % 3600 = 0 THEN format('%s h', (s / 3600)::bigint)
		WHEN s % 60 = 0 THEN format('%s min', (s / 60)::bigint) ELSE format('%s s', trim_scale(s)) END FROM given
$$;
COMMENT ON FUNCTION reconcile.elapsed_words(interval) IS 'An elapsed time in the largest unit that is even, up to days: 90 s, 5 min, 24 h, 7 d.';

-- What cannot hold is refused when the transaction that defines it commits: rules come after their operation.

CREATE FUNCTION reconcile.refuse_definition(operation text, problem text, hint text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'operation "%" %', $1, $2 USING ERRCODE = '22023', HINT = $3;
END $$;
COMMENT ON FUNCTION reconcile.refuse_definition(text, text, text) IS 'Error 22023 about a definition: always.';

CREATE FUNCTION reconcile.check_key(op reconcile.operation) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
	stray text;
	rule reconcile.lookup_rule;
BEGIN
	c := reconcile.capabilities(op);
	SELECT * INTO rule FROM reconcile.lookup_rule l WHERE l.operation = op.operation AND l.kind = 'replay_by_key' ORDER BY l.position LIMIT 1;
	IF NOT c.takes_key THEN
		stray := CASE WHEN op.key_lifetime IS NOT NULL THEN 'key_lifetime' WHEN op.key_replay IS NOT NULL THEN 'key_replay'
			WHEN op.key_max_length IS NOT NULL THEN 'key_max_length' WHEN op.key_format <> 'uuid' THEN 'key_format'
			WHEN rule.position IS NOT NULL THEN format('the replay_by_key of lookup rule %s', rule.position) END;
		IF stray IS NULL THEN
			SELECT format('lookup rule %s', l.position) INTO stray FROM reconcile.lookup_rule l
			 WHERE l.operation = op.operation AND position('{idempotency_key}' in concat(l.path, l.headers, l.body, l.match_values, l.body_match)) > 0
			 ORDER BY l.position LIMIT 1;
		END IF;
		IF stray IS NULL THEN
			SELECT format('response rule %s', r.position) INTO stray FROM reconcile.response_rule r
			 WHERE r.operation = op.operation AND (r.applies_to <> 'any' AND op.effect = 'create' OR r.class = 'key_mismatch') ORDER BY r.position LIMIT 1;
		END IF;
		IF stray IS NOT NULL THEN
			PERFORM reconcile.refuse_definition(op.operation, format('has no idempotency key in its request, but %s speaks of one', stray),
				'Put {idempotency_key} into path, headers or body_document, or set key_body_path.');
		END IF;
	ELSIF rule.position IS NOT NULL AND op.key_lifetime IS NULL THEN
		PERFORM reconcile.refuse_definition(op.operation,
			format('cannot be asked by its key in lookup rule %s: the lifetime of the key is unknown', rule.position),
			'Set key_lifetime and key_lifetime_source: an unknown lifetime counts as none, so nothing would ever be sent again.');
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_key(reconcile.operation) IS 'Error 22023 if something is said about an idempotency key that is not sent, or rests on a lifetime that is not known.';

CREATE FUNCTION reconcile.check_rules(op reconcile.operation) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record := reconcile.capabilities(op);
	rule reconcile.lookup_rule;
	header text;
BEGIN
	SELECT h INTO header FROM (SELECT op.artifact_header UNION ALL SELECT l.artifact_header FROM reconcile.lookup_rule l WHERE l.operation = op.operation) x (h)
	 WHERE reconcile.names_secret(h, false) LIMIT 1;
	IF FOUND THEN
		PERFORM reconcile.refuse_definition(op.operation, format('takes the header %s for an id, and would keep what gives access', header),
			'Name the header that holds the id of the object.');
	END IF;
	FOR rule IN SELECT l.* FROM reconcile.lookup_rule l WHERE l.operation = op.operation AND l.kind <> 'replay_by_key' ORDER BY l.position LOOP
		IF NOT c.sends_reference AND op.effect <> 'delete'
			AND (rule.reference_path IS NOT NULL OR position('{client_reference}' in concat(rule.path, rule.body, rule.match_values, rule.body_match)) > 0) THEN
			PERFORM reconcile.refuse_definition(op.operation, format('is asked for by a reference in lookup rule %s, but the reference is not sent', rule.position),
				'Put {client_reference} into path, headers, body_document or body_template, or set reference_body_path.');
		END IF;
		IF op.effect <> 'create' AND NOT reconcile.asks_by_reference(op, rule, c.takes_key, c.sends_reference) THEN
			PERFORM reconcile.refuse_definition(op.operation, format('is %s, but lookup rule %s does not ask for what its path names',
					CASE op.effect WHEN 'delete' THEN 'a delete' ELSE 'an update' END, rule.position),
				CASE op.effect WHEN 'delete' THEN 'Name it by the same member of the payload in both paths.'
					ELSE 'Name it by the same member of the payload in both paths, and say in match_values what it must then be; or write the reference into it.' END);
		END IF;
		-- What another PUT has written over is absent too.
		IF op.effect = 'create' AND op.method = 'PUT' AND rule.absence_proves AND position('{client_reference}' in split_part(op.path, '?', 1)) = 0
			AND position('{idempotency_key}' in split_part(op.path, '?', 1)) = 0 THEN
			PERFORM reconcile.refuse_definition(op.operation, format('is a PUT to a place that is not its own, so absence in lookup rule %s proves nothing', rule.position),
				'Put {client_reference} or {idempotency_key} into its path, or set absence_proves to false.');
		END IF;
	END LOOP;
	IF EXISTS (SELECT FROM reconcile.poll_rule p WHERE p.operation = op.operation AND position('{artifact_id}' in concat(p.path, p.headers)) > 0)
		AND op.artifact_path IS NULL AND op.artifact_header IS NULL
		AND NOT EXISTS (SELECT FROM reconcile.response_rule r WHERE r.operation = op.operation AND r.artifact_path IS NOT NULL)
		AND NOT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = op.operation AND coalesce(l.artifact_path::text, l.artifact_header) IS NOT NULL) THEN
		PERFORM reconcile.refuse_definition(op.operation, 'is polled by {artifact_id}, but no artifact id is ever read',
			'Set artifact_path or artifact_header, or poll by {client_reference}.');
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_rules(reconcile.operation) IS 'Error 22023 if a rule asks by something that is not sent or not known, or takes a secret for an id.';

CREATE FUNCTION reconcile.check_definition(op reconcile.operation) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
	missing text[];
	problem text;
BEGIN
	IF op.method = 'DELETE' AND op.effect <> 'delete' THEN
		PERFORM reconcile.refuse_definition(op.operation, format('is a DELETE, but its effect is %s', op.effect), 'Set effect to delete.');
	END IF;
	PERFORM reconcile.check_key(op);
	PERFORM reconcile.check_rules(op);
	IF op.claims IS NULL THEN
		RETURN;
	END IF;
	missing := reconcile.missing_for(op.claims, op);
	IF missing <> '{}' THEN
		c := reconcile.capabilities(op);
		problem := format('claims %s, but is %s: %s', op.claims,
			reconcile.capability_tier(c.returns_artifact, c.takes_key, c.key_lifetime, c.key_margin, c.has_query, c.reference_queryable, '0', c.needed),
			array_to_string(missing, ', '));
		PERFORM reconcile.refuse_definition(op.operation, problem,
			'Define what is missing, or claim no more than the definition bears; see reconcile.provider_grade.');
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_definition(reconcile.operation) IS
	'Error 22023, naming what is missing, if an operation claims a tier that its definition does not bear, or if its parts contradict each other.';

CREATE FUNCTION reconcile.definition_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
BEGIN
	-- A dump is restored table by table, with this setting: the rules are not there yet, and all of it has been checked before.
	IF current_setting('check_function_bodies') = 'off' THEN
		RETURN NULL;
	END IF;
	IF TG_TABLE_NAME = 'provider' THEN
		FOR op IN SELECT o.* FROM reconcile.operation o WHERE o.provider = NEW.provider ORDER BY o.operation LOOP
			PERFORM reconcile.check_definition(op);
		END LOOP;
		RETURN NULL;
	END IF;
	FOR op IN SELECT o.* FROM reconcile.operation o
		WHERE TG_OP <> 'INSERT' AND o.operation = OLD.operation OR TG_OP <> 'DELETE' AND o.operation = NEW.operation LOOP
		PERFORM reconcile.check_definition(op);
	END LOOP;
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.definition_changed() IS
	'Trigger, at commit: refuses a definition whose parts do not hold together, or that claims too much. SQLSTATE 22023. Not while a dump is being restored.';

-- Only for what they judge: the engine widens windows and counts versions, and has nothing to hear about definitions.
CREATE CONSTRAINT TRIGGER definition_holds AFTER UPDATE OF attempt_timeout, late_arrival_max ON reconcile.provider
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconcile.definition_changed();
CREATE CONSTRAINT TRIGGER definition_holds AFTER INSERT OR UPDATE OF method, path, headers, effect, body_document, body_template, reference_body_path, reference_is_global,
		key_body_path, key_format, key_max_length, key_lifetime, key_margin, key_replay, artifact_path, artifact_header, claims ON reconcile.operation
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconcile.definition_changed();
CREATE CONSTRAINT TRIGGER definition_holds AFTER INSERT OR UPDATE OR DELETE ON reconcile.response_rule
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconcile.definition_changed();
CREATE CONSTRAINT TRIGGER definition_holds AFTER INSERT OR DELETE OR UPDATE OF operation, position, kind, method, path, headers, body, reference_path, body_match,
		match_values, match_is_unique, absence_proves, artifact_path, artifact_header ON reconcile.lookup_rule
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconcile.definition_changed();
CREATE CONSTRAINT TRIGGER definition_holds AFTER INSERT OR UPDATE OR DELETE ON reconcile.poll_rule
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION reconcile.definition_changed();

-- The same in words.

CREATE FUNCTION reconcile.rule_words(rule reconcile.lookup_rule, by_reference boolean) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE rule.kind
			WHEN 'get_by_reference' THEN 'get the object by its name'
			WHEN 'list_by_reference' THEN 'list the objects with the reference'
			WHEN 'list_scan' THEN 'read the list of all objects'
			WHEN 'search' THEN 'search'
			WHEN 'replay_by_key' THEN 'send the same request again with its key while that is alive' END
		|| CASE WHEN rule.kind = 'replay_by_key' OR by_reference THEN ''
			WHEN rule.match_is_unique THEN ' for one that is alike and the only one possible'
			ELSE ' for one that is alike' END
$$;
COMMENT ON FUNCTION reconcile.rule_words(reconcile.lookup_rule, boolean) IS 'What a lookup does, in words.';

CREATE FUNCTION reconcile.query_surface(op reconcile.operation) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(string_agg(reconcile.rule_words(l, reconcile.asks_by_reference(op, l, c.takes_key, c.sends_reference))
			|| format(' (window %s, %s%s)', reconcile.elapsed_words(coalesce(l.consistency_window, p.consistency_window)),
				coalesce(l.window_source, p.window_source), CASE WHEN NOT l.absence_proves THEN ', proves no absence' END),
		', then ' ORDER BY l.position), 'none')
	  FROM reconcile.capabilities(op) c, reconcile.provider p, reconcile.lookup_rule l
	 WHERE p.provider = op.provider AND l.operation = op.operation AND l.kind <> 'replay_by_key'
$$;
COMMENT ON FUNCTION reconcile.query_surface(reconcile.operation) IS 'How the provider can be asked about an operation, in words.';

CREATE FUNCTION reconcile.on_lost_answer(op reconcile.operation) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	c record;
	r record;
	not_executed text;
	settled text[];
BEGIN
	c := reconcile.capabilities(op);
	SELECT string_agg(reconcile.rule_words(l, by_reference) || CASE extract(epoch FROM gate) WHEN 0 THEN ', at once'
				ELSE format(', %s after the end of the attempt', reconcile.elapsed_words(gate)) END, '; then ' ORDER BY l.position) AS questions,
		count(*) FILTER (WHERE l.kind <> 'replay_by_key') AS asks,
		count(*) FILTER (WHERE l.kind = 'replay_by_key') AS replays,
		bool_or(by_reference OR l.match_is_unique) AS proves_presence,
		max(greatest(l.min_negatives, CASE coalesce(l.window_source, p.window_source) WHEN 'assumed' THEN 2 ELSE 1 END) + (l.canary = 'none')::integer)
			FILTER (WHERE l.absence_proves AND l.kind <> 'replay_by_key') AS negatives
	  INTO r
	  FROM reconcile.lookup_rule l JOIN reconcile.provider p ON p.provider = op.provider
	 CROSS JOIN LATERAL (SELECT reconcile.asks_by_reference(op, l, c.takes_key, c.sends_reference) AS by_reference,
			-- What is sent again needs not wait for the first one to arrive: the provider tells them apart by their key.
			coalesce(l.consistency_window, p.consistency_window) + CASE l.kind WHEN 'replay_by_key' THEN interval '0' ELSE p.late_arrival_max END AS gate) x
	 WHERE l.operation = op.operation;
	IF r.questions IS NULL THEN
		RETURN 'It goes to manual_review at once: ' || CASE WHEN c.key_lifetime IS NULL THEN 'there is no question that the engine could ask.'
			ELSE 'no lookup rule asks, and none sends the request again with its key (replay_by_key).' END;
	END IF;
	not_executed := CASE op.on_absent WHEN 'hold' THEN 'and the action waits as safe_to_retry for a person or the application'
		ELSE format('and the action is sent again by itself, at most %s times', op.max_replacements) END;
	IF r.negatives IS NOT NULL THEN
		not_executed := format('%s %s %s that nothing happened, %s', CASE r.negatives WHEN 1 THEN 'a complete answer' ELSE format('%s complete answers', r.negatives) END,
			CASE op.effect WHEN 'create' THEN 'without it' WHEN 'update' THEN 'with it exactly as it was before the send' ELSE 'with it still there' END,
			CASE r.negatives WHEN 1 THEN 'proves' ELSE 'prove' END, not_executed);
	ELSE
		not_executed := 'no answer proves that nothing happened';
	END IF;
	IF r.asks > 0 THEN
		settled := ARRAY[CASE op.effect WHEN 'delete' THEN 'what is gone was deleted if it had been seen before the send'
				WHEN 'update' THEN 'what is found as it was to become settles it as succeeded'
				ELSE CASE WHEN r.proves_presence THEN 'an object found settles it as succeeded' ELSE 'an object found is shown to a person' END END,
			not_executed];
	END IF;
	IF r.replays > 0 THEN
		settled := settled || CASE op.key_replay WHEN 'stored_reply' THEN 'the repeated request gets the stored reply, which is read as the first one would have been'
			WHEN 'current_state' THEN 'the repeated request gets the present state of what was made'
			WHEN 'reattempt' THEN 'the repeated request gets the reply, or carries out what had failed'
			ELSE 'the answer to the repeated request is read by the response rules' END::text;
	END IF;
	settled[1] := upper(left(settled[1], 1)) || substr(settled[1], 2);
	RETURN format('The engine will %s. %s; whatever is not settled so goes to manual_review.', r.questions, array_to_string(settled, '; '));
END $$;
COMMENT ON FUNCTION reconcile.on_lost_answer(reconcile.operation) IS 'What the engine does when the answer to an attempt is lost, in words that follow from the rules.';

CREATE VIEW reconcile.provider_grade AS
	SELECT o.operation, o.provider, p.profile, p.profile_version, o.effect, o.claims,
		t.tier, c.key_lifetime, CASE WHEN c.takes_key THEN o.key_lifetime_source END AS key_lifetime_source,
		CASE WHEN c.takes_key THEN t.tier_without_key END AS tier_after_key,
		reconcile.query_surface(o) AS query_surface,
		reconcile.on_lost_answer(o) AS on_lost_answer,
		(SELECT string_agg(format('%s: %s', better, array_to_string(reconcile.missing_for(better, o), ', ')), '; ' ORDER BY better)
		   FROM unnest(enum_range(NULL::reconcile.tier)) better
		  WHERE better < t.tier AND better <> 'PARTIAL') AS missing
	FROM reconcile.operation o JOIN reconcile.provider p ON p.provider = o.provider
	CROSS JOIN LATERAL reconcile.capabilities(o) c
	CROSS JOIN LATERAL (SELECT
		reconcile.capability_tier(c.returns_artifact, c.takes_key, c.key_lifetime, c.key_margin, c.has_query, c.reference_queryable, '0', c.needed) AS tier,
		reconcile.capability_tier(c.returns_artifact, false, NULL, NULL, c.has_query, c.reference_queryable) AS tier_without_key) t;
COMMENT ON VIEW reconcile.provider_grade IS 'How far each operation can be trusted: its tier, what happens when an answer is lost, and what a better tier lacks. All of it follows from the definition.';
COMMENT ON COLUMN reconcile.provider_grade.tier IS 'For an action that has just been sent.';
COMMENT ON COLUMN reconcile.provider_grade.key_lifetime IS 'How long the key removes duplicates, from its first send; NULL: no key, or unknown, which counts as not at all.';
COMMENT ON COLUMN reconcile.provider_grade.tier_after_key IS 'The tier once the key is dead, or if its lifetime is unknown; NULL if there is no key.';
COMMENT ON COLUMN reconcile.provider_grade.query_surface IS 'How the provider can be asked, with the window of each question and where it is known from.';
COMMENT ON COLUMN reconcile.provider_grade.on_lost_answer IS 'What the engine then does by itself, and what it leaves to a person.';
COMMENT ON COLUMN reconcile.provider_grade.missing IS 'What each better tier would need; NULL if there is none.';

-- What to do about a row that does not hold together; define_provider() says so.

COMMENT ON CONSTRAINT provider_https ON reconcile.provider IS
	'Give an https address, or set allow_http.';
COMMENT ON CONSTRAINT provider_base_url ON reconcile.provider IS
	'It is scheme, host and path without a slash at the end: no user, query or fragment.';
COMMENT ON CONSTRAINT operation_one_body ON reconcile.operation IS
	'A body_template is the whole body; reference_body_path, key_body_path, body_document and another body_format go without it.';
COMMENT ON CONSTRAINT operation_no_body ON reconcile.operation IS
	'With body_format none there is no body to write a document, a reference or a key into.';
COMMENT ON CONSTRAINT operation_reference_max_length ON reconcile.operation IS
	'A reference needs 36 characters as uuid, 32 as hex, 26 as base32hex, 22 as base62: choose a reference_format that fits into what the provider keeps, at most 200.';
COMMENT ON CONSTRAINT operation_key_max_length ON reconcile.operation IS
	'A key needs 36 characters as uuid, 32 as hex, 26 as base32hex, 22 as base62, and reference_max_length as reference: choose a key_format that fits into what the provider takes.';
COMMENT ON CONSTRAINT operation_key_lifetime_source ON reconcile.operation IS
	'Set key_lifetime and key_lifetime_source together: a lifetime is known from somewhere.';
COMMENT ON CONSTRAINT operation_one_artifact ON reconcile.operation IS
	'The artifact id is read from the body (artifact_path) or from a header (artifact_header), not from both.';
COMMENT ON CONSTRAINT operation_retry_pause ON reconcile.operation IS
	'retry_pause is at least a millisecond and at most retry_pause_max, which is at most a day.';
COMMENT ON CONSTRAINT response_rule_says_something ON reconcile.response_rule IS
	'Give at least one condition: statuses, header_name with header_value, or body_path.';
COMMENT ON CONSTRAINT response_rule_header ON reconcile.response_rule IS
	'Set header_name and header_value together.';
COMMENT ON CONSTRAINT response_rule_header_name ON reconcile.response_rule IS
	'Only headers that are kept can be asked about, in lower case.';
COMMENT ON CONSTRAINT response_rule_stored_reply ON reconcile.response_rule IS
	'Only the answer to a repeated request can be a stored reply: set applies_to to replay.';
COMMENT ON CONSTRAINT lookup_rule_path ON reconcile.lookup_rule IS
	'Every kind asks at a path of its own, beginning with a slash; replay_by_key sends the same request again and has none.';
COMMENT ON CONSTRAINT lookup_rule_method ON reconcile.lookup_rule IS
	'A question with a body is a POST.';
COMMENT ON CONSTRAINT lookup_rule_list ON reconcile.lookup_rule IS
	'A list needs items_path, and in each object reference_path or match_values to tell ours by; body_match is for single objects.';
COMMENT ON CONSTRAINT lookup_rule_get ON reconcile.lookup_rule IS
	'A single object needs reference_path, body_match or match_values to be recognised by, absent_statuses or gone_path to be missed by, and no items_path.';
COMMENT ON CONSTRAINT lookup_rule_replay ON reconcile.lookup_rule IS
	'The answer to a repeated request is read by the response rules; it is no list and is not searched.';
COMMENT ON CONSTRAINT lookup_rule_body_match ON reconcile.lookup_rule IS
	'A text that is the same for every action proves nothing: put {client_reference}, or what names the object, into it.';
COMMENT ON CONSTRAINT lookup_rule_unique_match ON reconcile.lookup_rule IS
	'That a match is unique can be told only with match_values, and created_path to see that it was made in the right time.';
COMMENT ON CONSTRAINT lookup_rule_statuses ON reconcile.lookup_rule IS
	'A status cannot mean both found and absent, and at least one means found.';
COMMENT ON CONSTRAINT lookup_rule_one_artifact ON reconcile.lookup_rule IS
	'The artifact id is read from the body (artifact_path) or from a header (artifact_header), not from both.';
COMMENT ON CONSTRAINT lookup_rule_paging_path ON reconcile.lookup_rule IS
	'next_url and cursor need paging_path, where the body holds them; other kinds of paging have none.';
COMMENT ON CONSTRAINT lookup_rule_paging_parameter ON reconcile.lookup_rule IS
	'cursor, offset and page need a paging_parameter for the query, or a paging_body_path into the body of a POST; other kinds of paging have none.';
COMMENT ON CONSTRAINT lookup_rule_page_size ON reconcile.lookup_rule IS
	'offset and page need page_size, 1 to 10000: a shorter page is the last.';
COMMENT ON CONSTRAINT lookup_rule_canary ON reconcile.lookup_rule IS
	'A fixed canary needs canary_reference, and no other has one.';
COMMENT ON CONSTRAINT lookup_rule_window_source ON reconcile.lookup_rule IS
	'Set consistency_window and window_source together: a window is known from somewhere.';
COMMENT ON CONSTRAINT lookup_rule_pause ON reconcile.lookup_rule IS
	'pause is at least a millisecond and at most pause_max, which is at most 7 days.';
COMMENT ON CONSTRAINT poll_rule_place ON reconcile.poll_rule IS
	'Say where to ask in one way: path, url_header or url_path.';
COMMENT ON CONSTRAINT poll_rule_states ON reconcile.poll_rule IS
	'At least one state is accepted, and none is both accepted and rejected.';
COMMENT ON CONSTRAINT poll_rule_pause ON reconcile.poll_rule IS
	'pause is at least a millisecond and at most pause_max, which is at most 7 days.';
