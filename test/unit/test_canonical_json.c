/*
 * test_canonical_json.c
 *		The canonical text of JSON values and intents.
 */
#include "tap.h"

#include <locale.h>
#include <stdlib.h>

#include "canonical_json_vectors.h"
#include "core/canonical_json.h"

static const struct
{
	const char *input;
	ArJsonErrorCode code;
	size_t		offset;
}			refused[] = {
	{"", AR_JSON_UNEXPECTED_END, 0},
	{" \n", AR_JSON_UNEXPECTED_END, 2},
	{"[", AR_JSON_UNEXPECTED_END, 1},
	{"[1", AR_JSON_UNEXPECTED_END, 2},
	{"[1,", AR_JSON_UNEXPECTED_END, 3},
	{"[1,]", AR_JSON_SYNTAX, 3},
	{"[,1]", AR_JSON_SYNTAX, 1},
	{"[1 2]", AR_JSON_SYNTAX, 3},
	{"[1}", AR_JSON_SYNTAX, 2},
	{"]", AR_JSON_SYNTAX, 0},
	{"{\"a\"", AR_JSON_UNEXPECTED_END, 4},
	{"{\"a\":1", AR_JSON_UNEXPECTED_END, 6},
	{"{\"a\":1,}", AR_JSON_SYNTAX, 7},
	{"{\"a\" 1}", AR_JSON_SYNTAX, 5},
	{"{\"a\":}", AR_JSON_SYNTAX, 5},
	{"{a:1}", AR_JSON_SYNTAX, 1},
	{"{1:1}", AR_JSON_SYNTAX, 1},
	{"{\"a\":1]", AR_JSON_SYNTAX, 6},
	{"{}{}", AR_JSON_SYNTAX, 2},
	{"1 2", AR_JSON_SYNTAX, 2},
	{"tru", AR_JSON_SYNTAX, 0},
	{"True", AR_JSON_SYNTAX, 0},
	{"nullx", AR_JSON_SYNTAX, 4},
	{"'a'", AR_JSON_SYNTAX, 0},
	{"// a", AR_JSON_SYNTAX, 0},
	{"\357\273\2771", AR_JSON_SYNTAX, 0},
	{"\f1", AR_JSON_SYNTAX, 0},
	{"01", AR_JSON_SYNTAX, 1},
	{"-01", AR_JSON_SYNTAX, 2},
	{"-", AR_JSON_UNEXPECTED_END, 1},
	{"-a", AR_JSON_SYNTAX, 1},
	{"+1", AR_JSON_SYNTAX, 0},
	{".5", AR_JSON_SYNTAX, 0},
	{"1.", AR_JSON_UNEXPECTED_END, 2},
	{"1.e5", AR_JSON_SYNTAX, 2},
	{"1e", AR_JSON_UNEXPECTED_END, 2},
	{"1e+", AR_JSON_UNEXPECTED_END, 3},
	{"1ee5", AR_JSON_SYNTAX, 2},
	{"0x10", AR_JSON_SYNTAX, 1},
	{"1,5", AR_JSON_SYNTAX, 1},
	{"NaN", AR_JSON_NOT_FINITE, 0},
	{"[Infinity]", AR_JSON_NOT_FINITE, 1},
	{"[-Infinity]", AR_JSON_NOT_FINITE, 1},
	{"1e309", AR_JSON_NOT_FINITE, 0},
	{"-1e400", AR_JSON_NOT_FINITE, 0},
	{"1.7976931348623159e308", AR_JSON_NOT_FINITE, 0},
	{"[1e99999999999999999999]", AR_JSON_NOT_FINITE, 1},
	{"-0.0", AR_JSON_NEGATIVE_ZERO, 0},
	{"[1,-0e0]", AR_JSON_NEGATIVE_ZERO, 3},
	{"-1e-400", AR_JSON_NEGATIVE_ZERO, 0},
	{"\"", AR_JSON_UNEXPECTED_END, 1},
	{"\"abc", AR_JSON_UNEXPECTED_END, 4},
	{"\"a\nb\"", AR_JSON_CONTROL_CHARACTER, 2},
	{"\"\037\"", AR_JSON_CONTROL_CHARACTER, 1},
	{"\"\\", AR_JSON_UNEXPECTED_END, 2},
	{"\"\\x41\"", AR_JSON_INVALID_ESCAPE, 2},
	{"\"\\u12\"", AR_JSON_INVALID_ESCAPE, 5},
	{"\"\\u12", AR_JSON_UNEXPECTED_END, 5},
	{"\"\\u+123\"", AR_JSON_INVALID_ESCAPE, 3},
	{"\"a\\u0000\"", AR_JSON_NUL_CHARACTER, 2},
	{"\"\\ud800\"", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\udc00\"", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\ud800\\u0041\"", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\ud800\\ud800\\udc00\"", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\udc00\\ud800\"", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\ud800", AR_JSON_LONE_SURROGATE, 1},
	{"\"\\ud800\\u", AR_JSON_UNEXPECTED_END, 9},
	{"\"\200\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\377\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\300\200\"", AR_JSON_INVALID_UTF8, 1},
	{"\"a\303\"", AR_JSON_INVALID_UTF8, 2},
	{"\"\303", AR_JSON_INVALID_UTF8, 1},
	{"\"\340\237\277\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\355\240\200\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\360\217\277\277\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\364\220\200\200\"", AR_JSON_INVALID_UTF8, 1},
	{"\"\360\237\230\"", AR_JSON_INVALID_UTF8, 1},
	{"{\"a\":1,\"a\":1}", AR_JSON_DUPLICATE_KEY, 7},
	{"{\"b\":1,\"a\":2,\"b\":3}", AR_JSON_DUPLICATE_KEY, 13},
	{"{\"a\":1,\"\\u0061\":2}", AR_JSON_DUPLICATE_KEY, 7},
	{"[{\"\":1, \"\":2}]", AR_JSON_DUPLICATE_KEY, 8},
};

/*
 * Canonicalises a copy that ends where its text ends, so that the address
 * sanitizer sees a read beyond it.
 */
static bool
canonicalise(const char *text, size_t length, ArBuffer *out, ArJsonError *error)
{
	char	   *copy = malloc(length > 0 ? length : 1);
	bool		good;

	memcpy(copy, text, length);
	good = ar_canonical_json(copy, length, out, error);
	free(copy);
	return good;
}

static void
test_vectors(void)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
	{
		ArBuffer	out = {0};
		ArBuffer	again = {0};
		ArJsonError error;

		if (!canonicalise(vectors[i].input, strlen(vectors[i].input), &out, &error))
			ok(false, "vector %zu: %s at %zu", i, ar_json_error_message(error.code),
			   error.offset);
		else
			is_str(out.data, vectors[i].expected, vectors[i].expected);
		if (out.data != NULL &&
			(!canonicalise(out.data, out.length, &again, &error) ||
			 strcmp(again.data, out.data) != 0))
			ok(false, "vector %zu: canonical text of canonical text differs", i);
		ar_buffer_destroy(&out);
		ar_buffer_destroy(&again);
	}
}

