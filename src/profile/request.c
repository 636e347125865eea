/*
 * request.c
 *		The request that an action makes, from the templates of its operation.
 */
#include "profile/request.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "profile/header.h"
#include "profile/template.h"

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
ar_headers_render(Jsonb *headers, const char *client_reference, Jsonb *payload)
{
	HeaderList	list = {NULL, client_reference, payload};

	for_each_header(headers, add_header, &list);
	if (list.elements == NULL)
		return PointerGetDatum(construct_empty_array(TEXTOID));
	return makeArrayResult(list.elements, CurrentMemoryContext);
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

void
ar_headers_check(Jsonb *headers)
{
	for_each_header(headers, ignore_header, NULL);
}

static void
refuse_place(const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the client reference cannot be written into the payload: %s", problem),
			 errhint("The operation writes it into the JSON body at reference_body_path; every step of that path must be an object or missing.")));
}

static Jsonb *
set_at(Jsonb *document, ArrayType *path, Jsonb *value)
{
	return DatumGetJsonbP(DirectFunctionCall4(jsonb_set, JsonbPGetDatum(document), PointerGetDatum(path),
											  JsonbPGetDatum(value), BoolGetDatum(true)));
}

/* The member of an object, or NULL. */
static Jsonb *
member(Jsonb *object, text *name)
{
	JsonbValue	key;
	JsonbValue *value;

	key.type = jbvString;
	key.val.string.val = VARDATA_ANY(name);
	key.val.string.len = VARSIZE_ANY_EXHDR(name);
	value = findJsonbValueFromContainer(&object->root, JB_FOBJECT, &key);
	return value == NULL ? NULL : JsonbValueToJsonb(value);
}

Jsonb *
ar_reference_write(Jsonb *payload, Datum path, const char *client_reference)
{
	Datum	   *steps;
	int			depth;
	Jsonb	   *at = payload;
	JsonbValue	reference;

	deconstruct_array(DatumGetArrayTypeP(path), TEXTOID, -1, false, TYPALIGN_INT, &steps, NULL, &depth);
	if (depth == 0)
		refuse_place("reference_body_path is empty");
	for (int i = 0; i < depth; i++)
	{
		if (at == NULL)
		{
			Jsonb	   *empty = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));

			payload = set_at(payload, construct_array(steps, i, TEXTOID, -1, false, TYPALIGN_INT), empty);
			at = empty;
		}
		if (!JB_ROOT_IS_OBJECT(at))
			refuse_place(i == 0 ? "it is no JSON object" : "something other than an object is in the way");
		if (i < depth - 1)
			at = member(at, DatumGetTextPP(steps[i]));
	}
	reference.type = jbvString;
	reference.val.string.val = (char *) client_reference;
	reference.val.string.len = (int) strlen(client_reference);
	return set_at(payload, DatumGetArrayTypeP(path), JsonbValueToJsonb(&reference));
}

static void
note_json(const char *name, const char *value, void *state)
{
	bool	   *is_json = state;

	if (pg_strcasecmp(name, "content-type") != 0)
		return;
	for (; *value; value++)
		*is_json = *is_json || pg_strncasecmp(value, "json", 4) == 0;
}

/* Does the operation declare its body to be JSON? Then values are escaped for it. */
static bool
body_is_json(Jsonb *headers)
{
	bool		is_json = false;

	for_each_header(headers, note_json, &is_json);
	return is_json;
}

void
ar_request_render(const ArRequestTemplate *template, const char *client_reference,
				  Jsonb *payload, ArRenderedRequest *request)
{
	request->path = ar_template_fill(template->path, AR_PART_PATH, client_reference, payload);
	request->headers = ar_headers_render(template->headers, client_reference, payload);
	request->body = NULL;
	if (template->body_template != NULL)
		request->body = ar_template_fill(template->body_template,
										 body_is_json(template->headers) ? AR_PART_JSON : AR_PART_TEXT,
										 client_reference, payload);
	else if (template->reference_body_path != 0 || strcmp(template->method, "DELETE") != 0)
	{
		if (template->reference_body_path != 0)
			payload = ar_reference_write(payload, template->reference_body_path, client_reference);
		request->body = JsonbToCString(NULL, &payload->root, VARSIZE(payload));
	}
}
