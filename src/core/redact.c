/*
 * redact.c
 *		What must not be kept of an answer, and taking it out.
 */
#include "core/redact.h"

#include <string.h>
#include <strings.h>

#define MASK '*'

/* Shorter words occur by chance. */
#define SHORTEST_SECRET 8
#define LONGEST_NAME 80

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool
is_name_byte(char c)
{
	return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* ---------------------------------------------------------------- names */

/* The words of a name in lower case, without what stands between them. */
static const char *const secret_names[] = {
	"authorization", "cookie", "password", "passwd", "passphrase", "secret", "token",
	"accesstoken", "refreshtoken", "authtoken", "clientsecret",
	"apikey", "accesskey", "secretkey", "privatekey", "credential", "credentials",
};

static const char *const parameter_names[] = {"signature", "sig"};

/* They tell where a list, or a change, goes on. */
static const char *const harmless_names[] = {
	"pagetoken", "pagingtoken", "continuationtoken", "continuetoken", "cursortoken", "synctoken", "nexttoken", "markertoken",
};

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Whether the name ends with one of these words.  A word begins where the name
 * does, behind a separator, or with a capital behind a small letter.
 */
static bool
ends_with(const char *name, size_t length, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		size_t		at = length;
		size_t		left = strlen(words[i]);

		while (at > 0 && left > 0)
		{
			char		c = name[at - 1];

			if (is_letter_or_digit(c))
			{
				if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != words[i][left - 1])
					break;
				left--;
			}
			at--;
		}
		if (left == 0 && (at == 0 || !is_letter_or_digit(name[at - 1]) ||
						  (name[at] >= 'A' && name[at] <= 'Z' && !(name[at - 1] >= 'A' && name[at - 1] <= 'Z'))))
			return true;
	}
	return false;
}

bool
ar_names_secret(const char *name, size_t length, ArNamePlace place)
{
	if (ends_with(name, length, harmless_names, LENGTH_OF(harmless_names)))
		return false;
	return ends_with(name, length, secret_names, LENGTH_OF(secret_names)) ||
		(place == AR_NAME_OF_PARAMETER && ends_with(name, length, parameter_names, LENGTH_OF(parameter_names)));
}

/* They say which exchange it was, and whether it is one that was before. */
static const char *const stored_headers[] = {
	"request-id", "x-request-id", "x-correlation-id", "x-message-id", "original-request", "idempotency-replayed", "idempotent-replayed",
};

