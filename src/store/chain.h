/*
 * chain.h
 *		The hash chain of an action's history.
 */
#ifndef AR_CHAIN_H
#define AR_CHAIN_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "types/digest.h"

/* What one history entry says; every text may be NULL where the column may. */
typedef struct ArHistoryEntry
{
	Datum		action_id;
	int			version;
	TimestampTz recorded_at;
	bool		has_attempt;
	int			attempt_number;
	const char *event;
	const char *from_state;		/* NULL for the first entry */
	const char *to_state;
	const char *standing;
	const char *evidence;		/* jsonb as text */
	const char *actor;
	const void *previous_hash;
	int			previous_length;	/* 0 for the first entry */
} ArHistoryEntry;

/* The hash that this entry must carry. May ereport; needs a transaction. */
extern void ar_chain_hash(const ArHistoryEntry *entry, uint8 digest[AR_DIGEST_LENGTH]);

#endif							/* AR_CHAIN_H */
