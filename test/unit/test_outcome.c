/*
 * test_outcome.c
 *		What the end of an attempt means: every combination of facts and every
 *		status.
 *
 * The expectation is written down a second time and in another form: the
 * transfer rules as the three sentences of the design, the statuses as lists.
 */
#include "core/outcome.h"

#include <stdlib.h>

#include "tap.h"

/* The design's sentences, one after the other. */
static ArTransferClass
expected_class(const ArTransferFacts *f)
{
	bool		never_called = f->prereq_calls == 0;
	bool		first_refused = f->prereq_calls == 1 && f->check_refused;
	bool		complete_final = f->final_header_end && f->http_status >= 200 &&
		f->http_status <= 599;

	if (never_called || first_refused)
		return AR_TRANSFER_NOT_SENT;
	if (f->prereq_calls == 1 && f->transfer_ok && complete_final)
		return AR_TRANSFER_ANSWERED;
	return AR_TRANSFER_UNKNOWN;
}

static void
test_every_combination(void)
{
	static const int calls[] = {0, 1, 2, 6};
	static const int statuses[] = {0, 99, 100, 101, 103, 199, 200, 202, 299, 302, 404, 500, 599, 600, 999, 9999};
	int			seen = 0;
	int			wrong = 0;
	size_t		c;
	size_t		s;
	int			bits;

	for (c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
		for (s = 0; s < sizeof(statuses) / sizeof(statuses[0]); s++)
			for (bits = 0; bits < 64; bits++)
			{
				ArTransferFacts facts = {
					.prereq_calls = calls[c],
					.http_status = statuses[s],
					.check_refused = (bits & 1) != 0,
					.policy_denied = (bits & 2) != 0,
					.transfer_ok = (bits & 4) != 0,
					.final_header_end = (bits & 8) != 0,
					.body_framed = (bits & 16) != 0,
					.body_complete = (bits & 32) != 0,
				};

				seen++;
				if (ar_classify_transfer(&facts) != expected_class(&facts))
					wrong++;
			}
	is_int(seen, 4096, "every combination of facts is tried");
	is_int(wrong, 0, "every combination is classified as the design says");
}

static ArTransferFacts
answered(int status)
{
	ArTransferFacts facts = {
		.prereq_calls = 1,
		.transfer_ok = true,
		.final_header_end = true,
		.http_status = status,
		.body_framed = true,
		.body_complete = true,
	};

	return facts;
}

static void
test_cases_that_went_wrong_elsewhere(void)
{
	ArTransferFacts facts = answered(201);

	is_int(ar_classify_transfer(&facts), AR_TRANSFER_ANSWERED, "a whole 201 is an answer");

	facts.prereq_calls = 2;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN,
		   "an answer after a silent repetition is unknown");
	facts.check_refused = true;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN,
		   "a refusal is no proof after a second call");

	facts = answered(200);
	facts.final_header_end = false;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN,
		   "success with a cut header block is unknown");

	facts = answered(101);
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN, "a bare final 101 is unknown");
	facts = answered(999);
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN, "status 999 is unknown");
	facts = answered(9999);
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN, "status 9999 is unknown");
	facts = answered(0);
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN, "no status is unknown");

	facts = answered(200);
	facts.transfer_ok = false;
	facts.body_complete = false;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN, "a cut body is unknown");

	memset(&facts, 0, sizeof(facts));
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_NOT_SENT, "never about to send: not sent");
	facts.policy_denied = true;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_NOT_SENT, "a denied address: not sent");
	facts.prereq_calls = 1;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_UNKNOWN,
		   "about to send, nothing more known: unknown");
	facts.check_refused = true;
	is_int(ar_classify_transfer(&facts), AR_TRANSFER_NOT_SENT, "our own refusal: not sent");
}

/* Whether a zero-terminated list holds the status. */
static bool
in_list(const int *list, int status)
{
	for (; *list != 0; list++)
	{
		if (*list == status)
			return true;
	}
	return false;
}

static ArAnswerClass
expected_answer(int status, bool sends_key)
{
	static const int rejected[] = {400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 0};

	if (status >= 200 && status < 300)
		return status == 202 ? AR_ANSWER_ACCEPTED_ASYNC : AR_ANSWER_ACCEPTED;
	if (in_list(rejected, status))
		return AR_ANSWER_REJECTED;
	if (status == 401)
		return AR_ANSWER_NOT_EXECUTED;
	if (status == 425 || (status == 409 && sends_key))
		return AR_ANSWER_IN_PROGRESS;
	return AR_ANSWER_UNKNOWN;
}

