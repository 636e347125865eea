/*
 * test_lifecycle.c
 *		The transition table, row by row and as a whole.
 *
 * The legal steps are written down once more, so that a change of the table
 * has to be made twice, knowingly.  Everything that is not listed here must be
 * refused.  The promises that no list of rows may break are in
 * lifecycle_promises.h.
 */
#include "tap.h"

#include "lifecycle_promises.h"

#define BOTH (AR_OF_ACTION | AR_OF_ATTEMPT)

/*
 * queue: what the step may do to the queue, "off", "on" and "kept" (queued
 * before and afterwards); without any of these nothing is queued before or
 * afterwards.  Attempts have no queue.
 */
static const struct
{
	int			subject;
	const char *from;
	const char *event;
	const char *to;
	const char *actor;
	const char *queue;
}			legal[] = {
	{ACTION, "planned", "claim", "submitted", "engine", "off"},
	{ACTION, "planned", "look_again", "reconciling", "engine", "kept"},
	{ACTION, "reconciling", "looked_before", "planned", "engine", "kept"},
	{ACTION, "outcome_unknown", "resend", "submitted", "engine", ""},
	{ACTION, "planned", "cancel", "cancelled", "person", "off"},
	{ACTION, "planned", "expire", "expired", "engine", "off"},
	{ACTION, "submitted", "not_sent", "planned", "engine", "on"},
	{ATTEMPT, "submitted", "not_sent", "safe_to_retry", "engine", ""},
	{ACTION, "submitted", "not_sent", "outcome_unknown", "engine", ""},
	{ACTION, "submitted", "not_executed", "planned", "engine", "on"},
	{ATTEMPT, "submitted", "not_executed", "safe_to_retry", "engine", ""},
	{ACTION, "submitted", "not_executed", "outcome_unknown", "engine", ""},
	{BOTH, "submitted", "answered_accepted", "succeeded", "engine", ""},
	{BOTH, "submitted", "answered_async", "delivered", "engine", ""},
	{BOTH, "submitted", "answered_unreadable", "delivered", "engine", ""},
	{BOTH, "submitted", "answered_rejected", "rejected", "engine", ""},
	{ACTION, "submitted", "answered_rejected", "outcome_unknown", "engine", ""},
	{ATTEMPT, "outcome_unknown", "replayed", "rejected", "engine", ""},
	{ACTION, "submitted", "key_mismatch", "manual_review", "engine", ""},
	{ATTEMPT, "submitted", "key_mismatch", "outcome_unknown", "engine", ""},
	{BOTH, "submitted", "answer_lost", "outcome_unknown", "engine", ""},
	{BOTH, "submitted", "recover", "outcome_unknown", "engine", ""},
	{ACTION, "planned", "presume", "outcome_unknown", "engine", "off"},
	{ACTION, "outcome_unknown", "presume", "outcome_unknown", "engine", ""},
	{ACTION, "planned", "presume", "manual_review", "engine", "off"},
	{ACTION, "outcome_unknown", "presume", "manual_review", "engine", ""},
	{ACTION, "outcome_unknown", "ask", "reconciling", "engine", ""},
	{ACTION, "outcome_unknown", "no_query_surface", "manual_review", "engine", ""},
	{ACTION, "delivered", "no_query_surface", "manual_review", "engine", ""},
	{ACTION, "reconciling", "recover", "outcome_unknown", "engine", "off"},
	{ACTION, "reconciling", "recover", "planned", "engine", "kept"},
	{BOTH, "delivered", "poll_accepted", "succeeded", "engine", ""},
	{BOTH, "delivered", "poll_rejected", "rejected", "engine", ""},
	{ATTEMPT, "outcome_unknown", "poll_rejected", "rejected", "engine", ""},
	{ACTION, "delivered", "overdue", "manual_review", "engine", ""},
	{ATTEMPT, "outcome_unknown", "found", "succeeded", "engine", ""},
	{ACTION, "reconciling", "found", "succeeded", "engine", "off"},
	{ATTEMPT, "outcome_unknown", "found", "delivered", "engine", ""},
	{ACTION, "reconciling", "found", "delivered", "engine", "off"},
	{BOTH, "delivered", "found", "delivered", "engine", ""},
	{ATTEMPT, "safe_to_retry", "found", "delivered", "engine", ""},
	{BOTH, "delivered", "found", "succeeded", "engine", ""},
	{ATTEMPT, "safe_to_retry", "found", "succeeded", "engine", ""},
	{ATTEMPT, "outcome_unknown", "absent", "safe_to_retry", "engine", ""},
	{ACTION, "reconciling", "absent", "safe_to_retry", "engine", "off"},
	{ACTION, "reconciling", "absent", "planned", "engine", "on kept"},
	{ACTION, "reconciling", "absent", "rejected", "engine", "off"},
	{ACTION, "reconciling", "absent_once", "outcome_unknown", "engine", "off"},
	{ACTION, "reconciling", "inconclusive", "outcome_unknown", "engine", "off"},
	{ACTION, "reconciling", "inconclusive", "manual_review", "engine", "off"},
	{ACTION, "reconciling", "inconclusive", "planned", "engine", "kept"},
	{ACTION, "reconciling", "inconclusive", "safe_to_retry", "engine", "only off"},
	{ACTION, "delivered", "inconclusive", "delivered", "engine", ""},
	{ACTION, "delivered", "inconclusive", "manual_review", "engine", ""},
	{ACTION, "manual_review", "look_up_now", "outcome_unknown", "person", ""},
	{ACTION, "manual_review", "look_up_now", "delivered", "person", ""},
	{ACTION, "safe_to_retry", "replace", "planned", "person", "on"},
	{ACTION, "planned", "dependency_failed", "cancelled", "engine", "off"},
	{BOTH, "outcome_unknown", "confirm", "succeeded", "person", ""},
	{BOTH, "outcome_unknown", "confirm", "delivered", "person", ""},
	{BOTH, "outcome_unknown", "refuse", "rejected", "person", ""},
	{ACTION, "reconciling", "confirm", "succeeded", "person", "off"},
	{ACTION, "reconciling", "confirm", "delivered", "person", "off"},
	{ACTION, "reconciling", "refuse", "rejected", "person", "off"},
	{ACTION, "manual_review", "confirm", "succeeded", "person", ""},
	{ACTION, "manual_review", "confirm", "delivered", "person", ""},
	{ACTION, "manual_review", "refuse", "rejected", "person", ""},
	{BOTH, "delivered", "confirm", "succeeded", "person", ""},
	{BOTH, "delivered", "refuse", "rejected", "person", ""},
	{ACTION, "planned", "confirm", "succeeded", "person", "off"},
	{ACTION, "planned", "confirm", "delivered", "person", "off"},
	{BOTH, "safe_to_retry", "confirm", "succeeded", "person", ""},
	{BOTH, "safe_to_retry", "confirm", "delivered", "person", ""},
	{ACTION, "cancelled", "confirm", "succeeded", "person", ""},
	{ACTION, "cancelled", "confirm", "delivered", "person", ""},
	{ACTION, "expired", "confirm", "succeeded", "person", ""},
	{ACTION, "expired", "confirm", "delivered", "person", ""},
	{ACTION, "abandoned", "confirm", "succeeded", "person", ""},
	{ACTION, "abandoned", "confirm", "delivered", "person", ""},
	{BOTH, "rejected", "confirm", "succeeded", "person", ""},
	{ACTION, "succeeded", "confirm", "succeeded", "person", ""},
	{ACTION, "planned", "hold", "planned", "person", "kept"},
	{ACTION, "planned", "release", "planned", "person", "kept"},
	{ACTION, "safe_to_retry", "abandon", "abandoned", "person", ""},
	{BOTH, "outcome_unknown", "resolve", "succeeded", "person", ""},
	{BOTH, "outcome_unknown", "resolve", "delivered", "person", ""},
	{BOTH, "outcome_unknown", "resolve", "rejected", "person", ""},
	{BOTH, "outcome_unknown", "resolve", "safe_to_retry", "person", ""},
	{ACTION, "manual_review", "resolve", "succeeded", "person", ""},
	{ACTION, "manual_review", "resolve", "delivered", "person", ""},
	{ACTION, "manual_review", "resolve", "rejected", "person", ""},
	{ACTION, "manual_review", "resolve", "safe_to_retry", "person", ""},
	{BOTH, "delivered", "resolve", "succeeded", "person", ""},
	{BOTH, "delivered", "resolve", "rejected", "person", ""},
	{ACTION, "succeeded", "redact", "succeeded", "person", ""},
	{ACTION, "rejected", "redact", "rejected", "person", ""},
	{ACTION, "cancelled", "redact", "cancelled", "person", ""},
	{ACTION, "expired", "redact", "expired", "person", ""},
	{ACTION, "abandoned", "redact", "abandoned", "person", ""},
};

