/*
 * capability.c
 *		SQL-callable functions about what a provider can do.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"

#include "api/elapsed.h"
#include "core/capability.h"
#include "types/enums.h"

PG_FUNCTION_INFO_V1(ar_capability_tier_of);

/* A fact that is not known is none. */
static bool
fact(FunctionCallInfo fcinfo, int argument)
{
	return !PG_ARGISNULL(argument) && PG_GETARG_BOOL(argument);
}

static int64
duration(FunctionCallInfo fcinfo, int argument, int64 if_unknown)
{
	return PG_ARGISNULL(argument) ? if_unknown : ar_elapsed_us(PG_GETARG_INTERVAL_P(argument));
}

Datum
ar_capability_tier_of(PG_FUNCTION_ARGS)
{
	ArCapabilities can;

	can.returns_artifact = fact(fcinfo, 0);
	can.takes_key = fact(fcinfo, 1);
	can.key_lifetime_us = duration(fcinfo, 2, 0);
	can.key_margin_us = duration(fcinfo, 3, 0);
	can.has_query = fact(fcinfo, 4);
	can.reference_queryable = fact(fcinfo, 5);
	return ar_result_enum(fcinfo, ar_tier_name(ar_capability_tier(&can, duration(fcinfo, 6, -1), duration(fcinfo, 7, -1))));
}
