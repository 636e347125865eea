/*
 * test_transport.c
 *		The transport against servers that misbehave.
 *
 * Each case asserts two things: what the transport concluded, and what the
 * server was really asked to do.  Runs without a network: loopback only.
 */
#define _GNU_SOURCE
#include "transport/transport_internal.h"

#include <poll.h>
#include <stdlib.h>

#include "rogue_server.h"
#include "tap.h"
#include "transport_fixture.h"
#include "transport_rules.h"

/* One write to a server that answers so and ends so. */
static void
write_ends(const char *what, const char *reply, RogueEnd end, const char *again,
		   ArTransferClass expected, int expected_status, int expected_requests)
{
	RogueServer server;
	char		url[128];
	ArRequest	request;
	ArExchange *exchange;

	rogue_start(&server, reply, end, again);
	request = request_to(server.port, "/v1/charges", url, sizeof(url));
	request.timeout_ms = 700;
	request.max_body_bytes = 100000;
	exchange = perform(&request);
	rogue_stop(&server);
	is_str(ar_transfer_class_name(ar_classify_transfer(&exchange->facts)),
		   ar_transfer_class_name(expected), what);
	ok(exchange->facts.http_status == expected_status && server.requests == expected_requests,
	   "... status %d, %d delivered", expected_status, expected_requests);
	if (exchange->facts.http_status != expected_status || server.requests != expected_requests)
		diag("status %d, %d delivered, code %d, %s", exchange->facts.http_status,
			 server.requests, exchange->curl_code, exchange->error);
	if (exchange->body_len > 100000 || (exchange->facts.body_complete && !exchange->facts.transfer_ok))
		ok(false, "... the body stays within its cap");
	ar_exchange_free(exchange);
}

