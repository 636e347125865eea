/*
 * credential_file.h
 *		The credential of a provider, read from its file when it is needed.
 */
#ifndef AR_CREDENTIAL_FILE_H
#define AR_CREDENTIAL_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define AR_CREDENTIAL_MAX	8192

/*
 * The first line of the file of that name in action_reconcile.credential_dir.
 * False, with the problem (which never holds a part of the credential), if it
 * cannot be had.  The caller wipes the buffer.  Never throws, needs no
 * transaction.
 */
extern bool ar_credential_read(const char *name, char *credential, size_t size, char *problem, size_t problem_size);

#endif							/* AR_CREDENTIAL_FILE_H */
