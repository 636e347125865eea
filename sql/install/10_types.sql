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

