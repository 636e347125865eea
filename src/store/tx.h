/*
 * tx.h
 *		The engine's transactions: short, durable, never held over a wait.
 *
 * In the worker a transaction is started and committed here.  In CALL run()
 * the calling backend always has one, which is committed and replaced.  Either
 * way it is READ COMMITTED, commits synchronously, runs as the extension's
 * owner with a pinned search_path, and never waits for a table lock.
 */
#ifndef AR_TX_H
#define AR_TX_H

#include "postgres.h"

#include <signal.h>

typedef enum ArTxBegin
{
	AR_TX_OPEN,
	AR_TX_BUSY,					/* somebody holds a table exclusively: try again later */
	AR_TX_READ_ONLY,			/* nothing is to be written: see ar_tx_read_only */
	AR_TX_GONE					/* the extension is no longer what it was at the start */
} ArTxBegin;

/*
 * Once per engine, before its first transaction: remember the extension; false
 * if there is none, or one of a version that is not this library's, which is an
 * error in CALL mode.  There inside a transaction, which is replaced. May ereport.
 */
extern bool ar_tx_init(bool in_call);

/*
 * SPI is connected while AR_TX_OPEN; the current memory context stays the
 * caller's throughout. May ereport.
 */
extern ArTxBegin ar_tx_begin(void);
extern void ar_tx_commit(void);

/* Throw the transaction away, also after an error that was caught. */
extern void ar_tx_rollback(void);

extern bool ar_tx_is_open(void);

/*
 * Is default_transaction_read_only in force for this session?  Whoever sets it
 * wants nothing written, so the engine begins no transaction then.
 */
extern bool ar_tx_read_only(void);

/*
 * In CALL mode a transaction is open while the engine waits, too: keep the
 * caller's settings from ending it.
 */
extern void ar_tx_settle_to_wait(void);

/*
 * From now on commits wait for no standby: for an engine that stops and claims
 * nothing more, which must not hang on a standby that is gone.
 */
extern void ar_tx_commit_locally(void);

/* The tables that an engine transaction locks: one that is not to be had makes it wait. */
extern const char *const *ar_tx_tables(int *count);

/* True while a commit runs, for the signal handler of the worker. */
extern volatile sig_atomic_t ar_tx_in_commit;

#endif							/* AR_TX_H */
