-- Events: what a provider sends unasked, checked, read, and taken in.

CREATE FUNCTION reconcile.verify_event(provider text, scheme text, secret text, tolerance interval, signature_header text, signature_encoding text,
		signature_prefix text, signed_text text, timestamp_header text, headers jsonb, body bytea, event_id_header text) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_verify_event' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION reconcile.verify_event(text, text, text, interval, text, text, text, text, text, jsonb, bytea, text) IS
	'Check the signature of an event as its source describes it. Errors: 28000 it is missing, wrong, too old or from the future; 22023 headers or body cannot be taken; 55000 the secret cannot be had.';

CREATE FUNCTION reconcile.event_header(headers jsonb, name text) RETURNS text
	AS 'MODULE_PATHNAME', 'ar_event_header' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION reconcile.event_header(jsonb, text) IS 'A header by its name, in whatever case; NULL if it is not there. Error 22023 if it is there twice.';

CREATE FUNCTION reconcile.event_document(provider text, body bytea) RETURNS jsonb
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	document jsonb;
BEGIN
	BEGIN
		document := convert_from($2, 'UTF8')::jsonb;
	EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN
		NULL;	-- said below, without a part of it
	END;
	IF jsonb_typeof(document) IS NULL OR jsonb_typeof(document) NOT IN ('object', 'array') THEN
		RAISE EXCEPTION 'the body of an event of provider "%" is no JSON document', $1
			USING ERRCODE = '22023', HINT = 'Have the provider send application/json, and pass the body as it is.';
	END IF;
	RETURN document;
END $$;
COMMENT ON FUNCTION reconcile.event_document(text, bytea) IS 'The body of an event. Error 22023 if it is no JSON object or array in UTF-8.';

CREATE FUNCTION reconcile.condition_holds(document jsonb, condition jsonpath) RETURNS boolean
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT EXISTS (SELECT FROM jsonb_path_query($1, $2, '{}', true) v WHERE v NOT IN ('false', 'null')) $$;
COMMENT ON FUNCTION reconcile.condition_holds(jsonb, jsonpath) IS 'Whether a jsonpath finds something that is neither false nor null.';

CREATE FUNCTION reconcile.text_at(document jsonb, path jsonpath, max_bytes integer) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT t FROM (SELECT v #>> '{}' AS t FROM jsonb_path_query($1, $2, '{}', true) v WHERE jsonb_typeof(v) IN ('string', 'number', 'boolean') LIMIT 1) x
	 WHERE t ~ '[^[:space:]]' AND octet_length(t) <= $3 $$;
COMMENT ON FUNCTION reconcile.text_at(jsonb, jsonpath, integer) IS
	'The first scalar that a jsonpath finds, as text, digit for digit; NULL if there is none, or it is blank or longer.';

-- The words now and infinity are times to PostgreSQL, and no instants.
CREATE FUNCTION reconcile.event_time(given text, latest timestamptz) RETURNS timestamptz
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
	result timestamptz;
BEGIN
	IF $1 ~ '^[0-9]{1,15}(\.[0-9]{1,9})?$' THEN
		result := to_timestamp(CASE WHEN $1::numeric >= 100000000000 THEN $1::numeric / 1000 ELSE $1::numeric END::double precision);
	ELSIF $1 ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.,]+ ?([Zz]|[+-][0-9:]+)?)?$' THEN
		result := $1::timestamptz;
	END IF;
	RETURN CASE WHEN result <= $2 THEN result END;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.event_time(text, timestamptz) IS
	'A time as providers write it: seconds or milliseconds since 1970, or ISO 8601, in UTC where no zone is given. NULL if it is none, or later than that: then it is not believed.';

