/*
 * armed.c
 *		May this engine send?  Beginning a new epoch, and keeping the token file.
 */
#include "engine/engine_internal.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "settings.h"
#include "store/arming.h"
#include "store/clock.h"
#include "store/recovery.h"
#include "store/tx.h"

static void
set_disarmed(ArEngine *engine, const char *because)
{
	bool		was_armed = engine->disarmed_because == NULL;

	if (because != NULL && !was_armed && strcmp(because, engine->disarmed_because) == 0)
		return;
	if (because != NULL)
		ereport(LOG,
				(errmsg("this database (OID %u) sends nothing: %s", MyDatabaseId, because),
				 errhint("If this is the database that is to act, call reconcile.arm(reason).")));
	engine->disarmed_because = because ? MemoryContextStrdup(engine->context, because) : NULL;
}

/* What earlier engines left open; a row that somebody holds is met again at a later look. */
void
ar_armed_recover(ArEngine *engine, int64 epoch)
{
	int			recovered = ar_store_recover(epoch, &engine->recovery_left);

	if (recovered > 0)
		ereport(LOG,
				(errmsg("%d attempts were found open and are outcome_unknown", recovered),
				 errdetail("The engine that sent them is gone. They are looked up when their gates open.")));
}

/* A promoted standby arms itself where it is told to. If it is told to and cannot, *problem says why, too. */
static bool
take_over_promoted(const char **problem)
{
	const char *obstacle = NULL;

	if (ar_setting_failover_policy != AR_FAILOVER_AUTO)
		return false;
	if (ar_arming_take_over(&obstacle))
	{
		ereport(LOG,
				(errmsg("this database (OID %u) has armed itself after a promotion", MyDatabaseId),
				 errdetail("action_reconcile.failover_policy is auto.")));
		return true;
	}
	if (obstacle != NULL)
		*problem = psprintf("%s; it does not arm itself: %s", *problem, obstacle);
	return false;
}

/*
 * May anything be sent or asked?  In the open transaction.  A new arming, or
 * the first look of this engine, begins a new epoch: then the answer is "not
 * in this transaction", and *new_epoch is to be entered after it.
 * What a restore has brought since is taken into account with it: a clock
 * that is further on, attempts that were open when the copy was made.
 */
bool
ar_armed_look(ArEngine *engine, int64 *new_epoch)
{
	int64		epoch;
	const char *problem = ar_arming_problem(&epoch);

	*new_epoch = 0;
	if (problem != NULL && take_over_promoted(&problem))
	{
		ar_engine_wake(engine);
		return false;
	}
	if (problem != NULL)
	{
		set_disarmed(engine, problem);
		return false;
	}
	if (epoch == engine->epoch)
	{
		set_disarmed(engine, NULL);
		return true;
	}
	/* What is still open belongs to the epoch before. */
	if (!ar_engine_is_idle(engine) || (*new_epoch = ar_arming_advance()) == 0)
	{
		engine->look_at_us = ar_monotonic_us() + AR_LOOK_AGAIN_US;
		return false;
	}
	ar_store_clock_own();
	ar_armed_recover(engine, *new_epoch);
	return false;
}

/* The new epoch has been committed. True: this engine may send from now on. */
bool
ar_armed_enter(ArEngine *engine, int64 epoch)
{
	const char *problem = ar_arming_advance_file(epoch);

	if (problem != NULL)
	{
		set_disarmed(engine, problem);
		engine->look_for_work = false;
		engine->look_at_us = ar_monotonic_us() + 10 * AR_LOOK_AGAIN_US;
		return false;
	}
	engine->epoch = epoch;
	set_disarmed(engine, NULL);
	ar_arming_forget_others();
	return true;
}

/*
 * What was noted when the database was armed anew comes before everything
 * else, in batches.  False: there is more of it, and nothing is to be sent in
 * this turn.  What somebody holds is met again; none of it is claimed meanwhile.
 */
bool
ar_armed_presume(ArEngine *engine)
{
	ArPresumption *round = &engine->presumption;

	engine->noted_left = ar_store_any_noted();
	if (!engine->noted_left)
		return true;
	ar_store_presume(engine->epoch, round);
	if (round->goes_on)
		return false;
	engine->noted_left = ar_store_any_noted();
	if (round->count > 0)
		ereport(LOG,
				(errmsg("%d actions may have been sent by another copy of this database", round->count),
				 errdetail("They were recorded before it was armed. They are looked up first; what cannot be looked up is in manual_review.")));
	round->count = 0;
	return true;
}

/*
 * While something is open or a gate is waited for, the clock and the token file
 * are kept: the one so that a restart loses little time, the other so that a
 * data directory that is set back is noticed.
 */
void
ar_armed_keep(ArEngine *engine, int64 now)
{
	bool		needed = engine->gate_waited_for || !ar_engine_is_idle(engine);

	if (!needed || now - engine->clock_saved_us < AR_SAVE_CLOCK_EVERY_US || now < ar_engine_not_before_us(engine))
		return;
	engine->clock_saved_us = now;
	if (ar_engine_in_transaction(engine, ar_store_clock_save) && engine->disarmed_because == NULL)
	{
		const char *problem = ar_arming_advance_file(engine->epoch);

		if (problem != NULL)
			set_disarmed(engine, problem);
	}
}

static int64 last_position;

static void
count_stop(void)
{
	last_position = ar_arming_count_claim();
}

/* What is set back to before a stop is noticed by it, also if nothing was sent since: a withdrawal may be lost. */
void
ar_armed_leave(ArEngine *engine)
{
	const char *problem;

	if (engine->disarmed_because != NULL || engine->gone || !ar_engine_in_transaction(engine, count_stop))
		return;
	problem = ar_arming_mark(last_position);
	if (problem != NULL)
		ereport(LOG, (errmsg("the token file is not advanced: %s", problem)));
}
