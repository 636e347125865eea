/*
 * outcome.h
 *		What the end of an attempt means, decided from facts of the transfer.
 *
 * Pure: no SQL, no network, no clock.
 */
#ifndef AR_OUTCOME_H
#define AR_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

/* What the transfer itself proves. */
typedef struct ArTransferFacts
{
	int			prereq_calls;	/* how often libcurl was about to send */
	bool		check_refused;	/* the first of those calls was refused by us */
	bool		policy_denied;	/* the address policy refused every address */
	bool		transfer_ok;	/* libcurl reports success */
	bool		final_header_end;	/* the blank line of a final (>= 200) response was seen */
	int			http_status;	/* last final status seen, 0 if none */
	bool		body_framed;	/* Content-Length, chunked, or a status without body: truncation would show */
	bool		body_complete;	/* the whole body is in memory (not cut by our cap) */
} ArTransferFacts;

typedef enum ArTransferClass
{
	AR_TRANSFER_NOT_SENT,		/* no byte of the request left */
	AR_TRANSFER_ANSWERED,		/* a complete final response */
	AR_TRANSFER_UNKNOWN			/* bytes may have left, no complete answer */
} ArTransferClass;

typedef enum ArAnswerClass
{
	AR_ANSWER_ACCEPTED,
	AR_ANSWER_ACCEPTED_ASYNC,
	AR_ANSWER_REJECTED,
	AR_ANSWER_NOT_EXECUTED,
	AR_ANSWER_THROTTLED,
	AR_ANSWER_IN_PROGRESS,
	AR_ANSWER_ALREADY_EXISTS,	/* there is such a thing; whether it is ours, a lookup tells */
	AR_ANSWER_UNKNOWN,
	AR_ANSWER_KEY_MISMATCH,		/* the provider knows our key with another request */
	AR_ANSWER_UNREADABLE
} ArAnswerClass;

extern ArTransferClass ar_classify_transfer(const ArTransferFacts *facts);
extern const char *ar_transfer_class_name(ArTransferClass transfer);

/* Default map of an answered attempt, by status alone. */
extern ArAnswerClass ar_classify_status(int http_status, bool operation_sends_key);

/*
 * The same for a delete, where "it is not there" may be our own doing.
 * "existed": it was seen before the first send.  "may_be_a_page": the body is
 * something other than the provider's own words, such as a gateway's HTML.
 */
extern ArAnswerClass ar_classify_delete_status(int http_status, bool operation_sends_key, bool existed, bool may_be_a_page);
extern const char *ar_answer_class_name(ArAnswerClass answer);

/* The class of that name; false if there is none. */
extern bool ar_answer_class_parse(const char *name, ArAnswerClass *answer);

/*
 * How long to pause when the provider asked for "asked_us" (negative: it asked
 * for nothing that could be read): never less than "floor_us", never more than
 * "ceiling_us".
 */
extern int64_t ar_retry_after_us(int64_t asked_us, int64_t floor_us, int64_t ceiling_us);

#endif							/* AR_OUTCOME_H */
