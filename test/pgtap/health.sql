-- What health and metrics say, by what is in the database.
BEGIN;
SELECT plan(26);

-- What a monitor builds on.
CREATE FUNCTION pg_temp.columns_of(view text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = ('reconcile.' || $1)::regclass AND attnum > 0 $$;
SELECT is(pg_temp.columns_of('health_check'), 'name text, ok boolean, level text, detail text, hint text', 'health_check');
SELECT is(pg_temp.columns_of('metrics'), 'name text, labels jsonb, value double precision, type text, help text', 'metrics');

-- Every guard is known to the view that looks after them, so that a new one cannot be forgotten.
DO $$ BEGIN PERFORM reconcile.create_history_partitions(2); END $$;
SELECT set_eq($$SELECT relation || ' ' || guard FROM reconcile.guard$$, $$SELECT relname || ' ' || tgname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
	WHERE relnamespace = 'reconcile'::regnamespace AND NOT tgisinternal AND tgenabled = 'A'$$, 'the guards are those triggers that fire always');
SELECT set_eq('SELECT DISTINCT state FROM reconcile.guard', ARRAY['on'], 'and all of them are on');

-- Each way to switch one off is told apart.
ALTER TABLE reconcile.attempt DISABLE TRIGGER attempt_guard;
ALTER TABLE reconcile.history_default ENABLE TRIGGER history_no_truncate;
ALTER TABLE reconcile.provider DISABLE TRIGGER provider_changed;
DROP TRIGGER action_no_truncate ON reconcile.action;
SELECT set_eq($$SELECT relation || ' ' || guard || ' ' || state FROM reconcile.guard WHERE state <> 'on'$$, ARRAY['attempt attempt_guard disabled',
	'history_default history_no_truncate not always on', 'provider provider_changed disabled', 'action action_no_truncate missing'], 'what is off');
SELECT is(level, 'critical', 'a guard that is off is critical') FROM reconcile.health_check WHERE name = 'guards';
SELECT is(detail, 'action_no_truncate on action is missing, attempt_guard on attempt is disabled, history_no_truncate on history_default is not always on, provider_changed on provider is disabled',
	'and is named') FROM reconcile.health_check WHERE name = 'guards';
SELECT is(value, 4::double precision, 'and counted') FROM reconcile.metrics WHERE name = 'action_reconcile_guards_missing';

-- What is ok, and how bad what is not.
SELECT set_eq($$SELECT level FROM reconcile.health_check WHERE ok$$, ARRAY['ok'], 'what is ok has no level');
SELECT is_empty($$SELECT * FROM reconcile.health_check WHERE ok IS NULL OR detail IS NULL OR (hint IS NULL) <> ok OR level NOT IN ('ok', 'warning', 'critical')$$,
	'each check says what is seen; each that fails says what helps');
SELECT is((SELECT array_agg(ok) FROM reconcile.health_check), (SELECT array_agg(ok ORDER BY ok) FROM reconcile.health_check), 'what is wrong comes first');
SELECT is_empty($$SELECT name FROM reconcile.health_check GROUP BY name HAVING count(*) > 1$$, 'one row a check');

-- How far the partitions reach, if one is missing in between.
SELECT is(reconcile.partitions_until(), date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + interval '3 months', 'this month and two more') FROM (SELECT set_config('TimeZone', 'UTC', true)) z;
DO $$ BEGIN EXECUTE format('DROP TABLE reconcile.history_%s', to_char(now() AT TIME ZONE 'UTC' + interval '1 month' - interval '1 day' * (extract(day FROM now() AT TIME ZONE 'UTC') - 1), 'YYYY_MM')); END $$;
SELECT is(reconcile.partitions_until(), date_trunc('month', now()) + interval '1 month', 'a gap ends it');
SET LOCAL DateStyle = 'German'; SET LOCAL TimeZone = 'America/New_York';
SELECT is(reconcile.partitions_until() AT TIME ZONE 'UTC', date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month', 'whatever the session''s settings are');
RESET DateStyle; RESET TimeZone;

-- An elapsed time in words.
SELECT is(array_agg(reconcile.rough_words(i) ORDER BY i), ARRAY['0 s', '119 s', '2 min', '119 min', '2 h', '47 h', '2 d'], 'as much as matters')
  FROM unnest('{-3 s,119.9 s,120 s,7199 s,2 h,47 h 59 min,50 h}'::interval[]) i;

-- The metrics as text.
SELECT is(reconcile.metrics_escape(E'a\\b"c\nd'), E'a\\\\b\\"c\\nd', 'what a label must not hold is escaped');
CREATE TEMP TABLE line AS SELECT row_number() OVER () AS n, l FROM regexp_split_to_table((SELECT reconcile.metrics_text()), E'\n') l;
SELECT is((SELECT l FROM line ORDER BY n DESC LIMIT 1), '', 'the text ends with the end of a line');
SELECT is((SELECT l FROM line ORDER BY n DESC OFFSET 1 LIMIT 1), '# EOF', 'its last line is # EOF');
SELECT is((SELECT count(*) FROM line WHERE l = '# EOF'), 1::bigint, 'which is there once');
SELECT is_empty($$SELECT l FROM line WHERE l <> '' AND l <> '# EOF' AND l !~ '^# (TYPE [a-z_]+ (gauge|counter)|UNIT [a-z_]+_seconds seconds|HELP [a-z_]+ .+)$'
	AND l !~ '^[a-z_]+(\{[a-z_]+="(\\["\\n]|[^"\\])*"(,[a-z_]+="(\\["\\n]|[^"\\])*")*\})? -?[0-9.]+(e[+-][0-9]+)?$'$$, 'every line is one of four kinds');
-- Whose family a line belongs to, by its name.
CREATE TEMP TABLE piece AS SELECT n, l, coalesce(substring(l FROM '^# (TYPE|UNIT|HELP) '), 'sample') AS kind,
	coalesce(substring(l FROM '^# \w+ ([a-z_]+)'), regexp_replace(substring(l FROM '^[a-z_]+'), '_total$', '')) AS family FROM line WHERE l NOT IN ('', '# EOF');
SELECT is_empty($$SELECT family FROM piece GROUP BY family HAVING count(*) <> max(n) - min(n) + 1$$, 'each family stands together');
SELECT is_empty($$SELECT family FROM piece GROUP BY family HAVING string_agg(kind, ' ' ORDER BY n) !~ '^TYPE (UNIT )?HELP sample( sample)*$'$$, 'type, unit and help come once, and before the samples');
SELECT is_empty($$SELECT l FROM piece WHERE kind = 'sample' AND (l ~ '_total[ {]') <> (family IN (SELECT family FROM piece WHERE l ~ '^# TYPE .* counter$'))$$,
	'the samples of counters, and no other, are called total');
SELECT is_empty($$SELECT family FROM piece GROUP BY family HAVING (family ~ '_seconds$') <> bool_or(kind = 'UNIT')$$, 'what is in seconds says so');
SELECT set_eq($$SELECT DISTINCT family FROM piece$$, $$SELECT DISTINCT name FROM reconcile.metrics$$, 'all of it is there');
SELECT * FROM finish();
ROLLBACK;
