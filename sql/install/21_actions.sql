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
-- What somebody needs who is not over.
CREATE INDEX action_needing ON reconcile.action (action_id) WHERE depends_on IS NOT NULL
	AND state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered', 'safe_to_retry');
CREATE INDEX action_dependent ON reconcile.action (action_id) WHERE state = 'planned' AND waits AND depends_on IS NOT NULL;
-- What waits for a person.
CREATE INDEX action_for_people ON reconcile.action (provider, action_id) WHERE state = 'manual_review' OR held;
CREATE INDEX action_expiry ON reconcile.action (not_after) WHERE state = 'planned' AND not_after IS NOT NULL;
CREATE INDEX action_gate ON reconcile.action (gate_us)
	WHERE state IN ('outcome_unknown', 'delivered', 'succeeded') AND gate_us IS NOT NULL;
CREATE INDEX action_gate_of_provider ON reconcile.action (provider, gate_us)
	WHERE state IN ('outcome_unknown', 'delivered', 'succeeded') AND gate_us IS NOT NULL;
-- What counts against the ambiguity budget.
CREATE INDEX action_uncertain ON reconcile.action (provider)
	WHERE state IN ('outcome_unknown', 'reconciling', 'manual_review');
-- One object confirms one action.
CREATE INDEX action_artifact ON reconcile.action (provider, artifact_id) WHERE artifact_id IS NOT NULL;
CREATE INDEX action_replacement ON reconcile.action (provider, due_at)
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
COMMENT ON COLUMN reconcile.attempt.request_hash IS
	'SHA-256 over method, path, headers and body as sent; empty: presumed to have left from another copy of this database, nobody knows with what.';
COMMENT ON COLUMN reconcile.attempt.idempotency_key IS 'The key it was sent with; attempts with one key have one request_hash, but for one that is only presumed.';
COMMENT ON COLUMN reconcile.attempt.dispatched_at IS 'When it began; of one that is only presumed: since when it may have left.';
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
CREATE INDEX window_sample_of_action ON reconcile.window_sample (action_id);
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

CREATE SEQUENCE reconcile.claim_count MINVALUE 0 START 0;
COMMENT ON SEQUENCE reconcile.claim_count IS
	'How often the engine has claimed. The token file knows it too: a database that has counted less than its token file has been rolled back. A sequence, since it counts in place and whatever becomes of the transaction.';

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
	disarmed_because text,
	CONSTRAINT arming_only_row CHECK (only_row)
);
COMMENT ON TABLE reconcile.arming IS
	'Which installation may send: compared with the token file outside the data directory before every claim. Never dumped, so a restored copy is disarmed.';
COMMENT ON COLUMN reconcile.arming.disarmed_because IS 'Why the database was disarmed when it was armed; NULL: it was not, or had never been armed.';

CREATE TABLE reconcile.rearming (
	action_id uuid PRIMARY KEY,
	noted_at timestamptz NOT NULL,
	due boolean NOT NULL
);
COMMENT ON TABLE reconcile.rearming IS
	'Actions that were recorded before the database was armed anew, and that another copy of it may have sent: none of them is sent while it stands here. The engine takes it off the list in the transaction that presumes an attempt of it to have left. Never dumped: arm() makes the list anew.';
COMMENT ON COLUMN reconcile.rearming.noted_at IS 'When the database was armed, the last time.';
COMMENT ON COLUMN reconcile.rearming.due IS 'The engine is to deal with it; false: it waits for a person first.';
CREATE INDEX rearming_due ON reconcile.rearming (action_id) WHERE due;
