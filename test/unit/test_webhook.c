/*
 * test_webhook.c
 *		Signatures of events: published examples, and everything that is not one.
 */
#include "core/webhook.h"

#include "hmac_sha256.h"
#include "tap.h"

#define STANDARD_SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define STANDARD_MAC "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define STANDARD_BODY "{\"test\": 2432232314}"
#define STANDARD_ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define STANDARD_TIME INT64_C(1614265330)

#define GITHUB_SECRET "It's a Secret to Everybody"
#define GITHUB_MAC "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
#define GITHUB_BODY "Hello, World!"

/* Made with Python's hmac for this test; Stripe publishes none with its secret. */
#define STRIPE_SECRET "whsec_test_secret"
#define STRIPE_BODY "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}"
#define STRIPE_TIME INT64_C(1492774577)
#define STRIPE_MAC "c2f890decbc5ede7c5060bb9a6d31e0626a4342bacb9aeae2adb1bcea72f9812"
#define STRIPE_HEADER "t=1492774577,v1=" STRIPE_MAC

#define SLACK_SECRET "8f742231b10e8888abcd99yyyzzz85a5"
#define SLACK_MAC "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
#define SLACK_BODY \
	"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" \
	"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" \
	"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" \
	"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"

static const ArWebhookForm slack = {
	.separators = ", ", .prefix = "v0=", .signed_text = "v0:{timestamp}:{body}", .encoding = AR_WEBHOOK_HEX
};

static int	computed = 0;
static bool hmac_works = true;

static bool
compute(const uint8_t *key, size_t key_length, const ArSpan *parts, int count, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	size_t		length = 0;
	uint8_t    *text;

	computed++;
	if (!hmac_works)
		return false;
	for (int i = 0; i < count; i++)
		length += parts[i].length;
	text = malloc(length > 0 ? length : 1);
	length = 0;
	for (int i = 0; i < count; i++)
	{
		if (parts[i].length > 0)
			memcpy(text + length, parts[i].start, parts[i].length);
		length += parts[i].length;
	}
	test_hmac_sha256(key, key_length, text, length, mac);
	free(text);
	return true;
}

static ArSpan
span(const char *text)
{
	return (ArSpan) {text, text != NULL ? strlen(text) : 0};
}

static ArWebhookResult
verify(const ArWebhookForm *form, const char *secrets, const char *signatures, const char *id, const char *timestamp,
	   const char *body, int64_t now)
{
	ArSpan		split[AR_WEBHOOK_MAX_SECRETS];
	ArWebhook	webhook = {.form = form, .now = now, .tolerance = 300, .hmac = compute};

	webhook.secrets = split;
	webhook.secret_count = ar_webhook_split_secrets(secrets, split);
	if (strcmp(secrets, GITHUB_SECRET) == 0)	/* has blanks in it, as no secret in a file can */
	{
		split[0] = span(secrets);
		webhook.secret_count = 1;
	}
	webhook.signatures = span(signatures);
	webhook.id = span(id);
	webhook.timestamp = span(timestamp);
	webhook.body = span(body);
	return ar_webhook_verify(&webhook);
}

static ArWebhookResult
standard(const char *secrets, const char *signatures, int64_t now)
{
	return verify(&ar_webhook_standard, secrets, signatures, STANDARD_ID, "1614265330", STANDARD_BODY, now);
}

static void
is_result(ArWebhookResult got, ArWebhookResult expected, const char *name)
{
	is_int(got, expected, name);
}

