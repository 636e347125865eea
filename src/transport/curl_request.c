/*
 * curl_request.c
 *		Puts one request onto one easy handle.
 *
 * A handle is reset before each use and every option that matters is set, also
 * where the default would do: an effect must never depend on a default that a
 * later libcurl changes, on the environment, or on the request before.  Every
 * automatic repetition is off, because libcurl does not ask whether a method
 * may be repeated.
 */
#include "transport/transport_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_MAX_BODY_BYTES ((size_t) 1024 * 1024)
#define DEFAULT_MAX_HEADER_BYTES ((size_t) 64 * 1024)

#define USER_AGENT "action_reconcile"

/* Sets one option or leaves with the reason. */
#define SET(option, value) \
	do { \
		CURLcode	set_result = curl_easy_setopt(easy, option, value); \
		if (set_result != CURLE_OK) \
		{ \
			snprintf(error, error_size, "could not set %s: %s", #option, \
					 curl_easy_strerror(set_result)); \
			return false; \
		} \
	} while (0)

/*
 * The end of every header list: without "Expect:" a large body waits for an
 * interim answer and is sent again after a 417; "Connection: close" makes the
 * provider close first, so that our side keeps no port in TIME_WAIT.  libcurl
 * only reads these, and they are shared by all requests.
 */
static char connection_close_text[] = "Connection: close";
static char no_expect_text[] = "Expect:";
static char no_content_type_text[] = "Content-Type:";
static struct curl_slist connection_close = {connection_close_text, NULL};
static struct curl_slist no_expect = {no_expect_text, &connection_close};

/* used where the caller names no type: libcurl would claim a web form */
static struct curl_slist no_content_type = {no_content_type_text, &no_expect};

/* Whether libcurl is to send a body, possibly one of no bytes.  Pure. */
static bool
sends_body(const ArRequest *request)
{
	if (strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0)
		return false;
	return request->body != NULL || strcmp(request->method, "DELETE") != 0;
}

/*
 * Copies what is needed during the transfer (header list, body, secret) into one
 * block owned by the flight.  The request must have passed the check.  False
 * if memory ran out.  Never throws, needs no transaction.
 */
bool
ar_request_copy(ArFlight *flight, const ArRequest *request, char *error, size_t error_size)
{
	size_t		node_bytes = (size_t) request->header_count * sizeof(struct curl_slist);
	size_t		secret_bytes = request->secret != NULL ? strlen(request->secret) + 1 : 0;
	size_t		size = node_bytes + request->body_len + 1 + secret_bytes;
	struct curl_slist *nodes;
	struct curl_slist *tail = &no_content_type;
	char	   *text;
	int			i;

	for (i = 0; i < request->header_count; i++)
		size += strlen(request->headers[i].name) + strlen(request->headers[i].value) + 3;

	flight->block = malloc(size);
	if (flight->block == NULL)
	{
		snprintf(error, error_size, "out of memory for a request of %zu bytes", size);
		return false;
	}
	flight->block_size = size;
	nodes = (struct curl_slist *) flight->block;
	text = flight->block + node_bytes;

	for (i = 0; i < request->header_count; i++)
	{
		const char *name = request->headers[i].name;
		size_t		name_length = strlen(name);
		size_t		value_length = strlen(request->headers[i].value);

		nodes[i].data = text;
		nodes[i].next = &nodes[i + 1];
		memcpy(text, name, name_length);
		memcpy(text + name_length, ": ", 2);
		memcpy(text + name_length + 2, request->headers[i].value, value_length + 1);
		text += name_length + value_length + 3;
		if (strcasecmp(name, "Content-Type") == 0)
			tail = &no_expect;
	}
	if (request->header_count > 0)
		nodes[request->header_count - 1].next = tail;
	flight->header_list = request->header_count > 0 ? nodes : tail;

	flight->body = text;
	flight->body_len = request->body_len;
	if (request->body_len > 0)
		memcpy(text, request->body, request->body_len);
	text[request->body_len] = '\0';
	if (request->secret != NULL)
		flight->secret = memcpy(text + request->body_len + 1, request->secret, secret_bytes);
	return true;
}

/*
 * Frees the request's copy.  The headers may hold a credential, so they do not
 * stay behind in freed memory.  Harmless if there is none.  Never throws.
 */
void
ar_request_release(ArFlight *flight)
{
	if (flight->block != NULL)
	{
		explicit_bzero(flight->block, flight->block_size);
		free(flight->block);
	}
	flight->block = NULL;
	flight->header_list = NULL;
	flight->body = NULL;
	flight->secret = NULL;
}

