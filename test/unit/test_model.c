/*
 * test_model.c
 *		The transition table walked: by every path of a bounded life, by long
 *		random lives, and as a graph of what leads where.
 *
 * The story of lifecycle_model.h and lifecycle_people.h has to fit through the table and its rules, and
 * wherever it leads the action stands where its attempts do.  Turned round: no
 * row of the table is there that the story does not need.
 */
#include "lifecycle_people.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- every path */

#define MAX_PLACES 20000

static Action places[MAX_PLACES];
static int	place_count;

static int
by_state(const void *a, const void *b)
{
	return (int) *(const ArState *) a - (int) *(const ArState *) b;
}

/* In which order attempts came to their states does not matter. */
static bool
is_same(const Action *a, const Action *b)
{
	return a->state == b->state && a->standing == b->standing && a->queued == b->queued && a->held == b->held &&
		a->redacted == b->redacted && a->count == b->count &&
		memcmp(a->attempts, b->attempts, sizeof(a->attempts[0]) * a->count) == 0;
}

static void
arrive(Action place)
{
	qsort(place.attempts, place.count, sizeof(place.attempts[0]), by_state);
	for (int i = 0; i < place_count; i++)
	{
		if (is_same(&places[i], &place))
			return;
	}
	if (place_count < MAX_PLACES)
		places[place_count++] = place;
}

static Action
fresh_action(void)
{
	return (Action) {.state = AR_PLANNED,.standing = AR_PENDING_PENDING,.queued = true};
}

static void
report_faults(const char *where)
{
	struct
	{
		int			count;
		const char *promise;
	}			found[] = {
		{faults.no_row, "the table holds every step"},
		{faults.refused, "no standing and no queue is in the way"},
		{faults.unfolded, "the action stands where its attempts do"},
		{faults.sent_twice, "only a resend goes out while an earlier attempt may have happened"},
		{faults.withdrawn, "nothing is withdrawn, by a person, by time or for another action, once an attempt may have left"},
		{faults.lost, "nothing that may have happened is FAILED, or queued again"},
		{faults.unproven, "no attempt is called not done but by proof, or by a person's decision"},
		{faults.taken_back, "no confirmation is taken back"},
		{faults.crowded, "a submitted action has one attempt under way, and no other has any"},
		{faults.overfull, "every step was looked at"},
	};

	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		ok(found[i].count == 0, "%s: %s", where, found[i].promise);
}

static void
test_every_path(void)
{
	int			walked = 0;
	int			trodden[AR_STATE_COUNT] = {0};

	memset(&faults, 0, sizeof(faults));
	attempt_limit = 5;
	place_count = 0;
	arrive(fresh_action());
	for (int i = 0; i < place_count; i++)
	{
		Action		place = places[i];

		trodden[place.state]++;
		find_steps(&place);
		walked += step_count;
		for (int s = 0; s < step_count; s++)
			arrive(steps[s].after);
	}
	diag("%d places, %d steps", place_count, walked);
	ok(place_count > 200 && place_count < MAX_PLACES, "all the places there are were seen");
	for (int i = 0; i < AR_STATE_COUNT; i++)
		ok(trodden[i] > 0, "%s is a part of the story", ar_state_name((ArState) i));
	report_faults("every path");
}

/* A row that no story needs is a hole in the fence. */
static void
test_rows_are_needed(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			unused = 0;

	ok(count <= MAX_ROWS, "there is room for all rows");
	for (int i = 0; i < count; i++)
	{
		if (row_used[i] != rows[i].subject && unused++ < 10)
			diag("not needed for the %s: %s by %s to %s", rows[i].subject & ~row_used[i] & AR_OF_ACTION ? "action" : "attempt",
				 ar_state_name(rows[i].from), ar_event_name(rows[i].event), ar_state_name(rows[i].to));
	}
	is_int(unused, 0, "every row of the table is needed, for all that it is for");
}

/* ---------------------------------------------------------------- long lives */

