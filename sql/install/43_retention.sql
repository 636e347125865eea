-- What leaves, when, and how: nothing before an admin has set a rule, and never what is not resolved.

CREATE TABLE reconcile.retention_rule (
	provider text COLLATE "C" REFERENCES reconcile.provider ON DELETE CASCADE,
	keep_finished interval,
	keep_receipt boolean NOT NULL DEFAULT false,
	keep_archived interval,
	CONSTRAINT retention_rule_of_provider UNIQUE NULLS NOT DISTINCT (provider),
	CONSTRAINT retention_rule_keep_finished CHECK (extract(epoch FROM keep_finished) BETWEEN 86400 AND 3155760000),
	CONSTRAINT retention_rule_keep_archived CHECK (extract(epoch FROM keep_archived) BETWEEN 86400 AND 3155760000)
);
COMMENT ON TABLE reconcile.retention_rule IS
	'How long finished actions stay. Without a row nothing is ever removed. maintain() moves what is older into archived_action, with one exception after the other for what is not over: see kept_because().';
COMMENT ON COLUMN reconcile.retention_rule.provider IS 'Whose actions; NULL: of every provider that has no rule of its own.';
COMMENT ON COLUMN reconcile.retention_rule.keep_finished IS
	'How long an action stays after its last step, at least a day; NULL: for ever.';
COMMENT ON COLUMN reconcile.retention_rule.keep_receipt IS 'Keep its receipt() in the archive: the whole history, without the payload and the answers'' bodies.';
COMMENT ON COLUMN reconcile.retention_rule.keep_archived IS
	'How long it stays in the archive after that; NULL: for ever. When it has left the archive too, its intent_key is free again, and a late confirmation of it finds nothing.';

CREATE VIEW reconcile.provider_retention AS
	SELECT p.provider, r.keep_finished, coalesce(r.keep_receipt, false) AS keep_receipt, r.keep_archived
	  FROM reconcile.provider p
	  LEFT JOIN LATERAL (SELECT x.keep_finished, x.keep_receipt, x.keep_archived FROM reconcile.retention_rule x
		WHERE x.provider = p.provider OR x.provider IS NULL ORDER BY x.provider NULLS LAST LIMIT 1) r ON true;
COMMENT ON VIEW reconcile.provider_retention IS 'Which retention_rule counts for each provider: its own, or that for all; NULLs where nothing is removed.';

-- Evidence that somebody has tampered with it must not be tidied away.
CREATE FUNCTION reconcile.with_whole_history(actions uuid[]) RETURNS SETOF uuid
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.action_id
	  FROM (SELECT h.action_id, h.version, h.hash, h.version = row_number() OVER w AND h.previous_hash = coalesce(lag(h.hash) OVER w, '\x')
			AND h.hash = reconcile.history_hash(h.action_id, h.version, h.recorded_at, h.attempt_number, h.event,
				h.from_state, h.to_state, h.standing, h.evidence, h.actor, h.previous_hash) AS fits
		  FROM reconcile.history h WHERE h.action_id = ANY ($1)
		WINDOW w AS (PARTITION BY h.action_id ORDER BY h.version)) e
	  JOIN reconcile.action a ON a.action_id = e.action_id
	 WHERE a.action_id = ANY ($1)
	 GROUP BY a.action_id
	HAVING bool_and(e.fits) AND count(*) = a.version AND (array_agg(e.hash ORDER BY e.version DESC))[1] = a.chain_head $$;
COMMENT ON FUNCTION reconcile.with_whole_history(uuid[]) IS 'Those of these actions for which verify_history() would find nothing.';

