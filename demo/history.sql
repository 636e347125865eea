-- The history of one action as a table.
SELECT version AS "no", to_char(recorded_at, 'HH24:MI:SS.MS') AS "at", attempt_number AS attempt,
	event, from_state AS "from", to_state AS "to", delivery, acceptance, status
FROM reconcile.action_history
WHERE action_id = :'action'
ORDER BY version;
