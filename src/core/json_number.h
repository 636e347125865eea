/*
 * json_number.h
 *		JSON numbers to doubles and back to their shortest decimal text.
 *
 * Both directions hand the C library digits and an exponent but never a decimal
 * point, so the result cannot depend on LC_NUMERIC.
 */
#ifndef AR_JSON_NUMBER_H
#define AR_JSON_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buffer.h"

/* Room for the longest text of ar_double_repr() with its terminator. */
#define AR_DOUBLE_REPR_SIZE 32

/*
 * Reads text, which must be one number in JSON's grammar, as the nearest
 * double: infinite if it is too large, zero with its sign if too small.
 * `scratch` is overwritten.  False: no memory.  Never throws, needs no
 * transaction.
 */
extern bool ar_json_number_value(const char *text, size_t length,
								 ArBuffer *scratch, double *value);

/*
 * Writes the shortest decimal text that reads back as `value`, which must be
 * finite, in the layout of Python's repr(): 1.5, 100.0, 1e+16, 1e-05.  Returns
 * the length; `text` belongs to the caller and is terminated.  Cannot fail,
 * never throws, needs no transaction.
 */
extern size_t ar_double_repr(double value, char text[AR_DOUBLE_REPR_SIZE]);

#endif							/* AR_JSON_NUMBER_H */
