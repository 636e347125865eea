-- Which version the loaded library is for; upgrades look at it first (sql/upgrade/begin.sql).

CREATE FUNCTION reconcile.library_version() RETURNS text
	AS 'MODULE_PATHNAME', 'ar_version' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION reconcile.library_version() IS
	'The version of the extension that the library of this server is for. If pg_extension.extversion is another one, the engine does not work.';
