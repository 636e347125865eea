/*
 * action_reconcile.c
 *		Loading the library: calls the parts' own set-up, and nothing else.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "settings.h"
#include "worker/shmem.h"
#include "worker/wake.h"
#include "worker/worker.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	/* pg_upgrade runs the server with our library and must not be disturbed. */
	if (IsBinaryUpgrade)
		return;
	ar_settings_init();
	ar_wake_init();
	if (process_shared_preload_libraries_in_progress)
	{
		ar_shmem_init();
		ar_launcher_register();
	}
}
