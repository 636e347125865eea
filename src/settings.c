/*
 * settings.c
 *		The configuration parameters.
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/varlena.h"

#include "core/host_list.h"
#include "settings.h"

char	   *ar_setting_arming_dir = NULL;
char	   *ar_setting_databases = NULL;
char	   *ar_setting_credential_dir = NULL;
char	   *ar_setting_allowed_hosts = NULL;
int			ar_setting_drain_timeout_ms = 3000;
int			ar_setting_failover_policy = AR_FAILOVER_HOLD;
#ifdef AR_FAULT_POINTS
char	   *ar_setting_fault_point = NULL;
#endif
static bool joining = false;

static const struct config_enum_entry failover_policies[] = {
	{"hold", AR_FAILOVER_HOLD, false},
	{"auto", AR_FAILOVER_AUTO, false},
	{NULL, 0, false}
};

/* A list that cannot be read must not look like an empty one, and send every worker away. */
static bool
check_databases(char **value, void **extra, GucSource source)
{
	List	   *names;

	if (SplitIdentifierString(pstrdup(*value), ',', &names))
		return true;
	GUC_check_errdetail("List syntax is invalid.");
	return false;
}

static bool
check_allowed_hosts(char **value, void **extra, GucSource source)
{
	if (ar_host_list_is_valid(*value))
		return true;
	GUC_check_errdetail("It is a list of host names, each whole or as *.example.org, without scheme, port or path.");
	return false;
}

void
ar_settings_init(void)
{
	DefineCustomStringVariable("action_reconcile.allowed_hosts",
							   "Hosts that providers may be at.",
							   "Names with commas between them; *.example.org stands for every name below example.org. Empty: all whose addresses are public.",
							   &ar_setting_allowed_hosts, "", PGC_SIGHUP, 0, check_allowed_hosts, NULL, NULL);
	DefineCustomStringVariable("action_reconcile.arming_dir",
							   "Directory outside the data directory that holds the arming token.",
							   "Without it, or without the token in it, a database sends nothing. It must belong to the server's user and be closed to others.",
							   &ar_setting_arming_dir, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomStringVariable("action_reconcile.credential_dir",
							   "Directory that holds the credentials of the providers.",
							   "Each is a file whose first line stands for {credential} in request headers. Directory and files must belong to the server's user and be closed to others.",
							   &ar_setting_credential_dir, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomStringVariable("action_reconcile.databases",
							   "Databases that get a worker if they have the extension.",
							   "A comma-separated list of names, or * for all.",
							   &ar_setting_databases, "*", PGC_SIGHUP, 0, check_databases, NULL, NULL);
	DefineCustomIntVariable("action_reconcile.drain_timeout",
							"How long a stopping engine waits for the answers to what it has sent.",
							"What is still open then becomes outcome_unknown.",
							&ar_setting_drain_timeout_ms, 3000, 0, 60000, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomEnumVariable("action_reconcile.failover_policy",
							 "What a standby that is promoted does: hold, it waits for arm(); auto, it arms itself if it has a token.",
							 "Only where somebody has put a token file for a standby. What it holds is looked up before it is sent, as after arm().",
							 &ar_setting_failover_policy, AR_FAILOVER_HOLD, failover_policies, PGC_SIGHUP, 0, NULL, NULL, NULL);
	/* Set by submit() only: it looks for an equal intent itself. */
	DefineCustomBoolVariable("action_reconcile.joining",
							 "Internal to reconcile.submit().",
							 NULL, &joining, false, PGC_USERSET, GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
#ifdef AR_FAULT_POINTS
	DefineCustomStringVariable("action_reconcile.fault_point",
							   "Test builds only: the named point at which the engine stops until it is killed.",
							   NULL, &ar_setting_fault_point, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
#endif
	MarkGUCPrefixReserved("action_reconcile");
}
