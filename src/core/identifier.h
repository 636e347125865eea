/*
 * identifier.h
 *		The texts that 128 bits can be written as, for references and keys.
 *
 * A provider limits how long an identifier may be and of which characters; each
 * format here is of one length, and two different values never look alike.
 */
#ifndef AR_IDENTIFIER_H
#define AR_IDENTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#define AR_IDENTIFIER_BYTES 16

/* Room for the longest identifier with its terminator. */
#define AR_IDENTIFIER_SIZE 37

/* What a later generation is hashed from. */
#define AR_IDENTIFIER_SEED_BYTES (AR_IDENTIFIER_BYTES + 4)

typedef enum ArIdentifierFormat
{
	AR_IDENTIFIER_UUID,			/* 36 characters */
	AR_IDENTIFIER_HEX,			/* 32: 0-9, a-f */
	AR_IDENTIFIER_BASE32HEX,	/* 26: 0-9, a-v, as RFC 4648 has it but in lower case */
	AR_IDENTIFIER_BASE62		/* 22: 0-9, A-Z, a-z, most significant first */
} ArIdentifierFormat;

/* The format of that name; false if there is none.  Pure, never throws. */
extern bool ar_identifier_format_parse(const char *name, ArIdentifierFormat *format);

/* Writes the bits, with a terminator.  All formats sort as the bits do.  Pure, never throws. */
extern void ar_identifier_write(const uint8_t bits[AR_IDENTIFIER_BYTES], ArIdentifierFormat format,
								char text[AR_IDENTIFIER_SIZE]);

/*
 * What the bits of a later generation are the SHA-256 of: the id, and the
 * generation with its most significant byte first.  Pure, never throws.
 */
extern void ar_identifier_seed(const uint8_t id[AR_IDENTIFIER_BYTES], uint32_t generation,
							   uint8_t seed[AR_IDENTIFIER_SEED_BYTES]);

/* Sets the bits that make a uuid one of version 4.  Pure, never throws. */
extern void ar_identifier_shape_uuid(uint8_t bits[AR_IDENTIFIER_BYTES]);

#endif							/* AR_IDENTIFIER_H */
