/*
 * template.c
 *		Filling values into the parts of a request.
 */
#include "profile/template.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/numeric.h"

/* A scalar of the payload as text, or NULL if there is none of that name. */
static char *
payload_value(Jsonb *payload, const char *name, int name_length)
{
	JsonbValue	key;
	JsonbValue *value;

	if (!JB_ROOT_IS_OBJECT(payload))
		return NULL;
	key.type = jbvString;
	key.val.string.val = (char *) name;
	key.val.string.len = name_length;
	value = findJsonbValueFromContainer(&payload->root, JB_FOBJECT, &key);
	if (value == NULL)
		return NULL;
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value->val.numeric)));
		case jbvBool:
			return pstrdup(value->val.boolean ? "true" : "false");
		default:
			return NULL;
	}
}

static void
refuse_value(const char *name, int name_length, const char *problem)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("value \"%.*s\" cannot stand in the request: %s", name_length, name, problem),
			 errhint("Correct it in the payload, or change the template of the operation.")));
}

static bool
has_control_character(const char *value)
{
	for (const unsigned char *c = (const unsigned char *) value; *c; c++)
	{
		if (*c < 0x20 || *c == 0x7f)
			return true;
	}
	return false;
}

static void
append_percent_encoded(StringInfo out, const char *value)
{
	for (const unsigned char *c = (const unsigned char *) value; *c; c++)
	{
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
			*c == '-' || *c == '.' || *c == '_' || *c == '~')
			appendStringInfoChar(out, *c);
		else
			appendStringInfo(out, "%%%02X", *c);
	}
}

/* escape_json() without the quotes, which stand in the template. */
static void
append_json_escaped(StringInfo out, const char *value)
{
	StringInfoData quoted;

	initStringInfo(&quoted);
	escape_json(&quoted, value);
	appendBinaryStringInfo(out, quoted.data + 1, quoted.len - 2);
	pfree(quoted.data);
}

static void
append_value(StringInfo out, ArTemplatePart part, const char *value, const char *name, int name_length)
{
	if (part != AR_PART_JSON && has_control_character(value))
		refuse_value(name, name_length, "it holds a control character");
	if ((part == AR_PART_PATH || part == AR_PART_HEADER) && *value == '\0')
		refuse_value(name, name_length, "it is empty");
	if (part == AR_PART_PATH)
		append_percent_encoded(out, value);
	else if (part == AR_PART_JSON)
		append_json_escaped(out, value);
	else
		appendStringInfoString(out, value);
}

/*
 * Servers and proxies fold "." and ".." away, so such a segment would address
 * something else than what was recorded.
 */
static void
check_path_segments(const char *path)
{
	const char *segment = *path == '/' ? path + 1 : path;

	while (true)
	{
		size_t		length = strcspn(segment, "/?");
		char		end = segment[length];

		if ((length == 1 && segment[0] == '.') || (length == 2 && segment[0] == '.' && segment[1] == '.') ||
			(length == 0 && end == '/'))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("path \"%s\" has an empty, \".\" or \"..\" segment", path),
					 errhint("Such a segment would address something else than what is recorded.")));
		if (end != '/')
			return;
		segment += length + 1;
	}
}

char *
ar_template_fill(const char *template, ArTemplatePart part, const char *client_reference, Jsonb *payload)
{
	StringInfoData out;
	const char *rest = template;

	initStringInfo(&out);
	while (*rest)
	{
		const char *open = strchr(rest, '{');
		const char *close = open ? strchr(open, '}') : NULL;
		const char *name = open ? open + 1 : NULL;
		int			name_length = close ? (int) (close - name) : 0;

		/* Braces around something that is no name stand for themselves. */
		if (close == NULL || name_length == 0 ||
			(int) strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != name_length)
		{
			int			literal = open ? (int) (open - rest) + 1 : (int) strlen(rest);

			appendBinaryStringInfo(&out, rest, literal);
			rest += literal;
			continue;
		}
		appendBinaryStringInfo(&out, rest, (int) (open - rest));
		if (name_length == strlen("client_reference") && strncmp(name, "client_reference", name_length) == 0)
			append_value(&out, part, client_reference, name, name_length);
		else
		{
			char	   *value = payload_value(payload, name, name_length);

			if (value == NULL)
				refuse_value(name, name_length, "the payload has no such text, number or boolean");
			append_value(&out, part, value, name, name_length);
		}
		rest = close + 1;
	}
	if (part == AR_PART_PATH)
		check_path_segments(out.data);
	return out.data;
}