bool
ar_header_is_stored(const char *name)
{
	for (size_t i = 0; i < LENGTH_OF(stored_headers); i++)
	{
		if (strcmp(stored_headers[i], name) == 0)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- what is known */

static int
hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

/* The byte that these digits write, or -1. */
static int
hex_byte(const char *digits)
{
	int			high = hex_value(digits[0]);
	int			low = hex_value(digits[1]);

	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* How many bytes of the text write this one byte, in whatever way; 0 if they do not. */
static size_t
written_as(const char *text, size_t length, char byte)
{
	if (length >= 3 && text[0] == '%' && hex_byte(text + 1) == (unsigned char) byte)
		return 3;
	if (length >= 6 && text[0] == '\\' && text[1] == 'u' && text[2] == '0' && text[3] == '0' &&
		hex_byte(text + 4) == (unsigned char) byte)
		return 6;
	if (length >= 2 && text[0] == '\\' && text[1] == byte)
		return 2;
	return length >= 1 && text[0] == byte ? 1 : 0;
}

/* How many bytes of the text write the word; 0 if it is not there. */
static size_t
word_at(const char *text, size_t length, const char *word, size_t word_length)
{
	size_t		taken = 0;

	for (size_t i = 0; i < word_length; i++)
	{
		size_t		one = written_as(text + taken, length - taken, word[i]);

		if (one == 0)
			return 0;
		taken += one;
	}
	return taken;
}

static void
hide_word(char *text, size_t length, const char *word, size_t word_length)
{
	for (size_t at = 0; at < length; at++)
	{
		size_t		taken;

		if (text[at] != word[0] && text[at] != '%' && text[at] != '\\')
			continue;
		taken = word_at(text + at, length - at, word, word_length);
		if (taken > 0)
		{
			memset(text + at, MASK, taken);
			at += taken - 1;
		}
	}
}

void
ar_redact_secret(char *text, size_t length, const char *secret)
{
	while (secret != NULL && *secret != '\0')
	{
		size_t		word = strcspn(secret, " ");

		if (word >= SHORTEST_SECRET)
			hide_word(text, length, secret, word);
		secret += word;
		secret += strspn(secret, " ");
	}
}

/* ---------------------------------------------------------------- what has a name */

/* Where a text begins and ends that stands behind a name. */
typedef struct ArPart
{
	size_t		start;
	size_t		end;
} ArPart;

static ArPart
until(const char *text, size_t length, size_t start, const char *ends)
{
	ArPart		part = {start, start};

	while (part.end < length && text[part.end] != '\0' && strchr(ends, text[part.end]) == NULL)
		part.end++;
	return part;
}

/* Up to the quote that ends a JSON string, or to the end of a text that is cut. */
static ArPart
quoted(const char *text, size_t length, size_t start)
{
	ArPart		part = {start, start};

	while (part.end < length && text[part.end] != '"')
		part.end += text[part.end] == '\\' && part.end + 1 < length ? 2 : 1;
	return part;
}

/*
 * What stands behind the separator at that place.  A value without quotes behind
 * a name with them is a number or a document, and no text.
 */
static ArPart
part_behind(const char *text, size_t length, size_t separator, bool name_is_quoted)
{
	size_t		at = separator + 1;

	if (text[separator] == '=' && (at >= length || text[at] != '"'))
		return until(text, length, at, "&;\"'<> \t\r\n\\#");
	if (text[separator] == '>')
		return until(text, length, at, "<");
	while (at < length && (is_blank(text[at]) || text[at] == '\r' || text[at] == '\n'))
		at++;
	if (at < length && text[at] == '"')
		return quoted(text, length, at + 1);
	/* JSON inside a JSON string */
	if (at + 1 < length && text[at] == '\\' && text[at + 1] == '"')
		return until(text, length, at + 2, "\"\\");
	return name_is_quoted ? (ArPart) {at, at} : until(text, length, at, "\r\n\"\\<");
}

/* The name that ends in front of the separator; its length is 0 if there is none. */
static ArPart
name_before(const char *text, size_t separator, bool *is_quoted)
{
	ArPart		name = {separator, separator};

	while (text[separator] != '=' && name.end > 0 && is_blank(text[name.end - 1]))
		name.end--;
	*is_quoted = name.end > 0 && text[name.end - 1] == '"';
	if (*is_quoted)
		name.end -= name.end > 1 && text[name.end - 2] == '\\' ? 2 : 1;
	name.start = name.end;
	while (name.start > 0 && name.end - name.start < LONGEST_NAME && is_name_byte(text[name.start - 1]))
		name.start--;
	return name;
}

void
ar_redact_named(char *text, size_t length)
{
	for (size_t at = 0; at < length; at++)
	{
		bool		is_quoted;
		ArPart		name;
		ArPart		part;

		if (text[at] != ':' && text[at] != '=' && text[at] != '>')
			continue;
		name = name_before(text, at, &is_quoted);
		if (!ar_names_secret(text + name.start, name.end - name.start, text[at] == '=' ? AR_NAME_OF_PARAMETER : AR_NAME_OF_MEMBER))
			continue;
		part = part_behind(text, length, at, is_quoted);
		memset(text + part.start, MASK, part.end - part.start);
		if (part.end > at)
			at = part.end - 1;
	}
}

void
ar_redact_address(char *address)
{
	char	   *kept = address + strcspn(address, "?");
	char	   *rest = kept;

	while (*rest == '?' || *rest == '&')
	{
		size_t		length = 1 + strcspn(rest + 1, "&#");
		size_t		name = strcspn(rest + 1, "=&#");

		if (!ar_names_secret(rest + 1, name, AR_NAME_OF_PARAMETER))
		{
			bool		is_first = memchr(address, '?', (size_t) (kept - address)) == NULL;

			memmove(kept, rest, length);
			*kept = is_first ? '?' : '&';
			kept += length;
		}
		rest += length;
	}
	memmove(kept, rest, strlen(rest) + 1);
}
