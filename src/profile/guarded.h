/*
 * guarded.h
 *		Work on data of unknown quality, whose errors are results.
 */
#ifndef AR_GUARDED_H
#define AR_GUARDED_H

#include <stdbool.h>

/*
 * Run "work" in a subtransaction; false if it threw for what it was given.  What
 * it allocates stays in the caller's context.  Needs a transaction; throws on
 * only that it was cancelled, or had no memory.
 */
extern bool ar_guarded(void (*work) (void *state), void *state);

#endif							/* AR_GUARDED_H */
