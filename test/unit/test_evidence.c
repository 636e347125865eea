/*
 * test_evidence.c
 *		What one answer to a lookup proves, and how many make an absence.
 */
#include "tap.h"

#include "core/evidence.h"

/* Facts of a clean answer on which everything depends in the tests below. */
static const ArLookupFacts clean_list = {
	.answered = true,.body_trusted = true,.found_status = true,.shape_ok = true,
	.gates_open = true,.version_unchanged = true,
};

static const ArLookupFacts clean_404 = {
	.answered = true,.body_trusted = true,.absent_status = true,.shape_ok = true,
	.gates_open = true,.version_unchanged = true,
};

static void
check(const char *name, ArLookupFacts facts, const char *expected)
{
	const char *reason = NULL;
	ArLookupResult result = ar_lookup_judge(&facts, &reason);

	is_str(ar_lookup_result_name(result), expected, name);
	ok(reason != NULL && reason[0] != '\0', "%s: a reason is given", name);
}

/* One deviation from a clean answer at a time. */
static void
test_cases(void)
{
	ArLookupFacts facts;

#define WITH(clean, ...) (facts = (clean), __VA_ARGS__, facts)
	check("one match", WITH(clean_list, facts.matches = 1), "found");
	check("one match inside the window",
		  WITH(clean_list, facts.matches = 1, facts.gates_open = false), "found");
	check("one match, action changed meanwhile",
		  WITH(clean_list, facts.matches = 1, facts.version_unchanged = false), "found");
	check("one match of another action",
		  WITH(clean_list, facts.matches = 1, facts.owned_by_other = true), "inconclusive");
	check("two matches", WITH(clean_list, facts.matches = 2), "ambiguous");
	check("many matches", WITH(clean_list, facts.matches = 1000), "ambiguous");
	check("an empty list", clean_list, "absent");
	check("a status that means absence", clean_404, "absent");
	check("a status that means absence, with a page of its own",
		  WITH(clean_404, facts.shape_ok = false), "absent");
	/* "Nothing by the name of ...": an error page is no object, whatever it repeats. */
	check("a status that means absence, its page repeats the reference",
		  WITH(clean_404, facts.matches = 1), "absent");
	check("the same, several times", WITH(clean_404, facts.matches = 3), "absent");
	check("the same, of another action",
		  WITH(clean_404, facts.matches = 1, facts.owned_by_other = true), "absent");
	check("the same inside the window",
		  WITH(clean_404, facts.matches = 1, facts.gates_open = false), "inconclusive");
	check("a cut page of absence", WITH(clean_404, facts.body_trusted = false), "inconclusive");
	check("an empty list inside the window",
		  WITH(clean_list, facts.gates_open = false), "inconclusive");
	check("absence by status inside the window",
		  WITH(clean_404, facts.gates_open = false), "inconclusive");
	check("an empty list, action changed meanwhile",
		  WITH(clean_list, facts.version_unchanged = false), "inconclusive");
	check("absence by status, action changed meanwhile",
		  WITH(clean_404, facts.version_unchanged = false), "inconclusive");
	check("no answer", WITH(clean_list, facts.answered = false), "inconclusive");
	check("no answer, a match in what came",
		  WITH(clean_list, facts.answered = false, facts.matches = 1), "inconclusive");
	check("a status that means nothing here",
		  WITH(clean_list, facts.found_status = false), "inconclusive");
	check("a status that means nothing here, its page repeats the reference",
		  WITH(clean_list, facts.found_status = false, facts.matches = 1), "inconclusive");
	check("a cut list", WITH(clean_list, facts.body_trusted = false), "inconclusive");
	check("a list of another form", WITH(clean_list, facts.shape_ok = false), "inconclusive");
	check("a match in a cut list",
		  WITH(clean_list, facts.matches = 1, facts.body_trusted = false), "inconclusive");
	check("a match in a list of another form",
		  WITH(clean_list, facts.matches = 1, facts.shape_ok = false), "inconclusive");
#undef WITH
}

