/*
 * schedule.h
 *		How long to pause before the next try.
 *
 * Pure: no clock; randomness comes from the caller.
 */
#ifndef AR_SCHEDULE_H
#define AR_SCHEDULE_H

#include <stdint.h>

/*
 * Pause before the next try after "failures" failures in a row (1 = the
 * first): base, doubled for each further one up to "max", then spread by an
 * eighth either way so that a crowd does not come back as a crowd.  "random"
 * is in [0, 1).  The result is at least 1 and at most max + max/8; all in microseconds.
 */
extern int64_t ar_backoff_us(int64_t base_us, int64_t max_us, int failures, double random);

#endif							/* AR_SCHEDULE_H */