static void
test_unknown_ends(void)
{
	const		ArTransferClass unknown = AR_TRANSFER_UNKNOWN;

	write_ends("read, then closed", NULL, ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("read, then reset", NULL, ROGUE_RESET, NULL, unknown, 0, 1);
	write_ends("read, then silence", NULL, ROGUE_HANG, NULL, unknown, 0, 1);
	write_ends("closed unread", NULL, ROGUE_CLOSE_UNREAD, NULL, unknown, 0, 0);
	write_ends("short body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
			   ROGUE_CLOSE, NULL, unknown, 200, 1);
	write_ends("body, then silence", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
			   ROGUE_HANG, NULL, unknown, 200, 1);
	write_ends("missing last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
			   ROGUE_CLOSE, NULL, unknown, 200, 1);
	write_ends("bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n",
			   ROGUE_CLOSE, NULL, unknown, 200, 1);
	write_ends("header block cut, libcurl content", "HTTP/1.1 200 OK\r\nContent-Le",
			   ROGUE_CLOSE, NULL, unknown, 200, 1);
	write_ends("100, then closed", "HTTP/1.1 100 Continue\r\n\r\n", ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("103, then closed", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
			   ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("100, then silence", "HTTP/1.1 100 Continue\r\n\r\n", ROGUE_HANG, NULL, unknown, 0, 1);
	write_ends("endless interim responses", NULL, ROGUE_REPEAT, "HTTP/1.1 103 Hint\r\nX-A: b\r\n\r\n",
			   unknown, 0, 1);
	write_ends("bare 101", "HTTP/1.1 101 Switching\r\n\r\n", ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("status 9999", "HTTP/1.1 9999 Odd\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("HTTP/5.0", "HTTP/5.0 200 OK\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("HTTP/0.9", "executed\n", ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("cut status line", "HTT", ROGUE_CLOSE, NULL, unknown, 0, 1);
	write_ends("endless headers", "HTTP/1.1 200 OK\r\n", ROGUE_REPEAT, "X-Filler: aaaaaaaaaaaaaaaa\r\n",
			   unknown, 200, 1);
	write_ends("one endless header", "HTTP/1.1 200 OK\r\nX-Filler: ", ROGUE_REPEAT, "aaaaaaaaaaaaaaaa",
			   unknown, 200, 1);
	write_ends("announced body over the cap", "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n",
			   ROGUE_REPEAT, "aaaaaaaaaaaaaaaa", unknown, 200, 1);
	write_ends("endless chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			   ROGUE_REPEAT, "10\r\naaaaaaaaaaaaaaaa\r\n", unknown, 200, 1);
	write_ends("endless body", "HTTP/1.1 200 OK\r\n\r\n", ROGUE_REPEAT, "aaaaaaaaaaaaaaaa",
			   unknown, 200, 1);
}

static void
test_answers(void)
{
	const		ArTransferClass answered = AR_TRANSFER_ANSWERED;

	write_ends("201", CREATED, ROGUE_CLOSE, NULL, answered, 201, 1);
	write_ends("201 on a connection kept open", CREATED, ROGUE_HANG, NULL, answered, 201, 1);
	write_ends("103, then 201", "HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n" CREATED,
			   ROGUE_CLOSE, NULL, answered, 201, 1);
	write_ends("an extra response behind the first", CREATED CREATED, ROGUE_HANG, NULL, answered, 201, 1);
	write_ends("204", "HTTP/1.1 204 No Content\r\n\r\n", ROGUE_HANG, NULL, answered, 204, 1);
	write_ends("a redirect is not followed", "HTTP/1.1 307 Again\r\nLocation: /v1/charges\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, answered, 307, 1);
	write_ends("401 with a challenge is not repeated",
			   "HTTP/1.1 401 No\r\nWWW-Authenticate: Digest realm=\"a\", nonce=\"b\"\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, answered, 401, 1);
	write_ends("417 is not repeated", "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, answered, 417, 1);
	write_ends("503 is not repeated", "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
			   ROGUE_CLOSE, NULL, answered, 503, 1);
}

/* What the response brings to the caller. */
static void
test_answer_content(void)
{
	RogueServer server;
	char		url[128];
	ArRequest	request;
	ArExchange *exchange;

	rogue_start(&server,
				"HTTP/1.1 103 Hint\r\nLink: </early>\r\n\r\n"
				"HTTP/1.1 200 OK\r\nContent-Type: text/plain \r\nSet-Cookie: secret=1\r\n"
				"X-Resource-Id:  r_1\r\nTransfer-Encoding: chunked\r\n\r\n"
				"5\r\nhello\r\n0\r\nDate: trailer\r\n\r\n",
				ROGUE_CLOSE, NULL);
	request = request_to(server.port, "/v1/charges", url, sizeof(url));
	request.keep_header = "X-Resource-Id";
	request.cookie = &server;
	exchange = perform(&request);
	rogue_stop(&server);

	ok(exchange->cookie == &server && owner.cookie == &server, "the cookie comes back");
	is_str(exchange->body, "hello", "the body is there");
	is_int((int) exchange->body_len, 5, "with its length");
	ok(exchange->facts.body_framed && exchange->facts.body_complete, "it is framed and complete");
	is_str(ar_exchange_header(exchange, "content-type"), "text/plain", "an allow-listed header is kept");
	is_str(ar_exchange_header(exchange, "x-resource-id"), "r_1", "the asked-for header is kept");
	is_str(ar_exchange_header(exchange, "set-cookie"), NULL, "a cookie is dropped");
	is_str(ar_exchange_header(exchange, "link"), NULL, "an interim response's header is dropped");
	is_str(ar_exchange_header(exchange, "date"), NULL, "a trailer is dropped");
	is_str(exchange->peer_address, "127.0.0.1", "the peer is named");
	is_str(exchange->error, "", "there is no error");
	ok(exchange->elapsed_us > 0, "it took some time");
	ar_exchange_free(exchange);
}

/* What authenticates us is not told by whoever repeats it. */
static void
test_secret(void)
{
	RogueServer server;
	ArHeader	header = {"Authorization", "Bearer tok-123456789"};
	char		url[128];
	ArRequest	request;
	ArExchange *exchange;

	rogue_start(&server,
				"HTTP/1.1 403 No\r\nX-Request-Id: tok-123456789\r\nContent-Length: 54\r\n\r\n"
				"Bearer tok-12345678 tok-123456789tok-123456789 Bearer!",
				ROGUE_CLOSE, NULL);
	request = request_to(server.port, "/", url, sizeof(url));
	request.headers = &header;
	request.header_count = 1;
	request.secret = "Bearer tok-123456789";
	exchange = perform(&request);
	rogue_stop(&server);

	is_str(exchange->body, "Bearer tok-12345678 ************************** Bearer!", "a secret in the body is hidden, and nothing else");
	is_str(ar_exchange_header(exchange, "x-request-id"), "*************", "and so it is in a header");
	ok(exchange->facts.body_framed && exchange->facts.body_complete, "the body stays whole");
	ar_exchange_free(exchange);
}

/* What the request looks like on the wire. */
static void
wire_is(bool is_write, const char *method, const char *body, const char *start,
		const char *holds, const char *lacks)
{
	RogueServer server;
	ArHeader	header = {"Idempotency-Key", "k1"};
	char		url[128];
	ArRequest	request;

	rogue_start(&server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ROGUE_CLOSE, NULL);
	request = request_to(server.port, "/a.b/%7Ec?q=1&r=../", url, sizeof(url));
	request.is_write = is_write;
	request.method = method;
	request.body = body;
	request.body_len = body ? strlen(body) : 0;
	request.headers = &header;
	request.header_count = 1;
	ar_exchange_free(perform(&request));
	rogue_stop(&server);

	ok(strncmp(server.last, start, strlen(start)) == 0, "%s begins right", method);
	ok(strstr(server.last, holds) != NULL, "... and says what it must");
	ok(lacks == NULL || strcasestr(server.last, lacks) == NULL, "... and nothing else");
	ok(strstr(server.last, "\r\nConnection: close\r\n") != NULL &&
	   strstr(server.last, "\r\nIdempotency-Key: k1\r\n") != NULL &&
	   strcasestr(server.last, "\r\nExpect") == NULL &&
	   strcasestr(server.last, "\r\nAccept-Encoding") == NULL &&
	   strcasestr(server.last, "\r\nContent-Type") == NULL, "... with the fixed headers");
}

static void
test_wire(void)
{
	char	   *big = malloc(8193);

	memset(big, 'x', 8192);
	big[8192] = '\0';
	wire_is(true, "POST", "{\"a\":1}", "POST /a.b/%7Ec?q=1&r=../ HTTP/1.1\r\n",
			"\r\nContent-Length: 7\r\n", NULL);
	wire_is(true, "POST", NULL, "POST /a.b/", "\r\nContent-Length: 0\r\n", "Transfer-Encoding");
	wire_is(true, "PUT", "x", "PUT /a.b/", "\r\nContent-Length: 1\r\n", "Transfer-Encoding");
	wire_is(true, "PUT", NULL, "PUT /a.b/", "\r\nContent-Length: 0\r\n", "Transfer-Encoding");
	wire_is(true, "PATCH", "x", "PATCH /a.b/", "\r\nContent-Length: 1\r\n", "Transfer-Encoding");
	wire_is(true, "DELETE", NULL, "DELETE /a.b/", "\r\nHost: ", "Content-Length");
	wire_is(true, "DELETE", "x", "DELETE /a.b/", "\r\nContent-Length: 1\r\n", "Transfer-Encoding");
	wire_is(false, "GET", NULL, "GET /a.b/", "\r\nHost: ", "Content-Length");
	wire_is(false, "HEAD", NULL, "HEAD /a.b/", "\r\nHost: ", "Content-Length");
	wire_is(false, "POST", "x", "POST /a.b/", "\r\nContent-Length: 1\r\n", NULL);
	wire_is(true, "POST", big, "POST /a.b/", "\r\nContent-Length: 8192\r\n", NULL);
	free(big);
}

static void
expect_not_sent(const char *what, const ArRequest *request, bool policy_denied, const char *words)
{
	ArExchange *exchange = perform(request);

	is_str(ar_transfer_class_name(ar_classify_transfer(&exchange->facts)), "not_sent", what);
	ok(exchange->facts.policy_denied == policy_denied, "... %sby the address policy",
	   policy_denied ? "" : "not ");
	ok(words == NULL || strstr(exchange->error, words) != NULL, "... error: %s", exchange->error);
	ok(exchange->body != NULL && exchange->body_len == 0, "... with an empty body");
	ar_exchange_free(exchange);
}

static void
test_not_sent(void)
{
	RogueServer server;
	char		url[128];
	ArRequest	request;
	int			checks = owner.checks;
	int			port;
	int			bound = rogue_bind(&port, false);

	request = request_to(port, "/", url, sizeof(url));
	expect_not_sent("a refused port", &request, false, NULL);
	close(bound);

	rogue_start(&server, CREATED, ROGUE_CLOSE, NULL);
	request = request_to(server.port, "/", url, sizeof(url));
	request.address_policy.allow_private = false;
	expect_not_sent("a loopback address", &request, true, "127.0.0.1 is loopback");
	snprintf(url, sizeof(url), "http://2130706433:%d/", server.port);
	expect_not_sent("the same address as a number", &request, true, "127.0.0.1 is loopback");
	request.address_policy.allow_private = true;
	snprintf(url, sizeof(url), "http://0:%d/", server.port);
	expect_not_sent("the unspecified address", &request, true, "0.0.0.0 is unspecified");
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);

	owner.fd_limit = owner.open_fds;
	expect_not_sent("no descriptor left", &request, false, "file descriptor");
	owner.fd_limit = 1000;
	is_int(server.connections, 0, "none of these reached the server");
	is_int(owner.checks, checks, "and none was checked");

	snprintf(url, sizeof(url), "https://127.0.0.1:%d/", server.port);
	request.connect_timeout_ms = 300;
	expect_not_sent("a TLS handshake nobody answers", &request, false, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);

	owner.decision = AR_SEND_REFUSE;
	expect_not_sent("a refused check", &request, false, "last-instant check");
	owner.decision = AR_SEND_GO;
	rogue_stop(&server);
	is_int(server.requests, 0, "no request was delivered");
	is_int(owner.checks, checks + 1, "the check was asked once");
}

/* libcurl about to repeat a request: cannot be provoked with our options. */
static void
test_second_prereq(void)
{
	ArFlight	flight;
	char		peer[] = "192.0.2.1";

	memset(&flight, 0, sizeof(flight));
	flight.transport = transport;
	flight.is_write = true;
	owner.checks = 0;
	is_int(ar_callback_prereq(&flight, peer, peer, 1, 2), CURL_PREREQFUNC_OK, "the first call passes");
	is_int(ar_callback_prereq(&flight, peer, peer, 1, 2), CURL_PREREQFUNC_ABORT, "the second is refused");
	is_int(owner.checks, 1, "the owner is asked once");
	flight.exchange.facts.transfer_ok = true;
	flight.exchange.facts.final_header_end = true;
	flight.exchange.facts.http_status = 200;
	is_int(ar_classify_transfer(&flight.exchange.facts), AR_TRANSFER_UNKNOWN, "and the outcome is unknown");
}

/* Lookups are not checked, and the owner is called back only for checks. */
static void
test_hooks(void)
{
	RogueServer server;
	char		url[128];
	ArRequest	request;

	/* the server would take further requests on the same connection */
	rogue_start(&server, CREATED, ROGUE_HANG, NULL);
	request = request_to(server.port, "/", url, sizeof(url));
	owner.checks = owner.after_calls = 0;
	owner.signals_blocked = owner.signals_open = true;
	ar_exchange_free(perform(&request));
	ok(owner.checks == 1 && owner.after_calls == 1, "a write is checked and followed up once");
	ok(owner.signals_blocked, "signals are blocked during every check");
	ok(owner.signals_open && !sigterm_blocked(), "and open again afterwards");

	request.is_write = false;
	request.method = "GET";
	request.body = NULL;
	request.body_len = 0;
	ar_exchange_free(perform(&request));
	ok(owner.checks == 1 && owner.after_calls == 1, "a lookup is not checked");
	rogue_stop(&server);
	ok(server.connections == 2 && server.requests == 2, "each request has its own connection");
	is_int(owner.open_fds, 2, "only the transport's own descriptors stay open");
}

/* A request given up is not delivered later by the kernel. */
static void
test_nothing_trickles(void)
{
	const size_t size = 100 * 1024; /* fits our send buffer, not its window */
	RogueServer server;
	char		url[128];
	ArRequest	request;
	ArExchange *exchange;
	char	   *body = calloc(1, size);

	rogue_start(&server, NULL, ROGUE_READ_LATE, NULL);
	request = request_to(server.port, "/", url, sizeof(url));
	request.body = body;
	request.body_len = size;
	request.timeout_ms = 300;
	exchange = perform(&request);
	(void) !write(server.go_on[1], "x", 1);
	rogue_stop(&server);
	is_int(ar_classify_transfer(&exchange->facts), AR_TRANSFER_UNKNOWN, "a request nobody reads is unknown");
	ok((size_t) server.bytes < size, "its rest never arrives (%ld bytes did)", (long) server.bytes);
	ar_exchange_free(exchange);
	free(body);
}

/* Many at once, some never answered; then everything is dropped. */
static void
test_destroy_in_flight(void)
{
	RogueServer server;
	char		url[128];
	char		error[256];
	ArRequest	request;
	struct pollfd set;
	int			i;

	rogue_start(&server, NULL, ROGUE_HANG, NULL);
	request = request_to(server.port, "/", url, sizeof(url));
	for (i = 0; i < 50; i++)
		ar_transport_start(transport, &request, error, sizeof(error));
	is_int(ar_transport_in_flight(transport), 50, "fifty are in flight");
	set.fd = ar_transport_fd(transport);
	set.events = POLLIN;
	while (server.requests == 0 && poll(&set, 1, 10000) >= 0)
		ar_transport_step(transport, after_call, &owner);
	ok(ar_transport_collect(transport) == NULL, "none has finished");
	ok(ar_transport_failure(transport) == NULL, "the transport is in order");
	ar_transport_destroy(transport);
	is_int(owner.open_fds, 0, "destroying it closes every descriptor");
	rogue_stop(&server);
}

int
main(void)
{
	char		error[256] = "";

	/* a proxy nobody must use */
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("https_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);

	if (!ok(ar_transport_init(error, sizeof(error)), "libcurl loads"))
		return 1;
	test_urls();
	test_headers();
	test_methods();
	test_addresses();
	test_responses();
	open_transport();
	test_unknown_ends();
	test_answers();
	test_answer_content();
	test_secret();
	test_wire();
	test_not_sent();
	test_second_prereq();
	test_hooks();
	test_nothing_trickles();
	test_destroy_in_flight();
	return done_testing();
}
