/*
 * action_id.c
 *		Time-ordered uuids: version 7, made here because 15 and 17 have none.
 *
 * The first 48 bits are milliseconds since 1970, so that ids of neighbours in
 * time are neighbours in the index; the rest is random.  The time is only an
 * ordering hint, nothing is decided by it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "store/clock.h"

PG_FUNCTION_INFO_V1(ar_new_action_id);

#define UNIX_TO_POSTGRES_US \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

Datum
ar_new_action_id(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	uint64		milliseconds = (uint64) ((ar_wall_now() + UNIX_TO_POSTGRES_US) / 1000);

	if (!pg_strong_random(id->data + 6, UUID_LEN - 6))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	for (int i = 0; i < 6; i++)
		id->data[i] = (unsigned char) (milliseconds >> (8 * (5 - i)));
	id->data[6] = (id->data[6] & 0x0f) | 0x70;
	id->data[8] = (id->data[8] & 0x3f) | 0x80;
	PG_RETURN_UUID_P(id);
}