static void
test_refused(void)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		ArBuffer	out = {0};
		ArJsonError error;
		bool		good;

		ar_buffer_append(&out, "before", 6);
		good = canonicalise(refused[i].input, strlen(refused[i].input), &out, &error);
		ok(!good && error.code == refused[i].code && error.offset == refused[i].offset,
		   "refused %zu: %s at %zu", i, ar_json_error_message(refused[i].code),
		   refused[i].offset);
		if (good || error.code != refused[i].code || error.offset != refused[i].offset)
			diag("got: %s at %zu", ar_json_error_message(error.code), error.offset);
		if (out.length != 6 || strcmp(out.data, "before") != 0)
			ok(false, "refused %zu left something in the buffer", i);
		ar_buffer_destroy(&out);
	}
}

/* Every prefix of a good text, and every byte of it changed: no fault, no leak. */
static void
test_damaged(void)
{
	static const char text[] =
		"{\"k\\u0061\":[1,-2.5e3,\"\360\237\230\200\\ud83d\\ude00\",{}],\"b\":[true,null]}";
	size_t		length = sizeof(text) - 1;
	size_t		accepted = 0;
	bool		in_range = true;

	for (size_t i = 0; i < length; i++)
	{
		ArBuffer	out = {0};
		ArJsonError error;

		if (canonicalise(text, i, &out, &error))
			accepted++;
		else if (error.offset > i)
			in_range = false;
		ar_buffer_destroy(&out);
	}
	is_int(accepted, 0, "no prefix of a document is a document");

	for (size_t i = 0; i < length * 256; i++)
	{
		char		changed[sizeof(text)];
		ArBuffer	out = {0};
		ArJsonError error;

		memcpy(changed, text, sizeof(text));
		changed[i / 256] = (char) (i % 256);
		if (!canonicalise(changed, length, &out, &error) && error.offset > length)
			in_range = false;
		ar_buffer_destroy(&out);
	}
	ok(in_range, "offsets of faults lie in the text");
}

