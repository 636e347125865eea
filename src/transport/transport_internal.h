/*
 * transport_internal.h
 *		What the files of the transport share; nobody else includes it.
 *
 * One multi serves writes and lookups alike.  Two would keep pooled
 * connections of lookups away from writes, but nothing is pooled: every
 * request connects anew and its connection is never kept.  A pooled connection
 * would let libcurl repeat a request by itself, would bypass the address
 * policy, and on 7.88.1 could hand a stray late response to the next request,
 * which for a lookup means confirming the wrong action.
 */
#ifndef AR_TRANSPORT_INTERNAL_H
#define AR_TRANSPORT_INTERNAL_H

#include <signal.h>

#include "transport/address_policy.h"
#include "transport/curl_compat.h"
#include "transport/response_buffer.h"
#include "transport/transport.h"

/* Longest header name, of a request or to keep. */
#define AR_MAX_HEADER_NAME 64

/* An easy handle and its parsed URL, kept between requests. */
typedef struct ArHandle
{
	CURL	   *easy;
	CURLU	   *url;
	struct ArHandle *next_free;
} ArHandle;

/* One exchange from start to collect.  The public part comes first. */
typedef struct ArFlight
{
	ArExchange	exchange;
	ArTransport *transport;
	ArHandle   *handle;			/* NULL once finished */
	struct ArFlight *previous;	/* in the list it is in */
	struct ArFlight *next;

	bool		is_write;
	ArAddressPolicy policy;
	ArResponse	response;
	char		no_body[1];		/* stands for a body of no bytes */

	/* headers and body as libcurl reads them, in one block */
	char	   *block;
	size_t		block_size;
	struct curl_slist *header_list;
	const char *body;
	size_t		body_len;
	const char *secret;			/* or NULL */
	char		keep_header[AR_MAX_HEADER_NAME + 1];	/* lower case, or empty */

	/* what became of its sockets */
	int			first_fd;		/* head of the list through the socket table */
	int			addresses_offered;
	int			addresses_denied;
	bool		fd_refused;		/* the owner had no descriptor left */
	ArAddressClass denied_class;
	char		denied_address[64];
} ArFlight;

#define AR_NO_FD (-1)

/*
 * What is known about a descriptor, by its number.  It outlives the flight:
 * newer libcurl closes a TLS connection after its transfer was reported.
 */
typedef struct ArSocket
{
	bool		open;			/* opened by us, counted with the owner */
	bool		watched;		/* in the epoll set */
	bool		answered;		/* the flight ended with a complete answer */
	ArFlight   *flight;			/* NULL once it finished */
	int			next_fd;		/* of the same flight */
} ArSocket;

/* A list of flights, oldest first. */
typedef struct ArFlightList
{
	ArFlight   *first;
	ArFlight   *last;
} ArFlightList;

struct ArTransport
{
	ArTransportHooks hooks;
	CURLM	   *multi;
	int			epoll_fd;
	int			timer_fd;
	int			own_fds;		/* how many of the above are counted */

	/* libcurl's one timer, armed late: it changes far more often than it fires */
	bool		timer_due;		/* wants to be called as soon as possible */
	bool		timer_changed;
	long		timer_ms;		/* if changed; negative: none */
	bool		timer_armed;
	bool		timer_armed_now;

	ArSocket   *sockets;		/* by descriptor */
	int			socket_count;

	ArHandle   *free_handles;
	int			free_handle_count;
	ArFlightList in_flight;
	ArFlightList finished;
	int			in_flight_count;

	bool		check_ran;		/* may_send ran in the current libcurl call */
	bool		failed;
	char		failure[256];
};

/* flight.c: lists, handles, signals.  Handles need signals blocked. */
extern sigset_t ar_signals_block(void);
extern void ar_signals_restore(const sigset_t *before);
extern void ar_flight_append(ArFlightList *list, ArFlight *flight);
extern void ar_flight_remove(ArFlightList *list, ArFlight *flight);
extern void ar_flight_destroy(ArFlight *flight);
extern ArHandle *ar_handle_take(ArTransport *transport);
extern void ar_handle_give_back(ArFlight *flight);
extern void ar_handle_destroy(ArHandle *handle);

/* request_check.c: refuse what must not be sent; pure */
extern bool ar_request_check(const ArRequest *request, char *error, size_t error_size);

/* curl_request.c: one request onto one easy handle */
extern bool ar_request_copy(ArFlight *flight, const ArRequest *request,
							char *error, size_t error_size);
extern bool ar_request_apply(ArFlight *flight, const ArRequest *request,
							 char *error, size_t error_size);
extern void ar_request_release(ArFlight *flight);

/* curl_callbacks.c: what libcurl calls during one transfer */
extern int	ar_callback_prereq(void *data, char *peer, char *local, int peer_port, int local_port);
extern size_t ar_callback_header(char *line, size_t size, size_t count, void *data);
extern size_t ar_callback_body(char *bytes, size_t size, size_t count, void *data);

/* curl_socket.c: descriptors, the epoll set and the timer */
extern bool ar_socket_setup(ArTransport *transport, char *error, size_t error_size);
extern void ar_socket_teardown(ArTransport *transport);
extern curl_socket_t ar_socket_open(void *data, curlsocktype purpose, struct curl_sockaddr *address);
extern int	ar_socket_close(void *data, curl_socket_t fd);
extern int	ar_socket_watch(CURL *easy, curl_socket_t fd, int what, void *data, void *fd_data);
extern int	ar_socket_timer(CURLM *multi, long timeout_ms, void *data);
extern void ar_socket_detach(ArFlight *flight, bool answered);
extern void ar_socket_timer_settle(ArTransport *transport);
extern void ar_socket_timer_drain(ArTransport *transport);

#endif							/* AR_TRANSPORT_INTERNAL_H */
