/*
 * test_evidence.c
 *		What one answer to a lookup proves, and how many make an absence.
 *
 * Single deviations from a clean answer first, for each of the three effects;
 * then the promises, over every combination of facts.
 */
#include "tap.h"

#include "core/evidence.h"
#include "evidence_promises.h"

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

#define WITH(clean, ...) (facts = (clean), __VA_ARGS__, facts)

static void
test_seen(void)
{
	ArLookupFacts facts;

	check("one match", WITH(clean_list, facts.matches = 1), "found");
	check("one match inside the window",
		  WITH(clean_list, facts.matches = 1, facts.gates_open = false), "found");
	check("one match, action changed meanwhile",
		  WITH(clean_list, facts.matches = 1, facts.version_unchanged = false), "found");
	check("one match in a list that is not complete",
		  WITH(clean_list, facts.matches = 1, facts.incomplete = true), "found");
	check("one match where no canary was seen",
		  WITH(clean_list, facts.matches = 1, facts.canary_asked = true), "found");
	check("one match of another action",
		  WITH(clean_list, facts.matches = 1, facts.owned_by_other = true), "inconclusive");
	check("one match that has been removed since",
		  WITH(clean_list, facts.matches = 1, facts.gone = true), "found");
	check("two matches", WITH(clean_list, facts.matches = 2), "found");
	check("many matches", WITH(clean_list, facts.matches = 1000), "found");
	check("two matches, one of another action",
		  WITH(clean_list, facts.matches = 2, facts.owned_by_other = true), "inconclusive");
	check("a match besides candidates",
		  WITH(clean_list, facts.matches = 1, facts.candidates = 5), "found");
	check("one candidate", WITH(clean_list, facts.candidates = 1), "ambiguous");
	check("the only candidate there can be",
		  WITH(clean_list, facts.candidates = 1, facts.candidate_is_unique = true), "found");
	check("two candidates where there can be only one",
		  WITH(clean_list, facts.candidates = 2, facts.candidate_is_unique = true), "ambiguous");
	check("the only candidate there can be, of another action",
		  WITH(clean_list, facts.candidates = 1, facts.candidate_is_unique = true, facts.owned_by_other = true),
		  "inconclusive");
	check("a candidate inside the window",
		  WITH(clean_list, facts.candidates = 1, facts.gates_open = false), "ambiguous");
}

static void
test_not_seen(void)
{
	ArLookupFacts facts;

	check("an empty list", clean_list, "absent");
	check("an empty list, and the canary was seen",
		  WITH(clean_list, facts.canary_asked = facts.canary_found = true), "absent");
	check("an empty list, and no canary either",
		  WITH(clean_list, facts.canary_asked = true), "inconclusive");
	check("an empty list that is not complete", WITH(clean_list, facts.incomplete = true), "inconclusive");
	check("a status that means absence", clean_404, "absent");
	check("a status that means absence, and so for the canary",
		  WITH(clean_404, facts.canary_asked = true), "inconclusive");
	check("a status that means absence, with a page of its own",
		  WITH(clean_404, facts.shape_ok = false), "absent");
	/* "Nothing by the name of ...": an error page is no object, whatever it repeats. */
	check("a status that means absence, its page repeats the reference",
		  WITH(clean_404, facts.matches = 1), "absent");
	check("the same, several times", WITH(clean_404, facts.matches = 3), "absent");
	check("the same, of another action",
		  WITH(clean_404, facts.matches = 1, facts.owned_by_other = true), "absent");
	check("the same, as a unique candidate",
		  WITH(clean_404, facts.candidates = 1, facts.candidate_is_unique = true), "absent");
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
}

static void
test_no_answer(void)
{
	ArLookupFacts facts;

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
}

