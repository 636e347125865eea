-- action_reconcile: installation script, joined from sql/install/*.sql
\echo Use "CREATE EXTENSION action_reconcile" to load this file. \quit

-- Only when the extension is created.
SET LOCAL search_path TO pg_catalog, pg_temp;

-- Only when the extension is created.
DO $$
BEGIN
	-- Whoever owns the schema could put functions of its own beside ours.
	IF (SELECT nspowner FROM pg_namespace WHERE nspname = 'reconcile') <> (SELECT oid FROM pg_roles WHERE rolname = current_user) THEN
		RAISE EXCEPTION 'schema "reconcile" exists and belongs to somebody else'
			USING ERRCODE = 'duplicate_schema', HINT = 'Drop or rename it; the extension makes its own.';
	END IF;
	IF getdatabaseencoding() <> 'UTF8' THEN
		RAISE EXCEPTION 'action_reconcile needs a database with encoding UTF8, not %', getdatabaseencoding()
			USING ERRCODE = 'feature_not_supported', HINT = 'JSON, fingerprints and requests are UTF-8.';
	END IF;
END $$;

REVOKE ALL ON SCHEMA reconcile FROM PUBLIC;
COMMENT ON SCHEMA reconcile IS
	'External actions with provable outcomes. Submit with submit() or INSERT INTO action; follow with action_status and wait().';
