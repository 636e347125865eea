/*
 * launcher.c
 *		One process per server that starts a worker for each database.
 *
 * It sees shared catalogs only and so cannot know which database has the
 * extension: it starts a worker for each one allowed, and a worker that finds
 * no extension ends at once and is not started again until an extension is
 * created somewhere.  A worker that ends in another way is started again after
 * a pause that grows, on the monotonic clock.  Idle, the launcher sleeps
 * without a timeout.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "core/schedule.h"
#include "settings.h"
#include "store/clock.h"
#include "worker/report.h"
#include "worker/shmem.h"
#include "worker/worker.h"

#define HEALTHY_US			INT64CONST(60000000)
#define PAUSE_US			INT64CONST(1000000)
#define PAUSE_MAX_US		INT64CONST(60000000)

/* What the launcher knows about a database, besides the shared slot; same index. */
typedef struct Known
{
	bool		wanted;			/* seen in the last scan */
	bool		starting;		/* registered, not yet in its slot or already gone */
	int64		started_us;
	int			failures;
	int64		not_before_us;
	bool		no_room;		/* all worker slots were taken */
	BackgroundWorkerHandle *handle;
} Known;

static Known known[AR_MAX_WORKERS];

static bool
may_connect(Form_pg_database database)
{
	/* -2 marks a database that a failed DROP left behind */
	return database->datallowconn && !database->datistemplate && database->datconnlimit != -2;
}

/* A slot for the database, if there is one left. Caller holds the lock. */
static bool
want(Oid database)
{
	ArWorkerSlot *slot = ar_shmem_slot(database);

	if (slot == NULL)
	{
		slot = ar_shmem_slot(InvalidOid);
		if (slot == NULL)
			return false;
		slot->database = database;
		slot->failures = 0;
		slot->no_room = false;
		pg_atomic_write_u64(&slot->last_turn, 0);
		memset(&known[slot - ar_shared->slots], 0, sizeof(Known));
	}
	known[slot - ar_shared->slots].wanted = true;
	return true;
}

/* The databases that may have a worker, as a list of OIDs in the current context. */
static List *
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *databases = NIL;
	Relation	catalog;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	catalog = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(catalog, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);

		if (may_connect(database) && ar_database_is_listed(NameStr(database->datname)))
		{
			MemoryContext inner = MemoryContextSwitchTo(context);

			databases = lappend_oid(databases, database->oid);
			MemoryContextSwitchTo(inner);
		}
	}
	table_endscan(scan);
	table_close(catalog, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return databases;
}

/* Look at what databases there are; the slots of those that are gone become free. */
static void
scan_databases(void)
{
	List	   *databases = list_databases();
	ListCell   *cell;
	int			left_out = 0;

	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < AR_MAX_WORKERS; i++)
		known[i].wanted = false;
	foreach(cell, databases)
		left_out += want(lfirst_oid(cell)) ? 0 : 1;
	for (int i = 0; i < AR_MAX_WORKERS; i++)
	{
		ArWorkerSlot *slot = &ar_shared->slots[i];

		/* An extension may have come to any of them. */
		slot->end = AR_WORKER_CRASHED;
		slot->scans++;
		if (!known[i].wanted)
			ar_shmem_ask_to_leave(slot, AR_LEAVE_SOON);
		if (!known[i].wanted && slot->proc == NULL && !known[i].starting)
			slot->database = InvalidOid;
	}
	LWLockRelease(ar_shared->lock);
	list_free(databases);
	if (left_out > 0)
		ereport(LOG,
				(errmsg("%d databases get no worker: there are %d already", left_out, AR_MAX_WORKERS),
				 errhint("Name the databases that need one in action_reconcile.databases.")));
}

/* For whoever asks why there is no worker. */
static void
tell(int index)
{
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	ar_shared->slots[index].failures = known[index].failures;
	ar_shared->slots[index].no_room = known[index].no_room;
	LWLockRelease(ar_shared->lock);
}

