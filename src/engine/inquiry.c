/*
 * inquiry.c
 *		Asking the provider, page by page.
 *
 * An answer may have many pages, and a negative one is believed only if the
 * same question about an object that is known to be there (the canary) shows
 * it.  All of that is one lookup: each page is read inside the transaction in
 * which results are recorded, and what goes on is asked after its commit.
 */
#include "engine/engine_internal.h"

#include "utils/memutils.h"

#include "core/link_header.h"
#include "profile/answer.h"

typedef int (*AskFunction) (MemoryContext parent, const ArAskLimits *limits, ArQuestion ***questions);

/* Questions of one sort, behind those that there are already. */
static int
ask_for(ArEngine *engine, AskFunction ask, ArRoomKind kind, ArQuestion ***questions, int count)
{
	ArAskLimits limits = {0};
	ArProviderRoom *rooms;
	ArQuestion **more;
	int			more_count;

	limits.room_count = ar_limits_rooms(engine, kind, &rooms);
	limits.rooms = rooms;
	limits.epoch = engine->epoch;
	limits.limit = AR_CLAIM_LIMIT;
	more_count = ask(engine->turn_context, &limits, &more);
	*questions = count == 0 ? more : repalloc(*questions, sizeof(ArQuestion *) * (count + more_count));
	for (int i = 0; i < more_count; i++)
	{
		ar_limits_take(engine, kind, more[i]->provider);
		(*questions)[count + i] = more[i];
	}
	return count + more_count;
}

/* Questions have a budget of their own, so that they pass a crowd of writes and an open breaker. */
int
ar_ask_claim(ArEngine *engine, ArQuestion ***questions)
{
	int			count = ask_for(engine, ar_store_ask, AR_ROOM_TO_ASK, questions, 0);

	count = ask_for(engine, ar_store_ask_again, AR_ROOM_TO_ASK_BEFORE_SEND, questions, count);
	return ask_for(engine, ar_store_poll, AR_ROOM_TO_ASK, questions, count);
}

static void
start_request(ArEngine *engine, ArErrand *errand)
{
	const ArQuestion *q = errand->question;
	ArInquiry  *inquiry = errand->inquiry;
	const ArAsked *asked = inquiry->on_canary ? &q->canary : &q->asked_for;
	const char *path = inquiry->next_path ? inquiry->next_path : asked->path;
	const char *body = inquiry->next_body ? inquiry->next_body : asked->body;
	ArRequest	request = {0};

	if (inquiry->next_url != NULL)
		request.url = inquiry->next_url;
	else if (q->url != NULL)
		request.url = q->url;
	else if (path != NULL)
		request.url = psprintf("%s%s", q->base_url, path);
	else
	{
		ar_errand_end(engine, errand, NULL, "the question cannot be made from the rule");
		return;
	}
	inquiry->asked_url = MemoryContextStrdup(q->context, request.url);
	request.method = q->method;
	request.body = body;
	request.body_len = body ? strlen(body) : 0;
	request.allow_http = q->allow_http;
	request.address_policy.allow_private = q->allow_private_addresses;
	request.ca_file = q->ca_file;
	request.connect_timeout_ms = Max(q->timeout_us / 1000, 1);
	request.timeout_ms = Max(q->timeout_us / 1000, 1);
	request.max_body_bytes = q->max_response_bytes;
	request.keep_header = q->reading.artifact_header;
	ar_request_start(engine, errand, &request, asked->headers, asked->header_strings, q->credential);
}

