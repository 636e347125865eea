/*
 * statement.h
 *		Saved plans for the engine's statements, and their parameters.
 */
#ifndef AR_STATEMENT_H
#define AR_STATEMENT_H

#include "postgres.h"

#include "executor/spi.h"
#include "utils/array.h"
#include "utils/uuid.h"

#define AR_MAX_PARAMETERS 24

/* One statement, planned at its first use and kept for the process. */
typedef struct ArStatement
{
	const char *sql;
	int			parameter_count;
	Oid			types[AR_MAX_PARAMETERS];
	SPIPlanPtr	plan;
} ArStatement;

/* Run it; SPI must be connected. nulls may be NULL. Returns the number of rows; the rows are in SPI_tuptable. May ereport. */
extern uint64 ar_statement_run(ArStatement *statement, Datum *values, const char *nulls);

/* Columns of the result, by position from 1. Palloc'ed in the current context. */
extern char *ar_result_text(uint64 row, int column);
extern int64 ar_result_int64(uint64 row, int column, int64 if_null);
extern bool ar_result_bool(uint64 row, int column);
extern bool ar_result_uuid(uint64 row, int column, pg_uuid_t *uuid);
extern TimestampTz ar_result_timestamp(uint64 row, int column, bool *is_null);
extern char **ar_result_text_array(uint64 row, int column, int *count);

/* An array parameter, built element by element in the current context. */
typedef struct ArArray
{
	Oid			type;
	ArrayBuildState *state;
} ArArray;

extern void ar_array_init(ArArray *array, Oid element_type);
extern void ar_array_add(ArArray *array, Datum value, bool is_null);
extern void ar_array_add_text(ArArray *array, const char *value);
extern Datum ar_array_datum(ArArray *array);

#endif							/* AR_STATEMENT_H */
