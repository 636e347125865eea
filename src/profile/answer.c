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

/* Call one of the jsonb_path_query functions; NULL where it returns SQL NULL. */
static Jsonb *
query(PGFunction function, Jsonb *document, const char *path)
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

/* A scalar document as text: a string without its quotes, a number digit for digit. */
static char *
scalar_text(Jsonb *document)
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
	return NULL;
}

static Jsonb *
parse(const char *body, size_t length)
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

	read->document = parse(read->body, read->length);
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

	read->value = scalar_text(query(jsonb_path_query_first, parse(read->body, read->length), read->jsonpath));
}

char *
ar_answer_value(const char *body, size_t length, const char *jsonpath)
{
	ValueRead	read = {body, length, jsonpath, NULL};

	if (!ar_guarded(read_value, &read) || read.value == NULL || !ar_answer_text_is_clean(read.value))
		return NULL;
	return read.value;
}

typedef struct MatchRead
{
	const char *body;
	size_t		length;
	const ArMatchRule *rule;
	ArMatch    *match;
} MatchRead;

/* Does this object carry exactly our reference? Count it, and take the first one's id. */
static void
match_object(Jsonb *object, const ArMatchRule *rule, ArMatch *match)
{
	char	   *reference = scalar_text(query(jsonb_path_query_first, object, rule->reference_path));

	if (reference == NULL || strcmp(reference, rule->client_reference) != 0)
		return;
	match->matches++;
	if (match->matches == 1 && rule->artifact_path != NULL)
		match->artifact_id = scalar_text(query(jsonb_path_query_first, object, rule->artifact_path));
}

/*
 * A list must be there to be empty: its path up to the wildcard has to lead to
 * an array.  An answer without it is no answer to the question.
 */
static bool
list_is_there(Jsonb *document, const char *items_path)
{
	size_t		length = strlen(items_path);
	char	   *list_path;
	Jsonb	   *list;

	if (length < 3 || strcmp(items_path + length - 3, "[*]") != 0)
		return query(jsonb_path_query_first, document, items_path) != NULL;
	list_path = pnstrdup(items_path, length - 3);
	list = query(jsonb_path_query_first, document, list_path);
	return list != NULL && JB_ROOT_IS_ARRAY(list) && !JB_ROOT_IS_SCALAR(list);
}

static void
read_json_match(void *state)
{
	MatchRead  *read = state;
	Jsonb	   *document = parse(read->body, read->length);
	JsonbIterator *iterator;
	JsonbValue	item;
	JsonbIteratorToken token;

	if (read->rule->items_path == NULL)
	{
		/* An object without our reference is somebody else's, not an absence of ours. */
		match_object(document, read->rule, read->match);
		read->match->shape_ok = read->match->matches > 0;
		return;
	}
	if (!list_is_there(document, read->rule->items_path))
		return;
	read->match->shape_ok = true;
	document = query(jsonb_path_query_array, document, read->rule->items_path);
	iterator = JsonbIteratorInit(&document->root);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM && item.type == jbvBinary)
			match_object(JsonbValueToJsonb(&item), read->rule, read->match);
	}
}

/* The text must stand there whole, not as the beginning or end of a longer reference. */
static void
match_text(const char *body, size_t length, const ArMatchRule *rule, ArMatch *match)
{
	char	   *text = pnstrdup(body, length);
	size_t		wanted = strlen(rule->body_match);
	const char *word = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-";

	for (char *at = strstr(text, rule->body_match); at != NULL; at = strstr(at + 1, rule->body_match))
	{
		bool		starts = at == text || strchr(word, at[-1]) == NULL;
		bool		ends = at[wanted] == '\0' || strchr(word, at[wanted]) == NULL;

		if (starts && ends)
		{
			match->matches = 1;
			match->shape_ok = true;
			return;
		}
	}
}

void
ar_answer_match(const char *body, size_t length, const ArMatchRule *rule, ArMatch *match)
{
	MatchRead	read = {body, length, rule, match};

	memset(match, 0, sizeof(*match));
	if (rule->body_match != NULL)
		match_text(body, length, rule, match);
	else if (!ar_guarded(read_json_match, &read))
		memset(match, 0, sizeof(*match));
	if (match->artifact_id != NULL && !ar_answer_text_is_clean(match->artifact_id))
		match->artifact_id = NULL;
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