/* The same numbers in every run. */
static unsigned int
next_number(unsigned int *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

/* Can it still come to another attempt? */
static bool
is_open(const Action *a)
{
	return ar_resolved_status(a->standing) == AR_STATUS_DENIED_UNRESOLVED && a->state != AR_DELIVERED &&
		!(a->state == AR_MANUAL_REVIEW && a->standing == AR_CONFIRMED_PENDING);
}

/* A step at random: often another attempt, most often one after which life goes on. */
static const Step *
pick(unsigned int *seed)
{
	const Step *step = &steps[next_number(seed) % step_count];

	for (int i = 0; i < step_count; i++)
	{
		if (steps[i].after.state == AR_SUBMITTED && next_number(seed) % 4 == 0)
			return &steps[i];
	}
	for (int again = 0; again < 8; again++)
	{
		if (is_open(&step->after))
			break;
		step = &steps[next_number(seed) % step_count];
	}
	return step;
}

static void
test_long_lives(void)
{
	unsigned int seed = 20260810;
	int			walked = 0;
	int			longest = 0;
	int			many = 0;

	memset(&faults, 0, sizeof(faults));
	attempt_limit = MAX_ATTEMPTS;
	for (int life = 0; life < 8000; life++)
	{
		Action		a = fresh_action();
		int			length = 0;

		for (; length < 120; length++)
		{
			find_steps(&a);
			if (step_count == 0)
				break;
			a = pick(&seed)->after;
		}
		walked += length;
		if (length > longest)
			longest = length;
		many += a.count > 4;
	}
	diag("%d steps, the longest life had %d, %d lives had more than 4 attempts", walked, longest, many);
	ok(walked > 100000 && longest > 50 && many > 100, "the lives are long");
	report_faults("long lives");
}

/* ---------------------------------------------------------------- what leads where */

/* What the guard sees of an action, without its attempts: state, standing, queue. */
#define PLACES (AR_STATE_COUNT * (AR_STANDING_LAST + 1) * 2)

static int
place_of(ArState state, ArStanding standing, bool queued)
{
	return ((int) state * (AR_STANDING_LAST + 1) + (int) standing) * 2 + queued;
}

/* A set of events; they are fewer than its bits. */
#define EVENT(event) (UINT64_C(1) << (event))

/* The row taken from every place that is reached; true if it leads to a new one. */
static bool
extend(const ArTransition *row, bool *reached)
{
	bool		grown = false;

	for (int n = 0; n < AR_STANDING_LAST * 4; n++)
	{
		ArStanding	before = (ArStanding) (AR_STANDING_FIRST + n / 4);
		ArStanding	after = ar_state_standing(row->to, before);
		bool		was = n & 1;
		bool		is = n & 2;

		if (!reached[place_of(row->from, before, was)] || reached[place_of(row->to, after, is)] ||
			!standing_passes(before, row->event, row->to, after) || !ar_queue_may_become(was, row->event, row->to, is))
			continue;
		reached[place_of(row->to, after, is)] = grown = true;
	}
	return grown;
}

/* Everything that legal steps lead to from there, without the events that are left out. */
static void
reach(ArState start, uint64_t left_out, bool *reached)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	bool		grown = true;

	memset(reached, 0, PLACES * sizeof(bool));
	reached[place_of(start, ar_state_standing(start, AR_PENDING_PENDING), start == AR_PLANNED)] = true;
	while (grown)
	{
		grown = false;
		for (int i = 0; i < count; i++)
		{
			if ((rows[i].subject & AR_OF_ACTION) != 0 && (left_out & EVENT(rows[i].event)) == 0)
				grown |= extend(&rows[i], reached);
		}
	}
}

static bool
leads_to(const bool *reached, ArState state)
{
	for (int i = 0; i < (AR_STANDING_LAST + 1) * 2; i++)
	{
		if (reached[place_of(state, 0, false) + i])
			return true;
	}
	return false;
}

/* The events of the rows that a person may take, or that only the engine may. */
static uint64_t
events_of(ArStepActor actor)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	uint64_t	events = 0;

	for (int i = 0; i < count; i++)
	{
		if (rows[i].actor == actor)
			events |= EVENT(rows[i].event);
	}
	return events;
}

/* How many of the states that mean "it did not happen", or will be sent, can be come to. */
static int
ways_out(const bool *reached)
{
	return leads_to(reached, AR_PLANNED) + leads_to(reached, AR_CANCELLED) + leads_to(reached, AR_EXPIRED) +
		leads_to(reached, AR_ABANDONED) + leads_to(reached, AR_SAFE_TO_RETRY);
}

