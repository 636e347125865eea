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

