/*
 * lifecycle_model.h
 *		The life of an action and of its attempts as the design tells it: which
 *		ends attempts may come to, and what then becomes of the action.
 *
 * Written without a look at the table: every step that the story needs is put
 * before the table, which must hold it, and before the rules of standings and
 * of the queue, which must let it pass.
 *
 * Part of test_model.c; what the provider says unasked and what people do is
 * told in lifecycle_people.h.
 */
#ifndef AR_TEST_LIFECYCLE_MODEL_H
#define AR_TEST_LIFECYCLE_MODEL_H

#include "core/lifecycle.h"

#include "tap.h"

#define MAX_ATTEMPTS	8
#define MAX_STEPS		128
#define MAX_ROWS		128

typedef struct Action
{
	ArState		state;
	ArStanding	standing;
	bool		queued;
	bool		held;			/* queued, but somebody keeps it back */
	bool		redacted;		/* once is enough */
	int			count;
	ArState		attempts[MAX_ATTEMPTS];	/* in no particular order */
} Action;

typedef struct Step
{
	ArEvent		event;
	Action		after;
} Step;

/* What was found wrong with a step, or with where it leads. */
typedef struct Faults
{
	int			no_row;			/* the table does not hold it, for the action or an attempt */
	int			refused;		/* the rules of standings or of the queue refuse it */
	int			unfolded;		/* the action does not stand where its attempts do */
	int			sent_twice;		/* a further attempt while an earlier one may have happened */
	int			withdrawn;		/* cancelled, expired or given up although one may have left */
	int			lost;			/* what may have happened is forgotten */
	int			taken_back;		/* a confirmation is */
	int			unproven;		/* an attempt is called not done, by neither proof nor a person's decision */
	int			overfull;		/* more steps than there is room for */
	int			crowded;		/* more than one attempt under way, or one of no submitted action */
} Faults;

static Faults faults;
static int	row_used[MAX_ROWS];	/* for whom: AR_OF_ACTION, AR_OF_ATTEMPT */
static Step steps[MAX_STEPS];
static int	step_count;
static int	attempt_limit = MAX_ATTEMPTS;

static int
count_in(const Action *a, ArState state)
{
	int			found = 0;

	for (int i = 0; i < a->count; i++)
		found += a->attempts[i] == state;
	return found;
}

/* Attempts that may have happened, or have. */
static int
count_left(const Action *a)
{
	return a->count - count_in(a, AR_SAFE_TO_RETRY) - count_in(a, AR_REJECTED);
}

static void
complain(int *fault, const char *what, const Action *a, ArEvent event, ArState to)
{
	char		list[MAX_ATTEMPTS * 20] = "";

	for (int i = 0; i < a->count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), " %s", ar_state_name(a->attempts[i]));
	if ((*fault)++ < 3)
		diag("%s: %s%s by %s to %s; attempts:%s", what, ar_state_name(a->state), a->queued ? " (queued)" : "",
			 ar_event_name(event), ar_state_name(to), list);
}

/* The row for a step, marked as used. */
static bool
has_row(int subject, ArState from, ArEvent event, ArState to)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	const ArTransition *row = ar_transition_find(subject, from, event, to);

	if (row != NULL)
		row_used[row - rows] |= subject;
	return row != NULL;
}

/* As the guard tests it: is the way from one standing to the other open by this event? */
static bool
standing_passes(ArStanding from, ArEvent event, ArState to_state, ArStanding to)
{
	return ar_state_allows_standing(to_state, to) && ar_standing_may_become(from, to) &&
		(from == to || (to_state != AR_MANUAL_REVIEW && !ar_event_keeps_standing(event)));
}

/* May it be said by this event that an attempt did not happen? A person's decision is the one exception to proof. */
static bool
may_deny(ArEvent event)
{
	return event == AR_EVENT_NOT_SENT || event == AR_EVENT_NOT_EXECUTED || event == AR_EVENT_ABSENT ||
		event == AR_EVENT_RESOLVE;
}

/* The attempt comes to that state; "a" is for the complaint, "after" is changed. */
static void
settle(const Action *a, Action *after, int i, ArEvent event, ArState to)
{
	ArState		from = after->attempts[i];

	if (!has_row(AR_OF_ATTEMPT, from, event, to))
		complain(&faults.no_row, "attempt: no row", a, event, to);
	if (!standing_passes(ar_state_standing(from, 0), event, to, ar_state_standing(to, 0)))
		complain(&faults.refused, "attempt: refused", a, event, to);
	if (to == AR_SAFE_TO_RETRY && !may_deny(event))
		complain(&faults.unproven, "attempt: no proof", a, event, to);
	after->attempts[i] = to;
}

static void
settle_all(const Action *a, Action *after, ArState from, ArEvent event, ArState to)
{
	for (int i = 0; i < after->count; i++)
	{
		if (after->attempts[i] == from)
			settle(a, after, i, event, to);
	}
}

