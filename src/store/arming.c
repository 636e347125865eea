/*
 * arming.c
 *		May this database send?
 *
 * The record in the table and the file on the host must name each other:
 * token, system, timeline, database, data directory.  The epoch, the number of
 * claims and the WAL position in the file only grow; a database that is behind
 * its file has been rolled back, and does not know what it has sent since.
 */
#include "store/arming.h"

#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "store/arming_file.h"
#include "store/clock.h"
#include "store/rearming.h"
#include "store/statement.h"
#include "store/timeline.h"

/* What the table says. */
typedef struct ArRecord
{
	char		token[AR_TOKEN_LENGTH + 1];
	int64		epoch;
	uint64		system_identifier;
	TimeLineID	timeline;
	Oid			database;
	int64		position;		/* so many claims has the database counted */
} ArRecord;

/* The token of the epoch that this engine has begun, and what the file says of claims. */
static char entered_token[AR_TOKEN_LENGTH + 1];
static int64 marked_position = 0;

static ArStatement read_statement = {
	"SELECT token, epoch, system_identifier, timeline, database_oid::bigint, (SELECT last_value FROM reconcile.claim_count)"
	" FROM reconcile.arming", 0, {0}
};

/* The arming record; false if there is none. */
static bool
read_record(ArRecord *record)
{
	if (ar_statement_run(&read_statement, NULL, NULL) != 1)
		return false;
	strlcpy(record->token, ar_result_text(0, 1), sizeof(record->token));
	record->epoch = ar_result_int64(0, 2, 0);
	record->system_identifier = (uint64) ar_result_int64(0, 3, 0);
	record->timeline = (TimeLineID) ar_result_int64(0, 4, 0);
	record->database = (Oid) ar_result_int64(0, 5, 0);
	record->position = ar_result_int64(0, 6, 0);
	return true;
}

static const char *
record_problem(const ArRecord *record)
{
	if (record->system_identifier != GetSystemIdentifier())
		return "it was armed in another installation";
	if (record->database != MyDatabaseId)
		return "it was armed as another database";
	if (record->timeline != GetWALInsertionTimeLine())
		return "it was armed on another timeline: it has been restored or promoted since";
	return NULL;
}

static const char *
rollback_problem(const ArRecord *record, const ArArmingFile *file)
{
	/* The record is advanced first: it may be one ahead after a crash, never behind. */
	if (record->epoch != file->epoch && record->epoch != file->epoch + 1)
		return "the data directory is older than its token file: it has been rolled back";
	if (record->position < file->position)
		return "the data directory knows of fewer sends than its token file: it has been rolled back";
	if (GetXLogInsertRecPtr() < file->lsn)
	{
		/* It will write more, and must not look whole then. */
		(void) ar_arming_file_mark(record->token, record->position + 1);
		return "the data directory has written less than its token file says: it has been rolled back";
	}
	return NULL;
}

const char *
ar_arming_problem(int64 *epoch)
{
	ArRecord	record;
	ArArmingFile file;
	char		place[64];
	const char *problem;

	if (RecoveryInProgress())
		return "the server is a standby";
	problem = ar_arming_directory_problem();
	if (problem != NULL)
		return problem;
	if (!read_record(&record))
		return "it was never armed, or is a restored copy";
	problem = record_problem(&record);
	if (problem == NULL)
		problem = ar_arming_file_read(record.token, &file);
	if (problem != NULL)
		return problem;

	ar_arming_place(place);
	if (strcmp(record.token, file.token) != 0)
		return "the token file belongs to another arming";
	if (strcmp(place, file.place) != 0)
		return "the data directory is a copy of the one that was armed";
	problem = rollback_problem(&record, &file);
	*epoch = record.epoch;
	return problem;
}

const char *
ar_arming_state(void)
{
	MemoryContext context = CurrentMemoryContext;
	const char *problem;
	int64		epoch;

	SPI_connect();
	problem = ar_arming_problem(&epoch);
	if (problem != NULL)
		problem = MemoryContextStrdup(context, problem);
	SPI_finish();
	return problem;
}

static ArStatement advance_statement = {
	"UPDATE reconcile.arming SET epoch = epoch + 1"
	" WHERE only_row IN (SELECT only_row FROM reconcile.arming FOR UPDATE SKIP LOCKED)"
	" RETURNING epoch, token, (SELECT last_value FROM reconcile.claim_count)",
	0, {0}
};