#define LEGAL_COUNT (sizeof(legal) / sizeof(legal[0]))

/* The states of the design, with the standing each one has; NULL: two of them. */
static const struct
{
	const char *name;
	const char *standing;
}			states[] = {
	{"planned", "pending/pending"},
	{"submitted", "pending/pending"},
	{"outcome_unknown", "pending/pending"},
	{"reconciling", "pending/pending"},
	{"manual_review", NULL},
	{"delivered", "confirmed/pending"},
	{"succeeded", "confirmed/accepted"},
	{"rejected", "confirmed/rejected"},
	{"safe_to_retry", "failed/pending"},
	{"cancelled", "failed/pending"},
	{"expired", "failed/pending"},
	{"abandoned", "failed/pending"},
};

/* Looks a step up in the list above; -1 if it is not there. */
static int
find_legal(int subject, ArState from, ArEvent event, ArState to)
{
	for (size_t i = 0; i < LEGAL_COUNT; i++)
		if ((legal[i].subject & subject) != 0 &&
			strcmp(legal[i].from, ar_state_name(from)) == 0 &&
			strcmp(legal[i].event, ar_event_name(event)) == 0 &&
			strcmp(legal[i].to, ar_state_name(to)) == 0)
			return (int) i;
	return -1;
}

static void
test_rows(void)
{
	for (size_t i = 0; i < LEGAL_COUNT; i++)
	{
		ArState		from = 0;
		ArState		to = 0;
		ArEvent		event = 0;
		const ArTransition *row = NULL;

		if (ar_state_parse(legal[i].from, &from) && ar_state_parse(legal[i].to, &to) &&
			ar_event_parse(legal[i].event, &event))
			row = ar_transition_find(legal[i].subject, from, event, to);
		ok(row != NULL && row->subject == legal[i].subject &&
		   strcmp(ar_step_actor_name(row->actor), legal[i].actor) == 0,
		   "%s%s: %s by %s to %s", legal[i].subject & ACTION ? "action " : "",
		   legal[i].subject & ATTEMPT ? "attempt" : "", legal[i].from,
		   legal[i].event, legal[i].to);
	}
}

