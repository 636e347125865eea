/*
 * guarded.h
 *		Work on data of unknown quality, whose errors are results.
 */
#ifndef AR_GUARDED_H
#define AR_GUARDED_H

#include <stdbool.h>

/*
 * Run "work" in a subtransaction; false if it threw, whatever it threw.  What
 * it allocates stays in the caller's context.  Needs a transaction; never
 * throws for an error of the work.
 */
extern bool ar_guarded(void (*work) (void *state), void *state);

#endif							/* AR_GUARDED_H */
