/*
 * request.c
 *		Handing a request to the transport.
 */
#include "engine/engine_internal.h"

#include "core/host_list.h"
#include "settings.h"
#include "store/credential_file.h"

#define CREDENTIAL_PLACE "{credential}"

/*
 * The value with the credential in its place; palloc'ed, to be wiped.  Of its
 * size from the start: a buffer that grows leaves a piece of it behind.
 */
static char *
with_credential(const char *value, const char *credential)
{
	const char *place = strstr(value, CREDENTIAL_PLACE);
	size_t		size = strlen(value) - strlen(CREDENTIAL_PLACE) + strlen(credential) + 1;
	char	   *filled = palloc(size);

	snprintf(filled, size, "%.*s%s%s", (int) (place - value), value, credential, place + strlen(CREDENTIAL_PLACE));
	return filled;
}

static bool
names_credential(char **strings, int count)
{
	for (int i = 1; i < count; i += 2)
	{
		if (strstr(strings[i], CREDENTIAL_PLACE) != NULL)
			return true;
	}
	return false;
}

/* Header strings come in pairs. */
static ArHeader *
make_headers(char **strings, int count, const char *credential)
{
	ArHeader   *headers = palloc(sizeof(ArHeader) * Max(count / 2, 1));

	for (int i = 0; i < count / 2; i++)
	{
		headers[i].name = strings[2 * i];
		headers[i].value = strstr(strings[2 * i + 1], CREDENTIAL_PLACE) == NULL ? strings[2 * i + 1] :
			with_credential(strings[2 * i + 1], credential);
	}
	return headers;
}

/* Nothing of a credential stays behind; the transport wipes its own copy. */
static void
wipe_headers(const ArHeader *headers, char **strings, int count)
{
	for (int i = 0; i < count / 2; i++)
	{
		if (headers[i].value != strings[2 * i + 1])
			explicit_bzero((char *) headers[i].value, strlen(headers[i].value));
	}
}

void
ar_request_start(ArEngine *engine, ArErrand *errand, ArRequest *request, char **strings, int count, const char *credential_name)
{
	char		credential[AR_CREDENTIAL_MAX];
	char		error[256];
	ArHeader   *headers;
	bool		started;

	credential[0] = '\0';
	if (!ar_host_list_allows(ar_setting_allowed_hosts, request->url))
	{
		ar_errand_end(engine, errand, NULL, "the host is not in action_reconcile.allowed_hosts");
		return;
	}
	if (names_credential(strings, count) &&
		!ar_credential_read(credential_name, credential, sizeof(credential), error, sizeof(error)))
	{
		ar_errand_end(engine, errand, NULL, error);
		return;
	}
	headers = make_headers(strings, count, credential);
	request->headers = headers;
	request->header_count = count / 2;
	request->secret = credential[0] != '\0' ? credential : NULL;
	request->cookie = errand;
	started = ar_transport_start(engine->transport, request, error, sizeof(error));
	wipe_headers(headers, strings, count);
	explicit_bzero(credential, sizeof(credential));
	if (!started)
		ar_errand_end(engine, errand, NULL, error);
}
