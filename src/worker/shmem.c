/*
 * shmem.c
 *		Allocate and set up what is shared.
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#include "worker/shmem.h"

#define TRANCHE_NAME "action_reconcile"

ArShared   *ar_shared = NULL;

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void
request(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(ArShared)));
	RequestNamedLWLockTranche(TRANCHE_NAME, 1);
}

static void
startup(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ar_shared = ShmemInitStruct(TRANCHE_NAME, sizeof(ArShared), &found);
	if (!found)
	{
		memset(ar_shared, 0, sizeof(ArShared));
		ar_shared->lock = &GetNamedLWLockTranche(TRANCHE_NAME)->lock;
		pg_atomic_init_u32(&ar_shared->scan, 0);
		for (int i = 0; i < AR_MAX_WORKERS; i++)
		{
			pg_atomic_init_u32(&ar_shared->slots[i].wake, 0);
			pg_atomic_init_u32(&ar_shared->slots[i].leave, AR_STAY);
			pg_atomic_init_u64(&ar_shared->slots[i].last_turn, 0);
			ConditionVariableInit(&ar_shared->slots[i].resolved);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

void
ar_shmem_init(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup;
}

ArWorkerSlot *
ar_shmem_slot(Oid database)
{
	for (int i = 0; i < AR_MAX_WORKERS; i++)
	{
		if (ar_shared->slots[i].database == database)
			return &ar_shared->slots[i];
	}
	return NULL;
}

/* A worker that waits for a lock or a standby hears the signal only. */
void
ar_shmem_ask_to_leave(ArWorkerSlot *slot, ArWorkerLeave how)
{
	if (slot->proc == NULL)
		return;
	if (pg_atomic_read_u32(&slot->leave) < how)
		pg_atomic_write_u32(&slot->leave, how);
	if (how >= AR_LEAVE_SOON)
		kill(slot->pid, SIGTERM);
	SetLatch(&slot->proc->procLatch);
}

void
ar_shmem_wake_launcher(void)
{
	pg_atomic_write_u32(&ar_shared->scan, 1);
	if (ar_shared->launcher != NULL)
		SetLatch(&ar_shared->launcher->procLatch);
}
