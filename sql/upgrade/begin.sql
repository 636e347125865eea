-- action_reconcile: upgrade script, made by sql/upgrade/generate.pl
\echo Use "ALTER EXTENSION action_reconcile UPDATE" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

-- The library first: this function is what an earlier one does not offer, or answers otherwise.
DO $$
DECLARE
	library text;
BEGIN
	BEGIN
		CREATE OR REPLACE FUNCTION reconcile.library_version() RETURNS text
			AS 'MODULE_PATHNAME', 'ar_version' LANGUAGE C STABLE STRICT PARALLEL SAFE;
		library := reconcile.library_version();
	EXCEPTION WHEN undefined_function THEN
		NULL;
	END;
	IF library IS DISTINCT FROM '@VERSION@' THEN
		RAISE EXCEPTION 'the server still runs an earlier library of action_reconcile'
			USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'Restart the server, so that it loads the library that is installed, then try again.';
	END IF;
END $$;

-- Whoever works with these tables ends first, and nobody begins before the end; the same order as the engine's.
LOCK TABLE reconcile.action, reconcile.attempt, reconcile.lookup, reconcile.history, reconcile.provider, reconcile.operation,
	reconcile.response_rule, reconcile.lookup_rule, reconcile.poll_rule, reconcile.inbox, reconcile.incident, reconcile.window_sample,
	reconcile.clock, reconcile.arming IN ACCESS EXCLUSIVE MODE;

-- The catalogue is this version's.
DELETE FROM reconcile.profile_catalog;
