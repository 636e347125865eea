/*
 * match.c
 *		Looking for our object on one page of an answer to a lookup.
 */
#include "profile/match.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "profile/answer.h"
#include "profile/guarded.h"
#include "types/digest.h"

#define LAST_SECOND	1e11	/* beyond that it counts something else: milliseconds */
#define UNIX_TO_POSTGRES_US	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

static bool
finds_something(Jsonb *document, const char *path)
{
	return path != NULL && ar_json_query(jsonb_path_query_first, document, path) != NULL;
}

static char *
text_at(Jsonb *document, const char *path)
{
	return path == NULL ? NULL : ar_json_scalar_text(ar_json_query(jsonb_path_query_first, document, path));
}

#define JOINING "._~-"

static bool
is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/*
 * The text must stand there whole, not as the beginning or end of a longer
 * reference.  What joins the parts of one may also be the end of a sentence.
 */
static bool
stands_whole(const char *text, const char *wanted)
{
	size_t		length = strlen(wanted);

	for (const char *at = strstr(text, wanted); at != NULL; at = strstr(at + 1, wanted))
	{
		const char *before = at;
		const char *after = at + length;

		while (before > text && strchr(JOINING, before[-1]) != NULL)
			before--;
		after += strspn(after, JOINING);
		if ((before == text || !is_word(before[-1])) && !is_word(*after))
			return true;
	}
	return false;
}

/* Microseconds since 1970 of a number of seconds or an ISO 8601 text, which without a zone is UTC. May ereport. */
static int64
instant_us(const char *text)
{
	char	   *end;
	double		seconds = strtod(text, &end);

	if (*end == '\0' && end != text)
	{
		if (!(fabs(seconds) < LAST_SECOND))
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
					 errmsg("\"%s\" is no number of seconds since 1970", text)));
		return (int64) (seconds * USECS_PER_SEC);
	}
	return DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
												   Int32GetDatum(-1))) + UNIX_TO_POSTGRES_US;
}

static bool
values_agree(Jsonb *object, const ArMatchRule *rule)
{
	for (int i = 0; i + 1 < rule->value_strings; i += 2)
	{
		char	   *value = text_at(object, rule->values[i]);

		if (value == NULL || rule->values[i + 1] == NULL || strcmp(value, rule->values[i + 1]) != 0)
			return false;
	}
	return true;
}

/* May ereport. */
static bool
is_of_our_time(Jsonb *object, const ArMatchRule *rule)
{
	char	   *created;
	int64		at;

	if (rule->created_path == NULL)
		return true;
	created = text_at(object, rule->created_path);
	/* It may be ours: not the form that is expected, rather than not there. */
	if (created == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("an object without the time it was made")));
	at = instant_us(created);
	return at >= rule->since_us && at <= rule->until_us;
}

static bool
carries_reference(Jsonb *object, const ArMatchRule *rule)
{
	char	   *reference = text_at(object, rule->reference_path);

	if (reference == NULL)
		return false;
	return rule->contains ? stands_whole(reference, rule->client_reference) :
		strcmp(reference, rule->client_reference) == 0;
}

static char *
kept(MemoryContext context, const char *text)
{
	return text == NULL ? NULL : MemoryContextStrdup(context, text);
}

/* Is this object ours, or may it be? Count it, and keep its id. */
static void
match_object(Jsonb *object, const ArMatchRule *rule, ArMatch *match, MemoryContext page)
{
	match->rows++;
	if (finds_something(object, rule->exclude_path))
		return;
	match->objects++;
	if (!values_agree(object, rule))
		return;
	if (rule->reference_path != NULL)
	{
		if (!carries_reference(object, rule))
			return;
		match->matches++;
	}
	else
	{
		if (!is_of_our_time(object, rule))
			return;
		match->candidates++;
	}
	if (finds_something(object, rule->gone_path))
		match->gone++;
	if (match->id_count < AR_MATCH_IDS)
	{
		match->ids[match->id_count++] = kept(page, ar_answer_id(text_at(object, rule->artifact_path)));
	}
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
		return ar_json_query(jsonb_path_query_first, document, items_path) != NULL;
	list_path = pnstrdup(items_path, length - 3);
	list = ar_json_query(jsonb_path_query_first, document, list_path);
	return list != NULL && JB_ROOT_IS_ARRAY(list) && !JB_ROOT_IS_SCALAR(list);
}

