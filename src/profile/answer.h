/*
 * answer.h
 *		Reading a provider's answer.
 */
#ifndef AR_PROFILE_ANSWER_H
#define AR_PROFILE_ANSWER_H

#include "postgres.h"

#include "fmgr.h"
#include "utils/jsonb.h"

/* A JSON body, palloc'ed, or NULL if it is none that jsonb can hold. Needs a transaction; never lets an error of the body escape. */
extern Jsonb *ar_answer_document(const char *body, size_t length);

/*
 * The text that a jsonpath finds first in a JSON body, palloc'ed, or NULL if
 * the body is no JSON or holds no such scalar.  Numbers keep their digits.
 * Needs a transaction; never lets an error of the body escape.
 */
extern char *ar_answer_value(const char *body, size_t length, const char *jsonpath);

/*
 * The same for code that is guarded already: all may ereport for what is in
 * the document.  ar_json_query calls one of the jsonb_path_query functions and
 * returns NULL where that returns SQL NULL; a scalar as text is a string
 * without its quotes, a number digit for digit, true or false, else NULL.
 */
extern Jsonb *ar_json_parse(const char *body, size_t length);
extern Jsonb *ar_json_query(PGFunction function, Jsonb *document, const char *path);
extern char *ar_json_scalar_text(Jsonb *document);

/* Is it valid text of this database, without control characters? */
extern bool ar_answer_text_is_clean(const char *text);

/* The text, if it can be kept as the id of what was made, or NULL. Any argument may be NULL. */
extern char *ar_answer_id(char *text);

#endif							/* AR_PROFILE_ANSWER_H */
