-- Parts of a request, made from templates.

CREATE FUNCTION reconcile.check_header_names(headers jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_check_header_names' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.check_header_names(jsonb) IS
	'Error 22023 unless every key is a header name that an operation may set and every value is a text.';

CREATE FUNCTION reconcile.render_headers(headers jsonb, client_reference text, payload jsonb) RETURNS text[]
	AS 'MODULE_PATHNAME', 'ar_render_headers' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_headers(jsonb, text, jsonb) IS
	'Headers with their templates filled in: name, value, name, value, ... Error 22023 if a value is missing or would break out of its line.';

CREATE FUNCTION reconcile.render_json(payload jsonb, reference_path text[], client_reference text) RETURNS jsonb
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	body jsonb := payload;
BEGIN
	IF jsonb_typeof(payload) <> 'object' THEN
		RAISE EXCEPTION 'the payload must be a JSON object to carry the client reference, not %', jsonb_typeof(payload)
			USING ERRCODE = '22023', HINT = 'The operation writes the reference into the body at reference_body_path.';
	END IF;
	-- Objects on the way that the payload does not hold are made.
	FOR depth IN 1 .. cardinality(reference_path) - 1 LOOP
		IF body #> reference_path[1:depth] IS NULL THEN
			body := jsonb_set(body, reference_path[1:depth], '{}', true);
		ELSIF jsonb_typeof(body #> reference_path[1:depth]) <> 'object' THEN
			RAISE EXCEPTION 'the client reference cannot be written into the payload at %', reference_path
				USING ERRCODE = '22023', HINT = format('There is something other than an object at %s.', reference_path[1:depth]);
		END IF;
	END LOOP;
	RETURN jsonb_set(body, reference_path, to_jsonb(client_reference), true);
END $$;
COMMENT ON FUNCTION reconcile.render_json(jsonb, text[], text) IS 'The payload with the client reference written into it. Error 22023 if there is no place for it.';
