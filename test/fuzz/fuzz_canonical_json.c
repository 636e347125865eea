/*
 * fuzz_canonical_json.c
 *		The canonical text of whatever claims to be JSON.
 *
 * The input is the text.
 */
#include "core/canonical_json.h"

#include "fuzz.h"

static const char before[] = "what was there";

/* On failure nothing is left, and the fault is somewhere in the text. */
static void
check_failure(const ArBuffer *out, const ArJsonError *error, size_t size)
{
	must(error->code != AR_JSON_OK && *ar_json_error_message(error->code) != '\0');
	must(error->offset <= size);
	must(out->length == strlen(before) && memcmp(out->data, before, out->length) == 0);
}

/* What is canonical is ASCII, and is canonical again. */
static void
check_canonical(const char *text, size_t length)
{
	ArBuffer	again;
	ArJsonError error;

	for (size_t i = 0; i < length; i++)
		must(text[i] >= 0x20 && text[i] <= 0x7e);
	ar_buffer_init(&again);
	must(ar_canonical_json(text, length, &again, &error));
	must(again.length == length && memcmp(again.data, text, length) == 0);
	ar_buffer_destroy(&again);
}

/* An intent is the canonical text of its three parts, and no payload can look like another part. */
static void
check_intent(const char *text, size_t size, const char *canonical, size_t length)
{
	static const char start[] = "{\"method\":\"POST\",\"path\":\"/x/\\u00fc\",\"payload\":";
	ArBuffer	intent;
	ArJsonError error;

	ar_buffer_init(&intent);
	if (ar_canonical_intent("post", "/x/\xc3\xbc", text, size, &intent, &error))
	{
		must(intent.length == strlen(start) + length + 1);
		must(memcmp(intent.data, start, strlen(start)) == 0);
		must(memcmp(intent.data + strlen(start), canonical, length) == 0 && intent.data[intent.length - 1] == '}');
	}
	else
		/* One level and a few bytes more than the payload alone. */
		must(error.code == AR_JSON_TOO_DEEP || error.code == AR_JSON_TOO_LARGE);
	ar_buffer_destroy(&intent);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *text = malloc(size > 0 ? size : 1);
	ArBuffer	out;
	ArJsonError error = {AR_JSON_OK, 0};

	if (size > 0)
		memcpy(text, data, size);
	ar_buffer_init(&out);
	must(ar_buffer_append(&out, before, strlen(before)));
	if (ar_canonical_json(text, size, &out, &error))
	{
		must(memcmp(out.data, before, strlen(before)) == 0);
		check_canonical(out.data + strlen(before), out.length - strlen(before));
		check_intent(text, size, out.data + strlen(before), out.length - strlen(before));
	}
	else
		check_failure(&out, &error, size);
	ar_buffer_destroy(&out);
	free(text);
	return 0;
}
