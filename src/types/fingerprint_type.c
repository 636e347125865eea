/*
 * fingerprint_type.c
 *		The SQL type "intent_fingerprint": 32 bytes, shown as sha256: and hex.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "core/canonical_json.h"
#include "types/digest.h"

PG_FUNCTION_INFO_V1(ar_intent_fingerprint_in);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_out);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_recv);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_send);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_eq);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_ne);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_lt);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_le);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_gt);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_ge);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_cmp);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_hash);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint_hash_extended);
PG_FUNCTION_INFO_V1(ar_intent_fingerprint);

#define FINGERPRINT_PREFIX "sha256:"
#define FINGERPRINT_PREFIX_LENGTH (sizeof(FINGERPRINT_PREFIX) - 1)

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Lower case only: one fingerprint has one text. */
Datum
ar_intent_fingerprint_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	uint8	   *digest = palloc(AR_DIGEST_LENGTH);
	bool		valid = strncmp(text, FINGERPRINT_PREFIX, FINGERPRINT_PREFIX_LENGTH) == 0 &&
		strlen(text) == FINGERPRINT_PREFIX_LENGTH + 2 * AR_DIGEST_LENGTH;

	for (int i = 0; valid && i < AR_DIGEST_LENGTH; i++)
	{
		int			high = hex_digit(text[FINGERPRINT_PREFIX_LENGTH + 2 * i]);
		int			low = hex_digit(text[FINGERPRINT_PREFIX_LENGTH + 2 * i + 1]);

		valid = high >= 0 && low >= 0;
		digest[i] = (uint8) (high << 4 | low);
	}
	if (!valid)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", "intent_fingerprint", text),
				 errhint("A fingerprint is \"sha256:\" followed by 64 lower-case hexadecimal digits.")));
	PG_RETURN_POINTER(digest);
}

Datum
ar_intent_fingerprint_out(PG_FUNCTION_ARGS)
{
	uint8	   *digest = (uint8 *) PG_GETARG_POINTER(0);
	char	   *text = palloc(FINGERPRINT_PREFIX_LENGTH + 2 * AR_DIGEST_LENGTH + 1);

	memcpy(text, FINGERPRINT_PREFIX, FINGERPRINT_PREFIX_LENGTH);
	hex_encode((char *) digest, AR_DIGEST_LENGTH, text + FINGERPRINT_PREFIX_LENGTH);
	text[FINGERPRINT_PREFIX_LENGTH + 2 * AR_DIGEST_LENGTH] = '\0';
	PG_RETURN_CSTRING(text);
}

Datum
ar_intent_fingerprint_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	uint8	   *digest = palloc(AR_DIGEST_LENGTH);

	memcpy(digest, pq_getmsgbytes(buffer, AR_DIGEST_LENGTH), AR_DIGEST_LENGTH);
	PG_RETURN_POINTER(digest);
}

Datum
ar_intent_fingerprint_send(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbytes(&buffer, (char *) PG_GETARG_POINTER(0), AR_DIGEST_LENGTH);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

static int
compare(FunctionCallInfo fcinfo)
{
	return memcmp(PG_GETARG_POINTER(0), PG_GETARG_POINTER(1), AR_DIGEST_LENGTH);
}

#define FINGERPRINT_COMPARISON(name, operator) \
Datum \
ar_intent_fingerprint_##name(PG_FUNCTION_ARGS) \
{ \
	PG_RETURN_BOOL(compare(fcinfo) operator 0); \
}

FINGERPRINT_COMPARISON(eq, ==)
FINGERPRINT_COMPARISON(ne, !=)
FINGERPRINT_COMPARISON(lt, <)
FINGERPRINT_COMPARISON(le, <=)
FINGERPRINT_COMPARISON(gt, >)
FINGERPRINT_COMPARISON(ge, >=)

Datum
ar_intent_fingerprint_cmp(PG_FUNCTION_ARGS)
{
	int			order = compare(fcinfo);

	PG_RETURN_INT32(order < 0 ? -1 : order > 0);
}

Datum
ar_intent_fingerprint_hash(PG_FUNCTION_ARGS)
{
	return hash_any((unsigned char *) PG_GETARG_POINTER(0), AR_DIGEST_LENGTH);
}

Datum
ar_intent_fingerprint_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended((unsigned char *) PG_GETARG_POINTER(0), AR_DIGEST_LENGTH,
							 (uint64) PG_GETARG_INT64(1));
}

/* intent_fingerprint(method, path, payload): the constructor that everything uses. */
Datum
ar_intent_fingerprint(PG_FUNCTION_ARGS)
{
	char	   *method = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(1));
	Jsonb	   *payload = PG_GETARG_JSONB_P(2);
	char	   *json = JsonbToCString(NULL, &payload->root, VARSIZE(payload));
	uint8	   *digest = palloc(AR_DIGEST_LENGTH);
	ArBuffer	canonical;
	ArJsonError error;

	ar_buffer_init(&canonical);
	if (!ar_canonical_intent(method, path, json, strlen(json), &canonical, &error))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the intent has no canonical form: %s", ar_json_error_message(error.code)),
				 errdetail("At byte %zu.", error.offset)));
	PG_TRY();
	{
		ar_sha256(canonical.data, canonical.length, digest);
	}
	PG_FINALLY();
	{
		ar_buffer_destroy(&canonical);
	}
	PG_END_TRY();
	PG_RETURN_POINTER(digest);
}
