/*
 * transport_rules.h
 *		Checks of the transport's pure parts: what a request may contain, which
 *		addresses are permitted, what the shape of a response proves.
 *
 * Part of test_transport.c.
 */
#ifndef AR_TEST_TRANSPORT_RULES_H
#define AR_TEST_TRANSPORT_RULES_H

#include "transport/transport_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "tap.h"

static ArRequest
sample_request(void)
{
	ArRequest	request = {
		.is_write = true,
		.method = "POST",
		.url = "https://api.example.com/v1/charges",
		.connect_timeout_ms = 5000,
		.timeout_ms = 5000,
	};

	return request;
}

static void
url_is(const char *url, bool expected)
{
	ArRequest	request = sample_request();
	char		error[256] = "";
	bool		accepted;

	request.url = url;
	accepted = ar_request_check(&request, error, sizeof(error));
	ok(accepted == expected, "URL %.*s is %s", url ? (int) strcspn(url, "\r") : 4,
	   url ? url : "NULL", expected ? "accepted" : "refused");
	if (accepted != expected)
		diag("%s", error);
}

static void
test_urls(void)
{
	url_is("https://api.example.com", true);
	url_is("https://api.example.com/", true);
	url_is("https://api.example.com/v1/charges/", true);
	url_is("https://api.example.com/v1/a.b/..c/...", true);
	url_is("https://api.example.com:8443/v1/x%20y?q=../a//b%", true);
	url_is("https://api.example.com?q=1", true);
	url_is("http://api.example.com/v1", false);
	url_is("ftp://api.example.com/v1", false);
	url_is("https:/api.example.com/v1", false);
	url_is("https:///v1", false);
	url_is("//api.example.com/v1", false);
	url_is("https://good@evil.example.com/", false);
	url_is("https://good\\@evil.example.com/", false);
	url_is("https://api.example.com/v1//charges", false);
	url_is("https://api.example.com/v1/./charges", false);
	url_is("https://api.example.com/v1/../charges", false);
	url_is("https://api.example.com/v1/..", false);
	url_is("https://api.example.com/v1/..?x=1", false);
	url_is("https://api.example.com/v1/%2e%2E/charges", false);
	url_is("https://api.example.com/v1/.%2e", false);
	url_is("https://api.example.com/v1/x%2f..%2fy", false);
	url_is("https://api.example.com/v1/%2F", false);
	url_is("https://api.example.com/v1/x%5c..%5cy", false);
	url_is("https://api.example.com/v1/a%", false);
	url_is("https://api.example.com/v1/a%2", false);
	url_is("https://api.example.com/v1/a%zz", false);
	url_is("https://api.example.com/v1/a%00", false);
	url_is("https://api.example.com/v1/a%41", true);
	url_is("https://api.example.com/v1/a b", false);
	url_is("https://api.example.com/v1/a\r\nX: y", false);
	url_is("https://api.example.com/v1/\xc3\xa9", false);
	url_is("https://api.example.com/v1/a#b", false);
	url_is("", false);
	url_is(NULL, false);
}

static void
header_is(const char *name, const char *value, bool expected)
{
	ArRequest	request = sample_request();
	ArHeader	header = {name, value};
	char		error[256] = "";
	bool		accepted;

	request.headers = &header;
	request.header_count = 1;
	accepted = ar_request_check(&request, error, sizeof(error));
	ok(accepted == expected, "header %.*s is %s", (int) strcspn(name, "\r"), name,
	   expected ? "accepted" : "refused");
	if (!expected && value != NULL && strstr(value, "secret") != NULL)
		ok(strstr(error, "secret") == NULL, "the refusal does not repeat the value");
}

static void
test_headers(void)
{
	static const char *const own[] = {
		"Host", "content-length", "Transfer-Encoding", "CONNECTION", "Expect",
		"Upgrade", "TE", "Trailer", "Keep-Alive", "Proxy-Authorization"
	};
	char		long_value[8300];
	ArRequest	request = sample_request();
	ArHeader	twice[] = {{"X-One", "1"}, {"x-one", "2"}};
	char		error[256];
	size_t		i;

	memset(long_value, 'x', sizeof(long_value) - 1);
	long_value[sizeof(long_value) - 1] = '\0';
	header_is("Authorization", "Bearer abc", true);
	header_is("X-Tab", "a\tb", true);
	header_is("X-Utf8", "\xc3\xa9", true);
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		header_is(own[i], "1", false);
	header_is("X-Empty", "", false);
	header_is("X-Blank", "  \t", false);
	header_is("X-Split", "secret\r\nHost: evil", false);
	header_is("X-Bare", "secret\n", false);
	header_is("X-Del", "secret\x7f", false);
	header_is("X Space", "1", false);
	header_is("X-Colon:", "1", false);
	header_is("X-Line\r\n", "1", false);
	header_is("", "1", false);
	header_is("X-Null", NULL, false);
	header_is("X-Long", long_value, false);

	request.headers = twice;
	request.header_count = 2;
	ok(!ar_request_check(&request, error, sizeof(error)), "a header given twice is refused");
}

