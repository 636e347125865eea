-- What is kept of an action that has left: enough to know it again, and to prove that a kept copy of its history is genuine.

CREATE TABLE reconcile.archived_action (
	action_id uuid PRIMARY KEY,
	operation text COLLATE "C" NOT NULL,
	provider text COLLATE "C" NOT NULL,
	client_reference text COLLATE "C" NOT NULL,
	intent_key text COLLATE "C",
	submitter name NOT NULL,
	fingerprint reconcile.intent_fingerprint NOT NULL,
	state reconcile.state NOT NULL,
	standing reconcile.standing NOT NULL,
	artifact_id text,
	attempts integer NOT NULL,
	submitted_at timestamptz NOT NULL,
	recorded_at timestamptz NOT NULL,
	last_word_at timestamptz,
	version integer NOT NULL,
	chain_head bytea NOT NULL,
	receipt jsonb,
	archived_at timestamptz NOT NULL,
	CONSTRAINT archived_action_is_final CHECK (state IN ('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned'))
);
COMMENT ON TABLE reconcile.archived_action IS
	'Actions that maintain() has taken out of the tables after they had been final for as long as retention_rule says: what they were, how they ended, and the head of their hash chain. Never changed; it leaves only by retention_rule.keep_archived.';
COMMENT ON COLUMN reconcile.archived_action.intent_key IS 'The same key of the same submitter and operation still names this action: it is not carried out again.';
COMMENT ON COLUMN reconcile.archived_action.attempts IS 'How many there were.';
COMMENT ON COLUMN reconcile.archived_action.recorded_at IS 'When it took its last step.';
COMMENT ON COLUMN reconcile.archived_action.last_word_at IS 'When, by the provider''s word, the newest thing happened that it said unasked: what is older says nothing against it.';
COMMENT ON COLUMN reconcile.archived_action.version IS 'How many entries its history had.';
COMMENT ON COLUMN reconcile.archived_action.chain_head IS 'Hash of the last of them: see verify_receipt().';
COMMENT ON COLUMN reconcile.archived_action.receipt IS 'The whole of receipt(), if its retention_rule had keep_receipt.';
CREATE UNIQUE INDEX archived_action_reference ON reconcile.archived_action (provider, client_reference);
CREATE UNIQUE INDEX archived_action_intent ON reconcile.archived_action (submitter, operation, intent_key) WHERE intent_key IS NOT NULL;
CREATE INDEX archived_action_artifact ON reconcile.archived_action (provider, artifact_id) WHERE artifact_id IS NOT NULL;
CREATE INDEX archived_action_age ON reconcile.archived_action (archived_at);

CREATE TRIGGER archived_append_only BEFORE UPDATE OR DELETE ON reconcile.archived_action
	FOR EACH ROW EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.archived_action ENABLE ALWAYS TRIGGER archived_append_only;
CREATE TRIGGER archived_no_truncate BEFORE TRUNCATE ON reconcile.archived_action
	FOR EACH STATEMENT EXECUTE FUNCTION reconcile.refuse_change();
ALTER TABLE reconcile.archived_action ENABLE ALWAYS TRIGGER archived_no_truncate;

-- What those who come later must not take for new.
CREATE FUNCTION reconcile.refuse_archived(action_id uuid, provider text, client_reference text) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	gone uuid;
BEGIN
	SELECT x.action_id INTO gone FROM reconcile.archived_action x WHERE x.action_id = $1;
	IF FOUND THEN
		RAISE EXCEPTION 'action id "%" is that of an archived action', $1
			USING ERRCODE = 'unique_violation', HINT = 'Leave it out to get a fresh one.';
	END IF;
	SELECT x.action_id INTO gone FROM reconcile.archived_action x WHERE x.provider = $2 AND x.client_reference = $3;
	IF FOUND THEN
		RAISE EXCEPTION 'client reference "%" is already used at provider "%" by archived action "%"', $3, $2, gone
			USING ERRCODE = 'unique_violation', HINT = 'One reference names one action; leave it out to get a fresh one.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.refuse_archived(uuid, text, text) IS 'Error 23505 if an archived action has that id, or that reference at the provider.';
