/*
 * limits.c
 *		Keeping to the limits of the providers.
 *
 * Limits and breakers are read anew at each look.  Rates and what is in flight
 * are the engine's alone to know: there is one engine at a time, and one that
 * begins has saved up nothing.
 */
#include "engine/engine_internal.h"

#include "common/pg_prng.h"
#include "utils/hsearch.h"

#include "store/clock.h"

/* An entry of the engine's table: what is remembered of a provider from turn to turn. */
typedef struct Pace
{
	char		provider[AR_PROVIDER_NAME];
	ArPace		pace;
	bool		troubled;		/* its breaker is not as new */
} Pace;

static Pace *
pace_of(ArEngine *engine, const char *provider)
{
	char		key[AR_PROVIDER_NAME] = {0};
	bool		found;
	Pace	   *pace;

	if (engine->paces == NULL)
	{
		HASHCTL		control = {0};

		control.keysize = AR_PROVIDER_NAME;
		control.entrysize = sizeof(Pace);
		control.hcxt = engine->context;
		engine->paces = hash_create("action_reconcile paces", 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	}
	strlcpy(key, provider, sizeof(key));
	pace = hash_search(engine->paces, key, HASH_ENTER, &found);
	if (!found)
	{
		memset(&pace->pace, 0, sizeof(pace->pace));
		pace->troubled = false;
	}
	return pace;
}

static ArProvider *
find_provider(ArEngine *engine, const char *name)
{
	int			low = 0;
	int			high = engine->provider_count;

	while (low < high)
	{
		int			middle = (low + high) / 2;
		int			order = strcmp(engine->providers[middle].name, name);

		if (order == 0)
			return &engine->providers[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static void
count_open(ArEngine *engine, const dlist_head *list)
{
	dlist_iter	iter;

	dlist_foreach(iter, (dlist_head *) list)
	{
		ArErrand   *errand = dlist_container(ArErrand, node, iter.cur);
		ArProvider *p = find_provider(engine, errand->dispatch ? errand->dispatch->provider : errand->question->provider);

		if (p == NULL)
			continue;
		if (errand->dispatch != NULL)
			p->open_writes++;
		else
			p->open_lookups++;
	}
}

static bool
is_troubled(const ArProvider *p)
{
	return p->limits.breaker.failures > 0 || p->limits.breaker.open_until_us != 0;
}

/*
 * Providers with a paused operation are left out of this look: whatever of it
 * is due has to be read past, and however much that is, others shall not wait.
 */
static bool
is_left_out(const ArEngine *engine, const ArProvider *p)
{
	return p->operation_paused && engine->beside_pauses.wanted;
}

void
ar_limits_read(ArEngine *engine)
{
	engine->limits_read_us = ar_monotonic_us();
	engine->beside_pauses.wanted = engine->limits_read_us < engine->beside_pauses.not_before_us;
	engine->provider_count = ar_store_read_limits(&engine->providers);
	for (int i = 0; i < engine->provider_count; i++)
	{
		Pace	   *pace = pace_of(engine, engine->providers[i].name);

		pace->troubled = is_troubled(&engine->providers[i]);
		engine->providers[i].pace = &pace->pace;
	}
	count_open(engine, &engine->open);
	count_open(engine, &engine->ended);
}

/* A look that had to read past much is taken seldom: a tenth of the time at most. */
void
ar_limits_end_look(ArEngine *engine)
{
	int64		now = ar_monotonic_us();
	bool		any = false;

	for (int i = 0; i < engine->provider_count; i++)
		any = any || engine->providers[i].operation_paused;
	if (any && !engine->beside_pauses.wanted && now - engine->limits_read_us > AR_SHORT_LOOK_US)
		engine->beside_pauses.not_before_us = now + 9 * (now - engine->limits_read_us);
}

static ArRoom
room_for(ArProvider *p, ArRoomKind kind, int64 monotonic, int64 lower)
{
	ArRoom		room;

	if (kind == AR_ROOM_TO_SEND || kind == AR_ROOM_TO_RESEND)
		return ar_room_to_send(&p->limits, p->pace, p->open_writes, kind == AR_ROOM_TO_SEND, monotonic, lower);
	room = ar_room_to_ask(&p->limits, p->pace, p->open_lookups, monotonic);
	/* A look that nothing could be sent on would be too old when it can. */
	if (kind == AR_ROOM_TO_ASK_BEFORE_SEND && (p->limits.paused || p->limits.breaker.open_until_us > lower))
		room.count = 0;
	return room;
}

/*
 * Where something may start, palloc'ed; the first is the one after which the
 * last look at this kind had to stop, so that each provider has its turn.
 */
int
ar_limits_rooms(ArEngine *engine, ArRoomKind kind, ArProviderRoom **rooms)
{
	int64		monotonic = ar_monotonic_us();
	int64		lower = ar_lower_now();
	int			first = 0;
	int			count = 0;

	*rooms = palloc(sizeof(ArProviderRoom) * Max(engine->provider_count, 1));
	while (first < engine->provider_count && strcmp(engine->providers[first].name, engine->last_served[kind]) <= 0)
		first++;
	for (int i = 0; i < engine->provider_count; i++)
	{
		ArProvider *p = &engine->providers[(first + i) % engine->provider_count];
		ArRoom		room = room_for(p, kind, monotonic, lower);

		if (room.count > 0 && (kind == AR_ROOM_TO_ASK || !is_left_out(engine, p)))
			(*rooms)[count++] = (ArProviderRoom) {p->name, room.count};
	}
	return count;
}

/* This starts now. */
void
ar_limits_take(ArEngine *engine, ArRoomKind kind, const char *provider)
{
	ArProvider *p = find_provider(engine, provider);

	strlcpy(engine->last_served[kind], provider, AR_PROVIDER_NAME);
	if (p == NULL)
		return;
	if (kind == AR_ROOM_TO_SEND || kind == AR_ROOM_TO_RESEND)
	{
		p->open_writes++;
		if (p->limits.max_rate > 0)
			ar_bucket_take(&p->pace->sends, 1);
	}
	else
	{
		p->open_lookups++;
		if (p->limits.max_lookup_rate > 0)
			ar_bucket_take(&p->pace->lookups, 1);
	}
}

/* For how long each provider has no room, palloc'ed. */
int
ar_limits_waits(ArEngine *engine, ArProviderWaits **waits)
{
	int64		monotonic = ar_monotonic_us();
	int64		lower = ar_lower_now();

	*waits = palloc(sizeof(ArProviderWaits) * Max(engine->provider_count, 1));
	for (int i = 0; i < engine->provider_count; i++)
	{
		ArProvider *p = &engine->providers[i];
		ArRoom		send = room_for(p, AR_ROOM_TO_SEND, monotonic, lower);

		(*waits)[i].provider = p->name;
		(*waits)[i].send_us = is_left_out(engine, p) ? -1 : send.wait_us;
		(*waits)[i].paced = send.paced;
		(*waits)[i].resend_us = is_left_out(engine, p) ? -1 : room_for(p, AR_ROOM_TO_RESEND, monotonic, lower).wait_us;
		(*waits)[i].ask_us = room_for(p, AR_ROOM_TO_ASK, monotonic, lower).wait_us;
	}
	return engine->provider_count;
}

/* Does what these ends say about their providers change a breaker? */
static bool
says_something(ArEngine *engine, const char *provider, const ArAttemptEnd *end)
{
	return end->reach == AR_NOT_REACHED || (end->reach == AR_REACHED && pace_of(engine, provider)->troubled);
}

/*
 * Tell the breakers how these attempts ended, in the order in which they did.
 * Without trouble that costs nothing.  What ends because we stop says nothing.
 */
void
ar_limits_note(ArEngine *engine, ArErrand **errands, const ArAttemptEnd *ends, int count)
{
	ArBreakerChange *changes;
	int			change_count = 0;
	bool		needed = false;

	for (int i = 0; i < count; i++)
		needed = needed || says_something(engine, errands[i]->dispatch->provider, &ends[i]);
	if (engine->transport == NULL || engine->disarmed_because != NULL)
		return;
	if (needed)
		ar_limits_read(engine);
	changes = palloc0(sizeof(ArBreakerChange) * Max(engine->provider_count, 1));
	for (int i = 0; i < count; i++)
	{
		Pace	   *pace = pace_of(engine, errands[i]->dispatch->provider);
		ArProvider *p = needed ? find_provider(engine, errands[i]->dispatch->provider) : NULL;
		ArBreakerChange *change;

		if (ends[i].reach == AR_REACHED && pace->pace.ramp > 0)
			ar_pace_reached(&pace->pace, p ? p->limits.max_in_flight : AR_RAMP_MAX);
		if (p == NULL || !ar_breaker_note(&p->limits.breaker, &p->limits.breaker_rule, ends[i].reach, ends[i].asked_pause_us,
										  ar_lower_now(), pg_prng_double(&pg_global_prng_state)))
			continue;
		change = &changes[p - engine->providers];
		change->provider = p;
		if (ends[i].reach == AR_NOT_REACHED)
			change->reason = ends[i].reason;
	}
	for (int i = 0; needed && i < engine->provider_count; i++)
	{
		if (changes[i].provider != NULL)
			changes[change_count++] = changes[i];
	}
	if (change_count > 0)
		ar_store_write_breakers(changes, change_count);
}
