/*
 * events.c
 *		SQL-callable functions that check what a provider sends unasked.
 *
 * No message of this file repeats a secret, a signature or a body.
 */
#include "postgres.h"

#include "common/hmac.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/elapsed.h"
#include "core/webhook.h"
#include "store/clock.h"
#include "store/credential_file.h"

PG_FUNCTION_INFO_V1(ar_verify_event);
PG_FUNCTION_INFO_V1(ar_event_header);
PG_FUNCTION_INFO_V1(ar_signed_text_is_valid);

#define MAX_BODY_BYTES		(1024 * 1024)
#define MAX_HEADERS_BYTES	(64 * 1024)
#define MAX_HEADER_BYTES	8192

/* What the definition of a source says about signatures, and what came. */
typedef struct Event
{
	char	   *provider;
	char	   *scheme;
	char	   *secret_file;
	int64		tolerance;
	char	   *signature_header;
	char	   *timestamp_header;
	char	   *id_header;
	ArWebhookForm form;
	Jsonb	   *headers;
	ArSpan		body;
} Event;

static char *
argument_text(FunctionCallInfo fcinfo, int number)
{
	return PG_ARGISNULL(number) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

static void
check_headers(Jsonb *headers)
{
	if (!JB_ROOT_IS_OBJECT(headers) || VARSIZE_ANY(headers) > MAX_HEADERS_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the headers of an event must be a JSON object of at most %d bytes", MAX_HEADERS_BYTES),
				 errhint("Pass {\"name\": \"value\", ...} as the headers were received.")));
}

/* The text of a value, or of the only one in an array; NULL if it is neither. */
static char *
header_text(JsonbValue *value)
{
	if (value->type == jbvBinary && JsonContainerIsArray(value->val.binary.data) && JsonContainerSize(value->val.binary.data) == 1)
		value = getIthJsonbValueFromContainer(value->val.binary.data, 0);
	if (value->type != jbvString || value->val.string.len > MAX_HEADER_BYTES)
		return NULL;
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/*
 * The value of a header, whatever the case of its name; NULL if it is not
 * there.  One that is there twice, or is no text, is refused: which of them
 * was signed is not ours to choose.
 */
static char *
find_header(Jsonb *headers, const char *name)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	value;
	char	   *found = NULL;

	check_headers(headers);
	it = JsonbIteratorInit(&headers->root);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		bool		named = token == WJB_KEY && value.val.string.len == (int) strlen(name) &&
			pg_strncasecmp(value.val.string.val, name, value.val.string.len) == 0;
		char	   *text;

		if (!named)
			continue;
		(void) JsonbIteratorNext(&it, &value, true);
		text = header_text(&value);
		if (text == NULL || found != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("header \"%s\" of an event is not one text of at most %d bytes", name, MAX_HEADER_BYTES),
					 errhint("Pass each header once, as a JSON string.")));
		found = text;
	}
	return found;
}

static ArSpan
header_span(const Event *event, const char *name)
{
	char	   *text = name != NULL ? find_header(event->headers, name) : NULL;

	return (ArSpan) {text, text != NULL ? strlen(text) : 0};
}

/* HMAC-SHA256 by the server's own facility. */
static bool
compute_hmac(const uint8_t *key, size_t key_length, const ArSpan *parts, int count, uint8_t mac[AR_WEBHOOK_MAC_BYTES])
{
	pg_hmac_ctx *context = pg_hmac_create(PG_SHA256);
	bool		done;

	if (context == NULL)
		return false;
	done = pg_hmac_init(context, key, key_length) >= 0;
	for (int i = 0; done && i < count; i++)
	{
		if (parts[i].length > 0)
			done = pg_hmac_update(context, (const uint8 *) parts[i].start, parts[i].length) >= 0;
	}
	done = done && pg_hmac_final(context, mac, AR_WEBHOOK_MAC_BYTES) >= 0;
	pg_hmac_free(context);
	return done;
}

/* The form of a scheme that has one; the columns of the source describe the others. */
static void
choose_form(FunctionCallInfo fcinfo, Event *event)
{
	char	   *encoding;

	if (strcmp(event->scheme, "standard_webhooks") == 0)
	{
		event->form = ar_webhook_standard;
		event->signature_header = "webhook-signature";
		event->timestamp_header = "webhook-timestamp";
		event->id_header = "webhook-id";
	}
	else if (strcmp(event->scheme, "stripe") == 0)
	{
		event->form = ar_webhook_stripe;
		event->signature_header = "stripe-signature";
	}
	else if (strcmp(event->scheme, "github") == 0)
	{
		event->form = ar_webhook_github;
		event->signature_header = "x-hub-signature-256";
	}
	else
	{
		event->signature_header = argument_text(fcinfo, 4);
		encoding = argument_text(fcinfo, 5);
		event->form.separators = ", ";
		event->form.prefix = argument_text(fcinfo, 6);
		event->form.signed_text = argument_text(fcinfo, 7);
		event->timestamp_header = argument_text(fcinfo, 8);
		event->id_header = argument_text(fcinfo, 11);
		event->form.encoding = encoding != NULL && strcmp(encoding, "base64") == 0 ? AR_WEBHOOK_BASE64 : AR_WEBHOOK_HEX;
		if (event->signature_header == NULL || event->form.signed_text == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("scheme \"%s\" of provider \"%s\" does not say what is signed", event->scheme, event->provider),
					 errhint("See reconcile.event_source.")));
	}
}

