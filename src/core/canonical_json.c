/*
 * canonical_json.c
 *		One text for one JSON value, and for one intent.
 *
 * The text is first read into tokens (json_tokens.c), where everything that
 * may be refused is refused; writing can then fail for want of memory only.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/canonical_json.h"

#include <string.h>

#include "core/json_tokens.h"
#include "core/utf8.h"

/* A container that is being written. */
typedef struct Frame
{
	uint32_t	token;
	uint32_t	next;			/* array: token to write next; object: member */
} Frame;

/* Writes \uXXXX.  False: no memory.  Never throws. */
static bool
write_unicode_escape(ArBuffer *out, uint32_t unit)
{
	static const char hex[] = "0123456789abcdef";
	char		text[6] = {'\\', 'u'};

	text[2] = hex[unit >> 12 & 0xF];
	text[3] = hex[unit >> 8 & 0xF];
	text[4] = hex[unit >> 4 & 0xF];
	text[5] = hex[unit & 0xF];
	return ar_buffer_append(out, text, sizeof(text));
}

/* Writes a character that may not stand for itself.  False: no memory. */
static bool
write_escape(ArBuffer *out, uint32_t code_point)
{
	static const char values[] = "\"\\\b\f\n\r\t";
	static const char names[] = "\"\\bfnrt";
	const char *value = NULL;

	if (code_point < 0x80)
		value = memchr(values, (int) code_point, sizeof(values) - 1);
	if (value != NULL)
	{
		char		text[2] = {'\\', names[value - values]};

		return ar_buffer_append(out, text, sizeof(text));
	}
	if (code_point < 0x10000)
		return write_unicode_escape(out, code_point);
	code_point -= 0x10000;
	return write_unicode_escape(out, 0xD800 + (code_point >> 10)) &&
		write_unicode_escape(out, 0xDC00 + (code_point & 0x3FF));
}

/*
 * Writes a quoted string from UTF-8.  Returns the offset of the first byte that
 * could not be written, which is `length` if all were; *oom tells bad UTF-8 from
 * lack of memory.  Never throws.
 */
static size_t
write_string(ArBuffer *out, const char *bytes, size_t length, bool *oom)
{
	size_t		run = 0;		/* start of what is not yet written */
	size_t		pos = 0;

	*oom = !ar_buffer_append(out, "\"", 1);
	while (!*oom && pos < length)
	{
		uint32_t	code_point;
		size_t		width = ar_utf8_decode(bytes + pos, length - pos, &code_point);

		if (width == 0)
			return pos;
		if (code_point < 0x20 || code_point > 0x7E ||
			code_point == '"' || code_point == '\\')
		{
			*oom = !ar_buffer_append(out, bytes + run, pos - run) ||
				!write_escape(out, code_point);
			run = pos + width;
		}
		pos += width;
	}
	if (!*oom)
		*oom = !ar_buffer_append(out, bytes + run, pos - run) ||
			!ar_buffer_append(out, "\"", 1);
	return pos;
}

/* Writes a scalar token.  False: no memory. */
static bool
write_scalar(const ArJsonTokens *tokens, const ArJsonToken *token, ArBuffer *out)
{
	const char *bytes = ar_json_token_bytes(tokens, token);
	bool		oom;

	if (token->kind == AR_JSON_VERBATIM)
		return ar_buffer_append(out, bytes, token->length);
	write_string(out, bytes, token->length, &oom);
	return !oom;
}

/*
 * Takes the next child of the container in `frame`: writes what stands before
 * it and sets *child.  Sets *done instead, with the closing bracket written, when
 * there is none left.  False: no memory.
 */
static bool
next_child(const ArJsonTokens *tokens, Frame *frame, ArBuffer *out,
		   uint32_t *child, bool *done)
{
	const ArJsonToken *container = ar_json_token(tokens, frame->token);
	const uint32_t *order = (const uint32_t *) (const void *) tokens->order.data;
	uint32_t	key;

	*done = false;
	if (container->kind == AR_JSON_ARRAY)
	{
		if (frame->next == container->next)
		{
			*done = true;
			return ar_buffer_append(out, "]", 1);
		}
		*child = frame->next;
		frame->next = ar_json_token(tokens, *child)->next;
		return *child == frame->token + 1 || ar_buffer_append(out, ",", 1);
	}
	if (frame->next == container->length)
	{
		*done = true;
		return ar_buffer_append(out, "}", 1);
	}
	key = order[container->start + frame->next];
	*child = key + 1;
	return (frame->next++ == 0 || ar_buffer_append(out, ",", 1)) &&
		write_scalar(tokens, ar_json_token(tokens, key), out) &&
		ar_buffer_append(out, ":", 1);
}

