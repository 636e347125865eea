/*
 * rendering.c
 *		SQL-callable functions that make the parts of a request and read answers.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "profile/answer.h"
#include "profile/guarded.h"
#include "profile/request.h"
#include "profile/template.h"

PG_FUNCTION_INFO_V1(ar_render);
PG_FUNCTION_INFO_V1(ar_render_headers);
PG_FUNCTION_INFO_V1(ar_render_json);
PG_FUNCTION_INFO_V1(ar_render_request);
PG_FUNCTION_INFO_V1(ar_try_render_request);
PG_FUNCTION_INFO_V1(ar_check_header_names);
PG_FUNCTION_INFO_V1(ar_try_jsonb);

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

Datum
ar_render_headers(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(ar_headers_render(PG_GETARG_JSONB_P(0), text_to_cstring(PG_GETARG_TEXT_PP(1)), PG_GETARG_JSONB_P(2)));
}

Datum
ar_check_header_names(PG_FUNCTION_ARGS)
{
	ar_headers_check(PG_GETARG_JSONB_P(0));
	PG_RETURN_VOID();
}

Datum
ar_render_json(PG_FUNCTION_ARGS)
{
	PG_RETURN_JSONB_P(ar_reference_write(PG_GETARG_JSONB_P(0), PG_GETARG_DATUM(1), text_to_cstring(PG_GETARG_TEXT_PP(2))));
}

Datum
ar_try_jsonb(PG_FUNCTION_ARGS)
{
	text	   *body = PG_GETARG_TEXT_PP(0);
	Jsonb	   *document = ar_answer_document(VARDATA_ANY(body), VARSIZE_ANY_EXHDR(body));

	if (document == NULL)
		PG_RETURN_NULL();
	PG_RETURN_JSONB_P(document);
}

static char *
attribute_text(HeapTupleHeader row, const char *name)
{
	bool		is_null;
	Datum		value = GetAttributeByName(row, name, &is_null);

	return is_null ? NULL : TextDatumGetCString(value);
}

typedef struct Rendering
{
	HeapTupleHeader operation;
	char	   *client_reference;
	Jsonb	   *payload;
	ArRenderedRequest request;
} Rendering;

static void
render_request(void *state)
{
	Rendering  *rendering = state;
	ArRequestTemplate template;
	Datum		headers;
	bool		is_null;

	template.method = attribute_text(rendering->operation, "method");
	template.path = attribute_text(rendering->operation, "path");
	headers = GetAttributeByName(rendering->operation, "headers", &is_null);
	/* A row made by hand may lack what the table requires. */
	if (is_null || template.method == NULL || template.path == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("method, path and headers of an operation must not be null")));
	template.headers = DatumGetJsonbP(headers);
	template.body_template = attribute_text(rendering->operation, "body_template");
	template.reference_body_path = GetAttributeByName(rendering->operation, "reference_body_path", &is_null);
	if (is_null)
		template.reference_body_path = 0;
	ar_request_render(&template, rendering->client_reference, rendering->payload, &rendering->request);
}

static Rendering
rendering_arguments(FunctionCallInfo fcinfo)
{
	Rendering	rendering = {0};

	rendering.operation = PG_GETARG_HEAPTUPLEHEADER(0);
	rendering.client_reference = text_to_cstring(PG_GETARG_TEXT_PP(1));
	rendering.payload = PG_GETARG_JSONB_P(2);
	return rendering;
}

static Datum
rendered_row(FunctionCallInfo fcinfo, const Rendering *rendering)
{
	const ArRenderedRequest *request = &rendering->request;
	TupleDesc	descriptor;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (request->path != NULL)
	{
		values[0] = CStringGetTextDatum(request->path);
		values[1] = request->headers;
		values[2] = request->body ? CStringGetTextDatum(request->body) : (Datum) 0;
		nulls[0] = nulls[1] = false;
		nulls[2] = request->body == NULL;
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

Datum
ar_render_request(PG_FUNCTION_ARGS)
{
	Rendering	rendering = rendering_arguments(fcinfo);

	render_request(&rendering);
	return rendered_row(fcinfo, &rendering);
}

/* For the engine: one action that cannot be made into a request must not hold up the others. */
Datum
ar_try_render_request(PG_FUNCTION_ARGS)
{
	Rendering	rendering = rendering_arguments(fcinfo);

	if (!ar_guarded(render_request, &rendering))
		rendering.request.path = NULL;
	return rendered_row(fcinfo, &rendering);
}
