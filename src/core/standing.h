/*
 * standing.h
 *		The pair (delivery, acceptance), and what follows from it.
 *
 * Only five of the nine pairs exist: a verdict about acceptance means nothing
 * before delivery is confirmed.  The codes are the on-disk form of the SQL
 * type "standing" and are frozen: never renumber, never reuse.
 *
 * Pure: no SQL, no network, no clock.
 */
#ifndef AR_STANDING_H
#define AR_STANDING_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ArDelivery
{
	AR_DELIVERY_PENDING,
	AR_DELIVERY_CONFIRMED,
	AR_DELIVERY_FAILED
} ArDelivery;

typedef enum ArAcceptance
{
	AR_ACCEPTANCE_PENDING,
	AR_ACCEPTANCE_ACCEPTED,
	AR_ACCEPTANCE_REJECTED
} ArAcceptance;

typedef enum ArStatus
{
	AR_STATUS_CONFIRMED,
	AR_STATUS_FAILED,
	AR_STATUS_DENIED_UNRESOLVED
} ArStatus;

/* Zero is no standing, so that a forgotten field cannot pass for one. */
typedef enum ArStanding
{
	AR_PENDING_PENDING = 1,
	AR_CONFIRMED_PENDING = 2,
	AR_CONFIRMED_ACCEPTED = 3,
	AR_CONFIRMED_REJECTED = 4,
	AR_FAILED_PENDING = 5
} ArStanding;

#define AR_STANDING_FIRST	AR_PENDING_PENDING
#define AR_STANDING_LAST	AR_FAILED_PENDING

/* All functions here are total over valid standings and never fail otherwise. */
extern bool ar_standing_is_valid(int code);
extern bool ar_standing_make(ArDelivery delivery, ArAcceptance acceptance, ArStanding *standing);
extern ArDelivery ar_standing_delivery(ArStanding standing);
extern ArAcceptance ar_standing_acceptance(ArStanding standing);
extern ArStatus ar_resolved_status(ArStanding standing);

/*
 * May an attempt or action that stood at "from" ever stand at "to"?  Delivery
 * never leaves confirmed, acceptance never leaves accepted, and a "no" is only
 * ever overturned by a "yes".
 */
extern bool ar_standing_may_become(ArStanding from, ArStanding to);

/* Text forms; the returned strings are constants. */
extern const char *ar_standing_name(ArStanding standing);
extern bool ar_standing_parse(const char *text, ArStanding *standing);
extern const char *ar_delivery_name(ArDelivery delivery);
extern const char *ar_acceptance_name(ArAcceptance acceptance);
extern const char *ar_status_name(ArStatus status);

/*
 * The standing of an action that has these attempts, in any order.  "queued"
 * says that a further attempt will go out by itself.
 */
extern ArStanding ar_fold(const ArStanding *attempts, int count, bool queued);

#endif							/* AR_STANDING_H */
