/*
 * row.c
 *		A row in a BEFORE trigger, by column name.
 */
#include "store/row.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

ArRow *
ar_row_read(Relation relation, HeapTuple tuple)
{
	ArRow	   *row = palloc(sizeof(ArRow));
	int			columns = RelationGetDescr(relation)->natts;

	row->descriptor = RelationGetDescr(relation);
	row->tuple = tuple;
	row->values = palloc(columns * sizeof(Datum));
	row->nulls = palloc(columns * sizeof(bool));
	row->replaced = palloc0(columns * sizeof(bool));
	heap_deform_tuple(tuple, row->descriptor, row->values, row->nulls);
	return row;
}

/*
 * Columns are named by string constants, so the address of the name finds the
 * place where the column was last time; whether it still is there is checked.
 */
#define REMEMBERED 256

static int	remembered[REMEMBERED];

int
ar_row_column(const ArRow *row, const char *name)
{
	int		   *place = &remembered[((uintptr_t) name >> 1) % REMEMBERED];

	if (*place < row->descriptor->natts)
	{
		Form_pg_attribute attribute = TupleDescAttr(row->descriptor, *place);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
			return *place;
	}
	for (int i = 0; i < row->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(row->descriptor, i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
		{
			*place = i;
			return i;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_COLUMN),
			 errmsg("there is no column \"%s\"", name),
			 errhint("If the extension in this database is older than the library, run ALTER EXTENSION action_reconcile UPDATE.")));
	return -1;
}

bool
ar_row_is_null(const ArRow *row, const char *name)
{
	return row->nulls[ar_row_column(row, name)];
}

Datum
ar_row_get(const ArRow *row, const char *name)
{
	int			column = ar_row_column(row, name);

	if (row->nulls[column])
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("column \"%s\" must not be null", name)));
	return row->values[column];
}

/* The value in its text form, whatever the type. */
char *
ar_row_text(const ArRow *row, const char *name)
{
	int			column = ar_row_column(row, name);
	Oid			output;
	bool		is_varlena;

	if (row->nulls[column])
		return NULL;
	getTypeOutputInfo(TupleDescAttr(row->descriptor, column)->atttypid, &output, &is_varlena);
	return OidOutputFunctionCall(output, row->values[column]);
}

void
ar_row_set(ArRow *row, const char *name, Datum value)
{
	int			column = ar_row_column(row, name);

	row->values[column] = value;
	row->nulls[column] = false;
	row->replaced[column] = true;
}

HeapTuple
ar_row_tuple(const ArRow *row)
{
	return heap_modify_tuple(row->tuple, row->descriptor, row->values, row->nulls, row->replaced);
}

static bool
is_listed(const char *name, const char *const *list)
{
	for (; *list != NULL; list++)
	{
		if (strcmp(*list, name) == 0)
			return true;
	}
	return false;
}

const char *
ar_row_difference(const ArRow *old_row, const ArRow *new_row, const char *const *except)
{
	for (int i = 0; i < new_row->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(new_row->descriptor, i);
		const char *name = NameStr(attribute->attname);

		if (attribute->attisdropped)
			continue;
		if (old_row->nulls[i] == new_row->nulls[i] &&
			(new_row->nulls[i] ||
			 datum_image_eq(old_row->values[i], new_row->values[i], attribute->attbyval, attribute->attlen)))
			continue;
		if (!is_listed(name, except))
			return name;
	}
	return NULL;
}