static void
test_every_status(void)
{
	int			wrong = 0;
	int			status;

	for (status = -1; status <= 10000; status++)
	{
		if (ar_classify_status(status, false) != expected_answer(status, false) ||
			ar_classify_status(status, true) != expected_answer(status, true))
		{
			wrong++;
			diag("status %d", status);
		}
	}
	is_int(wrong, 0, "every status is classified as the design says");
	is_int(ar_classify_status(429, true), AR_ANSWER_UNKNOWN,
		   "429 proves nothing unless a profile says so");
	is_int(ar_classify_status(409, false), AR_ANSWER_UNKNOWN, "409 without a key is unknown");
	is_int(ar_classify_status(302, true), AR_ANSWER_UNKNOWN, "a redirect is unknown");
	is_int(ar_classify_status(500, true), AR_ANSWER_UNKNOWN, "a server error is unknown");
	is_int(ar_classify_status(100, true), AR_ANSWER_UNKNOWN, "an interim status is unknown");
}

/*
 * For a delete "it is not there" is a refusal only if there never was anything
 * and the provider itself says so; every other status means what it always does.
 */
static void
test_every_status_of_a_delete(void)
{
	int			wrong = 0;
	int			guessed = 0;
	int			certain = 0;

	for (int status = -1; status <= 1000; status++)
		for (int bits = 0; bits < 8; bits++)
		{
			bool		sends_key = bits & 1;
			bool		existed = bits & 2;
			bool		page = bits & 4;
			bool		not_there = status == 404 || status == 410;
			ArAnswerClass got = ar_classify_delete_status(status, sends_key, existed, page);

			wrong += !not_there && got != expected_answer(status, sends_key);
			guessed += not_there && (existed || page) && got != AR_ANSWER_UNKNOWN;
			certain += not_there && !existed && !page && got == AR_ANSWER_REJECTED;
		}
	is_int(wrong, 0, "delete: every other status means what it always does");
	is_int(guessed, 0, "delete: gone what was there, or so says a page, is unknown");
	is_int(certain, 4, "delete: what was never there is refused");
}

static void
test_names(void)
{
	is_str(ar_transfer_class_name(AR_TRANSFER_NOT_SENT), "not_sent", "name of not sent");
	is_str(ar_transfer_class_name(AR_TRANSFER_ANSWERED), "answered", "name of answered");
	is_str(ar_transfer_class_name(AR_TRANSFER_UNKNOWN), "unknown", "name of unknown");
	is_str(ar_answer_class_name(AR_ANSWER_ACCEPTED), "accepted", "name of accepted");
	is_str(ar_answer_class_name(AR_ANSWER_ACCEPTED_ASYNC), "accepted_async", "name of accepted_async");
	is_str(ar_answer_class_name(AR_ANSWER_REJECTED), "rejected", "name of rejected");
	is_str(ar_answer_class_name(AR_ANSWER_NOT_EXECUTED), "not_executed", "name of not_executed");
	is_str(ar_answer_class_name(AR_ANSWER_THROTTLED), "throttled", "name of throttled");
	is_str(ar_answer_class_name(AR_ANSWER_IN_PROGRESS), "in_progress", "name of in_progress");
	is_str(ar_answer_class_name(AR_ANSWER_UNKNOWN), "unknown", "name of unknown answer");
	is_str(ar_answer_class_name(AR_ANSWER_UNREADABLE), "unreadable", "name of unreadable");
	is_str(ar_answer_class_name(AR_ANSWER_ALREADY_EXISTS), "already_exists", "name of already_exists");
	is_str(ar_answer_class_name(AR_ANSWER_KEY_MISMATCH), "key_mismatch", "name of key_mismatch");
	for (int i = AR_ANSWER_ACCEPTED; i <= AR_ANSWER_UNREADABLE; i++)
	{
		ArAnswerClass found = AR_ANSWER_ACCEPTED;

		ok(ar_answer_class_parse(ar_answer_class_name((ArAnswerClass) i), &found) && (int) found == i,
		   "%s is found by its name", ar_answer_class_name((ArAnswerClass) i));
	}
	ok(!ar_answer_class_parse("Accepted", &(ArAnswerClass) {0}), "a name is exact");
	ok(!ar_answer_class_parse("key-mismatch", &(ArAnswerClass) {0}), "in every character");
	ok(!ar_answer_class_parse("", &(ArAnswerClass) {0}), "no name is no class");
}

static void
test_retry_after(void)
{
	is_int(ar_retry_after_us(-1, 200, 1000), 200, "nothing asked: our own pause");
	is_int(ar_retry_after_us(0, 200, 1000), 200, "zero asked: our own pause");
	is_int(ar_retry_after_us(199, 200, 1000), 200, "less asked: our own pause");
	is_int(ar_retry_after_us(500, 200, 1000), 500, "asked between the bounds: as asked");
	is_int(ar_retry_after_us(1001, 200, 1000), 1000, "more asked: the bound");
	is_int(ar_retry_after_us(INT64_MAX, 200, 1000), 1000, "for ever asked: the bound");
	is_int(ar_retry_after_us(5000, 2000, 1000), 5000, "a bound below our own pause does not shorten it");
}

int
main(void)
{
	test_every_combination();
	test_cases_that_went_wrong_elsewhere();
	test_every_status();
	test_every_status_of_a_delete();
	test_names();
	test_retry_after();
	return done_testing();
}
