/*
 * template.c
 *		Filling values into the parts of a request.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; a
 * lookup that leaves by throwing finds the buffer in the caller's hands.
 */
#include "core/template.h"

#include <string.h>

typedef struct Filling
{
	ArTemplatePart part;
	ArBuffer   *out;
	size_t		start;			/* where this template begins in out */
	size_t		limit;
	int			credentials;	/* how often the template itself names the credential */
	ArTemplateError *error;
} Filling;

/* Whether a name may have the byte; not in the locale's opinion. */
static bool
is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

/* The end of the name that begins there, or NULL: no dot at an end, no two side by side. */
static const char *
skip_name(const char *at, const char *end)
{
	while (true)
	{
		const char *step = at;

		while (at < end && is_name_byte(*at))
			at++;
		if (at == step)
			return NULL;
		if (at == end || *at != '.')
			return at;
		at++;
	}
}

/* Reads {name} or {name?} behind its opening brace; false if it is no such thing. */
static bool
read_name(const char *name, const char *end, ArTemplatePiece *piece, const char **behind)
{
	const char *at = skip_name(name, end);

	if (at == NULL)
		return false;
	piece->bytes = name;
	piece->length = (size_t) (at - name);
	piece->is_name = true;
	piece->is_optional = at < end && *at == '?';
	if (piece->is_optional)
		at++;
	if (at == end || *at != '}')
		return false;
	*behind = at + 1;
	return true;
}

/* See template.h. */
bool
ar_template_next(const char **rest, const char *end, ArTemplatePiece *piece)
{
	const char *start = *rest;
	const char *at = start;
	const char *behind;

	if (start == end)
		return false;
	while ((at = memchr(at, '{', (size_t) (end - at))) != NULL)
	{
		if (read_name(at + 1, end, piece, &behind))
		{
			if (at == start)
			{
				*rest = behind;
				return true;
			}
			break;
		}
		at++;
	}
	piece->bytes = start;
	piece->length = (size_t) ((at != NULL ? at : end) - start);
	piece->is_name = false;
	piece->is_optional = false;
	*rest = start + piece->length;
	return true;
}

/* Whether the piece is that name. */
static bool
is_named(const ArTemplatePiece *piece, const char *name)
{
	return piece->length == strlen(name) && memcmp(piece->bytes, name, piece->length) == 0;
}

/* See template.h. */
bool
ar_template_names(const char *text, size_t length, const char *name)
{
	ArTemplatePiece piece;
	const char *rest = text;

	while (ar_template_next(&rest, text + length, &piece))
	{
		if (piece.is_name && is_named(&piece, name))
			return true;
	}
	return false;
}

/* See template.h. */
size_t
ar_template_limit(ArTemplatePart part)
{
	switch (part)
	{
		case AR_PART_PATH:
			return AR_MAX_PATH_BYTES;
		case AR_PART_HEADER:
			return AR_MAX_HEADER_VALUE_BYTES;
		case AR_PART_TEXT:
		case AR_PART_JSON:
		case AR_PART_FORM:
			break;
	}
	return AR_MAX_BODY_BYTES;
}

/* See template.h. */
bool
ar_template_part_parse(const char *name, ArTemplatePart *part)
{
	static const char *const names[] = {"path", "header", "text", "json", "form"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			*part = (ArTemplatePart) i;
			return true;
		}
	}
	return false;
}

/* See template.h. */
const char *
ar_template_problem_text(ArTemplateProblem problem)
{
	switch (problem)
	{
		case AR_TEMPLATE_NO_VALUE:
			return "the payload has no such text, number or boolean";
		case AR_TEMPLATE_EMPTY_VALUE:
			return "it is empty";
		case AR_TEMPLATE_CONTROL_CHARACTER:
			return "it holds a control character";
		case AR_TEMPLATE_OPTIONAL_NAME:
			return "only a member of a document can be left out, by {name?}";
		case AR_TEMPLATE_CREDENTIAL:
			return "values would write {credential}";
		case AR_TEMPLATE_FOLDED_SEGMENT:
			return "the path has an empty, \".\" or \"..\" segment";
		case AR_TEMPLATE_TOO_LONG:
			return "it is too long";
		case AR_TEMPLATE_OUT_OF_MEMORY:
			return "out of memory";
		case AR_TEMPLATE_OK:
			break;
	}
	return "";
}

