/*
 * retry_after.h
 *		The number of seconds in a Retry-After header.
 */
#ifndef AR_RETRY_AFTER_H
#define AR_RETRY_AFTER_H

#include <stddef.h>
#include <stdint.h>

/* More than that is not told apart: a year and a day, in seconds. */
#define AR_RETRY_AFTER_MAX_SECONDS ((int64_t) 366 * 86400)

/*
 * The pause in microseconds, or -1 if the value is no number of seconds:
 * digits, and a fraction as some servers send it, rounded up; white space
 * around it is ignored.  The other form that the header may have, a date, is
 * not read here.  Pure; never throws, needs no transaction.
 */
extern int64_t ar_retry_after_parse(const char *value, size_t length);

#endif							/* AR_RETRY_AFTER_H */
