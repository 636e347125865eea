/*
 * evidence.h
 *		What one answer to a lookup proves, and how many of them make an absence.
 *
 * Pure: no SQL, no network, no clock.
 */
#ifndef AR_EVIDENCE_H
#define AR_EVIDENCE_H

#include <stdbool.h>

/* What an operation does, and so what has to be seen for it to have happened. */
typedef enum ArEffect
{
	AR_EFFECT_CREATE,			/* an object of ours is there */
	AR_EFFECT_UPDATE,			/* the object is as we wanted it */
	AR_EFFECT_DELETE			/* the object was there, and no longer is */
} ArEffect;

/* What was known before the first send about the object to be changed. */
typedef enum ArBefore
{
	AR_BEFORE_UNKNOWN,
	AR_BEFORE_THERE,
	AR_BEFORE_NOT_THERE
} ArBefore;

/* What was seen in one answer to one lookup, all its pages together. */
typedef struct ArLookupFacts
{
	ArEffect	effect;
	ArBefore	before;
	bool		answered;		/* a complete final response came back, for every page */
	bool		body_trusted;	/* framed and whole: a cut body would show */
	bool		found_status;	/* a status this lookup may find with */
	bool		absent_status;	/* a status that by itself means "not there" */
	bool		shape_ok;		/* the body has the form the rule expects */
	bool		incomplete;		/* the answer says so, or not every page was read */
	int			matches;		/* objects that carry the full reference */
	int			candidates;		/* objects that agree in other values only */
	bool		candidate_is_unique;	/* by the operation's word, and within the time of the attempt */
	bool		gone;			/* what matches was there and has been removed */
	bool		unchanged;		/* the object is exactly as it was before the first send */
	bool		owned_by_other; /* create: one of these is credited to another action already */
	bool		gates_open;		/* every gate was open when the lookup was asked */
	bool		version_unchanged;	/* nothing happened to the action meanwhile */
	bool		canary_asked;	/* a known object was looked for in the same way */
	bool		canary_found;
} ArLookupFacts;

typedef enum ArLookupResult
{
	AR_LOOKUP_FOUND,			/* it happened */
	AR_LOOKUP_ABSENT,			/* it did not: one valid negative */
	AR_LOOKUP_INCONCLUSIVE,
	AR_LOOKUP_AMBIGUOUS			/* objects that may be ours: only a person can tell */
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
extern bool ar_effect_parse(const char *name, ArEffect *effect);

#endif							/* AR_EVIDENCE_H */
