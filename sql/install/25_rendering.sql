-- Parts of a request, made from templates.

CREATE FUNCTION reconcile.check_header_names(headers jsonb) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_check_header_names' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.check_header_names(jsonb) IS
	'Error 22023 unless every key is a header name that an operation may set and every value is a text.';

CREATE FUNCTION reconcile.names_secret(name text, in_address boolean) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_names_secret_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.names_secret(text, boolean) IS
	'Whether what bears this name gives access to something: a token, a password, a key, a cookie; in an address also a signature.';

CREATE FUNCTION reconcile.redacted(body bytea) RETURNS bytea
	AS 'MODULE_PATHNAME', 'ar_redacted' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.redacted(bytea) IS 'A body as it may be kept: asterisks stand for what stood behind the name of a secret.';

CREATE FUNCTION reconcile.render_headers(headers jsonb, client_reference text, payload jsonb) RETURNS text[]
	AS 'MODULE_PATHNAME', 'ar_render_headers' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_headers(jsonb, text, jsonb) IS
	'Headers with their templates filled in: name, value, name, value, ... Error 22023 if a value is missing or would break out of its line.';

CREATE FUNCTION reconcile.render_json(payload jsonb, reference_path text[], client_reference text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'ar_render_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_json(jsonb, text[], text) IS 'The payload with the client reference written into it. Error 22023 if there is no place for it.';

CREATE FUNCTION reconcile.render_request(op reconcile.operation, client_reference text, payload jsonb, idempotency_key text DEFAULT NULL,
		extra jsonb DEFAULT NULL, OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_render_request' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_request(reconcile.operation, text, jsonb, text, jsonb) IS
	'The path, headers (name, value, name, value, ...) and body of the request that an action makes. {credential} in a header stays as it is. NULL if operation, reference or payload are. Error 22023 with a hint if it cannot be made, also where it holds a key and the key is NULL.';

CREATE FUNCTION reconcile.try_render_request(op reconcile.operation, client_reference text, payload jsonb, idempotency_key text DEFAULT NULL,
		extra jsonb DEFAULT NULL, OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_try_render_request' LANGUAGE C IMMUTABLE;
COMMENT ON FUNCTION reconcile.try_render_request(reconcile.operation, text, jsonb, text, jsonb) IS
	'render_request() for the engine: all NULL where that would be an error, so that one action cannot hold up the others.';

CREATE FUNCTION reconcile.render_question(path text, headers jsonb, body jsonb, client_reference text, payload jsonb, idempotency_key text, extra jsonb,
		OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_render_question' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render_question(text, jsonb, jsonb, text, jsonb, text, jsonb) IS
	'The path, headers and JSON body of a question about an action, from templates; extra holds further values, which come before those of the payload. Any argument may be NULL: a path or body that is NULL stays NULL. Error 22023 with a hint if it cannot be made.';

CREATE FUNCTION reconcile.try_render_question(path text, headers jsonb, body jsonb, client_reference text, payload jsonb, idempotency_key text, extra jsonb,
		OUT path text, OUT headers text[], OUT body text)
	AS 'MODULE_PATHNAME', 'ar_try_render_question' LANGUAGE C IMMUTABLE;
COMMENT ON FUNCTION reconcile.try_render_question(text, jsonb, jsonb, text, jsonb, text, jsonb) IS
	'render_question() for the engine: all NULL, also the headers, where that would be an error.';

CREATE FUNCTION reconcile.takes_key(op reconcile.operation) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_takes_key' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.takes_key(reconcile.operation) IS
	'Whether the request of the operation holds an idempotency key: {idempotency_key} in path, headers or body, or key_body_path.';

CREATE FUNCTION reconcile.sends_reference(op reconcile.operation) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_sends_reference' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.sends_reference(reconcile.operation) IS
	'Whether the request of the operation holds the client reference: {client_reference} in path, headers or body, or reference_body_path.';

CREATE FUNCTION reconcile.make_identifier(action_id uuid, generation integer, format text) RETURNS text
	AS 'MODULE_PATHNAME', 'ar_make_identifier' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.make_identifier(uuid, integer, text) IS
	'An identifier of its own for each generation of an action: uuid (36 characters), hex (32), base32hex (26, 0-9 and a-v) or base62 (22). Generation 0 writes the action_id itself, later ones the first 128 bits of SHA-256 over its 16 bytes and the generation in 4 bytes, most significant first; as uuid with the bits of version 4. Error 22023 for another format or a negative generation.';

CREATE FUNCTION reconcile.try_jsonb(body text) RETURNS jsonb
	AS 'MODULE_PATHNAME', 'ar_try_jsonb' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION reconcile.try_jsonb(text) IS 'The body of an answer as jsonb; NULL if it is no JSON that jsonb can hold.';

CREATE FUNCTION reconcile.key_is_alive(lifetime interval, margin interval, needed_us bigint, first_at timestamptz, first_boot_us bigint, first_boot text,
		now_at timestamptz, now_boot_us bigint, now_boot text, latest_at timestamptz) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_key_is_alive_sql' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.key_is_alive(interval, interval, bigint, timestamptz, bigint, text, timestamptz, bigint, text, timestamptz) IS
	'Will the provider still know a key that was first sent then, if it is sent now and takes needed_us microseconds to arrive? By the clock that says that more time has passed; a wall clock behind latest_at says nothing. False in any doubt.';
