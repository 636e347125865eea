/*
 * outcome.c
 *		What the end of an attempt means, decided from facts of the transfer.
 *
 * No libcurl error code takes part in any decision here: the same code is
 * reported before and after a request was executed.  What counts is whether
 * libcurl was ever about to send, whether we refused that one time, and
 * whether a whole final response was seen.  Everything else is unknown.
 */
#include "core/outcome.h"

#include <string.h>

#include <stddef.h>

/* A final response has a status from here to there, inclusive. */
#define AR_FIRST_FINAL_STATUS 200
#define AR_LAST_FINAL_STATUS 599

typedef struct ArStatusRule
{
	int			status;
	ArAnswerClass answer;
} ArStatusRule;

/*
 * Statuses that say something by themselves.  A status without a row, outside
 * the 2xx range, proves nothing about the execution and stays unknown: an
 * operation's own rules may know better.
 */
static const ArStatusRule status_rules[] = {
	{202, AR_ANSWER_ACCEPTED_ASYNC},
	{400, AR_ANSWER_REJECTED},
	{401, AR_ANSWER_NOT_EXECUTED},
	{403, AR_ANSWER_REJECTED},
	{404, AR_ANSWER_REJECTED},
	{405, AR_ANSWER_REJECTED},
	{406, AR_ANSWER_REJECTED},
	{410, AR_ANSWER_REJECTED},
	{411, AR_ANSWER_REJECTED},
	{413, AR_ANSWER_REJECTED},
	{414, AR_ANSWER_REJECTED},
	{415, AR_ANSWER_REJECTED},
	{422, AR_ANSWER_REJECTED},
	{425, AR_ANSWER_IN_PROGRESS},
};

/*
 * Says what the transfer itself proves.  Pure; never throws, needs no
 * transaction.
 *
 * The order matters: a request that libcurl was never about to send is not
 * sent whatever else is recorded, and a refused first call stops being proof
 * as soon as there was a second one.
 */
ArTransferClass
ar_classify_transfer(const ArTransferFacts *facts)
{
	if (facts->prereq_calls == 0)
		return AR_TRANSFER_NOT_SENT;

	if (facts->prereq_calls != 1)
		return AR_TRANSFER_UNKNOWN;

	if (facts->check_refused)
		return AR_TRANSFER_NOT_SENT;

	if (facts->transfer_ok && facts->final_header_end &&
		facts->http_status >= AR_FIRST_FINAL_STATUS &&
		facts->http_status <= AR_LAST_FINAL_STATUS)
		return AR_TRANSFER_ANSWERED;

	return AR_TRANSFER_UNKNOWN;
}

/*
 * The word for a transfer class, as stored in evidence.  A constant string;
 * never throws, needs no transaction.
 */
const char *
ar_transfer_class_name(ArTransferClass transfer)
{
	switch (transfer)
	{
		case AR_TRANSFER_NOT_SENT:
			return "not_sent";
		case AR_TRANSFER_ANSWERED:
			return "answered";
		case AR_TRANSFER_UNKNOWN:
			break;
	}
	return "unknown";
}

/*
 * The class of a complete answer by its status alone, for operations without
 * rules of their own.  Pure; never throws, needs no transaction.
 */
ArAnswerClass
ar_classify_status(int http_status, bool operation_sends_key)
{
	size_t		i;

	for (i = 0; i < sizeof(status_rules) / sizeof(status_rules[0]); i++)
	{
		if (status_rules[i].status == http_status)
			return status_rules[i].answer;
	}

	if (http_status >= 200 && http_status <= 299)
		return AR_ANSWER_ACCEPTED;

	/* a conflict about the key itself: the first request is still running */
	if (http_status == 409 && operation_sends_key)
		return AR_ANSWER_IN_PROGRESS;

	return AR_ANSWER_UNKNOWN;
}

/*
 * That there is nothing to delete is a refusal only if there never was
 * anything: what was there before the send is gone, and a lookup will show
 * so.  Pure; never throws, needs no transaction.
 */
ArAnswerClass
ar_classify_delete_status(int http_status, bool operation_sends_key, bool existed, bool may_be_a_page)
{
	if ((http_status == 404 || http_status == 410) && (existed || may_be_a_page))
		return AR_ANSWER_UNKNOWN;
	return ar_classify_status(http_status, operation_sends_key);
}

/*
 * The word for an answer class, as stored in evidence.  A constant string;
 * never throws, needs no transaction.
 */
const char *
ar_answer_class_name(ArAnswerClass answer)
{
	switch (answer)
	{
		case AR_ANSWER_ACCEPTED:
			return "accepted";
		case AR_ANSWER_ACCEPTED_ASYNC:
			return "accepted_async";
		case AR_ANSWER_REJECTED:
			return "rejected";
		case AR_ANSWER_NOT_EXECUTED:
			return "not_executed";
		case AR_ANSWER_THROTTLED:
			return "throttled";
		case AR_ANSWER_IN_PROGRESS:
			return "in_progress";
		case AR_ANSWER_ALREADY_EXISTS:
			return "already_exists";
		case AR_ANSWER_KEY_MISMATCH:
			return "key_mismatch";
		case AR_ANSWER_UNREADABLE:
			return "unreadable";
		case AR_ANSWER_UNKNOWN:
			break;
	}
	return "unknown";
}

bool
ar_answer_class_parse(const char *name, ArAnswerClass *answer)
{
	for (int i = AR_ANSWER_ACCEPTED; i <= AR_ANSWER_UNREADABLE; i++)
	{
		if (strcmp(ar_answer_class_name((ArAnswerClass) i), name) == 0)
		{
			*answer = (ArAnswerClass) i;
			return true;
		}
	}
	return false;
}

int64_t
ar_retry_after_us(int64_t asked_us, int64_t floor_us, int64_t ceiling_us)
{
	if (asked_us < floor_us)
		return floor_us;
	return asked_us > ceiling_us && ceiling_us > floor_us ? ceiling_us : asked_us;
}
