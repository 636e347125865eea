-- What arming a database does to what it holds: to be read before anything goes out.

CREATE VIEW reconcile.arming_summary AS
	SELECT e.armed, a.provider, a.operation, w.becomes, count(*) AS actions, min(a.submitted_at) AS oldest
	  FROM reconcile.engine() e
	 CROSS JOIN reconcile.action a
	  LEFT JOIN reconcile.rearming r ON r.action_id = a.action_id
	 CROSS JOIN LATERAL (SELECT EXISTS (SELECT FROM reconcile.lookup_rule l WHERE l.operation = a.operation AND l.kind <> 'replay_by_key') AS can_ask) l
	 CROSS JOIN LATERAL (SELECT CASE
		WHEN a.state = 'manual_review' THEN 'waits for a person'
		WHEN a.state = 'delivered' THEN 'waits for its verdict'
		-- As the engine sees it: what is not to be sent for an hour cannot have been.
		WHEN a.state = 'planned' AND (e.armed AND r.action_id IS NULL OR a.attempts = 0 AND a.not_before > clock_timestamp() + interval '1 hour')
			THEN CASE WHEN a.held THEN 'held' ELSE 'sent when due' END
		WHEN NOT l.can_ask AND (NOT e.armed OR r.action_id IS NOT NULL) THEN 'handed to a person'
		WHEN a.state = 'planned' AND a.held THEN 'looked up, then held'
		WHEN a.state = 'planned' THEN 'looked up, then sent'
		ELSE 'looked up' END AS becomes) w
	 WHERE a.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered')
	 GROUP BY e.armed, a.provider, a.operation, w.becomes;
COMMENT ON VIEW reconcile.arming_summary IS
	'What happens to every unresolved action, by provider and operation: if the database is disarmed, once arm() is called; if it is armed, next. Read it on a restored copy before you arm it.';
COMMENT ON COLUMN reconcile.arming_summary.armed IS 'Is the database armed? Until it is, nothing of this happens.';
COMMENT ON COLUMN reconcile.arming_summary.becomes IS
	'looked up, then sent (or held): another copy may have sent it, so the provider is asked after the window, and only what it does not have goes out; looked up: its outcome is unknown, what follows is up to on_absent; handed to a person: the same, but there is nothing to ask; waits for a person: in manual_review already; waits for its verdict: the provider has it; sent when due, held: nobody can have sent it.';
COMMENT ON COLUMN reconcile.arming_summary.actions IS 'How many.';
COMMENT ON COLUMN reconcile.arming_summary.oldest IS 'When the first of them was submitted.';
