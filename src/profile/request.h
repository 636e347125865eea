/*
 * request.h
 *		The request that an action makes, from the templates of its operation.
 */
#ifndef AR_PROFILE_REQUEST_H
#define AR_PROFILE_REQUEST_H

#include "postgres.h"

#include "utils/jsonb.h"

/* What an operation says about its request; texts may be NULL where the column may. */
typedef struct ArRequestTemplate
{
	const char *method;
	const char *path;
	Jsonb	   *headers;
	const char *body_template;
	Datum		reference_body_path;	/* text[] or 0 */
} ArRequestTemplate;

typedef struct ArRenderedRequest
{
	char	   *path;
	Datum		headers;		/* text[]: name, value, name, value, ... */
	char	   *body;			/* NULL: none */
} ArRenderedRequest;

/* All palloc'ed.  Ereport 22023 with a hint if the request cannot be made; pure otherwise. */
extern void ar_request_render(const ArRequestTemplate *template, const char *client_reference,
							  Jsonb *payload, ArRenderedRequest *request);
extern Datum ar_headers_render(Jsonb *headers, const char *client_reference, Jsonb *payload);
extern void ar_headers_check(Jsonb *headers);

/* The payload with the client reference written into it. */
extern Jsonb *ar_reference_write(Jsonb *payload, Datum path, const char *client_reference);

#endif							/* AR_PROFILE_REQUEST_H */
