/*
 * request.h
 *		The request that an action makes, from the templates of its operation,
 *		and the questions that are asked about it.
 */
#ifndef AR_PROFILE_REQUEST_H
#define AR_PROFILE_REQUEST_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "profile/template.h"

typedef enum ArBodyFormat
{
	AR_BODY_JSON,
	AR_BODY_FORM,
	AR_BODY_NONE
} ArBodyFormat;

/* What an operation says about its request; NULL and 0 where the column may be null. */
typedef struct ArRequestTemplate
{
	const char *method;
	const char *path;
	Jsonb	   *headers;
	ArBodyFormat body_format;
	Jsonb	   *body_document;
	const char *body_template;
	Datum		reference_body_path;	/* text[] or 0 */
	Datum		key_body_path;	/* text[] or 0 */
} ArRequestTemplate;

/* What a lookup or poll rule says about its question. */
typedef struct ArQuestionTemplate
{
	const char *path;			/* NULL: the address comes from elsewhere */
	Jsonb	   *headers;		/* NULL: none */
	Jsonb	   *body;			/* a JSON template; NULL: none */
} ArQuestionTemplate;

typedef struct ArRenderedRequest
{
	char	   *path;
	Datum		headers;		/* text[]: name, value, name, value, ... */
	char	   *body;			/* NULL: none */
} ArRenderedRequest;

/* All palloc'ed.  Ereport 22023 with a hint if the request cannot be made; pure otherwise. */
extern void ar_request_render(const ArRequestTemplate *template, const ArValues *values, ArRenderedRequest *request);
extern void ar_question_render(const ArQuestionTemplate *template, const ArValues *values, ArRenderedRequest *request);

/* Does the request hold what goes by that name, by its placeholder or its path into the body?  Pure. */
extern bool ar_request_sends_reference(const ArRequestTemplate *template);
extern bool ar_request_takes_key(const ArRequestTemplate *template);

#endif							/* AR_PROFILE_REQUEST_H */
