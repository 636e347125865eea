/*
 * curl_callbacks.c
 *		What libcurl calls during one transfer.
 *
 * Nothing here may throw, wait or call libcurl; each callback records and
 * returns.  The pre-request callback is the boundary of everything: libcurl
 * calls it after connect and TLS and immediately before the first byte of a
 * request, once per try, its own silent repetitions included.
 */
#include "transport/transport_internal.h"

#include <stdio.h>

/*
 * Counts, and lets the first call pass if the owner agrees.  A second call is
 * libcurl repeating the request by itself: refused, and being counted it makes
 * the outcome unknown.  Inside libcurl: must not throw.
 */
int
ar_callback_prereq(void *data, char *peer, char *local, int peer_port, int local_port)
{
	ArFlight   *flight = data;
	ArTransport *transport = flight->transport;
	ArTransferFacts *facts = &flight->exchange.facts;

	(void) local;
	(void) peer_port;
	(void) local_port;

	facts->prereq_calls++;
	if (facts->prereq_calls > 1)
		return CURL_PREREQFUNC_ABORT;

	if (peer != NULL)
		snprintf(flight->exchange.peer_address, sizeof(flight->exchange.peer_address),
				 "%s", peer);
	if (!flight->is_write)
		return CURL_PREREQFUNC_OK;

	transport->check_ran = true;
	if (transport->hooks.may_send(transport->hooks.owner,
								  flight->exchange.cookie) == AR_SEND_GO)
		return CURL_PREREQFUNC_OK;
	facts->check_refused = true;
	return CURL_PREREQFUNC_ABORT;
}

/* Takes one header line; anything but its size ends the transfer. */
size_t
ar_callback_header(char *line, size_t size, size_t count, void *data)
{
	ArFlight   *flight = data;

	return ar_response_header_line(&flight->response, line, size * count)
		? size * count : CURL_WRITEFUNC_ERROR;
}

/* Takes a piece of the body; anything but its size ends the transfer. */
size_t
ar_callback_body(char *bytes, size_t size, size_t count, void *data)
{
	ArFlight   *flight = data;

	return ar_response_body_piece(&flight->response, bytes, size * count)
		? size * count : CURL_WRITEFUNC_ERROR;
}
