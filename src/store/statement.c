/*
 * statement.c
 *		Saved plans for the engine's statements, and their parameters.
 */
#include "store/statement.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

uint64
ar_statement_run(ArStatement *statement, Datum *values, const char *nulls)
{
	MemoryContext caller = CurrentMemoryContext;
	int			result;

	if (statement->plan == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare(statement->sql, statement->parameter_count, statement->types);

		if (plan == NULL)
			elog(ERROR, "could not prepare an engine statement: %s", SPI_result_code_string(SPI_result));
		SPI_keepplan(plan);
		statement->plan = plan;
	}
	result = SPI_execute_plan(statement->plan, values, nulls, false, 0);
	if (result < 0)
		elog(ERROR, "could not run an engine statement: %s", SPI_result_code_string(result));
	/* SPI leaves its own context behind, which goes with the transaction. */
	MemoryContextSwitchTo(caller);
	return SPI_processed;
}

static Datum
result_datum(uint64 row, int column, bool *is_null)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, is_null);
}

char *
ar_result_text(uint64 row, int column)
{
	return SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);
}

/* For int4 and int8 columns alike. */
int64
ar_result_int64(uint64 row, int column, int64 if_null)
{
	bool		is_null;
	Datum		value = result_datum(row, column, &is_null);

	if (is_null)
		return if_null;
	return SPI_gettypeid(SPI_tuptable->tupdesc, column) == INT4OID ?
		(int64) DatumGetInt32(value) : DatumGetInt64(value);
}

bool
ar_result_bool(uint64 row, int column)
{
	bool		is_null;
	Datum		value = result_datum(row, column, &is_null);

	return !is_null && DatumGetBool(value);
}

bool
ar_result_uuid(uint64 row, int column, pg_uuid_t *uuid)
{
	bool		is_null;
	Datum		value = result_datum(row, column, &is_null);

	if (is_null)
		return false;
	*uuid = *DatumGetUUIDP(value);
	return true;
}

TimestampTz
ar_result_timestamp(uint64 row, int column, bool *is_null)
{
	Datum		value = result_datum(row, column, is_null);

	return *is_null ? 0 : DatumGetTimestampTz(value);
}

char **
ar_result_text_array(uint64 row, int column, int *count)
{
	bool		is_null;
	Datum		value = result_datum(row, column, &is_null);
	Datum	   *elements;
	bool	   *nulls;
	char	  **texts;

	*count = 0;
	if (is_null)
		return NULL;
	deconstruct_array(DatumGetArrayTypeP(value), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, count);
	texts = palloc(sizeof(char *) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
		texts[i] = nulls[i] ? NULL : TextDatumGetCString(elements[i]);
	return texts;
}

void
ar_array_init(ArArray *array, Oid element_type)
{
	array->type = element_type;
	array->state = initArrayResult(element_type, CurrentMemoryContext, false);
}

void
ar_array_add(ArArray *array, Datum value, bool is_null)
{
	array->state = accumArrayResult(array->state, value, is_null, array->type, CurrentMemoryContext);
}

void
ar_array_add_text(ArArray *array, const char *value)
{
	ar_array_add(array, value ? CStringGetTextDatum(value) : (Datum) 0, value == NULL);
}

Datum
ar_array_datum(ArArray *array)
{
	return makeArrayResult(array->state, CurrentMemoryContext);
}
