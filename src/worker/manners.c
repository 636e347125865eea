/*
 * manners.c
 *		Making room for statements about databases, extensions and settings.
 *
 * A worker is a session, and some statements fail if a database has one: DROP
 * DATABASE, ALTER DATABASE RENAME and SET TABLESPACE, CREATE DATABASE with it
 * as the template.  The server waits five seconds for others to go.  So the
 * worker is asked to leave before, and none is started until the statement has
 * ended, in whatever way.  Only for those who may do what they want to do: a
 * statement that will be refused must not disturb.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "compat.h"
#include "worker/manners.h"
#include "worker/shmem.h"

static bool scan_wanted = false;
static bool look_wanted = false;
static bool settings_changed = false;	/* of sessions of */
static Oid	settings_database = InvalidOid; /* this database, or of every one */

/* The database that this backend's statement needs for itself. */
static Oid	held_database = InvalidOid;

static object_access_hook_type previous_access_hook = NULL;
static ProcessUtility_hook_type previous_utility_hook = NULL;

static void
let_go(int code, Datum argument)
{
	ArWorkerSlot *slot;

	if (!OidIsValid(held_database))
		return;
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	slot = ar_shmem_slot(held_database);
	if (slot != NULL && slot->holds > 0)
		slot->holds--;
	held_database = InvalidOid;
	ar_shmem_wake_launcher();
	LWLockRelease(ar_shared->lock);
}

/* Until let_go(), which also comes when the backend ends. */
static void
hold(Oid database)
{
	static bool exit_callback_set = false;
	ArWorkerSlot *slot;

	if (ar_shared == NULL || OidIsValid(held_database))
		return;
	if (!exit_callback_set)
		before_shmem_exit(let_go, (Datum) 0);
	exit_callback_set = true;
	LWLockAcquire(ar_shared->lock, LW_EXCLUSIVE);
	slot = ar_shmem_slot(database);
	if (slot != NULL)
	{
		held_database = database;
		slot->holds++;
		ar_shmem_ask_to_leave(slot, AR_LEAVE_AT_ONCE);
	}
	LWLockRelease(ar_shared->lock);
}

static bool
may_create_databases(void)
{
	HeapTuple	role;
	bool		may = superuser();

	role = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	if (HeapTupleIsValid(role))
	{
		may = may || ((Form_pg_authid) GETSTRUCT(role))->rolcreatedb;
		ReleaseSysCache(role);
	}
	return may;
}

static char *
option_value(List *options, const char *name)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *option = lfirst(cell);

		if (strcmp(option->defname, name) == 0)
			return option->arg != NULL ? defGetString(option) : NULL;
	}
	return NULL;
}

/* The name of the database that a statement needs without a session; DROP DATABASE tells by itself, when it has checked. */
static char *
needed_database(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreatedbStmt:
			return may_create_databases() ? option_value(((CreatedbStmt *) statement)->options, "template") : NULL;
		case T_RenameStmt:
			if (((RenameStmt *) statement)->renameType == OBJECT_DATABASE && may_create_databases())
				return ((RenameStmt *) statement)->subname;
			return NULL;
		case T_AlterDatabaseStmt:
			if (option_value(((AlterDatabaseStmt *) statement)->options, "tablespace") != NULL)
				return ((AlterDatabaseStmt *) statement)->dbname;
			return NULL;
		default:
			return NULL;
	}
}

/*
 * An extension or a database comes or goes, or an extension is updated: the
 * launcher and this database's worker have to look.
 */
static void
on_object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *argument)
{
	if (previous_access_hook)
		previous_access_hook(access, class_id, object_id, sub_id, argument);
	if (((access == OAT_POST_CREATE || access == OAT_DROP) &&
		 (class_id == ExtensionRelationId || class_id == DatabaseRelationId)) ||
		(access == OAT_POST_ALTER && class_id == ExtensionRelationId))
		scan_wanted = look_wanted = true;
	if (class_id == DatabaseRelationId && access == OAT_DROP)
		hold(object_id);
}

/* Settings of a database or a role count for sessions that begin later: the worker begins anew. */
static void
note_settings(Node *statement)
{
	if (IsA(statement, AlterDatabaseSetStmt))
		settings_database = get_database_oid(((AlterDatabaseSetStmt *) statement)->dbname, true);
	else if (IsA(statement, AlterRoleSetStmt))
	{
		AlterRoleSetStmt *alter = (AlterRoleSetStmt *) statement;

		if (alter->role != NULL && get_rolespec_oid(alter->role, true) != BOOTSTRAP_SUPERUSERID)
			return;
		settings_database = alter->database != NULL ? get_database_oid(alter->database, true) : InvalidOid;
	}
	else
		return;
	settings_changed = true;
}

/* What a statement changes for launcher and workers, once it is committed. */
static void
note_changes(Node *statement)
{
	/* COMMIT PREPARED runs no commit callback of the transaction it commits. */
	if (IsA(statement, TransactionStmt) && ((TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED)
		look_wanted = true;
	if (IsA(statement, AlterDatabaseStmt) ||
		(IsA(statement, RenameStmt) && ((RenameStmt *) statement)->renameType == OBJECT_DATABASE))
		scan_wanted = true;
	note_settings(statement);
}

static void
on_utility(PlannedStmt *statement, const char *query, bool read_only_tree, ProcessUtilityContext context,
		   ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *receiver, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous_utility_hook ? previous_utility_hook : standard_ProcessUtility;
	char	   *name = ar_shared != NULL ? needed_database(statement->utilityStmt) : NULL;
	Oid			database = name != NULL ? get_database_oid(name, true) : InvalidOid;

	/* Whoever may copy a template that is not theirs finds no worker in it. */
	if (OidIsValid(database) && ar_owns_database(database))
		hold(database);
	note_changes(statement->utilityStmt);
	PG_TRY();
	{
		next(statement, query, read_only_tree, context, parameters, environment, receiver, completion);
	}
	PG_FINALLY();
	{
		let_go(0, (Datum) 0);
	}
	PG_END_TRY();
}

static void
tell_workers_of_settings(void)
{
	for (int i = 0; i < AR_MAX_WORKERS; i++)
	{
		ArWorkerSlot *slot = &ar_shared->slots[i];

		if (OidIsValid(slot->database) && (!OidIsValid(settings_database) || slot->database == settings_database))
			ar_shmem_ask_to_leave(slot, AR_LEAVE_WHEN_ANSWERED);
	}
}

bool
ar_manners_at_end(bool committed)
{
	bool		look = committed && look_wanted;

	if (committed && (scan_wanted || settings_changed))
	{
		LWLockAcquire(ar_shared->lock, LW_SHARED);
		if (scan_wanted)
			ar_shmem_wake_launcher();
		if (settings_changed)
			tell_workers_of_settings();
		LWLockRelease(ar_shared->lock);
	}
	scan_wanted = look_wanted = settings_changed = false;
	return look;
}

void
ar_manners_init(void)
{
	previous_access_hook = object_access_hook;
	object_access_hook = on_object_access;
	previous_utility_hook = ProcessUtility_hook;
	ProcessUtility_hook = on_utility;
}
