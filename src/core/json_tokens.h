/*
 * json_tokens.h
 *		A JSON text as a flat array of checked, decoded tokens.
 *
 * Shared by json_tokens.c, which reads the text, json_order.c, which sorts, and
 * canonical_json.c, which writes it again; of no use to anybody else.
 */
#ifndef AR_JSON_TOKENS_H
#define AR_JSON_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/canonical_json.h"

typedef enum ArJsonKind
{
	AR_JSON_VERBATIM,			/* a literal or number, bytes already canonical */
	AR_JSON_STRING,				/* bytes are the decoded UTF-8 */
	AR_JSON_ARRAY,
	AR_JSON_OBJECT
} ArJsonKind;

/*
 * Tokens stand in the order of the text: a container before its children, a
 * key before its value.
 */
typedef struct ArJsonToken
{
	uint32_t	offset;			/* in the text, for error messages */
	uint32_t	next;			/* index of the first token behind this value */
	uint32_t	start;			/* scalar: of the bytes; object: in `order` */
	uint32_t	length;			/* scalar: of the bytes; object: members */
	uint8_t		kind;			/* ArJsonKind */
	bool		decoded;		/* the bytes are in `bytes`, not in the text */
} ArJsonToken;

typedef struct ArJsonTokens
{
	const char *text;			/* the caller's, must outlive this */
	size_t		length;
	ArBuffer	tokens;			/* ArJsonToken[] */
	ArBuffer	order;			/* uint32_t[]: keys, sorted within each object */
	ArBuffer	bytes;			/* text that had to be decoded or rewritten */
	ArBuffer	scratch;
} ArJsonTokens;

/*
 * Reads one JSON value and sorts the members of every object.  `tokens` is
 * initialised here and must be destroyed whatever the result is.  False:
 * `error` is set.  Never throws, needs no transaction.
 */
extern bool ar_json_tokens_read(ArJsonTokens *tokens, const char *text,
								size_t length, ArJsonError *error);

/* Frees what ar_json_tokens_read() allocated.  Never throws. */
extern void ar_json_tokens_destroy(ArJsonTokens *tokens);

/* Token `index`, which belongs to `tokens`.  Never throws. */
static inline const ArJsonToken *
ar_json_token(const ArJsonTokens *tokens, uint32_t index)
{
	return (const ArJsonToken *) (const void *) tokens->tokens.data + index;
}

/* The bytes of a scalar; they belong to `tokens` or to the text.  Never throws. */
static inline const char *
ar_json_token_bytes(const ArJsonTokens *tokens, const ArJsonToken *token)
{
	return (token->decoded ? tokens->bytes.data : tokens->text) + token->start;
}

/*
 * Notes the members of `object`, the last container read, in sorted order.
 * False: `error` is set; a key occurs twice, or no memory.  For json_tokens.c.
 * Never throws, needs no transaction.
 */
extern bool ar_json_order_members(ArJsonTokens *tokens, uint32_t object,
								  ArJsonError *error);

#endif							/* AR_JSON_TOKENS_H */
