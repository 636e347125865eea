/*
 * curl_url.c
 *		References in a provider's answers, resolved and kept at home.
 */
#include "transport/transport_internal.h"

#include <string.h>
#include <strings.h>

static bool
same_part(CURLU *one, CURLU *other, CURLUPart part)
{
	char	   *a = NULL;
	char	   *b = NULL;
	bool		same = curl_url_get(one, part, &a, CURLU_DEFAULT_PORT) == CURLUE_OK &&
		curl_url_get(other, part, &b, CURLU_DEFAULT_PORT) == CURLUE_OK && strcasecmp(a, b) == 0;

	curl_free(a);
	curl_free(b);
	return same;
}

static bool
has_part(CURLU *url, CURLUPart part)
{
	char	   *text = NULL;
	bool		has = curl_url_get(url, part, &text, 0) == CURLUE_OK;

	curl_free(text);
	return has;
}

static bool
is_visible(const char *text)
{
	for (const unsigned char *c = (const unsigned char *) text; *c; c++)
	{
		if (*c <= 0x20 || *c >= 0x7f)
			return false;
	}
	return *text != '\0';
}

/* Resolves "reference" against home in "url"; false if it leads elsewhere. */
static bool
resolve(CURLU *home, CURLU *url, const char *base, const char *reference)
{
	return curl_url_set(home, CURLUPART_URL, base, 0) == CURLUE_OK &&
		curl_url_set(url, CURLUPART_URL, base, 0) == CURLUE_OK &&
		curl_url_set(url, CURLUPART_URL, reference, 0) == CURLUE_OK &&
		!has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD) &&
		curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK &&
		same_part(home, url, CURLUPART_SCHEME) && same_part(home, url, CURLUPART_HOST) && same_part(home, url, CURLUPART_PORT);
}

bool
ar_url_resolve(const char *base, const char *reference, char *url, size_t size)
{
	CURLU	   *home = curl_url();
	CURLU	   *target = curl_url();
	char	   *text = NULL;
	bool		resolved = home != NULL && target != NULL && is_visible(reference) && resolve(home, target, base, reference) &&
		curl_url_get(target, CURLUPART_URL, &text, 0) == CURLUE_OK && strlen(text) < size;

	if (resolved)
		memcpy(url, text, strlen(text) + 1);
	curl_free(text);
	curl_url_cleanup(target);
	curl_url_cleanup(home);
	return resolved;
}
