/*
 * retention.c
 *		What leaves the tables, and the one way in which it can.
 *
 * The guards refuse every DELETE, the owner's too, but of the rows of actions
 * whose ids are in the set below.  The set is filled here only, from what the
 * database has just said may leave, and is emptied before the call is over.
 */
#include "store/retention.h"

#include "catalog/pg_type.h"

#include "store/statement.h"

/* Sorted, in memory of the current call; NULL: nothing is leaving. */
static const pg_uuid_t *leaving = NULL;
static int	leaving_count = 0;

#define FINAL "('succeeded', 'rejected', 'cancelled', 'expired', 'abandoned')"

/* What is held by somebody is left for another time; what is locked here does not change before it is gone. */
static ArStatement lock_statement = {
	"SELECT a.action_id FROM reconcile.action a JOIN reconcile.provider_retention r ON r.provider = a.provider"
	" WHERE a.action_id = ANY ($1) AND a.state IN " FINAL " AND a.gate_us IS NULL AND a.recorded_at < now() - r.keep_finished"
	" ORDER BY a.action_id FOR UPDATE OF a SKIP LOCKED",
	1, {UUIDARRAYOID}
};

static ArStatement free_statement = {
	"SELECT k.action_id FROM reconcile.kept_because($1) k WHERE k.because IS NULL ORDER BY k.action_id", 1, {UUIDARRAYOID}
};

static ArStatement archive_statement = {
	"INSERT INTO reconcile.archived_action (action_id, operation, provider, client_reference, intent_key, submitter, fingerprint, state, standing,"
	"  artifact_id, attempts, submitted_at, recorded_at, last_word_at, version, chain_head, receipt, archived_at)"
	" SELECT a.action_id, a.operation, a.provider, a.client_reference, a.intent_key, a.submitter, a.fingerprint, a.state, a.standing,"
	"  a.artifact_id, a.attempts, a.submitted_at, a.recorded_at,"
	"  (SELECT max(i.occurred_at) FROM reconcile.inbox i WHERE i.action_id = a.action_id AND i.result IN ('applied', 'known')),"
	"  a.version, a.chain_head, CASE WHEN r.keep_receipt THEN reconcile.receipt_of(a) END, now()"
	" FROM reconcile.action a JOIN reconcile.provider_retention r ON r.provider = a.provider WHERE a.action_id = ANY ($1)",
	1, {UUIDARRAYOID}
};

#define DELETE_FROM(table) {"DELETE FROM reconcile." table " x WHERE x.action_id = ANY ($1)", 1, {UUIDARRAYOID}}

static ArStatement action_statements[] = {
	DELETE_FROM("lookup"),
	DELETE_FROM("window_sample"),
	DELETE_FROM("inbox"),
	DELETE_FROM("joined_submission"),
	DELETE_FROM("rearming"),
	DELETE_FROM("history"),
	DELETE_FROM("attempt"),
	DELETE_FROM("action")
};

static ArStatement lock_archived_statement = {
	"SELECT x.action_id FROM reconcile.archived_action x JOIN reconcile.provider_retention r ON r.provider = x.provider"
	" WHERE x.action_id = ANY ($1) AND x.archived_at < now() - r.keep_archived"
	"  AND NOT EXISTS (SELECT FROM reconcile.incident i WHERE i.action_id = x.action_id AND i.closed_at IS NULL)"
	" ORDER BY x.action_id FOR UPDATE OF x SKIP LOCKED",
	1, {UUIDARRAYOID}
};

static ArStatement archived_statements[] = {
	DELETE_FROM("inbox"),
	DELETE_FROM("joined_submission"),
	DELETE_FROM("archived_action")
};

static int
compare_ids(const void *one, const void *other)
{
	return memcmp(one, other, UUID_LEN);
}

bool
ar_store_is_leaving(Datum action_id)
{
	return leaving != NULL && bsearch(DatumGetUUIDP(action_id), leaving, leaving_count, sizeof(pg_uuid_t), compare_ids) != NULL;
}

/* The ids that a statement chooses from others, as an array again; they are in *ids, sorted. */
static Datum
choose(ArStatement *statement, Datum actions, pg_uuid_t **ids, int *count)
{
	ArArray		array;

	*count = (int) ar_statement_run(statement, &actions, NULL);
	*ids = palloc(sizeof(pg_uuid_t) * Max(*count, 1));
	ar_array_init(&array, UUIDOID);
	for (int row = 0; row < *count; row++)
	{
		if (!ar_result_uuid(row, 1, &(*ids)[row]))
			elog(ERROR, "an action has no id");
		ar_array_add(&array, UUIDPGetDatum(&(*ids)[row]), false);
	}
	qsort(*ids, *count, sizeof(pg_uuid_t), compare_ids);
	return ar_array_datum(&array);
}

/* Delete the rows of these, table by table. */
static void
remove_rows(ArStatement *statements, int statement_count, Datum actions, const pg_uuid_t *ids, int count)
{
	PG_TRY();
	{
		leaving = ids;
		leaving_count = count;
		for (int i = 0; i < statement_count; i++)
			ar_statement_run(&statements[i], &actions, NULL);
	}
	PG_FINALLY();
	{
		leaving = NULL;
		leaving_count = 0;
	}
	PG_END_TRY();
}

int
ar_store_let_go(ArrayType *actions)
{
	Datum		chosen = PointerGetDatum(actions);
	pg_uuid_t  *ids;
	int			count;

	SPI_connect();
	chosen = choose(&lock_statement, chosen, &ids, &count);
	if (count > 0)
		chosen = choose(&free_statement, chosen, &ids, &count);
	if (count > 0)
	{
		ar_statement_run(&archive_statement, &chosen, NULL);
		remove_rows(action_statements, lengthof(action_statements), chosen, ids, count);
	}
	SPI_finish();
	return count;
}

int
ar_store_let_archived_go(ArrayType *actions)
{
	Datum		chosen = PointerGetDatum(actions);
	pg_uuid_t  *ids;
	int			count;

	SPI_connect();
	chosen = choose(&lock_archived_statement, chosen, &ids, &count);
	if (count > 0)
		remove_rows(archived_statements, lengthof(archived_statements), chosen, ids, count);
	SPI_finish();
	return count;
}
