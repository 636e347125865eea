/*
 * request_check.c
 *		Refuses a request that must not be handed to libcurl.
 *
 * libcurl copies control bytes from headers onto the wire, silently drops a
 * header with an empty value, lets a caller's Content-Length cut the body in
 * two requests, and normalises dot segments to another resource.  All of that
 * is refused here, before anything is recorded as sent.  Messages name what to
 * change, and never repeat a header's value: it may be a credential.
 */
#include "transport/transport_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_URL_BYTES 8192
#define MAX_HEADER_BYTES 8192
#define MAX_ALL_HEADER_BYTES 65536
#define MAX_HEADERS 100

/* Headers that frame the message or steer the connection: ours alone. */
static const char *const own_headers[] = {
	"Connection",
	"Content-Length",
	"Expect",
	"Host",
	"HTTP2-Settings",
	"Keep-Alive",
	"TE",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
};

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Writes the reason and returns false.  Never throws. */
static bool refuse(char *error, size_t error_size, const char *format,...)
			__attribute__((format(printf, 3, 4)));

static bool
refuse(char *error, size_t error_size, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(error, error_size, format, args);
	va_end(args);
	return false;
}

/* Whether the byte may stand in a header name (RFC 9110 token).  Pure. */
static bool
is_token_byte(unsigned char byte)
{
	if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= 'a' && byte <= 'z'))
		return true;
	return byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

/* Whether the whole string is a non-empty token.  Pure. */
static bool
is_token(const char *text)
{
	const char *p;

	for (p = text; *p != '\0'; p++)
	{
		if (!is_token_byte((unsigned char) *p))
			return false;
	}
	return p > text;
}

/* Whether the transport alone sets this header.  Pure. */
static bool
is_own_header(const char *name)
{
	size_t		i;

	for (i = 0; i < LENGTH_OF(own_headers); i++)
	{
		if (strcasecmp(own_headers[i], name) == 0)
			return true;
	}
	return strncasecmp(name, "Proxy-", 6) == 0;
}

/* Checks one header value; false with the reason. */
static bool
check_value(const char *name, const char *value, char *error, size_t error_size)
{
	const unsigned char *p;
	bool		visible = false;

	for (p = (const unsigned char *) value; *p != '\0'; p++)
	{
		if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
			return refuse(error, error_size,
						  "header \"%s\" has a control byte in its value; remove it",
						  name);
		if (*p != ' ' && *p != '\t')
			visible = true;
	}
	if (!visible)
		return refuse(error, error_size,
					  "header \"%s\" has an empty value; give it one or leave the header out",
					  name);
	return true;
}

/* Checks every header; false with the reason. */
static bool
check_headers(const ArRequest *request, char *error, size_t error_size)
{
	size_t		total = 0;
	int			i;
	int			j;

	if (request->header_count < 0 || request->header_count > MAX_HEADERS)
		return refuse(error, error_size,
					  "request has %d headers; at most %d are permitted",
					  request->header_count, MAX_HEADERS);

	for (i = 0; i < request->header_count; i++)
	{
		const char *name = request->headers[i].name;
		const char *value = request->headers[i].value;
		size_t		length;

		if (name == NULL || value == NULL || !is_token(name) ||
			strlen(name) > AR_MAX_HEADER_NAME)
			return refuse(error, error_size,
						  "header %d has no valid name; use letters, digits and hyphens, at most %d",
						  i + 1, AR_MAX_HEADER_NAME);
		if (is_own_header(name))
			return refuse(error, error_size,
						  "header \"%s\" is set by the transport; remove it from the operation",
						  name);
		if (!check_value(name, value, error, error_size))
			return false;

		length = strlen(name) + strlen(value) + 4;
		total += length;
		if (length > MAX_HEADER_BYTES || total > MAX_ALL_HEADER_BYTES)
			return refuse(error, error_size,
						  "header \"%s\" is too long; at most %d bytes each and %d together are permitted",
						  name, MAX_HEADER_BYTES, MAX_ALL_HEADER_BYTES);

		for (j = 0; j < i; j++)
		{
			if (strcasecmp(name, request->headers[j].name) == 0)
				return refuse(error, error_size,
							  "header \"%s\" is given twice; join the values or remove one",
							  name);
		}
	}
	return true;
}

/* The value of a hexadecimal digit, or -1.  Pure. */
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

/*
 * The byte at a position of a path as a server may decode it, or -1 after a
 * percent sign without two hexadecimal digits.  Sets how many bytes it takes.
 * Pure.
 */
