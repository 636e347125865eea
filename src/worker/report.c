/*
 * report.c
 *		How it stands with the worker of this database.
 *
 * An idle engine does not wake, so it is alive as long as it holds the engine
 * lock; what is noted here is when it last did something, and why there is no
 * worker where there is none.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/varlena.h"

#include "settings.h"
#include "store/clock.h"
#include "worker/report.h"
#include "worker/shmem.h"

bool
ar_database_is_listed(const char *database)
{
	char	   *list = pstrdup(ar_setting_databases);
	List	   *names;
	ListCell   *cell;

	if (!SplitIdentifierString(list, ',', &names))
		return false;
	foreach(cell, names)
	{
		if (strcmp(lfirst(cell), "*") == 0 || strcmp(lfirst(cell), database) == 0)
			return true;
	}
	return false;
}

/* Caller holds the lock. */
static const char *
state_of(const ArWorkerSlot *slot)
{
	if (slot->pid != 0)
		return "running";
	if (ar_shared->launcher == NULL)
		return "no_launcher";
	if (slot->holds > 0)
		return "held_off";
	if (slot->no_room)
		return "no_room";
	if (slot->failures > 0)
		return "failing";
	return slot->end == AR_WORKER_ABSENT ? "absent" : "starting";
}

void
ar_worker_report(ArWorkerReport *report)
{
	const char *database = get_database_name(MyDatabaseId);
	bool		listed = database != NULL && ar_database_is_listed(database);
	ArWorkerSlot *slot;

	memset(report, 0, sizeof(*report));
	report->state = "not_preloaded";
	if (ar_shared == NULL)
		return;
	LWLockAcquire(ar_shared->lock, LW_SHARED);
	if (ar_shared->launcher != NULL)
		report->launcher_pid = ar_shared->launcher->pid;
	slot = ar_shmem_slot(MyDatabaseId);
	if (slot != NULL)
	{
		report->worker_pid = slot->pid;
		report->failures = slot->failures;
		report->last_turn = (TimestampTz) pg_atomic_read_u64(&slot->last_turn);
		report->state = state_of(slot);
	}
	else
		report->state = report->launcher_pid == 0 ? "no_launcher" : "left_out";
	LWLockRelease(ar_shared->lock);
	if (!listed && report->worker_pid == 0)
		report->state = "not_listed";
}

/*
 * The slot of a database that has no worker stays free for others, so a CALL
 * run() there has nowhere to note its turns.
 */
void
ar_report_turn(void)
{
	ArWorkerSlot *slot;

	if (ar_shared == NULL)
		return;
	LWLockAcquire(ar_shared->lock, LW_SHARED);
	slot = ar_shmem_slot(MyDatabaseId);
	if (slot != NULL)
		pg_atomic_write_u64(&slot->last_turn, (uint64) ar_wall_now());
	LWLockRelease(ar_shared->lock);
}
