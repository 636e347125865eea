/*
 * evidence.c
 *		A "found" is evidence at any time, a "not found" only under conditions.
 */
#include "core/evidence.h"

#include <stddef.h>

/* The answer itself: is it one that this lookup can be judged by at all? */
static bool
answer_is_usable(const ArLookupFacts *facts, const char **reason)
{
	if (!facts->answered)
		*reason = "no complete answer to the question";
	else if (!facts->found_status && !facts->absent_status)
		*reason = "the status means neither found nor absent";
	else if (!facts->body_trusted)
		*reason = "the body may have been cut";
	else if (facts->found_status && !facts->shape_ok)
		*reason = "the body does not have the expected form";
	else
		return true;
	return false;
}

ArLookupResult
ar_lookup_judge(const ArLookupFacts *facts, const char **reason)
{
	if (!answer_is_usable(facts, reason))
		return AR_LOOKUP_INCONCLUSIVE;

	/* Only a status that can mean "found" is searched: an error page may repeat the reference. */
	if (facts->found_status && facts->matches > 1)
	{
		*reason = "several objects carry the reference";
		return AR_LOOKUP_AMBIGUOUS;
	}
	if (facts->found_status && facts->matches == 1)
	{
		if (facts->owned_by_other)
		{
			*reason = "the object belongs to another action";
			return AR_LOOKUP_INCONCLUSIVE;
		}
		*reason = "the object carries the full reference";
		return AR_LOOKUP_FOUND;
	}

	/* Nothing there: evidence only after the window, about an unmoved action. */
	if (!facts->gates_open)
		*reason = "asked inside the consistency window: a negative proves nothing";
	else if (!facts->version_unchanged)
		*reason = "the action changed while the question was open";
	else
	{
		*reason = "complete answer after the window, without the object";
		return AR_LOOKUP_ABSENT;
	}
	return AR_LOOKUP_INCONCLUSIVE;
}

/*
 * An assumed window needs a second look.  Without a canary, a surface that
 * lost its rights or its index looks just like an empty one: one more is asked.
 */
int
ar_required_negatives(const ArAbsenceRule *rule)
{
	int			required = rule->window_assumed ? 2 : 1;

	if (rule->min_negatives > required)
		required = rule->min_negatives;
	return rule->canary_known ? required : required + 1;
}

const char *
ar_lookup_result_name(ArLookupResult result)
{
	static const char *const names[] = {"found", "absent", "inconclusive", "ambiguous"};

	return names[result];
}
