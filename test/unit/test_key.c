/*
 * test_key.c
 *		How old an idempotency key is by two clocks, and whether it lives.
 *
 * Whatever is wrong with a clock, a key may be taken for older than it is, never
 * for younger.
 */
#include "tap.h"

#include "core/capability.h"
#include "core/key.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define UNKNOWN (-1)

#define THIS "boot-1"
#define NEXT "boot-2"

/* Hours on both clocks: of the first send, of now, and of the latest known reading of the wall clock. */
static const struct
{
	const char *what;
	int			first_wall;
	int			first_boot;
	int			now_wall;
	int			now_boot;
	const char *now_named;
	int			latest;
	int			age;
}			rows[] = {
	{"both clocks agree", 100, 10, 103, 13, THIS, 100, 3},
	{"no time has passed", 100, 10, 100, 10, THIS, 100, 0},
	{"the wall clock is ahead", 100, 10, 108, 13, THIS, 100, 8},
	{"the boot clock is ahead: the wall clock was set back", 100, 10, 101, 30, THIS, 100, 20},
	{"the wall clock stands, the boot clock goes on", 100, 10, 100, 33, THIS, 100, 23},
	{"the wall clock was set back before the first send", 100, 10, 99, 13, THIS, 98, UNKNOWN},
	{"likewise, after another boot", 100, 10, 99, 13, NEXT, 98, UNKNOWN},
	{"the boot clock is behind in the same boot", 100, 10, 103, 9, THIS, 100, UNKNOWN},
	{"the wall clock is behind its latest reading", 100, 10, 103, 13, THIS, 104, UNKNOWN},
	{"likewise, though the boot clock says enough", 100, 10, 103, 40, THIS, 104, UNKNOWN},
	{"likewise, after another boot", 100, 10, 103, 0, NEXT, 104, UNKNOWN},
	{"the wall clock is at its latest reading", 100, 10, 103, 13, THIS, 103, 3},
	{"the latest reading is before the first send", 100, 10, 103, 13, THIS, 50, 3},
	{"another boot: only the wall clock tells", 100, 10, 103, 50, NEXT, 100, 3},
	{"another boot, its clock is young", 100, 10, 103, 0, NEXT, 100, 3},
};

static int64_t
age_of(size_t i)
{
	ArKeyMoment first = {rows[i].first_wall * HOUR, rows[i].first_boot * HOUR, THIS};
	ArKeyMoment now = {rows[i].now_wall * HOUR, rows[i].now_boot * HOUR, rows[i].now_named};

	return ar_key_age_us(&first, &now, rows[i].latest * HOUR);
}

static void
test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(age_of(i), rows[i].age < 0 ? -1 : rows[i].age * HOUR, rows[i].what);
}

/* A day's key that a request of 90 seconds rests on lives as long as its age says; of unknown age it is dead. */
static void
test_alive(void)
{
	ArCapabilities can = {.takes_key = true,.key_lifetime_us = 24 * HOUR,.key_margin_us = HOUR};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		bool		expected = rows[i].age >= 0 && rows[i].age < 23;

		ok(ar_key_is_alive(&can, age_of(i), 90 * SECOND) == expected, "%s: %s", rows[i].what,
		   expected ? "alive" : "dead");
	}
}

/* One microsecond decides. */
static void
test_edges(void)
{
	ArKeyMoment first = {1000, 1000, THIS};
	ArKeyMoment now = {1000, 1000, THIS};

	now.boot_us = 1001;
	is_int(ar_key_age_us(&first, &now, 1000), 1, "one more on the boot clock counts");
	now.boot_us = 1000;
	now.wall_us = 1001;
	is_int(ar_key_age_us(&first, &now, 1001), 1, "one more on the wall clock counts");
	is_int(ar_key_age_us(&first, &now, 1002), -1, "one less than was read before is set back");
	now.wall_us = 999;
	is_int(ar_key_age_us(&first, &now, 0), -1, "one before the first send is set back");
	now.wall_us = 1000;
	now.boot_us = 999;
	is_int(ar_key_age_us(&first, &now, 0), -1, "on the boot clock too");
	now.boot = "boot-1 ";
	is_int(ar_key_age_us(&first, &now, 0), 0, "a boot is named in every character");
	now.boot_us = 1000;
	first.boot = now.boot = "";
	is_int(ar_key_age_us(&first, &now, 0), 0, "a boot without a name is a boot");
}

/* Readings that no clock gives: nothing may wrap around into a young key. */
static void
test_ends_of_the_range(void)
{
	static const int64_t readings[] = {INT64_MIN, INT64_MIN + 1, -HOUR, -1, 0, 1, HOUR, INT64_MAX - 1, INT64_MAX};
	const int	count = sizeof(readings) / sizeof(readings[0]);
	int			tried = 0;
	int			younger = 0;

	for (int n = 0; n < count * count * count * count * count; n++, tried++)
	{
		int			rest = n;
		int64_t		r[5];
		ArKeyMoment first = {.boot = THIS};
		ArKeyMoment now = {.boot = THIS};
		int64_t		age;

		for (int i = 0; i < 5; i++, rest /= count)
			r[i] = readings[rest % count];
		first.wall_us = r[0];
		first.boot_us = r[1];
		now.wall_us = r[2];
		now.boot_us = r[3];
		age = ar_key_age_us(&first, &now, r[4]);
		younger += age < -1;
		younger += age >= 0 && (r[2] < r[0] || r[2] < r[4] || r[3] < r[1]);
		/* Differences of unsigned numbers do not overflow where the order is right; INT64_MAX is older than any key. */
		younger += age >= 0 && age < INT64_MAX && ((uint64_t) age < (uint64_t) r[2] - (uint64_t) r[0] ||
												   (uint64_t) age < (uint64_t) r[3] - (uint64_t) r[1]);
	}
	diag("%d combinations of readings", tried);
	is_int(younger, 0, "no key is taken for younger than a clock says");
}

/* Over all small readings: the age is the larger elapsed time, and it never falls as either clock goes on. */
static void
test_both_clocks(void)
{
	int			wrong = 0;
	int			fallen = 0;

	for (int wall = -2; wall <= 6; wall++)
		for (int boot = -2; boot <= 6; boot++)
			for (int latest = -2; latest <= 6; latest++)
			{
				ArKeyMoment first = {0, 0, THIS};
				ArKeyMoment now = {wall, boot, THIS};
				bool		told = wall >= 0 && boot >= 0 && wall >= latest;
				int64_t		age = ar_key_age_us(&first, &now, latest);
				int64_t		later;

				wrong += age != (!told ? -1 : wall > boot ? wall : boot);
				now.boot_us++;
				later = ar_key_age_us(&first, &now, latest);
				fallen += age >= 0 && later < age;
				now.boot_us--;
				now.wall_us++;
				later = ar_key_age_us(&first, &now, latest);
				fallen += age >= 0 && later < age;
			}
	is_int(wrong, 0, "the clock counts that says more, and none that was set back");
	is_int(fallen, 0, "a key does not grow younger");
}

int
main(void)
{
	test_rows();
	test_alive();
	test_edges();
	test_both_clocks();
	test_ends_of_the_range();
	return done_testing();
}
