/*
 * host_list.h
 *		Which hosts an address may name, by a list.
 *
 * Pure: no SQL, no network, no clock; never throws.
 */
#ifndef AR_HOST_LIST_H
#define AR_HOST_LIST_H

#include <stdbool.h>

/*
 * Whether the list allows the host of that http or https address.  The list has
 * names, with commas or blanks between them; *.example.org stands for every name
 * below example.org, and not for that one.  An empty list allows all.  Case does
 * not count, nor does the dot that ends a name.  What cannot be read as an
 * address is not allowed.
 */
extern bool ar_host_list_allows(const char *list, const char *address);

/* Whether every entry of the list is one: a name, a numeric address, or *. and a name. */
extern bool ar_host_list_is_valid(const char *list);

#endif							/* AR_HOST_LIST_H */