static void
method_is(bool is_write, const char *method, const char *body, bool expected)
{
	ArRequest	request = sample_request();
	char		error[256];

	request.is_write = is_write;
	request.method = method;
	request.body = body;
	request.body_len = body ? strlen(body) : 0;
	ok(ar_request_check(&request, error, sizeof(error)) == expected,
	   "%s %.*s%s is %s", is_write ? "write" : "lookup",
	   method ? (int) strcspn(method, "\r") : 4, method ? method : "NULL",
	   body ? " with a body" : "", expected ? "accepted" : "refused");
}

static void
test_methods(void)
{
	method_is(true, "POST", "{}", true);
	method_is(true, "PUT", "{}", true);
	method_is(true, "PATCH", "{}", true);
	method_is(true, "DELETE", NULL, true);
	method_is(true, "GET", NULL, false);
	method_is(true, "post", NULL, false);
	method_is(true, "POST\r\n", NULL, false);
	method_is(true, NULL, NULL, false);
	method_is(false, "GET", NULL, true);
	method_is(false, "GET", "{}", false);
	method_is(false, "HEAD", NULL, true);
	method_is(false, "DELETE", NULL, false);
}

static void
address_is(const char *text, ArAddressClass expected)
{
	struct sockaddr_in in4 = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	ArAddressClass seen;

	if (inet_pton(AF_INET, text, &in4.sin_addr) == 1)
		seen = ar_address_classify((struct sockaddr *) &in4, sizeof(in4));
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		seen = ar_address_classify((struct sockaddr *) &in6, sizeof(in6));
	else
		seen = AR_ADDRESS_UNSUPPORTED;
	ok(seen == expected, "%s is %s", text, ar_address_class_name(expected));
	if (seen != expected)
		diag("seen as %s", ar_address_class_name(seen));
}

