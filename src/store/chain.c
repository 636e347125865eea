/*
 * chain.c
 *		The hash chain of an action's history.
 *
 * Every field goes in with its length in front, so that no two different
 * entries have the same bytes.  The form is frozen: old chains must verify.
 */
#include "store/chain.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "types/enums.h"
#include "types/standing_type.h"

PG_FUNCTION_INFO_V1(ar_history_hash);

static void
add_bytes(StringInfo out, const void *bytes, int length)
{
	appendStringInfo(out, "%d:", length);
	appendBinaryStringInfo(out, bytes, length);
}

static void
add_text(StringInfo out, const char *text)
{
	if (text == NULL)
		appendStringInfoString(out, "-:");
	else
		add_bytes(out, text, (int) strlen(text));
}

void
ar_chain_hash(const ArHistoryEntry *entry, uint8 digest[AR_DIGEST_LENGTH])
{
	StringInfoData text;
	char		number[32];

	initStringInfo(&text);
	add_text(&text, "action_reconcile history 1");
	add_bytes(&text, DatumGetUUIDP(entry->action_id)->data, UUID_LEN);
	snprintf(number, sizeof(number), "%d", entry->version);
	add_text(&text, number);
	snprintf(number, sizeof(number), INT64_FORMAT, entry->recorded_at);
	add_text(&text, number);
	snprintf(number, sizeof(number), "%d", entry->attempt_number);
	add_text(&text, entry->has_attempt ? number : NULL);
	add_text(&text, entry->event);
	add_text(&text, entry->from_state);
	add_text(&text, entry->to_state);
	add_text(&text, entry->standing);
	add_text(&text, entry->evidence);
	add_text(&text, entry->actor);
	add_bytes(&text, entry->previous_hash, entry->previous_length);
	ar_sha256(text.data, text.len, digest);
	pfree(text.data);
}

/* history_hash(...): the same for an entry that is stored, so that it can be verified. */
Datum
ar_history_hash(PG_FUNCTION_ARGS)
{
	ArHistoryEntry entry = {0};
	bytea	   *result;
	bytea	   *previous;
	Jsonb	   *evidence;

	for (int i = 0; i < PG_NARGS(); i++)
	{
		if (i != 3 && i != 5 && PG_ARGISNULL(i))
			PG_RETURN_NULL();
	}
	entry.action_id = PG_GETARG_DATUM(0);
	entry.version = PG_GETARG_INT32(1);
	entry.recorded_at = PG_GETARG_TIMESTAMPTZ(2);
	entry.has_attempt = !PG_ARGISNULL(3);
	entry.attempt_number = entry.has_attempt ? PG_GETARG_INT32(3) : 0;
	entry.event = text_to_cstring(PG_GETARG_TEXT_PP(4));
	entry.from_state = PG_ARGISNULL(5) ? NULL : ar_enum_label(PG_GETARG_DATUM(5));
	entry.to_state = ar_enum_label(PG_GETARG_DATUM(6));
	entry.standing = ar_standing_name(ar_datum_standing(PG_GETARG_DATUM(7)));
	evidence = PG_GETARG_JSONB_P(8);
	entry.evidence = JsonbToCString(NULL, &evidence->root, VARSIZE(evidence));
	entry.actor = text_to_cstring(PG_GETARG_TEXT_PP(9));
	previous = PG_GETARG_BYTEA_PP(10);
	entry.previous_hash = VARDATA_ANY(previous);
	entry.previous_length = (int) VARSIZE_ANY_EXHDR(previous);

	result = palloc(VARHDRSZ + AR_DIGEST_LENGTH);
	SET_VARSIZE(result, VARHDRSZ + AR_DIGEST_LENGTH);
	ar_chain_hash(&entry, (uint8 *) VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}
