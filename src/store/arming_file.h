/*
 * arming_file.h
 *		The token file outside the data directory that tells an original from a copy.
 */
#ifndef AR_ARMING_FILE_H
#define AR_ARMING_FILE_H

#include "postgres.h"

#include "access/xlogdefs.h"

#define AR_TOKEN_LENGTH 32		/* hexadecimal digits */
#define AR_PLACE_OF_STANDBY "standby"	/* the place in a file that waits for a promotion */

typedef struct ArArmingFile
{
	char		token[AR_TOKEN_LENGTH + 1];
	int64		epoch;
	XLogRecPtr	lsn;			/* the database had written this far */
	char		place[64];		/* which data directory: device-independent mark of its control file */
	int64		position;		/* so many claims had been let go, at least */
} ArArmingFile;

/*
 * All return NULL if all is well, else what is wrong, as a palloc'ed or
 * constant text.  None ereports below FATAL.  No transaction needed.
 */
extern const char *ar_arming_directory_problem(void);
extern const char *ar_arming_file_read(const char *token, ArArmingFile *file);
/* must_exist: what somebody has taken away stays away, for that is how a database is disarmed by hand. */
extern const char *ar_arming_file_write(const ArArmingFile *file, bool must_exist);

/*
 * Only its position, in place and without waiting for the disk: a claim is not
 * to wait for two commits.  After a crash of the machine it may be too low,
 * never too high.
 */
extern const char *ar_arming_file_mark(const char *token, int64 position);

/* Remove the files of earlier tokens of this database, in this data directory, that are older than a day. */
extern void ar_arming_file_sweep(const char *token);

/* The mark of this data directory. */
extern void ar_arming_place(char place[64]);

#endif							/* AR_ARMING_FILE_H */