/* What must hold wherever an action stands. */
static void
check_place(const Action *a, ArEvent event, const Action *after)
{
	ArStanding	standings[MAX_ATTEMPTS];
	ArStatus	status = ar_resolved_status(after->standing);

	for (int i = 0; i < after->count; i++)
		standings[i] = ar_state_standing(after->attempts[i], 0);
	if (ar_fold(standings, after->count, after->queued) != after->standing)
		complain(&faults.unfolded, "not the fold", a, event, after->state);
	if (count_in(after, AR_SUBMITTED) != (after->state == AR_SUBMITTED))
		complain(&faults.crowded, "attempts under way", a, event, after->state);
	if ((status == AR_STATUS_FAILED || after->queued) && count_left(after) > 0)
		complain(&faults.lost, "may have happened", a, event, after->state);
}

/* Withdrawn, by whomever and whyever. */
static bool
is_withdrawal(ArState to)
{
	return to == AR_CANCELLED || to == AR_EXPIRED || to == AR_ABANDONED;
}

/* The action takes a step; "after" has its attempts as the step leaves them. */
static void
take(const Action *a, Action after, ArEvent event, ArState to, bool queued)
{
	after.state = to;
	after.queued = queued;
	after.held = queued && after.held;
	after.standing = ar_state_standing(to, a->standing);
	if (!has_row(AR_OF_ACTION, a->state, event, to))
		complain(&faults.no_row, "action: no row", a, event, to);
	if (!standing_passes(a->standing, event, to, after.standing) || !ar_queue_may_become(a->queued, event, to, queued))
		complain(&faults.refused, "action: refused", a, event, to);
	if (after.count > a->count && event != AR_EVENT_RESEND && event != AR_EVENT_PRESUME && count_left(a) > 0)
		complain(&faults.sent_twice, "sent again", a, event, to);
	if (a->state != to && is_withdrawal(to) && count_left(a) > 0)
		complain(&faults.withdrawn, "withdrawn", a, event, to);
	if (ar_resolved_status(a->standing) == AR_STATUS_CONFIRMED && after.standing != a->standing)
		complain(&faults.taken_back, "taken back", a, event, to);
	check_place(a, event, &after);
	if (step_count < MAX_STEPS)
		steps[step_count++] = (Step) {event, after};
	else
		complain(&faults.overfull, "no room", a, event, to);
}

static void
send(const Action *a, ArEvent event)
{
	Action		after = *a;

	if (a->count >= attempt_limit)
		return;
	after.attempts[after.count++] = AR_SUBMITTED;
	take(a, after, event, AR_SUBMITTED, false);
}

/* The database was armed anew: another copy of it may have sent it, which is one more attempt that nobody knows the end of. */
static void
presume(const Action *a)
{
	Action		after = *a;

	if (a->count >= attempt_limit)
		return;
	after.attempts[after.count++] = AR_OUTCOME_UNKNOWN;
	take(a, after, AR_EVENT_PRESUME, AR_OUTCOME_UNKNOWN, false);
	take(a, after, AR_EVENT_PRESUME, AR_MANUAL_REVIEW, false);
}

/* What is waiting: it is sent, looked at first, or withdrawn; what somebody keeps back is only withdrawn. */
static void
leave_planned(const Action *a)
{
	if (!a->held)
	{
		send(a, AR_EVENT_CLAIM);
		take(a, *a, AR_EVENT_LOOK_AGAIN, AR_RECONCILING, true);
	}
	presume(a);
	take(a, *a, AR_EVENT_EXPIRE, AR_EXPIRED, false);
	/* What has been tried is not withdrawn because of another action. */
	if (a->count == 0)
		take(a, *a, AR_EVENT_DEPENDENCY_FAILED, AR_CANCELLED, false);
}

/* The attempt under way ends so, and the action goes there. */
static void
end_attempt(const Action *a, ArEvent event, ArState attempt_to, ArState to)
{
	Action		after = *a;

	settle_all(a, &after, AR_SUBMITTED, event, attempt_to);
	take(a, after, event, to, to == AR_PLANNED);
}

/* What an end says, it says about its own attempt: others that may have happened keep the action open. */
static void
leave_submitted(const Action *a)
{
	bool		others = count_in(a, AR_OUTCOME_UNKNOWN) > 0;

	end_attempt(a, AR_EVENT_NOT_SENT, AR_SAFE_TO_RETRY, others ? AR_OUTCOME_UNKNOWN : AR_PLANNED);
	end_attempt(a, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY, others ? AR_OUTCOME_UNKNOWN : AR_PLANNED);
	end_attempt(a, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED, others ? AR_OUTCOME_UNKNOWN : AR_REJECTED);
	end_attempt(a, AR_EVENT_ANSWERED_ACCEPTED, AR_SUCCEEDED, AR_SUCCEEDED);
	end_attempt(a, AR_EVENT_ANSWERED_ASYNC, AR_DELIVERED, AR_DELIVERED);
	end_attempt(a, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED, AR_DELIVERED);
	end_attempt(a, AR_EVENT_KEY_MISMATCH, AR_OUTCOME_UNKNOWN, AR_MANUAL_REVIEW);
	end_attempt(a, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN, AR_OUTCOME_UNKNOWN);
	end_attempt(a, AR_EVENT_RECOVER, AR_OUTCOME_UNKNOWN, AR_OUTCOME_UNKNOWN);
	if (others)
	{
		/* The stored reply to the same request: it is the reply to the attempts before, too. */
		Action		after = *a;

		settle_all(a, &after, AR_SUBMITTED, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED);
		settle_all(a, &after, AR_OUTCOME_UNKNOWN, AR_EVENT_REPLAYED, AR_REJECTED);
		take(a, after, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED, false);
	}
}

