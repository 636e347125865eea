/*
 * curl_socket.c
 *		Descriptors of the transport: libcurl's sockets, the epoll set and the
 *		one timer.
 *
 * A socket is made to reset its connection at close from the moment it is
 * opened.  Without that the kernel would go on delivering a request after this
 * process gave it up or was killed, and a provider could execute it long after
 * the outcome was thought about.  Only a completely answered request with
 * nothing left to send gets an orderly close.
 *
 * No callback ever reports failure to the multi handle: libcurl would abort
 * every transfer.  A socket that cannot be watched times out by itself.
 */
#include "transport/transport_internal.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define FIRST_SOCKET_COUNT 64

/* Counts one more descriptor with the owner.  False: there is none left. */
static bool
acquire(ArTransport *transport)
{
	return transport->hooks.acquire_fd == NULL ||
		transport->hooks.acquire_fd(transport->hooks.owner);
}

/* Gives a counted descriptor back. */
static void
release(ArTransport *transport)
{
	if (transport->hooks.release_fd != NULL)
		transport->hooks.release_fd(transport->hooks.owner);
}

/*
 * The table's row of a descriptor, or NULL if memory for it ran out.  Valid
 * until the next call.  Never throws.
 */
static ArSocket *
socket_row(ArTransport *transport, int fd)
{
	int			count = transport->socket_count;
	ArSocket   *grown;

	if (fd < count)
		return &transport->sockets[fd];

	if (count == 0)
		count = FIRST_SOCKET_COUNT;
	while (count <= fd)
		count *= 2;
	grown = realloc(transport->sockets, (size_t) count * sizeof(ArSocket));
	if (grown == NULL)
		return NULL;
	memset(grown + transport->socket_count, 0,
		   (size_t) (count - transport->socket_count) * sizeof(ArSocket));
	transport->sockets = grown;
	transport->socket_count = count;
	return &transport->sockets[fd];
}

/*
 * Makes the epoll set and the timer.  False with the reason, and what was made
 * stays for the teardown.  Never throws, needs no transaction.
 */
bool
ar_socket_setup(ArTransport *transport, char *error, size_t error_size)
{
	struct epoll_event event = {.events = EPOLLIN};

	while (transport->own_fds < 2)
	{
		if (!acquire(transport))
		{
			snprintf(error, error_size,
					 "no file descriptor is free for the transport; raise max_files_per_process");
			return false;
		}
		transport->own_fds++;
	}

	transport->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (transport->epoll_fd < 0)
	{
		snprintf(error, error_size, "could not create an epoll set: %s", strerror(errno));
		return false;
	}
	transport->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (transport->timer_fd < 0)
	{
		snprintf(error, error_size, "could not create a timer: %s", strerror(errno));
		return false;
	}
	event.data.fd = transport->timer_fd;
	if (epoll_ctl(transport->epoll_fd, EPOLL_CTL_ADD, transport->timer_fd, &event) != 0)
	{
		snprintf(error, error_size, "could not watch the timer: %s", strerror(errno));
		return false;
	}
	return true;
}

/*
 * Closes the transport's own descriptors and frees the table; libcurl's must be
 * closed already.  Accepts a half-made transport.  Never throws.
 */
void
ar_socket_teardown(ArTransport *transport)
{
	if (transport->timer_fd >= 0)
		close(transport->timer_fd);
	if (transport->epoll_fd >= 0)
		close(transport->epoll_fd);
	transport->timer_fd = transport->epoll_fd = AR_NO_FD;
	while (transport->own_fds > 0)
	{
		release(transport);
		transport->own_fds--;
	}
	free(transport->sockets);
	transport->sockets = NULL;
	transport->socket_count = 0;
}

/* Whether the address may be used; if not, remembers why for the message. */
static bool
address_permitted(ArFlight *flight, const struct curl_sockaddr *address)
{
	ArAddressClass address_class = ar_address_classify(&address->addr, address->addrlen);

	flight->addresses_offered++;
	if (ar_address_allowed(&flight->policy, address_class))
		return true;

	flight->addresses_denied++;
	flight->denied_class = address_class;
	ar_address_format(&address->addr, address->addrlen,
					  flight->denied_address, sizeof(flight->denied_address));
	return false;
}

/*
 * Opens the socket of one connection attempt, if the address policy and the
 * owner's count of descriptors permit it.  Inside libcurl: must not throw.
 */
curl_socket_t
ar_socket_open(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
	ArFlight   *flight = data;
	ArTransport *transport = flight->transport;
	struct linger reset = {.l_onoff = 1,.l_linger = 0};
	ArSocket   *row;
	int			fd;

	if (purpose != CURLSOCKTYPE_IPCXN || !address_permitted(flight, address))
		return CURL_SOCKET_BAD;

	if (!acquire(transport))
	{
		flight->fd_refused = true;
		return CURL_SOCKET_BAD;
	}
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	row = fd >= 0 ? socket_row(transport, fd) : NULL;
	if (row == NULL ||
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) != 0)
	{
		/* a socket that could trickle must not be used */
		flight->fd_refused = fd < 0 && (errno == EMFILE || errno == ENFILE);
		if (fd >= 0)
			close(fd);
		release(transport);
		return CURL_SOCKET_BAD;
	}

	row->open = true;
	row->watched = false;
	row->answered = false;
	row->flight = flight;
	row->next_fd = flight->first_fd;
	flight->first_fd = fd;
	return fd;
}

