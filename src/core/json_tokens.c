/*
 * json_tokens.c
 *		A JSON text as a flat array of checked, decoded tokens.
 *
 * The text may come from a hostile hand, so nothing here recurses and no cost
 * depends on anything but the length of the text: containers are tracked on a
 * fixed stack, and members are sorted by heap sort (json_order.c).  A tree of this shape,
 * rather than text rewritten at the end of each object, keeps deep nests of
 * unsorted objects from being copied once per level.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/json_tokens.h"

#include <math.h>
#include <string.h>

#include "core/json_number.h"
#include "core/utf8.h"

typedef enum Expect
{
	EXPECT_VALUE,
	EXPECT_VALUE_OR_END,		/* behind '[' */
	EXPECT_KEY,
	EXPECT_KEY_OR_END,			/* behind '{' */
	EXPECT_SEPARATOR			/* behind a value: ',' or the end of something */
} Expect;

typedef struct Reader
{
	ArJsonTokens *t;
	size_t		pos;
	ArJsonError *error;
	uint32_t	depth;
	uint32_t	stack[AR_JSON_MAX_DEPTH];	/* tokens of the open containers */
} Reader;

/* Records the fault; always false.  Never throws. */
static bool
fail(Reader *r, ArJsonErrorCode code, size_t offset)
{
	r->error->code = code;
	r->error->offset = offset;
	return false;
}

/* A fault at the current byte, or the end of the text if that is it. */
static bool
fail_here(Reader *r)
{
	return fail(r, r->pos < r->t->length ? AR_JSON_SYNTAX : AR_JSON_UNEXPECTED_END,
				r->pos);
}

/* Token `index`, valid until the next one is added.  Never throws. */
static ArJsonToken *
token_at(Reader *r, uint32_t index)
{
	return (ArJsonToken *) (void *) r->t->tokens.data + index;
}

/* The tokens read so far.  Never throws. */
static uint32_t
token_count(const Reader *r)
{
	return (uint32_t) (r->t->tokens.length / sizeof(ArJsonToken));
}

/* Adds a token that ends with itself.  False: fault recorded. */
static bool
add_token(Reader *r, ArJsonKind kind, size_t offset, size_t start, size_t length,
		  bool decoded)
{
	ArJsonToken token = {0};

	if (token_count(r) >= AR_JSON_MAX_VALUES)
		return fail(r, AR_JSON_TOO_LARGE, offset);
	token.offset = (uint32_t) offset;
	token.next = token_count(r) + 1;
	token.start = (uint32_t) start;
	token.length = (uint32_t) length;
	token.kind = (uint8_t) kind;
	token.decoded = decoded;
	if (!ar_buffer_append(&r->t->tokens, &token, sizeof(token)))
		return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
	return true;
}

