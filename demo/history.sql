-- The history of one action as a table.
SELECT version AS "no", to_char(recorded_at, 'HH24:MI:SS.MS') AS "at", attempt_number AS attempt,
	event, from_state AS "from", to_state AS "to", standing, left(hash, 12) AS hash
FROM reconcile.action_history
WHERE action_id = :'action'
ORDER BY version;