/* `depth` arrays or objects inside each other. */
static bool
canonicalise_nest(size_t depth, bool objects, ArJsonError *error)
{
	ArBuffer	text = {0};
	ArBuffer	out = {0};
	bool		good = true;

	for (size_t i = 0; i < depth; i++)
		good = good && ar_buffer_append(&text, objects ? "{\"b\":" : "[", objects ? 5 : 1);
	good = good && ar_buffer_append(&text, "0", 1);
	for (size_t i = 0; i < depth; i++)
		good = good && ar_buffer_append(&text, objects ? ",\"a\":1}" : "]", objects ? 7 : 1);
	good = good && canonicalise(text.data, text.length, &out, error);
	if (good && out.length != text.length)
		good = false;
	ar_buffer_destroy(&text);
	ar_buffer_destroy(&out);
	return good;
}

static void
test_limits(void)
{
	ArBuffer	text = {0};
	ArBuffer	out = {0};
	ArJsonError error;
	size_t		i;

	ok(canonicalise_nest(AR_JSON_MAX_DEPTH, false, &error), "deepest arrays");
	ok(canonicalise_nest(AR_JSON_MAX_DEPTH, true, &error), "deepest objects");
	ok(!canonicalise_nest(AR_JSON_MAX_DEPTH + 1, false, &error) &&
	   error.code == AR_JSON_TOO_DEEP && error.offset == AR_JSON_MAX_DEPTH,
	   "arrays one level too deep");
	ok(!canonicalise_nest(AR_JSON_MAX_DEPTH + 1, true, &error) &&
	   error.code == AR_JSON_TOO_DEEP, "objects one level too deep");
	ok(!canonicalise_nest(200000, false, &error) && error.code == AR_JSON_TOO_DEEP,
	   "arrays far too deep");

	/* The size is checked before anything is read. */
	ok(!ar_canonical_json("0", AR_JSON_MAX_BYTES + 1, &out, &error) &&
	   error.code == AR_JSON_TOO_LARGE && error.offset == AR_JSON_MAX_BYTES,
	   "one byte too many");

	ar_buffer_append(&text, "[", 1);
	for (i = 0; i < AR_JSON_MAX_VALUES; i++)
		ar_buffer_append(&text, "0,", 2);
	text.data[text.length - 1] = ']';
	ok(!ar_canonical_json(text.data, text.length, &out, &error) &&
	   error.code == AR_JSON_TOO_LARGE, "one value too many");
	ok(ar_canonical_json(text.data + 2, 1, &out, &error) == false, "a lone comma");
	text.data[2] = ' ';
	text.data[1] = ' ';
	ok(ar_canonical_json(text.data, text.length, &out, &error), "as many values as allowed");
	ar_buffer_destroy(&text);
	ar_buffer_destroy(&out);
}

/* An integer keeps every digit, whatever its length. */
static void
test_long_numbers(void)
{
	ArBuffer	text = {0};
	ArBuffer	out = {0};
	ArJsonError error;

	for (int i = 0; i < 10000; i++)
		ar_buffer_append(&text, "9876543210", 10);
	ok(canonicalise(text.data, text.length, &out, &error) &&
	   strcmp(out.data, text.data) == 0, "an integer of 100000 digits");
	ar_buffer_truncate(&out, 0);
	memcpy(text.data, "0.1", 3);
	ok(canonicalise(text.data, text.length, &out, &error), "a fraction of 100000 digits");
	is_str(out.data, "0.16543210987654322", "a fraction of 100000 digits is rounded once");
	ar_buffer_destroy(&text);
	ar_buffer_destroy(&out);
}

