/*
 * test_host_list.c
 *		Which hosts a list allows.
 */
#include "core/host_list.h"

#include "tap.h"

#define LIST "api.example.org, *.example.net,127.0.0.1 [::1]"

static const struct
{
	const char *address;
	bool		allowed;
}			addresses[] = {
	{"https://api.example.org", true}, {"http://api.example.org/x", true}, {"https://api.example.org:8443/x", true},
	{"HTTPS://API.Example.ORG", true}, {"https://api.example.org.", true}, {"https://api.example.org?x", true}, {"https://api.example.org#x", true},
	{"https://example.org", false}, {"https://xapi.example.org", false}, {"https://api.example.org.evil.com", false},
	{"https://api.example.orgx", false}, {"https://evil.com/api.example.org", false}, {"https://evil.com?api.example.org", false},
	{"https://evil.com#.example.net", false}, {"https://api.example.org@evil.com", false}, {"https://evil.com@api.example.org", false},
	{"https://a.example.net", true}, {"https://a.b.example.net", true}, {"https://A.EXAMPLE.NET.", true},
	{"https://example.net", false}, {"https://notexample.net", false}, {"https://.example.net", false},
	{"http://127.0.0.1:80/", true}, {"http://127.1", false}, {"http://2130706433", false}, {"http://0x7f000001", false}, {"http://0177.0.0.1", false},
	{"http://[::1]:80/x", true}, {"http://[::ffff:127.0.0.1]", false}, {"http://[::1", false},
	{"ftp://api.example.org", false}, {"api.example.org", false}, {"https://", false}, {"https:///api.example.org", false}, {"", false},
	{"https://api%2eexample.org", false}, {"https://api.example.org\\.evil.com", false},
};

static const char *const valid[] = {"", " ", "a", "a.b,c", "*.a.b", "127.0.0.1", "[::1]", "a-b_c.d , [fe80::1]", "a."};
static const char *const invalid[] = {"*", "*.", "a.*", "*a.b", "https://a", "a/b", "a:80", "a@b", "[x.y]", "[::1", ".a", "*..a", "a;b", "'a'"};

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

int
main(void)
{
	for (size_t i = 0; i < LENGTH_OF(addresses); i++)
		ok(ar_host_list_allows(LIST, addresses[i].address) == addresses[i].allowed, "%s is %s",
		   addresses[i].address, addresses[i].allowed ? "allowed" : "not");
	ok(ar_host_list_allows("", "https://anything") && ar_host_list_allows(" , ", "https://anything"), "an empty list allows all");
	for (size_t i = 0; i < LENGTH_OF(valid); i++)
		ok(ar_host_list_is_valid(valid[i]), "\"%s\" is a list", valid[i]);
	for (size_t i = 0; i < LENGTH_OF(invalid); i++)
		ok(!ar_host_list_is_valid(invalid[i]), "\"%s\" is none", invalid[i]);
	return done_testing();
}
