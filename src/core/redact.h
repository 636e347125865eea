/*
 * redact.h
 *		What must not be kept of an answer, and taking it out: the one place that
 *		knows.
 *
 * What we sent is known, and is found in any spelling.  What a provider hands
 * out itself is only known by the name that stands in front of it.  Texts keep
 * their length, so that what is cut stays as it was cut.  Pure: no SQL, no
 * network, no clock; never throws.
 */
#ifndef AR_REDACT_H
#define AR_REDACT_H

#include <stdbool.h>
#include <stddef.h>

/* Where a name stands: signatures are secrets in an address only. */
typedef enum ArNamePlace
{
	AR_NAME_OF_MEMBER,			/* of a document, or of a header */
	AR_NAME_OF_PARAMETER		/* of an address */
} ArNamePlace;

/*
 * Whether what bears this name gives access to something: a token, a password,
 * a key, a cookie.  Case and separators do not count; of a compound the last
 * words decide, and of tokens that only say where a list goes on nothing does.
 */
extern bool ar_names_secret(const char *name, size_t length, ArNamePlace place);

/*
 * Whether a header of an answer, named in lower case, may be kept in evidence: by
 * an allow-list, for nobody knows what else a provider sends.
 */
extern bool ar_header_is_stored(const char *name);

/*
 * Overwrites each word of the secret wherever the text holds it: as it is, with
 * the escapes of JSON, or percent-encoded.  Short words, such as the name of a
 * scheme, are left alone.  NULL is no secret.
 */
extern void ar_redact_secret(char *text, size_t length, const char *secret);

/*
 * Overwrites the texts that stand behind names of secrets: members of JSON, also
 * of JSON inside a JSON string, elements of XML, parameters, header lines.
 */
extern void ar_redact_named(char *text, size_t length);

/* Takes those parameters out of an address that have names of secrets. */
extern void ar_redact_address(char *address);

#endif							/* AR_REDACT_H */