int64
ar_arming_advance(void)
{
	if (ar_statement_run(&advance_statement, NULL, NULL) != 1)
		return 0;
	strlcpy(entered_token, ar_result_text(0, 2), sizeof(entered_token));
	marked_position = ar_result_int64(0, 3, 0);
	return ar_result_int64(0, 1, 0);
}

static ArStatement count_claim_statement = {
	"SELECT setval('reconcile.claim_count', last_value + 1) FROM reconcile.claim_count", 0, {0}
};

int64
ar_arming_count_claim(void)
{
	ar_statement_run(&count_claim_statement, NULL, NULL);
	return ar_result_int64(0, 1, 0);
}

const char *
ar_arming_mark(int64 position)
{
	const char *problem;

	if (position <= marked_position)
		return NULL;
	problem = ar_arming_file_mark(entered_token, position);
	if (problem == NULL)
		marked_position = position;
	return problem;
}

const char *
ar_arming_advance_file(int64 epoch)
{
	ArArmingFile file;

	strlcpy(file.token, entered_token, sizeof(file.token));
	file.epoch = epoch;
	/* what is flushed, not what is inserted: a crash must not make us look rolled back */
	file.lsn = GetFlushRecPtr(NULL);
	ar_arming_place(file.place);
	file.position = marked_position;
	return ar_arming_file_write(&file, true);
}

void
ar_arming_forget_others(void)
{
	ar_arming_file_sweep(entered_token);
}

/*
 * Attempts and questions that a dump has brought along open belong to epochs
 * of the database it was taken from; the epochs of this one come after them.
 */
static ArStatement arm_statement = {
	"INSERT INTO reconcile.arming AS a (token, epoch, system_identifier, timeline, database_oid, armed_at, armed_by, reason, disarmed_because)"
	" VALUES ($1, 1 + greatest(0, (SELECT max(k.epoch) FROM reconcile.lookup k WHERE k.answered_at IS NULL),"
	"  (SELECT max(t.epoch) FROM reconcile.attempt t WHERE t.state = 'submitted'"
	"   AND t.action_id = ANY (ARRAY(SELECT x.action_id FROM reconcile.action x WHERE x.state = 'submitted')))),"
	"  $2, $3, $4, $5, session_user, $6, $7)"
	" ON CONFLICT (only_row) DO UPDATE SET token = excluded.token, epoch = greatest(a.epoch + 1, excluded.epoch),"
	"  system_identifier = excluded.system_identifier, timeline = excluded.timeline, database_oid = excluded.database_oid,"
	"  armed_at = excluded.armed_at, armed_by = excluded.armed_by, reason = excluded.reason, disarmed_because = excluded.disarmed_because"
	" RETURNING epoch, (SELECT last_value FROM reconcile.claim_count)",
	7, {TEXTOID, INT8OID, INT4OID, OIDOID, TIMESTAMPTZOID, TEXTOID, TEXTOID}
};

/*
 * What a prepared transaction holds is not to be seen, and not to be noted:
 * where it was prepared it may have been committed, and what it submitted sent.
 */
static ArStatement prepared_statement = {
	"SELECT string_agg(quote_literal(p.gid), ', ' ORDER BY p.gid) FROM pg_prepared_xacts p"
	" JOIN pg_locks x ON x.locktype = 'transactionid' AND x.transactionid = p.transaction AND x.pid IS NULL"
	" JOIN pg_locks l ON l.virtualtransaction = x.virtualtransaction AND l.pid IS NULL"
	" WHERE p.database = current_database() AND l.locktype = 'relation' AND l.relation = 'reconcile.action'::regclass AND l.mode = 'RowExclusiveLock'",
	0, {0}
};

/* Why what was recorded before cannot be noted; NULL: it has been, or there is none. */
static const char *
note_what_was_before(const char *disarmed_because)
{
	if (disarmed_because == NULL)
		return NULL;
	ar_statement_run(&prepared_statement, NULL, NULL);
	if (ar_result_text(0, 1) != NULL)
		return psprintf("prepared transactions hold actions that may have been sent: %s", ar_result_text(0, 1));
	ar_store_note_for_rearming();
	return NULL;
}

