/*
 * worker.c
 *		The worker of one database: the engine's loop, signals, shutdown.
 *
 * SIGTERM is cooperative: nothing new is claimed, answers are waited for a
 * bounded time, the rest becomes outcome_unknown.  Only inside a commit and in
 * the wait for a lock it is abrupt, because the wait for a standby that is gone
 * would never end; what was not known to be durable is then not sent.  SIGINT
 * is ignored, for a cancelled wait for a standby looks like a success.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timeout.h"

#include "compat.h"
#include "engine/engine.h"
#include "settings.h"
#include "store/clock.h"
#include "store/tx.h"
#include "worker/report.h"
#include "worker/shmem.h"
#include "worker/wake.h"
#include "worker/worker.h"

#define RETRY_START_MS		1000
#define TELL_STATISTICS_MS	1000
#define READ_ONLY_RETRY_MS	60000

static ArWorkerSlot *my_slot = NULL;
static uint32 scans_at_start = 0;

static void
on_terminate(SIGNAL_ARGS)
{
	int			saved_errno = errno;

	ShutdownRequestPending = true;
	if (ar_tx_in_commit || (MyProc != NULL && MyProc->waitLock != NULL))
	{
		ProcDiePending = true;
		InterruptPending = true;
	}
	SetLatch(MyLatch);
	errno = saved_errno;
}

/*
 * A cancel is ignored, but a lock that is waited for too long is told by the
 * same signal.
 */
static void
on_interrupt(SIGNAL_ARGS)
{
	if (get_timeout_indicator(LOCK_TIMEOUT, false))
		StatementCancelHandler(postgres_signal_arg);
}

static void
leave(int code, Datum argument)
{
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	my_slot->proc = NULL;
	my_slot->pid = 0;
	my_slot->stalled_because[0] = '\0';
	/* The postmaster tells only the launcher that has started us, which may be gone. */
	if (ar_shared->launcher != NULL)
		SetLatch(&ar_shared->launcher->procLatch);
	LWLockRelease(ar_shared->lock);
}

/* Take the slot; a second worker for the same database goes again. */
static void
enter(int index)
{
	my_slot = &ar_shared->slots[index];
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	/* Another one is here, or somebody needs the database for itself. */
	if (my_slot->proc != NULL || my_slot->holds > 0)
	{
		if (my_slot->proc == NULL)
			my_slot->end = AR_WORKER_REPLACED;
		LWLockRelease(ar_shared->lock);
		proc_exit(0);
	}
	scans_at_start = my_slot->scans;
	my_slot->proc = MyProc;
	my_slot->pid = MyProcPid;
	my_slot->end = AR_WORKER_CRASHED;
	my_slot->stalled_because[0] = '\0';
	pg_atomic_write_u32(&my_slot->leave, AR_STAY);
	LWLockRelease(ar_shared->lock);
	before_shmem_exit(leave, (Datum) 0);
}

static void
end_absent(void)
{
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	/* An extension may have come since we looked: then the launcher has to try again. */
	my_slot->end = my_slot->scans == scans_at_start ? AR_WORKER_ABSENT : AR_WORKER_REPLACED;
	LWLockRelease(ar_shared->lock);
	proc_exit(0);
}

static ArWorkerLeave
asked_to_leave(void)
{
	return (ArWorkerLeave) pg_atomic_read_u32(&my_slot->leave);
}

/* The end of a worker that has done what it was asked to: another one may follow at once. */
static void
end_in_peace(void)
{
	if (asked_to_leave() != AR_STAY)
	{
		LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
		my_slot->end = AR_WORKER_REPLACED;
		LWLockRelease(ar_shared->lock);
	}
	proc_exit(0);
}

