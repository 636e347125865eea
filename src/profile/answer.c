/*
 * answer.c
 *		Reading a provider's answer.
 *
 * What a provider sends is data of unknown quality: whatever is wrong with it,
 * the result is "cannot be read", never an error of ours.  So the body is
 * parsed and searched inside a subtransaction.
 */
#include "profile/answer.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/jsonpath.h"
#include "utils/numeric.h"

#include "profile/guarded.h"

#define ID_BYTES_MAX	2000		/* an index has to hold it */

Jsonb *
ar_json_query(PGFunction function, Jsonb *document, const char *path)
{
	LOCAL_FCINFO(fcinfo, 4);
	Datum		result;
	Datum		empty = DirectFunctionCall1(jsonb_in, CStringGetDatum("{}"));

	InitFunctionCallInfoData(*fcinfo, NULL, 4, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(document);
	fcinfo->args[1].value = DirectFunctionCall1(jsonpath_in, CStringGetDatum(path));
	fcinfo->args[2].value = empty;
	fcinfo->args[3].value = BoolGetDatum(true);
	for (int i = 0; i < 4; i++)
		fcinfo->args[i].isnull = false;
	result = function(fcinfo);
	return fcinfo->isnull ? NULL : DatumGetJsonbP(result);
}

char *
ar_json_scalar_text(Jsonb *document)
{
	JsonbValue	value;

	if (document == NULL || !JB_ROOT_IS_SCALAR(document))
		return NULL;
	if (!JsonbExtractScalar(&document->root, &value))
		return NULL;
	if (value.type == jbvString && value.val.string.len > 0)
		return pnstrdup(value.val.string.val, value.val.string.len);
	if (value.type == jbvNumeric)
		return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
	if (value.type == jbvBool)
		return pstrdup(value.val.boolean ? "true" : "false");
	return NULL;
}

Jsonb *
ar_json_parse(const char *body, size_t length)
{
	char	   *text = pnstrdup(body, length);

	if (strlen(text) != length)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("the body holds a NUL byte")));
	pg_verifymbstr(text, (int) length, false);
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

typedef struct DocumentRead
{
	const char *body;
	size_t		length;
	Jsonb	   *document;
} DocumentRead;

static void
read_document(void *state)
{
	DocumentRead *read = state;

	read->document = ar_json_parse(read->body, read->length);
}

Jsonb *
ar_answer_document(const char *body, size_t length)
{
	DocumentRead read = {body, length, NULL};

	return ar_guarded(read_document, &read) ? read.document : NULL;
}

typedef struct ValueRead
{
	const char *body;
	size_t		length;
	const char *jsonpath;
	char	   *value;
} ValueRead;

static void
read_value(void *state)
{
	ValueRead  *read = state;

	read->value = ar_json_scalar_text(ar_json_query(jsonb_path_query_first, ar_json_parse(read->body, read->length), read->jsonpath));
}

char *
ar_answer_value(const char *body, size_t length, const char *jsonpath)
{
	ValueRead	read = {body, length, jsonpath, NULL};

	if (!ar_guarded(read_value, &read) || read.value == NULL || !ar_answer_text_is_clean(read.value))
		return NULL;
	return read.value;
}

bool
ar_answer_text_is_clean(const char *text)
{
	for (const unsigned char *c = (const unsigned char *) text; *c; c++)
	{
		if (*c < 0x20 || *c == 0x7f)
			return false;
	}
	return pg_verifymbstr(text, (int) strlen(text), true);
}

char *
ar_answer_id(char *text)
{
	return text != NULL && strlen(text) <= ID_BYTES_MAX && ar_answer_text_is_clean(text) ? text : NULL;
}