/* Every other (subject, state, event, state) is refused. */
static void
test_refused(void)
{
	int			wrong = 0;
	int			tried = 0;

	for (int subject = ACTION; subject <= ATTEMPT; subject++)
		for (int from = 0; from < AR_STATE_COUNT; from++)
			for (int event = 0; event < AR_EVENT_COUNT; event++)
			{
				bool		possible = false;

				for (int to = 0; to < AR_STATE_COUNT; to++, tried++)
				{
					bool		listed = find_legal(subject, (ArState) from, (ArEvent) event,
													(ArState) to) >= 0;
					bool		found = ar_transition_find(subject, (ArState) from, (ArEvent) event,
														   (ArState) to) != NULL;

					possible |= listed;
					if (listed != found && wrong++ < 5)
						diag("%s: %s by %s to %s is %s", subject == ACTION ? "action" : "attempt",
							 ar_state_name((ArState) from), ar_event_name((ArEvent) event),
							 ar_state_name((ArState) to), found ? "accepted" : "refused");
				}
				wrong += ar_event_is_possible(subject, (ArState) from, (ArEvent) event) != possible;
			}
	diag("%d steps tried", tried);
	is_int(wrong, 0, "what is not listed is refused");
}

/* May the row leave an action unqueued that was unqueued? Only one whose ends do not imply the queue. */
static bool
may_ignore_queue(const char *from, const char *to, const char *queue)
{
	return strcmp(from, "planned") != 0 && strcmp(to, "planned") != 0 && strncmp(queue, "only", 4) != 0;
}

