-- Profiles: a provider with all its operations in one document, and the catalogue of those that are shipped.

CREATE TABLE reconcile.profile_catalog (
	profile text COLLATE "C" GENERATED ALWAYS AS (document ->> 'profile') STORED PRIMARY KEY,
	profile_version integer NOT NULL GENERATED ALWAYS AS ((document ->> 'profile_version')::integer) STORED,
	title text NOT NULL GENERATED ALWAYS AS (document ->> 'title') STORED,
	documentation text NOT NULL GENERATED ALWAYS AS (document ->> 'documentation') STORED,
	operations integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(jsonb_path_query_array(document, '$.operations.keyvalue()'))) STORED,
	facts integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(document -> 'facts')) STORED,
	unproven_facts integer NOT NULL GENERATED ALWAYS AS (jsonb_array_length(jsonb_path_query_array(document, '$.facts[*] ? (@.mark != "documented")'))) STORED,
	document jsonb NOT NULL
);
COMMENT ON TABLE reconcile.profile_catalog IS
	'The profiles that come with the extension, as they were written in profiles/*.json. Filled by the installation script, so a dump does not carry it. See adopt_profile().';
COMMENT ON COLUMN reconcile.profile_catalog.operations IS 'How many operations it describes.';
COMMENT ON COLUMN reconcile.profile_catalog.facts IS 'How many facts it states, each with its source and the day it was read.';
COMMENT ON COLUMN reconcile.profile_catalog.unproven_facts IS 'How many of them are reported or assumed, not documented.';
COMMENT ON COLUMN reconcile.profile_catalog.document IS 'The profile itself, as define_provider() takes it.';

CREATE TABLE reconcile.profile_fact (
	provider text COLLATE "C" NOT NULL REFERENCES reconcile.provider ON DELETE CASCADE,
	position integer NOT NULL,
	about text NOT NULL,
	says text NOT NULL,
	source text NOT NULL,
	read_on date NOT NULL,
	mark text NOT NULL,
	PRIMARY KEY (provider, position),
	CONSTRAINT profile_fact_mark CHECK (mark IN ('documented', 'reported', 'assumed'))
);
COMMENT ON TABLE reconcile.profile_fact IS 'Where the parts of an adopted profile are known from.';
COMMENT ON COLUMN reconcile.profile_fact.about IS 'The part it speaks of, as a path: provider.COLUMN, operations.NAME.COLUMN, operations.NAME.lookups.N.COLUMN, ...';
COMMENT ON COLUMN reconcile.profile_fact.read_on IS 'When the source was read last.';
COMMENT ON COLUMN reconcile.profile_fact.mark IS 'documented by the provider, reported by others, or assumed: without any source that says so.';

CREATE TABLE reconcile.provider_override (
	provider text COLLATE "C" PRIMARY KEY REFERENCES reconcile.provider ON DELETE CASCADE,
	overrides jsonb NOT NULL,
	CONSTRAINT provider_override_object CHECK (jsonb_typeof(overrides) = 'object')
);
COMMENT ON TABLE reconcile.provider_override IS 'What is different here from what a provider''s profile says, kept over new versions of the profile.';
COMMENT ON COLUMN reconcile.provider_override.overrides IS 'Columns of reconcile.provider with their values here, such as base_url, credential or max_in_flight; under events columns of reconcile.event_source.';

-- What may stand in a profile.

CREATE FUNCTION reconcile.profile_refused(problem text, hint text) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION '%', $1 USING ERRCODE = '22023', HINT = $2;
END $$;
COMMENT ON FUNCTION reconcile.profile_refused(text, text) IS 'Error 22023 about a profile: always.';

