/*
 * end.c
 *		What the end of an attempt means.
 */
#include "engine/engine_internal.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/json.h"

#include "core/outcome.h"
#include "core/redact.h"
#include "core/retry_after.h"
#include "core/schedule.h"
#include "profile/answer.h"
#include "store/clock.h"
#include "store/rules.h"

#define ANSWER_THROWN_AWAY "the answer is thrown away: this is a drill"

/*
 * Without an exchange the transfer never started, or the engine was stopped in
 * the middle of it: then only a write that was never let go is provably unsent.
 */
ArTransferClass
ar_send_classify(const ArErrand *errand)
{
	const ArDispatch *d = errand->dispatch;

	if (d->drilled)
		return AR_TRANSFER_UNKNOWN;
	if (errand->exchange != NULL)
		return ar_classify_transfer(&errand->exchange->facts);
	return d->check_done && d->refusal == NULL ? AR_TRANSFER_UNKNOWN : AR_TRANSFER_NOT_SENT;
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

/* By what the provider's people can find the exchange on their side. */
static void
add_stored_headers(StringInfo json, const ArExchange *x)
{
	const char *between = ", \"headers\": {";

	for (int i = 0; i < x->header_count; i++)
	{
		if (!ar_header_is_stored(x->headers[i].name) || !ar_answer_text_is_clean(x->headers[i].value))
			continue;
		appendStringInfoString(json, between);
		escape_json(json, x->headers[i].name);
		appendStringInfoString(json, ": ");
		escape_json(json, x->headers[i].value);
		between = ", ";
	}
	if (between[2] == '\0')
		appendStringInfoChar(json, '}');
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
		add_stored_headers(&json, x);
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
read_artifact(const ArErrand *errand, char **artifact_id)
{
	const ArDispatch *d = errand->dispatch;
	const ArExchange *x = errand->exchange;
	const char *path = errand->ruled_artifact_path ? errand->ruled_artifact_path : d->artifact_path;

	if (path != NULL)
	{
		*artifact_id = x->facts.body_framed && x->facts.body_complete ?
			ar_answer_id(ar_answer_value(x->body, x->body_len, path)) : NULL;
		return *artifact_id != NULL;
	}
	if (d->artifact_header != NULL)
	{
		const char *value = ar_exchange_header(x, d->artifact_header);

		*artifact_id = value != NULL && *value != '\0' ? ar_answer_id(pstrdup(value)) : NULL;
		return *artifact_id != NULL;
	}
	*artifact_id = d->client_reference;
	return true;
}

/* Where the answer says that its verdict can be asked for: an address of the provider's own, or none. */
static char *
read_poll_url(const ArDispatch *d, const ArExchange *x)
{
	const char *place = NULL;
	char		url[AR_MAX_URL];

	if (d->poll_header != NULL)
		place = ar_exchange_header(x, d->poll_header);
	else if (d->poll_path != NULL && x->facts.body_framed && x->facts.body_complete)
		place = ar_answer_value(x->body, x->body_len, d->poll_path);
	if (place == NULL || !ar_url_resolve(psprintf("%s%s", d->base_url, d->path), place, url, sizeof(url)))
		return NULL;
	/* A token in it would be kept: whoever asks has a credential of its own. */
	ar_redact_address(url);
	return pstrdup(url);
}

/* What is known of the end of every attempt. */
static void
start_end(const ArErrand *errand, ArAttemptEnd *end)
{
	memset(end, 0, sizeof(*end));
	end->action_id = errand->dispatch->action_id;
	end->dispatch_id = errand->dispatch->dispatch_id;
	end->http_status = errand->exchange ? errand->exchange->facts.http_status : 0;
	end->asked_pause_us = -1;
}

/*
 * Of an action there is one attempt at a time: proven not to have happened, it
 * is queued again.  But before a resend there were others, and they are no
 * wiser for it.
 */
static void
finish(const ArErrand *errand, ArAttemptEnd *end, ArEvent event, ArState attempt_state)
{
	end->event = event;
	end->attempt_state = attempt_state;
	end->action_state = attempt_state;
	end->settles_earlier = errand->dispatch->resend && attempt_state == AR_REJECTED && errand->ruled_stored_reply;
	if (attempt_state == AR_SAFE_TO_RETRY)
		end->action_state = errand->dispatch->resend ? AR_OUTCOME_UNKNOWN : AR_PLANNED;
	else if (attempt_state == AR_REJECTED && errand->dispatch->resend && !end->settles_earlier)
		end->action_state = AR_OUTCOME_UNKNOWN;
	else if (event == AR_EVENT_KEY_MISMATCH)
		end->action_state = AR_MANUAL_REVIEW;
}

static void
read_answer(const ArErrand *errand, ArAnswerClass answer, ArAttemptEnd *end)
{
	char	   *artifact_id = NULL;

	switch (answer)
	{
		case AR_ANSWER_ACCEPTED:
			if (read_artifact(errand, &artifact_id))
				finish(errand, end, AR_EVENT_ANSWERED_ACCEPTED, AR_SUCCEEDED);
			else
				finish(errand, end, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED);
			break;
		case AR_ANSWER_UNREADABLE:
			finish(errand, end, AR_EVENT_ANSWERED_UNREADABLE, AR_DELIVERED);
			break;
		case AR_ANSWER_ACCEPTED_ASYNC:
			(void) read_artifact(errand, &artifact_id);
			end->poll_url = read_poll_url(errand->dispatch, errand->exchange);
			finish(errand, end, AR_EVENT_ANSWERED_ASYNC, AR_DELIVERED);
			break;
		case AR_ANSWER_REJECTED:
			finish(errand, end, AR_EVENT_ANSWERED_REJECTED, AR_REJECTED);
			break;
		case AR_ANSWER_NOT_EXECUTED:
			end->pause_provider = errand->exchange->facts.http_status == 401;
			finish(errand, end, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY);
			break;
		case AR_ANSWER_THROTTLED:
			finish(errand, end, AR_EVENT_NOT_EXECUTED, AR_SAFE_TO_RETRY);
			break;
		case AR_ANSWER_KEY_MISMATCH:
			finish(errand, end, AR_EVENT_KEY_MISMATCH, AR_OUTCOME_UNKNOWN);
			break;
		case AR_ANSWER_IN_PROGRESS:
		case AR_ANSWER_ALREADY_EXISTS:
		case AR_ANSWER_UNKNOWN:
			finish(errand, end, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN);
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
		rulings[judged].resend = errands[i]->dispatch->resend || errands[i]->dispatch->key_was_sent;
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
		errands[places[i]]->ruled_stored_reply = rulings[i].stored_reply;
		errands[places[i]]->ruled_artifact_path = rulings[i].artifact_path;
	}
}

/* The pause that an answer asks for: seconds, or until a date; -1 if it asks for none that can be read. */
int64
ar_send_asked_pause_us(const ArExchange *x)
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

/* A page of a gateway's, not the provider's own words. */
bool
ar_send_may_be_a_page(const ArExchange *x)
{
	const char *type = ar_exchange_header(x, "content-type");

	if (!x->facts.body_framed || !x->facts.body_complete)
		return true;
	return x->body_len > 0 && (type == NULL || pg_strncasecmp(type, "text/html", 9) == 0);
}

static ArAnswerClass
class_of_answer(const ArErrand *errand)
{
	const ArDispatch *d = errand->dispatch;
	const ArExchange *x = errand->exchange;

	if (errand->rule_position > 0)
		return errand->ruled;
	if (d->effect == AR_EFFECT_DELETE)
		return ar_classify_delete_status(x->facts.http_status, d->sends_key, d->existed, ar_send_may_be_a_page(x));
	return ar_classify_status(x->facts.http_status, d->sends_key);
}

/*
 * After a resend: the same again in a while, or the next rule.  A provider
 * that repeats what it has stored will not say anything else next time; that it
 * is still at work will change.
 */
static bool
has_said_all(const ArErrand *errand, ArAnswerClass answer, ArState attempt_state)
{
	const ArDispatch *d = errand->dispatch;

	if (attempt_state == AR_REJECTED || errand->ruled_stored_reply)
		return true;
	/* Without a rule that says so it may be the word of a gateway's: reason to ask elsewhere, not to give up. */
	return d->next_window_us >= 0 &&
		(answer == AR_ANSWER_ALREADY_EXISTS || (answer == AR_ANSWER_UNKNOWN && d->replay_is_stored));
}

static void
plan_after_resend(const ArDispatch *d, bool said_all, ArAttemptEnd *end)
{
	bool		unknown = end->attempt_state == AR_OUTCOME_UNKNOWN;

	end->inconclusives = d->inconclusives + (unknown ? 1 : 0);
	if (said_all || end->inconclusives >= d->max_inconclusive)
	{
		end->pass_rule = d->rule_position;
		end->inconclusives = 0;
		end->ask_in_us = unknown ? d->late_arrival_us + Max(d->next_window_us, 0) : 0;
	}
	else
		end->ask_in_us = ar_backoff_us(d->resend_pause_us, d->resend_pause_max_us, Max(end->inconclusives, d->failures + 1),
									   pg_prng_double(&pg_global_prng_state));
}

/*
 * When the action is to be asked about.  The window counts from the end of the
 * attempt: from now, which is not earlier.
 */
static void
plan_question(const ArDispatch *d, bool said_all, ArAttemptEnd *end)
{
	int64		window_us = d->late_arrival_us + d->window_us;

	end->ask_in_us = -1;
	if (end->attempt_state == AR_OUTCOME_UNKNOWN || end->event == AR_EVENT_ANSWERED_UNREADABLE)
		end->attempt_gate_us = ar_lower_now() + window_us;
	if (end->action_state == AR_OUTCOME_UNKNOWN && d->resend)
		plan_after_resend(d, said_all, end);
	else if (!d->can_ask && (end->action_state == AR_OUTCOME_UNKNOWN || end->event == AR_EVENT_ANSWERED_UNREADABLE))
		end->ask_in_us = 0;		/* there is nothing to wait for: a person has to settle it */
	else if (end->action_state == AR_OUTCOME_UNKNOWN)
		end->ask_in_us = d->replay_first ? d->window_us : window_us;
	else if (end->event == AR_EVENT_ANSWERED_UNREADABLE)
		end->ask_in_us = window_us;
	else if (end->event == AR_EVENT_ANSWERED_ASYNC)
		end->ask_in_us = d->verdict_us;
	else if (end->action_state == AR_SUCCEEDED && d->drill == AR_DRILL_PROBE)
		end->ask_in_us = 0;
}

/* What it says about the provider: is it there, does it ask to be left alone for a while, and what for. */
static void
read_reach(const ArErrand *errand, ArTransferClass transfer, ArAttemptEnd *end)
{
	const ArDispatch *d = errand->dispatch;
	const ArExchange *x = errand->exchange;
	int64		asked_us = x != NULL ? ar_send_asked_pause_us(x) : -1;

	end->reach = ar_reach(transfer, d->refusal != NULL, end->http_status, end->event == AR_EVENT_NOT_EXECUTED);
	if (end->reach != AR_NOT_REACHED)
		return;
	if (transfer == AR_TRANSFER_ANSWERED)
	{
		if (asked_us >= 0)
			end->asked_pause_us = ar_retry_after_us(asked_us, d->retry_pause_us, d->retry_after_max_us);
		end->reason = psprintf("answer %d", end->http_status);
	}
	else
		end->reason = errand->start_problem ? errand->start_problem :
			x != NULL && x->error[0] != '\0' && ar_answer_text_is_clean(x->error) ? x->error : "no complete answer";
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
	bool		answered = transfer == AR_TRANSFER_ANSWERED;
	bool		said_all = false;
	const char *answer_name = NULL;

	start_end(errand, end);
	if (x != NULL)
	{
		end->body = x->body;
		end->body_len = x->body_len;
	}
	if (transfer == AR_TRANSFER_NOT_SENT)
		finish(errand, end, AR_EVENT_NOT_SENT, AR_SAFE_TO_RETRY);
	else if (!answered || (d->drill == AR_DRILL_ANSWER_LOST && d->number == 1))
	{
		if (answered)
			answer_name = ANSWER_THROWN_AWAY;
		finish(errand, end, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN);
	}
	else
	{
		ArAnswerClass answer = class_of_answer(errand);

		answer_name = ar_answer_class_name(answer);
		read_answer(errand, answer, end);
		said_all = has_said_all(errand, answer, end->attempt_state);
	}
	read_reach(errand, transfer, end);
	end->evidence = describe_transfer(errand, transfer, answer_name);
	end->due_in_us = ar_backoff_us(d->retry_pause_us, d->retry_pause_max_us, d->failures + 1,
								   pg_prng_double(&pg_global_prng_state));
	if (end->event == AR_EVENT_NOT_EXECUTED)
		end->due_in_us = ar_retry_after_us(ar_send_asked_pause_us(x), end->due_in_us, d->retry_after_max_us);
	plan_question(d, said_all, end);
	if (end->event == AR_EVENT_NOT_EXECUTED && end->action_state == AR_OUTCOME_UNKNOWN)
		end->ask_in_us = Max(end->ask_in_us, end->due_in_us);
}

/* What could not be read or stored becomes an unknown outcome: that is true, and safe. Reads nothing; may not ereport. */
void
ar_send_degrade_end(const ArErrand *errand, ArAttemptEnd *end)
{
	start_end(errand, end);
	finish(errand, end, AR_EVENT_ANSWER_LOST, AR_OUTCOME_UNKNOWN);
	end->evidence = "{\"transfer\": {\"proves\": \"unknown\", \"reason\": \"the result could not be stored\"}}";
	plan_question(errand->dispatch, false, end);
}
