/*
 * rendering.c
 *		SQL-callable functions that make the parts of a request and read answers.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/typcache.h"

#include "profile/answer.h"
#include "profile/document.h"
#include "profile/guarded.h"
#include "profile/header_list.h"
#include "profile/request.h"
#include "profile/template.h"

PG_FUNCTION_INFO_V1(ar_render);
PG_FUNCTION_INFO_V1(ar_render_headers);
PG_FUNCTION_INFO_V1(ar_render_json);
PG_FUNCTION_INFO_V1(ar_render_request);
PG_FUNCTION_INFO_V1(ar_try_render_request);
PG_FUNCTION_INFO_V1(ar_render_question);
PG_FUNCTION_INFO_V1(ar_try_render_question);
PG_FUNCTION_INFO_V1(ar_takes_key);
PG_FUNCTION_INFO_V1(ar_sends_reference);
PG_FUNCTION_INFO_V1(ar_check_header_names);
PG_FUNCTION_INFO_V1(ar_try_jsonb);

Datum
ar_render(PG_FUNCTION_ARGS)
{
	char	   *template = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *part_name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	ArValues	values = {.client_reference = text_to_cstring(PG_GETARG_TEXT_PP(2)), .payload = PG_GETARG_JSONB_P(3)};
	ArTemplatePart part;

	if (!ar_template_part_parse(part_name, &part))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a request has no part \"%s\"", part_name),
				 errhint("The parts are path, header, text, json and form.")));
	PG_RETURN_TEXT_P(cstring_to_text(ar_template_fill(template, part, &values)));
}

Datum
ar_render_headers(PG_FUNCTION_ARGS)
{
	ArValues	values = {.client_reference = text_to_cstring(PG_GETARG_TEXT_PP(1)), .payload = PG_GETARG_JSONB_P(2)};

	PG_RETURN_DATUM(ar_headers_render(PG_GETARG_JSONB_P(0), AR_CONTENT_TYPE_AS_IS, &values));
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
	PG_RETURN_JSONB_P(ar_document_write(PG_GETARG_JSONB_P(0), PG_GETARG_DATUM(1), text_to_cstring(PG_GETARG_TEXT_PP(2)),
										AR_WRITTEN_REFERENCE));
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

/* The columns of an operation that say what its request is, in any order of the table. */
typedef enum RequestColumn
{
	COLUMN_METHOD,
	COLUMN_PATH,
	COLUMN_HEADERS,
	COLUMN_BODY_FORMAT,
	COLUMN_BODY_DOCUMENT,
	COLUMN_BODY_TEMPLATE,
	COLUMN_REFERENCE_BODY_PATH,
	COLUMN_KEY_BODY_PATH,
	REQUEST_COLUMNS
} RequestColumn;

static const char *const request_columns[REQUEST_COLUMNS] = {
	"method", "path", "headers", "body_format", "body_document", "body_template", "reference_body_path", "key_body_path"
};

/* Where a column is; it usually is where it was last time. */
static int
find_column(TupleDesc descriptor, RequestColumn column)
{
	static int	remembered[REQUEST_COLUMNS];

	for (int tried = -1; tried < descriptor->natts; tried++)
	{
		int			place = tried < 0 ? remembered[column] : tried;

		if (place < descriptor->natts && !TupleDescAttr(descriptor, place)->attisdropped &&
			strcmp(NameStr(TupleDescAttr(descriptor, place)->attname), request_columns[column]) == 0)
		{
			remembered[column] = place;
			return place;
		}
	}
	elog(ERROR, "an operation has no column \"%s\"", request_columns[column]);
	return -1;
}

/* The wanted columns of an operation; 0 for a null. */
static void
read_columns(HeapTupleHeader row, Datum columns[REQUEST_COLUMNS])
{
	TupleDesc	descriptor = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(row), .t_tableOid = InvalidOid, .t_data = row};
	Datum	   *values = palloc(sizeof(Datum) * descriptor->natts);
	bool	   *nulls = palloc(sizeof(bool) * descriptor->natts);

	ItemPointerSetInvalid(&tuple.t_self);
	heap_deform_tuple(&tuple, descriptor, values, nulls);
	for (int i = 0; i < REQUEST_COLUMNS; i++)
	{
		int			place = find_column(descriptor, (RequestColumn) i);

		columns[i] = nulls[place] ? (Datum) 0 : values[place];
	}
	ReleaseTupleDesc(descriptor);
}

static char *
column_text(Datum column)
{
	return column == 0 ? NULL : TextDatumGetCString(column);
}

static ArBodyFormat
body_format(const char *name)
{
	if (name == NULL || strcmp(name, "json") == 0)
		return AR_BODY_JSON;
	if (strcmp(name, "form") == 0)
		return AR_BODY_FORM;
	if (strcmp(name, "none") == 0)
		return AR_BODY_NONE;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("a body has no format \"%s\"", name),
			 errhint("The formats are json, form and none.")));
}

