/*
 * engine_lock.h
 *		One engine per database: a session lock that ends with its process.
 *
 * An advisory lock tag of a class that SQL functions cannot name, so nobody
 * takes ours by accident.  Holding it is what makes a process the engine: the
 * guard triggers let only the holder take the engine's steps.
 */
#ifndef AR_ENGINE_LOCK_H
#define AR_ENGINE_LOCK_H

#include "postgres.h"

#include "utils/uuid.h"

/* Take the engine lock of this database, without waiting. Needs a transaction. May ereport. */
extern bool ar_engine_lock_take(void);

/* Give it back. Only after every socket is closed. */
extern void ar_engine_lock_give(void);

/* Does this process hold it? */
extern bool ar_engine_is_here(void);

/* The process that holds it, or 0. */
extern int	ar_engine_lock_holder(void);

/*
 * The lock that a send and every confirmation of an action share, until the
 * transaction ends or it is given back.  Never waited for by the engine.
 * Needs a transaction. May ereport (out of shared memory).
 */
extern bool ar_action_lock_try(const pg_uuid_t *action_id);
extern void ar_action_lock_give(const pg_uuid_t *action_id);

/*
 * The lock of an ordering key of a submitter, to the end of the transaction:
 * who submits with it waits for others who do.  Needs a transaction. May ereport.
 */
extern void ar_ordering_lock(const char *submitter, const char *key);

#endif							/* AR_ENGINE_LOCK_H */
