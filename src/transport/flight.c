/*
 * flight.c
 *		Exchanges on their way: lists, reused libcurl handles, and what the owner
 *		gets at the end.
 */
#include "transport/transport_internal.h"

#include <curl/curl.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Handles kept for later requests; each keeps its TLS sessions. */
#define MAX_FREE_HANDLES 256

/* Blocks every signal and returns the mask to go back to. */
sigset_t
ar_signals_block(void)
{
	sigset_t	everything;
	sigset_t	before;

	sigfillset(&everything);
	pthread_sigmask(SIG_SETMASK, &everything, &before);
	return before;
}

/* Goes back to an earlier mask. */
void
ar_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Appends a flight to a list. */
void
ar_flight_append(ArFlightList *list, ArFlight *flight)
{
	flight->previous = list->last;
	flight->next = NULL;
	if (list->last != NULL)
		list->last->next = flight;
	else
		list->first = flight;
	list->last = flight;
}

/* Takes a flight out of a list. */
void
ar_flight_remove(ArFlightList *list, ArFlight *flight)
{
	if (flight->previous != NULL)
		flight->previous->next = flight->next;
	else
		list->first = flight->next;
	if (flight->next != NULL)
		flight->next->previous = flight->previous;
	else
		list->last = flight->previous;
	flight->previous = flight->next = NULL;
}

/* Frees a handle.  Signals must be blocked. */
void
ar_handle_destroy(ArHandle *handle)
{
	curl_easy_cleanup(handle->easy);
	curl_url_cleanup(handle->url);
	free(handle);
}

/*
 * A reset handle: the one used last, whose memory and TLS sessions are warm, or
 * a new one.  NULL if memory ran out.  Signals must be blocked.
 */
ArHandle *
ar_handle_take(ArTransport *transport)
{
	ArHandle   *handle = transport->free_handles;

	if (handle != NULL)
	{
		transport->free_handles = handle->next_free;
		transport->free_handle_count--;
		return handle;
	}
	handle = calloc(1, sizeof(*handle));
	if (handle == NULL)
		return NULL;
	handle->easy = curl_easy_init();
	handle->url = curl_url();
	if (handle->easy == NULL || handle->url == NULL)
	{
		ar_handle_destroy(handle);
		return NULL;
	}
	return handle;
}

/* Gives the flight's handle back, with nothing of the flight left in it. */
void
ar_handle_give_back(ArFlight *flight)
{
	ArTransport *transport = flight->transport;
	ArHandle   *handle = flight->handle;

	flight->handle = NULL;
	if (handle == NULL)
		return;
	if (transport->free_handle_count >= MAX_FREE_HANDLES)
	{
		ar_handle_destroy(handle);
		return;
	}
	curl_easy_reset(handle->easy);
	handle->next_free = transport->free_handles;
	transport->free_handles = handle;
	transport->free_handle_count++;
}

/* Frees a flight that is in no list and holds no handle. */
void
ar_flight_destroy(ArFlight *flight)
{
	ar_request_release(flight);
	ar_response_destroy(&flight->response);
	free(flight);
}

/* See the header. */
ArExchange *
ar_transport_collect(ArTransport *transport)
{
	ArFlight   *flight = transport->finished.first;

	if (flight == NULL)
		return NULL;
	ar_flight_remove(&transport->finished, flight);
	return &flight->exchange;
}

/* Frees a collected exchange.  Accepts NULL.  Never throws. */
void
ar_exchange_free(ArExchange *exchange)
{
	if (exchange != NULL)
		ar_flight_destroy((ArFlight *) exchange);
}

/*
 * The value of the first kept header of that lower case name, or NULL.  Lives
 * as long as the exchange.  Never throws.
 */
const char *
ar_exchange_header(const ArExchange *exchange, const char *name)
{
	int			i;

	for (i = 0; i < exchange->header_count; i++)
	{
		if (strcmp(exchange->headers[i].name, name) == 0)
			return exchange->headers[i].value;
	}
	return NULL;
}

/*
 * Seconds since 1970 of an HTTP-date, or -1 if it is none.  Never throws.
 */
int64_t
ar_http_date(const char *text)
{
	return (int64_t) curl_getdate(text, NULL);
}
