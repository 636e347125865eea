/*
 * rogue_server.h
 *		A tiny HTTP server in a thread, on loopback, that misbehaves on purpose
 *		and counts what it was really asked to do.
 *
 * One connection at a time.  Everything that ends is waited for; nothing
 * sleeps: a hung connection is held until the client or the test lets go.
 */
#ifndef AR_TEST_ROGUE_SERVER_H
#define AR_TEST_ROGUE_SERVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the server does with a connection, after its reply if it has one. */
typedef enum RogueEnd
{
	ROGUE_CLOSE,
	ROGUE_RESET,
	ROGUE_HANG,					/* until the client closes */
	ROGUE_REPEAT,				/* sends `again` until the client closes */
	ROGUE_CLOSE_UNREAD,			/* closes without reading anything */
	ROGUE_READ_LATE				/* reads only when told to, counts the bytes */
} RogueEnd;

typedef struct RogueServer
{
	const char *reply;			/* sent once the request was read, or NULL */
	const char *again;
	RogueEnd	end;

	int			listen_fd;
	int			port;
	int			stop[2];		/* closed writing end: the thread ends */
	int			go_on[2];		/* a byte: read late; closed: not at all */
	pthread_t	thread;

	atomic_int	connections;
	atomic_int	requests;		/* whole requests read */
	atomic_long bytes;			/* of everything read */
	char		last[16384];	/* the last request, whole or not */
} RogueServer;

/* Waits until the descriptor is readable; false if the server is to stop. */
static bool
rogue_wait(RogueServer *server, int fd)
{
	struct pollfd set[2] = {{fd, POLLIN, 0}, {server->stop[0], POLLIN, 0}};

	while (poll(set, 2, 10000) < 0 && errno == EINTR)
		;
	return set[1].revents == 0 && set[0].revents != 0;
}

/* Reads one request; true if it was complete. */
static bool
rogue_read_request(RogueServer *server, int fd)
{
	size_t		length = 0;

	while (length < sizeof(server->last) - 1 && rogue_wait(server, fd))
	{
		ssize_t		got = recv(fd, server->last + length,
							   sizeof(server->last) - 1 - length, 0);
		const char *head_end;
		const char *field;
		size_t		body = 0;

		if (got <= 0)
			return false;
		length += (size_t) got;
		server->bytes += got;
		server->last[length] = '\0';
		head_end = strstr(server->last, "\r\n\r\n");
		if (head_end == NULL)
			continue;
		field = strcasestr(server->last, "\r\nContent-Length:");
		if (field != NULL && field < head_end)
			body = strtoul(field + 17, NULL, 10);
		if (length >= (size_t) (head_end + 4 - server->last) + body)
		{
			server->requests++;
			return true;
		}
	}
	return false;
}

/*
 * Reads whatever comes until the other side is done; counts it.  Does not stop
 * when the server is told to: what still arrives is what a test asks about.
 */
static void
rogue_drain(RogueServer *server, int fd)
{
	struct timeval bound = {.tv_sec = 10};
	char		rest[65536];
	ssize_t		got;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	while ((got = recv(fd, rest, sizeof(rest), 0)) > 0)
		server->bytes += got;
}

/* Closes with a reset instead of an orderly end. */
static void
rogue_arm_reset(int fd)
{
	struct linger reset = {.l_onoff = 1,.l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

/* Serves one connection as told. */
static void
rogue_serve(RogueServer *server, int fd)
{
	if (server->end == ROGUE_CLOSE_UNREAD)
		return;
	if (server->end == ROGUE_READ_LATE)
	{
		char		told;

		if (read(server->go_on[0], &told, 1) == 1)
			rogue_drain(server, fd);
		return;
	}
	if (!rogue_read_request(server, fd))
		return;
	if (server->reply != NULL)
		(void) !send(fd, server->reply, strlen(server->reply), MSG_NOSIGNAL);
	if (server->end == ROGUE_RESET)
		rogue_arm_reset(fd);
	else if (server->end == ROGUE_HANG)
		rogue_drain(server, fd);
	else if (server->end == ROGUE_REPEAT)
	{
		while (send(fd, server->again, strlen(server->again), MSG_NOSIGNAL) > 0)
			;
	}
}

static void *
rogue_main(void *data)
{
	RogueServer *server = data;

	while (rogue_wait(server, server->listen_fd))
	{
		int			fd = accept(server->listen_fd, NULL, NULL);

		if (fd < 0)
			continue;
		server->connections++;
		rogue_serve(server, fd);
		close(fd);
	}
	return NULL;
}

/* Binds a loopback port; listens on it if asked.  Exits if it cannot. */
static int
rogue_bind(int *port, bool listening)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t	length = sizeof(address);
	int			small = 4096;
	int			fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* a small window, so that a request can get stuck on its way */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) != 0 ||
		(listening && listen(fd, 128) != 0) ||
		getsockname(fd, (struct sockaddr *) &address, &length) != 0)
	{
		perror("could not bind a loopback port");
		exit(1);
	}
	*port = ntohs(address.sin_port);
	return fd;
}

/* Starts a server that answers so and ends so. */
static void
rogue_start(RogueServer *server, const char *reply, RogueEnd end, const char *again)
{
	memset(server, 0, sizeof(*server));
	server->reply = reply;
	server->end = end;
	server->again = again;
	server->listen_fd = rogue_bind(&server->port, true);
	if (pipe(server->stop) != 0 || pipe(server->go_on) != 0 ||
		pthread_create(&server->thread, NULL, rogue_main, server) != 0)
	{
		perror("could not start a server");
		exit(1);
	}
}

/* Ends a server and waits for its thread. */
static void
rogue_stop(RogueServer *server)
{
	close(server->stop[1]);
	close(server->go_on[1]);
	pthread_join(server->thread, NULL);
	close(server->stop[0]);
	close(server->go_on[0]);
	close(server->listen_fd);
}

#endif							/* AR_TEST_ROGUE_SERVER_H */
