/*
 * utf8.h
 *		Single code points to and from UTF-8.
 */
#ifndef AR_UTF8_H
#define AR_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Decodes one sequence of at most `available` bytes.  Returns its length, or 0
 * if it is not well-formed (overlong, surrogate, beyond U+10FFFF, cut).  Never
 * throws, needs no transaction.
 */
extern size_t ar_utf8_decode(const char *bytes, size_t available,
							 uint32_t *code_point);

/*
 * Writes a code point, which must be no surrogate and at most U+10FFFF, into the
 * caller's `bytes` without a terminator and returns the length.  Never throws,
 * needs no transaction.
 */
extern size_t ar_utf8_encode(uint32_t code_point, char bytes[4]);

#endif							/* AR_UTF8_H */
