/*
 * fault.c
 *		Named points at which a test stops the engine, to kill it just there.
 */
#include "postgres.h"

#include "engine/fault.h"

#ifdef AR_FAULT_POINTS

#include <unistd.h>

#include "storage/pmsignal.h"

#include "settings.h"

/*
 * Stands still until somebody kills this process or the postmaster is gone.
 * Signals may be blocked here, and with them the one that tells of that.
 */
void
ar_fault_point(const char *name)
{
	if (ar_setting_fault_point == NULL || strcmp(ar_setting_fault_point, name) != 0)
		return;
	ereport(LOG, (errmsg("fault point \"%s\" reached", name)));
	while (PostmasterIsAliveInternal())
		pg_usleep(20000);
	_exit(1);
}

#endif							/* AR_FAULT_POINTS */
