/*
 * test_limits.c
 *		Rates, the circuit breaker, and the room that all limits leave.
 */
#include "tap.h"

#include <limits.h>

#include "core/limits.h"

#define SECOND INT64_C(1000000)
#define START (1000 * SECOND)

static const ArBreakerRule rule = {3, 5 * SECOND, 60 * SECOND};

/* How many start between two moments, when it is looked every "step". */
static int
starts(ArBucket *bucket, double rate, int64_t from, int64_t to, int64_t step)
{
	int			count = 0;

	for (int64_t now = from; now < to; now += step)
	{
		int			room = ar_bucket_room(bucket, rate, now);

		ar_bucket_take(bucket, room);
		count += room;
	}
	return count;
}

static void
test_rate(void)
{
	ArBucket	bucket = {0};
	int			most = 0;

	is_int(ar_bucket_room(&bucket, 0, START), INT_MAX, "no rate is no limit");
	is_int(ar_bucket_wait_us(&bucket, 0), 0, "and nothing to wait for");

	is_int(ar_bucket_room(&bucket, 100, START), 1, "one that begins has one");
	is_int(ar_bucket_room(&bucket, 100, START + 3600 * SECOND), 10, "an hour saves a tenth of a second's worth");
	ar_bucket_take(&bucket, 10);
	is_int(ar_bucket_room(&bucket, 100, START + 3600 * SECOND), 0, "then there is none");
	is_int(ar_bucket_wait_us(&bucket, 100), 10001, "before the hundredth part of a second");
	is_int(ar_bucket_room(&bucket, 100, START + 3600 * SECOND + 10001), 1, "and then one");
	is_int(ar_bucket_room(&bucket, 100, START), 1, "a clock that goes back takes nothing and gives nothing");

	for (int64_t step = 1000; step <= SECOND; step *= 10)
	{
		ArBucket	fresh = {0};

		is_int(starts(&fresh, 50, START, START + SECOND, step) <= 55, 1, "in a second never more than a tenth above the rate");
	}
	bucket = (ArBucket) {0};
	is_int(starts(&bucket, 50, START, START + 60 * SECOND, 10000), 3000, "in a minute what the rate gives");
	bucket = (ArBucket) {0};
	is_int(starts(&bucket, 0.5, START, START + 60 * SECOND, 10000), 30, "also if that is less than one a second");
	for (int i = 0; i < 100; i++)
	{
		int			now = starts(&bucket, 7, START + (100 + i * 10) * SECOND, START + (101 + i * 10) * SECOND, 30000);

		if (now > most)
			most = now;
	}
	ok(most <= 8, "after each idle while: %d", most);
}

static void
test_reach(void)
{
	is_int(ar_reach(AR_TRANSFER_NOT_SENT, false, 0, false), AR_NOT_REACHED, "not sent");
	is_int(ar_reach(AR_TRANSFER_NOT_SENT, true, 0, false), AR_REACH_UNTOLD, "held back by ourselves");
	is_int(ar_reach(AR_TRANSFER_UNKNOWN, false, 0, false), AR_NOT_REACHED, "no complete answer");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 201, false), AR_REACHED, "201");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 422, false), AR_REACHED, "no is an answer");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 429, false), AR_NOT_REACHED, "429");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 503, false), AR_NOT_REACHED, "503");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 403, true), AR_NOT_REACHED, "whatever proves that nothing was done");
	is_int(ar_reach(AR_TRANSFER_ANSWERED, false, 401, true), AR_REACH_UNTOLD, "401 pauses by itself");
}

/* Failures at one moment; the open breaker's pause. */
static int64_t
fail(ArBreaker *b, int times, int64_t asked_us, int64_t now)
{
	for (int i = 0; i < times; i++)
		ar_breaker_note(b, &rule, AR_NOT_REACHED, asked_us, now, 0.5);
	return b->open_until_us == 0 ? 0 : b->open_until_us - now;
}

static void
test_breaker(void)
{
	ArBreaker	b = {0};
	int64_t		now = START;

	is_int(ar_breaker_note(&b, &rule, AR_REACHED, -1, now, 0.5), 0, "a success changes nothing");
	is_int(ar_breaker_note(&b, &rule, AR_REACH_UNTOLD, -1, now, 0.5), 0, "nor does what says nothing");
	is_int(fail(&b, 2, -1, now), 0, "two failures");
	is_int(ar_breaker_note(&b, &rule, AR_REACHED, -1, now, 0.5), 1, "are forgotten");
	is_int(b.failures, 0, "when it is reached");
	is_int(fail(&b, 3, -1, now), 5 * SECOND, "three in a row open it");
	is_int(fail(&b, 100, -1, now), 5 * SECOND, "those behind them are as one");
	is_int(b.failures, 3, "and not counted");
	is_int(ar_breaker_note(&b, &rule, AR_REACHED, -1, now, 0.5), 0, "one that had left before does not close it");
	for (int i = 0; i < 3; i++)
	{
		now = b.open_until_us;
		is_int(fail(&b, 1, -1, now), (10 << i) * SECOND, "a probe that fails doubles the pause");
	}
	for (int i = 0; i < 100; i++)
	{
		now = b.open_until_us + 1;
		fail(&b, 1, -1, now);
	}
	is_int(b.open_until_us - now, 60 * SECOND, "up to the bound");
	now = b.open_until_us + SECOND;
	is_int(ar_breaker_note(&b, &rule, AR_REACHED, -1, now, 0.5), 1, "a probe that comes back closes it");
	is_int(b.open_until_us + b.trips + b.failures, 0, "as if nothing had been");
	is_int(fail(&b, 3, -1, now), 5 * SECOND, "the next outage begins anew");
}

