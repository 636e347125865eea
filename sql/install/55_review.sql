-- What waits for a person, with everything that is needed to decide.

-- A row that cannot be shown must not hide the others.
CREATE FUNCTION reconcile.try_preview(action_id uuid, OUT method text, OUT url text, OUT headers jsonb, OUT body text, OUT note text)
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
	SELECT p.method, p.url, p.headers, p.body, p.note INTO method, url, headers, body, note
	  FROM reconcile.preview($1) p WHERE p.part = 'request';
EXCEPTION WHEN data_exception OR undefined_object THEN
	note := 'the request cannot be made from the present definition: ' || SQLERRM;
END $$;
COMMENT ON FUNCTION reconcile.try_preview(uuid) IS 'The request of an action as preview() shows it, or a note why it cannot be shown.';

CREATE FUNCTION reconcile.attempts_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('number', t.number, 'state', t.state, 'sent_at', t.dispatched_at, 'ended_at', t.ended_at,
			'to', t.base_url, 'http_status', t.http_status, 'artifact_id', t.artifact_id, 'idempotency_key', t.idempotency_key,
			'request_hash', encode(t.request_hash, 'hex'), 'event', t.event, 'says', reconcile.evidence_words(t.evidence))) ORDER BY t.number)
	  FROM reconcile.attempt t WHERE t.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.attempts_summary(uuid) IS 'What is known about each attempt of an action; NULL if there is none.';

CREATE FUNCTION reconcile.lookups_summary(action_id uuid) RETURNS jsonb
	LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
	SELECT CASE WHEN count(*) > 0 THEN jsonb_strip_nulls(jsonb_build_object('asked', count(*), 'first_at', min(l.asked_at), 'last_at', max(l.asked_at),
			'found', nullif(count(*) FILTER (WHERE l.result = 'found'), 0), 'absent', nullif(count(*) FILTER (WHERE l.result = 'absent'), 0),
			'inconclusive', nullif(count(*) FILTER (WHERE l.result IN ('inconclusive', 'ambiguous', 'lost')), 0),
			'last_kind', (array_agg(l.kind ORDER BY l.asked_at DESC))[1], 'last_result', (array_agg(l.result ORDER BY l.asked_at DESC))[1],
			'last_reason', (array_agg(l.reason ORDER BY l.asked_at DESC))[1], 'last_http_status', (array_agg(l.http_status ORDER BY l.asked_at DESC))[1])) END
	  FROM reconcile.lookup l WHERE l.action_id = $1 $$;
COMMENT ON FUNCTION reconcile.lookups_summary(uuid) IS 'How often the provider was asked about an action, and what it said; NULL if never.';

-- What follows if "it did not happen" is said of something that did.
CREATE FUNCTION reconcile.risk_of_repeating(a reconcile.action) RETURNS text
	LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	op reconcile.operation;
	c record;
	dead_at timestamptz;
BEGIN
	SELECT o.* INTO op FROM reconcile.operation o WHERE o.operation = a.operation;
	c := reconcile.capabilities(op);
	-- Elapsed time: a day has 24 hours in every time zone.
	dead_at := a.key_first_at + extract(epoch FROM c.key_lifetime - c.key_margin - c.needed) * interval '1 second';
	RETURN concat_ws(' ', 'If it is sent again and the first one did happen:',
		CASE WHEN a.idempotency_key IS NOT NULL AND dead_at > statement_timestamp()
			THEN format('until %s the provider takes it for the same one, by its idempotency key; after that', reconcile.instant_words(dead_at)) END,
		CASE WHEN op.effect <> 'create' THEN format('the %s is done a second time.', op.effect)
			WHEN c.has_query THEN 'the provider is asked first, so that there is a second effect only if it does not show the first.'
			ELSE 'there is a second effect, and nothing prevents it.' END);
END $$;
COMMENT ON FUNCTION reconcile.risk_of_repeating(reconcile.action) IS 'What sending again would risk, by the capabilities of the operation.';