/*
 * The guard reads no other table, so it cannot know the attempts; but whatever
 * they are, without proof, or a person's decision, none of this is possible.
 */
static void
test_unknown_stays(void)
{
	static const ArState unknown[] = {AR_OUTCOME_UNKNOWN, AR_RECONCILING, AR_MANUAL_REVIEW};
	const uint64_t absence = EVENT(AR_EVENT_ABSENT) | EVENT(AR_EVENT_RESOLVE);
	const uint64_t proofs = absence | EVENT(AR_EVENT_NOT_SENT) | EVENT(AR_EVENT_NOT_EXECUTED);
	bool		reached[PLACES];

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
	{
		const char *name = ar_state_name(unknown[i]);

		reach(unknown[i], EVENT(AR_EVENT_RESEND) | absence, reached);
		ok(!leads_to(reached, AR_SUBMITTED), "from %s nothing is sent without a resend, an absence or a decision", name);
		is_int(ways_out(reached), 0, "nor is it queued, withdrawn or called not done");
		reach(unknown[i], proofs, reached);
		ok(leads_to(reached, AR_SUBMITTED), "from %s a resend may follow", name);
		is_int(ways_out(reached), 0, "but without proof or a decision it is never queued, withdrawn or called not done");
	}
	reach(AR_DELIVERED, 0, reached);
	ok(!leads_to(reached, AR_SUBMITTED) && ways_out(reached) == 0,
	   "what the provider has taken is never sent again, withdrawn or called not done");
}

/* One step to submitted from each state: by a claim of what is queued, by a resend of what is unknown. */
static void
test_ways_to_send(void)
{
	for (int from = 0; from < AR_STATE_COUNT; from++)
		for (int event = 0; event < AR_EVENT_COUNT; event++)
		{
			bool		may = (from == AR_PLANNED && event == AR_EVENT_CLAIM) ||
				(from == AR_OUTCOME_UNKNOWN && event == AR_EVENT_RESEND);

			if (may || ar_transition_find(AR_OF_ACTION, (ArState) from, (ArEvent) event, AR_SUBMITTED) != NULL)
				ok(may, "%s by %s sends", ar_state_name((ArState) from), ar_event_name((ArEvent) event));
		}
}

/* What can be made of each state without the engine; the state itself goes without saying. */
static const struct
{
	ArState		state;
	ArState		by_wish[3];		/* by who only wants something; ends with the state itself */
	const char *by_all;			/* by who also brings words of the provider, or decides */
}			made_by_people[] = {
	{AR_PLANNED, {AR_CANCELLED, AR_PLANNED}, "cancelled delivered succeeded rejected"},
	{AR_SUBMITTED, {AR_SUBMITTED}, ""},
	{AR_OUTCOME_UNKNOWN, {AR_OUTCOME_UNKNOWN}, "delivered succeeded rejected safe_to_retry planned cancelled abandoned"},
	{AR_RECONCILING, {AR_RECONCILING}, "delivered succeeded rejected"},
	{AR_MANUAL_REVIEW, {AR_OUTCOME_UNKNOWN, AR_MANUAL_REVIEW},
	"outcome_unknown delivered succeeded rejected safe_to_retry planned cancelled abandoned"},
	{AR_DELIVERED, {AR_DELIVERED}, "succeeded rejected"},
	{AR_SUCCEEDED, {AR_SUCCEEDED}, ""},
	{AR_REJECTED, {AR_REJECTED}, "succeeded"},
	{AR_SAFE_TO_RETRY, {AR_PLANNED, AR_CANCELLED, AR_ABANDONED}, "planned cancelled abandoned delivered succeeded rejected"},
	{AR_CANCELLED, {AR_CANCELLED}, "delivered succeeded rejected"},
	{AR_EXPIRED, {AR_EXPIRED}, "delivered succeeded rejected"},
	{AR_ABANDONED, {AR_ABANDONED}, "delivered succeeded rejected"},
};

static bool
is_wished(int i, ArState to)
{
	for (int k = 0; k < 3; k++)
	{
		if (made_by_people[i].by_wish[k] == to)
			return true;
		if (made_by_people[i].by_wish[k] == made_by_people[i].state)
			break;
	}
	return to == made_by_people[i].state;
}

