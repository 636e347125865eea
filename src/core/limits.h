/*
 * limits.h
 *		How much may be sent to a provider now, and when there may be more.
 *
 * Pure: no SQL, no network; clock readings and randomness come from the caller.
 */
#ifndef AR_LIMITS_H
#define AR_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/outcome.h"

/* So many starts a second, of which a tenth of a second's worth, or one, may be saved up.  Zeroed, it holds one. */
typedef struct ArBucket
{
	int64_t		at_us;			/* when the tokens were counted, monotonic */
	double		tokens;
} ArBucket;

/* How many may start now, at this rate; a rate of 0 is no limit. */
extern int	ar_bucket_room(ArBucket *bucket, double rate, int64_t now_us);
extern void ar_bucket_take(ArBucket *bucket, int count);

/* Pause until one may start, counted from the last ar_bucket_room(). */
extern int64_t ar_bucket_wait_us(const ArBucket *bucket, double rate);

/* What the end of an attempt says about the provider, whatever it says about the action. */
typedef enum ArReach
{
	AR_REACH_UNTOLD,			/* nothing: it was our own doing */
	AR_REACHED,
	AR_NOT_REACHED
} ArReach;

/* "refused": by our own last-instant check.  "not_executed": the answer proves that nothing was done. */
extern ArReach ar_reach(ArTransferClass transfer, bool refused, int http_status, bool not_executed);

/*
 * The circuit breaker of a provider.  Closed, everything may go.  After so many
 * failures in a row, or when the provider asks for a pause, it is open: nothing
 * goes until a moment.  After that it is half-open: one attempt is the probe;
 * if that fails it is open again, for twice as long.
 */
typedef struct ArBreaker
{
	int			failures;		/* in a row */
	int			trips;			/* openings since the provider was last reached */
	int64_t		open_until_us;	/* lower clock; 0: closed */
} ArBreaker;

typedef struct ArBreakerRule
{
	int			after;			/* failures; 0: only a pause that is asked for opens it */
	int64_t		pause_us;
	int64_t		pause_max_us;
} ArBreakerRule;

/* "asked_us": the pause the provider asks for, negative if it does not.  True if the breaker is another than before. */
extern bool ar_breaker_note(ArBreaker *breaker, const ArBreakerRule *rule, ArReach reach, int64_t asked_us,
							int64_t now_us, double random);

/* What is known of a provider when something is to be sent to it. */
typedef struct ArProviderLimits
{
	bool		paused;
	int			max_in_flight;
	double		max_rate;		/* 0: none */
	int			ambiguity_budget;	/* 0: none */
	int			uncertain;		/* its actions that are outcome_unknown, reconciling or in manual_review */
	int			max_lookups_in_flight;
	double		max_lookup_rate;	/* 0: none */
	ArBreaker	breaker;
	ArBreakerRule breaker_rule;
} ArProviderLimits;

/* What only the engine that sends needs to remember. */
typedef struct ArPace
{
	ArBucket	sends;
	ArBucket	lookups;
	int			ramp;			/* after the breaker: so many in flight, one more for each answer; 0: as many as may */
} ArPace;

typedef struct ArRoom
{
	int			count;
	int64_t		wait_us;		/* pause until there is some; negative: something else than time has to make it */
	bool		paced;			/* it is the rate that is waited for */
} ArRoom;

/*
 * "open" are those in flight.  What may add to what is uncertain keeps to the
 * ambiguity budget; sending the same again for what is uncertain does not.
 */
extern ArRoom ar_room_to_send(const ArProviderLimits *limits, ArPace *pace, int open, bool adds_uncertainty,
							  int64_t monotonic_us, int64_t lower_us);
extern ArRoom ar_room_to_ask(const ArProviderLimits *limits, ArPace *pace, int open, int64_t monotonic_us);

/* The provider was reached: after an opening of the breaker one more may be in flight. */
extern void ar_pace_reached(ArPace *pace, int max_in_flight);

#endif							/* AR_LIMITS_H */
