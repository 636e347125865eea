/*
 * evidence_promises.h
 *		The promises of ar_lookup_judge over every combination of facts: fourteen
 *		yes-or-no facts, three effects, three things known before the send, up to
 *		three matches and up to two candidates.
 *
 * Part of test_evidence.c.
 */
#ifndef AR_TEST_EVIDENCE_PROMISES_H
#define AR_TEST_EVIDENCE_PROMISES_H

#include "core/evidence.h"

#include "tap.h"

#define FACT_BITS	14
#define MATCHES		4
#define CANDIDATES	3
#define COMBINATIONS ((1 << FACT_BITS) * MATCHES * CANDIDATES * 9)

/* The facts of combination n. */
static ArLookupFacts
facts_of(int n)
{
	int			rest = n >> FACT_BITS;
	ArLookupFacts facts = {
		.answered = n & 1,.body_trusted = n & 2,.found_status = n & 4,.absent_status = n & 8,
		.shape_ok = n & 16,.incomplete = n & 32,.candidate_is_unique = n & 64,.gone = n & 128,
		.unchanged = n & 256,.owned_by_other = n & 512,.gates_open = n & 1024,
		.version_unchanged = n & 2048,.canary_asked = n & 4096,.canary_found = n & 8192,
		.matches = rest % MATCHES,.candidates = rest / MATCHES % CANDIDATES,
		.effect = (ArEffect) (rest / (MATCHES * CANDIDATES) % 3),
		.before = (ArBefore) (rest / (MATCHES * CANDIDATES * 3)),
	};

	return facts;
}

static ArLookupResult
judged(ArLookupFacts facts)
{
	const char *reason = NULL;

	return ar_lookup_judge(&facts, &reason);
}

/* Whole, of a status that means something, and as the rule expects it where it is to be read. */
static bool
can_be_read(const ArLookupFacts *f)
{
	return f->answered && f->body_trusted && (f->found_status ? f->shape_ok : f->absent_status);
}

/* After every window, about an action that has not moved, complete, on a surface that shows what is known. */
static bool
may_show_nothing(const ArLookupFacts *f)
{
	return f->gates_open && f->version_unchanged && !f->incomplete && (f->canary_found || !f->canary_asked);
}

/* How many times each promise was broken. */
typedef struct Broken
{
	int			hollow;
	int			early;
	int			blind;
	int			imagined;
	int			stolen;
	int			guessed;
	int			unsure;
	int			undeleted;
	int			still_there;
	int			unproven_update;
	int			changed;
	int			missed;
	int			undecided;
	int			swayed;
	int			unexplained;
} Broken;

static void
check_create(const ArLookupFacts *f, ArLookupResult result, Broken *broken)
{
	bool		by_reference = f->found_status && f->matches > 0;
	int			candidates = f->found_status ? f->candidates : 0;
	bool		by_values = candidates == 1 && f->candidate_is_unique;

	broken->blind += result == AR_LOOKUP_ABSENT && (by_reference || candidates > 0);
	broken->imagined += result != AR_LOOKUP_ABSENT && result != AR_LOOKUP_INCONCLUSIVE && !f->found_status;
	broken->guessed += result == AR_LOOKUP_FOUND && !by_reference && !by_values;
	broken->guessed += result == AR_LOOKUP_AMBIGUOUS && (by_reference || by_values || candidates == 0);
	broken->stolen += result != AR_LOOKUP_INCONCLUSIVE && f->owned_by_other && (by_reference || candidates > 0);
	broken->missed += result != AR_LOOKUP_FOUND && can_be_read(f) && !f->owned_by_other && (by_reference || by_values);
	broken->undecided += result != AR_LOOKUP_ABSENT && can_be_read(f) && may_show_nothing(f) &&
		!by_reference && candidates == 0;
}

static void
check_delete(const ArLookupFacts *f, ArLookupResult result, Broken *broken)
{
	bool		there = f->found_status && f->matches + f->candidates > 0 && !f->gone;
	bool		told = can_be_read(f) && may_show_nothing(f);

	broken->undeleted += result == AR_LOOKUP_FOUND && (there || f->before != AR_BEFORE_THERE || !may_show_nothing(f));
	broken->still_there += result == AR_LOOKUP_ABSENT && !there;
	broken->unsure += result == AR_LOOKUP_AMBIGUOUS && (there || f->before == AR_BEFORE_THERE || !may_show_nothing(f));
	broken->undecided += told && result != (there ? AR_LOOKUP_ABSENT : f->before == AR_BEFORE_THERE ? AR_LOOKUP_FOUND : AR_LOOKUP_AMBIGUOUS);
}

