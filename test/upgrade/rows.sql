-- The tables in which a row, by the columns that there are before and after, is not what it was before the upgrade.

DO $$
DECLARE
	t name;
	columns text;
BEGIN
	CREATE TEMP TABLE changed (what text);
	FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'before'::regnamespace LOOP
		SELECT string_agg(quote_ident(o.attname), ', ') INTO columns FROM pg_attribute o JOIN pg_attribute n USING (attname)
		 WHERE o.attrelid = format('before.%I', t)::regclass AND n.attrelid = to_regclass(format('reconcile.%I', t)) AND o.attnum > 0;
		IF columns IS NOT NULL THEN
			EXECUTE format('INSERT INTO changed SELECT %3$L FROM ((SELECT ROW(%2$s)::text FROM before.%1$I EXCEPT ALL SELECT ROW(%2$s)::text FROM reconcile.%1$I)
				UNION ALL (SELECT ROW(%2$s)::text FROM reconcile.%1$I EXCEPT ALL SELECT ROW(%2$s)::text FROM before.%1$I)) x', t, columns, t);
		END IF;
	END LOOP;
END $$;
SELECT what || ': ' || count(*) FROM changed GROUP BY what ORDER BY what;
SELECT 'chains are broken: ' || count(*) FROM reconcile.verify_history() WHERE problem IS NOT NULL HAVING count(*) > 0;
SELECT 'nothing was there' FROM (SELECT count(DISTINCT state) AS n FROM before.action) b WHERE n < 12;
