/*
 * test_headers.c
 *		What the headers Link and Retry-After say.
 */
#include "core/link_header.h"
#include "core/retry_after.h"

#include <stdlib.h>

#include "tap.h"

#define YEAR (AR_RETRY_AFTER_MAX_SECONDS * 1000000)

static const struct
{
	const char *value;
	int64_t		expected;
}			pauses[] = {
	{"0", 0}, {"1", 1000000}, {"120", 120000000}, {"007", 7000000}, {" 5\t", 5000000},
	{"1.5", 1500000}, {"0.000001", 1}, {"0.0000001", 1}, {"0.0000000", 0}, {"2.9999991", 3000000}, {"1.000000000000000000000000", 1000000},
	{"31622399", 31622399000000}, {"31622400", YEAR}, {"31622401", YEAR}, {"99999999999999999999999999999999", YEAR},
	{"99999999999999999999999999999999.5", YEAR}, {"31622399.9999999", YEAR},
	{"", -1}, {" ", -1}, {"-1", -1}, {"+1", -1}, {".5", -1}, {"1.", -1}, {"1.5.", -1}, {"1 2", -1}, {"1s", -1}, {"1e3", -1},
	{"0x10", -1}, {"1,5", -1}, {"1.5s", -1}, {"Fri, 31 Dec 1999 23:59:59 GMT", -1}, {"\n1", -1}, {"1\n", -1}, {"\xd9\xa1", -1},
};

static void
test_retry_after(void)
{
	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
	{
		/* Without a terminator, so that a read beyond the end is seen. */
		size_t		length = strlen(pauses[i].value);
		char	   *copy = malloc(length > 0 ? length : 1);

		memcpy(copy, pauses[i].value, length);
		if (!ok(ar_retry_after_parse(copy, length) == pauses[i].expected, "pause %d", (int) i))
			diag("of \"%s\"", pauses[i].value);
		free(copy);
	}
}

#define NONE ""

static const struct
{
	const char *value;
	const char *expected;		/* NULL: unreadable; NONE: there is none */
}			links[] = {
	{"", NONE}, {" ,\t, ", NONE},
	{"<https://a/x?p=2>; rel=\"next\"", "https://a/x?p=2"},
	{"<https://a/x?p=1>; rel=\"prev\", <https://a/x?p=3>; rel=\"next\", <https://a/x?p=9>; rel=\"last\"", "https://a/x?p=3"},
	{"</x?p=2>; rel=next", "/x?p=2"},
	{"</x?p=2>;REL=Next", "/x?p=2"},
	{"</x>;rel=\"prev NEXT\"", "/x"},
	{"</x>;rel=\"next\tprev\"", "/x"},
	{"</x> ; title = \"a, b; rel=next\" ; rel = \"next\"", "/x"},
	{"</x>; title=\"a\\\"; rel=\\\"next\"; rel=prev", NONE},
	{"</x>; title=\"\\\\\"; rel=next", "/x"},
	{"</x>; rel=\"ne\\xt\"", "/x"},
	{"</x>; rel=nextpage", NONE}, {"</x>; rel=\"next-page\"", NONE}, {"</x>; rel=\"nex\"", NONE}, {"</x>; rel=\"\"", NONE},
	{"</x>; rel=\"http://example.net/next\"", NONE}, {"</x>; rel=http://example.net/rel/next", NONE},
	{"</x>; relation=next", NONE}, {"</x>; rel*=next", NONE}, {"</x>", NONE}, {"</x>; next", NONE},
	{"</x>; rel", NONE}, {"</x>; rel; rel=next", NONE},
	{"</x>; rel=prev; rel=next", NONE},
	{"</x>; rel=next; rel=prev", "/x"},
	{"</x,y;z?a=\"b\">; rel=next", "/x,y;z?a=\"b\""},
	{"</x>; rel=next,", "/x"}, {",, </x>; rel=next", "/x"}, {"</x>;; rel=next;", "/x"},
	{"</x>; rel=next, </x>; rel=next", "/x"},
	{"</y>;rel=prev,</x>;rel=next", "/x"},
	{"<>; rel=prev", NONE},
	{"</x>; rel=next, </y>; rel=next", NULL}, {"</x>; rel=next, </xy>; rel=next", NULL}, {"</xy>; rel=next, </x>; rel=next", NULL},
	{"</x>; rel=next; anchor=\"/y\"", NULL}, {"</x>; anchor=\"\"; rel=next", NULL},
	{"</x>; rel=prev; anchor=\"/y\"", NONE},
	{"<>; rel=next", NULL},
	{"</x", NULL}, {"/x; rel=next", NULL}, {"</x>; rel=\"next", NULL}, {"</x>; rel=\"next\\", NULL}, {"</x>; rel=", NULL},
	{"</x> rel=next", NULL}, {"</x>; rel=next </y>; rel=prev", NULL}, {"</x>; =next", NULL}, {"</x>; rel=\"next\"x", NULL},
	{"</x y>; rel=next", NULL}, {"</x<y>; rel=next", NULL}, {"</x\r\n>; rel=next", NULL}, {"</x>; rel=next\r\n", NULL},
	{"</x>; title=\"a\r\"; rel=next", NULL}, {"</x>; rel=next, garbage", NULL}, {"garbage", NULL}, {"</x>; rel=\x01", NULL},
};

static void
test_link(void)
{
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
	{
		size_t		length = strlen(links[i].value);
		char	   *copy = malloc(length > 0 ? length : 1);
		ArLinkTarget target = {NULL, 0};
		ArLinkResult result;
		char		found[64] = "";

		memcpy(copy, links[i].value, length);
		result = ar_link_header_next(copy, length, &target);
		if (!ok(result == (links[i].expected == NULL ? AR_LINK_UNREADABLE : *links[i].expected ? AR_LINK_NEXT : AR_LINK_NONE),
				"link header %d", (int) i))
			diag("which is: %s", links[i].value);
		snprintf(found, sizeof(found), "%.*s", (int) target.length, target.start ? target.start : "");
		is_str(found, links[i].expected ? links[i].expected : "", "with its target");
		free(copy);
	}
}

static void
test_long_link(void)
{
	static char header[AR_LINK_HEADER_MAX_BYTES + 2];
	static const char end[] = ">; rel=next";
	ArLinkTarget target = {NULL, 0};

	memset(header, 'x', sizeof(header));
	header[0] = '<';
	memcpy(header + AR_LINK_HEADER_MAX_BYTES - strlen(end), end, strlen(end));
	is_int(ar_link_header_next(header, AR_LINK_HEADER_MAX_BYTES, &target), AR_LINK_NEXT, "a header as long as can be is read");
	is_int(target.length, AR_LINK_HEADER_MAX_BYTES - strlen(end) - 1, "to its end");
	header[AR_LINK_HEADER_MAX_BYTES] = ' ';
	is_int(ar_link_header_next(header, AR_LINK_HEADER_MAX_BYTES + 1, &target), AR_LINK_UNREADABLE, "a longer one is not");
}

int
main(void)
{
	test_retry_after();
	test_link();
	test_long_link();
	return done_testing();
}
