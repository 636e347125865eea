/*
 * answer.h
 *		Reading a provider's answer: where is the id, is our reference in it.
 */
#ifndef AR_PROFILE_ANSWER_H
#define AR_PROFILE_ANSWER_H

#include "postgres.h"

#include "utils/jsonb.h"

/* A JSON body, palloc'ed, or NULL if it is none that jsonb can hold. Needs a transaction; never lets an error of the body escape. */
extern Jsonb *ar_answer_document(const char *body, size_t length);

/*
 * The text that a jsonpath finds first in a JSON body, palloc'ed, or NULL if
 * the body is no JSON or holds no such scalar.  Numbers keep their digits.
 * Needs a transaction; never lets an error of the body escape.
 */
extern char *ar_answer_value(const char *body, size_t length, const char *jsonpath);

/* How a lookup's answer is searched; as in reconcile.lookup_rule. */
typedef struct ArMatchRule
{
	const char *client_reference;
	const char *items_path;		/* a list, or NULL: the body is the object */
	const char *reference_path;
	const char *body_match;		/* instead, for bodies that are not JSON */
	const char *artifact_path;
} ArMatchRule;

typedef struct ArMatch
{
	bool		shape_ok;		/* the body has the form the rule expects */
	int			matches;
	char	   *artifact_id;	/* of the first match, or NULL */
} ArMatch;

/* Same conditions. */
extern void ar_answer_match(const char *body, size_t length, const ArMatchRule *rule, ArMatch *match);

/* Is it valid text of this database, without control characters? */
extern bool ar_answer_text_is_clean(const char *text);

#endif							/* AR_PROFILE_ANSWER_H */