static void
match_list(Jsonb *document, const ArMatchRule *rule, ArMatch *match)
{
	MemoryContext page = CurrentMemoryContext;
	MemoryContext row = AllocSetContextCreate(page, "row", ALLOCSET_DEFAULT_SIZES);
	JsonbIterator *iterator;
	JsonbValue	item;
	JsonbIteratorToken token;

	if (!list_is_there(document, rule->items_path))
		return;
	match->shape_ok = true;
	document = ar_json_query(jsonb_path_query_array, document, rule->items_path);
	iterator = JsonbIteratorInit(&document->root);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM && item.type == jbvBinary)
		{
			MemoryContextSwitchTo(row);
			match_object(JsonbValueToJsonb(&item), rule, match, page);
			MemoryContextSwitchTo(page);
			MemoryContextReset(row);
		}
		else if (token == WJB_ELEM)
			match->rows++;
	}
}

static char *
digest_of(Jsonb *document)
{
	char	   *text = JsonbToCString(NULL, &document->root, VARSIZE(document));
	uint8		digest[AR_DIGEST_LENGTH];
	char	   *hex = palloc(2 * AR_DIGEST_LENGTH + 1);

	ar_sha256(text, strlen(text), digest);
	hex[hex_encode((const char *) digest, AR_DIGEST_LENGTH, hex)] = '\0';
	return hex;
}

static bool
yields_true(Jsonb *document, const char *path)
{
	char	   *value = text_at(document, path);

	return value != NULL && strcmp(value, "true") == 0;
}

typedef struct MatchRead
{
	const char *body;
	size_t		length;
	const ArMatchRule *rule;
	ArMatch    *match;
} MatchRead;

static void
read_page(void *state)
{
	MatchRead  *read = state;
	const ArMatchRule *rule = read->rule;
	ArMatch    *match = read->match;
	Jsonb	   *document = ar_json_parse(read->body, read->length);

	match->incomplete = finds_something(document, rule->incomplete_if);
	match->next = text_at(document, rule->next_path);
	if (match->next != NULL && !ar_answer_text_is_clean(match->next))
		match->next = NULL;
	match->more = rule->more_path == NULL || yields_true(document, rule->more_path);
	if (rule->items_path != NULL)
	{
		match_list(document, rule, match);
		return;
	}
	match_object(document, rule, match, CurrentMemoryContext);
	match->digest = digest_of(document);
	match->shape_ok = JB_ROOT_IS_OBJECT(document);
}

/* A page may be large, and there may be many: only what it shows is kept of it. */
void
ar_match_page(const char *body, size_t length, const ArMatchRule *rule, ArMatch *match)
{
	MatchRead	read = {body, length, rule, match};
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext page = AllocSetContextCreate(caller, "page", ALLOCSET_DEFAULT_SIZES);

	memset(match, 0, sizeof(*match));
	MemoryContextSwitchTo(page);
	if (rule->body_match == NULL)
	{
		if (!ar_guarded(read_page, &read))
			memset(match, 0, sizeof(*match));
	}
	else if (stands_whole(pnstrdup(body, length), rule->body_match))
	{
		match->objects = match->matches = 1;
		match->id_count = 1;
		match->shape_ok = true;
	}
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < match->id_count; i++)
		match->ids[i] = kept(caller, match->ids[i]);
	match->digest = kept(caller, match->digest);
	match->next = kept(caller, match->next);
	MemoryContextDelete(page);
}

static bool
is_parameter(const char *query, const char *name)
{
	return strncmp(query, name, strlen(name)) == 0 && query[strlen(name)] == '=';
}

char *
ar_path_with_parameter(const char *path, const char *name, const char *value)
{
	StringInfoData out;
	const char *rest = path + strcspn(path, "?");

	initStringInfo(&out);
	appendBinaryStringInfo(&out, path, (int) (rest - path));
	appendStringInfo(&out, "?%s=", name);
	for (const unsigned char *c = (const unsigned char *) value; *c; c++)
	{
		if ((*c < 0x80 && isalnum(*c)) || strchr("-._~", *c) != NULL)
			appendStringInfoChar(&out, (char) *c);
		else
			appendStringInfo(&out, "%%%02X", *c);
	}
	for (rest += *rest == '?'; *rest;)
	{
		size_t		length = strcspn(rest, "&");

		if (!is_parameter(rest, name))
			appendStringInfo(&out, "&%.*s", (int) length, rest);
		rest += length + (rest[length] == '&');
	}
	return out.data;
}

int
ar_path_number(const char *path, const char *name, int otherwise)
{
	for (const char *rest = path + strcspn(path, "?"); *rest; rest += strcspn(rest, "&"))
	{
		char	   *end;
		long		number;

		rest++;
		if (!is_parameter(rest, name))
			continue;
		number = strtol(rest + strlen(name) + 1, &end, 10);
		if (end != rest + strlen(name) + 1 && (*end == '\0' || *end == '&') && number >= 0 && number <= INT_MAX / 2)
			return (int) number;
	}
	return otherwise;
}