static void
test_the_helper(void)
{
	/* RFC 4231, cases 2 and 6. */
	static const uint8_t jefe[] = {
		0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
		0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43
	};
	static const uint8_t long_key[] = {
		0x60, 0xe4, 0x31, 0x59, 0x1e, 0xe0, 0xb6, 0x7f, 0x0d, 0x8a, 0x26, 0xaa, 0xcb, 0xf5, 0xb7, 0x7f,
		0x8e, 0x0b, 0xc6, 0x21, 0x37, 0x28, 0xc5, 0x14, 0x05, 0x46, 0x04, 0x0f, 0x0e, 0xe3, 0x7f, 0x54
	};
	uint8_t		key[131];
	uint8_t		mac[32];

	test_hmac_sha256((const uint8_t *) "Jefe", 4, (const uint8_t *) "what do ya want for nothing?", 28, mac);
	ok(memcmp(mac, jefe, 32) == 0, "RFC 4231, case 2");
	memset(key, 0xaa, sizeof(key));
	test_hmac_sha256(key, sizeof(key), (const uint8_t *) "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
	ok(memcmp(mac, long_key, 32) == 0, "RFC 4231, case 6");
}

static void
test_published_examples(void)
{
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "Standard Webhooks");
	is_result(standard("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "its secret without whsec_");
	is_result(verify(&ar_webhook_github, GITHUB_SECRET, "sha256=" GITHUB_MAC, NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_VALID, "GitHub");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, STRIPE_HEADER, NULL, NULL, STRIPE_BODY, STRIPE_TIME), AR_WEBHOOK_VALID, "Stripe");
	is_result(verify(&slack, SLACK_SECRET, SLACK_MAC, NULL, "1531420618", SLACK_BODY, 1531420618), AR_WEBHOOK_VALID, "Slack");
}

static void
test_wrong_ones(void)
{
	is_result(standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_WRONG, "another secret");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, STANDARD_ID, "1614265330", "{\"test\": 2432232315}", STANDARD_TIME),
			  AR_WEBHOOK_WRONG, "another body");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, STANDARD_ID, "1614265330", STANDARD_BODY " ", STANDARD_TIME),
			  AR_WEBHOOK_WRONG, "a blank more");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, STANDARD_ID, "1614265331", STANDARD_BODY, STANDARD_TIME),
			  AR_WEBHOOK_WRONG, "another time");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, "msg_other", "1614265330", STANDARD_BODY, STANDARD_TIME),
			  AR_WEBHOOK_WRONG, "another id");
	is_result(verify(&ar_webhook_github, "other", "sha256=" GITHUB_MAC, NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_WRONG, "GitHub, another secret");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, "t=1492774578,v1=" STRIPE_MAC, NULL, NULL, STRIPE_BODY, STRIPE_TIME),
			  AR_WEBHOOK_WRONG, "Stripe, another time");
	/* Each single bit counts. */
	for (int i = 0; i < 64; i++)
	{
		char		header[sizeof("sha256=" GITHUB_MAC)];

		strcpy(header, "sha256=" GITHUB_MAC);
		header[7 + i] = header[7 + i] == '0' ? '1' : '0';
		if (verify(&ar_webhook_github, GITHUB_SECRET, header, NULL, NULL, GITHUB_BODY, 0) != AR_WEBHOOK_WRONG)
			ok(false, "digit %d changed", i);
	}
}

static void
test_lists(void)
{
	char		many[8192] = "";

	is_result(standard(STANDARD_SECRET, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= " STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "the second signature");
	is_result(standard(STANDARD_SECRET, "  v1a,abc v2,x v1, v1 nonsense " STANDARD_MAC " v1,?", STANDARD_TIME), AR_WEBHOOK_VALID, "one among others");
	is_result(standard("whsec_AAAA " STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "the second secret");
	is_result(standard(STANDARD_SECRET " whsec_AAAA", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "the first secret");
	is_result(standard("no!base64 " STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_VALID, "one that is none is passed over");
	is_result(verify(&ar_webhook_stripe, "old " STRIPE_SECRET, "v0=00,t=1492774577,v1=11,v1=" STRIPE_MAC ",v2=x", NULL, NULL, STRIPE_BODY, STRIPE_TIME),
			  AR_WEBHOOK_VALID, "Stripe: in any order, other versions passed over");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, "t=1492774577, v1=" STRIPE_MAC, NULL, NULL, STRIPE_BODY, STRIPE_TIME),
			  AR_WEBHOOK_VALID, "Stripe: with a blank");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, "t=1492774577,v0=" STRIPE_MAC, NULL, NULL, STRIPE_BODY, STRIPE_TIME),
			  AR_WEBHOOK_NO_SIGNATURE, "Stripe: v0 is no signature");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, "t=1492774577,t=1492774578,v1=" STRIPE_MAC, NULL, NULL, STRIPE_BODY, STRIPE_TIME),
			  AR_WEBHOOK_NO_TIMESTAMP, "Stripe: two times");
	for (int i = 0; i < AR_WEBHOOK_MAX_SIGNATURES; i++)
		strcat(many, "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= ");
	strcat(many, STANDARD_MAC);
	is_result(standard(STANDARD_SECRET, many, STANDARD_TIME), AR_WEBHOOK_WRONG, "there is a bound on signatures");
	/* Every secret is tried, whichever has matched. */
	computed = 0;
	standard(STANDARD_SECRET " whsec_AAAA whsec_BBBB", STANDARD_MAC, STANDARD_TIME);
	is_int(computed, 3, "every secret is tried");
}

