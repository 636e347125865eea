/*
 * capability.c
 *		The tier of an operation: design section 8 as a decision.
 */
#include "core/capability.h"

bool
ar_key_is_alive(const ArCapabilities *can, int64_t key_age_us, int64_t needed_us)
{
	int64_t		left;

	if (!can->takes_key || can->key_lifetime_us <= 0 || key_age_us < 0 || needed_us < 0)
		return false;
	/* Both subtractions are of something not negative from something positive, or come after a look. */
	left = can->key_lifetime_us;
	if (can->key_margin_us > 0)
		left -= can->key_margin_us;
	if (left <= key_age_us)
		return false;
	return needed_us < left - key_age_us;
}

ArTier
ar_capability_tier(const ArCapabilities *can, int64_t key_age_us, int64_t needed_us)
{
	if (ar_key_is_alive(can, key_age_us, needed_us))
		return can->returns_artifact && can->has_query ? AR_TIER_FULL : AR_TIER_KEYED;
	if (!can->returns_artifact)
		return AR_TIER_BLIND;
	return can->has_query && can->reference_queryable ? AR_TIER_RECONCILABLE : AR_TIER_PARTIAL;
}

const char *
ar_tier_name(ArTier tier)
{
	switch (tier)
	{
		case AR_TIER_FULL:
			return "FULL";
		case AR_TIER_RECONCILABLE:
			return "RECONCILABLE";
		case AR_TIER_KEYED:
			return "KEYED";
		case AR_TIER_PARTIAL:
			return "PARTIAL";
		case AR_TIER_BLIND:
			return "BLIND";
	}
	return "BLIND";
}
