/*
 * document.h
 *		JSON templates, and what is written into a JSON document.
 */
#ifndef AR_PROFILE_DOCUMENT_H
#define AR_PROFILE_DOCUMENT_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "profile/template.h"

/*
 * The document with its placeholders filled in, palloc'ed.  A text that is one
 * placeholder takes the value with its type, {payload} the whole payload; in a
 * longer text scalars are interpolated.  A member or element with a {name?}
 * that has no value is left out.  Keys are no templates.  Ereports 22023 with a
 * hint if a value is missing; pure otherwise.
 */
extern Jsonb *ar_document_fill(Jsonb *document, const ArValues *values);

/* Does {name} occur in a text of the document?  Pure. */
extern bool ar_document_names(Jsonb *document, const char *name);

/* What is written into a body, and which column says where. */
typedef enum ArWritten
{
	AR_WRITTEN_REFERENCE,
	AR_WRITTEN_KEY
} ArWritten;

/*
 * The document with the content written into it as a text, at the path, a text[]; palloc'ed.
 * Objects on the way are made where they are missing.  Ereports 22023 with a
 * hint if there is no place for it; pure otherwise.
 */
extern Jsonb *ar_document_write(Jsonb *document, Datum path, const char *content, ArWritten written);

/* Ereports 22023 if one of the two paths, each a text[], leads through the other. */
extern void ar_document_check_paths(Datum one, Datum other);

#endif							/* AR_PROFILE_DOCUMENT_H */
