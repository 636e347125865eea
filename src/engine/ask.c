/*
 * ask.c
 *		What the whole answer to a question means, and what follows from it.
 */
#include "engine/engine_internal.h"

#include "common/pg_prng.h"
#include "lib/stringinfo.h"
#include "utils/json.h"

#include "core/evidence.h"
#include "core/outcome.h"
#include "core/schedule.h"
#include "profile/answer.h"

/* A probe that is not visible after so many questions is not waited for. */
#define WATCHED_AT_MOST	1000

#define NOT_FOUND_PROVES_NOTHING "not found, where that proves nothing"
#define DECIDED_BY_PERSON "complete answer, without the object; that it did not happen was decided by a person"

/* An object that another action is credited with is none of ours; a candidate of that sort is none at all. */
static void
drop_owned(const ArQuestion *q, ArFindings *seen, ArLookupFacts *facts)
{
	if (q->effect != AR_EFFECT_CREATE)
		return;
	for (int i = 0; i < seen->id_count; i++)
	{
		if (seen->ids[i] == NULL || strcmp(seen->ids[i], q->client_reference) == 0 || !ar_store_owned_by_other(q, seen->ids[i]))
			continue;
		if (facts->matches > 0)
			facts->owned_by_other = true;
		else
		{
			facts->candidates--;
			memmove(&seen->ids[i], &seen->ids[i + 1], sizeof(char *) * (seen->id_count - i - 1));
			seen->id_count--;
			i--;
		}
	}
}

/* Only what has an id can be told from what others are credited with; of many, not all ids are kept. */
static bool
every_candidate_is_known(const ArFindings *seen)
{
	for (int i = 0; i < seen->id_count; i++)
	{
		if (seen->ids[i] == NULL)
			return false;
	}
	return seen->candidates <= seen->id_count;
}

/* What was seen, without a judgement. */
static void
gather_facts(const ArErrand *errand, ArFindings *seen, ArLookupFacts *facts)
{
	const ArQuestion *q = errand->question;
	const ArInquiry *inquiry = errand->inquiry;
	const ArFindings *canary = &inquiry->canary_now;

	*seen = inquiry->now;
	memset(facts, 0, sizeof(*facts));
	facts->effect = q->effect;
	facts->before = q->before;
	facts->gates_open = q->last_gate_us <= q->asked_us;
	facts->version_unchanged = true;	/* the store looks again when it records */
	facts->answered = seen->answered;
	facts->body_trusted = seen->body_trusted;
	facts->found_status = seen->found_status;
	facts->absent_status = seen->absent_status;
	facts->shape_ok = seen->shape_ok;
	facts->incomplete = seen->incomplete != NULL;
	facts->matches = seen->matches;
	facts->candidates = seen->candidates;
	facts->candidate_is_unique = q->reading.unique && every_candidate_is_known(seen);
	facts->gone = seen->gone > 0 && seen->gone >= seen->matches + seen->candidates;
	facts->unchanged = q->before_digest != NULL && seen->digest != NULL && strcmp(q->before_digest, seen->digest) == 0;
	facts->canary_asked = inquiry->on_canary;
	facts->canary_found = inquiry->on_canary && canary->answered && canary->found_status && canary->shape_ok &&
		canary->matches + canary->candidates > 0;
	/* An answer by name that shows something else is no absence: somebody else's object, or an error in a 200. */
	if (q->effect != AR_EFFECT_UPDATE && q->reading.items_path == NULL && seen->found_status &&
		seen->matches + seen->candidates == 0)
		facts->shape_ok = false;
	drop_owned(q, seen, facts);
}

static int64
backoff(const ArQuestion *q, int times)
{
	return ar_backoff_us(q->pause_us, q->pause_max_us, times, pg_prng_double(&pg_global_prng_state));
}

/* After an answer that proves nothing. A gate that has moved since is waited for; so is a provider that asks for patience. */
static int64
pause_before_asking_again(const ArErrand *errand)
{
	const ArQuestion *q = errand->question;
	int64		pause = backoff(q, q->inconclusives + 1);

	if (errand->exchange != NULL)
		pause = ar_retry_after_us(ar_send_asked_pause_us(errand->exchange), pause, q->pause_max_us);
	return Max(pause, q->last_gate_us - q->asked_us);
}

