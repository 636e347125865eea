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