static ArRequestTemplate
read_operation(HeapTupleHeader row)
{
	Datum		columns[REQUEST_COLUMNS];
	ArRequestTemplate template;

	read_columns(row, columns);
	template.method = column_text(columns[COLUMN_METHOD]);
	template.path = column_text(columns[COLUMN_PATH]);
	template.headers = columns[COLUMN_HEADERS] ? DatumGetJsonbP(columns[COLUMN_HEADERS]) : NULL;
	template.body_format = body_format(column_text(columns[COLUMN_BODY_FORMAT]));
	template.body_document = columns[COLUMN_BODY_DOCUMENT] ? DatumGetJsonbP(columns[COLUMN_BODY_DOCUMENT]) : NULL;
	template.body_template = column_text(columns[COLUMN_BODY_TEMPLATE]);
	template.reference_body_path = columns[COLUMN_REFERENCE_BODY_PATH];
	template.key_body_path = columns[COLUMN_KEY_BODY_PATH];
	return template;
}

static char *
argument_text(FunctionCallInfo fcinfo, int number)
{
	return PG_ARGISNULL(number) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(number));
}

static Jsonb *
argument_jsonb(FunctionCallInfo fcinfo, int number)
{
	return PG_ARGISNULL(number) ? NULL : PG_GETARG_JSONB_P(number);
}

typedef struct Rendering
{
	HeapTupleHeader operation;	/* of a request */
	ArQuestionTemplate question;	/* of a question */
	ArValues	values;
	ArRenderedRequest request;
} Rendering;

static Datum
rendered_row(FunctionCallInfo fcinfo, const ArRenderedRequest *request)
{
	TupleDesc	descriptor;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (request != NULL)
	{
		values[0] = request->path ? CStringGetTextDatum(request->path) : (Datum) 0;
		values[1] = request->headers;
		values[2] = request->body ? CStringGetTextDatum(request->body) : (Datum) 0;
		nulls[0] = request->path == NULL;
		nulls[1] = false;
		nulls[2] = request->body == NULL;
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

static void
render_request(void *state)
{
	Rendering  *rendering = state;
	ArRequestTemplate template = read_operation(rendering->operation);

	/* A row made by hand may lack what the table requires. */
	if (template.headers == NULL || template.method == NULL || template.path == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("method, path and headers of an operation must not be null")));
	ar_request_render(&template, &rendering->values, &rendering->request);
}

static void
render_question(void *state)
{
	Rendering  *rendering = state;

	ar_question_render(&rendering->question, &rendering->values, &rendering->request);
}

/* False if one that a request cannot do without is null: only the key may be. */
static bool
read_request_arguments(FunctionCallInfo fcinfo, Rendering *rendering)
{
	memset(rendering, 0, sizeof(*rendering));
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		return false;
	rendering->operation = PG_GETARG_HEAPTUPLEHEADER(0);
	rendering->values.client_reference = argument_text(fcinfo, 1);
	rendering->values.payload = argument_jsonb(fcinfo, 2);
	rendering->values.idempotency_key = argument_text(fcinfo, 3);
	rendering->values.extra = argument_jsonb(fcinfo, 4);
	return true;
}

static void
read_question_arguments(FunctionCallInfo fcinfo, Rendering *rendering)
{
	memset(rendering, 0, sizeof(*rendering));
	rendering->question.path = argument_text(fcinfo, 0);
	rendering->question.headers = argument_jsonb(fcinfo, 1);
	rendering->question.body = argument_jsonb(fcinfo, 2);
	rendering->values.client_reference = argument_text(fcinfo, 3);
	rendering->values.payload = argument_jsonb(fcinfo, 4);
	rendering->values.idempotency_key = argument_text(fcinfo, 5);
	rendering->values.extra = argument_jsonb(fcinfo, 6);
}

Datum
ar_render_request(PG_FUNCTION_ARGS)
{
	Rendering	rendering;

	if (!read_request_arguments(fcinfo, &rendering))
		PG_RETURN_NULL();
	render_request(&rendering);
	return rendered_row(fcinfo, &rendering.request);
}

/* For the engine: one action that cannot be made into a request must not hold up the others. */
Datum
ar_try_render_request(PG_FUNCTION_ARGS)
{
	Rendering	rendering;

	if (!read_request_arguments(fcinfo, &rendering))
		PG_RETURN_NULL();
	return rendered_row(fcinfo, ar_guarded(render_request, &rendering) ? &rendering.request : NULL);
}

Datum
ar_render_question(PG_FUNCTION_ARGS)
{
	Rendering	rendering;

	read_question_arguments(fcinfo, &rendering);
	render_question(&rendering);
	return rendered_row(fcinfo, &rendering.request);
}

Datum
ar_try_render_question(PG_FUNCTION_ARGS)
{
	Rendering	rendering;

	read_question_arguments(fcinfo, &rendering);
	return rendered_row(fcinfo, ar_guarded(render_question, &rendering) ? &rendering.request : NULL);
}

Datum
ar_takes_key(PG_FUNCTION_ARGS)
{
	ArRequestTemplate template = read_operation(PG_GETARG_HEAPTUPLEHEADER(0));

	PG_RETURN_BOOL(ar_request_takes_key(&template));
}

Datum
ar_sends_reference(PG_FUNCTION_ARGS)
{
	ArRequestTemplate template = read_operation(PG_GETARG_HEAPTUPLEHEADER(0));

	PG_RETURN_BOOL(ar_request_sends_reference(&template));
}
