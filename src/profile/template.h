/*
 * template.h
 *		Filling values into the parts of a request.
 *
 * A template holds {name}; the name is client_reference or a top-level key of
 * the payload.  What a value may contain depends on the part it goes into, so
 * that no value can break out of its place.
 */
#ifndef AR_TEMPLATE_H
#define AR_TEMPLATE_H

#include "postgres.h"

#include "utils/jsonb.h"

typedef enum ArTemplatePart
{
	AR_PART_PATH,				/* percent-encoded, no empty, "." or ".." segment */
	AR_PART_HEADER,				/* no control characters, not empty */
	AR_PART_TEXT,				/* no control characters */
	AR_PART_JSON				/* escaped for the inside of a JSON string */
} ArTemplatePart;

/*
 * The filled-in template, palloc'ed.  Ereports 22023 with a hint if a value is
 * missing, not a scalar, or may not stand in that part.  Pure otherwise.
 */
extern char *ar_template_fill(const char *template, ArTemplatePart part,
							  const char *client_reference, Jsonb *payload);

#endif							/* AR_TEMPLATE_H */
