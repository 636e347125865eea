/*
 * check.c
 *		Looking once more before the first byte, and what is too late to be sent.
 */
#include "store/dispatch.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/statement.h"

/*
 * The world may have moved between the claim and the first byte: everything
 * the send depends on is read again, in a snapshot of this moment.
 */
static ArStatement check_statement = {
	"SELECT CASE"
	" WHEN a.state <> 'submitted' OR a.dispatch_id <> $2 OR a.version <> $3 THEN 'the action has moved on'"
	" WHEN (SELECT p.paused_at FROM reconcile.provider p WHERE p.provider = a.provider) IS NOT NULL THEN 'the provider is paused'"
	" WHEN EXISTS (SELECT FROM reconcile.pause_period s WHERE s.resumed_at IS NULL AND s.scope = 'operation' AND s.name = a.operation) THEN 'the operation is paused'"
	" WHEN EXISTS (SELECT FROM reconcile.pause_period s WHERE s.resumed_at IS NULL AND s.scope = 'everything') THEN 'everything is paused'"
	" WHEN a.not_after <= $4 THEN 'its time has passed'"
	" WHEN a.held THEN 'it is held'"
	" WHEN EXISTS (SELECT FROM reconcile.rearming n WHERE n.action_id = a.action_id) THEN 'another copy of this database may have sent it'"
	" WHEN EXISTS (SELECT FROM reconcile.inbox i WHERE i.action_id = a.action_id AND i.applied_at IS NULL)"
	"  OR ((SELECT true FROM reconcile.inbox x WHERE x.action_id IS NULL AND x.applied_at IS NULL AND x.reference IS NOT NULL LIMIT 1)"
	"   AND reconcile.has_unmatched_word(a.provider, a.client_reference, a.submitter))"
	"  THEN 'something was said about it that has not been applied yet'"
	" WHEN (SELECT m.epoch FROM reconcile.arming m WHERE m.only_row) IS DISTINCT FROM $5 THEN 'this database is not armed'"
	" END"
	" FROM reconcile.action a WHERE a.action_id = $1",
	5, {UUIDOID, UUIDOID, INT4OID, TIMESTAMPTZOID, INT8OID}
};

/* For a request that may have been carried out already: its key has to keep the provider from doing it twice. */
static ArStatement check_key_statement = {
	"SELECT reconcile.key_is_alive(o.key_lifetime, o.key_margin,"
	"  (extract(epoch FROM p.attempt_timeout + p.late_arrival_max) * 1000000)::bigint,"
	"  a.key_first_at, a.key_first_boot_us, a.key_first_boot, $2, $3, $4, (SELECT max(c.wall_at) FROM reconcile.clock c))"
	" FROM reconcile.action a JOIN reconcile.operation o ON o.operation = a.operation JOIN reconcile.provider p ON p.provider = a.provider"
	" WHERE a.action_id = $1",
	4, {UUIDOID, TIMESTAMPTZOID, INT8OID, TEXTOID}
};

static bool
key_is_alive(const ArDispatch *dispatch)
{
	ArMoment	now = ar_moment_now();
	Datum		values[4];

	values[0] = UUIDPGetDatum(&dispatch->action_id);
	values[1] = TimestampTzGetDatum(now.wall);
	values[2] = Int64GetDatum(now.boot_us);
	values[3] = CStringGetTextDatum(now.boot);
	return ar_statement_run(&check_key_statement, values, NULL) == 1 && ar_result_bool(0, 1);
}

const char *
ar_store_check_dispatch(const ArDispatch *dispatch, int64 epoch)
{
	Datum		values[5];
	char	   *problem;

	values[0] = UUIDPGetDatum(&dispatch->action_id);
	values[1] = UUIDPGetDatum(&dispatch->dispatch_id);
	values[2] = Int32GetDatum(dispatch->version);
	values[3] = TimestampTzGetDatum(ar_wall_now());
	values[4] = Int64GetDatum(epoch);
	if (ar_statement_run(&check_statement, values, NULL) != 1)
		return "the action is gone";
	problem = ar_result_text(0, 1);
	if (problem == NULL && dispatch->resend && !key_is_alive(dispatch))
		return "the provider may have forgotten its key";
	return problem;
}

