/*
 * digest.h
 *		SHA-256 by the server's own cryptohash facility.
 */
#ifndef AR_DIGEST_H
#define AR_DIGEST_H

#include "common/sha2.h"

#define AR_DIGEST_LENGTH	PG_SHA256_DIGEST_LENGTH

/*
 * Hash one stretch of bytes. May ereport. Needs a resource owner, hence a
 * transaction: without one the server's cryptohash code crashes.
 */
extern void ar_sha256(const void *data, size_t length, uint8 digest[AR_DIGEST_LENGTH]);

#endif							/* AR_DIGEST_H */
