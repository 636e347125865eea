/*
 * fuzz_template.c
 *		Values that try to break out of their place in a request.
 *
 * The first line of the input is the part, the second the template, and each
 * further one a name, "=" and its value; in a value \n is a line end, \0 a zero
 * byte and \\ a backslash.
 */
#include "core/template.h"

#include <strings.h>

#include "core/canonical_json.h"
#include "core/utf8.h"
#include "fuzz.h"

#define MAX_VALUES 16

typedef struct Input
{
	ArTemplatePart part;
	const char *text;
	size_t		length;
	int			count;
	const char *names[MAX_VALUES];
	size_t		name_lengths[MAX_VALUES];
	char	   *values[MAX_VALUES];
	size_t		value_lengths[MAX_VALUES];
} Input;

static bool
look_up(void *state, const char *name, size_t name_length, ArTemplateValue *value)
{
	const Input *input = state;

	for (int i = 0; i < input->count; i++)
	{
		if (input->name_lengths[i] == name_length && memcmp(input->names[i], name, name_length) == 0)
		{
			value->bytes = input->values[i];
			value->length = input->value_lengths[i];
			return true;
		}
	}
	return false;
}

/* Takes a line off the input; false at its end. */
static bool
next_line(const char **rest, const char *end, const char **line, size_t *length)
{
	const char *newline;

	if (*rest >= end)
		return false;
	newline = memchr(*rest, '\n', (size_t) (end - *rest));
	*line = *rest;
	*length = (size_t) ((newline != NULL ? newline : end) - *rest);
	*rest += *length + 1;
	return true;
}

/* The value without its escapes, in memory of exactly its size. */
static char *
unescape(const char *bytes, size_t length, size_t *value_length)
{
	char	   *value = malloc(length > 0 ? length : 1);
	size_t		used = 0;

	for (size_t i = 0; i < length; i++)
	{
		char		byte = bytes[i];

		if (byte == '\\' && i + 1 < length)
		{
			byte = bytes[++i];
			byte = byte == 'n' ? '\n' : byte == '0' ? '\0' : byte;
		}
		value[used++] = byte;
	}
	*value_length = used;
	return value;
}

static bool
read_input(const char *data, size_t size, Input *input)
{
	const char *rest = data;
	const char *line;
	size_t		length;
	char		part[8];

	memset(input, 0, sizeof(*input));
	if (!next_line(&rest, data + size, &line, &length) || length >= sizeof(part))
		return false;
	memcpy(part, line, length);
	part[length] = '\0';
	/* A template is a text of the database, so it has no zero byte. */
	if (!ar_template_part_parse(part, &input->part) ||
		!next_line(&rest, data + size, &input->text, &input->length) || memchr(input->text, '\0', input->length) != NULL)
		return false;
	while (input->count < MAX_VALUES && next_line(&rest, data + size, &line, &length))
	{
		const char *equals = memchr(line, '=', length);
		size_t		name_length = equals != NULL ? (size_t) (equals - line) : length;

		if (equals == NULL)
			continue;
		input->names[input->count] = line;
		input->name_lengths[input->count] = name_length;
		input->values[input->count] = unescape(equals + 1, length - name_length - 1, &input->value_lengths[input->count]);
		input->count++;
	}
	return true;
}

static bool
is_unreserved(char byte)
{
	return byte != '\0' &&
		strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", byte) != NULL;
}

/* The bytes that a percent-encoded text stands for, in memory of the caller. */
static size_t
percent_decode(const char *text, size_t length, char *out)
{
	size_t		used = 0;

	for (size_t i = 0; i < length; i++)
	{
		unsigned int byte;
		char		digits[3];

		if (text[i] == '%' && i + 2 < length && memcpy(digits, text + i + 1, 2) && (digits[2] = '\0') == '\0' &&
			strspn(digits, "0123456789abcdefABCDEF") == 2 && sscanf(digits, "%x", &byte) == 1)
		{
			out[used++] = (char) byte;
			i += 2;
		}
		else
			out[used++] = text[i];
	}
	return used;
}

