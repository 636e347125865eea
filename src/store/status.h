/*
 * status.h
 *		Reading where an action stands, as the caller may see it.
 */
#ifndef AR_STATUS_H
#define AR_STATUS_H

#include "postgres.h"

#include "utils/uuid.h"

typedef enum ArVisibility
{
	AR_NO_ACTION,				/* or not the caller's to see */
	AR_OWN_UNCOMMITTED,			/* made by the current transaction */
	AR_UNRESOLVED,
	AR_RESOLVED
} ArVisibility;

/* In a new snapshot, with the caller's rights. Needs a transaction. May ereport. */
extern ArVisibility ar_store_visibility(const pg_uuid_t *action_id);

#endif							/* AR_STATUS_H */
