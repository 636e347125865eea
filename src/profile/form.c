/*
 * form.c
 *		A JSON document as application/x-www-form-urlencoded.
 */
#include "profile/form.h"

#include "lib/stringinfo.h"

#include "profile/template.h"

/* A container that is being written; the name of what is in it begins with `name_length` bytes. */
typedef struct Frame
{
	int			name_length;
	int			index;			/* of the next element; -1 for an object */
	struct Frame *outer;
} Frame;

typedef struct Form
{
	StringInfoData out;
	StringInfoData name;		/* of the member at hand, encoded */
	Frame	   *frame;
} Form;

static void
append_encoded(StringInfo out, const char *bytes, size_t length)
{
	/* Longer ones end in an error below; this only keeps the sum within an int. */
	ar_template_check_body(length);
	enlargeStringInfo(out, (int) length * 3);
	out->len += (int) ar_percent_encode(bytes, length, out->data + out->len);
	out->data[out->len] = '\0';
	ar_template_check_body(out->len);
}

/* A bracket in a key would make it the key of something else. */
static void
check_key(const char *key, int length)
{
	if (length == 0 || memchr(key, '[', length) != NULL || memchr(key, ']', length) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("key \"%.*s\" cannot stand in a form: it is empty or holds a bracket", length, key),
				 errhint("Brackets are what a form nests with; nest objects in the payload instead.")));
}

/* The name of the next member of the frame: its own, and that of the container before it. */
static void
begin_name(Form *form, const char *key, int length)
{
	Frame	   *frame = form->frame;

	form->name.len = frame->name_length;
	form->name.data[form->name.len] = '\0';
	if (frame->index >= 0)
	{
		appendStringInfo(&form->name, "[%d]", frame->index++);
		return;
	}
	check_key(key, length);
	if (frame->outer != NULL)
		appendStringInfoChar(&form->name, '[');
	append_encoded(&form->name, key, length);
	if (frame->outer != NULL)
		appendStringInfoChar(&form->name, ']');
}

static void
enter(Form *form, bool is_list)
{
	Frame	   *frame = palloc(sizeof(Frame));

	frame->name_length = form->name.len;
	frame->index = is_list ? 0 : -1;
	frame->outer = form->frame;
	form->frame = frame;
}

static void
leave(Form *form)
{
	Frame	   *frame = form->frame;

	form->frame = frame->outer;
	pfree(frame);
}

static void
write_member(Form *form, const JsonbValue *value)
{
	ArTemplateValue text;

	if (!ar_template_scalar(value, &text))
		return;					/* null */
	if (form->out.len > 0)
		appendStringInfoChar(&form->out, '&');
	appendBinaryStringInfo(&form->out, form->name.data, form->name.len);
	appendStringInfoChar(&form->out, '=');
	append_encoded(&form->out, text.bytes, text.length);
}

char *
ar_form_write(Jsonb *document)
{
	Form		form = {.frame = NULL};
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	if (!JB_ROOT_IS_OBJECT(document))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a form can be made of a JSON object only"),
				 errhint("Hand over an object as the payload, or give the operation a body_document that is one.")));
	initStringInfo(&form.out);
	initStringInfo(&form.name);
	iterator = JsonbIteratorInit(&document->root);
	while ((token = JsonbIteratorNext(&iterator, &item, false)) != WJB_DONE)
	{
		bool		is_element = form.frame != NULL && form.frame->index >= 0;

		if (token == WJB_KEY)
			begin_name(&form, item.val.string.val, item.val.string.len);
		else if (is_element && (token == WJB_ELEM || token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT))
			begin_name(&form, NULL, 0);
		if (token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT)
			enter(&form, token == WJB_BEGIN_ARRAY);
		else if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			leave(&form);
		else if (token != WJB_KEY)
			write_member(&form, &item);
	}
	ar_template_check_body(form.out.len);
	return form.out.data;
}
