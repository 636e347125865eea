/*
 * lifecycle.c
 *		The transition table.
 *
 * An attempt ends once, and may later be settled once more by evidence: its
 * delivery never leaves confirmed, its acceptance never leaves accepted.  The
 * state of an action follows its attempts (core/standing.c has the fold); some
 * events therefore have more than one target here, and which one is right is
 * decided by the fold and by the operation's policy.
 */
#include "core/lifecycle.h"

#include <stddef.h>
#include <string.h>

#define BOTH (AR_OF_ACTION | AR_OF_ATTEMPT)

static const ArTransition transitions[] = {
	/* sending */
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_CLAIM, AR_SUBMITTED, "dispatch", AR_BY_ENGINE,
	"the intent to send is made durable before the first byte leaves"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_LOOK_AGAIN, AR_RECONCILING, "lookup", AR_BY_ENGINE,
	"what the next send rests on has not been seen, or not lately: ask before sending"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_LOOKED_BEFORE, AR_PLANNED, "lookup", AR_BY_ENGINE,
	"what it is about was looked at before the first send"},
	{AR_OF_ACTION, AR_OUTCOME_UNKNOWN, AR_EVENT_RESEND, AR_SUBMITTED, "dispatch", AR_BY_ENGINE,
	"the very same request goes out again with its key, which is alive: the provider removes the duplicate"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_CANCEL, AR_CANCELLED, "reason", AR_BY_PERSON,
	"withdrawn before any byte left"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_EXPIRE, AR_EXPIRED, "not_after", AR_BY_ENGINE,
	"its time passed before any byte left"},

	/* the end of an attempt */
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_NOT_SENT, AR_PLANNED, "transfer", AR_BY_ENGINE,
	"no byte of the request left: queued again"},
	{AR_OF_ATTEMPT, AR_SUBMITTED, AR_EVENT_NOT_SENT, AR_SAFE_TO_RETRY, "transfer", AR_BY_ENGINE,
	"no byte of the request left"},
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_NOT_SENT, AR_OUTCOME_UNKNOWN, "transfer", AR_BY_ENGINE,
	"no byte of this attempt left, but an earlier one may have happened"},
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_NOT_EXECUTED, AR_PLANNED, "transfer", AR_BY_ENGINE,
	"the provider's complete answer says that it did nothing: queued again"},
	{AR_OF_ATTEMPT, AR_SUBMITTED, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY, "transfer", AR_BY_ENGINE,
	"the provider's complete answer says that it did nothing"},
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_NOT_EXECUTED, AR_OUTCOME_UNKNOWN, "transfer", AR_BY_ENGINE,
	"this attempt did nothing, but an earlier one may have happened"},
	{BOTH, AR_SUBMITTED, AR_EVENT_ANSWERED_ACCEPTED, AR_SUCCEEDED, "transfer", AR_BY_ENGINE,
	"the provider answered yes"},
	{BOTH, AR_SUBMITTED, AR_EVENT_ANSWERED_ASYNC, AR_DELIVERED, "transfer", AR_BY_ENGINE,
	"the provider has it and will decide later"},
	{BOTH, AR_SUBMITTED, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED, "transfer", AR_BY_ENGINE,
	"the provider answered yes, in a body that cannot be read or trusted"},
	{BOTH, AR_SUBMITTED, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED, "transfer", AR_BY_ENGINE,
	"the provider answered no"},
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_ANSWERED_REJECTED, AR_OUTCOME_UNKNOWN, "transfer", AR_BY_ENGINE,
	"the provider answered no to this attempt, but an earlier one may have happened"},
	{AR_OF_ATTEMPT, AR_OUTCOME_UNKNOWN, AR_EVENT_REPLAYED, AR_REJECTED, "transfer", AR_BY_ENGINE,
	"the provider repeated its stored reply to the same request: no"},
	{AR_OF_ACTION, AR_SUBMITTED, AR_EVENT_KEY_MISMATCH, AR_MANUAL_REVIEW, "transfer", AR_BY_ENGINE,
	"the provider knows the key with another request: a fault that only a person can clear up"},
	{AR_OF_ATTEMPT, AR_SUBMITTED, AR_EVENT_KEY_MISMATCH, AR_OUTCOME_UNKNOWN, "transfer", AR_BY_ENGINE,
	"the provider knows the key with another request"},
	{BOTH, AR_SUBMITTED, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN, "transfer", AR_BY_ENGINE,
	"bytes may have left and no complete answer came back"},
	{BOTH, AR_SUBMITTED, AR_EVENT_RECOVER, AR_OUTCOME_UNKNOWN, "recovery", AR_BY_ENGINE,
	"found open: the engine that sent it is gone"},

	/* after the database was armed anew */
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_PRESUME, AR_OUTCOME_UNKNOWN, "arming", AR_BY_ENGINE,
	"recorded before the database was armed anew: another copy may have sent it, so the provider is asked first"},
	{AR_OF_ACTION, AR_OUTCOME_UNKNOWN, AR_EVENT_PRESUME, AR_OUTCOME_UNKNOWN, "arming", AR_BY_ENGINE,
	"recorded before the database was armed anew: another copy may have sent it once more"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_PRESUME, AR_MANUAL_REVIEW, "arming", AR_BY_ENGINE,
	"recorded before the database was armed anew: another copy may have sent it, and there is nothing to ask"},
	{AR_OF_ACTION, AR_OUTCOME_UNKNOWN, AR_EVENT_PRESUME, AR_MANUAL_REVIEW, "arming", AR_BY_ENGINE,
	"recorded before the database was armed anew: another copy may have settled it, and there is nothing to ask"},

	/* asking */
	{AR_OF_ACTION, AR_OUTCOME_UNKNOWN, AR_EVENT_ASK, AR_RECONCILING, "lookup", AR_BY_ENGINE,
	"the window has closed: the provider is asked"},
	{AR_OF_ACTION, AR_OUTCOME_UNKNOWN, AR_EVENT_NO_QUERY_SURFACE, AR_MANUAL_REVIEW, "lookup", AR_BY_ENGINE,
	"the operation offers nothing to ask: only a person can settle it"},
	{AR_OF_ACTION, AR_DELIVERED, AR_EVENT_NO_QUERY_SURFACE, AR_MANUAL_REVIEW, "lookup", AR_BY_ENGINE,
	"taken in an answer that cannot be read, and nothing to ask: only a person can settle it"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_RECOVER, AR_OUTCOME_UNKNOWN, "recovery", AR_BY_ENGINE,
	"the engine that was asking is gone: ask again"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_RECOVER, AR_PLANNED, "recovery", AR_BY_ENGINE,
	"the engine that was asking before a replacement is gone: ask again before sending"},

	/* the verdict on what was delivered */
	{BOTH, AR_DELIVERED, AR_EVENT_POLL_ACCEPTED, AR_SUCCEEDED, "poll", AR_BY_ENGINE,
	"asked again, the provider says that it is done"},
	{BOTH, AR_DELIVERED, AR_EVENT_POLL_REJECTED, AR_REJECTED, "poll", AR_BY_ENGINE,
	"asked again, the provider says no"},
	{AR_OF_ATTEMPT, AR_OUTCOME_UNKNOWN, AR_EVENT_POLL_REJECTED, AR_REJECTED, "poll", AR_BY_ENGINE,
	"asked again about the same request with the same key, the provider says no"},
	{AR_OF_ACTION, AR_DELIVERED, AR_EVENT_OVERDUE, AR_MANUAL_REVIEW, "poll", AR_BY_ENGINE,
	"the provider has not decided for too long: only a person can settle it"},

	/* found */
	{AR_OF_ATTEMPT, AR_OUTCOME_UNKNOWN, AR_EVENT_FOUND, AR_SUCCEEDED, "lookup", AR_BY_ENGINE,
	"the provider shows that it happened"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_FOUND, AR_SUCCEEDED, "lookup", AR_BY_ENGINE,
	"the provider shows that it happened"},
	{AR_OF_ATTEMPT, AR_OUTCOME_UNKNOWN, AR_EVENT_FOUND, AR_DELIVERED, "lookup", AR_BY_ENGINE,
	"the provider has it; whether it carries it out is to be asked next"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_FOUND, AR_DELIVERED, "lookup", AR_BY_ENGINE,
	"the provider has it; whether it carries it out is to be asked next"},
	{BOTH, AR_DELIVERED, AR_EVENT_FOUND, AR_DELIVERED, "lookup", AR_BY_ENGINE,
	"the provider shows what it had taken; whether it carries it out is to be asked next"},
	{AR_OF_ATTEMPT, AR_SAFE_TO_RETRY, AR_EVENT_FOUND, AR_DELIVERED, "lookup", AR_BY_ENGINE,
	"late confirmation: the provider has it after all"},
	{BOTH, AR_DELIVERED, AR_EVENT_FOUND, AR_SUCCEEDED, "lookup", AR_BY_ENGINE,
	"the provider shows what it had taken"},
	{AR_OF_ATTEMPT, AR_SAFE_TO_RETRY, AR_EVENT_FOUND, AR_SUCCEEDED, "lookup", AR_BY_ENGINE,
	"late confirmation: it did happen after all"},

	/* not found */
	{AR_OF_ATTEMPT, AR_OUTCOME_UNKNOWN, AR_EVENT_ABSENT, AR_SAFE_TO_RETRY, "lookup", AR_BY_ENGINE,
	"the provider shows that it did not happen, by enough complete answers after the window"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_ABSENT, AR_SAFE_TO_RETRY, "lookup", AR_BY_ENGINE,
	"proven not to have happened, and nothing is queued"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_ABSENT, AR_PLANNED, "lookup", AR_BY_ENGINE,
	"proven not to have happened: a replacement is queued"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_ABSENT, AR_REJECTED, "lookup", AR_BY_ENGINE,
	"the attempts that may have happened did not, and another one was refused"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_ABSENT_ONCE, AR_OUTCOME_UNKNOWN, "lookup", AR_BY_ENGINE,
	"a valid negative; further ones, spaced apart, are required"},

	/* no answer to the question */
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_INCONCLUSIVE, AR_OUTCOME_UNKNOWN, "lookup", AR_BY_ENGINE,
	"the answer proves nothing: asked again after a pause"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_INCONCLUSIVE, AR_MANUAL_REVIEW, "lookup", AR_BY_ENGINE,
	"too many answers that prove nothing: only a person can settle it"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_INCONCLUSIVE, AR_PLANNED, "lookup", AR_BY_ENGINE,
	"no fresh proof of absence yet: the replacement keeps waiting"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_INCONCLUSIVE, AR_SAFE_TO_RETRY, "lookup", AR_BY_ENGINE,
	"no fresh proof of absence to be had: the replacement is taken off the queue"},
	{AR_OF_ACTION, AR_DELIVERED, AR_EVENT_INCONCLUSIVE, AR_DELIVERED, "lookup", AR_BY_ENGINE,
	"the answer proves nothing: asked again after a pause"},
	{AR_OF_ACTION, AR_DELIVERED, AR_EVENT_INCONCLUSIVE, AR_MANUAL_REVIEW, "lookup", AR_BY_ENGINE,
	"taken by the provider, but it cannot be made to show it: only a person can settle it"},

	/* order and dependence */
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_DEPENDENCY_FAILED, AR_CANCELLED, "dependency", AR_BY_ENGINE,
	"what it depends on did not happen, and will not"},

	/* unasked words of the provider: applied by whoever brings them, or by the engine */
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"the provider says that it has happened"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"the provider says that it has it"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_REFUSE, AR_REJECTED, "event", AR_BY_PERSON,
	"the provider says that it has it, and has refused it"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"the provider says that it has happened"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"the provider says that it has it"},
	{AR_OF_ACTION, AR_RECONCILING, AR_EVENT_REFUSE, AR_REJECTED, "event", AR_BY_PERSON,
	"the provider says that it has it, and has refused it"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"the provider says that it has happened"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"the provider says that it has it"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_REFUSE, AR_REJECTED, "event", AR_BY_PERSON,
	"the provider says that it has it, and has refused it"},
	{BOTH, AR_DELIVERED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"the provider says that it is done"},
	{BOTH, AR_DELIVERED, AR_EVENT_REFUSE, AR_REJECTED, "event", AR_BY_PERSON,
	"the provider says no, in the end"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"late confirmation of an earlier attempt: the queued replacement is cancelled"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"late word that an earlier attempt has arrived: the queued replacement is cancelled"},
	{BOTH, AR_SAFE_TO_RETRY, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"late confirmation: it did happen after all"},
	{BOTH, AR_SAFE_TO_RETRY, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"late word that it has arrived after all"},
	{AR_OF_ACTION, AR_CANCELLED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"late confirmation of an attempt made before: it did happen after all"},
	{AR_OF_ACTION, AR_CANCELLED, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"late word that an attempt made before has arrived after all"},
	{AR_OF_ACTION, AR_EXPIRED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"late confirmation of an attempt made before: it did happen after all"},
	{AR_OF_ACTION, AR_EXPIRED, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"late word that an attempt made before has arrived after all"},
	{AR_OF_ACTION, AR_ABANDONED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"late confirmation of an attempt made before: it did happen after all"},
	{AR_OF_ACTION, AR_ABANDONED, AR_EVENT_CONFIRM, AR_DELIVERED, "event", AR_BY_PERSON,
	"late word that an attempt made before has arrived after all"},
	{BOTH, AR_REJECTED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"newer word of the provider: yes after its no; an incident"},
	{AR_OF_ACTION, AR_SUCCEEDED, AR_EVENT_CONFIRM, AR_SUCCEEDED, "event", AR_BY_PERSON,
	"another attempt is confirmed too, which is an incident; or the id of what was made is told afterwards"},

	/* people */
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_LOOK_UP_NOW, AR_OUTCOME_UNKNOWN, "reason", AR_BY_PERSON,
	"a person wants the provider to be asked again"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_LOOK_UP_NOW, AR_DELIVERED, "reason", AR_BY_PERSON,
	"a person wants the provider to be asked again"},
	{AR_OF_ACTION, AR_SAFE_TO_RETRY, AR_EVENT_REPLACE, AR_PLANNED, "reason", AR_BY_PERSON,
	"proven not to have happened, and wanted again: a replacement is queued"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_HOLD, AR_PLANNED, "reason", AR_BY_PERSON,
	"not to be sent before somebody releases it"},
	{AR_OF_ACTION, AR_PLANNED, AR_EVENT_RELEASE, AR_PLANNED, "reason", AR_BY_PERSON,
	"somebody lets it go"},
	{AR_OF_ACTION, AR_SAFE_TO_RETRY, AR_EVENT_ABANDON, AR_ABANDONED, "reason", AR_BY_PERSON,
	"given up after proof that it did not happen"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_RESOLVE, AR_SUCCEEDED, "decision", AR_BY_PERSON,
	"a person knows that it happened"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_RESOLVE, AR_DELIVERED, "decision", AR_BY_PERSON,
	"a person knows that the provider has it"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_RESOLVE, AR_REJECTED, "decision", AR_BY_PERSON,
	"a person knows that the provider refused it"},
	{BOTH, AR_OUTCOME_UNKNOWN, AR_EVENT_RESOLVE, AR_SAFE_TO_RETRY, "decision", AR_BY_PERSON,
	"a person knows that it did not happen"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_RESOLVE, AR_SUCCEEDED, "decision", AR_BY_PERSON,
	"a person knows that it happened"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_RESOLVE, AR_DELIVERED, "decision", AR_BY_PERSON,
	"a person knows that the provider has it"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_RESOLVE, AR_REJECTED, "decision", AR_BY_PERSON,
	"a person knows that the provider refused it"},
	{AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_RESOLVE, AR_SAFE_TO_RETRY, "decision", AR_BY_PERSON,
	"a person knows that it did not happen"},
	{BOTH, AR_DELIVERED, AR_EVENT_RESOLVE, AR_SUCCEEDED, "decision", AR_BY_PERSON,
	"a person knows that the provider has carried it out"},
	{BOTH, AR_DELIVERED, AR_EVENT_RESOLVE, AR_REJECTED, "decision", AR_BY_PERSON,
	"a person knows that the provider refused it"},
	{AR_OF_ACTION, AR_SUCCEEDED, AR_EVENT_REDACT, AR_SUCCEEDED, "reason", AR_BY_PERSON,
	"its payload and the bodies of its answers are removed"},
	{AR_OF_ACTION, AR_REJECTED, AR_EVENT_REDACT, AR_REJECTED, "reason", AR_BY_PERSON,
	"its payload and the bodies of its answers are removed"},
	{AR_OF_ACTION, AR_CANCELLED, AR_EVENT_REDACT, AR_CANCELLED, "reason", AR_BY_PERSON,
	"its payload and the bodies of its answers are removed"},
	{AR_OF_ACTION, AR_EXPIRED, AR_EVENT_REDACT, AR_EXPIRED, "reason", AR_BY_PERSON,
	"its payload and the bodies of its answers are removed"},
	{AR_OF_ACTION, AR_ABANDONED, AR_EVENT_REDACT, AR_ABANDONED, "reason", AR_BY_PERSON,
	"its payload and the bodies of its answers are removed"},
};

