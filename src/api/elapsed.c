/*
 * elapsed.c
 *		Intervals as elapsed time.
 */
#include "api/elapsed.h"

#include "common/int.h"
#include "datatype/timestamp.h"

int64
ar_elapsed_us(const Interval *interval)
{
	int64		days = interval->day + (int64) interval->month * DAYS_PER_MONTH;
	int64		us;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &us))
		return days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	if (pg_add_s64_overflow(us, interval->time, &us))
		return us < 0 || days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return us;
}
