/*
 * engine_internal.h
 *		The engine's own state, shared by the steps of its loop.
 */
#ifndef AR_ENGINE_INTERNAL_H
#define AR_ENGINE_INTERNAL_H

#include "postgres.h"

#include "lib/ilist.h"

#include "engine/engine.h"
#include "profile/match.h"
#include "store/dispatch.h"
#include "store/limits.h"
#include "store/question.h"
#include "store/rearming.h"
#include "store/recovery.h"
#include "transport/transport.h"

#define AR_LOOK_AGAIN_US		INT64CONST(100000)	/* due, but not to be had just now */
#define AR_LOOK_AT_WALL_EVERY_US	INT64CONST(30000000)	/* while something is due at an instant */
#define AR_LOOK_SOON_US			INT64CONST(20000)	/* not everything was looked at */
#define AR_SHORT_LOOK_US		INT64CONST(5000)	/* not worth saving */
#define AR_CLAIM_LIMIT			512
#define AR_SKIPPED_MAX			100
#define AR_SKIP_FOR_US			INT64CONST(60000000)
#define AR_MAKE_PARTITIONS_EVERY_US	INT64CONST(86400000000)
#define AR_MAKE_PARTITIONS_SOON_US	INT64CONST(1000000)	/* the history was in use */
#define AR_MAKE_PARTITIONS_LATER_US	INT64CONST(60000000)	/* there was no transaction, or an error */
#define AR_SAVE_CLOCK_EVERY_US	INT64CONST(10000000)

/* What the pages of an answer have shown so far, taken together. */
typedef struct ArFindings
{
	int			http_status;	/* of the last page; 0: none */
	int			pages;
	int			objects;
	int			rows;
	bool		answered;		/* all of them were */
	bool		body_trusted;
	bool		found_status;
	bool		absent_status;
	bool		shape_ok;
	const char *incomplete;		/* why not everything was seen, or NULL */
	int			matches;
	int			candidates;
	int			gone;
	char	   *ids[AR_MATCH_IDS];	/* distinct ones; those without an id are counted only */
	int			id_count;
	char	   *digest;
} ArFindings;

/* A question on its way: what has been seen, and where it goes on; inquiry.c. */
typedef struct ArInquiry
{
	ArFindings	seen;			/* about the action itself, without the last page */
	ArFindings	now;			/* with it */
	bool		on_canary;		/* the same about the canary */
	ArFindings	canary_seen;
	ArFindings	canary_now;
	bool		to_canary;		/* the canary comes next */
	char	   *asked_url;		/* of the last request */
	char	   *next_path;		/* of the next request, or */
	char	   *next_url;
	char	   *next_body;
} ArInquiry;

/* One transfer, from its claim to its record: a write or a lookup. */
typedef struct ArErrand
{
	dlist_node	node;			/* in open or ended */
	ArDispatch *dispatch;		/* a write, or */
	ArQuestion *question;		/* a lookup */
	ArExchange *exchange;		/* once ended; NULL if it could not be started */
	char	   *start_problem;	/* then why */
	int			rule_position;	/* of the response rule that decides; 0: the default map */
	ArAnswerClass ruled;		/* then what it says */
	bool		ruled_stored_reply;
	char	   *ruled_artifact_path;
	ArInquiry  *inquiry;		/* a question: what its pages have shown so far */
	bool		goes_on;		/* another page, or the canary, is to be asked for */
	int			record_failures;	/* times its result could not be stored */
	bool		unstored;		/* the database could not be written when it was tried */
	int64		retry_at_us;	/* monotonic; 0: at once */
} ArErrand;

/* A look that takes long is taken seldom. */
typedef struct ArLeisure
{
	bool		wanted;			/* there may be something to see, and it is too soon to look */
	int64		not_before_us;
} ArLeisure;

#define AR_PROVIDER_NAME	64
#define AR_RAMP_MAX			1000	/* no provider may have more in flight */

/* What there may be room for at a provider. */
typedef enum ArRoomKind
{
	AR_ROOM_TO_SEND,
	AR_ROOM_TO_RESEND,
	AR_ROOM_TO_ASK,
	AR_ROOM_TO_ASK_BEFORE_SEND,
	AR_ROOM_KINDS
} ArRoomKind;