/* One attempt in that state, whichever, is credited with having come to another. */
static void
credit(const Action *a, ArState credited, ArEvent event, ArState to)
{
	for (int i = 0; i < a->count; i++)
	{
		Action		after = *a;

		if (a->attempts[i] != credited)
			continue;
		settle(a, &after, i, event, to);
		take(a, after, event, to, false);
	}
}

/* What was found is credited to one attempt in that state; there may be a verdict to wait for. */
static void
find(const Action *a, ArState credited)
{
	credit(a, credited, AR_EVENT_FOUND, AR_SUCCEEDED);
	credit(a, credited, AR_EVENT_FOUND, AR_DELIVERED);
}

static void
leave_unknown(const Action *a)
{
	presume(a);
	take(a, *a, AR_EVENT_ASK, AR_RECONCILING, false);
	take(a, *a, AR_EVENT_NO_QUERY_SURFACE, AR_MANUAL_REVIEW, false);
	send(a, AR_EVENT_RESEND);
}

/* Asked about what may have happened. */
static void
leave_reconciling(const Action *a)
{
	Action		absent = *a;

	find(a, AR_OUTCOME_UNKNOWN);
	take(a, *a, AR_EVENT_ABSENT_ONCE, AR_OUTCOME_UNKNOWN, false);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_OUTCOME_UNKNOWN, false);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_MANUAL_REVIEW, false);
	take(a, *a, AR_EVENT_RECOVER, AR_OUTCOME_UNKNOWN, false);
	settle_all(a, &absent, AR_OUTCOME_UNKNOWN, AR_EVENT_ABSENT, AR_SAFE_TO_RETRY);
	if (count_in(a, AR_REJECTED) > 0)
		take(a, absent, AR_EVENT_ABSENT, AR_REJECTED, false);
	else
	{
		take(a, absent, AR_EVENT_ABSENT, AR_SAFE_TO_RETRY, false);
		take(a, absent, AR_EVENT_ABSENT, AR_PLANNED, true);
	}
}

/* Asked for the sake of what is queued: what was thought not to have happened may be found after all. */
static void
leave_second_look(const Action *a)
{
	find(a, AR_SAFE_TO_RETRY);
	take(a, *a, AR_EVENT_RECOVER, AR_PLANNED, true);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_PLANNED, true);
	take(a, *a, AR_EVENT_LOOKED_BEFORE, AR_PLANNED, true);
	take(a, *a, AR_EVENT_ABSENT, AR_PLANNED, true);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_SAFE_TO_RETRY, false);
}

static void
leave_delivered(const Action *a)
{
	Action		accepted = *a;
	Action		rejected = *a;

	find(a, AR_DELIVERED);
	take(a, *a, AR_EVENT_NO_QUERY_SURFACE, AR_MANUAL_REVIEW, false);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_DELIVERED, false);
	take(a, *a, AR_EVENT_INCONCLUSIVE, AR_MANUAL_REVIEW, false);
	take(a, *a, AR_EVENT_OVERDUE, AR_MANUAL_REVIEW, false);
	settle_all(a, &accepted, AR_DELIVERED, AR_EVENT_POLL_ACCEPTED, AR_SUCCEEDED);
	take(a, accepted, AR_EVENT_POLL_ACCEPTED, AR_SUCCEEDED, false);
	/* Attempts with one key are one request to the provider: its verdict is about all of them. */
	settle_all(a, &rejected, AR_OUTCOME_UNKNOWN, AR_EVENT_POLL_REJECTED, AR_REJECTED);
	settle_all(a, &rejected, AR_DELIVERED, AR_EVENT_POLL_REJECTED, AR_REJECTED);
	take(a, rejected, AR_EVENT_POLL_REJECTED, AR_REJECTED, false);
}

static void
step_by_engine(const Action *a)
{
	switch (a->state)
	{
		case AR_PLANNED:
			leave_planned(a);
			break;
		case AR_SUBMITTED:
			leave_submitted(a);
			break;
		case AR_OUTCOME_UNKNOWN:
			leave_unknown(a);
			break;
		case AR_RECONCILING:
			if (a->queued)
				leave_second_look(a);
			else
				leave_reconciling(a);
			break;
		case AR_DELIVERED:
			leave_delivered(a);
			break;
		case AR_MANUAL_REVIEW:
		case AR_SAFE_TO_RETRY:
		case AR_SUCCEEDED:
		case AR_REJECTED:
		case AR_CANCELLED:
		case AR_EXPIRED:
		case AR_ABANDONED:
			break;
	}
}

#endif							/* AR_TEST_LIFECYCLE_MODEL_H */
