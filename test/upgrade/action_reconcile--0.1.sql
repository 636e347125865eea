-- action_reconcile: installation script, joined from sql/install/*.sql
\echo Use "CREATE EXTENSION action_reconcile" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

DO $$
BEGIN
	-- Whoever owns the schema could put functions of its own beside ours.
	IF (SELECT nspowner FROM pg_namespace WHERE nspname = 'reconcile') <> (SELECT oid FROM pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'schema "reconcile" exists and belongs to somebody else'
			USING ERRCODE = 'duplicate_schema', HINT = 'Drop or rename it; the extension makes its own.';
	END IF;
	IF getdatabaseencoding() <> 'UTF8' THEN
		RAISE EXCEPTION 'action_reconcile needs a database with encoding UTF8, not %', getdatabaseencoding()
			USING ERRCODE = 'feature_not_supported', HINT = 'JSON, fingerprints and requests are UTF-8.';
	END IF;
END $$;

REVOKE ALL ON SCHEMA reconcile FROM PUBLIC;
COMMENT ON SCHEMA reconcile IS
	'External actions with provable outcomes. Submit with submit() or INSERT INTO action; follow with action_status and wait().';
-- The words of the model: plain enums for people and WHERE clauses, and two
-- base types that cannot hold what must not exist.

CREATE TYPE reconcile.delivery AS ENUM ('pending', 'confirmed', 'failed');
COMMENT ON TYPE reconcile.delivery IS 'Did the action reach the provider and get an answer?';

CREATE TYPE reconcile.acceptance AS ENUM ('pending', 'accepted', 'rejected');
COMMENT ON TYPE reconcile.acceptance IS 'Did the provider carry the action out? Means nothing before delivery is confirmed.';

CREATE TYPE reconcile.status AS ENUM ('CONFIRMED', 'FAILED', 'DENIED_UNRESOLVED');
COMMENT ON TYPE reconcile.status IS
	'What a caller may rely on. DENIED_UNRESOLVED: not known yet, do not repeat the action by other means.';

CREATE TYPE reconcile.state AS ENUM ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review',
	'delivered', 'succeeded', 'rejected', 'safe_to_retry', 'cancelled', 'expired', 'abandoned');
COMMENT ON TYPE reconcile.state IS 'The step of its life that an action or an attempt is in; see the view transition_rule.';

CREATE TYPE reconcile.window_source AS ENUM ('documented', 'measured', 'assumed');
COMMENT ON TYPE reconcile.window_source IS 'Where a consistency window comes from. An assumed one needs one more negative answer.';

CREATE TYPE reconcile.answer_class AS ENUM ('accepted', 'accepted_async', 'rejected', 'not_executed', 'throttled',
	'in_progress', 'already_exists', 'unknown', 'key_mismatch');
COMMENT ON TYPE reconcile.answer_class IS
	'What a complete answer means. not_executed and throttled are proof that nothing was done; in_progress, already_exists and unknown are settled by a lookup; key_mismatch, the key was used with another request, is for a person.';

CREATE TYPE reconcile.tier AS ENUM ('FULL', 'RECONCILABLE', 'KEYED', 'PARTIAL', 'BLIND');
COMMENT ON TYPE reconcile.tier IS
	'How well a lost answer can be settled: FULL by an id, a key and a query; RECONCILABLE by a query for our reference; KEYED by the key only; PARTIAL knows an id but not from us; BLIND has nothing.';

CREATE TYPE reconcile.standing;

CREATE FUNCTION reconcile.standing_in(cstring) RETURNS reconcile.standing
	AS 'MODULE_PATHNAME', 'ar_standing_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.standing_out(reconcile.standing) RETURNS cstring
	AS 'MODULE_PATHNAME', 'ar_standing_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.standing_recv(internal) RETURNS reconcile.standing
	AS 'MODULE_PATHNAME', 'ar_standing_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.standing_send(reconcile.standing) RETURNS bytea
	AS 'MODULE_PATHNAME', 'ar_standing_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE reconcile.standing (
	INPUT = reconcile.standing_in, OUTPUT = reconcile.standing_out,
	RECEIVE = reconcile.standing_recv, SEND = reconcile.standing_send,
	INTERNALLENGTH = 1, PASSEDBYVALUE, ALIGNMENT = char, STORAGE = plain
);
COMMENT ON TYPE reconcile.standing IS
	'The pair delivery/acceptance, such as confirmed/accepted. Only five pairs exist; no other can be stored.';

CREATE TYPE reconcile.intent_fingerprint;

CREATE FUNCTION reconcile.intent_fingerprint_in(cstring) RETURNS reconcile.intent_fingerprint
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.intent_fingerprint_out(reconcile.intent_fingerprint) RETURNS cstring
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.intent_fingerprint_recv(internal) RETURNS reconcile.intent_fingerprint
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION reconcile.intent_fingerprint_send(reconcile.intent_fingerprint) RETURNS bytea
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE reconcile.intent_fingerprint (
	INPUT = reconcile.intent_fingerprint_in, OUTPUT = reconcile.intent_fingerprint_out,
	RECEIVE = reconcile.intent_fingerprint_recv, SEND = reconcile.intent_fingerprint_send,
	INTERNALLENGTH = 32, ALIGNMENT = char, STORAGE = plain
);
COMMENT ON TYPE reconcile.intent_fingerprint IS
	'SHA-256 over the canonical method, path and payload of an intent; text form sha256: and 64 hexadecimal digits.';

-- Comparison and hashing of the two base types.

CREATE FUNCTION reconcile.standing_eq(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_eq' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.= (
	FUNCTION = reconcile.standing_eq, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.=), NEGATOR = OPERATOR(reconcile.<>),
	RESTRICT = pg_catalog.eqsel, JOIN = pg_catalog.eqjoinsel, HASHES, MERGES
);
CREATE FUNCTION reconcile.standing_ne(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_ne' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.<> (
	FUNCTION = reconcile.standing_ne, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.<>), NEGATOR = OPERATOR(reconcile.=),
	RESTRICT = pg_catalog.neqsel, JOIN = pg_catalog.neqjoinsel
);
CREATE FUNCTION reconcile.standing_lt(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_lt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.< (
	FUNCTION = reconcile.standing_lt, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.>), NEGATOR = OPERATOR(reconcile.>=),
	RESTRICT = pg_catalog.scalarltsel, JOIN = pg_catalog.scalarltjoinsel
);
CREATE FUNCTION reconcile.standing_le(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_le' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.<= (
	FUNCTION = reconcile.standing_le, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.>=), NEGATOR = OPERATOR(reconcile.>),
	RESTRICT = pg_catalog.scalarlesel, JOIN = pg_catalog.scalarlejoinsel
);
CREATE FUNCTION reconcile.standing_gt(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_gt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.> (
	FUNCTION = reconcile.standing_gt, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.<), NEGATOR = OPERATOR(reconcile.<=),
	RESTRICT = pg_catalog.scalargtsel, JOIN = pg_catalog.scalargtjoinsel
);
CREATE FUNCTION reconcile.standing_ge(reconcile.standing, reconcile.standing) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_standing_ge' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.>= (
	FUNCTION = reconcile.standing_ge, LEFTARG = reconcile.standing, RIGHTARG = reconcile.standing,
	COMMUTATOR = OPERATOR(reconcile.<=), NEGATOR = OPERATOR(reconcile.<),
	RESTRICT = pg_catalog.scalargesel, JOIN = pg_catalog.scalargejoinsel
);
CREATE FUNCTION reconcile.standing_cmp(reconcile.standing, reconcile.standing) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_standing_cmp' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION reconcile.standing_hash(reconcile.standing) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_standing_hash' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION reconcile.standing_hash_extended(reconcile.standing, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME', 'ar_standing_hash_extended' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR CLASS reconcile.standing_ops DEFAULT FOR TYPE reconcile.standing USING btree AS
	OPERATOR 1 reconcile.< (reconcile.standing, reconcile.standing),
	OPERATOR 2 reconcile.<= (reconcile.standing, reconcile.standing),
	OPERATOR 3 reconcile.= (reconcile.standing, reconcile.standing),
	OPERATOR 4 reconcile.>= (reconcile.standing, reconcile.standing),
	OPERATOR 5 reconcile.> (reconcile.standing, reconcile.standing),
	FUNCTION 1 reconcile.standing_cmp(reconcile.standing, reconcile.standing);
CREATE OPERATOR CLASS reconcile.standing_hash_ops DEFAULT FOR TYPE reconcile.standing USING hash AS
	OPERATOR 1 reconcile.= (reconcile.standing, reconcile.standing),
	FUNCTION 1 reconcile.standing_hash(reconcile.standing),
	FUNCTION 2 reconcile.standing_hash_extended(reconcile.standing, bigint);

CREATE FUNCTION reconcile.intent_fingerprint_eq(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_eq' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.= (
	FUNCTION = reconcile.intent_fingerprint_eq, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.=), NEGATOR = OPERATOR(reconcile.<>),
	RESTRICT = pg_catalog.eqsel, JOIN = pg_catalog.eqjoinsel, HASHES, MERGES
);
CREATE FUNCTION reconcile.intent_fingerprint_ne(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_ne' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.<> (
	FUNCTION = reconcile.intent_fingerprint_ne, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.<>), NEGATOR = OPERATOR(reconcile.=),
	RESTRICT = pg_catalog.neqsel, JOIN = pg_catalog.neqjoinsel
);
CREATE FUNCTION reconcile.intent_fingerprint_lt(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_lt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.< (
	FUNCTION = reconcile.intent_fingerprint_lt, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.>), NEGATOR = OPERATOR(reconcile.>=),
	RESTRICT = pg_catalog.scalarltsel, JOIN = pg_catalog.scalarltjoinsel
);
CREATE FUNCTION reconcile.intent_fingerprint_le(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_le' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.<= (
	FUNCTION = reconcile.intent_fingerprint_le, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.>=), NEGATOR = OPERATOR(reconcile.>),
	RESTRICT = pg_catalog.scalarlesel, JOIN = pg_catalog.scalarlejoinsel
);
CREATE FUNCTION reconcile.intent_fingerprint_gt(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_gt' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.> (
	FUNCTION = reconcile.intent_fingerprint_gt, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.<), NEGATOR = OPERATOR(reconcile.<=),
	RESTRICT = pg_catalog.scalargtsel, JOIN = pg_catalog.scalargtjoinsel
);
CREATE FUNCTION reconcile.intent_fingerprint_ge(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_ge' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR reconcile.>= (
	FUNCTION = reconcile.intent_fingerprint_ge, LEFTARG = reconcile.intent_fingerprint, RIGHTARG = reconcile.intent_fingerprint,
	COMMUTATOR = OPERATOR(reconcile.<=), NEGATOR = OPERATOR(reconcile.<),
	RESTRICT = pg_catalog.scalargesel, JOIN = pg_catalog.scalargejoinsel
);
CREATE FUNCTION reconcile.intent_fingerprint_cmp(reconcile.intent_fingerprint, reconcile.intent_fingerprint) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_cmp' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION reconcile.intent_fingerprint_hash(reconcile.intent_fingerprint) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_hash' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE FUNCTION reconcile.intent_fingerprint_hash_extended(reconcile.intent_fingerprint, bigint) RETURNS bigint
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint_hash_extended' LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;
CREATE OPERATOR CLASS reconcile.intent_fingerprint_ops DEFAULT FOR TYPE reconcile.intent_fingerprint USING btree AS
	OPERATOR 1 reconcile.< (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	OPERATOR 2 reconcile.<= (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	OPERATOR 3 reconcile.= (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	OPERATOR 4 reconcile.>= (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	OPERATOR 5 reconcile.> (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	FUNCTION 1 reconcile.intent_fingerprint_cmp(reconcile.intent_fingerprint, reconcile.intent_fingerprint);
CREATE OPERATOR CLASS reconcile.intent_fingerprint_hash_ops DEFAULT FOR TYPE reconcile.intent_fingerprint USING hash AS
	OPERATOR 1 reconcile.= (reconcile.intent_fingerprint, reconcile.intent_fingerprint),
	FUNCTION 1 reconcile.intent_fingerprint_hash(reconcile.intent_fingerprint),
	FUNCTION 2 reconcile.intent_fingerprint_hash_extended(reconcile.intent_fingerprint, bigint);

-- What follows from a standing, and the fingerprint of an intent.

CREATE FUNCTION reconcile.delivery(standing reconcile.standing) RETURNS reconcile.delivery
	AS 'MODULE_PATHNAME', 'ar_standing_delivery_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.delivery(reconcile.standing) IS 'The delivery half of a standing.';

CREATE FUNCTION reconcile.acceptance(standing reconcile.standing) RETURNS reconcile.acceptance
	AS 'MODULE_PATHNAME', 'ar_standing_acceptance_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.acceptance(reconcile.standing) IS 'The acceptance half of a standing.';

CREATE FUNCTION reconcile.resolved_status(standing reconcile.standing) RETURNS reconcile.status
	AS 'MODULE_PATHNAME', 'ar_standing_resolved_status' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.resolved_status(reconcile.standing) IS
	'What a caller may rely on: CONFIRMED, FAILED or DENIED_UNRESOLVED.';

CREATE FUNCTION reconcile.standing(delivery reconcile.delivery, acceptance reconcile.acceptance) RETURNS reconcile.standing
	AS 'MODULE_PATHNAME', 'ar_standing_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.standing(reconcile.delivery, reconcile.acceptance) IS
	'The standing of this pair. Error 22023 for a verdict before confirmed delivery.';

CREATE FUNCTION reconcile.fold(attempts reconcile.standing[], queued boolean) RETURNS reconcile.standing
	AS 'MODULE_PATHNAME', 'ar_fold_attempts' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.fold(reconcile.standing[], boolean) IS
	'The standing of an action with these attempts, in any order; queued: a further one will go out by itself.';

CREATE FUNCTION reconcile.intent_fingerprint(method text, path text, payload jsonb) RETURNS reconcile.intent_fingerprint
	AS 'MODULE_PATHNAME', 'ar_intent_fingerprint' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.intent_fingerprint(text, text, jsonb) IS
	'SHA-256 over the canonical JSON {"method","path","payload"} with sorted keys and no spaces; the method counts in upper case.';

CREATE FUNCTION reconcile.new_action_id() RETURNS uuid
	AS 'MODULE_PATHNAME', 'ar_new_action_id' LANGUAGE C VOLATILE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.new_action_id() IS 'A time-ordered uuid (version 7). Those of one session ascend.';

CREATE FUNCTION reconcile.render(template text, part text, client_reference text, payload jsonb) RETURNS text
	AS 'MODULE_PATHNAME', 'ar_render' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.render(text, text, text, jsonb) IS
	'Fill {client_reference} and {payload key}, or {key.key} of a nested object, into a template for a part of a request: path, header, text, json (inside a string) or form. Error 22023 if a value is missing or would break out of its place.';
-- What an integrator describes once: providers, operations, and how to ask.

CREATE TABLE reconcile.installation (
	only_row boolean PRIMARY KEY DEFAULT true,
	prefix text NOT NULL,
	CONSTRAINT installation_only_row CHECK (only_row)
);
COMMENT ON TABLE reconcile.installation IS
	'At most one row, made when first needed: the prefix that keeps callers'' own references of this installation apart from those of others.';

CREATE TABLE reconcile.provider (
	provider text COLLATE "C" PRIMARY KEY,
	version integer NOT NULL DEFAULT 1,
	base_url text NOT NULL,
	consistency_window interval NOT NULL DEFAULT '30 seconds',
	window_source reconcile.window_source NOT NULL DEFAULT 'assumed',
	late_arrival_max interval NOT NULL DEFAULT '60 seconds',
	max_in_flight integer NOT NULL DEFAULT 16,
	connect_timeout interval NOT NULL DEFAULT '5 seconds',
	attempt_timeout interval NOT NULL DEFAULT '30 seconds',
	max_response_bytes integer NOT NULL DEFAULT 1048576,
	allow_http boolean NOT NULL DEFAULT false,
	allow_private_addresses boolean NOT NULL DEFAULT false,
	ca_file text,
	paused_at timestamptz,
	paused_reason text,
	window_pinned boolean NOT NULL DEFAULT false,
	credential text,
	profile text,
	profile_version integer,
	CONSTRAINT provider_name CHECK (provider ~ '^[a-z][a-z0-9_.-]{0,62}$'),
	CONSTRAINT provider_base_url CHECK (base_url ~ '^https?://[^/?#@[:space:][:cntrl:]]+(/[^?#[:space:][:cntrl:]]*[^/?#[:space:][:cntrl:]])?$'),
	CONSTRAINT provider_https CHECK (allow_http OR base_url LIKE 'https://%'),
	CONSTRAINT provider_window CHECK (extract(epoch FROM consistency_window) BETWEEN 0 AND 5184000),
	CONSTRAINT provider_late_arrival CHECK (extract(epoch FROM late_arrival_max) BETWEEN 0 AND 604800),
	CONSTRAINT provider_max_in_flight CHECK (max_in_flight BETWEEN 1 AND 1000),
	CONSTRAINT provider_connect_timeout CHECK (extract(epoch FROM connect_timeout) BETWEEN 0.01 AND 300),
	CONSTRAINT provider_attempt_timeout CHECK (extract(epoch FROM attempt_timeout) BETWEEN 0.01 AND 3600),
	CONSTRAINT provider_max_response_bytes CHECK (max_response_bytes BETWEEN 1024 AND 67108864),
	CONSTRAINT provider_paused CHECK ((paused_at IS NULL) = (paused_reason IS NULL)),
	CONSTRAINT provider_credential CHECK (credential ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
	CONSTRAINT provider_profile CHECK ((profile IS NULL) = (profile_version IS NULL))
);
COMMENT ON TABLE reconcile.provider IS 'An external system: its address, its consistency window, its limits.';
COMMENT ON COLUMN reconcile.provider.version IS 'Counts changes of the row; every attempt names the version it was sent under.';
COMMENT ON COLUMN reconcile.provider.base_url IS
	'Scheme, host and path prefix without a trailing slash. Cannot change while an action of the provider is unresolved.';
COMMENT ON COLUMN reconcile.provider.consistency_window IS
	'How long after a request could last have taken effect a "not found" still proves nothing. Elapsed time: 1 day is 24 hours.';
COMMENT ON COLUMN reconcile.provider.late_arrival_max IS
	'How long after the end of an attempt the provider may still execute it. Added before the window starts.';
COMMENT ON COLUMN reconcile.provider.max_in_flight IS 'Requests open at the same time, per database.';
COMMENT ON COLUMN reconcile.provider.connect_timeout IS 'Limit for resolving, connecting and TLS. Running into it proves that nothing was sent.';
COMMENT ON COLUMN reconcile.provider.attempt_timeout IS 'Limit for a whole attempt, from its start. Running into it after the first byte leaves the outcome unknown.';
COMMENT ON COLUMN reconcile.provider.max_response_bytes IS 'An answer is cut there; a cut answer is no complete answer.';
COMMENT ON COLUMN reconcile.provider.allow_http IS 'Allow unencrypted http.';
COMMENT ON COLUMN reconcile.provider.allow_private_addresses IS 'Allow loopback, private and link-local addresses, tested on the resolved address at connect time.';
COMMENT ON COLUMN reconcile.provider.ca_file IS 'File with the trusted certificates; NULL is the system''s bundle.';
COMMENT ON COLUMN reconcile.provider.paused_at IS 'When sending to the provider was paused; NULL if it is not. See pause() and resume().';

COMMENT ON COLUMN reconcile.provider.window_pinned IS 'The windows stay as they are, even if an object has been seen after one had closed.';
COMMENT ON COLUMN reconcile.provider.credential IS
	'Name of the file in action_reconcile.credential_dir whose first line stands for {credential} in headers. Its content never passes through SQL: where an answer repeats it, asterisks are kept. Another name is another account: it cannot be set while an action of the provider may have happened.';
COMMENT ON COLUMN reconcile.provider.profile IS 'The profile that define_provider() took the definition from; NULL if it was written by hand.';
COMMENT ON COLUMN reconcile.provider.profile_version IS 'The version of that profile.';

CREATE TABLE reconcile.operation (
	operation text COLLATE "C" PRIMARY KEY,
	version integer NOT NULL DEFAULT 1,
	provider text COLLATE "C" NOT NULL REFERENCES reconcile.provider,
	method text NOT NULL DEFAULT 'POST',
	path text NOT NULL,
	headers jsonb NOT NULL DEFAULT '{"Content-Type": "application/json"}',
	effect text NOT NULL,
	body_format text NOT NULL DEFAULT 'json',
	body_document jsonb,
	body_template text,
	reference_body_path text[],
	reference_format text NOT NULL DEFAULT 'uuid',
	reference_max_length integer NOT NULL DEFAULT 200,
	reference_is_global boolean NOT NULL DEFAULT false,
	key_body_path text[],
	key_format text NOT NULL DEFAULT 'uuid',
	key_max_length integer,
	key_lifetime interval,
	key_lifetime_source reconcile.window_source,
	key_margin interval NOT NULL DEFAULT '1 minute',
	key_replay text,
	artifact_path jsonpath,
	artifact_header text,
	on_absent text NOT NULL DEFAULT 'hold',
	max_replacements integer NOT NULL DEFAULT 3,
	retry_pause interval NOT NULL DEFAULT '1 second',
	retry_pause_max interval NOT NULL DEFAULT '1 minute',
	retry_after_max interval NOT NULL DEFAULT '10 minutes',
	acceptance_max_age interval NOT NULL DEFAULT '7 days',
	requires_approval boolean NOT NULL DEFAULT false,
	approver_is_another boolean NOT NULL DEFAULT true,
	example jsonb,
	claims reconcile.tier,
	CONSTRAINT operation_name CHECK (operation ~ '^[a-z][a-z0-9_.-]{0,62}$'),
	CONSTRAINT operation_method CHECK (method IN ('POST', 'PUT', 'PATCH', 'DELETE')),
	CONSTRAINT operation_path CHECK (path ~ '^/[^#[:space:][:cntrl:]]*$'),
	CONSTRAINT operation_headers CHECK (jsonb_typeof(headers) = 'object'),
	CONSTRAINT operation_effect CHECK (effect IN ('create', 'update', 'delete')),
	CONSTRAINT operation_body_format CHECK (body_format IN ('json', 'form', 'none')),
	CONSTRAINT operation_one_body CHECK (body_template IS NULL OR (reference_body_path IS NULL AND key_body_path IS NULL AND body_document IS NULL AND body_format = 'json')),
	CONSTRAINT operation_no_body CHECK (body_format <> 'none' OR (reference_body_path IS NULL AND key_body_path IS NULL AND body_document IS NULL)),
	CONSTRAINT operation_reference_format CHECK (reference_format IN ('uuid', 'hex', 'base32hex', 'base62')),
	CONSTRAINT operation_reference_max_length CHECK (reference_max_length BETWEEN CASE reference_format WHEN 'uuid' THEN 36 WHEN 'hex' THEN 32 WHEN 'base32hex' THEN 26 ELSE 22 END AND 200),
	CONSTRAINT operation_key_format CHECK (key_format IN ('uuid', 'hex', 'base32hex', 'base62', 'reference')),
	CONSTRAINT operation_key_max_length CHECK (key_max_length >= CASE key_format WHEN 'uuid' THEN 36 WHEN 'hex' THEN 32 WHEN 'base32hex' THEN 26 WHEN 'base62' THEN 22 ELSE reference_max_length END),
	CONSTRAINT operation_key_lifetime CHECK (extract(epoch FROM key_lifetime) BETWEEN 1 AND 315360000),
	CONSTRAINT operation_key_lifetime_source CHECK ((key_lifetime IS NULL) = (key_lifetime_source IS NULL)),
	CONSTRAINT operation_key_margin CHECK (extract(epoch FROM key_margin) BETWEEN 0 AND 31536000),
	CONSTRAINT operation_key_replay CHECK (key_replay IN ('stored_reply', 'current_state', 'reattempt')),
	CONSTRAINT operation_acceptance_max_age CHECK (extract(epoch FROM acceptance_max_age) BETWEEN 1 AND 31536000),
	CONSTRAINT operation_one_artifact CHECK (artifact_path IS NULL OR artifact_header IS NULL),
	CONSTRAINT operation_on_absent CHECK (on_absent IN ('hold', 'replace')),
	CONSTRAINT operation_max_replacements CHECK (max_replacements BETWEEN 0 AND 100),
	CONSTRAINT operation_retry_pause CHECK (extract(epoch FROM retry_pause) >= 0.001 AND extract(epoch FROM retry_pause) <= extract(epoch FROM retry_pause_max)
		AND extract(epoch FROM retry_pause_max) <= 86400),
	CONSTRAINT operation_retry_after_max CHECK (extract(epoch FROM retry_after_max) BETWEEN 0 AND 604800)
);
COMMENT ON TABLE reconcile.operation IS 'One kind of write at a provider: the request it makes, and what is done when its answer is lost.';
COMMENT ON COLUMN reconcile.operation.version IS 'Counts changes of the row; every attempt names the version it was sent under.';
COMMENT ON COLUMN reconcile.operation.path IS 'Template under the provider''s base_url; {client_reference} and {payload key} are filled in, percent-encoded.';
COMMENT ON COLUMN reconcile.operation.headers IS 'Request headers; values may hold {client_reference} and {payload key}. Framing headers are refused.';
COMMENT ON COLUMN reconcile.operation.effect IS
	'create, update or delete: what a lookup has to show for the action to have happened. By default what the method says: DELETE deletes, PATCH updates, others create.';
COMMENT ON COLUMN reconcile.operation.body_format IS
	'How the payload, or body_document, is written: json, form (application/x-www-form-urlencoded with nested brackets) or none.';
COMMENT ON COLUMN reconcile.operation.body_document IS
	'The body as a JSON template; NULL sends the payload itself. A text that is one placeholder takes the value with its type; {name?} leaves the member out where the payload lacks it.';
COMMENT ON COLUMN reconcile.operation.reference_format IS
	'How a client reference that the caller does not give is written: uuid (36 characters), hex (32), base32hex (26, a-v and 0-9), base62 (22).';
COMMENT ON COLUMN reconcile.operation.reference_max_length IS 'The longest client reference that the provider keeps.';
COMMENT ON COLUMN reconcile.operation.key_body_path IS
	'Where the idempotency key is written into the body. Elsewhere it is placed by {idempotency_key} in path, headers or body.';
COMMENT ON COLUMN reconcile.operation.key_format IS 'How an idempotency key is written: as reference_format, or reference: the client reference is the key.';
COMMENT ON COLUMN reconcile.operation.key_max_length IS 'The longest key that the provider takes; NULL if it states none.';
COMMENT ON COLUMN reconcile.operation.key_lifetime IS
	'How long the provider removes duplicates by a key, counted from its first send. NULL is unknown, which counts as not at all.';
COMMENT ON COLUMN reconcile.operation.key_lifetime_source IS 'Where that is known from.';
COMMENT ON COLUMN reconcile.operation.key_margin IS 'A key is not relied upon so long before its end.';
COMMENT ON COLUMN reconcile.operation.key_replay IS
	'What a repeated key is answered with: the stored_reply, the current_state of what was made, or by reattempt of work that had failed; NULL is unknown.';
COMMENT ON COLUMN reconcile.operation.acceptance_max_age IS
	'So long after an answer that promised a verdict the action goes to manual_review if there is none. Never a verdict by itself.';
COMMENT ON COLUMN reconcile.operation.requires_approval IS 'Its actions are held until somebody releases them, naming the fingerprint that is approved.';
COMMENT ON COLUMN reconcile.operation.approver_is_another IS 'Who has submitted an action cannot approve it.';
COMMENT ON COLUMN reconcile.operation.example IS 'A payload for preview(), measure_window() and self_test().';
COMMENT ON COLUMN reconcile.operation.claims IS 'The tier that the author of the definition claims; a definition that does not bear it is refused.';
COMMENT ON COLUMN reconcile.operation.body_template IS 'Text body with {client_reference} and {payload key}; NULL sends the payload as JSON.';
COMMENT ON COLUMN reconcile.operation.reference_body_path IS 'Where the client reference is written into the JSON body, such as {metadata,ref}.';
COMMENT ON COLUMN reconcile.operation.reference_is_global IS 'A caller''s own reference is globally unique and goes out without the installation''s prefix.';
COMMENT ON COLUMN reconcile.operation.artifact_path IS 'Where the JSON answer holds the provider''s id of the thing made. A success without it is not believed but looked up.';
COMMENT ON COLUMN reconcile.operation.artifact_header IS 'The response header that holds that id. Without path and header the client reference is the id.';
COMMENT ON COLUMN reconcile.operation.on_absent IS 'When an attempt is proven not to have happened: hold for a person or the application, or replace by itself.';
COMMENT ON COLUMN reconcile.operation.max_replacements IS 'Bound on automatic replacements of one action.';
COMMENT ON COLUMN reconcile.operation.retry_pause IS 'Pause after an attempt that proved not sent; doubles up to retry_pause_max.';

COMMENT ON COLUMN reconcile.operation.retry_after_max IS 'A Retry-After of an answer that proves that nothing was done is honoured up to here.';

CREATE TABLE reconcile.response_rule (
	operation text COLLATE "C" NOT NULL REFERENCES reconcile.operation,
	position integer NOT NULL,
	statuses integer[],
	header_name text,
	header_value text,
	body_path jsonpath,
	applies_to text NOT NULL DEFAULT 'any',
	class reconcile.answer_class NOT NULL,
	stored_reply boolean NOT NULL DEFAULT false,
	artifact_path jsonpath,
	because text NOT NULL,
	PRIMARY KEY (operation, position),
	CONSTRAINT response_rule_position CHECK (position BETWEEN 1 AND 1000),
	CONSTRAINT response_rule_statuses CHECK (cardinality(statuses) > 0 AND 200 <= ALL (statuses) AND 599 >= ALL (statuses)),
	CONSTRAINT response_rule_header CHECK ((header_name IS NULL) = (header_value IS NULL)),
	CONSTRAINT response_rule_header_name CHECK (header_name IN ('content-type', 'location', 'retry-after', 'etag', 'date', 'link',
		'idempotent-replayed', 'x-request-id', 'request-id', 'x-message-id', 'stripe-should-retry', 'transient-error', 'x-idempotency-lookup',
		'idempotency-key', 'x-ratelimit-remaining')),
	CONSTRAINT response_rule_applies_to CHECK (applies_to IN ('any', 'first', 'replay')),
	CONSTRAINT response_rule_stored_reply CHECK (NOT stored_reply OR applies_to = 'replay'),
	CONSTRAINT response_rule_says_something CHECK (statuses IS NOT NULL OR header_name IS NOT NULL OR body_path IS NOT NULL),
	CONSTRAINT response_rule_because CHECK (because ~ '[^[:space:]]')
);
COMMENT ON TABLE reconcile.response_rule IS
	'What the answers of an operation mean where the default map of statuses is wrong for it. The first rule, by position, whose conditions all hold decides; the history names it.';
COMMENT ON COLUMN reconcile.response_rule.statuses IS 'HTTP statuses it is about; NULL is any.';
COMMENT ON COLUMN reconcile.response_rule.header_name IS 'A response header, in lower case, that must have header_value; only headers that are kept can be named.';
COMMENT ON COLUMN reconcile.response_rule.body_path IS
	'A jsonpath that must find something in the JSON body. A success whose body cannot be read is then looked up, not believed.';
COMMENT ON COLUMN reconcile.response_rule.class IS 'What such an answer means.';
COMMENT ON COLUMN reconcile.response_rule.applies_to IS
	'any answer; first: only to a key that was not sent before; replay: to one that was, above all when the very same request is sent again.';
COMMENT ON COLUMN reconcile.response_rule.stored_reply IS
	'Such an answer is the stored reply to the earlier request, so a rejection in it settles the earlier attempts too.';
COMMENT ON COLUMN reconcile.response_rule.artifact_path IS 'Where this answer holds the artifact id, if elsewhere than the operation says.';
COMMENT ON COLUMN reconcile.response_rule.because IS 'How this is known: what the provider documents, or what was observed.';

CREATE TABLE reconcile.lookup_rule (
	operation text COLLATE "C" NOT NULL REFERENCES reconcile.operation,
	position integer NOT NULL DEFAULT 1,
	kind text NOT NULL,
	method text NOT NULL DEFAULT 'GET',
	path text,
	headers jsonb NOT NULL DEFAULT '{"Accept": "application/json"}',
	body jsonb,
	found_statuses integer[] NOT NULL DEFAULT '{200}',
	absent_statuses integer[] NOT NULL DEFAULT '{}',
	items_path jsonpath,
	reference_path jsonpath,
	reference_match text NOT NULL DEFAULT 'equals',
	body_match text,
	match_values jsonb,
	match_is_unique boolean NOT NULL DEFAULT false,
	created_path jsonpath,
	skew interval NOT NULL DEFAULT '5 minutes',
	exclude_path jsonpath,
	gone_path jsonpath,
	incomplete_if jsonpath,
	absence_proves boolean NOT NULL DEFAULT true,
	artifact_path jsonpath,
	artifact_header text,
	paging text NOT NULL DEFAULT 'none',
	paging_path jsonpath,
	paging_parameter text,
	paging_body_path text[],
	paging_more jsonpath,
	page_size integer,
	max_pages integer NOT NULL DEFAULT 10,
	canary text NOT NULL DEFAULT 'newest',
	canary_reference text,
	consistency_window interval,
	window_source reconcile.window_source,
	window_pinned boolean NOT NULL DEFAULT false,
	min_negatives integer NOT NULL DEFAULT 1,
	negative_spacing interval NOT NULL DEFAULT '5 seconds',
	pause interval NOT NULL DEFAULT '1 second',
	pause_max interval NOT NULL DEFAULT '1 minute',
	max_inconclusive integer NOT NULL DEFAULT 8,
	timeout interval NOT NULL DEFAULT '10 seconds',
	PRIMARY KEY (operation, position),
	CONSTRAINT lookup_rule_position CHECK (position BETWEEN 1 AND 100),
	CONSTRAINT lookup_rule_kind CHECK (kind IN ('get_by_reference', 'list_by_reference', 'list_scan', 'search', 'replay_by_key')),
	CONSTRAINT lookup_rule_method CHECK (method IN ('GET', 'POST') AND (method = 'POST' OR body IS NULL)),
	CONSTRAINT lookup_rule_path CHECK (path ~ '^/[^#[:space:][:cntrl:]]*$' AND (path IS NULL) = (kind = 'replay_by_key')),
	CONSTRAINT lookup_rule_headers CHECK (jsonb_typeof(headers) = 'object'),
	CONSTRAINT lookup_rule_list CHECK (kind NOT IN ('list_by_reference', 'list_scan', 'search') OR (items_path IS NOT NULL AND body_match IS NULL
		AND (reference_path IS NOT NULL OR match_values IS NOT NULL))),
	CONSTRAINT lookup_rule_get CHECK (kind <> 'get_by_reference' OR (items_path IS NULL AND num_nonnulls(reference_path, body_match, match_values) > 0
		AND (reference_path IS NULL OR body_match IS NULL) AND cardinality(absent_statuses) + (gone_path IS NOT NULL)::integer > 0)),
	CONSTRAINT lookup_rule_replay CHECK (kind <> 'replay_by_key' OR num_nonnulls(body, items_path, reference_path, body_match, match_values, gone_path, paging_path) = 0),
	CONSTRAINT lookup_rule_body_match CHECK (body_match ~ '\{[^{}]+\}'),
	CONSTRAINT lookup_rule_reference_match CHECK (reference_match IN ('equals', 'contains')),
	CONSTRAINT lookup_rule_match_values CHECK (jsonb_typeof(match_values) = 'object' AND match_values <> '{}'),
	CONSTRAINT lookup_rule_unique_match CHECK (NOT match_is_unique OR (match_values IS NOT NULL AND created_path IS NOT NULL)),
	CONSTRAINT lookup_rule_statuses CHECK (NOT found_statuses && absent_statuses AND cardinality(found_statuses) > 0),
	CONSTRAINT lookup_rule_one_artifact CHECK (artifact_path IS NULL OR artifact_header IS NULL),
	CONSTRAINT lookup_rule_paging CHECK (paging IN ('none', 'link', 'next_url', 'cursor', 'offset', 'page')),
	CONSTRAINT lookup_rule_paging_path CHECK ((paging IN ('next_url', 'cursor')) = (paging_path IS NOT NULL)),
	CONSTRAINT lookup_rule_paging_parameter CHECK ((paging IN ('cursor', 'offset', 'page')) = (num_nonnulls(paging_parameter, paging_body_path) = 1)
		AND paging_parameter ~ '^[A-Za-z0-9_.~$-]+$' AND (paging_body_path IS NULL OR body IS NOT NULL)),
	CONSTRAINT lookup_rule_page_size CHECK (page_size BETWEEN 1 AND 10000 AND (page_size IS NOT NULL OR paging NOT IN ('offset', 'page'))),
	CONSTRAINT lookup_rule_max_pages CHECK (max_pages BETWEEN 1 AND 1000),
	CONSTRAINT lookup_rule_canary CHECK (canary IN ('newest', 'none', 'fixed') AND (canary = 'fixed') = (canary_reference IS NOT NULL)),
	CONSTRAINT lookup_rule_skew CHECK (extract(epoch FROM skew) BETWEEN 0 AND 86400),
	CONSTRAINT lookup_rule_window CHECK (extract(epoch FROM consistency_window) BETWEEN 0 AND 5184000),
	CONSTRAINT lookup_rule_window_source CHECK ((consistency_window IS NULL) = (window_source IS NULL)),
	CONSTRAINT lookup_rule_min_negatives CHECK (min_negatives BETWEEN 1 AND 20),
	CONSTRAINT lookup_rule_spacing CHECK (extract(epoch FROM negative_spacing) BETWEEN 0 AND 604800),
	CONSTRAINT lookup_rule_pause CHECK (extract(epoch FROM pause) >= 0.001 AND extract(epoch FROM pause) <= extract(epoch FROM pause_max)
		AND extract(epoch FROM pause_max) <= 604800),
	CONSTRAINT lookup_rule_max_inconclusive CHECK (max_inconclusive BETWEEN 1 AND 1000),
	CONSTRAINT lookup_rule_timeout CHECK (extract(epoch FROM timeout) BETWEEN 0.01 AND 600)
);
COMMENT ON TABLE reconcile.lookup_rule IS
	'How the provider is asked about an action whose outcome is unknown: rule after rule, by position, until one settles it. An operation without a rule goes to manual_review at once.';
COMMENT ON COLUMN reconcile.lookup_rule.kind IS
	'get_by_reference: the path names the object; list_by_reference: a list filtered by the reference; list_scan: a list of everything, searched here; search: a search index; replay_by_key: the very same request again with its idempotency key, only while that is provably alive.';
COMMENT ON COLUMN reconcile.lookup_rule.method IS 'GET, or POST for a question that is asked with a body and changes nothing.';
COMMENT ON COLUMN reconcile.lookup_rule.path IS
	'Template under the provider''s base_url with {client_reference}, {idempotency_key}, {payload key}, {artifact_id}, and {since_unix}, {since_iso}, {until_unix}, {until_iso}: from skew before the first send to skew from now.';
COMMENT ON COLUMN reconcile.lookup_rule.body IS 'The body of a POST as a JSON template, as operation.body_document.';
COMMENT ON COLUMN reconcile.lookup_rule.found_statuses IS 'Statuses whose body is searched for the reference.';
COMMENT ON COLUMN reconcile.lookup_rule.absent_statuses IS 'Statuses that by themselves mean "not there", such as 404; only where the provider cannot mean "not allowed" by them. A page of HTML with such a status is a gateway''s and means nothing.';
COMMENT ON COLUMN reconcile.lookup_rule.items_path IS 'The objects in the JSON answer of a list. An answer without the list is inconclusive.';
COMMENT ON COLUMN reconcile.lookup_rule.reference_path IS 'The client reference inside an object.';
COMMENT ON COLUMN reconcile.lookup_rule.reference_match IS
	'equals: it must be ours, character for character; contains: ours must stand in it whole, as in a text that carries a marker; letters and digits beside it, or joined to it by . _ ~ -, belong to another one.';
COMMENT ON COLUMN reconcile.lookup_rule.match_values IS
	'Further conditions, {"jsonpath": "template"}: what the path finds in an object must equal the filled-in template, as text. Without a reference such a match is a candidate that a person has to judge, unless match_is_unique.';
COMMENT ON COLUMN reconcile.lookup_rule.match_is_unique IS 'The provider can hold only one object with these values in the time between the first send, less skew, and the gate.';
COMMENT ON COLUMN reconcile.lookup_rule.created_path IS 'When an object was made: an ISO 8601 text, or seconds since 1970.';
COMMENT ON COLUMN reconcile.lookup_rule.skew IS 'How far the provider''s clock may be off.';
COMMENT ON COLUMN reconcile.lookup_rule.exclude_path IS 'An object in which this finds something is not of the kind that is looked for.';
COMMENT ON COLUMN reconcile.lookup_rule.gone_path IS 'An object in which this finds something was made and has been removed since: a tombstone. For a delete it is the proof.';
COMMENT ON COLUMN reconcile.lookup_rule.incomplete_if IS 'An answer in which this finds something does not show everything, and proves no absence.';
COMMENT ON COLUMN reconcile.lookup_rule.absence_proves IS 'False: a negative proves nothing here, and the next rule is asked.';
COMMENT ON COLUMN reconcile.lookup_rule.paging IS
	'How further pages are asked for: link (header), next_url or cursor (at paging_path in the body), offset or page (counted here); none if there is one page only.';
COMMENT ON COLUMN reconcile.lookup_rule.paging_path IS 'Where the body holds the URL of the next page, or the cursor; nothing there ends the list.';
COMMENT ON COLUMN reconcile.lookup_rule.paging_parameter IS 'The query parameter that takes the cursor, offset or page number.';
COMMENT ON COLUMN reconcile.lookup_rule.paging_body_path IS 'The same in the body of a POST.';
COMMENT ON COLUMN reconcile.lookup_rule.paging_more IS 'Must yield true for there to be another page; NULL if the provider has no such flag.';
COMMENT ON COLUMN reconcile.lookup_rule.page_size IS 'Rows in a full page, for offset and page: a shorter one is the last.';
COMMENT ON COLUMN reconcile.lookup_rule.max_pages IS 'More pages than that are not read, and the answer is then inconclusive.';
COMMENT ON COLUMN reconcile.lookup_rule.canary IS
	'Which object must be found by the same rule before a negative is believed: the newest accepted one, a fixed one (canary_reference), or none; without one a further negative is required.';
COMMENT ON COLUMN reconcile.lookup_rule.canary_reference IS 'The client reference of an object that is always there.';
COMMENT ON COLUMN reconcile.lookup_rule.window_pinned IS 'The window of this rule stays as it is, even if an object has been seen after it had closed.';
COMMENT ON COLUMN reconcile.lookup_rule.body_match IS 'For bodies that are not JSON: text that must occur, holding {client_reference} or, for what is changed or deleted, the {payload key} that names it.';
COMMENT ON COLUMN reconcile.lookup_rule.consistency_window IS 'The window of this lookup, where it differs from the provider''s.';
COMMENT ON COLUMN reconcile.lookup_rule.min_negatives IS 'Negatives required at least; an assumed window needs two, and one more is asked while no known object proves the surface to work.';
COMMENT ON COLUMN reconcile.lookup_rule.negative_spacing IS 'Pause between two required negatives.';
COMMENT ON COLUMN reconcile.lookup_rule.pause IS 'Pause after an answer that proves nothing; doubles up to pause_max.';
COMMENT ON COLUMN reconcile.lookup_rule.max_inconclusive IS 'So many answers that prove nothing lead to manual_review.';
COMMENT ON COLUMN reconcile.lookup_rule.timeout IS 'Limit for one question.';

CREATE TABLE reconcile.poll_rule (
	operation text COLLATE "C" PRIMARY KEY REFERENCES reconcile.operation,
	path text,
	url_header text,
	url_path jsonpath,
	headers jsonb NOT NULL DEFAULT '{"Accept": "application/json"}',
	state_path jsonpath NOT NULL,
	accepted text[] NOT NULL,
	rejected text[] NOT NULL DEFAULT '{}',
	artifact_path jsonpath,
	pause interval NOT NULL DEFAULT '1 second',
	pause_max interval NOT NULL DEFAULT '5 minutes',
	timeout interval NOT NULL DEFAULT '10 seconds',
	CONSTRAINT poll_rule_place CHECK (num_nonnulls(path, url_header, url_path) = 1),
	CONSTRAINT poll_rule_path CHECK (path ~ '^/[^#[:space:][:cntrl:]]*$'),
	CONSTRAINT poll_rule_url_header CHECK (url_header IN ('location', 'content-location', 'operation-location', 'azure-asyncoperation')),
	CONSTRAINT poll_rule_headers CHECK (jsonb_typeof(headers) = 'object'),
	CONSTRAINT poll_rule_states CHECK (cardinality(accepted) > 0 AND NOT accepted && rejected AND array_position(accepted || rejected, NULL) IS NULL),
	CONSTRAINT poll_rule_pause CHECK (extract(epoch FROM pause) >= 0.001 AND extract(epoch FROM pause) <= extract(epoch FROM pause_max)
		AND extract(epoch FROM pause_max) <= 604800),
	CONSTRAINT poll_rule_timeout CHECK (extract(epoch FROM timeout) BETWEEN 0.01 AND 600)
);
COMMENT ON TABLE reconcile.poll_rule IS
	'How the provider is asked whether it has carried out what it had taken (delivered). Without a rule the verdict must come by an event; see operation.acceptance_max_age.';
COMMENT ON COLUMN reconcile.poll_rule.path IS 'Template under the provider''s base_url, with {artifact_id}, {client_reference} and {payload key}.';
COMMENT ON COLUMN reconcile.poll_rule.url_header IS 'The response header that holds the URL to ask; it must be one of the provider''s own.';
COMMENT ON COLUMN reconcile.poll_rule.url_path IS 'The same in the JSON body of the answer.';
COMMENT ON COLUMN reconcile.poll_rule.state_path IS 'The state inside the answer.';
COMMENT ON COLUMN reconcile.poll_rule.accepted IS 'States that mean: carried out, for good.';
COMMENT ON COLUMN reconcile.poll_rule.rejected IS 'States that mean: refused or failed, for good. Every other state means: not decided yet.';
COMMENT ON COLUMN reconcile.poll_rule.artifact_path IS 'Where an accepting answer holds the artifact id, if it is known only then.';
COMMENT ON COLUMN reconcile.poll_rule.pause IS 'Pause before the first question and between two; doubles up to pause_max.';
COMMENT ON COLUMN reconcile.poll_rule.timeout IS 'Limit for one question.';
-- What happens: actions, their attempts, the lookups about them, the clock.

CREATE TABLE reconcile.action (
	action_id uuid PRIMARY KEY DEFAULT reconcile.new_action_id(),
	operation text COLLATE "C" NOT NULL,
	payload jsonb NOT NULL DEFAULT '{}',
	intent_key text COLLATE "C",
	client_reference text COLLATE "C" NOT NULL,
	deliberate_repeat boolean NOT NULL DEFAULT false,
	not_before timestamptz,
	not_after timestamptz,
	priority smallint NOT NULL DEFAULT 0,
	ordering_key text COLLATE "C",
	after_failure boolean NOT NULL DEFAULT false,
	depends_on uuid[],
	provider text COLLATE "C" NOT NULL,
	submitter name NOT NULL,
	submitted_at timestamptz NOT NULL,
	fingerprint reconcile.intent_fingerprint NOT NULL,
	-- where it stands
	state reconcile.state NOT NULL,
	standing reconcile.standing NOT NULL,
	queued boolean NOT NULL,
	waits boolean NOT NULL DEFAULT false,
	held boolean NOT NULL DEFAULT false,
	held_because text,
	approved_by name,
	redacted_at timestamptz,
	attempts integer NOT NULL DEFAULT 0,
	dispatch_id uuid,
	artifact_id text,
	-- when something is to be done about it
	due_at timestamptz,
	gate_us bigint,
	eligible_at timestamptz,
	failures integer NOT NULL DEFAULT 0,
	negatives integer NOT NULL DEFAULT 0,
	inconclusives integer NOT NULL DEFAULT 0,
	replacements integer NOT NULL DEFAULT 0,
	looked_at timestamptz,
	looked_boot_us bigint,
	looked_lifetime text,
	existed boolean,
	before_digest text,
	lookup_position integer NOT NULL DEFAULT 0,
	-- the idempotency key, and when it was first sent
	idempotency_key text,
	key_generation integer NOT NULL DEFAULT 0,
	key_first_at timestamptz,
	key_first_boot_us bigint,
	key_first_boot text,
	drill text,
	-- the last transition, as it was put into the history
	version integer NOT NULL,
	event text NOT NULL,
	attempt_number integer,
	evidence jsonb NOT NULL,
	actor text NOT NULL,
	recorded_at timestamptz NOT NULL,
	transaction xid8 NOT NULL,
	chain_head bytea NOT NULL,
	CONSTRAINT action_chain CHECK (octet_length(chain_head) = 32),
	CONSTRAINT action_planned_is_due CHECK (state <> 'planned' OR (due_at IS NOT NULL AND queued)),
	CONSTRAINT action_queue CHECK (NOT queued OR state IN ('planned', 'reconciling')),
	CONSTRAINT action_priority CHECK (priority BETWEEN -2 AND 2),
	CONSTRAINT action_held CHECK (held = (held_because IS NOT NULL)),
	CONSTRAINT action_drill CHECK (drill IN ('probe', 'answer_lost', 'request_lost'))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000);
-- What a caller may say is checked once, by the guard of the insert; these hold for every version of the row.
COMMENT ON TABLE reconcile.action IS
	'One intended effect on the outside world. Insert operation, payload and, if wanted, intent_key, client_reference, deliberate_repeat, not_before, not_after; everything else follows by itself.';
COMMENT ON COLUMN reconcile.action.intent_key IS 'The caller''s name for the intent, scoped by submitter and operation: the same key and payload is the same action.';
COMMENT ON COLUMN reconcile.action.client_reference IS 'What the provider can be asked for; unique per provider, the same for all attempts.';
COMMENT ON COLUMN reconcile.action.deliberate_repeat IS 'The caller says that this really is a further, equal effect.';
COMMENT ON COLUMN reconcile.action.not_after IS 'Not sent after this instant. What may already have happened never expires.';
COMMENT ON COLUMN reconcile.action.priority IS 'From -2 to 2: of what is due at a provider, the higher goes first.';
COMMENT ON COLUMN reconcile.action.ordering_key IS
	'Actions of one submitter with the same key go out one after another: of those that wait the one with the lowest id, when the one before it is settled and no other is open. Who submits with a key waits for other transactions that do, so that the order of the ids is the order of the commits.';
COMMENT ON COLUMN reconcile.action.after_failure IS 'It may go even if the action before it with the same ordering_key has FAILED.';
COMMENT ON COLUMN reconcile.action.depends_on IS
	'Actions that must have succeeded first; {depends_on.1.artifact_id} stands for the artifact id of the first of them.';
COMMENT ON COLUMN reconcile.action.waits IS 'It is not its turn yet: another action comes first.';
COMMENT ON COLUMN reconcile.action.held IS 'Queued, but not sent before release().';
COMMENT ON COLUMN reconcile.action.held_because IS 'Why.';
COMMENT ON COLUMN reconcile.action.approved_by IS 'Who approved it, where the operation or the submission asked for approval.';
COMMENT ON COLUMN reconcile.action.redacted_at IS 'When payload and bodies were removed; see redact().';
COMMENT ON COLUMN reconcile.action.submitter IS 'The session user who recorded the action.';
COMMENT ON COLUMN reconcile.action.queued IS 'An attempt will go out by itself.';
COMMENT ON COLUMN reconcile.action.gate_us IS 'When the provider may next be asked, on the logical clock of this database, microseconds.';
COMMENT ON COLUMN reconcile.action.eligible_at IS 'The same for people: not earlier than this.';
COMMENT ON COLUMN reconcile.action.looked_at IS
	'When the lookup was asked on which the next send rests: the absence behind a replacement, the presence of what is to be deleted. -infinity: one is needed first.';
COMMENT ON COLUMN reconcile.action.looked_boot_us IS 'The same on the clock since boot, microseconds; with looked_lifetime it tells how old that answer is.';
COMMENT ON COLUMN reconcile.action.existed IS 'What is to be deleted or updated was seen (or was not there) before the first send; NULL: not known.';
COMMENT ON COLUMN reconcile.action.before_digest IS 'A digest of what is to be updated as it was seen before the first send.';
COMMENT ON COLUMN reconcile.action.lookup_position IS 'The lookup rule that is asked next: the first one from this position on.';
COMMENT ON COLUMN reconcile.action.idempotency_key IS 'The key of the attempts; NULL if the operation sends none.';
COMMENT ON COLUMN reconcile.action.key_generation IS 'Counts the keys of this action; a further one only after the earlier attempts are settled.';
COMMENT ON COLUMN reconcile.action.key_first_at IS 'When the key was first claimed for sending.';
COMMENT ON COLUMN reconcile.action.key_first_boot_us IS 'The same on the clock since boot, microseconds.';
COMMENT ON COLUMN reconcile.action.key_first_boot IS 'Which boot of the machine that was.';
COMMENT ON COLUMN reconcile.action.drill IS
	'A marked action of measure_window() or self_test(): probe is watched until lookups show it; answer_lost throws its first answer away; request_lost takes its first attempt for sent though it was not.';
COMMENT ON COLUMN reconcile.action.version IS 'Counts transitions; equals the version of the last history entry.';
COMMENT ON COLUMN reconcile.action.chain_head IS 'Hash of the last history entry.';

CREATE UNIQUE INDEX action_reference ON reconcile.action (provider, client_reference);
CREATE UNIQUE INDEX action_intent ON reconcile.action (submitter, operation, intent_key) WHERE intent_key IS NOT NULL;
-- Equal intents without a key are joined while the first one is unresolved.
CREATE UNIQUE INDEX action_unresolved_intent ON reconcile.action (fingerprint, operation, submitter)
	WHERE intent_key IS NULL AND NOT deliberate_repeat
	AND state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered');
-- The same intent after proof of absence continues its action; few stay there.
CREATE INDEX action_absent_intent ON reconcile.action (fingerprint, operation, submitter)
	WHERE intent_key IS NULL AND NOT deliberate_repeat AND state = 'safe_to_retry';
-- Everything the engine still has to do with; small, whatever the table holds.
CREATE INDEX action_open ON reconcile.action (provider, state, waits, held, priority, due_at, action_id)
	WHERE state IN ('planned', 'submitted', 'reconciling');
-- Who waits for whom; the one before is found among all of a key.
CREATE INDEX action_waiting ON reconcile.action (submitter, ordering_key, action_id) WHERE state = 'planned' AND waits AND ordering_key IS NOT NULL;
CREATE INDEX action_ordering ON reconcile.action (submitter, ordering_key, action_id) WHERE ordering_key IS NOT NULL;
CREATE INDEX action_ordered_open ON reconcile.action (submitter, ordering_key)
	WHERE ordering_key IS NOT NULL AND NOT waits AND state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered');
CREATE INDEX action_dependent ON reconcile.action (action_id) WHERE state = 'planned' AND waits AND depends_on IS NOT NULL;
-- What waits for a person.
CREATE INDEX action_for_people ON reconcile.action (provider, action_id) WHERE state = 'manual_review' OR held;
CREATE INDEX action_expiry ON reconcile.action (not_after) WHERE state = 'planned' AND not_after IS NOT NULL;
CREATE INDEX action_gate ON reconcile.action (gate_us)
	WHERE state IN ('outcome_unknown', 'delivered', 'succeeded') AND gate_us IS NOT NULL;
-- One object confirms one action.
CREATE INDEX action_artifact ON reconcile.action (provider, artifact_id) WHERE artifact_id IS NOT NULL;
CREATE INDEX action_replacement ON reconcile.action (due_at)
	WHERE state = 'planned' AND looked_at IS NOT NULL;

CREATE TABLE reconcile.attempt (
	action_id uuid NOT NULL,
	number integer NOT NULL,
	dispatch_id uuid NOT NULL,
	provider text COLLATE "C" NOT NULL,
	provider_version integer NOT NULL,
	operation_version integer NOT NULL,
	base_url text NOT NULL,
	request_hash bytea NOT NULL,
	idempotency_key text,
	epoch bigint NOT NULL,
	dispatched_at timestamptz NOT NULL,
	ended_at timestamptz,
	window_us bigint NOT NULL,
	late_arrival_us bigint NOT NULL,
	gate_us bigint NOT NULL,
	state reconcile.state NOT NULL,
	standing reconcile.standing NOT NULL,
	event text NOT NULL,
	evidence jsonb NOT NULL,
	http_status integer,
	artifact_id text,
	response_body bytea,
	poll_url text,
	version integer NOT NULL,
	PRIMARY KEY (action_id, number),
	CONSTRAINT attempt_window CHECK (window_us >= 0 AND late_arrival_us >= 0)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_limit = 2000);
COMMENT ON TABLE reconcile.attempt IS 'One try to carry an action out, durable before its first byte leaves. Written by the engine only.';
-- No index names a column that changes, so that the end of an attempt is a heap-only update.
COMMENT ON COLUMN reconcile.attempt.base_url IS 'The address the attempt was sent to; lookups about it go there.';
COMMENT ON COLUMN reconcile.attempt.request_hash IS 'SHA-256 over method, path, headers and body as sent.';
COMMENT ON COLUMN reconcile.attempt.idempotency_key IS 'The key it was sent with; attempts with one key have one request_hash.';
COMMENT ON COLUMN reconcile.attempt.epoch IS 'Which run of the engine sent it.';
COMMENT ON COLUMN reconcile.attempt.window_us IS 'The consistency window that counts for this attempt, microseconds.';
COMMENT ON COLUMN reconcile.attempt.late_arrival_us IS 'How long after its end the provider may still execute it, microseconds.';
COMMENT ON COLUMN reconcile.attempt.gate_us IS 'Until then, on the logical clock of this database in microseconds, a "not found" proves nothing about this attempt.';
COMMENT ON COLUMN reconcile.attempt.response_body IS 'The first 8 kB of the answer''s body.';
COMMENT ON COLUMN reconcile.attempt.poll_url IS 'Where the answer says that its verdict can be asked for.';

CREATE TABLE reconcile.lookup (
	lookup_id uuid PRIMARY KEY,
	action_id uuid NOT NULL,
	action_version integer NOT NULL,
	epoch bigint NOT NULL,
	position integer,
	kind text NOT NULL,
	asked_at timestamptz NOT NULL,
	asked_us bigint NOT NULL,
	answered_at timestamptz,
	result text,
	reason text,
	http_status integer,
	matches integer,
	artifact_id text,
	pages integer,
	objects integer,
	CONSTRAINT lookup_result CHECK (result IN ('found', 'absent', 'inconclusive', 'ambiguous', 'lost')),
	CONSTRAINT lookup_answered CHECK ((answered_at IS NULL) = (result IS NULL) AND (result IS NULL) = (reason IS NULL))
) WITH (fillfactor = 80);
COMMENT ON TABLE reconcile.lookup IS 'One question to the provider about an action, and what its answer proves.';
COMMENT ON COLUMN reconcile.lookup.epoch IS 'Which run of the engine asked.';
COMMENT ON COLUMN reconcile.lookup.position IS 'The lookup rule it was asked by; NULL for a poll.';
COMMENT ON COLUMN reconcile.lookup.kind IS 'The kind of that rule, or poll: a question about the acceptance of what was delivered.';
COMMENT ON COLUMN reconcile.lookup.pages IS 'Pages that were read.';
COMMENT ON COLUMN reconcile.lookup.objects IS 'Objects that were seen on them.';
COMMENT ON COLUMN reconcile.lookup.asked_us IS 'When it was asked, on the logical clock of this database, microseconds.';
COMMENT ON COLUMN reconcile.lookup.result IS 'found, absent (one valid negative), inconclusive, ambiguous, or lost: the engine that asked is gone.';
CREATE INDEX lookup_of_action ON reconcile.lookup (action_id, asked_at);
CREATE INDEX lookup_open ON reconcile.lookup (action_id) WHERE answered_at IS NULL;

CREATE TABLE reconcile.inbox (
	inbox_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	provider text COLLATE "C" NOT NULL,
	event_id text COLLATE "C",
	says text NOT NULL,
	reference text COLLATE "C",
	artifact_id text COLLATE "C",
	occurred_at timestamptz,
	received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	sender name NOT NULL DEFAULT session_user,
	verified boolean NOT NULL DEFAULT false,
	evidence jsonb NOT NULL,
	body bytea,
	action_id uuid,
	applied_at timestamptz,
	result text,
	CONSTRAINT inbox_event_id CHECK (event_id ~ '[^[:space:]]' AND octet_length(event_id) <= 500),
	CONSTRAINT inbox_says CHECK (says IN ('executed', 'accepted', 'rejected', 'ignored')),
	CONSTRAINT inbox_about_something CHECK (says = 'ignored' OR num_nonnulls(reference, artifact_id) > 0),
	CONSTRAINT inbox_result CHECK (result IN ('applied', 'known', 'older', 'contradiction', 'ignored')),
	CONSTRAINT inbox_applied CHECK ((applied_at IS NULL) = (result IS NULL))
);
COMMENT ON TABLE reconcile.inbox IS
	'Everything that was said about actions without being asked for: stored first, applied when its action is free. What matches no action is kept, and applied when the action appears.';
COMMENT ON COLUMN reconcile.inbox.event_id IS 'The provider''s id of the event: the same one is stored once.';
COMMENT ON COLUMN reconcile.inbox.says IS 'executed: the provider has it; accepted, rejected: its verdict; ignored: nothing about an outcome.';
COMMENT ON COLUMN reconcile.inbox.reference IS 'The client reference that it is about.';
COMMENT ON COLUMN reconcile.inbox.artifact_id IS 'The provider''s id of the object.';
COMMENT ON COLUMN reconcile.inbox.occurred_at IS 'When it happened, by the provider''s word.';
COMMENT ON COLUMN reconcile.inbox.sender IS 'The session user who brought it.';
COMMENT ON COLUMN reconcile.inbox.verified IS
	'Its signature was the provider''s, so it may speak of any action of that provider, whoever brought it.';
COMMENT ON COLUMN reconcile.inbox.body IS 'The first 8 kB of what was received.';
COMMENT ON COLUMN reconcile.inbox.action_id IS 'The action that it is about; NULL as long as there is none.';
COMMENT ON COLUMN reconcile.inbox.result IS
	'applied: it changed something; known: it said nothing new; older: newer facts stood against it; contradiction: it speaks against a verdict, see incident; ignored.';
COMMENT ON SEQUENCE reconcile.inbox_inbox_id_seq IS 'Numbers what comes in.';
CREATE UNIQUE INDEX inbox_event ON reconcile.inbox (provider, event_id) WHERE event_id IS NOT NULL;
-- No two of these can answer the same question, so that none is taken for another while the table is small.
CREATE INDEX inbox_unapplied ON reconcile.inbox (action_id, inbox_id) WHERE applied_at IS NULL AND action_id IS NOT NULL;
CREATE INDEX inbox_unmatched_reference ON reconcile.inbox (provider, reference) WHERE action_id IS NULL AND applied_at IS NULL AND reference IS NOT NULL;
CREATE INDEX inbox_unmatched_artifact ON reconcile.inbox (provider, artifact_id) WHERE action_id IS NULL AND applied_at IS NULL AND reference IS NULL;
CREATE INDEX inbox_of_action ON reconcile.inbox (action_id) WHERE action_id IS NOT NULL;

CREATE TABLE reconcile.incident (
	incident_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	kind text NOT NULL,
	opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	provider text COLLATE "C" NOT NULL,
	operation text COLLATE "C",
	action_id uuid,
	details jsonb NOT NULL,
	closed_at timestamptz,
	closed_by name,
	closing_reason text,
	CONSTRAINT incident_kind CHECK (kind IN ('window_violation', 'duplicate', 'contradiction')),
	CONSTRAINT incident_closed CHECK ((closed_at IS NULL) = (closed_by IS NULL) AND (closed_by IS NULL) = (closing_reason IS NULL))
);
COMMENT ON TABLE reconcile.incident IS
	'What must not be: window_violation (an object appeared after the window had closed), duplicate (two effects for one action), contradiction (evidence against a verdict). One of a kind for an action.';
COMMENT ON COLUMN reconcile.incident.details IS 'What was seen, with the evidence.';
COMMENT ON SEQUENCE reconcile.incident_incident_id_seq IS 'Numbers incidents.';
CREATE UNIQUE INDEX incident_of_action ON reconcile.incident (action_id, kind);

CREATE TABLE reconcile.window_sample (
	sample_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	operation text COLLATE "C" NOT NULL,
	position integer NOT NULL,
	action_id uuid NOT NULL,
	source text NOT NULL,
	sampled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	lag_us bigint NOT NULL,
	lag_low_us bigint,
	concurrency integer,
	CONSTRAINT window_sample_source CHECK (source IN ('probe', 'lookup')),
	CONSTRAINT window_sample_lag CHECK (lag_low_us <= lag_us)
);
COMMENT ON TABLE reconcile.window_sample IS 'How long after the end of an attempt its effect was visible to a lookup.';
COMMENT ON COLUMN reconcile.window_sample.position IS 'The lookup rule that saw it.';
COMMENT ON COLUMN reconcile.window_sample.source IS 'probe: by measure_window(), asked again and again; lookup: by ordinary traffic, asked once its gate was open.';
COMMENT ON COLUMN reconcile.window_sample.lag_us IS 'It was visible so long after the end of the attempt, microseconds: an upper bound.';
COMMENT ON COLUMN reconcile.window_sample.lag_low_us IS 'It was not yet visible then; NULL if nobody had asked before.';
COMMENT ON COLUMN reconcile.window_sample.concurrency IS 'How many probes were open at the same time.';
COMMENT ON SEQUENCE reconcile.window_sample_sample_id_seq IS 'Numbers samples.';
CREATE INDEX window_sample_of_operation ON reconcile.window_sample (operation, position, sampled_at);

CREATE TABLE reconcile.clock (
	lifetime text PRIMARY KEY,
	elapsed_us bigint NOT NULL,
	monotonic_us bigint NOT NULL,
	wall_at timestamptz NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE reconcile.clock IS
	'The durable logical clock: it counts elapsed time, may be late, and is never ahead. It opens the gates. One row for each postmaster lifetime that is not yet forgotten; the furthest counts.';
COMMENT ON COLUMN reconcile.clock.elapsed_us IS 'Elapsed time when last stored, microseconds.';
COMMENT ON COLUMN reconcile.clock.monotonic_us IS 'The machine''s monotonic clock at that moment, microseconds.';
COMMENT ON COLUMN reconcile.clock.wall_at IS
	'The latest reading of the wall clock so far. While that stands behind it, no idempotency key counts as alive; if it was wrong, a superuser can set it right.';
COMMENT ON COLUMN reconcile.clock.lifetime IS 'The postmaster lifetime in which monotonic_us was read; another one resumes from elapsed_us.';

CREATE TABLE reconcile.arming (
	only_row boolean PRIMARY KEY DEFAULT true,
	token text NOT NULL,
	epoch bigint NOT NULL,
	system_identifier bigint NOT NULL,
	timeline integer NOT NULL,
	database_oid oid NOT NULL,
	armed_at timestamptz NOT NULL,
	armed_by name NOT NULL,
	reason text NOT NULL,
	CONSTRAINT arming_only_row CHECK (only_row)
);
COMMENT ON TABLE reconcile.arming IS
	'Which installation may send: compared with the token file outside the data directory before every claim. Never dumped, so a restored copy is disarmed.';
-- The history: append-only, one hash chain per action, partitioned by month.

CREATE TABLE reconcile.history (
	action_id uuid NOT NULL,
	version integer NOT NULL,
	recorded_at timestamptz NOT NULL,
	attempt_number integer,
	event text NOT NULL,
	from_state reconcile.state,
	to_state reconcile.state NOT NULL,
	standing reconcile.standing NOT NULL,
	evidence jsonb NOT NULL,
	actor text NOT NULL,
	transaction xid8 NOT NULL,
	previous_hash bytea NOT NULL,
	hash bytea NOT NULL
) PARTITION BY RANGE (recorded_at);
COMMENT ON TABLE reconcile.history IS
	'Every transition of every action, with its evidence and its actor. Appended by trigger, never changed; verify_history() checks the chain.';
COMMENT ON COLUMN reconcile.history.hash IS 'SHA-256 over this entry and the hash of the one before.';

CREATE TABLE reconcile.history_default PARTITION OF reconcile.history DEFAULT;
-- An index per partition, none on the parent: what is attached by a restored dump brings its own.
CREATE UNIQUE INDEX history_default_entry ON reconcile.history_default (action_id, version);
COMMENT ON TABLE reconcile.history_default IS 'Catches entries outside every monthly partition; should be empty.';

CREATE FUNCTION reconcile.refuse_change() RETURNS trigger
	AS 'MODULE_PATHNAME', 'ar_refuse_change' LANGUAGE C;
COMMENT ON FUNCTION reconcile.refuse_change() IS 'Trigger: refuses UPDATE, DELETE and TRUNCATE with SQLSTATE 55000, also for the owner.';

CREATE TRIGGER history_append_only BEFORE UPDATE OR DELETE ON reconcile.history
	FOR EACH ROW EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.history ENABLE ALWAYS TRIGGER history_append_only;
ALTER TABLE reconcile.history_default ENABLE ALWAYS TRIGGER history_append_only;
CREATE TRIGGER history_no_truncate BEFORE TRUNCATE ON reconcile.history
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.history ENABLE ALWAYS TRIGGER history_no_truncate;
CREATE TRIGGER history_no_truncate BEFORE TRUNCATE ON reconcile.history_default
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.history_default ENABLE ALWAYS TRIGGER history_no_truncate;

-- Submissions that made no action, because there was one. No transition of the action, so not a part of its chain.
CREATE TABLE reconcile.joined_submission (
	action_id uuid NOT NULL,
	joined_at timestamptz NOT NULL,
	joined_by name NOT NULL,
	state reconcile.state NOT NULL
);
COMMENT ON TABLE reconcile.joined_submission IS
	'Every call of submit() that was given an action that existed already. Appended by submit(), never changed.';
COMMENT ON COLUMN reconcile.joined_submission.state IS 'Where the action stood then.';
CREATE INDEX joined_submission_of_action ON reconcile.joined_submission (action_id, joined_at);
CREATE TRIGGER joined_append_only BEFORE UPDATE OR DELETE ON reconcile.joined_submission
	FOR EACH ROW EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.joined_submission ENABLE ALWAYS TRIGGER joined_append_only;
CREATE TRIGGER joined_no_truncate BEFORE TRUNCATE ON reconcile.joined_submission
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.joined_submission ENABLE ALWAYS TRIGGER joined_no_truncate;

CREATE FUNCTION reconcile.create_history_partitions(months_ahead integer DEFAULT 3) RETURNS integer
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
	first timestamptz := date_trunc('month', now());
	low timestamptz;
	high timestamptz;
	name text;
	made integer := 0;
BEGIN
	IF months_ahead NOT BETWEEN 0 AND 120 THEN
		RAISE EXCEPTION 'months_ahead must be between 0 and 120, not %', months_ahead USING ERRCODE = '22023';
	END IF;
	FOR i IN 0 .. months_ahead LOOP
		low := first + make_interval(months => i);
		name := 'history_' || to_char(low, 'YYYY_MM');
		high := first + make_interval(months => i + 1);
		CONTINUE WHEN to_regclass('reconcile.' || name) IS NOT NULL
			OR EXISTS (SELECT FROM reconcile.history_default WHERE recorded_at >= low AND recorded_at < high);
		-- Who waits for such a lock keeps everybody else waiting behind it: now, or another time.
		LOCK TABLE reconcile.history IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
		LOCK TABLE reconcile.history_default IN ACCESS EXCLUSIVE MODE NOWAIT;
		EXECUTE format('CREATE TABLE reconcile.%I PARTITION OF reconcile.history FOR VALUES FROM (%L) TO (%L)',
			name, low, high);
		EXECUTE format('CREATE UNIQUE INDEX %I ON reconcile.%I (action_id, version)', name || '_entry', name);
		EXECUTE format('ALTER TABLE reconcile.%I ENABLE ALWAYS TRIGGER history_append_only', name);
		EXECUTE format('CREATE TRIGGER history_no_truncate BEFORE TRUNCATE ON reconcile.%I
			FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change()', name);
		EXECUTE format('ALTER TABLE reconcile.%I ENABLE ALWAYS TRIGGER history_no_truncate', name);
		made := made + 1;
	END LOOP;
	RETURN made;
EXCEPTION WHEN lock_not_available THEN
	RETURN 0;
END $$;
COMMENT ON FUNCTION reconcile.create_history_partitions(integer) IS
	'Create the monthly partitions of the history up to so many months ahead, with their guards; returns how many were made: none while others use the history. A month with entries in history_default already is left there. The engine calls it when it finds itself armed.';

-- No partition is made here: a member of the extension would be missing when
-- a dump is restored in another month.

CREATE FUNCTION reconcile.history_hash(action_id uuid, version integer, recorded_at timestamptz, attempt_number integer,
		event text, from_state reconcile.state, to_state reconcile.state, standing reconcile.standing,
		evidence jsonb, actor text, previous_hash bytea) RETURNS bytea
	AS 'MODULE_PATHNAME', 'ar_history_hash' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.history_hash(uuid, integer, timestamptz, integer, text, reconcile.state, reconcile.state,
	reconcile.standing, jsonb, text, bytea) IS 'The hash that a history entry with these contents must carry.';
-- What providers say unasked: how it is signed, and what it means.

CREATE FUNCTION reconcile.signed_text_is_valid(signed_text text) RETURNS boolean
	AS 'MODULE_PATHNAME', 'ar_signed_text_is_valid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.signed_text_is_valid(text) IS 'Whether a template of a signed text has {body} once, {timestamp} and {id} at most once, and no other name.';

CREATE TABLE reconcile.event_source (
	provider text COLLATE "C" PRIMARY KEY REFERENCES reconcile.provider ON DELETE CASCADE,
	scheme text NOT NULL,
	secret text,
	tolerance interval NOT NULL DEFAULT '5 minutes',
	signature_header text,
	signature_encoding text,
	signature_prefix text,
	signed_text text,
	timestamp_header text,
	items_path jsonpath NOT NULL DEFAULT '$',
	event_id_path jsonpath,
	event_id_header text,
	account_path jsonpath,
	account text,
	mode_path jsonpath,
	mode text,
	CONSTRAINT event_source_scheme CHECK (scheme IN ('standard_webhooks', 'stripe', 'github', 'hmac', 'none')),
	CONSTRAINT event_source_secret CHECK ((secret IS NULL) = (scheme = 'none') AND secret ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
	CONSTRAINT event_source_tolerance CHECK (extract(epoch FROM tolerance) BETWEEN 1 AND 86400),
	CONSTRAINT event_source_form CHECK (CASE scheme WHEN 'hmac' THEN num_nulls(signature_header, signature_encoding, signed_text) = 0
		ELSE num_nonnulls(signature_header, signature_encoding, signature_prefix, signed_text, timestamp_header) = 0 END),
	CONSTRAINT event_source_encoding CHECK (signature_encoding IN ('hex', 'base64')),
	CONSTRAINT event_source_prefix CHECK (signature_prefix ~ '^[!-+.-~-]{1,100}$'),
	CONSTRAINT event_source_signed_text CHECK (reconcile.signed_text_is_valid(signed_text)),
	CONSTRAINT event_source_timestamp CHECK ((signed_text LIKE '%{timestamp}%') = (timestamp_header IS NOT NULL)),
	CONSTRAINT event_source_signed_id CHECK (signed_text NOT LIKE '%{id}%' OR event_id_header IS NOT NULL),
	CONSTRAINT event_source_headers CHECK (signature_header ~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]{1,128}$' AND timestamp_header ~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]{1,128}$'
		AND event_id_header ~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]{1,128}$'),
	CONSTRAINT event_source_one_id CHECK (num_nonnulls(event_id_path, event_id_header) <= CASE scheme WHEN 'standard_webhooks' THEN 0 ELSE 1 END),
	CONSTRAINT event_source_account CHECK ((account_path IS NULL) = (account IS NULL)),
	CONSTRAINT event_source_mode CHECK ((mode_path IS NULL) = (mode IS NULL))
);
COMMENT ON TABLE reconcile.event_source IS
	'How the events of a provider are recognized that receive_event() is given: by which signature, of which account and mode. One row for a provider.';
COMMENT ON COLUMN reconcile.event_source.scheme IS
	'standard_webhooks: webhook-id, -timestamp and -signature; stripe: Stripe-Signature; github: X-Hub-Signature-256; hmac: HMAC-SHA256 as the signature_ columns describe it; none: not signed, so that an event counts no more than its sender.';
COMMENT ON COLUMN reconcile.event_source.secret IS
	'Name of the file in action_reconcile.credential_dir whose first line holds the secret, or several with blanks between them while one is exchanged for another. A secret with a blank in it cannot be used. Its content never passes through SQL.';
COMMENT ON COLUMN reconcile.event_source.tolerance IS
	'How far the time of sending that is signed along may be from the wall clock, both ways. Not everybody signs one: github does not, nor hmac without {timestamp}.';
COMMENT ON COLUMN reconcile.event_source.signature_header IS 'hmac: the header with the signature; several may stand in it, with commas or blanks between them.';
COMMENT ON COLUMN reconcile.event_source.signature_encoding IS 'hmac: hex or base64.';
COMMENT ON COLUMN reconcile.event_source.signature_prefix IS 'hmac: what stands before the signature, such as sha256=.';
COMMENT ON COLUMN reconcile.event_source.signed_text IS
	'hmac: what is signed: {body}, exactly as it was received, or a text with {body}, {timestamp} and {id} in it, such as {timestamp}.{body}.';
COMMENT ON COLUMN reconcile.event_source.timestamp_header IS 'hmac: the header with {timestamp}: seconds since 1970, or milliseconds.';
COMMENT ON COLUMN reconcile.event_source.items_path IS 'The events in the body, for providers that send several at once; $ is the body itself.';
COMMENT ON COLUMN reconcile.event_source.event_id_path IS
	'The id of an event, which is stored once. By default $.id for stripe, X-GitHub-Delivery for github, webhook-id for standard_webhooks.';
COMMENT ON COLUMN reconcile.event_source.event_id_header IS
	'The header that holds it instead. Where the signature does not cover it, the same id with another body is another event.';
COMMENT ON COLUMN reconcile.event_source.account_path IS 'The account in the body; an event of another one is refused.';
COMMENT ON COLUMN reconcile.event_source.account IS 'What must be there.';
COMMENT ON COLUMN reconcile.event_source.mode_path IS 'What tells live from test in the body; an event of the other mode is refused.';
COMMENT ON COLUMN reconcile.event_source.mode IS 'What must be there, as text, such as true.';

CREATE TABLE reconcile.event_rule (
	provider text COLLATE "C" NOT NULL REFERENCES reconcile.event_source ON DELETE CASCADE,
	position integer NOT NULL,
	condition jsonpath NOT NULL,
	says text NOT NULL,
	reference_path jsonpath,
	reference_pattern text,
	artifact_path jsonpath,
	occurred_path jsonpath,
	because text NOT NULL,
	PRIMARY KEY (provider, position),
	CONSTRAINT event_rule_position CHECK (position BETWEEN 1 AND 1000),
	CONSTRAINT event_rule_says CHECK (says IN ('executed', 'accepted', 'rejected', 'ignored')),
	CONSTRAINT event_rule_about_something CHECK (says = 'ignored' OR num_nonnulls(reference_path, artifact_path) > 0),
	CONSTRAINT event_rule_pattern CHECK (reference_pattern IS NULL OR (reference_path IS NOT NULL AND reference_pattern ~ '\(' AND ('' ~ reference_pattern) IS NOT NULL)),
	CONSTRAINT event_rule_because CHECK (because ~ '[^[:space:]]')
);
COMMENT ON TABLE reconcile.event_rule IS
	'What the events of a provider mean. The first rule, by position, whose condition holds decides; an event that none is about is ignored.';
COMMENT ON COLUMN reconcile.event_rule.condition IS 'It holds if it finds something in the event that is neither false nor null, such as $ ? (@.type == "charge.failed").';
COMMENT ON COLUMN reconcile.event_rule.says IS 'executed: the provider has it; accepted, rejected: its verdict; ignored: nothing about an outcome.';
COMMENT ON COLUMN reconcile.event_rule.reference_path IS 'The client reference in the event.';
COMMENT ON COLUMN reconcile.event_rule.reference_pattern IS 'A regular expression for a reference inside a longer text: what its first parentheses match.';
COMMENT ON COLUMN reconcile.event_rule.artifact_path IS 'The provider''s id of the object. It alone tells the action only if no other object of the account has the same.';
COMMENT ON COLUMN reconcile.event_rule.occurred_path IS
	'When it happened, not when it was sent: seconds or milliseconds since 1970, or ISO 8601. By it an older event is kept from overwriting a newer one.';
COMMENT ON COLUMN reconcile.event_rule.because IS 'How this is known: what the provider documents, or what was observed.';
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
-- Triggers: what is filled in, what is refused, what is put into the history.
-- All ENABLE ALWAYS, so that session_replication_role cannot switch them off.

CREATE FUNCTION reconcile.may_see(submitter name) RETURNS boolean
	LANGUAGE sql STABLE STRICT PARALLEL SAFE AS
	$$ SELECT submitter OPERATOR(pg_catalog.=) session_user OR pg_catalog.pg_has_role(session_user, 'reconcile_reader', 'MEMBER') $$;
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
	NEW.key_generation := 0;
	IF reconcile.takes_key(op) THEN
		NEW.idempotency_key := CASE op.key_format WHEN 'reference' THEN NEW.client_reference
			ELSE reconcile.make_identifier(NEW.action_id, 0, op.key_format) END;
	END IF;
	IF NEW.depends_on IS NOT NULL AND (cardinality(NEW.depends_on) = 0 OR cardinality(NEW.depends_on) <>
			(SELECT count(DISTINCT a.action_id) FROM reconcile.action a WHERE a.action_id = ANY (NEW.depends_on) AND reconcile.may_see(a.submitter))) THEN
		RAISE EXCEPTION 'depends_on of an action names actions that do not exist, or are not yours, or one of them twice'
			USING ERRCODE = '22023', HINT = 'Give the action_ids that submit() has returned.';
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
		IF FOUND THEN
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

CREATE FUNCTION reconcile.provider_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	open_actions bigint;
BEGIN
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
	-- A pause is no change of what the provider is.
	IF to_jsonb(NEW) - '{version,paused_at,paused_reason}'::text[] IS DISTINCT FROM
		to_jsonb(OLD) - '{version,paused_at,paused_reason}'::text[] THEN
		NEW.version := OLD.version + 1;
	ELSE
		NEW.version := OLD.version;
	END IF;
	RETURN NEW;
END $$;
COMMENT ON FUNCTION reconcile.provider_changed() IS 'Trigger: counts the version of a provider; refuses another address or credential while actions are unresolved. SQLSTATE 55000.';
CREATE TRIGGER provider_changed BEFORE UPDATE ON reconcile.provider
	FOR EACH ROW EXECUTE FUNCTION reconcile.provider_changed();

CREATE FUNCTION reconcile.operation_changed() RETURNS trigger
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF TG_OP = 'DELETE' THEN
		-- An action that is being recorded just now counts too.
		LOCK TABLE reconcile.action IN SHARE ROW EXCLUSIVE MODE;
		IF EXISTS (SELECT FROM reconcile.action a WHERE a.operation = OLD.operation) THEN
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
-- What can be read: the rules, where actions stand, what is unresolved.

CREATE FUNCTION reconcile.transition_rules(OUT subject text, OUT from_state reconcile.state, OUT event text,
		OUT to_state reconcile.state, OUT evidence text, OUT actor text, OUT meaning text) RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'ar_transition_rules' LANGUAGE C STABLE STRICT ROWS 40 PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.transition_rules() IS 'The transition table of the library; see the view transition_rule.';

CREATE VIEW reconcile.transition_rule AS
	SELECT subject, from_state, event, to_state, evidence, actor, meaning FROM reconcile.transition_rules();
COMMENT ON VIEW reconcile.transition_rule IS
	'Every legal step: of what, from which state, by which event, to which state, with which evidence, by whom.';

CREATE FUNCTION reconcile.advice(state reconcile.state) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
	SELECT CASE state
		WHEN 'planned' THEN 'queued: do not repeat, follow this action'
		WHEN 'submitted' THEN 'being sent: do not repeat, follow this action'
		WHEN 'outcome_unknown' THEN 'not known yet: do not repeat, the provider is asked when its answer can be trusted'
		WHEN 'reconciling' THEN 'not known yet: do not repeat, the provider is being asked'
		WHEN 'manual_review' THEN 'not known: do not repeat, a person has to decide'
		WHEN 'delivered' THEN 'the provider has it and has not decided yet: do not repeat'
		WHEN 'succeeded' THEN 'done'
		WHEN 'rejected' THEN 'the provider said no: change the request before trying again'
		WHEN 'safe_to_retry' THEN 'proven not to have happened: submit the same intent again, or call replace()'
		WHEN 'cancelled' THEN 'withdrawn before anything was sent'
		WHEN 'expired' THEN 'its time passed before anything was sent'
		WHEN 'abandoned' THEN 'given up after proof that it did not happen'
	END $$;
COMMENT ON FUNCTION reconcile.advice(reconcile.state) IS 'What a caller, human or model, may do about an action in this state.';

CREATE VIEW reconcile.action_status WITH (security_barrier) AS
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.intent_key, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery,
		reconcile.acceptance(a.standing) AS acceptance,
		reconcile.resolved_status(a.standing) AS status,
		a.artifact_id, a.attempts, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.state = 'planned' AND NOT a.held AND NOT a.waits THEN a.due_at
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice,
		a.state IN ('safe_to_retry', 'cancelled', 'expired', 'abandoned') AS may_repeat,
		a.fingerprint, a.version, a.transaction
	FROM reconcile.action a
	WHERE reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.action_status IS 'Where each action stands, and what a caller may do about it.';
COMMENT ON COLUMN reconcile.action_status.next_step_at IS
	'Not earlier than this: the next send of a planned action, the next question about an unresolved one. NULL: it waits for somebody, or nothing is to come.';
COMMENT ON COLUMN reconcile.action_status.may_repeat IS
	'May the same intent be submitted again? Only what is settled as not having happened; false as long as it is not known, and if it has happened or was refused.';

-- What was learned at a step, for people; the whole of it is in the evidence itself.
CREATE FUNCTION reconcile.evidence_words(evidence jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT nullif(concat_ws(', ',
		'decided: ' || ($1->>'decision'), $1->>'reason', $1->>'risk',
		'the provider says ' || ($1 #>> '{event,says}'),
		coalesce($1 #>> '{transfer,reason}', $1 #>> '{lookup,reason}', $1 #>> '{poll,reason}'),
		'answer ' || coalesce($1 #>> '{transfer,http_status}', $1 #>> '{lookup,http_status}', $1 #>> '{poll,http_status}'),
		coalesce($1 #>> '{transfer,error}', $1 #>> '{lookup,error}', $1 #>> '{poll,error}'),
		coalesce($1 #>> '{lookup,problem}', $1 #>> '{poll,problem}'),
		'found ' || ($1 #>> '{recovery,found}'), 'not after ' || ($1->>'not_after')), '') $$;
COMMENT ON FUNCTION reconcile.evidence_words(jsonb) IS 'The gist of the evidence of a step, in words; NULL if it says no more than that the step was taken.';

CREATE VIEW reconcile.action_history WITH (security_barrier) AS
	SELECT h.action_id, h.version, h.recorded_at, h.attempt_number, h.event, h.from_state, h.to_state,
		reconcile.delivery(h.standing) AS delivery,
		reconcile.acceptance(h.standing) AS acceptance,
		reconcile.resolved_status(h.standing) AS status,
		lead(h.recorded_at) OVER w - h.recorded_at AS time_in_state,
		h.evidence, h.actor
	FROM reconcile.history h JOIN reconcile.action a USING (action_id)
	WHERE reconcile.may_see(a.submitter)
	WINDOW w AS (PARTITION BY h.action_id ORDER BY h.version);
COMMENT ON VIEW reconcile.action_history IS 'Every step of every action, with the time it stayed there; NULL for the present state.';

CREATE VIEW reconcile.unresolved WITH (security_barrier) AS
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.submitter, a.state, a.event AS last_event,
		coalesce(r.meaning, 'it has been recorded') || coalesce(': ' || reconcile.evidence_words(a.evidence), '') AS why,
		a.recorded_at AS since,
		(SELECT min(t.dispatched_at) FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state IN ('submitted', 'outcome_unknown', 'delivered')) AS uncertain_since,
		CASE a.state
			WHEN 'planned' THEN CASE
				WHEN a.held THEN 'somebody releases it; it is held because: ' || a.held_because
				WHEN a.waits AND EXISTS (SELECT FROM reconcile.action b WHERE b.action_id = ANY (a.depends_on) AND b.state <> 'succeeded')
					THEN 'it is sent when these have succeeded: ' || array_to_string(a.depends_on, ', ')
				WHEN a.waits AND EXISTS (SELECT FROM reconcile.action b WHERE b.action_id = ANY (a.depends_on) AND b.artifact_id IS NULL)
					THEN 'it is sent when somebody tells the id of what was made, with confirm(), by the action that it depends on: ' || array_to_string(a.depends_on, ', ')
				WHEN a.waits THEN coalesce((SELECT format('it is sent when action %s is settled%s', b.action_id,
						CASE WHEN reconcile.resolved_status(b.standing) = 'FAILED' AND NOT a.after_failure THEN ', which has FAILED: somebody releases it' ELSE '' END)
					  FROM reconcile.action b WHERE b.submitter = a.submitter AND b.ordering_key = a.ordering_key AND b.action_id <> a.action_id
						-- An earlier one that was replaced comes after what has overtaken it.
						AND (b.action_id < a.action_id OR NOT b.waits AND reconcile.resolved_status(b.standing) = 'DENIED_UNRESOLVED')
					 ORDER BY b.action_id > a.action_id DESC, b.action_id DESC LIMIT 1), 'it is sent')
				WHEN p.paused_at IS NOT NULL THEN format('it is sent when somebody resumes provider "%s", paused because: %s', p.provider, p.paused_reason)
				WHEN a.looked_at IS NOT NULL THEN 'the provider is asked, then it is sent'
				ELSE 'it is sent' END
			WHEN 'submitted' THEN 'its answer comes, or the time limit of the attempt'
			WHEN 'outcome_unknown' THEN 'the provider is asked'
			WHEN 'reconciling' THEN 'the provider answers what it was asked'
			WHEN 'manual_review' THEN 'a person decides: see review_queue, and resolve()'
			WHEN 'delivered' THEN CASE WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)
				THEN 'the provider is asked for its verdict' ELSE 'the verdict of the provider comes, or is given up waiting for' END
		END AS next_step,
		CASE WHEN a.state = 'planned' AND NOT a.held AND NOT a.waits AND p.paused_at IS NULL THEN a.due_at
			WHEN a.state IN ('outcome_unknown', 'delivered') THEN a.eligible_at END AS next_step_at,
		reconcile.advice(a.state) AS advice, a.evidence, a.version
	FROM reconcile.action a
	LEFT JOIN reconcile.provider p ON p.provider = a.provider
	LEFT JOIN (SELECT DISTINCT ON (t.event, t.to_state) t.event, t.to_state, t.meaning FROM reconcile.transition_rules() t
		WHERE t.subject = 'action' ORDER BY t.event, t.to_state, t.from_state) r ON r.event = a.event AND r.to_state = a.state
	WHERE a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
		AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.unresolved IS 'Every action that is DENIED_UNRESOLVED: why, since when, and what happens next.';
COMMENT ON COLUMN reconcile.unresolved.why IS 'Its last step, and what was learned with it.';
COMMENT ON COLUMN reconcile.unresolved.since IS 'When it took that step.';
COMMENT ON COLUMN reconcile.unresolved.uncertain_since IS 'When the first attempt began whose outcome or verdict is open; NULL: none has left.';
COMMENT ON COLUMN reconcile.unresolved.next_step IS 'What it waits for.';

CREATE FUNCTION reconcile.engine(OUT worker_pid integer, OUT lock_holder_pid integer, OUT armed boolean, OUT disarmed_because text)
	AS 'MODULE_PATHNAME', 'ar_engine_state' LANGUAGE C VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION reconcile.engine() IS
	'Is this database''s worker alive, who holds the engine lock, and may the engine send? Reads the token file.';

CREATE VIEW reconcile.health AS
	SELECT e.worker_pid, e.lock_holder_pid, e.armed, e.disarmed_because,
		(SELECT count(*) FROM reconcile.action WHERE state = 'planned' AND NOT waits AND NOT held AND due_at <= now()) AS due,
		(SELECT count(*) FROM reconcile.action WHERE state = 'submitted') AS in_flight,
		(SELECT count(*) FROM reconcile.action WHERE state IN ('outcome_unknown', 'reconciling')) AS unknown,
		(SELECT count(*) FROM reconcile.action WHERE state = 'manual_review') AS in_review,
		(SELECT array_agg(provider ORDER BY provider) FROM reconcile.provider WHERE paused_at IS NOT NULL) AS paused_providers
	FROM reconcile.engine() e;
COMMENT ON VIEW reconcile.health IS 'One row: does the engine of this database work, may it send, and what waits for it.';
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
BEGIN
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
COMMENT ON FUNCTION reconcile.check_rules(reconcile.operation) IS 'Error 22023 if a rule asks by something that is not sent or not known.';

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
-- What would be sent, for people to read before it is: the exact request and the questions about it, without secrets.

CREATE FUNCTION reconcile.masked_headers(headers text[]) RETURNS jsonb
	LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT coalesce(jsonb_object_agg($1[i], CASE
			WHEN $1[i] ~* '^((proxy-)?authorization|cookie)$|(^|[-_])(api[-_]?key|access[-_]?key|token|secret|password)$'
				OR position('{credential}' in $1[i + 1]) > 0 THEN '***'
			ELSE $1[i + 1] END), '{}')
	  FROM generate_series(1, coalesce(cardinality($1), 0), 2) i
$$;
COMMENT ON FUNCTION reconcile.masked_headers(text[]) IS
	'Headers (name, value, name, value, ...) as an object, with *** for what authenticates: by the name of the header, or because it holds {credential}.';

CREATE FUNCTION reconcile.masked_url(url text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT regexp_replace($1, '([?&](key|api_?key|token|access_token|secret|client_secret|password)=)[^&]*', '\1***', 'gi') $$;
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
-- Profiles: a provider with all its operations in one document, and the catalogue of those that are shipped.

CREATE TABLE reconcile.profile_catalog (
	profile text COLLATE "C" GENERATED ALWAYS AS (document ->> 'profile') STORED PRIMARY KEY,
	profile_version integer NOT NULL GENERATED ALWAYS AS ((document ->> 'profile_version')::integer) STORED,
	title text NOT NULL GENERATED ALWAYS AS (document ->> 'title') STORED,
	documentation text NOT NULL GENERATED ALWAYS AS (document ->> 'documentation') STORED,
	operations integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(jsonb_path_query_array(document, '$.operations.keyvalue()'))) STORED,
	facts integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(document -> 'facts')) STORED,
	unproven_facts integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(jsonb_path_query_array(document, '$.facts[*] ? (@.mark != "documented")'))) STORED,
	document jsonb NOT NULL
);
COMMENT ON TABLE reconcile.profile_catalog IS
	'The profiles that come with the extension, as they were written in profiles/*.json. Filled by the installation script, so a dump does not carry it. See adopt_profile().';
COMMENT ON COLUMN reconcile.profile_catalog.operations IS 'How many operations it describes.';
COMMENT ON COLUMN reconcile.profile_catalog.facts IS 'How many facts it states, each with its source and the day it was read.';
COMMENT ON COLUMN reconcile.profile_catalog.unproven_facts IS 'How many of them are reported or assumed, not documented.';
COMMENT ON COLUMN reconcile.profile_catalog.document IS 'The profile itself, as define_provider() takes it.';

CREATE TABLE reconcile.profile_fact (
	provider text COLLATE "C" NOT NULL REFERENCES reconcile.provider ON DELETE CASCADE,
	position integer NOT NULL,
	about text NOT NULL,
	says text NOT NULL,
	source text NOT NULL,
	read_on date NOT NULL,
	mark text NOT NULL,
	PRIMARY KEY (provider, position),
	CONSTRAINT profile_fact_mark CHECK (mark IN ('documented', 'reported', 'assumed'))
);
COMMENT ON TABLE reconcile.profile_fact IS 'Where the parts of an adopted profile are known from.';
COMMENT ON COLUMN reconcile.profile_fact.about IS 'The part it speaks of, as a path: provider.COLUMN, operations.NAME.COLUMN, operations.NAME.lookups.N.COLUMN, ...';
COMMENT ON COLUMN reconcile.profile_fact.read_on IS 'When the source was read last.';
COMMENT ON COLUMN reconcile.profile_fact.mark IS 'documented by the provider, reported by others, or assumed: without any source that says so.';

CREATE TABLE reconcile.provider_override (
	provider text COLLATE "C" PRIMARY KEY REFERENCES reconcile.provider ON DELETE CASCADE,
	overrides jsonb NOT NULL,
	CONSTRAINT provider_override_object CHECK (jsonb_typeof(overrides) = 'object')
);
COMMENT ON TABLE reconcile.provider_override IS 'What is different here from what a provider''s profile says, kept over new versions of the profile.';
COMMENT ON COLUMN reconcile.provider_override.overrides IS 'Columns of reconcile.provider with their values here, such as base_url, credential or max_in_flight; under events columns of reconcile.event_source.';

-- What may stand in a profile.

CREATE FUNCTION reconcile.profile_refused(problem text, hint text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '%', $1 USING ERRCODE = '22023', HINT = $2;
END $$;
COMMENT ON FUNCTION reconcile.profile_refused(text, text) IS 'Error 22023 about a profile: always.';

CREATE FUNCTION reconcile.profile_columns(part text) RETURNS TABLE (name text, type text, json_type text)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
		CASE a.atttypid WHEN 'boolean'::regtype THEN 'boolean' WHEN 'integer'::regtype THEN 'integer' WHEN 'jsonb'::regtype THEN 'value'
			WHEN 'integer[]'::regtype THEN 'array of integers' WHEN 'text[]'::regtype THEN 'array of strings' ELSE 'string' END
	  FROM pg_attribute a
	 WHERE a.attrelid = (CASE $1 WHEN 'provider' THEN 'reconcile.provider' WHEN 'operation' THEN 'reconcile.operation' WHEN 'answers' THEN 'reconcile.response_rule'
			WHEN 'lookups' THEN 'reconcile.lookup_rule' WHEN 'poll' THEN 'reconcile.poll_rule' WHEN 'facts' THEN 'reconcile.profile_fact'
			WHEN 'events' THEN 'reconcile.event_source' WHEN 'rules' THEN 'reconcile.event_rule' END)::regclass
	   AND a.attnum > 0 AND NOT a.attisdropped
	   AND a.attname NOT IN ('operation', 'provider', 'version', 'position', 'profile', 'profile_version', 'paused_at', 'paused_reason')
	 ORDER BY a.attnum
$$;
COMMENT ON FUNCTION reconcile.profile_columns(text) IS 'The keys that a part of a profile may have (provider, operation, answers, lookups, poll, events, rules, facts): columns, with the JSON type of each.';

CREATE FUNCTION reconcile.check_profile_value(value jsonb, name text, type text, json_type text, place text) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	given text := jsonb_typeof($1);
	fits boolean;
	problem text;
BEGIN
	fits := CASE $4
		WHEN 'value' THEN given <> 'null'
		WHEN 'integer' THEN given = 'number' AND $1::text ~ '^-?[0-9]+$'
		WHEN 'array of integers' THEN given = 'array' AND NOT jsonb_path_exists($1, 'strict $[*] ? (@.type() != "number" || @ != @.floor())')
		WHEN 'array of strings' THEN given = 'array' AND NOT jsonb_path_exists($1, 'strict $[*] ? (@.type() != "string")')
		ELSE given = $4 END;
	IF NOT fits THEN
		PERFORM reconcile.profile_refused(format('"%s" in %s must be %s, not %s', $2, $5,
				CASE WHEN $4 = 'value' THEN 'a JSON value' WHEN $4 ~ '^[aeiou]' THEN 'an ' || $4 ELSE 'a ' || $4 END,
				CASE WHEN given = 'null' THEN 'null' ELSE $1::text END),
			CASE WHEN given = 'null' THEN 'Leave the key out: it then has its default.' ELSE format('Its type is %s.', $3) END);
	END IF;
	IF $4 = 'string' AND $3 <> 'text' THEN
		BEGIN
			EXECUTE format('SELECT %L::%s', $1 #>> '{}', $3);
		EXCEPTION WHEN data_exception OR syntax_error OR invalid_parameter_value THEN
			GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT;
			PERFORM reconcile.profile_refused(format('"%s" in %s: %s', $2, $5, problem), format('It must be the text of a value of type %s.', $3));
		END;
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_value(jsonb, text, text, text, text) IS 'Error 22023, naming the key and its place, if a value in a profile is not of its column''s type.';

CREATE FUNCTION reconcile.check_profile_keys(part jsonb, place text, known text[], required text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	stray text;
BEGIN
	IF jsonb_typeof($1) IS DISTINCT FROM 'object' THEN
		PERFORM reconcile.profile_refused(format('%s must be an object, not %s', $2, coalesce($1::text, 'nothing')), format('Its keys are: %s.', array_to_string($3, ', ')));
	END IF;
	SELECT k INTO stray FROM jsonb_object_keys($1) k WHERE NOT k = ANY ($3) LIMIT 1;
	IF FOUND THEN
		PERFORM reconcile.profile_refused(format('unknown key "%s" in %s', stray, $2), format('Known are: %s.', array_to_string($3, ', ')));
	END IF;
	SELECT k INTO stray FROM unnest($4) k WHERE NOT $1 ? k LIMIT 1;
	IF FOUND THEN
		PERFORM reconcile.profile_refused(format('"%s" is missing in %s', stray, $2), format('Required are: %s.', array_to_string($4, ', ')));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_keys(jsonb, text, text[], text[]) IS 'Error 22023, naming the key and its place, if a part of a profile has an unknown key or lacks a required one.';

CREATE FUNCTION reconcile.check_profile_row(part jsonb, kind text, place text, required text[], nested text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM reconcile.check_profile_keys($1, $3, (SELECT array_agg(c.name) FROM reconcile.profile_columns($2) c) || $5, $4);
	PERFORM reconcile.check_profile_value($1 -> c.name, c.name, c.type, c.json_type, $3) FROM reconcile.profile_columns($2) c WHERE $1 ? c.name;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_row(jsonb, text, text, text[], text[]) IS 'Error 22023 if a part of a profile that becomes a row has an unknown key, lacks one, or holds a value of the wrong type.';

CREATE FUNCTION reconcile.check_profile_rows(list jsonb, kind text, place text, required text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF jsonb_typeof($1) <> 'array' THEN
		PERFORM reconcile.profile_refused(format('%s must be an array, not %s', $3, $1), 'It is an array of objects, in the order in which they count.');
	END IF;
	PERFORM reconcile.check_profile_row(e.row, $2, format('%s.%s', $3, e.n), $4, '{}') FROM jsonb_array_elements($1) WITH ORDINALITY AS e (row, n);
END $$;
COMMENT ON FUNCTION reconcile.check_profile_rows(jsonb, text, text, text[]) IS 'Error 22023 about the first of the rows of a part of a profile that is wrong.';

CREATE FUNCTION reconcile.check_profile(profile jsonb) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
	op jsonb;
	place text;
BEGIN
	PERFORM reconcile.check_profile_keys($1, 'the profile', '{profile,profile_version,title,documentation,provider,operations,events,facts}', '{profile,profile_version,provider,operations}');
	PERFORM reconcile.check_profile_value($1 -> k, k, 'text', 'string', 'the profile') FROM unnest('{profile,title,documentation}'::text[]) k WHERE $1 ? k;
	PERFORM reconcile.check_profile_value($1 -> 'profile_version', 'profile_version', 'integer', 'integer', 'the profile');
	PERFORM reconcile.check_profile_row($1 -> 'provider', 'provider', 'provider', '{base_url}', '{}');
	IF jsonb_typeof($1 -> 'operations') <> 'object' OR $1 -> 'operations' = '{}' THEN
		PERFORM reconcile.profile_refused('operations must be an object with at least one operation', 'Its keys are the names of the operations, such as "stripe.refund.create".');
	END IF;
	FOR name, op IN SELECT e.key, e.value FROM jsonb_each($1 -> 'operations') e LOOP
		place := 'operations.' || name;
		IF NOT starts_with(name, ($1 ->> 'profile') || '.') THEN
			PERFORM reconcile.profile_refused(format('operation "%s" is not named after its profile', name), format('Its name must begin with "%s.".', $1 ->> 'profile'));
		END IF;
		PERFORM reconcile.check_profile_row(op, 'operation', place, '{path}', '{answers,lookups,poll}');
		IF op ? 'answers' THEN
			PERFORM reconcile.check_profile_rows(op -> 'answers', 'answers', place || '.answers', '{class,because}');
		END IF;
		IF op ? 'lookups' THEN
			PERFORM reconcile.check_profile_rows(op -> 'lookups', 'lookups', place || '.lookups', '{kind}');
		END IF;
		IF op ? 'poll' THEN
			PERFORM reconcile.check_profile_row(op -> 'poll', 'poll', place || '.poll', '{state_path,accepted}', '{}');
		END IF;
	END LOOP;
	IF $1 ? 'events' THEN
		PERFORM reconcile.check_profile_row($1 -> 'events', 'events', 'events', '{scheme,rules}', '{rules}');
		PERFORM reconcile.check_profile_rows($1 #> '{events,rules}', 'rules', 'events.rules', '{condition,says,because}');
	END IF;
	IF $1 ? 'facts' THEN
		PERFORM reconcile.check_profile_rows($1 -> 'facts', 'facts', 'facts', '{about,says,source,read_on,mark}');
		SELECT f ->> 'mark' INTO place FROM jsonb_array_elements($1 -> 'facts') f WHERE f ->> 'mark' NOT IN ('documented', 'reported', 'assumed') LIMIT 1;
		IF FOUND THEN
			PERFORM reconcile.profile_refused(format('no fact can be marked "%s"', place), 'The marks are documented, reported and assumed.');
		END IF;
		SELECT f ->> 'about' INTO place FROM jsonb_array_elements($1 -> 'facts') f
		 WHERE NOT starts_with(f ->> 'about', 'provider.') AND NOT ($1 ? 'events' AND starts_with(f ->> 'about', 'events.')) AND NOT EXISTS (SELECT FROM jsonb_object_keys($1 -> 'operations') o
			WHERE f ->> 'about' = 'operations.' || o OR starts_with(f ->> 'about', 'operations.' || o || '.')) LIMIT 1;
		IF FOUND THEN
			PERFORM reconcile.profile_refused(format('a fact is about "%s", which is not in the profile', place), 'It is about provider.COLUMN, about operations.NAME and a part of it, or about a part of events.');
		END IF;
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile(jsonb) IS
	'Error 22023, naming the key and its place, unless the document has the form of a profile: known keys only, the required ones, and values of the right types.';

-- Making the rows of a profile.

CREATE FUNCTION reconcile.profile_relation(part text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT CASE $1 WHEN 'answers' THEN 'response_rule' WHEN 'lookups' THEN 'lookup_rule' WHEN 'poll' THEN 'poll_rule' WHEN 'facts' THEN 'profile_fact'
		WHEN 'events' THEN 'event_source' WHEN 'rules' THEN 'event_rule' ELSE $1 END $$;
COMMENT ON FUNCTION reconcile.profile_relation(text) IS 'The table that holds a part of a profile.';

CREATE FUNCTION reconcile.whole_row(part text, given jsonb) RETURNS jsonb
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	defaults text;
	result jsonb;
BEGIN
	SELECT string_agg(format('%L, %s', c.name, coalesce(pg_get_expr(d.adbin, d.adrelid), 'NULL')), ', ') INTO defaults
	  FROM reconcile.profile_columns($1) c
	  JOIN pg_attribute a ON a.attrelid = format('reconcile.%I', reconcile.profile_relation($1))::regclass AND a.attname = c.name
	  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum;
	EXECUTE format('SELECT jsonb_build_object(%s)', defaults) INTO result;
	result := result || $2;
	IF $1 = 'operation' AND result ->> 'effect' IS NULL THEN
		result := result || jsonb_build_object('effect', CASE result ->> 'method' WHEN 'DELETE' THEN 'delete' WHEN 'PATCH' THEN 'update' ELSE 'create' END);
	END IF;
	-- Through the types and back, so that it can be compared with what is stored.
	EXECUTE format('SELECT to_jsonb(jsonb_populate_record(NULL::reconcile.%I, $1))', reconcile.profile_relation($1)) INTO defaults USING result;
	RETURN (SELECT jsonb_object_agg(e.key, e.value) FROM jsonb_each(defaults::jsonb) e WHERE result ? e.key);
END $$;
COMMENT ON FUNCTION reconcile.whole_row(text, jsonb) IS 'A row of a part of a profile, with the defaults of what is not given, as the table would hold it.';

CREATE FUNCTION reconcile.keep_widened(kept jsonb, given jsonb, place text) RETURNS jsonb
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $1 ->> 'window_source' = 'measured' AND ($1 ->> 'consistency_window')::interval > coalesce(($2 ->> 'consistency_window')::interval, '0') THEN
		RAISE NOTICE 'the window of % stays at % as it was measured, although its profile says %', $3,
			reconcile.elapsed_words(($1 ->> 'consistency_window')::interval),
			coalesce(reconcile.elapsed_words(($2 ->> 'consistency_window')::interval), 'nothing')
			USING HINT = 'Set the column by hand to narrow it.';
		RETURN $2 || jsonb_build_object('consistency_window', $1 -> 'consistency_window', 'window_source', 'measured');
	END IF;
	RETURN $2;
END $$;
COMMENT ON FUNCTION reconcile.keep_widened(jsonb, jsonb, text) IS 'What a profile gives for a row, but for a longer window that has been measured here: no profile narrows that.';

CREATE FUNCTION reconcile.row_words(part text, named jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE $1 WHEN 'answers' THEN format('response rule %s of operation "%s"', $2 ->> 'position', $2 ->> 'operation')
		WHEN 'lookups' THEN format('lookup rule %s of operation "%s"', $2 ->> 'position', $2 ->> 'operation')
		WHEN 'poll' THEN format('the poll rule of operation "%s"', $2 ->> 'operation')
		WHEN 'events' THEN format('the source of events of provider "%s"', $2 ->> 'provider')
		WHEN 'rules' THEN format('event rule %s of provider "%s"', $2 ->> 'position', $2 ->> 'provider')
		ELSE format('%s "%s"', $1, $2 ->> $1) END
$$;
COMMENT ON FUNCTION reconcile.row_words(text, jsonb) IS 'What a row of a part of a profile is called in messages.';

CREATE FUNCTION reconcile.apply_row(part text, named jsonb, given jsonb, pinned boolean) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	relation text := reconcile.profile_relation($1);
	wanted jsonb := reconcile.whole_row($1, $3) || $2;
	stored jsonb;
	columns text;
	violated text;
BEGIN
	EXECUTE format('SELECT to_jsonb(t) FROM reconcile.%I t WHERE to_jsonb(t) @> $1', relation) INTO stored USING $2;
	IF stored ? 'consistency_window' AND NOT $4 THEN
		wanted := reconcile.keep_widened(stored, wanted, reconcile.row_words($1, $2));
	END IF;
	SELECT string_agg(quote_ident(e.key), ', ' ORDER BY e.key) INTO columns FROM jsonb_each(wanted) e
	 WHERE stored IS NULL OR e.value IS DISTINCT FROM stored -> e.key;
	IF stored IS NULL THEN
		EXECUTE format('INSERT INTO reconcile.%1$I (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::reconcile.%1$I, $1)', relation, columns) USING wanted;
		RETURN 'added';
	ELSIF columns IS NOT NULL THEN
		EXECUTE format('UPDATE reconcile.%1$I t SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::reconcile.%1$I, $1)) WHERE to_jsonb(t) @> $2', relation, columns)
			USING wanted, $2;
		RETURN 'changed: ' || columns;
	END IF;
	RETURN NULL;
EXCEPTION WHEN check_violation THEN
	GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
	RAISE EXCEPTION '% does not hold together: check %', reconcile.row_words($1, $2), violated
		USING ERRCODE = '22023', CONSTRAINT = violated,
			HINT = (SELECT coalesce(obj_description(c.oid, 'pg_constraint'), 'It requires ' || regexp_replace(pg_get_constraintdef(c.oid, true), '^CHECK ', '') || '.')
				FROM pg_constraint c WHERE c.conrelid = format('reconcile.%I', relation)::regclass AND c.conname = violated);
END $$;
COMMENT ON FUNCTION reconcile.apply_row(text, jsonb, jsonb, boolean) IS
	'Make the row of a part of a profile that is named so be what is given: added, changed (which columns), or NULL if it is so already. A window that was widened here is kept, unless pinned. Error 22023 naming the row if a check of its table refuses it.';

CREATE FUNCTION reconcile.apply_rules(operation text, definition jsonb) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	changed text[] := '{}';
	part text;
	what text;
	step text;
	row jsonb;
	n integer;
BEGIN
	FOREACH part IN ARRAY '{answers,lookups}'::text[] LOOP
		what := CASE part WHEN 'answers' THEN 'response rule' ELSE 'lookup rule' END;
		FOR row, n IN SELECT e.row, e.n FROM jsonb_array_elements($2 -> part) WITH ORDINALITY AS e (row, n) LOOP
			step := reconcile.apply_row(part, jsonb_build_object('operation', $1, 'position', n), row, false);
			IF step IS NOT NULL THEN
				changed := changed || format('%s %s of %s %s', what, n, $1, step);
			END IF;
		END LOOP;
	END LOOP;
	IF $2 ? 'poll' THEN
		step := reconcile.apply_row('poll', jsonb_build_object('operation', $1), $2 -> 'poll', false);
		IF step IS NOT NULL THEN
			changed := changed || format('poll rule of %s %s', $1, step);
		END IF;
	END IF;
	RETURN changed;
END $$;
COMMENT ON FUNCTION reconcile.apply_rules(text, jsonb) IS 'Make the rules of an operation be those of its definition in a profile; returns what changed.';

CREATE FUNCTION reconcile.drop_rules(operation text, definition jsonb) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	changed text[] := '{}';
	n integer;
BEGIN
	FOR n IN DELETE FROM reconcile.response_rule r WHERE r.operation = $1 AND r.position > coalesce(jsonb_array_length($2 -> 'answers'), 0) RETURNING r.position LOOP
		changed := changed || format('response rule %s of %s removed', n, $1);
	END LOOP;
	FOR n IN DELETE FROM reconcile.lookup_rule l WHERE l.operation = $1 AND l.position > coalesce(jsonb_array_length($2 -> 'lookups'), 0) RETURNING l.position LOOP
		changed := changed || format('lookup rule %s of %s removed', n, $1);
	END LOOP;
	DELETE FROM reconcile.poll_rule p WHERE p.operation = $1 AND NOT $2 ? 'poll';
	IF FOUND THEN
		changed := changed || format('poll rule of %s removed', $1);
	END IF;
	RETURN changed;
END $$;
COMMENT ON FUNCTION reconcile.drop_rules(text, jsonb) IS 'Remove the rules of an operation that its definition in a profile no longer has; returns what went. Error 55000 if actions rest on one.';

CREATE FUNCTION reconcile.arm_if_first() RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	problem text;
	advice text;
BEGIN
	IF EXISTS (SELECT FROM reconcile.arming) OR EXISTS (SELECT FROM reconcile.provider) OR EXISTS (SELECT FROM reconcile.action) THEN
		RETURN;
	END IF;
	PERFORM reconcile.arm('first define_provider'::text);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, advice = PG_EXCEPTION_HINT;
	RAISE NOTICE '%', problem USING HINT = concat_ws(' ', nullif(advice, ''), 'Then call reconcile.arm(reason): nothing is sent before.');
END $$;
COMMENT ON FUNCTION reconcile.arm_if_first() IS 'Arm a database that has no arming record, no provider and no action. Where that is not possible: a notice.';


CREATE FUNCTION reconcile.apply_facts(provider text, facts jsonb) RETURNS boolean
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	f reconcile.profile_fact;
	stored jsonb;
	wanted jsonb;
BEGIN
	SELECT coalesce(jsonb_agg(to_jsonb(x) - '{provider,position}'::text[] ORDER BY x.position), '[]') INTO stored FROM reconcile.profile_fact x WHERE x.provider = $1;
	SELECT coalesce(jsonb_agg(reconcile.whole_row('facts', e.row) ORDER BY e.n), '[]') INTO wanted FROM jsonb_array_elements($2) WITH ORDINALITY AS e (row, n);
	IF stored = wanted THEN
		RETURN false;
	END IF;
	DELETE FROM reconcile.profile_fact x WHERE x.provider = $1;
	FOR f IN INSERT INTO reconcile.profile_fact (provider, position, about, says, source, read_on, mark)
		SELECT $1, e.n, r.about, r.says, r.source, r.read_on, r.mark
		  FROM jsonb_array_elements($2) WITH ORDINALITY AS e (row, n), jsonb_populate_record(NULL::reconcile.profile_fact, e.row) r
		RETURNING * LOOP
		IF f.mark <> 'documented' THEN
			RAISE NOTICE '% is %: %', f.about, f.mark, f.says;
		ELSIF f.read_on + interval '1 year' < current_date THEN
			RAISE NOTICE '% was last read on %: %', f.about, to_char(f.read_on, 'YYYY-MM-DD'), f.says;
		END IF;
	END LOOP;
	RETURN true;
END $$;
COMMENT ON FUNCTION reconcile.apply_facts(text, jsonb) IS
	'Make the facts of a provider be these; a notice for each new one that is not documented, or was read more than a year ago. False if they are so already.';

CREATE FUNCTION reconcile.check_profile_version(profile jsonb, provider text) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	stored reconcile.provider;
BEGIN
	SELECT * INTO stored FROM reconcile.provider p WHERE p.provider = $2;
	IF stored.provider IS NULL THEN
		RETURN;
	ELSIF stored.profile IS DISTINCT FROM $1 ->> 'profile' THEN
		RAISE EXCEPTION 'provider "%" was defined by %, not by profile "%"', $2, coalesce('profile "' || stored.profile || '"', 'hand'), $1 ->> 'profile'
			USING ERRCODE = '55000', HINT = 'Define it under another name: define_provider(profile, provider => ''NAME'').';
	ELSIF stored.profile_version > ($1 ->> 'profile_version')::integer THEN
		RAISE EXCEPTION 'provider "%" has version % of its profile, which is newer than %', $2, stored.profile_version, $1 ->> 'profile_version'
			USING ERRCODE = '55000', HINT = 'Take the newer profile; to go back on purpose, give the old content a new profile_version.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_version(jsonb, text) IS 'Error 55000 if a provider was defined otherwise, or by a newer version of the profile.';

CREATE FUNCTION reconcile.renamed_profile(profile jsonb, provider text) RETURNS jsonb
	LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT $1 || jsonb_build_object(
		'operations', (SELECT jsonb_object_agg($2 || substr(e.key, length($1 ->> 'profile') + 1), e.value) FROM jsonb_each($1 -> 'operations') e),
		'facts', (SELECT coalesce(jsonb_agg(e.fact || jsonb_build_object('about',
				regexp_replace(e.fact ->> 'about', '^operations\.' || ($1 ->> 'profile') || '\.', 'operations.' || $2 || '.')) ORDER BY e.n), '[]')
			FROM jsonb_array_elements($1 -> 'facts') WITH ORDINALITY AS e (fact, n)))
$$;
COMMENT ON FUNCTION reconcile.renamed_profile(jsonb, text) IS 'A profile whose operations are named after another provider.';

CREATE FUNCTION reconcile.define_provider(profile jsonb, overrides jsonb DEFAULT NULL, INOUT provider text DEFAULT NULL,
		OUT profile_version integer, OUT operations text[], OUT changed text[])
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	document jsonb := $1;
	name text;
	local jsonb := $2;
	step text;
	op text;
	operation_row reconcile.operation;
BEGIN
	PERFORM reconcile.check_profile(document);
	name := coalesce($3, document ->> 'profile');
	IF local IS NOT NULL THEN
		PERFORM reconcile.check_profile_row(local, 'provider', 'the overrides', '{}', '{events}');
		PERFORM reconcile.check_profile_row(local -> 'events', 'events', 'the overrides of events', '{}', '{}') WHERE local ? 'events';
	END IF;
	-- One at a time for a provider, without a lock that the engine would have to stand back for.
	PERFORM pg_advisory_xact_lock(hashtextextended('reconcile.define_provider ' || name, 0));
	PERFORM reconcile.check_profile_version(document, name);
	PERFORM reconcile.arm_if_first();
	document := reconcile.renamed_profile(document, name);
	local := coalesce(local, (SELECT o.overrides FROM reconcile.provider_override o WHERE o.provider = name), '{}');
	changed := '{}';

	step := reconcile.apply_row('provider', jsonb_build_object('provider', name), document -> 'provider' || (local - 'events')
		|| jsonb_build_object('profile', document -> 'profile', 'profile_version', document -> 'profile_version'), local ? 'consistency_window');
	IF step IS NOT NULL THEN
		changed := changed || format('provider %s %s', name, step);
	END IF;
	INSERT INTO reconcile.provider_override AS o (provider, overrides) VALUES (name, local)
		ON CONFLICT (provider) DO UPDATE SET overrides = excluded.overrides WHERE o.overrides <> excluded.overrides;

	FOR op IN SELECT k FROM jsonb_object_keys(document -> 'operations') k ORDER BY k COLLATE "C" LOOP
		changed := changed || reconcile.drop_rules(op, document -> 'operations' -> op);
		step := reconcile.apply_row('operation', jsonb_build_object('operation', op),
			(document -> 'operations' -> op) - '{answers,lookups,poll}'::text[] || jsonb_build_object('provider', name), false);
		IF step IS NOT NULL THEN
			changed := changed || format('operation %s %s', op, step);
		END IF;
		changed := changed || reconcile.apply_rules(op, document -> 'operations' -> op);
		operations := operations || op;
		SELECT * INTO operation_row FROM reconcile.operation o WHERE o.operation = op;
		PERFORM reconcile.check_definition(operation_row);
	END LOOP;
	FOR op IN SELECT o.operation FROM reconcile.operation o WHERE o.provider = name AND NOT o.operation = ANY (operations) ORDER BY 1 LOOP
		RAISE NOTICE 'operation "%" is not in the profile and stays as it is', op;
	END LOOP;
	changed := changed || reconcile.apply_events(name, document -> 'events', local -> 'events');
	IF reconcile.apply_facts(name, coalesce(document -> 'facts', '[]')) THEN
		changed := changed || format('facts of %s changed', name);
	END IF;
	provider := name;
	profile_version := (document ->> 'profile_version')::integer;
END $$;
COMMENT ON FUNCTION reconcile.define_provider(jsonb, jsonb, text) IS
	'Define a provider with its operations by a profile, all or nothing. The same profile again changes nothing. overrides are columns of reconcile.provider that differ here, such as base_url or credential, and under events those of reconcile.event_source; they are kept until others are given ({} takes them back). provider names it and its operations otherwise, for a second account. The first call of all arms the database. Errors: 22023 the document is no profile or claims too much, 55000 another or a newer profile defined that provider, or actions rest on what would change.';

CREATE FUNCTION reconcile.adopt_profile(profile text, overrides jsonb DEFAULT NULL, INOUT provider text DEFAULT NULL,
		OUT profile_version integer, OUT operations text[], OUT changed text[])
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	document jsonb;
BEGIN
	SELECT c.document INTO document FROM reconcile.profile_catalog c WHERE c.profile = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'profile "%" is not in the catalogue', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.profile_catalog; a profile of your own goes to define_provider().';
	END IF;
	SELECT d.provider, d.profile_version, d.operations, d.changed INTO provider, profile_version, operations, changed
	  FROM reconcile.define_provider(document, $2, $3) d;
END $$;
COMMENT ON FUNCTION reconcile.adopt_profile(text, jsonb, text) IS
	'Define a provider by a profile of the catalogue; see define_provider(). Error 42704 if there is no such profile.';
-- Windows: how long effects take to show, what follows from it, and what is done when a window was too short.

CREATE PROCEDURE reconcile.require_commit(caller text)
	AS 'MODULE_PATHNAME', 'ar_require_commit' LANGUAGE C;
COMMENT ON PROCEDURE reconcile.require_commit(text) IS
	'Called first by a procedure that commits: error 25001, naming the caller, inside a transaction block or a function.';

CREATE FUNCTION reconcile.await_engine(timeout interval) RETURNS void
	AS 'MODULE_PATHNAME', 'ar_await_engine' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION reconcile.await_engine(interval) IS
	'Wait until this database''s engine has committed something or the time is up, at most a second. May also return early: look again.';

CREATE FUNCTION reconcile.duration_text(duration interval) RETURNS text
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	s numeric := extract(epoch FROM $1);
	whole bigint := round(s);
BEGIN
	RETURN CASE
		WHEN s < 0 THEN '-' || reconcile.duration_text(-$1)
		WHEN s = 0 THEN '0 s'
		WHEN s < 0.0095 THEN trim_scale(round(s * 1000, 2)) || ' ms'
		WHEN s < 0.9995 THEN round(s * 1000) || ' ms'
		WHEN s < 59.95 THEN trim_scale(round(s, 1)) || ' s'
		WHEN whole < 3600 THEN concat_ws(' ', whole / 60 || ' min', nullif(whole % 60, 0) || ' s')
		WHEN whole < 86400 THEN concat_ws(' ', whole / 3600 || ' h', nullif(whole % 3600 / 60, 0) || ' min')
		ELSE concat_ws(' ', whole / 86400 || ' d', nullif(whole % 86400 / 3600, 0) || ' h') END;
END $$;
COMMENT ON FUNCTION reconcile.duration_text(interval) IS
	'A duration for people, to two or three digits: 450 ms, 1.3 s, 2 min 5 s. Elapsed time: a day is 24 hours.';

-- ---------------------------------------------------------------- from lags to a window

CREATE FUNCTION reconcile.lag_bound_rank(samples integer) RETURNS integer
	LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	n float8 := $1;
	log_p float8 := $1 * ln(0.99::float8);	-- of exactly "beyond" samples beyond the quantile
	cumulative float8 := 0;
	beyond integer := 0;
BEGIN
	IF $1 < 1 THEN
		RETURN NULL;
	END IF;
	-- So many samples may lie above the bound without making it a bound in less than 95 % of all cases.
	LOOP
		cumulative := cumulative + CASE WHEN log_p < -700 THEN 0 ELSE exp(log_p) END;
		EXIT WHEN cumulative > 0.05;
		beyond := beyond + 1;
		log_p := log_p + ln((n - beyond + 1) / beyond) + ln(0.01::float8 / 0.99);
	END LOOP;
	RETURN $1 - greatest(beyond - 1, 0);
END $$;
COMMENT ON FUNCTION reconcile.lag_bound_rank(integer) IS
	'Which of so many samples, in ascending order, is with 95 % confidence not below the 99 % quantile, whatever the distribution; the last one where even that is not (below 299).';

CREATE FUNCTION reconcile.recommend_window(lags_us bigint[], safety numeric DEFAULT 3, floor_us bigint DEFAULT 0,
		OUT samples integer, OUT needed integer, OUT bound interval, OUT covers numeric, OUT recommended interval)
	LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	sorted bigint[] := ARRAY(SELECT l FROM unnest($1) l WHERE l IS NOT NULL ORDER BY l);
	bound_us bigint;
BEGIN
	IF $2 IS NULL OR $2 NOT BETWEEN 1 AND 100 THEN
		RAISE EXCEPTION 'the safety factor must be between 1 and 100, not %', $2
			USING ERRCODE = '22023', HINT = 'The default is 3. A smaller factor needs more samples.';
	END IF;
	samples := cardinality(sorted);
	needed := ceil(ln(0.05) / ln(1 - power(0.01, 1 / $2)));
	IF samples = 0 THEN
		RETURN;
	END IF;
	bound_us := sorted[reconcile.lag_bound_rank(samples)];
	bound := bound_us * interval '1 microsecond';
	covers := least(round(power(0.05, 1.0 / samples), 3), 0.99);
	IF samples >= needed THEN
		recommended := ceil(greatest(bound_us * $2, sorted[samples], coalesce($3, 0), 1000000) / 100000) * interval '0.1 second';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.recommend_window(bigint[], numeric, bigint) IS
	'The window that measured lags (microseconds) speak for: an upper bound of the 99 % quantile (lag_bound_rank) times the safety factor, never below the largest lag, floor_us or a second, in tenths of a second. '
	'Of fewer than 299 samples the largest bounds a lower quantile only: covers says which, with 95 % confidence. The factor has to make up for that; were the tail exponential, it does from "needed" samples on (13 for a factor of 3, 29 for 2, 299 for 1), and recommended is NULL below. Error 22023: factor out of range.';

-- ---------------------------------------------------------------- a window that was broken

CREATE VIEW reconcile.window_violation AS
	SELECT i.incident_id, i.opened_at, i.provider, i.operation, (v.one->>'position')::integer AS position, i.action_id,
		(v.one->>'lag_us')::bigint * interval '1 microsecond' AS lag,
		(v.one->>'old_window_us')::bigint * interval '1 microsecond' AS old_window,
		(v.one->>'new_window_us')::bigint * interval '1 microsecond' AS new_window,
		v.one->>'window_of' AS window_of, v.one->>'outcome' AS outcome, i.closed_at
	FROM reconcile.incident i
	CROSS JOIN LATERAL jsonb_array_elements(jsonb_build_array(i.details - 'also') || coalesce(i.details->'also', '[]')) AS v (one)
	WHERE i.kind = 'window_violation';
COMMENT ON VIEW reconcile.window_violation IS 'Objects that showed after a window had closed, one row for each action and lookup rule, and what became of the window.';
COMMENT ON COLUMN reconcile.window_violation.lag IS 'So long after the end of its attempt the object was seen.';
COMMENT ON COLUMN reconcile.window_violation.window_of IS 'Whose window it is: the lookup rule''s own, or the provider''s.';
COMMENT ON COLUMN reconcile.window_violation.outcome IS
	'widened; pinned: left as it is; wide enough; locked: to be widened, but somebody held the row.';

CREATE FUNCTION reconcile.note_window_violation(action_id uuid, "position" integer, lag_us bigint) RETURNS boolean
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
	rule reconcile.lookup_rule;
	p reconcile.provider;
	own boolean;
	held boolean;
	old_us bigint;
	new_us bigint;
	outcome text;
	seen jsonb;
BEGIN
	IF $2 IS NULL OR $3 IS NULL OR $3 < 0 THEN
		RAISE EXCEPTION 'a violation has a position and a lag, not % and %', $2, $3
			USING ERRCODE = '22023', HINT = 'The lag is in microseconds after the end of the attempt.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'action "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	IF EXISTS (SELECT FROM reconcile.window_violation v WHERE v.action_id = $1 AND v.position = $2 AND v.outcome <> 'locked') THEN
		RETURN true;
	END IF;
	SELECT * INTO rule FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.position = $2;
	own := coalesce(rule.consistency_window IS NOT NULL, false);
	-- The engine waits for nobody's row.
	IF own THEN
		-- That of the operation too, whose version counts the changes of its rules.
		PERFORM FROM reconcile.lookup_rule l JOIN reconcile.operation o ON o.operation = l.operation
		 WHERE l.operation = a.operation AND l.position = $2 FOR NO KEY UPDATE SKIP LOCKED;
	ELSE
		PERFORM FROM reconcile.provider x WHERE x.provider = a.provider FOR NO KEY UPDATE SKIP LOCKED;
	END IF;
	held := NOT FOUND;
	SELECT * INTO rule FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.position = $2;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = a.provider;
	old_us := extract(epoch FROM CASE WHEN own THEN rule.consistency_window ELSE p.consistency_window END) * 1000000;
	new_us := greatest(old_us, least($3::numeric * 2, 5184000000000));
	outcome := CASE WHEN held THEN 'locked'
		WHEN p.window_pinned OR coalesce(rule.window_pinned, false) THEN 'pinned'
		WHEN new_us = old_us THEN 'wide enough'
		ELSE 'widened' END;
	-- From now on it rests on what was observed; a profile that says less does not take that back.
	IF outcome = 'widened' AND own THEN
		UPDATE reconcile.lookup_rule l SET consistency_window = new_us * interval '1 microsecond', window_source = 'measured'
		 WHERE l.operation = a.operation AND l.position = $2;
	ELSIF outcome = 'widened' THEN
		UPDATE reconcile.provider x SET consistency_window = new_us * interval '1 microsecond', window_source = 'measured'
		 WHERE x.provider = a.provider;
	END IF;
	seen := jsonb_strip_nulls(jsonb_build_object('position', $2, 'lag_us', $3, 'outcome', outcome,
		'window_of', CASE WHEN own THEN 'lookup rule' ELSE 'provider' END,
		'old_window_us', old_us, 'old_source', CASE WHEN own THEN rule.window_source ELSE p.window_source END,
		'new_window_us', CASE WHEN outcome = 'widened' THEN new_us ELSE old_us END));
	INSERT INTO reconcile.incident AS i (kind, provider, operation, action_id, details)
		VALUES ('window_violation', a.provider, a.operation, $1, seen)
	ON CONFLICT (action_id, kind) DO UPDATE SET details = CASE
		WHEN (i.details->>'position')::integer = $2 THEN seen || jsonb_strip_nulls(jsonb_build_object('also', i.details->'also'))
		ELSE i.details || jsonb_build_object('also', (SELECT coalesce(jsonb_agg(e), '[]')
			FROM jsonb_array_elements(coalesce(i.details->'also', '[]')) e WHERE (e->>'position')::integer <> $2) || seen) END;
	RAISE LOG 'the window of % "%" was too short for action "%": seen after %, the window was %', CASE WHEN own THEN 'a lookup of operation' ELSE 'provider' END,
		CASE WHEN own THEN a.operation ELSE a.provider END, $1, reconcile.duration_text($3 * interval '1 microsecond'),
		reconcile.duration_text(old_us * interval '1 microsecond') USING DETAIL = 'The window: ' || outcome || '.';
	RETURN NOT held;
END $$;
COMMENT ON FUNCTION reconcile.note_window_violation(uuid, integer, bigint) IS
	'An object that this lookup rule had not shown in time was seen, so many microseconds after the end of its attempt: opens the incident and widens the window to twice that lag, never narrower and not if it is pinned. '
	'A window widened so counts as measured. Once per action and rule; false if the window''s row was locked by somebody, then it is to be called again. Errors: 42704 no such action, 22023 no lag.';

-- ---------------------------------------------------------------- what was measured

CREATE VIEW reconcile.window_report AS
	SELECT o.provider, o.operation, l.position, l.kind, w.consistency_window, w.window_source, w.window_of, w.pinned,
		s.probes, s.lookups, s.lag_p50, s.lag_p90, s.lag_p99, s.lag_max, s.last_sample_at, v.violations, v.worst_violation,
		r.recommended AS recommended_window,
		CASE WHEN v.violations > 0 THEN
				format('window is broken: object seen %s after its attempt, when the window was %s; %s', reconcile.duration_text(v.worst_violation),
					reconcile.duration_text(v.old_window), CASE v.outcome WHEN 'pinned' THEN 'it is pinned' WHEN 'locked' THEN 'it has not been widened yet'
						ELSE 'it is ' || reconcile.duration_text(w.consistency_window) || ' now' END)
			WHEN s.probes = 0 THEN format('nothing measured yet: CALL reconcile.measure_window(%L)', o.operation)
			WHEN s.lag_max > w.consistency_window THEN
				format('window is too short: measured maximum %s exceeds the window of %s', reconcile.duration_text(s.lag_max), reconcile.duration_text(w.consistency_window))
			WHEN r.recommended IS NULL THEN
				format('measured maximum %s is within the window of %s, but %s samples are too few: %s are needed', reconcile.duration_text(s.lag_max),
					reconcile.duration_text(w.consistency_window), s.probes, r.needed)
			WHEN r.recommended > w.consistency_window THEN
				format('measured maximum %s is within the window of %s, but close to it: %s is recommended', reconcile.duration_text(s.lag_max),
					reconcile.duration_text(w.consistency_window), reconcile.duration_text(r.recommended))
			ELSE format('measured maximum %s is within the window of %s', reconcile.duration_text(s.lag_max), reconcile.duration_text(w.consistency_window))
		END AS verdict
	FROM reconcile.lookup_rule l
	JOIN reconcile.operation o ON o.operation = l.operation
	JOIN reconcile.provider p ON p.provider = o.provider
	CROSS JOIN LATERAL (SELECT coalesce(l.consistency_window, p.consistency_window) AS consistency_window,
			coalesce(l.window_source, p.window_source) AS window_source,
			CASE WHEN l.consistency_window IS NULL THEN 'provider' ELSE 'lookup rule' END AS window_of,
			p.window_pinned OR l.window_pinned AS pinned) w
	CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE x.source = 'probe') AS probes,
			count(*) FILTER (WHERE x.source = 'lookup') AS lookups,
			percentile_disc(0.5) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p50,
			percentile_disc(0.9) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p90,
			percentile_disc(0.99) WITHIN GROUP (ORDER BY x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_p99,
			max(x.lag_us) FILTER (WHERE x.source = 'probe') * interval '1 microsecond' AS lag_max,
			max(x.sampled_at) AS last_sample_at,
			array_agg(x.lag_us) FILTER (WHERE x.source = 'probe') AS lags_us
		FROM reconcile.window_sample x WHERE x.operation = l.operation AND x.position = l.position) s
	CROSS JOIN LATERAL (SELECT count(*) AS violations, max(y.lag) AS worst_violation,
			(array_agg(y.old_window ORDER BY y.lag DESC))[1] AS old_window, (array_agg(y.outcome ORDER BY y.lag DESC))[1] AS outcome
		FROM reconcile.window_violation y WHERE y.operation = l.operation AND y.position = l.position AND y.closed_at IS NULL) v
	CROSS JOIN LATERAL reconcile.recommend_window(s.lags_us, 3, (extract(epoch FROM v.worst_violation) * 2000000)::bigint) r
	WHERE l.kind <> 'replay_by_key';
COMMENT ON VIEW reconcile.window_report IS
	'For each lookup rule: its window, how long effects really take to show, and whether the one is long enough for the other.';
COMMENT ON COLUMN reconcile.window_report.window_of IS 'Whose window it is: the lookup rule''s own, or the provider''s.';
COMMENT ON COLUMN reconcile.window_report.probes IS 'Samples of measure_window() and self_test(), which asked from the first moment on. The lags are theirs.';
COMMENT ON COLUMN reconcile.window_report.lookups IS 'Samples of ordinary lookups. These ask after the window only, so each is an upper bound and says nothing about shorter windows.';
COMMENT ON COLUMN reconcile.window_report.lag_max IS 'The longest time from the end of an attempt to the first question that showed its effect.';
COMMENT ON COLUMN reconcile.window_report.violations IS 'Open incidents of objects that showed too late for this rule.';
COMMENT ON COLUMN reconcile.window_report.recommended_window IS 'See recommend_window(), with a safety factor of 3; NULL while there are too few probes.';

-- ---------------------------------------------------------------- measuring

CREATE FUNCTION reconcile.submit_drill(operation text, payload jsonb, drill text) RETURNS uuid
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	INSERT INTO reconcile.action (operation, payload, deliberate_repeat, drill) VALUES ($1, $2, true, $3) RETURNING action_id $$;
COMMENT ON FUNCTION reconcile.submit_drill(text, jsonb, text) IS
	'Record an action that is a part of a measurement or a rehearsal: real, sent as any other, and marked (action.drill). For measure_window() and self_test().';

CREATE FUNCTION reconcile.drill_payload(operation text, payload jsonb) RETURNS jsonb
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	p reconcile.provider;
	e record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;
	IF $2 IS NULL AND o.example IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no example payload', $1
			USING ERRCODE = '22023', HINT = 'Pass payload => …, or set operation.example. It is really sent.';
	END IF;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = o.provider;
	IF p.paused_at IS NOT NULL THEN
		RAISE EXCEPTION 'provider "%" is paused: %', p.provider, p.paused_reason
			USING ERRCODE = '55000', HINT = 'See reconcile.resume().';
	END IF;
	SELECT * INTO e FROM reconcile.engine();
	IF NOT e.armed THEN
		RAISE EXCEPTION 'this database sends nothing: %', e.disarmed_because
			USING ERRCODE = '55000', HINT = 'If this is the database that is to act, call reconcile.arm(reason).';
	END IF;
	RETURN coalesce($2, o.example);
END $$;
COMMENT ON FUNCTION reconcile.drill_payload(text, jsonb) IS
	'The payload of drills of an operation, its example by default. Errors: 42704 no such operation, 22023 no payload, 55000 nothing can be sent now.';

CREATE FUNCTION reconcile.drill_state(actions uuid[], OUT action_id uuid, OUT outcome text, OUT lag_us bigint) RETURNS SETOF record
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id,
		CASE WHEN s.action_id IS NOT NULL THEN 'visible'
			WHEN a.state IN ('rejected', 'safe_to_retry', 'cancelled', 'expired', 'abandoned', 'manual_review') THEN a.state::text
			-- A probe is watched while it has a gate or an open question.
			WHEN a.state = 'succeeded' AND a.gate_us IS NULL
				AND NOT EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = a.action_id AND l.answered_at IS NULL) THEN 'never seen'
			ELSE 'open' END,
		s.lag_us
	  FROM reconcile.action a
	  LEFT JOIN (SELECT x.action_id, min(x.lag_us) AS lag_us FROM reconcile.window_sample x
		WHERE x.operation IN (SELECT o.operation FROM reconcile.action o WHERE o.action_id = ANY ($1))
			AND x.action_id = ANY ($1) AND x.source = 'probe' GROUP BY x.action_id) s USING (action_id)
	 WHERE a.action_id = ANY ($1) $$;
COMMENT ON FUNCTION reconcile.drill_state(uuid[]) IS 'Where probes stand: visible, with its lag in microseconds; open; never seen; or the state that it failed with.';

CREATE FUNCTION reconcile.keep_concurrency(actions uuid[], concurrency integer) RETURNS void
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	UPDATE reconcile.window_sample s SET concurrency = $2
	 WHERE s.operation IN (SELECT a.operation FROM reconcile.action a WHERE a.action_id = ANY ($1) AND a.drill = 'probe')
		AND s.action_id = ANY ($1) AND s.source = 'probe' AND s.concurrency IS NULL $$;
COMMENT ON FUNCTION reconcile.keep_concurrency(uuid[], integer) IS 'How many probes were open at a time, written to the samples of these, where it is not yet.';

CREATE FUNCTION reconcile.withdraw_drills(actions uuid[], reason text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	planned uuid;
BEGIN
	FOR planned IN SELECT a.action_id FROM reconcile.action a WHERE a.action_id = ANY ($1) AND a.state = 'planned' LOOP
		BEGIN
			PERFORM reconcile.cancel(planned, $2);
		EXCEPTION WHEN object_not_in_prerequisite_state OR lock_not_available THEN
			-- The engine has it, or had it since this looked: it is sent, and ends like any other.
			NULL;
		END;
	END LOOP;
END $$;
COMMENT ON FUNCTION reconcile.withdraw_drills(uuid[], text) IS 'Cancels those of these drills that have not left. One that is leaving at this moment stays as it is.';

CREATE FUNCTION reconcile.measure_step(operation text, payload jsonb, samples integer, concurrency integer, over boolean,
		INOUT actions uuid[], INOUT progress text, OUT news boolean, OUT done boolean, OUT drive boolean)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	visible integer;
	failed integer;
	open_now integer;
	slowest bigint;
	said text := $7;
	e record;
BEGIN
	SELECT count(*) FILTER (WHERE d.outcome = 'visible'), count(*) FILTER (WHERE d.outcome NOT IN ('visible', 'open')),
			count(*) FILTER (WHERE d.outcome = 'open'), max(d.lag_us)
	  INTO visible, failed, open_now, slowest FROM reconcile.drill_state($6) d;
	PERFORM reconcile.keep_concurrency($6, $4);
	progress := format('%s of %s visible', visible, $3)
		|| coalesce(', slowest ' || reconcile.duration_text(slowest * interval '1 microsecond'), '') || coalesce(', ' || nullif(failed, 0) || ' failed', '');
	news := progress IS DISTINCT FROM said AND (said IS NOT NULL OR visible + failed > 0);
	-- What cannot be sent, or fails all the time, is not tried again and again.
	done := $5 OR failed > visible + 2 OR visible + failed >= $3
		OR EXISTS (SELECT FROM reconcile.operation o JOIN reconcile.provider p ON p.provider = o.provider WHERE o.operation = $1 AND p.paused_at IS NOT NULL);
	SELECT * INTO e FROM reconcile.engine();
	drive := e.worker_pid IS NULL AND e.lock_holder_pid IS NULL;
	done := done OR NOT e.armed;
	IF done THEN
		PERFORM reconcile.withdraw_drills($6, 'the measurement is over'::text);
	ELSE
		actions := $6 || ARRAY(SELECT reconcile.submit_drill($1, $2, 'probe'::text)
			FROM generate_series(1, least($4 - open_now, $3 - cardinality($6))));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.measure_step(text, jsonb, integer, integer, boolean, uuid[], text) IS
	'One step of measure_window(): says how far it is, submits what is missing, withdraws what has not left when it is over. drive: there is no engine, so the caller has to be it.';

CREATE FUNCTION reconcile.window_of(operation text, OUT "position" integer, OUT own boolean, OUT pinned boolean, OUT consistency_window interval,
		OUT window_source reconcile.window_source, OUT shared boolean)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT l.position, l.consistency_window IS NOT NULL, p.window_pinned OR l.window_pinned, coalesce(l.consistency_window, p.consistency_window),
		coalesce(l.window_source, p.window_source),
		EXISTS (SELECT FROM reconcile.operation other LEFT JOIN reconcile.lookup_rule r ON r.operation = other.operation
			WHERE other.provider = o.provider AND r.consistency_window IS NULL AND r.kind IS DISTINCT FROM 'replay_by_key'
				AND NOT (other.operation = o.operation AND r.position = l.position))
	  FROM reconcile.operation o
	  JOIN reconcile.provider p ON p.provider = o.provider
	  JOIN reconcile.lookup_rule l ON l.operation = o.operation
	 WHERE o.operation = $1 AND l.kind <> 'replay_by_key'
	 ORDER BY l.position LIMIT 1 $$;
COMMENT ON FUNCTION reconcile.window_of(text) IS
	'The window that an operation''s first question waits for, and whether it is the rule''s own; shared: others rest on the same one. No row in position if it has no lookup rule.';

CREATE FUNCTION reconcile.measure_end(operation text, actions uuid[], wanted integer, safety numeric, apply boolean,
		OUT visible integer, OUT slowest interval, OUT recommended interval, OUT applied boolean, OUT message text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	w record;
	r record;
	lags bigint[];
	missing text;
	floor_us bigint;
	change text;
BEGIN
	SELECT * INTO w FROM reconcile.window_of($1);
	SELECT array_agg(d.lag_us) FILTER (WHERE d.outcome = 'visible') INTO lags FROM reconcile.drill_state($2) d;
	SELECT string_agg(format('%s %s', n, outcome), ', ' ORDER BY n DESC, outcome) INTO missing
	  FROM (SELECT CASE d.outcome WHEN 'open' THEN 'not seen yet' ELSE d.outcome END AS outcome, count(*) AS n
		FROM reconcile.drill_state($2) d WHERE d.outcome <> 'visible' GROUP BY 1) x;
	SELECT (extract(epoch FROM max(v.lag)) * 2000000)::bigint INTO floor_us FROM reconcile.window_violation v
	 WHERE v.operation = $1 AND v.position = w.position AND v.closed_at IS NULL;
	SELECT * INTO r FROM reconcile.recommend_window(lags, $4, floor_us);
	visible := r.samples;
	slowest := (SELECT max(l) FROM unnest(lags) l) * interval '1 microsecond';
	applied := false;
	IF missing IS NOT NULL OR visible < $3 THEN
		message := format('%s of %s probes became visible%s: no window is recommended', visible, $3, coalesce(' (' || missing || ')', ''))
			|| coalesce((SELECT format('; provider "%s" is paused: %s', p.provider, p.paused_reason) FROM reconcile.operation o
				JOIN reconcile.provider p ON p.provider = o.provider WHERE o.operation = $1 AND p.paused_at IS NOT NULL), '')
			|| coalesce((SELECT '; this database sends nothing: ' || e.disarmed_because FROM reconcile.engine() e WHERE NOT e.armed), '');
		RETURN;
	ELSIF r.recommended IS NULL THEN
		message := format('%s samples are too few for a safety factor of %s: %s are needed, so no window is recommended', visible, $4, r.needed);
		RETURN;
	END IF;
	recommended := r.recommended;
	message := format('the slowest of %s took %s, which bounds %s %% of all writes with 95 %% confidence; recommended window: %s',
		visible, reconcile.duration_text(slowest), trim_scale(r.covers * 100), reconcile.duration_text(recommended));
	change := format('%s (%s)', reconcile.duration_text(w.consistency_window), w.window_source);
	IF w.pinned THEN
		message := message || format('; the window is pinned and stays %s', change);
	ELSIF NOT $5 THEN
		message := message || format(' instead of %s; apply => true would set it', change);
	ELSE
		-- What was measured here says nothing about others that rest on the provider's window: those keep it.
		IF w.own OR w.shared AND recommended < w.consistency_window THEN
			UPDATE reconcile.lookup_rule l SET consistency_window = recommended, window_source = 'measured'
			 WHERE l.operation = $1 AND l.position = w.position;
		ELSE
			UPDATE reconcile.provider p SET consistency_window = recommended, window_source = 'measured'
			  FROM reconcile.operation o WHERE o.operation = $1 AND p.provider = o.provider;
		END IF;
		applied := true;
		message := message || format(', set instead of %s', change);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.measure_end(text, uuid[], integer, numeric, boolean) IS
	'The end of measure_window(): what the probes say, in words, and the change of the window if it is wanted, allowed and warranted.';

CREATE FUNCTION reconcile.measure_begin(operation text, samples integer, concurrency integer, INOUT payload jsonb, safety numeric, max_duration interval,
		OUT until timestamptz)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	w record;
	needed integer;
BEGIN
	IF $2 IS NULL OR $2 NOT BETWEEN 1 AND 10000 OR $3 IS NULL OR $3 NOT BETWEEN 1 AND 100 THEN
		RAISE EXCEPTION 'samples must be between 1 and 10000, concurrency between 1 and 100'
			USING ERRCODE = '22023', HINT = 'Each sample is a real write.';
	END IF;
	IF $6 IS NULL OR extract(epoch FROM $6) NOT BETWEEN 1 AND 604800 THEN
		RAISE EXCEPTION 'max_duration must be between 1 second and 7 days' USING ERRCODE = '22023';
	END IF;
	needed := (reconcile.recommend_window('{}', $5)).needed;
	payload := reconcile.drill_payload($1, $4);
	SELECT * INTO w FROM reconcile.window_of($1);
	IF w."position" IS NULL THEN
		RAISE EXCEPTION 'operation "%" has no lookup rule that shows what it makes', $1
			USING ERRCODE = '55000', HINT = 'Without one there is no window to measure. Define it in reconcile.lookup_rule.';
	END IF;
	IF $2 < needed THEN
		RAISE NOTICE '% samples will be too few to recommend a window: % are needed for a safety factor of %', $2, needed, $5;
	END IF;
	until := clock_timestamp() + $6;
END $$;
COMMENT ON FUNCTION reconcile.measure_begin(text, integer, integer, jsonb, numeric, interval) IS
	'Checks what measure_window() is asked for. Errors: 22023 an argument, 42704 no such operation, 55000 nothing to measure, or nothing can be sent now.';

CREATE FUNCTION reconcile.is_over(until timestamptz) RETURNS boolean
	LANGUAGE sql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$ SELECT clock_timestamp() >= $1 $$;
COMMENT ON FUNCTION reconcile.is_over(timestamptz) IS 'Has this instant passed?';

CREATE PROCEDURE reconcile.measure_window(operation text, samples integer DEFAULT 20, concurrency integer DEFAULT 4, payload jsonb DEFAULT NULL,
		apply boolean DEFAULT false, safety numeric DEFAULT 3, max_duration interval DEFAULT '10 minutes',
		INOUT visible integer DEFAULT NULL, INOUT slowest interval DEFAULT NULL, INOUT recommended interval DEFAULT NULL, INOUT applied boolean DEFAULT NULL)
	LANGUAGE plpgsql AS $$
-- Every name is qualified and no operator is used: there can be no SET search_path on what commits.
DECLARE
	probe pg_catalog.jsonb;
	until pg_catalog.timestamptz;
	step pg_catalog.record;
	actions pg_catalog.uuid[] := ARRAY[]::pg_catalog.uuid[];
	progress pg_catalog.text;
	message pg_catalog.text;
	holder integer;
	sent integer;
	answered integer;
	asked integer;
BEGIN
	CALL reconcile.require_commit('reconcile.measure_window');
	SELECT b.payload, b.until INTO probe, until FROM reconcile.measure_begin($1, $2, $3, $4, $6, $7) b;
	LOOP
		SELECT s.* INTO step FROM reconcile.measure_step($1, probe, $2, $3, reconcile.is_over(until), actions, progress) s;
		COMMIT;
		actions := step.actions;
		progress := step.progress;
		IF step.news THEN
			RAISE NOTICE '%', progress;
		END IF;
		EXIT WHEN step.done;
		IF step.drive THEN
			CALL reconcile.run('300 ms', false, holder, sent, answered, asked);
		ELSE
			PERFORM reconcile.await_engine('300 ms');
		END IF;
	END LOOP;
	SELECT e.visible, e.slowest, e.recommended, e.applied, e.message INTO visible, slowest, recommended, applied, message
	  FROM reconcile.measure_end($1, actions, $2, $6, $5) e;
	COMMIT;
	RAISE NOTICE '%', message;
END $$;
COMMENT ON PROCEDURE reconcile.measure_window(text, integer, integer, jsonb, boolean, numeric, interval, integer, interval, interval, boolean) IS
	'Measure how long the writes of an operation take to show in its first lookup rule: real writes, marked as probes, at most "concurrency" open at a time, each asked for until it is seen. Tells how far it is, keeps every sample (window_sample), and recommends a window (recommend_window). '
	'apply => true sets it, as measured: the rule''s own window; or the provider''s, unless that made it shorter for others, then it becomes the rule''s own; never a pinned one, and never when a probe failed or was not seen within max_duration. '
	'Without a worker it runs the engine itself. Errors: 25001 inside a transaction block, 22023 an argument, 42704 no such operation, 55000 nothing to measure, or nothing can be sent now.';
-- Rehearsing what happens when an answer is lost, before the first real action.

CREATE TABLE reconcile.self_test_result (
	run uuid NOT NULL,
	operation text COLLATE "C" NOT NULL REFERENCES reconcile.operation ON DELETE CASCADE,
	operation_version integer NOT NULL,
	scenario text NOT NULL,
	capability text NOT NULL,
	expected text NOT NULL,
	held boolean,
	detail text NOT NULL,
	action_id uuid,
	started_at timestamptz NOT NULL,
	ended_at timestamptz NOT NULL,
	PRIMARY KEY (run, scenario, capability),
	CONSTRAINT self_test_result_scenario CHECK (scenario IN ('probe', 'answer_lost', 'request_lost'))
);
COMMENT ON TABLE reconcile.self_test_result IS 'What self_test() found: one row for each capability that a scenario was to show.';
COMMENT ON COLUMN reconcile.self_test_result.run IS 'Which call of self_test().';
COMMENT ON COLUMN reconcile.self_test_result.operation_version IS 'The definition that was tested; a later one has not been.';
COMMENT ON COLUMN reconcile.self_test_result.scenario IS
	'probe: an ordinary success; answer_lost: carried out, but its answer was thrown away; request_lost: taken for sent, though nothing was.';
COMMENT ON COLUMN reconcile.self_test_result.held IS 'Was it as expected? NULL: it was not tried, and detail says why.';
COMMENT ON COLUMN reconcile.self_test_result.detail IS 'What was seen.';
CREATE INDEX self_test_result_of_operation ON reconcile.self_test_result (operation, ended_at);

CREATE FUNCTION reconcile.self_test_plan(operation text, OUT lost_answer text, OUT lost_request text, OUT needed interval)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	p reconcile.provider;
	rule record;
	window_s numeric;
	key_s numeric;
	longest_s numeric := 0;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	SELECT * INTO p FROM reconcile.provider x WHERE x.provider = o.provider;
	-- A key that is dead, or may be, when its turn comes, is not sent again.
	key_s := coalesce(extract(epoch FROM o.key_lifetime) - extract(epoch FROM o.key_margin), 0);
	FOR rule IN SELECT l.*, coalesce(l.window_source, p.window_source) AS source FROM reconcile.lookup_rule l WHERE l.operation = $1 ORDER BY l.position LOOP
		window_s := extract(epoch FROM coalesce(rule.consistency_window, p.consistency_window));
		CONTINUE WHEN rule.kind = 'replay_by_key'
			AND key_s <= 2 * extract(epoch FROM p.attempt_timeout) + 2 * extract(epoch FROM p.late_arrival_max) + window_s;
		lost_answer := coalesce(lost_answer, CASE rule.kind WHEN 'replay_by_key' THEN 'replay' ELSE 'lookup' END);
		lost_request := coalesce(lost_request, CASE WHEN rule.kind = 'replay_by_key' THEN 'replay' WHEN rule.absence_proves THEN 'absence' END);
		longest_s := greatest(longest_s, window_s + extract(epoch FROM rule.negative_spacing)
			* (1 + greatest(rule.min_negatives, CASE rule.source WHEN 'assumed' THEN 2 ELSE 1 END)));
	END LOOP;
	lost_answer := coalesce(lost_answer, 'review');
	lost_request := coalesce(lost_request, 'review');
	needed := make_interval(secs => ceil(10 + 2 * extract(epoch FROM p.attempt_timeout) + extract(epoch FROM p.late_arrival_max) + longest_s)::float8);
END $$;
COMMENT ON FUNCTION reconcile.self_test_plan(text) IS
	'What the lookup rules of an operation are good for. lost_answer is settled by: lookup, replay (the same request again with its key), review. lost_request: absence (proven, then safe to retry or replaced), replay, review. needed: how long self_test() may take.';

CREATE FUNCTION reconcile.self_test_findings(operation text, probe uuid, answer_lost uuid, request_lost uuid,
		OUT scenario text, OUT capability text, OUT expected text, OUT held boolean, OUT detail text, OUT action_id uuid)
	RETURNS SETOF record
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	plan record;
	a reconcile.action;
	first_attempt reconcile.attempt;
	worked boolean;
	answered boolean;
	lost boolean;
	matches integer;
	story text;
	rule record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	SELECT * INTO plan FROM reconcile.self_test_plan($1);

	FOR scenario, action_id IN VALUES ('probe', $2), ('answer_lost', $3), ('request_lost', $4) LOOP
		SELECT * INTO a FROM reconcile.action x WHERE x.action_id = self_test_findings.action_id;
		SELECT * INTO first_attempt FROM reconcile.attempt x WHERE x.action_id = self_test_findings.action_id AND x.number = 1;
		story := concat_ws('; ', format('%s, %s', a.state, CASE a.attempts WHEN 1 THEN '1 attempt' ELSE a.attempts || ' attempts' END),
			nullif(first_attempt.evidence->'transfer'->>'error', ''),
			'status ' || first_attempt.http_status,
			(SELECT 'lookups: ' || string_agg(x.result || ' (' || x.reason || ')', ', ' ORDER BY x.asked_at)
			   FROM (SELECT * FROM reconcile.lookup y WHERE y.action_id = self_test_findings.action_id AND y.result IS NOT NULL ORDER BY y.asked_at DESC LIMIT 3) x));
		worked := a.state = 'succeeded' OR a.state = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule x WHERE x.operation = $1);

		IF scenario = 'probe' THEN
			capability := 'works';
			expected := 'the example is carried out, and answered';
			answered := EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event LIKE 'answered%' AND h.event <> 'answered_unreadable');
			held := worked AND answered;
			detail := story;
			RETURN NEXT;
			CONTINUE WHEN NOT coalesce(worked, false);

			capability := 'returns an id';
			expected := 'the answer carries the provider''s id of what was made';
			IF o.artifact_path IS NULL AND o.artifact_header IS NULL
				AND NOT EXISTS (SELECT FROM reconcile.response_rule x WHERE x.operation = $1 AND x.artifact_path IS NOT NULL)
				AND NOT EXISTS (SELECT FROM reconcile.poll_rule x WHERE x.operation = $1 AND x.artifact_path IS NOT NULL) THEN
				held := NULL;
				detail := 'not run because the operation does not say where (artifact_path, artifact_header)';
			ELSE
				held := answered AND a.artifact_id IS NOT NULL;
				detail := CASE WHEN held THEN 'its id is ' || a.artifact_id ELSE story END;
			END IF;
			RETURN NEXT;

			FOR rule IN
				SELECT l.position, l.kind, coalesce(l.consistency_window, p.consistency_window) AS consistency_window, min(s.lag_us) AS lag_us,
						min(l.position) OVER () AS first
				  FROM reconcile.lookup_rule l JOIN reconcile.provider p ON p.provider = o.provider
				  LEFT JOIN reconcile.window_sample s ON s.operation = $1 AND s.position = l.position AND s.action_id = a.action_id
				 WHERE l.operation = $1 AND l.kind <> 'replay_by_key' GROUP BY l.position, l.kind, 3 ORDER BY l.position
			LOOP
				capability := format('is shown by lookup %s', rule.position);
				expected := format('%s shows it within its window of %s', rule.kind, reconcile.duration_text(rule.consistency_window));
				IF rule.lag_us IS NOT NULL THEN
					held := rule.lag_us * interval '1 microsecond' <= rule.consistency_window;
					detail := format('seen after %s', reconcile.duration_text(rule.lag_us * interval '1 microsecond'));
				ELSIF EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = a.action_id AND l.position = rule.position) THEN
					held := false;
					detail := concat_ws('; ', 'not seen', story);
				ELSE
					held := NULL;
					detail := CASE rule.position WHEN rule.first THEN 'not run because it was not asked' ELSE 'not run because an earlier lookup did not show it' END;
				END IF;
				RETURN NEXT;
			END LOOP;
			CONTINUE;
		END IF;

		IF scenario = 'answer_lost' THEN
			capability := 'settles a lost answer';
			expected := CASE plan.lost_answer
				WHEN 'lookup' THEN 'the lookup finds it, so it succeeds and is not sent again'
				WHEN 'replay' THEN 'the same request with its key is answered as the first one was, so it succeeds'
				ELSE 'a person has to decide, and it is not sent again' END;
			held := CASE plan.lost_answer WHEN 'lookup' THEN worked AND a.attempts = 1
				WHEN 'replay' THEN worked ELSE a.state = 'manual_review' AND a.attempts = 1 END;
		ELSE
			capability := 'settles a lost request';
			expected := CASE plan.lost_request
				WHEN 'absence' THEN 'the lookup proves that it did not happen' || CASE o.on_absent WHEN 'replace' THEN ', so it is replaced' ELSE ', so it is safe to retry' END
				WHEN 'replay' THEN 'the same request with its key is carried out, once'
				ELSE 'a person has to decide, and it is not sent again' END;
			held := CASE plan.lost_request
				WHEN 'absence' THEN first_attempt.state = 'safe_to_retry' AND first_attempt.event = 'absent'
					AND CASE a.attempts WHEN 1 THEN a.state = 'safe_to_retry' ELSE worked END
				WHEN 'replay' THEN worked ELSE a.state = 'manual_review' AND a.attempts = 1 END;
		END IF;
		IF action_id IS NULL THEN
			held := NULL;
			detail := 'not run because the ordinary success did not come';
			RETURN NEXT;
			CONTINUE;
		END IF;
		lost := EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event = 'answer_lost');
		held := coalesce(held AND lost, false);
		detail := CASE WHEN NOT lost THEN 'the answer was not taken for lost; ' ELSE '' END || story;
		RETURN NEXT;

		CONTINUE WHEN scenario <> 'answer_lost' OR plan.lost_answer <> 'lookup';
		capability := 'makes it once';
		expected := 'the lookup shows exactly one';
		SELECT x.matches INTO matches FROM reconcile.lookup x WHERE x.action_id = self_test_findings.action_id AND x.result IN ('found', 'ambiguous')
		 ORDER BY x.asked_at DESC LIMIT 1;
		held := coalesce(matches = 1, false);
		detail := format('it showed %s', coalesce(matches, 0));
		RETURN NEXT;
	END LOOP;
END $$;
COMMENT ON FUNCTION reconcile.self_test_findings(text, uuid, uuid, uuid) IS
	'What the three drills of an operation show, as rows for self_test_result. NULL for a drill that was not made.';

CREATE FUNCTION reconcile.self_test_begin(operation text, INOUT payload jsonb, max_duration interval, OUT until timestamptz, OUT reason text)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	o reconcile.operation;
	plan record;
BEGIN
	SELECT * INTO o FROM reconcile.operation x WHERE x.operation = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;
	SELECT * INTO plan FROM reconcile.self_test_plan($1);
	IF $3 IS NULL OR extract(epoch FROM $3) < extract(epoch FROM plan.needed) THEN
		RAISE EXCEPTION 'a self-test of operation "%" may take %, longer than max_duration', $1, reconcile.duration_text(plan.needed)
			USING ERRCODE = '22023', DETAIL = 'It waits for the end of an attempt, late arrival, the longest window of its lookups, and repeated negatives.',
			HINT = format('Pass max_duration => ''%s s''.', extract(epoch FROM plan.needed)::integer);
	END IF;
	until := clock_timestamp() + $3;
	IF o.effect <> 'create' THEN
		reason := format('not run because each scenario of a %s needs an object of its own', o.effect);
		RETURN;
	END IF;
	BEGIN
		payload := reconcile.drill_payload($1, $2);
	EXCEPTION WHEN invalid_parameter_value OR object_not_in_prerequisite_state THEN
		reason := 'not run because ' || SQLERRM;
	END;
END $$;
COMMENT ON FUNCTION reconcile.self_test_begin(text, jsonb, interval) IS
	'May self_test() begin? reason: why nothing can be tried. Errors: 42704 no such operation, 22023 it would take longer than it may.';

CREATE FUNCTION reconcile.self_test_step(operation text, payload jsonb, over boolean, INOUT probe uuid, INOUT answer_lost uuid, INOUT request_lost uuid,
		OUT done boolean, OUT drive boolean)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	made uuid[];
	unsettled integer;
	longest interval;
	a reconcile.action;
	watched boolean;
	e record;
BEGIN
	probe := coalesce(probe, reconcile.submit_drill($1, $2, 'probe'::text));
	made := array_remove(ARRAY[probe, answer_lost, request_lost], NULL);
	-- Counted before the probe is looked at: what was settled then still is.
	SELECT count(*) INTO unsettled FROM reconcile.action x WHERE x.action_id = ANY (made)
		AND x.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'delivered')
		AND NOT (x.state = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule r WHERE r.operation = $1));
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = probe;
	-- Its windows are how long it is looked for, and no longer.
	SELECT max(r.consistency_window) INTO longest FROM reconcile.window_report r WHERE r.operation = $1;
	watched := (a.gate_us IS NOT NULL OR EXISTS (SELECT FROM reconcile.lookup l WHERE l.action_id = probe AND l.answered_at IS NULL))
		AND clock_timestamp() < a.recorded_at + coalesce(longest, '0') + interval '5 seconds';
	SELECT * INTO e FROM reconcile.engine();
	drive := e.worker_pid IS NULL AND e.lock_holder_pid IS NULL;
	done := $3 OR NOT e.armed
		OR EXISTS (SELECT FROM reconcile.provider p WHERE p.provider = a.provider AND p.paused_at IS NOT NULL);
	IF done THEN
		PERFORM reconcile.withdraw_drills(made, 'the self-test is over'::text);
	ELSIF unsettled = 0 AND answer_lost IS NULL AND a.state IN ('succeeded', 'delivered') THEN
		answer_lost := reconcile.submit_drill($1, $2, 'answer_lost'::text);
		request_lost := reconcile.submit_drill($1, $2, 'request_lost'::text);
	ELSE
		done := unsettled = 0 AND NOT (watched AND a.state IN ('succeeded', 'delivered'));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.self_test_step(text, jsonb, boolean, uuid, uuid, uuid) IS
	'One step of self_test(): submits the drills, first the ordinary one, and says when all are settled. drive: there is no engine, so the caller has to be it.';

CREATE FUNCTION reconcile.self_test_end(run uuid, operation text, keep boolean, reason text, probe uuid, answer_lost uuid, request_lost uuid,
		OUT lines text[], OUT failed integer)
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	IF NOT $3 THEN
		DELETE FROM reconcile.self_test_result r WHERE r.operation = $2;
	END IF;
	INSERT INTO reconcile.self_test_result (run, operation, operation_version, scenario, capability, expected, held, detail, action_id, started_at, ended_at)
	SELECT $1, $2, o.version, f.scenario, f.capability, f.expected, CASE WHEN $4 IS NULL THEN f.held END, coalesce($4, f.detail), f.action_id,
			coalesce(a.submitted_at, clock_timestamp()), clock_timestamp()
	  FROM reconcile.self_test_findings($2, $5, $6, $7) f
	  JOIN reconcile.operation o ON o.operation = $2
	  LEFT JOIN reconcile.action a ON a.action_id = f.action_id;
	SELECT array_agg(format('%s, %s: %s', r.scenario, r.capability, CASE r.held WHEN true THEN 'held: ' || r.detail
				WHEN false THEN format('DID NOT HOLD: expected: %s; seen: %s', r.expected, r.detail) ELSE r.detail END)
			ORDER BY array_position('{probe,answer_lost,request_lost}', r.scenario), r.ctid),
			CASE WHEN count(r.held) > 0 THEN count(*) FILTER (WHERE NOT r.held) END
	  INTO lines, failed FROM reconcile.self_test_result r WHERE r.run = $1;
END $$;
COMMENT ON FUNCTION reconcile.self_test_end(uuid, text, boolean, text, uuid, uuid, uuid) IS
	'The end of self_test(): keeps what was found, and says it.';

CREATE PROCEDURE reconcile.self_test(operation text, payload jsonb DEFAULT NULL, keep boolean DEFAULT true, max_duration interval DEFAULT '10 minutes',
		INOUT run uuid DEFAULT NULL, INOUT failed integer DEFAULT NULL)
	LANGUAGE plpgsql AS $$
-- Every name is qualified and no operator is used: there can be no SET search_path on what commits.
DECLARE
	setting pg_catalog.record;
	step pg_catalog.record;
	probe pg_catalog.uuid;
	answer_lost pg_catalog.uuid;
	request_lost pg_catalog.uuid;
	lines pg_catalog.text[];
	line pg_catalog.text;
	idle boolean;
	holder integer;
	sent integer;
	answered integer;
	asked integer;
BEGIN
	CALL reconcile.require_commit('reconcile.self_test');
	SELECT b.* INTO setting FROM reconcile.self_test_begin($1, $2, $4) b;
	idle := setting.reason IS NOT NULL;
	LOOP
		EXIT WHEN idle;
		SELECT s.* INTO step FROM reconcile.self_test_step($1, setting.payload, reconcile.is_over(setting.until), probe, answer_lost, request_lost) s;
		COMMIT;
		probe := step.probe;
		answer_lost := step.answer_lost;
		request_lost := step.request_lost;
		EXIT WHEN step.done;
		IF step.drive THEN
			CALL reconcile.run('300 ms', false, holder, sent, answered, asked);
		ELSE
			PERFORM reconcile.await_engine('300 ms');
		END IF;
	END LOOP;
	run := pg_catalog.gen_random_uuid();
	SELECT e.lines, e.failed INTO lines, failed FROM reconcile.self_test_end(run, $1, $3, setting.reason, probe, answer_lost, request_lost) e;
	COMMIT;
	FOREACH line IN ARRAY lines LOOP
		RAISE NOTICE '%', line;
	END LOOP;
END $$;
COMMENT ON PROCEDURE reconcile.self_test(text, jsonb, boolean, interval, uuid, integer) IS
	'Rehearse lost answers with real, marked writes, at a test account: an ordinary success; one whose answer is thrown away; one that is taken for sent though nothing was. What held is in self_test_result, and told. '
	'failed counts what did not hold; NULL if nothing could be tried. keep => false forgets earlier results of the operation. Without a worker it runs the engine itself. Errors: 25001 inside a transaction block, 42704 no such operation, 22023 max_duration is shorter than what it may take.';
-- One picture: how long effects took to show, and the window.

CREATE FUNCTION reconcile.xml_text(value text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT replace(replace(replace(replace(replace(regexp_replace($1, '[\x01-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]', '?', 'g'),
		'&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;'), '''', '&#39;') $$;
COMMENT ON FUNCTION reconcile.xml_text(text) IS 'A text as the content of an XML element or attribute; what XML cannot hold becomes a question mark.';

CREATE FUNCTION reconcile.duration_ticks(low_s numeric, high_s numeric, logarithmic boolean) RETURNS numeric[]
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN $3 THEN (
		SELECT array_agg(t ORDER BY t) FROM unnest('{0.0001,0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000,8640000}'::numeric[]) WITH ORDINALITY AS x (t, n)
		 WHERE t >= (SELECT coalesce(max(b), 0.0001) FROM unnest('{0.0001,0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000}'::numeric[]) b WHERE b <= $1)
		   AND t <= (SELECT min(b) FROM unnest('{0.001,0.01,0.1,1,10,60,600,3600,36000,86400,864000,8640000}'::numeric[]) b WHERE b >= least($2, 8640000)))
	ELSE (
		SELECT array_agg(step * i ORDER BY i)
		  FROM (SELECT min(t) AS step FROM unnest('{0.0001,0.0002,0.0005,0.001,0.002,0.005,0.01,0.02,0.05,0.1,0.2,0.5,1,2,5,10,20,30,60,120,300,600,1200,1800,3600,7200,14400,21600,43200,86400,172800,432000,864000,1728000}'::numeric[]) t
			WHERE $2 / t <= 6) s, generate_series(0, ceil($2 / step)::integer) i) END $$;
COMMENT ON FUNCTION reconcile.duration_ticks(numeric, numeric, boolean) IS
	'Where an axis of durations between these two (seconds) has its ticks: the first and the last enclose them.';

CREATE FUNCTION reconcile.plot_y(seconds numeric, ticks numeric[], logarithmic boolean) RETURNS numeric
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT round(330 - 270 * CASE WHEN $3
		THEN (ln(greatest($1, $2[1])) - ln($2[1])) / (ln($2[cardinality($2)]) - ln($2[1]))
		ELSE $1 / $2[cardinality($2)] END, 1) $$;
COMMENT ON FUNCTION reconcile.plot_y(numeric, numeric[], boolean) IS
	'Where a lag stands in window_plot(): 330 at the first tick, 60 at the last.';

CREATE FUNCTION reconcile.plot_time_axis(low timestamptz, high timestamptz) RETURNS text
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
	WITH span AS (SELECT extract(epoch FROM $1) AS low, extract(epoch FROM $2) AS high),
	chosen AS (
		SELECT low, high, coalesce(min(t), 315576000) AS step
		  FROM span LEFT JOIN unnest('{1,2,5,10,15,30,60,120,300,600,900,1800,3600,7200,10800,21600,43200,86400,172800,345600,604800,1209600,2592000,7776000,15552000,31557600,63115200}'::numeric[]) t
			ON (high - low) / t <= 6 GROUP BY low, high)
	SELECT coalesce(string_agg(format('<path class="grid" d="M%1$s 330v6"/><text class="tick" x="%1$s" y="350" text-anchor="middle">%2$s</text>',
			round(90 + 640 * (at - low) / (high - low), 1),
			to_char(to_timestamp(at::float8), CASE WHEN step < 60 THEN 'HH24:MI:SS' WHEN step < 86400 THEN 'HH24:MI' ELSE 'YYYY-MM-DD' END)), E'\n' ORDER BY at) || E'\n', '')
		|| format('<text class="name" x="410" y="372" text-anchor="middle">when it was seen, UTC%s</text>', CASE WHEN min(step) < 86400 THEN
			', ' || to_char($1, 'YYYY-MM-DD') || CASE WHEN $1::date <> $2::date THEN ' to ' || to_char($2, 'YYYY-MM-DD') ELSE '' END ELSE '' END)
	  FROM chosen, generate_series(ceil(low / step) * step, high, step) AS at $$;
COMMENT ON FUNCTION reconcile.plot_time_axis(timestamptz, timestamptz) IS 'The time axis of window_plot().';

CREATE FUNCTION reconcile.window_plot(operation text) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	kept constant integer := 2000;
	low timestamptz;
	high timestamptz;
	smallest numeric;
	largest numeric;
	logarithmic boolean;
	ticks numeric[];
	named text := reconcile.xml_text($1);
	windows text;
	verdicts text;
	axis text;
	marks text;
	counts text;
BEGIN
	IF NOT EXISTS (SELECT FROM reconcile.operation o WHERE o.operation = $1) THEN
		RAISE EXCEPTION 'operation "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
	END IF;

	-- What is to be shown, and so how far the axes go.
	SELECT min(m.at), max(m.at), min(m.s), max(m.s),
			format('%s probes, %s lookups, %s violations', count(*) FILTER (WHERE m.kind = 'probe'),
				count(*) FILTER (WHERE m.kind = 'lookup'), count(*) FILTER (WHERE m.kind = 'violation'))
	  INTO low, high, smallest, largest, counts
	  FROM (SELECT x.source AS kind, x.sampled_at AS at, x.lag_us / 1000000.0 AS s
			FROM (SELECT * FROM reconcile.window_sample w WHERE w.operation = $1 ORDER BY w.sampled_at DESC LIMIT kept) x
		UNION ALL
		SELECT 'violation', v.opened_at, extract(epoch FROM v.lag) FROM reconcile.window_violation v WHERE v.operation = $1) m;
	IF low IS NULL OR high - low < interval '1 second' THEN
		low := coalesce(low, statement_timestamp()) - interval '30 seconds';
		high := coalesce(high, statement_timestamp()) + interval '30 seconds';
	ELSE
		SELECT low - (high - low) / 40, high + (high - low) / 40 INTO low, high;
	END IF;
	SELECT least(smallest, min(extract(epoch FROM w.consistency_window)) FILTER (WHERE w.consistency_window > '0')),
			greatest(largest, max(extract(epoch FROM w.consistency_window))), string_agg(format('Lookup %s: %s.', w.position, w.verdict), ' ' ORDER BY w.position)
	  INTO smallest, largest, verdicts FROM reconcile.window_report w WHERE w.operation = $1;
	smallest := greatest(smallest, 0.0001);
	largest := greatest(largest, smallest, 0.001);
	logarithmic := coalesce(largest >= 50 * smallest, false);
	ticks := reconcile.duration_ticks(coalesce(smallest, 1), CASE WHEN logarithmic THEN largest ELSE largest * 1.05 END, logarithmic);

	SELECT string_agg(format('<path class="grid" d="M90 %1$sh640"/><text class="tick" x="82" y="%2$s" text-anchor="end">%3$s</text>',
			reconcile.plot_y(t, ticks, logarithmic), reconcile.plot_y(t, ticks, logarithmic) + 4, reconcile.duration_text(t * interval '1 second')), E'\n' ORDER BY t)
	  INTO axis FROM unnest(ticks) t;

	-- The label of the smallest window stands below it, where no other can be.
	SELECT string_agg(format('<path class="window" d="M90 %sh640"/><text class="label" x="%s" y="%s" text-anchor="%s">%s</text>',
			w.y, CASE WHEN w.n % 2 = 1 THEN 726 ELSE 94 END, CASE WHEN w.n = 1 AND w.others THEN w.y + 15 ELSE w.y - 5 END,
			CASE WHEN w.n % 2 = 1 THEN 'end' ELSE 'start' END,
			reconcile.xml_text(format('window of lookup %s: %s (%s)', w.positions, reconcile.duration_text(w.consistency_window), w.sources))), E'\n' ORDER BY w.consistency_window)
	  INTO windows
	  FROM (SELECT r.consistency_window, string_agg(r.position::text, ', ' ORDER BY r.position) AS positions,
				string_agg(DISTINCT r.window_source::text, ', ') AS sources, row_number() OVER (ORDER BY r.consistency_window) AS n,
				count(*) OVER () > 1 AS others,
				reconcile.plot_y(extract(epoch FROM r.consistency_window), ticks, logarithmic) AS y
			FROM reconcile.window_report r WHERE r.operation = $1 GROUP BY r.consistency_window) w;

	SELECT string_agg(concat('<g>', '<title>' || reconcile.xml_text(concat(m.kind, ', lookup ', m.position, ': ', reconcile.duration_text(m.s * interval '1 second'),
				', ' || to_char(m.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC')) || '</title>',
			'<path class="between" d="M' || m.x || ' ' || m.y || 'V' || m.low_y || '"/>',
			CASE m.kind WHEN 'probe' THEN format('<circle class="probe" cx="%s" cy="%s" r="4"/>', m.x, m.y)
				WHEN 'lookup' THEN format('<path class="lookup" d="M%s %sl5 9h-10z"/>', m.x, m.y - 5)
				ELSE format('<path class="violation" d="M%s %sl12 12m0 -12l-12 12"/>', m.x - 6, m.y - 6) END, '</g>'), E'\n' ORDER BY m.kind DESC, m.at)
	  INTO marks
	  FROM (SELECT k.*, round(90 + 640 * extract(epoch FROM k.at - low) / extract(epoch FROM high - low), 1) AS x,
				reconcile.plot_y(k.s, ticks, logarithmic) AS y, reconcile.plot_y(k.low_s, ticks, logarithmic) AS low_y
			FROM (SELECT x.source AS kind, x.position, x.sampled_at AS at, x.lag_us / 1000000.0 AS s, x.lag_low_us / 1000000.0 AS low_s
					FROM (SELECT * FROM reconcile.window_sample w WHERE w.operation = $1 ORDER BY w.sampled_at DESC LIMIT kept) x
				UNION ALL
				SELECT 'violation', v.position, v.opened_at, extract(epoch FROM v.lag), NULL
					FROM reconcile.window_violation v WHERE v.operation = $1) k) m;

	RETURN concat_ws(E'\n',
		format('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 430" width="760" height="430" role="img" aria-labelledby="%1$s-title %1$s-desc">', named),
		format('<title id="%1$s-title">Visibility lag of %1$s</title>', named),
		format('<desc id="%s-desc">%s</desc>', named, reconcile.xml_text(concat_ws(' ', counts || '.', verdicts))),
		'<style>text{font:12px sans-serif;fill:#222}.head{font-size:15px;font-weight:bold}.grid{stroke:#ddd}.axis{stroke:#222;fill:none}'
			'.window{stroke:#000;stroke-width:2;stroke-dasharray:8 4}.between{stroke:#888}.probe{fill:#0072b2}'
			'.lookup{fill:#fff;stroke:#a05a00;stroke-width:1.5}.violation{stroke:#c00;stroke-width:3;fill:none}</style>',
		'<rect width="760" height="430" fill="#fff"/>',
		format('<text class="head" x="90" y="28">Visibility lag of %s</text>', named),
		format('<text x="90" y="46">from the end of the attempt to the first lookup that showed its effect%s</text>',
			CASE WHEN logarithmic THEN ', logarithmic' END),
		axis, reconcile.plot_time_axis(low, high), '<path class="axis" d="M90 60V330H730"/>',
		'<text class="name" transform="translate(22 195) rotate(-90)" text-anchor="middle">lag</text>',
		windows, coalesce(marks, '<text x="410" y="195" text-anchor="middle">nothing measured yet</text>'),
		'<g class="legend"><circle class="probe" cx="96" cy="404" r="4"/><text x="106" y="408">probe</text>'
			'<path class="between" d="M170 411V397"/><text x="178" y="408">asked before, not seen</text>'
			'<path class="lookup" d="M352 399l5 9h-10z"/><text x="362" y="408">ordinary lookup</text>'
			'<path class="violation" d="M472 398l12 12m0 -12l-12 12"/><text x="490" y="408">seen too late</text>'
			'<path class="window" d="M590 404h40"/><text x="638" y="408">window</text></g>',
		'</svg>');
END $$;
COMMENT ON FUNCTION reconcile.window_plot(text) IS
	'One SVG document: when the effects of an operation were seen and how long they took, the windows of its lookups, and what came too late. The newest 2000 samples. Error 42704: no such operation.';
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

CREATE FUNCTION reconcile.pause(provider text, reason text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to pause provider "%"', $1 USING ERRCODE = '22023', HINT = 'It is shown to whoever wonders.';
	END IF;
	UPDATE reconcile.provider p SET paused_at = coalesce(p.paused_at, clock_timestamp()), paused_reason = coalesce(p.paused_reason, $2)
	 WHERE p.provider = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'provider "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.provider.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.pause(text, text) IS
	'Send nothing new to a provider. What is open stays open, lookups go on, submitting stays possible. Pausing twice keeps the first reason.';

CREATE FUNCTION reconcile.resume(provider text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	UPDATE reconcile.provider p SET paused_at = NULL, paused_reason = NULL WHERE p.provider = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'provider "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.provider.';
	END IF;
	PERFORM reconcile.wake();
END $$;
COMMENT ON FUNCTION reconcile.resume(text) IS 'Send to a provider again.';

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

CREATE FUNCTION reconcile.receipt(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
					'state', h.to_state, 'event', h.event, 'attempt', h.attempt_number,
					'recorded_at', h.recorded_at, 'actor', h.actor, 'evidence', h.evidence,
					'hash', encode(h.hash, 'hex')) ORDER BY h.version)
			  FROM reconcile.history h WHERE h.action_id = a.action_id))
	  FROM reconcile.action a WHERE a.action_id = $1 AND reconcile.may_see(a.submitter) $$;
COMMENT ON FUNCTION reconcile.receipt(uuid) IS
	'Everything that happened to an action, as one document: states, evidence, external id, hashes. NULL if there is no such action.';

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
	), made AS (
		SELECT x.action_id FROM reconcile.action x
		 WHERE $2 IS NULL AND x.provider = $1 AND x.artifact_id = $3 AND reconcile.may_speak_of($4, $5, x.submitter) LIMIT 2)
	SELECT coalesce((SELECT n.action_id FROM named n ORDER BY n.client_reference = $2 DESC, n.action_id LIMIT 1),
		(SELECT (array_agg(m.action_id))[1] FROM made m HAVING count(*) = 1)) $$;
COMMENT ON FUNCTION reconcile.action_spoken_of(text, text, text, name, boolean) IS
	'The action of that reference, with or without the installation''s prefix, or else the only one of that artifact id; NULL if there is none that the sender may speak of.';

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
		queued = false, held = false, held_because = NULL, evidence = proof,
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
			AND NOT EXISTS (SELECT FROM reconcile.action o WHERE o.provider = a.provider AND o.artifact_id = said.artifact_id) THEN
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
	IF NOT FOUND OR a.state = 'submitted' THEN
		RETURN NULL;
	END IF;
	outcome := reconcile.weigh(said, a);
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
		occurred := reconcile.event_time(reconcile.text_at($2, rule.occurred_path, 100), clock_timestamp() + source.tolerance);
		says := CASE WHEN num_nonnulls(reference, artifact) > 0 THEN rule.says ELSE 'ignored' END;
	END IF;
	evidence := jsonb_strip_nulls(jsonb_build_object('rule', rule.position, 'because', rule.because, 'scheme', source.scheme, 'sha256', encode(sha256($4), 'hex'),
		'names_nothing', CASE WHEN says <> rule.says THEN true END));
	-- Without a signature it is its sender who speaks, and whose ids are its own.
	SELECT t.inbox_id, t.action_id, t.result INTO inbox_id, action_id, result
	  FROM reconcile.take_in(source.provider, CASE WHEN verified THEN id ELSE 'from ' || session_user || ': ' || id END, says, reference, artifact,
		occurred, evidence, verified, substr($4, 1, 8192)) t;
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
	RETURN QUERY SELECT t.inbox_id, t.action_id, t.result
	  FROM unnest(CASE WHEN cardinality(items) = 0 THEN ARRAY[document] ELSE items END) WITH ORDINALITY AS i (item, n)
	 CROSS JOIN LATERAL reconcile.take_event(source, i.item, delivery || CASE WHEN cardinality(items) > 1 THEN format(' #%s', i.n) ELSE '' END, $3) t
	 ORDER BY i.n;
END $$;
COMMENT ON FUNCTION reconcile.receive_event(text, jsonb, bytea) IS
	'Take in what a provider has sent unasked: headers as {"name": "value"}, and the body byte for byte, for it is signed. The signature is checked; the event is stored, once for an id; it is applied at once if its action is free, else by the engine, or when the action appears. Never waits for an action. One row for each event: result as inbox.result, or stored; of an event that is there already, what became of it. Errors: 28000 not signed, wrongly signed, too old, or of another account or mode; 22023 no JSON, or too large; 42704 the provider has no source of events; 55000 its secret cannot be read.';

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
-- What people do to one action: settle, repeat, withdraw, hold back, let go.

-- What is written down reads the same for everybody, whatever the session's DateStyle is.
CREATE FUNCTION reconcile.instant_words(instant timestamptz) RETURNS text
	LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') $$;
COMMENT ON FUNCTION reconcile.instant_words(timestamptz) IS 'An instant as text, ISO 8601 in UTC, to the millisecond.';

-- How long the provider's "not found" proves nothing about an action.
CREATE FUNCTION reconcile.window_open_until(action_id uuid) RETURNS timestamptz
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT max(w.closes_at)
	  FROM reconcile.attempt t
	 CROSS JOIN LATERAL (SELECT coalesce(t.ended_at, t.dispatched_at) + (t.late_arrival_us + t.window_us) * interval '1 microsecond' AS closes_at) w
	 WHERE t.action_id = $1 AND t.state IN ('submitted', 'outcome_unknown') AND w.closes_at > statement_timestamp()
	   AND t.gate_us > (SELECT coalesce(max(c.elapsed_us), 0) FROM reconcile.clock c) $$;
COMMENT ON FUNCTION reconcile.window_open_until(uuid) IS
	'When the consistency window of the last attempt that may have happened closes, by the wall clock; NULL if it is closed: by the wall clock, or by the stored logical clock, which is never ahead and is the one that the engine goes by.';

-- The row, locked, for a step by a person.  Nobody waits long: the engine holds rows for moments, a person may for hours.
CREATE FUNCTION reconcile.lock_for_person(action_id uuid, verb text, reason text) RETURNS reconcile.action
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET lock_timeout = '5s' AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
BEGIN
	IF $3 IS NULL OR $3 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to % action "%"', $2, $1
			USING ERRCODE = '22023', HINT = 'It is kept in the history.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1 FOR NO KEY UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'action "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	RETURN a;
EXCEPTION WHEN lock_not_available THEN
	RAISE EXCEPTION 'cannot % action "%": somebody else is working on it', $2, $1
		USING ERRCODE = 'lock_not_available', HINT = 'Nothing was changed. Try again when they have finished.';
END $$;
COMMENT ON FUNCTION reconcile.lock_for_person(uuid, text, text) IS
	'An action, locked for a step by a person. Errors: 22023 no reason, 42704 no such action, 55P03 somebody else holds it.';

CREATE FUNCTION reconcile.refuse_step(a reconcile.action, verb text, why text, hint text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'cannot % action "%": it is % (version %)', $2, a.action_id, a.state, a.version
		USING ERRCODE = '55000', DETAIL = $3, HINT = coalesce($4, reconcile.advice(a.state) || '.');
END $$;
COMMENT ON FUNCTION reconcile.refuse_step(reconcile.action, text, text, text) IS
	'Error 55000 about a step that is not possible, with the state, the version and the reason: always.';

-- Why a step is not possible from where it stands.
CREATE FUNCTION reconcile.why_not(a reconcile.action) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.state = 'planned' AND a.attempts = 0 THEN 'It has not been sent yet.'
		WHEN a.state = 'planned' THEN 'A further attempt is queued already.'
		WHEN a.state = 'submitted' THEN 'It is being sent at this moment: what has left cannot be called back.'
		WHEN a.state = 'reconciling' THEN 'The provider is being asked about it at this moment.'
		WHEN a.state IN ('outcome_unknown', 'manual_review') AND reconcile.delivery(a.standing) <> 'confirmed'
			THEN 'An attempt may have happened: it cannot be called back or repeated, only settled.'
		WHEN a.state IN ('delivered', 'manual_review') THEN 'The provider has it.'
		ELSE coalesce((SELECT format('It became %s by "%s" at %s, by %s%s.', h.to_state, h.event, reconcile.instant_words(h.recorded_at), h.actor,
				coalesce(': ' || (h.evidence->>'reason'), ''))
			  FROM reconcile.history h WHERE h.action_id = a.action_id AND h.to_state = a.state AND h.from_state IS DISTINCT FROM h.to_state
			 ORDER BY h.version DESC LIMIT 1), 'It is settled.')
	END $$;
COMMENT ON FUNCTION reconcile.why_not(reconcile.action) IS 'What stands in the way of a step, in words; for what is settled, who settled it, and when.';

CREATE FUNCTION reconcile.why_not_hint(a reconcile.action) RETURNS text
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE
		WHEN a.state = 'planned' THEN 'To keep it back, call hold(); to withdraw it, cancel().'
		WHEN a.state IN ('submitted', 'reconciling') THEN 'Its answer decides; try again in a moment.'
		WHEN a.state IN ('outcome_unknown', 'manual_review', 'delivered') THEN 'Wait for the verdict, or settle it with resolve().'
		WHEN a.state = 'safe_to_retry' THEN 'To send it again, call replace(); to give it up for good, abandon().'
		ELSE 'Its history is in reconcile.action_history.' END $$;
COMMENT ON FUNCTION reconcile.why_not_hint(reconcile.action) IS 'What could be done instead.';

CREATE FUNCTION reconcile.notify_change(before reconcile.action, state reconcile.state, standing reconcile.standing) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT pg_notify('reconcile', json_build_object('action_id', before.action_id, 'state', $2, 'status', reconcile.resolved_status($3))::text)
	 WHERE reconcile.resolved_status($3) <> reconcile.resolved_status(before.standing) $$;
COMMENT ON FUNCTION reconcile.notify_change(reconcile.action, reconcile.state, reconcile.standing) IS 'NOTIFY reconcile, if the status of an action changes with this step.';

-- ---------------------------------------------------------------- one action
-- Each step has an inner form, which a batch uses too: its last argument is added to the evidence.

CREATE FUNCTION reconcile.cancel_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'cancel', $2);
	left_over reconcile.standing;
BEGIN
	IF a.state = 'cancelled' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'cancel', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	-- What follows from its attempts once nothing is queued.
	SELECT reconcile.fold(coalesce(array_agg(t.standing), '{}'), false) INTO left_over FROM reconcile.attempt t WHERE t.action_id = $1;
	IF left_over OPERATOR(reconcile.<>) 'failed/pending'::reconcile.standing THEN
		PERFORM reconcile.refuse_step(a, 'cancel', format('Its attempts stand at %s: one of them is not proven not to have happened.', left_over));
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'cancel', state = 'cancelled', standing = 'failed/pending', attempt_number = NULL,
		queued = false, waits = false, held = false, held_because = NULL, evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	PERFORM reconcile.notify_change(a, 'cancelled', 'failed/pending');
	RETURN 'cancelled';
END $$;
COMMENT ON FUNCTION reconcile.cancel_step(uuid, text, jsonb) IS 'The inner form of cancel().';

CREATE FUNCTION reconcile.cancel(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	-- An application may withdraw what it has asked for, and learns nothing about what others have.
	IF NOT pg_has_role(session_user, 'reconcile_operator', 'MEMBER')
		AND NOT EXISTS (SELECT FROM reconcile.action x WHERE x.action_id = $1 AND x.submitter = session_user) THEN
		RAISE EXCEPTION 'action "%" does not exist', $1
			USING ERRCODE = 'undefined_object', HINT = 'Or it is not yours.';
	END IF;
	RETURN reconcile.cancel_step($1, $2, '{}');
END $$;
COMMENT ON FUNCTION reconcile.cancel(uuid, text) IS
	'Withdraw an action that has not left: a submitter its own, an operator any. Twice is once. Errors: 55000 an attempt may have left, which cannot be called back, only settled; 42704 no such action, or not yours; 22023 no reason; 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.hold(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'hold', $2);
BEGIN
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'hold', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF NOT a.held THEN
		UPDATE reconcile.action x
		   SET version = x.version + 1, event = 'hold', attempt_number = NULL, held = true, held_because = $2,
			evidence = jsonb_build_object('reason', $2)
		 WHERE x.action_id = $1;
	END IF;
	RETURN a.state;
END $$;
COMMENT ON FUNCTION reconcile.hold(uuid, text) IS
	'Keep a planned action back until release(). Held twice, it keeps the first reason. Errors: 55000 it is not planned any more, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

-- Must somebody who read the request approve it?
CREATE FUNCTION reconcile.awaits_approval(a reconcile.action) RETURNS boolean
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.held AND a.approved_by IS NULL AND (a.held_because = 'it waits for approval'
		OR coalesce((SELECT o.requires_approval FROM reconcile.operation o WHERE o.operation = a.operation), false)) $$;
COMMENT ON FUNCTION reconcile.awaits_approval(reconcile.action) IS 'Is it held until its intent is approved? Approved once, it stays approved, whatever happens to its attempts.';

CREATE FUNCTION reconcile.check_approval(a reconcile.action, fingerprint reconcile.intent_fingerprint) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $2 IS NULL THEN
		RAISE EXCEPTION 'action "%" waits for approval: its release must name the fingerprint of what it approves', a.action_id
			USING ERRCODE = '22023', HINT = format('Read reconcile.preview(''%s''), and pass fingerprint from reconcile.review_queue.', a.action_id);
	END IF;
	IF a.submitter = session_user AND EXISTS (SELECT FROM reconcile.operation o WHERE o.operation = a.operation AND o.approver_is_another) THEN
		RAISE EXCEPTION 'action "%" cannot be approved by "%", who submitted it', a.action_id, session_user
			USING ERRCODE = 'insufficient_privilege', HINT = format('Operation "%s" wants another person.', a.operation);
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_approval(reconcile.action, reconcile.intent_fingerprint) IS
	'Errors: 22023 no fingerprint is named, 42501 the approver is the submitter and must not be.';

CREATE FUNCTION reconcile.release_step(action_id uuid, reason text, fingerprint reconcile.intent_fingerprint, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'release', $2);
	approves boolean := reconcile.awaits_approval(a);
	before reconcile.action;
	passes boolean;
BEGIN
	IF a.state <> 'planned' THEN
		PERFORM reconcile.refuse_step(a, 'release', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF $3 OPERATOR(reconcile.<>) a.fingerprint THEN
		RAISE EXCEPTION 'cannot release action "%": it is not what is approved', $1
			USING ERRCODE = '55000', DETAIL = format('Its intent has the fingerprint %s, the release names %s.', a.fingerprint, $3),
			HINT = format('Read reconcile.preview(''%s'') again.', $1);
	END IF;
	IF approves THEN
		PERFORM reconcile.check_approval(a, $3);
	END IF;
	SELECT b.* INTO before FROM reconcile.action b
	 WHERE a.waits AND b.submitter = a.submitter AND b.ordering_key = a.ordering_key AND b.action_id < a.action_id
	 ORDER BY b.action_id DESC LIMIT 1;
	passes := coalesce(NOT a.after_failure AND reconcile.resolved_status(before.standing) = 'FAILED', false);
	IF a.held OR passes THEN
		UPDATE reconcile.action x
		   SET version = x.version + 1, event = 'release', attempt_number = NULL, held = false, held_because = NULL,
			approved_by = CASE WHEN approves THEN session_user ELSE x.approved_by END, after_failure = x.after_failure OR passes,
			evidence = jsonb_strip_nulls(jsonb_build_object('reason', $2, 'was_held_because', a.held_because,
				'approves', CASE WHEN approves THEN a.fingerprint::text END,
				'after_failure_of', CASE WHEN passes THEN before.action_id END)) || $4
		 WHERE x.action_id = $1;
	END IF;
	RETURN a.state;
END $$;
COMMENT ON FUNCTION reconcile.release_step(uuid, text, reconcile.intent_fingerprint, jsonb) IS 'The inner form of release().';

CREATE FUNCTION reconcile.release(action_id uuid, reason text, fingerprint reconcile.intent_fingerprint DEFAULT NULL) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.release_step($1, $2, $3, '{}') $$;
COMMENT ON FUNCTION reconcile.release(uuid, text, reconcile.intent_fingerprint) IS
	'Let a held action go. If it waits for approval, this approves it, once, and must name the fingerprint of its intent. If the action before it with the same ordering_key has FAILED, it goes in spite of that. Twice is once. Errors: 55000 it is not planned, or has another fingerprint; 22023 no fingerprint or no reason; 42501 the operation wants another approver than the submitter; 42704 no such action; 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.replace_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'replace', $2);
BEGIN
	IF a.state = 'planned' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'safe_to_retry' THEN
		PERFORM reconcile.refuse_step(a, 'replace', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	-- What has gone out meanwhile with the same ordering_key is settled first.
	-- Where the provider can be asked, it is asked first: also if a person, and no lookup, has said that it did not happen.
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'replace', state = 'planned', standing = 'pending/pending', attempt_number = NULL,
		queued = true, waits = x.ordering_key IS NOT NULL, held = false, held_because = NULL, due_at = clock_timestamp(), gate_us = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, failures = 0,
		looked_at = CASE WHEN x.looked_at IS NULL AND EXISTS (SELECT FROM reconcile.lookup_rule l
			WHERE l.operation = x.operation AND l.kind <> 'replay_by_key' AND l.absence_proves) THEN '-infinity' ELSE x.looked_at END,
		evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	PERFORM reconcile.notify_change(a, 'planned', 'pending/pending');
	RETURN 'planned';
END $$;
COMMENT ON FUNCTION reconcile.replace_step(uuid, text, jsonb) IS 'The inner form of replace().';

CREATE FUNCTION reconcile.replace(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.replace_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.replace(uuid, text) IS
	'Queue a replacement of an action that did not happen, as a lookup, an answer or a person has settled. Where the provider can be asked, it is asked again first, unless that was done within the last minute. Twice is once. Errors: 55000 in any other state, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.abandon_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'abandon', $2);
BEGIN
	IF a.state = 'abandoned' THEN
		RETURN a.state;
	END IF;
	IF a.state <> 'safe_to_retry' THEN
		PERFORM reconcile.refuse_step(a, 'abandon', reconcile.why_not(a),
			CASE WHEN a.state = 'planned' THEN 'To withdraw it, call cancel().' ELSE reconcile.why_not_hint(a) END);
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'abandon', state = 'abandoned', attempt_number = NULL,
		evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	RETURN 'abandoned';
END $$;
COMMENT ON FUNCTION reconcile.abandon_step(uuid, text, jsonb) IS 'The inner form of abandon().';

CREATE FUNCTION reconcile.abandon(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.abandon_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.abandon(uuid, text) IS
	'Give an action up that did not happen: the same intent becomes a new action then. Twice is once. Errors: 55000 in any other state than safe_to_retry, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

CREATE FUNCTION reconcile.look_up_step(action_id uuid, reason text, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action := reconcile.lock_for_person($1, 'look up', $2);
	target reconcile.state := CASE reconcile.delivery(a.standing) WHEN 'confirmed' THEN 'delivered' ELSE 'outcome_unknown' END;
	-- What the provider has taken is asked for its verdict: no window stands before that.
	last_gate bigint := coalesce((SELECT max(t.gate_us) FROM reconcile.attempt t
		WHERE t.action_id = $1 AND t.event NOT IN ('answered_async', 'found', 'confirm', 'resolve')), 0);
BEGIN
	IF a.state IN ('outcome_unknown', 'reconciling', 'delivered') AND NOT a.queued THEN
		-- It is to be asked anyway. What is put off only because earlier answers proved nothing is asked at its gate.
		UPDATE reconcile.action x SET gate_us = g.gate_us, eligible_at = x.eligible_at - (x.gate_us - g.gate_us) * interval '1 microsecond'
		  FROM (SELECT greatest(last_gate, reconcile.next_gate($1, a.lookup_position)) AS gate_us) g
		 WHERE x.action_id = $1 AND a.state = 'outcome_unknown' AND a.negatives = 0 AND a.inconclusives > 0 AND x.gate_us > g.gate_us;
		RETURN a.state;
	END IF;
	IF a.state <> 'manual_review' THEN
		PERFORM reconcile.refuse_step(a, 'look up', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	IF NOT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation)
		AND NOT (target = 'delivered' AND EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)) THEN
		RAISE EXCEPTION 'action "%" cannot be looked up: operation "%" has no lookup rule', $1, a.operation
			USING ERRCODE = '55000', HINT = 'Define one in reconcile.lookup_rule, if the provider can be asked.';
	END IF;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'look_up_now', state = target, attempt_number = NULL, lookup_position = 0,
		gate_us = coalesce(x.gate_us, last_gate), eligible_at = greatest(reconcile.window_open_until($1), clock_timestamp()),
		inconclusives = 0, negatives = 0, evidence = jsonb_build_object('reason', $2) || $3
	 WHERE x.action_id = $1;
	RETURN target;
END $$;
COMMENT ON FUNCTION reconcile.look_up_step(uuid, text, jsonb) IS 'The inner form of look_up_now().';

CREATE FUNCTION reconcile.look_up_now(action_id uuid, reason text) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.look_up_step($1, $2, '{}') $$;
COMMENT ON FUNCTION reconcile.look_up_now(uuid, text) IS
	'Start another round of lookups for an action in manual_review; still never before its gate. What is to be asked anyway is asked at its gate, without the pause after answers that proved nothing. Errors: 55000 in any other state or without a lookup rule, 42704 no such action, 22023 no reason, 55P03 somebody else is working on it.';

-- ---------------------------------------------------------------- the verdict of a person

-- What the decision makes of the action.
CREATE FUNCTION reconcile.resolved_state(a reconcile.action, decision text) RETURNS reconcile.state
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE $2
		WHEN 'accepted' THEN 'succeeded'
		WHEN 'rejected' THEN 'rejected'
		WHEN 'executed' THEN CASE WHEN EXISTS (SELECT FROM reconcile.poll_rule b WHERE b.operation = a.operation)
			OR EXISTS (SELECT FROM reconcile.history h WHERE h.action_id = a.action_id AND h.event = 'answered_async') THEN 'delivered' ELSE 'succeeded' END
		-- A "no" to one attempt is what remains when the others did not happen.
		WHEN 'not_executed' THEN CASE WHEN EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id AND t.state = 'rejected')
			THEN 'rejected' ELSE 'safe_to_retry' END
	END::reconcile.state $$;
COMMENT ON FUNCTION reconcile.resolved_state(reconcile.action, text) IS
	'The state in which a decision leaves an action. executed means delivered where the verdict comes later: the operation is polled, or it was answered so.';

-- Does the decision only repeat what is settled already?
CREATE FUNCTION reconcile.decision_stands(a reconcile.action, decision text, artifact_id text) RETURNS boolean
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT ($3 IS NULL OR $3 = a.artifact_id) AND (a.event = 'resolve' AND a.evidence->>'decision' = $2
		OR CASE $2 WHEN 'executed' THEN a.state IN ('delivered', 'succeeded') WHEN 'accepted' THEN a.state = 'succeeded'
			WHEN 'rejected' THEN a.state = 'rejected' ELSE a.state IN ('safe_to_retry', 'abandoned') END) $$;
COMMENT ON FUNCTION reconcile.decision_stands(reconcile.action, text, text) IS 'Whether a decision says what is settled already: then nothing is to be done.';

CREATE FUNCTION reconcile.check_decision(action_id uuid, decision text, artifact_id text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $2 IS NULL OR $2 NOT IN ('executed', 'not_executed', 'accepted', 'rejected') THEN
		RAISE EXCEPTION 'a decision is executed, not_executed, accepted or rejected, not "%"', $2
			USING ERRCODE = '22023', HINT = 'executed: the provider has it; accepted, rejected: its verdict.';
	END IF;
	IF $3 !~ '[^[:space:]]' OR octet_length($3) > 500 OR $2 = 'not_executed' AND $3 IS NOT NULL THEN
		RAISE EXCEPTION 'the artifact id of action "%" cannot be "%"', $1, $3
			USING ERRCODE = '22023', HINT = 'It is the provider''s id of what was made; leave it out if it is not known, or if nothing was made.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_decision(uuid, text, text) IS 'Error 22023 if a decision or its artifact id cannot be meant.';

-- What speaks against the decision, for an action that can be settled.
CREATE FUNCTION reconcile.check_contradiction(a reconcile.action, decision text, artifact_id text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	proof reconcile.attempt;
	owner uuid;
BEGIN
	SELECT t.* INTO proof FROM reconcile.attempt t WHERE t.action_id = a.action_id AND reconcile.delivery(t.standing) = 'confirmed' AND t.state <> 'rejected'
	 ORDER BY t.number DESC LIMIT 1;
	IF reconcile.delivery(a.standing) = 'confirmed' AND $2 = 'not_executed' THEN
		PERFORM reconcile.refuse_step(a, 'resolve', format('The provider has it: attempt %s is %s by "%s".', proof.number, proof.state, proof.event),
			'What can be said is its verdict: accepted or rejected.');
	END IF;
	IF reconcile.delivery(a.standing) = 'confirmed' AND $2 = 'executed' AND reconcile.resolved_state(a, $2) = 'delivered' THEN
		PERFORM reconcile.refuse_step(a, 'resolve', 'That the provider has it is known already; what is missing is its verdict.',
			'Say accepted or rejected.');
	END IF;
	SELECT x.action_id INTO owner FROM reconcile.action x
	 WHERE x.provider = a.provider AND x.artifact_id = $3 AND x.action_id <> a.action_id LIMIT 1;
	IF owner IS NOT NULL THEN
		RAISE EXCEPTION 'artifact "%" is no evidence for action "%": it belongs to action "%"', $3, a.action_id, owner
			USING ERRCODE = 'unique_violation', HINT = 'One object confirms one action.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_contradiction(reconcile.action, text, text) IS
	'Errors: 55000 the decision contradicts what is proven, or adds nothing; 23505 the object belongs to another action.';

-- "It did not happen" is too early while it may still show; whoever says it all the same has it on record.
CREATE FUNCTION reconcile.risk_of_absence(a reconcile.action, force boolean) RETURNS text
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	open_until timestamptz := reconcile.window_open_until(a.action_id);
BEGIN
	IF open_until IS NULL THEN
		RETURN NULL;
	END IF;
	IF NOT coalesce($2, false) THEN
		PERFORM reconcile.refuse_step(a, 'resolve',
			format('The consistency window is open until %s, by the wall clock: until then "not there" proves nothing, and it may still happen.', reconcile.instant_words(open_until)),
			'Wait for it; or, if it is certain, force => true, which is recorded with the risk.');
	END IF;
	RETURN format('the consistency window is open until %s: it may still happen', reconcile.instant_words(open_until));
END $$;
COMMENT ON FUNCTION reconcile.risk_of_absence(reconcile.action, boolean) IS
	'The risk of saying now that an action did not happen, in words; NULL if its window is closed. Error 55000 if it is open and force is not set.';

-- Writes the decision into the attempts and the action; everything has been checked.
CREATE FUNCTION reconcile.settle_by_decision(a reconcile.action, decision text, artifact_id text, proof jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	op reconcile.operation;
	target reconcile.state := reconcile.resolved_state(a, $2);
	each_target reconcile.state := CASE $2 WHEN 'not_executed' THEN 'safe_to_retry' ELSE target END;
	becomes reconcile.standing;
	credited integer;
	id text := $3;
BEGIN
	SELECT * INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	-- What has no id of the provider's goes by the reference.
	IF id IS NULL AND target IN ('delivered', 'succeeded') AND a.artifact_id IS NULL AND op.artifact_path IS NULL AND op.artifact_header IS NULL THEN
		id := a.client_reference;
	END IF;
	SELECT max(t.number) INTO credited FROM reconcile.attempt t
	 WHERE t.action_id = a.action_id AND (t.state = 'outcome_unknown' OR t.state = 'delivered' AND target IN ('succeeded', 'rejected'));
	UPDATE reconcile.attempt t
	   SET version = t.version + 1, event = 'resolve', state = each_target, standing = s.standing, evidence = $4,
		artifact_id = CASE WHEN t.number = credited THEN coalesce(id, t.artifact_id) ELSE t.artifact_id END
	  FROM (SELECT (CASE each_target WHEN 'delivered' THEN 'confirmed/pending' WHEN 'succeeded' THEN 'confirmed/accepted'
			WHEN 'rejected' THEN 'confirmed/rejected' ELSE 'failed/pending' END)::reconcile.standing AS standing) s
	 WHERE t.action_id = a.action_id AND (t.state = 'outcome_unknown' OR t.state = 'delivered' AND target IN ('succeeded', 'rejected'));
	SELECT reconcile.fold(coalesce(array_agg(t.standing), '{}'), false) INTO becomes FROM reconcile.attempt t WHERE t.action_id = a.action_id;
	UPDATE reconcile.action x
	   SET version = x.version + 1, event = 'resolve', state = target, standing = becomes, attempt_number = credited, queued = false,
		artifact_id = coalesce(id, x.artifact_id), gate_us = CASE target WHEN 'delivered' THEN reconcile.verdict_gate(op) END, eligible_at = NULL,
		lookup_position = 0, negatives = 0, inconclusives = 0, evidence = $4
	 WHERE x.action_id = a.action_id;
	PERFORM reconcile.notify_change(a, target, becomes);
	RETURN target;
END $$;
COMMENT ON FUNCTION reconcile.settle_by_decision(reconcile.action, text, text, jsonb) IS
	'Settle an action, and every attempt of it that is not, by the decision of a person.';

CREATE FUNCTION reconcile.note_wrong_decision(action_id uuid) RETURNS void
	LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
	SELECT reconcile.open_incident('contradiction', $1, jsonb_build_object('decision', h.evidence->>'decision', 'decided_by', h.actor, 'decided_at', h.recorded_at,
		'reason', h.evidence->>'reason', 'forced', coalesce((h.evidence->>'forced')::boolean, false)))
	  FROM (SELECT x.* FROM reconcile.history x WHERE x.action_id = $1 AND x.event IN ('resolve', 'claim') ORDER BY x.version DESC LIMIT 1) h
	 WHERE h.event = 'resolve' AND h.evidence->>'decision' = 'not_executed' $$;
COMMENT ON FUNCTION reconcile.note_wrong_decision(uuid) IS 'It did happen: if a person had decided that it did not, that is an incident, with who and why.';

CREATE FUNCTION reconcile.resolve_step(action_id uuid, decision text, reason text, artifact_id text, expected_version integer, evidence jsonb,
		force boolean, more jsonb) RETURNS reconcile.state
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
	risk text;
BEGIN
	PERFORM reconcile.check_decision($1, $2, $4);
	-- The lock that the last check before a send takes, and every confirmation: what is under way there is not waited for.
	IF NOT reconcile.try_lock_action($1) THEN
		RAISE EXCEPTION 'cannot resolve action "%": it is being sent, confirmed or settled at this moment', $1
			USING ERRCODE = 'lock_not_available', HINT = 'Nothing was changed. Look again at where it stands, then decide.';
	END IF;
	a := reconcile.lock_for_person($1, 'resolve', $3);
	-- What the provider has said meanwhile comes first.
	IF a.state IN ('outcome_unknown', 'manual_review', 'delivered') AND EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = $1 AND i.applied_at IS NULL) THEN
		PERFORM reconcile.apply_inbox_row(i.inbox_id) FROM reconcile.inbox i WHERE i.action_id = $1 AND i.applied_at IS NULL ORDER BY i.inbox_id;
		SELECT x.* INTO a FROM reconcile.action x WHERE x.action_id = $1;
	END IF;
	IF reconcile.decision_stands(a, $2, $4) THEN
		RETURN a.state;
	END IF;
	IF $5 <> a.version THEN
		RAISE EXCEPTION 'action "%" is at version %, not %: it is % now', $1, a.version, $5, a.state
			USING ERRCODE = 'serialization_failure', DETAIL = format('Its last step was "%s" by %s at %s.', a.event, a.actor, reconcile.instant_words(a.recorded_at)),
			HINT = 'Look again at where it stands, then decide.';
	END IF;
	IF a.state NOT IN ('outcome_unknown', 'manual_review', 'delivered') THEN
		PERFORM reconcile.refuse_step(a, 'resolve', reconcile.why_not(a), reconcile.why_not_hint(a));
	END IF;
	PERFORM reconcile.check_contradiction(a, $2, $4);
	IF $2 = 'not_executed' THEN
		risk := reconcile.risk_of_absence(a, $7);
	END IF;
	RETURN reconcile.settle_by_decision(a, $2, $4, jsonb_strip_nulls(jsonb_build_object('decision', $2, 'reason', $3, 'artifact_id', $4,
		'forced', CASE WHEN risk IS NOT NULL THEN true END, 'risk', risk)) || CASE WHEN $6 IS NULL THEN '{}' ELSE jsonb_build_object('evidence', $6) END || $8);
END $$;
COMMENT ON FUNCTION reconcile.resolve_step(uuid, text, text, text, integer, jsonb, boolean, jsonb) IS 'The inner form of resolve().';

CREATE FUNCTION reconcile.resolve(action_id uuid, decision text, reason text, artifact_id text DEFAULT NULL, expected_version integer DEFAULT NULL,
		evidence jsonb DEFAULT NULL, force boolean DEFAULT false) RETURNS reconcile.state
	LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS
	$$ SELECT reconcile.resolve_step($1, $2, $3, $4, $5, $6, $7, '{}') $$;
COMMENT ON FUNCTION reconcile.resolve(uuid, text, text, text, integer, jsonb, boolean) IS
	'Settle an action whose outcome is not known (outcome_unknown, manual_review), or give the verdict on what is delivered, by the word of a person, who is recorded. executed: it happened; not_executed: it did not, so that it is safe_to_retry; accepted, rejected: the provider''s verdict. Before its consistency window has closed, by the wall clock, not_executed is refused unless force is set, which is recorded with the risk. expected_version: the version that was looked at. The same decision again changes nothing. Errors: 55000 it is not to be decided, is decided otherwise, or the decision contradicts what is proven; 40001 it is not at expected_version; 23505 the object belongs to another action; 55P03 it is being worked on at this moment; 42704 no such action; 22023 no reason, or no such decision.';
-- For those who look back: how things stood, how providers do, what a day brought; and erasing what must not be kept.

CREATE FUNCTION reconcile.action_as_of(at timestamptz, action_id uuid DEFAULT NULL)
	RETURNS TABLE (action_id uuid, operation text, provider text, client_reference text, submitter name, state reconcile.state,
		delivery reconcile.delivery, acceptance reconcile.acceptance, status reconcile.status, since timestamptz, version integer,
		last_event text, evidence jsonb, actor text)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id, a.operation, a.provider, a.client_reference, a.submitter, h.to_state, reconcile.delivery(h.standing),
		reconcile.acceptance(h.standing), reconcile.resolved_status(h.standing), h.recorded_at, h.version, h.event, h.evidence, h.actor
	  FROM (SELECT DISTINCT ON (x.action_id) x.* FROM reconcile.history x
			 WHERE x.recorded_at <= $1 AND ($2 IS NULL OR x.action_id = $2)
			 ORDER BY x.action_id, x.version DESC) h
	  JOIN reconcile.action a ON a.action_id = h.action_id
	 WHERE reconcile.may_see(a.submitter) $$;
COMMENT ON FUNCTION reconcile.action_as_of(timestamptz, uuid) IS
	'Where every action, or one of them, stood at that instant, by what had been recorded until then. Actions recorded later are not there.';

CREATE VIEW reconcile.provider_scorecard AS
	WITH attempted AS (
		SELECT a.operation, count(*) AS attempts,
			count(*) FILTER (WHERE first.event = 'not_sent') AS not_sent,
			count(*) FILTER (WHERE first.event = 'not_executed') AS not_executed,
			count(*) FILTER (WHERE first.event IN ('answer_lost', 'recover', 'answered_unreadable')) AS lost,
			percentile_cont(0.5) WITHIN GROUP (ORDER BY t.ended_at - t.dispatched_at) AS median_answer,
			percentile_cont(0.99) WITHIN GROUP (ORDER BY t.ended_at - t.dispatched_at) AS p99_answer
		  FROM reconcile.attempt t JOIN reconcile.action a USING (action_id)
		  LEFT JOIN LATERAL (SELECT h.event FROM reconcile.history h
			WHERE h.action_id = t.action_id AND h.attempt_number = t.number AND h.event NOT IN ('claim', 'resend') ORDER BY h.version LIMIT 1) first ON true
		 GROUP BY a.operation
	), doubted AS (
		SELECT a.operation, count(*) AS doubted,
			count(*) FILTER (WHERE s.event = 'found') AS settled_by_lookup,
			count(*) FILTER (WHERE s.event = 'absent') AS settled_by_absence,
			count(*) FILTER (WHERE s.event IN ('confirm', 'refuse')) AS settled_by_event,
			count(*) FILTER (WHERE s.event LIKE 'answered\_%') AS settled_by_key,
			count(*) FILTER (WHERE s.event = 'resolve') AS settled_by_person,
			count(*) FILTER (WHERE s.event IS NULL) AS open,
			percentile_cont(0.5) WITHIN GROUP (ORDER BY s.recorded_at - u.since) AS median_doubt,
			max(s.recorded_at - u.since) AS longest_doubt
		  FROM (SELECT h.action_id, min(h.recorded_at) AS since, min(h.version) AS version FROM reconcile.history h
				 WHERE h.to_state = 'outcome_unknown' GROUP BY h.action_id) u
		  JOIN reconcile.action a USING (action_id)
		  LEFT JOIN LATERAL (SELECT h.event, h.recorded_at FROM reconcile.history h WHERE h.action_id = u.action_id AND h.version > u.version
			AND h.to_state IN ('succeeded', 'rejected', 'delivered', 'safe_to_retry') ORDER BY h.version LIMIT 1) s ON true
		 GROUP BY a.operation
	), counted AS (
		SELECT a.operation, count(*) AS actions,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'CONFIRMED') AS confirmed,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'FAILED') AS failed,
			count(*) FILTER (WHERE reconcile.resolved_status(a.standing) = 'DENIED_UNRESOLVED') AS unresolved,
			count(*) FILTER (WHERE a.state = 'manual_review') AS in_review,
			max(a.recorded_at) FILTER (WHERE a.state = 'succeeded') AS last_success
		  FROM reconcile.action a GROUP BY a.operation
	), incidents AS (
		SELECT i.operation, count(*) FILTER (WHERE i.kind = 'duplicate') AS duplicates,
			count(*) FILTER (WHERE i.kind = 'window_violation') AS window_violations,
			count(*) FILTER (WHERE i.kind = 'contradiction') AS contradictions,
			count(*) FILTER (WHERE i.closed_at IS NULL) AS open_incidents
		  FROM reconcile.incident i GROUP BY i.operation
	)
	SELECT o.provider, o.operation, coalesce(c.actions, 0) AS actions, coalesce(c.confirmed, 0) AS confirmed, coalesce(c.failed, 0) AS failed,
		coalesce(c.unresolved, 0) AS unresolved, coalesce(c.in_review, 0) AS in_review, c.last_success,
		coalesce(t.attempts, 0) AS attempts, coalesce(t.not_sent, 0) AS not_sent, coalesce(t.not_executed, 0) AS not_executed,
		coalesce(t.lost, 0) AS answers_lost, round(100.0 * t.lost / nullif(t.attempts, 0), 2) AS answers_lost_percent,
		t.median_answer, t.p99_answer,
		coalesce(d.settled_by_lookup, 0) AS settled_by_lookup, coalesce(d.settled_by_absence, 0) AS settled_by_absence,
		coalesce(d.settled_by_event, 0) AS settled_by_event, coalesce(d.settled_by_key, 0) AS settled_by_key,
		coalesce(d.settled_by_person, 0) AS settled_by_person, coalesce(d.open, 0) AS still_open, d.median_doubt, d.longest_doubt,
		coalesce(i.duplicates, 0) AS duplicates, coalesce(i.window_violations, 0) AS window_violations,
		coalesce(i.contradictions, 0) AS contradictions, coalesce(i.open_incidents, 0) AS open_incidents
	  FROM reconcile.operation o
	  LEFT JOIN counted c USING (operation) LEFT JOIN attempted t USING (operation)
	  LEFT JOIN doubted d USING (operation) LEFT JOIN incidents i USING (operation);
COMMENT ON VIEW reconcile.provider_scorecard IS
	'How each operation has done: how many answers were lost, how the doubt was settled and how long it took, and what must not have been. Reads everything that is kept.';
COMMENT ON COLUMN reconcile.provider_scorecard.answers_lost IS 'Attempts whose answer did not come, or could not be read.';
COMMENT ON COLUMN reconcile.provider_scorecard.median_doubt IS 'From the first time that an outcome was unknown until it was settled.';

CREATE FUNCTION reconcile.close_incident(incident_id bigint, reason text) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	i reconcile.incident;
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to close incident "%"', $1 USING ERRCODE = '22023', HINT = 'Say what it was, and what was done about it.';
	END IF;
	SELECT * INTO i FROM reconcile.incident x WHERE x.incident_id = $1 FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'incident "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.incident.';
	END IF;
	IF i.closed_at IS NOT NULL THEN
		RAISE EXCEPTION 'incident "%" was closed by "%" at %', $1, i.closed_by, i.closed_at
			USING ERRCODE = '55000', DETAIL = i.closing_reason, HINT = 'It is closed once.';
	END IF;
	UPDATE reconcile.incident x SET closed_at = clock_timestamp(), closed_by = session_user, closing_reason = $2 WHERE x.incident_id = $1;
END $$;
COMMENT ON FUNCTION reconcile.close_incident(bigint, text) IS 'Somebody has looked into an incident, and says what it was. Errors: 42704 no such incident, 55000 it is closed already, 22023 no reason.';

CREATE FUNCTION reconcile.redact(action_id uuid, reason text) RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	a reconcile.action;
BEGIN
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to redact action "%"', $1 USING ERRCODE = '22023', HINT = 'It is kept in the history.';
	END IF;
	SELECT * INTO a FROM reconcile.action x WHERE x.action_id = $1 FOR UPDATE;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'action "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'See reconcile.action_status.';
	END IF;
	IF a.redacted_at IS NOT NULL THEN
		RETURN;
	END IF;
	IF a.state NOT IN ('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned') OR a.gate_us IS NOT NULL THEN
		RAISE EXCEPTION 'action "%" cannot be redacted: it is % (version %)', $1, a.state, a.version
			USING ERRCODE = '55000', DETAIL = 'Its payload is still needed to ask about it or to send it again.',
			HINT = CASE a.state WHEN 'safe_to_retry' THEN 'Abandon it first, if it is not wanted any more.' ELSE 'Settle it first.' END;
	END IF;
	UPDATE reconcile.action x SET version = x.version + 1, event = 'redact', attempt_number = NULL, payload = '{}', redacted_at = clock_timestamp(),
		evidence = jsonb_build_object('reason', $2) WHERE x.action_id = $1;
	UPDATE reconcile.attempt t SET response_body = NULL WHERE t.action_id = $1;
	UPDATE reconcile.inbox i SET evidence = '{}', body = NULL WHERE i.action_id = $1;
END $$;
COMMENT ON FUNCTION reconcile.redact(uuid, text) IS
	'Remove the payload of a settled action, the bodies of its answers and of what was said about it. Fingerprint, times, verdicts and a chain that can be verified stay. Doing it twice is doing it once. Errors: 55000 it is not settled, 42704 no such action, 22023 no reason.';

CREATE FUNCTION reconcile.day_report(day date, zone text DEFAULT 'UTC')
	RETURNS TABLE (provider text, operation text, sent bigint, answered_yes bigint, answered_no bigint, answers_lost bigint,
		seen_there bigint, proven_absent bigint, only_here bigint, only_there bigint, open_now bigint, incidents bigint, verdict text)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	WITH bounds AS (
		SELECT $1::timestamp AT TIME ZONE $2 AS low, ($1 + 1)::timestamp AT TIME ZONE $2 AS high
	), tried AS (
		SELECT a.provider, a.operation, a.action_id, a.state, t.number, t.state AS attempt_state,
			(SELECT h.event FROM reconcile.history h WHERE h.action_id = t.action_id AND h.attempt_number = t.number
				AND h.event NOT IN ('claim', 'resend') ORDER BY h.version LIMIT 1) AS ended_by,
			-- Its effect was seen at the provider by something other than its own answer.
			EXISTS (SELECT FROM reconcile.lookup k WHERE k.action_id = t.action_id AND k.result = 'found')
				OR EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = t.action_id AND i.says IN ('executed', 'accepted')) AS seen,
			EXISTS (SELECT FROM reconcile.incident c WHERE c.action_id = t.action_id AND c.kind = 'contradiction') AS contradicted
		  FROM bounds b JOIN reconcile.attempt t ON t.dispatched_at >= b.low AND t.dispatched_at < b.high
		  JOIN reconcile.action a ON a.action_id = t.action_id
		 WHERE reconcile.may_see(a.submitter)
	), counted AS (
		SELECT t.operation, count(*) FILTER (WHERE t.ended_by IS DISTINCT FROM 'not_sent') AS sent,
			count(*) FILTER (WHERE t.ended_by IN ('answered_accepted', 'answered_async', 'answered_unreadable')) AS answered_yes,
			count(*) FILTER (WHERE t.ended_by IN ('answered_rejected', 'not_executed')) AS answered_no,
			count(*) FILTER (WHERE t.ended_by IN ('answer_lost', 'recover', 'key_mismatch')) AS answers_lost,
			count(*) FILTER (WHERE t.seen AND t.attempt_state = 'succeeded') AS seen_there,
			count(*) FILTER (WHERE t.attempt_state = 'safe_to_retry' AND t.ended_by IN ('answer_lost', 'recover')) AS proven_absent,
			count(*) FILTER (WHERE t.contradicted) AS only_here,
			count(DISTINCT t.action_id) FILTER (WHERE t.state IN ('submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')) AS open_now
		  FROM tried t GROUP BY t.operation
	), strange AS (
		SELECT i.provider, count(*) AS only_there FROM bounds b JOIN reconcile.inbox i ON i.received_at >= b.low AND i.received_at < b.high
		 WHERE i.action_id IS NULL AND i.says <> 'ignored' AND pg_has_role(session_user, 'reconcile_reader', 'MEMBER') GROUP BY i.provider
	), wrong AS (
		SELECT i.operation, count(*) AS incidents FROM bounds b JOIN reconcile.incident i ON i.opened_at >= b.low AND i.opened_at < b.high
		 WHERE pg_has_role(session_user, 'reconcile_reader', 'MEMBER') GROUP BY i.operation
	)
	SELECT o.provider, o.operation, coalesce(c.sent, 0), coalesce(c.answered_yes, 0), coalesce(c.answered_no, 0), coalesce(c.answers_lost, 0),
		coalesce(c.seen_there, 0), coalesce(c.proven_absent, 0), coalesce(c.only_here, 0), coalesce(s.only_there, 0), coalesce(c.open_now, 0), coalesce(w.incidents, 0),
		CASE WHEN coalesce(w.incidents, 0) + coalesce(c.only_here, 0) > 0 THEN 'look at the incidents'
			WHEN coalesce(c.open_now, 0) > 0 THEN 'not settled yet'
			WHEN coalesce(s.only_there, 0) > 0 THEN 'the provider speaks of something that is not known here'
			WHEN coalesce(c.sent, 0) = 0 THEN 'clean: nothing was sent' ELSE 'clean' END
	  FROM reconcile.operation o
	  LEFT JOIN counted c ON c.operation = o.operation
	  LEFT JOIN wrong w ON w.operation = o.operation
	  LEFT JOIN strange s ON s.provider = o.provider
	 ORDER BY o.provider, o.operation $$;
COMMENT ON FUNCTION reconcile.day_report(date, text) IS
	'What was sent on a day of that time zone, against what was seen at the provider, for every operation, also where nothing happened: answers, what lookups and events showed, what was proven absent; only_here is what we count as done and the provider does not show, only_there what the provider speaks of and nobody here knows (per provider). Rests on what was asked and said; it asks nothing itself.';
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
		detail := 'busy: somebody else is working on it';
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
-- What waits for a person, with everything that is needed to decide.

-- A row that cannot be shown must not hide the others.
CREATE FUNCTION reconcile.try_preview(action_id uuid, OUT method text, OUT url text, OUT headers jsonb, OUT body text, OUT note text)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	SELECT p.method, p.url, p.headers, p.body, p.note INTO method, url, headers, body, note
	  FROM reconcile.preview($1) p WHERE p.part = 'request';
EXCEPTION WHEN data_exception OR undefined_object THEN
	note := 'the request cannot be made from the present definition: ' || SQLERRM;
END $$;
COMMENT ON FUNCTION reconcile.try_preview(uuid) IS 'The request of an action as preview() shows it, or a note why it cannot be shown.';

CREATE FUNCTION reconcile.attempts_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('number', t.number, 'state', t.state, 'sent_at', t.dispatched_at, 'ended_at', t.ended_at,
			'to', t.base_url, 'http_status', t.http_status, 'artifact_id', t.artifact_id, 'idempotency_key', t.idempotency_key,
			'request_hash', encode(t.request_hash, 'hex'), 'event', t.event, 'says', reconcile.evidence_words(t.evidence))) ORDER BY t.number)
	  FROM reconcile.attempt t WHERE t.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.attempts_summary(uuid) IS 'What is known about each attempt of an action; NULL if there is none.';

CREATE FUNCTION reconcile.lookups_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN count(*) > 0 THEN jsonb_strip_nulls(jsonb_build_object('asked', count(*), 'first_at', min(l.asked_at), 'last_at', max(l.asked_at),
			'found', nullif(count(*) FILTER (WHERE l.result = 'found'), 0), 'absent', nullif(count(*) FILTER (WHERE l.result = 'absent'), 0),
			'inconclusive', nullif(count(*) FILTER (WHERE l.result IN ('inconclusive', 'ambiguous', 'lost')), 0),
			'last_kind', (array_agg(l.kind ORDER BY l.asked_at DESC))[1], 'last_result', (array_agg(l.result ORDER BY l.asked_at DESC))[1],
			'last_reason', (array_agg(l.reason ORDER BY l.asked_at DESC))[1], 'last_http_status', (array_agg(l.http_status ORDER BY l.asked_at DESC))[1])) END
	  FROM reconcile.lookup l WHERE l.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.lookups_summary(uuid) IS 'How often the provider was asked about an action, and what it said; NULL if never.';

-- What follows if "it did not happen" is said of something that did.
CREATE FUNCTION reconcile.risk_of_repeating(a reconcile.action) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
	c record;
	dead_at timestamptz;
BEGIN
	SELECT o.* INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	c := reconcile.capabilities(op);
	dead_at := a.key_first_at + c.key_lifetime - c.key_margin - c.needed;
	RETURN concat_ws(' ', 'If it is sent again and the first one did happen:',
		CASE WHEN a.idempotency_key IS NOT NULL AND dead_at > statement_timestamp()
			THEN format('until %s the provider takes it for the same one, by its idempotency key; after that', reconcile.instant_words(dead_at)) END,
		CASE WHEN op.effect <> 'create' THEN format('the %s is done a second time.', op.effect)
			WHEN c.has_query THEN 'the provider is asked first, so that there is a second effect only if it does not show the first.'
			ELSE 'there is a second effect, and nothing prevents it.' END);
END $$;
COMMENT ON FUNCTION reconcile.risk_of_repeating(reconcile.action) IS 'What sending again would risk, by the capabilities of the operation.';

CREATE VIEW reconcile.review_queue WITH (security_barrier) AS
	SELECT a.action_id, a.version,
		CASE WHEN a.state = 'manual_review' THEN 'resolve' WHEN n.approval THEN 'approve' ELSE 'release' END AS needs,
		a.operation, a.provider, a.client_reference, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery, a.priority, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.held THEN a.held_because ELSE coalesce(r.meaning, a.event) || coalesce(': ' || reconcile.evidence_words(a.evidence), '') END AS why,
		p.method, p.url, p.headers, p.body, p.note, a.fingerprint, a.artifact_id,
		reconcile.attempts_summary(a.action_id) AS attempts, reconcile.lookups_summary(a.action_id) AS lookups,
		w.open_until AS window_open_until, g.tier, g.query_surface,
		CASE WHEN a.state <> 'manual_review' THEN NULL
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN '{accepted,rejected}'::text[]
			ELSE '{executed,not_executed,accepted,rejected}' END AS decisions,
		CASE WHEN a.state = 'manual_review' THEN
			'If you say that it happened and it did not: it is CONFIRMED for whoever relies on it, nobody sends it again, and the effect is missing.' END AS if_executed_but_not,
		CASE WHEN a.state = 'manual_review' THEN reconcile.risk_of_repeating(a) END AS if_repeated,
		CASE WHEN n.approval THEN format('read the request; then release(%L, reason, %L), or cancel it', a.action_id, a.fingerprint)
			WHEN a.held THEN format('release(%L, reason), or cancel it', a.action_id)
			WHEN w.open_until IS NOT NULL THEN format('only "it happened" can be seen yet; "it did not" cannot before %s', reconcile.instant_words(w.open_until))
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN format('ask the provider for its verdict on %s; then resolve(%L, ''accepted'' or ''rejected'', reason, expected_version => %s)',
				coalesce(a.artifact_id, a.client_reference), a.action_id, a.version)
			WHEN a.event = 'inconclusive' THEN format('find out why its lookups prove nothing, then look_up_now(%L, reason); or look for %s yourself, then resolve() with expected_version => %s',
				a.action_id, a.client_reference, a.version)
			ELSE format('look for %s at the provider; then resolve(%L, ''executed'' or ''not_executed'', reason, expected_version => %s)', a.client_reference, a.action_id, a.version)
		END AS suggested
	FROM reconcile.action a
	JOIN reconcile.provider_grade g ON g.operation = a.operation
	LEFT JOIN (SELECT DISTINCT ON (t.event, t.to_state) t.event, t.to_state, t.meaning FROM reconcile.transition_rule t
		WHERE t.subject = 'action' ORDER BY t.event, t.to_state, t.from_state) r ON r.event = a.event AND r.to_state = a.state
	CROSS JOIN LATERAL (SELECT reconcile.awaits_approval(a) AS approval) n
	CROSS JOIN LATERAL (SELECT CASE WHEN a.state = 'manual_review' THEN reconcile.window_open_until(a.action_id) END AS open_until) w
	CROSS JOIN LATERAL reconcile.try_preview(a.action_id) p
	WHERE (a.state = 'manual_review' OR a.state = 'planned' AND a.held) AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.review_queue IS
	'Everything that waits for a person, with all that is needed to decide: what was sent or is to be, what is known, what each choice risks, and what to do next. Secrets are masked as in preview().';
COMMENT ON COLUMN reconcile.review_queue.version IS 'To be passed to resolve() as expected_version.';
COMMENT ON COLUMN reconcile.review_queue.needs IS 'resolve: nobody but a person can tell what happened; approve: somebody has to approve it before it is sent; release: somebody holds it.';
COMMENT ON COLUMN reconcile.review_queue.why IS 'Why it waits: the last evidence, or the reason of whoever holds it.';
COMMENT ON COLUMN reconcile.review_queue.body IS 'As it is made from the present definition; request_hash in attempts is of what was sent.';
COMMENT ON COLUMN reconcile.review_queue.attempts IS 'Each attempt: when, to which address, with which key, what came back, the hash of the request.';
COMMENT ON COLUMN reconcile.review_queue.lookups IS 'How often the provider was asked, and what it said; NULL: never.';
COMMENT ON COLUMN reconcile.review_queue.window_open_until IS 'Until then "not there" proves nothing; NULL: its window is closed.';
COMMENT ON COLUMN reconcile.review_queue.decisions IS 'What resolve() takes now.';
COMMENT ON COLUMN reconcile.review_queue.if_executed_but_not IS 'What "it happened" risks.';
COMMENT ON COLUMN reconcile.review_queue.if_repeated IS 'What "it did not happen" risks, once it is sent again.';
-- Who may do what. Nothing to PUBLIC; four roles, granted like pg_monitor.

DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['reconcile_reader', 'reconcile_submitter', 'reconcile_operator', 'reconcile_admin'] LOOP
		IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN', role);
		END IF;
	END LOOP;
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA reconcile FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA reconcile FROM PUBLIC;

GRANT USAGE ON SCHEMA reconcile TO reconcile_reader, reconcile_submitter, reconcile_operator, reconcile_admin;

-- The types and the pure functions about them are for everybody who can see the schema.
DO $$
DECLARE
	f pg_catalog.regprocedure;
BEGIN
	FOR f IN SELECT p.oid FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'reconcile'::pg_catalog.regnamespace AND p.provolatile = 'i' AND p.prokind = 'f'
			AND p.proname NOT LIKE 'try\_%' LOOP
		EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO reconcile_reader, reconcile_submitter, reconcile_operator, reconcile_admin', f);
	END LOOP;
END $$;

GRANT reconcile_reader TO reconcile_operator;
GRANT reconcile_operator TO reconcile_admin;

-- The views and functions of this group show a submitter its own actions only.
GRANT SELECT ON reconcile.transition_rule, reconcile.action_status, reconcile.action_history, reconcile.unresolved
	TO reconcile_reader, reconcile_submitter;
GRANT EXECUTE ON FUNCTION reconcile.transition_rules(), reconcile.may_see(name), reconcile.receipt(uuid),
	reconcile.wait(uuid, interval), reconcile.wait_until_resolved(uuid, interval),
	reconcile.preview(uuid), reconcile.preview(text, jsonb, text) TO reconcile_reader, reconcile_submitter;

GRANT SELECT ON reconcile.health, reconcile.provider, reconcile.operation, reconcile.response_rule, reconcile.lookup_rule, reconcile.poll_rule, reconcile.action,
	reconcile.attempt, reconcile.lookup, reconcile.history, reconcile.joined_submission,
	reconcile.inbox, reconcile.unmatched_event, reconcile.event_source, reconcile.event_rule, reconcile.incident, reconcile.window_sample, reconcile.profile_catalog, reconcile.profile_fact, reconcile.provider_override,
	reconcile.provider_grade, reconcile.review_queue, reconcile.bulk_batch, reconcile.bulk_item, reconcile.clock TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.capabilities(reconcile.operation), reconcile.missing_for(reconcile.tier, reconcile.operation),
	reconcile.query_surface(reconcile.operation), reconcile.on_lost_answer(reconcile.operation) TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.engine(), reconcile.verify_history(uuid), reconcile.fold_violation(),
	reconcile.history_hash(uuid, integer, timestamptz, integer, text, reconcile.state, reconcile.state, reconcile.standing, jsonb, text, bytea)
	TO reconcile_reader;

GRANT INSERT (action_id, operation, payload, intent_key, client_reference, deliberate_repeat, not_before, not_after,
	priority, ordering_key, after_failure, depends_on)
	ON reconcile.action TO reconcile_submitter;
-- For INSERT ... RETURNING action_id. Row security hides the rows of others; the extension's own functions are above it.
GRANT SELECT (action_id) ON reconcile.action TO reconcile_submitter;
ALTER TABLE reconcile.action ENABLE ROW LEVEL SECURITY;
CREATE POLICY action_visible ON reconcile.action FOR SELECT USING (reconcile.may_see(submitter));
CREATE POLICY action_insert ON reconcile.action FOR INSERT WITH CHECK (submitter = session_user);
GRANT EXECUTE ON FUNCTION reconcile.new_action_id(),
	reconcile.submit(text, jsonb, text, text, timestamptz, timestamptz, integer, text, uuid[], text, boolean, boolean) TO reconcile_submitter;

-- A submitter may withdraw its own actions; what else is done to an action by hand is the operators'.
GRANT EXECUTE ON FUNCTION reconcile.cancel(uuid, text) TO reconcile_submitter, reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.hold(uuid, text), reconcile.release(uuid, text, reconcile.intent_fingerprint), reconcile.replace(uuid, text),
	reconcile.abandon(uuid, text), reconcile.look_up_now(uuid, text), reconcile.resolve(uuid, text, text, text, integer, jsonb, boolean),
	reconcile.bulk_preview(text, uuid[], text, text, reconcile.state, boolean, name, timestamptz, text, integer), reconcile.bulk_apply(bigint, text),
	reconcile.pause(text, text), reconcile.resume(text), reconcile.wake() TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.instant_words(timestamptz), reconcile.window_open_until(uuid), reconcile.awaits_approval(reconcile.action), reconcile.try_preview(uuid),
	reconcile.attempts_summary(uuid), reconcile.lookups_summary(uuid), reconcile.risk_of_repeating(reconcile.action) TO reconcile_reader;
GRANT UPDATE (paused_at, paused_reason) ON reconcile.provider TO reconcile_operator;

GRANT INSERT, UPDATE, DELETE ON reconcile.provider, reconcile.operation, reconcile.response_rule, reconcile.lookup_rule, reconcile.poll_rule TO reconcile_admin;
GRANT EXECUTE ON PROCEDURE reconcile.run(interval, boolean, integer, integer, integer, integer) TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.arm(text), reconcile.create_history_partitions(integer) TO reconcile_admin;
GRANT INSERT, UPDATE, DELETE ON reconcile.profile_fact, reconcile.provider_override, reconcile.event_source, reconcile.event_rule TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.adopt_profile(text, jsonb, text), reconcile.define_provider(jsonb, jsonb, text),
	reconcile.check_profile(jsonb), reconcile.check_profile_row(jsonb, text, text, text[], text[]), reconcile.check_profile_rows(jsonb, text, text, text[]),
	reconcile.check_profile_keys(jsonb, text, text[], text[]), reconcile.check_profile_value(jsonb, text, text, text, text), reconcile.profile_columns(text),
	reconcile.profile_refused(text, text), reconcile.check_profile_version(jsonb, text), reconcile.arm_if_first(), reconcile.whole_row(text, jsonb),
	reconcile.apply_row(text, jsonb, jsonb, boolean), reconcile.keep_widened(jsonb, jsonb, text), reconcile.drop_rules(text, jsonb),
	reconcile.apply_rules(text, jsonb), reconcile.apply_facts(text, jsonb), reconcile.apply_events(text, jsonb, jsonb),
	reconcile.check_definition(reconcile.operation), reconcile.check_key(reconcile.operation), reconcile.check_rules(reconcile.operation),
	reconcile.refuse_definition(text, text, text) TO reconcile_admin;

GRANT EXECUTE ON FUNCTION reconcile.confirm(text, text, jsonb, text, text, timestamptz), reconcile.verdict(text, text, jsonb, text, text, timestamptz) TO reconcile_submitter, reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.receive_event(text, jsonb, bytea), reconcile.receive_event(text, jsonb, text) TO reconcile_submitter, reconcile_operator;

GRANT SELECT ON reconcile.provider_scorecard TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.action_as_of(timestamptz, uuid), reconcile.day_report(date, text) TO reconcile_reader, reconcile_submitter;
GRANT EXECUTE ON FUNCTION reconcile.close_incident(bigint, text) TO reconcile_operator;
GRANT EXECUTE ON FUNCTION reconcile.redact(uuid, text) TO reconcile_admin;

-- Measuring and rehearsing: an admin's; what they found is for readers.
GRANT SELECT ON reconcile.window_report, reconcile.window_violation, reconcile.self_test_result TO reconcile_reader;
GRANT EXECUTE ON FUNCTION reconcile.window_plot(text), reconcile.plot_time_axis(timestamptz, timestamptz), reconcile.window_of(text),
	reconcile.drill_state(uuid[]), reconcile.self_test_plan(text), reconcile.self_test_findings(text, uuid, uuid, uuid) TO reconcile_reader;
GRANT INSERT, DELETE ON reconcile.self_test_result TO reconcile_admin;
GRANT EXECUTE ON PROCEDURE reconcile.require_commit(text),
	reconcile.measure_window(text, integer, integer, jsonb, boolean, numeric, interval, integer, interval, interval, boolean),
	reconcile.self_test(text, jsonb, boolean, interval, uuid, integer) TO reconcile_admin;
GRANT EXECUTE ON FUNCTION reconcile.await_engine(interval), reconcile.is_over(timestamptz), reconcile.submit_drill(text, jsonb, text), reconcile.keep_concurrency(uuid[], integer),
	reconcile.drill_payload(text, jsonb), reconcile.withdraw_drills(uuid[], text), reconcile.measure_begin(text, integer, integer, jsonb, numeric, interval),
	reconcile.measure_step(text, jsonb, integer, integer, boolean, uuid[], text), reconcile.measure_end(text, uuid[], integer, numeric, boolean),
	reconcile.self_test_begin(text, jsonb, interval), reconcile.self_test_step(text, jsonb, boolean, uuid, uuid, uuid),
	reconcile.self_test_end(uuid, text, boolean, text, uuid, uuid, uuid) TO reconcile_admin;
-- What a dump carries: everything but the arming, so that a restored copy sends nothing, and the catalogue, which the extension brings.

SELECT pg_catalog.pg_extension_config_dump('reconcile.installation', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.provider', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.operation', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.response_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.lookup_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.poll_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.profile_fact', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.provider_override', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.event_source', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.event_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.action', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.attempt', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.lookup', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.history', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.history_default', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.joined_submission', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.inbox', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.inbox_inbox_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_batch', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_batch_batch_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_item', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.incident', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.incident_incident_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.window_sample', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.window_sample_sample_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.clock', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.self_test_result', '');

-- The catalogue, from profiles/.
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "adyen",
  "profile_version": 1,
  "title": "Adyen Checkout API v72: payments. Live addresses carry a prefix of your own; the credential file holds the API key itself. The base_url is the test platform.",
  "documentation": "https://docs.adyen.com/api-explorer/Checkout/72/post/payments",
  "provider": {"base_url": "https://checkout-test.adyen.com/v72", "credential": "adyen"},
  "operations": {
    "adyen.payment.create": {
      "method": "POST",
      "path": "/payments",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "X-API-Key": "{credential}",
        "Idempotency-Key": "{idempotency_key}"
      },
      "reference_body_path": ["reference"],
      "reference_max_length": 80,
      "key_max_length": 64,
      "key_lifetime": "7 days",
      "key_lifetime_source": "documented",
      "key_margin": "1 hour",
      "key_replay": "stored_reply",
      "artifact_path": "$.pspReference",
      "claims": "KEYED",
      "example": {
        "merchantAccount": "YourMerchantAccount",
        "amount": {"currency": "EUR", "value": 1099},
        "paymentMethod": {"type": "scheme", "storedPaymentMethodId": "8416038790273850"},
        "shopperReference": "shopper-1",
        "shopperInteraction": "ContAuth",
        "recurringProcessingModel": "CardOnFile",
        "returnUrl": "https://shop.example/return"
      },
      "answers": [
        {
          "statuses": [409, 422],
          "header_name": "transient-error",
          "header_value": "true",
          "body_path": "$ ? (@.errorCode == \"704\")",
          "class": "in_progress",
          "because": "704 and transient-error: true: a request with this key is being processed"
        },
        {
          "statuses": [409, 422],
          "body_path": "$ ? (@.errorCode == \"704\")",
          "class": "key_mismatch",
          "because": "704 without transient-error: true is not to be sent again; a person decides"
        },
        {
          "statuses": [503],
          "body_path": "$ ? (@.errorCode == \"703\")",
          "class": "unknown",
          "because": "703: the key store is down, the key cannot be checked; asked again with the same key"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "body_path": "$ ? (@.resultCode == \"Authorised\")",
          "class": "accepted",
          "stored_reply": true,
          "because": "the first reply again: authorised"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "body_path": "$ ? (@.resultCode == \"Refused\" || @.resultCode == \"Error\" || @.resultCode == \"Cancelled\")",
          "class": "rejected",
          "stored_reply": true,
          "because": "the first reply again: refused"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "class": "accepted_async",
          "stored_reply": true,
          "because": "the first reply again: no final result yet"
        },
        {
          "statuses": [200],
          "body_path": "$ ? (@.resultCode == \"Authorised\")",
          "class": "accepted",
          "because": "authorised"
        },
        {
          "statuses": [200],
          "body_path": "$ ? (@.resultCode == \"Refused\" || @.resultCode == \"Error\" || @.resultCode == \"Cancelled\")",
          "class": "rejected",
          "because": "refused, told with status 200"
        },
        {"statuses": [200], "class": "accepted_async", "because": "pending, received, or waiting for the shopper"}
      ],
      "lookups": [{"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "documented"}]
    }
  },
  "facts": [
    {"about": "operations.adyen.payment.create",
      "says": "The AUTHORISATION webhook carries our reference: give it to confirm() or verdict(). After 7 days a lost answer is for a person.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.key_lifetime",
      "says": "Keys are valid for a minimum of 7 days after first submission, per company account and region; another region does not know them.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.key_replay",
      "says": "The first reply is returned, with the key echoed in a reply header.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.1",
      "says": "422 or 409 with code 704 while the first request with the key runs; transient-error: true says that it may be retried.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.2",
      "says": "Without the header transient-error, or with false, a request must not be retried. That 704 then means another request with the key is assumed.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.adyen.payment.create.answers.3",
      "says": "503 with code 703 when the key store cannot be reached, marked transient.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.4",
      "says": "The same key gets the first reply; the key protects every attempt that carried it.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.5",
      "says": "The same key gets the first reply.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.6",
      "says": "The same key gets the first reply; the final result comes by webhook.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.answers.7",
      "says": "resultCode Authorised: the payment was authorised.",
      "source": "https://github.com/Adyen/adyen-openapi", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.adyen.payment.create.answers.8",
      "says": "resultCode Refused, Error or Cancelled come with status 200.",
      "source": "https://github.com/Adyen/adyen-openapi", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.adyen.payment.create.answers.9",
      "says": "Pending and Received are final by webhook only; RedirectShopper and its kin wait for the shopper.",
      "source": "https://github.com/Adyen/adyen-openapi", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.adyen.payment.create.lookups.1",
      "says": "The same key with the same bytes gets the first reply. Checkout v72 has no endpoint that could be asked by reference.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.lookups.1.consistency_window",
      "says": "A first request still running is told by code 704, so nothing has to be waited for.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.adyen.payment.create.lookups.1.window_source",
      "says": "Follows from the documented replay.",
      "source": "https://docs.adyen.com/development-resources/api-idempotency", "read_on": "2026-07-01", "mark": "documented"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "caldav",
  "profile_version": 1,
  "title": "CalDAV (RFC 4791), facts from Radicale 3: one event per resource. The credential file holds \"Basic <base64 of user:password>\". Set base_url to the server (and its path prefix).",
  "documentation": "https://www.rfc-editor.org/rfc/rfc4791",
  "provider": {"base_url": "https://caldav.invalid", "credential": "caldav"},
  "operations": {
    "caldav.event.put": {
      "method": "PUT",
      "path": "/{owner}/{calendar}/{client_reference}.ics",
      "headers": {
        "Content-Type": "text/calendar; charset=utf-8",
        "If-None-Match": "*",
        "Authorization": "{credential}"
      },
      "body_template": "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//action_reconcile//EN\r\nBEGIN:VEVENT\r\nUID:{idempotency_key}\r\nDTSTAMP:{stamp}\r\nDTSTART:{start}\r\nDTEND:{end}\r\nSUMMARY:{summary}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
      "key_format": "reference",
      "key_lifetime": "1 day",
      "key_lifetime_source": "assumed",
      "key_replay": "current_state",
      "claims": "FULL",
      "example": {
        "owner": "alice",
        "calendar": "work",
        "stamp": "20300101T000000Z",
        "start": "20300107T090000Z",
        "end": "20300107T100000Z",
        "summary": "Room 4"
      },
      "answers": [
        {
          "statuses": [412],
          "class": "already_exists",
          "because": "If-None-Match: * failed, so a resource of this name exists; whether it is ours, the lookup tells"
        },
        {
          "statuses": [409],
          "class": "rejected",
          "because": "409: the UID sits under another name, or the collection does not exist; this request stored nothing"
        }
      ],
      "lookups": [
        {
          "kind": "get_by_reference",
          "path": "/{owner}/{calendar}/{client_reference}.ics",
          "headers": {"Accept": "text/calendar", "Authorization": "{credential}"},
          "found_statuses": [200],
          "absent_statuses": [404],
          "body_match": "UID:{client_reference}",
          "consistency_window": "10 seconds",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "5 seconds"
        }
      ]
    },
    "caldav.event.delete": {
      "method": "DELETE",
      "path": "/{owner}/{calendar}/{event}.ics",
      "headers": {"Accept": "text/calendar", "Authorization": "{credential}"},
      "body_format": "none",
      "effect": "delete",
      "claims": "RECONCILABLE",
      "example": {"owner": "alice", "calendar": "work", "event": "01980f9e-5a7c-7d11-8a55-0242ac120002"},
      "answers": [
        {"statuses": [200, 204], "class": "accepted", "because": "deleted"},
        {
          "statuses": [412],
          "class": "rejected",
          "because": "the item is not the one the precondition names; nothing was deleted"
        }
      ],
      "lookups": [
        {
          "kind": "get_by_reference",
          "path": "/{owner}/{calendar}/{event}.ics",
          "headers": {"Accept": "text/calendar", "Authorization": "{credential}"},
          "found_statuses": [200],
          "absent_statuses": [404],
          "body_match": "UID:{event}",
          "consistency_window": "10 seconds",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "5 seconds"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.caldav.event.put",
      "says": "Address and UID carry our reference. Without If-None-Match a PUT overwrites (204). Text values are inserted as they are: comma, semicolon and backslash in summary have to be escaped by the caller (RFC 5545 3.3.11); control characters are refused.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.put.key_lifetime",
      "says": "The name is the identity while the resource exists. It is free again once somebody deletes it; that nobody does so within a day is an assumption.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.caldav.event.put.key_lifetime_source",
      "says": "Our own figure.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.caldav.event.put.key_replay",
      "says": "A second PUT with If-None-Match: * answers 412: the state now, not the first reply.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.put.answers.1",
      "says": "A PUT with If-None-Match: * on an existing item is answered 412. On our own repetition that is the success case.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.put.answers.2",
      "says": "409 no-uid-conflict when the UID exists under another href; RFC 4918 answers 409 when the parent collection is missing. Neither stores anything.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.put.lookups.1",
      "says": "GET of the same address; the UID inside must be ours.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.put.lookups.1.consistency_window",
      "says": "Radicale serves reads and writes under one store lock, so nothing lags; ten seconds are for servers behind a cache or a replica.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.caldav.event.put.lookups.1.window_source",
      "says": "Holds for Radicale only; measure another server.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/put.py", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.caldav.event.delete",
      "says": "\"event\" is the client reference of the action that made it. CalDAV has no tombstone: a deleted resource and one that never was look alike.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.delete.answers.1",
      "says": "DELETE answers 200 with a multistatus body, at other servers 204.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.delete",
      "says": "404 if the item is absent.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.delete.answers.2",
      "says": "412 if the ETag differs.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.delete.lookups.1",
      "says": "GET of the same address: 404 means deleted, if it existed before.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.caldav.event.delete.lookups.1.consistency_window",
      "says": "Radicale serves reads and writes under one store lock; ten seconds are for servers behind a cache or a replica.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.caldav.event.delete.lookups.1.window_source",
      "says": "Holds for Radicale only; measure another server.",
      "source": "https://github.com/Kozea/Radicale/blob/master/radicale/app/delete.py", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "devto",
  "profile_version": 1,
  "title": "Forem API v1 (DEV.to): articles. The credential file holds the API key itself.",
  "documentation": "https://developers.forem.com/api/v1",
  "provider": {"base_url": "https://dev.to/api", "credential": "devto"},
  "operations": {
    "devto.article.create": {
      "method": "POST",
      "path": "/articles",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/vnd.forem.api-v1+json",
        "api-key": "{credential}"
      },
      "body_document": {
        "article": {
          "title": "{title}",
          "body_markdown": "{text}\n\n<!-- reference {client_reference} -->",
          "published": "{published}",
          "tags": "{tags?}",
          "series": "{series?}",
          "canonical_url": "{canonical_url?}"
        }
      },
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {"title": "Hello", "text": "Hello, world.", "published": false, "tags": ["meta"]},
      "answers": [
        {
          "statuses": [422],
          "body_path": "$.error ? (@ like_regex \"already been taken\" flag \"i\")",
          "class": "already_exists",
          "because": "title and text, or the canonical address, exist already; the lookup tells whether it is ours"
        },
        {"statuses": [429], "class": "throttled", "because": "10 articles in 30 seconds, with Retry-After"}
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/articles/me/all?per_page=100",
          "headers": {"Accept": "application/vnd.forem.api-v1+json", "api-key": "{credential}"},
          "items_path": "$[*]",
          "reference_path": "$.body_markdown",
          "reference_match": "contains",
          "artifact_path": "$.id",
          "paging": "page",
          "paging_parameter": "page",
          "page_size": 100,
          "max_pages": 50,
          "consistency_window": "2 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "30 seconds"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.devto.article.create",
      "says": "The uniqueness is a validation of the model: two requests at the same moment can both pass unless an index stands behind it.",
      "source": "https://github.com/forem/forem/blob/main/app/models/article.rb", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.devto.article.create.answers.1",
      "says": "The model validates body_markdown as unique per author and title, and canonical_url as unique. The wording is that of Rails.",
      "source": "https://github.com/forem/forem/blob/main/app/models/article.rb", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.devto.article.create.answers.2",
      "says": "Creating is limited to 10 in 30 seconds, 429 with Retry-After.",
      "source": "https://github.com/forem/forem-docs/blob/main/api_v1.json", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.devto.article.create.lookups.1",
      "says": "All articles of the author, drafts included, page by page; body_markdown is part of each.",
      "source": "https://github.com/forem/forem/blob/main/app/views/api/v1/articles/me.json.jbuilder", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.devto.article.create.lookups.1.consistency_window",
      "says": "Nothing is published; the list is read from the database. Two minutes are ours.",
      "source": "https://github.com/forem/forem/blob/main/app/views/api/v1/articles/me.json.jbuilder", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.devto.article.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/forem/forem/blob/main/app/views/api/v1/articles/me.json.jbuilder", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "discord",
  "profile_version": 1,
  "title": "Discord API v10: messages. The credential file holds \"Bot <token>\". Put your own address into User-Agent.",
  "documentation": "https://discord.com/developers/docs/resources/message#create-message",
  "provider": {"base_url": "https://discord.com/api/v10", "credential": "discord"},
  "operations": {
    "discord.message.create": {
      "method": "POST",
      "path": "/channels/{channel}/messages",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "User-Agent": "DiscordBot (https://example.com, 1)"
      },
      "body_document": {
        "content": "{content}\n-# {client_reference}",
        "nonce": "{idempotency_key}",
        "enforce_nonce": true,
        "embeds": "{embeds?}",
        "allowed_mentions": {"parse": []}
      },
      "key_format": "base62",
      "key_max_length": 25,
      "key_replay": "current_state",
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {"channel": "290926798999357250", "after": "1100000000000000000", "content": "Deployed."},
      "answers": [
        {
          "statuses": [429],
          "class": "throttled",
          "because": "rate limit: Retry-After in the header, and a fraction of seconds in the body"
        }
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/channels/{channel}/messages?after={after}&limit=100",
          "headers": {
            "Accept": "application/json",
            "Authorization": "{credential}",
            "User-Agent": "DiscordBot (https://example.com, 1)"
          },
          "items_path": "$[*]",
          "reference_path": "$.content",
          "reference_match": "contains",
          "artifact_path": "$.id",
          "created_path": "$.timestamp",
          "paging": "cursor",
          "paging_path": "$[0].id",
          "paging_parameter": "after",
          "page_size": 100,
          "max_pages": 20,
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.discord.message.create",
      "says": "The nonce is not shown by lists, so the reference stands in the text. \"after\" is the id of the newest message the caller knew, or a snowflake of a time before it: (milliseconds - 1420070400000) << 22. It makes each payload different: give an intent_key.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/resources/message.mdx", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.discord.message.create",
      "says": "Lifetime of the key: not stated: nonces are checked for \"the past few minutes\". Without a number it counts as zero.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/resources/message.mdx", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.discord.message.create.key_format",
      "says": "A nonce has at most 25 characters: 128 bits fit as base62 (22), not as a UUID.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/resources/message.mdx", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.discord.message.create.key_replay",
      "says": "With enforce_nonce the existing message is returned.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/resources/message.mdx", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.discord.message.create.answers.1",
      "says": "429 with Retry-After and retry_after. That nothing was executed is assumed.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/topics/rate-limits.mdx", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.discord.message.create.lookups.1",
      "says": "Messages after a snowflake, up to 100 a page, newest first within a page, matched on the last line of the content. Search answers 202 while its index is not ready, so it is not used.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/resources/message.mdx", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.discord.message.create.lookups.1.consistency_window",
      "says": "\"True consistency is impossible\"; no number. Five minutes are ours.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/reference.mdx", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.discord.message.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/discord/discord-api-docs/blob/main/docs/reference.mdx", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "github",
  "profile_version": 2,
  "title": "GitHub REST API: issues. The credential file holds \"Bearer <token>\".",
  "documentation": "https://docs.github.com/en/rest/issues/issues",
  "provider": {"base_url": "https://api.github.com", "credential": "github"},
  "operations": {
    "github.issue.create": {
      "method": "POST",
      "path": "/repos/{owner}/{repo}/issues",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "Authorization": "{credential}"
      },
      "body_document": {
        "title": "{title}",
        "body": "{body}\n\n<!-- reference {client_reference} -->",
        "labels": "{labels?}",
        "assignees": "{assignees?}",
        "milestone": "{milestone?}"
      },
      "artifact_path": "$.html_url",
      "claims": "RECONCILABLE",
      "example": {
        "owner": "octocat",
        "repo": "hello-world",
        "title": "Found a bug",
        "body": "It does not work.",
        "labels": ["bug"]
      },
      "answers": [
        {"statuses": [429], "class": "throttled", "because": "rate limit"},
        {
          "statuses": [403],
          "header_name": "x-ratelimit-remaining",
          "header_value": "0",
          "class": "throttled",
          "because": "rate limit, told as 403 with nothing remaining"
        },
        {
          "statuses": [403],
          "body_path": "$.message ? (@ like_regex \"rate limit\" flag \"i\")",
          "class": "throttled",
          "because": "rate limit, told as 403"
        },
        {
          "statuses": [404],
          "class": "rejected",
          "because": "the repository is unknown to this credential; no issue was made"
        }
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/repos/{owner}/{repo}/issues?state=all&sort=created&direction=desc&since={since_iso}&per_page=100",
          "headers": {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": "{credential}"
          },
          "found_statuses": [200],
          "absent_statuses": [],
          "items_path": "$[*]",
          "reference_path": "$.body",
          "reference_match": "contains",
          "exclude_path": "$.pull_request",
          "artifact_path": "$.html_url",
          "created_path": "$.created_at",
          "paging": "link",
          "page_size": 100,
          "max_pages": 20,
          "consistency_window": "15 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "2 minutes",
          "max_inconclusive": 12
        }
      ]
    }
  },
  "events": {
    "scheme": "github",
    "secret": "github_webhook",
    "rules": [
      {
        "condition": "$ ? (@.action == \"opened\" && @.issue.body like_regex \"<!-- reference [-A-Za-z0-9._~]+ -->\")",
        "says": "executed",
        "reference_path": "$.issue.body",
        "reference_pattern": "<!-- reference ([-A-Za-z0-9._~]+) -->",
        "artifact_path": "$.issue.html_url",
        "occurred_path": "$.issue.created_at",
        "because": "an issue was opened whose body holds a reference as this profile writes it"
      }
    ]
  },
  "facts": [
    {"about": "events.scheme",
      "says": "X-Hub-Signature-256 is the HMAC hex digest of the request body by SHA-256 with the webhook's secret. X-GitHub-Delivery identifies the event, and is not signed, nor is a time.",
      "source": "https://docs.github.com/en/webhooks/webhook-events-and-payloads", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.1",
      "says": "The payload of issues has action (opened) and the issue, with the body, html_url and created_at of the REST API. Whoever may open issues can copy a reference that stands in another one: then it is an incident, not a success.",
      "source": "https://docs.github.com/en/webhooks/webhook-events-and-payloads", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "operations.github.issue.create",
      "says": "There is no idempotency key; a second request makes a second issue. The reference stands in a comment of the body that readers do not see.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.github.issue.create.answers.1",
      "says": "A rate limit is told as 403 or as 429, with retry-after or x-ratelimit-reset. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.github.issue.create.answers.2",
      "says": "A rate limit is told as 403 or 429 with x-ratelimit-* headers. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.github.issue.create.answers.3",
      "says": "A primary or secondary rate limit is told as 403 or 429; the words \"rate limit\" in the message are general knowledge.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.github.issue.create.answers.4",
      "says": "A private repository answers 404 to whoever may not see it.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.github.issue.create.lookups.1",
      "says": "The list of all issues, newest first, with the marker searched in the bodies; it contains pull requests, which are excluded. Search lags up to 12 minutes and led to duplicates, so it is not used.",
      "source": "https://github.com/getsentry/sentry-cocoa/pull/8144", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.github.issue.create.lookups.1.consistency_window",
      "says": "The list is usually immediate; one report saw it 8 minutes late. Fifteen minutes are ours.",
      "source": "https://github.com/judell/bram/issues/254", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.github.issue.create.lookups.1.window_source",
      "says": "Our own figure on one report.",
      "source": "https://github.com/judell/bram/issues/254", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.github.issue.create.lookups.1.absent_statuses",
      "says": "None: 404 is also answered to whoever may not see the repository, so it never means absence.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/github.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.github.issue.create.lookups.1.path",
      "says": "\"since\" keeps what was updated after that time; an issue made after it was also updated after it.",
      "source": "https://docs.github.com/en/rest/issues/issues#list-repository-issues", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "gocardless",
  "profile_version": 1,
  "title": "GoCardless Pro API: payments. The credential file holds \"Bearer <access token>\". Sandbox: https://api-sandbox.gocardless.com.",
  "documentation": "https://developer.gocardless.com/api-reference/#payments-create-a-payment",
  "provider": {"base_url": "https://api.gocardless.com", "credential": "gocardless"},
  "operations": {
    "gocardless.payment.create": {
      "method": "POST",
      "path": "/payments",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "GoCardless-Version": "2015-07-06",
        "Idempotency-Key": "{idempotency_key}"
      },
      "body_document": {
        "payments": {
          "amount": "{amount}",
          "currency": "{currency}",
          "description": "{description?}",
          "charge_date": "{charge_date?}",
          "metadata": {"client_reference": "{client_reference}"},
          "links": {"mandate": "{mandate}"}
        }
      },
      "key_replay": "current_state",
      "artifact_path": "$.payments.id",
      "claims": "RECONCILABLE",
      "example": {"amount": 1099, "currency": "EUR", "description": "Order 1001", "mandate": "MD123"},
      "answers": [
        {
          "statuses": [409],
          "body_path": "$.error.errors[*] ? (@.reason == \"idempotent_creation_conflict\")",
          "class": "accepted",
          "artifact_path": "$.error.errors[*] ? (@.reason == \"idempotent_creation_conflict\").links.conflicting_resource_id",
          "because": "an error that is a success: a payment was made with this key, and the error names it"
        },
        {"statuses": [429], "class": "throttled", "because": "4xx: nothing was created"}
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/payments?created_at%5Bgt%5D={since_iso}&limit=500",
          "headers": {
            "Accept": "application/json",
            "Authorization": "{credential}",
            "GoCardless-Version": "2015-07-06"
          },
          "items_path": "$.payments[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "created_path": "$.created_at",
          "paging": "cursor",
          "paging_path": "$.meta.cursors.after",
          "paging_parameter": "after",
          "page_size": 500,
          "max_pages": 20,
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.gocardless.payment.create",
      "says": "Creating is the effect here; collection at the bank is told days later by webhook.",
      "source": "https://gocardless.com/blog/idempotency-keys", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.gocardless.payment.create",
      "says": "Lifetime of the key: not stated: no number was found. Unknown counts as zero. If support names a lifetime, set it: the 409 then settles lost answers at once.",
      "source": "https://gocardless.com/blog/idempotency-keys", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.gocardless.payment.create.key_replay",
      "says": "A repeated key is answered 409 with the id of the existing payment: what there is now, not the first reply.",
      "source": "https://github.com/gocardless/gocardless-pro-ruby", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.gocardless.payment.create.answers.1",
      "says": "409 idempotent_creation_conflict with links.conflicting_resource_id; the official libraries turn it into a GET of that payment.",
      "source": "https://github.com/gocardless/gocardless-pro-ruby", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.gocardless.payment.create.answers.2",
      "says": "4xx: \"you know that the payment wasn't created\".",
      "source": "https://gocardless.com/blog/idempotency-keys", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.gocardless.payment.create.lookups.1",
      "says": "The list of payments since the first send, matched on metadata; there is no filter by metadata.",
      "source": "https://github.com/gocardless/gocardless-pro-python", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.gocardless.payment.create.lookups.1.consistency_window",
      "says": "Nothing is published about lag. Five minutes are ours.",
      "source": "https://github.com/gocardless/gocardless-pro-python", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.gocardless.payment.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/gocardless/gocardless-pro-python", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "google-calendar",
  "profile_version": 1,
  "title": "Google Calendar API v3: events. The credential file holds \"Bearer <access token>\"; the token lasts an hour, so something has to renew the file.",
  "documentation": "https://developers.google.com/workspace/calendar/api/v3/reference/events",
  "provider": {"base_url": "https://www.googleapis.com/calendar/v3", "credential": "google-calendar"},
  "operations": {
    "google-calendar.event.insert": {
      "method": "POST",
      "path": "/calendars/{calendar_id}/events",
      "headers": {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "{credential}"},
      "body_document": {
        "id": "{idempotency_key}",
        "summary": "{summary}",
        "description": "{description?}",
        "location": "{location?}",
        "start": "{start}",
        "end": "{end}",
        "attendees": "{attendees?}",
        "extendedProperties": {"private": {"client_reference": "{client_reference}"}}
      },
      "reference_format": "base32hex",
      "key_format": "reference",
      "key_lifetime": "3650 days",
      "key_lifetime_source": "assumed",
      "key_replay": "current_state",
      "artifact_path": "$.id",
      "claims": "FULL",
      "example": {
        "calendar_id": "primary",
        "summary": "Room 4",
        "start": {"dateTime": "2030-01-07T09:00:00Z"},
        "end": {"dateTime": "2030-01-07T10:00:00Z"}
      },
      "answers": [
        {
          "statuses": [409],
          "class": "already_exists",
          "because": "an event with this id exists or existed; whether it is ours and alive, the lookup tells"
        },
        {
          "statuses": [403],
          "body_path": "$.error.errors[*] ? (@.reason == \"rateLimitExceeded\" || @.reason == \"userRateLimitExceeded\" || @.reason == \"quotaExceeded\")",
          "class": "throttled",
          "because": "a rate or quota limit, told as 403 with a reason"
        },
        {"statuses": [429], "class": "throttled", "because": "too many requests"}
      ],
      "lookups": [
        {
          "kind": "get_by_reference",
          "path": "/calendars/{calendar_id}/events/{client_reference}",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "found_statuses": [200],
          "absent_statuses": [404],
          "reference_path": "$ ? (@.status == \"cancelled\" || @.extendedProperties.private.client_reference == @.id).id",
          "artifact_path": "$.id",
          "gone_path": "$.status ? (@ == \"cancelled\")",
          "consistency_window": "2 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "30 seconds"
        }
      ]
    },
    "google-calendar.event.delete": {
      "method": "DELETE",
      "path": "/calendars/{calendar_id}/events/{event_id}",
      "headers": {"Accept": "application/json", "Authorization": "{credential}"},
      "body_format": "none",
      "effect": "delete",
      "claims": "RECONCILABLE",
      "example": {"calendar_id": "primary", "event_id": "0a1b2c3d4e5f6g7h8i9j0k1l2m"},
      "answers": [
        {
          "statuses": [403],
          "body_path": "$.error.errors[*] ? (@.reason == \"rateLimitExceeded\" || @.reason == \"userRateLimitExceeded\" || @.reason == \"quotaExceeded\")",
          "class": "throttled",
          "because": "a rate or quota limit, told as 403 with a reason"
        },
        {"statuses": [429], "class": "throttled", "because": "too many requests"}
      ],
      "lookups": [
        {
          "kind": "get_by_reference",
          "path": "/calendars/{calendar_id}/events/{event_id}",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "found_statuses": [200],
          "absent_statuses": [404, 410],
          "match_values": {"$.id": "{event_id}"},
          "artifact_path": "$.id",
          "gone_path": "$.status ? (@ == \"cancelled\")",
          "consistency_window": "2 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "30 seconds"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.google-calendar.event.insert",
      "says": "Our reference is the event id. Google does not guarantee to detect a collision of two inserts at the same moment, so no second insert is sent before the first is settled.",
      "source": "https://pub.dev/documentation/googleapis/latest/calendar_v3/Event/id.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.google-calendar.event.insert.reference_format",
      "says": "Ids are 5 to 1024 characters of base32hex, a-v and 0-9, unique per calendar.",
      "source": "https://pub.dev/documentation/googleapis/latest/calendar_v3/Event/id.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.google-calendar.event.insert.key_lifetime",
      "says": "The id is the event, so it does not expire; it even outlives a deletion. Ten years stand for \"never\".",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.insert.key_lifetime_source",
      "says": "That the id stays taken is reported by users, not documented.",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.google-calendar.event.insert.key_replay",
      "says": "A second insert answers 409, which tells the present state (taken) and not the first reply.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.google-calendar.event.insert.answers.1",
      "says": "409: the requested identifier already exists. It stays taken after a deletion, so 409 is neither failure nor success.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.google-calendar.event.insert.answers.2",
      "says": "403 with reason userRateLimitExceeded, rateLimitExceeded or quotaExceeded is a limit, to be retried with backoff. That nothing was executed is assumed.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.insert.answers.3",
      "says": "429 is a rate limit, to be retried with backoff. That nothing was executed is assumed.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.insert.lookups.1",
      "says": "The id that we chose is the address. A deleted event still answers 200 with status \"cancelled\": it happened and was removed. A living one is ours only if it carries our reference, for an id can be taken by others.",
      "source": "https://github.com/googleapis/google-api-python-client/issues/210", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.google-calendar.event.insert.lookups.1.consistency_window",
      "says": "None is published; \"eventual consistency problems\" are reported. Two minutes are ours.",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.insert.lookups.1.window_source",
      "says": "Our own figure.",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.insert.lookups.1.absent_statuses",
      "says": "404 is also answered for a calendar that the credential may not see; the canary (an event known to exist) tells the two apart.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.delete",
      "says": "Absence proves a delete only if the event was seen to exist before the send.",
      "source": "https://github.com/googleapis/google-api-python-client/issues/210", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.google-calendar.event.delete",
      "says": "410 is answered when the event has been deleted already (a second delete answers it), 404 when it is not known.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/google_calendar.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.google-calendar.event.delete.answers.1",
      "says": "403 with reason userRateLimitExceeded, rateLimitExceeded or quotaExceeded is a limit, to be retried with backoff. That nothing was executed is assumed.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.delete.answers.2",
      "says": "429 is a rate limit, to be retried with backoff. That nothing was executed is assumed.",
      "source": "https://developers.google.com/workspace/calendar/api/guides/errors", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.delete.lookups.1",
      "says": "A deleted event still answers 200 with status \"cancelled\"; an event without it was not deleted.",
      "source": "https://github.com/googleapis/google-api-python-client/issues/210", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.google-calendar.event.delete.lookups.1.consistency_window",
      "says": "None is published. Two minutes are ours.",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.google-calendar.event.delete.lookups.1.window_source",
      "says": "Our own figure.",
      "source": "https://github.com/googleapis/google-api-ruby-client/issues/1811", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "jira",
  "profile_version": 1,
  "title": "Jira Cloud REST API v3: issues. Set base_url to your site; the credential file holds \"Basic <base64 of email:API token>\".",
  "documentation": "https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issues/",
  "provider": {"base_url": "https://jira.invalid", "credential": "jira"},
  "operations": {
    "jira.issue.create": {
      "method": "POST",
      "path": "/rest/api/3/issue",
      "headers": {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "{credential}"},
      "body_document": {
        "fields": {
          "project": {"key": "{project}"},
          "issuetype": {"name": "{issue_type}"},
          "summary": "{summary}",
          "description": "{description?}",
          "labels": ["ref:{client_reference}"]
        }
      },
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {"project": "OPS", "issue_type": "Task", "summary": "Disk is full"},
      "answers": [{"statuses": [429], "class": "throttled", "because": "rate limit"}],
      "lookups": [
        {
          "kind": "search",
          "method": "POST",
          "path": "/rest/api/3/search/jql",
          "headers": {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Authorization": "{credential}"
          },
          "body": {"jql": "labels = \"ref:{client_reference}\"", "fields": ["labels"], "maxResults": 50},
          "items_path": "$.issues[*]",
          "reference_path": "$.fields.labels[*] ? (@ starts with \"ref:\")",
          "reference_match": "contains",
          "artifact_path": "$.id",
          "paging": "cursor",
          "paging_path": "$.nextPageToken",
          "paging_body_path": ["nextPageToken"],
          "page_size": 50,
          "consistency_window": "12 hours",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "10 minutes",
          "pause": "1 minute",
          "pause_max": "1 hour"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.jira.issue.create",
      "says": "No key: a second request makes a second issue. A webhook that carries the label, given to confirm(), settles a lost answer hours earlier.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/jira.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.jira.issue.create.answers.1",
      "says": "429 with Retry-After; some 503 carry it too and stay unknown. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/jira.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.jira.issue.create.lookups.1",
      "says": "Search by JQL on a label of our own. It \"doesn't provide immediate search after write consistency\"; reconcileIssues helps only with ids that are known already.",
      "source": "https://github.com/port-labs/ocean/pull/2765", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.jira.issue.create.lookups.1.consistency_window",
      "says": "Nothing is published. About a fifth was missing when the webhook came, a horizon of two hours still missed some, twelve hours were used.",
      "source": "https://github.com/estuary/connectors/pull/3486", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.jira.issue.create.lookups.1.window_source",
      "says": "Reported by users; measure your own site.",
      "source": "https://github.com/estuary/connectors/pull/3486", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "microsoft-graph",
  "profile_version": 1,
  "title": "Microsoft Graph v1.0: calendar events and mail. The credential file holds \"Bearer <access token>\"; the token lasts about an hour, so something has to renew the file.",
  "documentation": "https://learn.microsoft.com/en-us/graph/api/user-post-events",
  "provider": {"base_url": "https://graph.microsoft.com/v1.0", "credential": "microsoft-graph"},
  "operations": {
    "microsoft-graph.event.create": {
      "method": "POST",
      "path": "/users/{user}/events",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "Prefer": "IdType=\"ImmutableId\""
      },
      "body_document": {
        "subject": "{subject}",
        "body": {"contentType": "Text", "content": "{text}"},
        "start": "{start}",
        "end": "{end}",
        "location": "{location?}",
        "attendees": "{attendees?}",
        "transactionId": "{client_reference}",
        "singleValueExtendedProperties": [
          {"id": "String {00020329-0000-0000-C000-000000000046} Name client_reference", "value": "{client_reference}"}
        ]
      },
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {
        "user": "alice@example.com",
        "subject": "Room 4",
        "text": "Weekly",
        "start": {"dateTime": "2030-01-07T09:00:00", "timeZone": "UTC"},
        "end": {"dateTime": "2030-01-07T10:00:00", "timeZone": "UTC"}
      },
      "answers": [
        {
          "statuses": [429, 509],
          "class": "throttled",
          "because": "throttled, with Retry-After; 509 is the bandwidth limit"
        }
      ],
      "lookups": [
        {
          "kind": "list_by_reference",
          "path": "/users/{user}/events?%24filter=singleValueExtendedProperties%2FAny(ep%3Aep%2Fid%20eq%20%27String%20%7B00020329-0000-0000-C000-000000000046%7D%20Name%20client_reference%27%20and%20ep%2Fvalue%20eq%20%27{client_reference}%27)&%24select=id,transactionId",
          "headers": {
            "Accept": "application/json",
            "Authorization": "{credential}",
            "Prefer": "IdType=\"ImmutableId\""
          },
          "items_path": "$.value[*]",
          "reference_path": "$.transactionId",
          "artifact_path": "$.id",
          "paging": "next_url",
          "paging_path": "$.\"@odata.nextLink\"",
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    },
    "microsoft-graph.mail.send": {
      "method": "POST",
      "path": "/users/{user}/sendMail",
      "headers": {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "{credential}"},
      "body_document": {
        "message": {
          "subject": "{subject}",
          "body": {"contentType": "Text", "content": "{text}"},
          "toRecipients": "{to}",
          "ccRecipients": "{cc?}",
          "internetMessageHeaders": [{"name": "x-client-reference", "value": "{client_reference}"}]
        },
        "saveToSentItems": true
      },
      "claims": "BLIND",
      "example": {
        "user": "alice@example.com",
        "subject": "Your order",
        "text": "It is on its way.",
        "to": [{"emailAddress": {"address": "bob@example.com"}}]
      },
      "answers": [
        {"statuses": [202], "class": "accepted", "because": "taken over; more than that will never be known"},
        {
          "statuses": [429, 509],
          "class": "throttled",
          "because": "throttled, with Retry-After; 509 is the bandwidth limit"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.microsoft-graph.event.create",
      "says": "A tester saw 201 again and no new event for a repeated transactionId (2020).",
      "source": "https://blog.rykoma.net/2020/10/05/1559", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.microsoft-graph.event.create",
      "says": "No lifetime is stated: transactionId avoids \"redundant POST operations in case of client retries\", for an unpublished time, so it is used as the reference and not relied upon as a key.",
      "source": "https://github.com/microsoftgraph/microsoft-graph-docs-contrib/blob/main/api-reference/v1.0/resources/event.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.microsoft-graph.event.create.headers",
      "says": "Ids of events change when they are moved, unless every call asks for immutable ones.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/microsoft_outlook.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.microsoft-graph.event.create.answers.1",
      "says": "429 with Retry-After, or 509. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/microsoft_outlook.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.microsoft-graph.event.create.lookups.1",
      "says": "Events can be filtered by a single-value extended property and show transactionId; pages follow @odata.nextLink.",
      "source": "https://github.com/microsoftgraph/microsoft-graph-docs-contrib/blob/main/api-reference/v1.0/resources/event.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.microsoft-graph.event.create.lookups.1.consistency_window",
      "says": "Nothing is published about lag. Five minutes are ours.",
      "source": "https://github.com/microsoftgraph/microsoft-graph-docs-contrib/blob/main/api-reference/v1.0/resources/event.md", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.microsoft-graph.event.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/microsoftgraph/microsoft-graph-docs-contrib/blob/main/api-reference/v1.0/resources/event.md", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.microsoft-graph.mail.send",
      "says": "No key, no id, nothing to ask: a lost answer goes to a person at once. A draft that is sent later would have an id.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/microsoft_outlook.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.microsoft-graph.mail.send.answers.1",
      "says": "202 with an empty body; it \"doesn't indicate that the request processing has completed\".",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/microsoft_outlook.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.microsoft-graph.mail.send.answers.2",
      "says": "429 with Retry-After, or 509. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/microsoft_outlook.rs", "read_on": "2026-08-10", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "paypal",
  "profile_version": 1,
  "title": "PayPal Orders v2. The credential file holds \"Bearer <access token>\"; the token lasts hours, so something has to renew the file. Sandbox: https://api-m.sandbox.paypal.com.",
  "documentation": "https://developer.paypal.com/docs/api/orders/v2/",
  "provider": {"base_url": "https://api-m.paypal.com", "credential": "paypal"},
  "operations": {
    "paypal.order.create": {
      "method": "POST",
      "path": "/v2/checkout/orders",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "PayPal-Request-Id": "{idempotency_key}",
        "Prefer": "return=minimal"
      },
      "body_document": {
        "intent": "{intent}",
        "purchase_units": [
          {
            "custom_id": "{client_reference}",
            "description": "{description?}",
            "invoice_id": "{invoice_id?}",
            "amount": {"currency_code": "{currency}", "value": "{value}"}
          }
        ]
      },
      "reference_max_length": 127,
      "key_max_length": 108,
      "key_lifetime": "6 hours",
      "key_lifetime_source": "documented",
      "key_margin": "5 minutes",
      "key_replay": "current_state",
      "artifact_path": "$.id",
      "claims": "KEYED",
      "example": {"intent": "CAPTURE", "currency": "EUR", "value": "10.99", "description": "Order 1001"},
      "answers": [
        {
          "applies_to": "replay",
          "statuses": [200],
          "class": "accepted",
          "stored_reply": true,
          "because": "200 instead of 201: the order that the first request with this key made, in its latest state"
        },
        {
          "statuses": [400, 409, 422],
          "body_path": "$.details[*] ? (@.issue == \"DUPLICATE_REQUEST_ID\")",
          "class": "key_mismatch",
          "because": "the request id was used before"
        },
        {
          "statuses": [400, 409, 422],
          "body_path": "$.name ? (@ == \"DUPLICATE_REQUEST_ID\")",
          "class": "key_mismatch",
          "because": "the request id was used before"
        },
        {"statuses": [409], "class": "in_progress", "because": "a request with the same id is under way"},
        {
          "statuses": [429],
          "class": "throttled",
          "because": "the rate limit is applied before the request is processed"
        }
      ],
      "lookups": [{"kind": "replay_by_key", "consistency_window": "1 minute", "window_source": "assumed"}]
    }
  },
  "facts": [
    {"about": "operations.paypal.order.create",
      "says": "There is no query by custom_id: orders have none, and transaction reports (up to 3 hours late) hold captured payments only, so they cannot prove that an order was not created. After 6 hours a lost answer is for a person.",
      "source": "https://github.com/paypal/paypal-rest-api-specifications", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.paypal.order.create.key_lifetime",
      "says": "Request ids of Orders v2 are kept for 6 hours, 72 hours by arrangement.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.paypal.order.create.key_replay",
      "says": "The latest status of the order, not the first reply.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.paypal.order.create.answers.1",
      "says": "A repeated request with the same PayPal-Request-Id answers the latest status of the first one, with 200 instead of 201.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.paypal.order.create.answers.2",
      "says": "Older APIs answer DUPLICATE_REQUEST_ID when the request id was used before. That Orders v2 does so too, and the place of the code, are assumed.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.paypal.order.create.answers.3",
      "says": "The same code as the name of the error.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.paypal.order.create.answers.4",
      "says": "Of two requests at the same time with one id the first wins and the second might fail; the status is not documented, 409 is assumed.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.paypal.order.create.answers.5",
      "says": "429 is the rate limit. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/paypal.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.paypal.order.create.lookups.1",
      "says": "The same id with the same bytes answers the present state of the order; it is the only way to find an order whose id was lost.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.paypal.order.create.lookups.1.consistency_window",
      "says": "A second request beside a running first one \"might fail\", so the first is given a minute to end.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.paypal.order.create.lookups.1.window_source",
      "says": "Our own figure.",
      "source": "https://developer.paypal.com/reference/guidelines/idempotency", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "razorpay",
  "profile_version": 2,
  "title": "RazorpayX payouts. The credential file holds \"Basic <base64 of key id:secret>\".",
  "documentation": "https://razorpay.com/docs/api/x/payouts/",
  "provider": {"base_url": "https://api.razorpay.com", "credential": "razorpay"},
  "operations": {
    "razorpay.payout.create": {
      "method": "POST",
      "path": "/v1/payouts",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "X-Payout-Idempotency": "{idempotency_key}"
      },
      "body_document": {
        "account_number": "{account_number}",
        "fund_account_id": "{fund_account_id}",
        "amount": "{amount}",
        "currency": "INR",
        "mode": "{mode}",
        "purpose": "{purpose}",
        "queue_if_low_balance": "{queue_if_low_balance?}",
        "narration": "{narration?}",
        "reference_id": "{client_reference}"
      },
      "reference_max_length": 40,
      "key_max_length": 36,
      "key_replay": "current_state",
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {
        "account_number": "7878780080316316",
        "fund_account_id": "fa_00000000000001",
        "amount": 1000000,
        "mode": "IMPS",
        "purpose": "refund"
      },
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.error ? (@.description like_regex \"different request body\" flag \"i\")",
          "class": "key_mismatch",
          "because": "the key was used with another body"
        },
        {"statuses": [429], "class": "throttled", "because": "rate limit"},
        {
          "statuses": [200, 201],
          "body_path": "$ ? (@.status == \"processed\")",
          "class": "accepted",
          "because": "processed"
        },
        {
          "statuses": [200, 201],
          "body_path": "$ ? (@.status == \"rejected\" || @.status == \"cancelled\" || @.status == \"reversed\" || @.status == \"failed\")",
          "class": "rejected",
          "because": "the payout ended without paying"
        },
        {
          "statuses": [200, 201],
          "body_path": "$.status",
          "class": "accepted_async",
          "because": "queued, pending or processing"
        }
      ],
      "lookups": [
        {
          "kind": "list_by_reference",
          "path": "/v1/payouts?account_number={account_number}&reference_id={client_reference}&count=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.items[*]",
          "reference_path": "$.reference_id",
          "artifact_path": "$.id",
          "created_path": "$.created_at",
          "paging": "offset",
          "paging_parameter": "skip",
          "page_size": 100,
          "consistency_window": "10 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "2 minutes"
        }
      ],
      "poll": {
        "path": "/v1/payouts/{artifact_id}",
        "headers": {"Accept": "application/json", "Authorization": "{credential}"},
        "state_path": "$.status",
        "accepted": ["processed"],
        "rejected": ["rejected", "cancelled", "reversed", "failed"],
        "pause": "30 seconds",
        "pause_max": "30 minutes"
      }
    }
  },
  "events": {
    "scheme": "hmac",
    "secret": "razorpay_webhook",
    "signature_header": "X-Razorpay-Signature",
    "signature_encoding": "hex",
    "signed_text": "{body}",
    "event_id_header": "x-razorpay-event-id",
    "rules": [
      {
        "condition": "$ ? (@.event == \"payout.processed\")",
        "says": "accepted",
        "reference_path": "$.payload.payout.entity.reference_id",
        "artifact_path": "$.payload.payout.entity.id",
        "occurred_path": "$.created_at",
        "because": "processed by the contact's bank"
      },
      {
        "condition": "$ ? (@.event == \"payout.rejected\" || @.event == \"payout.failed\" || @.event == \"payout.reversed\")",
        "says": "rejected",
        "reference_path": "$.payload.payout.entity.reference_id",
        "artifact_path": "$.payload.payout.entity.id",
        "occurred_path": "$.created_at",
        "because": "the payout ended without paying, or the amount was returned"
      },
      {
        "condition": "$ ? (@.event == \"payout.pending\" || @.event == \"payout.queued\" || @.event == \"payout.initiated\")",
        "says": "executed",
        "reference_path": "$.payload.payout.entity.reference_id",
        "artifact_path": "$.payload.payout.entity.id",
        "occurred_path": "$.created_at",
        "because": "it is there, and not decided yet"
      }
    ]
  },
  "facts": [
    {"about": "events.scheme",
      "says": "The secret is used to make a hash signature of each payload: X-Razorpay-Signature, HMAC-SHA256 in hex over the raw body.",
      "source": "https://razorpay.com/docs/webhooks/validate-test/", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.event_id_header",
      "says": "x-razorpay-event-id is unique per event and tells duplicates; events are sent at least once.",
      "source": "https://razorpay.com/docs/razorpayx/webhooks/", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.1",
      "says": "payout.processed: the payout is processed by the contact's bank. Events may come in another order; created_at of the event is taken for its time.",
      "source": "https://razorpay.com/docs/webhooks/payouts", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.2",
      "says": "payout.rejected by somebody of the team, payout.failed at a bank, payout.reversed: it failed and the amount is returned.",
      "source": "https://razorpay.com/docs/webhooks/payouts", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.3",
      "says": "payout.pending waits for approval, payout.queued for funds, payout.initiated is being processed.",
      "source": "https://razorpay.com/docs/webhooks/payouts", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "operations.razorpay.payout.create",
      "says": "The header is mandatory since 2025-03-15: 4 to 36 of A-Z, a-z, 0-9, \"-\", \"_\" and space.",
      "source": "https://razorpay.com/docs/api/x/payout-idempotency/make-request", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create",
      "says": "Lifetime of the key: not stated: \"use the same key until the payout is processed or failed\", without a number. Unknown counts as zero.",
      "source": "https://razorpay.com/docs/api/x/payout-idempotency/make-request", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.key_replay",
      "says": "The payout with its present status.",
      "source": "https://razorpay.com/docs/api/x/payout-idempotency/make-request", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.answers.1",
      "says": "400 \"Different request body sent for the same Idempotency Header\".",
      "source": "https://razorpay.com/docs/api/x/payout-idempotency/make-request", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.answers.2",
      "says": "429 is the rate limit. That nothing was executed is assumed.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/errors/x.md", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.razorpay.payout.create.answers.3",
      "says": "processed: the money has left.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.answers.4",
      "says": "rejected, cancelled, reversed and failed are final.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.answers.5",
      "says": "A payout that was accepted is not final.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.lookups.1",
      "says": "Payouts are filtered by account_number and reference_id.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.razorpay.payout.create.lookups.1.consistency_window",
      "says": "Nothing is published; the documents advise webhooks over polling. Ten minutes are ours.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.razorpay.payout.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.razorpay.payout.create.poll",
      "says": "queued, pending and processing are not final. A payout can still be reversed after it was processed: that opens an incident.",
      "source": "https://github.com/razorpay/markdown-docs/blob/master/api/x/payouts/fetch-all.md", "read_on": "2026-07-01", "mark": "documented"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "s3",
  "profile_version": 1,
  "title": "Amazon S3: PUT of an object that must not exist yet. Requests must be signed (AWS Signature Version 4), which no template can do: set base_url to a signing proxy that addresses the bucket and sends every request at most once.",
  "documentation": "https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html",
  "provider": {"base_url": "https://s3-signing-proxy.invalid"},
  "operations": {
    "s3.object.put": {
      "method": "PUT",
      "path": "/{folder}/{client_reference}",
      "headers": {
        "Content-Type": "application/json",
        "If-None-Match": "*",
        "x-amz-tagging": "client_reference={client_reference}",
        "x-amz-meta-key": "{idempotency_key}"
      },
      "body_document": "{document}",
      "key_format": "reference",
      "key_lifetime": "1 day",
      "key_lifetime_source": "assumed",
      "key_replay": "current_state",
      "claims": "FULL",
      "example": {"folder": "invoices", "document": {"invoice": 1001, "total": "10.99"}},
      "answers": [
        {
          "statuses": [412],
          "class": "already_exists",
          "because": "If-None-Match: * failed, so an object of this name exists; the lookup tells whose it is"
        },
        {
          "statuses": [409],
          "class": "not_executed",
          "because": "409 ConditionalRequestConflict: the upload lost a race and is to be retried"
        }
      ],
      "lookups": [
        {
          "kind": "get_by_reference",
          "path": "/{folder}/{client_reference}?tagging",
          "headers": {"Accept": "application/xml"},
          "found_statuses": [200],
          "absent_statuses": [404],
          "body_match": "<Value>{client_reference}</Value>",
          "consistency_window": "10 seconds",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "5 seconds"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.s3.object.put",
      "says": "The name of the object is our reference. Needs the rights PutObjectTagging, GetObjectTagging and ListBucket.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.s3.object.put.key_lifetime",
      "says": "The name is the identity while the object exists and is free again after a deletion; that nobody deletes it within a day is an assumption.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.s3.object.put.key_lifetime_source",
      "says": "Our own figure.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.s3.object.put.key_replay",
      "says": "A second PUT is answered 412: the state now, not the first reply.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.s3.object.put.answers.1",
      "says": "412 when an object of the name exists. On our own repetition that is the success case.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.s3.object.put.answers.2",
      "says": "409 ConditionalRequestConflict: a conflicting operation happened during the request; retry the upload.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.s3.object.put.lookups.1",
      "says": "The tags of the object of that name must hold our reference. 404 means absent; without the right to list the bucket S3 answers 403 instead, which proves nothing.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.s3.object.put.lookups.1.consistency_window",
      "says": "Reads after writes, tags included, are strongly consistent since December 2020; ten seconds are for a proxy in between.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.s3.object.put.lookups.1.window_source",
      "says": "The consistency was read in a quotation, so two negatives are asked for.",
      "source": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "sendgrid",
  "profile_version": 1,
  "title": "Twilio SendGrid v3: mail send. The credential file holds \"Bearer SG....\".",
  "documentation": "https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send",
  "provider": {"base_url": "https://api.sendgrid.com", "credential": "sendgrid"},
  "operations": {
    "sendgrid.mail.send": {
      "method": "POST",
      "path": "/v3/mail/send",
      "headers": {"Content-Type": "application/json", "Authorization": "{credential}"},
      "reference_body_path": ["custom_args", "client_reference"],
      "artifact_header": "X-Message-Id",
      "claims": "PARTIAL",
      "example": {
        "personalizations": [{"to": [{"email": "alice@example.com"}]}],
        "from": {"email": "shop@example.com"},
        "subject": "Your order",
        "content": [{"type": "text/plain", "value": "It is on its way."}]
      },
      "answers": [
        {
          "statuses": [202],
          "class": "accepted",
          "because": "taken over by the provider; whether it is delivered is told by its event webhook only"
        },
        {"statuses": [429], "class": "throttled", "because": "rate limit"}
      ]
    }
  },
  "facts": [
    {"about": "operations.sendgrid.mail.send",
      "says": "No key and nothing to ask without a paid add-on: a lost answer goes to a person at once. custom_args come back in the event webhook, so confirm() can settle it.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/sendgrid.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.sendgrid.mail.send.answers.1",
      "says": "Success is always 202 with an empty body; the id is in the header X-Message-Id.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/sendgrid.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.sendgrid.mail.send.answers.2",
      "says": "429 is the rate limit. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/sendgrid.rs", "read_on": "2026-08-10", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "shopify",
  "profile_version": 1,
  "title": "Shopify Admin GraphQL API 2026-04: refundCreate. Set base_url to your shop; the credential file holds the access token itself.",
  "documentation": "https://shopify.dev/docs/api/admin-graphql/latest/mutations/refundCreate",
  "provider": {"base_url": "https://shopify.invalid", "credential": "shopify"},
  "operations": {
    "shopify.refund.create": {
      "method": "POST",
      "path": "/admin/api/2026-04/graphql.json",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "X-Shopify-Access-Token": "{credential}"
      },
      "body_document": {
        "query": "mutation refund($input: RefundInput!, $key: String!) { refundCreate(input: $input) @idempotent(key: $key) { refund { id } userErrors { field message } } }",
        "variables": {
          "key": "{idempotency_key}",
          "input": {
            "orderId": "{order}",
            "note": "{note} (ref {client_reference})",
            "notify": "{notify?}",
            "refundLineItems": "{line_items?}",
            "shipping": "{shipping?}",
            "transactions": "{transactions?}"
          }
        }
      },
      "key_lifetime": "24 hours",
      "key_lifetime_source": "assumed",
      "key_margin": "5 minutes",
      "key_replay": "current_state",
      "artifact_path": "$.data.refundCreate.refund.id",
      "claims": "FULL",
      "example": {
        "order": "gid://shopify/Order/450789469",
        "note": "Damaged",
        "line_items": [{"lineItemId": "gid://shopify/LineItem/518995019", "quantity": 1}]
      },
      "answers": [
        {
          "body_path": "$.** ? (@ == \"IDEMPOTENCY_CONCURRENT_REQUEST\")",
          "class": "in_progress",
          "because": "a request with this key runs; told inside a status 200"
        },
        {
          "body_path": "$.** ? (@ == \"IDEMPOTENCY_KEY_PARAMETER_MISMATCH\")",
          "class": "key_mismatch",
          "because": "the key was used with other parameters; the order of fields counts"
        },
        {
          "body_path": "$.** ? (@ == \"IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED\")",
          "class": "unknown",
          "because": "an earlier attempt with this key failed; how far it came is not said"
        },
        {
          "body_path": "$.errors[*] ? (@.extensions.code == \"THROTTLED\")",
          "class": "throttled",
          "because": "the cost limit, told inside a status 200"
        },
        {"statuses": [429], "class": "throttled", "because": "rate limit"},
        {
          "statuses": [200],
          "body_path": "$.data.refundCreate.refund.id",
          "class": "accepted",
          "because": "the refund has an id"
        },
        {
          "statuses": [200],
          "body_path": "$.data.refundCreate.userErrors[*]",
          "class": "rejected",
          "because": "userErrors: refused, told inside a status 200"
        },
        {
          "statuses": [200],
          "class": "unknown",
          "because": "an answer without a refund and without userErrors says nothing"
        }
      ],
      "lookups": [
        {"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "assumed"},
        {
          "kind": "list_scan",
          "method": "POST",
          "path": "/admin/api/2026-04/graphql.json",
          "headers": {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "X-Shopify-Access-Token": "{credential}"
          },
          "body": {
            "query": "query refunds($id: ID!) { order(id: $id) { refunds(first: 250) { id note createdAt } } }",
            "variables": {"id": "{order}"}
          },
          "items_path": "$.data.order.refunds[*]",
          "reference_path": "$.note",
          "reference_match": "contains",
          "artifact_path": "$.id",
          "created_path": "$.createdAt",
          "incomplete_if": "$.errors",
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.shopify.refund.create",
      "says": "The directive is mandatory at runtime from 2026-04. Each order shows at most 250 refunds.",
      "source": "https://shopify.dev/changelog/adding-idempotency-for-inventory-adjustments-and-refund-mutations", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.shopify.refund.create.key_lifetime",
      "says": "24 hours, in a quotation of the page.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.key_lifetime_source",
      "says": "Read second-hand only.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.key_replay",
      "says": "\"Constructed from current database state\", not a stored reply, in a quotation of the page.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.answers.1",
      "says": "IDEMPOTENCY_CONCURRENT_REQUEST: \"this request is currently in progress, please try again\". Where the code stands is searched for, since refundCreate's userErrors have no member for it.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.answers.2",
      "says": "IDEMPOTENCY_KEY_PARAMETER_MISMATCH: the same key cannot be used with different parameters.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.answers.3",
      "says": "IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED is one of the codes of other mutations.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/enums/InventorySetQuantitiesUserErrorCode", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.answers.4",
      "says": "GraphQL throttling is an error THROTTLED in the body. General knowledge.",
      "source": "https://shopify.dev/docs/api/usage/limits", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.answers.5",
      "says": "429 with Retry-After at the REST API; at GraphQL assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/shopify.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.answers.6",
      "says": "A refund that was made is returned.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/payloads/RefundCreatePayload", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.shopify.refund.create.answers.7",
      "says": "userErrors list what was wrong; nothing was refunded.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/payloads/RefundCreatePayload", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.answers.8",
      "says": "Top-level errors of GraphQL can hide a partial success.",
      "source": "https://shopify.dev/docs/api/admin-graphql", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.lookups.1",
      "says": "The same key with the same bytes makes no second refund; the reply is rebuilt from the present state.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.lookups.1.consistency_window",
      "says": "A first request still running is told by IDEMPOTENCY_CONCURRENT_REQUEST.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.shopify.refund.create.lookups.1.window_source",
      "says": "Read in a quotation.",
      "source": "https://shopify.dev/docs/api/usage/implementing-idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.lookups.2",
      "says": "The refunds of the order, matched on the note. An order that the app may not see is null, so there is no list and nothing is proven.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/objects/Order", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.lookups.2.consistency_window",
      "says": "Nothing is published about lag. Five minutes are ours.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/objects/Order", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.shopify.refund.create.lookups.2.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://shopify.dev/docs/api/admin-graphql/latest/objects/Order", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "slack",
  "profile_version": 1,
  "title": "Slack Web API: chat.postMessage. The credential file holds \"Bearer xoxb-...\". Scopes: chat:write, channels:history, metadata.message:read.",
  "documentation": "https://docs.slack.dev/reference/methods/chat.postMessage",
  "provider": {"base_url": "https://slack.com/api", "credential": "slack"},
  "operations": {
    "slack.message.post": {
      "method": "POST",
      "path": "/chat.postMessage",
      "headers": {
        "Content-Type": "application/json; charset=utf-8",
        "Accept": "application/json",
        "Authorization": "{credential}"
      },
      "body_document": {
        "channel": "{channel}",
        "text": "{text}",
        "blocks": "{blocks?}",
        "metadata": {"event_type": "client_reference", "event_payload": {"client_reference": "{client_reference}"}}
      },
      "artifact_path": "$.ts",
      "claims": "RECONCILABLE",
      "example": {"channel": "C0123456789", "text": "Deployed."},
      "answers": [
        {"statuses": [429], "class": "throttled", "because": "rate limit, with Retry-After"},
        {
          "body_path": "$ ? (@.ok == false && (@.error == \"ratelimited\" || @.error == \"rate_limited\"))",
          "class": "throttled",
          "because": "rate limit, told as an error of a status 200"
        },
        {
          "body_path": "$ ? (@.ok == false && (@.error == \"internal_error\" || @.error == \"fatal_error\" || @.error == \"service_unavailable\" || @.error == \"request_timeout\"))",
          "class": "unknown",
          "because": "a server error told as ok: false proves nothing"
        },
        {
          "body_path": "$ ? (@.ok == false && (@.error == \"invalid_auth\" || @.error == \"not_authed\" || @.error == \"token_expired\" || @.error == \"token_revoked\" || @.error == \"account_inactive\"))",
          "class": "not_executed",
          "because": "the token was refused"
        },
        {"body_path": "$ ? (@.ok == false)", "class": "rejected", "because": "ok: false decides, whatever the status"},
        {"statuses": [200], "body_path": "$ ? (@.ok == true)", "class": "accepted", "because": "ok: true"},
        {"statuses": [200], "class": "unknown", "because": "a status 200 without ok says nothing"}
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/conversations.history?channel={channel}&oldest={since_unix}&include_all_metadata=true&limit=200",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.messages[*]",
          "reference_path": "$.metadata.event_payload.client_reference",
          "artifact_path": "$.ts",
          "created_path": "$.ts",
          "incomplete_if": "$ ? (@.ok != true)",
          "paging": "cursor",
          "paging_path": "$.response_metadata.next_cursor",
          "paging_parameter": "cursor",
          "paging_more": "$.has_more",
          "page_size": 200,
          "max_pages": 20,
          "consistency_window": "2 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "30 seconds"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.slack.message.post",
      "says": "No key; that client_msg_id removes duplicates is undocumented and contradicted. channel must be the id (C...), which the history wants. ts is unique within a channel.",
      "source": "https://github.com/slackapi/slack-api-specs/issues/10", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.slack.message.post.answers.1",
      "says": "429 with Retry-After. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/slack.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.slack.message.post.answers.2",
      "says": "ok decides, not the status. The names of the error are general knowledge.",
      "source": "https://docs.slack.dev/reference/methods/chat.postMessage", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.slack.message.post.answers.3",
      "says": "fatal_error and its kin: \"it is possible some aspect of the operation succeeded before the error was raised\". General knowledge.",
      "source": "https://docs.slack.dev/reference/methods/chat.postMessage", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.slack.message.post.answers.4",
      "says": "Refused tokens are errors of a status 200. The names are general knowledge.",
      "source": "https://docs.slack.dev/reference/methods/chat.postMessage", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.slack.message.post.answers.5",
      "says": "ok decides, not the status.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/slack.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.slack.message.post.answers.6",
      "says": "ok decides, not the status.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/slack.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.slack.message.post.answers.7",
      "says": "ok decides, not the status.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/slack.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.slack.message.post.lookups.1",
      "says": "History since the first send, matched on the metadata of the message. Replies in threads are not in it, so this operation posts none. include_all_metadata is general knowledge.",
      "source": "https://docs.slack.dev/reference/methods/conversations.history", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.slack.message.post.lookups.1.consistency_window",
      "says": "Nothing is published about lag. Two minutes are ours.",
      "source": "https://docs.slack.dev/reference/methods/conversations.history", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.slack.message.post.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://docs.slack.dev/reference/methods/conversations.history", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "sqs",
  "profile_version": 1,
  "title": "Amazon SQS FIFO queues, JSON protocol. Requests must be signed (AWS Signature Version 4), which no template can do: set base_url to a signing proxy that sends every request at most once.",
  "documentation": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html",
  "provider": {
    "base_url": "https://sqs-signing-proxy.invalid",
    "attempt_timeout": "10 seconds",
    "late_arrival_max": "60 seconds"
  },
  "operations": {
    "sqs.message.send_fifo": {
      "method": "POST",
      "path": "/",
      "headers": {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"},
      "body_document": {
        "QueueUrl": "{queue_url}",
        "MessageBody": "{body}",
        "MessageGroupId": "{group}",
        "MessageDeduplicationId": "{idempotency_key}",
        "MessageAttributes": {"client_reference": {"DataType": "String", "StringValue": "{client_reference}"}}
      },
      "key_max_length": 128,
      "key_lifetime": "5 minutes",
      "key_lifetime_source": "documented",
      "key_margin": "30 seconds",
      "key_replay": "current_state",
      "artifact_path": "$.MessageId",
      "claims": "KEYED",
      "example": {
        "queue_url": "https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo",
        "group": "customer-1",
        "body": "{\"order\": 1001}"
      },
      "answers": [
        {
          "statuses": [400, 403, 503],
          "body_path": "$.\"__type\" ? (@ like_regex \"Throttl\")",
          "class": "throttled",
          "because": "throttled, told in the type of the error"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "class": "accepted",
          "stored_reply": true,
          "because": "within five minutes a message with the same deduplication id is accepted and not delivered again: one message, whichever attempt made it"
        }
      ],
      "lookups": [
        {
          "kind": "replay_by_key",
          "consistency_window": "0 seconds",
          "window_source": "documented",
          "pause": "500 milliseconds",
          "max_inconclusive": 4
        }
      ]
    }
  },
  "facts": [
    {"about": "provider.late_arrival_max",
      "says": "Nothing is published; a minute is ours. It is counted against the five minutes of the key.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.sqs.message.send_fifo",
      "says": "FIFO queues only: standard queues deliver at least once and have no key. After five minutes a lost answer is for a person, or for a consumer that knows client_reference.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.key_lifetime",
      "says": "The deduplication interval is 5 minutes.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.key_replay",
      "says": "The reply to a duplicate is a success that does not tell whether it was one.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.answers.1",
      "says": "RequestThrottled and ThrottlingException are error types, not a status of their own. That nothing was executed is assumed.",
      "source": "https://github.com/boto/botocore/tree/0e6e2404b/botocore/data/sqs", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.sqs.message.send_fifo.answers.2",
      "says": "A message with a deduplication id sent successfully before is accepted but not delivered during the 5-minute interval.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.lookups.1",
      "says": "There is no query; sending the same bytes with the same id within five minutes is the question.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.lookups.1.consistency_window",
      "says": "Nothing to wait for, and no time to: the key lives five minutes.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.sqs.message.send_fifo.lookups.1.window_source",
      "says": "Follows from the documented deduplication.",
      "source": "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html", "read_on": "2026-07-01", "mark": "documented"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "square",
  "profile_version": 1,
  "title": "Square Payments API v2. The credential file holds \"Bearer <access token>\". Sandbox: https://connect.squareupsandbox.com.",
  "documentation": "https://developer.squareup.com/reference/square/payments-api/create-payment",
  "provider": {"base_url": "https://connect.squareup.com", "credential": "square"},
  "operations": {
    "square.payment.create": {
      "method": "POST",
      "path": "/v2/payments",
      "headers": {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "{credential}"},
      "body_document": {
        "idempotency_key": "{idempotency_key}",
        "reference_id": "{client_reference}",
        "source_id": "{source_id}",
        "location_id": "{location_id}",
        "amount_money": {"amount": "{amount}", "currency": "{currency}"},
        "customer_id": "{customer_id?}",
        "note": "{note?}",
        "autocomplete": "{autocomplete?}"
      },
      "reference_max_length": 40,
      "key_max_length": 45,
      "key_replay": "stored_reply",
      "artifact_path": "$.payment.id",
      "claims": "RECONCILABLE",
      "example": {
        "source_id": "cnon:card-nonce-ok",
        "location_id": "L88917AVBK2S5",
        "amount": 1099,
        "currency": "EUR"
      },
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.errors[*] ? (@.code == \"IDEMPOTENCY_KEY_REUSED\")",
          "class": "key_mismatch",
          "because": "the key was used before with other parameters"
        },
        {"statuses": [429], "class": "throttled", "because": "RATE_LIMITED"},
        {"statuses": [402], "class": "rejected", "because": "the payment method was declined"},
        {
          "statuses": [200],
          "body_path": "$.payment ? (@.status == \"COMPLETED\" || @.status == \"APPROVED\")",
          "class": "accepted",
          "because": "approved or completed"
        },
        {
          "statuses": [200],
          "body_path": "$.payment ? (@.status == \"CANCELED\" || @.status == \"FAILED\")",
          "class": "rejected",
          "because": "the payment was made and failed"
        },
        {"statuses": [200], "body_path": "$.payment", "class": "accepted_async", "because": "the payment is pending"}
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/v2/payments?begin_time={since_iso}&end_time={until_iso}&location_id={location_id}&limit=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.payments[*]",
          "reference_path": "$.reference_id",
          "artifact_path": "$.id",
          "created_path": "$.created_at",
          "paging": "cursor",
          "paging_path": "$.cursor",
          "paging_parameter": "cursor",
          "page_size": 100,
          "max_pages": 20,
          "consistency_window": "2 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "30 seconds"
        }
      ],
      "poll": {
        "path": "/v2/payments/{artifact_id}",
        "headers": {"Accept": "application/json", "Authorization": "{credential}"},
        "state_path": "$.payment.status",
        "accepted": ["COMPLETED", "APPROVED"],
        "rejected": ["CANCELED", "FAILED"],
        "pause": "5 seconds",
        "pause_max": "10 minutes"
      }
    }
  },
  "facts": [
    {"about": "operations.square.payment.create",
      "says": "POST /v2/payments/cancel by idempotency key answers success also when there was nothing, so it is no question.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.square.payment.create",
      "says": "Lifetime of the key: not stated on purpose: \"we do not publish a retention period\" (staff). Unknown counts as zero, so no lost answer is settled by the key.",
      "source": "https://developer.squareup.com/forums/t/28303", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.square.payment.create.key_replay",
      "says": "A repeated key is answered with the original reply.",
      "source": "https://developer.squareup.com/docs/working-with-apis/idempotency", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.square.payment.create.answers.1",
      "says": "IDEMPOTENCY_KEY_REUSED: the key was used with different parameters. The status 400 is assumed.",
      "source": "https://developer.squareup.com/docs/working-with-apis/idempotency", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.answers.2",
      "says": "RATE_LIMITED with status 429. That nothing was executed is assumed.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.answers.3",
      "says": "402 is a declined payment; general knowledge.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.answers.4",
      "says": "status of a Payment: APPROVED, PENDING, COMPLETED, CANCELED, FAILED.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.square.payment.create.answers.5",
      "says": "A Payment can end CANCELED or FAILED.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.square.payment.create.answers.6",
      "says": "PENDING is not final.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.square.payment.create.lookups.1",
      "says": "reference_id is returned but is no filter, so everything in the time is read. An empty list is answered without the member \"payments\", and then proves nothing: an absence is proven only where something else was paid meanwhile.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.lookups.1.consistency_window",
      "says": "\"Eventually consistent\", \"within several seconds\" without a bound. Two minutes are ours.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.square.payment.create.poll",
      "says": "A declined payment stays in the list as FAILED, so what a lookup finds is polled, not believed.",
      "source": "https://github.com/square/connect-api-specification", "read_on": "2026-07-01", "mark": "documented"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "stripe",
  "profile_version": 2,
  "title": "Stripe API v1: payment intents and refunds. Form bodies; the credential file holds \"Bearer sk_...\".",
  "documentation": "https://docs.stripe.com/api",
  "provider": {"base_url": "https://api.stripe.com", "credential": "stripe"},
  "operations": {
    "stripe.payment_intent.create": {
      "method": "POST",
      "path": "/v1/payment_intents",
      "headers": {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "Idempotency-Key": "{idempotency_key}"
      },
      "body_format": "form",
      "body_document": {
        "amount": "{amount}",
        "currency": "{currency}",
        "customer": "{customer?}",
        "description": "{description?}",
        "receipt_email": "{receipt_email?}",
        "payment_method_types": "{payment_method_types?}",
        "automatic_payment_methods": "{automatic_payment_methods?}",
        "metadata": {"client_reference": "{client_reference}"}
      },
      "key_max_length": 255,
      "key_lifetime": "24 hours",
      "key_lifetime_source": "documented",
      "key_margin": "5 minutes",
      "key_replay": "stored_reply",
      "reference_max_length": 200,
      "artifact_path": "$.id",
      "claims": "FULL",
      "example": {"amount": 1099, "currency": "eur", "description": "Order 1001", "payment_method_types": ["card"]},
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.error ? (@.type == \"idempotency_error\")",
          "class": "key_mismatch",
          "because": "the key was used before with other parameters (error type idempotency_error)"
        },
        {
          "statuses": [409],
          "class": "in_progress",
          "because": "a conflict with a request that runs at the same time is not stored; asked again with the same key"
        },
        {
          "statuses": [429],
          "body_path": "$.error ? (@.code == \"lock_timeout\")",
          "class": "in_progress",
          "because": "another request holds the object; this one may have begun"
        },
        {
          "statuses": [429],
          "class": "throttled",
          "because": "rate limits are applied before the key layer and before execution"
        },
        {
          "applies_to": "replay",
          "statuses": [500, 502, 503, 504],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "unknown",
          "because": "the stored reply is a server error; the effect is indeterminate and the stored reply will never change"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "accepted",
          "stored_reply": true,
          "because": "the stored reply of the first attempt, marked by Idempotent-Replayed"
        },
        {
          "applies_to": "replay",
          "statuses": [400, 402, 403, 404],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "rejected",
          "stored_reply": true,
          "because": "the stored refusal of the first attempt, marked by Idempotent-Replayed"
        },
        {"statuses": [402], "class": "rejected", "because": "402: the parameters were valid, the payment failed"}
      ],
      "lookups": [
        {"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "documented"},
        {
          "kind": "search",
          "path": "/v1/payment_intents/search?query=metadata%5B%27client_reference%27%5D%3A%27{client_reference}%27&limit=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.data[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "absence_proves": false,
          "paging": "cursor",
          "paging_path": "$.next_page",
          "paging_parameter": "page",
          "paging_more": "$.has_more",
          "page_size": 100,
          "consistency_window": "1 minute",
          "window_source": "documented"
        },
        {
          "kind": "list_scan",
          "path": "/v1/payment_intents?limit=100&created%5Bgte%5D={since_unix}",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.data[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "created_path": "$.created",
          "paging": "cursor",
          "paging_path": "$.data[last].id",
          "paging_parameter": "starting_after",
          "paging_more": "$.has_more",
          "page_size": 100,
          "max_pages": 50,
          "consistency_window": "10 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    },
    "stripe.payment_intent.charge": {
      "method": "POST",
      "path": "/v1/payment_intents",
      "headers": {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "Idempotency-Key": "{idempotency_key}"
      },
      "body_format": "form",
      "body_document": {
        "amount": "{amount}",
        "currency": "{currency}",
        "customer": "{customer?}",
        "payment_method": "{payment_method}",
        "description": "{description?}",
        "confirm": true,
        "off_session": true,
        "error_on_requires_action": true,
        "metadata": {"client_reference": "{client_reference}"}
      },
      "key_max_length": 255,
      "key_lifetime": "24 hours",
      "key_lifetime_source": "documented",
      "key_margin": "5 minutes",
      "key_replay": "stored_reply",
      "reference_max_length": 200,
      "artifact_path": "$.id",
      "claims": "FULL",
      "example": {
        "amount": 1099,
        "currency": "eur",
        "customer": "cus_9s6XKzkNRiz8i3",
        "payment_method": "pm_1MqLiJLkdIwHu7ix"
      },
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.error ? (@.type == \"idempotency_error\")",
          "class": "key_mismatch",
          "because": "the key was used before with other parameters (error type idempotency_error)"
        },
        {
          "statuses": [409],
          "class": "in_progress",
          "because": "a conflict with a request that runs at the same time is not stored; asked again with the same key"
        },
        {
          "statuses": [429],
          "body_path": "$.error ? (@.code == \"lock_timeout\")",
          "class": "in_progress",
          "because": "another request holds the object; this one may have begun"
        },
        {
          "statuses": [429],
          "class": "throttled",
          "because": "rate limits are applied before the key layer and before execution"
        },
        {
          "applies_to": "replay",
          "statuses": [500, 502, 503, 504],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "unknown",
          "because": "the stored reply is a server error; the effect is indeterminate and the stored reply will never change"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "body_path": "$ ? (@.status == \"succeeded\" || @.status == \"requires_capture\")",
          "class": "accepted",
          "stored_reply": true,
          "because": "the stored reply of the first attempt says that the payment succeeded"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "accepted_async",
          "stored_reply": true,
          "because": "the stored reply shows a payment under way; its present state is polled"
        },
        {
          "applies_to": "replay",
          "statuses": [400, 402, 403, 404],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "rejected",
          "stored_reply": true,
          "because": "the stored refusal of the first attempt, marked by Idempotent-Replayed"
        },
        {"statuses": [402], "class": "rejected", "because": "402: the parameters were valid, the payment failed"},
        {
          "statuses": [200],
          "body_path": "$ ? (@.status == \"succeeded\" || @.status == \"requires_capture\")",
          "class": "accepted",
          "because": "the payment succeeded, or is authorised and waits for capture"
        },
        {
          "statuses": [200],
          "class": "accepted_async",
          "because": "the payment intent exists and has no final status yet"
        }
      ],
      "lookups": [
        {"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "documented"},
        {
          "kind": "search",
          "path": "/v1/payment_intents/search?query=metadata%5B%27client_reference%27%5D%3A%27{client_reference}%27&limit=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.data[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "absence_proves": false,
          "paging": "cursor",
          "paging_path": "$.next_page",
          "paging_parameter": "page",
          "paging_more": "$.has_more",
          "page_size": 100,
          "consistency_window": "1 minute",
          "window_source": "documented"
        },
        {
          "kind": "list_scan",
          "path": "/v1/payment_intents?limit=100&created%5Bgte%5D={since_unix}",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.data[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "created_path": "$.created",
          "paging": "cursor",
          "paging_path": "$.data[last].id",
          "paging_parameter": "starting_after",
          "paging_more": "$.has_more",
          "page_size": 100,
          "max_pages": 50,
          "consistency_window": "10 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ],
      "poll": {
        "path": "/v1/payment_intents/{artifact_id}",
        "headers": {"Accept": "application/json", "Authorization": "{credential}"},
        "state_path": "$.status",
        "accepted": ["succeeded", "requires_capture"],
        "rejected": ["canceled", "requires_payment_method"],
        "artifact_path": "$.id",
        "pause": "5 seconds",
        "pause_max": "10 minutes"
      }
    },
    "stripe.refund.create": {
      "method": "POST",
      "path": "/v1/refunds",
      "headers": {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "Idempotency-Key": "{idempotency_key}"
      },
      "body_format": "form",
      "body_document": {
        "payment_intent": "{payment_intent?}",
        "charge": "{charge?}",
        "amount": "{amount?}",
        "reason": "{reason?}",
        "metadata": {"client_reference": "{client_reference}"}
      },
      "key_max_length": 255,
      "key_lifetime": "24 hours",
      "key_lifetime_source": "documented",
      "key_margin": "5 minutes",
      "key_replay": "stored_reply",
      "reference_max_length": 200,
      "artifact_path": "$.id",
      "acceptance_max_age": "30 days",
      "claims": "FULL",
      "example": {"payment_intent": "pi_3MtwBwLkdIwHu7ix28a3tqPa", "amount": 500, "reason": "requested_by_customer"},
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.error ? (@.type == \"idempotency_error\")",
          "class": "key_mismatch",
          "because": "the key was used before with other parameters (error type idempotency_error)"
        },
        {
          "statuses": [409],
          "class": "in_progress",
          "because": "a conflict with a request that runs at the same time is not stored; asked again with the same key"
        },
        {
          "statuses": [429],
          "body_path": "$.error ? (@.code == \"lock_timeout\")",
          "class": "in_progress",
          "because": "another request holds the object; this one may have begun"
        },
        {
          "statuses": [429],
          "class": "throttled",
          "because": "rate limits are applied before the key layer and before execution"
        },
        {
          "applies_to": "replay",
          "statuses": [500, 502, 503, 504],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "unknown",
          "because": "the stored reply is a server error; the effect is indeterminate and the stored reply will never change"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "body_path": "$ ? (@.status == \"succeeded\")",
          "class": "accepted",
          "stored_reply": true,
          "because": "the stored reply of the first attempt says that the refund succeeded"
        },
        {
          "applies_to": "replay",
          "statuses": [200],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "accepted_async",
          "stored_reply": true,
          "because": "the stored reply shows a refund under way; its present state is polled"
        },
        {
          "applies_to": "replay",
          "statuses": [400, 402, 403, 404],
          "header_name": "idempotent-replayed",
          "header_value": "true",
          "class": "rejected",
          "stored_reply": true,
          "because": "the stored refusal of the first attempt, marked by Idempotent-Replayed"
        },
        {"statuses": [402], "class": "rejected", "because": "402: the parameters were valid, the payment failed"},
        {
          "statuses": [200],
          "body_path": "$ ? (@.status == \"succeeded\")",
          "class": "accepted",
          "because": "the refund succeeded"
        },
        {
          "statuses": [200],
          "body_path": "$ ? (@.status == \"failed\" || @.status == \"canceled\")",
          "class": "rejected",
          "because": "the refund failed or was cancelled"
        },
        {"statuses": [200], "class": "accepted_async", "because": "the refund is pending"}
      ],
      "lookups": [
        {"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "documented"},
        {
          "kind": "list_scan",
          "path": "/v1/refunds?limit=100&created%5Bgte%5D={since_unix}",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.data[*]",
          "reference_path": "$.metadata.client_reference",
          "artifact_path": "$.id",
          "created_path": "$.created",
          "paging": "cursor",
          "paging_path": "$.data[last].id",
          "paging_parameter": "starting_after",
          "paging_more": "$.has_more",
          "page_size": 100,
          "max_pages": 50,
          "consistency_window": "10 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ],
      "poll": {
        "path": "/v1/refunds/{artifact_id}",
        "headers": {"Accept": "application/json", "Authorization": "{credential}"},
        "state_path": "$.status",
        "accepted": ["succeeded"],
        "rejected": ["failed", "canceled"],
        "artifact_path": "$.id",
        "pause": "1 minute",
        "pause_max": "6 hours"
      }
    }
  },
  "events": {
    "scheme": "stripe",
    "secret": "stripe_webhook",
    "mode_path": "$.livemode",
    "mode": "true",
    "rules": [
      {
        "condition": "$ ? (@.type == \"payment_intent.succeeded\" || @.type == \"payment_intent.amount_capturable_updated\")",
        "says": "accepted",
        "reference_path": "$.data.object.metadata.client_reference",
        "artifact_path": "$.data.object.id",
        "occurred_path": "$.created",
        "because": "the payment succeeded, or is authorised and waits for capture"
      },
      {
        "condition": "$ ? (@.type == \"payment_intent.created\" || @.type == \"refund.created\")",
        "says": "executed",
        "reference_path": "$.data.object.metadata.client_reference",
        "artifact_path": "$.data.object.id",
        "occurred_path": "$.created",
        "because": "it is there; what becomes of it is told later, or asked"
      },
      {
        "condition": "$ ? (@.type == \"refund.updated\" && @.data.object.status == \"succeeded\")",
        "says": "accepted",
        "reference_path": "$.data.object.metadata.client_reference",
        "artifact_path": "$.data.object.id",
        "occurred_path": "$.created",
        "because": "the refund succeeded"
      },
      {
        "condition": "$ ? (@.type == \"refund.failed\" || (@.type == \"refund.updated\" && (@.data.object.status == \"failed\" || @.data.object.status == \"canceled\")))",
        "says": "rejected",
        "reference_path": "$.data.object.metadata.client_reference",
        "artifact_path": "$.data.object.id",
        "occurred_path": "$.created",
        "because": "the refund failed or was cancelled"
      }
    ]
  },
  "facts": [
    {"about": "events.scheme",
      "says": "Stripe-Signature holds t=, the time, and v1=, the HMAC-SHA256 of time, a full stop and the raw body with the endpoint's secret; while a secret is rolled, one for each.",
      "source": "https://docs.stripe.com/webhooks/signatures", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "events.mode_path",
      "says": "livemode: true if the object exists in live mode, false in test mode. With a test key, adopt the profile with {\"events\": {\"mode\": \"false\"}}.",
      "source": "https://docs.stripe.com/api/events/object", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.1",
      "says": "payment_intent.succeeded: a PaymentIntent has successfully completed payment; amount_capturable_updated: it has funds to be captured. created is when the event was made, in seconds. A failed payment is left to the poll: for an intent that is only to be created it is no refusal.",
      "source": "https://docs.stripe.com/api/events/types", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.2",
      "says": "payment_intent.created: a new PaymentIntent is created; refund.created: a refund of any type is.",
      "source": "https://docs.stripe.com/changelog/acacia/2024-10-28/refund-webhook-update", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.3",
      "says": "refund.updated applies to all types of refunds since 2024-10-28; the event holds the refund with its status.",
      "source": "https://docs.stripe.com/changelog/acacia/2024-10-28/refund-webhook-update", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "events.rules.4",
      "says": "refund.failed applies to all types of refunds since 2024-10-28.",
      "source": "https://docs.stripe.com/changelog/acacia/2024-10-28/refund-webhook-update", "read_on": "2026-08-10", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create",
      "says": "Creates without confirming, so that an object found by a lookup is the whole effect. A lost answer is settled by the key for 24 hours, by search and by the list for ever: the reference is in metadata.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.key_lifetime",
      "says": "\"Keys can be removed once they are at least 24 hours old\"; a pruned key makes a new request.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.key_replay",
      "says": "The first status code and body are saved, 500 included, and returned to every request with the key, with Idempotent-Replayed: true.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.answers.1",
      "says": "The layer compares incoming parameters with those of the first request and answers an error of type idempotency_error when they differ. The status 400 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.create.answers.2",
      "says": "A request that conflicts with another one that executes at the same time is not saved and can be retried. The status 409 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.create.answers.3",
      "says": "lock_timeout is answered 429 by a request that waited for an object. Whether endpoint execution had begun is not said, so it is not read as throttled.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.create.answers.4",
      "says": "429 comes from a layer before the key layer; nothing was executed.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.answers.5",
      "says": "Stored results include 500 errors. \"Treat the result of a 500 request as indeterminate\": it may be rolled forward later while the stored reply stays.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.answers.6",
      "says": "A stored reply carries Idempotent-Replayed: true, so it speaks for the first attempt.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.answers.7",
      "says": "Errors after the start of execution are stored and returned like successes.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.answers.8",
      "says": "402 Request Failed: the parameters were valid but the request failed (a declined card).",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.create.lookups.1",
      "says": "Sent again with the same key, the stored status and body come back; a request still under way answers a conflict that is not stored.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.1.consistency_window",
      "says": "The key store answers for itself; a first request still running is told by the conflict, so nothing has to be waited for.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.1.window_source",
      "says": "Follows from the documented replay.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.2",
      "says": "Search finds by metadata. It must not be used for read-after-write flows, so its \"nothing\" only leads to the next rule.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.2.consistency_window",
      "says": "\"Less than one minute\" under normal conditions, without bound during an outage.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.2.window_source",
      "says": "The minute is published; because it has no bound in an outage, absence proves nothing here.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.3",
      "says": "Lists are not subject to the indexing delay of search; created[gte] and starting_after page through everything since the first dispatch.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.create.lookups.3.consistency_window",
      "says": "No number is published for lists. Ten minutes because a request answered 500 may be rolled forward later; this is reached only after key and search have told nothing.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.create.lookups.3.window_source",
      "says": "Our own figure.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge",
      "says": "Creates and confirms in one call. A declined payment leaves an object with our reference behind, so what a lookup finds is polled, not believed. A lost answer is settled by the key for 24 hours, by search and by the list for ever: the reference is in metadata.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.key_lifetime",
      "says": "\"Keys can be removed once they are at least 24 hours old\"; a pruned key makes a new request.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.key_replay",
      "says": "The first status code and body are saved, 500 included, and returned to every request with the key, with Idempotent-Replayed: true.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.1",
      "says": "The layer compares incoming parameters with those of the first request and answers an error of type idempotency_error when they differ. The status 400 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.answers.2",
      "says": "A request that conflicts with another one that executes at the same time is not saved and can be retried. The status 409 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.answers.3",
      "says": "lock_timeout is answered 429 by a request that waited for an object. Whether endpoint execution had begun is not said, so it is not read as throttled.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.answers.4",
      "says": "429 comes from a layer before the key layer; nothing was executed.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.5",
      "says": "Stored results include 500 errors. \"Treat the result of a 500 request as indeterminate\": it may be rolled forward later while the stored reply stays.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.6",
      "says": "A stored reply carries Idempotent-Replayed: true.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.7",
      "says": "A stored reply is a snapshot of the first answer, so the status in it may be old.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.8",
      "says": "Errors after the start of execution are stored and returned like successes.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.answers.9",
      "says": "402 Request Failed: the parameters were valid but the request failed (a declined card).",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.answers.10",
      "says": "status of a PaymentIntent: succeeded, or requires_capture when capture is manual.",
      "source": "https://docs.stripe.com/payments/paymentintents/lifecycle", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.answers.11",
      "says": "processing, requires_action and the others are not final.",
      "source": "https://docs.stripe.com/payments/paymentintents/lifecycle", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.lookups.1",
      "says": "Sent again with the same key, the stored status and body come back; a request still under way answers a conflict that is not stored.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.1.consistency_window",
      "says": "The key store answers for itself; a first request still running is told by the conflict, so nothing has to be waited for.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.1.window_source",
      "says": "Follows from the documented replay.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.2",
      "says": "Search finds by metadata. It must not be used for read-after-write flows, so its \"nothing\" only leads to the next rule.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.2.consistency_window",
      "says": "\"Less than one minute\" under normal conditions, without bound during an outage.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.2.window_source",
      "says": "The minute is published; because it has no bound in an outage, absence proves nothing here.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.3",
      "says": "Lists are not subject to the indexing delay of search; created[gte] and starting_after page through everything since the first dispatch.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.payment_intent.charge.lookups.3.consistency_window",
      "says": "No number is published for lists. Ten minutes because a request answered 500 may be rolled forward later; this is reached only after key and search have told nothing.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.lookups.3.window_source",
      "says": "Our own figure.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.payment_intent.charge.poll",
      "says": "The list of states is general knowledge: requires_payment_method after a confirmation means that the payment failed.",
      "source": "https://docs.stripe.com/payments/paymentintents/lifecycle", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create",
      "says": "Names payment_intent or charge, exactly one of them. A lost answer is settled by the key for 24 hours, by search and by the list for ever: the reference is in metadata.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.key_lifetime",
      "says": "\"Keys can be removed once they are at least 24 hours old\"; a pruned key makes a new request.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.key_replay",
      "says": "The first status code and body are saved, 500 included, and returned to every request with the key, with Idempotent-Replayed: true.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.1",
      "says": "The layer compares incoming parameters with those of the first request and answers an error of type idempotency_error when they differ. The status 400 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.2",
      "says": "A request that conflicts with another one that executes at the same time is not saved and can be retried. The status 409 is general knowledge.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.3",
      "says": "lock_timeout is answered 429 by a request that waited for an object. Whether endpoint execution had begun is not said, so it is not read as throttled.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.4",
      "says": "429 comes from a layer before the key layer; nothing was executed.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.5",
      "says": "Stored results include 500 errors. \"Treat the result of a 500 request as indeterminate\": it may be rolled forward later while the stored reply stays.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.6",
      "says": "A stored reply carries Idempotent-Replayed: true.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.7",
      "says": "A stored reply is a snapshot of the first answer, so the status in it may be old.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.8",
      "says": "Errors after the start of execution are stored and returned like successes.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.answers.9",
      "says": "402 Request Failed: the parameters were valid but the request failed (a declined card).",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.10",
      "says": "status of a refund: pending, requires_action, succeeded, failed, canceled.",
      "source": "https://docs.stripe.com/api/refunds/object", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.11",
      "says": "failed and canceled are final.",
      "source": "https://docs.stripe.com/api/refunds/object", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.answers.12",
      "says": "pending and requires_action are not final.",
      "source": "https://docs.stripe.com/api/refunds/object", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.lookups.1",
      "says": "Sent again with the same key, the stored status and body come back; a request still under way answers a conflict that is not stored.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.lookups.1.consistency_window",
      "says": "The key store answers for itself; a first request still running is told by the conflict, so nothing has to be waited for.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.lookups.1.window_source",
      "says": "Follows from the documented replay.",
      "source": "https://docs.stripe.com/api/idempotent_requests", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.lookups.2",
      "says": "Refunds have no search; the list is not subject to an indexing delay and is filtered by creation time.",
      "source": "https://docs.stripe.com/search", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.stripe.refund.create.lookups.2.consistency_window",
      "says": "No number is published for lists. Ten minutes because a request answered 500 may be rolled forward later.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.lookups.2.window_source",
      "says": "Our own figure.",
      "source": "https://docs.stripe.com/error-low-level", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.stripe.refund.create.poll",
      "says": "A refund can stay pending for days at some payment methods. The list of states is general knowledge.",
      "source": "https://docs.stripe.com/api/refunds/object", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "twilio",
  "profile_version": 1,
  "title": "Twilio Programmable Messaging. The credential file holds \"Basic <base64 of key:secret>\".",
  "documentation": "https://www.twilio.com/docs/messaging/api/message-resource",
  "provider": {"base_url": "https://api.twilio.com", "credential": "twilio"},
  "operations": {
    "twilio.message.create": {
      "method": "POST",
      "path": "/2010-04-01/Accounts/{account}/Messages.json",
      "headers": {
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
        "Authorization": "{credential}"
      },
      "body_format": "form",
      "body_document": {"To": "{to}", "From": "{from}", "Body": "{body}", "StatusCallback": "{status_callback?}"},
      "artifact_path": "$.sid",
      "acceptance_max_age": "2 days",
      "claims": "PARTIAL",
      "example": {
        "account": "AC00000000000000000000000000000000",
        "to": "+4915112345678",
        "from": "+15005550006",
        "body": "Your order is on its way."
      },
      "answers": [
        {"statuses": [429], "class": "throttled", "because": "rate limit"},
        {"statuses": [201], "class": "accepted_async", "because": "queued; the status tells whether it was sent"}
      ],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/2010-04-01/Accounts/{account}/Messages.json?To={to}&From={from}&PageSize=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.messages[*]",
          "match_values": {"$.to": "{to}", "$.from": "{from}", "$.body": "{body}"},
          "created_path": "$.date_created",
          "artifact_path": "$.sid",
          "absence_proves": false,
          "paging": "next_url",
          "paging_path": "$.next_page_uri",
          "page_size": 100,
          "max_pages": 3,
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "canary": "none"
        }
      ],
      "poll": {
        "path": "/2010-04-01/Accounts/{account}/Messages/{artifact_id}.json",
        "headers": {"Accept": "application/json", "Authorization": "{credential}"},
        "state_path": "$.status",
        "accepted": ["sent", "delivered", "read"],
        "rejected": ["failed", "undelivered", "canceled"],
        "pause": "5 seconds",
        "pause_max": "10 minutes"
      }
    }
  },
  "facts": [
    {"about": "operations.twilio.message.create",
      "says": "No key on Messages: a second request is a second SMS and a second charge. A status_callback address that carries a token of your own lets confirm() settle a lost answer.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/twilio.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.twilio.message.create.answers.1",
      "says": "429 is the rate limit. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/twilio.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.twilio.message.create.answers.2",
      "says": "201, then accepted, scheduled, queued, sending, sent, delivered, undelivered, failed, canceled.",
      "source": "https://github.com/twilio/twilio-oai", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.twilio.message.create.lookups.1",
      "says": "There is no field for a reference: number, sender and text are compared. Texts repeat and are rewritten by the provider, so a match is a candidate for a person and a miss proves nothing.",
      "source": "https://github.com/twilio/twilio-oai", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.twilio.message.create.lookups.1.consistency_window",
      "says": "Nothing is published about lag. Five minutes are ours.",
      "source": "https://github.com/twilio/twilio-oai", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.twilio.message.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/twilio/twilio-oai", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.twilio.message.create.poll",
      "says": "The states are documented; that \"sent\" (handed to the carrier) counts as carried out is our choice.",
      "source": "https://github.com/twilio/twilio-oai", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "wise",
  "profile_version": 1,
  "title": "Wise Platform API: creating (not funding) a transfer. The credential file holds \"Bearer <token>\". Sandbox: https://api.sandbox.transferwise.tech.",
  "documentation": "https://docs.wise.com/api-reference/transfer",
  "provider": {"base_url": "https://api.wise.com", "credential": "wise"},
  "operations": {
    "wise.transfer.create": {
      "method": "POST",
      "path": "/v1/transfers",
      "headers": {"Content-Type": "application/json", "Accept": "application/json", "Authorization": "{credential}"},
      "body_document": {
        "targetAccount": "{target_account}",
        "quoteUuid": "{quote}",
        "customerTransactionId": "{client_reference}",
        "details": {
          "reference": "{payment_reference?}",
          "transferPurpose": "{purpose?}",
          "sourceOfFunds": "{source_of_funds?}"
        }
      },
      "reference_max_length": 36,
      "artifact_path": "$.id",
      "claims": "RECONCILABLE",
      "example": {
        "profile": 16557939,
        "target_account": 15574445,
        "quote": "bbe5d21b-4ab4-4f0a-b4ac-ad8c1f6b7b8e",
        "payment_reference": "Invoice 1001"
      },
      "answers": [{"statuses": [429], "class": "throttled", "because": "rate limit"}],
      "lookups": [
        {
          "kind": "list_scan",
          "path": "/v1/transfers?profile={profile}&createdDateStart={since_iso}&createdDateEnd={until_iso}&limit=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$[*]",
          "reference_path": "$.customerTransactionId",
          "artifact_path": "$.id",
          "paging": "offset",
          "paging_parameter": "offset",
          "page_size": 100,
          "max_pages": 20,
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.wise.transfer.create",
      "says": "customerTransactionId must be a UUID: leave the client reference to the extension. A quote serves one transfer only, which removes duplicates too. \"profile\" is in the payload for the lookup.",
      "source": "https://docs.wise.com/api-reference/standard-transfer", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.wise.transfer.create",
      "says": "No lifetime is stated: a \"repeat message\" with the same customerTransactionId makes no second transfer, for an unpublished time. Unknown counts as zero.",
      "source": "https://docs.wise.com/api-reference/standard-transfer", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.wise.transfer.create.answers.1",
      "says": "429 as the rate limit is general knowledge; that nothing was executed is assumed.",
      "source": "https://docs.wise.com/api-reference/standard-transfer", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.wise.transfer.create.lookups.1",
      "says": "Transfers are listed by profile and time of creation and show customerTransactionId (pages of 2020).",
      "source": "https://github.com/transferwise/api-docs", "read_on": "2026-07-01", "mark": "documented"},
    {"about": "operations.wise.transfer.create.lookups.1.consistency_window",
      "says": "Nothing is published about lag. Five minutes are ours.",
      "source": "https://github.com/transferwise/api-docs", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.wise.transfer.create.lookups.1.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/transferwise/api-docs", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
INSERT INTO reconcile.profile_catalog (document) VALUES ($profile$
{
  "profile": "zendesk",
  "profile_version": 1,
  "title": "Zendesk Support API v2: tickets. Set base_url to your subdomain; the credential file holds \"Basic <base64 of email/token:API token>\" or \"Bearer <token>\". API tokens end on 2027-04-30.",
  "documentation": "https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/",
  "provider": {"base_url": "https://zendesk.invalid", "credential": "zendesk"},
  "operations": {
    "zendesk.ticket.create": {
      "method": "POST",
      "path": "/api/v2/tickets",
      "headers": {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Authorization": "{credential}",
        "Idempotency-Key": "{idempotency_key}"
      },
      "body_document": {
        "ticket": {
          "external_id": "{client_reference}",
          "subject": "{subject}",
          "comment": {"body": "{text}"},
          "requester": "{requester?}",
          "priority": "{priority?}",
          "tags": "{tags?}"
        }
      },
      "key_max_length": 255,
      "key_lifetime": "2 hours",
      "key_lifetime_source": "assumed",
      "key_margin": "5 minutes",
      "key_replay": "stored_reply",
      "artifact_path": "$.ticket.id",
      "claims": "FULL",
      "example": {"subject": "Printer on fire", "text": "It smokes.", "priority": "urgent"},
      "answers": [
        {
          "statuses": [400],
          "body_path": "$.** ? (@ == \"IdempotentRequestError\")",
          "class": "key_mismatch",
          "because": "the key was used with other parameters"
        },
        {
          "applies_to": "replay",
          "statuses": [201],
          "header_name": "x-idempotency-lookup",
          "header_value": "hit",
          "class": "accepted",
          "stored_reply": true,
          "because": "x-idempotency-lookup: hit: the reply to the first request"
        },
        {"statuses": [409], "class": "in_progress", "because": "a request with this key runs"},
        {"statuses": [429], "class": "throttled", "because": "rate limit, with Retry-After"},
        {
          "statuses": [503],
          "class": "unknown",
          "because": "503 with Retry-After is a database timeout or deadlock, not a refusal"
        }
      ],
      "lookups": [
        {"kind": "replay_by_key", "consistency_window": "0 seconds", "window_source": "assumed"},
        {
          "kind": "list_by_reference",
          "path": "/api/v2/tickets?external_id={client_reference}&page%5Bsize%5D=100",
          "headers": {"Accept": "application/json", "Authorization": "{credential}"},
          "items_path": "$.tickets[*]",
          "reference_path": "$.external_id",
          "artifact_path": "$.id",
          "created_path": "$.created_at",
          "paging": "next_url",
          "paging_path": "$.links.next",
          "paging_more": "$.meta.has_more",
          "page_size": 100,
          "consistency_window": "5 minutes",
          "window_source": "assumed",
          "min_negatives": 2,
          "negative_spacing": "1 minute"
        }
      ]
    }
  },
  "facts": [
    {"about": "operations.zendesk.ticket.create",
      "says": "The key is described in prose only, not in the OpenAPI file.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.key_lifetime",
      "says": "2 hours, for creating tickets only, in a quotation of the page.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.key_lifetime_source",
      "says": "Read second-hand only.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.key_replay",
      "says": "The same reply, marked by x-idempotency-lookup: hit.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.answers.1",
      "says": "400 IdempotentRequestError when the parameters differ. Where the name stands in the body is searched for.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.answers.2",
      "says": "The same reply with x-idempotency-lookup: hit.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.answers.3",
      "says": "Seen in a third-party imitation only.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.answers.4",
      "says": "429 with Retry-After. That nothing was executed is assumed.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.answers.5",
      "says": "503 with Retry-After: \"a database timeout or deadlock\".",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.lookups.1",
      "says": "The same key with the same parameters gets the same reply.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.lookups.1.consistency_window",
      "says": "The key store answers for itself; what a running first request is answered is not documented, so an unclear answer is asked again.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.lookups.1.window_source",
      "says": "Read in a quotation.",
      "source": "https://github.com/donatlabs/donat/blob/b1c2310/crates/connectors/src/providers/zendesk.rs", "read_on": "2026-08-10", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.lookups.2",
      "says": "The list filtered by external_id, which is not unique. Search lags a minute, up to ten by staff, so it is not used.",
      "source": "https://github.com/zendesk/zendesk_api_client_rb/issues/80", "read_on": "2026-07-01", "mark": "reported"},
    {"about": "operations.zendesk.ticket.create.lookups.2.consistency_window",
      "says": "Nothing is published for the list. Five minutes are ours.",
      "source": "https://github.com/zendesk/zendesk_api_client_rb/issues/80", "read_on": "2026-07-01", "mark": "assumed"},
    {"about": "operations.zendesk.ticket.create.lookups.2.window_source",
      "says": "Our own figure; nothing is published.",
      "source": "https://github.com/zendesk/zendesk_api_client_rb/issues/80", "read_on": "2026-07-01", "mark": "assumed"}
  ]
}
$profile$);
