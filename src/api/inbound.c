/*
 * inbound.c
 *		SQL-callable functions for what comes in unasked.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/uuid.h"

#include "store/engine_lock.h"

PG_FUNCTION_INFO_V1(ar_try_lock_action);

Datum
ar_try_lock_action(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(ar_action_lock_try(PG_GETARG_UUID_P(0)));
}
