/*
 * webhook.c
 *		Whether what came in unasked was signed with a shared secret.
 *
 * Nothing in this file throws, allocates or needs a transaction.
 */
#include "core/webhook.h"

#include <string.h>

#define MAX_SECRET_BYTES 1024
#define SECRET_PREFIX "whsec_"
#define MILLISECONDS_FROM INT64_C(100000000000)

const ArWebhookForm ar_webhook_standard = {
	.separators = " ", .prefix = "v1,", .signed_text = "{id}.{timestamp}.{body}",
	.encoding = AR_WEBHOOK_BASE64, .encoded_secrets = true
};

const ArWebhookForm ar_webhook_stripe = {
	.separators = ", ", .prefix = "v1=", .timestamp_prefix = "t=", .signed_text = "{timestamp}.{body}",
	.encoding = AR_WEBHOOK_HEX
};

const ArWebhookForm ar_webhook_github = {
	.separators = ", ", .prefix = "sha256=", .signed_text = "{body}", .encoding = AR_WEBHOOK_HEX
};

/* What the header of signatures holds. */
typedef struct Claims
{
	uint8_t		macs[AR_WEBHOOK_MAX_SIGNATURES][AR_WEBHOOK_MAC_BYTES];
	int			count;
	ArSpan		timestamp;
} Claims;

/* The compiler may not leave this out, as it may memset. */
static void
wipe(void *memory, size_t length)
{
	volatile uint8_t *at = memory;

	while (length-- > 0)
		*at++ = 0;
}

static int
hex_digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

