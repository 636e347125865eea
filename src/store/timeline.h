/*
 * timeline.h
 *		How a timeline of the server began.
 */
#ifndef AR_TIMELINE_H
#define AR_TIMELINE_H

#include "postgres.h"

#include "access/xlogdefs.h"

/*
 * The words in which the server has put down why this timeline branched off
 * from the other one; palloc'ed. NULL if it did not, or that cannot be read.
 * No transaction needed.
 */
extern char *ar_timeline_reason(TimeLineID timeline, TimeLineID parent);

/*
 * Are those the words for a promotion?  They are the same for an archive
 * recovery that went on to the end of the WAL.
 */
extern bool ar_timeline_is_promotion(const char *reason);

#endif							/* AR_TIMELINE_H */
