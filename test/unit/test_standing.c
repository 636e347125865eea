/*
 * test_standing.c
 *		The five standings, and the status that follows from each.
 */
#include "tap.h"

#include <limits.h>

#include "core/standing.h"

/* The pairs that exist, written down once more by hand. */
static const struct
{
	int			code;
	ArDelivery	delivery;
	ArAcceptance acceptance;
	const char *name;
	const char *status;
}			pairs[] = {
	{1, AR_DELIVERY_PENDING, AR_ACCEPTANCE_PENDING, "pending/pending", "DENIED_UNRESOLVED"},
	{2, AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_PENDING, "confirmed/pending", "DENIED_UNRESOLVED"},
	{3, AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_ACCEPTED, "confirmed/accepted", "CONFIRMED"},
	{4, AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_REJECTED, "confirmed/rejected", "FAILED"},
	{5, AR_DELIVERY_FAILED, AR_ACCEPTANCE_PENDING, "failed/pending", "FAILED"},
};

#define PAIR_COUNT ((int) (sizeof(pairs) / sizeof(pairs[0])))

static void
test_codes(void)
{
	int			valid = 0;

	for (int code = -300; code <= 300; code++)
		valid += ar_standing_is_valid(code);
	is_int(valid, PAIR_COUNT, "five codes are valid");
	ok(!ar_standing_is_valid(0), "zero is no standing");
	ok(!ar_standing_is_valid(INT_MIN) && !ar_standing_is_valid(INT_MAX),
	   "the ends of int are no standings");

	for (int i = 0; i < PAIR_COUNT; i++)
	{
		ArStanding	standing = (ArStanding) pairs[i].code;
		ArStanding	parsed = 0;

		ok(ar_standing_is_valid(pairs[i].code), "code %d is valid", pairs[i].code);
		is_str(ar_standing_name(standing), pairs[i].name, pairs[i].name);
		is_int(ar_standing_delivery(standing), pairs[i].delivery, "its delivery");
		is_int(ar_standing_acceptance(standing), pairs[i].acceptance, "its acceptance");
		is_str(ar_status_name(ar_resolved_status(standing)), pairs[i].status, "its status");
		ok(ar_standing_parse(pairs[i].name, &parsed) && parsed == standing,
		   "its name reads back");
	}
}

static void
test_pairs(void)
{
	for (int delivery = AR_DELIVERY_PENDING; delivery <= AR_DELIVERY_FAILED; delivery++)
	{
		for (int acceptance = AR_ACCEPTANCE_PENDING; acceptance <= AR_ACCEPTANCE_REJECTED; acceptance++)
		{
			ArStanding	standing = 0;
			int			expected = 0;
			bool		made;

			for (int i = 0; i < PAIR_COUNT; i++)
				if ((int) pairs[i].delivery == delivery && (int) pairs[i].acceptance == acceptance)
					expected = pairs[i].code;
			made = ar_standing_make((ArDelivery) delivery, (ArAcceptance) acceptance, &standing);
			ok(made == (expected != 0) && (int) standing == expected, "%s/%s %s",
			   ar_delivery_name((ArDelivery) delivery),
			   ar_acceptance_name((ArAcceptance) acceptance),
			   expected ? "exists" : "does not exist");
		}
	}
}

static void
test_texts(void)
{
	static const char *const wrong[] = {
		"", "/", "pending", "pending/", "/pending", "pending/accepted", "pending/rejected",
		"failed/accepted", "failed/rejected", "confirmed/failed", "CONFIRMED/ACCEPTED",
		"Confirmed/accepted", " confirmed/accepted", "confirmed/accepted ",
		"confirmed/accepted\n", "confirmed / accepted", "confirmed/accepte",
		"confirmed/acceptedx", "confirmed-accepted", "3",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		ArStanding	standing = 0;

		ok(!ar_standing_parse(wrong[i], &standing) && standing == 0,
		   "text %zu is no standing", i);
	}
}

/*
 * What evidence may make of a standing, row by row: "x" may be.  What the
 * provider has taken stays taken, what it has accepted stays accepted; a
 * refusal may turn out to have been carried out, never to be open again.
 */
static void
test_steps(void)
{
	static const char *const may[] = {
		/* to     p/p c/p c/a c/r f/p */
		[AR_PENDING_PENDING] = "xxxxx",
		[AR_CONFIRMED_PENDING] = ".xxx.",
		[AR_CONFIRMED_ACCEPTED] = "..x..",
		[AR_CONFIRMED_REJECTED] = "..xx.",
		[AR_FAILED_PENDING] = "xxxxx",
	};
	int			lost_delivery = 0;
	int			lost_acceptance = 0;

	for (int from = AR_STANDING_FIRST; from <= AR_STANDING_LAST; from++)
	{
		int			wrong = 0;

		for (int to = AR_STANDING_FIRST; to <= AR_STANDING_LAST; to++)
		{
			ArStanding	a = (ArStanding) from;
			ArStanding	b = (ArStanding) to;
			bool		got = ar_standing_may_become(a, b);

			wrong += got != (may[from][to - AR_STANDING_FIRST] == 'x');
			lost_delivery += got && ar_standing_delivery(a) == AR_DELIVERY_CONFIRMED &&
				ar_standing_delivery(b) != AR_DELIVERY_CONFIRMED;
			lost_acceptance += got && ar_standing_acceptance(a) == AR_ACCEPTANCE_ACCEPTED && a != b;
		}
		is_int(wrong, 0, ar_standing_name((ArStanding) from));
		ok(ar_standing_may_become((ArStanding) from, (ArStanding) from), "it may stay as it is");
	}
	is_int(lost_delivery, 0, "delivery never leaves confirmed");
	is_int(lost_acceptance, 0, "acceptance never leaves accepted");
}

int
main(void)
{
	test_codes();
	test_pairs();
	test_texts();
	test_steps();
	return done_testing();
}
