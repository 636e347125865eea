/*
 * fuzz_headers.c
 *		Link and Retry-After as some server might send them.
 *
 * The input is one value, which is read as either header; one line end at its
 * end does not count, for the sake of the corpus.
 */
#include "core/link_header.h"
#include "core/retry_after.h"

#include <math.h>
#include <strings.h>

#include "fuzz.h"

/* A copy of those bytes in memory of exactly that size. */
static char *
copy_of(const char *bytes, size_t length)
{
	char	   *copy = malloc(length > 0 ? length : 1);

	memcpy(copy, bytes, length);
	return copy;
}

static bool
has_word(const char *bytes, size_t length, const char *word)
{
	size_t		size = strlen(word);

	for (size_t i = 0; i + size <= length; i++)
	{
		if (strncasecmp(bytes + i, word, size) == 0)
			return true;
	}
	return false;
}

/* The target stands in brackets in the header, and alone it is the next page again. */
static void
check_target(const char *value, size_t length, const ArLinkTarget *target)
{
	static const char behind[] = ">; title=\"a\\\"b,\"; REL=\"prev next\"";
	size_t		size = target->length + sizeof(behind);
	char	   *alone = malloc(size);
	ArLinkTarget again;

	must(target->start > value && target->length > 0 && target->start + target->length < value + length);
	must(target->start[-1] == '<' && target->start[target->length] == '>');
	for (size_t i = 0; i < target->length; i++)
		must((unsigned char) target->start[i] > 0x20 && strchr("<>\x7f", target->start[i]) == NULL);
	must(has_word(value, length, "rel"));
	alone[0] = '<';
	memcpy(alone + 1, target->start, target->length);
	memcpy(alone + 1 + target->length, behind, sizeof(behind) - 1);
	if (size <= AR_LINK_HEADER_MAX_BYTES)
	{
		must(ar_link_header_next(alone, size, &again) == AR_LINK_NEXT);
		must(again.length == target->length && memcmp(again.start, target->start, again.length) == 0);
	}
	free(alone);
}

/* A header that is sent twice, joined as RFC 9110 has it, says the same. */
static void
check_twice(const char *value, size_t length, ArLinkResult result, const ArLinkTarget *target)
{
	size_t		size = 2 * length + 2;
	char	   *twice = malloc(size);
	ArLinkTarget again = {NULL, 0};

	memcpy(twice, value, length);
	memcpy(twice + length, ", ", 2);
	memcpy(twice + length + 2, value, length);
	if (size <= AR_LINK_HEADER_MAX_BYTES)
	{
		must(ar_link_header_next(twice, size, &again) == result);
		must(again.length == target->length && (again.length == 0 || memcmp(again.start, target->start, again.length) == 0));
	}
	free(twice);
}

static void
check_link(const char *value, size_t length)
{
	ArLinkTarget target = {NULL, 0};
	ArLinkResult result = ar_link_header_next(value, length, &target);

	if (result == AR_LINK_NEXT)
		check_target(value, length, &target);
	else
		must(target.start == NULL);
	if (result != AR_LINK_UNREADABLE)
		check_twice(value, length, result, &target);
	if (result == AR_LINK_NONE)
	{
		/* A further link makes it the header of a next page, whatever stands before. */
		static const char more[] = ",<x>;rel=next";
		char	   *longer = malloc(length + sizeof(more));

		memcpy(longer, value, length);
		memcpy(longer + length, more, sizeof(more));
		must(length + strlen(more) > AR_LINK_HEADER_MAX_BYTES ||
			 ar_link_header_next(longer, length + strlen(more), &target) == AR_LINK_NEXT);
		free(longer);
	}
}

/* What is taken for a number is the number that the C library reads, rounded up. */
static void
check_pause(const char *value, size_t length)
{
	int64_t		pause = ar_retry_after_parse(value, length);
	char		text[128];
	double		seconds;

	must(pause >= -1 && pause <= AR_RETRY_AFTER_MAX_SECONDS * 1000000);
	if (pause < 0 || length >= sizeof(text))
		return;
	memcpy(text, value, length);
	text[length] = '\0';
	must(strlen(text) == length && strspn(text, "0123456789. \t") == length);
	seconds = strtod(text, NULL);
	if (seconds >= (double) AR_RETRY_AFTER_MAX_SECONDS)
		must(pause == AR_RETRY_AFTER_MAX_SECONDS * 1000000);
	else
		must(fabs(ceil(seconds * 1e6) - (double) pause) <= 1);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char	   *value;

	if (size > 0 && data[size - 1] == '\n')
		size--;
	value = copy_of((const char *) data, size);
	check_link(value, size);
	check_pause(value, size);
	free(value);
	return 0;
}
