-- What would be sent, for people to read before it is: the exact request and the questions about it, without secrets.

CREATE FUNCTION reconcile.masked_headers(headers text[]) RETURNS jsonb
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(jsonb_object_agg($1[i], CASE
			WHEN reconcile.names_secret($1[i], false) OR position('{credential}' in $1[i + 1]) > 0 THEN '***'
			ELSE $1[i + 1] END), '{}')
	  FROM generate_series(1, coalesce(cardinality($1), 0), 2) i
$$;
COMMENT ON FUNCTION reconcile.masked_headers(text[]) IS
	'Headers (name, value, name, value, ...) as an object, with *** for what authenticates: by the name of the header, or because it holds {credential}.';

CREATE FUNCTION reconcile.masked_url(url text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	-- What is called a key here is ours: an answer may mean another one.
	$$ SELECT split_part($1, '?', 1) || coalesce('?' || string_agg(CASE WHEN lower(name) = 'key' OR reconcile.names_secret(name, true) THEN name || '=***' ELSE p END, '&' ORDER BY n), '')
	  FROM unnest(string_to_array(nullif(substr($1, strpos($1, '?')), $1) , '&')) WITH ORDINALITY u (part, n),
		LATERAL (SELECT ltrim(part, '?') AS p, split_part(ltrim(part, '?'), '=', 1) AS name) x $$;
COMMENT ON FUNCTION reconcile.masked_url(text) IS 'A URL with *** for the query parameters that authenticate, by their names.';

CREATE FUNCTION reconcile.preview_questions(op reconcile.operation, base_url text, payload jsonb, client_reference text, idempotency_key text,
		artifact_id text, first_sent timestamptz)
	RETURNS TABLE (part text, method text, url text, headers jsonb, body text, note text)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	c record := reconcile.capabilities(op);
	rule reconcile.lookup_rule;
	poll reconcile.poll_rule;
	r record;
BEGIN
	FOR rule IN SELECT l.* FROM reconcile.lookup_rule l WHERE l.operation = op.operation ORDER BY l.position LOOP
		part := format('lookup %s', rule.position);
		note := reconcile.rule_words(rule, reconcile.asks_by_reference(op, rule, c.takes_key, c.sends_reference))
			|| CASE WHEN rule.paging <> 'none' THEN format('; further pages by %s, at most %s', rule.paging, rule.max_pages) ELSE '' END;
		IF rule.kind = 'replay_by_key' THEN
			RETURN QUERY SELECT part, op.method, NULL::text, NULL::jsonb, NULL::text, note;
			CONTINUE;
		END IF;
		r := reconcile.render_question(rule.path, rule.headers, rule.body, $4, $3, $5,
			reconcile.question_values($6, coalesce($7, now()), now(), rule.skew));
		RETURN QUERY SELECT part, rule.method, reconcile.masked_url($2 || r.path), reconcile.masked_headers(r.headers), r.body, note;
	END LOOP;
	SELECT p.* INTO poll FROM reconcile.poll_rule p WHERE p.operation = op.operation;
	IF FOUND THEN
		r := reconcile.render_question(poll.path, poll.headers, NULL, $4, $3, $5, jsonb_build_object('artifact_id', $6));
		RETURN QUERY SELECT 'poll'::text, 'GET'::text, reconcile.masked_url($2 || r.path), reconcile.masked_headers(r.headers), NULL::text,
			format('%sasked until the state is one of: %s', CASE WHEN poll.url_header IS NOT NULL THEN format('the URL is in the header %s of the answer; ', poll.url_header)
					WHEN poll.url_path IS NOT NULL THEN format('the URL is at %s in the answer; ', poll.url_path) END,
				array_to_string(poll.accepted || poll.rejected, ', '));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.preview_questions(reconcile.operation, text, jsonb, text, text, text, timestamptz) IS
	'The lookups and the poll of an action as they would be asked now, without secrets. Error 22023 if one cannot be made.';

CREATE FUNCTION reconcile.preview_request(op reconcile.operation, base_url text, payload jsonb, client_reference text, idempotency_key text,
		extra jsonb DEFAULT NULL)
	RETURNS TABLE (part text, method text, url text, headers jsonb, body text, note text)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT 'request'::text, op.method, reconcile.masked_url($2 || r.path), reconcile.masked_headers(r.headers), r.body,
		concat_ws('; ', format('client reference %s', $4) || CASE WHEN c.sends_reference THEN '' ELSE ', not sent' END,
			'idempotency key ' || $5 || coalesce(', alive for ' || reconcile.elapsed_words(c.key_lifetime), ', of unknown lifetime'),
			(SELECT format('credential from file %s', p.credential) FROM reconcile.provider p WHERE p.provider = op.provider AND p.credential IS NOT NULL))
	  FROM reconcile.render_request(op, $4, $3, $5, $6) r, reconcile.capabilities(op) c
$$;
COMMENT ON FUNCTION reconcile.preview_request(reconcile.operation, text, jsonb, text, text, jsonb) IS
	'The request of an action, with what it names of others, without secrets. Error 22023 if it cannot be made.';

CREATE FUNCTION reconcile.sample_key(op reconcile.operation, action_id uuid, generation integer, client_reference text) RETURNS text
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN NOT reconcile.takes_key(op) THEN NULL WHEN op.key_format = 'reference' THEN $4
		ELSE reconcile.make_identifier($2, $3, op.key_format) END
$$;
COMMENT ON FUNCTION reconcile.sample_key(reconcile.operation, uuid, integer, text) IS 'The idempotency key that an action with this id and reference would have; NULL if the operation takes none.';

CREATE FUNCTION reconcile.preview(action_id uuid)
	RETURNS TABLE (part text, method text, url text, headers jsonb, body text, note text)
	LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
	op reconcile.operation;
	address text;
	first_sent timestamptz;
	key text;
BEGIN
	SELECT x.* INTO a FROM reconcile.action x WHERE x.action_id = $1 AND reconcile.may_see(x.submitter);
	IF NOT FOUND THEN
		RAISE EXCEPTION 'action "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'Or it is not yours to see.';
	END IF;
	SELECT o.* INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	SELECT t.base_url INTO address FROM reconcile.attempt t WHERE t.action_id = $1 ORDER BY t.number DESC LIMIT 1;
	SELECT min(t.dispatched_at) INTO first_sent FROM reconcile.attempt t WHERE t.action_id = $1;
	IF address IS NULL THEN
		SELECT p.base_url INTO address FROM reconcile.provider p WHERE p.provider = a.provider;
	END IF;
	key := coalesce(a.idempotency_key, reconcile.sample_key(op, a.action_id, a.key_generation, a.client_reference));
	RETURN QUERY SELECT * FROM reconcile.preview_request(op, address, a.payload, a.client_reference, key,
		CASE WHEN a.depends_on IS NOT NULL THEN reconcile.dependency_values(a.depends_on, 'ARTIFACT-ID') END);
	RETURN QUERY SELECT * FROM reconcile.preview_questions(op, address, a.payload, a.client_reference, key, coalesce(a.artifact_id, 'ARTIFACT-ID'), first_sent);
END $$;
COMMENT ON FUNCTION reconcile.preview(uuid) IS
	'The exact request of an action, and the lookups and the poll that would be asked about it now; *** stands for secrets, ARTIFACT-ID for an id that is not known yet. Error 42704 if there is no such action, or it is not yours.';

CREATE FUNCTION reconcile.preview(operation text, payload jsonb DEFAULT NULL, client_reference text DEFAULT NULL)
	RETURNS TABLE (part text, method text, url text, headers jsonb, body text, note text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	op reconcile.operation;
	address text;
	sample uuid := '00000000-0000-7000-8000-000000000000';
	reference text := $3;
	given jsonb := $2;
	key text;
BEGIN
	SELECT o.* INTO op FROM reconcile.operation o WHERE o.operation = $1;
	IF NOT FOUND THEN
		IF $1 ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' AND $2 IS NULL AND $3 IS NULL THEN
			RETURN QUERY SELECT * FROM reconcile.preview($1::uuid);	-- a literal that was meant as an id
			RETURN;
		END IF;
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'Define it in reconcile.operation; the names are in that table.';
	END IF;
	given := coalesce(given, op.example);
	IF given IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no example to preview', $1
			USING ERRCODE = '22023', HINT = 'Give a payload, or set the column example.';
	END IF;
	IF reference IS NULL THEN
		reference := reconcile.make_identifier(sample, 0, op.reference_format);
	ELSE
		reference := reconcile.caller_reference(op, reference);
	END IF;
	key := reconcile.sample_key(op, sample, 0, reference);
	SELECT p.base_url INTO address FROM reconcile.provider p WHERE p.provider = op.provider;
	RETURN QUERY SELECT * FROM reconcile.preview_request(op, address, given, reference, key);
	RETURN QUERY SELECT * FROM reconcile.preview_questions(op, address, given, reference, key, 'ARTIFACT-ID', NULL);
END $$;
COMMENT ON FUNCTION reconcile.preview(text, jsonb, text) IS
	'What an action of this operation would send and ask, with the payload given or the operation''s example. Reference and key are samples: each action has its own. Secrets are shown as ***. Errors: 42704 no such operation, 22023 the request could not be made.';