static const char *const state_names[AR_STATE_COUNT] = {
	[AR_PLANNED] = "planned",
	[AR_SUBMITTED] = "submitted",
	[AR_OUTCOME_UNKNOWN] = "outcome_unknown",
	[AR_RECONCILING] = "reconciling",
	[AR_MANUAL_REVIEW] = "manual_review",
	[AR_DELIVERED] = "delivered",
	[AR_SUCCEEDED] = "succeeded",
	[AR_REJECTED] = "rejected",
	[AR_SAFE_TO_RETRY] = "safe_to_retry",
	[AR_CANCELLED] = "cancelled",
	[AR_EXPIRED] = "expired",
	[AR_ABANDONED] = "abandoned",
};

static const char *const event_names[AR_EVENT_COUNT] = {
	[AR_EVENT_CLAIM] = "claim",
	[AR_EVENT_RESEND] = "resend",
	[AR_EVENT_NOT_SENT] = "not_sent",
	[AR_EVENT_NOT_EXECUTED] = "not_executed",
	[AR_EVENT_ANSWERED_ACCEPTED] = "answered_accepted",
	[AR_EVENT_ANSWERED_ASYNC] = "answered_async",
	[AR_EVENT_ANSWERED_UNREADABLE] = "answered_unreadable",
	[AR_EVENT_ANSWERED_REJECTED] = "answered_rejected",
	[AR_EVENT_REPLAYED] = "replayed",
	[AR_EVENT_KEY_MISMATCH] = "key_mismatch",
	[AR_EVENT_ANSWER_LOST] = "answer_lost",
	[AR_EVENT_RECOVER] = "recover",
	[AR_EVENT_PRESUME] = "presume",
	[AR_EVENT_ASK] = "ask",
	[AR_EVENT_LOOK_AGAIN] = "look_again",
	[AR_EVENT_LOOKED_BEFORE] = "looked_before",
	[AR_EVENT_FOUND] = "found",
	[AR_EVENT_ABSENT] = "absent",
	[AR_EVENT_ABSENT_ONCE] = "absent_once",
	[AR_EVENT_INCONCLUSIVE] = "inconclusive",
	[AR_EVENT_NO_QUERY_SURFACE] = "no_query_surface",
	[AR_EVENT_POLL_ACCEPTED] = "poll_accepted",
	[AR_EVENT_POLL_REJECTED] = "poll_rejected",
	[AR_EVENT_OVERDUE] = "overdue",
	[AR_EVENT_LOOK_UP_NOW] = "look_up_now",
	[AR_EVENT_REPLACE] = "replace",
	[AR_EVENT_CANCEL] = "cancel",
	[AR_EVENT_EXPIRE] = "expire",
	[AR_EVENT_DEPENDENCY_FAILED] = "dependency_failed",
	[AR_EVENT_HOLD] = "hold",
	[AR_EVENT_RELEASE] = "release",
	[AR_EVENT_CONFIRM] = "confirm",
	[AR_EVENT_REFUSE] = "refuse",
	[AR_EVENT_RESOLVE] = "resolve",
	[AR_EVENT_ABANDON] = "abandon",
	[AR_EVENT_REDACT] = "redact",
};

