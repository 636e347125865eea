-- The standing jobs of a server with pg_cron. It is no part of this extension and need not be there, so it is called by name only.

CREATE FUNCTION reconcile.standing_jobs() RETURNS TABLE (job text, schedule text, command text)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	VALUES (format('reconcile run %s', current_database()), '* * * * *', 'CALL reconcile.run(''55 seconds'', stop_when_idle => false)'),
		(format('reconcile maintain %s', current_database()), '23 3 * * *', 'CALL reconcile.maintain()') $$;
COMMENT ON FUNCTION reconcile.standing_jobs() IS
	'What is to be done again and again: the engine each minute, where there is no worker, and maintain() each night. schedule_jobs() registers them.';

CREATE FUNCTION reconcile.check_pg_cron() RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	home text := (SELECT s.setting FROM pg_settings s WHERE s.name = 'cron.database_name');
BEGIN
	IF EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'pg_cron') THEN
		IF NOT has_schema_privilege('cron', 'USAGE') THEN
			RAISE EXCEPTION 'role "%" may not schedule jobs', current_user
				USING ERRCODE = 'insufficient_privilege', HINT = format('GRANT USAGE ON SCHEMA cron TO %I; the jobs run as whoever schedules them.', current_user);
		END IF;
		RETURN;
	END IF;
	IF home <> current_database() THEN
		RAISE EXCEPTION 'pg_cron works from database "%", not from this one', home
			USING ERRCODE = '55000', HINT = format('In that database, as a role that may do this here: %s', (
				SELECT string_agg(format('SELECT cron.schedule_in_database(%L, %L, %L, %L);', j.job, j.schedule, j.command, current_database()), ' ')
				  FROM reconcile.standing_jobs() j));
	END IF;
	RAISE EXCEPTION 'pg_cron is not in this database'
		USING ERRCODE = '55000', HINT = 'Add it to shared_preload_libraries, set cron.database_name, restart, and CREATE EXTENSION pg_cron; or have any other scheduler do what reconcile.standing_jobs() lists.';
END $$;
COMMENT ON FUNCTION reconcile.check_pg_cron() IS
	'Error 55000 if jobs cannot be scheduled from here: pg_cron is not there, or works from another database, then with what is to be done in that one. 42501 if the caller may not schedule any.';

CREATE FUNCTION reconcile.schedule_jobs(run boolean DEFAULT NULL) RETURNS TABLE (job text, schedule text, command text)
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	wanted boolean := coalesce($1, (SELECT e.worker_pid IS NULL FROM reconcile.engine() e));
	j record;
BEGIN
	PERFORM reconcile.check_pg_cron();
	PERFORM reconcile.unschedule_jobs();
	FOR j IN SELECT s.* FROM reconcile.standing_jobs() s WHERE wanted OR s.job NOT LIKE 'reconcile run %' LOOP
		EXECUTE 'SELECT cron.schedule($1, $2, $3)' USING j.job, j.schedule, j.command;
		job := j.job;
		schedule := j.schedule;
		command := j.command;
		RETURN NEXT;
	END LOOP;
END $$;
COMMENT ON FUNCTION reconcile.schedule_jobs(boolean) IS
	'Register the standing jobs with pg_cron, as the caller, whose jobs they are then; returns them. run: the engine too, by default if this database has no worker. Twice is once; what is no longer wanted goes. Errors: 55000 pg_cron is not here, 42501 the caller may not schedule jobs.';

CREATE FUNCTION reconcile.unschedule_jobs() RETURNS integer
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	removed integer;
BEGIN
	PERFORM reconcile.check_pg_cron();
	EXECUTE 'SELECT count(cron.unschedule(c.jobid)) FROM cron.job c JOIN reconcile.standing_jobs() s ON s.job = c.jobname WHERE c.username = current_user'
		INTO removed;
	RETURN removed;
END $$;
COMMENT ON FUNCTION reconcile.unschedule_jobs() IS
	'Remove the caller''s standing jobs from pg_cron; returns how many there were. Errors: 55000 pg_cron is not here, 42501 the caller may not schedule jobs.';
