/*
 * standing_type.c
 *		The SQL type "standing": one byte that cannot hold an illegal pair.
 *
 * Every way in (text, binary, the constructor) goes through core/standing.h,
 * and the stored code is checked again on the way out, because a byte from a
 * damaged page must not be shown as a standing.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "core/standing.h"
#include "types/enums.h"
#include "types/standing_type.h"

PG_FUNCTION_INFO_V1(ar_standing_in);
PG_FUNCTION_INFO_V1(ar_standing_out);
PG_FUNCTION_INFO_V1(ar_standing_recv);
PG_FUNCTION_INFO_V1(ar_standing_send);
PG_FUNCTION_INFO_V1(ar_standing_eq);
PG_FUNCTION_INFO_V1(ar_standing_ne);
PG_FUNCTION_INFO_V1(ar_standing_lt);
PG_FUNCTION_INFO_V1(ar_standing_le);
PG_FUNCTION_INFO_V1(ar_standing_gt);
PG_FUNCTION_INFO_V1(ar_standing_ge);
PG_FUNCTION_INFO_V1(ar_standing_cmp);
PG_FUNCTION_INFO_V1(ar_standing_hash);
PG_FUNCTION_INFO_V1(ar_standing_hash_extended);
PG_FUNCTION_INFO_V1(ar_standing_of);
PG_FUNCTION_INFO_V1(ar_standing_delivery_of);
PG_FUNCTION_INFO_V1(ar_standing_acceptance_of);
PG_FUNCTION_INFO_V1(ar_standing_resolved_status);
PG_FUNCTION_INFO_V1(ar_fold_attempts);

/* The standing behind a datum. May ereport on a damaged value. */
ArStanding
ar_datum_standing(Datum value)
{
	int			code = DatumGetChar(value);

	if (!ar_standing_is_valid(code))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("code %d is not a standing", code)));
	return (ArStanding) code;
}

Datum
ar_standing_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	ArStanding	standing;

	if (!ar_standing_parse(text, &standing))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s: \"%s\"", "standing", text),
				 errhint("A standing is pending/pending, confirmed/pending, confirmed/accepted, confirmed/rejected or failed/pending.")));
	PG_RETURN_CHAR((char) standing);
}

Datum
ar_standing_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(pstrdup(ar_standing_name(ar_datum_standing(PG_GETARG_DATUM(0)))));
}

Datum
ar_standing_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			code = pq_getmsgbyte(buffer);

	if (!ar_standing_is_valid(code))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary value for type %s: %d", "standing", code)));
	PG_RETURN_CHAR((char) code);
}

Datum
ar_standing_send(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendbyte(&buffer, (uint8) ar_datum_standing(PG_GETARG_DATUM(0)));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

#define STANDING_COMPARISON(name, operator) \
Datum \
ar_standing_##name(PG_FUNCTION_ARGS) \
{ \
	PG_RETURN_BOOL(PG_GETARG_CHAR(0) operator PG_GETARG_CHAR(1)); \
}

STANDING_COMPARISON(eq, ==)
STANDING_COMPARISON(ne, !=)
STANDING_COMPARISON(lt, <)
STANDING_COMPARISON(le, <=)
STANDING_COMPARISON(gt, >)
STANDING_COMPARISON(ge, >=)

Datum
ar_standing_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) PG_GETARG_CHAR(0) - (int32) PG_GETARG_CHAR(1));
}

Datum
ar_standing_hash(PG_FUNCTION_ARGS)
{
	return hash_uint32((uint32) PG_GETARG_CHAR(0));
}

Datum
ar_standing_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_uint32_extended((uint32) PG_GETARG_CHAR(0), (uint64) PG_GETARG_INT64(1));
}

/* The enums list their labels in the order of the C enums. */
Datum
ar_standing_of(PG_FUNCTION_ARGS)
{
	char	   *delivery = ar_enum_label(PG_GETARG_DATUM(0));
	char	   *acceptance = ar_enum_label(PG_GETARG_DATUM(1));
	char	   *pair = psprintf("%s/%s", delivery, acceptance);
	ArStanding	standing;

	if (!ar_standing_parse(pair, &standing))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no standing \"%s\"", pair),
				 errhint("Acceptance stays pending until delivery is confirmed.")));
	PG_RETURN_CHAR((char) standing);
}

Datum
ar_standing_delivery_of(PG_FUNCTION_ARGS)
{
	ArStanding	standing = ar_datum_standing(PG_GETARG_DATUM(0));

	return ar_result_enum(fcinfo, ar_delivery_name(ar_standing_delivery(standing)));
}

Datum
ar_standing_acceptance_of(PG_FUNCTION_ARGS)
{
	ArStanding	standing = ar_datum_standing(PG_GETARG_DATUM(0));

	return ar_result_enum(fcinfo, ar_acceptance_name(ar_standing_acceptance(standing)));
}

Datum
ar_standing_resolved_status(PG_FUNCTION_ARGS)
{
	ArStanding	standing = ar_datum_standing(PG_GETARG_DATUM(0));

	return ar_result_enum(fcinfo, ar_status_name(ar_resolved_status(standing)));
}

Datum
ar_fold_attempts(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	bool		queued = PG_GETARG_BOOL(1);
	Datum	   *values;
	bool	   *nulls;
	int			count;
	ArStanding *standings;

	deconstruct_array(array, ARR_ELEMTYPE(array), 1, true, TYPALIGN_CHAR, &values, &nulls, &count);
	standings = palloc(sizeof(ArStanding) * Max(count, 1));
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("standings to fold must not be null")));
		standings[i] = ar_datum_standing(values[i]);
	}
	PG_RETURN_CHAR((char) ar_fold(standings, count, queued));
}