static void
refuse(const Event *event, const char *problem, const char *advice)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_AUTHORIZATION_SPECIFICATION),
			 errmsg("event of provider \"%s\" is refused: %s", event->provider, problem),
			 errhint("%s", advice)));
}

static void
report_result(const Event *event, ArWebhookResult result)
{
	switch (result)
	{
		case AR_WEBHOOK_VALID:
			return;
		case AR_WEBHOOK_NO_SIGNATURE:
			refuse(event, "it has no signature that could be checked",
				   psprintf("Pass all headers as they were received; the signature is expected in \"%s\".", event->signature_header));
			return;
		case AR_WEBHOOK_NO_ID:
			refuse(event, "it has no id, which the signature covers", "Pass all headers as they were received.");
			return;
		case AR_WEBHOOK_NO_TIMESTAMP:
			refuse(event, "it has no time of sending, which the signature covers", "Pass all headers as they were received.");
			return;
		case AR_WEBHOOK_WRONG:
			refuse(event, "its signature is wrong",
				   "The body must be passed byte for byte as it was received, and the secret must be that of the provider's endpoint.");
			return;
		case AR_WEBHOOK_TOO_OLD:
			refuse(event, "it was sent too long ago",
				   "It may be a repetition by somebody else. The provider's own repetitions are signed anew; see event_source.tolerance.");
			return;
		case AR_WEBHOOK_TOO_NEW:
			refuse(event, "it was sent in the future", "One of the clocks is wrong; see event_source.tolerance.");
			return;
		case AR_WEBHOOK_NO_SECRET:
		case AR_WEBHOOK_BAD_FORM:
		case AR_WEBHOOK_FAILED:
			break;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("events of provider \"%s\" cannot be checked: %s", event->provider,
					result == AR_WEBHOOK_NO_SECRET ? "the file of its secret holds none" :
					result == AR_WEBHOOK_BAD_FORM ? "what is signed makes no sense" : "the server cannot compute an HMAC"),
			 errhint("See event_source of the provider, and the file that it names.")));
}

/* The secrets live no longer than the comparison. */
static ArWebhookResult
check_signature(const Event *event)
{
	char		line[AR_CREDENTIAL_MAX];
	char		problem[256];
	ArSpan		secrets[AR_WEBHOOK_MAX_SECRETS];
	ArWebhook	webhook = {.form = &event->form, .secrets = secrets, .body = event->body, .hmac = compute_hmac};
	volatile ArWebhookResult result = AR_WEBHOOK_FAILED;

	webhook.signatures = header_span(event, event->signature_header);
	webhook.timestamp = header_span(event, event->timestamp_header);
	webhook.id = header_span(event, event->id_header);
	webhook.now = ar_wall_unix_seconds();
	webhook.tolerance = event->tolerance;
	if (!ar_credential_read(event->secret_file, line, sizeof(line), problem, sizeof(problem)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("events of provider \"%s\" cannot be checked: the secret cannot be read", event->provider),
				 errdetail("%s.", problem),
				 errhint("See event_source.secret and the setting action_reconcile.credential_dir.")));
	PG_TRY();
	{
		webhook.secret_count = ar_webhook_split_secrets(line, secrets);
		result = ar_webhook_verify(&webhook);
	}
	PG_FINALLY();
	{
		explicit_bzero(line, sizeof(line));
	}
	PG_END_TRY();
	return result;
}

Datum
ar_verify_event(PG_FUNCTION_ARGS)
{
	Event		event = {0};
	bytea	   *body;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(3) || PG_ARGISNULL(9) || PG_ARGISNULL(10))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("an event has a provider, headers and a body"),
				 errhint("Pass {} and '' rather than null.")));
	event.provider = argument_text(fcinfo, 0);
	event.scheme = argument_text(fcinfo, 1);
	event.secret_file = argument_text(fcinfo, 2);
	event.headers = PG_GETARG_JSONB_P(9);
	body = PG_GETARG_BYTEA_PP(10);
	event.body = (ArSpan) {VARDATA_ANY(body), VARSIZE_ANY_EXHDR(body)};
	if (event.body.length > MAX_BODY_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the body of an event of provider \"%s\" is larger than one megabyte", event.provider),
				 errhint("No event that is about one action is so large.")));
	event.tolerance = ar_elapsed_us(PG_GETARG_INTERVAL_P(3)) / USECS_PER_SEC;
	check_headers(event.headers);
	if (strcmp(event.scheme, "none") == 0)
		PG_RETURN_VOID();
	choose_form(fcinfo, &event);
	report_result(&event, check_signature(&event));
	PG_RETURN_VOID();
}

Datum
ar_event_header(PG_FUNCTION_ARGS)
{
	char	   *value = find_header(PG_GETARG_JSONB_P(0), text_to_cstring(PG_GETARG_TEXT_PP(1)));

	if (value == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(value));
}

Datum
ar_signed_text_is_valid(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(ar_webhook_signed_text_is_valid(text_to_cstring(PG_GETARG_TEXT_PP(0))));
}
