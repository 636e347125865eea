/*
 * curl_step.c
 *		Drives libcurl, and turns what it reports into finished exchanges.
 *
 * The owner waits for one descriptor among its others and calls step; so
 * libcurl is never entered while anything waits.
 */
#include "transport/transport_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/redact.h"

/* Events taken from the epoll set at once, and how often in one step: a step
 * ends after a bounded piece of work, so that the owner records in between. */
#define EVENTS_AT_ONCE 64
#define ROUNDS_PER_STEP 16

/* Notes the first reason why libcurl is not to be trusted any more. */
static void
fail(ArTransport *transport, const char *what, const char *why)
{
	if (!transport->failed)
		snprintf(transport->failure, sizeof(transport->failure), "%s: %s", what, why);
	transport->failed = true;
}

/* Our own words where libcurl's would mislead.  For people; never decides. */
static void
describe_end(ArFlight *flight, CURLcode result)
{
	ArExchange *exchange = &flight->exchange;
	const ArResponse *response = &flight->response;
	size_t		size = sizeof(exchange->error);

	if (result == CURLE_OK)
		exchange->error[0] = '\0';
	else if (exchange->facts.prereq_calls > 1)
		snprintf(exchange->error, size, "libcurl was about to repeat the request by itself; refused");
	else if (exchange->facts.check_refused)
		snprintf(exchange->error, size, "the last-instant check refused the request");
	else if (exchange->facts.policy_denied)
		snprintf(exchange->error, size, "address %s is %s and not permitted for this provider",
				 flight->denied_address, ar_address_class_name(flight->denied_class));
	else if (flight->fd_refused && exchange->facts.prereq_calls == 0)
		snprintf(exchange->error, size, "no file descriptor was free for a connection");
	else if (response->out_of_memory)
		snprintf(exchange->error, size, "out of memory for the response");
	else if (response->header_cut)
		snprintf(exchange->error, size, "response headers exceed %zu bytes", response->max_header_bytes);
	else if (response->body_cut)
		snprintf(exchange->error, size, "response body exceeds %zu bytes", response->max_body_bytes);
	else if (exchange->error[0] == '\0')
		snprintf(exchange->error, size, "%s", curl_easy_strerror(result));
}

/* Writes down what the transfer proved, while its handle can still be asked. */
static void
record_end(ArFlight *flight, CURLcode result)
{
	ArExchange *exchange = &flight->exchange;
	ArTransferFacts *facts = &exchange->facts;
	ArResponse *response = &flight->response;
	curl_off_t	elapsed = 0;
	curl_off_t	uploaded = 0;
	char	   *peer = NULL;

	facts->policy_denied = facts->prereq_calls == 0 && flight->addresses_denied > 0 &&
		flight->addresses_denied == flight->addresses_offered;
	facts->transfer_ok = result == CURLE_OK;
	/* an early success is no answer to a request that libcurl then stopped sending */
	if (response->status < 300 && flight->body_len > 0 &&
		(curl_easy_getinfo(flight->handle->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded) != CURLE_OK ||
		 uploaded < (curl_off_t) flight->body_len))
		facts->transfer_ok = false;
	facts->final_header_end = response->final_header_end;
	facts->http_status = response->status;
	facts->body_framed = response->framed;
	facts->body_complete = result == CURLE_OK && !response->body_cut &&
		!response->out_of_memory;

	exchange->curl_code = (int) result;
	if (curl_easy_getinfo(flight->handle->easy, CURLINFO_TOTAL_TIME_T, &elapsed) == CURLE_OK)
		exchange->elapsed_us = (int64_t) elapsed;
	if (exchange->peer_address[0] == '\0' &&
		curl_easy_getinfo(flight->handle->easy, CURLINFO_PRIMARY_IP, &peer) == CURLE_OK &&
		peer != NULL)
		snprintf(exchange->peer_address, sizeof(exchange->peer_address), "%s", peer);

	exchange->body = response->body.data != NULL ? response->body.data : flight->no_body;
	exchange->body_len = response->body.length;
	exchange->headers = response->headers;
	exchange->header_count = response->header_count;
	describe_end(flight, result);
}

/* Moves a finished flight to where it is collected.  Signals must be blocked. */
static void
finish(ArFlight *flight, CURLcode result)
{
	ArTransport *transport = flight->transport;

	ar_response_hide(&flight->response, flight->secret);
	record_end(flight, result);
	ar_redact_secret(flight->exchange.error, strlen(flight->exchange.error), flight->secret);
	ar_socket_detach(flight,
					 ar_classify_transfer(&flight->exchange.facts) == AR_TRANSFER_ANSWERED);
	ar_handle_give_back(flight);
	ar_request_release(flight);
	ar_flight_remove(&transport->in_flight, flight);
	transport->in_flight_count--;
	ar_flight_append(&transport->finished, flight);
}

/*
 * Finishes every transfer libcurl reports as done.  The handle is removed
 * first: an unremoved one may be reported again for ever.
 */
static void
finish_done(ArTransport *transport)
{
	CURLMsg    *message;
	int			left;

	while ((message = curl_multi_info_read(transport->multi, &left)) != NULL)
	{
		CURL	   *easy = message->easy_handle;
		CURLcode	result = message->data.result;
		ArFlight   *flight = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &flight) != CURLE_OK ||
			flight == NULL || curl_multi_remove_handle(transport->multi, easy) != CURLM_OK)
		{
			fail(transport, "libcurl lost a transfer", curl_easy_strerror(result));
			return;
		}
		finish(flight, result);
	}
}

/*
 * Enters libcurl for one socket or the timer; afterwards lets the owner release
 * what the last-instant check holds.  Signals must be blocked.
 */
static void
drive(ArTransport *transport, curl_socket_t fd, int what, const sigset_t *mask,
	  void (*after_call) (void *owner), void *owner)
{
	CURLMcode	result;
	int			running;

	transport->check_ran = false;
	result = curl_multi_socket_action(transport->multi, fd, what, &running);
	if (result != CURLM_OK)
		fail(transport, "libcurl's multi interface failed", curl_multi_strerror(result));
	if (transport->check_ran && after_call != NULL)
	{
		ar_signals_restore(mask);
		after_call(owner);
		(void) ar_signals_block();
	}
}

/* What libcurl is to be told about an epoll event: errors come with the rest. */
static int
curl_events(uint32_t events)
{
	int			what = 0;

	if (events & EPOLLIN)
		what |= CURL_CSELECT_IN;
	if (events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (events & (EPOLLERR | EPOLLHUP))
		what |= CURL_CSELECT_ERR;
	return what;
}

/* See the header.  Must not be called from a hook. */
void
ar_transport_step(ArTransport *transport, void (*after_call) (void *owner), void *owner)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	sigset_t	before = ar_signals_block();
	int			round;

	for (round = 0; round < ROUNDS_PER_STEP && !transport->failed; round++)
	{
		int			count = epoll_wait(transport->epoll_fd, events, EVENTS_AT_ONCE, 0);
		int			i;

		for (i = 0; i < count && !transport->failed; i++)
		{
			if (events[i].data.fd == transport->timer_fd)
				ar_socket_timer_drain(transport);
			else
				drive(transport, events[i].data.fd, curl_events(events[i].events),
					  &before, after_call, owner);
		}
		if (transport->timer_due && !transport->failed)
		{
			transport->timer_due = false;
			count = 1;
			drive(transport, CURL_SOCKET_TIMEOUT, 0, &before, after_call, owner);
		}
		finish_done(transport);
		if (count <= 0)
			break;
	}
	ar_socket_timer_settle(transport);
	ar_signals_restore(&before);
}
