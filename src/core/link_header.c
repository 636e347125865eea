/*
 * link_header.c
 *		Where a Link header (RFC 8288) says that a list goes on.
 *
 * Nothing in this file throws, allocates or needs a transaction.
 */
#include "core/link_header.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>


typedef struct Reader
{
	const char *at;
	const char *end;
} Reader;

/* A parameter's value: of a quoted one, what is between the quotes, with its backslashes. */
typedef struct Span
{
	const char *start;
	size_t		length;
} Span;

/* What the parameters of one link say. */
typedef struct Link
{
	ArLinkTarget target;
	bool		has_rel;		/* only the first one counts */
	bool		is_next;
	bool		has_anchor;
} Link;

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* Whether the byte may stand in a token (RFC 9110). */
static bool
is_token_byte(char byte)
{
	return byte != '\0' &&
		strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~", byte) != NULL;
}

static void
skip_blanks(Reader *reader)
{
	while (reader->at < reader->end && is_blank(*reader->at))
		reader->at++;
}

/* Steps over that byte if it is the next. */
static bool
skip_byte(Reader *reader, char byte)
{
	if (reader->at == reader->end || *reader->at != byte)
		return false;
	reader->at++;
	return true;
}

static bool
read_token(Reader *reader, Span *token)
{
	token->start = reader->at;
	while (reader->at < reader->end && is_token_byte(*reader->at))
		reader->at++;
	token->length = (size_t) (reader->at - token->start);
	return token->length > 0;
}

/* Behind the opening quote; false if there is no closing one, or a control character. */
static bool
read_quoted(Reader *reader, Span *text)
{
	text->start = reader->at;
	for (; reader->at < reader->end; reader->at++)
	{
		unsigned char byte = (unsigned char) *reader->at;

		if (byte == '"')
		{
			text->length = (size_t) (reader->at - text->start);
			reader->at++;
			return true;
		}
		if (byte == '\\' && ++reader->at == reader->end)
			return false;
		byte = (unsigned char) *reader->at;
		if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
			return false;
	}
	return false;
}

/*
 * A value without quotes.  Some servers do not quote what is no token, such as
 * a URI, so everything up to a separator is taken.
 */
static bool
read_unquoted(Reader *reader, Span *text)
{
	text->start = reader->at;
	while (reader->at < reader->end && (unsigned char) *reader->at > 0x20 && *reader->at != 0x7f &&
		   strchr(";,\"<>", *reader->at) == NULL)
		reader->at++;
	text->length = (size_t) (reader->at - text->start);
	return text->length > 0;
}

/* <target>: a reference has neither white space nor brackets in it. */
static bool
read_target(Reader *reader, ArLinkTarget *target)
{
	if (!skip_byte(reader, '<'))
		return false;
	target->start = reader->at;
	while (reader->at < reader->end && (unsigned char) *reader->at > 0x20 && *reader->at != 0x7f &&
		   *reader->at != '<' && *reader->at != '>')
		reader->at++;
	target->length = (size_t) (reader->at - target->start);
	return skip_byte(reader, '>');
}

/* Whether one of the relation types, with blanks between them, is "next". */
static bool
relations_have_next(const Span *relations)
{
	const char *at = relations->start;
	const char *end = at + relations->length;
	bool		found = false;

	while (at < end)
	{
		char		word[sizeof("next") - 1];
		size_t		length = 0;

		for (; at < end && !is_blank(*at); at++)
		{
			/* A character may be quoted without need. */
			if (*at == '\\' && at + 1 < end)
				at++;
			if (length < sizeof(word))
				word[length] = *at;
			length++;
		}
		found = found || (length == sizeof(word) && strncasecmp(word, "next", sizeof(word)) == 0);
		while (at < end && is_blank(*at))
			at++;
	}
	return found;
}

static bool
is_named(const Span *name, const char *expected)
{
	return name->length == strlen(expected) && strncasecmp(name->start, expected, name->length) == 0;
}

/* ; name, or ; name=value, behind the semicolon. */
static bool
read_parameter(Reader *reader, Link *link)
{
	Span		name;
	Span		value = {"", 0};

	skip_blanks(reader);
	/* A semicolon too many is no harm. */
	if (reader->at == reader->end || *reader->at == ';' || *reader->at == ',')
		return true;
	if (!read_token(reader, &name))
		return false;
	skip_blanks(reader);
	if (skip_byte(reader, '='))
	{
		skip_blanks(reader);
		if (!(skip_byte(reader, '"') ? read_quoted(reader, &value) : read_unquoted(reader, &value)))
			return false;
	}
	if (is_named(&name, "rel") && !link->has_rel)
	{
		link->has_rel = true;
		link->is_next = relations_have_next(&value);
	}
	link->has_anchor = link->has_anchor || is_named(&name, "anchor");
	return true;
}

/* <target> and its parameters, up to a comma or the end. */
static bool
read_link(Reader *reader, Link *link)
{
	memset(link, 0, sizeof(*link));
	if (!read_target(reader, &link->target))
		return false;
	skip_blanks(reader);
	while (skip_byte(reader, ';'))
	{
		if (!read_parameter(reader, link))
			return false;
		skip_blanks(reader);
	}
	return reader->at == reader->end || *reader->at == ',';
}

/* See link_header.h. */
ArLinkResult
ar_link_header_next(const char *value, size_t length, ArLinkTarget *target)
{
	Reader		reader = {value, value + length};
	ArLinkTarget next = {NULL, 0};

	if (length > AR_LINK_HEADER_MAX_BYTES)
		return AR_LINK_UNREADABLE;
	while (true)
	{
		Link		link;

		/* A list may have empty members. */
		do
			skip_blanks(&reader);
		while (skip_byte(&reader, ','));
		if (reader.at == reader.end)
			break;
		if (!read_link(&reader, &link))
			return AR_LINK_UNREADABLE;
		if (!link.is_next)
			continue;
		if (link.has_anchor || link.target.length == 0)
			return AR_LINK_UNREADABLE;
		if (next.start != NULL &&
			(next.length != link.target.length || memcmp(next.start, link.target.start, next.length) != 0))
			return AR_LINK_UNREADABLE;
		next = link.target;
	}
	if (next.start == NULL)
		return AR_LINK_NONE;
	*target = next;
	return AR_LINK_NEXT;
}