const ArTransition *
ar_transitions(int *count)
{
	*count = (int) (sizeof(transitions) / sizeof(transitions[0]));
	return transitions;
}

const ArTransition *
ar_transition_find(int subject, ArState from, ArEvent event, ArState to)
{
	for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
	{
		const ArTransition *row = &transitions[i];

		if ((row->subject & subject) != 0 && row->from == from &&
			row->event == event && row->to == to)
			return row;
	}
	return NULL;
}

bool
ar_event_is_possible(int subject, ArState from, ArEvent event)
{
	for (int to = 0; to < AR_STATE_COUNT; to++)
	{
		if (ar_transition_find(subject, from, event, (ArState) to) != NULL)
			return true;
	}
	return false;
}

bool
ar_event_keeps_standing(ArEvent event)
{
	return event == AR_EVENT_LOOK_UP_NOW || event == AR_EVENT_CLAIM || event == AR_EVENT_RECOVER || event == AR_EVENT_PRESUME ||
		event == AR_EVENT_RESEND || event == AR_EVENT_KEY_MISMATCH || event == AR_EVENT_OVERDUE ||
		event == AR_EVENT_HOLD || event == AR_EVENT_RELEASE || event == AR_EVENT_REDACT ||
		event == AR_EVENT_ASK || event == AR_EVENT_LOOK_AGAIN || event == AR_EVENT_LOOKED_BEFORE || event == AR_EVENT_ABSENT_ONCE;
}

