-- Whose everything is, and what follows from that: over the whole catalog, whatever is added.
BEGIN;
SELECT plan(16);

-- The owner is nobody.
SELECT is_empty($$SELECT * FROM pg_roles WHERE rolname = 'reconcile_owner' AND (rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication OR NOT rolinherit)$$,
	'the owner cannot log in and has no power of its own');
SELECT is_empty($$SELECT roleid::regrole, member::regrole FROM pg_auth_members WHERE 'reconcile_owner'::regrole IN (roleid, member)$$, 'it has no members and is none');
SELECT is_empty($$SELECT rolname FROM pg_roles WHERE rolname LIKE 'reconcile\_%' AND rolname <> 'reconcile_owner' AND pg_has_role(oid, 'reconcile_owner', 'MEMBER')$$, 'not even an admin');
SELECT ok(NOT has_database_privilege('reconcile_owner', current_database(), 'CREATE') AND NOT has_schema_privilege('reconcile_owner', 'pg_catalog', 'CREATE'),
	'it makes nothing outside its schema');

-- Everything is the owner's, also what is made later.
DO $$ BEGIN PERFORM reconcile.create_history_partitions(2); END $$;
CREATE TEMP VIEW owned AS
	SELECT 'relation ' || oid::regclass AS what, relowner AS owner FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'function ' || oid::regprocedure, proowner FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'type ' || oid::regtype, typowner FROM pg_type WHERE typnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'operator ' || oid::regoperator, oprowner FROM pg_operator WHERE oprnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'operator class ' || opcname, opcowner FROM pg_opclass WHERE opcnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'operator family ' || opfname, opfowner FROM pg_opfamily WHERE opfnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'statistics ' || stxname, stxowner FROM pg_statistic_ext WHERE stxnamespace = 'reconcile'::regnamespace;
SELECT is_empty($$SELECT what, owner::regrole FROM owned WHERE owner <> 'reconcile_owner'::regrole$$, 'every object belongs to reconcile_owner');
SELECT cmp_ok(count(*), '>', 400::bigint, 'and there are many') FROM owned;
SELECT set_eq($$SELECT split_part(what, ' ', 1) FROM owned$$, ARRAY['relation', 'function', 'type', 'operator'], 'of each kind');
SELECT set_eq($$SELECT DISTINCT tableowner::text FROM pg_tables WHERE schemaname = 'reconcile' AND tablename LIKE 'history%'$$, ARRAY['reconcile_owner'], 'the partitions of the history among it');

-- Nothing to PUBLIC, in whichever catalog. Types are the exception: USAGE of a type of a schema that one may not use is nothing.
CREATE TEMP VIEW granted AS
	SELECT 'relation ' || oid::regclass AS what, acl.* FROM pg_class, aclexplode(coalesce(relacl, acldefault('r', relowner))) acl WHERE relnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'column ' || attrelid::regclass || '.' || attname, acl.* FROM pg_attribute JOIN pg_class c ON c.oid = attrelid, aclexplode(attacl) acl WHERE relnamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'function ' || oid::regprocedure, acl.* FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) acl WHERE pronamespace = 'reconcile'::regnamespace
	UNION ALL SELECT 'schema ' || nspname, acl.* FROM pg_namespace, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) acl WHERE nspname = 'reconcile'
	UNION ALL SELECT 'default ' || defaclobjtype::text, acl.* FROM pg_default_acl, aclexplode(defaclacl) acl WHERE defaclnamespace = 'reconcile'::regnamespace;
SELECT is_empty($$SELECT what, privilege_type FROM granted WHERE grantee = 0$$, 'PUBLIC has no right to anything');
SELECT is_empty($$SELECT what, grantee::regrole, privilege_type FROM granted WHERE grantee NOT IN ('reconcile_owner'::regrole, 'reconcile_reader'::regrole, 'reconcile_submitter'::regrole,
	'reconcile_operator'::regrole, 'reconcile_admin'::regrole, (SELECT nspowner FROM pg_namespace WHERE nspname = 'reconcile'))$$, 'only the roles have one');
SELECT is_empty($$SELECT what, grantee::regrole FROM granted WHERE is_grantable AND grantee <> 'reconcile_owner'::regrole$$, 'and none of them passes it on');
SELECT is_empty($$SELECT what, grantee::regrole, privilege_type FROM granted WHERE grantee <> 'reconcile_owner'::regrole AND privilege_type IN ('TRUNCATE', 'REFERENCES', 'TRIGGER', 'MAINTAIN')$$,
	'nobody empties, refers to or puts triggers on a table');
SELECT ok(EXISTS (SELECT FROM granted WHERE grantee = 'reconcile_submitter'::regrole AND what LIKE 'column %'), 'the grants of columns are among these');

-- No function looks for names where others put theirs: it is pinned, or its names are resolved when it is made. C code names what it
-- uses. A procedure that commits cannot be pinned, and qualifies every name.
SELECT is_empty($$SELECT p.oid::regprocedure, proconfig FROM pg_proc p JOIN pg_language l ON l.oid = prolang WHERE pronamespace = 'reconcile'::regnamespace
	AND NOT coalesce(proconfig, '{}') @> ARRAY['search_path=pg_catalog, pg_temp']
	AND (prosecdef OR lanname NOT IN ('c', 'internal') AND prosqlbody IS NULL AND p.oid::regprocedure::text !~ '^reconcile\.(maintain|measure_window|self_test)\(')$$,
	'every function is pinned to pg_catalog, pg_temp');
SELECT is_empty($$SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'reconcile'::regnamespace AND prosecdef AND prokind = 'p'$$, 'a procedure that commits runs with its caller''s rights');
SELECT is_empty($$SELECT c.oid::regclass FROM pg_class c WHERE relnamespace = 'reconcile'::regnamespace AND relkind = 'v' AND reloptions @> '{security_invoker=true}'$$,
	'a view reads with the rights of its owner, and shows what it decides to show');
SELECT * FROM finish();
ROLLBACK;
