/*
 * utf8.c
 *		Single code points to and from UTF-8.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/utf8.h"

/* See utf8.h. */
size_t
ar_utf8_decode(const char *bytes, size_t available, uint32_t *code_point)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *b = (const unsigned char *) bytes;
	size_t		length;
	size_t		i;
	uint32_t	value;

	if (available == 0)
		return 0;
	if (b[0] < 0x80)
	{
		*code_point = b[0];
		return 1;
	}
	if (b[0] < 0xC0 || b[0] > 0xF4)
		return 0;
	length = b[0] < 0xE0 ? 2 : b[0] < 0xF0 ? 3 : 4;
	if (length > available)
		return 0;
	value = b[0] & (0x7Fu >> length);
	for (i = 1; i < length; i++)
	{
		if ((b[i] & 0xC0) != 0x80)
			return 0;
		value = value << 6 | (b[i] & 0x3Fu);
	}
	if (value < smallest[length] || value > 0x10FFFF ||
		(value >= 0xD800 && value <= 0xDFFF))
		return 0;
	*code_point = value;
	return length;
}

/* See utf8.h. */
size_t
ar_utf8_encode(uint32_t c, char bytes[4])
{
	if (c < 0x80)
	{
		bytes[0] = (char) c;
		return 1;
	}
	if (c < 0x800)
	{
		bytes[0] = (char) (0xC0 | c >> 6);
		bytes[1] = (char) (0x80 | (c & 0x3F));
		return 2;
	}
	if (c < 0x10000)
	{
		bytes[0] = (char) (0xE0 | c >> 12);
		bytes[1] = (char) (0x80 | (c >> 6 & 0x3F));
		bytes[2] = (char) (0x80 | (c & 0x3F));
		return 3;
	}
	bytes[0] = (char) (0xF0 | c >> 18);
	bytes[1] = (char) (0x80 | (c >> 12 & 0x3F));
	bytes[2] = (char) (0x80 | (c >> 6 & 0x3F));
	bytes[3] = (char) (0x80 | (c & 0x3F));
	return 4;
}
