/*
 * health.c
 *		What of the engine's state no table tells: the SQL is in 56_health.sql.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "store/clock.h"
#include "store/tx.h"
#include "worker/report.h"

PG_FUNCTION_INFO_V1(ar_worker_state);
PG_FUNCTION_INFO_V1(ar_clock_reading);
PG_FUNCTION_INFO_V1(ar_engine_tables);

static Datum
row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

Datum
ar_worker_state(PG_FUNCTION_ARGS)
{
	ArWorkerReport report;
	Datum		values[5];
	bool		nulls[5] = {0};

	ar_worker_report(&report);
	values[0] = CStringGetTextDatum(report.state);
	values[1] = Int32GetDatum(report.launcher_pid);
	nulls[1] = report.launcher_pid == 0;
	values[2] = Int32GetDatum(report.worker_pid);
	nulls[2] = report.worker_pid == 0;
	values[3] = Int32GetDatum(report.failures);
	values[4] = TimestampTzGetDatum(report.last_turn);
	nulls[4] = report.last_turn == 0;
	return row(fcinfo, values, nulls);
}

/* The clocks' present reading, from which SQL makes the lower clock without making it run in this session. */
Datum
ar_clock_reading(PG_FUNCTION_ARGS)
{
	Datum		values[2] = {CStringGetTextDatum(ar_lifetime()), Int64GetDatum(ar_monotonic_us())};
	bool		nulls[2] = {0};

	return row(fcinfo, values, nulls);
}

Datum
ar_engine_tables(PG_FUNCTION_ARGS)
{
	int			count;
	const char *const *names = ar_tx_tables(&count);
	Datum	   *values = palloc(sizeof(Datum) * count);

	for (int i = 0; i < count; i++)
		values[i] = CStringGetTextDatum(names[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(values, count, TEXTOID, -1, false, TYPALIGN_INT));
}
