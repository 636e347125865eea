/*
 * standing.c
 *		The five legal standings, their text forms, and the fold of attempts.
 */
#include "core/standing.h"

#include <stddef.h>
#include <string.h>

static const struct
{
	ArDelivery	delivery;
	ArAcceptance acceptance;
	ArStatus	status;
	const char *name;
}			standings[] = {
	[AR_PENDING_PENDING] = {AR_DELIVERY_PENDING, AR_ACCEPTANCE_PENDING, AR_STATUS_DENIED_UNRESOLVED, "pending/pending"},
	[AR_CONFIRMED_PENDING] = {AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_PENDING, AR_STATUS_DENIED_UNRESOLVED, "confirmed/pending"},
	[AR_CONFIRMED_ACCEPTED] = {AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_ACCEPTED, AR_STATUS_CONFIRMED, "confirmed/accepted"},
	[AR_CONFIRMED_REJECTED] = {AR_DELIVERY_CONFIRMED, AR_ACCEPTANCE_REJECTED, AR_STATUS_FAILED, "confirmed/rejected"},
	[AR_FAILED_PENDING] = {AR_DELIVERY_FAILED, AR_ACCEPTANCE_PENDING, AR_STATUS_FAILED, "failed/pending"},
};

static const char *const delivery_names[] = {"pending", "confirmed", "failed"};
static const char *const acceptance_names[] = {"pending", "accepted", "rejected"};
static const char *const status_names[] = {"CONFIRMED", "FAILED", "DENIED_UNRESOLVED"};

bool
ar_standing_is_valid(int code)
{
	return code >= AR_STANDING_FIRST && code <= AR_STANDING_LAST;
}

/* False if the pair is not one of the five; *standing is then untouched. */
bool
ar_standing_make(ArDelivery delivery, ArAcceptance acceptance, ArStanding *standing)
{
	for (int code = AR_STANDING_FIRST; code <= AR_STANDING_LAST; code++)
	{
		if (standings[code].delivery == delivery && standings[code].acceptance == acceptance)
		{
			*standing = (ArStanding) code;
			return true;
		}
	}
	return false;
}

ArDelivery
ar_standing_delivery(ArStanding standing)
{
	return standings[standing].delivery;
}

ArAcceptance
ar_standing_acceptance(ArStanding standing)
{
	return standings[standing].acceptance;
}

ArStatus
ar_resolved_status(ArStanding standing)
{
	return standings[standing].status;
}

bool
ar_standing_may_become(ArStanding from, ArStanding to)
{
	switch (from)
	{
		case AR_CONFIRMED_ACCEPTED:
			return to == AR_CONFIRMED_ACCEPTED;
		case AR_CONFIRMED_REJECTED:
			return to == AR_CONFIRMED_REJECTED || to == AR_CONFIRMED_ACCEPTED;
		case AR_CONFIRMED_PENDING:
			return ar_standing_delivery(to) == AR_DELIVERY_CONFIRMED;
		case AR_PENDING_PENDING:
		case AR_FAILED_PENDING:
			return true;
	}
	return false;
}

const char *
ar_standing_name(ArStanding standing)
{
	return standings[standing].name;
}

/* Exact text only: a standing is written by programs, not typed by people. */
bool
ar_standing_parse(const char *text, ArStanding *standing)
{
	for (int code = AR_STANDING_FIRST; code <= AR_STANDING_LAST; code++)
	{
		if (strcmp(standings[code].name, text) == 0)
		{
			*standing = (ArStanding) code;
			return true;
		}
	}
	return false;
}

const char *
ar_delivery_name(ArDelivery delivery)
{
	return delivery_names[delivery];
}

const char *
ar_acceptance_name(ArAcceptance acceptance)
{
	return acceptance_names[acceptance];
}

const char *
ar_status_name(ArStatus status)
{
	return status_names[status];
}

static bool
contains(const ArStanding *attempts, int count, ArStanding wanted)
{
	for (int i = 0; i < count; i++)
	{
		if (attempts[i] == wanted)
			return true;
	}
	return false;
}

/*
 * The order of the tests is the rule: what is certainly done wins over what is
 * on its way, what may still happen wins over every "no".  So a refusal of
 * attempt 2 never hides an unknown attempt 1, and nobody reads FAILED while
 * something may still happen.
 */
ArStanding
ar_fold(const ArStanding *attempts, int count, bool queued)
{
	if (contains(attempts, count, AR_CONFIRMED_ACCEPTED))
		return AR_CONFIRMED_ACCEPTED;
	if (contains(attempts, count, AR_CONFIRMED_PENDING))
		return AR_CONFIRMED_PENDING;
	if (queued || contains(attempts, count, AR_PENDING_PENDING))
		return AR_PENDING_PENDING;
	if (contains(attempts, count, AR_CONFIRMED_REJECTED))
		return AR_CONFIRMED_REJECTED;
	return AR_FAILED_PENDING;
}