static void
check_update(const ArLookupFacts *f, ArLookupResult result, Broken *broken)
{
	bool		as_wanted = f->found_status && f->matches + f->candidates > 0 && !f->gone;
	bool		as_before = f->found_status && f->unchanged;
	bool		told = can_be_read(f) && may_show_nothing(f);

	broken->unproven_update += result == AR_LOOKUP_FOUND && !as_wanted;
	broken->changed += result == AR_LOOKUP_ABSENT && (!as_before || as_wanted);
	broken->unsure += result == AR_LOOKUP_AMBIGUOUS && (as_wanted || as_before || !may_show_nothing(f));
	broken->missed += result != AR_LOOKUP_FOUND && can_be_read(f) && as_wanted;
	broken->undecided += told && !as_wanted && result != (as_before ? AR_LOOKUP_ABSENT : AR_LOOKUP_AMBIGUOUS);
}

/* What must not sway a judgement does not: the same facts, but for those that say nothing here. */
static bool
is_swayed(const ArLookupFacts *f, ArLookupResult result)
{
	ArLookupFacts other = *f;

	if (!f->found_status)
	{
		other.matches = other.candidates = 0;
		other.gone = other.unchanged = other.owned_by_other = other.shape_ok = false;
	}
	if (f->effect != AR_EFFECT_DELETE)
		other.before = AR_BEFORE_UNKNOWN;
	/* What is changed or deleted is known from the action that made it. */
	if (f->effect != AR_EFFECT_CREATE)
		other.owned_by_other = other.candidate_is_unique = false;
	if (f->effect != AR_EFFECT_UPDATE)
		other.unchanged = false;
	if (f->effect == AR_EFFECT_CREATE)
		other.gone = false;
	return judged(other) != result;
}

static void
count_broken(Broken *broken)
{
	for (int n = 0; n < COMBINATIONS; n++)
	{
		ArLookupFacts facts = facts_of(n);
		const char *reason = NULL;
		ArLookupResult result = ar_lookup_judge(&facts, &reason);

		broken->hollow += result != AR_LOOKUP_INCONCLUSIVE && !can_be_read(&facts);
		broken->early += result == AR_LOOKUP_ABSENT && !may_show_nothing(&facts);
		if (facts.effect == AR_EFFECT_CREATE)
			check_create(&facts, result, broken);
		else if (facts.effect == AR_EFFECT_DELETE)
			check_delete(&facts, result, broken);
		else
			check_update(&facts, result, broken);
		broken->swayed += is_swayed(&facts, result);
		broken->unexplained += reason == NULL || reason[0] == '\0';
	}
}

/* Each reason belongs to one result: who reads the history need not know the facts. */
static void
test_reasons(void)
{
	const char *reasons[32] = {NULL};
	ArLookupResult results[32];
	int			count = 0;
	int			two_faced = 0;

	for (int n = 0; n < COMBINATIONS; n++)
	{
		ArLookupFacts facts = facts_of(n);
		const char *reason = NULL;
		ArLookupResult result = ar_lookup_judge(&facts, &reason);
		int			i = 0;

		while (i < count && strcmp(reasons[i], reason) != 0)
			i++;
		if (i == count && count < 32)
		{
			reasons[count] = reason;
			results[count++] = result;
		}
		else if (i < count)
			two_faced += results[i] != result;
	}
	is_int(two_faced, 0, "each reason is the reason of one result");
	is_int(count, 21, "as many reasons as are known");
}

static void
test_promises(void)
{
	Broken		broken = {0};

	count_broken(&broken);
	diag("%d combinations of facts", COMBINATIONS);
	is_int(broken.hollow, 0, "an answer that is not whole, or means nothing, proves nothing");
	is_int(broken.early, 0, "no absence inside a window, of an action that moved, in an incomplete list, without the canary");
	is_int(broken.blind, 0, "create: no absence of something that was seen");
	is_int(broken.imagined, 0, "create: nothing is seen in an answer that is no \"found\"");
	is_int(broken.stolen, 0, "create: an object of another action proves nothing");
	is_int(broken.guessed, 0, "create: found by the reference or as the only one there can be, else a person looks");
	is_int(broken.undeleted, 0, "delete: done only if it was there before, is not there, and every window has closed");
	is_int(broken.still_there, 0, "delete: not done only if it is seen");
	is_int(broken.unproven_update, 0, "update: done only if it is seen as it was to become");
	is_int(broken.changed, 0, "update: not done only if it is seen exactly as it was");
	is_int(broken.unsure, 0, "delete, update: a person looks only where nothing can be told");
	is_int(broken.missed, 0, "what was seen in a clean answer counts at any time");
	is_int(broken.undecided, 0, "what a clean answer after the window says is said");
	is_int(broken.swayed, 0, "no judgement is swayed by what says nothing here");
	is_int(broken.unexplained, 0, "every judgement has its reason");
	test_reasons();
}

#endif							/* AR_TEST_EVIDENCE_PROMISES_H */
