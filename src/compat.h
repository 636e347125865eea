/*
 * compat.h
 *		The only file that knows which PostgreSQL it is built against.
 */
#ifndef AR_COMPAT_H
#define AR_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "action_reconcile needs PostgreSQL 15 or later"
#endif

#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 170000
#include "storage/procnumber.h"
#endif

/* Settings of newer servers that would end a CALL that waits. */
#if PG_VERSION_NUM >= 170000
#define AR_PINNED_BY_VERSION {"transaction_timeout", "0"},
#define AR_LIMITS_OF_TRANSACTIONS "transaction_timeout",
#else
#define AR_PINNED_BY_VERSION
#define AR_LIMITS_OF_TRANSACTIONS
#endif

/* Does the current user own the database? */
#include "catalog/pg_database.h"
#include "utils/acl.h"

static inline bool
ar_owns_database(Oid database)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(DatabaseRelationId, database, GetUserId());
#else
	return pg_database_ownercheck(database, GetUserId());
#endif
}

/* What a waiting engine shows as its wait event: its name where the server can show it. */
static inline uint32
ar_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	(void) name;
	return PG_WAIT_EXTENSION;
#endif
}

/*
 * Is the text well-formed JSON that jsonb could hold?  No error is thrown.
 * Declared here because the lexer's interface moved between versions.
 */
#include "common/jsonapi.h"
#include "mb/pg_wchar.h"

static inline bool
ar_json_is_well_formed(char *text, int length)
{
	JsonLexContext *lex;

#if PG_VERSION_NUM >= 170000
	lex = makeJsonLexContextCstringLen(NULL, text, length, PG_UTF8, true);
#else
	lex = makeJsonLexContextCstringLen(text, length, PG_UTF8, true);
#endif
	return pg_parse_json(lex, &nullSemAction) == JSON_SUCCESS;
}

#endif							/* AR_COMPAT_H */
