/*
 * response_buffer.c
 *		Collects one response, bounded, and remembers what its shape proves.
 *
 * libcurl reports success for a response whose header block was cut, for a
 * bare "101" and, in newer versions, for a four-digit status.  So the status
 * line is read here again, strictly, and only the blank line of a block that
 * began with a final status counts as the end of its headers.
 */
#include "transport/response_buffer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/redact.h"

/*
 * The response headers that may leave this layer.  An allow-list, because
 * what is kept ends up in evidence that people read: no cookie, no token.
 */
static const char *const kept_names[] = {
	"azure-asyncoperation",
	"content-encoding",
	"content-language",
	"content-location",
	"content-type",
	"date",
	"etag",
	"idempotency-key",
	"idempotency-replayed",
	"idempotent-replayed",
	"last-modified",
	"link",
	"location",
	"operation-location",
	"original-request",
	"preference-applied",
	"ratelimit-reset",
	"request-id",
	"retry-after",
	"stripe-should-retry",
	"transient-error",
	"x-correlation-id",
	"x-idempotency-lookup",
	"x-message-id",
	"x-ratelimit-remaining",
	"x-ratelimit-reset",
	"x-request-id",
	"x-should-retry",
};

/* Whether a byte may surround a field value.  Pure. */
static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Drops the headers kept so far.  Never throws. */
static void
forget_headers(ArResponse *response)
{
	while (response->header_count > 0)
		free(response->headers[--response->header_count].value);
	response->kept_last = false;
}

/* See the header. */
void
ar_response_init(ArResponse *response, size_t max_body_bytes,
				 size_t max_header_bytes, bool head_request,
				 const char *keep_header)
{
	memset(response, 0, sizeof(*response));
	ar_buffer_init(&response->body);
	response->max_body_bytes = max_body_bytes;
	response->max_header_bytes = max_header_bytes;
	response->head_request = head_request;
	response->keep_header = keep_header;
}

/* See the header. */
void
ar_response_destroy(ArResponse *response)
{
	forget_headers(response);
	ar_buffer_destroy(&response->body);
}

/*
 * The status of a status line, or 0 if it is not one of HTTP/1.0 or HTTP/1.1
 * with exactly three digits.  Pure.
 */
static int
parse_status(const char *line, size_t length)
{
	const char *digit = line + 9;

	if (length < 12 || (memcmp(line, "HTTP/1.1 ", 9) != 0 &&
						memcmp(line, "HTTP/1.0 ", 9) != 0))
		return 0;
	if (digit[0] < '1' || digit[0] > '9' ||
		digit[1] < '0' || digit[1] > '9' ||
		digit[2] < '0' || digit[2] > '9')
		return 0;
	if (length > 12 && digit[3] != ' ' && digit[3] != '\r' && digit[3] != '\n')
		return 0;
	return (digit[0] - '0') * 100 + (digit[1] - '0') * 10 + (digit[2] - '0');
}

/* Begins a header block: forgets what an interim response brought. */
static void
begin_block(ArResponse *response, const char *line, size_t length)
{
	int			status = parse_status(line, length);

	forget_headers(response);
	response->in_final = status >= 200 && status <= 599;
	response->status = response->in_final ? status : 0;
	response->framed = response->in_final &&
		(status == 204 || status == 304 || response->head_request);
}

/* The kept spelling of a header name, or NULL if it is not kept.  Pure. */
static const char *
kept_name(const ArResponse *response, const char *name, size_t length)
{
	size_t		i;

	for (i = 0; i < sizeof(kept_names) / sizeof(kept_names[0]); i++)
	{
		if (strlen(kept_names[i]) == length &&
			strncasecmp(kept_names[i], name, length) == 0)
			return kept_names[i];
	}
	if (response->keep_header != NULL &&
		strlen(response->keep_header) == length &&
		strncasecmp(response->keep_header, name, length) == 0)
		return response->keep_header;
	return NULL;
}

/* Whether a Transfer-Encoding value ends with the chunked coding.  Pure. */
static bool
ends_chunked(const char *value, size_t length)
{
	return length >= 7 && strncasecmp(value + length - 7, "chunked", 7) == 0 &&
		(length == 7 || value[length - 8] == ',' || is_blank(value[length - 8]));
}

/* Whether the name is this one.  Pure. */
static bool
name_is(const char *name, size_t length, const char *expected)
{
	return strlen(expected) == length && strncasecmp(name, expected, length) == 0;
}

/*
 * Takes one "name: value" line of the final response.  False: out of memory.
 */
static bool
take_field(ArResponse *response, const char *line, size_t length)
{
	const char *colon = memchr(line, ':', length);
	const char *value;
	const char *name;
	size_t		name_length;
	size_t		value_length;
	char	   *copy;

	if (colon == NULL)
		return true;
	name_length = (size_t) (colon - line);
	value = colon + 1;
	value_length = length - name_length - 1;
	while (value_length > 0 && is_blank(value[value_length - 1]))
		value_length--;
	while (value_length > 0 && is_blank(*value))
	{
		value++;
		value_length--;
	}

	if (name_is(line, name_length, "content-length") && value_length > 0)
		response->framed = true;
	else if (name_is(line, name_length, "transfer-encoding") &&
			 ends_chunked(value, value_length))
		response->framed = true;

	name = kept_name(response, line, name_length);
	if (name == NULL || response->header_count >= AR_MAX_KEPT_HEADERS ||
		memchr(value, '\0', value_length) != NULL)
		return true;

	copy = malloc(value_length + 1);
	if (copy == NULL)
	{
		response->out_of_memory = true;
		return false;
	}
	memcpy(copy, value, value_length);
	copy[value_length] = '\0';
	response->headers[response->header_count].name = name;
	response->headers[response->header_count].value = copy;
	response->header_count++;
	response->kept_last = true;
	return true;
}

/* See the header. */
bool
ar_response_header_line(ArResponse *response, const char *line, size_t length)
{
	if (length > response->max_header_bytes - response->header_bytes)
	{
		response->header_cut = true;
		return false;
	}
	response->header_bytes += length;

	/* what follows a final header block is a trailer: counted, never read */
	if (response->final_header_end)
		return true;

	if (length >= 5 && memcmp(line, "HTTP/", 5) == 0)
	{
		begin_block(response, line, length);
		return true;
	}
	if (!response->in_final)
		return true;

	if ((length == 2 && line[0] == '\r' && line[1] == '\n') ||
		(length == 1 && line[0] == '\n'))
	{
		response->final_header_end = true;
		return true;
	}

	/* a folded value would be kept half: forget the whole of it */
	if (length > 0 && (line[0] == ' ' || line[0] == '\t'))
	{
		if (response->kept_last)
			free(response->headers[--response->header_count].value);
		response->kept_last = false;
		return true;
	}
	response->kept_last = false;
	return take_field(response, line, length);
}

/* See the header. */
bool
ar_response_body_piece(ArResponse *response, const char *bytes, size_t length)
{
	size_t		room = response->max_body_bytes - response->body.length;

	if (length > room)
		response->body_cut = true;
	if (!ar_buffer_append(&response->body, bytes, length > room ? room : length))
	{
		response->out_of_memory = true;
		return false;
	}
	return !response->body_cut;
}

/* See the header. */
void
ar_response_hide(ArResponse *response, const char *secret)
{
	ar_redact_secret(response->body.data, response->body.length, secret);
	for (int i = 0; i < response->header_count; i++)
		ar_redact_secret(response->headers[i].value, strlen(response->headers[i].value), secret);
}
