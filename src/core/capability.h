/*
 * capability.h
 *		What may be done when an answer is lost, from what a provider can do.
 *
 * Pure: the age of a key is given, no clock is read.
 */
#ifndef AR_CAPABILITY_H
#define AR_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>

/* From the best to the worst; the SQL type reconcile.tier has the same order. */
typedef enum ArTier
{
	AR_TIER_FULL,				/* id, living key and query */
	AR_TIER_RECONCILABLE,		/* id, and a query by the client reference */
	AR_TIER_KEYED,				/* living key, nothing to query or no id to tell by */
	AR_TIER_PARTIAL,			/* id only: a person can ask, the engine cannot */
	AR_TIER_BLIND				/* nothing */
} ArTier;

/* Facts about one operation at one provider. */
typedef struct ArCapabilities
{
	bool		returns_artifact;	/* an id of what was made is known, or will be found */
	bool		takes_key;		/* the request carries an idempotency key */
	int64_t		key_lifetime_us;	/* from the first send; 0 or less: unknown, which is none */
	int64_t		key_margin_us;	/* kept away from the end of the lifetime */
	bool		has_query;		/* the provider can be asked what there is */
	bool		reference_queryable;	/* the client reference is both sent and found by that query */
} ArCapabilities;

/*
 * Is a key that was first sent key_age_us ago still honoured when a request
 * sent now arrives as late as it can?  needed_us is how long that may take:
 * the timeout of the attempt and the provider's late_arrival_max.  A negative
 * age or need is taken for unknown, and the answer is no.  Never overflows.
 */
extern bool ar_key_is_alive(const ArCapabilities *can, int64_t key_age_us, int64_t needed_us);

/* The tier of an operation whose key was first sent key_age_us ago; 0 for an action not sent yet. */
extern ArTier ar_capability_tier(const ArCapabilities *can, int64_t key_age_us, int64_t needed_us);

/* The label of a tier; a constant. */
extern const char *ar_tier_name(ArTier tier);

#endif							/* AR_CAPABILITY_H */
