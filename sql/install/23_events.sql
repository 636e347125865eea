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
