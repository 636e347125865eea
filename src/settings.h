/*
 * settings.h
 *		The configuration parameters, defined once in settings.c.
 */
#ifndef AR_SETTINGS_H
#define AR_SETTINGS_H

#include <stdbool.h>

typedef enum ArFailoverPolicy
{
	AR_FAILOVER_HOLD,
	AR_FAILOVER_AUTO
} ArFailoverPolicy;

extern char *ar_setting_arming_dir;
extern char *ar_setting_databases;
extern char *ar_setting_credential_dir;
extern char *ar_setting_allowed_hosts;
extern int	ar_setting_drain_timeout_ms;
extern int	ar_setting_failover_policy;
#ifdef AR_FAULT_POINTS
extern char *ar_setting_fault_point;
#endif

/* Define them. Called from _PG_init only; may ereport. */
extern void ar_settings_init(void);

#endif							/* AR_SETTINGS_H */
