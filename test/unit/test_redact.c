/*
 * test_redact.c
 *		What must not be kept of an answer is taken out, and nothing else.
 */
#include "core/redact.h"

#include <stdlib.h>

#include "tap.h"

#define SECRET "Bearer sk/live+Abc\"9"

/* The text without a terminator, so that a read beyond the end is seen. */
static bool
becomes(const char *text, const char *expected, const char *secret)
{
	size_t		length = strlen(text);
	char	   *copy = malloc(length > 0 ? length : 1);
	bool		same;

	memcpy(copy, text, length);
	if (secret != NULL)
		ar_redact_secret(copy, length, secret);
	else
		ar_redact_named(copy, length);
	same = ok(length == strlen(expected) && memcmp(copy, expected, length) == 0, "text of %d bytes", (int) length);
	if (!same)
		diag("%s\nbecame %.*s", text, (int) length, copy);
	free(copy);
	return same;
}

static const struct
{
	const char *text;
	const char *expected;
}			known[] = {
	{"", ""},
	{"sk/live+Abc\"9", "*************"},
	{"x sk/live+Abc\"9.", "x *************."},
	{"Bearer sk/live+Abc\"9", "Bearer *************"},
	{"sk/live+Abc\"9sk/live+Abc\"9", "**************************"},
	{"{\"a\": \"sk\\/live+Abc\\\"9\"}", "{\"a\": \"***************\"}"},
	{"{\"a\": \"\\u0073k\\u002Flive\\u002bAbc\\u00229\"}", "{\"a\": \"*********************************\"}"},
	{"?key=sk%2Flive%2bAbc%229&b", "?key=*******************&b"},
	{"sk/live+Abc\"", "sk/live+Abc\""},
	{"sk/live+Abc%2", "sk/live+Abc%2"},
	{"sk/live+Abc\\u002", "sk/live+Abc\\u002"},
	{"sk/live+abc\"9", "sk/live+abc\"9"},
	{"%", "%"}, {"\\", "\\"}, {"\\u", "\\u"}, {"sk%", "sk%"},
};

static const struct
{
	const char *text;
	const char *expected;
}			named[] = {
	{"", ""}, {":", ":"}, {"=", "="}, {"token", "token"}, {"token:", "token:"}, {"\"token\":\"", "\"token\":\""},
	{"{\"client_secret\": \"pi_1_s\", \"id\": \"pi_1\"}", "{\"client_secret\": \"******\", \"id\": \"pi_1\"}"},
	{"{\"accessToken\":\"a\\\"b\",\"n\":1}", "{\"accessToken\":\"****\",\"n\":1}"},
	{"{\"token\" :\n \"abc\"}", "{\"token\" :\n \"***\"}"},
	{"{\"token\": \"cut off", "{\"token\": \"*******"},
	{"{\"token\": \"cut\\", "{\"token\": \"****"},
	{"{\"token\": 5, \"password\": null}", "{\"token\": 5, \"password\": null}"},
	{"{\"secret\": {\"value\": \"kept\", \"apiKey\": \"x\"}}", "{\"secret\": {\"value\": \"kept\", \"apiKey\": \"*\"}}"},
	{"{\"key\": \"PROJ-1\", \"tokens\": \"3\", \"secretary\": \"Kim\"}", "{\"key\": \"PROJ-1\", \"tokens\": \"3\", \"secretary\": \"Kim\"}"},
	{"{\"nextPageToken\": \"abc\", \"sync_token\": \"abc\", \"NextToken\": \"x\"}", "{\"nextPageToken\": \"abc\", \"sync_token\": \"abc\", \"NextToken\": \"x\"}"},
	{"{\"raw\": \"{\\\"token\\\":\\\"abc\\\",\\\"b\\\":1}\"}", "{\"raw\": \"{\\\"token\\\":\\\"***\\\",\\\"b\\\":1}\"}"},
	{"Authorization: Bearer abc\r\nHost: x", "Authorization: **********\r\nHost: x"},
	{"{\"request\": \"Cookie: a=b\\r\\nHost: x\"}", "{\"request\": \"Cookie: ***\\r\\nHost: x\"}"},
	{"Set-Cookie: sid=1; Secure\n", "Set-Cookie: *************\n"},
	{"access_token=abc&expires=5", "access_token=***&expires=5"},
	{"{\"u\": \"https://x/y?a=1&sig=abc%3D&b=2\"}", "{\"u\": \"https://x/y?a=1&sig=******&b=2\"}"},
	{"X-Amz-Signature=0a1b X-Amz-Security-Token=zz", "X-Amz-Signature=**** X-Amz-Security-Token=**"},
	{"{\"signature\": \"kept\"}", "{\"signature\": \"kept\"}"},
	{"<Credentials><AccessKeyId>A</AccessKeyId><SessionToken>abc</SessionToken>", "<Credentials><AccessKeyId>A</AccessKeyId><SessionToken>***</SessionToken>"},
	{"<a token=\"abc\" b=\"c\">", "<a token=\"***\" b=\"c\">"},
	{"2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
};

static const char *const secret_names[] = {
	"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "apikey", "api_key", "APIKey", "access_token", "accessToken",
	"AccessToken", "accesstoken", "X-Auth-Token", "PRIVATE-TOKEN", "token", "Token", "client_secret", "clientSecret", "secret", "db.password", "Password", "private_key",
};
static const char *const other_names[] = {
	"", "-", "id", "key", "etag", "tokens", "secretary", "passwordless", "nextPageToken", "page_token", "continuation-token", "NextToken", "Location",
	"idempotency-key", "mytoken", "cookies", "signature", "sig",
};
static const char *const addresses[][2] = {
	{"https://a/b", "https://a/b"},
	{"https://a/b?", "https://a/b?"},
	{"https://a/b?c=d&e", "https://a/b?c=d&e"},
	{"https://a/b?token=x", "https://a/b"},
	{"https://a/b?token=x&c=d", "https://a/b?c=d"},
	{"https://a/b?c=d&access_token=x&e=f&sig=g", "https://a/b?c=d&e=f"},
	{"https://a/b?c=d&token=x#f", "https://a/b?c=d#f"},
	{"https://a/b?c=token=x&token", "https://a/b?c=token=x"},
};

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

int
main(void)
{
	char		text[200];

	for (size_t i = 0; i < LENGTH_OF(known); i++)
		becomes(known[i].text, known[i].expected, SECRET);
	becomes("short words: abc Bearer", "short words: abc Bearer", "abc Bearer");
	becomes("two of them: 123456789, abcdefgh", "two of them: *********, ********", "123456789 abcdefgh");
	becomes("anything", "anything", "");
	for (size_t i = 0; i < LENGTH_OF(named); i++)
		becomes(named[i].text, named[i].expected, NULL);
	for (size_t i = 0; i < LENGTH_OF(secret_names); i++)
		ok(ar_names_secret(secret_names[i], strlen(secret_names[i]), AR_NAME_OF_MEMBER), "%s is a secret", secret_names[i]);
	for (size_t i = 0; i < LENGTH_OF(other_names); i++)
		ok(!ar_names_secret(other_names[i], strlen(other_names[i]), AR_NAME_OF_MEMBER), "\"%s\" is none", other_names[i]);
	ok(ar_names_secret("X-Goog-Signature", 16, AR_NAME_OF_PARAMETER), "a signature is one in an address");
	for (size_t i = 0; i < LENGTH_OF(addresses); i++)
	{
		snprintf(text, sizeof(text), "%s", addresses[i][0]);
		ar_redact_address(text);
		is_str(text, addresses[i][1], addresses[i][0]);
	}
	return done_testing();
}
