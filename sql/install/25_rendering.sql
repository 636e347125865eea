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
	AS 'MODULE_PATHNAME', 'ar_render_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_json(jsonb, text[], text) IS 'The payload with the client reference written into it. Error 22023 if there is no place for it.';

CREATE FUNCTION reconcile.render_request(op reconcile.operation, client_reference text, payload jsonb,
		OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_render_request' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_request(reconcile.operation, text, jsonb) IS
	'The path, headers (name, value, name, value, ...) and body of the request that an action makes. Error 22023 with a hint if it cannot be made.';

CREATE FUNCTION reconcile.try_render_request(op reconcile.operation, client_reference text, payload jsonb,
		OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_try_render_request' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION reconcile.try_render_request(reconcile.operation, text, jsonb) IS
	'render_request() for the engine: all NULL where that would be an error, so that one action cannot hold up the others.';

CREATE FUNCTION reconcile.try_jsonb(body text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'ar_try_jsonb' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION reconcile.try_jsonb(text) IS 'The body of an answer as jsonb; NULL if it is no JSON that jsonb can hold.';
