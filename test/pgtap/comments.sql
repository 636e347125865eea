-- Everything that people see in the schema says what it is.
BEGIN;
SELECT plan(9);
SELECT isnt(obj_description('reconcile'::regnamespace, 'pg_namespace'), NULL, 'the schema has a comment');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
	AND proname !~ '^(standing|intent_fingerprint)_(in|out|recv|send|eq|ne|lt|le|gt|ge|cmp|hash|hash_extended)$'$$,
	'so has every function, but those that a type or an operator is made of');
SELECT is_empty($$SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	AND obj_description(oid, 'pg_class') IS NULL$$, 'so has every table and view');
SELECT is_empty($$SELECT oid::regtype FROM pg_type WHERE typnamespace = 'reconcile'::regnamespace AND typtype IN ('b', 'e', 'd', 'r') AND typelem = 0
	AND obj_description(oid, 'pg_type') IS NULL$$, 'so has every type');
SELECT isnt(obj_description(oid, 'pg_extension'), NULL, 'so has the extension') FROM pg_extension WHERE extname = 'action_reconcile';

-- Functions that refuse something say with which SQLSTATE.
SELECT is_empty($$SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = 'reconcile'::regnamespace
	AND proname IN ('submit', 'cancel', 'hold', 'release', 'replace', 'abandon', 'resolve', 'bulk_preview', 'bulk_apply', 'look_up_now', 'wait', 'arm', 'standing', 'render', 'render_request', 'render_question', 'make_identifier', 'refuse_change', 'action_guard', 'attempt_guard',
		'define_provider', 'adopt_profile', 'preview', 'receive_event', 'verify_event', 'check_profile', 'check_definition', 'definition_changed')
	AND obj_description(oid, 'pg_proc') !~ '[0-9][0-9A-Z]{4}'$$, 'what refuses something says how');

-- Numbers have units: an interval and a timestamp carry them, a bare number must not stand for time in a view.
SELECT is_empty($$SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
	WHERE relnamespace = 'reconcile'::regnamespace AND relkind = 'v' AND attnum > 0 AND attname ~ '_(us|ms|s|seconds|bytes|kb)$'$$,
	'no view shows time as a bare number');
SELECT is_empty($$SELECT attname FROM pg_attribute WHERE attrelid IN ('reconcile.provider'::regclass, 'reconcile.lookup_rule'::regclass, 'reconcile.operation'::regclass)
	AND attnum > 0 AND attname ~ '(timeout|window|late_arrival|spacing|pause(_max)?$)' AND attname <> 'window_pinned' AND atttypid NOT IN ('interval'::regtype, 'reconcile.window_source'::regtype)$$,
	'every duration that people set is an interval');
SELECT is_empty($$SELECT attrelid::regclass, attname FROM pg_attribute
	WHERE (attrelid, attname) IN (('reconcile.action_status'::regclass, 'next_step_at'), ('reconcile.provider'::regclass, 'consistency_window'),
		('reconcile.provider'::regclass, 'late_arrival_max'), ('reconcile.provider'::regclass, 'attempt_timeout'), ('reconcile.provider'::regclass, 'connect_timeout'),
		('reconcile.provider'::regclass, 'max_response_bytes'), ('reconcile.provider'::regclass, 'max_in_flight'), ('reconcile.lookup_rule'::regclass, 'negative_spacing'),
		('reconcile.lookup_rule'::regclass, 'timeout'), ('reconcile.action'::regclass, 'gate_us'), ('reconcile.attempt'::regclass, 'gate_us'), ('reconcile.lookup'::regclass, 'asked_us'))
	AND col_description(attrelid, attnum) IS NULL$$, 'limits, windows and gates say from when to when they count');
SELECT * FROM finish();
ROLLBACK;
