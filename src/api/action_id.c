/*
 * action_id.c
 *		Time-ordered uuids: version 7, made here because 15 and 17 have none.
 *
 * The first 48 bits are milliseconds since 1970, so that ids of neighbours in
 * time are neighbours in the index; the next 12 bits are parts of the
 * millisecond, so that what is submitted after something else has the higher
 * id; the rest is random.  A session's ids ascend whatever the clock does.
 * Nothing is decided by the time but whose turn comes first.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "store/clock.h"
#include "store/engine_lock.h"

PG_FUNCTION_INFO_V1(ar_new_action_id);
PG_FUNCTION_INFO_V1(ar_lock_ordering_key);

#define UNIX_TO_POSTGRES_US \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

static pg_uuid_t last_id;

/* The time of this process's last id, in 4096ths of a millisecond. */
static uint64 last_ticks = 0;

Datum
ar_new_action_id(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	uint64		microseconds = (uint64) (ar_wall_now() + UNIX_TO_POSTGRES_US);
	uint64		ticks = (microseconds / 1000) << 12 | (microseconds % 1000) * 4096 / 1000;

	if (ticks <= last_ticks)
		ticks = last_ticks + 1;
	last_ticks = ticks;
	if (!pg_strong_random(id->data + 8, UUID_LEN - 8))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0; i < 6; i++)
		id->data[i] = (unsigned char) (ticks >> (12 + 8 * (5 - i)));
	id->data[6] = (unsigned char) (0x70 | (ticks >> 8 & 0x0f));
	id->data[7] = (unsigned char) ticks;
	id->data[8] = (id->data[8] & 0x3f) | 0x80;
	last_id = *id;
	PG_RETURN_UUID_P(id);
}

/*
 * Waits until nobody else submits with the ordering key.  True if the id is
 * the last one that was made here, so that nobody knows it yet.
 */
Datum
ar_lock_ordering_key(PG_FUNCTION_ARGS)
{
	ar_ordering_lock(NameStr(*PG_GETARG_NAME(0)), text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_BOOL(memcmp(PG_GETARG_UUID_P(2), &last_id, sizeof(last_id)) == 0);
}
