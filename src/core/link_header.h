/*
 * link_header.h
 *		Where a Link header (RFC 8288) says that a list goes on.
 */
#ifndef AR_LINK_HEADER_H
#define AR_LINK_HEADER_H

#include <stddef.h>

/* A longer header is not read. */
#define AR_LINK_HEADER_MAX_BYTES ((size_t) 16384)

typedef enum ArLinkResult
{
	AR_LINK_NEXT,				/* there is one link to the next page */
	AR_LINK_NONE,				/* read to its end: there is none */
	AR_LINK_UNREADABLE			/* there is no telling: the list may go on, or not */
} ArLinkResult;

typedef struct ArLinkTarget
{
	const char *start;			/* in the header, as it stands there: it may be relative */
	size_t		length;
} ArLinkTarget;

/*
 * Finds the target of rel="next".  Whoever takes the end of a list for proof of
 * something must not take AR_LINK_UNREADABLE for it: that is returned for
 * whatever is not in the grammar, for two different next pages, for a target
 * that is empty or has white space in it, and for a next page of something else
 * (anchor).  *target is set for AR_LINK_NEXT only.  Pure; never throws, needs
 * no transaction.
 */
extern ArLinkResult ar_link_header_next(const char *value, size_t length, ArLinkTarget *target);

#endif							/* AR_LINK_HEADER_H */
