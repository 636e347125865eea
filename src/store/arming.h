/*
 * arming.h
 *		May this database send?  Only the one that was armed may, never a copy.
 */
#ifndef AR_ARMING_H
#define AR_ARMING_H

#include "postgres.h"

/*
 * Compare the arming record with the token file.  NULL: this database is the
 * armed one, and *epoch is its epoch; otherwise why it is not.  Needs SPI in
 * an open transaction. May ereport on database errors only.
 */
extern const char *ar_arming_problem(int64 *epoch);

/* The same for any caller in a transaction, without SPI; palloc'ed in the current context. */
extern const char *ar_arming_state(void);

/*
 * Begin a new epoch in the record: a data directory that is rolled back behind
 * its token file is noticed by it.  Needs an open engine transaction; the file
 * is advanced after that has committed, by ar_arming_advance_file.  Zero if
 * somebody is arming it just now: try again.
 */
extern int64 ar_arming_advance(void);

/*
 * Count a claim, in its transaction; returns how many there have been.  The
 * number outlives whatever is done to actions, and is right in any backup.
 */
extern int64 ar_arming_count_claim(void);

/*
 * Put that number into the file: after the claim has committed, before its
 * first byte leaves.  No transaction needed.
 */
extern const char *ar_arming_mark(int64 position);

/* Write the epoch that was begun and the present WAL position into the file. No transaction needed. */
extern const char *ar_arming_advance_file(int64 epoch);

/* Remove the files of earlier armings. Not of fresh ones: an arming may be waiting for its commit. */
extern void ar_arming_forget_others(void);

/*
 * For failover_policy auto: if this is a standby that was promoted, and somebody
 * has put a token there for it, arm it as ar_arming_arm does.  True if that was
 * done; otherwise *obstacle says why not, NULL if it is no question of it.
 * Needs an open engine transaction. May ereport on database errors.
 */
extern bool ar_arming_take_over(const char **obstacle);

/*
 * Arm this database anew, and if it was disarmed, note what was recorded before.
 * Ereports 55000 if there is no usable directory, or if what was recorded
 * before cannot be noted. Needs a transaction, not SPI.
 */
extern void ar_arming_arm(const char *reason);

#endif							/* AR_ARMING_H */
