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
	AR_WORKER_REPLACED			/* it was asked to leave, or an extension has come since: start it again at once */
} ArWorkerEnd;

/* How soon a worker is asked to leave its database. */
typedef enum ArWorkerLeave
{
	AR_STAY,
	AR_LEAVE_WHEN_ANSWERED,		/* settings of its session have changed: the next one has them */
	AR_LEAVE_SOON,				/* it is not wanted any more: as at a shutdown */
	AR_LEAVE_AT_ONCE			/* a statement needs the database for itself, and waits */
} ArWorkerLeave;

#define AR_STALLED_LENGTH 200

struct ArWorkerSlot
{
	Oid			database;		/* InvalidOid: free. Lock. */
	PGPROC	   *proc;			/* of the running worker, or NULL. Lock. */
	int			pid;			/* the same. Lock. */
	ArWorkerEnd end;			/* how the last one ended. Lock. */
	uint32		scans;			/* how often the launcher has looked since. Lock. */
	int			holds;			/* statements that need the database for themselves: no worker meanwhile. Lock. */
	pg_atomic_uint32 leave;		/* an ArWorkerLeave, for the running worker */
	char		stalled_because[AR_STALLED_LENGTH];	/* why its engine sends nothing, or empty. Lock. */
	int			failures;		/* of it, or of starting it, in a row. Lock. */
	bool		no_room;		/* all worker slots were taken when it was last to be started. Lock. */
	pg_atomic_uint64 last_turn; /* of an engine of this database: a TimestampTz, or 0 */
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

/* Ask its worker, if there is one, to leave. Caller holds the lock. */
extern void ar_shmem_ask_to_leave(ArWorkerSlot *slot, ArWorkerLeave how);

/* Let the launcher look at what databases and extensions there are. Caller holds the lock. */
extern void ar_shmem_wake_launcher(void);

#endif							/* AR_SHMEM_H */
