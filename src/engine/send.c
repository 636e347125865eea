/*
 * send.c
 *		Carrying out what was claimed, and saying what its end means.
 */
#include "engine/engine_internal.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"

#include "core/outcome.h"
#include "core/retry_after.h"
#include "core/schedule.h"
#include "profile/answer.h"
#include "store/clock.h"
#include "store/rules.h"

static ArClaimLimits
claim_limits(ArEngine *engine)
{
	ArClaimLimits limits = {0};
	ArOpenCount *open;

	limits.open_count = ar_errand_open_counts(engine, &open);
	limits.open = open;
	limits.epoch = engine->epoch;
	limits.limit = engine->claim_one ? 1 : AR_CLAIM_LIMIT;
	limits.skipped = engine->skipped;
	limits.skipped_count = engine->skipped_count;
	return limits;
}

int
ar_send_claim(ArEngine *engine, ArDispatch ***dispatches)
{
	ArClaimLimits limits = claim_limits(engine);

	return ar_store_claim(engine->turn_context, &limits, dispatches);
}

/*
 * A claim of one has failed: leave that action alone for a while, so that it
 * does not hold up the others.  False if there is no telling which one, or
 * there are too many: then it is no fault of an action.
 */
bool
ar_send_skip_next(ArEngine *engine)
{
	ArClaimLimits limits = claim_limits(engine);
	pg_uuid_t  *next = &engine->skipped[engine->skipped_count];

	if (engine->skipped_count >= AR_SKIPPED_MAX || !ar_store_next_due(&limits, next))
		return false;
	ereport(LOG,
			(errmsg("action \"%s\" cannot be claimed and is left alone for a minute",
					DatumGetCString(DirectFunctionCall1(uuid_out, UUIDPGetDatum(next)))),
			 errhint("Look for a trigger or a rule of yours on the tables of the extension.")));
	engine->skipped_count++;
	return true;
}

/* Header strings come in pairs. */
static ArHeader *
make_headers(char **strings, int count, int *header_count)
{
	ArHeader   *headers = palloc(sizeof(ArHeader) * Max(count / 2, 1));

	*header_count = count / 2;
	for (int i = 0; i < *header_count; i++)
	{
		headers[i].name = strings[2 * i];
		headers[i].value = strings[2 * i + 1];
	}
	return headers;
}

static void
start_one(ArEngine *engine, ArDispatch *d)
{
	ArErrand   *errand = ar_errand_begin(engine, d, NULL);
	ArRequest	request = {0};
	char		error[256];

	if (d->path == NULL)
	{
		ar_errand_end(engine, errand, NULL, "the request cannot be made from the payload any more: the operation has changed");
		return;
	}
	request.is_write = true;
	request.method = d->method;
	request.url = psprintf("%s%s", d->base_url, d->path);
	request.headers = make_headers(d->headers, d->header_strings, &request.header_count);
	request.body = d->body;
	request.body_len = d->body ? strlen(d->body) : 0;
	request.allow_http = d->allow_http;
	request.address_policy.allow_private = d->allow_private_addresses;
	request.ca_file = d->ca_file;
	request.connect_timeout_ms = Max(d->connect_timeout_us / 1000, 1);
	request.timeout_ms = Max(d->attempt_timeout_us / 1000, 1);
	request.max_body_bytes = d->max_response_bytes;
	request.keep_header = d->artifact_header;
	request.cookie = errand;
	if (!ar_transport_start(engine->transport, &request, error, sizeof(error)))
		ar_errand_end(engine, errand, NULL, error);
}

void
ar_send_start(ArEngine *engine, ArDispatch **dispatches, int count)
{
	for (int i = 0; i < count; i++)
		start_one(engine, dispatches[i]);
}

/* Add a member to a JSON object that is being written; text from outside is made clean. */
static void
add_member(StringInfo json, const char *name, const char *value)
{
	if (value == NULL || *value == '\0')
		return;
	appendStringInfo(json, ", \"%s\": ", name);
	escape_json(json, ar_answer_text_is_clean(value) ? value : "(not printable)");
}

/*
 * Without an exchange the transfer never started, or the engine was stopped in
 * the middle of it: then only a write that was never let go is provably unsent.
 */