static void
choose_absence(const ArQuestion *q, bool canary_found, ArAnswer *answer)
{
	/* What was there before, or still is, has shown that the surface works. */
	ArAbsenceRule rule = {q->window_assumed, q->min_negatives, canary_found || q->effect != AR_EFFECT_CREATE};

	if (q->negatives + 1 < ar_required_negatives(&rule))
	{
		answer->step = AR_STEP_ABSENT_ONCE;
		answer->pause_us = q->negative_spacing_us;
		return;
	}
	answer->step = AR_STEP_ABSENT;
	answer->replace = q->was_queued || (q->replace_when_absent && q->replacements < q->max_replacements);
	if (answer->replace && !q->was_queued && q->replacements > 0)
		answer->pause_us = ar_backoff_us(q->retry_pause_us, q->retry_pause_max_us, q->replacements,
										 pg_prng_double(&pg_global_prng_state));
}

static void
pass_on(const ArQuestion *q, ArAnswer *answer)
{
	answer->step = q->last_rule ? AR_STEP_GIVE_UP : AR_STEP_NEXT_RULE;
	answer->pause_us = 0;
}

static void
choose_after_inconclusive(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;

	answer->step = AR_STEP_INCONCLUSIVE;
	answer->pause_us = pause_before_asking_again(errand);
	if (q->inconclusives + 1 >= q->max_inconclusive)
		pass_on(q, answer);
}

/* About an unknown outcome, or an answer that cannot be read. */
static void
choose_what_happened(const ArErrand *errand, bool canary_found, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;

	switch (answer->result)
	{
		case AR_LOOKUP_FOUND:
			answer->step = AR_STEP_FOUND;
			return;
		case AR_LOOKUP_AMBIGUOUS:
			pass_on(q, answer);
			return;
		case AR_LOOKUP_ABSENT:
			if (q->delivered)
			{
				/* A contradiction, which no repetition of the question makes an absence. */
				answer->reason = "the provider took it, and does not show it";
				break;
			}
			if (q->absence_proves)
			{
				choose_absence(q, canary_found, answer);
				return;
			}
			answer->result = AR_LOOKUP_INCONCLUSIVE;
			answer->reason = NOT_FOUND_PROVES_NOTHING;
			pass_on(q, answer);
			return;
		case AR_LOOKUP_INCONCLUSIVE:
			break;
	}
	choose_after_inconclusive(errand, answer);
}

/* Before a send: the absence is established already and is renewed, or what it is about is looked at. */
static void
choose_before_send(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	bool		too_often = q->inconclusives + 1 >= q->max_inconclusive;

	answer->pause_us = 0;
	/* Nothing could be sent on it, only asked again, and again. */
	if (answer->result != AR_LOOKUP_FOUND && ar_moment_now().boot_us - q->asked.boot_us > AR_LOOK_LASTS_US)
	{
		answer->result = AR_LOOKUP_INCONCLUSIVE;
		answer->reason = "the answer took too long for a send to rest on it";
		answer->step = too_often ? AR_STEP_GIVE_UP : AR_STEP_INCONCLUSIVE;
		answer->pause_us = too_often ? 0 : pause_before_asking_again(errand);
	}
	else if (q->never_sent && (answer->result != AR_LOOKUP_INCONCLUSIVE || too_often))
		answer->step = AR_STEP_LOOKED_BEFORE;
	else if (answer->result == AR_LOOKUP_FOUND)
		answer->step = AR_STEP_FOUND;
	else if (answer->result == AR_LOOKUP_ABSENT && q->absence_proves)
	{
		answer->step = AR_STEP_ABSENT;
		answer->replace = true;
		if (q->decided)
			answer->reason = DECIDED_BY_PERSON;	/* who need not have waited for the window */
	}
	else if (answer->result == AR_LOOKUP_ABSENT)
	{
		/* It did when the absence was established; whoever has changed the rule knows better. */
		answer->result = AR_LOOKUP_INCONCLUSIVE;
		answer->reason = NOT_FOUND_PROVES_NOTHING;
		answer->step = AR_STEP_GIVE_UP;
	}
	else if (answer->result == AR_LOOKUP_AMBIGUOUS || too_often)
		answer->step = AR_STEP_GIVE_UP;
	else
	{
		answer->step = AR_STEP_INCONCLUSIVE;
		answer->pause_us = pause_before_asking_again(errand);
	}
}

/* Nothing follows for the action, but two objects are an incident. */
static void
choose_for_duplicates(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	bool		again = answer->result == AR_LOOKUP_INCONCLUSIVE && q->inconclusives + 1 < q->max_inconclusive;

	answer->step = AR_STEP_PENDING;
	answer->pause_us = again ? pause_before_asking_again(errand) : -1;
}