void
ar_ask_start(ArEngine *engine, ArQuestion **questions, int count)
{
	for (int i = 0; i < count; i++)
	{
		ArErrand   *errand = ar_errand_begin(engine, NULL, questions[i]);

		errand->inquiry = MemoryContextAllocZero(questions[i]->context, sizeof(ArInquiry));
		start_request(engine, errand);
	}
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

static ArMatchRule
match_rule(const ArQuestion *q, bool canary)
{
	const ArReading *r = &q->reading;
	ArMatchRule rule = {0};

	rule.client_reference = canary ? q->canary_reference : q->client_reference;
	rule.items_path = r->items_path;
	rule.reference_path = r->reference_path;
	rule.contains = r->contains;
	rule.body_match = canary ? q->canary_body_match : r->body_match;
	rule.values = canary ? q->canary_values : r->values;
	rule.value_strings = canary ? q->canary_value_strings : r->value_strings;
	rule.created_path = canary ? NULL : r->created_path;
	rule.since_us = q->since_us;
	rule.until_us = q->until_us;
	rule.exclude_path = r->exclude_path;
	rule.gone_path = r->gone_path;
	rule.incomplete_if = r->incomplete_if;
	rule.artifact_path = r->artifact_path;
	rule.next_path = r->paging_path;
	rule.more_path = r->paging_more;
	return rule;
}

/* The last page alone, without a judgement. */
static void
read_page(const ArErrand *errand, ArFindings *page, ArMatch *match)
{
	const ArQuestion *q = errand->question;
	const ArReading *r = &q->reading;
	const ArExchange *x = errand->exchange;
	ArMatchRule rule = match_rule(q, errand->inquiry->on_canary);

	memset(page, 0, sizeof(*page));
	memset(match, 0, sizeof(*match));
	page->pages = 1;
	if (x == NULL)
		return;
	page->http_status = x->facts.http_status;
	/* A question may be sent again by anybody, so how it was sent says nothing. */
	page->answered = x->facts.transfer_ok && x->facts.final_header_end && x->facts.http_status >= 200;
	page->body_trusted = x->facts.body_framed && x->facts.body_complete;
	page->found_status = status_is_in(x->facts.http_status, r->found_statuses, r->found_status_count);
	page->absent_status = status_is_in(x->facts.http_status, r->absent_statuses, r->absent_status_count) &&
		!ar_send_may_be_a_page(x);
	if (!page->answered || !page->body_trusted || !page->found_status)
		return;
	ar_match_page(x->body, x->body_len, &rule, match);
	page->shape_ok = match->shape_ok;
	page->incomplete = match->incomplete ? "the answer says itself that it is not complete" : NULL;
	page->objects = match->objects;
	page->rows = match->rows;
	page->matches = match->matches;
	page->candidates = match->candidates;
	page->gone = match->gone;
	page->id_count = match->id_count;
	memcpy(page->ids, match->ids, sizeof(page->ids));
	page->digest = match->digest;
	if (r->artifact_header != NULL && page->id_count == 1 && page->ids[0] == NULL)
	{
		const char *value = ar_exchange_header(x, r->artifact_header);

		page->ids[0] = value != NULL ? ar_answer_id(pstrdup(value)) : NULL;
	}
}

/* One object seen on two pages is one object. */
static bool
is_known(const ArFindings *all, const char *id)
{
	for (int i = 0; i < all->id_count; i++)
	{
		if (id != NULL && all->ids[i] != NULL && strcmp(all->ids[i], id) == 0)
			return true;
	}
	return false;
}

static void
add_page(ArFindings *all, const ArFindings *page)
{
	int			repeated = 0;
	bool		first = all->pages == 0;

	all->http_status = page->http_status;
	all->pages += page->pages;
	all->objects += page->objects;
	all->rows += page->rows;
	all->answered = page->answered && (first || all->answered);
	all->body_trusted = page->body_trusted && (first || all->body_trusted);
	all->found_status = page->found_status;
	/* "Not there" is said of the whole list, not of a page that has got lost. */
	all->absent_status = page->absent_status && first;
	all->shape_ok = page->shape_ok && (first || all->shape_ok);
	if (all->incomplete == NULL)
		all->incomplete = page->incomplete;
	for (int i = 0; i < page->id_count; i++)
	{
		if (is_known(all, page->ids[i]))
			repeated++;
		else if (all->id_count < AR_MATCH_IDS)
			all->ids[all->id_count++] = page->ids[i];
	}
	all->matches += Max(page->matches - repeated, 0);
	all->candidates += Max(page->candidates - (page->matches > 0 ? 0 : repeated), 0);
	all->gone += page->gone;
	all->digest = page->digest;
}

/* All Link headers of an answer as one, as they may be joined; NULL if there is none. */
static char *
link_headers(const ArExchange *x)
{
	char	   *all = NULL;

	for (int i = 0; i < x->header_count; i++)
	{
		if (strcmp(x->headers[i].name, "link") == 0)
			all = all == NULL ? pstrdup(x->headers[i].value) : psprintf("%s, %s", all, x->headers[i].value);
	}
	return all;
}

/*
 * Where the list goes on, by what the provider says, or how many pages or rows
 * after the first one; false at its end.
 */
static bool
next_place(const ArErrand *errand, const ArFindings *all, const ArFindings *page, const ArMatch *match,
		   const char **place, const char **problem)
{
	const ArReading *r = &errand->question->reading;
	char	   *link;
	ArLinkTarget target;

	*place = NULL;
	*problem = NULL;
	if (strcmp(r->paging, "link") == 0)
	{
		link = link_headers(errand->exchange);
		switch (link == NULL ? AR_LINK_NONE : ar_link_header_next(link, strlen(link), &target))
		{
			case AR_LINK_NEXT:
				*place = pnstrdup(target.start, target.length);
				return true;
			case AR_LINK_NONE:
				return false;
			case AR_LINK_UNREADABLE:
				break;
		}
		*problem = "the Link header cannot be read";
		return false;
	}
	if (!match->more)
		return false;
	if (strcmp(r->paging, "offset") == 0 || strcmp(r->paging, "page") == 0)
	{
		*place = psprintf("%d", *r->paging == 'o' ? all->rows : all->pages);
		return page->rows >= r->page_size || (r->paging_more != NULL && page->rows > 0);
	}
	/* A page with nothing on it need not be the last one: a filter may have left nothing. */
	*place = match->next;
	if (match->next == NULL && r->paging_more != NULL)
		*problem = "there are more pages, but it does not say where";
	return match->next != NULL && *match->next != '\0';
}

/* Plan the request for the next page; false if it cannot be made. */
static bool
plan_next(ArErrand *errand, const char *place)
{
	const ArQuestion *q = errand->question;
	const ArReading *r = &q->reading;
	ArInquiry  *inquiry = errand->inquiry;
	const ArAsked *asked = inquiry->on_canary ? &q->canary : &q->asked_for;
	MemoryContext caller = MemoryContextSwitchTo(q->context);
	bool		planned = true;

	inquiry->next_path = inquiry->next_url = inquiry->next_body = NULL;
	if (strcmp(r->paging, "link") == 0 || strcmp(r->paging, "next_url") == 0)
	{
		char		url[AR_MAX_URL];

		planned = ar_url_resolve(inquiry->asked_url, place, url, sizeof(url));
		inquiry->next_url = planned ? pstrdup(url) : NULL;
	}
	else if (r->pages_by_body)
	{
		inquiry->next_body = ar_store_body_with_cursor(q, asked->body, place);
		planned = inquiry->next_body != NULL;
	}
	else
	{
		if (strcmp(r->paging, "cursor") != 0)
			place = psprintf("%d", atoi(place) + ar_path_number(asked->path, r->paging_parameter, *r->paging == 'p' ? 1 : 0));
		inquiry->next_path = ar_path_with_parameter(asked->path, r->paging_parameter, place);
	}
	MemoryContextSwitchTo(caller);
	return planned;
}

/* Would the whole answer be a negative that counts, if a canary were seen? */
static bool
wants_canary(const ArErrand *errand, const ArFindings *all)
{
	const ArQuestion *q = errand->question;

	return !errand->inquiry->on_canary && q->canary_reference != NULL && q->canary.path != NULL &&
		(q->kind == AR_ASK_WHAT_HAPPENED || q->kind == AR_ASK_BEFORE_SEND) && q->effect == AR_EFFECT_CREATE &&
		q->absence_proves && !q->delivered && q->last_gate_us <= q->asked_us &&
		all->answered && all->body_trusted && all->incomplete == NULL && all->matches + all->candidates == 0 &&
		(all->absent_status || (all->found_status && all->shape_ok));
}

/* Is there another page to read, in the phase of the inquiry? A problem makes the answer incomplete. */
static bool
page_follows(ArErrand *errand, ArFindings *all, const ArFindings *page, const ArMatch *match)
{
	const ArReading *r = &errand->question->reading;
	const char *place;
	const char *problem;
	bool		follows;

	if (r->paging == NULL || strcmp(r->paging, "none") == 0 || !page->shape_ok ||
		(all->matches > 0 && errand->question->kind != AR_ASK_FOR_DUPLICATES))
		return false;
	/* What is only alike may be on further pages too, and may be another action's. */
	if (all->candidates > 0 && errand->question->effect != AR_EFFECT_CREATE)
		return false;
	follows = next_place(errand, all, page, match, &place, &problem);
	if (follows && all->pages >= r->max_pages)
		problem = "there are more pages than are read";
	else if (follows && !plan_next(errand, place))
		problem = "the next page is not at an address of the provider's";
	if (problem != NULL)
		all->incomplete = problem;
	return follows && problem == NULL;
}

/* Everything seen about the action, or about the canary, with the last page. Palloc'ed in the current context. */
static bool
gather(ArErrand *errand, ArFindings *all)
{
	ArFindings	page;
	ArMatch		match;

	*all = errand->inquiry->on_canary ? errand->inquiry->canary_seen : errand->inquiry->seen;
	read_page(errand, &page, &match);
	add_page(all, &page);
	return errand->exchange != NULL && page_follows(errand, all, &page, &match);
}

/*
 * Read what came back.  Doing it twice is doing it once: what it leaves behind
 * counts only when ar_ask_go_on takes it up.
 */
void
ar_ask_read(ArErrand *errand)
{
	MemoryContext caller = MemoryContextSwitchTo(errand->question->context);
	ArInquiry  *inquiry = errand->inquiry;
	ArFindings *seen = inquiry->on_canary ? &inquiry->canary_now : &inquiry->now;

	errand->goes_on = false;
	if (errand->question->kind != AR_ASK_FOR_VERDICT)
	{
		bool		follows = gather(errand, seen);

		inquiry->to_canary = !follows && wants_canary(errand, seen);
		errand->goes_on = follows || inquiry->to_canary;
	}
	MemoryContextSwitchTo(caller);
}

void
ar_ask_go_on(ArEngine *engine, ArErrand *errand)
{
	ArInquiry  *inquiry = errand->inquiry;

	if (engine->transport == NULL)
	{
		/* The engine stops, and takes the question back. */
		ar_errand_free(engine, errand);
		return;
	}
	if (inquiry->on_canary)
		inquiry->canary_seen = inquiry->canary_now;
	else
		inquiry->seen = inquiry->now;
	if (inquiry->to_canary)
	{
		inquiry->on_canary = true;
		inquiry->to_canary = false;
		inquiry->next_path = inquiry->next_url = inquiry->next_body = NULL;
	}
	ar_errand_reopen(engine, errand);
	start_request(engine, errand);
}