static size_t
count_controls(const char *text, size_t length)
{
	size_t		count = 0;

	for (size_t i = 0; i < length; i++)
		count += (unsigned char) text[i] < 0x20 || text[i] == 0x7f;
	return count;
}

static size_t
count_credentials(const char *text, size_t length)
{
	static const char name[] = "{credential}";
	size_t		count = 0;

	for (size_t i = 0; i + strlen(name) <= length; i++)
		count += memcmp(text + i, name, strlen(name)) == 0;
	return count;
}

/* No byte of the value but unreserved ones stands for itself, and it reads back. */
static void
check_encoded(const ArTemplateValue *value, const char *written, size_t length)
{
	char	   *decoded = malloc(length + 1);

	for (size_t i = 0; i < length; i++)
		must(is_unreserved(written[i]) || written[i] == '%');
	must(percent_decode(written, length, decoded) == value->length && memcmp(decoded, value->bytes, value->length) == 0);
	free(decoded);
}

/* Whether it is a text that jsonb could hold. */
static bool
is_text(const ArTemplateValue *value)
{
	uint32_t	code_point;
	size_t		step;

	for (size_t i = 0; i < value->length; i += step)
	{
		step = ar_utf8_decode(value->bytes + i, value->length - i, &code_point);
		if (step == 0 || code_point == 0)
			return false;
	}
	return true;
}

/* Between two quotes it is one JSON string, that of the value. */
static void
check_json(const ArTemplateValue *value, const char *written, size_t length)
{
	char	   *quoted = malloc(length + 2);
	ArBuffer	canonical;
	ArBuffer	plain;
	ArJsonError error;

	for (size_t i = 0; i < length; i++)
		must((unsigned char) written[i] >= 0x20);
	quoted[0] = quoted[length + 1] = '"';
	memcpy(quoted + 1, written, length);
	ar_buffer_init(&canonical);
	ar_buffer_init(&plain);
	if (is_text(value))
	{
		must(ar_canonical_json(quoted, length + 2, &canonical, &error));
		must(canonical.data[0] == '"');
		/* Written another way, with \u for every ASCII byte, it is the same string. */
		must(ar_buffer_append(&plain, "\"", 1));
		for (size_t i = 0; i < value->length; i++)
		{
			char		escape[8];
			bool		is_ascii = (unsigned char) value->bytes[i] < 0x80;

			snprintf(escape, sizeof(escape), "\\u%04X", (unsigned char) value->bytes[i]);
			must(ar_buffer_append(&plain, is_ascii ? escape : value->bytes + i, is_ascii ? 6 : 1));
		}
		must(ar_buffer_append(&plain, "\"", 1));
		quoted = realloc(quoted, canonical.length);
		memcpy(quoted, canonical.data, canonical.length);
		length = canonical.length;
		ar_buffer_truncate(&canonical, 0);
		must(ar_canonical_json(plain.data, plain.length, &canonical, &error));
		must(canonical.length == length && memcmp(canonical.data, quoted, length) == 0);
	}
	ar_buffer_destroy(&plain);
	ar_buffer_destroy(&canonical);
	free(quoted);
}

/* Servers fold such segments, written this way or that. */
static void
check_segments(const char *path, size_t length)
{
	const char *query = memchr(path, '?', length);
	const char *end = query != NULL ? query : path + length;
	const char *at = length > 0 && *path == '/' ? path + 1 : path;
	char	   *decoded = malloc(length + 1);

	while (true)
	{
		const char *slash = memchr(at, '/', (size_t) (end - at));
		size_t		size = percent_decode(at, (size_t) ((slash != NULL ? slash : end) - at), decoded);

		must(!(size == 1 && decoded[0] == '.') && !(size == 2 && decoded[0] == '.' && decoded[1] == '.'));
		must(size > 0 || slash == NULL);
		if (slash == NULL)
			break;
		at = slash + 1;
	}
	free(decoded);
}

