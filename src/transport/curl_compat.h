/*
 * curl_compat.h
 *		Differences between libcurl versions, all in one place.
 *
 * Supported from 7.88.1 on.  Nothing outside this file tests a version.
 */
#ifndef AR_CURL_COMPAT_H
#define AR_CURL_COMPAT_H

#include <curl/curl.h>
#include <stddef.h>

#if LIBCURL_VERSION_NUM < 0x075801
#error "libcurl 7.88.1 or newer is required"
#endif

/* The oldest library this program may run with, whatever it was built with. */
#define AR_CURL_MIN_VERSION_NUM 0x075801
#define AR_CURL_MIN_VERSION "7.88.1"

/*
 * The directory of trusted certificates.  None is wanted: a provider's CA file
 * must be the only trust, and libcurl's cache of parsed certificates is used
 * only without a directory.  Since 8.17 NULL means the built-in directory, so
 * that a path which cannot hold a file stands in for "none" (the cache is then
 * lost: a small CA file per provider matters there).
 */
static inline const char *
ar_curl_ca_directory(void)
{
#if LIBCURL_VERSION_NUM >= 0x081100
	return "/dev/null";
#else
	return NULL;
#endif
}

/*
 * Keeps curl_multi_cleanup() from waiting for a name resolution that hangs.
 * Older versions obey the option of each easy handle instead.
 */
static inline CURLMcode
ar_curl_multi_quick_exit(CURLM *multi)
{
#if LIBCURL_VERSION_NUM >= 0x081400
	return curl_multi_setopt(multi, CURLMOPT_QUICK_EXIT, 1L);
#else
	(void) multi;
	return CURLM_OK;
#endif
}

#endif							/* AR_CURL_COMPAT_H */