/* The facts of combination n, of 2^8 times four numbers of matches. */
static ArLookupFacts
facts_of(int n)
{
	ArLookupFacts facts = {
		.answered = n & 1,.body_trusted = n & 2,.found_status = n & 4,
		.absent_status = n & 8,.shape_ok = n & 16,.owned_by_other = n & 32,
		.gates_open = n & 64,.version_unchanged = n & 128,.matches = n >> 8,
	};

	return facts;
}

/*
 * The promises over all combinations.  Nothing is proven by an answer that is
 * not complete; absence needs the window and an unmoved action; what was seen
 * is never called absent, and only a status to find with can show anything.
 */
static void
test_promises(void)
{
	int			hollow = 0;
	int			early = 0;
	int			blind = 0;
	int			stolen = 0;
	int			guessed = 0;
	int			imagined = 0;
	int			missed = 0;
	int			unexplained = 0;

	for (int n = 0; n < 256 * 4; n++)
	{
		ArLookupFacts facts = facts_of(n);
		const char *reason = NULL;
		ArLookupResult result = ar_lookup_judge(&facts, &reason);
		bool		proves = result != AR_LOOKUP_INCONCLUSIVE;
		bool		absent = result == AR_LOOKUP_ABSENT;

		hollow += proves && (!facts.answered || (!facts.found_status && !facts.absent_status));
		hollow += proves && facts.found_status && (!facts.body_trusted || !facts.shape_ok);
		early += absent && (!facts.gates_open || !facts.version_unchanged);
		blind += absent && facts.found_status && facts.matches > 0;
		imagined += proves && !absent && !facts.found_status;
		missed += !proves && facts.answered && facts.body_trusted && facts.found_status &&
			facts.shape_ok && facts.matches > 0 && !facts.owned_by_other;
		stolen += result == AR_LOOKUP_FOUND && facts.owned_by_other;
		guessed += result == AR_LOOKUP_FOUND && facts.matches != 1;
		guessed += result == AR_LOOKUP_AMBIGUOUS && facts.matches < 2;
		unexplained += reason == NULL;
	}
	is_int(hollow, 0, "an incomplete answer proves nothing");
	is_int(early, 0, "no absence inside the window or of an action that moved");
	is_int(blind, 0, "no absence of something that was seen");
	is_int(stolen, 0, "an object of another action is no evidence");
	is_int(guessed, 0, "found means exactly one, ambiguous means several");
	is_int(imagined, 0, "nothing is found in an answer that is no \"found\"");
	is_int(missed, 0, "what was seen in a clean answer counts at any time");
	is_int(unexplained, 0, "every judgement has its reason");
}

static void
test_required_negatives(void)
{
	static const struct
	{
		ArAbsenceRule rule;
		int			required;
		const char *name;
	}			rows[] = {
		{{.min_negatives = 1,.canary_known = true}, 1, "a known window"},
		{{.min_negatives = 1}, 2, "a known window, no canary"},
		{{.window_assumed = true,.min_negatives = 1,.canary_known = true}, 2, "an assumed window"},
		{{.window_assumed = true,.min_negatives = 1}, 3, "an assumed window, no canary"},
		{{.min_negatives = 4,.canary_known = true}, 4, "the operation asks for more"},
		{{.min_negatives = 4}, 5, "the operation asks for more, no canary"},
		{{.window_assumed = true,.min_negatives = 4,.canary_known = true}, 4,
		"the operation asks for more than an assumed window does"},
		{{.min_negatives = 0,.canary_known = true}, 1, "none is never enough"},
		{{.min_negatives = -5}, 2, "fewer than none neither"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_int(ar_required_negatives(&rows[i].rule), rows[i].required, rows[i].name);
}

int
main(void)
{
	test_cases();
	test_promises();
	test_required_negatives();
	return done_testing();
}
