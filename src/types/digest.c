/*
 * digest.c
 *		SHA-256 by the server's own cryptohash facility.
 */
#include "postgres.h"

#include "common/cryptohash.h"
#include "utils/resowner.h"

#include "types/digest.h"

void
ar_sha256(const void *data, size_t length, uint8 digest[AR_DIGEST_LENGTH])
{
	pg_cryptohash_ctx *context;

	Assert(CurrentResourceOwner != NULL);
	context = pg_cryptohash_create(PG_SHA256);
	if (context == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	if (pg_cryptohash_init(context) < 0 ||
		pg_cryptohash_update(context, data, length) < 0 ||
		pg_cryptohash_final(context, digest, AR_DIGEST_LENGTH) < 0)
		elog(ERROR, "could not compute SHA-256: %s", pg_cryptohash_error(context));
	pg_cryptohash_free(context);
}
