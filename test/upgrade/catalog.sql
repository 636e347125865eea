-- Everything the catalogs say about the extension, one fact a line: kind, object, property, value.
-- ci/check-upgrade compares these lines of two databases.

SET search_path = pg_catalog;
SET TimeZone = 'UTC';

CREATE FUNCTION pg_temp.rights(acl aclitem[], kind "char", owner oid) RETURNS text LANGUAGE sql STABLE AS $$
	SELECT string_agg(format('%s:%s%s', CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END, privilege_type,
		CASE WHEN is_grantable THEN '*' END), ' ' ORDER BY grantee::regrole::text COLLATE "C", privilege_type COLLATE "C")
	  FROM aclexplode(coalesce(acl, acldefault(kind, owner))) $$;

CREATE TEMP VIEW member AS
	SELECT d.classid, d.objid FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	 WHERE d.deptype = 'e' AND e.extname = 'action_reconcile';

CREATE TEMP VIEW relation AS
	SELECT c.* FROM pg_class c JOIN member m ON m.classid = 'pg_class'::regclass AND m.objid = c.oid;

CREATE TEMP VIEW fact AS
	SELECT 'object' AS kind, pg_describe_object(classid, objid, 0) AS object, 'comment' AS property,
		coalesce((SELECT description FROM pg_description x WHERE x.classoid = m.classid AND x.objoid = m.objid AND objsubid = 0), '-') AS value
	  FROM member m WHERE m.classid <> 'pg_type'::regclass OR pg_describe_object(classid, objid, 0) !~ '\[\]$'
	UNION ALL
	SELECT 'initial rights', pg_describe_object(classoid, objoid, objsubid), privtype::text,
		(SELECT string_agg(a::text, ' ' ORDER BY a::text COLLATE "C") FROM unnest(initprivs) AS a)
	  FROM pg_init_privs i WHERE EXISTS (SELECT FROM member m WHERE m.classid = i.classoid AND m.objid = i.objoid)
	UNION ALL
	SELECT 'schema', nspname::text, 'rights', pg_temp.rights(nspacl, 'n', nspowner) || ', owner ' || pg_get_userbyid(nspowner)
	  FROM pg_namespace WHERE nspname = 'reconcile'
	UNION ALL
	SELECT 'relation', c.oid::regclass::text, p.property, p.value FROM relation c, LATERAL (VALUES
		('kind', concat_ws(' ', c.relkind, c.relpersistence, c.relreplident)), ('owner', pg_get_userbyid(c.relowner)::text),
		('rights', pg_temp.rights(c.relacl, CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)),
		('options', coalesce((SELECT string_agg(o, ' ' ORDER BY o COLLATE "C") FROM unnest(c.reloptions) AS o), '-')),
		('row security', c.relrowsecurity || ' ' || c.relforcerowsecurity), ('partition', coalesce(pg_get_expr(c.relpartbound, c.oid), pg_get_partkeydef(c.oid), '-')),
		('dumped', coalesce((SELECT 'where ' || e.extcondition[array_position(e.extconfig, c.oid)] FROM pg_extension e
			WHERE e.extname = 'action_reconcile' AND c.oid = ANY (e.extconfig)), 'no')),
		('definition', CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) ELSE '-' END)) AS p (property, value)
	UNION ALL
	SELECT 'column', format('%s.%I', a.attrelid::regclass, a.attname), p.property, p.value
	  FROM (SELECT *, row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS place FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped) a
	  JOIN relation c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum, LATERAL (VALUES
		('place', a.place::text), ('type', format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || ' ' || coalesce((SELECT collname::text FROM pg_collation k WHERE k.oid = a.attcollation), '')),
		('default', coalesce(pg_get_expr(d.adbin, d.adrelid), '-') || ' ' || a.attidentity::text || a.attgenerated::text), ('storage', a.attstorage::text),
		('rights', coalesce(pg_temp.rights(a.attacl, 'c', c.relowner), '-')),
		('comment', coalesce(col_description(a.attrelid, a.attnum), '-'))) AS p (property, value)
	 WHERE c.relkind <> 'S'
	UNION ALL
	SELECT 'constraint', format('%s on %s', x.conname, x.conrelid::regclass), 'definition', pg_get_constraintdef(x.oid) || CASE WHEN x.convalidated THEN '' ELSE ' not valid' END
	  FROM pg_constraint x JOIN relation c ON c.oid = x.conrelid WHERE x.contype <> 'n'
	UNION ALL
	SELECT 'index', i.indexrelid::regclass::text, 'definition', pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid || coalesce(' ' || obj_description(i.indexrelid, 'pg_class'), '')
	  FROM pg_index i JOIN relation c ON c.oid = i.indrelid
	UNION ALL
	SELECT 'trigger', format('%s on %s', t.tgname, t.tgrelid::regclass), 'definition', pg_get_triggerdef(t.oid) || ' enabled ' || t.tgenabled::text
	  FROM pg_trigger t JOIN relation c ON c.oid = t.tgrelid WHERE NOT t.tgisinternal
	UNION ALL
	SELECT 'policy', format('%s on %s', p.polname, p.polrelid::regclass), 'definition', concat_ws(' ', p.polcmd, p.polpermissive, p.polroles::regrole[], pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
	  FROM pg_policy p JOIN relation c ON c.oid = p.polrelid
	UNION ALL
	SELECT 'sequence', s.seqrelid::regclass::text, 'definition', concat_ws(' ', seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle)
	  FROM pg_sequence s JOIN relation c ON c.oid = s.seqrelid
	UNION ALL
	SELECT 'function', f.oid::regprocedure::text, p.property, p.value FROM pg_proc f JOIN member m ON m.classid = 'pg_proc'::regclass AND m.objid = f.oid, LATERAL (VALUES
		('definition', pg_get_functiondef(f.oid)), ('owner', pg_get_userbyid(f.proowner)::text),
		('rights', pg_temp.rights(f.proacl, 'f', f.proowner))) AS p (property, value)
	UNION ALL
	SELECT 'type', t.oid::regtype::text, 'definition', concat_ws(' ', t.typtype, t.typlen, t.typbyval, t.typalign, t.typstorage, pg_get_userbyid(t.typowner), pg_temp.rights(t.typacl, 'T', t.typowner),
		(SELECT string_agg(enumlabel, ', ' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
	  FROM pg_type t JOIN member m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid WHERE t.typelem = 0
	UNION ALL
	SELECT 'profile', profile, 'document', md5(document::text) FROM reconcile.profile_catalog;

SELECT json_build_array(kind, object, property, value) FROM fact ORDER BY kind, object COLLATE "C", property;
