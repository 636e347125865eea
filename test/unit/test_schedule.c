/*
 * test_schedule.c
 *		Pauses between tries: bounds, growth, spread, extreme arguments.
 */
#include "tap.h"

#include <limits.h>

#include "core/schedule.h"

#define SECOND INT64_C(1000000)

/* Base and bound count up to here, so that the spread has room. */
#define LARGEST (INT64_MAX / 2)

static const double spread[] = {0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 0.9999999999999999};

#define SPREAD_COUNT (sizeof(spread) / sizeof(spread[0]))

/* Without spread: base, doubled, up to the bound. */
static void
test_doubling(void)
{
	static const struct
	{
		int			failures;
		int64_t		pause;
	}			rows[] = {
		{1, SECOND}, {2, 2 * SECOND}, {3, 4 * SECOND}, {4, 8 * SECOND}, {5, 16 * SECOND},
		{6, 32 * SECOND}, {7, 60 * SECOND}, {8, 60 * SECOND}, {100, 60 * SECOND},
		{INT_MAX, 60 * SECOND},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(ar_backoff_us(SECOND, 60 * SECOND, rows[i].failures, 0.5), rows[i].pause,
			   "one second doubled up to a minute");
	is_int(ar_backoff_us(3 * SECOND, 10 * SECOND, 3, 0.5), 10 * SECOND,
		   "the bound need not be a multiple");
	is_int(ar_backoff_us(SECOND, 60 * SECOND, 0, 0.5), SECOND, "no failure counts as one");
	is_int(ar_backoff_us(SECOND, 60 * SECOND, INT_MIN, 0.5), SECOND,
		   "a negative count as well");
}

static void
test_spread(void)
{
	is_int(ar_backoff_us(8 * SECOND, 60 * SECOND, 1, 0.0), 7 * SECOND, "an eighth less");
	ok(ar_backoff_us(8 * SECOND, 60 * SECOND, 1, spread[SPREAD_COUNT - 1]) <= 9 * SECOND &&
	   ar_backoff_us(8 * SECOND, 60 * SECOND, 1, spread[SPREAD_COUNT - 1]) >= 9 * SECOND - 1,
	   "an eighth more");
	ok(ar_backoff_us(8 * SECOND, 60 * SECOND, 1, 0.25) == 7500000 &&
	   ar_backoff_us(8 * SECOND, 60 * SECOND, 1, 0.75) == 8500000, "even in between");
}

/* A base below one is one, a bound below the base is the base, nothing is beyond the largest. */
static int64_t
clamp(int64_t value, int64_t least)
{
	if (value > LARGEST)
		value = LARGEST;
	return value < least ? least : value;
}

/* What is asked for beyond the largest is the largest, to the microsecond. */
static void
test_largest(void)
{
	is_int(ar_backoff_us(LARGEST, LARGEST, 1, 0.5), LARGEST, "the largest base is kept");
	is_int(ar_backoff_us(LARGEST + 1, INT64_MAX, 1, 0.5), LARGEST, "one more is cut");
	is_int(ar_backoff_us(INT64_MAX, INT64_MAX, INT_MAX, 0.5), LARGEST, "the end of the type is cut");
	is_int(ar_backoff_us(INT64_MAX, INT64_MIN, 1, 0.5), LARGEST, "whatever the bound is");
	is_int(ar_backoff_us(1, INT64_MAX, 62, 0.5), INT64_C(1) << 61, "doubled up to there");
	is_int(ar_backoff_us(1, INT64_MAX, 63, 0.5), LARGEST, "and no further");
	is_int(ar_backoff_us(INT64_MIN, INT64_MIN, 1, 0.5), 1, "the other end of the type is one");
	ok(ar_backoff_us(INT64_MAX, INT64_MAX, 1, 1.0) > LARGEST, "the spread still fits above it");
}

/* Whatever the arguments: inside the bounds, never shorter after one more failure. */
static void
test_bounds(void)
{
	static const int64_t sizes[] = {INT64_MIN, -1, 0, 1, 2, 7, 1000, SECOND, 60 * SECOND,
		86400 * SECOND, INT64_C(1) << 53, LARGEST / 2, LARGEST - 1, LARGEST, LARGEST + 1,
	INT64_MAX / 5 * 4, INT64_MAX};
	int			outside = 0;
	int			shrunk = 0;
	int			tried = 0;

	for (size_t b = 0; b < sizeof(sizes) / sizeof(sizes[0]); b++)
	{
		for (size_t m = 0; m < sizeof(sizes) / sizeof(sizes[0]); m++)
		{
			int64_t		base = clamp(sizes[b], 1);
			int64_t		max = clamp(sizes[m], base);

			for (size_t s = 0; s < SPREAD_COUNT; s++)
			{
				int64_t		last = 0;

				for (int failures = -1; failures <= 80; failures++, tried++)
				{
					int64_t		pause = ar_backoff_us(sizes[b], sizes[m], failures, spread[s]);

					/* Beyond 2^53 the spread is rounded to a double. */
					outside += pause < 1 || pause > max + max / 8 + (max >> 52);
					outside += pause < base - base / 8 - 1 - (base >> 52);
					shrunk += pause < last;
					last = pause;
				}
			}
		}
	}
	diag("%d combinations", tried);
	is_int(outside, 0, "every pause is inside its bounds");
	is_int(shrunk, 0, "one more failure never shortens the pause");
}

int
main(void)
{
	test_doubling();
	test_spread();
	test_largest();
	test_bounds();
	return done_testing();
}