static void
choose_when_visible(const ArQuestion *q, ArAnswer *answer)
{
	answer->step = answer->result == AR_LOOKUP_FOUND ? AR_STEP_SEEN : AR_STEP_PENDING;
	if (answer->step == AR_STEP_SEEN)
		answer->pause_us = q->last_rule ? -1 : 0;
	else
		answer->pause_us = q->inconclusives >= WATCHED_AT_MOST ? -1 : q->pause_us;
}

/* The provider has not decided yet, as far as can be seen. */
static void
choose_undecided(const ArErrand *errand, ArAnswer *answer)
{
	answer->step = errand->question->overdue ? AR_STEP_OVERDUE : AR_STEP_PENDING;
	answer->pause_us = pause_before_asking_again(errand);
}

/* What follows from the result. */
static void
choose_step(const ArErrand *errand, bool canary_found, ArAnswer *answer)
{
	switch (errand->question->kind)
	{
		case AR_ASK_WHAT_HAPPENED:
			choose_what_happened(errand, canary_found, answer);
			break;
		case AR_ASK_BEFORE_SEND:
			choose_before_send(errand, answer);
			break;
		case AR_ASK_FOR_VERDICT:
			choose_undecided(errand, answer);
			break;
		case AR_ASK_WHEN_VISIBLE:
			choose_when_visible(errand->question, answer);
			break;
		case AR_ASK_FOR_DUPLICATES:
			choose_for_duplicates(errand, answer);
			break;
	}
}

static void
describe_findings(StringInfo json, const ArErrand *errand, const ArFindings *seen, const ArLookupFacts *facts, const ArAnswer *answer)
{
	const ArQuestion *q = errand->question;

	appendStringInfo(json, ", \"rule\": %d, \"asked_us\": " INT64_FORMAT ", \"gate_us\": " INT64_FORMAT ", \"pages\": %d, \"objects\": %d",
					 q->position, q->asked_us, q->last_gate_us, seen->pages, seen->objects);
	if (seen->incomplete != NULL)
	{
		appendStringInfoString(json, ", \"incomplete\": ");
		escape_json(json, seen->incomplete);
	}
	if (facts->matches > 1)
		appendStringInfo(json, ", \"duplicates\": %d", facts->matches);
	if (facts->gone)
		appendStringInfoString(json, ", \"gone\": true");
	if (answer->result == AR_LOOKUP_ABSENT)
		appendStringInfo(json, ", \"negatives\": %d", q->negatives + 1);
	if (answer->result == AR_LOOKUP_ABSENT || facts->canary_asked)
		appendStringInfo(json, ", \"canary\": \"%s\"", facts->canary_found ? "found" : facts->canary_asked ? "not found" : "no canary");
	if (facts->candidates == 0 && facts->matches < 2)
		return;
	appendStringInfoString(json, ", \"candidates\": [");
	for (int i = 0; i < seen->id_count; i++)
	{
		appendStringInfoString(json, i > 0 ? ", " : "");
		if (seen->ids[i] != NULL)
			escape_json(json, seen->ids[i]);
		else
			appendStringInfoString(json, "null");
	}
	appendStringInfoChar(json, ']');
}

/* What every question leaves behind, whatever it was about. */
static void
describe_exchange(StringInfo json, const ArErrand *errand, int http_status)
{
	if (http_status != 0)
		appendStringInfo(json, ", \"http_status\": %d", http_status);
	if (errand->start_problem != NULL)
	{
		appendStringInfoString(json, ", \"problem\": ");
		escape_json(json, ar_answer_text_is_clean(errand->start_problem) ? errand->start_problem : "(not printable)");
	}
	if (errand->exchange != NULL && errand->exchange->error[0] != '\0' && ar_answer_text_is_clean(errand->exchange->error))
	{
		appendStringInfoString(json, ", \"error\": ");
		escape_json(json, errand->exchange->error);
	}
	appendStringInfoString(json, "}}");
}

/* Who was looked at before the first send, and how it was. */
static void
note_before(const ArQuestion *q, const ArFindings *seen, ArAnswer *answer)
{
	if (answer->step != AR_STEP_LOOKED_BEFORE)
		return;
	answer->digest = seen->digest;
	if (answer->result == AR_LOOKUP_INCONCLUSIVE)
		answer->before = AR_BEFORE_UNKNOWN;
	else if (q->effect == AR_EFFECT_DELETE)
		answer->before = answer->result == AR_LOOKUP_ABSENT ? AR_BEFORE_THERE : AR_BEFORE_NOT_THERE;
	else
		answer->before = seen->objects > 0 ? AR_BEFORE_THERE : AR_BEFORE_NOT_THERE;
}

