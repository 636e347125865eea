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
	CONSTRAINT provider_name CHECK (provider ~ '^[a-z][a-z0-9_.-]{0,62}$'),
	CONSTRAINT provider_base_url CHECK (base_url ~ '^https?://[^/?#@[:space:][:cntrl:]]+(/[^?#[:space:][:cntrl:]]*[^/?#[:space:][:cntrl:]])?$'),
	CONSTRAINT provider_https CHECK (allow_http OR base_url LIKE 'https://%'),
	CONSTRAINT provider_window CHECK (extract(epoch FROM consistency_window) BETWEEN 0 AND 5184000),
	CONSTRAINT provider_late_arrival CHECK (extract(epoch FROM late_arrival_max) BETWEEN 0 AND 604800),
	CONSTRAINT provider_max_in_flight CHECK (max_in_flight BETWEEN 1 AND 1000),
	CONSTRAINT provider_connect_timeout CHECK (extract(epoch FROM connect_timeout) BETWEEN 0.01 AND 300),
	CONSTRAINT provider_attempt_timeout CHECK (extract(epoch FROM attempt_timeout) BETWEEN 0.01 AND 3600),
	CONSTRAINT provider_max_response_bytes CHECK (max_response_bytes BETWEEN 1024 AND 67108864),
	CONSTRAINT provider_paused CHECK ((paused_at IS NULL) = (paused_reason IS NULL))
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

