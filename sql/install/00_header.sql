-- action_reconcile: installation script, joined from sql/install/*.sql
\echo Use "CREATE EXTENSION action_reconcile" to load this file. \quit

SET LOCAL search_path TO pg_catalog, pg_temp;

REVOKE ALL ON SCHEMA reconcile FROM PUBLIC;
COMMENT ON SCHEMA reconcile IS
	'External actions with provable outcomes. Submit with submit() or INSERT INTO action; follow with action_status and wait().';
