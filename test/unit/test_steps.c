/*
 * test_steps.c
 *		What a step may change besides the state: the queue and the standing.
 */
#include "tap.h"

#include "core/lifecycle.h"

/* Whether this event shows that nothing happened. */
static bool
proves_nothing_happened(ArEvent event)
{
	return event == AR_EVENT_NOT_SENT || event == AR_EVENT_NOT_EXECUTED ||
		event == AR_EVENT_ABSENT;
}

/*
 * What a step may make of the queue, in the words of the design: what is
 * planned is queued; while the provider is asked either may be, and nothing
 * else is queued.  Who comes onto the queue comes by proof that the attempt
 * before did not happen, or by a person's "replace".  What is taken off it for
 * want of fresh proof must have been on it: that is the old proof.
 */
static bool
queue_oracle(bool was, const char *event, const char *to, bool is)
{
	static const char *const enters[] = {"not_sent", "not_executed", "absent", "replace"};
	bool		may_enter = was;

	for (size_t i = 0; i < sizeof(enters) / sizeof(enters[0]); i++)
		may_enter |= strcmp(event, enters[i]) == 0;
	if (strcmp(event, "look_again") == 0 && !is)
		return false;			/* it is asked for the sake of what is queued */
	if (strcmp(to, "planned") == 0)
		return is && may_enter;
	if (strcmp(to, "reconciling") == 0)
		return !is || may_enter;
	if (strcmp(to, "safe_to_retry") == 0 && strcmp(event, "inconclusive") == 0)
		return !is && was;
	return !is;
}

/* Every (queued before, event, state, queued afterwards). */
static void
test_queue(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			wrong = 0;
	int			tried = 0;
	int			unproven = 0;
	int			stuck = 0;

	for (int event = 0; event < AR_EVENT_COUNT; event++)
		for (int to = 0; to < AR_STATE_COUNT; to++)
			for (int queues = 0; queues < 4; queues++, tried++)
			{
				bool		was = queues & 1;
				bool		is = queues & 2;
				const char *event_name = ar_event_name((ArEvent) event);
				const char *to_name = ar_state_name((ArState) to);
				bool		got = ar_queue_may_become(was, (ArEvent) event, (ArState) to, is);

				if (got != queue_oracle(was, event_name, to_name, is) && wrong++ < 5)
					diag("%squeued, %s to %s, %squeued is %s", was ? "" : "not ", event_name,
						 to_name, is ? "" : "not ", got ? "accepted" : "refused");
			}
	diag("%d steps of the queue tried", tried);
	is_int(wrong, 0, "the queue changes as it may and not otherwise");

	/* The rows of the table: none queues anything unproven, each is possible. */
	for (int i = 0; i < count; i++)
	{
		const ArTransition *row = &rows[i];
		bool		queued_from = row->from == AR_PLANNED;
		bool		open_from = row->from == AR_RECONCILING;
		bool		possible = false;

		if ((row->subject & AR_OF_ACTION) == 0)
			continue;
		for (int queues = 0; queues < 4; queues++)
		{
			bool		was = queues & 1;
			bool		is = queues & 2;

			if (!open_from && was != queued_from)
				continue;
			if (!ar_queue_may_become(was, row->event, row->to, is))
				continue;
			possible = true;
			unproven += is && !was && !proves_nothing_happened(row->event) &&
				row->event != AR_EVENT_REPLACE;
		}
		stuck += !possible;
	}
	is_int(unproven, 0, "no row queues what may have happened");
	is_int(stuck, 0, "every row can be taken");
}

/* Events that say something about the queue, the question or what is kept, and nothing about the world. */
static void
test_kept_standings(void)
{
	static const char *const keeps[] = {"claim", "resend", "recover", "presume", "key_mismatch", "ask", "look_again",
	"looked_before", "absent_once", "overdue", "look_up_now", "hold", "release", "redact"};
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			impossible = 0;

	for (int i = 0; i < AR_EVENT_COUNT; i++)
	{
		const char *name = ar_event_name((ArEvent) i);
		bool		expected = false;

		for (size_t k = 0; k < sizeof(keeps) / sizeof(keeps[0]); k++)
			expected |= strcmp(name, keeps[k]) == 0;
		ok(ar_event_keeps_standing((ArEvent) i) == expected, "event %s %s", name,
		   expected ? "keeps the standing" : "may change the standing");
	}
	for (int i = 0; i < count; i++)
	{
		bool		shared = false;

		for (int code = AR_STANDING_FIRST; code <= AR_STANDING_LAST; code++)
			shared |= ar_state_allows_standing(rows[i].from, (ArStanding) code) &&
				ar_state_allows_standing(rows[i].to, (ArStanding) code);
		impossible += ar_event_keeps_standing(rows[i].event) && !shared;
	}
	is_int(impossible, 0, "no row by such an event needs another standing");
}

/* Every row has a standing before and one after between which evidence may lead. */
static void
test_steps_of_standings(void)
{
	int			count;
	const ArTransition *rows = ar_transitions(&count);
	int			impossible = 0;
	int			taken_back = 0;

	for (int i = 0; i < count; i++)
	{
		bool		possible = false;

		for (int from = AR_STANDING_FIRST; from <= AR_STANDING_LAST; from++)
			for (int to = AR_STANDING_FIRST; to <= AR_STANDING_LAST; to++)
			{
				ArStanding	a = (ArStanding) from;
				ArStanding	b = (ArStanding) to;
				bool		may = ar_state_allows_standing(rows[i].from, a) &&
					ar_state_allows_standing(rows[i].to, b) && ar_standing_may_become(a, b);

				possible |= may;
				taken_back += may && ar_resolved_status(a) == AR_STATUS_CONFIRMED && a != b;
			}
		if (!possible && impossible++ < 5)
			diag("%s by %s to %s", ar_state_name(rows[i].from), ar_event_name(rows[i].event),
				 ar_state_name(rows[i].to));
	}
	is_int(impossible, 0, "every row can be taken with some standings");
	is_int(taken_back, 0, "and none takes back a confirmation");
}

int
main(void)
{
	test_queue();
	test_kept_standings();
	test_steps_of_standings();
	return done_testing();
}
