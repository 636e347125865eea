/*
 * limits.c
 *		Token buckets, the circuit breaker, and the room that all limits leave.
 */
#include "core/limits.h"

#include <limits.h>

#include "core/schedule.h"

#define SECOND_US 1000000.0
#define BURST_SECONDS 0.1

int
ar_bucket_room(ArBucket *bucket, double rate, int64_t now_us)
{
	double		most = rate * BURST_SECONDS;

	if (rate <= 0)
		return INT_MAX;
	if (most < 1)
		most = 1;
	if (bucket->at_us == 0)
		bucket->tokens = 1;
	else if (now_us > bucket->at_us)
		bucket->tokens += (double) (now_us - bucket->at_us) * rate / SECOND_US;
	if (bucket->tokens > most)
		bucket->tokens = most;
	bucket->at_us = now_us;
	return (int) bucket->tokens;
}

void
ar_bucket_take(ArBucket *bucket, int count)
{
	bucket->tokens -= count;
}

int64_t
ar_bucket_wait_us(const ArBucket *bucket, double rate)
{
	if (rate <= 0 || bucket->tokens >= 1)
		return 0;
	return (int64_t) ((1 - bucket->tokens) * SECOND_US / rate) + 1;
}

/* A dead credential pauses the provider by itself. */
ArReach
ar_reach(ArTransferClass transfer, bool refused, int http_status, bool not_executed)
{
	if (refused)
		return AR_REACH_UNTOLD;
	if (transfer != AR_TRANSFER_ANSWERED)
		return AR_NOT_REACHED;
	if (http_status == 401)
		return AR_REACH_UNTOLD;
	return not_executed || http_status == 408 || http_status == 429 || http_status >= 500 ? AR_NOT_REACHED : AR_REACHED;
}

bool
ar_breaker_note(ArBreaker *breaker, const ArBreakerRule *rule, ArReach reach, int64_t asked_us, int64_t now_us, double random)
{
	bool		open = breaker->open_until_us > now_us;

	/* After a pause that the provider asked for, what fails is not a probe: it counts as one failure. */
	bool		probed = !open && breaker->open_until_us != 0 && breaker->trips > 0 && rule->after > 0;
	int64_t		pause_us = asked_us;

	if (reach == AR_REACH_UNTOLD)
		return false;
	if (open)
	{
		/* It left before the breaker opened, and says no more than what opened it; only a longer pause counts. */
		if (reach == AR_REACHED || asked_us <= breaker->open_until_us - now_us)
			return false;
		breaker->open_until_us = now_us + asked_us;
		return true;
	}
	if (reach == AR_REACHED)
	{
		bool		changed = breaker->failures > 0 || breaker->open_until_us != 0;

		*breaker = (ArBreaker) {0};
		return changed;
	}
	if (breaker->failures < INT_MAX)
		breaker->failures++;
	if (probed || (rule->after > 0 && breaker->failures >= rule->after))
	{
		int64_t		own_us;

		if (breaker->trips < INT_MAX)
			breaker->trips++;
		own_us = ar_backoff_us(rule->pause_us, rule->pause_max_us, breaker->trips, random);
		if (pause_us < own_us)
			pause_us = own_us;
	}
	if (pause_us >= 0)
		breaker->open_until_us = now_us + (pause_us > 0 ? pause_us : 1);
	else
		breaker->open_until_us = 0;
	return true;
}

static int
least(int one, int other)
{
	return one < other ? one : other;
}

/* Of what "room" leaves, what the rate leaves. */
static ArRoom
at_rate(int room, ArBucket *bucket, double rate, int64_t monotonic_us)
{
	ArRoom		result = {0, -1, false};
	int			tokens;

	if (room <= 0)
		return result;
	tokens = ar_bucket_room(bucket, rate, monotonic_us);
	result.count = least(room, tokens);
	result.paced = tokens == 0;
	result.wait_us = ar_bucket_wait_us(bucket, rate);
	return result;
}

ArRoom
ar_room_to_send(const ArProviderLimits *limits, ArPace *pace, int open, bool adds_uncertainty,
				int64_t monotonic_us, int64_t lower_us)
{
	ArRoom		none = {0, -1, false};
	int			room = limits->max_in_flight - open;

	if (limits->paused)
		return none;
	if (limits->breaker.open_until_us != 0)
	{
		pace->ramp = 1;
		if (limits->breaker.open_until_us > lower_us)
		{
			none.wait_us = limits->breaker.open_until_us - lower_us;
			return none;
		}
	}
	if (pace->ramp > 0)
		room = least(room, pace->ramp - open);
	if (adds_uncertainty && limits->ambiguity_budget > 0)
		room = least(room, limits->ambiguity_budget - limits->uncertain - open);
	return at_rate(room, &pace->sends, limits->max_rate, monotonic_us);
}

ArRoom
ar_room_to_ask(const ArProviderLimits *limits, ArPace *pace, int open, int64_t monotonic_us)
{
	return at_rate(limits->max_lookups_in_flight - open, &pace->lookups, limits->max_lookup_rate, monotonic_us);
}

void
ar_pace_reached(ArPace *pace, int max_in_flight)
{
	if (pace->ramp > 0 && ++pace->ramp >= max_in_flight)
		pace->ramp = 0;
}