CREATE FUNCTION reconcile.profile_columns(part text) RETURNS TABLE (name text, type text, json_type text)
	LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
		CASE a.atttypid WHEN 'boolean'::regtype THEN 'boolean' WHEN 'integer'::regtype THEN 'integer' WHEN 'numeric'::regtype THEN 'number' WHEN 'jsonb'::regtype THEN 'value'
			WHEN 'integer[]'::regtype THEN 'array of integers' WHEN 'text[]'::regtype THEN 'array of strings' ELSE 'string' END
	  FROM pg_attribute a
	 WHERE a.attrelid = (CASE $1 WHEN 'provider' THEN 'reconcile.provider' WHEN 'operation' THEN 'reconcile.operation' WHEN 'answers' THEN 'reconcile.response_rule'
			WHEN 'lookups' THEN 'reconcile.lookup_rule' WHEN 'poll' THEN 'reconcile.poll_rule' WHEN 'facts' THEN 'reconcile.profile_fact'
			WHEN 'events' THEN 'reconcile.event_source' WHEN 'rules' THEN 'reconcile.event_rule' END)::regclass
	   AND a.attnum > 0 AND NOT a.attisdropped
	   AND a.attname NOT IN ('operation', 'provider', 'version', 'position', 'profile', 'profile_version', 'paused_at', 'paused_reason', 'paused_by')
	 ORDER BY a.attnum
$$;
COMMENT ON FUNCTION reconcile.profile_columns(text) IS 'The keys that a part of a profile may have (provider, operation, answers, lookups, poll, events, rules, facts): columns, with the JSON type of each.';

CREATE FUNCTION reconcile.check_profile_value(value jsonb, name text, type text, json_type text, place text) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	given text := jsonb_typeof($1);
	fits boolean;
	problem text;