static bool
decode_hex_mac(ArSpan text, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	if (text.length != (size_t) AR_WEBHOOK_MAC_BYTES * 2)
		return false;
	for (int i = 0; i < AR_WEBHOOK_MAC_BYTES; i++)
	{
		int			high = hex_digit(text.start[2 * i]);
		int			low = hex_digit(text.start[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		mac[i] = (uint8_t) (high << 4 | low);
	}
	return true;
}

static int
base64_digit(char byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return byte - 'A';
	if (byte >= 'a' && byte <= 'z')
		return byte - 'a' + 26;
	if (byte >= '0' && byte <= '9')
		return byte - '0' + 52;
	if (byte == '+')
		return 62;
	if (byte == '/')
		return 63;
	return -1;
}

/*
 * Reads base64 to its last bit: whole, padded, and with nothing in the bits
 * that the padding leaves over.  Returns the length, or -1.
 */
static int
decode_base64(ArSpan text, uint8_t *bytes, size_t size)
{
	size_t		length = 0;
	size_t		padding = 0;
	uint32_t	bits = 0;

	if (text.length == 0 || text.length % 4 != 0)
		return -1;
	while (padding < 2 && text.start[text.length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < text.length - padding; i++)
	{
		int			digit = base64_digit(text.start[i]);

		if (digit < 0)
			return -1;
		bits = (bits << 6 | (uint32_t) digit) & 0xFFFFFF;
		if (i % 4 == 0)
			continue;
		if (length == size)
			return -1;
		bytes[length++] = (uint8_t) (bits >> (6 - 2 * (i % 4)));
	}
	if ((padding == 1 && (bits & 0x3) != 0) || (padding == 2 && (bits & 0xF) != 0))
		return -1;
	return (int) length;
}

static bool
decode_mac(ArSpan text, ArWebhookEncoding encoding, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	if (encoding == AR_WEBHOOK_HEX)
		return decode_hex_mac(text, mac);
	return decode_base64(text, mac, AR_WEBHOOK_MAC_BYTES) == AR_WEBHOOK_MAC_BYTES;
}

/* The next part of a list between separators; false at its end. */
static bool
next_part(ArSpan *rest, const char *separators, ArSpan *part)
{
	const char *end = rest->start + rest->length;
	const char *at = rest->start;
	const char *stop;

	while (at < end && *at != '\0' && strchr(separators, *at) != NULL)
		at++;
	for (stop = at; stop < end && (*stop == '\0' || strchr(separators, *stop) == NULL); stop++)
		;
	*part = (ArSpan) {at, (size_t) (stop - at)};
	*rest = (ArSpan) {stop, (size_t) (end - stop)};
	return part->length > 0;
}

/* Steps over a prefix; false if the span does not begin with it. */
static bool
skip_prefix(ArSpan *span, const char *prefix)
{
	size_t		length = prefix != NULL ? strlen(prefix) : 0;

	if (span->length < length || (length > 0 && memcmp(span->start, prefix, length) != 0))
		return false;
	span->start += length;
	span->length -= length;
	return true;
}

/* False if the header names its timestamp more than once: nobody could tell which is signed. */
static bool
read_claims(const ArWebhook *webhook, Claims *claims)
{
	const ArWebhookForm *form = webhook->form;
	ArSpan		rest = webhook->signatures;
	ArSpan		part;

	claims->count = 0;
	claims->timestamp = form->timestamp_prefix != NULL ? (ArSpan) {NULL, 0} : webhook->timestamp;
	while (rest.start != NULL && next_part(&rest, form->separators, &part))
	{
		if (form->timestamp_prefix != NULL && skip_prefix(&part, form->timestamp_prefix))
		{
			if (claims->timestamp.start != NULL)
				return false;
			claims->timestamp = part;
		}
		else if (skip_prefix(&part, form->prefix) && claims->count < AR_WEBHOOK_MAX_SIGNATURES &&
				 decode_mac(part, form->encoding, claims->macs[claims->count]))
			claims->count++;
	}
	return true;
}

/* What a name between braces stands for; NULL if that is no name. */
static const ArSpan *
named_span(const char *name, size_t length, const ArSpan *id, const ArSpan *timestamp, const ArSpan *body)
{
	if (length == 2 && memcmp(name, "id", 2) == 0)
		return id;
	if (length == 9 && memcmp(name, "timestamp", 9) == 0)
		return timestamp;
	if (length == 4 && memcmp(name, "body", 4) == 0)
		return body;
	return NULL;
}

/*
 * The parts of the text that is signed, in its order; 0 if it makes no sense.
 * uses says which of id, timestamp and body it names.
 */
static int
signed_parts(const char *text, const ArSpan values[3], ArSpan parts[AR_WEBHOOK_MAX_PARTS], bool uses[3])
{
	int			count = 0;

	uses[0] = uses[1] = uses[2] = false;
	while (*text != '\0')
	{
		const ArSpan *value;
		size_t		length = strcspn(text, "{}");

		if (count == AR_WEBHOOK_MAX_PARTS)
			return 0;
		if (length > 0)
		{
			parts[count++] = (ArSpan) {text, length};
			text += length;
			continue;
		}
		length = strcspn(text + 1, "{}");
		if (*text != '{' || text[1 + length] != '}')
			return 0;
		value = named_span(text + 1, length, &values[0], &values[1], &values[2]);
		if (value == NULL || uses[value - values])
			return 0;
		uses[value - values] = true;
		parts[count++] = *value;
		text += length + 2;
	}
	return uses[2] ? count : 0;
}

/* Equal, found out in a time that does not depend on where they differ. */
static bool
same_mac(const uint8_t *a, const uint8_t *b)
{
	volatile uint8_t difference = 0;

	for (int i = 0; i < AR_WEBHOOK_MAC_BYTES; i++)
		difference |= (uint8_t) (a[i] ^ b[i]);
	return difference == 0;
}

/* The key that a secret stands for; its length, or -1 if it is none. */
static int
read_key(ArSpan secret, bool encoded, uint8_t key[MAX_SECRET_BYTES])
{
	if (encoded)
	{
		(void) skip_prefix(&secret, SECRET_PREFIX);
		return decode_base64(secret, key, MAX_SECRET_BYTES);
	}
	if (secret.length == 0 || secret.length > MAX_SECRET_BYTES)
		return -1;
	memcpy(key, secret.start, secret.length);
	return (int) secret.length;
}

/* Every secret against every signature, whatever has matched already. */
static ArWebhookResult
compare_all(const ArWebhook *webhook, const Claims *claims, const ArSpan *parts, int count)
{
	uint8_t		key[MAX_SECRET_BYTES];
	uint8_t		mac[AR_WEBHOOK_MAC_BYTES];
	int			keys = 0;
	int			matches = 0;
	bool		failed = false;

	for (int i = 0; i < webhook->secret_count; i++)
	{
		int			length = read_key(webhook->secrets[i], webhook->form->encoded_secrets, key);

		if (length <= 0)
			continue;
		keys++;
		if (!webhook->hmac(key, (size_t) length, parts, count, mac))
		{
			failed = true;
			continue;
		}
		for (int j = 0; j < claims->count; j++)
			matches += same_mac(mac, claims->macs[j]);
	}
	wipe(key, sizeof(key));
	wipe(mac, sizeof(mac));
	if (matches > 0)
		return AR_WEBHOOK_VALID;
	return failed ? AR_WEBHOOK_FAILED : keys > 0 ? AR_WEBHOOK_WRONG : AR_WEBHOOK_NO_SECRET;
}

/* See webhook.h. */
ArWebhookResult
ar_webhook_verify(const ArWebhook *webhook)
{
	Claims		claims;
	ArSpan		values[3];
	ArSpan		parts[AR_WEBHOOK_MAX_PARTS];
	bool		uses[3];
	int			count;
	int64_t		signed_at;
	ArWebhookResult result;

	if (!read_claims(webhook, &claims))
		return AR_WEBHOOK_NO_TIMESTAMP;
	values[0] = webhook->id;
	values[1] = claims.timestamp;
	values[2] = webhook->body;
	count = signed_parts(webhook->form->signed_text, values, parts, uses);
	if (count == 0)
		return AR_WEBHOOK_BAD_FORM;
	if (claims.count == 0)
		return AR_WEBHOOK_NO_SIGNATURE;
	if (uses[0] && (webhook->id.start == NULL || webhook->id.length == 0))
		return AR_WEBHOOK_NO_ID;
	signed_at = uses[1] ? ar_webhook_timestamp(claims.timestamp) : webhook->now;
	if (signed_at < 0)
		return AR_WEBHOOK_NO_TIMESTAMP;
	result = compare_all(webhook, &claims, parts, count);
	if (result != AR_WEBHOOK_VALID)
		return result;
	/* Only what is rightly signed is told more. */
	if (webhook->now - signed_at > webhook->tolerance)
		return AR_WEBHOOK_TOO_OLD;
	return signed_at - webhook->now > webhook->tolerance ? AR_WEBHOOK_TOO_NEW : AR_WEBHOOK_VALID;
}

/* See webhook.h. */
int
ar_webhook_split_secrets(const char *line, ArSpan secrets[AR_WEBHOOK_MAX_SECRETS])
{
	ArSpan		rest = {line, strlen(line)};
	int			count = 0;

	while (count < AR_WEBHOOK_MAX_SECRETS && next_part(&rest, " ", &secrets[count]))
		count++;
	return count;
}

/* See webhook.h. */
int64_t
ar_webhook_timestamp(ArSpan text)
{
	int64_t		value = 0;

	if (text.start == NULL || text.length == 0 || text.length > 15)
		return -1;
	for (size_t i = 0; i < text.length; i++)
	{
		if (text.start[i] < '0' || text.start[i] > '9')
			return -1;
		value = value * 10 + (text.start[i] - '0');
	}
	return value >= MILLISECONDS_FROM ? value / 1000 : value;
}

/* See webhook.h. */
bool
ar_webhook_signed_text_is_valid(const char *signed_text)
{
	ArSpan		values[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
	ArSpan		parts[AR_WEBHOOK_MAX_PARTS];
	bool		uses[3];

	return signed_parts(signed_text, values, parts, uses) > 0;
}
