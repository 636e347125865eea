/*
 * ask.c
 *		Asking the provider about an unknown outcome, and judging its answer.
 */
#include "engine/engine_internal.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "utils/json.h"

#include "core/evidence.h"
#include "core/outcome.h"
#include "core/schedule.h"
#include "profile/answer.h"

/* Lookups have a budget of their own, so that they pass a crowd of writes. */
#define LOOKUP_LIMIT 64

int
ar_ask_claim(ArEngine *engine, ArQuestion ***questions)
{
	int			room = LOOKUP_LIMIT - engine->open_lookups;

	if (room <= 0)
		return 0;
	return ar_store_ask(engine->turn_context, engine->epoch, room, questions);
}

static void
start_one(ArEngine *engine, ArQuestion *q)
{
	ArErrand   *errand = ar_errand_begin(engine, NULL, q);
	ArHeader   *headers = palloc(sizeof(ArHeader) * Max(q->header_strings / 2, 1));
	ArRequest	request = {0};
	char		error[256];

	if (q->path == NULL)
	{
		ar_errand_end(engine, errand, NULL, "the question cannot be made from the rule");
		return;
	}
	for (int i = 0; i < q->header_strings / 2; i++)
	{
		headers[i].name = q->headers[2 * i];
		headers[i].value = q->headers[2 * i + 1];
	}
	request.method = "GET";
	request.url = psprintf("%s%s", q->base_url, q->path);
	request.headers = headers;
	request.header_count = q->header_strings / 2;
	request.allow_http = q->allow_http;
	request.address_policy.allow_private = q->allow_private_addresses;
	request.ca_file = q->ca_file;
	request.connect_timeout_ms = Max(q->timeout_us / 1000, 1);
	request.timeout_ms = Max(q->timeout_us / 1000, 1);
	request.max_body_bytes = q->max_response_bytes;
	request.keep_header = q->artifact_header;
	request.cookie = errand;
	if (!ar_transport_start(engine->transport, &request, error, sizeof(error)))
		ar_errand_end(engine, errand, NULL, error);
}

void
ar_ask_start(ArEngine *engine, ArQuestion **questions, int count)
{
	for (int i = 0; i < count; i++)
		start_one(engine, questions[i]);
}

static bool
status_is_in(int status, const int *statuses, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (statuses[i] == status)
			return true;
	}
	return false;
}

/* What was seen, without a judgement. */
static void
gather_facts(const ArQuestion *q, const ArExchange *x, ArLookupFacts *facts, ArMatch *match)
{
	ArMatchRule rule = {q->client_reference, q->items_path, q->reference_path, q->body_match, q->artifact_path};

	memset(facts, 0, sizeof(*facts));
	memset(match, 0, sizeof(*match));
	facts->gates_open = q->last_gate_us <= q->asked_us;
	facts->version_unchanged = true;	/* the store looks again when it records */
	if (x == NULL)
		return;
	/* A question may be sent again by anybody, so how it was sent says nothing. */
	facts->answered = x->facts.transfer_ok && x->facts.final_header_end && x->facts.http_status >= 200;
	facts->body_trusted = x->facts.body_framed && x->facts.body_complete;
	facts->found_status = status_is_in(x->facts.http_status, q->found_statuses, q->found_status_count);
	facts->absent_status = status_is_in(x->facts.http_status, q->absent_statuses, q->absent_status_count);
	if (facts->answered && facts->body_trusted && facts->found_status)
	{
		ar_answer_match(x->body, x->body_len, &rule, match);
		facts->shape_ok = match->shape_ok;
		facts->matches = match->matches;
	}
	if (match->artifact_id == NULL && q->artifact_header != NULL)
	{
		const char *value = ar_exchange_header(x, q->artifact_header);

		if (value != NULL && ar_answer_text_is_clean(value))
			match->artifact_id = pstrdup(value);
	}
}

