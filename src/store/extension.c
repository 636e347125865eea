/*
 * extension.c
 *		The extension as this database has it, and whether the library fits it.
 */
#include "store/extension.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_extension.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

#define EXTENSION_NAME	"action_reconcile"

const char *
ar_library_version(void)
{
	return AR_SQL_VERSION;
}

/* The version, allocated, or NULL. A few catalog pages, all of them cached: asked once per transaction of the engine. */
static char *
read_extension(ArExtension *extension)
{
	Relation	catalog = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum(EXTENSION_NAME));
	scan = systable_beginscan(catalog, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_extension row = (Form_pg_extension) GETSTRUCT(tuple);
		bool		is_null;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion, RelationGetDescr(catalog), &is_null);

		extension->oid = row->oid;
		version = is_null ? pstrdup("") : TextDatumGetCString(value);
		extension->fits = strcmp(version, AR_SQL_VERSION) == 0;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return version;
}

bool
ar_extension_find(ArExtension *extension)
{
	return read_extension(extension) != NULL;
}

/* Is a version such as 0.10 later than another? */
static bool
is_later(const char *version, const char *other)
{
	int			major = 0;
	int			minor = 0;
	int			other_major = 0;
	int			other_minor = 0;

	(void) sscanf(version, "%d.%d", &major, &minor);
	(void) sscanf(other, "%d.%d", &other_major, &other_minor);
	return major != other_major ? major > other_major : minor > other_minor;
}

const char *
ar_extension_problem(void)
{
	ArExtension extension;
	char	   *version = read_extension(&extension);

	if (version == NULL || extension.fits)
		return NULL;
	return psprintf("the library is version %s, the extension in this database %s: %s", AR_SQL_VERSION, version,
					is_later(version, AR_SQL_VERSION) ? "restart the server, so that it loads the library that is installed" :
					"run ALTER EXTENSION action_reconcile UPDATE");
}

void
ar_extension_require(void)
{
	const char *problem = ar_extension_problem();

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library and extension do not fit: %s", problem)));
}
