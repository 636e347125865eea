/*
 * shmem.h
 *		What the launcher, the workers and every backend share.
 *
 * Plain values only; nothing here belongs to one process.  Absent where the
 * library is not preloaded: then there are no workers, and CALL run() drives.
 */
#ifndef AR_SHMEM_H
#define AR_SHMEM_H

#include "postgres.h"

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/proc.h"

#define AR_MAX_WORKERS	64

/* How a worker ended, as the launcher has to know it. */
typedef enum ArWorkerEnd
{
	AR_WORKER_CRASHED,			/* or was terminated: start it again, after a pause */
	AR_WORKER_ABSENT,			/* the database has no extension: wait to be told of one */
	AR_WORKER_REPLACED			/* it had none, but one has come since: start it again at once */
} ArWorkerEnd;

struct ArWorkerSlot
{
	Oid			database;		/* InvalidOid: free. Lock. */
	PGPROC	   *proc;			/* of the running worker, or NULL. Lock. */
	int			pid;			/* the same. Lock. */
	ArWorkerEnd end;			/* how the last one ended. Lock. */
	uint32		scans;			/* how often the launcher has looked since. Lock. */
	pg_atomic_uint32 wake;		/* 1: something was committed since the worker last looked */
	ConditionVariable resolved; /* broadcast after results are committed */
};
typedef struct ArWorkerSlot ArWorkerSlot;

typedef struct ArShared
{
	LWLock	   *lock;
	PGPROC	   *launcher;		/* or NULL. Lock. */
	pg_atomic_uint32 scan;		/* 1: databases or extensions have changed */
	ArWorkerSlot slots[AR_MAX_WORKERS];
} ArShared;

/* NULL where the library is not preloaded. */
extern ArShared *ar_shared;

/* In _PG_init under shared_preload_libraries. */
extern void ar_shmem_init(void);

/* The slot of a database, or NULL. Caller holds the lock. */
extern ArWorkerSlot *ar_shmem_slot(Oid database);

#endif							/* AR_SHMEM_H */