-- Of which account and mode: every place must say so.
CREATE FUNCTION reconcile.check_event_is_ours(source reconcile.event_source, document jsonb) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	what text;
BEGIN
	SELECT w.what INTO what FROM (VALUES ('account', source.account_path, source.account), ('mode', source.mode_path, source.mode)) AS w (what, path, wanted)
	 WHERE w.path IS NOT NULL AND NOT coalesce((SELECT bool_and(v #>> '{}' = w.wanted) FROM jsonb_path_query($2, w.path, '{}', true) v), false) LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'event of provider "%" is refused: it is not of our %', source.provider, what
			USING ERRCODE = 'invalid_authorization_specification',
				HINT = format('event_source.%s says what must stand at %s_path. Another account or mode is another provider.', what, what);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_event_is_ours(reconcile.event_source, jsonb) IS 'Error 28000 if an event is of another account or mode than its source says.';

-- An id that the signature does not cover counts together with the body: nobody can use up the id of an event that is yet to come.
CREATE FUNCTION reconcile.event_id_of(source reconcile.event_source, headers jsonb, body bytea) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	header text := CASE WHEN source.scheme = 'standard_webhooks' THEN 'webhook-id' WHEN source.event_id_path IS NOT NULL THEN NULL
		WHEN source.event_id_header IS NOT NULL THEN source.event_id_header WHEN source.scheme = 'github' THEN 'x-github-delivery' END;
	given text := reconcile.event_header($2, header);
BEGIN
	IF octet_length(given) > 300 THEN
		RAISE EXCEPTION 'the id of an event of provider "%" is longer than 300 bytes', source.provider
			USING ERRCODE = '22023', HINT = 'See event_source.event_id_header.';
	END IF;
	RETURN CASE WHEN given ~ '[^[:space:]]' THEN given ||
		CASE WHEN source.scheme = 'standard_webhooks' OR source.signed_text LIKE '%{id}%' THEN '' ELSE ' sha256:' || encode(sha256($3), 'hex') END END;
END $$;
COMMENT ON FUNCTION reconcile.event_id_of(reconcile.event_source, jsonb, bytea) IS 'The id of what was received, where a header holds it; NULL if it is blank or not there. Error 22023 if it is too long.';

CREATE FUNCTION reconcile.take_event(source reconcile.event_source, item jsonb, delivery_id text, body bytea, OUT inbox_id bigint, OUT action_id uuid, OUT result text)
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	rule reconcile.event_rule;
	verified boolean := source.scheme <> 'none';
	id text := coalesce($3, reconcile.text_at($2, coalesce(source.event_id_path, CASE WHEN source.scheme = 'stripe' THEN '$.id'::jsonpath END), 400));
	says text := 'ignored';
	reference text;
	artifact text;
	occurred timestamptz;
	evidence jsonb;
BEGIN
	SELECT * INTO rule FROM reconcile.event_rule r WHERE r.provider = source.provider AND reconcile.condition_holds($2, r.condition) ORDER BY r.position LIMIT 1;
	IF FOUND THEN
		reference := reconcile.text_at($2, rule.reference_path, 1048576);
		reference := CASE WHEN rule.reference_pattern IS NULL THEN reference ELSE (regexp_match(reference, rule.reference_pattern))[1] END;
		reference := CASE WHEN octet_length(reference) <= 200 THEN reference END;	-- a longer one is not ours
		artifact := reconcile.text_at($2, rule.artifact_path, 1000);
		occurred := reconcile.event_time(reconcile.text_at($2, rule.occurred_path, 100), clock_timestamp() + extract(epoch FROM source.tolerance) * interval '1 second');
		says := CASE WHEN num_nonnulls(reference, artifact) > 0 THEN rule.says ELSE 'ignored' END;
	END IF;
	evidence := jsonb_strip_nulls(jsonb_build_object('rule', rule.position, 'because', rule.because, 'scheme', source.scheme, 'sha256', encode(sha256($4), 'hex'),
		'names_nothing', CASE WHEN says <> rule.says THEN true END));
	-- Without a signature it is its sender who speaks, and whose ids are its own.
	SELECT t.inbox_id, t.action_id, t.result INTO inbox_id, action_id, result
	  FROM reconcile.take_in(source.provider, CASE WHEN verified THEN id ELSE 'from ' || session_user || ': ' || id END, says, reference, artifact,
		occurred, evidence, verified, reconcile.redacted(substr($4, 1, 8192))) t;
END $$;
COMMENT ON FUNCTION reconcile.take_event(reconcile.event_source, jsonb, text, bytea) IS 'Read one event by the rules of its provider, and take it in.';

CREATE FUNCTION reconcile.receive_event(provider text, headers jsonb, body bytea) RETURNS TABLE (inbox_id bigint, action_id uuid, result text)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
	source reconcile.event_source;
	document jsonb;
	items jsonb[];
	delivery text;
BEGIN
	SELECT * INTO source FROM reconcile.event_source s WHERE s.provider = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'provider "%" has no source of events', $1
			USING ERRCODE = 'undefined_object', HINT = 'Say in reconcile.event_source how they are signed, and in reconcile.event_rule what they mean.';
	END IF;
	PERFORM reconcile.verify_event(source.provider, source.scheme, source.secret, source.tolerance, source.signature_header, source.signature_encoding,
		source.signature_prefix, source.signed_text, source.timestamp_header, $2, $3, source.event_id_header);
	document := reconcile.event_document($1, $3);
	PERFORM reconcile.check_event_is_ours(source, document);
	delivery := reconcile.event_id_of(source, $2, $3);
	items := ARRAY(SELECT v FROM jsonb_path_query(document, source.items_path, '{}', true) v LIMIT 1001);
	IF cardinality(items) > 1000 THEN
		RAISE EXCEPTION 'more than 1000 events of provider "%" at once', $1
			USING ERRCODE = '22023', HINT = 'See event_source.items_path, and how many the provider is told to send together.';
	END IF;
	-- Where there is none, it is kept that something came.
	RETURN QUERY SELECT t.inbox_id, (SELECT a.action_id FROM reconcile.action a WHERE a.action_id = t.action_id AND reconcile.may_see(a.submitter)), t.result
	  FROM unnest(CASE WHEN cardinality(items) = 0 THEN ARRAY[document] ELSE items END) WITH ORDINALITY AS i (item, n)
	 CROSS JOIN LATERAL reconcile.take_event(source, i.item, delivery || CASE WHEN cardinality(items) > 1 THEN format(' #%s', i.n) ELSE '' END, $3) t
	 ORDER BY i.n;
END $$;
COMMENT ON FUNCTION reconcile.receive_event(text, jsonb, bytea) IS
	'Take in what a provider has sent unasked: headers as {"name": "value"}, and the body byte for byte, for it is signed. The signature is checked; the event is stored, once for an id; it is applied at once if its action is free, else by the engine, or when the action appears. Never waits for an action. One row for each event: result as inbox.result, or stored; of an event that is there already, what became of it; the action only if it is the caller''s to see. Errors: 28000 not signed, wrongly signed, too old, or of another account or mode; 22023 no JSON, or too large; 42704 the provider has no source of events; 55000 its secret cannot be read.';

CREATE FUNCTION reconcile.receive_event(provider text, headers jsonb, body text) RETURNS TABLE (inbox_id bigint, action_id uuid, result text)
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT r.inbox_id, r.action_id, r.result FROM reconcile.receive_event($1, $2, convert_to($3, 'UTF8')) r $$;
COMMENT ON FUNCTION reconcile.receive_event(text, jsonb, text) IS 'The same with the body as text, which is signed as UTF-8. Errors as there: 28000, 22023, 42704, 55000.';

CREATE VIEW reconcile.unmatched_event AS
	SELECT i.inbox_id, i.provider, i.event_id, i.says, i.reference, i.artifact_id, i.occurred_at, i.received_at, i.sender, i.verified, i.evidence
	  FROM reconcile.inbox i WHERE i.action_id IS NULL AND i.applied_at IS NULL;
COMMENT ON VIEW reconcile.unmatched_event IS
	'What was said of an action that is not here: kept, and applied when the action appears. It may be of another system that shares the account, or of an effect that this database has lost.';

-- Events in profiles.

CREATE FUNCTION reconcile.apply_events(provider text, definition jsonb, local jsonb) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	changed text[] := '{}';
	step text;
	row jsonb;
	n integer;
BEGIN
	IF $2 IS NULL THEN
		IF $3 IS NOT NULL THEN
			PERFORM reconcile.profile_refused('the overrides are about events, and the profile has none', 'Define them in reconcile.event_source and reconcile.event_rule.');
		END IF;
		RETURN changed;			-- what was defined by hand stays
	END IF;
	step := reconcile.apply_row('events', jsonb_build_object('provider', $1), $2 - 'rules' || coalesce($3, '{}'), false);
	IF step IS NOT NULL THEN
		changed := changed || format('source of events of %s %s', $1, step);
	END IF;
	FOR n IN DELETE FROM reconcile.event_rule r WHERE r.provider = $1 AND r.position > jsonb_array_length($2 -> 'rules') RETURNING r.position LOOP
		changed := changed || format('event rule %s of %s removed', n, $1);
	END LOOP;
	FOR row, n IN SELECT e.row, e.n FROM jsonb_array_elements($2 -> 'rules') WITH ORDINALITY AS e (row, n) LOOP
		step := reconcile.apply_row('rules', jsonb_build_object('provider', $1, 'position', n), row, false);
		IF step IS NOT NULL THEN
			changed := changed || format('event rule %s of %s %s', n, $1, step);
		END IF;
	END LOOP;
	RETURN changed;
END $$;
COMMENT ON FUNCTION reconcile.apply_events(text, jsonb, jsonb) IS
	'Make the source of a provider''s events and its rules be those of its profile, but for the columns that are different here; returns what changed. A profile without events changes nothing.';
