/*
 * address_policy.c
 *		Which network addresses a request may connect to.
 *
 * Two const tables hold every range with a meaning of its own; an address that
 * matches no row is public.  The first matching row wins, so single hosts
 * stand before the ranges that contain them.
 */
#include "transport/address_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

typedef struct ArRange4
{
	uint32_t	base;			/* host byte order */
	int			bits;
	ArAddressClass address_class;
} ArRange4;

#define V4(a, b, c, d) \
	(((uint32_t) (a) << 24) | ((uint32_t) (b) << 16) | ((uint32_t) (c) << 8) | (uint32_t) (d))

static const ArRange4 ranges4[] = {
	{V4(169, 254, 169, 254), 32, AR_ADDRESS_METADATA},	/* most clouds */
	{V4(169, 254, 169, 253), 32, AR_ADDRESS_METADATA},	/* its resolver */
	{V4(169, 254, 170, 2), 32, AR_ADDRESS_METADATA},	/* container tasks */
	{V4(169, 254, 170, 23), 32, AR_ADDRESS_METADATA},	/* pod identity */
	{V4(100, 100, 100, 200), 32, AR_ADDRESS_METADATA},
	{V4(168, 63, 129, 16), 32, AR_ADDRESS_METADATA},
	{V4(192, 0, 0, 192), 32, AR_ADDRESS_METADATA},
	{V4(0, 0, 0, 0), 8, AR_ADDRESS_UNSPECIFIED},
	{V4(10, 0, 0, 0), 8, AR_ADDRESS_PRIVATE},
	{V4(100, 64, 0, 0), 10, AR_ADDRESS_SHARED},
	{V4(127, 0, 0, 0), 8, AR_ADDRESS_LOOPBACK},
	{V4(169, 254, 0, 0), 16, AR_ADDRESS_LINK_LOCAL},
	{V4(172, 16, 0, 0), 12, AR_ADDRESS_PRIVATE},
	{V4(192, 0, 0, 0), 24, AR_ADDRESS_RESERVED},
	{V4(192, 0, 2, 0), 24, AR_ADDRESS_RESERVED},
	{V4(192, 88, 99, 0), 24, AR_ADDRESS_RESERVED},	/* 6to4 relays */
	{V4(192, 168, 0, 0), 16, AR_ADDRESS_PRIVATE},
	{V4(198, 18, 0, 0), 15, AR_ADDRESS_PRIVATE},
	{V4(198, 51, 100, 0), 24, AR_ADDRESS_RESERVED},
	{V4(203, 0, 113, 0), 24, AR_ADDRESS_RESERVED},
	{V4(224, 0, 0, 0), 4, AR_ADDRESS_MULTICAST},
	{V4(240, 0, 0, 0), 4, AR_ADDRESS_RESERVED},
};

/* Where an IPv6 range carries an IPv4 address, if it does. */
#define NO_IPV4 (-1)

typedef struct ArRange6
{
	uint8_t		base[16];
	int			bits;
	int			ipv4_offset;	/* byte offset, or NO_IPV4 */
	ArAddressClass address_class;	/* when it carries none */
} ArRange6;

