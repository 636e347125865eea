/*
 * key.c
 *		The age of an idempotency key, never underestimated.
 *
 * A key that the provider has forgotten makes a second effect of a repeated
 * request, so time is taken from the clock that says more, and a clock that
 * was set back says nothing at all.
 */
#include "core/key.h"

#include <string.h>

/* From the first reading to a later one; a span that cannot be counted is as long as can be. */
static int64_t
elapsed_us(int64_t from_us, int64_t to_us)
{
	if (from_us < 0 && to_us > INT64_MAX + from_us)
		return INT64_MAX;
	return to_us - from_us;
}

int64_t
ar_key_age_us(const ArKeyMoment *first, const ArKeyMoment *now, int64_t latest_wall_us)
{
	int64_t		age;

	if (now->wall_us < first->wall_us || now->wall_us < latest_wall_us)
		return -1;
	age = elapsed_us(first->wall_us, now->wall_us);
	if (strcmp(first->boot, now->boot) == 0)
	{
		if (now->boot_us < first->boot_us)
			return -1;
		if (elapsed_us(first->boot_us, now->boot_us) > age)
			age = elapsed_us(first->boot_us, now->boot_us);
	}
	return age;
}
