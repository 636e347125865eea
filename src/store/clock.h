/*
 * clock.h
 *		The only readers of the machine's clocks.
 *
 * The lower clock opens gates: it may be late, never early.  It is durable (the
 * table reconcile.clock), adds monotonic time within one postmaster lifetime
 * and resumes from its stored value in another.  The upper clock ends
 * validity: what it cannot vouch for is too old.
 */
#ifndef AR_CLOCK_H
#define AR_CLOCK_H

#include "postgres.h"

#include "datatype/timestamp.h"

/* Wall clock, for people and for punctuality; decides nothing about evidence. */
extern TimestampTz ar_wall_now(void);
extern int64 ar_wall_unix_seconds(void);

/* CLOCK_MONOTONIC and CLOCK_BOOTTIME in microseconds. Never throw. */
extern int64 ar_monotonic_us(void);
extern int64 ar_boottime_us(void);

/* Names this postmaster's lifetime; constant, valid for the process. */
extern const char *ar_lifetime(void);

/* Names this boot of the machine; constant, valid for the process. The first call may ereport. */
extern const char *ar_boot(void);

/* A moment of the upper clock, as it is stored with evidence that ages. */
typedef struct ArMoment
{
	TimestampTz wall;
	int64		boot_us;
	const char *lifetime;
	const char *boot;			/* names the boot that boot_us counts from */
} ArMoment;

extern ArMoment ar_moment_now(void);

/*
 * The lower clock of this process: resumed from what is stored, never set
 * back, then read without a database.
 */
extern void ar_lower_clock_resume(int64 stored_elapsed_us, int64 stored_monotonic_us, const char *stored_lifetime);
extern int64 ar_lower_now(void);

/* What the lower clock read at that reading of the monotonic clock. */
extern int64 ar_lower_at(int64 monotonic_us);

#endif							/* AR_CLOCK_H */
