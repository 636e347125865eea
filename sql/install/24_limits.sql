-- What holds sending back: breakers, pauses, and the limits with their present use.

CREATE TABLE reconcile.breaker (
	provider text COLLATE "C" PRIMARY KEY,
	failures integer NOT NULL,
	trips integer NOT NULL,
	open_until_us bigint NOT NULL,
	opened_at timestamptz,
	open_until timestamptz,
	reason text
) WITH (fillfactor = 50);
COMMENT ON TABLE reconcile.breaker IS
	'The circuit breakers, written by the engine when an attempt fails to reach a provider, and when one reaches it again. A row that is missing is a closed breaker.';
COMMENT ON COLUMN reconcile.breaker.failures IS 'Attempts in a row that have not reached the provider; those that left before it opened are not counted.';
COMMENT ON COLUMN reconcile.breaker.trips IS 'How often it has opened since the provider was last reached.';
COMMENT ON COLUMN reconcile.breaker.open_until_us IS 'Nothing is sent before this, on the logical clock of this database, microseconds; afterwards one attempt is the probe. 0: it is closed.';
COMMENT ON COLUMN reconcile.breaker.opened_at IS 'When the first of those openings was; NULL while it is closed.';
COMMENT ON COLUMN reconcile.breaker.open_until IS 'open_until_us for people.';
COMMENT ON COLUMN reconcile.breaker.reason IS 'What the last failure was.';

CREATE TABLE reconcile.pause_period (
	pause_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope text NOT NULL,
	name text COLLATE "C" NOT NULL,
	paused_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	paused_by text NOT NULL DEFAULT session_user,
	reason text NOT NULL,
	resumed_at timestamptz,
	resumed_by text,
	CONSTRAINT pause_period_scope CHECK (scope IN ('everything', 'provider', 'operation')),
	CONSTRAINT pause_period_name CHECK ((scope = 'everything') = (name = '')),
	CONSTRAINT pause_period_reason CHECK (reason ~ '[^[:space:]]'),
	CONSTRAINT pause_period_resumed CHECK ((resumed_at IS NULL) = (resumed_by IS NULL))
);
COMMENT ON TABLE reconcile.pause_period IS
	'When sending was paused, by whom and why: see pause(). A row without resumed_at is a pause that lasts. That of a provider stands in reconcile.provider too.';
COMMENT ON COLUMN reconcile.pause_period.scope IS 'everything, provider or operation.';
COMMENT ON COLUMN reconcile.pause_period.name IS 'Of the provider or the operation; empty for everything.';
COMMENT ON COLUMN reconcile.pause_period.paused_by IS 'The session user; engine: the provider has refused our credential.';
COMMENT ON SEQUENCE reconcile.pause_period_pause_id_seq IS 'Numbers pauses.';
CREATE UNIQUE INDEX pause_period_present ON reconcile.pause_period (scope, name) WHERE resumed_at IS NULL;

CREATE VIEW reconcile.provider_limits AS
	SELECT u.*, CASE
		WHEN u.paused_because IS NOT NULL THEN format('somebody resumes %s, paused by %s because: %s',
			CASE u.paused_scope WHEN 'everything' THEN 'everything' ELSE format('provider "%s"', u.provider) END, coalesce(u.paused_by, 'somebody'), u.paused_because)
		WHEN u.breaker = 'open' THEN format('the breaker of provider "%s" lets a probe go at %s%s', u.provider, to_char(u.probe_at, 'YYYY-MM-DD HH24:MI:SS TZ'), coalesce('; ' || u.breaker_reason, ''))
		WHEN u.breaker = 'half-open' AND u.in_flight > 0 THEN format('a probe has shown whether provider "%s" can be reached', u.provider)
		WHEN u.uncertain + u.in_flight >= u.ambiguity_budget
			THEN format('fewer than %s actions of provider "%s" are uncertain or being sent: its ambiguity budget', u.ambiguity_budget, u.provider)
		WHEN u.in_flight >= u.max_in_flight THEN format('fewer than %s requests are open at provider "%s"', u.max_in_flight, u.provider)
		END AS sends_when
	FROM (SELECT p.provider, s.scope AS paused_scope, s.paused_at, s.paused_by, s.reason AS paused_because,
			(SELECT array_agg(x.name ORDER BY x.name) FROM reconcile.pause_period x JOIN reconcile.operation o ON o.operation = x.name
			  WHERE x.scope = 'operation' AND x.resumed_at IS NULL AND o.provider = p.provider) AS paused_operations,
			(SELECT count(*) FROM reconcile.action a WHERE a.provider = p.provider AND a.state = 'submitted') AS in_flight, p.max_in_flight, p.max_rate,
			(SELECT count(*) FROM reconcile.action a WHERE a.provider = p.provider AND a.state IN ('outcome_unknown', 'reconciling', 'manual_review')) AS uncertain,
			p.ambiguity_budget,
			(SELECT count(*) FROM reconcile.lookup l JOIN reconcile.action a ON a.action_id = l.action_id
			  WHERE l.answered_at IS NULL AND a.provider = p.provider) AS lookups_in_flight, p.max_lookups_in_flight, p.max_lookup_rate,
			CASE WHEN b.open_until IS NULL THEN 'closed' WHEN b.open_until > clock_timestamp() THEN 'open' ELSE 'half-open' END AS breaker,
			coalesce(b.failures, 0) AS failures, p.breaker_after, b.opened_at, b.open_until AS probe_at,
			CASE WHEN b.failures > 0 THEN b.reason END AS breaker_reason
		FROM reconcile.provider p
		LEFT JOIN reconcile.breaker b ON b.provider = p.provider
		LEFT JOIN LATERAL (SELECT x.scope, x.paused_at, x.paused_by, x.reason FROM reconcile.pause_period x WHERE x.scope = 'everything' AND x.resumed_at IS NULL
			UNION ALL SELECT 'provider', p.paused_at, p.paused_by, p.paused_reason WHERE p.paused_at IS NOT NULL LIMIT 1) s ON true) u;
COMMENT ON VIEW reconcile.provider_limits IS 'Each provider: what is used of its limits now, whether it is paused and by whom, the state of its breaker.';
COMMENT ON COLUMN reconcile.provider_limits.in_flight IS 'Attempts that are being sent, or whose end is not recorded yet.';
COMMENT ON COLUMN reconcile.provider_limits.uncertain IS 'Actions that are outcome_unknown, reconciling or in manual_review: with in_flight they use up the ambiguity budget.';
COMMENT ON COLUMN reconcile.provider_limits.breaker IS
	'closed; open: nothing is sent before probe_at; half-open: one attempt at a time is the probe.';
COMMENT ON COLUMN reconcile.provider_limits.sends_when IS 'What has to happen before something is sent to it; NULL: it may be sent, at max_rate.';
