/*
 * elapsed.h
 *		Intervals as elapsed time.
 */
#ifndef AR_ELAPSED_H
#define AR_ELAPSED_H

#include "postgres.h"

#include "utils/timestamp.h"

/*
 * Microseconds: a day is 24 hours, a month 30 days, whatever the time zone.
 * What is longer than can be counted is as long as can be.  Never throws.
 */
extern int64 ar_elapsed_us(const Interval *interval);

#endif							/* AR_ELAPSED_H */