static void
start_worker(int index, Oid database)
{
	BackgroundWorker worker = {0};
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

	snprintf(worker.bgw_name, BGW_MAXLEN, "action_reconcile worker for database %u", database);
	strlcpy(worker.bgw_type, "action_reconcile worker", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = Int32GetDatum(index);
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_library_name, "action_reconcile", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "ar_worker_main", sizeof(worker.bgw_function_name));
	known[index].started_us = ar_monotonic_us();
	known[index].starting = RegisterDynamicBackgroundWorker(&worker, &known[index].handle);
	MemoryContextSwitchTo(caller);
	if (!known[index].starting)
	{
		if (!known[index].no_room)
			ereport(LOG,
					(errmsg("no worker could be started for database with OID %u: all worker slots are taken", database),
					 errhint("Raise max_worker_processes. It is tried again, at the latest after a minute.")));
		known[index].no_room = true;
		known[index].failures++;
		known[index].not_before_us = ar_monotonic_us() +
			ar_backoff_us(PAUSE_US, PAUSE_MAX_US, known[index].failures, 0.5);
	}
	else if (known[index].no_room)
	{
		known[index].no_room = false;
		known[index].failures = 0;
		ereport(LOG, (errmsg("there is a worker slot again for database with OID %u", database)));
	}
	tell(index);
}

/* Where one has ended there is room, as far as we know. */
static void
try_those_without_room(void)
{
	for (int i = 0; i < AR_MAX_WORKERS; i++)
	{
		if (known[i].no_room)
			known[i].not_before_us = 0;
	}
}

/* A registered worker is not looked at again before the postmaster says that it has ended. */
static void
notice_end(int index)
{
	pid_t		pid;
	int64		now = ar_monotonic_us();
	Known	   *k = &known[index];

	if (!k->starting || GetBackgroundWorkerPid(k->handle, &pid) != BGWH_STOPPED)
		return;
	k->starting = false;
	try_those_without_room();
	pfree(k->handle);
	k->handle = NULL;
	if (ar_shared->slots[index].end != AR_WORKER_CRASHED)
	{
		k->failures = 0;
		k->not_before_us = 0;
		tell(index);
		return;
	}
	k->failures = now - k->started_us > HEALTHY_US ? 1 : k->failures + 1;
	k->not_before_us = now + ar_backoff_us(PAUSE_US, PAUSE_MAX_US, k->failures, 0.5);
	tell(index);
}

/* Start what is wanted; returns how long to sleep, in milliseconds, or -1. */
static long
start_workers(void)
{
	int64		now = ar_monotonic_us();
	long		sleep = -1;

	for (int i = 0; i < AR_MAX_WORKERS; i++)
		notice_end(i);
	for (int i = 0; i < AR_MAX_WORKERS; i++)
	{
		Oid			database;
		bool		absent;
		bool		running;

		LWLockAcquire(ar_shared->lock, LW_SHARED);
		database = ar_shared->slots[i].database;
		absent = ar_shared->slots[i].end == AR_WORKER_ABSENT;
		/* one that an earlier launcher has started tells us itself when it ends */
		running = ar_shared->slots[i].proc != NULL || ar_shared->slots[i].holds > 0;
		LWLockRelease(ar_shared->lock);
		if (!OidIsValid(database) || !known[i].wanted || known[i].starting || absent || running)
			continue;
		if (known[i].not_before_us <= now)
			start_worker(i, database);
		if (!known[i].starting)
		{
			long		pause = (long) (Max(known[i].not_before_us - now, 1000) / 1000);

			sleep = sleep < 0 ? pause : Min(sleep, pause);
		}
	}
	return sleep;
}

static void
leave(int code, Datum argument)
{
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	ar_shared->launcher = NULL;
	LWLockRelease(ar_shared->lock);
}

void
ar_launcher_main(Datum argument)
{
	uint32		wait_event;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGINT, SIG_IGN);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	pgstat_report_appname("action_reconcile launcher");
	wait_event = ar_wait_event("ActionReconcileLauncher");

	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	ar_shared->launcher = MyProc;
	pg_atomic_write_u32(&ar_shared->scan, 1);
	LWLockRelease(ar_shared->lock);
	before_shmem_exit(leave, (Datum) 0);

	while (!ShutdownRequestPending)
	{
		long		sleep;

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			pg_atomic_write_u32(&ar_shared->scan, 1);
		}
		if (pg_atomic_exchange_u32(&ar_shared->scan, 0) != 0)
			scan_databases();
		sleep = start_workers();
		WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (sleep >= 0 ? WL_TIMEOUT : 0), sleep, wait_event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	/* An exit with 0 would be for good; a server that goes down does not start it again. */
	proc_exit(1);
}

void
ar_launcher_register(void)
{
	BackgroundWorker worker = {0};

	strlcpy(worker.bgw_name, "action_reconcile launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "action_reconcile launcher", BGW_MAXLEN);
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 5;
	strlcpy(worker.bgw_library_name, "action_reconcile", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "ar_launcher_main", sizeof(worker.bgw_function_name));
	RegisterBackgroundWorker(&worker);
}
