/*
 * enums.c
 *		Translate between enum datums and labels through the catalog's own code.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "types/enums.h"

char *
ar_enum_label(Datum value)
{
	return DatumGetCString(DirectFunctionCall1(enum_out, value));
}

Datum
ar_enum_datum(Oid type, const char *label)
{
	return DirectFunctionCall2(enum_in, CStringGetDatum(label), ObjectIdGetDatum(type));
}

Datum
ar_result_enum(FunctionCallInfo fcinfo, const char *label)
{
	return ar_enum_datum(get_func_rettype(fcinfo->flinfo->fn_oid), label);
}
