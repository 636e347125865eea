/*
 * status.c
 *		Reading where an action stands, as the caller may see it.
 */
#include "store/status.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "store/statement.h"

/* submitted_by_us: the version-1 history entry, and so the row, is this transaction's own. */
static ArStatement status_statement = {
	"SELECT s.status <> 'DENIED_UNRESOLVED', s.transaction IS NOT DISTINCT FROM pg_catalog.pg_current_xact_id_if_assigned()"
	" FROM reconcile.action_status s WHERE s.action_id OPERATOR(pg_catalog.=) $1",
	1, {UUIDOID}
};

ArVisibility
ar_store_visibility(const pg_uuid_t *action_id)
{
	Datum		values[1] = {UUIDPGetDatum(action_id)};

	if (ar_statement_run(&status_statement, values, NULL) != 1)
		return AR_NO_ACTION;
	if (ar_result_bool(0, 2))
		return AR_OWN_UNCOMMITTED;
	return ar_result_bool(0, 1) ? AR_RESOLVED : AR_UNRESOLVED;
}
