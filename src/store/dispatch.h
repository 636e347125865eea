/*
 * dispatch.h
 *		The durable side of sending: claim, check at the last instant, record.
 */
#ifndef AR_DISPATCH_H
#define AR_DISPATCH_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#include "core/lifecycle.h"

/*
 * A claimed attempt: everything that sending it and reading its answer need,
 * so that no table is asked again.  Lives in a memory context of its own.
 */
typedef struct ArDispatch
{
	MemoryContext context;
	pg_uuid_t	action_id;
	pg_uuid_t	dispatch_id;
	int			version;		/* of the action, as the claim left it */
	int			number;
	int			failures;		/* not sent or not executed, in a row, so far */
	char	   *operation;
	char	   *provider;
	char	   *client_reference;
	/* the request; path is NULL if it could not be made */
	char	   *base_url;
	char	   *method;
	char	   *path;
	char	  **headers;		/* name, value, name, value, ... */
	int			header_strings;
	char	   *body;
	/* reading the answer */
	bool		has_rules;		/* the operation has response rules */
	int			operation_version;
	char	   *artifact_path;
	char	   *artifact_header;
	/* limits */
	int64		connect_timeout_us;
	int64		attempt_timeout_us;
	int64		window_us;
	int64		late_arrival_us;
	int64		retry_pause_us;
	int64		retry_pause_max_us;
	int64		retry_after_max_us;
	int			max_response_bytes;
	bool		allow_http;
	bool		allow_private_addresses;
	char	   *ca_file;
	/* the send itself */
	int64		claimed_us;		/* CLOCK_MONOTONIC */
	bool		check_done;		/* the last-instant check has spoken */
	const char *refusal;		/* why it refused, or NULL */
} ArDispatch;

/* How many transfers are open per provider: what a claim must leave room for. */
typedef struct ArOpenCount
{
	char		provider[64];
	int			open;
} ArOpenCount;

/* What a claim has to keep to. */
typedef struct ArClaimLimits
{
	const ArOpenCount *open;
	int			open_count;
	int64		epoch;
	int			limit;
	const pg_uuid_t *skipped;	/* actions that are left alone for a while */
	int			skipped_count;
} ArClaimLimits;

/*
 * Make the intent to send durable for due actions.  Returns how many;
 * *dispatches is palloc'ed in the current context, each entry in a context of
 * its own under "parent".  Needs an open engine transaction. May ereport.
 */
extern int	ar_store_claim(MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches);

/* The action that a claim of one would take; false if none is due. Same conditions. */
extern bool ar_store_next_due(const ArClaimLimits *limits, pg_uuid_t *action_id);

/* Why this attempt must not be sent, a constant or palloc'ed text, or NULL. Takes a new snapshot. May ereport. */
extern const char *ar_store_check_dispatch(const ArDispatch *dispatch, int64 epoch);

/* The end of an attempt, decided and ready to be recorded. */
typedef struct ArAttemptEnd
{
	pg_uuid_t	action_id;
	pg_uuid_t	dispatch_id;
	ArEvent		event;
	ArState		attempt_state;
	ArState		action_state;
	char	   *evidence;		/* JSON text with the key "transfer" */
	int			http_status;	/* 0: none */
	char	   *artifact_id;	/* or NULL */
	const char *body;
	size_t		body_len;
	int64		gate_us;		/* lower clock; 0: not to be asked */
	int64		gate_in_us;		/* the same as a pause from now, for people */
	int64		due_in_us;		/* when queued again: pause from now */
	bool		pause_provider;	/* the answer says that our credential is dead */
} ArAttemptEnd;

/*
 * Record ends in one statement, never waiting for a row.  recorded[i] says
 * whether ends[i] is now stored; one that is not was locked by somebody, or
 * (*vanished) no longer belongs to its attempt.  Needs an open engine transaction. May ereport.
 */
extern void ar_store_record_ends(const ArAttemptEnd *ends, int count, bool *recorded, bool *vanished);

/* What has passed its not_after while planned. Needs an open engine transaction. */
extern int	ar_store_expire(void);

#endif							/* AR_DISPATCH_H */
