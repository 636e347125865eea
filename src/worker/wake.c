/*
 * wake.c
 *		Waking the worker at commit, and whoever waits for a result.
 *
 * The callbacks are registered once per backend; what a transaction wants is
 * kept in flags.  A worker that has been woken and has not looked yet is not
 * woken again, so that a crowd of commits costs one latch.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"

#include "compat.h"
#include "store/clock.h"
#include "store/engine_lock.h"
#include "store/guard.h"
#include "worker/manners.h"
#include "worker/shmem.h"
#include "worker/wake.h"

#define WAIT_WITHOUT_WORKER_US 100000

static bool wake_wanted = false;
static ArWorkerSlot *waiting_slot = NULL;

static void
set_latch_of(PGPROC *proc)
{
	if (proc != NULL)
		SetLatch(&proc->procLatch);
}

static void
wake_slot(ArWorkerSlot *slot)
{
	if (pg_atomic_exchange_u32(&slot->wake, 1) == 0)
		set_latch_of(slot->proc);
}

/* PostgreSQL would refuse it too, but without saying who wanted to notify whom. */
static void
refuse_to_prepare(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a transaction in which the status of an action has changed cannot be prepared"),
			 errdetail("Whoever waits for the action is told by NOTIFY, which PREPARE TRANSACTION cannot carry."),
			 errhint("COMMIT it, or settle the action in a transaction of its own; recording actions and storing events can be prepared.")));
}

static void
at_transaction_end(XactEvent event, void *argument)
{
	bool		wake = wake_wanted;
	ArWorkerSlot *slot;

	if (event == XACT_EVENT_PRE_PREPARE && ar_guard_status_changed())
		refuse_to_prepare();
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	wake_wanted = false;
	if (ar_shared != NULL)
		wake = ar_manners_at_end(event == XACT_EVENT_COMMIT) || wake;
	if (event != XACT_EVENT_COMMIT || ar_shared == NULL || !wake)
		return;
	LWLockAcquire(ar_shared->lock, LW_SHARED);
	slot = ar_shmem_slot(MyDatabaseId);
	if (slot != NULL)
	{
		/* The engine knows what it has done itself; who waits for a result does not. */
		if (!ar_engine_is_here())
			wake_slot(slot);
		ConditionVariableBroadcast(&slot->resolved);
	}
	LWLockRelease(ar_shared->lock);
}

void
ar_wake_init(void)
{
	RegisterXactCallback(at_transaction_end, NULL);
	ar_manners_init();
}

void
ar_wake_at_commit(void)
{
	wake_wanted = true;
}

bool
ar_wake_consume(struct ArWorkerSlot *slot)
{
	return pg_atomic_exchange_u32(&slot->wake, 0) != 0;
}

bool
ar_wake_wait(int64 until_monotonic_us)
{
	int64		left = until_monotonic_us - ar_monotonic_us();

	if (left <= 0)
		return true;
	if (waiting_slot == NULL && ar_shared != NULL)
	{
		LWLockAcquire(ar_shared->lock, LW_SHARED);
		waiting_slot = ar_shmem_slot(MyDatabaseId);
		LWLockRelease(ar_shared->lock);
		if (waiting_slot != NULL)
		{
			/* The caller looks once more between this and its first sleep. */
			ConditionVariablePrepareToSleep(&waiting_slot->resolved);
			return false;
		}
	}
	if (waiting_slot != NULL)
	{
		ConditionVariableTimedSleep(&waiting_slot->resolved, Max(left / 1000, 1), ar_wait_event("ActionReconcileWait"));
		return false;
	}
	WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
			  Max(Min(left, WAIT_WITHOUT_WORKER_US) / 1000, 1), ar_wait_event("ActionReconcileWait"));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return false;
}

void
ar_wake_wait_end(void)
{
	if (waiting_slot != NULL)
		ConditionVariableCancelSleep();
	waiting_slot = NULL;
}

int
ar_wake_worker_pid(void)
{
	ArWorkerSlot *slot;
	int			pid = 0;

	if (ar_shared == NULL)
		return 0;
	LWLockAcquire(ar_shared->lock, LW_SHARED);
	slot = ar_shmem_slot(MyDatabaseId);
	if (slot != NULL)
		pid = slot->pid;
	LWLockRelease(ar_shared->lock);
	return pid;
}

char *
ar_wake_worker_stalled_because(void)
{
	ArWorkerSlot *slot;
	char	   *because = NULL;

	if (ar_shared == NULL)
		return NULL;
	LWLockAcquire(ar_shared->lock, LW_SHARED);
	slot = ar_shmem_slot(MyDatabaseId);
	if (slot != NULL && slot->stalled_because[0] != '\0')
		because = pstrdup(slot->stalled_because);
	LWLockRelease(ar_shared->lock);
	return because;
}