/* Many members, worst orders: each object comes out sorted. */
static void
test_many_members(void)
{
	ArBuffer	text = {0};
	ArBuffer	out = {0};
	ArJsonError error;
	char		member[32];
	bool		sorted = true;

	for (int i = 0; i < 5000; i++)
	{
		int			n = snprintf(member, sizeof(member), "%c\"%05d\":0",
								 i == 0 ? '{' : ',', (i * 3677) % 5000);

		ar_buffer_append(&text, member, (size_t) n);
	}
	ar_buffer_append(&text, "}", 1);
	ok(canonicalise(text.data, text.length, &out, &error), "an object of 5000 members");
	for (int i = 0; i < 5000 && out.data != NULL; i++)
	{
		snprintf(member, sizeof(member), "\"%05d\":0", i);
		if (memcmp(out.data + 1 + i * 10, member, 9) != 0)
			sorted = false;
	}
	ok(sorted, "its members are sorted");
	ar_buffer_destroy(&text);
	ar_buffer_destroy(&out);
}

/* The text must not follow the decimal point of the process. */
static void
test_locale(void)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
	"pt_BR.UTF-8", "de_DE"};
	const char *name = NULL;
	ArBuffer	out = {0};
	ArJsonError error;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && name == NULL; i++)
		name = setlocale(LC_NUMERIC, names[i]);
	if (name == NULL)
	{
		ok(true, "decimal comma # SKIP no such locale installed");
		return;
	}
	canonicalise("[1.5,2.25e-7]", 13, &out, &error);
	is_str(out.data, "[1.5,2.25e-07]", "decimal comma");
	setlocale(LC_NUMERIC, "C");
	ar_buffer_destroy(&out);
}

static void
check_intent(const char *method, const char *path, const char *payload,
			 const char *expected)
{
	ArBuffer	out = {0};
	ArJsonError error;

	if (!ar_canonical_intent(method, path, payload, strlen(payload), &out, &error))
		ok(false, "intent: %s", ar_json_error_message(error.code));
	else
		is_str(out.data, expected, expected);
	ar_buffer_destroy(&out);
}

static void
check_intent_refused(const char *method, const char *path, const char *payload,
					 ArJsonErrorCode code, size_t offset)
{
	ArBuffer	out = {0};
	ArJsonError error;
	bool		good = ar_canonical_intent(method, path, payload, strlen(payload),
										   &out, &error);

	ok(!good && error.code == code && error.offset == offset && out.length == 0,
	   "intent refused: %s", ar_json_error_message(code));
	ar_buffer_destroy(&out);
}

static void
test_intents(void)
{
	check_intent("post", "/api/articles",
				 "{\"title\": \"Caf\303\251 \360\237\230\200\", \"tags\": [\"b\", \"a\"], \"price\": 1.50}",
				 "{\"method\":\"POST\",\"path\":\"/api/articles\",\"payload\":"
				 "{\"price\":1.5,\"tags\":[\"b\",\"a\"],\"title\":\"Caf\\u00e9 \\ud83d\\ude00\"}}");
	check_intent("PaTcH", "/a\"b/\303\251\n", "[]",
				 "{\"method\":\"PATCH\",\"path\":\"/a\\\"b/\\u00e9\\n\",\"payload\":[]}");
	check_intent("", "", "null", "{\"method\":\"\",\"path\":\"\",\"payload\":null}");
	check_intent("DELETE", "/x", "{\"method\":1,\"z\":2,\"a\":3}",
				 "{\"method\":\"DELETE\",\"path\":\"/x\",\"payload\":{\"a\":3,\"method\":1,\"z\":2}}");
	check_intent_refused("P\303\226ST", "/", "{}", AR_JSON_INVALID_METHOD, 1);
	check_intent_refused("POST", "/a\377", "{}", AR_JSON_INVALID_PATH, 2);
	check_intent_refused("POST", "/", "{\"a\":-0.0}", AR_JSON_NEGATIVE_ZERO, 5);
	check_intent_refused("POST", "/", "", AR_JSON_UNEXPECTED_END, 0);
}

int
main(void)
{
	test_vectors();
	test_refused();
	test_damaged();
	test_limits();
	test_long_numbers();
	test_many_members();
	test_locale();
	test_intents();
	return done_testing();
}
