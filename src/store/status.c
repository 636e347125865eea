/*
 * status.c
 *		Reading where an action stands, as the caller may see it.
 */
#include "store/status.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"

#include "store/statement.h"

/* The last transition of the row may be this transaction's own, not yet committed. */
static ArStatement status_statement = {
	"SELECT s.status <> 'DENIED_UNRESOLVED', s.transaction IS NOT DISTINCT FROM pg_catalog.pg_current_xact_id_if_assigned()"
	" FROM reconcile.action_status s WHERE s.action_id OPERATOR(pg_catalog.=) $1",
	1, {UUIDOID}
};

ArVisibility
ar_store_visibility(const pg_uuid_t *action_id)
{
	Datum		values[1] = {UUIDPGetDatum(action_id)};
	ArVisibility visibility;

	SPI_connect();
	if (ar_statement_run(&status_statement, values, NULL) != 1)
		visibility = AR_NO_ACTION;
	else if (ar_result_bool(0, 2))
		visibility = AR_OWN_UNCOMMITTED;
	else
		visibility = ar_result_bool(0, 1) ? AR_RESOLVED : AR_UNRESOLVED;
	SPI_finish();
	return visibility;
}
