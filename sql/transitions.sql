-- Every step that could be tried, against the transition table.  No engine is
-- here, so that exactly the steps of persons are possible.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;
SELECT pg_temp.define('transitions');
SELECT count(pg_temp.stage_action(pg_temp.id(n::int), 'transitions', s)) AS actions
FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n);
SELECT count(pg_temp.stage_attempt(pg_temp.id(100 + n::int), pg_temp.id(n::int), 1, s)) AS attempts
FROM unnest(enum_range(NULL::reconcile.state)) WITH ORDINALITY AS x(s, n);
-- A review may be about something that the provider has taken.
INSERT INTO reconcile.action SELECT (jsonb_populate_record(a, jsonb_build_object('action_id', pg_temp.id(13), 'client_reference', 'taken', 'intent_key', 'taken', 'standing', 'confirmed/pending'))).*
FROM reconcile.action a WHERE action_id = pg_temp.id(5);

-- every state, by every event, to every state
CREATE TEMP TABLE tried (subject text, n int, from_state reconcile.state, event text, to_state reconcile.state, outcome text);
DO $$
DECLARE
	t record;
	answer text;
BEGIN
	FOR t IN SELECT s AS subject, f.state AS from_state, f.n, e.event, g AS to_state
		FROM unnest('{action,attempt}'::text[]) s, unnest(enum_range(NULL::reconcile.state) || '{manual_review}') WITH ORDINALITY AS f(state, n),
			(SELECT DISTINCT event FROM reconcile.transition_rule UNION ALL VALUES ('submit')) e, unnest(enum_range(NULL::reconcile.state)) g
		WHERE s = 'action' OR f.n <= 12
	LOOP
		SELECT pg_temp.refusal(format($u$UPDATE reconcile.%I SET version = version + 1, event = %L, state = %L, standing = pg_temp.standing_of(%L) %s,
				evidence = '{"dispatch": 1, "transfer": 1, "recovery": 1, "lookup": 1, "reason": 1, "not_after": 1, "event": 1, "decision": 1, "poll": 1, "dependency": 1}' WHERE %I = pg_temp.id(%s)$u$,
			t.subject, t.event, t.to_state, t.to_state,
			CASE t.subject WHEN 'action' THEN format(', queued = %L, due_at = %L', t.to_state = 'planned', '2026-01-02 03:04:05+00') END,
			CASE t.subject WHEN 'action' THEN 'action_id' ELSE 'dispatch_id' END,
			t.n + CASE t.subject WHEN 'action' THEN 0 ELSE 100 END)) INTO answer;
		INSERT INTO tried VALUES (t.subject, t.n, t.from_state, t.event, t.to_state, CASE
			WHEN answer LIKE 'ACCEPTED%' THEN 'accepted'
			WHEN answer LIKE '55000: % cannot go from ' || t.from_state || ' to ' || t.to_state || ' by ' || t.event THEN 'no rule'
			WHEN answer LIKE '55000: %: only the engine may record ' || t.event THEN 'engine only'
			WHEN answer LIKE '55000: % cannot change by "submit": there is no such event' THEN 'no event'
			WHEN answer LIKE '55000: % cannot go from standing %' THEN 'another standing'
			ELSE answer END);
	END LOOP;
END $$;
SELECT subject, outcome, count(*) FROM tried GROUP BY 1, 2 ORDER BY 1, 2;
SELECT subject, n, from_state, event, to_state, outcome FROM tried WHERE outcome IN ('accepted', 'another standing') ORDER BY 1, 2, 3, 4, 5;
SELECT count(*) AS differences FROM
	(SELECT subject, from_state, event, to_state, CASE actor WHEN 'person' THEN 'accepted' ELSE 'engine only' END AS outcome FROM reconcile.transition_rule) r
	FULL JOIN (SELECT DISTINCT subject, from_state, event, to_state, outcome FROM tried WHERE outcome NOT IN ('no rule', 'no event', 'another standing')) t USING (subject, from_state, event, to_state, outcome)
