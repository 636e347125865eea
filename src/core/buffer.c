/*
 * buffer.c
 *		A growing byte buffer for code that must build without the server.
 *
 * Nothing in this file throws, serves interrupts or needs a transaction; what a
 * function allocates belongs to the structure it was given.
 */
#include "core/buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define AR_BUFFER_FIRST_CAPACITY 256

/* See buffer.h. */
void
ar_buffer_init(ArBuffer *buffer)
{
	buffer->data = NULL;
	buffer->length = 0;
	buffer->capacity = 0;
}

/* See buffer.h. */
bool
ar_buffer_reserve(ArBuffer *buffer, size_t more)
{
	size_t		needed;
	size_t		capacity;
	char	   *data;

	if (more >= SIZE_MAX - buffer->length)
		return false;
	needed = buffer->length + more + 1;
	if (needed <= buffer->capacity)
		return true;

	capacity = buffer->capacity > 0 ? buffer->capacity : AR_BUFFER_FIRST_CAPACITY;
	while (capacity < needed)
	{
		if (capacity > SIZE_MAX / 2)
		{
			capacity = needed;
			break;
		}
		capacity *= 2;
	}

	data = realloc(buffer->data, capacity);
	if (data == NULL)
		return false;
	if (buffer->data == NULL)
		data[0] = '\0';
	buffer->data = data;
	buffer->capacity = capacity;
	return true;
}

/* See buffer.h. */
bool
ar_buffer_append(ArBuffer *buffer, const void *bytes, size_t length)
{
	if (!ar_buffer_reserve(buffer, length))
		return false;
	if (length > 0)
		memcpy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
	buffer->data[buffer->length] = '\0';
	return true;
}

/* See buffer.h. */
void
ar_buffer_truncate(ArBuffer *buffer, size_t length)
{
	if (length < buffer->length)
	{
		buffer->length = length;
		buffer->data[length] = '\0';
	}
}

/* See buffer.h. */
void
ar_buffer_destroy(ArBuffer *buffer)
{
	free(buffer->data);
	ar_buffer_init(buffer);
}
