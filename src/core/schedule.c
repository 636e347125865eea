/*
 * schedule.c
 *		Exponential pauses with a bound and a spread.
 */
#include "core/schedule.h"

int64_t
ar_backoff_us(int64_t base_us, int64_t max_us, int failures, double random)
{
	int64_t		pause = base_us < 1 ? 1 : base_us;

	/* Room for the spread, whatever was asked for. */
	if (pause > INT64_MAX / 2)
		pause = INT64_MAX / 2;
	if (max_us > INT64_MAX / 2)
		max_us = INT64_MAX / 2;
	if (max_us < pause)
		max_us = pause;
	for (int i = 1; i < failures && pause < max_us; i++)
		pause = pause > max_us / 2 ? max_us : pause * 2;
	if (pause > max_us)
		pause = max_us;

	pause += (int64_t) ((double) pause / 4 * (random - 0.5));
	return pause < 1 ? 1 : pause;
}
