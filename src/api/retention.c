/*
 * retention.c
 *		SQL-callable functions by which actions leave.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"

#include "store/retention.h"

PG_FUNCTION_INFO_V1(ar_let_go);
PG_FUNCTION_INFO_V1(ar_let_archived_go);

/* An old snapshot does not show what keeps an action since. */
static void
require_fresh_snapshots(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("actions cannot leave in a transaction that is not READ COMMITTED"),
				 errhint("CALL reconcile.maintain().")));
}

Datum
ar_let_go(PG_FUNCTION_ARGS)
{
	require_fresh_snapshots();
	PG_RETURN_INT32(ar_store_let_go(PG_GETARG_ARRAYTYPE_P(0)));
}

Datum
ar_let_archived_go(PG_FUNCTION_ARGS)
{
	require_fresh_snapshots();
	PG_RETURN_INT32(ar_store_let_archived_go(PG_GETARG_ARRAYTYPE_P(0)));
}