bool
ar_queue_may_become(bool was_queued, ArEvent event, ArState to, bool is_queued)
{
	if (is_queued != (to == AR_PLANNED) && to != AR_RECONCILING)
		return false;
	if (event == AR_EVENT_LOOK_AGAIN && !is_queued)
		return false;			/* it is asked for the sake of what is queued */
	if (to == AR_SAFE_TO_RETRY && event == AR_EVENT_INCONCLUSIVE)
		return was_queued;		/* the earlier proof of absence still stands */
	if (!is_queued || was_queued)
		return true;
	return event == AR_EVENT_NOT_SENT || event == AR_EVENT_NOT_EXECUTED ||
		event == AR_EVENT_ABSENT || event == AR_EVENT_REPLACE;
}

/*
 * Only a review may concern either an attempt that might have left or one
 * that the provider has taken without a verdict; every other state has one
 * standing.
 */
bool
ar_state_allows_standing(ArState state, ArStanding standing)
{
	if (state == AR_MANUAL_REVIEW)
		return standing == AR_PENDING_PENDING || standing == AR_CONFIRMED_PENDING;
	return ar_state_standing(state, standing) == standing;
}

ArStanding
ar_state_standing(ArState state, ArStanding current)
{
	switch (state)
	{
		case AR_PLANNED:
		case AR_SUBMITTED:
		case AR_OUTCOME_UNKNOWN:
		case AR_RECONCILING:
			return AR_PENDING_PENDING;
		case AR_MANUAL_REVIEW:
			return current;
		case AR_DELIVERED:
			return AR_CONFIRMED_PENDING;
		case AR_SUCCEEDED:
			return AR_CONFIRMED_ACCEPTED;
		case AR_REJECTED:
			return AR_CONFIRMED_REJECTED;
		case AR_SAFE_TO_RETRY:
		case AR_CANCELLED:
		case AR_EXPIRED:
		case AR_ABANDONED:
			return AR_FAILED_PENDING;
	}
	return current;
}

const char *
ar_state_name(ArState state)
{
	return state_names[state];
}

bool
ar_state_parse(const char *name, ArState *state)
{
	for (int i = 0; i < AR_STATE_COUNT; i++)
	{
		if (strcmp(state_names[i], name) == 0)
		{
			*state = (ArState) i;
			return true;
		}
	}
	return false;
}

const char *
ar_event_name(ArEvent event)
{
	return event_names[event];
}

bool
ar_event_parse(const char *name, ArEvent *event)
{
	for (int i = 0; i < AR_EVENT_COUNT; i++)
	{
		if (strcmp(event_names[i], name) == 0)
		{
			*event = (ArEvent) i;
			return true;
		}
	}
	return false;
}

const char *
ar_step_actor_name(ArStepActor actor)
{
	return actor == AR_BY_ENGINE ? "engine" : "person";
}
