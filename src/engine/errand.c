/*
 * errand.c
 *		The transfers under way and the results not yet recorded.
 */
#include "engine/engine_internal.h"

#include "utils/memutils.h"

#include "store/clock.h"

/*
 * Allocated in the errand's own context, which goes with it; from here on that
 * belongs to the engine and no longer to the turn that claimed it.
 */
ArErrand *
ar_errand_begin(ArEngine *engine, ArDispatch *dispatch, ArQuestion *question)
{
	MemoryContext context = dispatch ? dispatch->context : question->context;
	ArErrand   *errand = MemoryContextAllocZero(context, sizeof(ArErrand));

	errand->dispatch = dispatch;
	errand->question = question;
	MemoryContextSetParent(context, engine->context);
	dlist_push_tail(&engine->open, &errand->node);
	if (dispatch)
	{
		engine->open_writes++;
		engine->unchecked++;
	}
	else
		engine->open_lookups++;
	return errand;
}

/* Its end is known; with an exchange, or with the reason why it never started. */
void
ar_errand_end(ArEngine *engine, ArErrand *errand, ArExchange *exchange, const char *start_problem)
{
	errand->exchange = exchange;
	if (start_problem != NULL)
		errand->start_problem = MemoryContextStrdup(errand->dispatch ? errand->dispatch->context : errand->question->context,
													start_problem);
	if (errand->dispatch)
	{
		engine->open_writes--;
		if (!errand->dispatch->check_done)
			engine->unchecked--;
	}
	else
		engine->open_lookups--;
	dlist_delete(&errand->node);
	if (engine->ended_count++ == 0)
		engine->ended_since_us = ar_monotonic_us();
	dlist_push_tail(&engine->ended, &errand->node);
}

/* A question whose answer has a further part: it is on its way again. */
void
ar_errand_reopen(ArEngine *engine, ArErrand *errand)
{
	Assert(errand->question != NULL);
	dlist_delete(&errand->node);
	engine->ended_count--;
	if (errand->exchange != NULL)
		ar_exchange_free(errand->exchange);
	errand->exchange = NULL;
	errand->goes_on = false;
	errand->retry_at_us = 0;
	dlist_push_tail(&engine->open, &errand->node);
	engine->open_lookups++;
}

/* An ended errand that is recorded, or given up. */
void
ar_errand_free(ArEngine *engine, ArErrand *errand)
{
	MemoryContext context = errand->dispatch ? errand->dispatch->context : errand->question->context;

	dlist_delete(&errand->node);
	engine->ended_count--;
	if (errand->exchange != NULL)
		ar_exchange_free(errand->exchange);
	MemoryContextDelete(context);
}
