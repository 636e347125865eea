/*
 * identifier.c
 *		The texts that 128 bits can be written as, for references and keys.
 *
 * Nothing in this file throws, allocates or needs a transaction.
 */
#include "core/identifier.h"

#include <stddef.h>
#include <string.h>

/* In the order of ASCII, so that texts sort as their values do. */
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char lower_digits[] = "0123456789abcdefghijklmnopqrstuv";

#define BASE32HEX_LENGTH 26
#define BASE62_LENGTH 22

/* See identifier.h. */
bool
ar_identifier_format_parse(const char *name, ArIdentifierFormat *format)
{
	static const char *const names[] = {"uuid", "hex", "base32hex", "base62"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			*format = (ArIdentifierFormat) i;
			return true;
		}
	}
	return false;
}

/* Writes two digits a byte, with hyphens where a uuid has them if they are wanted. */
static void
write_hex(const uint8_t *bits, bool with_hyphens, char *text)
{
	for (int i = 0; i < AR_IDENTIFIER_BYTES; i++)
	{
		if (with_hyphens && (i == 4 || i == 6 || i == 8 || i == 10))
			*text++ = '-';
		*text++ = lower_digits[bits[i] >> 4];
		*text++ = lower_digits[bits[i] & 0xF];
	}
	*text = '\0';
}

/* Writes five bits a digit; the last digit has two bits of zero behind its three. */
static void
write_base32hex(const uint8_t *bits, char *text)
{
	for (int i = 0; i < BASE32HEX_LENGTH; i++)
	{
		int			first = i * 5 / 8;
		int			shift = 11 - i * 5 % 8;
		unsigned int pair = (unsigned int) bits[first] << 8;

		if (first + 1 < AR_IDENTIFIER_BYTES)
			pair |= bits[first + 1];
		text[i] = lower_digits[pair >> shift & 0x1F];
	}
	text[BASE32HEX_LENGTH] = '\0';
}

/* Divides the number by 62 again and again; leading zeros are written. */
static void
write_base62(const uint8_t *bits, char *text)
{
	uint8_t		rest[AR_IDENTIFIER_BYTES];

	memcpy(rest, bits, sizeof(rest));
	for (int i = BASE62_LENGTH - 1; i >= 0; i--)
	{
		unsigned int remainder = 0;

		for (int j = 0; j < AR_IDENTIFIER_BYTES; j++)
		{
			unsigned int dividend = remainder << 8 | rest[j];

			rest[j] = (uint8_t) (dividend / 62);
			remainder = dividend % 62;
		}
		text[i] = digits[remainder];
	}
	text[BASE62_LENGTH] = '\0';
}

/* See identifier.h. */
void
ar_identifier_write(const uint8_t bits[AR_IDENTIFIER_BYTES], ArIdentifierFormat format,
					char text[AR_IDENTIFIER_SIZE])
{
	switch (format)
	{
		case AR_IDENTIFIER_UUID:
			write_hex(bits, true, text);
			return;
		case AR_IDENTIFIER_HEX:
			write_hex(bits, false, text);
			return;
		case AR_IDENTIFIER_BASE32HEX:
			write_base32hex(bits, text);
			return;
		case AR_IDENTIFIER_BASE62:
			write_base62(bits, text);
			return;
	}
	text[0] = '\0';
}

/* See identifier.h. */
void
ar_identifier_seed(const uint8_t id[AR_IDENTIFIER_BYTES], uint32_t generation,
				   uint8_t seed[AR_IDENTIFIER_SEED_BYTES])
{
	memcpy(seed, id, AR_IDENTIFIER_BYTES);
	for (int i = 0; i < 4; i++)
		seed[AR_IDENTIFIER_BYTES + i] = (uint8_t) (generation >> (24 - 8 * i));
}

/* See identifier.h. */
void
ar_identifier_shape_uuid(uint8_t bits[AR_IDENTIFIER_BYTES])
{
	bits[6] = (uint8_t) ((bits[6] & 0x0F) | 0x40);
	bits[8] = (uint8_t) ((bits[8] & 0x3F) | 0x80);
}
