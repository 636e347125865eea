/*
 * wall_clock.c
 *		A wall clock that a test may set, for a server that preloads this.
 *
 * The file that WALL_CLOCK_OFFSET names holds one int64: by how many seconds
 * the clock is ahead.  The monotonic clocks stay what they are.  Debian's
 * libfaketime does not do for PostgreSQL 15: it is off while select() runs, and
 * background workers are forked in a signal handler inside it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

static __attribute__((constructor)) void
open_offset(void)
{
	const char *path = getenv("WALL_CLOCK_OFFSET");
	int			descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void	   *address = descriptor < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, descriptor, 0);

	if (address == MAP_FAILED)
		abort();
	offset = address;
	close(descriptor);
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	int			result = (int) syscall(SYS_clock_gettime, clock, now);

	if (result == 0 && offset != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return result;
}

int
gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec exact;

	(void) zone;
	clock_gettime(CLOCK_REALTIME, &exact);
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *result)
{
	struct timespec exact;

	clock_gettime(CLOCK_REALTIME, &exact);
	if (result != NULL)
		*result = exact.tv_sec;
	return exact.tv_sec;
}
