/*
 * template.h
 *		Filling values into the parts of a request.
 *
 * A template holds {name}; the name is of letters, digits and underscores, with
 * dots between them.  Braces around anything else stand for themselves.  What a
 * value may contain depends on the part it goes into, so that no value can
 * break out of its place.  Where the values come from is the caller's business.
 */
#ifndef AR_CORE_TEMPLATE_H
#define AR_CORE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"

typedef enum ArTemplatePart
{
	AR_PART_PATH,				/* percent-encoded, no empty, "." or ".." segment */
	AR_PART_HEADER,				/* no control characters, not empty */
	AR_PART_TEXT,				/* no control characters */
	AR_PART_JSON,				/* escaped for the inside of a JSON string */
	AR_PART_FORM				/* percent-encoded */
} ArTemplatePart;

/* What a part may have at most when it is filled in, in bytes. */
#define AR_MAX_PATH_BYTES ((size_t) 8000)
#define AR_MAX_HEADER_VALUE_BYTES ((size_t) 8000)
#define AR_MAX_BODY_BYTES ((size_t) 1024 * 1024)

/* Stays as it is in a header: the engine fills it in, and no value can write it. */
#define AR_CREDENTIAL_NAME "credential"

typedef enum ArTemplateProblem
{
	AR_TEMPLATE_OK,
	AR_TEMPLATE_NO_VALUE,		/* there is none of that name that can stand in a text */
	AR_TEMPLATE_EMPTY_VALUE,
	AR_TEMPLATE_CONTROL_CHARACTER,
	AR_TEMPLATE_OPTIONAL_NAME,	/* {name?}, where nothing can be left out */
	AR_TEMPLATE_CREDENTIAL,		/* values would have written {credential} */
	AR_TEMPLATE_FOLDED_SEGMENT, /* the path has an empty, "." or ".." segment */
	AR_TEMPLATE_TOO_LONG,
	AR_TEMPLATE_OUT_OF_MEMORY
} ArTemplateProblem;

typedef struct ArTemplateError
{
	ArTemplateProblem problem;
	const char *name;			/* in the template; of the first four problems */
	size_t		name_length;
} ArTemplateError;

typedef struct ArTemplateValue
{
	const char *bytes;			/* whoever looked it up keeps it until the template is filled */
	size_t		length;
} ArTemplateValue;

/*
 * Finds the value of a name, which has no terminator.  False: there is none.
 * May leave by throwing if the caller of ar_template_render() can take that.
 */
typedef bool (*ArTemplateLookup) (void *state, const char *name, size_t name_length, ArTemplateValue *value);

/* A stretch of a template: literal text, or a name in braces. */
typedef struct ArTemplatePiece
{
	const char *bytes;			/* in the template; of a name without its braces */
	size_t		length;
	bool		is_name;
	bool		is_optional;	/* {name?} */
} ArTemplatePiece;

/*
 * Takes the next piece off a template that ends before `end`; *rest starts at
 * its beginning.  False: there is none left.  Pure; never throws, needs no
 * transaction.
 */
extern bool ar_template_next(const char **rest, const char *end, ArTemplatePiece *piece);

/* Does {name} or {name?} occur?  Pure; never throws, needs no transaction. */
extern bool ar_template_names(const char *text, size_t length, const char *name);

/*
 * Appends the filled-in template to `out`, which the caller has initialised,
 * owns and destroys.  False: `error` says why, and `out` holds what it held
 * before, but for AR_TEMPLATE_FOLDED_SEGMENT: then the path is left in it, for
 * the message.  Never throws by itself, needs no transaction.
 */
extern bool ar_template_render(const char *text, size_t length, ArTemplatePart part,
							   ArTemplateLookup lookup, void *state,
							   ArBuffer *out, ArTemplateError *error);

/* The most bytes that part may have when filled in.  Pure. */
extern size_t ar_template_limit(ArTemplatePart part);

/* The part of that name; false if there is none.  Pure. */
extern bool ar_template_part_parse(const char *name, ArTemplatePart *part);

/*
 * The problem of one value in words, to be put behind "value … cannot stand in
 * the request: "; a constant string.  Never throws.
 */
extern const char *ar_template_problem_text(ArTemplateProblem problem);

/*
 * Writes the bytes percent-encoded (RFC 3986: all but unreserved characters)
 * to `out`, which has room for three times their number; returns how many were
 * written.  Adds no terminator.  Pure.
 */
extern size_t ar_percent_encode(const char *bytes, size_t length, char *out);

#endif							/* AR_CORE_TEMPLATE_H */
