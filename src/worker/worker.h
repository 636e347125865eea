/*
 * worker.h
 *		The background processes.
 */
#ifndef AR_WORKER_H
#define AR_WORKER_H

#include "postgres.h"

/* In _PG_init under shared_preload_libraries. */
extern void ar_launcher_register(void);

extern PGDLLEXPORT void ar_launcher_main(Datum argument);
extern PGDLLEXPORT void ar_worker_main(Datum argument);

#endif							/* AR_WORKER_H */