/* A value alone, as it is written in that part; false if it is refused. */
static bool
write_alone(const ArTemplatePiece *name, Input *input, ArBuffer *out)
{
	ArTemplateError error;

	/* A segment of dots alone is one in a path, but need not be where it stands. */
	return ar_template_render(name->bytes - 1, name->length + 2, input->part, look_up, input, out, &error) ||
		error.problem == AR_TEMPLATE_FOLDED_SEGMENT;
}

/* What was made is the template's own text, and between it the values, each in the manner of the part. */
static void
check_filled(Input *input, const char *made, size_t length)
{
	const char *rest = input->text;
	ArTemplatePiece piece;
	ArBuffer	expected;
	size_t		own_controls = 0;
	size_t		own_credentials = 0;

	ar_buffer_init(&expected);
	while (ar_template_next(&rest, input->text + input->length, &piece))
	{
		size_t		start = expected.length;
		ArTemplateValue value;

		must(piece.length > 0 && piece.bytes >= input->text && piece.bytes + piece.length <= input->text + input->length);
		if (!piece.is_name || piece.is_optional || (input->part == AR_PART_HEADER && piece.length == strlen(AR_CREDENTIAL_NAME) &&
													memcmp(piece.bytes, AR_CREDENTIAL_NAME, piece.length) == 0))
		{
			int			braces = piece.is_name ? 1 : 0;

			must(ar_buffer_append(&expected, piece.bytes - braces, piece.length + 2 * braces + piece.is_optional));
			own_controls += count_controls(expected.data + start, expected.length - start);
			own_credentials += count_credentials(expected.data + start, expected.length - start);
			continue;
		}
		must(look_up(input, piece.bytes, piece.length, &value));
		must(write_alone(&piece, input, &expected));
		if (input->part == AR_PART_PATH || input->part == AR_PART_FORM)
			check_encoded(&value, expected.data + start, expected.length - start);
		else if (input->part == AR_PART_JSON)
			check_json(&value, expected.data + start, expected.length - start);
		else
			must(expected.length - start == value.length && memcmp(expected.data + start, value.bytes, value.length) == 0);
		if (input->part == AR_PART_PATH || input->part == AR_PART_HEADER)
			must(expected.length > start);
	}
	must(expected.length == length && (length == 0 || memcmp(expected.data, made, length) == 0));
	must(length <= ar_template_limit(input->part));
	if (input->part != AR_PART_JSON)
		must(count_controls(made, length) == own_controls);
	if (input->part == AR_PART_HEADER)
		must(count_credentials(made, length) == own_credentials);
	if (input->part == AR_PART_PATH)
		check_segments(made, length);
	ar_buffer_destroy(&expected);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "/../";
	Input		input;
	ArBuffer	out;
	ArTemplateError error = {AR_TEMPLATE_OK, NULL, 0};

	if (!read_input((const char *) data, size, &input))
	{
		for (int i = 0; i < input.count; i++)
			free(input.values[i]);
		return 0;
	}
	ar_buffer_init(&out);
	must(ar_buffer_append(&out, before, strlen(before)));
	if (ar_template_render(input.text, input.length, input.part, look_up, &input, &out, &error))
		check_filled(&input, out.data + strlen(before), out.length - strlen(before));
	else
	{
		must(error.problem != AR_TEMPLATE_OK && *ar_template_problem_text(error.problem) != '\0');
		must(out.length == strlen(before) || error.problem == AR_TEMPLATE_FOLDED_SEGMENT);
		must(error.name == NULL || (error.name > input.text && error.name_length > 0 &&
									error.name + error.name_length < input.text + input.length));
	}
	must(memcmp(out.data, before, strlen(before)) == 0);
	ar_buffer_destroy(&out);
	for (int i = 0; i < input.count; i++)
		free(input.values[i]);
	return 0;
}
