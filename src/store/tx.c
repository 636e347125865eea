/*
 * tx.c
 *		The engine's transactions.
 */
#include "store/tx.h"

#include <signal.h>

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/pquery.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "store/extension.h"

#define SCHEMA_NAME		"reconcile"

/* Tables an engine statement may touch, in the order in which they are locked. */
static const char *const engine_tables[] = {
	"action", "attempt", "lookup", "history", "archived_action", "provider", "operation", "response_rule", "lookup_rule", "poll_rule", "inbox", "incident", "window_sample",
	"breaker", "pause_period", "clock", "arming", "rearming"
};

static bool in_call_mode = false;
static bool tx_open = false;
static bool commit_locally = false;
static ArExtension extension;
static Oid	table_owner = InvalidOid;
static Oid	saved_user;
static int	saved_context;
static MemoryContext caller_context;

volatile sig_atomic_t ar_tx_in_commit = false;

/* The role that the extension's tables belong to: the one that the engine works as. */
static Oid
owner_of_tables(void)
{
	Oid			table = get_relname_relid(engine_tables[0], get_namespace_oid(SCHEMA_NAME, true));
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * What the engine's statements rely on, whatever the role or the database
 * sets.  Every table of theirs is reached by an index that stays right while it
 * grows from nothing to millions, and a batch is joined by hashing whatever
 * its size, so the planner is not to be misled by the day it first planned.
 */
static const struct
{
	const char *name;
	const char *value;
}			pinned_settings[] = {
	{"search_path", "pg_catalog, pg_temp"},
	{"TimeZone", "UTC"},
	{"session_replication_role", "origin"},
	{"default_tablespace", ""},
	{"default_table_access_method", "heap"},
	{"work_mem", "16MB"},
	{"enable_indexscan", "on"},
	{"enable_hashjoin", "on"},
	{"enable_seqscan", "off"},
	{"enable_mergejoin", "off"},
	{"enable_nestloop", "off"},
	{"enable_bitmapscan", "off"},
	{"plan_cache_mode", "force_generic_plan"},
	{"jit", "off"},
	{"lock_timeout", "5s"},
	AR_PINNED_BY_VERSION
};

/* The worker's session is its own: pinned once. */
static void
pin_session(void)
{
	for (int i = 0; i < lengthof(pinned_settings); i++)
		SetConfigOption(pinned_settings[i].name, pinned_settings[i].value, PGC_SUSET, PGC_S_OVERRIDE);
}

/* False if there is none, or one that this library does not know; said once per engine. */
static bool
find_extension(void)
{
	const char *problem = ar_extension_problem();

	if (problem != NULL)
		ereport(in_call_mode ? ERROR : LOG,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the engine does not work: %s", problem),
				 errdetail("Nothing is sent or asked; actions can be recorded and confirmed.")));
	if (problem != NULL || !ar_extension_find(&extension))
		return false;
	table_owner = owner_of_tables();
	return OidIsValid(table_owner);
}

/*
 * A CALL begins in a transaction of the caller's making: it is replaced by a
 * fresh one first, so that its isolation level does not matter.
 */
bool
ar_tx_init(bool in_call)
{
	MemoryContext context = CurrentMemoryContext;
	bool		found;

	in_call_mode = in_call;
	tx_open = false;
	commit_locally = false;
	if (in_call)
	{
		SPI_connect_ext(SPI_OPT_NONATOMIC);
		SPI_commit();
		SPI_finish();
		MemoryContextSwitchTo(context);
		return find_extension();
	}
	pin_session();
	StartTransactionCommand();
	found = find_extension();
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return found;
}

/*
 * An engine that waits for a table lock cannot answer its sockets or its
 * signals, so it never does.  RowExclusiveLock keeps REINDEX out as well, for
 * the last-instant check must not meet a locked index either.
 */
