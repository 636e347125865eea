/*
 * transport.h
 *		Carries one HTTP request at a time per exchange, many at once, and says
 *		afterwards what the transfer itself proves.
 *
 * Nothing in this layer knows PostgreSQL: no ereport, no palloc, no elog, so
 * nothing can longjmp through a libcurl frame.  Errors are values.  Memory is
 * malloc'ed and bounded by the caps of each request.
 */
#ifndef AR_TRANSPORT_H
#define AR_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/outcome.h"

typedef struct ArTransport ArTransport;

/* What the last-instant check says about one write, before its first byte. */
typedef enum ArSendDecision
{
	AR_SEND_GO,					/* everything the send depends on still holds */
	AR_SEND_REFUSE				/* any doubt: nothing may leave */
} ArSendDecision;

/* One header to send; both strings belong to the caller until start returns. */
typedef struct ArHeader
{
	const char *name;
	const char *value;
} ArHeader;

/* Which resolved addresses a request may connect to. */
typedef struct ArAddressPolicy
{
	bool		allow_private;	/* loopback, RFC 1918, link-local, ULA, ... */
} ArAddressPolicy;

typedef struct ArRequest
{
	bool		is_write;		/* a write: may_send is asked before its first byte */
	const char *method;			/* write: POST PUT PATCH DELETE; lookup: GET HEAD POST */
	const char *url;			/* absolute, percent-encoded, without user or fragment */
	const ArHeader *headers;
	int			header_count;
	const char *body;			/* may be NULL */
	size_t		body_len;
	bool		allow_http;		/* else https only */
	ArAddressPolicy address_policy;
	const char *ca_file;		/* NULL: the system's bundle */
	long		connect_timeout_ms;	/* name, TCP and TLS together; over it: not sent */
	long		timeout_ms;		/* the whole exchange */
	size_t		max_body_bytes; /* of the response; 0: one MiB */
	size_t		max_header_bytes;	/* of the response; 0: 64 KiB */
	const char *keep_header;	/* one more response header to keep, or NULL */
	const char *secret;			/* what the headers hold of it must not come back in the response; or NULL */
	void	   *cookie;			/* handed back in the exchange, untouched */
} ArRequest;

/* A response header the caller may see; only allow-listed names are kept. */
typedef struct ArResponseHeader
{
	const char *name;			/* lower case; lives as long as the exchange */
	char	   *value;
} ArResponseHeader;

/* A finished exchange.  Freed by ar_exchange_free(). */
typedef struct ArExchange
{
	void	   *cookie;
	ArTransferFacts facts;		/* what core/outcome.h classifies */
	int			curl_code;
	char		error[256];		/* libcurl's words, for people; never decides */
	char	   *body;			/* never NULL, NUL-terminated, at most max_body_bytes */
	size_t		body_len;
	ArResponseHeader *headers;
	int			header_count;
	int64_t		elapsed_us;
	char		peer_address[64];
} ArExchange;

/* What the transport needs from its owner. None of these may throw. */
typedef struct ArTransportHooks
{
	/* called inside libcurl's pre-request callback of a write, at most once */
	ArSendDecision (*may_send) (void *owner, void *cookie);
	/* a socket is about to be opened / was closed: descriptor accounting */
	bool		(*acquire_fd) (void *owner);
	void		(*release_fd) (void *owner);
	void	   *owner;
} ArTransportHooks;

/* Create or destroy. create returns NULL and fills error on failure. destroy closes every socket first. */
extern ArTransport *ar_transport_create(const ArTransportHooks *hooks, char *error, size_t error_size);
extern void ar_transport_destroy(ArTransport *transport);

/* One epoll descriptor that becomes readable whenever step has work (it holds curl's sockets and a timerfd). */
extern int	ar_transport_fd(const ArTransport *transport);

/*
 * Why the transport cannot go on, or NULL while it can.  libcurl's state is
 * not to be trusted after that: the owner destroys the transport, and what was
 * in flight has an unknown outcome.
 */
extern const char *ar_transport_failure(const ArTransport *transport);

/*
 * Queue one exchange. Copies everything it needs. False (with error filled)
 * if it could not even be set up: then nothing left, and no exchange will be
 * collected for it.  Does not run libcurl's state machine: only step does.
 */
extern bool ar_transport_start(ArTransport *transport, const ArRequest *request, char *error, size_t error_size);

/*
 * Drive whatever is ready, without waiting. Signals are blocked meanwhile. After each
 * libcurl call that ran may_send at least once, after_call (may be NULL) is invoked,
 * outside of libcurl and with the caller's signal mask: it may throw, and then
 * the owner steps again or destroys the transport.
 */
extern void ar_transport_step(ArTransport *transport, void (*after_call) (void *owner), void *owner);

/*
 * The next finished exchange in the order of finishing, or NULL.  The caller
 * frees it; it stays valid after the transport is destroyed.
 */
extern ArExchange *ar_transport_collect(ArTransport *transport);
extern void ar_exchange_free(ArExchange *exchange);

/* Exchanges started and not finished; finished ones may still wait in collect. */
extern int	ar_transport_in_flight(const ArTransport *transport);

/* First header of that (lower case) name, or NULL. */
extern const char *ar_exchange_header(const ArExchange *exchange, const char *name);

/*
 * The absolute URL of a reference in an answer of "base", in a buffer of the
 * caller's; false if it does not fit, is none, or leads away from the scheme,
 * host and port of base: an answer does not get to choose whom we talk to.
 */
#define AR_MAX_URL	8192
extern bool ar_url_resolve(const char *base, const char *reference, char *url, size_t size);

/* Seconds since 1970 of an HTTP-date, or -1 if it is none. */
extern int64_t ar_http_date(const char *text);

/* Load libcurl: once per process, never in the postmaster. */
extern bool ar_transport_init(char *error, size_t error_size);

#endif							/* AR_TRANSPORT_H */
