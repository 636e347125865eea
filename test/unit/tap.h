/*
 * tap.h
 *		Small helper for C unit tests that speak the Test Anything Protocol.
 *
 * Include it in exactly one .c file per program.  A failed check prints where
 * it stands and what was seen; the exit status of tap_done_testing() tells a
 * caller that does not read TAP whether everything passed.  Not thread-safe:
 * check from the main thread only.
 */
#ifndef AR_TEST_TAP_H
#define AR_TEST_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define TAP_UNUSED __attribute__((unused))
#define TAP_FORMAT(f, a) __attribute__((format(printf, f, a)))

static int	tap_planned = -1;
static int	tap_run = 0;
static int	tap_failed = 0;

/* Announces the number of checks; without it tap_done_testing() counts. */
static TAP_UNUSED void
tap_plan(int count)
{
	tap_planned = count;
	printf("1..%d\n", count);
	fflush(stdout);
}

/* A remark in the output that is no check. */
static TAP_UNUSED TAP_FORMAT(1, 2) void
tap_diag(const char *format,...)
{
	va_list		args;

	fputs("# ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fputc('\n', stdout);
	fflush(stdout);
}

/* Records one check; returns what it was given, so that callers can add more. */
static TAP_UNUSED TAP_FORMAT(4, 5) bool
tap_ok(bool passed, const char *file, int line, const char *format,...)
{
	va_list		args;

	tap_run++;
	if (!passed)
		tap_failed++;
	printf("%s %d - ", passed ? "ok" : "not ok", tap_run);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fputc('\n', stdout);
	if (!passed)
		printf("#   failed at %s line %d\n", file, line);
	fflush(stdout);
	return passed;
}

static TAP_UNUSED bool
tap_is_int(int64_t got, int64_t expected, const char *file, int line,
		   const char *name)
{
	bool		passed = tap_ok(got == expected, file, line, "%s", name);

	if (!passed)
		printf("#          got: %" PRId64 "\n#     expected: %" PRId64 "\n",
			   got, expected);
	return passed;
}

/* Compares two strings; two NULLs are equal. */
static TAP_UNUSED bool
tap_is_str(const char *got, const char *expected, const char *file, int line,
		   const char *name)
{
	bool		same = got == expected ||
		(got != NULL && expected != NULL && strcmp(got, expected) == 0);
	bool		passed = tap_ok(same, file, line, "%s", name);

	if (!passed)
		printf("#          got: %s\n#     expected: %s\n",
			   got ? got : "(null)", expected ? expected : "(null)");
	return passed;
}

/* Ends the test; returns the exit status of the program. */
static TAP_UNUSED int
tap_done_testing(void)
{
	if (tap_planned < 0)
		printf("1..%d\n", tap_run);
	else if (tap_planned != tap_run)
		printf("# planned %d checks but ran %d\n", tap_planned, tap_run);
	if (tap_failed > 0)
		printf("# %d of %d checks failed\n", tap_failed, tap_run);
	fflush(stdout);
	return tap_failed > 0 || (tap_planned >= 0 && tap_planned != tap_run);
}

#define plan(count)			tap_plan(count)
#define diag(...)			tap_diag(__VA_ARGS__)
#define ok(cond, ...)		tap_ok((cond), __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, expected, name) \
	tap_is_int((int64_t) (got), (int64_t) (expected), __FILE__, __LINE__, (name))
#define is_str(got, expected, name) \
	tap_is_str((got), (expected), __FILE__, __LINE__, (name))
#define done_testing()		tap_done_testing()

#endif							/* AR_TEST_TAP_H */