-- Whoever depends on a newer action of its ordering key looks for the one just before its own, so only that one is needed; the last
-- one says to those who are yet to come whether the key goes on.
CREATE FUNCTION reconcile.kept_because(actions uuid[]) RETURNS TABLE (action_id uuid, because text)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' AS $$
	SELECT a.action_id, CASE
		WHEN a.state = 'safe_to_retry' THEN 'it may still be replaced: it is over when somebody abandons it'
		WHEN a.state NOT IN ('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned') THEN 'it is not resolved'
		WHEN r.keep_finished IS NULL THEN 'no retention rule says otherwise'
		WHEN a.recorded_at >= now() - r.keep_finished THEN 'it has not been over for so long'
		WHEN EXISTS (SELECT FROM reconcile.rearming n WHERE n.action_id = a.action_id AND n.due) THEN 'another copy of this database may have sent it'
		WHEN a.gate_us IS NOT NULL OR EXISTS (SELECT FROM reconcile.lookup k WHERE k.action_id = a.action_id AND k.answered_at IS NULL)
			THEN 'the provider is still asked about it'
		-- Of several requests under one key the provider has carried out one: the others need no verdict of their own.
		WHEN EXISTS (SELECT FROM reconcile.attempt t WHERE t.action_id = a.action_id
				AND (t.state IN ('submitted', 'delivered') OR t.state = 'outcome_unknown' AND NOT EXISTS (SELECT FROM reconcile.attempt s
					WHERE s.action_id = a.action_id AND s.idempotency_key = t.idempotency_key AND s.state = 'succeeded')))
			THEN 'an attempt of it may have happened and is not settled'
		WHEN w.open_until >= now() THEN 'its window, or its key, is alive: what is late may still come'
		WHEN EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = a.action_id AND i.applied_at IS NULL)
			THEN 'something that was said about it is not applied yet'
		WHEN EXISTS (SELECT FROM reconcile.incident i WHERE i.action_id = a.action_id AND i.closed_at IS NULL) THEN 'it has an open incident'
		WHEN a.action_id IN (SELECT unnest(d.depends_on) FROM reconcile.action d WHERE d.depends_on IS NOT NULL
				AND d.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered', 'safe_to_retry'))
			THEN 'an action that is not over depends on it'
		WHEN a.ordering_key IS NOT NULL AND CASE WHEN n.state IS NULL THEN a.state <> 'succeeded' OR EXISTS (SELECT FROM reconcile.action b
					WHERE b.submitter = a.submitter AND b.ordering_key = a.ordering_key AND b.action_id < a.action_id)
				ELSE n.state NOT IN ('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned') END
			THEN 'what comes after it with its ordering_key looks at it'
		WHEN a.action_id IN (SELECT i.action_id FROM reconcile.bulk_batch b JOIN reconcile.bulk_item i ON i.batch = b.batch
				WHERE b.applied_at IS NULL AND b.previewed_at > now() - interval '30 days')
			THEN 'it is in a batch that is not applied'
		WHEN a.action_id IN (SELECT DISTINCT ON (y.operation) y.action_id
				FROM (SELECT x.* FROM reconcile.action x ORDER BY x.action_id DESC LIMIT 1000) y
				JOIN reconcile.lookup_rule l ON l.operation = y.operation AND l.canary = 'newest'
				WHERE y.state = 'succeeded' ORDER BY y.operation, y.action_id DESC)
			THEN 'it is the newest success of its operation, by which lookups are tested'
		WHEN a.action_id NOT IN (SELECT w.action_id FROM reconcile.with_whole_history($1) AS w (action_id)) THEN 'its history is not whole: see verify_history()'
		END
	  FROM reconcile.action a
	  LEFT JOIN reconcile.operation o ON o.operation = a.operation
	  LEFT JOIN reconcile.provider_retention r ON r.provider = a.provider
	 CROSS JOIN LATERAL (SELECT greatest(a.key_first_at + o.key_lifetime + o.key_margin,
			(SELECT max(coalesce(t.ended_at, t.dispatched_at) + (t.late_arrival_us + t.window_us) * interval '1 microsecond')
			  FROM reconcile.attempt t WHERE t.action_id = a.action_id)) AS open_until) w
	  LEFT JOIN LATERAL (SELECT b.state FROM reconcile.action b WHERE a.ordering_key IS NOT NULL AND b.submitter = a.submitter
			AND b.ordering_key = a.ordering_key AND b.action_id > a.action_id ORDER BY b.action_id LIMIT 1) n ON true
	 WHERE a.action_id = ANY ($1) $$;
COMMENT ON FUNCTION reconcile.kept_because(uuid[]) IS
	'Why maintain() leaves these actions where they are; NULL: the next one archives it. An action that is not there has no row.';

CREATE FUNCTION reconcile.let_go(actions uuid[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_let_go' LANGUAGE C VOLATILE STRICT
	SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off;
COMMENT ON FUNCTION reconcile.let_go(uuid[]) IS
	'Move those of these actions into the archive for which kept_because() has no reason, and that nobody holds; returns how many. The only way in which an action, its attempts and its history leave.';

CREATE FUNCTION reconcile.let_archived_go(actions uuid[]) RETURNS integer
	AS 'MODULE_PATHNAME', 'ar_let_archived_go' LANGUAGE C VOLATILE STRICT
	SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET plan_cache_mode = force_generic_plan SET jit = off;
COMMENT ON FUNCTION reconcile.let_archived_go(uuid[]) IS
	'Remove those of these actions from the archive that are older than retention_rule.keep_archived and have no open incident; returns how many. The only way in which they leave.';

CREATE FUNCTION reconcile.first_id_of(instant timestamptz) RETURNS uuid
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT (lpad(to_hex(greatest(floor(extract(epoch FROM $1) * 1000), 0)::bigint), 12, '0') || repeat('0', 20))::uuid $$;
COMMENT ON FUNCTION reconcile.first_id_of(timestamptz) IS 'The lowest id that an action of that instant can have, if new_action_id() has made it.';

-- The ids are in the order of time, so that what is too young need not be looked at; an id of a caller's own may lie anywhere, and if
-- that is far in the future, it is looked at too.
CREATE FUNCTION reconcile.maintain_step(INOUT after uuid, INOUT archived bigint, INOUT forgotten bigint, batch_size integer, OUT done boolean)
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET enable_seqscan = off SET jit = off AS $$
DECLARE
	shortest interval := (SELECT min(r.keep_finished) FROM reconcile.retention_rule r);
	young uuid := reconcile.first_id_of(now() - shortest);
	future uuid := reconcile.first_id_of(now() + interval '1 day');
	seen uuid[] := '{}';
	old uuid[];
BEGIN
	archived := coalesce(archived, 0);
	forgotten := coalesce(forgotten, 0);
	after := coalesce(after, '00000000-0000-0000-0000-000000000000');
	IF shortest IS NOT NULL THEN
		IF after < young THEN
			seen := ARRAY(SELECT a.action_id FROM reconcile.action a WHERE a.action_id > after AND a.action_id < young ORDER BY a.action_id LIMIT batch_size);
			after := CASE WHEN cardinality(seen) < batch_size THEN future ELSE seen[cardinality(seen)] END;
			done := false;
		ELSE
			seen := ARRAY(SELECT a.action_id FROM reconcile.action a WHERE a.action_id > after ORDER BY a.action_id LIMIT batch_size);
			after := coalesce(seen[cardinality(seen)], after);
			done := cardinality(seen) < batch_size;
		END IF;
		archived := archived + reconcile.let_go(seen);
	END IF;
	old := ARRAY(SELECT x.action_id FROM reconcile.archived_action x
		WHERE x.archived_at < now() - (SELECT min(r.keep_archived) FROM reconcile.retention_rule r)
		  AND x.archived_at < now() - (SELECT r.keep_archived FROM reconcile.provider_retention r WHERE r.provider = x.provider)
		  AND NOT EXISTS (SELECT FROM reconcile.incident i WHERE i.action_id = x.action_id AND i.closed_at IS NULL)
		ORDER BY x.archived_at LIMIT batch_size);
	forgotten := forgotten + reconcile.let_archived_go(old);
	done := coalesce(done, true) AND cardinality(old) < batch_size;
END $$;
COMMENT ON FUNCTION reconcile.maintain_step(uuid, bigint, bigint, integer) IS
	'One step of maintain(): looks at the next so many actions in the order of their ids, archives those that may leave, and removes as many from the archive.';

CREATE FUNCTION reconcile.drop_empty_history_partitions() RETURNS integer
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET lock_timeout = '100ms' AS $$
DECLARE
	p record;
	dropped integer := 0;
BEGIN
	FOR p IN SELECT c.oid::regclass AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'reconcile.history'::regclass AND c.relname ~ '^history_[0-9]{4}_[0-9]{2}$'
		  AND c.relname < 'history_' || to_char(now(), 'YYYY_MM') AND pg_relation_size(c.oid) = 0 ORDER BY c.relname
	LOOP
		LOCK TABLE ONLY reconcile.history IN ACCESS EXCLUSIVE MODE;
		EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', p.name);
		-- Without a page it has no row, which is seen at once, however much it has held.
		CONTINUE WHEN pg_relation_size(p.name) > 0;
		EXECUTE format('DROP TABLE %s', p.name);
		dropped := dropped + 1;
	END LOOP;
	RETURN dropped;
EXCEPTION WHEN lock_not_available THEN
	RETURN NULL;
END $$;
COMMENT ON FUNCTION reconcile.drop_empty_history_partitions() IS
	'Drop the partitions of past months that are empty and that VACUUM has freed of their pages; returns how many, NULL if others use the history. It waits for a lock no longer than a tenth of a second.';

CREATE FUNCTION reconcile.maintain_begin(max_duration interval, batch_size integer) RETURNS timestamptz
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $1 IS NULL OR extract(epoch FROM $1) NOT BETWEEN 0 AND 86400 THEN
		RAISE EXCEPTION 'max_duration must be between 0 and 1 day' USING ERRCODE = '22023', HINT = 'What is left is for the next call.';
	END IF;
	IF $2 IS NULL OR $2 NOT BETWEEN 1 AND 10000 THEN
		RAISE EXCEPTION 'batch_size must be between 1 and 10000, not %', $2 USING ERRCODE = '22023', HINT = 'Each batch is a transaction.';
	END IF;
	RETURN clock_timestamp() + $1;
END $$;
COMMENT ON FUNCTION reconcile.maintain_begin(interval, integer) IS 'When maintain() starts no further batch. Error 22023 if an argument is out of range.';

CREATE PROCEDURE reconcile.maintain(months_ahead integer DEFAULT 3, max_duration interval DEFAULT '10 minutes', batch_size integer DEFAULT 500,
		INOUT partitions_made integer DEFAULT NULL, INOUT archived bigint DEFAULT NULL, INOUT forgotten bigint DEFAULT NULL,
		INOUT partitions_dropped integer DEFAULT NULL)
	LANGUAGE plpgsql AS $$
-- Every name is qualified and no operator is used: there can be no SET search_path on what commits. Each transaction must see what
-- was committed a moment ago, whatever the session is set to.
DECLARE
	until pg_catalog.timestamptz;
	step pg_catalog.record;
	after pg_catalog.uuid;
BEGIN
	CALL reconcile.require_commit('reconcile.maintain');
	until := reconcile.maintain_begin($2, $3);
	archived := NULL;
	forgotten := NULL;
	-- Who uses the history does so for moments.
	FOR try IN 1 .. 20 LOOP
		partitions_made := reconcile.create_history_partitions($1);
		COMMIT;
		EXIT WHEN partitions_made IS NOT NULL;
		PERFORM pg_catalog.pg_sleep(0.1);
	END LOOP;
	COMMIT;
	LOOP
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		SELECT s.* INTO step FROM reconcile.maintain_step(after, archived, forgotten, $3) s;
		COMMIT;
		after := step.after;
		archived := step.archived;
		forgotten := step.forgotten;
		EXIT WHEN step.done OR reconcile.is_over(until);
	END LOOP;
	FOR try IN 1 .. 20 LOOP
		partitions_dropped := reconcile.drop_empty_history_partitions();
		COMMIT;
		EXIT WHEN partitions_dropped IS NOT NULL;
		PERFORM pg_catalog.pg_sleep(0.1);
	END LOOP;
END $$;
COMMENT ON PROCEDURE reconcile.maintain(integer, interval, integer, integer, bigint, bigint, integer) IS
	'What is to be done once a day: make the partitions of the history for the months to come, archive what retention_rule says, remove what is too old from the archive, drop empty partitions of the past. It commits after every batch_size actions that it looks at, and starts no further batch after max_duration: what is left is for the next time. A number of partitions is NULL if the history was in use all the time. Errors: 25001 inside a transaction block, 22023 an argument is out of range.';
