/*
 * buffer.h
 *		A growing byte buffer for code that must build without the server.
 *
 * The bytes are malloc'ed, never palloc'ed: nothing here can throw, so the
 * caller alone decides what an allocation failure means.  A backend that holds
 * one must free it on its error path too (PG_TRY / PG_FINALLY), and should copy
 * the bytes out at once.
 */
#ifndef AR_BUFFER_H
#define AR_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

typedef struct ArBuffer
{
	char	   *data;			/* NULL until the first byte; else NUL-terminated */
	size_t		length;			/* without the terminator */
	size_t		capacity;
} ArBuffer;

/*
 * Makes an empty buffer of any memory.  Allocates nothing, cannot fail, needs
 * no transaction.  A zeroed ArBuffer is the same.
 */
extern void ar_buffer_init(ArBuffer *buffer);

/*
 * Makes room for `more` further bytes and the terminator.  False: no memory,
 * the buffer is unchanged.  Never throws, needs no transaction.
 */
extern bool ar_buffer_reserve(ArBuffer *buffer, size_t more);

/*
 * Adds bytes, which the buffer copies; they must not lie in the buffer itself.
 * False: no memory, the buffer is unchanged.  Never throws, needs no
 * transaction.
 */
extern bool ar_buffer_append(ArBuffer *buffer, const void *bytes, size_t length);

/*
 * Cuts the buffer back to `length`, which must not exceed its length.  Keeps
 * the memory.  Never throws, needs no transaction.
 */
extern void ar_buffer_truncate(ArBuffer *buffer, size_t length);

/*
 * Frees the bytes and leaves an empty buffer; harmless on an empty one.  Never
 * throws, needs no transaction.
 */
extern void ar_buffer_destroy(ArBuffer *buffer);

#endif							/* AR_BUFFER_H */
