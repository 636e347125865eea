/*
 * canonical_json.h
 *		One text for one JSON value, and for one intent.
 *
 * The canonical text is, byte for byte, what Python's
 *     json.dumps(json.loads(text), sort_keys=True, separators=(',', ':'))
 * gives, so that an intent fingerprint can be computed on either side of the
 * database connection.  That means: object keys in code point order, ASCII only
 * (everything outside space to tilde as \uXXXX, lower case, astral characters
 * as surrogate pairs), integers digit for digit, and every number with a
 * fraction or an exponent as the shortest text of its double.
 *
 * Refused, because two readers could see two values in one text, or because
 * jsonb cannot hold it:
 *	- a key that occurs twice in one object: parsers differ in which they keep,
 *	  and jsonb has already dropped one;
 *	- a number with fraction or exponent that reads as negative zero, also by
 *	  underflow: numeric, and so jsonb, has no negative zero, so the same
 *	  document has one text before it was stored and another one after ("-0" is
 *	  an integer and is 0 for Python and for jsonb);
 *	- a number too large for a double, NaN and Infinity: no JSON text has them;
 *	- lone surrogates, U+0000, invalid UTF-8;
 *	- more nesting, bytes or values than the limits below: the work is bounded,
 *	  because no interrupt is served while it is done.
 *
 * What jsonb does not keep cannot come out equal: it stores 1e2 as 100, where
 * Python, reading the original text, has 100.0.
 */
#ifndef AR_CANONICAL_JSON_H
#define AR_CANONICAL_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"

#define AR_JSON_MAX_DEPTH 1000
#define AR_JSON_MAX_BYTES ((size_t) 32 * 1024 * 1024)
#define AR_JSON_MAX_VALUES ((size_t) 1024 * 1024)	/* keys count too */

typedef enum ArJsonErrorCode
{
	AR_JSON_OK,
	AR_JSON_SYNTAX,
	AR_JSON_UNEXPECTED_END,
	AR_JSON_INVALID_UTF8,
	AR_JSON_CONTROL_CHARACTER,	/* unescaped inside a string */
	AR_JSON_INVALID_ESCAPE,
	AR_JSON_LONE_SURROGATE,
	AR_JSON_NUL_CHARACTER,
	AR_JSON_NOT_FINITE,
	AR_JSON_NEGATIVE_ZERO,
	AR_JSON_DUPLICATE_KEY,
	AR_JSON_TOO_DEEP,
	AR_JSON_TOO_LARGE,
	AR_JSON_OUT_OF_MEMORY,
	AR_JSON_INVALID_METHOD,		/* not ASCII; offset is into the method */
	AR_JSON_INVALID_PATH		/* not UTF-8; offset is into the path */
} ArJsonErrorCode;

typedef struct ArJsonError
{
	ArJsonErrorCode code;
	size_t		offset;			/* of the offending byte, counted from 0 */
} ArJsonError;

/*
 * Appends the canonical text of the one JSON value in text[0 .. length) to
 * `out`, which the caller has initialised, owns and destroys.  The input needs
 * no terminator.  False: `error` says what and where, and `out` holds what it
 * held before.  Never throws, takes no interrupt, needs no transaction.
 */
extern bool ar_canonical_json(const char *text, size_t length, ArBuffer *out,
							  ArJsonError *error);

/*
 * Appends the text an intent fingerprint is taken over: the canonical text of
 * {"method": METHOD, "path": path, "payload": payload}, the method in upper
 * case.  Ownership and failure as for ar_canonical_json(); an offset counts in
 * the payload except for the two codes that say otherwise.
 */
extern bool ar_canonical_intent(const char *method, const char *path,
								const char *payload_text, size_t length,
								ArBuffer *out, ArJsonError *error);

/*
 * The fault in words, to be put behind "payload is not canonical: " or the
 * like; a constant string.  Never throws, needs no transaction.
 */
extern const char *ar_json_error_message(ArJsonErrorCode code);

#endif							/* AR_CANONICAL_JSON_H */
