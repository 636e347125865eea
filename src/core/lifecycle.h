/*
 * lifecycle.h
 *		Every legal step of an action and of an attempt, as one const table.
 *
 * The table in lifecycle.c is the only place that knows the lifecycle.  The
 * guard triggers enforce it, the view reconcile.transition_rule shows it, and
 * the state diagram in doc/ is generated from it.
 *
 * Pure: no SQL, no network, no clock.
 */
#ifndef AR_LIFECYCLE_H
#define AR_LIFECYCLE_H

#include <stdbool.h>

#include "core/standing.h"

typedef enum ArState
{
	AR_PLANNED,
	AR_SUBMITTED,
	AR_OUTCOME_UNKNOWN,
	AR_RECONCILING,
	AR_MANUAL_REVIEW,
	AR_DELIVERED,
	AR_SUCCEEDED,
	AR_REJECTED,
	AR_SAFE_TO_RETRY,
	AR_CANCELLED,
	AR_EXPIRED,
	AR_ABANDONED
} ArState;

#define AR_STATE_COUNT (AR_ABANDONED + 1)

typedef enum ArEvent
{
	AR_EVENT_CLAIM,				/* the intent to send is being made durable */
	AR_EVENT_RESEND,			/* likewise, of the very same request with its living key */
	AR_EVENT_NOT_SENT,			/* proven: no byte of this attempt left */
	AR_EVENT_NOT_EXECUTED,		/* proven: the complete answer says "not executed" */
	AR_EVENT_ANSWERED_ACCEPTED,
	AR_EVENT_ANSWERED_ASYNC,	/* the provider has it, its verdict comes later */
	AR_EVENT_ANSWERED_UNREADABLE,	/* a success whose body cannot be trusted */
	AR_EVENT_ANSWERED_REJECTED,
	AR_EVENT_REPLAYED,			/* the stored reply to the same request says no */
	AR_EVENT_KEY_MISMATCH,		/* the provider knows the key with another request */
	AR_EVENT_ANSWER_LOST,		/* bytes may have left, no complete answer */
	AR_EVENT_RECOVER,			/* found open, left by an engine that is gone */
	AR_EVENT_PRESUME,			/* another copy of the database may have sent it before this one was armed */
	AR_EVENT_ASK,				/* the window has closed: a lookup starts */
	AR_EVENT_LOOK_AGAIN,		/* what is queued needs a fresh look before it is sent */
	AR_EVENT_LOOKED_BEFORE,		/* what it is about was looked at before the first send */
	AR_EVENT_FOUND,				/* the provider shows that it happened */
	AR_EVENT_ABSENT,			/* that it did not: enough complete answers after the window */
	AR_EVENT_ABSENT_ONCE,		/* a valid negative, more are required */
	AR_EVENT_INCONCLUSIVE,
	AR_EVENT_NO_QUERY_SURFACE,	/* there is nothing to ask */
	AR_EVENT_POLL_ACCEPTED,		/* asked later, the provider has carried it out */
	AR_EVENT_POLL_REJECTED,		/* or has refused it */
	AR_EVENT_OVERDUE,			/* or has not decided for too long */
	AR_EVENT_LOOK_UP_NOW,		/* a person asks for another round of lookups */
	AR_EVENT_REPLACE,
	AR_EVENT_CANCEL,
	AR_EVENT_EXPIRE,
	AR_EVENT_DEPENDENCY_FAILED,	/* what it waited for did not happen */
	AR_EVENT_HOLD,				/* queued, but not to be sent before a release */
	AR_EVENT_RELEASE,
	AR_EVENT_CONFIRM,			/* the provider said, unasked, that it has happened */
	AR_EVENT_REFUSE,			/* or that it has refused it */
	AR_EVENT_RESOLVE,			/* a person knows what happened */
	AR_EVENT_ABANDON,			/* given up after proof that it did not happen */
	AR_EVENT_REDACT				/* payload and bodies are removed */
} ArEvent;

#define AR_EVENT_COUNT (AR_EVENT_REDACT + 1)

/* Whose life a row describes; a row may serve both. */
#define AR_OF_ACTION	1
#define AR_OF_ATTEMPT	2

/* Who may take the step. */
typedef enum ArStepActor
{
	AR_BY_ENGINE,				/* only the holder of the engine lock */
	AR_BY_PERSON				/* a caller with the right to; the engine too */
} ArStepActor;

typedef struct ArTransition
{
	int			subject;		/* AR_OF_ACTION, AR_OF_ATTEMPT or both */
	ArState		from;
	ArEvent		event;
	ArState		to;
	const char *evidence;		/* key that the recorded evidence must hold */
	ArStepActor actor;
	const char *meaning;		/* one sentence for people */
} ArTransition;

/* The table itself, for dumps and tests. */
extern const ArTransition *ar_transitions(int *count);

/* The row for this step, or NULL if the step is not legal. */
extern const ArTransition *ar_transition_find(int subject, ArState from, ArEvent event, ArState to);

/* Is there any legal step for this event from this state? For error messages. */
extern bool ar_event_is_possible(int subject, ArState from, ArEvent event);

/*
 * May the step change whether a further attempt is queued in this way?  What
 * puts an attempt on the queue is proof that the one before did not happen, or
 * a person; recovering or failing to ask may keep it there, never put it there.
 */
extern bool ar_queue_may_become(bool was_queued, ArEvent event, ArState to, bool is_queued);

/* Must the standing stay as it is through this event? A person's wish proves nothing. */
extern bool ar_event_keeps_standing(ArEvent event);

/* Is this standing one that the state may have? */
extern bool ar_state_allows_standing(ArState state, ArStanding standing);

/* The standing of a state that has exactly one; manual_review keeps "current". */
extern ArStanding ar_state_standing(ArState state, ArStanding current);

extern const char *ar_state_name(ArState state);
extern bool ar_state_parse(const char *name, ArState *state);
extern const char *ar_event_name(ArEvent event);
extern bool ar_event_parse(const char *name, ArEvent *event);
extern const char *ar_step_actor_name(ArStepActor actor);

#endif							/* AR_LIFECYCLE_H */
