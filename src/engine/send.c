/*
 * send.c
 *		Carrying out what was claimed.
 */
#include "engine/engine_internal.h"

#include "utils/fmgrprotos.h"

static ArClaimLimits
claim_limits(ArEngine *engine, ArRoomKind kind)
{
	ArClaimLimits limits = {0};
	ArProviderRoom *rooms;

	limits.room_count = ar_limits_rooms(engine, kind, &rooms);
	limits.rooms = rooms;
	limits.epoch = engine->epoch;
	limits.limit = engine->claim_one ? 1 : AR_CLAIM_LIMIT;
	limits.skipped = engine->skipped;
	limits.skipped_count = engine->skipped_count;
	return limits;
}

static int
take(ArEngine *engine, ArRoomKind kind, ArDispatch **dispatches, int count)
{
	for (int i = 0; i < count; i++)
		ar_limits_take(engine, kind, dispatches[i]->provider);
	return count;
}

int
ar_send_claim(ArEngine *engine, ArDispatch ***dispatches)
{
	ArClaimLimits limits = claim_limits(engine, AR_ROOM_TO_SEND);
	int			count = ar_store_claim(engine->turn_context, &limits, dispatches);

	return take(engine, AR_ROOM_TO_SEND, *dispatches, count);
}

/* Sending again counts as asking: it is done when everything is looked at. */
int
ar_send_claim_resends(ArEngine *engine, ArDispatch ***dispatches)
{
	ArClaimLimits limits = claim_limits(engine, AR_ROOM_TO_RESEND);
	int			count = ar_store_claim_resends(engine->turn_context, &limits, dispatches);

	return take(engine, AR_ROOM_TO_RESEND, *dispatches, count);
}

/*
 * A claim of one has failed: leave that action alone for a while, so that it
 * does not hold up the others.  False if there is no telling which one, or
 * there are too many: then it is no fault of an action.
 */
bool
ar_send_skip_next(ArEngine *engine)
{
	ArClaimLimits limits;
	pg_uuid_t  *next = &engine->skipped[engine->skipped_count];

	ar_limits_read(engine);
	limits = claim_limits(engine, AR_ROOM_TO_SEND);
	if (engine->skipped_count >= AR_SKIPPED_MAX || !ar_store_next_due(&limits, next))
		return false;
	ereport(LOG,
			(errmsg("action \"%s\" cannot be claimed and is left alone for a minute",
					DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(next)))),
			 errhint("Look for a trigger or a rule of yours on the tables of the extension.")));
	engine->skipped_count++;
	return true;
}

static void
start_one(ArEngine *engine, ArDispatch *d)
{
	ArErrand   *errand = ar_errand_begin(engine, d, NULL);
	ArRequest	request = {0};

	if (d->path == NULL)
	{
		ar_errand_end(engine, errand, NULL, "the request cannot be made from the payload any more: the operation has changed");
		return;
	}
	request.is_write = true;
	request.method = d->method;
	request.url = psprintf("%s%s", d->base_url, d->path);
	request.body = d->body;
	request.body_len = d->body ? strlen(d->body) : 0;
	request.allow_http = d->allow_http;
	request.address_policy.allow_private = d->allow_private_addresses;
	request.ca_file = d->ca_file;
	request.connect_timeout_ms = Max(d->connect_timeout_us / 1000, 1);
	request.timeout_ms = Max(d->attempt_timeout_us / 1000, 1);
	request.max_body_bytes = d->max_response_bytes;
	request.keep_header = d->artifact_header ? d->artifact_header : d->poll_header;
	ar_request_start(engine, errand, &request, d->headers, d->header_strings, d->credential);
}

void
ar_send_start(ArEngine *engine, ArDispatch **dispatches, int count)
{
	for (int i = 0; i < count; i++)
		start_one(engine, dispatches[i]);
}
