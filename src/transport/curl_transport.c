/*
 * curl_transport.c
 *		The transport over libcurl: its life, and the start of an exchange.
 *
 * All signals are blocked whenever libcurl runs, because the thread it starts
 * for a name resolution inherits the mask and must never run one of the
 * process's handlers.
 */
#include "transport/transport_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Loads libcurl and checks that it can do what is needed.  Once per process,
 * never in the postmaster: libcurl's state must not cross a fork.  False with
 * the reason.  Never throws, needs no transaction.
 */
bool
ar_transport_init(char *error, size_t error_size)
{
	static bool initialised = false;
	curl_version_info_data *version;
	sigset_t	before;
	CURLcode	result;

	if (initialised)
		return true;

	before = ar_signals_block();
	result = curl_global_init(CURL_GLOBAL_DEFAULT);
	version = curl_version_info(CURLVERSION_NOW);
	ar_signals_restore(&before);

	if (result != CURLE_OK)
	{
		snprintf(error, error_size, "could not load libcurl: %s", curl_easy_strerror(result));
		return false;
	}
	if (version->version_num < AR_CURL_MIN_VERSION_NUM)
	{
		snprintf(error, error_size, "libcurl %s is too old; install %s or newer",
				 version->version, AR_CURL_MIN_VERSION);
		return false;
	}
	if ((version->features & CURL_VERSION_SSL) == 0 ||
		(version->features & CURL_VERSION_ASYNCHDNS) == 0)
	{
		snprintf(error, error_size,
				 "libcurl %s lacks TLS or asynchronous name resolution; install one built with both",
				 version->version);
		return false;
	}
	initialised = true;
	return true;
}

/* Makes the multi handle.  False with the reason.  Signals must be blocked. */
static bool
make_multi(ArTransport *transport, char *error, size_t error_size)
{
	transport->multi = curl_multi_init();
	if (transport->multi == NULL ||
		curl_multi_setopt(transport->multi, CURLMOPT_SOCKETFUNCTION, ar_socket_watch) != CURLM_OK ||
		curl_multi_setopt(transport->multi, CURLMOPT_SOCKETDATA, transport) != CURLM_OK ||
		curl_multi_setopt(transport->multi, CURLMOPT_TIMERFUNCTION, ar_socket_timer) != CURLM_OK ||
		curl_multi_setopt(transport->multi, CURLMOPT_TIMERDATA, transport) != CURLM_OK ||
		curl_multi_setopt(transport->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_NOTHING) != CURLM_OK ||
		ar_curl_multi_quick_exit(transport->multi) != CURLM_OK)
	{
		snprintf(error, error_size, "could not set up libcurl's multi interface");
		return false;
	}
	return true;
}

/*
 * Makes a transport; the caller destroys it.  ar_transport_init must have
 * succeeded in this process.  NULL with the reason.  Never throws, needs no
 * transaction.
 */
ArTransport *
ar_transport_create(const ArTransportHooks *hooks, char *error, size_t error_size)
{
	ArTransport *transport;
	sigset_t	before;
	bool		made;

	transport = calloc(1, sizeof(*transport));
	if (transport == NULL)
	{
		snprintf(error, error_size, "out of memory for the transport");
		return NULL;
	}
	transport->hooks = *hooks;
	transport->epoll_fd = transport->timer_fd = AR_NO_FD;

	before = ar_signals_block();
	made = ar_socket_setup(transport, error, error_size) &&
		make_multi(transport, error, error_size);
	ar_signals_restore(&before);
	if (!made)
	{
		ar_transport_destroy(transport);
		return NULL;
	}
	return transport;
}

/*
 * Resets every open connection, then frees everything but exchanges already
 * collected.  What was in flight is gone without a result: its outcome is
 * unknown.  Accepts NULL and a half-made transport.  Never throws, needs no
 * transaction.
 */
void
ar_transport_destroy(ArTransport *transport)
{
	sigset_t	before;
	ArFlight   *flight;
	ArHandle   *handle;

	if (transport == NULL)
		return;
	before = ar_signals_block();

	while ((flight = transport->in_flight.first) != NULL)
	{
		curl_multi_remove_handle(transport->multi, flight->handle->easy);
		ar_flight_remove(&transport->in_flight, flight);
		ar_socket_detach(flight, false);
		ar_handle_destroy(flight->handle);
		flight->handle = NULL;
		ar_flight_destroy(flight);
	}
	while ((handle = transport->free_handles) != NULL)
	{
		transport->free_handles = handle->next_free;
		ar_handle_destroy(handle);
	}
	if (transport->multi != NULL)
		curl_multi_cleanup(transport->multi);
	while ((flight = transport->finished.first) != NULL)
	{
		ar_flight_remove(&transport->finished, flight);
		ar_flight_destroy(flight);
	}
	ar_socket_teardown(transport);
	free(transport);

	ar_signals_restore(&before);
}

/* The descriptor to wait for.  Owned by the transport. */
int
ar_transport_fd(const ArTransport *transport)
{
	return transport->epoll_fd;
}

/* See the header. */
int
ar_transport_in_flight(const ArTransport *transport)
{
	return transport->in_flight_count;
}

/* See the header. */
const char *
ar_transport_failure(const ArTransport *transport)
{
	return transport->failed ? transport->failure : NULL;
}

/*
 * Gives the flight a handle and hands it to libcurl, which does not run it yet.
 * False with the reason.  Signals must be blocked.
 */
static bool
launch(ArTransport *transport, ArFlight *flight, const ArRequest *request,
	   char *error, size_t error_size)
{
	CURLMcode	added;

	flight->handle = ar_handle_take(transport);
	if (flight->handle == NULL)
	{
		snprintf(error, error_size, "out of memory for a libcurl handle");
		return false;
	}
	if (!ar_request_apply(flight, request, error, error_size))
		return false;

	added = curl_multi_add_handle(transport->multi, flight->handle->easy);
	if (added != CURLM_OK)
	{
		snprintf(error, error_size, "could not start a transfer: %s",
				 curl_multi_strerror(added));
		return false;
	}
	return true;
}

/*
 * Checks, copies and queues one request.  False with the reason: nothing left,
 * and nothing will be collected.  Never throws; needs no transaction, and none
 * should be open for longer than this.
 */
bool
ar_transport_start(ArTransport *transport, const ArRequest *request,
				   char *error, size_t error_size)
{
	ArFlight   *flight;
	sigset_t	before;
	bool		launched;

	if (transport->failed)
	{
		snprintf(error, error_size, "%s", transport->failure);
		return false;
	}
	if (request->is_write && transport->hooks.may_send == NULL)
	{
		snprintf(error, error_size, "a write needs a last-instant check");
		return false;
	}
	if (!ar_request_check(request, error, error_size))
		return false;

	flight = calloc(1, sizeof(*flight));
	if (flight == NULL)
	{
		snprintf(error, error_size, "out of memory for an exchange");
		return false;
	}
	flight->transport = transport;
	flight->first_fd = AR_NO_FD;
	flight->is_write = request->is_write;
	flight->policy = request->address_policy;
	flight->exchange.cookie = request->cookie;
	if (!ar_request_copy(flight, request, error, error_size))
	{
		ar_flight_destroy(flight);
		return false;
	}

	before = ar_signals_block();
	launched = launch(transport, flight, request, error, error_size);
	if (launched)
	{
		ar_flight_append(&transport->in_flight, flight);
		transport->in_flight_count++;
		ar_socket_timer_settle(transport);
	}
	else
	{
		ar_handle_give_back(flight);
		ar_flight_destroy(flight);
	}
	ar_signals_restore(&before);
	return launched;
}