static int
decoded_byte(const char *path, size_t length, size_t position, size_t *taken)
{
	int			high;
	int			low;

	*taken = 1;
	if (path[position] != '%')
		return (unsigned char) path[position];
	if (position + 2 >= length)
		return -1;
	high = hex_value(path[position + 1]);
	low = hex_value(path[position + 2]);
	*taken = 3;
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/*
 * Checks a path, which begins with a slash or is empty: as a server may see it
 * after decoding, no segment is empty, "." or "..".  A slash that ends the
 * path as written is permitted, since many APIs need it.
 */
static bool
check_path(const char *path, size_t length, char *error, size_t error_size)
{
	size_t		segment = 0;	/* bytes in the current decoded segment */
	size_t		dots = 0;		/* how many of them are dots */
	size_t		taken;
	size_t		i;
	bool		dotted = false; /* a segment was empty, "." or ".." */

	for (i = 0; i < length; i += taken)
	{
		int			byte = decoded_byte(path, length, i, &taken);

		if (byte < 0)
			return refuse(error, error_size,
						  "request path has a percent sign without two hexadecimal digits; write it as %%25");
		if (byte == 0)
			return refuse(error, error_size,
						  "request path contains an encoded NUL byte; remove it");
		if (byte == '/' || byte == '\\')
		{
			if (i > 0 && segment == dots && dots <= 2)
				dotted = true;
			segment = dots = 0;
			continue;
		}
		segment++;
		if (byte == '.')
			dots++;
	}

	if (segment == 0)
		dotted = dotted || (length > 0 && path[length - 1] != '/');
	else
		dotted = dotted || (segment == dots && dots <= 2);
	if (dotted)
		return refuse(error, error_size,
					  "request path has an empty, \".\" or \"..\" segment; check the values put into it");
	return true;
}

/* Checks the URL as text; libcurl parses it afterwards.  False with the reason. */
static bool
check_url(const ArRequest *request, char *error, size_t error_size)
{
	const char *url = request->url;
	const unsigned char *p;
	const char *authority;
	const char *path;

	if (url == NULL || *url == '\0')
		return refuse(error, error_size, "request has no URL");
	if (strlen(url) > MAX_URL_BYTES)
		return refuse(error, error_size,
					  "request URL is longer than %d bytes; shorten the path or the query",
					  MAX_URL_BYTES);
	for (p = (const unsigned char *) url; *p != '\0'; p++)
	{
		if (*p <= 0x20 || *p >= 0x7f || *p == '\\')
			return refuse(error, error_size,
						  "request URL contains the byte 0x%02x at position %d; percent-encode it",
						  *p, (int) (p - (const unsigned char *) url) + 1);
	}

	if (strncasecmp(url, "https://", 8) == 0)
		authority = url + 8;
	else if (strncasecmp(url, "http://", 7) == 0)
	{
		if (!request->allow_http)
			return refuse(error, error_size,
						  "request URL begins with http://; use https://, or set allow_http for the provider");
		authority = url + 7;
	}
	else
		return refuse(error, error_size,
					  "request URL must begin with https://%s",
					  request->allow_http ? " or http://" : "");

	path = authority + strcspn(authority, "/?#");
	if (path == authority)
		return refuse(error, error_size, "request URL has no host");
	if (memchr(authority, '@', (size_t) (path - authority)) != NULL)
		return refuse(error, error_size,
					  "request URL contains a user name; put credentials into an Authorization header");
	if (strchr(path, '#') != NULL)
		return refuse(error, error_size,
					  "request URL contains a fragment, which is never sent; percent-encode the # as %%23");
	if (*path == '?')
		return true;
	return check_path(path, strcspn(path, "?"), error, error_size);
}

/* Checks method and body together.  False with the reason. */
static bool
check_method(const ArRequest *request, char *error, size_t error_size)
{
	static const char *const write_methods[] = {"POST", "PUT", "PATCH", "DELETE"};
	static const char *const lookup_methods[] = {"GET", "HEAD", "POST"};
	const char *const *methods = request->is_write ? write_methods : lookup_methods;
	size_t		count = request->is_write ? LENGTH_OF(write_methods) : LENGTH_OF(lookup_methods);
	size_t		i;

	for (i = 0; i < count && request->method != NULL; i++)
	{
		if (strcmp(methods[i], request->method) == 0)
			break;
	}
	if (i == count || request->method == NULL)
		return refuse(error, error_size, "method of a %s must be %s",
					  request->is_write ? "write" : "lookup",
					  request->is_write ? "POST, PUT, PATCH or DELETE" : "GET, HEAD or POST");
	if (request->body_len > 0 && request->body == NULL)
		return refuse(error, error_size, "request has a body length but no body");
	if (request->body != NULL &&
		(strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0))
		return refuse(error, error_size, "a %s request cannot have a body", request->method);
	return true;
}

/*
 * Whether the request may be handed to libcurl; if not, error says what to
 * change.  Reads only; never throws, needs no transaction.
 */
bool
ar_request_check(const ArRequest *request, char *error, size_t error_size)
{
	if (!check_method(request, error, error_size) ||
		!check_url(request, error, error_size) ||
		!check_headers(request, error, error_size))
		return false;
	if (request->timeout_ms <= 0 || request->connect_timeout_ms <= 0)
		return refuse(error, error_size, "request timeouts must be positive");
	if (request->keep_header != NULL &&
		(!is_token(request->keep_header) ||
		 strlen(request->keep_header) > AR_MAX_HEADER_NAME))
		return refuse(error, error_size,
					  "the response header to keep has no valid name; use letters, digits and hyphens");
	return true;
}
