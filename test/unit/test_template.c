/*
 * test_template.c
 *		Filling values into the parts of a request, and writing identifiers.
 */
#include "core/template.h"

#include <stdlib.h>

#include "core/identifier.h"
#include "tap.h"

/* Names and values, one after the other, with a NULL at the end. */
static bool
look_up(void *state, const char *name, size_t name_length, ArTemplateValue *value)
{
	for (const char *const *pair = state; *pair != NULL; pair += 2)
	{
		if (strlen(pair[0]) == name_length && memcmp(pair[0], name, name_length) == 0)
		{
			value->bytes = pair[1];
			value->length = strlen(pair[1]);
			return true;
		}
	}
	return false;
}

static const char *const values[] = {
	"a", "a b/c?d&e=\xc3\xbc", "n", "12.50", "empty", "", "dots", "..", "dot", ".", "crlf", "x\r\nY: z", "del", "\x7f",
	"quote", "\"\\\n\x01\x1f/", "credential", "of the payload", "cred", "{credential}", "open", "{cre", "x.y", "dotted",
	"braces", "{a}", "_9", "z", "hex", "%2e%2E", NULL
};

static const struct
{
	ArTemplatePart part;
	const char *text;
	const char *expected;		/* NULL: refused */
	ArTemplateProblem problem;
	const char *name;
}			cases[] = {
	{AR_PART_PATH, "", "", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/x/{a}?q={a}", "/x/a%20b%2Fc%3Fd%26e%3D%C3%BC?q=a%20b%2Fc%3Fd%26e%3D%C3%BC", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/{n}/{x.y}/{_9}", "/12.50/dotted/z", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/{hex}", "/%252e%252E", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/{credential}", "/of%20the%20payload", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/{empty}", NULL, AR_TEMPLATE_EMPTY_VALUE, "empty"},
	{AR_PART_PATH, "/{crlf}", NULL, AR_TEMPLATE_CONTROL_CHARACTER, "crlf"},
	{AR_PART_PATH, "/{del}", NULL, AR_TEMPLATE_CONTROL_CHARACTER, "del"},
	{AR_PART_PATH, "/{missing}", NULL, AR_TEMPLATE_NO_VALUE, "missing"},
	{AR_PART_PATH, "/{x.y.z}", NULL, AR_TEMPLATE_NO_VALUE, "x.y.z"},
	{AR_PART_PATH, "/{a?}", NULL, AR_TEMPLATE_OPTIONAL_NAME, "a"},
	{AR_PART_PATH, "/{dots}", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/x/{dot}/y", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/x/{dot}{dot}?y", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/x/{dot}%2e", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/%2E%2e/", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/%2e", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "//x", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/x//", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "../x", NULL, AR_TEMPLATE_FOLDED_SEGMENT, NULL},
	{AR_PART_PATH, "/x/{dots}{dot}/%2e%2e%2e", "/x/.../%2e%2e%2e", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/x?y=/../{dots}", "/x?y=/../..", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/x/", "/x/", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/", "/", AR_TEMPLATE_OK, NULL},
	{AR_PART_PATH, "/%2", "/%2", AR_TEMPLATE_OK, NULL},
	{AR_PART_HEADER, "Bearer {credential}; {a}", "Bearer {credential}; a b/c?d&e=\xc3\xbc", AR_TEMPLATE_OK, NULL},
	{AR_PART_HEADER, "\"{_9}\"", "\"z\"", AR_TEMPLATE_OK, NULL},
	{AR_PART_HEADER, "{braces}", "{a}", AR_TEMPLATE_OK, NULL},
	{AR_PART_HEADER, "{cred}", NULL, AR_TEMPLATE_CREDENTIAL, NULL},
	{AR_PART_HEADER, "{open}dential}", NULL, AR_TEMPLATE_CREDENTIAL, NULL},
	{AR_PART_HEADER, "{credential}{cred}", NULL, AR_TEMPLATE_CREDENTIAL, NULL},
	{AR_PART_HEADER, "{empty}", NULL, AR_TEMPLATE_EMPTY_VALUE, "empty"},
	{AR_PART_HEADER, "{crlf}", NULL, AR_TEMPLATE_CONTROL_CHARACTER, "crlf"},
	{AR_PART_HEADER, "{a?}", NULL, AR_TEMPLATE_OPTIONAL_NAME, "a"},
	{AR_PART_TEXT, "{a} {} { a} {a-b} {a", "a b/c?d&e=\xc3\xbc {} { a} {a-b} {a", AR_TEMPLATE_OK, NULL},
	{AR_PART_TEXT, "{{n}} {a.} {.a} {a..b} {n?} {?}", "{12.50} {a.} {.a} {a..b} {n?} {?}", AR_TEMPLATE_OK, NULL},
	{AR_PART_TEXT, "{empty}{cred}", "{credential}", AR_TEMPLATE_OK, NULL},
	{AR_PART_TEXT, "{quote}", NULL, AR_TEMPLATE_CONTROL_CHARACTER, "quote"},
	{AR_PART_JSON, "{\"t\": \"{quote}\"}", "{\"t\": \"\\\"\\\\\\n\\u0001\\u001f/\"}", AR_TEMPLATE_OK, NULL},
	{AR_PART_JSON, "{crlf}{del}", "x\\r\\nY: z\x7f", AR_TEMPLATE_OK, NULL},
	{AR_PART_FORM, "a={a}&b={crlf}&c={empty}", "a=a%20b%2Fc%3Fd%26e%3D%C3%BC&b=x%0D%0AY%3A%20z&c=", AR_TEMPLATE_OK, NULL},
};

static void
test_cases(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		ArBuffer	out;
		ArTemplateError error;
		bool		done;
		char		name[32] = "";

		/* What was there before must not be taken for the error. */
		memset(&error, 0x5a, sizeof(error));
		ar_buffer_init(&out);
		ok(ar_buffer_append(&out, "/..", 3), "something is there before");
		done = ar_template_render(cases[i].text, strlen(cases[i].text), cases[i].part, look_up, (void *) values, &out, &error);
		ok(done == (cases[i].expected != NULL) && error.problem == cases[i].problem, "\"%s\" is %s", cases[i].text,
		   cases[i].expected ? "filled in" : "refused");
		if (done)
			is_str(out.data + 3, cases[i].expected, "as expected");
		else if (error.problem != AR_TEMPLATE_FOLDED_SEGMENT)
			is_int(out.length, 3, "and nothing is left of it");
		if (error.name != NULL)
			snprintf(name, sizeof(name), "%.*s", (int) error.name_length, error.name);
		if (!done)
			is_str(name, cases[i].name ? cases[i].name : "", "with the name at fault");
		ok((*ar_template_problem_text(error.problem) == '\0') == done, "and a reason, if any");
		ar_buffer_destroy(&out);
	}
}

/* A value of that many bytes. */
static bool
look_up_long(void *state, const char *name, size_t name_length, ArTemplateValue *value)
{
	static char bytes[1024 * 1024 + 2];

	if (bytes[0] == '\0')
		memset(bytes, 'x', sizeof(bytes) - 1);
	value->bytes = name_length == 1 && *name == 'q' ? "\"" : bytes;
	value->length = name_length == 1 && *name == 'q' ? 1 : *(size_t *) state;
	return true;
}

static void
test_limits(void)
{
	static const ArTemplatePart parts[] = {AR_PART_PATH, AR_PART_HEADER, AR_PART_TEXT, AR_PART_JSON, AR_PART_FORM};
	static const char *const templates[] = {"/{a}", "{q}{a}", "{a}/"};

	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
		for (size_t t = 0; t < sizeof(templates) / sizeof(templates[0]); t++)
			for (int over = 0; over <= 1; over++)
			{
				bool		is_encoded = parts[p] == AR_PART_PATH || parts[p] == AR_PART_FORM;
				size_t		others = t != 1 ? 1 : is_encoded ? 3 : parts[p] == AR_PART_JSON ? 2 : 1;
				size_t		length = ar_template_limit(parts[p]) - others + (size_t) over;
				ArBuffer	out;
				ArTemplateError error;
				bool		done;

				ar_buffer_init(&out);
				done = ar_template_render(templates[t], strlen(templates[t]), parts[p], look_up_long, &length, &out, &error);
				ok(done == !over && error.problem == (over ? AR_TEMPLATE_TOO_LONG : AR_TEMPLATE_OK),
				   "part %d, \"%s\": %s", (int) parts[p], templates[t], over ? "one too many" : "the most");
				is_int(out.length, over ? 0 : ar_template_limit(parts[p]), "is what is there");
				ar_buffer_destroy(&out);
			}
}

/* A value of which every byte becomes three or six; nothing has the name "none". */
static bool
look_up_spaces(void *state, const char *name, size_t name_length, ArTemplateValue *value)
{
	static char bytes[7000];

	if (name_length == 4 && memcmp(name, "none", 4) == 0)
		return false;
	memset(bytes, *(int *) state, sizeof(bytes));
	value->bytes = bytes;
	value->length = sizeof(bytes);
	return true;
}

static void
test_growth(void)
{
	static const int of[] = {' ', '\x01'};

	for (int i = 0; i < 2; i++)
	{
		int			byte = of[i];
		ArBuffer	out;
		ArTemplateError error;

		ar_buffer_init(&out);
		ok(ar_template_render("{a}", 3, i == 0 ? AR_PART_FORM : AR_PART_JSON, look_up_spaces, &byte, &out, &error), "what grows fits");
		is_int(out.length, i == 0 ? 21000 : 42000, "as long as it gets");
		ar_buffer_destroy(&out);
	}
}

static void
test_names(void)
{
	static const char *const with[] = {"{key}", "a{key?}", "{{key}", "{key}{key}", "{x}{key}", "{key{key}"};
	static const char *const without[] = {"", "key", "{keys}", "{key }", "{key.x}", "{x.key}", "{key", "{key??}", "{KEY}"};
	ArTemplatePart part;

	for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
		ok(ar_template_names(with[i], strlen(with[i]), "key"), "\"%s\" names it", with[i]);
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		ok(!ar_template_names(without[i], strlen(without[i]), "key"), "\"%s\" does not", without[i]);
	ok(!ar_template_names("{key}", 4, "key"), "nor does one that ends before its brace");
	ok(ar_template_part_parse("form", &part) && part == AR_PART_FORM, "a part by its name");
	ok(ar_template_part_parse("path", &part) && part == AR_PART_PATH, "and another");
	ok(!ar_template_part_parse("body", &part), "and none");
}

static void
test_identifiers(void)
{
	static const uint8_t zero[16] = {0};
	static const uint8_t ones[16] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
	static const uint8_t some[16] = {0x01, 0x96, 0xff, 0x00, 0x12, 0x34, 0x70, 0x00, 0x80, 0x00, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab};
	static const struct
	{
		const char *name;
		const char *of_zero;
		const char *of_ones;
		const char *of_some;
	}			formats[] = {
		{"uuid", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0196ff00-1234-7000-8000-0123456789ab"},
		{"hex", "00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff", "0196ff001234700080000123456789ab"},
		{"base32hex", "00000000000000000000000000", "vvvvvvvvvvvvvvvvvvvvvvvvvs", "06bfu00i6ho0100004hkaps9lc"},
		{"base62", "0000000000000000000000", "7n42DGM5Tflk9n8mt7Fhc7", "02zzrIERMghZh9YeHZDFNr"},
	};
	ArIdentifierFormat format;
	uint8_t		seed[AR_IDENTIFIER_SEED_BYTES];
	uint8_t		bits[AR_IDENTIFIER_BYTES];
	char		text[AR_IDENTIFIER_SIZE];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
	{
		ok(ar_identifier_format_parse(formats[i].name, &format), "there is %s", formats[i].name);
		ar_identifier_write(zero, format, text);
		is_str(text, formats[i].of_zero, "zero");
		ar_identifier_write(ones, format, text);
		is_str(text, formats[i].of_ones, "all ones");
		ar_identifier_write(some, format, text);
		is_str(text, formats[i].of_some, "something between");
	}
	ok(!ar_identifier_format_parse("base64", &format) && !ar_identifier_format_parse("", &format), "there is no other");
	ar_identifier_seed(some, 0x01020304, seed);
	ok(memcmp(seed, some, 16) == 0 && memcmp(seed + 16, "\1\2\3\4", 4) == 0, "a seed is the id and the generation");
	memcpy(bits, ones, 16);
	ar_identifier_shape_uuid(bits);
	ar_identifier_write(bits, AR_IDENTIFIER_UUID, text);
	is_str(text, "ffffffff-ffff-4fff-bfff-ffffffffffff", "the bits of version 4");
}

/* Two values that differ in one bit differ in every format, and sort alike. */
static void
test_order(void)
{
	int			wrong = 0;
	uint8_t		one[16];
	uint8_t		other[16];

	srandom(1);
	for (int round = 0; round < 20000; round++)
	{
		int			bit = (int) (random() % 128);

		for (int i = 0; i < 16; i++)
			one[i] = (uint8_t) random();
		memcpy(other, one, 16);
		other[bit / 8] ^= (uint8_t) (1 << bit % 8);
		for (int f = AR_IDENTIFIER_UUID; f <= AR_IDENTIFIER_BASE62; f++)
		{
			char		one_text[AR_IDENTIFIER_SIZE];
			char		other_text[AR_IDENTIFIER_SIZE];

			ar_identifier_write(one, (ArIdentifierFormat) f, one_text);
			ar_identifier_write(other, (ArIdentifierFormat) f, other_text);
			if ((strcmp(one_text, other_text) < 0) != (memcmp(one, other, 16) < 0) || strcmp(one_text, other_text) == 0)
				wrong++;
		}
	}
	is_int(wrong, 0, "identifiers differ where the bits do, and sort as they do");
}

int
main(void)
{
	test_cases();
	test_limits();
	test_growth();
	test_names();
	test_identifiers();
	test_order();
	return done_testing();
}
