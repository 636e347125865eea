/*
 * wall.h
 *		When the wall clock is set back.
 */
#ifndef AR_WALL_H
#define AR_WALL_H

#include "postgres.h"

/*
 * To be called before what is due is looked for: if the wall clock was set
 * back, what is queued is not left to wait until it has caught up.  Needs an
 * open engine transaction. May ereport.
 */
extern void ar_store_follow_wall(void);

#endif							/* AR_WALL_H */
