/*
 * wall.c
 *		When the wall clock is set back.
 *
 * What is queued is due at an instant of the wall clock.  If that is set back,
 * what was due, or nearly, would be due only when the clock has caught up,
 * which may be a year.  So pauses that no rule could have asked for are
 * shortened to the longest one that could; a caller's not_before stays.
 */
#include "store/wall.h"

#include "catalog/pg_type.h"
#include "utils/timestamp.h"

#include "store/clock.h"
#include "store/statement.h"

#define NOTICED_FROM_US	INT64CONST(1000000)
#define AT_ONCE			10000

static TimestampTz latest_reading = 0;
static bool any_left = false;

static ArStatement stored_statement = {
	"SELECT max(c.wall_at) > $1 FROM reconcile.clock c", 1, {TIMESTAMPTZOID}
};

static ArStatement shorten_statement = {
	"UPDATE reconcile.action a SET due_at = d.due_at FROM ("
	" SELECT x.action_id, greatest(x.not_before, $1 + w.longest) AS due_at"
	" FROM reconcile.provider p"
	" JOIN reconcile.action x ON x.provider = p.provider AND x.state = 'planned'"
	" JOIN reconcile.operation o ON o.operation = x.operation"
	" CROSS JOIN LATERAL (SELECT CASE WHEN x.attempts = 0 THEN interval '0' ELSE"
	"  greatest(extract(epoch FROM o.retry_pause_max), extract(epoch FROM o.retry_after_max)) * interval '1 second' END AS longest) w"
	" WHERE x.due_at > greatest(x.not_before, $1 + w.longest)"
	" LIMIT $2 FOR NO KEY UPDATE OF x SKIP LOCKED) d WHERE a.action_id = d.action_id",
	2, {TIMESTAMPTZOID, INT4OID}
};

/* In this process, or since the clock was stored last. */
static bool
was_set_back(TimestampTz now)
{
	Datum		values[1] = {TimestampTzGetDatum(now)};

	if (latest_reading != 0)
		return now < latest_reading - NOTICED_FROM_US;
	return ar_statement_run(&stored_statement, values, NULL) == 1 && ar_result_bool(0, 1);
}

void
ar_store_follow_wall(void)
{
	TimestampTz now = ar_wall_now();
	Datum		values[2] = {TimestampTzGetDatum(now), Int32GetDatum(AT_ONCE)};

	if (was_set_back(now) || any_left)
		any_left = ar_statement_run(&shorten_statement, values, NULL) == AT_ONCE;
	latest_reading = now;
}
