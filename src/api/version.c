/*
 * version.c
 *		SQL-callable: which version of the SQL interface this library is for.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "store/extension.h"

PG_FUNCTION_INFO_V1(ar_version);

Datum
ar_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(ar_library_version()));
}