/* Where everybody can read it. */
static void
publish_stalled(const char *because)
{
	if (because == NULL)
		because = "";
	/* Nobody else writes it. */
	if (strncmp(my_slot->stalled_because, because, AR_STALLED_LENGTH - 1) == 0)
		return;
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	strlcpy(my_slot->stalled_because, because, AR_STALLED_LENGTH);
	LWLockRelease(ar_shared->lock);
}

static void
serve_signals(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

static void
sleep_on_latch(long milliseconds)
{
	WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | WL_TIMEOUT, milliseconds,
			  ar_wait_event("ActionReconcileStart"));
	ResetLatch(MyLatch);
	serve_signals();
}

/* The engine of this database; ends the process if there is no extension, or if it is to stop. */
static ArEngine *
become_engine(void)
{
	ArEngine   *engine = NULL;
	bool		told = false;

	while (!ShutdownRequestPending && asked_to_leave() == AR_STAY)
	{
		switch (ar_engine_start(false, &engine))
		{
			case AR_ENGINE_STARTED:
				return engine;
			case AR_ENGINE_ABSENT:
				end_absent();
				break;
			case AR_ENGINE_HELD:
			case AR_ENGINE_BUSY:
				if (!told)
					ereport(LOG, (errmsg("the worker waits: another process is the engine of this database, or a table is locked")));
				told = true;
				sleep_on_latch(RETRY_START_MS);
				break;
			case AR_ENGINE_READ_ONLY:
				if (my_slot->stalled_because[0] == '\0')
					ereport(LOG,
							(errmsg("the worker sends nothing: default_transaction_read_only is on"),
							 errhint("It goes on when that is off for this database.")));
				publish_stalled(ar_engine_read_only_reason);
				sleep_on_latch(READ_ONLY_RETRY_MS);
				break;
		}
	}
	end_in_peace();
	return NULL;
}

/* Wait for the answers to what is open, a bounded time, claiming nothing. */
static bool
drain(ArEngine *engine)
{
	int64		until = ar_monotonic_us() +
		(asked_to_leave() == AR_LEAVE_AT_ONCE ? 0 : (int64) ar_setting_drain_timeout_ms * 1000);

	ar_engine_drain(engine);
	while (!ar_engine_is_idle(engine))
	{
		int64		left = until - ar_monotonic_us();
		long		sleep = ar_engine_sleep_ms(engine);

		if (left <= 0 || asked_to_leave() == AR_LEAVE_AT_ONCE)
			break;
		ar_engine_wait(engine, sleep < 0 ? left / 1000 + 1 : Min(sleep, left / 1000 + 1));
		if (!ar_engine_turn(engine))
			return false;
	}
	return true;
}

void
ar_worker_main(Datum argument)
{
	int			index = DatumGetInt32(argument);
	ArEngine   *engine;
	bool		present = true;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, on_terminate);
	pqsignal(SIGINT, on_interrupt);
	enter(index);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(my_slot->database, InvalidOid, 0);
	pgstat_report_appname("action_reconcile worker");
	engine = become_engine();

	while (present && !ShutdownRequestPending)
	{
		long		sleep;

		if (asked_to_leave() != AR_STAY)
		{
			ar_engine_retire(engine);
			if (ar_engine_is_idle(engine))
				break;
		}
		if (ar_wake_consume(my_slot))
			ar_engine_wake(engine);
		present = ar_engine_turn(engine);
		publish_stalled(ar_engine_stalled_because(engine));
		ar_report_turn();
		sleep = present ? ar_engine_sleep_ms(engine) : 0;
		/* Who sleeps long tells first what it has done: the metrics count by it, and autovacuum goes by it. */
		if (sleep < 0 || sleep > TELL_STATISTICS_MS)
			pgstat_report_stat(true);
		if (present)
			ar_engine_wait(engine, sleep);
		if (ConfigReloadPending)
			ar_engine_wake(engine);
		serve_signals();
	}
	if (present)
		present = drain(engine);
	ar_engine_stop(engine);
	if (!present)
		end_absent();
	end_in_peace();
}