/* See template.h. */
size_t
ar_percent_encode(const char *bytes, size_t length, char *out)
{
	static const char hex[] = "0123456789ABCDEF";
	char	   *to = out;

	for (size_t i = 0; i < length; i++)
	{
		unsigned char byte = (unsigned char) bytes[i];

		if (is_name_byte((char) byte) || byte == '-' || byte == '.' || byte == '~')
			*to++ = (char) byte;
		else
		{
			*to++ = '%';
			*to++ = hex[byte >> 4];
			*to++ = hex[byte & 0xF];
		}
	}
	return (size_t) (to - out);
}

/* Notes the problem; always false. */
static bool
fail(Filling *filling, ArTemplateProblem problem, const ArTemplatePiece *piece)
{
	filling->error->problem = problem;
	filling->error->name = piece ? piece->bytes : NULL;
	filling->error->name_length = piece ? piece->length : 0;
	return false;
}

/* Makes room for that many bytes at most, if the part may have them. */
static bool
reserve(Filling *filling, size_t least, size_t most)
{
	size_t		used = filling->out->length - filling->start;

	if (least > filling->limit - used)
		return fail(filling, AR_TEMPLATE_TOO_LONG, NULL);
	if (!ar_buffer_reserve(filling->out, most))
		return fail(filling, AR_TEMPLATE_OUT_OF_MEMORY, NULL);
	return true;
}

/* Whether what was written, without any reservation, is within the limit. */
static bool
written(Filling *filling, size_t more)
{
	filling->out->length += more;
	filling->out->data[filling->out->length] = '\0';
	if (filling->out->length - filling->start > filling->limit)
		return fail(filling, AR_TEMPLATE_TOO_LONG, NULL);
	return true;
}

/* Writes bytes as they are. */
static bool
write_plain(Filling *filling, const char *bytes, size_t length)
{
	if (!reserve(filling, length, length))
		return false;
	memcpy(filling->out->data + filling->out->length, bytes, length);
	return written(filling, length);
}

/* Writes bytes for the inside of a JSON string, as the server's escape_json() does. */
static size_t
escape_json_bytes(const char *bytes, size_t length, char *out)
{
	static const char hex[] = "0123456789abcdef";
	static const char plain[] = "\b\f\n\r\t\"\\";
	static const char letters[] = "bfnrt\"\\";
	char	   *to = out;

	for (size_t i = 0; i < length; i++)
	{
		unsigned char byte = (unsigned char) bytes[i];
		const char *found = byte != '\0' ? strchr(plain, byte) : NULL;

		if (found != NULL)
		{
			*to++ = '\\';
			*to++ = letters[found - plain];
		}
		else if (byte < 0x20)
		{
			memcpy(to, "\\u00", 4);
			to[4] = hex[byte >> 4];
			to[5] = hex[byte & 0xF];
			to += 6;
		}
		else
			*to++ = (char) byte;
	}
	return (size_t) (to - out);
}

/* Whether a byte that ends or moves a line is among them. */
static bool
has_control_character(const ArTemplateValue *value)
{
	for (size_t i = 0; i < value->length; i++)
	{
		unsigned char byte = (unsigned char) value->bytes[i];

		if (byte < 0x20 || byte == 0x7f)
			return true;
	}
	return false;
}

/* Writes a value in the manner of its part. */
static bool
write_value(Filling *filling, const ArTemplatePiece *piece, const ArTemplateValue *value)
{
	bool		encoded = filling->part == AR_PART_PATH || filling->part == AR_PART_FORM;
	size_t		most;
	char	   *to;

	if (filling->part != AR_PART_JSON && filling->part != AR_PART_FORM && has_control_character(value))
		return fail(filling, AR_TEMPLATE_CONTROL_CHARACTER, piece);
	if ((filling->part == AR_PART_PATH || filling->part == AR_PART_HEADER) && value->length == 0)
		return fail(filling, AR_TEMPLATE_EMPTY_VALUE, piece);
	if (!encoded && filling->part != AR_PART_JSON)
		return write_plain(filling, value->bytes, value->length);
	/* The limit bounds the length, so this does not overflow. */
	most = value->length <= filling->limit ? value->length * (encoded ? 3 : 6) : value->length;
	if (!reserve(filling, value->length, most))
		return false;
	to = filling->out->data + filling->out->length;
	return written(filling, encoded ? ar_percent_encode(value->bytes, value->length, to) :
				   escape_json_bytes(value->bytes, value->length, to));
}

