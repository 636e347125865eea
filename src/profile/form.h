/*
 * form.h
 *		A JSON document as application/x-www-form-urlencoded.
 */
#ifndef AR_PROFILE_FORM_H
#define AR_PROFILE_FORM_H

#include "postgres.h"

#include "utils/jsonb.h"

#define AR_FORM_CONTENT_TYPE "application/x-www-form-urlencoded"

/*
 * The members of the document, palloc'ed: a[b][c]=x, of lists a[0]=x.  Booleans
 * are true and false, numbers digit for digit, nulls are left out, and empty
 * lists and objects leave no trace; members come in jsonb's order.  Ereports
 * 22023 with a hint if the document is no object, a key would be read as
 * another one, or the text gets longer than a body may be.  Pure otherwise.
 */
extern char *ar_form_write(Jsonb *document);

#endif							/* AR_PROFILE_FORM_H */
