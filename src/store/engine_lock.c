/*
 * engine_lock.c
 *		One engine per database: a session lock that ends with its process.
 */
#include "store/engine_lock.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/lmgr.h"

/* The fourth field of an advisory tag: SQL functions use 1 and 2 only. */
#define ENGINE_LOCK_CLASS	0xAC01
#define ACTION_LOCK_CLASS	0xAC02
#define KEY_LOCK_CLASS		0xAC03
#define ALL_KEYS_LOCK_CLASS	0xAC04

/* So many keys in one transaction are locked one by one; the server's lock table is everybody's. */
#define KEY_LOCKS_MAX		256

static bool engine_lock_held = false;

static void
set_engine_tag(LOCKTAG *tag)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, 0, 0, ENGINE_LOCK_CLASS);
}

/* The last eight bytes of a version 7 uuid are random: enough to name the action. */
static void
set_action_tag(LOCKTAG *tag, const pg_uuid_t *action_id)
{
	uint32		high;
	uint32		low;

	memcpy(&high, action_id->data + 8, sizeof(high));
	memcpy(&low, action_id->data + 12, sizeof(low));
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, high, low, ACTION_LOCK_CLASS);
}

bool
ar_engine_lock_take(void)
{
	LOCKTAG		tag;

	set_engine_tag(&tag);
	if (LockAcquire(&tag, ExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	engine_lock_held = true;
	return true;
}

void
ar_engine_lock_give(void)
{
	LOCKTAG		tag;

	if (!engine_lock_held)
		return;
	engine_lock_held = false;
	set_engine_tag(&tag);
	LockRelease(&tag, ExclusiveLock, true);
}

bool
ar_engine_is_here(void)
{
	return engine_lock_held;
}

/*
 * Read from the lock table itself: a holder that sleeps between transactions
 * has no virtual transaction by which it could be named otherwise.
 */
int
ar_engine_lock_holder(void)
{
	LOCKTAG		tag;
	LockData   *data;

	if (engine_lock_held)
		return MyProcPid;
	set_engine_tag(&tag);
	data = GetLockStatusData();
	for (int i = 0; i < data->nelements; i++)
	{
		LockInstanceData *instance = &data->locks[i];

		if (memcmp(&instance->locktag, &tag, sizeof(tag)) == 0 && instance->holdMask != 0)
			return instance->pid;
	}
	return 0;
}

bool
ar_action_lock_try(const pg_uuid_t *action_id)
{
	LOCKTAG		tag;

	set_action_tag(&tag, action_id);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
ar_action_lock_give(const pg_uuid_t *action_id)
{
	LOCKTAG		tag;

	set_action_tag(&tag, action_id);
	LockRelease(&tag, ExclusiveLock, false);
}

/*
 * A transaction that submits with very many keys takes all of the submitter's.
 * Two keys of one hash have one lock, which costs nothing but time.
 */
void
ar_ordering_lock(const char *submitter, const char *key)
{
	static TimestampTz counted_for = 0;
	static int	taken = 0;
	uint64		who = hash_bytes_extended((const unsigned char *) submitter, (int) strlen(submitter), 0);
	uint64		which = hash_bytes_extended((const unsigned char *) key, (int) strlen(key), who);
	LOCKTAG		tag;

	if (counted_for != GetCurrentTransactionStartTimestamp())
	{
		counted_for = GetCurrentTransactionStartTimestamp();
		taken = 0;
	}
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (who >> 32), (uint32) who, ALL_KEYS_LOCK_CLASS);
	LockAcquire(&tag, taken < KEY_LOCKS_MAX ? ShareLock : ExclusiveLock, false, false);
	if (taken >= KEY_LOCKS_MAX)
		return;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (which >> 32), (uint32) which, KEY_LOCK_CLASS);
	if (LockAcquire(&tag, ExclusiveLock, false, false) != LOCKACQUIRE_ALREADY_HELD)
		taken++;
}