ArTransferClass
ar_send_classify(const ArErrand *errand)
{
	const ArDispatch *d = errand->dispatch;

	if (errand->exchange != NULL)
		return ar_classify_transfer(&errand->exchange->facts);
	return d->check_done && d->refusal == NULL ? AR_TRANSFER_UNKNOWN : AR_TRANSFER_NOT_SENT;
}

static char *
describe_transfer(const ArErrand *errand, ArTransferClass transfer, const char *answer)
{
	const ArDispatch *d = errand->dispatch;
	const ArExchange *x = errand->exchange;
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfo(&json, "{\"transfer\": {\"proves\": \"%s\"", ar_transfer_class_name(transfer));
	add_member(&json, "answer", answer);
	add_member(&json, "reason", d->refusal ? d->refusal : errand->start_problem);
	if (x != NULL)
	{
		if (x->facts.http_status != 0)
			appendStringInfo(&json, ", \"http_status\": %d", x->facts.http_status);
		appendStringInfo(&json, ", \"prereq_calls\": %d, \"curl_code\": %d, \"elapsed_us\": " INT64_FORMAT,
						 x->facts.prereq_calls, x->curl_code, x->elapsed_us);
		add_member(&json, "error", x->error);
		add_member(&json, "peer", x->peer_address);
		if (errand->rule_position > 0)
			appendStringInfo(&json, ", \"rule\": %d, \"operation_version\": %d", errand->rule_position, d->operation_version);
		add_member(&json, "retry_after", ar_exchange_header(x, "retry-after"));
		if (x->facts.http_status != 0 && (!x->facts.body_framed || !x->facts.body_complete))
			appendStringInfoString(&json, ", \"body\": \"may be cut\"");
	}
	appendStringInfoString(&json, "}}");
	return json.data;
}

/*
 * The provider's id of what was made.  An operation that expects one in the
 * answer does not believe a success without it.
 */
static bool
read_artifact(const ArDispatch *d, const ArExchange *x, char **artifact_id)
{
	if (d->artifact_path != NULL)
	{
		*artifact_id = x->facts.body_framed && x->facts.body_complete ?
			ar_answer_value(x->body, x->body_len, d->artifact_path) : NULL;
		return *artifact_id != NULL;
	}
	if (d->artifact_header != NULL)
	{
		const char *value = ar_exchange_header(x, d->artifact_header);

		*artifact_id = value != NULL && *value != '\0' && ar_answer_text_is_clean(value) ? pstrdup(value) : NULL;
		return *artifact_id != NULL;
	}
	*artifact_id = d->client_reference;
	return true;
}

static void
finish(ArAttemptEnd *end, ArEvent event, ArState attempt_state)
{
	end->event = event;
	end->attempt_state = attempt_state;
	/* Of an action there is one attempt at a time: proven not to have happened, it is queued again. */
	end->action_state = attempt_state == AR_SAFE_TO_RETRY ? AR_PLANNED : attempt_state;
}

static void
read_answer(const ArErrand *errand, ArAnswerClass answer, ArAttemptEnd *end)
{
	char	   *artifact_id = NULL;

	switch (answer)
	{
		case AR_ANSWER_ACCEPTED:
			if (read_artifact(errand->dispatch, errand->exchange, &artifact_id))
				finish(end, AR_EVENT_ANSWERED_ACCEPTED, AR_SUCCEEDED);
			else
				finish(end, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED);
			break;
		case AR_ANSWER_UNREADABLE:
			finish(end, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED);
			break;
		case AR_ANSWER_ACCEPTED_ASYNC:
			(void) read_artifact(errand->dispatch, errand->exchange, &artifact_id);
			finish(end, AR_EVENT_ANSWERED_ASYNC, AR_DELIVERED);
			break;
		case AR_ANSWER_REJECTED:
			finish(end, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED);
			break;
		case AR_ANSWER_NOT_EXECUTED:
			end->pause_provider = errand->exchange->facts.http_status == 401;
			finish(end, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY);
			break;
		case AR_ANSWER_THROTTLED:
			finish(end, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY);
			break;
		case AR_ANSWER_IN_PROGRESS:
		case AR_ANSWER_ALREADY_EXISTS:
		case AR_ANSWER_UNKNOWN:
			finish(end, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN);
			break;
	}
	end->artifact_id = artifact_id;
}