static bool
lock_tables(void)
{
	Oid			schema = get_namespace_oid(SCHEMA_NAME, true);
	LOCKTAG		tag;

	/* DROP EXTENSION takes this one first: so neither can hold what the other wants. */
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension.oid, 0);
	if (LockAcquire(&tag, AccessShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;

	for (int i = 0; i < lengthof(engine_tables); i++)
	{
		Oid			table = get_relname_relid(engine_tables[i], schema);

		if (!OidIsValid(table) || !ConditionalLockRelationOid(table, RowExclusiveLock))
			return false;
	}
	return true;
}

const char *const *
ar_tx_tables(int *count)
{
	*count = lengthof(engine_tables);
	return engine_tables;
}

static void
set_local(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

static void
pin_transaction(void)
{
	XactIsoLevel = XACT_READ_COMMITTED;
	XactReadOnly = RecoveryInProgress();
	/* remote_apply stays: an operator who asks for more than durable gets it */
	if (commit_locally)
		set_local("synchronous_commit", "local");
	else if (synchronous_commit < SYNCHRONOUS_COMMIT_ON)
		set_local("synchronous_commit", "on");
	if (!in_call_mode)
		return;
	for (int i = 0; i < lengthof(pinned_settings); i++)
		set_local(pinned_settings[i].name, pinned_settings[i].value);
}

bool
ar_tx_read_only(void)
{
	return DefaultXactReadOnly;
}

void
ar_tx_settle_to_wait(void)
{
	static const char *const limits[] = {AR_LIMITS_OF_TRANSACTIONS NULL};

	if (!in_call_mode)
		return;
	for (int i = 0; limits[i] != NULL; i++)
		set_local(limits[i], "0");
}

ArTxBegin
ar_tx_begin(void)
{
	ArExtension now;

	Assert(!tx_open);
	if (ar_tx_read_only())
		return AR_TX_READ_ONLY;
	caller_context = CurrentMemoryContext;
	if (!in_call_mode)
	{
		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
	}
	/* Connected anew each time, so that no result outlives its transaction. */
	SPI_connect_ext(in_call_mode ? SPI_OPT_NONATOMIC : 0);
	MemoryContextSwitchTo(caller_context);
	tx_open = true;
	GetUserIdAndSecContext(&saved_user, &saved_context);
	SetUserIdAndSecContext(table_owner, saved_context | SECURITY_LOCAL_USERID_CHANGE);
	pin_transaction();
	/* SPI wants one to stand on; each statement still takes its own. */
	if (!in_call_mode)
		PushActiveSnapshot(GetTransactionSnapshot());
	if (!ar_extension_find(&now) || now.oid != extension.oid || !now.fits)
	{
		const char *problem = ar_extension_problem();

		if (problem != NULL)
			ereport(LOG, (errmsg("the engine stops: %s", problem)));
		ar_tx_rollback();
		return AR_TX_GONE;
	}
	if (!lock_tables())
	{
		ar_tx_rollback();
		return AR_TX_BUSY;
	}
	return AR_TX_OPEN;
}

/*
 * A cancel that meets the wait for a synchronous standby turns it into a
 * success that is not durable, so the signal is kept out until the commit is
 * through; a cancel that is already there is served before.
 */
void
ar_tx_commit(void)
{
	sigset_t	cancel;
	sigset_t	before;

	Assert(tx_open);
	CHECK_FOR_INTERRUPTS();
	sigemptyset(&cancel);
	sigaddset(&cancel, SIGINT);
	sigprocmask(SIG_BLOCK, &cancel, &before);
	ar_tx_in_commit = true;
	tx_open = false;
	SetUserIdAndSecContext(saved_user, saved_context);
	PG_TRY();
	{
		if (in_call_mode)
		{
			SPI_commit();
			SPI_finish();
		}
		else
		{
			PopActiveSnapshot();
			SPI_finish();
			CommitTransactionCommand();
		}
	}
	PG_FINALLY();
	{
		ar_tx_in_commit = false;
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller_context);
	if (!in_call_mode)
		pgstat_report_stat(false);
	CHECK_FOR_INTERRUPTS();
}

void
ar_tx_rollback(void)
{
	tx_open = false;
	SetUserIdAndSecContext(saved_user, saved_context);
	if (in_call_mode)
	{
		/* An error inside a trigger's own SPI has left its level on top of ours. */
		while (!SPI_inside_nonatomic_context() && SPI_finish() == SPI_OK_FINISH)
			;
		/* And its snapshots, where the server wants to find the portal's own. */
		while (ActiveSnapshotSet() && ActivePortal != NULL && GetActiveSnapshot() != ActivePortal->portalSnapshot)
			PopActiveSnapshot();
		SPI_rollback();
		SPI_finish();
	}
	else
		AbortCurrentTransaction();	/* takes SPI's connection along */
	MemoryContextSwitchTo(caller_context);
}

void
ar_tx_commit_locally(void)
{
	commit_locally = true;
}

bool
ar_tx_is_open(void)
{
	return tx_open;
}
