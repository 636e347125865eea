-- The engine in a session, in a database that nobody has armed.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
SELECT armed, disarmed_because <> '' AS because, worker_pid, lock_holder_pid FROM reconcile.health;
SELECT pg_temp.define('run');
INSERT INTO reconcile.action (action_id, operation, payload) VALUES (pg_temp.id(1000), 'run', '{}');

-- It sends nothing, says so, and gives the engine lock back.
CALL reconcile.run('1 second');
SELECT state, version, attempts FROM reconcile.action WHERE action_id = pg_temp.id(1000);
SELECT lock_holder_pid FROM reconcile.engine();
CALL reconcile.run('0', stop_when_idle => false);
-- Its transactions leave the settings of the session alone.
SHOW search_path;
SHOW lock_timeout;
SELECT current_user = session_user AS same_user;

-- What it refuses.
BEGIN;
CALL reconcile.run('0');
ROLLBACK;
SELECT pg_temp.refusal($$CALL reconcile.run('0')$$);
CALL reconcile.run('-1 second');
CALL reconcile.run('2 days');
CALL reconcile.run(NULL);

-- Arming takes a reason, and a directory that fits.
SELECT pg_temp.refusal($$SELECT reconcile.arm(NULL)$$);
SELECT pg_temp.refusal($$SELECT reconcile.arm(E' \t\n')$$);
-- Arming that is rolled back has armed nothing.
BEGIN;
DO $$ BEGIN PERFORM reconcile.arm('a test'); EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$;
ROLLBACK;
SELECT armed FROM reconcile.engine();
CALL reconcile.run('1 second');

-- Withdrawn, so that no later engine finds it.
SELECT reconcile.cancel(pg_temp.id(1000), 'the test is over');
CALL reconcile.run('1 second');
SELECT state, version FROM reconcile.action WHERE action_id = pg_temp.id(1000);
