/*
 * key.c
 *		SQL-callable: is an idempotency key alive?
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/elapsed.h"
#include "core/capability.h"
#include "core/key.h"

PG_FUNCTION_INFO_V1(ar_key_is_alive_sql);

Datum
ar_key_is_alive_sql(PG_FUNCTION_ARGS)
{
	ArCapabilities can = {0};
	int64		age_us;
	ArKeyMoment first;
	ArKeyMoment now;

	for (int i = 0; i < 9; i++)
	{
		if (PG_ARGISNULL(i))
			PG_RETURN_BOOL(false);
	}
	can.takes_key = true;
	can.key_lifetime_us = ar_elapsed_us(PG_GETARG_INTERVAL_P(0));
	can.key_margin_us = ar_elapsed_us(PG_GETARG_INTERVAL_P(1));
	first.wall_us = PG_GETARG_TIMESTAMPTZ(3);
	first.boot_us = PG_GETARG_INT64(4);
	first.boot = text_to_cstring(PG_GETARG_TEXT_PP(5));
	now.wall_us = PG_GETARG_TIMESTAMPTZ(6);
	now.boot_us = PG_GETARG_INT64(7);
	now.boot = text_to_cstring(PG_GETARG_TEXT_PP(8));
	/* No clock says "for ever". */
	if (TIMESTAMP_NOT_FINITE(first.wall_us) || TIMESTAMP_NOT_FINITE(now.wall_us))
		PG_RETURN_BOOL(false);
	age_us = ar_key_age_us(&first, &now, PG_ARGISNULL(9) ? PG_INT64_MIN : PG_GETARG_TIMESTAMPTZ(9));
	PG_RETURN_BOOL(ar_key_is_alive(&can, age_us, PG_GETARG_INT64(2)));
}
