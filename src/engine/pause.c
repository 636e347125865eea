/*
 * pause.c
 *		How long the engine may sleep, and sleeping so that it hears everything.
 */
#include "engine/engine_internal.h"

#include "miscadmin.h"
#include "storage/latch.h"

#include "compat.h"
#include "engine/fault.h"
#include "store/clock.h"
#include "store/tx.h"

#define LONGEST_SLEEP_MS 3600000L

static long
milliseconds_until(int64 moment, int64 now)
{
	return moment <= now ? 0 : (long) ((moment - now + 999) / 1000);
}

static long
sooner(long one, long other)
{
	return one < 0 ? other : other < 0 ? one : Min(one, other);
}

long
ar_engine_sleep_ms(const ArEngine *engine)
{
	int64		now = ar_monotonic_us();
	int64		not_before = ar_engine_not_before_us(engine);
	long		sleep = -1;
	dlist_iter	iter;

	if (engine->one_by_one || ar_engine_may_look(engine))
		sleep = milliseconds_until(not_before, now);
	if (engine->look_at_us >= 0 && !engine->draining)
		sleep = sooner(sleep, milliseconds_until(engine->look_at_us, now));
	if (engine->gate_waited_for || !ar_engine_is_idle(engine))
		sleep = sooner(sleep, milliseconds_until(Max(engine->clock_saved_us + AR_SAVE_CLOCK_EVERY_US, not_before), now));
	if (engine->ended_count > 0)
	{
		int64		earliest = PG_INT64_MAX;

		dlist_foreach(iter, (dlist_head *) &engine->ended)
			earliest = Min(earliest, dlist_container(ArErrand, node, iter.cur)->retry_at_us);
		earliest = Max(earliest, not_before);
		if (!ar_record_is_due(engine))
			earliest = Max(earliest, now + 1000);
		sleep = sooner(sleep, milliseconds_until(earliest, now));
	}
	return sleep;
}

void
ar_engine_wait(ArEngine *engine, long timeout_ms)
{
	static uint32 wait_event = 0;
	int			events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;
	bool		open = ar_transport_in_flight(engine->transport) > 0;

	Assert(!ar_tx_is_open());
	ar_tx_settle_to_wait();
	if (engine->open_writes > engine->unchecked)
		ar_fault_point("after_request");
	if (wait_event == 0)
		wait_event = ar_wait_event("ActionReconcileMain");
	/* The server's waits count milliseconds in an int. */
	if (timeout_ms > LONGEST_SLEEP_MS)
		timeout_ms = LONGEST_SLEEP_MS;
	if (timeout_ms >= 0)
		events |= WL_TIMEOUT;
	if (open)
		events |= WL_SOCKET_READABLE;
	WaitLatchOrSocket(MyLatch, events, open ? ar_transport_fd(engine->transport) : PGINVALID_SOCKET,
					  timeout_ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}
