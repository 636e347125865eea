/*
 * header.h
 *		Which request headers an operation may set.
 */
#ifndef AR_HEADER_H
#define AR_HEADER_H

#include <stdbool.h>

/* NULL if an operation may set it, otherwise what is wrong with the name. */
extern const char *ar_header_name_problem(const char *name);

#endif							/* AR_HEADER_H */