BEGIN
	fits := CASE $4
		WHEN 'value' THEN given <> 'null'
		WHEN 'integer' THEN given = 'number' AND $1::text ~ '^-?[0-9]+$'
		WHEN 'array of integers' THEN given = 'array' AND NOT jsonb_path_exists($1, 'strict $[*] ? (@.type() != "number" || @ != @.floor())')
		WHEN 'array of strings' THEN given = 'array' AND NOT jsonb_path_exists($1, 'strict $[*] ? (@.type() != "string")')
		ELSE given = $4 END;
	IF NOT fits THEN
		PERFORM reconcile.profile_refused(format('"%s" in %s must be %s, not %s', $2, $5,
				CASE WHEN $4 = 'value' THEN 'a JSON value' WHEN $4 ~ '^[aeiou]' THEN 'an ' || $4 ELSE 'a ' || $4 END,
				CASE WHEN given = 'null' THEN 'null' ELSE $1::text END),
			CASE WHEN given = 'null' THEN 'Leave the key out: it then has its default.' ELSE format('Its type is %s.', $3) END);
	END IF;
	IF $4 = 'string' AND $3 <> 'text' THEN
		BEGIN
			EXECUTE format('SELECT %L::%s', $1 #>> '{}', $3);
		EXCEPTION WHEN data_exception OR syntax_error OR invalid_parameter_value THEN
			GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT;
			PERFORM reconcile.profile_refused(format('"%s" in %s: %s', $2, $5, problem), format('It must be the text of a value of type %s.', $3));
		END;
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_value(jsonb, text, text, text, text) IS 'Error 22023, naming the key and its place, if a value in a profile is not of its column''s type.';

CREATE FUNCTION reconcile.check_profile_keys(part jsonb, place text, known text[], required text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	stray text;
BEGIN
	IF jsonb_typeof($1) IS DISTINCT FROM 'object' THEN
		PERFORM reconcile.profile_refused(format('%s must be an object, not %s', $2, coalesce($1::text, 'nothing')), format('Its keys are: %s.', array_to_string($3, ', ')));
	END IF;
	SELECT k INTO stray FROM jsonb_object_keys($1) k WHERE NOT k = ANY ($3) LIMIT 1;
	IF FOUND THEN
		PERFORM reconcile.profile_refused(format('unknown key "%s" in %s', stray, $2), format('Known are: %s.', array_to_string($3, ', ')));
	END IF;
	SELECT k INTO stray FROM unnest($4) k WHERE NOT $1 ? k LIMIT 1;
	IF FOUND THEN
		PERFORM reconcile.profile_refused(format('"%s" is missing in %s', stray, $2), format('Required are: %s.', array_to_string($4, ', ')));
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_keys(jsonb, text, text[], text[]) IS 'Error 22023, naming the key and its place, if a part of a profile has an unknown key or lacks a required one.';

CREATE FUNCTION reconcile.check_profile_row(part jsonb, kind text, place text, required text[], nested text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	PERFORM reconcile.check_profile_keys($1, $3, (SELECT array_agg(c.name) FROM reconcile.profile_columns($2) c) || $5, $4);
	PERFORM reconcile.check_profile_value($1 -> c.name, c.name, c.type, c.json_type, $3) FROM reconcile.profile_columns($2) c WHERE $1 ? c.name;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_row(jsonb, text, text, text[], text[]) IS 'Error 22023 if a part of a profile that becomes a row has an unknown key, lacks one, or holds a value of the wrong type.';

CREATE FUNCTION reconcile.check_profile_rows(list jsonb, kind text, place text, required text[]) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF jsonb_typeof($1) <> 'array' THEN
		PERFORM reconcile.profile_refused(format('%s must be an array, not %s', $3, $1), 'It is an array of objects, in the order in which they count.');
	END IF;
	PERFORM reconcile.check_profile_row(e.row, $2, format('%s.%s', $3, e.n), $4, '{}') FROM jsonb_array_elements($1) WITH ORDINALITY AS e (row, n);
END $$;
COMMENT ON FUNCTION reconcile.check_profile_rows(jsonb, text, text, text[]) IS 'Error 22023 about the first of the rows of a part of a profile that is wrong.';

CREATE FUNCTION reconcile.check_profile(profile jsonb) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
	op jsonb;
	place text;
BEGIN
	PERFORM reconcile.check_profile_keys($1, 'the profile', '{profile,profile_version,title,documentation,provider,operations,events,facts}', '{profile,profile_version,provider,operations}');
	PERFORM reconcile.check_profile_value($1 -> k, k, 'text', 'string', 'the profile') FROM unnest('{profile,title,documentation}'::text[]) k WHERE $1 ? k;
	PERFORM reconcile.check_profile_value($1 -> 'profile_version', 'profile_version', 'integer', 'integer', 'the profile');
	PERFORM reconcile.check_profile_row($1 -> 'provider', 'provider', 'provider', '{base_url}', '{}');
	IF jsonb_typeof($1 -> 'operations') <> 'object' OR $1 -> 'operations' = '{}' THEN
		PERFORM reconcile.profile_refused('operations must be an object with at least one operation', 'Its keys are the names of the operations, such as "stripe.refund.create".');
	END IF;
	FOR name, op IN SELECT e.key, e.value FROM jsonb_each($1 -> 'operations') e LOOP
		place := 'operations.' || name;
		IF NOT starts_with(name, ($1 ->> 'profile') || '.') THEN
			PERFORM reconcile.profile_refused(format('operation "%s" is not named after its profile', name), format('Its name must begin with "%s.".', $1 ->> 'profile'));
		END IF;
		PERFORM reconcile.check_profile_row(op, 'operation', place, '{path}', '{answers,lookups,poll}');
		IF op ? 'answers' THEN
			PERFORM reconcile.check_profile_rows(op -> 'answers', 'answers', place || '.answers', '{class,because}');
		END IF;
		IF op ? 'lookups' THEN
			PERFORM reconcile.check_profile_rows(op -> 'lookups', 'lookups', place || '.lookups', '{kind}');
		END IF;
		IF op ? 'poll' THEN
			PERFORM reconcile.check_profile_row(op -> 'poll', 'poll', place || '.poll', '{state_path,accepted}', '{}');
		END IF;
	END LOOP;
	IF $1 ? 'events' THEN
		PERFORM reconcile.check_profile_row($1 -> 'events', 'events', 'events', '{scheme,rules}', '{rules}');
		PERFORM reconcile.check_profile_rows($1 #> '{events,rules}', 'rules', 'events.rules', '{condition,says,because}');
	END IF;
	IF $1 ? 'facts' THEN
		PERFORM reconcile.check_profile_rows($1 -> 'facts', 'facts', 'facts', '{about,says,source,read_on,mark}');
		SELECT f ->> 'mark' INTO place FROM jsonb_array_elements($1 -> 'facts') f WHERE f ->> 'mark' NOT IN ('documented', 'reported', 'assumed') LIMIT 1;
		IF FOUND THEN
			PERFORM reconcile.profile_refused(format('no fact can be marked "%s"', place), 'The marks are documented, reported and assumed.');
		END IF;
		SELECT f ->> 'about' INTO place FROM jsonb_array_elements($1 -> 'facts') f
		 WHERE NOT starts_with(f ->> 'about', 'provider.') AND NOT ($1 ? 'events' AND starts_with(f ->> 'about', 'events.')) AND NOT EXISTS (SELECT FROM jsonb_object_keys($1 -> 'operations') o
			WHERE f ->> 'about' = 'operations.' || o OR starts_with(f ->> 'about', 'operations.' || o || '.')) LIMIT 1;
		IF FOUND THEN
			PERFORM reconcile.profile_refused(format('a fact is about "%s", which is not in the profile', place), 'It is about provider.COLUMN, about operations.NAME and a part of it, or about a part of events.');
		END IF;
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile(jsonb) IS
	'Error 22023, naming the key and its place, unless the document has the form of a profile: known keys only, the required ones, and values of the right types.';

-- Making the rows of a profile.

CREATE FUNCTION reconcile.profile_relation(part text) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS
	$$ SELECT CASE $1 WHEN 'answers' THEN 'response_rule' WHEN 'lookups' THEN 'lookup_rule' WHEN 'poll' THEN 'poll_rule' WHEN 'facts' THEN 'profile_fact'
		WHEN 'events' THEN 'event_source' WHEN 'rules' THEN 'event_rule' ELSE $1 END $$;
COMMENT ON FUNCTION reconcile.profile_relation(text) IS 'The table that holds a part of a profile.';

CREATE FUNCTION reconcile.whole_row(part text, given jsonb) RETURNS jsonb
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	defaults text;
	result jsonb;
BEGIN
	SELECT string_agg(format('%L, %s', c.name, coalesce(pg_get_expr(d.adbin, d.adrelid), 'NULL')), ', ') INTO defaults
	  FROM reconcile.profile_columns($1) c
	  JOIN pg_attribute a ON a.attrelid = format('reconcile.%I', reconcile.profile_relation($1))::regclass AND a.attname = c.name
	  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum;
	EXECUTE format('SELECT jsonb_build_object(%s)', defaults) INTO result;
	result := result || $2;
	IF $1 = 'operation' AND result ->> 'effect' IS NULL THEN
		result := result || jsonb_build_object('effect', CASE result ->> 'method' WHEN 'DELETE' THEN 'delete' WHEN 'PATCH' THEN 'update' ELSE 'create' END);
	END IF;
	-- Through the types and back, so that it can be compared with what is stored.
	EXECUTE format('SELECT to_jsonb(jsonb_populate_record(NULL::reconcile.%I, $1))', reconcile.profile_relation($1)) INTO defaults USING result;
	RETURN (SELECT jsonb_object_agg(e.key, e.value) FROM jsonb_each(defaults::jsonb) e WHERE result ? e.key);
END $$;
COMMENT ON FUNCTION reconcile.whole_row(text, jsonb) IS 'A row of a part of a profile, with the defaults of what is not given, as the table would hold it.';

CREATE FUNCTION reconcile.keep_widened(kept jsonb, given jsonb, place text) RETURNS jsonb
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $1 ->> 'window_source' = 'measured' AND ($1 ->> 'consistency_window')::interval > coalesce(($2 ->> 'consistency_window')::interval, '0') THEN
		RAISE NOTICE 'the window of % stays at % as it was measured, although its profile says %', $3,
			reconcile.elapsed_words(($1 ->> 'consistency_window')::interval),
			coalesce(reconcile.elapsed_words(($2 ->> 'consistency_window')::interval), 'nothing')
			USING HINT = 'Set the column by hand to narrow it.';
		RETURN $2 || jsonb_build_object('consistency_window', $1 -> 'consistency_window', 'window_source', 'measured');
	END IF;
	RETURN $2;
END $$;
COMMENT ON FUNCTION reconcile.keep_widened(jsonb, jsonb, text) IS 'What a profile gives for a row, but for a longer window that has been measured here: no profile narrows that.';

CREATE FUNCTION reconcile.row_words(part text, named jsonb) RETURNS text
	LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE $1 WHEN 'answers' THEN format('response rule %s of operation "%s"', $2 ->> 'position', $2 ->> 'operation')
		WHEN 'lookups' THEN format('lookup rule %s of operation "%s"', $2 ->> 'position', $2 ->> 'operation')
		WHEN 'poll' THEN format('the poll rule of operation "%s"', $2 ->> 'operation')
		WHEN 'events' THEN format('the source of events of provider "%s"', $2 ->> 'provider')
		WHEN 'rules' THEN format('event rule %s of provider "%s"', $2 ->> 'position', $2 ->> 'provider')
		ELSE format('%s "%s"', $1, $2 ->> $1) END
$$;
COMMENT ON FUNCTION reconcile.row_words(text, jsonb) IS 'What a row of a part of a profile is called in messages.';

CREATE FUNCTION reconcile.apply_row(part text, named jsonb, given jsonb, pinned boolean) RETURNS text
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	relation text := reconcile.profile_relation($1);
	wanted jsonb := reconcile.whole_row($1, $3) || $2;
	stored jsonb;
	columns text;
	violated text;
BEGIN
	EXECUTE format('SELECT to_jsonb(t) FROM reconcile.%I t WHERE to_jsonb(t) @> $1', relation) INTO stored USING $2;
	IF stored ? 'consistency_window' AND NOT $4 THEN
		wanted := reconcile.keep_widened(stored, wanted, reconcile.row_words($1, $2));
	END IF;
	SELECT string_agg(quote_ident(e.key), ', ' ORDER BY e.key) INTO columns FROM jsonb_each(wanted) e
	 WHERE stored IS NULL OR e.value IS DISTINCT FROM stored -> e.key;
	IF stored IS NULL THEN
		EXECUTE format('INSERT INTO reconcile.%1$I (%2$s) SELECT %2$s FROM jsonb_populate_record(NULL::reconcile.%1$I, $1)', relation, columns) USING wanted;
		RETURN 'added';
	ELSIF columns IS NOT NULL THEN
		EXECUTE format('UPDATE reconcile.%1$I t SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(NULL::reconcile.%1$I, $1)) WHERE to_jsonb(t) @> $2', relation, columns)
			USING wanted, $2;
		RETURN 'changed: ' || columns;
	END IF;
	RETURN NULL;
EXCEPTION WHEN check_violation THEN
	GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
	RAISE EXCEPTION '% does not hold together: check %', reconcile.row_words($1, $2), violated
		USING ERRCODE = '22023', CONSTRAINT = violated,
			HINT = (SELECT coalesce(obj_description(c.oid, 'pg_constraint'), 'It requires ' || regexp_replace(pg_get_constraintdef(c.oid, true), '^CHECK ', '') || '.')
				FROM pg_constraint c WHERE c.conrelid = format('reconcile.%I', relation)::regclass AND c.conname = violated);
END $$;
COMMENT ON FUNCTION reconcile.apply_row(text, jsonb, jsonb, boolean) IS
	'Make the row of a part of a profile that is named so be what is given: added, changed (which columns), or NULL if it is so already. A window that was widened here is kept, unless pinned. Error 22023 naming the row if a check of its table refuses it.';

CREATE FUNCTION reconcile.apply_rules(operation text, definition jsonb) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	changed text[] := '{}';
	part text;
	what text;
	step text;
	row jsonb;
	n integer;
BEGIN
	FOREACH part IN ARRAY '{answers,lookups}'::text[] LOOP
		what := CASE part WHEN 'answers' THEN 'response rule' ELSE 'lookup rule' END;
		FOR row, n IN SELECT e.row, e.n FROM jsonb_array_elements($2 -> part) WITH ORDINALITY AS e (row, n) LOOP
			step := reconcile.apply_row(part, jsonb_build_object('operation', $1, 'position', n), row, false);
			IF step IS NOT NULL THEN
				changed := changed || format('%s %s of %s %s', what, n, $1, step);
			END IF;
		END LOOP;
	END LOOP;
	IF $2 ? 'poll' THEN
		step := reconcile.apply_row('poll', jsonb_build_object('operation', $1), $2 -> 'poll', false);
		IF step IS NOT NULL THEN
			changed := changed || format('poll rule of %s %s', $1, step);
		END IF;
	END IF;
	RETURN changed;
END $$;
COMMENT ON FUNCTION reconcile.apply_rules(text, jsonb) IS 'Make the rules of an operation be those of its definition in a profile; returns what changed.';

CREATE FUNCTION reconcile.drop_rules(operation text, definition jsonb) RETURNS text[]
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	changed text[] := '{}';
	n integer;
BEGIN
	FOR n IN DELETE FROM reconcile.response_rule r WHERE r.operation = $1 AND r.position > coalesce(jsonb_array_length($2 -> 'answers'), 0) RETURNING r.position LOOP
		changed := changed || format('response rule %s of %s removed', n, $1);
	END LOOP;
	FOR n IN DELETE FROM reconcile.lookup_rule l WHERE l.operation = $1 AND l.position > coalesce(jsonb_array_length($2 -> 'lookups'), 0) RETURNING l.position LOOP
		changed := changed || format('lookup rule %s of %s removed', n, $1);
	END LOOP;
	DELETE FROM reconcile.poll_rule p WHERE p.operation = $1 AND NOT $2 ? 'poll';
	IF FOUND THEN
		changed := changed || format('poll rule of %s removed', $1);
	END IF;
	RETURN changed;
END $$;
COMMENT ON FUNCTION reconcile.drop_rules(text, jsonb) IS 'Remove the rules of an operation that its definition in a profile no longer has; returns what went. Error 55000 if actions rest on one.';

CREATE FUNCTION reconcile.arm_if_first() RETURNS void
	LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	problem text;
	advice text;
BEGIN
	IF EXISTS (SELECT FROM reconcile.arming) OR EXISTS (SELECT FROM reconcile.provider) OR EXISTS (SELECT FROM reconcile.action) THEN
		RETURN;
	END IF;
	PERFORM reconcile.arm('first define_provider'::text);
EXCEPTION WHEN object_not_in_prerequisite_state THEN
	GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, advice = PG_EXCEPTION_HINT;
	RAISE NOTICE '%', problem USING HINT = concat_ws(' ', nullif(advice, ''), 'Then call reconcile.arm(reason): nothing is sent before.');
END $$;
COMMENT ON FUNCTION reconcile.arm_if_first() IS 'Arm a database that has no arming record, no provider and no action. Where that is not possible: a notice.';


CREATE FUNCTION reconcile.apply_facts(provider text, facts jsonb) RETURNS boolean
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	f reconcile.profile_fact;
	stored jsonb;
	wanted jsonb;
BEGIN
	SELECT coalesce(jsonb_agg(to_jsonb(x) - '{provider,position}'::text[] ORDER BY x.position), '[]') INTO stored FROM reconcile.profile_fact x WHERE x.provider = $1;
	SELECT coalesce(jsonb_agg(reconcile.whole_row('facts', e.row) ORDER BY e.n), '[]') INTO wanted FROM jsonb_array_elements($2) WITH ORDINALITY AS e (row, n);
	IF stored = wanted THEN
		RETURN false;
	END IF;
	DELETE FROM reconcile.profile_fact x WHERE x.provider = $1;
	FOR f IN INSERT INTO reconcile.profile_fact (provider, position, about, says, source, read_on, mark)
		SELECT $1, e.n, r.about, r.says, r.source, r.read_on, r.mark
		  FROM jsonb_array_elements($2) WITH ORDINALITY AS e (row, n), jsonb_populate_record(NULL::reconcile.profile_fact, e.row) r
		RETURNING * LOOP
		IF f.mark <> 'documented' THEN
			RAISE NOTICE '% is %: %', f.about, f.mark, f.says;
		ELSIF f.read_on + interval '1 year' < current_date THEN
			RAISE NOTICE '% was last read on %: %', f.about, to_char(f.read_on, 'YYYY-MM-DD'), f.says;
		END IF;
	END LOOP;
	RETURN true;
END $$;
COMMENT ON FUNCTION reconcile.apply_facts(text, jsonb) IS
	'Make the facts of a provider be these; a notice for each new one that is not documented, or was read more than a year ago. False if they are so already.';

CREATE FUNCTION reconcile.check_profile_version(profile jsonb, provider text) RETURNS void
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	stored reconcile.provider;
BEGIN
	SELECT * INTO stored FROM reconcile.provider p WHERE p.provider = $2;
	IF stored.provider IS NULL THEN
		RETURN;
	ELSIF stored.profile IS DISTINCT FROM $1 ->> 'profile' THEN
		RAISE EXCEPTION 'provider "%" was defined by %, not by profile "%"', $2, coalesce('profile "' || stored.profile || '"', 'hand'), $1 ->> 'profile'
			USING ERRCODE = '55000', HINT = 'Define it under another name: define_provider(profile, provider => ''NAME'').';
	ELSIF stored.profile_version > ($1 ->> 'profile_version')::integer THEN
		RAISE EXCEPTION 'provider "%" has version % of its profile, which is newer than %', $2, stored.profile_version, $1 ->> 'profile_version'
			USING ERRCODE = '55000', HINT = 'Take the newer profile; to go back on purpose, give the old content a new profile_version.';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.check_profile_version(jsonb, text) IS 'Error 55000 if a provider was defined otherwise, or by a newer version of the profile.';

CREATE FUNCTION reconcile.renamed_profile(profile jsonb, provider text) RETURNS jsonb
	LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT $1 || jsonb_build_object(
		'operations', (SELECT jsonb_object_agg($2 || substr(e.key, length($1 ->> 'profile') + 1), e.value) FROM jsonb_each($1 -> 'operations') e),
		'facts', (SELECT coalesce(jsonb_agg(e.fact || jsonb_build_object('about',
				regexp_replace(e.fact ->> 'about', '^operations\.' || ($1 ->> 'profile') || '\.', 'operations.' || $2 || '.')) ORDER BY e.n), '[]')
			FROM jsonb_array_elements($1 -> 'facts') WITH ORDINALITY AS e (fact, n)))
$$;
COMMENT ON FUNCTION reconcile.renamed_profile(jsonb, text) IS 'A profile whose operations are named after another provider.';

CREATE FUNCTION reconcile.define_provider(profile jsonb, overrides jsonb DEFAULT NULL, INOUT provider text DEFAULT NULL,
		OUT profile_version integer, OUT operations text[], OUT changed text[])
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	document jsonb := $1;
	name text;
	local jsonb := $2;
	step text;
	op text;
	operation_row reconcile.operation;
BEGIN
	PERFORM reconcile.check_profile(document);
	name := coalesce($3, document ->> 'profile');
	IF local IS NOT NULL THEN
		PERFORM reconcile.check_profile_row(local, 'provider', 'the overrides', '{}', '{events}');
		PERFORM reconcile.check_profile_row(local -> 'events', 'events', 'the overrides of events', '{}', '{}') WHERE local ? 'events';
	END IF;
	-- One at a time for a provider, without a lock that the engine would have to stand back for.
	PERFORM pg_advisory_xact_lock(hashtextextended('reconcile.define_provider ' || name, 0));
	PERFORM reconcile.check_profile_version(document, name);
	PERFORM reconcile.arm_if_first();
	document := reconcile.renamed_profile(document, name);
	local := coalesce(local, (SELECT o.overrides FROM reconcile.provider_override o WHERE o.provider = name), '{}');
	changed := '{}';

	step := reconcile.apply_row('provider', jsonb_build_object('provider', name), document -> 'provider' || (local - 'events')
		|| jsonb_build_object('profile', document -> 'profile', 'profile_version', document -> 'profile_version'), local ? 'consistency_window');
	IF step IS NOT NULL THEN
		changed := changed || format('provider %s %s', name, step);
	END IF;
	INSERT INTO reconcile.provider_override AS o (provider, overrides) VALUES (name, local)
		ON CONFLICT (provider) DO UPDATE SET overrides = excluded.overrides WHERE o.overrides <> excluded.overrides;

	FOR op IN SELECT k FROM jsonb_object_keys(document -> 'operations') k ORDER BY k COLLATE "C" LOOP
		changed := changed || reconcile.drop_rules(op, document -> 'operations' -> op);
		step := reconcile.apply_row('operation', jsonb_build_object('operation', op),
			(document -> 'operations' -> op) - '{answers,lookups,poll}'::text[] || jsonb_build_object('provider', name), false);
		IF step IS NOT NULL THEN
			changed := changed || format('operation %s %s', op, step);
		END IF;
		changed := changed || reconcile.apply_rules(op, document -> 'operations' -> op);
		operations := operations || op;
		SELECT * INTO operation_row FROM reconcile.operation o WHERE o.operation = op;
		PERFORM reconcile.check_definition(operation_row);
	END LOOP;
	FOR op IN SELECT o.operation FROM reconcile.operation o WHERE o.provider = name AND NOT o.operation = ANY (operations) ORDER BY 1 LOOP
		RAISE NOTICE 'operation "%" is not in the profile and stays as it is', op;
	END LOOP;
	changed := changed || reconcile.apply_events(name, document -> 'events', local -> 'events');
	IF reconcile.apply_facts(name, coalesce(document -> 'facts', '[]')) THEN
		changed := changed || format('facts of %s changed', name);
	END IF;
	provider := name;
	profile_version := (document ->> 'profile_version')::integer;
END $$;
COMMENT ON FUNCTION reconcile.define_provider(jsonb, jsonb, text) IS
	'Define a provider with its operations by a profile, all or nothing. The same profile again changes nothing. overrides are columns of reconcile.provider that differ here, such as base_url or credential, and under events those of reconcile.event_source; they are kept until others are given ({} takes them back). provider names it and its operations otherwise, for a second account. The first call of all arms the database. Errors: 22023 the document is no profile or claims too much, 55000 another or a newer profile defined that provider, or actions rest on what would change.';

CREATE FUNCTION reconcile.adopt_profile(profile text, overrides jsonb DEFAULT NULL, INOUT provider text DEFAULT NULL,
		OUT profile_version integer, OUT operations text[], OUT changed text[])
	LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	document jsonb;
BEGIN
	SELECT c.document INTO document FROM reconcile.profile_catalog c WHERE c.profile = $1;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'profile "%" is not in the catalogue', $1
			USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.profile_catalog; a profile of your own goes to define_provider().';
	END IF;
	SELECT d.provider, d.profile_version, d.operations, d.changed INTO provider, profile_version, operations, changed
	  FROM reconcile.define_provider(document, $2, $3) d;
END $$;
COMMENT ON FUNCTION reconcile.adopt_profile(text, jsonb, text) IS
	'Define a provider by a profile of the catalogue; see define_provider(). Error 42704 if there is no such profile.';
