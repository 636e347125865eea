/*
 * template.c
 *		The values that templates are filled with, from what an action holds.
 */
#include "profile/template.h"

#include "utils/builtins.h"
#include "utils/numeric.h"

static bool
is_name(const char *name, int name_length, const char *expected)
{
	return name_length == (int) strlen(expected) && memcmp(name, expected, name_length) == 0;
}

/* The member of an object, or NULL. */
static JsonbValue *
member(JsonbContainer *object, const char *name, int name_length)
{
	JsonbValue	key;

	if (!JsonContainerIsObject(object))
		return NULL;
	key.type = jbvString;
	key.val.string.val = (char *) name;
	key.val.string.len = name_length;
	return findJsonbValueFromContainer(object, JB_FOBJECT, &key);
}

/* The member of that very name, or the one that its dots lead to, or NULL. */
static JsonbValue *
member_at(JsonbContainer *object, const char *name, int name_length)
{
	while (true)
	{
		JsonbValue *found = member(object, name, name_length);
		const char *dot = found == NULL ? memchr(name, '.', name_length) : NULL;

		if (dot == NULL)
			return found;
		found = member(object, name, (int) (dot - name));
		if (found == NULL || found->type != jbvBinary)
			return NULL;
		object = found->val.binary.data;
		name_length -= (int) (dot + 1 - name);
		name = dot + 1;
	}
}

/* A text as a value of JSON; false if there is none. */
static bool
text_value(const char *text, JsonbValue *value)
{
	if (text == NULL)
		return false;
	value->type = jbvString;
	value->val.string.val = (char *) text;
	value->val.string.len = (int) strlen(text);
	return true;
}

bool
ar_template_value(const ArValues *values, const char *name, int name_length, JsonbValue *value)
{
	JsonbValue *found;

	if (is_name(name, name_length, AR_REFERENCE_NAME))
		return text_value(values->client_reference, value);
	if (is_name(name, name_length, AR_KEY_NAME))
		return text_value(values->idempotency_key, value);
	found = values->extra != NULL ? member_at(&values->extra->root, name, name_length) : NULL;
	if (found == NULL && values->payload != NULL)
		found = member_at(&values->payload->root, name, name_length);
	if (found != NULL)
		*value = *found;
	return found != NULL;
}

bool
ar_template_scalar(const JsonbValue *value, ArTemplateValue *text)
{
	switch (value->type)
	{
		case jbvString:
			text->bytes = value->val.string.val;
			text->length = value->val.string.len;
			return true;
		case jbvNumeric:
			text->bytes = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
			break;
		case jbvBool:
			text->bytes = value->val.boolean ? "true" : "false";
			break;
		default:
			return false;
	}
	text->length = strlen(text->bytes);
	return true;
}

/* An ArTemplateLookup; may throw. */
static bool
look_up(void *state, const char *name, size_t name_length, ArTemplateValue *text)
{
	JsonbValue	value;

	return ar_template_value(state, name, (int) name_length, &value) && ar_template_scalar(&value, text);
}

static void refuse_value(const char *name, int name_length, const char *problem) pg_attribute_noreturn();

static void
refuse_value(const char *name, int name_length, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("value \"%.*s\" cannot stand in the request: %s", name_length, name, problem),
			 errhint("Correct it in the payload, or change the template of the operation.")));
}

void
ar_template_refuse_missing(const ArValues *values, const char *name, int name_length, const char *problem)
{
	bool		is_key = is_name(name, name_length, AR_KEY_NAME) && values->idempotency_key == NULL;

	if (is_key || (is_name(name, name_length, AR_REFERENCE_NAME) && values->client_reference == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("value \"%.*s\" cannot stand in the request: the action has none", name_length, name),
				 errhint("Hand over the %s, or take it out of the request: placeholder {%.*s}%s.",
						 is_key ? "idempotency key" : "client reference", name_length, name,
						 is_key ? ", or key_body_path" : ", or reference_body_path")));
	refuse_value(name, name_length, problem);
}

void
ar_template_check_body(size_t length)
{
	if (length > AR_MAX_BODY_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the body of the request is longer than %zu bytes", AR_MAX_BODY_BYTES),
				 errhint("Send less in one action, or send a reference to the content.")));
}

static void
refuse_template(ArTemplatePart part, const ArValues *values, const ArTemplateError *error, const char *path)
{
	switch (error->problem)
	{
		case AR_TEMPLATE_NO_VALUE:
			ar_template_refuse_missing(values, error->name, (int) error->name_length, ar_template_problem_text(error->problem));
			break;
		case AR_TEMPLATE_OUT_OF_MEMORY:
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
			break;
		case AR_TEMPLATE_TOO_LONG:
			if (part != AR_PART_PATH && part != AR_PART_HEADER)
				ar_template_check_body(SIZE_MAX);
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("a %s of the request is longer than %zu bytes", part == AR_PART_PATH ? "path" : "header",
							ar_template_limit(part)),
					 errhint("Shorten the values of the payload that stand in it.")));
			break;
		case AR_TEMPLATE_CREDENTIAL:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("values of the payload cannot write {%s} into a header", AR_CREDENTIAL_NAME),
					 errhint("Only the template of the operation says where the credential goes.")));
			break;
		case AR_TEMPLATE_FOLDED_SEGMENT:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("path \"%s\" has an empty, \".\" or \"..\" segment", path),
					 errhint("Such a segment would address something else than what is recorded.")));
			break;
		default:
			refuse_value(error->name, (int) error->name_length, ar_template_problem_text(error->problem));
	}
}

char *
ar_template_fill(const char *template, ArTemplatePart part, const ArValues *values)
{
	ArBuffer	out;
	ArTemplateError error;
	volatile bool done = false;
	char	   *volatile filled = NULL;

	ar_buffer_init(&out);
	PG_TRY();
	{
		done = ar_template_render(template, strlen(template), part, look_up, (void *) values, &out, &error);
		filled = pnstrdup(out.data != NULL ? out.data : "", out.length);
	}
	PG_FINALLY();
	{
		ar_buffer_destroy(&out);
	}
	PG_END_TRY();
	if (!done)
		refuse_template(part, values, &error, filled);
	return filled;
}
