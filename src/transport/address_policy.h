/*
 * address_policy.h
 *		Which network addresses a request may connect to.
 *
 * Decided on the address the socket is about to use, after name resolution,
 * so that neither an odd spelling of an address nor a name that resolves
 * differently the second time gets past it.  Pure: no network, no clock.
 */
#ifndef AR_ADDRESS_POLICY_H
#define AR_ADDRESS_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "transport/transport.h"

typedef enum ArAddressClass
{
	AR_ADDRESS_PUBLIC,
	AR_ADDRESS_LOOPBACK,
	AR_ADDRESS_PRIVATE,			/* RFC 1918, unique local, site local, benchmarks */
	AR_ADDRESS_LINK_LOCAL,
	AR_ADDRESS_SHARED,			/* carrier-grade NAT */
	AR_ADDRESS_UNSPECIFIED,		/* "this host": Linux connects it to loopback */
	AR_ADDRESS_MULTICAST,
	AR_ADDRESS_RESERVED,		/* documentation, broadcast, unassigned */
	AR_ADDRESS_METADATA,		/* hands out a cloud machine's credentials */
	AR_ADDRESS_UNSUPPORTED		/* neither IPv4 nor IPv6 */
} ArAddressClass;

/*
 * The class of an address.  An IPv4 address carried inside an IPv6 one counts
 * as that IPv4 address.  Pure; never throws, needs no transaction.
 */
extern ArAddressClass ar_address_classify(const struct sockaddr *address, size_t length);

/*
 * Whether the policy permits that class.  Pure; never throws, needs no
 * transaction.
 */
extern bool ar_address_allowed(const ArAddressPolicy *policy, ArAddressClass address_class);

/* A word for people; a constant string. */
extern const char *ar_address_class_name(ArAddressClass address_class);

/*
 * Writes the numeric address into text (empty if it has none).  Never throws,
 * needs no transaction.
 */
extern void ar_address_format(const struct sockaddr *address, size_t length,
							  char *text, size_t text_size);

#endif							/* AR_ADDRESS_POLICY_H */
