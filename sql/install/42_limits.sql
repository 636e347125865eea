-- Pausing and resuming: everything, a provider, an operation.

CREATE FUNCTION reconcile.pause_scope(provider text, operation text, OUT scope text, OUT name text)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF $1 IS NOT NULL AND $2 IS NOT NULL THEN
		RAISE EXCEPTION 'either a provider or an operation is paused or resumed, not both' USING ERRCODE = '22023', HINT = 'Name one of them; with neither it is about everything.';
	ELSIF $1 IS NOT NULL THEN
		scope := 'provider';
		name := $1;
		IF NOT EXISTS (SELECT FROM reconcile.provider p WHERE p.provider = $1) THEN
			RAISE EXCEPTION 'provider "%" does not exist', $1 USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.provider.';
		END IF;
	ELSIF $2 IS NOT NULL THEN
		scope := 'operation';
		name := $2;
		IF NOT EXISTS (SELECT FROM reconcile.operation o WHERE o.operation = $2) THEN
			RAISE EXCEPTION 'operation "%" does not exist', $2 USING ERRCODE = 'undefined_object', HINT = 'The names are in reconcile.operation.';
		END IF;
	ELSE
		scope := 'everything';
		name := '';
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.pause_scope(text, text) IS 'What a pause is about, by the two names of which one at most is given. Errors: 22023 both are, 42704 it does not exist.';

CREATE FUNCTION reconcile.pause(provider text DEFAULT NULL, reason text DEFAULT NULL, operation text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	s record;
BEGIN
	SELECT * INTO s FROM reconcile.pause_scope($1, $3);
	IF $2 IS NULL OR $2 !~ '[^[:space:]]' THEN
		RAISE EXCEPTION 'a reason is required to pause %', concat_ws(' ', s.scope, nullif(format('"%s"', s.name), '""'))
			USING ERRCODE = '22023', HINT = 'It is shown to whoever wonders.';
	END IF;
	IF s.scope = 'provider' THEN
		UPDATE reconcile.provider p SET paused_at = clock_timestamp(), paused_reason = $2 WHERE p.provider = $1 AND p.paused_at IS NULL;
	ELSE
		INSERT INTO reconcile.pause_period (scope, name, reason) VALUES (s.scope, s.name, $2)
			ON CONFLICT (scope, name) WHERE resumed_at IS NULL DO NOTHING;
	END IF;
END $$;
COMMENT ON FUNCTION reconcile.pause(text, text, text) IS
	'Send nothing to a provider, or of an operation, or, with neither, at all, until resume(). Also what is about to leave is held back; what has left stays open, lookups go on, submitting and confirming stay possible. Pausing twice keeps the first reason. Errors: 22023 no reason, or both names; 42704 no such provider or operation.';

CREATE FUNCTION reconcile.resume(provider text DEFAULT NULL, operation text DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	s record;
BEGIN
	SELECT * INTO s FROM reconcile.pause_scope($1, $2);
	IF s.scope = 'provider' THEN
		UPDATE reconcile.provider p SET paused_at = NULL, paused_reason = NULL WHERE p.provider = $1 AND p.paused_at IS NOT NULL;
		-- Who resumes it wants it tried.
		UPDATE reconcile.breaker b SET open_until_us = 1, open_until = clock_timestamp() WHERE b.provider = $1 AND b.open_until_us > 1;
	ELSE
		UPDATE reconcile.pause_period p SET resumed_at = clock_timestamp(), resumed_by = session_user
		 WHERE p.scope = s.scope AND p.name = s.name AND p.resumed_at IS NULL;
	END IF;
	PERFORM reconcile.wake();
END $$;
COMMENT ON FUNCTION reconcile.resume(text, text) IS
	'End the pause of a provider, of an operation, or, with neither, that of everything; what else is paused stays so. A breaker of that provider lets a probe go at once. What has waited goes out within the limits. Errors: 22023 both names, 42704 no such provider or operation.';