CREATE TABLE reconcile.operation (
	operation text COLLATE "C" PRIMARY KEY,
	version integer NOT NULL DEFAULT 1,
	provider text COLLATE "C" NOT NULL REFERENCES reconcile.provider,
	method text NOT NULL DEFAULT 'POST',
	path text NOT NULL,
	headers jsonb NOT NULL DEFAULT '{"Content-Type": "application/json"}',
	body_template text,
	reference_body_path text[],
	reference_is_global boolean NOT NULL DEFAULT false,
	artifact_path jsonpath,
	artifact_header text,
	on_absent text NOT NULL DEFAULT 'hold',
	max_replacements integer NOT NULL DEFAULT 3,
	retry_pause interval NOT NULL DEFAULT '1 second',
	retry_pause_max interval NOT NULL DEFAULT '1 minute',
	retry_after_max interval NOT NULL DEFAULT '10 minutes',
	CONSTRAINT operation_name CHECK (operation ~ '^[a-z][a-z0-9_.-]{0,62}$'),
	CONSTRAINT operation_method CHECK (method IN ('POST', 'PUT', 'PATCH', 'DELETE')),
	CONSTRAINT operation_path CHECK (path ~ '^/[^#[:space:][:cntrl:]]*$'),
	CONSTRAINT operation_headers CHECK (jsonb_typeof(headers) = 'object'),
	CONSTRAINT operation_one_body CHECK (body_template IS NULL OR reference_body_path IS NULL),
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
	class reconcile.answer_class NOT NULL,
	because text NOT NULL,
	PRIMARY KEY (operation, position),
	CONSTRAINT response_rule_position CHECK (position BETWEEN 1 AND 1000),
	CONSTRAINT response_rule_statuses CHECK (cardinality(statuses) > 0 AND 200 <= ALL (statuses) AND 599 >= ALL (statuses)),
	CONSTRAINT response_rule_header CHECK ((header_name IS NULL) = (header_value IS NULL)),
	CONSTRAINT response_rule_header_name CHECK (header_name IN ('content-type', 'location', 'retry-after', 'etag', 'date', 'link',
		'idempotent-replayed', 'x-request-id', 'request-id', 'x-message-id')),
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
COMMENT ON COLUMN reconcile.response_rule.because IS 'How this is known: what the provider documents, or what was observed.';

CREATE TABLE reconcile.lookup_rule (
	operation text COLLATE "C" NOT NULL REFERENCES reconcile.operation,
	position integer NOT NULL DEFAULT 1,
	kind text NOT NULL,
	path text NOT NULL,
	headers jsonb NOT NULL DEFAULT '{"Accept": "application/json"}',
	found_statuses integer[] NOT NULL DEFAULT '{200}',
	absent_statuses integer[] NOT NULL DEFAULT '{}',
	items_path jsonpath,
	reference_path jsonpath,
	body_match text,
	artifact_path jsonpath,
	artifact_header text,
	consistency_window interval,
	window_source reconcile.window_source,
	min_negatives integer NOT NULL DEFAULT 1,
	negative_spacing interval NOT NULL DEFAULT '5 seconds',
	pause interval NOT NULL DEFAULT '1 second',
	pause_max interval NOT NULL DEFAULT '1 minute',
	max_inconclusive integer NOT NULL DEFAULT 8,
	timeout interval NOT NULL DEFAULT '10 seconds',
	PRIMARY KEY (operation, position),
	CONSTRAINT lookup_rule_single CHECK (position = 1),
	CONSTRAINT lookup_rule_kind CHECK (kind IN ('get_by_reference', 'list_by_reference')),
	CONSTRAINT lookup_rule_path CHECK (path ~ '^/[^#[:space:][:cntrl:]]*$'),
	CONSTRAINT lookup_rule_asks_by_reference CHECK (position('{client_reference}' in path) > 0),
	CONSTRAINT lookup_rule_headers CHECK (jsonb_typeof(headers) = 'object'),
	CONSTRAINT lookup_rule_list CHECK (kind <> 'list_by_reference' OR (items_path IS NOT NULL AND reference_path IS NOT NULL AND body_match IS NULL)),
	CONSTRAINT lookup_rule_get CHECK (kind <> 'get_by_reference' OR (items_path IS NULL AND (reference_path IS NULL) <> (body_match IS NULL) AND cardinality(absent_statuses) > 0)),
	CONSTRAINT lookup_rule_body_match CHECK (position('{client_reference}' in body_match) > 0),
	CONSTRAINT lookup_rule_statuses CHECK (NOT found_statuses && absent_statuses AND cardinality(found_statuses) > 0),
	CONSTRAINT lookup_rule_one_artifact CHECK (artifact_path IS NULL OR artifact_header IS NULL),
	CONSTRAINT lookup_rule_window CHECK (extract(epoch FROM consistency_window) BETWEEN 0 AND 5184000),
	CONSTRAINT lookup_rule_window_source CHECK ((consistency_window IS NULL) = (window_source IS NULL)),
	CONSTRAINT lookup_rule_min_negatives CHECK (min_negatives BETWEEN 1 AND 20),
	CONSTRAINT lookup_rule_spacing CHECK (extract(epoch FROM negative_spacing) BETWEEN 0 AND 604800),
	CONSTRAINT lookup_rule_pause CHECK (extract(epoch FROM pause) >= 0.001 AND extract(epoch FROM pause) <= extract(epoch FROM pause_max)
		AND extract(epoch FROM pause_max) <= 604800),
	CONSTRAINT lookup_rule_max_inconclusive CHECK (max_inconclusive BETWEEN 1 AND 1000),
	CONSTRAINT lookup_rule_timeout CHECK (extract(epoch FROM timeout) BETWEEN 0.01 AND 600)
);
COMMENT ON TABLE reconcile.lookup_rule IS 'How the provider is asked about an action whose outcome is unknown. An operation without a rule goes to manual_review at once.';
COMMENT ON COLUMN reconcile.lookup_rule.kind IS 'get_by_reference: the path names the object; list_by_reference: a list filtered by the reference.';
COMMENT ON COLUMN reconcile.lookup_rule.path IS 'Template under the provider''s base_url; must hold {client_reference}.';
COMMENT ON COLUMN reconcile.lookup_rule.found_statuses IS 'Statuses whose body is searched for the reference.';
COMMENT ON COLUMN reconcile.lookup_rule.absent_statuses IS 'Statuses that by themselves mean "not there", such as 404; only where the provider cannot mean "not allowed" by them.';
COMMENT ON COLUMN reconcile.lookup_rule.items_path IS 'The objects in the JSON answer of a list. An answer without the list is inconclusive.';
COMMENT ON COLUMN reconcile.lookup_rule.reference_path IS 'The client reference inside an object; must equal ours, character for character.';
COMMENT ON COLUMN reconcile.lookup_rule.body_match IS 'For bodies that are not JSON: text that must occur, holding {client_reference}.';
COMMENT ON COLUMN reconcile.lookup_rule.consistency_window IS 'The window of this lookup, where it differs from the provider''s.';
COMMENT ON COLUMN reconcile.lookup_rule.min_negatives IS 'Negatives required at least; an assumed window needs two, and one more is asked while no known object proves the surface to work.';
COMMENT ON COLUMN reconcile.lookup_rule.negative_spacing IS 'Pause between two required negatives.';
COMMENT ON COLUMN reconcile.lookup_rule.pause IS 'Pause after an answer that proves nothing; doubles up to pause_max.';
COMMENT ON COLUMN reconcile.lookup_rule.max_inconclusive IS 'So many answers that prove nothing lead to manual_review.';
COMMENT ON COLUMN reconcile.lookup_rule.timeout IS 'Limit for one question.';
