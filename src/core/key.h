/*
 * key.h
 *		The age of an idempotency key.
 *
 * Pure: no SQL, no network; the readings of the clocks come from the caller.
 */
#ifndef AR_KEY_H
#define AR_KEY_H

#include <stdint.h>

/* One moment on both clocks of the machine; "boot" names the boot that boot_us counts from. */
typedef struct ArKeyMoment
{
	int64_t		wall_us;
	int64_t		boot_us;
	const char *boot;
} ArKeyMoment;

/*
 * The upper clock: the larger of what the wall clock and the clock since boot
 * say has passed since the first send, or -1 if nobody can tell: a clock
 * stands before the first send, or the wall clock behind its latest known
 * reading.  Whether the key is still alive at that age: core/capability.h.
 */
extern int64_t ar_key_age_us(const ArKeyMoment *first, const ArKeyMoment *now, int64_t latest_wall_us);

#endif							/* AR_KEY_H */
