/*
 * clock.c
 *		The only readers of the machine's clocks.
 */
#include "store/clock.h"

#include <time.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

/* The lower clock reads base + (monotonic now - anchor). */
static int64 lower_base_us = 0;
static int64 lower_anchor_us = 0;
static bool lower_resumed = false;

static int64
read_clock_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

TimestampTz
ar_wall_now(void)
{
	return GetCurrentTimestamp();
}

int64
ar_monotonic_us(void)
{
	return read_clock_us(CLOCK_MONOTONIC);
}

int64
ar_wall_unix_seconds(void)
{
	return (int64) time(NULL);
}

/* Counts suspended time too, which an upper bound must. */
int64
ar_boottime_us(void)
{
	return read_clock_us(CLOCK_BOOTTIME);
}

/*
 * The start time of the postmaster survives its crash restarts, as the
 * monotonic clock does, and no two lifetimes on one data directory share both
 * start and process id.
 */
const char *
ar_lifetime(void)
{
	static char lifetime[64];

	if (lifetime[0] == '\0')
		snprintf(lifetime, sizeof(lifetime), INT64_FORMAT "-%d", (int64) PgStartTime, PostmasterPid);
	return lifetime;
}

/*
 * The clock since boot goes on through restarts of the server, so what counts
 * for it is the boot of the machine.  Where that has no name, the lifetime of
 * the postmaster is the safe substitute.
 */
const char *
ar_boot(void)
{
	static char boot[64];

	if (boot[0] == '\0')
	{
		FILE	   *file = AllocateFile("/proc/sys/kernel/random/boot_id", "r");

		if (file == NULL || fgets(boot, sizeof(boot), file) == NULL)
			strlcpy(boot, ar_lifetime(), sizeof(boot));
		if (file != NULL)
			FreeFile(file);
		boot[strcspn(boot, "\n")] = '\0';
	}
	return boot;
}

ArMoment
ar_moment_now(void)
{
	ArMoment	now = {ar_wall_now(), ar_boottime_us(), ar_lifetime(), ar_boot()};

	return now;
}

/*
 * Within the lifetime that stored it the clock goes on from the stored pair;
 * in another one nobody knows how much time has passed, so none has.  A clock
 * that is already running in this process never goes back.
 */
void
ar_lower_clock_resume(int64 stored_elapsed_us, int64 stored_monotonic_us, const char *stored_lifetime)
{
	int64		now = ar_monotonic_us();
	int64		elapsed = stored_elapsed_us;

	if (strcmp(stored_lifetime, ar_lifetime()) == 0 && now > stored_monotonic_us)
		elapsed += now - stored_monotonic_us;
	if (lower_resumed && ar_lower_now() > elapsed)
		return;
	lower_base_us = elapsed;
	lower_anchor_us = now;
	lower_resumed = true;
}

int64
ar_lower_at(int64 monotonic_us)
{
	Assert(lower_resumed);
	return lower_base_us + (monotonic_us - lower_anchor_us);
}

int64
ar_lower_now(void)
{
	return ar_lower_at(ar_monotonic_us());
}