/* Reads the four hex digits of \uXXXX.  False: fault recorded. */
static bool
read_hex4(Reader *r, uint32_t *value)
{
	int			i;

	*value = 0;
	for (i = 0; i < 4; i++)
	{
		char		c;

		if (r->pos >= r->t->length)
			return fail_here(r);
		c = r->t->text[r->pos];
		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint32_t) (c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (uint32_t) (c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			*value = *value << 4 | (uint32_t) (c - 'A' + 10);
		else
			return fail(r, AR_JSON_INVALID_ESCAPE, r->pos);
		r->pos++;
	}
	return true;
}

/* Reads what follows "\u", with the second half of a pair.  False: fault. */
static bool
read_unicode_escape(Reader *r, size_t offset, uint32_t *code_point)
{
	uint32_t	low;

	if (!read_hex4(r, code_point))
		return false;
	if (*code_point == 0)
		return fail(r, AR_JSON_NUL_CHARACTER, offset);
	if (*code_point < 0xD800 || *code_point > 0xDFFF)
		return true;
	if (*code_point >= 0xDC00 || r->t->length - r->pos < 2 ||
		memcmp(r->t->text + r->pos, "\\u", 2) != 0)
		return fail(r, AR_JSON_LONE_SURROGATE, offset);
	r->pos += 2;
	if (!read_hex4(r, &low))
		return false;
	if (low < 0xDC00 || low > 0xDFFF)
		return fail(r, AR_JSON_LONE_SURROGATE, offset);
	*code_point = 0x10000 + ((*code_point - 0xD800) << 10) + (low - 0xDC00);
	return true;
}

/* Reads one escape from its backslash and decodes it.  False: fault recorded. */
static bool
read_escape(Reader *r)
{
	static const char names[] = "\"\\/bfnrt";
	static const char values[] = "\"\\/\b\f\n\r\t";
	size_t		offset = r->pos++;
	char		bytes[4];
	size_t		length = 1;
	const char *name;
	uint32_t	code_point;

	if (r->pos >= r->t->length)
		return fail_here(r);
	if (r->t->text[r->pos] == 'u')
	{
		r->pos++;
		if (!read_unicode_escape(r, offset, &code_point))
			return false;
		length = ar_utf8_encode(code_point, bytes);
	}
	else
	{
		name = memchr(names, r->t->text[r->pos], sizeof(names) - 1);
		if (name == NULL)
			return fail(r, AR_JSON_INVALID_ESCAPE, r->pos);
		bytes[0] = values[name - names];
		r->pos++;
	}
	if (!ar_buffer_append(&r->t->bytes, bytes, length))
		return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
	return true;
}

/*
 * Reads a string from its opening quote.  Without an escape its token points
 * into the text, otherwise at a decoded copy.  False: fault recorded.
 */
static bool
read_string(Reader *r)
{
	ArJsonTokens *t = r->t;
	size_t		offset = r->pos++;
	size_t		run = r->pos;	/* start of what is not yet copied */
	size_t		copy = t->bytes.length;
	bool		decoded = false;

	for (;;)
	{
		unsigned char c;
		uint32_t	code_point;
		size_t		width;

		if (r->pos >= t->length)
			return fail_here(r);
		c = (unsigned char) t->text[r->pos];
		if (c == '"')
			break;
		if (c < 0x20)
			return fail(r, AR_JSON_CONTROL_CHARACTER, r->pos);
		if (c == '\\')
		{
			decoded = true;
			if (!ar_buffer_append(&t->bytes, t->text + run, r->pos - run))
				return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
			if (!read_escape(r))
				return false;
			run = r->pos;
			continue;
		}
		width = ar_utf8_decode(t->text + r->pos, t->length - r->pos, &code_point);
		if (width == 0)
			return fail(r, AR_JSON_INVALID_UTF8, r->pos);
		r->pos += width;
	}

	r->pos++;
	if (!decoded)
		return add_token(r, AR_JSON_STRING, offset, run, r->pos - 1 - run, false);
	if (!ar_buffer_append(&t->bytes, t->text + run, r->pos - 1 - run))
		return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
	return add_token(r, AR_JSON_STRING, offset, copy, t->bytes.length - copy, true);
}

/* Skips digits, of which there must be one at least.  False: fault recorded. */
static bool
skip_digits(Reader *r)
{
	size_t		first = r->pos;

	while (r->pos < r->t->length &&
		   r->t->text[r->pos] >= '0' && r->t->text[r->pos] <= '9')
		r->pos++;
	return r->pos > first || fail_here(r);
}

/* Whether the current byte is c or d. */
static bool
at_either(const Reader *r, char c, char d)
{
	return r->pos < r->t->length &&
		(r->t->text[r->pos] == c || r->t->text[r->pos] == d);
}

/* Adds the token of a number with fraction or exponent.  False: fault. */
static bool
add_float(Reader *r, size_t offset)
{
	ArJsonTokens *t = r->t;
	char		text[AR_DOUBLE_REPR_SIZE];
	size_t		length;
	double		value;

	if (!ar_json_number_value(t->text + offset, r->pos - offset, &t->scratch, &value))
		return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
	if (!isfinite(value))
		return fail(r, AR_JSON_NOT_FINITE, offset);
	if (value == 0 && signbit(value))
		return fail(r, AR_JSON_NEGATIVE_ZERO, offset);
	length = ar_double_repr(value, text);
	if (!ar_buffer_append(&t->bytes, text, length))
		return fail(r, AR_JSON_OUT_OF_MEMORY, offset);
	return add_token(r, AR_JSON_VERBATIM, offset, t->bytes.length - length, length, true);
}

/* Whether the rest of the text starts with `word`; if so, steps over it. */
static bool
skip_word(Reader *r, const char *word)
{
	size_t		length = strlen(word);

	if (r->t->length - r->pos < length ||
		memcmp(r->t->text + r->pos, word, length) != 0)
		return false;
	r->pos += length;
	return true;
}

/* Reads a number.  False: fault recorded. */
static bool
read_number(Reader *r)
{
	size_t		offset = r->pos;
	size_t		start;
	bool		is_float = false;

	if (at_either(r, '-', '-'))
	{
		r->pos++;
		if (skip_word(r, "Infinity"))
			return fail(r, AR_JSON_NOT_FINITE, offset);
	}
	start = r->pos;
	if (at_either(r, '0', '0'))
		r->pos++;
	else if (!skip_digits(r))
		return false;
	if (at_either(r, '.', '.'))
	{
		is_float = true;
		r->pos++;
		if (!skip_digits(r))
			return false;
	}
	if (at_either(r, 'e', 'E'))
	{
		is_float = true;
		r->pos++;
		if (at_either(r, '+', '-'))
			r->pos++;
		if (!skip_digits(r))
			return false;
	}
	if (is_float)
		return add_float(r, offset);
	/* The integer -0 is 0. */
	if (r->t->text[start] != '0')
		start = offset;
	return add_token(r, AR_JSON_VERBATIM, offset, start, r->pos - start, false);
}

/* Opens a container and says what must follow.  False: fault recorded. */
static bool
open_container(Reader *r, ArJsonKind kind)
{
	if (r->depth >= AR_JSON_MAX_DEPTH)
		return fail(r, AR_JSON_TOO_DEEP, r->pos);
	r->stack[r->depth] = token_count(r);
	if (!add_token(r, kind, r->pos, 0, 0, false))
		return false;
	r->depth++;
	r->pos++;
	return true;
}

/* Ends the innermost container at its closing bracket.  False: fault. */
static bool
close_container(Reader *r)
{
	uint32_t	container = r->stack[--r->depth];

	if (token_at(r, container)->kind == AR_JSON_OBJECT && !ar_json_order_members(r->t, container, r->error))
		return false;
	token_at(r, container)->next = token_count(r);
	r->pos++;
	return true;
}

/* Steps over JSON's white space. */
static void
skip_space(Reader *r)
{
	while (at_either(r, ' ', '\n') || at_either(r, '\t', '\r'))
		r->pos++;
}

/* Reads a value, or the start of one.  False: fault recorded. */
static bool
read_value(Reader *r, Expect *expect)
{
	size_t		offset = r->pos;

	*expect = EXPECT_SEPARATOR;
	if (r->pos >= r->t->length)
		return fail_here(r);
	switch (r->t->text[r->pos])
	{
		case '{':
			*expect = EXPECT_KEY_OR_END;
			return open_container(r, AR_JSON_OBJECT);
		case '[':
			*expect = EXPECT_VALUE_OR_END;
			return open_container(r, AR_JSON_ARRAY);
		case '"':
			return read_string(r);
		default:
			break;
	}
	if (skip_word(r, "true") || skip_word(r, "false") || skip_word(r, "null"))
		return add_token(r, AR_JSON_VERBATIM, offset, offset, r->pos - offset, false);
	if (skip_word(r, "NaN") || skip_word(r, "Infinity"))
		return fail(r, AR_JSON_NOT_FINITE, offset);
	return read_number(r);
}

/* Reads a key and its colon.  False: fault recorded. */
static bool
read_key(Reader *r, Expect *expect)
{
	if (!at_either(r, '"', '"'))
		return fail_here(r);
	if (!read_string(r))
		return false;
	skip_space(r);
	if (!at_either(r, ':', ':'))
		return fail_here(r);
	r->pos++;
	*expect = EXPECT_VALUE;
	return true;
}

/* Reads what stands behind a value inside a container.  False: fault. */
static bool
read_separator(Reader *r, Expect *expect)
{
	bool		in_object = token_at(r, r->stack[r->depth - 1])->kind == AR_JSON_OBJECT;

	if (at_either(r, ',', ','))
	{
		r->pos++;
		*expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
		return true;
	}
	if (at_either(r, in_object ? '}' : ']', in_object ? '}' : ']'))
		return close_container(r);
	return fail_here(r);
}

/* See json_tokens.h. */
bool
ar_json_tokens_read(ArJsonTokens *tokens, const char *text, size_t length,
					ArJsonError *error)
{
	Reader		r = {.t = tokens,.error = error};
	Expect		expect = EXPECT_VALUE;
	bool		good;

	memset(tokens, 0, sizeof(*tokens));
	tokens->text = text;
	tokens->length = length;
	if (length > AR_JSON_MAX_BYTES)
		return fail(&r, AR_JSON_TOO_LARGE, AR_JSON_MAX_BYTES);
	do
	{
		skip_space(&r);
		if (expect == EXPECT_SEPARATOR)
			good = read_separator(&r, &expect);
		else if (expect == EXPECT_KEY_OR_END && at_either(&r, '}', '}'))
			good = close_container(&r), expect = EXPECT_SEPARATOR;
		else if (expect == EXPECT_VALUE_OR_END && at_either(&r, ']', ']'))
			good = close_container(&r), expect = EXPECT_SEPARATOR;
		else if (expect == EXPECT_KEY || expect == EXPECT_KEY_OR_END)
			good = read_key(&r, &expect);
		else
			good = read_value(&r, &expect);
	} while (good && r.depth > 0);

	if (!good)
		return false;
	skip_space(&r);
	return r.pos == length || fail_here(&r);
}

/* See json_tokens.h. */
void
ar_json_tokens_destroy(ArJsonTokens *tokens)
{
	ar_buffer_destroy(&tokens->tokens);
	ar_buffer_destroy(&tokens->order);
	ar_buffer_destroy(&tokens->bytes);
	ar_buffer_destroy(&tokens->scratch);
}
