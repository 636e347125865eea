/*
 * row.h
 *		A row in a BEFORE trigger, by column name.
 */
#ifndef AR_ROW_H
#define AR_ROW_H

#include "postgres.h"

#include "access/htup.h"
#include "access/tupdesc.h"
#include "commands/trigger.h"

/* Deformed copy of one row; values point into the tuple. */
typedef struct ArRow
{
	TupleDesc	descriptor;
	Datum	   *values;
	bool	   *nulls;
	bool	   *replaced;		/* columns set by ar_row_set */
	HeapTuple	tuple;
} ArRow;

/* Palloc'ed in the current context. None needs more than the trigger's transaction; all may ereport. */
extern ArRow *ar_row_read(Relation relation, HeapTuple tuple);
extern int	ar_row_column(const ArRow *row, const char *name);
extern bool ar_row_is_null(const ArRow *row, const char *name);
extern Datum ar_row_get(const ArRow *row, const char *name);
extern char *ar_row_text(const ArRow *row, const char *name);
extern void ar_row_set(ArRow *row, const char *name, Datum value);
extern HeapTuple ar_row_tuple(const ArRow *row);

/* The first column that differs and is not in the list (NULL-terminated), or NULL. */
extern const char *ar_row_difference(const ArRow *old_row, const ArRow *new_row, const char *const *except);

#endif							/* AR_ROW_H */