static void
test_deletes(void)
{
	ArLookupFacts there = clean_list;
	ArLookupFacts gone = clean_404;
	ArLookupFacts facts;

	there.effect = gone.effect = AR_EFFECT_DELETE;
	there.before = gone.before = AR_BEFORE_THERE;
	there.matches = 1;
	check("delete: still there", there, "absent");
	check("delete: still there inside the window", WITH(there, facts.gates_open = false), "inconclusive");
	check("delete: still there, action changed meanwhile",
		  WITH(there, facts.version_unchanged = false), "inconclusive");
	check("delete: still there, known from another action", WITH(there, facts.owned_by_other = true), "absent");
	check("delete: still there by its values", WITH(there, facts.matches = 0, facts.candidates = 1), "absent");
	check("delete: still there, never seen before", WITH(there, facts.before = AR_BEFORE_UNKNOWN), "absent");
	check("delete: a tombstone", WITH(there, facts.gone = true), "found");
	check("delete: a tombstone of what nobody saw",
		  WITH(there, facts.gone = true, facts.before = AR_BEFORE_UNKNOWN), "ambiguous");
	check("delete: gone", gone, "found");
	check("delete: gone, by a list without it", WITH(there, facts.matches = 0), "found");
	check("delete: gone inside the window", WITH(gone, facts.gates_open = false), "inconclusive");
	check("delete: gone, action changed meanwhile", WITH(gone, facts.version_unchanged = false), "inconclusive");
	check("delete: gone from a list that is not complete",
		  WITH(there, facts.matches = 0, facts.incomplete = true), "inconclusive");
	check("delete: gone, and so is the canary", WITH(gone, facts.canary_asked = true), "inconclusive");
	check("delete: gone, a page that repeats its name", WITH(gone, facts.matches = 1), "found");
	check("delete: gone, nobody knows whether it was there",
		  WITH(gone, facts.before = AR_BEFORE_UNKNOWN), "ambiguous");
	check("delete: gone, as it was before", WITH(gone, facts.before = AR_BEFORE_NOT_THERE), "ambiguous");
	check("delete: an answer that is cut", WITH(gone, facts.body_trusted = false), "inconclusive");
}

static void
test_updates(void)
{
	ArLookupFacts wanted = clean_list;
	ArLookupFacts other = clean_list;
	ArLookupFacts facts;

	wanted.effect = other.effect = AR_EFFECT_UPDATE;
	wanted.candidates = 1;
	check("update: as it was to become", wanted, "found");
	check("update: the same inside the window", WITH(wanted, facts.gates_open = false), "found");
	check("update: the same, and as it was", WITH(wanted, facts.unchanged = true), "found");
	check("update: the same, known from another action", WITH(wanted, facts.owned_by_other = true), "found");
	check("update: with the reference written into it",
		  WITH(wanted, facts.candidates = 0, facts.matches = 1), "found");
	check("update: a tombstone", WITH(wanted, facts.gone = true), "ambiguous");
	check("update: as it was", WITH(other, facts.unchanged = true), "absent");
	check("update: as it was, inside the window",
		  WITH(other, facts.unchanged = true, facts.gates_open = false), "inconclusive");
	check("update: as it was, action changed meanwhile",
		  WITH(other, facts.unchanged = true, facts.version_unchanged = false), "inconclusive");
	check("update: neither", other, "ambiguous");
	check("update: neither, inside the window", WITH(other, facts.gates_open = false), "inconclusive");
	check("update: not there at all",
		  WITH(clean_404, facts.effect = AR_EFFECT_UPDATE), "ambiguous");
	check("update: not there, and a page that is what it was",
		  WITH(clean_404, facts.effect = AR_EFFECT_UPDATE, facts.unchanged = true), "ambiguous");
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

static void
test_effect_names(void)
{
	static const char *const names[] = {"create", "update", "delete"};
	static const char *const wrong[] = {"", "Create", "creat", "create ", "replace"};
	ArEffect	effect = AR_EFFECT_DELETE;

	for (int i = AR_EFFECT_CREATE; i <= AR_EFFECT_DELETE; i++)
		ok(ar_effect_parse(names[i], &effect) && (int) effect == i, "effect %s is found by its name", names[i]);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ok(!ar_effect_parse(wrong[i], &effect) && effect == AR_EFFECT_DELETE, "text %zu is no effect", i);
}

int
main(void)
{
	test_seen();
	test_not_seen();
	test_no_answer();
	test_deletes();
	test_updates();
	test_promises();
	test_required_negatives();
	test_effect_names();
	return done_testing();
}