/* Takes a descriptor out of its flight's list. */
static void
unlink_socket(ArTransport *transport, int fd)
{
	ArFlight   *flight = transport->sockets[fd].flight;
	int		   *link = &flight->first_fd;

	while (*link != AR_NO_FD && *link != fd)
		link = &transport->sockets[*link].next_fd;
	if (*link == fd)
		*link = transport->sockets[fd].next_fd;
}

/*
 * Closes a socket.  It was opened to reset its connection; that is taken back
 * only if a final response was seen and every byte of the request has left, so
 * that a clean exchange also looks clean to the provider.  Inside libcurl:
 * must not throw.
 */
int
ar_socket_close(void *data, curl_socket_t fd)
{
	ArTransport *transport = data;
	struct linger orderly = {.l_onoff = 0,.l_linger = 0};
	ArSocket   *row = fd < transport->socket_count ? &transport->sockets[fd] : NULL;
	int			unsent = 0;

	if (row != NULL && row->open)
	{
		bool		answered = row->flight != NULL
			? row->flight->response.final_header_end : row->answered;

		if (answered && ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && unsent == 0)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &orderly, sizeof(orderly));
		if (row->flight != NULL)
			unlink_socket(transport, fd);
		memset(row, 0, sizeof(*row));
		close(fd);
		release(transport);
		return 0;
	}
	return close(fd);
}

/*
 * Lets go of the flight's remaining sockets; they live on in the table until
 * libcurl closes them.  Never throws.
 */
void
ar_socket_detach(ArFlight *flight, bool answered)
{
	ArTransport *transport = flight->transport;

	while (flight->first_fd != AR_NO_FD)
	{
		ArSocket   *row = &transport->sockets[flight->first_fd];

		flight->first_fd = row->next_fd;
		row->flight = NULL;
		row->answered = answered;
	}
}

/*
 * Keeps the epoll set as libcurl wants it.  A number may come back for another
 * socket, so the set is corrected where it disagrees with the table.  Inside
 * libcurl: must not throw, always 0.
 */
int
ar_socket_watch(CURL *easy, curl_socket_t fd, int what, void *data, void *fd_data)
{
	ArTransport *transport = data;
	ArSocket   *row = socket_row(transport, fd);
	struct epoll_event event = {.data.fd = fd};
	int			result;

	(void) easy;
	(void) fd_data;

	if (what == CURL_POLL_REMOVE)
	{
		epoll_ctl(transport->epoll_fd, EPOLL_CTL_DEL, fd, &event);
		if (row != NULL)
			row->watched = false;
		return 0;
	}

	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;

	result = epoll_ctl(transport->epoll_fd,
					   row != NULL && row->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
					   fd, &event);
	if (result != 0 && errno == EEXIST)
		result = epoll_ctl(transport->epoll_fd, EPOLL_CTL_MOD, fd, &event);
	else if (result != 0 && errno == ENOENT)
		result = epoll_ctl(transport->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	if (row != NULL)
		row->watched = result == 0;
	return 0;
}

/*
 * Notes when libcurl wants to be called.  The timer itself is set once per
 * step, since most of these wishes are replaced before they come true.  Inside
 * libcurl: must not throw, always 0.
 */
int
ar_socket_timer(CURLM *multi, long timeout_ms, void *data)
{
	ArTransport *transport = data;

	(void) multi;
	transport->timer_due = timeout_ms == 0;
	transport->timer_changed = timeout_ms != 0;
	transport->timer_ms = timeout_ms;
	return 0;
}

/*
 * Sets the timer to libcurl's last wish, so that the epoll descriptor becomes
 * readable in time.  Never throws.
 */
void
ar_socket_timer_settle(ArTransport *transport)
{
	struct itimerspec when;

	memset(&when, 0, sizeof(when));
	if (transport->timer_due)
	{
		if (transport->timer_armed_now)
			return;
		when.it_value.tv_nsec = 1;
	}
	else if (!transport->timer_changed)
		return;
	else if (transport->timer_ms > 0)
	{
		when.it_value.tv_sec = transport->timer_ms / 1000;
		when.it_value.tv_nsec = (transport->timer_ms % 1000) * 1000000L;
	}
	else if (!transport->timer_armed)
	{
		transport->timer_changed = false;
		return;
	}

	timerfd_settime(transport->timer_fd, 0, &when, NULL);
	transport->timer_changed = false;
	transport->timer_armed = when.it_value.tv_sec != 0 || when.it_value.tv_nsec != 0;
	transport->timer_armed_now = transport->timer_due;
}

/* Takes note that the timer fired.  Never throws. */
void
ar_socket_timer_drain(ArTransport *transport)
{
	uint64_t	expirations;

	if (read(transport->timer_fd, &expirations, sizeof(expirations)) > 0)
		transport->timer_due = true;
	transport->timer_armed = transport->timer_armed_now = false;
}
