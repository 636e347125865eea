/*
 * arming_file.c
 *		The token file outside the data directory.
 *
 * Everything inside a data directory is in its copies too, so only a file
 * outside can tell them apart.  One file per token: arming again inside a
 * transaction that is rolled back leaves the old token in force.
 */
#include "store/arming_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/fd.h"

#include "settings.h"
#include "store/clock.h"

#define FILE_MAXIMUM 1024
#define SWEEP_AFTER_SECONDS 86400

/* At the end of the file and always as long, so that it can be written over. */
#define POSITION_FORMAT "%020lld\n"
#define POSITION_LENGTH 21

static void
file_prefix(char *prefix, size_t size)
{
	snprintf(prefix, size, UINT64_FORMAT "-%u-", GetSystemIdentifier(), MyDatabaseId);
}

static void
file_path(const char *token, char *path, size_t size)
{
	char		prefix[64];

	file_prefix(prefix, sizeof(prefix));
	snprintf(path, size, "%s/%s%.8s.armed", ar_setting_arming_dir, prefix, token);
}

/*
 * The control file is written in place for the life of a data directory; any
 * copy of the directory has another one.
 */
void
ar_arming_place(char place[64])
{
	struct stat info;
	char		path[MAXPGPATH];

	snprintf(path, sizeof(path), "%s/global/pg_control", DataDir);
	if (stat(path, &info) != 0)
		info.st_ino = 0;
	snprintf(place, 64, "%llu-%08x", (unsigned long long) info.st_ino, (unsigned int) hash_bytes((const unsigned char *) DataDir, strlen(DataDir)));
}

const char *
ar_arming_directory_problem(void)
{
	struct stat info;
	char		directory[PATH_MAX];
	char		data[PATH_MAX];
	size_t		length;

	if (ar_setting_arming_dir == NULL || ar_setting_arming_dir[0] == '\0')
		return "action_reconcile.arming_dir is not set";
	if (!is_absolute_path(ar_setting_arming_dir))
		return "action_reconcile.arming_dir is not an absolute path";
	if (lstat(ar_setting_arming_dir, &info) != 0)
		return psprintf("directory \"%s\" cannot be read: %m", ar_setting_arming_dir);
	if (!S_ISDIR(info.st_mode))
		return psprintf("\"%s\" is not a directory", ar_setting_arming_dir);
	if (info.st_uid != geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return psprintf("directory \"%s\" must belong to the server's user, with mode 0700", ar_setting_arming_dir);
	if (realpath(ar_setting_arming_dir, directory) == NULL || realpath(DataDir, data) == NULL)
		return psprintf("directory \"%s\" cannot be resolved: %m", ar_setting_arming_dir);
	length = strlen(data);
	if (strncmp(directory, data, length) == 0 && (directory[length] == '/' || directory[length] == '\0'))
		return psprintf("directory \"%s\" lies inside the data directory, whose copies it must tell apart", ar_setting_arming_dir);
	return NULL;
}

const char *
ar_arming_file_read(const char *token, ArArmingFile *file)
{
	char		path[MAXPGPATH];
	char		text[FILE_MAXIMUM];
	struct stat info;
	int			descriptor;
	ssize_t		length;
	uint32		high;
	uint32		low;
	int			fields;

	file_path(token, path, sizeof(path));
	descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (descriptor < 0)
		return errno == ENOENT ? "the token file is not on this host" : psprintf("file \"%s\" cannot be opened: %m", path);
	if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
		(info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
	{
		close(descriptor);
		return psprintf("file \"%s\" must be a regular file of the server's user, with mode 0600", path);
	}
	length = read(descriptor, text, sizeof(text) - 1);
	close(descriptor);
	if (length < 0)
		return psprintf("file \"%s\" cannot be read: %m", path);
	text[length] = '\0';
	file->position = 0;
	fields = sscanf(text, "token %32[0-9a-f]\nepoch " INT64_FORMAT "\nlsn %X/%X\nplace %63s\nposition " INT64_FORMAT "\n",
					file->token, &file->epoch, &high, &low, file->place, &file->position);
	/* the position came later than the rest */
	if (fields < 5)
		return psprintf("file \"%s\" is not a token file", path);
	file->lsn = ((uint64) high << 32) | low;
	return NULL;
}

const char *
ar_arming_file_write(const ArArmingFile *file, bool must_exist)
{
	char		path[MAXPGPATH];
	char		temporary[MAXPGPATH];
	char		text[FILE_MAXIMUM];
	int			descriptor;
	int			length;

	file_path(file->token, path, sizeof(path));
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	length = snprintf(text, sizeof(text), "token %s\nepoch " INT64_FORMAT "\nlsn %X/%X\nplace %s\nposition " POSITION_FORMAT,
					  file->token, file->epoch, LSN_FORMAT_ARGS(file->lsn), file->place, (long long) file->position);
	descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (descriptor < 0)
		return psprintf("file \"%s\" cannot be created: %m", temporary);
	if (write(descriptor, text, length) != length || pg_fsync(descriptor) != 0)
	{
		close(descriptor);
		unlink(temporary);
		return psprintf("file \"%s\" cannot be written: %m", temporary);
	}
	close(descriptor);
	if (must_exist && access(path, F_OK) != 0)
	{
		unlink(temporary);
		return "the token file is not on this host";
	}
	if (durable_rename(temporary, path, LOG) != 0)
		return psprintf("file \"%s\" cannot be put into place", path);
	return NULL;
}

const char *
ar_arming_file_mark(const char *token, int64 position)
{
	char		path[MAXPGPATH];
	char		text[POSITION_LENGTH + 1];
	struct stat info;
	int			descriptor;
	bool		written;

	file_path(token, path, sizeof(path));
	descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (descriptor < 0)
		return errno == ENOENT ? "the token file is not on this host" : psprintf("file \"%s\" cannot be opened: %m", path);
	snprintf(text, sizeof(text), POSITION_FORMAT, (long long) position);
	written = fstat(descriptor, &info) == 0 && info.st_size > POSITION_LENGTH &&
		pwrite(descriptor, text, POSITION_LENGTH, info.st_size - POSITION_LENGTH) == POSITION_LENGTH;
	if (close(descriptor) != 0 || !written)
		return psprintf("file \"%s\" cannot be written: %m", path);
	return NULL;
}

/* Does the file of that name belong to this data directory? One beside it may share the directory of tokens. */
static bool
is_of_this_place(const char *name, const char *prefix)
{
	ArArmingFile file;
	char		place[64];

	ar_arming_place(place);
	return ar_arming_file_read(name + strlen(prefix), &file) == NULL && strcmp(file.place, place) == 0;
}

void
ar_arming_file_sweep(const char *token)
{
	DIR		   *directory = opendir(ar_setting_arming_dir);
	struct dirent *entry;
	char		prefix[64];
	char		kept[MAXPGPATH];
	struct stat info;

	if (directory == NULL)
		return;
	file_prefix(prefix, sizeof(prefix));
	file_path(token, kept, sizeof(kept));
	while ((entry = readdir(directory)) != NULL)
	{
		char		path[MAXPGPATH];

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", ar_setting_arming_dir, entry->d_name);
		if (strcmp(path, kept) != 0 && lstat(path, &info) == 0 &&
			info.st_mtime < ar_wall_unix_seconds() - SWEEP_AFTER_SECONDS && is_of_this_place(entry->d_name, prefix))
			unlink(path);
	}
	closedir(directory);
}
