/*
 * document.c
 *		JSON templates, and what is written into a JSON document.
 */
#include "profile/document.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"

/* A value by its name; {payload} is the whole of it. */
static bool
find_value(const ArValues *values, const ArTemplatePiece *piece, JsonbValue *value)
{
	if (piece->length != strlen(AR_PAYLOAD_NAME) || memcmp(piece->bytes, AR_PAYLOAD_NAME, piece->length) != 0)
		return ar_template_value(values, piece->bytes, (int) piece->length, value);
	if (values->payload == NULL)
		return false;
	if (JB_ROOT_IS_SCALAR(values->payload))
		return JsonbExtractScalar(&values->payload->root, value);
	value->type = jbvBinary;
	value->val.binary.data = &values->payload->root;
	value->val.binary.len = VARSIZE(values->payload) - VARHDRSZ;
	return true;
}

static void refuse_missing(const ArValues *values, const ArTemplatePiece *piece, const char *problem) pg_attribute_noreturn();

static void
refuse_missing(const ArValues *values, const ArTemplatePiece *piece, const char *problem)
{
	ar_template_refuse_missing(values, piece->bytes, (int) piece->length, problem);
}

/* Scalars into a longer text; false if it is to be left out. */
static bool
interpolate(const char *text, int length, const ArValues *values, JsonbValue *result)
{
	const char *rest = text;
	ArTemplatePiece piece;
	StringInfoData out;

	initStringInfo(&out);
	while (ar_template_next(&rest, text + length, &piece))
	{
		ArTemplateValue value = {piece.bytes, piece.length};

		if (piece.is_name)
		{
			JsonbValue	found = {.type = jbvNull};

			/* A null can no more stand in a text than a value that is not there. */
			if ((!find_value(values, &piece, &found) || found.type == jbvNull) && piece.is_optional)
				return false;
			if (!ar_template_scalar(&found, &value))
				refuse_missing(values, &piece, ar_template_problem_text(AR_TEMPLATE_NO_VALUE));
		}
		appendBinaryStringInfo(&out, value.bytes, (int) value.length);
	}
	result->type = jbvString;
	result->val.string.val = out.data;
	result->val.string.len = out.len;
	return true;
}

/* What a text of the document becomes; false if it is to be left out. */
static bool
fill_text(JsonbValue *text, const ArValues *values)
{
	const char *bytes = text->val.string.val;
	const char *end = bytes + text->val.string.len;
	const char *rest = bytes;
	ArTemplatePiece piece;

	if (memchr(bytes, '{', text->val.string.len) == NULL || !ar_template_next(&rest, end, &piece))
		return true;
	if (!piece.is_name || rest != end)
		return interpolate(bytes, text->val.string.len, values, text);
	if (find_value(values, &piece, text))
		return true;
	if (!piece.is_optional)
		refuse_missing(values, &piece, "the payload has no such member");
	return false;
}

/* A document that is nothing but one text, or a number and the like. */
static Jsonb *
fill_scalar(Jsonb *document, const ArValues *values)
{
	JsonbValue	value;

	JsonbExtractScalar(&document->root, &value);
	if (value.type == jbvString && !fill_text(&value, values))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a body cannot be left out by {name?}"),
				 errhint("Only members of the document can.")));
	return JsonbValueToJsonb(&value);
}

Jsonb *
ar_document_fill(Jsonb *document, const ArValues *values)
{
	JsonbParseState *state = NULL;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;
	JsonbValue	key;
	JsonbValue *result = NULL;
	bool		has_key = false;

	if (JB_ROOT_IS_SCALAR(document))
		return fill_scalar(document, values);
	iterator = JsonbIteratorInit(&document->root);
	while ((token = JsonbIteratorNext(&iterator, &item, false)) != WJB_DONE)
	{
		bool		is_value = token == WJB_VALUE || token == WJB_ELEM;

		/* A key is held back until it is known that its value is not left out. */
		if (token == WJB_KEY)
		{
			key = item;
			has_key = true;
			continue;
		}
		if (!is_value || item.type != jbvString || fill_text(&item, values))
		{
			if (has_key)
				(void) pushJsonbValue(&state, WJB_KEY, &key);
			result = pushJsonbValue(&state, token, is_value ? &item : NULL);
		}
		has_key = false;
	}
	return JsonbValueToJsonb(result);
}

bool
ar_document_names(Jsonb *document, const char *name)
{
	JsonbIterator *iterator = JsonbIteratorInit(&document->root);
	JsonbIteratorToken token;
	JsonbValue	item;

	while ((token = JsonbIteratorNext(&iterator, &item, false)) != WJB_DONE)
	{
		if ((token == WJB_VALUE || token == WJB_ELEM) && item.type == jbvString &&
			ar_template_names(item.val.string.val, item.val.string.len, name))
			return true;
	}
	return false;
}

static void
refuse_place(ArWritten written, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the %s cannot be written into the payload: %s",
					written == AR_WRITTEN_KEY ? "idempotency key" : "client reference", problem),
			 errhint("The operation writes it into the JSON body at %s; every step of that path must be an object or missing.",
					 written == AR_WRITTEN_KEY ? "key_body_path" : "reference_body_path")));
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

/* The steps of a path; a NULL among them has no meaning and is refused. */
static Datum *
read_steps(Datum path, ArWritten written, int *depth)
{
	Datum	   *steps;
	bool	   *nulls;

	deconstruct_array(DatumGetArrayTypeP(path), TEXTOID, -1, false, TYPALIGN_INT, &steps, &nulls, depth);
	for (int i = 0; i < *depth; i++)
	{
		if (nulls[i])
			refuse_place(written, written == AR_WRITTEN_KEY ? "key_body_path has a NULL" : "reference_body_path has a NULL");
	}
	return steps;
}

Jsonb *
ar_document_write(Jsonb *document, Datum path, const char *content, ArWritten written)
{
	int			depth;
	Datum	   *steps = read_steps(path, written, &depth);
	Jsonb	   *at = document;
	JsonbValue	value;

	if (depth == 0)
		refuse_place(written, written == AR_WRITTEN_KEY ? "key_body_path is empty" : "reference_body_path is empty");
	for (int i = 0; i < depth; i++)
	{
		if (at == NULL)
		{
			Jsonb	   *empty = DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));

			document = set_at(document, construct_array(steps, i, TEXTOID, -1, false, TYPALIGN_INT), empty);
			at = empty;
		}
		if (!JB_ROOT_IS_OBJECT(at))
			refuse_place(written, i == 0 ? "it is no JSON object" : "something other than an object is in the way");
		if (i < depth - 1)
			at = member(at, DatumGetTextPP(steps[i]));
	}
	value.type = jbvString;
	value.val.string.val = (char *) content;
	value.val.string.len = (int) strlen(content);
	return set_at(document, DatumGetArrayTypeP(path), JsonbValueToJsonb(&value));
}

void
ar_document_check_paths(Datum one, Datum other)
{
	int			one_depth;
	int			other_depth;
	Datum	   *one_steps = read_steps(one, AR_WRITTEN_REFERENCE, &one_depth);
	Datum	   *other_steps = read_steps(other, AR_WRITTEN_KEY, &other_depth);

	for (int i = 0; i < Min(one_depth, other_depth); i++)
	{
		char	   *step = TextDatumGetCString(one_steps[i]);

		if (strcmp(step, TextDatumGetCString(other_steps[i])) != 0)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the client reference and the idempotency key cannot be written to one place"),
			 errhint("Neither of reference_body_path and key_body_path may lead through the other.")));
}