struct ArEngine
{
	MemoryContext context;		/* lives as long as the engine */
	MemoryContext turn_context; /* reset at each turn */
	bool		in_call;
	bool		draining;
	bool		gone;			/* the extension has vanished */
	bool		look_for_work;	/* something may be due to be sent */
	bool		look_at_everything; /* and to be asked: not only room has been made */
	ArLeisure	dependents;		/* seeing who has all that it depends on */
	ArLeisure	keys;			/* seeing whose turn has come with its ordering key */
	bool		one_by_one;		/* a batch failed: record each result on its own */
	bool		nothing_due;
	ArTransport *transport;
	dlist_head	open;
	dlist_head	ended;
	int			open_writes;
	int			open_lookups;
	int			ended_count;
	int64		ended_since_us;	/* monotonic time of the oldest unrecorded result */
	/* limits */
	struct HTAB *paces;			/* by provider; NULL: none yet */
	ArProvider *providers;		/* as they were read in this turn */
	int			provider_count;
	char		last_served[AR_ROOM_KINDS][AR_PROVIDER_NAME];
	ArLeisure	beside_pauses;	/* looking past what waits of a paused operation */
	int64		limits_read_us;
	/* sending */
	bool		claim_one;		/* a claim failed: one at a time, to find the action at fault */
	pg_uuid_t	skipped[AR_SKIPPED_MAX];	/* actions that could not be claimed */
	int			skipped_count;
	int64		skipped_until_us;
	int64		epoch;
	int64		position;		/* of the last claim that has committed */
	bool		recovery_left;	/* something of an earlier epoch could not be recovered yet */
	bool		noted_left;		/* something that arm() noted could not be dealt with yet */
	ArPresumption presumption;
	const char *disarmed_because;	/* in context; NULL: armed */
	int			unchecked;		/* started writes that have not met the last-instant check */
	bool		check_open;		/* a transaction for the check is open */
	bool		check_broken;	/* it met an error: nothing more may leave in it */
	int			check_error;	/* then its SQLSTATE */
	pg_uuid_t  *checked;		/* actions locked by the check since the last libcurl call */
	int			checked_count;
	int			checked_size;
	/* time, monotonic */
	int64		look_at_us;		/* next due work; -1: none in sight */
	bool		gate_waited_for;	/* a gate opens later: the clock is to be kept */
	int64		clock_saved_us;
	int64		partitions_at_us;	/* when partitions are to be made next */
	int64		busy_until_us;	/* tables are locked: no transaction before */
	int			busy_count;
	char	   *stalled_because;	/* the database cannot be written, in context; or NULL */
	int64		stalled_until_us;	/* no transaction before */
	int			stall_count;
	ArEngineCounts counts;
};

/* gate.c: the last-instant check. None throws. */
extern ArSendDecision ar_gate_may_send(void *engine, void *errand);
extern void ar_gate_after_call(void *engine);
extern void ar_gate_drive(ArEngine *engine);

/* send.c: claiming and starting. Claiming needs an open engine transaction; may ereport. */
extern int	ar_send_claim(ArEngine *engine, ArDispatch ***dispatches);
extern int	ar_send_claim_resends(ArEngine *engine, ArDispatch ***dispatches);
extern bool ar_send_skip_next(ArEngine *engine);	/* in a transaction, after a claim of one failed */
extern void ar_send_start(ArEngine *engine, ArDispatch **dispatches, int count);

/* end.c: what the end of an attempt means. */
extern ArTransferClass ar_send_classify(const ArErrand *errand);
extern void ar_send_judge(ArErrand **errands, int count);	/* asks the operations' own rules; in a transaction */
extern void ar_send_describe_end(const ArErrand *errand, ArAttemptEnd *end);

extern int64 ar_send_asked_pause_us(const ArExchange *x);	/* what Retry-After says; -1: nothing */
extern bool ar_send_may_be_a_page(const ArExchange *x);	/* a gateway's page rather than the provider's own words */
extern void ar_send_degrade_end(const ArErrand *errand, ArAttemptEnd *end);	/* it cannot be stored as it is */

