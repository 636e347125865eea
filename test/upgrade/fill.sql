-- A database of version 0.1 with an action in every state, and rows in the other tables; and a copy of all of them, for rows.sql.

SET client_min_messages = warning;

INSERT INTO reconcile.provider (provider, base_url) VALUES ('shop', 'https://shop.example');
INSERT INTO reconcile.operation (operation, provider, path) VALUES ('order', 'shop', '/orders');
SELECT reconcile.adopt_profile('stripe');
SELECT reconcile.create_history_partitions();

-- As restored from a dump, whose rows are taken as they are.
WITH s AS (SELECT state, ('d0000000-0000-7000-8000-' || lpad(row_number() OVER ()::text, 12, '0'))::uuid AS id, 'upgrade' AS actor,
		CASE WHEN state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review') THEN 'pending/pending'
			WHEN state = 'delivered' THEN 'confirmed/pending' WHEN state = 'succeeded' THEN 'confirmed/accepted'
			WHEN state = 'rejected' THEN 'confirmed/rejected' ELSE 'failed/pending' END::reconcile.standing AS standing
	FROM unnest(enum_range(NULL::reconcile.state)) AS state),
entry AS (
	INSERT INTO reconcile.history (action_id, version, recorded_at, event, to_state, standing, evidence, actor, transaction, previous_hash, hash)
	SELECT id, 1, now(), 'submit', state, standing, '{"submit": {}}', actor, '3', '\x',
		reconcile.history_hash(id, 1, now(), NULL, 'submit', NULL, state, standing, '{"submit": {}}', actor, '\x')
	  FROM s RETURNING *),
action AS (
	INSERT INTO reconcile.action (action_id, operation, payload, client_reference, provider, submitter, submitted_at, fingerprint, state, standing,
		queued, due_at, version, event, evidence, actor, recorded_at, transaction, chain_head)
	SELECT action_id, 'order', jsonb_build_object('of', to_state), action_id::text, 'shop', current_user, recorded_at,
		reconcile.intent_fingerprint('POST', '/orders', jsonb_build_object('of', to_state)), to_state, standing,
		to_state = 'planned', recorded_at, 1, event, evidence, actor, recorded_at, transaction, hash
	  FROM entry RETURNING *),
attempt AS (
	INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch,
		dispatched_at, window_us, late_arrival_us, gate_us, state, standing, event, evidence, version)
	SELECT action_id, action_id, 1, 'shop', 1, 1, 'https://shop.example', '\x00', 1, recorded_at, 0, 0, 0, state, standing, 'claim', '{}', 1
	  FROM action WHERE state NOT IN ('planned', 'reconciling', 'cancelled', 'expired', 'abandoned', 'manual_review') RETURNING *)
INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, position, kind, asked_at, asked_us)
	SELECT gen_random_uuid(), action_id, 1, 1, 1, 'get', dispatched_at, 0 FROM attempt;
SELECT reconcile.submit('order', '{"n": 1}', 'a key');
SELECT reconcile.submit('order', '{"n": 1}', 'a key');
SELECT reconcile.confirm('nobody knows it', 'an id', provider => 'shop');
SELECT reconcile.bulk_preview('release', provider => 'shop');
SELECT reconcile.open_incident('duplicate', action_id, '{}') FROM reconcile.action WHERE state = 'succeeded';
INSERT INTO reconcile.window_sample (operation, position, action_id, source, lag_us) SELECT operation, 1, action_id, 'lookup', 5 FROM reconcile.action WHERE state = 'succeeded';
INSERT INTO reconcile.clock VALUES ('a lifetime', 5, 5, now());
INSERT INTO reconcile.arming (token, epoch, system_identifier, timeline, database_oid, armed_at, armed_by, reason) VALUES ('a token', 1, 1, 1, 1, now(), current_user, 'a test');

CREATE SCHEMA before;
DO $$
DECLARE
	t name;
BEGIN
	FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'profile_catalog' LOOP
		EXECUTE format('CREATE TABLE before.%1$I AS SELECT * FROM reconcile.%1$I', t);
	END LOOP;
END $$;