static ArStatement expire_statement = {
	"WITH late AS ("
	" SELECT action_id FROM reconcile.action WHERE state = 'planned' AND not_after <= $1"
	" ORDER BY not_after LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED)"
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'expire', state = 'expired',"
	"  standing = 'failed/pending', queued = false, held = false, held_because = NULL, attempt_number = NULL,"
	"  evidence = jsonb_build_object('not_after', a.not_after)"
	" FROM late WHERE a.action_id = late.action_id"
	" RETURNING pg_notify('reconcile', json_build_object('action_id', a.action_id, 'state', a.state, 'status', 'FAILED')::text)",
	1, {TIMESTAMPTZOID}
};

int
ar_store_expire(void)
{
	Datum		values[1];

	values[0] = TimestampTzGetDatum(ar_wall_now());
	return (int) ar_statement_run(&expire_statement, values, NULL);
}

/*
 * What waits for others to succeed, by "waiting", once for each that it needs,
 * and where that stands.  An action that was confirmed without the id of what
 * it made is not enough for a request that names it.
 */
#define NEEDS(waiting) \
	"listed AS MATERIALIZED (" \
	" SELECT a.action_id, a.version, a.operation, a.ordering_key, a.attempts, d.needed, d.place" \
	" FROM " waiting " a CROSS JOIN LATERAL unnest(a.depends_on) WITH ORDINALITY AS d(needed, place)" \
	"), needs AS MATERIALIZED (" \
	" SELECT l.*, x.state AS needed_state, x.state = 'succeeded' AND (x.artifact_id IS NOT NULL OR position(format('{depends_on.%s.artifact_id}', l.place)" \
	"   IN concat_ws(' ', o.path, o.headers, o.body_template, o.body_document)) = 0) AS ready" \
	" FROM listed l JOIN reconcile.operation o ON o.operation = l.operation LEFT JOIN" \
	"  (SELECT x.action_id, x.state, x.artifact_id FROM reconcile.action x WHERE x.action_id = ANY (ARRAY(SELECT needed FROM listed))) x" \
	"  ON x.action_id = l.needed)"

#define DEPENDENT \
	"(SELECT * FROM reconcile.action w WHERE w.state = 'planned' AND w.waits AND w.depends_on IS NOT NULL)"

/* Those of "chosen" that nobody holds and that are still as they were read. */
#define FREE_OF_CHOSEN \
	"free AS (" \
	" SELECT a.action_id FROM reconcile.action a JOIN chosen c ON c.action_id = a.action_id AND c.version = a.version" \
	" WHERE a.action_id = ANY (ARRAY(SELECT action_id FROM chosen)) FOR NO KEY UPDATE OF a SKIP LOCKED)"

#define FREE_STATEMENT \
	" UPDATE reconcile.action a SET waits = false FROM free WHERE a.action_id = free.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM free))"

#define FIRST_OF_KEY \
	"SELECT a.submitter, a.ordering_key, a.action_id, a.version, a.after_failure, a.operation, a.attempts, a.depends_on FROM reconcile.action a" \
	" WHERE a.state = 'planned' AND a.waits AND a.ordering_key IS NOT NULL"

/*
 * Of each ordering key the first that waits, if the one before is settled well
 * enough and no other of the key is open.  Keys are found by stepping from one
 * to the next, so that what waits behind the first of a key costs nothing.
 */
