/*
 * hmac_sha256.h
 *		SHA-256 (FIPS 180-4) and HMAC (RFC 2104) for unit tests, which run
 *		without the server's.  Straightforward, and not for anything else.
 */
#ifndef AR_TEST_HMAC_SHA256_H
#define AR_TEST_HMAC_SHA256_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TEST_SHA256_BYTES 32

static uint32_t
test_rotate(uint32_t value, int by)
{
	return value >> by | value << (32 - by);
}

/* The first 32 bits of the fraction of a root of the n-th prime: 2 square, 3 cube. */
static uint32_t
test_root(int n, int degree)
{
	int			prime = 1;
	uint64_t	root = 0;

	for (int found = -1; found < n;)
	{
		int			divisor = 2;

		prime++;
		while (divisor * divisor <= prime && prime % divisor != 0)
			divisor++;
		if (divisor * divisor > prime)
			found++;
	}
	for (uint64_t bit = UINT64_C(1) << 37; bit > 0; bit >>= 1)
	{
		unsigned __int128 tried = root | bit;
		unsigned __int128 power = degree == 2 ? tried * tried : tried * tried * tried;

		if (power <= (unsigned __int128) prime << 32 * degree)
			root |= bit;
	}
	return (uint32_t) root;
}

/* The constants of the rounds. */
static uint32_t
test_round(int n)
{
	static uint32_t known[64];

	if (known[n] == 0)
		known[n] = test_root(n, 3);
	return known[n];
}

static void
test_sha256_block(uint32_t state[8], const uint8_t *block)
{
	uint32_t	w[64];
	uint32_t	v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t) block[4 * i] << 24 | (uint32_t) block[4 * i + 1] << 16 | (uint32_t) block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (test_rotate(w[i - 15], 7) ^ test_rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
			(test_rotate(w[i - 2], 17) ^ test_rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (int i = 0; i < 64; i++)
	{
		uint32_t	first = v[7] + (test_rotate(v[4], 6) ^ test_rotate(v[4], 11) ^ test_rotate(v[4], 25)) +
			((v[4] & v[5]) ^ (~v[4] & v[6])) + test_round(i) + w[i];
		uint32_t	second = (test_rotate(v[0], 2) ^ test_rotate(v[0], 13) ^ test_rotate(v[0], 22)) +
			((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += first;
		v[0] = first + second;
	}
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

static void
test_sha256(const uint8_t *data, size_t length, uint8_t digest[TEST_SHA256_BYTES])
{
	size_t		padded = (length + 8) / 64 * 64 + 64;
	uint8_t    *copy = calloc(1, padded);
	uint32_t	state[8];

	memcpy(copy, data, length);
	copy[length] = 0x80;
	for (int i = 0; i < 8; i++)
		copy[padded - 1 - i] = (uint8_t) ((uint64_t) length * 8 >> 8 * i);
	for (int i = 0; i < 8; i++)
		state[i] = test_root(i, 2);
	for (size_t at = 0; at < padded; at += 64)
		test_sha256_block(state, copy + at);
	for (int i = 0; i < TEST_SHA256_BYTES; i++)
		digest[i] = (uint8_t) (state[i / 4] >> (24 - 8 * (i % 4)));
	free(copy);
}

static void
test_hmac_sha256(const uint8_t *key, size_t key_length, const uint8_t *data, size_t length, uint8_t mac[TEST_SHA256_BYTES])
{
	uint8_t		block[64] = {0};
	uint8_t    *inner = malloc(64 + length);
	uint8_t		outer[64 + TEST_SHA256_BYTES];

	if (key_length > sizeof(block))
		test_sha256(key, key_length, block);
	else
		memcpy(block, key, key_length);
	for (int i = 0; i < 64; i++)
	{
		inner[i] = block[i] ^ 0x36;
		outer[i] = block[i] ^ 0x5c;
	}
	memcpy(inner + 64, data, length);
	test_sha256(inner, 64 + length, outer + 64);
	test_sha256(outer, sizeof(outer), mac);
	free(inner);
}

#endif							/* AR_TEST_HMAC_SHA256_H */