static const ArRange6 ranges6[] = {
	/* fd00:ec2::254 and fd20:ce::254, metadata by IPv6 */
	{{0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, 128, NO_IPV4, AR_ADDRESS_METADATA},
	{{0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}, 128, NO_IPV4, AR_ADDRESS_METADATA},
	{{0}, 128, NO_IPV4, AR_ADDRESS_UNSPECIFIED},
	{{[15] = 1}, 128, NO_IPV4, AR_ADDRESS_LOOPBACK},
	{{[10] = 0xff, [11] = 0xff}, 96, 12, AR_ADDRESS_PUBLIC},	/* mapped */
	{{[8] = 0xff, [9] = 0xff}, 96, 12, AR_ADDRESS_PUBLIC},	/* translated */
	{{0}, 96, 12, AR_ADDRESS_PUBLIC},	/* compatible */
	{{0x00, 0x64, 0xff, 0x9b}, 96, 12, AR_ADDRESS_PUBLIC},	/* NAT64 */
	{{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, NO_IPV4, AR_ADDRESS_PRIVATE},	/* local NAT64 */
	{{0x20, 0x02}, 16, 2, AR_ADDRESS_PUBLIC},	/* 6to4 */
	{{0x20, 0x01, 0x0d, 0xb8}, 32, NO_IPV4, AR_ADDRESS_RESERVED},
	{{0x20, 0x01, 0x00, 0x00}, 23, NO_IPV4, AR_ADDRESS_RESERVED},	/* Teredo, ORCHID */
	{{0x3f, 0xff, 0x00}, 20, NO_IPV4, AR_ADDRESS_RESERVED},
	{{0xfc}, 7, NO_IPV4, AR_ADDRESS_PRIVATE},
	{{0xfe, 0x80}, 10, NO_IPV4, AR_ADDRESS_LINK_LOCAL},
	{{0xfe, 0xc0}, 10, NO_IPV4, AR_ADDRESS_PRIVATE},
	{{0xff}, 8, NO_IPV4, AR_ADDRESS_MULTICAST},
	/* what is outside the global unicast block is not assigned */
	{{0x00}, 3, NO_IPV4, AR_ADDRESS_RESERVED},
	{{0x40}, 2, NO_IPV4, AR_ADDRESS_RESERVED},
	{{0x80}, 1, NO_IPV4, AR_ADDRESS_RESERVED},
};

#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Class of an IPv4 address in host byte order.  Pure. */
static ArAddressClass
classify4(uint32_t address)
{
	size_t		i;

	for (i = 0; i < LENGTH_OF(ranges4); i++)
	{
		int			shift = 32 - ranges4[i].bits;

		if ((address >> shift) == (ranges4[i].base >> shift))
			return ranges4[i].address_class;
	}
	return AR_ADDRESS_PUBLIC;
}

/* Whether the first `bits` bits of two addresses agree.  Pure. */
static bool
prefix_matches(const uint8_t *left, const uint8_t *right, int bits)
{
	int			bytes = bits / 8;
	int			rest = bits % 8;

	if (memcmp(left, right, (size_t) bytes) != 0)
		return false;
	return rest == 0 || ((left[bytes] ^ right[bytes]) >> (8 - rest)) == 0;
}

/* Class of an IPv6 address.  Pure. */
static ArAddressClass
classify6(const uint8_t *address)
{
	size_t		i;

	for (i = 0; i < LENGTH_OF(ranges6); i++)
	{
		const ArRange6 *range = &ranges6[i];

		if (!prefix_matches(address, range->base, range->bits))
			continue;
		if (range->ipv4_offset != NO_IPV4)
		{
			const uint8_t *inner = address + range->ipv4_offset;

			return classify4(V4(inner[0], inner[1], inner[2], inner[3]));
		}
		return range->address_class;
	}
	return AR_ADDRESS_PUBLIC;
}

/* See the header. */
ArAddressClass
ar_address_classify(const struct sockaddr *address, size_t length)
{
	if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in))
	{
		struct sockaddr_in in4;

		memcpy(&in4, address, sizeof(in4));
		return classify4(ntohl(in4.sin_addr.s_addr));
	}
	if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))
	{
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		return classify6(in6.sin6_addr.s6_addr);
	}
	return AR_ADDRESS_UNSUPPORTED;
}

/* See the header. */
bool
ar_address_allowed(const ArAddressPolicy *policy, ArAddressClass address_class)
{
	switch (address_class)
	{
		case AR_ADDRESS_PUBLIC:
			return true;
		case AR_ADDRESS_LOOPBACK:
		case AR_ADDRESS_PRIVATE:
		case AR_ADDRESS_LINK_LOCAL:
		case AR_ADDRESS_SHARED:
			return policy->allow_private;

			/* no provider lives at any of these, whatever is allowed */
		case AR_ADDRESS_UNSPECIFIED:
		case AR_ADDRESS_MULTICAST:
		case AR_ADDRESS_RESERVED:
		case AR_ADDRESS_METADATA:
		case AR_ADDRESS_UNSUPPORTED:
			break;
	}
	return false;
}

/* See the header. */
const char *
ar_address_class_name(ArAddressClass address_class)
{
	switch (address_class)
	{
		case AR_ADDRESS_PUBLIC:
			return "public";
		case AR_ADDRESS_LOOPBACK:
			return "loopback";
		case AR_ADDRESS_PRIVATE:
			return "private";
		case AR_ADDRESS_LINK_LOCAL:
			return "link-local";
		case AR_ADDRESS_SHARED:
			return "carrier-grade NAT";
		case AR_ADDRESS_UNSPECIFIED:
			return "unspecified";
		case AR_ADDRESS_MULTICAST:
			return "multicast";
		case AR_ADDRESS_RESERVED:
			return "reserved";
		case AR_ADDRESS_METADATA:
			return "cloud metadata";
		case AR_ADDRESS_UNSUPPORTED:
			break;
	}
	return "unsupported";
}

/* See the header. */
void
ar_address_format(const struct sockaddr *address, size_t length,
				  char *text, size_t text_size)
{
	const char *done = NULL;

	if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in))
	{
		struct sockaddr_in in4;

		memcpy(&in4, address, sizeof(in4));
		done = inet_ntop(AF_INET, &in4.sin_addr, text, (socklen_t) text_size);
	}
	else if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6))
	{
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		done = inet_ntop(AF_INET6, &in6.sin6_addr, text, (socklen_t) text_size);
	}
	if (done == NULL && text_size > 0)
		text[0] = '\0';
}
