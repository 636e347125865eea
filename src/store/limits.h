/*
 * limits.h
 *		The limits of the providers, and the state of their breakers.
 */
#ifndef AR_STORE_LIMITS_H
#define AR_STORE_LIMITS_H

#include "postgres.h"

#include "core/limits.h"

/* A provider during one turn, with what the engine has open there. */
typedef struct ArProvider
{
	char	   *name;
	ArProviderLimits limits;
	bool		operation_paused;	/* one of its operations is */
	ArPace	   *pace;			/* the engine's */
	int			open_writes;
	int			open_lookups;
} ArProvider;

/* For the actions "a" of a statement: their operation is not paused.  The array is made once. */
#define OPERATION_IS_NOT_PAUSED \
	"a.operation <> ALL (ARRAY(SELECT s.name FROM reconcile.pause_period s WHERE s.scope = 'operation' AND s.resumed_at IS NULL))"

/* All providers in the order of their names, palloc'ed; without pace and counts. Needs an open engine transaction. May ereport. */
extern int	ar_store_read_limits(ArProvider **providers);

/* How many may start at a provider now. */
typedef struct ArProviderRoom
{
	const char *provider;
	int			room;
} ArProviderRoom;

/* As two array parameters. */
extern void ar_room_datums(const ArProviderRoom *rooms, int count, Datum *values);

/* One whose breaker has changed, and what was learned last. */
typedef struct ArBreakerChange
{
	const ArProvider *provider;
	const char *reason;			/* or NULL */
} ArBreakerChange;

/* Write them; one that somebody holds stays as it is. Same conditions. */
extern void ar_store_write_breakers(const ArBreakerChange *changes, int count);

#endif							/* AR_STORE_LIMITS_H */