/* Does what was seen show everything there is? */
static bool
whole_answer(const ArFindings *seen)
{
	return seen->answered && seen->body_trusted && seen->incomplete == NULL &&
		(seen->absent_status || (seen->found_status && seen->shape_ok));
}

static void
describe_lookup(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	ArFindings	seen;
	ArLookupFacts facts;
	StringInfoData json;

	gather_facts(errand, &seen, &facts);
	answer->result = ar_lookup_judge(&facts, &answer->reason);
	answer->http_status = seen.http_status;
	answer->matches = facts.matches + facts.candidates;
	answer->pages = seen.pages;
	answer->objects = seen.objects;
	choose_step(errand, facts.canary_found, answer);
	note_before(q, &seen, answer);
	answer->canary_missing = facts.canary_asked && !facts.canary_found && whole_answer(&errand->inquiry->canary_now);
	if (answer->step == AR_STEP_FOUND || answer->step == AR_STEP_SEEN)
		answer->artifact_id = seen.id_count > 0 && seen.ids[0] != NULL ? seen.ids[0] :
			q->effect == AR_EFFECT_CREATE ? q->client_reference : NULL;
	initStringInfo(&json);
	appendStringInfo(&json, "{\"lookup\": {\"result\": \"%s\", \"reason\": ", ar_lookup_result_name(answer->result));
	escape_json(&json, answer->reason);
	describe_findings(&json, errand, &seen, &facts, answer);
	describe_exchange(&json, errand, answer->http_status);
	answer->evidence = json.data;
}

static bool
is_listed(const char *state, char **states, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (strcmp(states[i], state) == 0)
			return true;
	}
	return false;
}

/* A state that is not terminal is no verdict, and neither is a long time. */
static void
describe_poll(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;
	const ArReading *r = &q->reading;
	const ArExchange *x = errand->exchange;
	bool		readable = x != NULL && x->facts.transfer_ok && x->facts.final_header_end &&
		x->facts.http_status >= 200 && x->facts.http_status < 300 && x->facts.body_framed && x->facts.body_complete;
	char	   *state = readable ? ar_answer_value(x->body, x->body_len, r->state_path) : NULL;
	StringInfoData json;

	answer->http_status = x ? x->facts.http_status : 0;
	answer->pages = 1;
	answer->result = AR_LOOKUP_INCONCLUSIVE;
	if (state != NULL && is_listed(state, r->accepted, r->accepted_count))
		answer->step = AR_STEP_ACCEPTED;
	else if (state != NULL && is_listed(state, r->rejected, r->rejected_count))
		answer->step = AR_STEP_REJECTED;
	else
		choose_undecided(errand, answer);
	if (answer->step == AR_STEP_ACCEPTED || answer->step == AR_STEP_REJECTED)
	{
		answer->result = AR_LOOKUP_FOUND;
		answer->reason = "the provider has decided";
	}
	else
		answer->reason = state != NULL ? "the provider has not decided yet" : "no state could be read";
	if (answer->step == AR_STEP_ACCEPTED && r->artifact_path != NULL)
		answer->artifact_id = ar_answer_id(ar_answer_value(x->body, x->body_len, r->artifact_path));
	initStringInfo(&json);
	appendStringInfoString(&json, "{\"poll\": {\"reason\": ");
	escape_json(&json, answer->reason);
	if (state != NULL)
	{
		appendStringInfoString(&json, ", \"state\": ");
		escape_json(&json, state);
	}
	describe_exchange(&json, errand, answer->http_status);
	answer->evidence = json.data;
}

/* What cannot be read or stored proves nothing. Reads nothing. */
void
ar_ask_degrade_answer(const ArErrand *errand, ArAnswer *answer)
{
	const ArQuestion *q = errand->question;

	memset(answer, 0, sizeof(*answer));
	answer->result = AR_LOOKUP_INCONCLUSIVE;
	answer->reason = "the answer could not be stored";
	answer->http_status = errand->exchange ? errand->exchange->facts.http_status : 0;
	answer->evidence = psprintf("{\"%s\": {\"result\": \"inconclusive\", \"reason\": \"%s\"}}",
								q->kind == AR_ASK_FOR_VERDICT ? "poll" : "lookup", answer->reason);
	choose_step(errand, false, answer);
}

/* What an answer proves and what follows.  Palloc'ed in the current context; needs a transaction. */
void
ar_ask_describe_answer(const ArErrand *errand, ArAnswer *answer)
{
	memset(answer, 0, sizeof(*answer));
	if (errand->question->kind == AR_ASK_FOR_VERDICT)
		describe_poll(errand, answer);
	else
		describe_lookup(errand, answer);
}
