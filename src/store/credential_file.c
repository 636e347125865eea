/*
 * credential_file.c
 *		The credential of a provider, read from its file when it is needed.
 *
 * Read each time, so that a new one counts at once, and never kept: nothing
 * but the request that is being made holds it.
 */
#include "postgres.h"

#include "store/credential_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "miscadmin.h"

#include "settings.h"

/* A plain name: no way out of the directory. */
static bool
is_plain_name(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

/* Ours alone, and what it seems to be: not a link, not another user's. */
static bool
is_closed(const struct stat *info, mode_t kind)
{
	return (info->st_mode & S_IFMT) == kind && info->st_uid == geteuid() && (info->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* What lies there is in every base backup, and is read by pg_read_file(). */
static bool
is_in_data_directory(int directory)
{
	char		link[64];
	char		path[PATH_MAX];
	char		data[PATH_MAX];
	ssize_t		length;
	size_t		data_length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0 || realpath(DataDir, data) == NULL)
		return false;
	path[length] = '\0';
	data_length = strlen(data);
	return strncmp(path, data, data_length) == 0 && (path[data_length] == '/' || path[data_length] == '\0');
}

/* The first line, which has to be there whole and printable. */
static bool
read_line(int descriptor, char *credential, size_t size)
{
	size_t		length = 0;
	size_t		end = 0;
	ssize_t		got;

	do
	{
		got = read(descriptor, credential + length, size - length);
		if (got > 0)
			length += (size_t) got;
	} while (length < size && (got > 0 || (got < 0 && errno == EINTR)));
	if (length >= size || got < 0)
		return false;
	for (; end < length && credential[end] != '\r' && credential[end] != '\n'; end++)
	{
		unsigned char c = (unsigned char) credential[end];

		if (c < 0x20 || c == 0x7f)
			return false;
	}
	explicit_bzero(credential + end, size - end);
	return end > 0;
}

static const char *
read_file(int directory, const char *name, char *credential, size_t size)
{
	int			file;
	struct stat info;
	const char *problem = NULL;

	if (fstat(directory, &info) != 0 || !is_closed(&info, S_IFDIR))
		return "its directory must belong to the server's user, with mode 0700";
	if (is_in_data_directory(directory))
		return "its directory lies inside the data directory, whose backups would hold it";
	/* Whoever reads from a pipe waits: not here. */
	file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		return "its file cannot be opened";
	if (fstat(file, &info) != 0 || !is_closed(&info, S_IFREG))
		problem = "its file must be a regular one of the server's user, with mode 0600";
	/* Under its other name it may lie open, or be written to. One that has just been replaced has none. */
	else if (info.st_nlink > 1)
		problem = "its file has another name elsewhere: a hard link";
	else if (!read_line(file, credential, size))
		problem = "its file must begin with one line of printable text";
	close(file);
	return problem;
}

bool
ar_credential_read(const char *name, char *credential, size_t size, char *problem, size_t problem_size)
{
	const char *why = NULL;
	int			directory = -1;

	credential[0] = '\0';
	if (name == NULL)
		why = "the provider names none";
	else if (!is_plain_name(name))
		why = "its name is not that of a file";
	else if (ar_setting_credential_dir == NULL || !is_absolute_path(ar_setting_credential_dir))
		why = "action_reconcile.credential_dir is not set to an absolute path";
	else if ((directory = open(ar_setting_credential_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		why = "action_reconcile.credential_dir cannot be opened";
	else
		why = read_file(directory, name, credential, size);
	if (directory >= 0)
		close(directory);
	if (why != NULL)
	{
		explicit_bzero(credential, size);
		snprintf(problem, problem_size, "credential \"%s\": %s", name ? name : "", why);
	}
	return why == NULL;
}