/* Writes the whole value.  False: no memory. */
static bool
write_tokens(const ArJsonTokens *tokens, ArBuffer *out)
{
	Frame		stack[AR_JSON_MAX_DEPTH];
	size_t		depth = 0;
	uint32_t	current = 0;

	for (;;)
	{
		const ArJsonToken *token = ar_json_token(tokens, current);
		bool		done = true;

		if (token->kind == AR_JSON_ARRAY || token->kind == AR_JSON_OBJECT)
		{
			bool		is_array = token->kind == AR_JSON_ARRAY;

			stack[depth].token = current;
			stack[depth].next = is_array ? current + 1 : 0;
			depth++;
			if (!ar_buffer_append(out, is_array ? "[" : "{", 1))
				return false;
		}
		else if (!write_scalar(tokens, token, out))
			return false;

		while (depth > 0)
		{
			if (!next_child(tokens, &stack[depth - 1], out, &current, &done))
				return false;
			if (!done)
				break;
			depth--;
		}
		if (done)
			return true;
	}
}

/* See canonical_json.h. */
bool
ar_canonical_json(const char *text, size_t length, ArBuffer *out,
				  ArJsonError *error)
{
	size_t		before = out->length;
	ArJsonTokens tokens;
	bool		good;

	error->code = AR_JSON_OK;
	error->offset = 0;
	good = ar_json_tokens_read(&tokens, text, length, error);
	if (good && !write_tokens(&tokens, out))
	{
		error->code = AR_JSON_OUT_OF_MEMORY;
		ar_buffer_truncate(out, before);
		good = false;
	}
	ar_json_tokens_destroy(&tokens);
	return good;
}

/* Writes the method in upper case.  False: fault recorded. */
static bool
write_method(const char *method, ArBuffer *out, ArJsonError *error)
{
	ArBuffer	upper = {0};
	size_t		length = strlen(method);
	size_t		i;
	bool		oom;

	error->code = AR_JSON_OUT_OF_MEMORY;
	if (!ar_buffer_append(&upper, method, length))
		return false;
	for (i = 0; i < length; i++)
	{
		if ((unsigned char) method[i] >= 0x80)
		{
			error->code = AR_JSON_INVALID_METHOD;
			error->offset = i;
			ar_buffer_destroy(&upper);
			return false;
		}
		if (method[i] >= 'a' && method[i] <= 'z')
			upper.data[i] = (char) (method[i] - 'a' + 'A');
	}
	write_string(out, upper.data, length, &oom);
	ar_buffer_destroy(&upper);
	return !oom;
}

/* Writes the path.  False: fault recorded. */
static bool
write_path(const char *path, ArBuffer *out, ArJsonError *error)
{
	size_t		length = strlen(path);
	bool		oom;
	size_t		written = write_string(out, path, length, &oom);

	if (!oom && written < length)
	{
		error->code = AR_JSON_INVALID_PATH;
		error->offset = written;
	}
	return !oom && written == length;
}

/* See canonical_json.h. */
bool
ar_canonical_intent(const char *method, const char *path,
					const char *payload_text, size_t length,
					ArBuffer *out, ArJsonError *error)
{
	static const char method_key[] = "{\"method\":";
	static const char path_key[] = ",\"path\":";
	static const char payload_key[] = ",\"payload\":";
	size_t		before = out->length;
	bool		good;

	error->code = AR_JSON_OUT_OF_MEMORY;
	error->offset = 0;
	good = ar_buffer_append(out, method_key, sizeof(method_key) - 1) &&
		write_method(method, out, error) &&
		ar_buffer_append(out, path_key, sizeof(path_key) - 1) &&
		write_path(path, out, error) &&
		ar_buffer_append(out, payload_key, sizeof(payload_key) - 1) &&
		ar_canonical_json(payload_text, length, out, error);
	if (good && !ar_buffer_append(out, "}", 1))
	{
		error->code = AR_JSON_OUT_OF_MEMORY;
		good = false;
	}
	if (!good)
		ar_buffer_truncate(out, before);
	return good;
}

/* See canonical_json.h. */
const char *
ar_json_error_message(ArJsonErrorCode code)
{
	switch (code)
	{
		case AR_JSON_OK:
			return "no error";
		case AR_JSON_SYNTAX:
			return "unexpected character";
		case AR_JSON_UNEXPECTED_END:
			return "unexpected end of text";
		case AR_JSON_INVALID_UTF8:
			return "invalid UTF-8";
		case AR_JSON_CONTROL_CHARACTER:
			return "unescaped control character in a string";
		case AR_JSON_INVALID_ESCAPE:
			return "invalid escape sequence";
		case AR_JSON_LONE_SURROGATE:
			return "surrogate without its other half";
		case AR_JSON_NUL_CHARACTER:
			return "character U+0000 is not allowed";
		case AR_JSON_NOT_FINITE:
			return "number is not finite or too large for double precision";
		case AR_JSON_NEGATIVE_ZERO:
			return "negative zero is not allowed";
		case AR_JSON_DUPLICATE_KEY:
			return "duplicate object key";
		case AR_JSON_TOO_DEEP:
			return "nesting is too deep";
		case AR_JSON_TOO_LARGE:
			return "text is too large";
		case AR_JSON_OUT_OF_MEMORY:
			return "out of memory";
		case AR_JSON_INVALID_METHOD:
			return "method is not ASCII";
		case AR_JSON_INVALID_PATH:
			return "path is not valid UTF-8";
	}
	return "unrecognized error";
}