/* Whole words only: no name of a state is part of another. */
static bool
is_made(int i, ArState to)
{
	return to == made_by_people[i].state || strstr(made_by_people[i].by_all, ar_state_name(to)) != NULL;
}

/* People alone never send; and only a word of the provider or a decision says what happened. */
static void
test_people(void)
{
	const uint64_t engine_only = events_of(AR_BY_ENGINE);
	const uint64_t words = EVENT(AR_EVENT_CONFIRM) | EVENT(AR_EVENT_REFUSE) | EVENT(AR_EVENT_RESOLVE);
	bool		wished[PLACES];
	bool		made[PLACES];

	is_int(sizeof(made_by_people) / sizeof(made_by_people[0]), AR_STATE_COUNT, "every state is told of");
	for (int i = 0; i < AR_STATE_COUNT; i++)
	{
		ArState		state = made_by_people[i].state;
		int			by_wish = 0;
		int			by_all = 0;

		reach(state, engine_only | words, wished);
		reach(state, engine_only, made);
		for (int to = 0; to < AR_STATE_COUNT; to++)
		{
			by_wish += leads_to(wished, (ArState) to) != is_wished(i, (ArState) to);
			by_all += leads_to(made, (ArState) to) != is_made(i, (ArState) to);
		}
		ok(by_wish == 0, "people: what they can make of %s by wishing", ar_state_name(state));
		ok(by_all == 0, "people: what they can make of %s by what they know", ar_state_name(state));
		ok(state == AR_SUBMITTED || !leads_to(made, AR_SUBMITTED), "people alone cannot send what is %s", ar_state_name(state));
	}
}

/* A review may be about what the provider has taken: then a decision is a verdict. */
static void
test_decisions(void)
{
	static const ArState ends[] = {AR_DELIVERED, AR_SUCCEEDED, AR_REJECTED, AR_SAFE_TO_RETRY};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		ArStanding	to = ar_state_standing(ends[i], AR_PENDING_PENDING);

		ok(ar_transition_find(AR_OF_ACTION, AR_MANUAL_REVIEW, AR_EVENT_RESOLVE, ends[i]) != NULL &&
		   standing_passes(AR_PENDING_PENDING, AR_EVENT_RESOLVE, ends[i], to), "a review may be decided: %s", ar_state_name(ends[i]));
		ok(standing_passes(AR_CONFIRMED_PENDING, AR_EVENT_RESOLVE, ends[i], to) == (ends[i] != AR_SAFE_TO_RETRY),
		   "what the provider has taken is not decided away: %s", ar_state_name(ends[i]));
	}
}

/* Wherever an action stands that is not settled, a way to every end that evidence may show is open. */
static void
test_no_dead_end(void)
{
	static const ArState ends[] = {AR_SUCCEEDED, AR_REJECTED, AR_SAFE_TO_RETRY};
	const uint64_t of_people = events_of(AR_BY_PERSON);
	bool		by_itself[PLACES];
	bool		with_people[PLACES];

	for (int from = 0; from < AR_STATE_COUNT; from++)
	{
		ArState		state = (ArState) from;
		bool		taken = state == AR_DELIVERED;
		int			closed = 0;
		int			hopeless = 0;

		if (ar_resolved_status(ar_state_standing(state, AR_PENDING_PENDING)) != AR_STATUS_DENIED_UNRESOLVED)
			continue;
		reach(state, of_people, by_itself);
		reach(state, 0, with_people);
		/* A review waits for people; what the provider has taken does not become "not done". */
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		{
			if (taken && ends[i] == AR_SAFE_TO_RETRY)
				continue;
			closed += !leads_to(by_itself, ends[i]);
			hopeless += !leads_to(with_people, ends[i]);
		}
		ok((closed == 0) == (state != AR_MANUAL_REVIEW), "%s %s", ar_state_name(state),
		   state == AR_MANUAL_REVIEW ? "waits for a person" : "can come to every end by itself");
		is_int(hopeless, 0, "and with people to every end");
	}
}

int
main(void)
{
	test_every_path();
	test_rows_are_needed();
	test_long_lives();
	test_ways_to_send();
	test_unknown_stays();
	test_people();
	test_decisions();
	test_no_dead_end();
	return done_testing();
}