static void
test_addresses(void)
{
	struct sockaddr other = {.sa_family = AF_UNIX};
	ArAddressPolicy open = {true};
	ArAddressPolicy closed = {false};

	address_is("93.184.216.34", AR_ADDRESS_PUBLIC);
	address_is("172.15.255.255", AR_ADDRESS_PUBLIC);
	address_is("172.32.0.0", AR_ADDRESS_PUBLIC);
	address_is("2606:4700::1111", AR_ADDRESS_PUBLIC);
	address_is("127.0.0.1", AR_ADDRESS_LOOPBACK);
	address_is("127.255.255.254", AR_ADDRESS_LOOPBACK);
	address_is("::1", AR_ADDRESS_LOOPBACK);
	address_is("10.1.2.3", AR_ADDRESS_PRIVATE);
	address_is("172.16.0.1", AR_ADDRESS_PRIVATE);
	address_is("172.31.255.255", AR_ADDRESS_PRIVATE);
	address_is("192.168.1.1", AR_ADDRESS_PRIVATE);
	address_is("198.19.0.1", AR_ADDRESS_PRIVATE);
	address_is("fc00::1", AR_ADDRESS_PRIVATE);
	address_is("fdff::1", AR_ADDRESS_PRIVATE);
	address_is("fec0::1", AR_ADDRESS_PRIVATE);
	address_is("64:ff9b:1::1", AR_ADDRESS_PRIVATE);
	address_is("169.254.1.1", AR_ADDRESS_LINK_LOCAL);
	address_is("fe80::1", AR_ADDRESS_LINK_LOCAL);
	address_is("100.64.0.1", AR_ADDRESS_SHARED);
	address_is("100.127.255.255", AR_ADDRESS_SHARED);
	address_is("0.0.0.0", AR_ADDRESS_UNSPECIFIED);
	address_is("0.1.2.3", AR_ADDRESS_UNSPECIFIED);
	address_is("::", AR_ADDRESS_UNSPECIFIED);
	address_is("224.0.0.1", AR_ADDRESS_MULTICAST);
	address_is("ff02::1", AR_ADDRESS_MULTICAST);
	address_is("255.255.255.255", AR_ADDRESS_RESERVED);
	address_is("203.0.113.9", AR_ADDRESS_RESERVED);
	address_is("2001:db8::1", AR_ADDRESS_RESERVED);
	address_is("2001::1", AR_ADDRESS_RESERVED);
	address_is("4000::1", AR_ADDRESS_RESERVED);
	address_is("169.254.169.254", AR_ADDRESS_METADATA);
	address_is("fd00:ec2::254", AR_ADDRESS_METADATA);
	address_is("::ffff:169.254.169.254", AR_ADDRESS_METADATA);
	address_is("::ffff:127.0.0.1", AR_ADDRESS_LOOPBACK);
	address_is("::ffff:8.8.8.8", AR_ADDRESS_PUBLIC);
	address_is("::7f00:1", AR_ADDRESS_LOOPBACK);
	address_is("64:ff9b::10.0.0.1", AR_ADDRESS_PRIVATE);
	address_is("64:ff9b::8.8.8.8", AR_ADDRESS_PUBLIC);
	address_is("2002:7f00:1::", AR_ADDRESS_LOOPBACK);
	address_is("2002:808:808::", AR_ADDRESS_PUBLIC);

	is_int(ar_address_classify(&other, sizeof(other)), AR_ADDRESS_UNSUPPORTED,
		   "a socket of another family is not supported");
	ok(!ar_address_allowed(&closed, AR_ADDRESS_LOOPBACK), "loopback needs permission");
	ok(ar_address_allowed(&open, AR_ADDRESS_LOOPBACK), "loopback can be permitted");
	ok(ar_address_allowed(&closed, AR_ADDRESS_PUBLIC), "public addresses are permitted");
	ok(!ar_address_allowed(&open, AR_ADDRESS_METADATA), "metadata is never permitted");
	ok(!ar_address_allowed(&open, AR_ADDRESS_UNSPECIFIED), "0.0.0.0 is never permitted");
}

/* Feeds header lines, one string each, and says whether all were taken. */
static bool
feed(ArResponse *response, const char *const *lines)
{
	for (; *lines != NULL; lines++)
	{
		if (!ar_response_header_line(response, *lines, strlen(*lines)))
			return false;
	}
	return true;
}

static void
test_responses(void)
{
	static const char *const folded[] = {
		"HTTP/1.1 200 OK\r\n", "Location: /a\r\n", " b\r\n", "ETag: \"1\"\r\n",
		"\r\n", "Date: in a trailer\r\n", "HTTP/1.1 500 no\r\n", NULL
	};
	static const char *const statuses[] = {
		"HTTP/1.1 9999 x\r\n", "HTTP/1.1 999 x\r\n", "HTTP/1.1 600 x\r\n", "HTTP/1.1 101 x\r\n",
		"HTTP/1.1  200 x\r\n", "HTTP/2 200\r\n", "HTTP/1.1 20\r\n", "HTTP/1.1 2x0 x\r\n"
	};
	ArResponse	response;
	size_t		i;

	ar_response_init(&response, 10, 1000, false, NULL);
	ok(feed(&response, folded), "a whole header block is taken");
	is_int(response.status, 200, "its status is kept, whatever a trailer says");
	is_int(response.header_count, 1, "a folded header and a trailer are not kept");
	ok(!response.framed, "without a length the body is not framed");
	ok(ar_response_body_piece(&response, "12345", 5), "a body within the cap is taken");
	ok(!ar_response_body_piece(&response, "678901", 6), "a body over the cap stops");
	ok(response.body_cut && response.body.length == 10, "what fits the cap is kept");
	ar_response_destroy(&response);

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
	{
		ar_response_init(&response, 10, 1000, false, NULL);
		ar_response_header_line(&response, statuses[i], strlen(statuses[i]));
		ar_response_header_line(&response, "\r\n", 2);
		ok(!response.final_header_end && response.status == 0,
		   "no final response: %.*s", (int) strcspn(statuses[i], "\r"), statuses[i]);
		ar_response_destroy(&response);
	}

	ar_response_init(&response, 10, 20, false, NULL);
	ok(!feed(&response, folded) && response.header_cut, "headers over the cap stop");
	ar_response_destroy(&response);
}

#endif							/* AR_TEST_TRANSPORT_RULES_H */
