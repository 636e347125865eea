/*
 * fuzz.h
 *		What the fuzzing targets have in common.
 */
#ifndef AR_FUZZ_H
#define AR_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the run with the input that broke a promise; assert() could be compiled away. */
#define must(condition) \
	do \
	{ \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#endif							/* AR_FUZZ_H */
