/*
 * question.h
 *		The durable side of asking: which actions are to be asked about, and
 *		what an answer changes.
 */
#ifndef AR_QUESTION_H
#define AR_QUESTION_H

#include "postgres.h"

#include "utils/uuid.h"

#include "core/evidence.h"
#include "store/clock.h"
#include "store/limits.h"

/* Why the provider is asked. */
typedef enum ArQuestionKind
{
	AR_ASK_WHAT_HAPPENED,		/* about an unknown outcome, or an answer that cannot be read */
	AR_ASK_BEFORE_SEND,			/* for the sake of what is queued */
	AR_ASK_FOR_VERDICT,			/* a poll: has it carried out what it had taken? */
	AR_ASK_WHEN_VISIBLE,		/* a probe: do lookups show it yet? */
	AR_ASK_FOR_DUPLICATES		/* a success, beside which another attempt may have happened: is there one object? */
} ArQuestionKind;

/* A request made from templates; path is NULL if it could not be made. */
typedef struct ArAsked
{
	char	   *path;
	char	  **headers;
	int			header_strings;
	char	   *body;
} ArAsked;

/* How an answer is read; as in reconcile.lookup_rule, jsonpaths as text. */
typedef struct ArReading
{
	int		   *found_statuses;
	int			found_status_count;
	int		   *absent_statuses;
	int			absent_status_count;
	char	   *items_path;
	char	   *reference_path;
	bool		contains;
	char	   *body_match;		/* with a place for the reference */
	char	  **values;			/* jsonpath, expected text, ... */
	int			value_strings;
	bool		unique;
	char	   *created_path;
	char	   *exclude_path;
	char	   *gone_path;
	char	   *incomplete_if;
	char	   *artifact_path;
	char	   *artifact_header;
	/* further pages */
	char	   *paging;
	char	   *paging_path;
	char	   *paging_parameter;
	char	   *paging_more;
	bool		pages_by_body;	/* the cursor goes into the body, at paging_body_path */
	int			page_size;
	int			max_pages;
	/* a poll */
	char	   *state_path;
	char	  **accepted;
	int			accepted_count;
	char	  **rejected;
	int			rejected_count;
} ArReading;

/* For how long a send may rest on a look, from when it was asked; the statements that claim and ask say the same. */
#define AR_LOOK_LASTS_US	INT64CONST(60000000)

/* One question under way.  Lives in a memory context of its own. */
typedef struct ArQuestion
{
	MemoryContext context;
	ArQuestionKind kind;
	pg_uuid_t	lookup_id;
	pg_uuid_t	action_id;
	int			version;		/* of the action, as asking left it */
	char	   *operation;
	char	   *provider;
	char	   *client_reference;
	int			position;		/* of the lookup rule */
	bool		last_rule;		/* there is none after it */
	bool		delivered;		/* asked about a delivered action, whose state stays */
	bool		never_sent;		/* no attempt has done anything: asked before the first one that may */
	bool		awaits_verdict;	/* what is found is to be polled: there is a rule for it */
	bool		decided;		/* by a person: that an attempt did not happen */
	bool		was_queued;		/* when it was presumed to have left elsewhere: if it did not, it is again */
	bool		one_refused;	/* an attempt was refused: absence of the others is a refusal of all */
	ArEffect	effect;
	ArBefore	before;
	char	   *before_digest;
	int64		asked_us;		/* lower clock */
	ArMoment	asked;			/* upper clock */
	int64		last_gate_us;	/* the last gate of an attempt that may have left, by this rule's window */
	int64		since_us;		/* since 1970: earlier than that nothing of ours was made */
	int64		until_us;		/* nor later than that: the last gate, or now */
	int			negatives;
	int			inconclusives;
	int			replacements;
	bool		overdue;		/* a poll: its verdict is */
	bool		probe;			/* a poll: once it is accepted, it is watched until lookups show it */
	/* the request */
	char	   *base_url;
	char	   *url;			/* the whole URL, where the provider has named it; else base_url and path */
	char	   *method;
	ArAsked		asked_for;
	ArAsked		canary;			/* the same about an object that is known to be there */
	char	   *canary_reference;	/* NULL: there is none */
	char	  **canary_values;
	int			canary_value_strings;
	char	   *canary_body_match;
	char	   *credential;
	ArReading	reading;
	/* the rule */
	bool		absence_proves;
	bool		window_assumed;
	int			min_negatives;
	int64		negative_spacing_us;
	int64		pause_us;
	int64		pause_max_us;
	int			max_inconclusive;
	bool		replace_when_absent;
	int			max_replacements;
	int64		retry_pause_us;
	int64		retry_pause_max_us;
	/* limits */
	int64		timeout_us;
	int			max_response_bytes;
	bool		allow_http;
	bool		allow_private_addresses;
	char	   *ca_file;
} ArQuestion;

