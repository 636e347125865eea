/*
 * test_fold.c
 *		The standing of an action follows from its attempts.
 *
 * Every sequence of up to four attempts is tried, queued or not, against an
 * oracle that is written differently on purpose: it weighs the attempts, where
 * the code asks one question after the other.
 */
#include "tap.h"

#include "core/standing.h"

#define MAX_ATTEMPTS 4

/* How much an attempt counts; the action gets the standing of the heaviest. */
static int
weight(ArStanding standing)
{
	switch (standing)
	{
		case AR_FAILED_PENDING:
			return 0;
		case AR_CONFIRMED_REJECTED:
			return 1;
		case AR_PENDING_PENDING:
			return 2;
		case AR_CONFIRMED_PENDING:
			return 3;
		case AR_CONFIRMED_ACCEPTED:
			return 4;
	}
	return -1;
}

static const char *
oracle(const ArStanding *attempts, int count, bool queued)
{
	static const char *const by_weight[] = {
		"failed/pending", "confirmed/rejected", "pending/pending",
		"confirmed/pending", "confirmed/accepted",
	};
	int			heaviest = queued ? 2 : 0;

	for (int i = 0; i < count; i++)
		if (weight(attempts[i]) > heaviest)
			heaviest = weight(attempts[i]);
	return by_weight[heaviest];
}

/* The n-th sequence of `count` attempts. */
static void
make_sequence(int n, int count, ArStanding *attempts)
{
	for (int i = 0; i < count; i++, n /= AR_STANDING_LAST)
		attempts[i] = (ArStanding) (AR_STANDING_FIRST + n % AR_STANDING_LAST);
}

static int
sequences_of(int count)
{
	int			sequences = 1;

	while (count-- > 0)
		sequences *= AR_STANDING_LAST;
	return sequences;
}

static void
test_against_oracle(void)
{
	for (int count = 0; count <= MAX_ATTEMPTS; count++)
	{
		int			wrong = 0;

		for (int n = 0; n < sequences_of(count) * 2; n++)
		{
			ArStanding	attempts[MAX_ATTEMPTS];
			bool		queued = n % 2 == 1;
			const char *got;

			make_sequence(n / 2, count, attempts);
			got = ar_standing_name(ar_fold(attempts, count, queued));
			if (strcmp(got, oracle(attempts, count, queued)) != 0 && wrong++ < 5)
				diag("%d attempts, sequence %d%s: %s", count, n / 2,
					 queued ? ", queued" : "", got);
		}
		is_int(wrong, 0, "fold of every sequence of attempts");
	}
}

/* Swapping two neighbours changes nothing, so no order does. */
static void
test_order(void)
{
	int			wrong = 0;

	for (int n = 0; n < sequences_of(MAX_ATTEMPTS) * 2; n++)
	{
		ArStanding	attempts[MAX_ATTEMPTS];
		bool		queued = n % 2 == 1;
		ArStanding	before;

		make_sequence(n / 2, MAX_ATTEMPTS, attempts);
		before = ar_fold(attempts, MAX_ATTEMPTS, queued);
		for (int i = 0; i + 1 < MAX_ATTEMPTS; i++)
		{
			ArStanding	swapped[MAX_ATTEMPTS];

			memcpy(swapped, attempts, sizeof(swapped));
			swapped[i] = attempts[i + 1];
			swapped[i + 1] = attempts[i];
			wrong += ar_fold(swapped, MAX_ATTEMPTS, queued) != before;
		}
	}
	is_int(wrong, 0, "the order of the attempts does not matter");
}

/* The promises a caller relies on, each by itself. */
static void
test_promises(void)
{
	int			failed_too_early = 0;
	int			lost_success = 0;
	int			invented = 0;

	for (int n = 0; n < sequences_of(MAX_ATTEMPTS) * 2; n++)
	{
		ArStanding	attempts[MAX_ATTEMPTS];
		bool		queued = n % 2 == 1;
		bool		open = queued;
		bool		accepted = false;
		ArStatus	status;

		make_sequence(n / 2, MAX_ATTEMPTS, attempts);
		for (int i = 0; i < MAX_ATTEMPTS; i++)
		{
			open |= ar_resolved_status(attempts[i]) == AR_STATUS_DENIED_UNRESOLVED;
			accepted |= ar_resolved_status(attempts[i]) == AR_STATUS_CONFIRMED;
		}
		status = ar_resolved_status(ar_fold(attempts, MAX_ATTEMPTS, queued));
		failed_too_early += status == AR_STATUS_FAILED && open;
		lost_success += accepted && status != AR_STATUS_CONFIRMED;
		invented += status == AR_STATUS_CONFIRMED && !accepted;
	}
	is_int(failed_too_early, 0, "never FAILED while something may still happen");
	is_int(lost_success, 0, "an accepted attempt is never hidden");
	is_int(invented, 0, "never CONFIRMED without an accepted attempt");
	is_str(ar_standing_name(ar_fold(NULL, 0, true)), "pending/pending", "queued, nothing sent");
	is_str(ar_standing_name(ar_fold(NULL, 0, false)), "failed/pending", "withdrawn, nothing sent");
}

int
main(void)
{
	test_against_oracle();
	test_order();
	test_promises();
	return done_testing();
}