static void
choose_absence(const ArQuestion *q, ArAnswer *answer)
{
	ArAbsenceRule rule = {q->window_assumed, q->min_negatives, false};
	double		random = pg_prng_double(&pg_global_prng_state);

	if (q->queued)
	{
		/* The absence is established already; this was its renewal. */
		answer->step = AR_STEP_ABSENT;
		answer->replace = true;
	}
	else if (q->negatives + 1 < ar_required_negatives(&rule))
	{
		answer->step = AR_STEP_ABSENT_ONCE;
		answer->pause_us = q->negative_spacing_us;
	}
	else
	{
		answer->step = AR_STEP_ABSENT;
		answer->replace = q->replace_when_absent && q->replacements < q->max_replacements;
		if (answer->replace && q->replacements > 0)
			answer->pause_us = ar_backoff_us(q->retry_pause_us, q->retry_pause_max_us, q->replacements, random);
	}
}

static void
choose_step(const ArQuestion *q, ArAnswer *answer)
{
	switch (answer->result)
	{
		case AR_LOOKUP_FOUND:
			answer->step = AR_STEP_FOUND;
			return;
		case AR_LOOKUP_AMBIGUOUS:
			/* Each of them carries our full reference: it happened, and more than once. */
			answer->step = AR_STEP_FOUND;
			ereport(LOG,
					(errmsg("provider \"%s\" shows %d objects with reference \"%s\"",
							q->provider, answer->matches, q->client_reference)));
			return;
		case AR_LOOKUP_ABSENT:
			/* It was taken and cannot be found: a contradiction, which no repetition of the question makes an absence. */
			if (!q->delivered)
			{
				choose_absence(q, answer);
				return;
			}
			answer->reason = "the provider took it, and does not show it";
			break;
		case AR_LOOKUP_INCONCLUSIVE:
			break;
	}
	answer->step = q->inconclusives + 1 >= q->max_inconclusive ? AR_STEP_GIVE_UP : AR_STEP_INCONCLUSIVE;
	answer->pause_us = ar_backoff_us(q->pause_us, q->pause_max_us, q->inconclusives + 1,
									 pg_prng_double(&pg_global_prng_state));
}

static char *
describe(const ArErrand *errand, const ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfo(&json, "{\"lookup\": {\"result\": \"%s\", \"reason\": ", ar_lookup_result_name(answer->result));
	escape_json(&json, answer->reason);
	appendStringInfo(&json, ", \"asked_us\": " INT64_FORMAT ", \"gate_us\": " INT64_FORMAT, q->asked_us, q->last_gate_us);
	if (answer->http_status != 0)
		appendStringInfo(&json, ", \"http_status\": %d", answer->http_status);
	if (answer->matches > 1)
		appendStringInfo(&json, ", \"duplicates\": %d", answer->matches);
	if (answer->result == AR_LOOKUP_ABSENT)
		appendStringInfo(&json, ", \"negatives\": %d, \"canary\": \"no canary\"", q->negatives + 1);
	if (errand->start_problem != NULL)
	{
		appendStringInfoString(&json, ", \"problem\": ");
		escape_json(&json, ar_answer_text_is_clean(errand->start_problem) ? errand->start_problem : "(not printable)");
	}
	if (errand->exchange != NULL && errand->exchange->error[0] != '\0' && ar_answer_text_is_clean(errand->exchange->error))
	{
		appendStringInfoString(&json, ", \"error\": ");
		escape_json(&json, errand->exchange->error);
	}
	appendStringInfoString(&json, "}}");
	return json.data;
}

/* What an answer proves and what follows.  Palloc'ed in the current context; needs a transaction. */
void
ar_ask_describe_answer(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	const ArExchange *x = errand->exchange;
	ArLookupFacts facts;
	ArMatch		match;

	memset(answer, 0, sizeof(*answer));
	gather_facts(q, x, &facts, &match);
	answer->result = ar_lookup_judge(&facts, &answer->reason);
	answer->http_status = x ? x->facts.http_status : 0;
	answer->matches = match.matches;
	if (answer->matches > 0 && answer->result != AR_LOOKUP_INCONCLUSIVE)
		answer->artifact_id = match.artifact_id ? match.artifact_id : q->client_reference;
	choose_step(q, answer);
	answer->evidence = describe(errand, answer);
}