/*
 * Start questions, at most "limit" and within the room at each provider: about
 * actions whose gate is open; about those that are due but rest on a look that
 * is too old; for verdicts.  What has nothing left to ask, or waits too long
 * for a verdict, goes to manual_review with the first.  Contexts as for
 * ar_store_claim.  Need an open engine transaction. May ereport.
 */
typedef struct ArAskLimits
{
	const ArProviderRoom *rooms;
	int			room_count;
	int64		epoch;
	int			limit;
} ArAskLimits;

extern int	ar_store_ask(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions);
extern int	ar_store_ask_again(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions);
extern int	ar_store_poll(MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions);

/* The body of a POST with a value at lookup_rule.paging_body_path; palloc'ed. Same conditions. */
extern char *ar_store_body_with_cursor(const ArQuestion *question, const char *body, const char *cursor);

/* What follows from an answer. */
typedef enum ArAnswerStep
{
	AR_STEP_FOUND,				/* the action succeeded */
	AR_STEP_ABSENT_ONCE,		/* a valid negative, more are needed */
	AR_STEP_ABSENT,				/* proven not to have happened */
	AR_STEP_INCONCLUSIVE,		/* ask again after a pause */
	AR_STEP_NEXT_RULE,			/* this rule does not tell: ask by the next one */
	AR_STEP_GIVE_UP,			/* only a person can settle it */
	AR_STEP_LOOKED_BEFORE,		/* what the first send is about has been looked at */
	AR_STEP_ACCEPTED,			/* a poll: the verdict */
	AR_STEP_REJECTED,
	AR_STEP_PENDING,			/* a poll: none yet; a probe: not visible yet */
	AR_STEP_OVERDUE,			/* a poll: none for too long */
	AR_STEP_SEEN				/* a probe is visible, by this rule */
} ArAnswerStep;

typedef struct ArAnswer
{
	ArLookupResult result;
	const char *reason;
	int			http_status;	/* 0: none */
	int			matches;
	int			pages;
	int			objects;
	char	   *artifact_id;
	ArBefore	before;			/* AR_STEP_LOOKED_BEFORE: what was seen of what is to be changed */
	char	   *digest;			/* and its digest */
	char	   *evidence;		/* JSON text with the key "lookup" or "poll" */
	ArAnswerStep step;
	bool		canary_missing; /* a whole answer did not show what had been accepted */
	bool		replace;		/* AR_STEP_ABSENT: queue a replacement by itself */
	int64		pause_us;		/* until the next question or send */
} ArAnswer;

/*
 * Record an answer and the transitions that follow from it.  If the action has
 * moved on since it was asked, the answer is kept as a fact only.  Returns
 * false if the row is locked: try again.  Needs an open engine transaction. May ereport.
 */
extern bool ar_store_record_answer(const ArQuestion *question, const ArAnswer *answer);

/* Is the object credited to another action of the operation already? Same conditions. */
extern bool ar_store_owned_by_other(const ArQuestion *question, const char *artifact_id);

/*
 * What was learned on the way.  How long after its attempt an object was seen;
 * that it was seen although a valid negative had been given before; that
 * something is seen that must not be: an incident of that kind, once for an
 * action.  Same conditions.
 */
extern void ar_store_note_visible(const ArQuestion *question, bool probe);
extern void ar_store_note_canary_missing(const ArQuestion *question);
extern void ar_store_note_violation(const ArQuestion *question);

/* It is there after all: if a person had decided that it is not, that is an incident. Transaction needed. */
extern void ar_store_note_wrong_decision(const ArQuestion *question);
extern void ar_store_note_incident(const ArQuestion *question, const ArAnswer *answer, const char *kind);

#endif							/* AR_QUESTION_H */
