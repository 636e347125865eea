/*
 * webhook.h
 *		Whether what came in unasked was signed with a shared secret.
 *
 * Each scheme is a form: where the signatures stand in their header, how they
 * are written, and which text they sign.  All of them are HMAC-SHA256.
 */
#ifndef AR_WEBHOOK_H
#define AR_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AR_WEBHOOK_MAC_BYTES 32

/* Of more signatures in a header, or secrets in a line, only the first so many are looked at. */
#define AR_WEBHOOK_MAX_SIGNATURES 32
#define AR_WEBHOOK_MAX_SECRETS 16

/* A text that is signed has no more parts than that. */
#define AR_WEBHOOK_MAX_PARTS 9

/* A stretch of bytes, somebody else's; start is NULL if there is none. */
typedef struct ArSpan
{
	const char *start;
	size_t		length;
} ArSpan;

typedef enum ArWebhookEncoding
{
	AR_WEBHOOK_HEX,				/* in either case */
	AR_WEBHOOK_BASE64			/* with its padding */
} ArWebhookEncoding;

typedef struct ArWebhookForm
{
	const char *separators;		/* bytes between the parts of the header */
	const char *prefix;			/* what each signature begins with; other parts are passed over */
	const char *timestamp_prefix;	/* the part of the header that holds the timestamp; NULL: a header of its own */
	const char *signed_text;	/* with {id}, {timestamp} and {body} */
	ArWebhookEncoding encoding;
	bool		encoded_secrets;	/* base64 behind whsec_, as Standard Webhooks writes them */
} ArWebhookForm;

/* The forms that need no description. */
extern const ArWebhookForm ar_webhook_standard;
extern const ArWebhookForm ar_webhook_stripe;
extern const ArWebhookForm ar_webhook_github;

typedef enum ArWebhookResult
{
	AR_WEBHOOK_VALID,
	AR_WEBHOOK_NO_SIGNATURE,	/* no header, or none in it that could be compared */
	AR_WEBHOOK_NO_ID,			/* the form signs an id, and there is none */
	AR_WEBHOOK_NO_TIMESTAMP,	/* the form signs a timestamp, and there is none that can be read */
	AR_WEBHOOK_WRONG,			/* signed with another secret, or changed since */
	AR_WEBHOOK_NO_SECRET,		/* there is no secret that could be used */
	AR_WEBHOOK_TOO_OLD,			/* rightly signed, too long ago */
	AR_WEBHOOK_TOO_NEW,			/* rightly signed, by a clock that is ahead */
	AR_WEBHOOK_BAD_FORM,		/* the text to be signed makes no sense */
	AR_WEBHOOK_FAILED			/* the HMAC could not be computed */
} ArWebhookResult;

/* HMAC-SHA256 of the parts one after another; false if it cannot be had. */
typedef bool (*ArWebhookHmac) (const uint8_t *key, size_t key_length, const ArSpan *parts, int count,
							   uint8_t mac[AR_WEBHOOK_MAC_BYTES]);

typedef struct ArWebhook
{
	const ArWebhookForm *form;
	const ArSpan *secrets;
	int			secret_count;
	ArSpan		signatures;		/* the header that holds them */
	ArSpan		timestamp;		/* the header, where the form has one */
	ArSpan		id;
	ArSpan		body;			/* exactly as it was received */
	int64_t		now;			/* seconds since 1970 */
	int64_t		tolerance;		/* seconds, both ways */
	ArWebhookHmac hmac;
} ArWebhook;

/*
 * Compares every signature with that of every secret, in a time that does not
 * tell how far any of them was right.  What is computed on the way is wiped.
 * Needs no allocation and no clock; never throws, unless hmac does.
 */
extern ArWebhookResult ar_webhook_verify(const ArWebhook *webhook);

/* The secrets of a line, which blanks stand between; returns how many.  Pure, never throws. */
extern int	ar_webhook_split_secrets(const char *line, ArSpan secrets[AR_WEBHOOK_MAX_SECRETS]);

/* Seconds since 1970; values beyond the year 5000 are milliseconds. -1 unless it is a number.  Pure, never throws. */
extern int64_t ar_webhook_timestamp(ArSpan text);

/* Whether a text can be signed: {body} once, {id} and {timestamp} at most once.  Pure, never throws. */
extern bool ar_webhook_signed_text_is_valid(const char *signed_text);

#endif							/* AR_WEBHOOK_H */
