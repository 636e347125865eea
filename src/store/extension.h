/*
 * extension.h
 *		The extension as this database has it, and whether the library fits it.
 *
 * A package brings a new library, which the server loads when it is restarted;
 * the tables and functions of a database stay what they were until somebody
 * says ALTER EXTENSION … UPDATE.  Between the two nothing may be sent.
 */
#ifndef AR_EXTENSION_H
#define AR_EXTENSION_H

#include "postgres.h"

typedef struct ArExtension
{
	Oid			oid;
	bool		fits;			/* is of the library's version */
} ArExtension;

/* What the library and the SQL of a database have to agree on: the default version of the control file. */
extern const char *ar_library_version(void);

/* False if the database does not have the extension. Needs a transaction. */
extern bool ar_extension_find(ArExtension *extension);

/*
 * Why the library does not work with what this database has, in one sentence
 * that ends with what to do, in the current context; NULL if they fit, or if
 * there is no extension.  Needs a transaction.
 */
extern const char *ar_extension_problem(void);

/* ERROR 55000 if they do not. Needs a transaction. */
extern void ar_extension_require(void);

#endif							/* AR_EXTENSION_H */
