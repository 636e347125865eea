/*
 * header.c
 *		Which request headers an operation may set.
 *
 * The headers that frame a message are the transport's: a Content-Length of
 * somebody else makes the rest of a body the start of another request.
 */
#include "profile/header.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define TOKEN_CHARACTERS \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

static const char *const framing_headers[] = {
	"host", "content-length", "transfer-encoding", "connection", "expect",
	"upgrade", "te", "trailer", "keep-alive", "accept-encoding",
};

const char *
ar_header_name_problem(const char *name)
{
	if (*name == '\0' || strlen(name) > 128 || strspn(name, TOKEN_CHARACTERS) != strlen(name))
		return "it is no header name";
	if (strncasecmp(name, "proxy-", 6) == 0)
		return "proxy headers are not the operation's to set";
	for (size_t i = 0; i < sizeof(framing_headers) / sizeof(framing_headers[0]); i++)
	{
		if (strcasecmp(name, framing_headers[i]) == 0)
			return "it frames the message and is set by the transport";
	}
	return NULL;
}