static const char *
write_record(const char *reason, const char *disarmed_because, ArArmingFile *file)
{
	uint8		random[AR_TOKEN_LENGTH / 2];
	Datum		values[7];
	char		nulls[7] = {' ', ' ', ' ', ' ', ' ', ' ', disarmed_because == NULL ? 'n' : ' '};

	if (!pg_strong_random(random, sizeof(random)))
		return "no random values are to be had";
	hex_encode((char *) random, sizeof(random), file->token);
	file->token[AR_TOKEN_LENGTH] = '\0';
	values[0] = CStringGetTextDatum(file->token);
	values[1] = Int64GetDatum((int64) GetSystemIdentifier());
	values[2] = Int32GetDatum((int32) GetWALInsertionTimeLine());
	values[3] = ObjectIdGetDatum(MyDatabaseId);
	values[4] = TimestampTzGetDatum(ar_wall_now());
	values[5] = CStringGetTextDatum(reason);
	values[6] = disarmed_because == NULL ? (Datum) 0 : CStringGetTextDatum(disarmed_because);
	ar_statement_run(&arm_statement, values, nulls);
	file->epoch = ar_result_int64(0, 1, 0);
	file->position = ar_result_int64(0, 2, 0);
	file->lsn = GetFlushRecPtr(NULL);
	ar_arming_place(file->place);
	return NULL;
}

/* NULL, or why that is not possible: then the transaction must not commit. */
static const char *
arm(const char *reason)
{
	ArArmingFile file;
	int64		epoch;
	const char *problem = ar_arming_directory_problem();
	const char *disarmed_because;

	if (problem != NULL)
		return problem;
	/* The first arming of all has nothing before it. */
	disarmed_because = ar_arming_problem(&epoch);
	if (disarmed_because != NULL && !ar_store_is_known())
		disarmed_because = NULL;
	problem = note_what_was_before(disarmed_because);
	if (problem == NULL)
		problem = write_record(reason, disarmed_because, &file);
	if (problem == NULL)
		problem = ar_arming_file_write(&file, false);
	return problem;
}

/*
 * Is this the standby of the database that was armed, promoted, with a token
 * that somebody has put there for it?  Why not, or NULL.
 */
static const char *
promotion_problem(const ArRecord *record)
{
	TimeLineID	timeline = GetWALInsertionTimeLine();
	ArArmingFile file;
	const char *problem = NULL;
	char	   *reason;

	if (record->system_identifier != GetSystemIdentifier() || record->database != MyDatabaseId)
		return "it is not the database that was armed";
	if (timeline != record->timeline + 1)
		return "more than one timeline has begun since it was armed";
	reason = ar_timeline_reason(timeline, record->timeline);
	if (reason == NULL)
		return "the history of its timeline cannot be read";
	if (!ar_timeline_is_promotion(reason))
		return psprintf("its timeline does not begin with a promotion, but %s", reason);
	problem = ar_arming_file_read(record->token, &file);
	if (problem != NULL)
		return problem;
	if (strcmp(file.token, record->token) != 0 || strcmp(file.place, AR_PLACE_OF_STANDBY) != 0)
		return "the token file is not one for a standby";
	return NULL;
}

bool
ar_arming_take_over(const char **obstacle)
{
	ArRecord	record;

	*obstacle = NULL;
	if (RecoveryInProgress() || ar_arming_directory_problem() != NULL || !read_record(&record) || record.timeline == GetWALInsertionTimeLine())
		return false;
	*obstacle = promotion_problem(&record);
	if (*obstacle == NULL)
		*obstacle = arm(psprintf("promoted to timeline %u; action_reconcile.failover_policy is auto", GetWALInsertionTimeLine()));
	return *obstacle == NULL;
}

void
ar_arming_arm(const char *reason)
{
	const char *problem;

	SPI_connect();
	problem = arm(reason);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("database \"%s\" cannot be armed: %s", get_database_name(MyDatabaseId), problem),
				 ar_arming_directory_problem() != NULL ?
				 errhint("Set action_reconcile.arming_dir to a directory outside the data directory that belongs to the server's user, with mode 0700, and reload.") :
				 errhint("See to that, then arm it again.")));
	SPI_finish();
}
