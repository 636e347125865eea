/*
 * match.h
 *		Looking for our object on one page of an answer to a lookup.
 */
#ifndef AR_PROFILE_MATCH_H
#define AR_PROFILE_MATCH_H

#include "postgres.h"

/* How a page is searched; as in reconcile.lookup_rule, jsonpaths as text, NULL where the column is. */
typedef struct ArMatchRule
{
	const char *client_reference;
	const char *items_path;		/* a list, or NULL: the body is the object */
	const char *reference_path;
	bool		contains;		/* the reference need only stand in it, whole */
	const char *body_match;		/* instead, for bodies that are not JSON */
	char	  **values;			/* jsonpath, expected text, jsonpath, ... */
	int			value_strings;
	const char *created_path;
	int64		since_us;		/* since 1970: a candidate made outside of these is not ours */
	int64		until_us;
	const char *exclude_path;
	const char *gone_path;
	const char *incomplete_if;
	const char *artifact_path;
	const char *next_path;		/* where the next page's URL or cursor stands */
	const char *more_path;		/* must yield true for there to be one */
} ArMatchRule;

#define AR_MATCH_IDS	8

/* What a page shows. */
typedef struct ArMatch
{
	bool		shape_ok;		/* the body has the form the rule expects */
	bool		incomplete;		/* it says itself that it does not show everything */
	int			objects;		/* seen on it, without the excluded ones */
	int			rows;			/* with them */
	int			matches;		/* with the full reference */
	int			candidates;		/* that agree in the values only */
	int			gone;			/* of both, those that have been removed since */
	char	   *ids[AR_MATCH_IDS];	/* of the first of them; entries may be NULL */
	int			id_count;
	char	   *digest;			/* of the object, where the body is one */
	char	   *next;			/* the next page's URL or cursor, or NULL */
	bool		more;			/* by its flag; true if it has none */
} ArMatch;

/*
 * Palloc'ed in the current context.  Needs a transaction; whatever is wrong
 * with the body, the result is "not of the expected form", never an error.
 */
extern void ar_match_page(const char *body, size_t length, const ArMatchRule *rule, ArMatch *match);

/* The path with a query parameter set to that value, percent-encoded; palloc'ed. */
extern char *ar_path_with_parameter(const char *path, const char *name, const char *value);

/* The number that a query parameter of the path has now; without one that can be read, the other. */
extern int	ar_path_number(const char *path, const char *name, int otherwise);

#endif							/* AR_PROFILE_MATCH_H */
