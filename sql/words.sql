-- What the provider says unasked, and which attempts it is about: an action stands where its attempts do.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('words');
INSERT INTO reconcile.operation (operation, provider, path) VALUES ('words.async', 'words', '/async');
INSERT INTO reconcile.poll_rule (operation, path, state_path, accepted, rejected) VALUES ('words.async', '/async/{client_reference}', '$.state', '{done}', '{failed}');
-- An action with attempts that are as they are.
CREATE FUNCTION pg_temp.stage(n integer, state reconcile.state, attempts reconcile.state[], operation text DEFAULT 'words') RETURNS void LANGUAGE sql AS $$
	SELECT pg_temp.stage_action(pg_temp.id(90000 + $1), $4, $2);
	INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id($1), 'client_reference', pg_temp.id($1),
		'intent_key', $1::text, 'attempts', cardinality($3)))).* FROM reconcile.action a WHERE a.action_id = pg_temp.id(90000 + $1);
	SELECT count(pg_temp.stage_attempt(pg_temp.id(100 * $1 + i::int), pg_temp.id($1), i::int, s)) FROM unnest($3) WITH ORDINALITY AS x(s, i)
$$;
CREATE FUNCTION pg_temp.hear(n integer, says text, artifact_id text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
	SELECT result FROM reconcile.take_in('words', NULL, $2, pg_temp.id($1)::text, $3, NULL, '{}')
$$;
CREATE FUNCTION pg_temp.stands(n integer) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s %s, attempts %s', a.state, a.standing,
		(SELECT string_agg(format('%s %s by %s%s', t.number, t.state, t.event, ' ' || t.artifact_id), ', ' ORDER BY t.number) FROM reconcile.attempt t WHERE t.action_id = a.action_id))
	FROM reconcile.action a WHERE a.action_id = pg_temp.id($1)
$$;

-- A yes is credited to one attempt, a no is about all that may have happened.
SELECT pg_temp.stage(n, 'outcome_unknown', '{outcome_unknown,outcome_unknown}') FROM generate_series(1, 2) n;
SELECT pg_temp.stage(3, 'delivered', '{outcome_unknown,delivered}'), pg_temp.stage(4, 'delivered', '{outcome_unknown,delivered}');
SELECT pg_temp.stage(5, 'outcome_unknown', '{outcome_unknown,outcome_unknown}', 'words.async');
SELECT pg_temp.stage(6, 'reconciling', '{safe_to_retry,outcome_unknown}');
SELECT pg_temp.hear(1, 'executed', 'obj-1'), pg_temp.hear(2, 'rejected', 'obj-2'), pg_temp.hear(3, 'accepted'), pg_temp.hear(4, 'rejected'), pg_temp.hear(5, 'executed'), pg_temp.hear(6, 'rejected');
SELECT n, pg_temp.stands(n) FROM generate_series(1, 6) n;
-- What was delivered by a word or a decision gets its verdict in the end.
SELECT pg_temp.hear(5, 'rejected'), pg_temp.stands(5);
SELECT pg_temp.stage(7, 'outcome_unknown', '{outcome_unknown,outcome_unknown}', 'words.async');
SELECT reconcile.resolve(pg_temp.id(7), 'executed', 'seen in their console'), pg_temp.stands(7);
SELECT pg_temp.hear(7, 'rejected'), pg_temp.stands(7);
-- And a yes after the no.
SELECT pg_temp.hear(7, 'accepted'), pg_temp.stands(7);

-- Late: for the last attempt that was thought not to have happened.
SELECT pg_temp.stage(10 + n::int, s, '{safe_to_retry,safe_to_retry}') FROM unnest('{safe_to_retry,cancelled,expired,abandoned,planned}'::reconcile.state[]) WITH ORDINALITY AS x(s, n);
SELECT n, pg_temp.hear(n, 'rejected') AS no, pg_temp.hear(n, 'executed') AS yes FROM generate_series(11, 15) n;
SELECT n, pg_temp.stands(n) FROM generate_series(11, 15) n;

SELECT count(*) AS actions FROM reconcile.action WHERE action_id < pg_temp.id(90000) AND attempts > 0;
SELECT action_id, standing, folded FROM reconcile.fold_violation() WHERE action_id < pg_temp.id(90000);
ROLLBACK;
