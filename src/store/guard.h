/*
 * guard.h
 *		What the guards have seen in the current transaction.
 */
#ifndef AR_GUARD_H
#define AR_GUARD_H

#include <stdbool.h>

/*
 * Has the status of an action changed, which is told by NOTIFY?  Also true if
 * that has been rolled back to a savepoint since.  Never throws, needs no
 * transaction.
 */
extern bool ar_guard_status_changed(void);

#endif							/* AR_GUARD_H */
