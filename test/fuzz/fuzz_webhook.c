/*
 * fuzz_webhook.c
 *		Signatures, times, ids and secrets as somebody might send or write them.
 *
 * The input is lines: secrets, signed text, header of signatures, timestamp,
 * id; what follows is the body.  The HMAC is a mere mixture here: what counts
 * is that nothing is read that is not there, and that nothing but the right
 * signature is right.
 */
#include "core/webhook.h"

#include "fuzz.h"

#define LINES 5

static bool
mix(const uint8_t *key, size_t key_length, const ArSpan *parts, int count, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	uint64_t	state = UINT64_C(0x9E3779B97F4A7C15);

	must(key_length > 0 && count > 0 && count <= AR_WEBHOOK_MAX_PARTS);
	for (size_t i = 0; i < key_length; i++)
		state = (state ^ key[i]) * UINT64_C(0x100000001B3);
	for (int i = 0; i < count; i++)
		for (size_t j = 0; j < parts[i].length; j++)
			state = (state ^ (uint8_t) parts[i].start[j]) * UINT64_C(0x100000001B3);
	for (int i = 0; i < AR_WEBHOOK_MAC_BYTES; i++)
	{
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		mac[i] = (uint8_t) (state >> 56);
	}
	return true;
}

/* The last MAC that was computed, in hex. */
static char last_mac[2 * AR_WEBHOOK_MAC_BYTES + 1];

static bool
mix_and_keep(const uint8_t *key, size_t key_length, const ArSpan *parts, int count, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	mix(key, key_length, parts, count, mac);
	for (int i = 0; i < AR_WEBHOOK_MAC_BYTES; i++)
		sprintf(last_mac + 2 * i, "%02x", mac[i]);
	return true;
}

/* The next line, alone in memory of exactly its size. */
static char *
next_line(const char **at, const char *end, size_t *length)
{
	const char *stop = *at < end ? memchr(*at, '\n', (size_t) (end - *at)) : NULL;
	char	   *line;

	*length = (size_t) ((stop ? stop : end) - *at);
	line = malloc(*length > 0 ? *length : 1);
	memcpy(line, *at, *length);
	*at = stop ? stop + 1 : end;
	return line;
}

static void
check_form(ArWebhook *webhook, const ArWebhookForm *form)
{
	ArWebhookResult result;

	webhook->form = form;
	webhook->hmac = mix;
	result = ar_webhook_verify(webhook);
	must(result <= AR_WEBHOOK_FAILED);
	if (result == AR_WEBHOOK_VALID)
		must(webhook->signatures.length >= 43 && webhook->secret_count > 0);
}

/* What is signed with the last secret is right, whatever stands before it in the header; and one digit less is not. */
static void
check_right_one(ArWebhook webhook, const char *signed_text)
{
	ArWebhookForm form = {.separators = ", ", .prefix = "x=", .signed_text = signed_text, .encoding = AR_WEBHOOK_HEX};
	char		header[sizeof(last_mac) + 16];

	webhook.form = &form;
	webhook.hmac = mix_and_keep;
	last_mac[0] = '\0';
	webhook.signatures = (ArSpan) {"x=0000000000000000000000000000000000000000000000000000000000000000", 66};
	if (ar_webhook_verify(&webhook) != AR_WEBHOOK_WRONG)
		return;
	must(ar_webhook_signed_text_is_valid(signed_text));
	snprintf(header, sizeof(header), "x=00, x=%s", last_mac);
	webhook.signatures = (ArSpan) {header, strlen(header)};
	webhook.tolerance = INT64_MAX / 2;
	must(ar_webhook_verify(&webhook) == AR_WEBHOOK_VALID);
	webhook.signatures.length--;
	must(ar_webhook_verify(&webhook) == AR_WEBHOOK_NO_SIGNATURE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *) data;
	const char *end = at + size;
	char	   *lines[LINES];
	size_t		lengths[LINES];
	char	   *secrets;
	char	   *signed_text;
	ArSpan		split[AR_WEBHOOK_MAX_SECRETS];
	ArWebhook	webhook = {.secrets = split, .now = 1700000000, .tolerance = 300};
	ArWebhookForm own = {.separators = " ", .prefix = "v0=", .timestamp_prefix = "t=", .encoding = AR_WEBHOOK_BASE64};

	for (int i = 0; i < LINES; i++)
		lines[i] = next_line(&at, end, &lengths[i]);
	secrets = strndup(lines[0], lengths[0]);
	signed_text = strndup(lines[1], lengths[1]);
	own.signed_text = signed_text;
	webhook.secret_count = ar_webhook_split_secrets(secrets, split);
	must(webhook.secret_count >= 0 && webhook.secret_count <= AR_WEBHOOK_MAX_SECRETS);
	webhook.signatures = (ArSpan) {lines[2], lengths[2]};
	webhook.timestamp = (ArSpan) {lines[3], lengths[3]};
	webhook.id = (ArSpan) {lines[4], lengths[4]};
	webhook.body = (ArSpan) {at, (size_t) (end - at)};
	must(ar_webhook_timestamp(webhook.timestamp) >= -1);
	check_form(&webhook, &ar_webhook_standard);
	check_form(&webhook, &ar_webhook_stripe);
	check_form(&webhook, &ar_webhook_github);
	check_form(&webhook, &own);
	check_right_one(webhook, signed_text);
	for (int i = 0; i < LINES; i++)
		free(lines[i]);
	free(secrets);
	free(signed_text);
	return 0;
}