static ArStatement turn_of_key_statement = {
	"WITH RECURSIVE keyed AS ("
	" (" FIRST_OF_KEY " ORDER BY a.submitter, a.ordering_key, a.action_id LIMIT 1)"
	" UNION ALL"
	" SELECT n.* FROM keyed k CROSS JOIN LATERAL ("
	FIRST_OF_KEY " AND (a.submitter, a.ordering_key) > (k.submitter, k.ordering_key) ORDER BY a.submitter, a.ordering_key, a.action_id LIMIT 1) n"
	"), " NEEDS("keyed") ", chosen AS ("
	" SELECT k.action_id, k.version FROM keyed k"
	"  LEFT JOIN LATERAL (SELECT b.standing FROM reconcile.action b WHERE b.submitter = k.submitter AND b.ordering_key = k.ordering_key"
	"   AND b.action_id < k.action_id ORDER BY b.action_id DESC LIMIT 1) b ON true"
	"  WHERE coalesce(reconcile.resolved_status(b.standing), 'CONFIRMED') = ANY (CASE WHEN k.after_failure"
	"    THEN '{CONFIRMED,FAILED}'::reconcile.status[] ELSE '{CONFIRMED}' END)"
	"   AND NOT EXISTS (SELECT FROM reconcile.action x WHERE x.submitter = k.submitter AND x.ordering_key = k.ordering_key AND NOT x.waits"
	"    AND x.state IN ('planned', 'submitted', 'outcome_unknown', 'reconciling', 'manual_review', 'delivered'))"
	"   AND NOT EXISTS (SELECT FROM needs n WHERE n.action_id = k.action_id AND n.ready IS NOT TRUE)"
	"), " FREE_OF_CHOSEN FREE_STATEMENT,
	0, {0}
};

/* And everything else whose dependencies have succeeded. */
static ArStatement turn_of_dependent_statement = {
	"WITH " NEEDS(DEPENDENT) ", chosen AS ("
	" SELECT n.action_id, n.version FROM needs n WHERE n.ordering_key IS NULL"
	"  GROUP BY n.action_id, n.version HAVING bool_and(coalesce(n.ready, false))"
	"), " FREE_OF_CHOSEN FREE_STATEMENT,
	0, {0}
};

/* What was presumed only, and has no hash, was not sent by us. */
#define NEVER_SENT \
	"(SELECT true FROM reconcile.attempt t WHERE t.action_id = n.action_id AND t.request_hash <> '' LIMIT 1) IS NULL"

/* What can no longer come true, and what needs that in turn: it is withdrawn, with the reason. */
static ArStatement hopeless_statement = {
	"WITH RECURSIVE " NEEDS(DEPENDENT) ", chosen AS ("
	" SELECT n.action_id, n.version FROM needs n WHERE " NEVER_SENT " AND n.needed_state IN ('rejected', 'cancelled', 'expired', 'abandoned')"
	" UNION"
	" SELECT n.action_id, n.version FROM chosen c JOIN needs n ON n.needed = c.action_id WHERE " NEVER_SENT
	"), " FREE_OF_CHOSEN
	" UPDATE reconcile.action a SET version = a.version + 1, event = 'dependency_failed', state = 'cancelled', standing = 'failed/pending',"
	"  queued = false, waits = false, held = false, held_because = NULL, attempt_number = NULL,"
	"  evidence = jsonb_build_object('dependency', to_jsonb(a.depends_on))"
	" FROM free WHERE a.action_id = free.action_id AND a.action_id = ANY (ARRAY(SELECT action_id FROM free))"
	" RETURNING pg_notify('reconcile', json_build_object('action_id', a.action_id, 'state', a.state, 'status', 'FAILED')::text)",
	0, {0}
};

static ArStatement inbox_statement = {
	"SELECT reconcile.apply_inbox_row(w.inbox_id) FROM (SELECT i.inbox_id FROM reconcile.inbox i LEFT JOIN reconcile.action a ON a.action_id = i.action_id"
	" WHERE i.applied_at IS NULL AND i.action_id = ANY (ARRAY(SELECT x.action_id FROM reconcile.inbox x WHERE x.applied_at IS NULL AND x.action_id IS NOT NULL))"
	"  AND a.state IS DISTINCT FROM 'submitted' ORDER BY i.inbox_id LIMIT 200) w",
	0, {0}
};

void
ar_store_apply_inbox(void)
{
	ar_statement_run(&inbox_statement, NULL, NULL);
}

void
ar_store_let_keys_go(void)
{
	ar_statement_run(&turn_of_key_statement, NULL, NULL);
}

void
ar_store_let_dependents_go(void)
{
	ar_statement_run(&hopeless_statement, NULL, NULL);
	ar_statement_run(&turn_of_dependent_statement, NULL, NULL);
}
