/*
 * evidence.c
 *		A "found" is evidence at any time, a "not found" only under conditions.
 */
#include "core/evidence.h"

#include <stddef.h>
#include <string.h>

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

/* May "it is not there" be believed? */
static bool
negative_counts(const ArLookupFacts *facts, const char **reason)
{
	if (facts->incomplete)
		*reason = "the answer does not show everything";
	else if (!facts->gates_open)
		*reason = "asked inside the consistency window: a negative proves nothing";
	else if (!facts->version_unchanged)
		*reason = "the action changed while the question was open";
	else if (facts->canary_asked && !facts->canary_found)
		*reason = "the same lookup does not show an object that is known to be there";
	else
		return true;
	return false;
}

/* An object of ours is there, or it is not. */
static ArLookupResult
judge_create(const ArLookupFacts *facts, const char **reason)
{
	if (facts->matches + facts->candidates > 0 && facts->owned_by_other)
	{
		*reason = "the object belongs to another action";
		return AR_LOOKUP_INCONCLUSIVE;
	}
	if (facts->matches > 0)
	{
		*reason = facts->matches > 1 ? "several objects carry the reference" :
			facts->gone ? "the object carries the full reference, and has been removed since" :
			"the object carries the full reference";
		return AR_LOOKUP_FOUND;
	}
	if (facts->candidates == 1 && facts->candidate_is_unique)
	{
		*reason = "the one object with the values and the time of the attempt";
		return AR_LOOKUP_FOUND;
	}
	if (facts->candidates > 0)
	{
		*reason = "objects that may be ours, but none carries the reference";
		return AR_LOOKUP_AMBIGUOUS;
	}
	if (!negative_counts(facts, reason))
		return AR_LOOKUP_INCONCLUSIVE;
	*reason = "complete answer after the window, without the object";
	return AR_LOOKUP_ABSENT;
}

/* Turned round: what is still there was not deleted. */
static ArLookupResult
judge_delete(const ArLookupFacts *facts, const char **reason)
{
	bool		there = facts->matches + facts->candidates > 0 && !facts->gone;

	if (!negative_counts(facts, reason))
		return AR_LOOKUP_INCONCLUSIVE;
	if (there)
	{
		*reason = "what was to be deleted is still there";
		return AR_LOOKUP_ABSENT;
	}
	if (facts->before == AR_BEFORE_THERE)
	{
		*reason = "it was there before the send and is gone; not provably by us";
		return AR_LOOKUP_FOUND;
	}
	*reason = "it is not there, but nobody has seen that it was before the send";
	return AR_LOOKUP_AMBIGUOUS;
}

/* The object is as we wanted it, or as it was, or something that nobody can tell. */
static ArLookupResult
judge_update(const ArLookupFacts *facts, const char **reason)
{
	if (facts->matches + facts->candidates > 0 && !facts->gone)
	{
		*reason = "the object is as it was to become";
		return AR_LOOKUP_FOUND;
	}
	if (!negative_counts(facts, reason))
		return AR_LOOKUP_INCONCLUSIVE;
	if (facts->unchanged)
	{
		*reason = "the object is exactly as it was before the send";
		return AR_LOOKUP_ABSENT;
	}
	*reason = "the object is neither as it was nor as it was to become";
	return AR_LOOKUP_AMBIGUOUS;
}

ArLookupResult
ar_lookup_judge(const ArLookupFacts *facts, const char **reason)
{
	ArLookupFacts seen = *facts;

	if (!answer_is_usable(facts, reason))
		return AR_LOOKUP_INCONCLUSIVE;
	/* Only a status that can mean "found" shows anything: an error page may repeat the reference. */
	if (!facts->found_status)
	{
		seen.matches = seen.candidates = 0;
		seen.gone = seen.unchanged = seen.owned_by_other = false;
	}
	switch (facts->effect)
	{
		case AR_EFFECT_UPDATE:
			return judge_update(&seen, reason);
		case AR_EFFECT_DELETE:
			return judge_delete(&seen, reason);
		case AR_EFFECT_CREATE:
			break;
	}
	return judge_create(&seen, reason);
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

bool
ar_effect_parse(const char *name, ArEffect *effect)
{
	static const char *const names[] = {"create", "update", "delete"};

	for (int i = AR_EFFECT_CREATE; i <= AR_EFFECT_DELETE; i++)
	{
		if (strcmp(names[i], name) == 0)
		{
			*effect = (ArEffect) i;
			return true;
		}
	}
	return false;
}