/* What each row may do to the queue, and nothing else. */
static void
test_queue(void)
{
	for (size_t i = 0; i < LEGAL_COUNT; i++)
	{
		const char *queue = legal[i].queue;
		ArState		to = 0;
		ArEvent		event = 0;
		int			wrong = 0;

		if ((legal[i].subject & ACTION) == 0)
			continue;
		ar_state_parse(legal[i].to, &to);
		ar_event_parse(legal[i].event, &event);
		for (int queues = 0; queues < 4; queues++)
		{
			bool		was = queues & 1;
			bool		is = queues & 2;
			bool		expected = is ? strstr(queue, was ? "kept" : "on") != NULL && strcmp(queue, "only off") != 0 :
				was ? strstr(queue, "off") != NULL : may_ignore_queue(legal[i].from, legal[i].to, queue);

			/* What is planned is queued; only what is reconciling may be either. */
			if (was != (strcmp(legal[i].from, "planned") == 0) && strcmp(legal[i].from, "reconciling") != 0)
				continue;
			wrong += ar_queue_may_become(was, event, to, is) != expected;
		}
		ok(wrong == 0, "queue: %s by %s to %s: %s", legal[i].from, legal[i].event, legal[i].to,
		   queue[0] ? queue : "not concerned");
	}
}

static void
test_table_form(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			duplicates = 0;
	int			malformed = 0;
	bool		used[AR_EVENT_COUNT] = {false};

	is_int(count, LEGAL_COUNT, "as many rows as are listed");
	for (int i = 0; i < count; i++)
	{
		malformed += rows[i].subject < ACTION || rows[i].subject > BOTH;
		malformed += (int) rows[i].from < 0 || (int) rows[i].from >= AR_STATE_COUNT;
		malformed += (int) rows[i].to < 0 || (int) rows[i].to >= AR_STATE_COUNT;
		malformed += (int) rows[i].event < 0 || (int) rows[i].event >= AR_EVENT_COUNT;
		malformed += rows[i].evidence == NULL || rows[i].evidence[0] == '\0';
		malformed += rows[i].meaning == NULL || rows[i].meaning[0] == '\0';
		used[rows[i].event] = true;
		for (int j = 0; j < i; j++)
			duplicates += (rows[i].subject & rows[j].subject) != 0 &&
				rows[i].from == rows[j].from && rows[i].event == rows[j].event &&
				rows[i].to == rows[j].to;
	}
	is_int(duplicates, 0, "no step is listed twice");
	is_int(malformed, 0, "every row is complete: subject, states, event, evidence, meaning");
	for (int event = 0; event < AR_EVENT_COUNT; event++)
		ok(used[event], "event %s occurs", ar_event_name((ArEvent) event));
}

/* Marks what the given subject can reach from a state. */
static void
reach(int subject, ArState start, bool reached[AR_STATE_COUNT])
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	bool		grown = true;

	reached[start] = true;
	while (grown)
	{
		grown = false;
		for (int i = 0; i < count; i++)
			if ((rows[i].subject & subject) != 0 && reached[rows[i].from] && !reached[rows[i].to])
				grown = reached[rows[i].to] = true;
	}
}

