/*
 * host_list.c
 *		Which hosts an address may name, by a list.
 */
#include "core/host_list.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define BETWEEN ", \t\r\n"

typedef struct ArName
{
	const char *start;
	size_t		length;
} ArName;

/* The next entry, or one of no length at the end of the list. */
static ArName
next_entry(const char **rest)
{
	ArName		entry;

	*rest += strspn(*rest, BETWEEN);
	entry.start = *rest;
	entry.length = strcspn(*rest, BETWEEN);
	*rest += entry.length;
	return entry;
}

static ArName
without_dot(ArName name)
{
	if (name.length > 1 && name.start[name.length - 1] == '.')
		name.length--;
	return name;
}

/* The host of an address, as it is written; of no length if it has none. */
static ArName
host_of(const char *address)
{
	ArName		host = {NULL, 0};

	if (strncasecmp(address, "https://", 8) == 0)
		host.start = address + 8;
	else if (strncasecmp(address, "http://", 7) == 0)
		host.start = address + 7;
	else
		return host;
	/* Behind a user name stands the host; no address of ours has one. */
	if (memchr(host.start, '@', strcspn(host.start, "/?#")) != NULL)
		return host;
	if (*host.start == '[')
	{
		host.length = strcspn(host.start, "]/?#");
		host.length += host.start[host.length] == ']';
		return host;
	}
	host.length = strcspn(host.start, ":/?#");
	return without_dot(host);
}

static bool
allows(ArName entry, ArName host)
{
	if (entry.length > 2 && entry.start[0] == '*')
	{
		/* with the dot before it, so that notexample.org is another one */
		entry.start++;
		entry.length--;
		return host.length > entry.length &&
			strncasecmp(host.start + host.length - entry.length, entry.start, entry.length) == 0;
	}
	return host.length == entry.length && strncasecmp(host.start, entry.start, entry.length) == 0;
}

bool
ar_host_list_allows(const char *list, const char *address)
{
	ArName		host = host_of(address);
	ArName		entry;
	const char *rest = list;

	if (list[strspn(list, BETWEEN)] == '\0')
		return true;
	while ((entry = next_entry(&rest)).length > 0)
	{
		if (host.length > 0 && allows(without_dot(entry), host))
			return true;
	}
	return false;
}

bool
ar_host_list_is_valid(const char *list)
{
	static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	static const char ipv6_bytes[] = "0123456789abcdefABCDEF:.";
	const char *rest = list;
	ArName		entry;

	while ((entry = next_entry(&rest)).length > 0)
	{
		const char *end = entry.start + entry.length;

		if (*entry.start == '[')
		{
			if (entry.length < 4 || end[-1] != ']' || strspn(entry.start + 1, ipv6_bytes) != entry.length - 2)
				return false;
			continue;
		}
		if (entry.length > 2 && entry.start[0] == '*' && entry.start[1] == '.')
			entry.start += 2;
		if (*entry.start == '.' || strspn(entry.start, name_bytes) != (size_t) (end - entry.start))
			return false;
	}
	return true;
}
