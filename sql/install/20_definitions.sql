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
	max_rate numeric,
	ambiguity_budget integer,
	max_lookups_in_flight integer NOT NULL DEFAULT 16,
	max_lookup_rate numeric,
	breaker_after integer DEFAULT 10,
	breaker_pause interval NOT NULL DEFAULT '5 seconds',
	breaker_pause_max interval NOT NULL DEFAULT '5 minutes',
	paused_by text,
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
	CONSTRAINT provider_profile CHECK ((profile IS NULL) = (profile_version IS NULL)),
	CONSTRAINT provider_max_rate CHECK (max_rate BETWEEN 0.0001 AND 10000),
	CONSTRAINT provider_ambiguity_budget CHECK (ambiguity_budget BETWEEN 1 AND 1000000),
	CONSTRAINT provider_max_lookups_in_flight CHECK (max_lookups_in_flight BETWEEN 1 AND 1000),
	CONSTRAINT provider_max_lookup_rate CHECK (max_lookup_rate BETWEEN 0.0001 AND 10000),
	CONSTRAINT provider_breaker_after CHECK (breaker_after BETWEEN 1 AND 1000000),
	CONSTRAINT provider_breaker_pause CHECK (extract(epoch FROM breaker_pause) >= 0.001 AND extract(epoch FROM breaker_pause) <= extract(epoch FROM breaker_pause_max)
		AND extract(epoch FROM breaker_pause_max) <= 86400)
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
COMMENT ON COLUMN reconcile.provider.max_rate IS
	'Attempts that may start in a second, per database; NULL is no limit. What was not used in a tenth of a second is not made up for.';
COMMENT ON COLUMN reconcile.provider.ambiguity_budget IS
	'Nothing new is sent while so many actions of the provider are outcome_unknown, reconciling, in manual_review or being sent; NULL is no limit.';
COMMENT ON COLUMN reconcile.provider.max_lookups_in_flight IS 'Lookups and polls open at the same time, per database; they have no share in max_in_flight.';
COMMENT ON COLUMN reconcile.provider.max_lookup_rate IS 'Lookups and polls that may start in a second, per database; NULL is no limit.';
COMMENT ON COLUMN reconcile.provider.breaker_after IS
	'After so many failures in a row to reach the provider nothing is sent to it for breaker_pause, then one attempt as a probe; NULL: never.';
COMMENT ON COLUMN reconcile.provider.breaker_pause IS 'Pause when the breaker opens; doubles with each probe that fails, up to breaker_pause_max.';
COMMENT ON COLUMN reconcile.provider.connect_timeout IS 'Limit for resolving, connecting and TLS. Running into it proves that nothing was sent.';
COMMENT ON COLUMN reconcile.provider.attempt_timeout IS 'Limit for a whole attempt, from its start. Running into it after the first byte leaves the outcome unknown.';
COMMENT ON COLUMN reconcile.provider.max_response_bytes IS 'An answer is cut there; a cut answer is no complete answer.';
COMMENT ON COLUMN reconcile.provider.allow_http IS 'Allow unencrypted http.';
COMMENT ON COLUMN reconcile.provider.allow_private_addresses IS 'Allow loopback, private and link-local addresses, tested on the resolved address at connect time.';
COMMENT ON COLUMN reconcile.provider.ca_file IS 'File with the trusted certificates; NULL is the system''s bundle.';
COMMENT ON COLUMN reconcile.provider.paused_at IS 'When sending to the provider was paused; NULL if it is not. See pause() and resume().';
COMMENT ON COLUMN reconcile.provider.paused_by IS 'By whom; engine: the provider has refused our credential.';

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