/* Writes one piece of the template. */
static bool
write_piece(Filling *filling, const ArTemplatePiece *piece, ArTemplateLookup lookup, void *state)
{
	bool		leaves_out = filling->part == AR_PART_PATH || filling->part == AR_PART_HEADER;
	ArTemplateValue value = {0};

	if (!piece->is_name)
		return write_plain(filling, piece->bytes, piece->length);
	if (piece->is_optional)
	{
		if (leaves_out)
			return fail(filling, AR_TEMPLATE_OPTIONAL_NAME, piece);
		/* A text has nothing that could be left out: these are braces around no name. */
		return write_plain(filling, piece->bytes - 1, piece->length + 3);
	}
	if (filling->part == AR_PART_HEADER && is_named(piece, AR_CREDENTIAL_NAME))
	{
		filling->credentials++;
		return write_plain(filling, piece->bytes - 1, piece->length + 2);
	}
	if (!lookup(state, piece->bytes, piece->length, &value))
		return fail(filling, AR_TEMPLATE_NO_VALUE, piece);
	return write_value(filling, piece, &value);
}

/*
 * Whether there are more names of the credential than the template has: values,
 * or a value and the text around it, have written one.
 */
static bool
names_other_credential(const Filling *filling)
{
	const char *at = filling->out->data != NULL ? filling->out->data + filling->start : "";
	int			found = 0;

	while ((at = strstr(at, "{" AR_CREDENTIAL_NAME "}")) != NULL)
	{
		found++;
		at++;
	}
	return found != filling->credentials;
}

/* The dots that a segment consists of, also as %2e; 0 if there is anything else in it. */
static int
only_dots(const char *segment, size_t length)
{
	int			dots = 0;

	while (length > 0)
	{
		size_t		step = 1;

		if (*segment == '%' && length >= 3 && segment[1] == '2' && (segment[2] == 'e' || segment[2] == 'E'))
			step = 3;
		else if (*segment != '.')
			return 0;
		segment += step;
		length -= step;
		dots++;
	}
	return dots;
}

/*
 * Servers and proxies fold "." and ".." away, so such a segment would address
 * something else than what was recorded; an empty one they may fold too.
 */
static bool
has_folded_segment(const char *path)
{
	const char *segment = *path == '/' ? path + 1 : path;

	while (true)
	{
		size_t		length = strcspn(segment, "/?");
		char		end = segment[length];
		int			dots = only_dots(segment, length);

		if (dots == 1 || dots == 2 || (length == 0 && end == '/'))
			return true;
		if (end != '/')
			return false;
		segment += length + 1;
	}
}

/* See template.h. */
bool
ar_template_render(const char *text, size_t length, ArTemplatePart part,
				   ArTemplateLookup lookup, void *state, ArBuffer *out, ArTemplateError *error)
{
	Filling		filling = {part, out, out->length, ar_template_limit(part), 0, error};
	ArTemplatePiece piece;
	const char *rest = text;
	bool		done = true;

	*error = (ArTemplateError) {0};
	while (done && ar_template_next(&rest, text + length, &piece))
		done = write_piece(&filling, &piece, lookup, state);
	if (done && part == AR_PART_HEADER && names_other_credential(&filling))
		done = fail(&filling, AR_TEMPLATE_CREDENTIAL, NULL);
	if (!done)
	{
		ar_buffer_truncate(out, filling.start);
		return false;
	}
	if (part == AR_PART_PATH && out->length > filling.start && has_folded_segment(out->data + filling.start))
		return fail(&filling, AR_TEMPLATE_FOLDED_SEGMENT, NULL);
	return true;
}