CREATE VIEW reconcile.review_queue WITH (security_barrier) AS
	SELECT a.action_id, a.version,
		CASE WHEN a.state = 'manual_review' THEN 'resolve' WHEN n.approval THEN 'approve' ELSE 'release' END AS needs,
		a.operation, a.provider, a.client_reference, a.submitter, a.state,
		reconcile.delivery(a.standing) AS delivery, a.priority, a.submitted_at, a.recorded_at AS since,
		CASE WHEN a.held THEN a.held_because ELSE coalesce(r.meaning, a.event) || coalesce(': ' || reconcile.evidence_words(a.evidence), '') END AS why,
		p.method, p.url, p.headers, p.body, p.note, a.fingerprint, a.artifact_id,
		reconcile.attempts_summary(a.action_id) AS attempts, reconcile.lookups_summary(a.action_id) AS lookups,
		w.open_until AS window_open_until, g.tier, g.query_surface,
		CASE WHEN a.state <> 'manual_review' THEN NULL
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN '{accepted,rejected}'::text[]
			ELSE '{executed,not_executed,accepted,rejected}' END AS decisions,
		CASE WHEN a.state = 'manual_review' THEN
			'If you say that it happened and it did not: it is CONFIRMED for whoever relies on it, nobody sends it again, and the effect is missing.' END AS if_executed_but_not,
		CASE WHEN a.state = 'manual_review' THEN reconcile.risk_of_repeating(a) END AS if_repeated,
		CASE WHEN n.approval THEN format('read the request; then release(%L, reason, %L), or cancel it', a.action_id, a.fingerprint)
			WHEN a.held THEN format('release(%L, reason), or cancel it', a.action_id)
			WHEN w.open_until IS NOT NULL THEN format('only "it happened" can be seen yet; "it did not" cannot before %s', reconcile.instant_words(w.open_until))
			WHEN reconcile.delivery(a.standing) = 'confirmed' THEN format('ask the provider for its verdict on %s; then resolve(%L, ''accepted'' or ''rejected'', reason, expected_version => %s)',
				coalesce(a.artifact_id, a.client_reference), a.action_id, a.version)
			WHEN a.event = 'inconclusive' THEN format('find out why its lookups prove nothing, then look_up_now(%L, reason); or look for %s yourself, then resolve() with expected_version => %s',
				a.action_id, a.client_reference, a.version)
			ELSE format('look for %s at the provider; then resolve(%L, ''executed'' or ''not_executed'', reason, expected_version => %s)', a.client_reference, a.action_id, a.version)
		END AS suggested
	FROM reconcile.action a
	JOIN reconcile.provider_grade g ON g.operation = a.operation
	LEFT JOIN (SELECT DISTINCT ON (t.event, t.to_state) t.event, t.to_state, t.meaning FROM reconcile.transition_rule t
		WHERE t.subject = 'action' ORDER BY t.event, t.to_state, t.from_state) r ON r.event = a.event AND r.to_state = a.state
	CROSS JOIN LATERAL (SELECT reconcile.awaits_approval(a) AS approval) n
	CROSS JOIN LATERAL (SELECT CASE WHEN a.state = 'manual_review' THEN reconcile.window_open_until(a.action_id) END AS open_until) w
	CROSS JOIN LATERAL reconcile.try_preview(a.action_id) p
	WHERE (a.state = 'manual_review' OR a.state = 'planned' AND a.held) AND reconcile.may_see(a.submitter);
COMMENT ON VIEW reconcile.review_queue IS
	'Everything that waits for a person, with all that is needed to decide: what was sent or is to be, what is known, what each choice risks, and what to do next. Secrets are masked as in preview().';
COMMENT ON COLUMN reconcile.review_queue.version IS 'To be passed to resolve() as expected_version.';
COMMENT ON COLUMN reconcile.review_queue.needs IS 'resolve: nobody but a person can tell what happened; approve: somebody has to approve it before it is sent; release: somebody holds it.';
COMMENT ON COLUMN reconcile.review_queue.why IS 'Why it waits: the last evidence, or the reason of whoever holds it.';
COMMENT ON COLUMN reconcile.review_queue.body IS 'As it is made from the present definition; request_hash in attempts is of what was sent.';
COMMENT ON COLUMN reconcile.review_queue.attempts IS 'Each attempt: when, to which address, with which key, what came back, the hash of the request.';
COMMENT ON COLUMN reconcile.review_queue.lookups IS 'How often the provider was asked, and what it said; NULL: never.';
COMMENT ON COLUMN reconcile.review_queue.window_open_until IS 'Until then "not there" proves nothing; NULL: its window is closed.';
COMMENT ON COLUMN reconcile.review_queue.decisions IS 'What resolve() takes now.';
COMMENT ON COLUMN reconcile.review_queue.if_executed_but_not IS 'What "it happened" risks.';
COMMENT ON COLUMN reconcile.review_queue.if_repeated IS 'What "it did not happen" risks, once it is sent again.';
