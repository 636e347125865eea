/*
 * capability.c
 *		SQL-callable functions about what a provider can do.
 */
#include "postgres.h"

#include "common/int.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "utils/timestamp.h"

#include "core/capability.h"
#include "types/enums.h"

PG_FUNCTION_INFO_V1(ar_capability_tier_of);

/* Elapsed time: a day is 24 hours, a month 30 days. What is longer than can be counted is as long as can be. */
static int64
elapsed_us(const Interval *interval)
{
	int64		days = interval->day + (int64) interval->month * DAYS_PER_MONTH;
	int64		us;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &us))
		return days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	if (pg_add_s64_overflow(us, interval->time, &us))
		return us < 0 || days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return us;
}

/* A fact that is not known is none. */
static bool
fact(FunctionCallInfo fcinfo, int argument)
{
	return !PG_ARGISNULL(argument) && PG_GETARG_BOOL(argument);
}

static int64
duration(FunctionCallInfo fcinfo, int argument, int64 if_unknown)
{
	return PG_ARGISNULL(argument) ? if_unknown : elapsed_us(PG_GETARG_INTERVAL_P(argument));
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
