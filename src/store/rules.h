/*
 * rules.h
 *		What an operation's own rules say about answers.
 */
#ifndef AR_RULES_H
#define AR_RULES_H

#include "postgres.h"

#include "core/outcome.h"

/* One answer to be judged, and the verdict. */
typedef struct ArRuling
{
	const char *operation;
	int			http_status;
	const char *body;			/* NULL if it cannot be trusted as text */
	const char *headers;		/* JSON text: {"name": "value", ...} */
	bool		resend;			/* the answer to the very same request sent again */
	int			position;		/* of the rule that decides; 0: none does */
	ArAnswerClass answer;		/* then what it says */
	bool		stored_reply;	/* and whether it speaks for the earlier attempts too */
	char	   *artifact_path;	/* and where the id is, or NULL: where it always is */
} ArRuling;

/* Judge answers in one statement. Needs an open engine transaction. May ereport. */
extern void ar_store_judge(ArRuling *rulings, int count);

#endif							/* AR_RULES_H */
