package ActionReconcile::FullDisk;

=head1 NAME

ActionReconcile::FullDisk - a server whose disk can be full

=head1 SYNOPSIS

  my $disk = ActionReconcile::FullDisk->new;
  my $node = ActionReconcile::Node->create('main', env => $disk->environment);
  $disk->fill('base');       # no file of tables and indexes grows any more
  $disk->fill('pg_wal');     # no further WAL file can be made
  $disk->free;

The server runs with a small preloaded library in which a write that would make
a file larger fails with "No space left on device" as long as the disk is full;
what overwrites a part of a file still works, as it does on a real one.  (A
small file system would need the rights to mount one.)

=cut

use strict;
use warnings;

use Carp;
use PostgreSQL::Test::Utils ();

my $source = <<'SOURCE';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Would these bytes make a file of a full directory larger? */
static int
is_full(int fd, off_t end)
{
	char		flag[512];
	char		link[64];
	char		path[4096];
	char		what[64] = "";
	struct stat status;
	ssize_t		length;
	int			saved = errno;
	int			handle;

	snprintf(flag, sizeof(flag), "%s", getenv("FULL_DISK_FLAG"));
	handle = open(flag, O_RDONLY);
	if (handle < 0)
	{
		errno = saved;
		return 0;
	}
	length = read(handle, what, sizeof(what) - 1);
	close(handle);
	errno = saved;
	if (length <= 0)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	if (strstr(path, what) == NULL || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return 0;
	return end > status.st_size;
}

#define REFUSE_IF(full) do { if (full) { errno = ENOSPC; return -1; } } while (0)

ssize_t
pwrite(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t		(*next) (int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");

	REFUSE_IF(is_full(fd, offset + size));
	return next(fd, data, size, offset);
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t		(*next) (int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");

	REFUSE_IF(is_full(fd, offset + size));
	return next(fd, data, size, offset);
}

static off_t
sum(const struct iovec *parts, int count)
{
	off_t		total = 0;

	for (int i = 0; i < count; i++)
		total += parts[i].iov_len;
	return total;
}

ssize_t
pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	ssize_t		(*next) (int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev");

	REFUSE_IF(is_full(fd, offset + sum(parts, count)));
	return next(fd, parts, count, offset);
}

ssize_t
pwritev64(int fd, const struct iovec *parts, int count, off_t offset)
{
	ssize_t		(*next) (int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev64");

	REFUSE_IF(is_full(fd, offset + sum(parts, count)));
	return next(fd, parts, count, offset);
}

int
posix_fallocate(int fd, off_t offset, off_t length)
{
	int			(*next) (int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate");

	return is_full(fd, offset + length) ? ENOSPC : next(fd, offset, length);
}

int
posix_fallocate64(int fd, off_t offset, off_t length)
{
	int			(*next) (int, off_t, off_t) = dlsym(RTLD_NEXT, "posix_fallocate64");

	return is_full(fd, offset + length) ? ENOSPC : next(fd, offset, length);
}
SOURCE

sub new
{
	my ($class) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('full_disk');
	my $library = "$directory/full_disk.so";

	PostgreSQL::Test::Utils::append_to_file("$directory/full_disk.c", $source);
	system('cc', '-shared', '-fPIC', '-o', $library, "$directory/full_disk.c", '-ldl') == 0
	  or croak 'the full disk cannot be compiled';
	return bless { library => $library, flag => "$directory/full" }, $class;
}

sub environment { return { LD_PRELOAD => $_[0]->{library}, FULL_DISK_FLAG => $_[0]->{flag} }; }

# No file grows whose path contains the directory's name.
sub fill
{
	my ($self, $directory) = @_;
	open my $handle, '>', "$self->{flag}.new" or croak "$self->{flag}: $!";
	print $handle "/$directory/";
	close $handle or croak "$self->{flag}: $!";
	rename "$self->{flag}.new", $self->{flag} or croak "$self->{flag}: $!";
	return;
}

sub free
{
	my ($self) = @_;
	unlink $self->{flag};
	return;
}

1;