static void
test_missing_parts(void)
{
	static const char *const none[] = {NULL, "", " ", "v1", "v1,", "v1=abc", "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	"V1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE", "v1,g0hM9SsE-OTPJTGt_tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE==", "v1,====", "v1,g0hM"};
	static const char *const times[] = {NULL, "", " ", "x", "-1614265330", "+1614265330", "1614265330.0", "1614265330 ", "0x1", "9999999999999999"};

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (!ok(standard(STANDARD_SECRET, none[i], STANDARD_TIME) == AR_WEBHOOK_NO_SIGNATURE, "no signature %d", (int) i))
			diag("in %s", none[i]);
	is_result(verify(&ar_webhook_github, GITHUB_SECRET, GITHUB_MAC, NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_NO_SIGNATURE, "GitHub: without sha256=");
	is_result(verify(&ar_webhook_github, GITHUB_SECRET, "sha1=" GITHUB_MAC, NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_NO_SIGNATURE, "GitHub: sha1=");
	is_result(verify(&ar_webhook_github, GITHUB_SECRET, "sha256=" GITHUB_MAC "00", NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_NO_SIGNATURE, "too long");
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		ok(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, STANDARD_ID, times[i], STANDARD_BODY, STANDARD_TIME) == AR_WEBHOOK_NO_TIMESTAMP,
		   "no time %d", (int) i);
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, "v1=" STRIPE_MAC, NULL, "1492774577", STRIPE_BODY, STRIPE_TIME), AR_WEBHOOK_NO_TIMESTAMP,
			  "Stripe: a time in another header does not count");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, NULL, "1614265330", STANDARD_BODY, STANDARD_TIME), AR_WEBHOOK_NO_ID, "no id");
	is_result(verify(&ar_webhook_standard, STANDARD_SECRET, STANDARD_MAC, "", "1614265330", STANDARD_BODY, STANDARD_TIME), AR_WEBHOOK_NO_ID, "an empty id");
	is_result(standard("", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_NO_SECRET, "no secret");
	is_result(standard("whsec_", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_NO_SECRET, "an empty secret is none");
	is_result(standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_NO_SECRET, "nor one that is no base64");
	hmac_works = false;
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME), AR_WEBHOOK_FAILED, "what cannot be computed matches nothing");
	hmac_works = true;
}

static void
test_tolerance(void)
{
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME + 300), AR_WEBHOOK_VALID, "five minutes old");
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME + 301), AR_WEBHOOK_TOO_OLD, "older");
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME - 300), AR_WEBHOOK_VALID, "five minutes ahead");
	is_result(standard(STANDARD_SECRET, STANDARD_MAC, STANDARD_TIME - 301), AR_WEBHOOK_TOO_NEW, "further ahead");
	is_result(standard("whsec_AAAA", STANDARD_MAC, STANDARD_TIME + 301), AR_WEBHOOK_WRONG, "what is wrongly signed is not told of time");
	is_result(verify(&ar_webhook_stripe, STRIPE_SECRET, STRIPE_HEADER, NULL, NULL, STRIPE_BODY, STRIPE_TIME + 301), AR_WEBHOOK_TOO_OLD, "Stripe: too old");
	is_result(verify(&slack, SLACK_SECRET, SLACK_MAC, NULL, "1531420618", SLACK_BODY, 1531420618 + 301), AR_WEBHOOK_TOO_OLD, "Slack: too old");
	is_result(verify(&ar_webhook_github, GITHUB_SECRET, "sha256=" GITHUB_MAC, NULL, NULL, GITHUB_BODY, INT64_C(99999999999)), AR_WEBHOOK_VALID,
			  "GitHub signs no time");
	is_int(ar_webhook_timestamp(span("1614265330")), 1614265330, "seconds");
	is_int(ar_webhook_timestamp(span("1614265330123")), 1614265330, "milliseconds");
	is_int(ar_webhook_timestamp(span("0")), 0, "nothing");
	is_int(ar_webhook_timestamp(span("999999999999999")), 999999999999, "the largest");
}

static void
test_signed_texts(void)
{
	static const char *const valid[] = {"{body}", "{timestamp}.{body}", "v0:{timestamp}:{body}", "https://a.example/hook{body}", "{body}{id}{timestamp}"};
	static const char *const invalid[] = {"", "body", "{}", "{timestamp}", "{body}{body}", "{body", "body}", "{{body}}", "{BODY}", "{body}{secret}", "{id}.{id}.{body}"};
	ArWebhookForm form = {.separators = " ", .signed_text = "{timestamp}"};

	for (size_t i = 0; i < sizeof(valid) / sizeof(valid[0]); i++)
		ok(ar_webhook_signed_text_is_valid(valid[i]), "%s can be signed", valid[i]);
	for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++)
		ok(!ar_webhook_signed_text_is_valid(invalid[i]), "%s cannot", invalid[i]);
	is_result(verify(&form, "s", GITHUB_MAC, NULL, "1", "", 1), AR_WEBHOOK_BAD_FORM, "nor is it compared");
	form.signed_text = "{body}";
	is_result(verify(&form, GITHUB_SECRET, GITHUB_MAC, NULL, NULL, GITHUB_BODY, 0), AR_WEBHOOK_VALID, "a signature without a prefix");
}

int
main(void)
{
	test_the_helper();
	test_published_examples();
	test_wrong_ones();
	test_lists();
	test_missing_parts();
	test_tolerance();
	test_signed_texts();
	return done_testing();
}
