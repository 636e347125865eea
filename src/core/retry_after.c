/*
 * retry_after.c
 *		The number of seconds in a Retry-After header.
 */
#include "core/retry_after.h"

#include <stdbool.h>

#define MICROSECONDS 1000000

static bool
is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool
is_blank(char byte)
{
	return byte == ' ' || byte == '\t';
}

/* The digits behind the point, up to the next microsecond; false if there is none. */
static bool
read_fraction(const char **at, const char *end, int64_t *microseconds)
{
	int64_t		unit = MICROSECONDS / 10;
	bool		more = false;

	if (*at == end || !is_digit(**at))
		return false;
	*microseconds = 0;
	for (; *at < end && is_digit(**at); (*at)++)
	{
		*microseconds += unit * (**at - '0');
		more = more || (unit == 0 && **at != '0');
		unit /= 10;
	}
	if (more)
		(*microseconds)++;
	return true;
}

/* See retry_after.h. */
int64_t
ar_retry_after_parse(const char *value, size_t length)
{
	const char *at = value;
	const char *end = value + length;
	int64_t		seconds = 0;
	int64_t		microseconds = 0;

	while (at < end && is_blank(*at))
		at++;
	while (at < end && is_blank(end[-1]))
		end--;
	if (at == end || !is_digit(*at))
		return -1;
	for (; at < end && is_digit(*at); at++)
	{
		if (seconds < AR_RETRY_AFTER_MAX_SECONDS)
			seconds = seconds * 10 + (*at - '0');
	}
	if (at < end)
	{
		if (*at++ != '.' || !read_fraction(&at, end, &microseconds) || at != end)
			return -1;
	}
	if (seconds >= AR_RETRY_AFTER_MAX_SECONDS)
		return AR_RETRY_AFTER_MAX_SECONDS * MICROSECONDS;
	return seconds * MICROSECONDS + microseconds;
}
