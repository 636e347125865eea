/*
 * lifecycle_promises.h
 *		What no row of the transition table may do, whatever rows there are.
 *
 * Part of test_lifecycle.c.
 */
#ifndef AR_TEST_LIFECYCLE_PROMISES_H
#define AR_TEST_LIFECYCLE_PROMISES_H

#include "core/lifecycle.h"

#include "tap.h"

#define ACTION AR_OF_ACTION
#define ATTEMPT AR_OF_ATTEMPT

/* Whether this event shows that nothing happened, or is the decision of a person. */
static bool
says_nothing_happened(ArEvent event)
{
	return event == AR_EVENT_NOT_SENT || event == AR_EVENT_NOT_EXECUTED ||
		event == AR_EVENT_ABSENT || event == AR_EVENT_RESOLVE;
}

/* Whether this event is a word of the provider's that says no, or the decision of a person. */
static bool
is_a_no(ArEvent event)
{
	return event == AR_EVENT_ANSWERED_REJECTED || event == AR_EVENT_REPLAYED || event == AR_EVENT_POLL_REJECTED ||
		event == AR_EVENT_REFUSE || event == AR_EVENT_RESOLVE;
}

/* What must be on record for a step of a person: whose word it is that it rests on. */
static const char *
basis_of(ArEvent event)
{
	if (event == AR_EVENT_CONFIRM || event == AR_EVENT_REFUSE)
		return "event";
	return event == AR_EVENT_RESOLVE ? "decision" : "reason";
}

/* The standing after a step, where manual_review keeps what it had. */
static ArStanding
standing_of(ArState state)
{
	return ar_state_standing(state, AR_PENDING_PENDING);
}

/* What no row may do, whatever rows there are. */
static void
test_promises(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			unconfirmed = 0;
	int			unaccepted = 0;
	int			sent = 0;
	int			withdrawn = 0;
	int			timed = 0;
	int			unsent_by_person = 0;
	int			denied_attempt = 0;
	int			refused_attempt = 0;
	int			person = 0;
	int			moved = 0;
	int			wished = 0;
	int			given_up = 0;
	int			presumed = 0;

	for (int i = 0; i < count; i++)
	{
		const ArTransition *row = &rows[i];
		ArStanding	from = standing_of(row->from);
		ArStanding	to = standing_of(row->to);

		/* A review of something taken keeps that standing; so does its exit. */
		if (row->to == AR_MANUAL_REVIEW)
			to = from;
		unconfirmed += ar_standing_delivery(from) == AR_DELIVERY_CONFIRMED &&
			ar_standing_delivery(to) != AR_DELIVERY_CONFIRMED;
		unaccepted += ar_standing_acceptance(from) == AR_ACCEPTANCE_ACCEPTED &&
			ar_standing_acceptance(to) != AR_ACCEPTANCE_ACCEPTED;
		sent += row->to == AR_SUBMITTED &&
			(row->from != AR_PLANNED || row->event != AR_EVENT_CLAIM) &&
			(row->from != AR_OUTCOME_UNKNOWN || row->event != AR_EVENT_RESEND);
		withdrawn += row->event == AR_EVENT_CANCEL && row->from != AR_PLANNED;
		timed += row->event == AR_EVENT_EXPIRE && row->from != AR_PLANNED;
		withdrawn += row->event == AR_EVENT_DEPENDENCY_FAILED && (row->from != AR_PLANNED || row->actor != AR_BY_ENGINE);
		given_up += (row->event == AR_EVENT_ABANDON || row->to == AR_ABANDONED) && row->from != row->to &&
			(row->event != AR_EVENT_ABANDON || row->from != AR_SAFE_TO_RETRY);
		moved += (row->event == AR_EVENT_HOLD || row->event == AR_EVENT_RELEASE || row->event == AR_EVENT_REDACT) &&
			(row->from != row->to || row->subject != ACTION);
		/* What may have left elsewhere is uncertain afterwards, and never queued. */
		presumed += row->event == AR_EVENT_PRESUME && (row->subject != ACTION || row->actor != AR_BY_ENGINE ||
													   (row->to != AR_OUTCOME_UNKNOWN && row->to != AR_MANUAL_REVIEW));
		unsent_by_person += row->event == AR_EVENT_NOT_SENT && row->actor != AR_BY_ENGINE;
		denied_attempt += (row->subject & ATTEMPT) != 0 && to == AR_FAILED_PENDING &&
			!says_nothing_happened(row->event);
		refused_attempt += (row->subject & ATTEMPT) != 0 && to == AR_CONFIRMED_REJECTED && !is_a_no(row->event);
		person += row->actor == AR_BY_PERSON && strcmp(row->evidence, basis_of(row->event)) != 0;
		/* A wish is about the action; what happened is about its attempts. */
		wished += strcmp(row->evidence, "reason") == 0 && ((row->subject & ATTEMPT) != 0 || row->actor != AR_BY_PERSON ||
														   (ar_resolved_status(to) == AR_STATUS_CONFIRMED && row->from != row->to));
	}
	is_int(unconfirmed, 0, "delivery never leaves confirmed");
	is_int(unaccepted, 0, "acceptance never leaves accepted");
	is_int(sent, 0, "only a claim of something planned sends, or a resend of what is unknown");
	is_int(withdrawn, 0, "only what has not left can be cancelled");
	is_int(timed, 0, "time ends only what has not left");
	is_int(unsent_by_person, 0, "only the engine can say that nothing left");
	is_int(denied_attempt, 0, "an attempt fails only by proof that it did not happen, or by a person's decision");
	is_int(refused_attempt, 0, "an attempt is refused only by a word that says so, or by a person's decision");
	is_int(person, 0, "a person gives a reason, a decision, or the word of the provider");
	is_int(wished, 0, "a reason alone settles no attempt, and confirms nothing");
	is_int(given_up, 0, "given up is only what is proven, or decided, not to have happened");
	is_int(presumed, 0, "what is presumed to have left is uncertain, and only the engine presumes it");
	is_int(moved, 0, "holding, releasing and erasing leave an action where it is");
}

#endif							/* AR_TEST_LIFECYCLE_PROMISES_H */
