/*
 * header_list.c
 *		The headers of a request, from the templates of its operation.
 */
#include "profile/header_list.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "profile/form.h"
#include "profile/header.h"

#define JSON_CONTENT_TYPE "application/json"

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

static bool
is_content_type(const char *name)
{
	return pg_strcasecmp(name, "content-type") == 0;
}

typedef struct HeaderList
{
	ArrayBuildState *elements;
	const ArValues *values;
	ArContentType content_type;
	bool		has_content_type;
} HeaderList;

static void
append_header(HeaderList *list, const char *name, const char *value)
{
	list->elements = accumArrayResult(list->elements, CStringGetTextDatum(name), false, TEXTOID, CurrentMemoryContext);
	list->elements = accumArrayResult(list->elements, CStringGetTextDatum(value), false, TEXTOID, CurrentMemoryContext);
}

static void
add_header(const char *name, const char *value, void *state)
{
	HeaderList *list = state;

	if (is_content_type(name))
	{
		bool		is_default = pg_strcasecmp(value, JSON_CONTENT_TYPE) == 0;

		if (is_default && list->content_type == AR_CONTENT_TYPE_NONE)
			return;
		if (is_default && list->content_type == AR_CONTENT_TYPE_FORM)
			value = AR_FORM_CONTENT_TYPE;
		list->has_content_type = true;
	}
	append_header(list, name, ar_template_fill(value, AR_PART_HEADER, list->values));
}

Datum
ar_headers_render(Jsonb *headers, ArContentType content_type, const ArValues *values)
{
	HeaderList	list = {NULL, values, content_type, false};

	if (headers != NULL)
		for_each_header(headers, add_header, &list);
	if (!list.has_content_type && content_type == AR_CONTENT_TYPE_FORM)
		append_header(&list, "Content-Type", AR_FORM_CONTENT_TYPE);
	if (!list.has_content_type && content_type == AR_CONTENT_TYPE_JSON)
		append_header(&list, "Content-Type", JSON_CONTENT_TYPE);
	if (list.elements == NULL)
		return PointerGetDatum(construct_empty_array(TEXTOID));
	return makeArrayResult(list.elements, CurrentMemoryContext);
}

static void
check_header(const char *name, const char *value, void *state)
{
	List	  **names = state;
	ListCell   *cell;

	foreach(cell, *names)
	{
		if (pg_strcasecmp(lfirst(cell), name) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("header \"%s\" is there twice", name),
					 errhint("The case of a header's name does not count; join the values, or remove one.")));
	}
	*names = lappend(*names, (char *) name);
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
	List	   *names = NIL;

	for_each_header(headers, check_header, &names);
}

typedef struct TypeQuestion
{
	const char *word;
	bool		found;
} TypeQuestion;

static void
look_at_type(const char *name, const char *value, void *state)
{
	TypeQuestion *question = state;
	size_t		length = strlen(question->word);

	if (!is_content_type(name))
		return;
	for (; *value; value++)
		question->found = question->found || pg_strncasecmp(value, question->word, length) == 0;
}

bool
ar_headers_content_type_has(Jsonb *headers, const char *word)
{
	TypeQuestion question = {word, false};

	for_each_header(headers, look_at_type, &question);
	return question.found;
}
