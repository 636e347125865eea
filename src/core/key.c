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

int64_t
ar_key_age_us(const ArKeyMoment *first, const ArKeyMoment *now, int64_t latest_wall_us)
{
	int64_t		age;

	if (now->wall_us < first->wall_us || now->wall_us < latest_wall_us)
		return -1;
	age = now->wall_us - first->wall_us;
	if (strcmp(first->boot, now->boot) == 0)
	{
		if (now->boot_us < first->boot_us)
			return -1;
		if (now->boot_us - first->boot_us > age)
			age = now->boot_us - first->boot_us;
	}
	return age;
}
