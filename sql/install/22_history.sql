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
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.create_history_partitions(integer) IS
	'Create the monthly partitions of the history up to so many months ahead, with their guards; returns how many were made; NULL, and none, if others use the history: try again soon. A month with entries in history_default already is left there. The engine calls it when it finds itself armed.';

-- No partition is made here: a member of the extension would be missing when
-- a dump is restored in another month.

CREATE FUNCTION reconcile.history_hash(action_id uuid, version integer, recorded_at timestamptz, attempt_number integer,
		event text, from_state reconcile.state, to_state reconcile.state, standing reconcile.standing,
		evidence jsonb, actor text, previous_hash bytea) RETURNS bytea
	AS 'MODULE_PATHNAME', 'ar_history_hash' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.history_hash(uuid, integer, timestamptz, integer, text, reconcile.state, reconcile.state,
	reconcile.standing, jsonb, text, bytea) IS 'The hash that a history entry with these contents must carry.';
