/*
 * evidence.h
 *		What one answer to a lookup proves, and how many of them make an absence.
 *
 * Pure: no SQL, no network, no clock.
 */
#ifndef AR_EVIDENCE_H
#define AR_EVIDENCE_H

#include <stdbool.h>

/* What was seen in one answer to one lookup. */
typedef struct ArLookupFacts
{
	bool		answered;		/* a complete final response came back */
	bool		body_trusted;	/* framed and whole: a cut body would show */
	bool		found_status;	/* a status this lookup may find with */
	bool		absent_status;	/* a status that by itself means "not there" */
	bool		shape_ok;		/* the body has the form the rule expects */
	int			matches;		/* objects that carry the full reference */
	bool		owned_by_other; /* the match is already credited to another action */
	bool		gates_open;		/* every gate was open when the lookup was asked */
	bool		version_unchanged;	/* nothing happened to the action meanwhile */
} ArLookupFacts;

typedef enum ArLookupResult
{
	AR_LOOKUP_FOUND,
	AR_LOOKUP_ABSENT,			/* one valid negative */
	AR_LOOKUP_INCONCLUSIVE,
	AR_LOOKUP_AMBIGUOUS			/* several objects match: only a person can tell */
} ArLookupResult;

/* How much must be seen before a negative is believed. */
typedef struct ArAbsenceRule
{
	bool		window_assumed; /* nobody measured or documented the window */
	int			min_negatives;	/* what the operation asks for */
	bool		canary_known;	/* a known object was found by the same surface */
} ArAbsenceRule;

/* "reason" receives a constant sentence for the history. */
extern ArLookupResult ar_lookup_judge(const ArLookupFacts *facts, const char **reason);
extern int	ar_required_negatives(const ArAbsenceRule *rule);
extern const char *ar_lookup_result_name(ArLookupResult result);

#endif							/* AR_EVIDENCE_H */
