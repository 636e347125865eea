/*
 * manners.h
 *		Making room for statements about databases, extensions and settings.
 */
#ifndef AR_MANNERS_H
#define AR_MANNERS_H

#include "postgres.h"

/* Once per backend: hooks on utility statements and on the creation and dropping of objects. */
extern void ar_manners_init(void);

/*
 * At the end of each transaction, with shared memory: tell launcher and workers
 * what it has changed, if it has committed. True: this database's worker is to look.
 */
extern bool ar_manners_at_end(bool committed);

#endif							/* AR_MANNERS_H */
