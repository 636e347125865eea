/*
 * template.h
 *		The values that templates are filled with, from what an action holds.
 *
 * The scanning, and what a value may contain in which part, are core/template's.
 */
#ifndef AR_PROFILE_TEMPLATE_H
#define AR_PROFILE_TEMPLATE_H

#include "postgres.h"

#include "utils/jsonb.h"

#include "core/template.h"

#define AR_REFERENCE_NAME "client_reference"
#define AR_KEY_NAME "idempotency_key"
#define AR_PAYLOAD_NAME "payload"

/*
 * What names mean, in this order: the reference, the key, members of "extra",
 * members of the payload.  A name with dots is the member of that very name, or
 * one inside the member that the part before the first dot names.
 */
typedef struct ArValues
{
	const char *client_reference;	/* NULL: there is none, and it is refused */
	const char *idempotency_key;	/* NULL: there is none, and it is refused */
	Jsonb	   *payload;
	Jsonb	   *extra;			/* NULL: none */
} ArValues;

/*
 * The filled-in template, palloc'ed.  Ereports 22023 with a hint if a value is
 * missing, not a scalar, or may not stand in that part.  Pure otherwise.
 */
extern char *ar_template_fill(const char *template, ArTemplatePart part, const ArValues *values);

/*
 * The value of a name with its type, in *value, which may point into the
 * values; false if there is none.  A container is a jbvBinary.  The name of the
 * whole payload, {payload}, is no business of this function.
 */
extern bool ar_template_value(const ArValues *values, const char *name, int name_length, JsonbValue *value);

/* A scalar as text, palloc'ed or of the value itself; false if it is none, or null. */
extern bool ar_template_scalar(const JsonbValue *value, ArTemplateValue *text);

/* Ereports 22023: there is no such value, which is a "problem" unless it is the reference or the key. */
extern void ar_template_refuse_missing(const ArValues *values, const char *name, int name_length,
									   const char *problem) pg_attribute_noreturn();

/* Ereports 22023 if a body is longer than a request may have. */
extern void ar_template_check_body(size_t length);

#endif							/* AR_PROFILE_TEMPLATE_H */
