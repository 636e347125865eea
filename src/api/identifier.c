/*
 * identifier.c
 *		SQL-callable function that makes the identifiers of an action.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/uuid.h"

#include "core/identifier.h"
#include "types/digest.h"

PG_FUNCTION_INFO_V1(ar_make_identifier);

Datum
ar_make_identifier(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *action_id = PG_GETARG_UUID_P(0);
	int32		generation = PG_GETARG_INT32(1);
	char	   *format_name = text_to_cstring(PG_GETARG_TEXT_PP(2));
	ArIdentifierFormat format;
	uint8		bits[AR_DIGEST_LENGTH];
	uint8		seed[AR_IDENTIFIER_SEED_BYTES];
	char		identifier[AR_IDENTIFIER_SIZE];

	StaticAssertStmt(AR_DIGEST_LENGTH >= AR_IDENTIFIER_BYTES, "a digest is long enough to be cut");
	if (!ar_identifier_format_parse(format_name, &format))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("an identifier has no format \"%s\"", format_name),
				 errhint("The formats are uuid, hex, base32hex and base62.")));
	if (generation < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("an identifier has no generation %d", generation),
				 errhint("Generations are counted from 0.")));
	memcpy(bits, action_id->data, AR_IDENTIFIER_BYTES);
	if (generation > 0)
	{
		ar_identifier_seed(action_id->data, (uint32) generation, seed);
		ar_sha256(seed, sizeof(seed), bits);
		if (format == AR_IDENTIFIER_UUID)
			ar_identifier_shape_uuid(bits);
	}
	ar_identifier_write(bits, format, identifier);
	PG_RETURN_TEXT_P(cstring_to_text(identifier));
}