/* request.c: ends the errand at once if its request cannot be started. */
extern void ar_request_start(ArEngine *engine, ArErrand *errand, ArRequest *request,
							 char **strings, int count, const char *credential_name);

/* inquiry.c: lookups and polls, page by page. */
extern int	ar_ask_claim(ArEngine *engine, ArQuestion ***questions);
extern void ar_ask_start(ArEngine *engine, ArQuestion **questions, int count);
extern void ar_ask_read(ArErrand *errand);	/* fills "now", sets goes_on; in a transaction */
extern void ar_ask_go_on(ArEngine *engine, ArErrand *errand);

/* ask.c: what the whole answer means; in a transaction. */
extern void ar_ask_describe_answer(const ArErrand *errand, ArAnswer *answer);
extern void ar_ask_degrade_answer(const ArErrand *errand, ArAnswer *answer);	/* it cannot be stored as it is */

/* record.c: putting results into the database. */
extern bool ar_record_is_due(const ArEngine *engine);
extern int	ar_record_ready(ArEngine *engine, ArErrand ***errands);
extern void ar_record_batch(ArEngine *engine, ArErrand **errands, int count, bool *done);	/* in the open transaction */
extern void ar_record_committed(ArEngine *engine, ArErrand **errands, int count, const bool *done);
extern void ar_record_one_by_one(ArEngine *engine); /* in transactions of its own */
extern void ar_record_stalled(ArErrand **errands, int count);

/* errand.c: the two lists. */
extern ArErrand *ar_errand_begin(ArEngine *engine, ArDispatch *dispatch, ArQuestion *question);
extern void ar_errand_end(ArEngine *engine, ArErrand *errand, ArExchange *exchange, const char *start_problem);
extern void ar_errand_reopen(ArEngine *engine, ArErrand *errand);
extern void ar_errand_free(ArEngine *engine, ArErrand *errand);

/*
 * limits.c: in a transaction; may ereport.  Reading them begins a look; what is
 * then taken leaves the less room.
 */
extern void ar_limits_read(ArEngine *engine);
extern int	ar_limits_rooms(ArEngine *engine, ArRoomKind kind, ArProviderRoom **rooms);
extern void ar_limits_take(ArEngine *engine, ArRoomKind kind, const char *provider);
extern int	ar_limits_waits(ArEngine *engine, ArProviderWaits **waits);
extern void ar_limits_end_look(ArEngine *engine);
extern void ar_limits_note(ArEngine *engine, ArErrand **errands, const ArAttemptEnd *ends, int count);

/* stall.c: a database that cannot be written, for now. */
extern bool ar_engine_stalls_on(int code);
extern void ar_engine_stall(ArEngine *engine, const ErrorData *error);
extern void ar_engine_stall_may_end(ArEngine *engine);
extern bool ar_engine_may_look(const ArEngine *engine);
extern int64 ar_engine_not_before_us(const ArEngine *engine);	/* no transaction will be had sooner */

/* armed.c: may this engine send? The first three in an open engine transaction; may ereport. */
extern bool ar_armed_look(ArEngine *engine, int64 *new_epoch);
extern void ar_armed_recover(ArEngine *engine, int64 epoch);
extern bool ar_armed_presume(ArEngine *engine); /* false: it goes on in the next turn */
extern bool ar_armed_enter(ArEngine *engine, int64 epoch);
extern void ar_armed_keep(ArEngine *engine, int64 now);
extern void ar_armed_leave(ArEngine *engine);

/* engine.c */
extern bool ar_engine_begin(ArEngine *engine);	/* false: not now */
extern bool ar_engine_in_transaction(ArEngine *engine, void (*work) (void));	/* its errors are logged; false: not done */
extern void ar_engine_look_soon(ArEngine *engine);	/* at everything, whatever was planned */
extern void ar_engine_swallow_error(ArEngine *engine);	/* in a PG_CATCH: log it, roll back; rethrows a cancel */

#endif							/* AR_ENGINE_INTERNAL_H */