static void
test_asked_pause(void)
{
	ArBreaker	b = {0};
	ArBreakerRule never = {0, 5 * SECOND, 60 * SECOND};
	int64_t		now = START;

	is_int(fail(&b, 1, 7 * SECOND, now), 7 * SECOND, "the provider asks for a pause and has it at the first failure");
	is_int(fail(&b, 1, 3 * SECOND, now), 7 * SECOND, "a shorter one does not shorten it");
	is_int(fail(&b, 1, 9 * SECOND, now), 9 * SECOND, "a longer one does");
	now = b.open_until_us;
	is_int(fail(&b, 1, -1, now), 0, "what fails after it is a failure, and no probe that failed");
	is_int(fail(&b, 1, 0, now), 5 * SECOND, "asking for none again and again does not make it spin");
	b = (ArBreaker) {0};
	is_int(fail(&b, 1, 0, now), 1, "no pause at all is over at once");
	b = (ArBreaker) {0};
	for (int i = 0; i < 1000; i++)
		ar_breaker_note(&b, &never, AR_NOT_REACHED, -1, now, 0.5);
	is_int(b.open_until_us, 0, "without a bound failures do not open it");
	is_int(b.failures, 1000, "but are counted");
	ar_breaker_note(&b, &never, AR_NOT_REACHED, SECOND, now, 0.5);
	is_int(b.open_until_us - now, SECOND, "what is asked for does");
	now = b.open_until_us;
	ar_breaker_note(&b, &never, AR_NOT_REACHED, -1, now, 0.5);
	is_int(b.open_until_us, 0, "and a failure after it opens nothing");
}

static void
test_room(void)
{
	ArProviderLimits limits = {.max_in_flight = 8, .max_lookups_in_flight = 4, .breaker_rule = {3, SECOND, SECOND}};
	ArPace		pace = {0};
	ArRoom		room;

	is_int(ar_room_to_send(&limits, &pace, 3, true, START, START).count, 5, "what is in flight leaves");
	is_int(ar_room_to_send(&limits, &pace, 9, true, START, START).count, 0, "never less than none");
	is_int(ar_room_to_send(&limits, &pace, 8, true, START, START).wait_us, -1, "and then an end makes room");
	limits.ambiguity_budget = 10;
	limits.uncertain = 6;
	is_int(ar_room_to_send(&limits, &pace, 1, true, START, START).count, 3, "what is uncertain and what is in flight leave");
	limits.uncertain = 10;
	is_int(ar_room_to_send(&limits, &pace, 0, true, START, START).wait_us, -1, "a budget that is used up waits for people and lookups");
	is_int(ar_room_to_send(&limits, &pace, 0, false, START, START).count, 8, "sending again adds nothing to it");
	is_int(ar_room_to_ask(&limits, &pace, 1, START).count, 3, "questions have their own room");
	limits.uncertain = 0;

	limits.max_rate = 10;
	room = ar_room_to_send(&limits, &pace, 0, true, START, START);
	is_int(room.count, 1, "the rate leaves one");
	ar_bucket_take(&pace.sends, 1);
	room = ar_room_to_send(&limits, &pace, 1, true, START, START);
	ok(room.count == 0 && room.paced && room.wait_us > 0, "then it is waited for");
	limits.max_rate = 0;

	limits.breaker = (ArBreaker) {3, 1, START + SECOND};
	room = ar_room_to_send(&limits, &pace, 0, true, START, START);
	ok(room.count == 0 && !room.paced && room.wait_us == SECOND, "an open breaker is waited for");
	is_int(ar_room_to_ask(&limits, &pace, 0, START).count, 4, "not by questions");
	is_int(ar_room_to_send(&limits, &pace, 0, true, START, START + SECOND).count, 1, "then there is one probe");
	is_int(ar_room_to_send(&limits, &pace, 1, true, START, START + SECOND).count, 0, "and no more while it is open");
	limits.breaker = (ArBreaker) {0};
	is_int(ar_room_to_send(&limits, &pace, 0, true, START, START).count, 1, "closed again, one may be in flight");
	for (int i = 2; i < 8; i++)
	{
		ar_pace_reached(&pace, 8);
		is_int(ar_room_to_send(&limits, &pace, 0, true, START, START).count, i, "and one more for each answer");
	}
	ar_pace_reached(&pace, 8);
	is_int(pace.ramp, 0, "until all may");
	limits.paused = true;
	is_int(ar_room_to_send(&limits, &pace, 0, true, START, START).count, 0, "paused");
	is_int(ar_room_to_ask(&limits, &pace, 0, START).count, 4, "asking goes on");
}

int
main(void)
{
	test_rate();
	test_reach();
	test_breaker();
	test_asked_pause();
	test_room();
	return done_testing();
}
