/*
 * json_number.c
 *		JSON numbers to doubles and back to their shortest decimal text.
 *
 * The digits come from the C library's exact conversions and are accepted only
 * when they read back as the same double; nothing here rounds by itself.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/json_number.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Seventeen significant digits tell any two doubles apart. */
#define MAX_DIGITS 17

/* An exponent beyond this is the same as this, for any text that fits in memory. */
#define EXPONENT_LIMIT INT64_C(1000000000000000)

/* The value is 0.DIGITS times ten to the power of `point`. */
typedef struct Decimal
{
	char		digits[MAX_DIGITS + 1];
	int			count;
	int			point;
} Decimal;

/*
 * Reads the exponent's digits behind 'e' or 'E', without overflow.  Never
 * throws, needs no transaction.
 */
static int64_t
read_exponent(const char *text, const char *end)
{
	bool		negative = false;
	int64_t		exponent = 0;

	if (text < end && (*text == '+' || *text == '-'))
		negative = *text++ == '-';
	for (; text < end; text++)
		if (exponent < EXPONENT_LIMIT)
			exponent = exponent * 10 + (*text - '0');
	return negative ? -exponent : exponent;
}

/* See json_number.h. */
bool
ar_json_number_value(const char *text, size_t length, ArBuffer *scratch,
					 double *value)
{
	const char *end = text + length;
	int64_t		exponent = 0;
	bool		in_fraction = false;
	char		suffix[32];
	int			suffix_length;

	ar_buffer_truncate(scratch, 0);
	if (!ar_buffer_reserve(scratch, length + sizeof(suffix)))
		return false;
	if (text < end && *text == '-')
		scratch->data[scratch->length++] = *text++;
	for (; text < end && *text != 'e' && *text != 'E'; text++)
	{
		if (*text == '.')
		{
			in_fraction = true;
			continue;
		}
		scratch->data[scratch->length++] = *text;
		if (in_fraction)
			exponent--;
	}
	if (text < end)
		exponent += read_exponent(text + 1, end);
	suffix_length = snprintf(suffix, sizeof(suffix), "e%lld", (long long) exponent);
	if (!ar_buffer_append(scratch, suffix, (size_t) suffix_length))
		return false;
	*value = strtod(scratch->data, NULL);
	return true;
}

/*
 * Whether the decimal reads back as `value`.  Never throws, needs no
 * transaction.
 */
static bool
decimal_is(const Decimal *decimal, double value)
{
	char		text[MAX_DIGITS + 16];

	snprintf(text, sizeof(text), "%se%d", decimal->digits,
			 decimal->point - decimal->count);
	return strtod(text, NULL) == value;
}

/*
 * The `count`-digit decimal nearest to `value`, which must be positive.  Never
 * throws, needs no transaction.
 */
static void
decimal_round(double value, int count, Decimal *decimal)
{
	char		text[MAX_DIGITS + 24];
	const char *p;

	snprintf(text, sizeof(text), "%.*e", count - 1, value);
	decimal->count = 0;
	for (p = text; *p != 'e'; p++)	/* skips the point, whatever bytes it has */
		if (*p >= '0' && *p <= '9' && decimal->count < MAX_DIGITS)
			decimal->digits[decimal->count++] = *p;
	decimal->digits[decimal->count] = '\0';
	decimal->point = (int) strtol(p + 1, NULL, 10) + 1;
}

/*
 * The next larger decimal with as many digits.  Never throws, needs no
 * transaction.
 */
static void
decimal_step_up(Decimal *decimal)
{
	int			i = decimal->count - 1;

	while (i >= 0 && decimal->digits[i] == '9')
		decimal->digits[i--] = '0';
	if (i >= 0)
		decimal->digits[i]++;
	else
	{
		decimal->digits[0] = '1';
		decimal->point++;
	}
}

/*
 * The shortest decimal that reads back as `value`, which must be positive.
 *
 * The nearest decimal of a given length is the right one, except at a power of
 * two, where the gap below is half the gap above: there the nearest may lie
 * below and read back as another double while its successor reads back well.
 * Never throws, needs no transaction.
 */
static void
decimal_shortest(double value, Decimal *decimal)
{
	/* A normal double with a text of up to DBL_DIG digits rounds to that text. */
	int			count = value >= DBL_MIN ? DBL_DIG : 1;

	for (; count < MAX_DIGITS; count++)
	{
		decimal_round(value, count, decimal);
		if (decimal_is(decimal, value))
			break;
		decimal_step_up(decimal);
		if (decimal_is(decimal, value))
			break;
	}
	if (count == MAX_DIGITS)
		decimal_round(value, count, decimal);
	while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
		decimal->digits[--decimal->count] = '\0';
}

/*
 * Writes the digits with a point and, outside Python's range for plain
 * notation, an exponent.  Returns the length.  Never throws, needs no
 * transaction.
 */
static size_t
decimal_layout(const Decimal *decimal, char *text)
{
	const char *digits = decimal->digits;
	int			count = decimal->count;
	int			point = decimal->point;
	char	   *p = text;
	int			i;

	if (point <= -4 || point > 16)
	{
		*p++ = digits[0];
		if (count > 1)
			*p++ = '.';
		for (i = 1; i < count; i++)
			*p++ = digits[i];
		p += snprintf(p, 8, "e%c%02d", point - 1 < 0 ? '-' : '+', abs(point - 1));
		return (size_t) (p - text);
	}
	if (point <= 0)
		*p++ = '0';
	for (i = 0; i < point; i++)
		*p++ = i < count ? digits[i] : '0';
	*p++ = '.';
	for (i = point; i < 0; i++)
		*p++ = '0';
	if (count <= point)
		*p++ = '0';
	for (i = point > 0 ? point : 0; i < count; i++)
		*p++ = digits[i];
	*p = '\0';
	return (size_t) (p - text);
}

/* See json_number.h. */
size_t
ar_double_repr(double value, char text[AR_DOUBLE_REPR_SIZE])
{
	Decimal		decimal = {"0", 1, 1};
	size_t		sign = 0;

	if (signbit(value))
		text[sign++] = '-';
	if (value != 0)
		decimal_shortest(fabs(value), &decimal);
	return sign + decimal_layout(&decimal, text + sign);
}
