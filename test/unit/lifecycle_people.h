/*
 * lifecycle_people.h
 *		What the provider may say unasked and what people may do, as the design
 *		tells it, and what then becomes of an action and of its attempts.
 *
 * Part of test_model.c, and written as lifecycle_model.h is.
 */
#ifndef AR_TEST_LIFECYCLE_PEOPLE_H
#define AR_TEST_LIFECYCLE_PEOPLE_H

#include "lifecycle_model.h"

/* ---------------------------------------------------------------- words of the provider */

/* It says unasked that it has it, or that it is done: for the attempt that most likely is meant. */
static void
hear_yes(const Action *a)
{
	if (a->state == AR_SUCCEEDED)
	{
		/* Another object than the one that is known: another attempt made it. What is known already is no step. */
		if (count_in(a, AR_OUTCOME_UNKNOWN) > 0)
			credit(a, AR_OUTCOME_UNKNOWN, AR_EVENT_CONFIRM, AR_SUCCEEDED);
		else
			credit(a, AR_SAFE_TO_RETRY, AR_EVENT_CONFIRM, AR_SUCCEEDED);
	}
	else if (a->state == AR_REJECTED)
	{
		/* Only "accepted", and newer, overturns a "no"; that it arrived is known. */
		credit(a, AR_REJECTED, AR_EVENT_CONFIRM, AR_SUCCEEDED);
		credit(a, AR_SAFE_TO_RETRY, AR_EVENT_CONFIRM, AR_SUCCEEDED);
	}
	else if (count_in(a, AR_DELIVERED) > 0)
		credit(a, AR_DELIVERED, AR_EVENT_CONFIRM, AR_SUCCEEDED);
	else
	{
		ArState		credited = count_in(a, AR_OUTCOME_UNKNOWN) > 0 ? AR_OUTCOME_UNKNOWN : AR_SAFE_TO_RETRY;

		credit(a, credited, AR_EVENT_CONFIRM, AR_SUCCEEDED);
		credit(a, credited, AR_EVENT_CONFIRM, AR_DELIVERED);
	}
}

/*
 * It says no to what it has.  Attempts that may have happened at one time carry
 * one key and are one request to it: it refuses all of them.
 */
static void
hear_no(const Action *a)
{
	Action		after = *a;

	settle_all(a, &after, AR_OUTCOME_UNKNOWN, AR_EVENT_REFUSE, AR_REJECTED);
	settle_all(a, &after, AR_DELIVERED, AR_EVENT_REFUSE, AR_REJECTED);
	take(a, after, AR_EVENT_REFUSE, AR_REJECTED, false);
}

/* Of what is being sent it is heard later; of what was never sent it cannot speak. */
static void
hear(const Action *a)
{
	if (a->state == AR_SUBMITTED || a->count == 0)
		return;
	hear_yes(a);
	if (a->state == AR_OUTCOME_UNKNOWN || a->state == AR_MANUAL_REVIEW || a->state == AR_DELIVERED ||
		(a->state == AR_RECONCILING && !a->queued))
		hear_no(a);
}

/* ---------------------------------------------------------------- people */

/* The decision of a person settles every attempt that is not settled. */
static void
decide(const Action *a, ArState attempts_to, ArState to)
{
	Action		after = *a;

	settle_all(a, &after, AR_OUTCOME_UNKNOWN, AR_EVENT_RESOLVE, attempts_to);
	/* That the provider has it can be added to, and not denied. */
	if (attempts_to == AR_SUCCEEDED || attempts_to == AR_REJECTED)
		settle_all(a, &after, AR_DELIVERED, AR_EVENT_RESOLVE, attempts_to);
	take(a, after, AR_EVENT_RESOLVE, to, false);
}

static void
resolve(const Action *a)
{
	decide(a, AR_SUCCEEDED, AR_SUCCEEDED);
	decide(a, AR_REJECTED, AR_REJECTED);
	if (a->standing == AR_CONFIRMED_PENDING)
		return;
	decide(a, AR_DELIVERED, AR_DELIVERED);
	/* What is left when the others did not happen is the "no" to one of them. */
	decide(a, AR_SAFE_TO_RETRY, count_in(a, AR_REJECTED) > 0 ? AR_REJECTED : AR_SAFE_TO_RETRY);
}

static void
redact(const Action *a)
{
	Action		after = *a;

	after.redacted = true;
	if (!a->redacted)
		take(a, after, AR_EVENT_REDACT, a->state, a->queued);
}

static void
hold_or_release(const Action *a)
{
	Action		after = *a;

	after.held = !a->held;
	take(a, after, a->held ? AR_EVENT_RELEASE : AR_EVENT_HOLD, AR_PLANNED, true);
}

static void
step_by_person(const Action *a)
{
	switch (a->state)
	{
		case AR_PLANNED:
			hold_or_release(a);
			take(a, *a, AR_EVENT_CANCEL, AR_CANCELLED, false);
			break;
		case AR_MANUAL_REVIEW:
			take(a, *a, AR_EVENT_LOOK_UP_NOW, a->standing == AR_CONFIRMED_PENDING ? AR_DELIVERED : AR_OUTCOME_UNKNOWN, false);
			resolve(a);
			break;
		case AR_OUTCOME_UNKNOWN:
		case AR_DELIVERED:
			resolve(a);
			break;
		case AR_SAFE_TO_RETRY:
			take(a, *a, AR_EVENT_REPLACE, AR_PLANNED, true);
			take(a, *a, AR_EVENT_ABANDON, AR_ABANDONED, false);
			break;
		case AR_SUCCEEDED:
		case AR_REJECTED:
		case AR_CANCELLED:
		case AR_EXPIRED:
		case AR_ABANDONED:
			redact(a);
			break;
		case AR_SUBMITTED:
		case AR_RECONCILING:
			break;
	}
}

/* Every step that may follow, into "steps". */
static void
find_steps(const Action *a)
{
	step_count = 0;
	step_by_engine(a);
	hear(a);
	step_by_person(a);
}

#endif							/* AR_TEST_LIFECYCLE_PEOPLE_H */
