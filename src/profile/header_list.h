/*
 * header_list.h
 *		The headers of a request, from the templates of its operation.
 */
#ifndef AR_PROFILE_HEADER_LIST_H
#define AR_PROFILE_HEADER_LIST_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "profile/template.h"

/* What becomes of the header Content-Type, which by default says application/json. */
typedef enum ArContentType
{
	AR_CONTENT_TYPE_AS_IS,
	AR_CONTENT_TYPE_JSON,		/* JSON where there is none */
	AR_CONTENT_TYPE_FORM,		/* a form's where there is none, or the default */
	AR_CONTENT_TYPE_NONE		/* the default is left out: there is no body it could tell of */
} ArContentType;

/*
 * The filled-in headers as a text[]: name, value, name, value, ...; palloc'ed.
 * NULL has none.  Ereports 22023 with a hint if one cannot be made; pure otherwise.
 */
extern Datum ar_headers_render(Jsonb *headers, ArContentType content_type, const ArValues *values);

/* Ereports 22023 unless they are headers that an operation may set; their templates are not filled in. */
extern void ar_headers_check(Jsonb *headers);

/* Does the Content-Type hold that word, whatever its case?  Ereports as ar_headers_check(). */
extern bool ar_headers_content_type_has(Jsonb *headers, const char *word);

#endif							/* AR_PROFILE_HEADER_LIST_H */
