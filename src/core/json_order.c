/*
 * json_order.c
 *		The members of a JSON object in canonical order.
 *
 * Keys compare by the bytes of their decoded text: in UTF-8 that is code point
 * order, unlike in UTF-16, and unlike jsonb's own order, which is by length
 * first.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/json_tokens.h"

#include <string.h>

/* Compares two keys by code point: negative, zero or positive. */
static int
compare_keys(const ArJsonTokens *t, uint32_t left, uint32_t right)
{
	const ArJsonToken *a = ar_json_token(t, left);
	const ArJsonToken *b = ar_json_token(t, right);
	size_t		shorter = a->length < b->length ? a->length : b->length;
	int			order = 0;

	if (shorter > 0)
		order = memcmp(ar_json_token_bytes(t, a), ar_json_token_bytes(t, b),
					   shorter);
	if (order == 0)
		order = (a->length > b->length) - (a->length < b->length);
	return order;
}

/* Restores the heap below `root`, the only element that may break it. */
static void
sift_down(const ArJsonTokens *t, uint32_t *keys, size_t root, size_t count)
{
	size_t		child;

	while ((child = 2 * root + 1) < count)
	{
		uint32_t	key = keys[root];

		if (child + 1 < count && compare_keys(t, keys[child], keys[child + 1]) < 0)
			child++;
		if (compare_keys(t, key, keys[child]) >= 0)
			return;
		keys[root] = keys[child];
		keys[child] = key;
		root = child;
	}
}

/*
 * Sorts keys: heap sort, because it needs no memory and no stack and has no bad
 * case.
 */
static void
sort_keys(const ArJsonTokens *t, uint32_t *keys, size_t count)
{
	size_t		i;

	for (i = count / 2; i-- > 0;)
		sift_down(t, keys, i, count);
	for (i = count; i-- > 1;)
	{
		uint32_t	last = keys[i];

		keys[i] = keys[0];
		keys[0] = last;
		sift_down(t, keys, 0, i);
	}
}

/* See json_tokens.h. */
bool
ar_json_order_members(ArJsonTokens *t, uint32_t object, ArJsonError *error)
{
	uint32_t	end = (uint32_t) (t->tokens.length / sizeof(ArJsonToken));
	size_t		first = t->order.length / sizeof(uint32_t);
	ArJsonToken *token = (ArJsonToken *) (void *) t->tokens.data + object;
	uint32_t   *keys;
	uint32_t	key;
	size_t		i;
	bool		sorted = true;

	token->start = (uint32_t) first;
	token->length = 0;
	for (key = object + 1; key < end; key = ar_json_token(t, key + 1)->next)
	{
		if (!ar_buffer_append(&t->order, &key, sizeof(key)))
		{
			error->code = AR_JSON_OUT_OF_MEMORY;
			error->offset = token->offset;
			return false;
		}
		token->length++;
	}
	if (token->length < 2)
		return true;

	keys = (uint32_t *) (void *) t->order.data + first;
	for (i = 1; i < token->length && sorted; i++)
		sorted = compare_keys(t, keys[i - 1], keys[i]) < 0;
	if (sorted)
		return true;
	sort_keys(t, keys, token->length);
	for (i = 1; i < token->length; i++)
	{
		if (compare_keys(t, keys[i - 1], keys[i]) == 0)
		{
			key = keys[i] > keys[i - 1] ? keys[i] : keys[i - 1];
			error->code = AR_JSON_DUPLICATE_KEY;
			error->offset = ar_json_token(t, key)->offset;
			return false;
		}
	}
	return true;
}