/* Where the request goes and under which rules of the network. */
static bool
set_target(ArFlight *flight, const ArRequest *request, char *error, size_t error_size)
{
	CURL	   *easy = flight->handle->easy;
	CURLUcode	parsed;

	parsed = curl_url_set(flight->handle->url, CURLUPART_URL, request->url,
						  CURLU_DISALLOW_USER | CURLU_PATH_AS_IS);
	if (parsed != CURLUE_OK)
	{
		snprintf(error, error_size, "request URL cannot be parsed: %s",
				 curl_url_strerror(parsed));
		return false;
	}
	SET(CURLOPT_CURLU, flight->handle->url);
	SET(CURLOPT_PATH_AS_IS, 1L);
	SET(CURLOPT_PROTOCOLS_STR, request->allow_http ? "http,https" : "https");
	/* an empty name also switches off the proxies of the environment */
	SET(CURLOPT_PROXY, "");
	SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_HTTP09_ALLOWED, 0L);
	SET(CURLOPT_FRESH_CONNECT, 1L);
	SET(CURLOPT_FORBID_REUSE, 1L);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_MAXREDIRS, 0L);
	SET(CURLOPT_CONNECTTIMEOUT_MS, request->connect_timeout_ms);
	SET(CURLOPT_TIMEOUT_MS, request->timeout_ms);
	/* no timer by signal, and no wait for a name resolution that hangs */
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L);
	return true;
}

/* Method, headers and body. */
static bool
set_message(ArFlight *flight, const ArRequest *request, char *error, size_t error_size)
{
	CURL	   *easy = flight->handle->easy;

	SET(CURLOPT_HTTPHEADER, flight->header_list);
	SET(CURLOPT_USERAGENT, USER_AGENT);
	/* a compressed answer is neither asked for nor unpacked */
	SET(CURLOPT_ACCEPT_ENCODING, NULL);
	SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
	SET(CURLOPT_FAILONERROR, 0L);

	if (strcmp(request->method, "HEAD") == 0)
	{
		SET(CURLOPT_NOBODY, 1L);
		return true;
	}
	if (!sends_body(request))
	{
		SET(CURLOPT_HTTPGET, 1L);
		if (strcmp(request->method, "GET") != 0)
			SET(CURLOPT_CUSTOMREQUEST, request->method);
		return true;
	}
	SET(CURLOPT_POST, 1L);
	SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) flight->body_len);
	SET(CURLOPT_POSTFIELDS, flight->body);
	if (strcmp(request->method, "POST") != 0)
		SET(CURLOPT_CUSTOMREQUEST, request->method);
	return true;
}

/* Whom to trust.  The system's certificates unless the provider names a file. */
static bool
set_trust(ArFlight *flight, const ArRequest *request, char *error, size_t error_size)
{
	CURL	   *easy = flight->handle->easy;

	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
	/* no early data above all: it may be replayed */
	SET(CURLOPT_SSL_OPTIONS, 0L);
	if (request->ca_file != NULL)
		SET(CURLOPT_CAINFO, request->ca_file);
	SET(CURLOPT_CAPATH, ar_curl_ca_directory());
	return true;
}

/* Callbacks and caps. */
static bool
set_callbacks(ArFlight *flight, char *error, size_t error_size)
{
	CURL	   *easy = flight->handle->easy;

	SET(CURLOPT_PRIVATE, flight);
	SET(CURLOPT_ERRORBUFFER, flight->exchange.error);
	SET(CURLOPT_PREREQFUNCTION, ar_callback_prereq);
	SET(CURLOPT_PREREQDATA, flight);
	SET(CURLOPT_HEADERFUNCTION, ar_callback_header);
	SET(CURLOPT_HEADERDATA, flight);
	SET(CURLOPT_WRITEFUNCTION, ar_callback_body);
	SET(CURLOPT_WRITEDATA, flight);
	SET(CURLOPT_OPENSOCKETFUNCTION, ar_socket_open);
	SET(CURLOPT_OPENSOCKETDATA, flight);
	/* a connection may outlive its flight: never the flight here */
	SET(CURLOPT_CLOSESOCKETFUNCTION, ar_socket_close);
	SET(CURLOPT_CLOSESOCKETDATA, flight->transport);
	/* the length announced for HEAD is not a body that could be too long */
	if (!flight->response.head_request)
		SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t) flight->response.max_body_bytes);
	return true;
}

/* Keeps the name of one more response header, as the caller will ask for it. */
static void
copy_keep_header(ArFlight *flight, const char *name)
{
	size_t		i;

	for (i = 0; i < AR_MAX_HEADER_NAME && name[i] != '\0'; i++)
		flight->keep_header[i] = (char) (name[i] >= 'A' && name[i] <= 'Z'
										 ? name[i] + ('a' - 'A') : name[i]);
	flight->keep_header[i] = '\0';
}

/*
 * Sets every option of one request on the flight's freshly reset handle.  The
 * request must have passed the check and been copied.  False with the reason:
 * then nothing was sent.  Never throws, needs no transaction.
 */
bool
ar_request_apply(ArFlight *flight, const ArRequest *request, char *error, size_t error_size)
{
	if (request->keep_header != NULL)
		copy_keep_header(flight, request->keep_header);
	ar_response_init(&flight->response,
					 request->max_body_bytes > 0 ? request->max_body_bytes : DEFAULT_MAX_BODY_BYTES,
					 request->max_header_bytes > 0 ? request->max_header_bytes : DEFAULT_MAX_HEADER_BYTES,
					 strcmp(request->method, "HEAD") == 0,
					 flight->keep_header[0] != '\0' ? flight->keep_header : NULL);
	return set_target(flight, request, error, error_size) &&
		set_message(flight, request, error, error_size) &&
		set_trust(flight, request, error, error_size) &&
		set_callbacks(flight, error, error_size);
}
