-- The transition table, pinned: a change of the rules is a change of this output.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers

SELECT subject, from_state, event, to_state, evidence, actor, meaning
FROM reconcile.transition_rule ORDER BY subject, from_state, event COLLATE "C", to_state;

-- one rule each
SELECT subject, from_state, event, to_state, count(*) FROM reconcile.transition_rule GROUP BY 1, 2, 3, 4 HAVING count(*) > 1;

-- nothing leaves a final state of an action but by people; nothing leaves a success at all
SELECT from_state, event, actor FROM reconcile.transition_rule
WHERE subject = 'action' AND from_state IN ('succeeded', 'rejected', 'safe_to_retry', 'cancelled', 'expired', 'abandoned')
ORDER BY from_state, event COLLATE "C";

-- what may follow an outcome that is not known never puts the action back on the queue, and sends only what a key makes harmless
SELECT count(*) AS shortcuts FROM reconcile.transition_rule
WHERE subject = 'action' AND from_state IN ('outcome_unknown', 'manual_review', 'delivered') AND to_state IN ('planned', 'submitted', 'cancelled', 'expired') AND event <> 'resend';

-- states that nothing leads to
SELECT s AS state FROM unnest(enum_range(NULL::reconcile.state)) s
WHERE s NOT IN (SELECT to_state FROM reconcile.transition_rule WHERE subject = 'action') ORDER BY s;

-- a view to read, not to write
SELECT pg_temp.refusal($$DELETE FROM reconcile.transition_rule$$);
