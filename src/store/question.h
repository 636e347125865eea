/*
 * question.h
 *		The durable side of asking: which actions are to be looked up, and what
 *		an answer changes.
 */
#ifndef AR_QUESTION_H
#define AR_QUESTION_H

#include "postgres.h"

#include "utils/uuid.h"

#include "core/evidence.h"
#include "store/clock.h"

/* One lookup under way.  Lives in a memory context of its own. */
typedef struct ArQuestion
{
	MemoryContext context;
	pg_uuid_t	lookup_id;
	pg_uuid_t	action_id;
	int			version;		/* of the action, as asking left it */
	char	   *provider;
	char	   *client_reference;
	bool		delivered;		/* asked about a delivered action, whose state stays */
	bool		queued;			/* asked before a replacement */
	int64		asked_us;		/* lower clock */
	ArMoment	asked;			/* upper clock */
	int64		last_gate_us;	/* the last gate of an attempt that may have left */
	int			negatives;
	int			inconclusives;
	int			replacements;
	/* the request; path is NULL if it could not be made */
	char	   *base_url;
	char	   *path;
	char	  **headers;
	int			header_strings;
	/* reading the answer */
	int		   *found_statuses;
	int			found_status_count;
	int		   *absent_statuses;
	int			absent_status_count;
	char	   *items_path;
	char	   *reference_path;
	char	   *body_match;		/* with the reference filled in */
	char	   *artifact_path;
	char	   *artifact_header;
	/* the rule */
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
 * Start lookups for up to "limit" actions whose gate is open, or whose
 * replacement is due but rests on an old proof of absence.  Contexts as for
 * ar_store_claim.  Needs an open engine transaction. May ereport.
 */
extern int	ar_store_ask(MemoryContext parent, int64 epoch, int limit, ArQuestion ***questions);

/* What follows from an answer. */
typedef enum ArAnswerStep
{
	AR_STEP_FOUND,				/* the action succeeded */
	AR_STEP_ABSENT_ONCE,		/* a valid negative, more are needed */
	AR_STEP_ABSENT,				/* proven not to have happened */
	AR_STEP_INCONCLUSIVE,		/* ask again after a pause */
	AR_STEP_GIVE_UP				/* only a person can settle it */
} ArAnswerStep;

typedef struct ArAnswer
{
	ArLookupResult result;
	const char *reason;
	int			http_status;	/* 0: none */
	int			matches;
	char	   *artifact_id;
	char	   *evidence;		/* JSON text with the key "lookup" */
	ArAnswerStep step;
	bool		replace;		/* AR_STEP_ABSENT: queue a replacement by itself */
	int64		pause_us;		/* until the next question or send */
} ArAnswer;

/*
 * Record an answer and the transitions that follow from it.  If the action has
 * moved on since it was asked, the answer is kept as a fact only.  Returns
 * false if the row is locked: try again.  Needs an open engine transaction. May ereport.
 */
extern bool ar_store_record_answer(const ArQuestion *question, const ArAnswer *answer);

#endif							/* AR_QUESTION_H */