/* The kept headers of an answer as JSON; what is not printable is left out. */
static char *
headers_as_json(const ArExchange *x)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < x->header_count; i++)
	{
		if (!ar_answer_text_is_clean(x->headers[i].value))
			continue;
		if (json.len > 1)
			appendStringInfoString(&json, ", ");
		escape_json(&json, x->headers[i].name);
		appendStringInfoString(&json, ": ");
		escape_json(&json, x->headers[i].value);
	}
	appendStringInfoChar(&json, '}');
	return json.data;
}

/* Ask the operations' own rules about those answers that have any. */
void
ar_send_judge(ArErrand **errands, int count)
{
	ArRuling   *rulings = palloc0(sizeof(ArRuling) * Max(count, 1));
	int		   *places = palloc(sizeof(int) * Max(count, 1));
	int			judged = 0;

	for (int i = 0; i < count; i++)
	{
		const ArExchange *x = errands[i]->exchange;

		if (!errands[i]->dispatch->has_rules || ar_send_classify(errands[i]) != AR_TRANSFER_ANSWERED)
			continue;
		places[judged] = i;
		rulings[judged].operation = errands[i]->dispatch->operation;
		rulings[judged].http_status = x->facts.http_status;
		rulings[judged].headers = headers_as_json(x);
		if (x->facts.body_framed && x->facts.body_complete && strlen(x->body) == x->body_len &&
			pg_verifymbstr(x->body, (int) x->body_len, true))
			rulings[judged].body = x->body;
		judged++;
	}
	if (judged == 0)
		return;
	ar_store_judge(rulings, judged);
	for (int i = 0; i < judged; i++)
	{
		errands[places[i]]->rule_position = rulings[i].position;
		errands[places[i]]->ruled = rulings[i].answer;
	}
}

/* The pause that an answer asks for: seconds, or until a date; -1 if it asks for none that can be read. */
static int64
asked_pause_us(const ArExchange *x)
{
	const char *value = ar_exchange_header(x, "retry-after");
	int64		asked_us;
	int64		seconds;

	if (value == NULL)
		return -1;
	asked_us = ar_retry_after_parse(value, strlen(value));
	if (asked_us >= 0)
		return asked_us;
	seconds = ar_http_date(value);
	return seconds < 0 ? -1 : Max(seconds - ar_wall_unix_seconds(), 0) * USECS_PER_SEC;
}

/*
 * What the end of an attempt means: decided from the transfer itself, here and
 * nowhere else.  Palloc'ed in the current context; needs a transaction.
 */
void
ar_send_describe_end(const ArErrand *errand, ArAttemptEnd *end)
{
	const ArDispatch *d = errand->dispatch;
	const ArExchange *x = errand->exchange;
	ArTransferClass transfer = ar_send_classify(errand);
	const char *answer_name = NULL;

	memset(end, 0, sizeof(*end));
	end->action_id = d->action_id;
	end->dispatch_id = d->dispatch_id;
	if (x != NULL)
	{
		end->http_status = x->facts.http_status;
		end->body = x->body;
		end->body_len = x->body_len;
	}
	if (transfer == AR_TRANSFER_NOT_SENT)
		finish(end, AR_EVENT_NOT_SENT, AR_SAFE_TO_RETRY);
	else if (transfer == AR_TRANSFER_UNKNOWN)
		finish(end, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN);
	else
	{
		ArAnswerClass answer = errand->rule_position > 0 ? errand->ruled :
			ar_classify_status(x->facts.http_status, false);

		answer_name = ar_answer_class_name(answer);
		read_answer(errand, answer, end);
	}
	end->evidence = describe_transfer(errand, transfer, answer_name);
	end->due_in_us = ar_backoff_us(d->retry_pause_us, d->retry_pause_max_us, d->failures + 1,
								   pg_prng_double(&pg_global_prng_state));
	if (end->event == AR_EVENT_NOT_EXECUTED)
		end->due_in_us = ar_retry_after_us(asked_pause_us(x), end->due_in_us, d->retry_after_max_us);
	/* The window counts from the end of the attempt: from now, which is not earlier. */
	if (end->action_state == AR_OUTCOME_UNKNOWN || end->event == AR_EVENT_ANSWERED_UNREADABLE)
	{
		end->gate_in_us = d->late_arrival_us + d->window_us;
		end->gate_us = ar_lower_now() + end->gate_in_us;
	}
}