/* Whether a step leads out of the state, to another one: by that event, or by any but that. */
static bool
has_exit(int subject, ArState state, ArEvent event, bool by_it)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);

	for (int i = 0; i < count; i++)
		if ((rows[i].subject & subject) != 0 && rows[i].from == state && rows[i].to != state && (rows[i].event == event) == by_it)
			return true;
	return false;
}

static void
test_reachability(void)
{
	bool		reached[AR_STATE_COUNT] = {false};
	bool		attempt[AR_STATE_COUNT] = {false};

	reach(ACTION, AR_PLANNED, reached);
	reach(ATTEMPT, AR_SUBMITTED, attempt);
	for (int i = 0; i < AR_STATE_COUNT; i++)
	{
		ArState		state = (ArState) i;
		bool		final = state == AR_SUCCEEDED || state == AR_REJECTED ||
			state == AR_CANCELLED || state == AR_EXPIRED || state == AR_ABANDONED;
		bool		onwards[AR_STATE_COUNT] = {false};

		ok(reached[i], "action: %s is reached from planned", ar_state_name(state));
		ok(has_exit(ACTION, state, AR_EVENT_CONFIRM, false) == !final, "action: %s %s", ar_state_name(state),
		   final ? "is final, but for a late yes" : "has an exit");
		/* What is under way is told of later. */
		ok(has_exit(ACTION, state, AR_EVENT_CONFIRM, true) == (state != AR_SUCCEEDED && state != AR_SUBMITTED),
		   "action: %s %s a late yes", ar_state_name(state),
		   state == AR_SUCCEEDED || state == AR_SUBMITTED ? "is not changed by" : "gives way to");
		reach(ACTION, state, onwards);
		ok(onwards[AR_SUCCEEDED], "action: %s can still succeed", ar_state_name(state));
	}
	for (int i = 0; i < AR_STATE_COUNT; i++)
	{
		ArState		state = (ArState) i;
		bool		has = state == AR_SUBMITTED || state == AR_OUTCOME_UNKNOWN ||
			state == AR_DELIVERED || state == AR_SUCCEEDED || state == AR_REJECTED ||
			state == AR_SAFE_TO_RETRY;

		ok(attempt[i] == has, "attempt: %s is %s", ar_state_name(state),
		   has ? "reached from submitted" : "no state of an attempt");
	}
}

static void
test_standings(void)
{
	for (int i = 0; i < AR_STATE_COUNT; i++)
	{
		ArState		state = (ArState) i;
		ArState		parsed = 0;
		int			wrong = 0;

		is_str(ar_state_name(state), states[i].name, states[i].name);
		ok(ar_state_parse(states[i].name, &parsed) && parsed == state, "its name reads back");
		for (int code = AR_STANDING_FIRST; code <= AR_STANDING_LAST; code++)
		{
			ArStanding	standing = (ArStanding) code;
			bool		allowed;

			if (states[i].standing == NULL)
				allowed = standing == AR_PENDING_PENDING || standing == AR_CONFIRMED_PENDING;
			else
				allowed = strcmp(ar_standing_name(standing), states[i].standing) == 0;
			wrong += ar_state_allows_standing(state, standing) != allowed;
			if (allowed)
				wrong += ar_state_standing(state, standing) != standing;
		}
		is_int(wrong, 0, "and it has the standing of the design");
	}
}

static void
test_names(void)
{
	static const char *const wrong[] = {"", "Planned", "planned ", "plan", "outcome-unknown",
	"CONFIRMED", "claim "};
	ArState		state = 0;
	ArEvent		event = 0;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(!ar_state_parse(wrong[i], &state) && !ar_event_parse(wrong[i], &event),
		   "text %zu is no state and no event", i);
	for (int i = 0; i < AR_EVENT_COUNT; i++)
		ok(ar_event_parse(ar_event_name((ArEvent) i), &event) && (int) event == i,
		   "event %s reads back", ar_event_name((ArEvent) i));
}

int
main(void)
{
	test_rows();
	test_refused();
	test_queue();
	test_table_form();
	test_reachability();
	test_standings();
	test_promises();
	test_names();
	return done_testing();
}
