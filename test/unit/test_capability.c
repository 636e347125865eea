/*
 * test_capability.c
 *		The tier for every combination of facts, and when a key is alive.
 */
#include "tap.h"

#include "core/capability.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)

/* What follows from id, living key, query, query by reference: written down by hand, row by row. */
static const struct
{
	int			id;
	int			key;
	int			query;
	int			by_reference;
	const char *tier;
}			truth[] = {
	{0, 0, 0, 0, "BLIND"},
	{0, 0, 0, 1, "BLIND"},
	{0, 0, 1, 0, "BLIND"},
	{0, 0, 1, 1, "BLIND"},
	{0, 1, 0, 0, "KEYED"},
	{0, 1, 0, 1, "KEYED"},
	{0, 1, 1, 0, "KEYED"},
	{0, 1, 1, 1, "KEYED"},
	{1, 0, 0, 0, "PARTIAL"},
	{1, 0, 0, 1, "PARTIAL"},
	{1, 0, 1, 0, "PARTIAL"},
	{1, 0, 1, 1, "RECONCILABLE"},
	{1, 1, 0, 0, "KEYED"},
	{1, 1, 0, 1, "KEYED"},
	{1, 1, 1, 0, "FULL"},
	{1, 1, 1, 1, "FULL"},
};

/* Every way in which a key is not there or not alive, at an age of one hour and a need of 90 seconds. */
static const struct
{
	int			takes;
	int64_t		lifetime;
	int64_t		margin;
	int			alive;
	const char *what;
}			keys[] = {
	{1, 24 * HOUR, 60 * SECOND, 1, "a key of a day"},
	{1, 24 * HOUR, 0, 1, "a key without a margin"},
	{1, HOUR + 91 * SECOND, 0, 1, "a key that just lives"},
	{0, 24 * HOUR, 60 * SECOND, 0, "no key"},
	{1, 0, 0, 0, "an unknown lifetime"},
	{1, -HOUR, 0, 0, "a negative lifetime"},
	{1, HOUR + 90 * SECOND, 0, 0, "a key that dies with the last byte"},
	{1, HOUR + 91 * SECOND, SECOND, 0, "a key whose margin takes the rest"},
	{1, HOUR, 0, 0, "a key as old as it can be"},
	{1, SECOND, 24 * HOUR, 0, "a margin longer than the lifetime"},
	{1, 24 * HOUR, -24 * HOUR, 1, "a negative margin gives nothing"},
	{1, HOUR + 90 * SECOND, -24 * HOUR, 0, "not even a second"},
};

static void
test_truth_table(void)
{
	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
		for (size_t i = 0; i < sizeof(truth) / sizeof(truth[0]); i++)
		{
			ArCapabilities can = {
				.returns_artifact = truth[i].id,
				.takes_key = keys[k].takes,
				.key_lifetime_us = keys[k].lifetime,
				.key_margin_us = keys[k].margin,
				.has_query = truth[i].query,
				.reference_queryable = truth[i].by_reference
			};
			char		name[160];

			if (truth[i].key != keys[k].alive)
				continue;
			snprintf(name, sizeof(name), "%s: %s with id %d, query %d, by reference %d", keys[k].what,
					 truth[i].tier, truth[i].id, truth[i].query, truth[i].by_reference);
			is_str(ar_tier_name(ar_capability_tier(&can, HOUR, 90 * SECOND)), truth[i].tier, name);
		}
}

static void
test_key(void)
{
	ArCapabilities can = {.takes_key = true, .key_lifetime_us = 24 * HOUR, .key_margin_us = 60 * SECOND};

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
	{
		ArCapabilities key = {
			.takes_key = keys[k].takes,
			.key_lifetime_us = keys[k].lifetime,
			.key_margin_us = keys[k].margin
		};

		is_int(ar_key_is_alive(&key, HOUR, 90 * SECOND), keys[k].alive, keys[k].what);
	}
	ok(ar_key_is_alive(&can, 0, 0), "a fresh key lives");
	ok(ar_key_is_alive(&can, 24 * HOUR - 60 * SECOND - 1, 0), "to the last microsecond");
	ok(!ar_key_is_alive(&can, 24 * HOUR - 60 * SECOND, 0), "and not one longer");
	ok(ar_key_is_alive(&can, 0, 24 * HOUR - 60 * SECOND - 1), "the need may take all of it");
	ok(!ar_key_is_alive(&can, 0, 24 * HOUR - 60 * SECOND), "but for the last microsecond");
	ok(!ar_key_is_alive(&can, -1, 0), "an unknown age is too old");
	ok(!ar_key_is_alive(&can, 0, -1), "an unknown need is too long");
	ok(!ar_key_is_alive(&can, INT64_MAX, INT64_MAX), "the ends of the range do not wrap");
	can.key_lifetime_us = INT64_MAX;
	ok(ar_key_is_alive(&can, INT64_MAX / 2, SECOND), "a key that never dies lives");
	ok(!ar_key_is_alive(&can, INT64_MAX, INT64_MAX), "but not longer than time");
	can.key_margin_us = INT64_MAX;
	ok(!ar_key_is_alive(&can, 0, 0), "a margin can take it all");
}

/* As time goes by a tier only falls, and where the key was not needed it stays. */
static void
test_time(void)
{
	for (int facts = 0; facts < 16; facts++)
	{
		ArCapabilities can = {
			.returns_artifact = facts & 1,
			.takes_key = facts & 2,
			.key_lifetime_us = 24 * HOUR,
			.has_query = facts & 4,
			.reference_queryable = facts & 8
		};
		ArTier		before = ar_capability_tier(&can, 0, 90 * SECOND);
		int			steps = 0;
		int			rises = 0;

		for (int hour = 1; hour <= 48; hour++)
		{
			ArTier		now = ar_capability_tier(&can, hour * HOUR, 90 * SECOND);

			rises += now < before;
			steps += now != before;
			before = now;
		}
		is_int(rises, 0, "a tier never rises");
		is_int(steps, (facts & 2) ? 1 : 0, "it falls once, at the death of the key");
	}
}

static void
test_names(void)
{
	is_str(ar_tier_name(AR_TIER_FULL), "FULL", "FULL");
	is_str(ar_tier_name(AR_TIER_RECONCILABLE), "RECONCILABLE", "RECONCILABLE");
	is_str(ar_tier_name(AR_TIER_KEYED), "KEYED", "KEYED");
	is_str(ar_tier_name(AR_TIER_PARTIAL), "PARTIAL", "PARTIAL");
	is_str(ar_tier_name(AR_TIER_BLIND), "BLIND", "BLIND");
	is_str(ar_tier_name((ArTier) 99), "BLIND", "a code that is no tier promises nothing");
}

int
main(void)
{
	test_key();
	test_truth_table();
	test_time();
	test_names();
	return done_testing();
}