WHERE r.subject IS NULL OR t.subject IS NULL;

-- What an update may change that is no step: columns that plan the next one.
CREATE FUNCTION pg_temp.changed(type regtype, name text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN $1 = 'boolean'::regtype THEN 'NOT ' || $2
		WHEN $1 IN ('integer'::regtype, 'bigint') THEN format('coalesce(%s, 0) + 1', $2)
		WHEN $1 IN ('text'::regtype, 'name') THEN format('coalesce(%s, '''') || ''x''', $2)
		WHEN $1 = 'timestamptz'::regtype THEN '''2027-01-01'''
		WHEN $1 = 'uuid'::regtype THEN 'pg_temp.id(99)'
		WHEN $1 = 'jsonb'::regtype THEN $q$'{"reason": "another"}'$q$
		WHEN $1 = 'bytea'::regtype THEN $q$decode(repeat('ab', 32), 'hex')$q$
		WHEN $1 = 'xid8'::regtype THEN $q$'99'$q$
		WHEN $1 = 'reconcile.state'::regtype THEN $q$'cancelled'$q$
		WHEN $1 = 'reconcile.standing'::regtype THEN $q$'failed/pending'$q$
		WHEN $1 = 'reconcile.intent_fingerprint'::regtype THEN $q$'sha256:' || repeat('0', 64)$q$ END
$$;
CREATE FUNCTION pg_temp.may_change(subject text, step text, number int) RETURNS TABLE (may text[], may_not text[]) LANGUAGE sql AS $$
	SELECT array_agg(attname::text ORDER BY attname COLLATE "C") FILTER (WHERE r LIKE 'ACCEPTED%'),
		array_agg(attname::text ORDER BY attname COLLATE "C") FILTER (WHERE r NOT LIKE 'ACCEPTED%')
	FROM pg_attribute,
		LATERAL (SELECT pg_temp.refusal(format('UPDATE reconcile.%I SET %I = (%s)::%s%s WHERE %I = pg_temp.id(%s)', $1, attname,
			pg_temp.changed(atttypid, attname), atttypid::regtype, $2, CASE $1 WHEN 'action' THEN 'action_id' ELSE 'dispatch_id' END, $3)) AS r LIMIT 1) x
	WHERE attrelid = ('reconcile.' || $1)::regclass AND attnum > 0 AND NOT attisdropped AND strpos($2, ', ' || attname || ' =') = 0
$$;
SELECT * FROM pg_temp.may_change('action', '', 1);
SELECT * FROM pg_temp.may_change('attempt', '', 103);
-- What a step may change besides what makes it the step it is.
SELECT may FROM pg_temp.may_change('action', $$, version = 2, event = 'cancel', state = 'cancelled', standing = 'failed/pending', queued = false, evidence = '{"reason": "x"}'$$, 1);

-- Who took a step, when, and in which transaction is not for the statement to say.
UPDATE reconcile.action SET version = 2, event = 'cancel', state = 'cancelled', standing = 'failed/pending', queued = false,
	evidence = '{"reason": "x"}', actor = 'engine (god)', recorded_at = '2001-01-01', transaction = '5', chain_head = decode(repeat('ab', 32), 'hex')
WHERE action_id = pg_temp.id(1)
RETURNING actor = session_user AS actor, recorded_at >= statement_timestamp() AS recorded, transaction = pg_current_xact_id() AS transaction;
SELECT h.version, h.from_state, h.to_state, h.event, h.evidence, h.hash = a.chain_head AS head,
	h.previous_hash = lag(h.hash) OVER (ORDER BY h.version) AS continued
FROM reconcile.history h JOIN reconcile.action a USING (action_id) WHERE action_id = pg_temp.id(1) ORDER BY version;
SELECT * FROM reconcile.verify_history(pg_temp.id(1));
ROLLBACK;
