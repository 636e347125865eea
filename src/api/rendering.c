/*
 * rendering.c
 *		SQL-callable functions that make the parts of a request.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "profile/header.h"
#include "profile/template.h"

PG_FUNCTION_INFO_V1(ar_render);
PG_FUNCTION_INFO_V1(ar_render_headers);
PG_FUNCTION_INFO_V1(ar_check_header_names);

Datum
ar_render(PG_FUNCTION_ARGS)
{
	char	   *template = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *part_name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	char	   *client_reference = text_to_cstring(PG_GETARG_TEXT_PP(2));
	Jsonb	   *payload = PG_GETARG_JSONB_P(3);
	ArTemplatePart part;

	if (strcmp(part_name, "path") == 0)
		part = AR_PART_PATH;
	else if (strcmp(part_name, "header") == 0)
		part = AR_PART_HEADER;
	else if (strcmp(part_name, "text") == 0)
		part = AR_PART_TEXT;
	else if (strcmp(part_name, "json") == 0)
		part = AR_PART_JSON;
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a request has no part \"%s\"", part_name),
				 errhint("The parts are path, header, text and json.")));
	PG_RETURN_TEXT_P(cstring_to_text(ar_template_fill(template, part, client_reference, payload)));
}

/* Calls back with each header; ereports 22023 on a name or value that is none. */
static void
for_each_header(Jsonb *headers, void (*use) (const char *name, const char *value, void *state), void *state)
{
	JsonbIterator *iterator;
	JsonbValue	item;
	JsonbIteratorToken token;
	char	   *name = NULL;

	if (!JB_ROOT_IS_OBJECT(headers))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("headers must be a JSON object of names and texts")));
	iterator = JsonbIteratorInit(&headers->root);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			const char *problem;

			name = pnstrdup(item.val.string.val, item.val.string.len);
			problem = ar_header_name_problem(name);
			if (problem != NULL)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("header \"%s\" cannot be set: %s", name, problem)));
		}
		else if (token == WJB_VALUE)
		{
			if (item.type != jbvString || item.val.string.len == 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("header \"%s\" must have a text that is not empty", name)));
			use(name, pnstrdup(item.val.string.val, item.val.string.len), state);
		}
	}
}

typedef struct HeaderList
{
	ArrayBuildState *elements;
	const char *client_reference;
	Jsonb	   *payload;
} HeaderList;

static void
add_header(const char *name, const char *value, void *state)
{
	HeaderList *list = state;
	char	   *filled = ar_template_fill(value, AR_PART_HEADER, list->client_reference, list->payload);

	list->elements = accumArrayResult(list->elements, CStringGetTextDatum(name), false, TEXTOID, CurrentMemoryContext);
	list->elements = accumArrayResult(list->elements, CStringGetTextDatum(filled), false, TEXTOID, CurrentMemoryContext);
}

Datum
ar_render_headers(PG_FUNCTION_ARGS)
{
	HeaderList	list = {0};

	list.client_reference = text_to_cstring(PG_GETARG_TEXT_PP(1));
	list.payload = PG_GETARG_JSONB_P(2);
	for_each_header(PG_GETARG_JSONB_P(0), add_header, &list);
	if (list.elements == NULL)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(TEXTOID));
	PG_RETURN_DATUM(makeArrayResult(list.elements, CurrentMemoryContext));
}

static void
ignore_header(const char *name, const char *value, void *state)
{
	for (const unsigned char *c = (const unsigned char *) value; *c; c++)
	{
		if ((*c < 0x20 && *c != '\t') || *c == 0x7f)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("header \"%s\" holds a control character", name)));
	}
}

Datum
ar_check_header_names(PG_FUNCTION_ARGS)
{
	for_each_header(PG_GETARG_JSONB_P(0), ignore_header, NULL);
	PG_RETURN_VOID();
}
