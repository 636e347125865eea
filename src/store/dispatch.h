/*
 * dispatch.h
 *		The durable side of sending: claim, check at the last instant, record.
 */
#ifndef AR_DISPATCH_H
#define AR_DISPATCH_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#include "core/evidence.h"
#include "core/lifecycle.h"
#include "store/limits.h"

/* What measure_window() and self_test() want done with an action, besides carrying it out. */
typedef enum ArDrill
{
	AR_DRILL_NONE,
	AR_DRILL_PROBE,				/* watch when lookups show it */
	AR_DRILL_ANSWER_LOST,		/* throw the first answer away */
	AR_DRILL_REQUEST_LOST		/* send nothing, but take it for sent */
} ArDrill;

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
	bool		resend;			/* the very same request again: an earlier one may have happened */
	bool		sends_key;
	bool		key_was_sent;	/* by an attempt before this one */
	ArEffect	effect;
	bool		existed;		/* what is to be deleted was seen before */
	ArDrill		drill;
	char	   *credential;		/* the name of the file, or NULL */
	/* reading the answer */
	bool		has_rules;		/* the operation has response rules */
	int			operation_version;
	char	   *artifact_path;
	char	   *artifact_header;
	/* what its end leads to */
	bool		can_ask;		/* there is a lookup rule */
	bool		replay_first;	/* the first lookup rule is to send it again */
	bool		replay_is_stored;	/* a repeated key is answered with the stored reply */
	int			rule_position;	/* a resend: by which lookup rule */
	int64		resend_pause_us;
	int64		resend_pause_max_us;
	int			max_inconclusive;
	int			inconclusives;
	int64		next_window_us; /* a resend: the window of the rule after it; negative if there is none */
	char	   *poll_header;	/* where the answer says that its verdict is to be asked for, or NULL */
	char	   *poll_path;
	int64		verdict_us;		/* pause before that is asked for, or the time after which it is overdue */
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
	bool		drilled;		/* it refused because the request is to be lost */
} ArDispatch;

/* What a claim has to keep to. */
typedef struct ArClaimLimits
{
	const ArProviderRoom *rooms;
	int			room_count;
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

/*
 * The same for unknown outcomes whose lookup rule is to send the very same
 * request again.  Those that cannot be sent so go on to their next rule.
 */
extern int	ar_store_claim_resends(MemoryContext parent, const ArClaimLimits *limits, ArDispatch ***dispatches);

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
	char	   *poll_url;		/* or NULL */
	int64		attempt_gate_us;	/* lower clock; 0: stays as it is */
	int64		ask_in_us;		/* pause before the action is asked about; negative: it is not */
	int64		due_in_us;		/* when queued again: pause from now */
	int			pass_rule;		/* go on to the rule after this one; 0: stay where the lookups are */
	int			inconclusives;	/* so many resends by that rule have proven nothing */
	bool		settles_earlier;	/* it is the stored reply to the earlier attempts with this key */
	bool		pause_provider;	/* the answer says that our credential is dead */
	ArReach		reach;			/* what it says about the provider */
	int64		asked_pause_us;	/* the provider asks to be left alone so long; negative: it does not */
	const char *reason;			/* if it was not reached, why */
} ArAttemptEnd;

/*
 * Record ends in one statement, never waiting for a row.  recorded[i] says
 * whether ends[i] is now stored; one that is not was locked by somebody, or
 * (*vanished) no longer belongs to its attempt.  Needs an open engine transaction. May ereport.
 */
extern void ar_store_record_ends(const ArAttemptEnd *ends, int count, bool *recorded, bool *vanished);

/* Apply what came in unasked and could not be applied then. Needs an open engine transaction. May ereport. */
extern void ar_store_apply_inbox(void);

/* See whose turn has come with each ordering key. Needs an open engine transaction. May ereport. */
extern void ar_store_let_keys_go(void);

/*
 * See what has all that it depends on, and withdraw what will never have it.
 * Reads everything that depends on others.  Needs an open engine transaction. May ereport.
 */
extern void ar_store_let_dependents_go(void);

/* What has passed its not_after while planned. Needs an open engine transaction. */
extern int	ar_store_expire(void);

#endif							/* AR_DISPATCH_H */
