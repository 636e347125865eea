/*
 * access.c
 *		SQL-callable functions about what must not be kept, and where nothing may go.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "compat.h"
#include "core/host_list.h"
#include "core/redact.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(ar_names_secret_sql);
PG_FUNCTION_INFO_V1(ar_redacted);
PG_FUNCTION_INFO_V1(ar_host_is_allowed);

Datum
ar_names_secret_sql(PG_FUNCTION_ARGS)
{
	text	   *name = PG_GETARG_TEXT_PP(0);

	PG_RETURN_BOOL(ar_names_secret(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name),
								   PG_GETARG_BOOL(1) ? AR_NAME_OF_PARAMETER : AR_NAME_OF_MEMBER));
}

Datum
ar_redacted(PG_FUNCTION_ARGS)
{
	bytea	   *body = PG_GETARG_BYTEA_P_COPY(0);

	ar_redact_named(VARDATA(body), VARSIZE(body) - VARHDRSZ);
	PG_RETURN_BYTEA_P(body);
}

Datum
ar_host_is_allowed(PG_FUNCTION_ARGS)
{
	char	   *address = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_BOOL(ar_host_list_allows(ar_setting_allowed_hosts, address));
}
