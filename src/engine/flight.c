/*
 * flight.c
 *		The transfers under way and the results not yet recorded.
 */
#include "engine/engine_internal.h"

#include "utils/memutils.h"

#include "store/clock.h"

/*
 * Allocated in the flight's own context, which goes with it; from here on that
 * belongs to the engine and no longer to the turn that claimed it.
 */
ArFlight *
ar_flight_take_off(ArEngine *engine, ArDispatch *dispatch, ArQuestion *question)
{
	MemoryContext context = dispatch ? dispatch->context : question->context;
	ArFlight   *flight = MemoryContextAllocZero(context, sizeof(ArFlight));

	flight->dispatch = dispatch;
	flight->question = question;
	MemoryContextSetParent(context, engine->context);
	dlist_push_tail(&engine->flying, &flight->node);
	if (dispatch)
	{
		engine->flying_writes++;
		engine->unchecked++;
	}
	else
		engine->flying_lookups++;
	return flight;
}

/* Its end is known; with an exchange, or with the reason why it never started. */
void
ar_flight_land(ArEngine *engine, ArFlight *flight, ArExchange *exchange, const char *start_problem)
{
	flight->exchange = exchange;
	if (start_problem != NULL)
		flight->start_problem = MemoryContextStrdup(flight->dispatch ? flight->dispatch->context : flight->question->context,
													start_problem);
	if (flight->dispatch)
	{
		engine->flying_writes--;
		if (!flight->dispatch->check_done)
			engine->unchecked--;
	}
	else
		engine->flying_lookups--;
	dlist_delete(&flight->node);
	if (engine->landed_count++ == 0)
		engine->landed_since_us = ar_monotonic_us();
	dlist_push_tail(&engine->landed, &flight->node);
}

/* A landed flight that is recorded, or given up. */
void
ar_flight_free(ArEngine *engine, ArFlight *flight)
{
	MemoryContext context = flight->dispatch ? flight->dispatch->context : flight->question->context;

	dlist_delete(&flight->node);
	engine->landed_count--;
	if (flight->exchange != NULL)
		ar_exchange_free(flight->exchange);
	MemoryContextDelete(context);
}

static void
count_writes(dlist_head *list, ArOpenCount *counts, int *count)
{
	dlist_iter	iter;

	dlist_foreach(iter, list)
	{
		ArFlight   *flight = dlist_container(ArFlight, node, iter.cur);
		int			i = 0;

		if (flight->dispatch == NULL)
			continue;
		while (i < *count && strcmp(counts[i].provider, flight->dispatch->provider) != 0)
			i++;
		if (i == *count)
		{
			strlcpy(counts[i].provider, flight->dispatch->provider, sizeof(counts[i].provider));
			counts[i].open = 0;
			(*count)++;
		}
		counts[i].open++;
	}
}

/* Writes that are open or not yet recorded, per provider; palloc'ed. */
int
ar_flight_open_counts(const ArEngine *engine, ArOpenCount **counts)
{
	int			count = 0;
	int			possible = engine->flying_writes + engine->landed_count;

	*counts = palloc(sizeof(ArOpenCount) * Max(possible, 1));
	count_writes((dlist_head *) &engine->flying, *counts, &count);
	count_writes((dlist_head *) &engine->landed, *counts, &count);
	return count;
}
