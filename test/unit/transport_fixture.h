/*
 * transport_fixture.h
 *		An owner of a transport for tests: its hooks, what they saw, and the loop
 *		that drives one exchange to its end.
 *
 * Part of test_transport.c.
 */
#ifndef AR_TEST_TRANSPORT_FIXTURE_H
#define AR_TEST_TRANSPORT_FIXTURE_H

#include "transport/transport_internal.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "tap.h"
#include "transport_rules.h"

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 12\r\nContent-Type: application/json\r\n\r\n{\"id\":\"c_1\"}"

/* What the owner's hooks saw and what they are to say. */
typedef struct Owner
{
	ArSendDecision decision;
	int			checks;
	int			after_calls;
	int			open_fds;
	int			most_fds;
	int			fd_limit;
	bool		signals_blocked;	/* in every check */
	bool		signals_open;	/* in every after_call */
	void	   *cookie;
} Owner;

static Owner owner;
static ArTransport *transport;

static bool
sigterm_blocked(void)
{
	sigset_t	mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	return sigismember(&mask, SIGTERM) == 1;
}

static ArSendDecision
may_send(void *data, void *cookie)
{
	Owner	   *seen = data;

	seen->checks++;
	seen->cookie = cookie;
	if (!sigterm_blocked())
		seen->signals_blocked = false;
	return seen->decision;
}

static bool
acquire_fd(void *data)
{
	Owner	   *seen = data;

	if (seen->open_fds >= seen->fd_limit)
		return false;
	seen->open_fds++;
	if (seen->open_fds > seen->most_fds)
		seen->most_fds = seen->open_fds;
	return true;
}

static void
release_fd(void *data)
{
	((Owner *) data)->open_fds--;
}

static void
after_call(void *data)
{
	Owner	   *seen = data;

	seen->after_calls++;
	if (sigterm_blocked())
		seen->signals_open = false;
}

/* A fresh transport and a fresh owner. */
static void
open_transport(void)
{
	ArTransportHooks hooks = {may_send, acquire_fd, release_fd, &owner};
	char		error[256] = "";

	memset(&owner, 0, sizeof(owner));
	owner.fd_limit = 1000;
	owner.signals_blocked = owner.signals_open = true;
	transport = ar_transport_create(&hooks, error, sizeof(error));
	if (transport == NULL)
	{
		diag("%s", error);
		exit(1);
	}
}

static ArRequest
request_to(int port, const char *path, char *url, size_t url_size)
{
	ArRequest	request = sample_request();

	snprintf(url, url_size, "http://127.0.0.1:%d%s", port, path);
	request.url = url;
	request.allow_http = true;
	request.address_policy.allow_private = true;
	request.body = "{}";
	request.body_len = 2;
	return request;
}

/* Drives the transport until an exchange is finished, at most ten seconds. */
static ArExchange *
finish_one(void)
{
	int			waits;

	for (waits = 0; waits < 1000; waits++)
	{
		struct pollfd set = {ar_transport_fd(transport), POLLIN, 0};
		ArExchange *exchange;

		ar_transport_step(transport, after_call, &owner);
		exchange = ar_transport_collect(transport);
		if (exchange != NULL)
			return exchange;
		poll(&set, 1, 10000);
	}
	diag("no exchange finished");
	exit(1);
}

static ArExchange *
perform(const ArRequest *request)
{
	char		error[256] = "";

	if (!ar_transport_start(transport, request, error, sizeof(error)))
	{
		diag("%s", error);
		exit(1);
	}
	return finish_one();
}

#endif							/* AR_TEST_TRANSPORT_FIXTURE_H */
