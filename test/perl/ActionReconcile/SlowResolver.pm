package ActionReconcile::SlowResolver;

=head1 NAME

ActionReconcile::SlowResolver - a name that takes five seconds to resolve

=head1 SYNOPSIS

  my $node = ActionReconcile::Node->create('main',
    env => ActionReconcile::SlowResolver::environment());

The server then runs with a small preloaded library in which names that end in
hang.invalid hang before they are not found.  Nothing else is touched.

=cut

use strict;
use warnings;

use Carp;
use PostgreSQL::Test::Utils ();

my $source = <<'SOURCE';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <time.h>

typedef int (*resolver) (const char *, const char *, const struct addrinfo *, struct addrinfo **);

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	resolver next = (resolver) dlsym(RTLD_NEXT, "getaddrinfo");
	size_t length = node ? strlen(node) : 0;

	if (length >= 12 && strcmp(node + length - 12, "hang.invalid") == 0)
	{
		struct timespec left = {5, 0};

		while (nanosleep(&left, &left) != 0)
			;
		return EAI_NONAME;
	}
	return next(node, service, hints, result);
}
SOURCE

# The environment that makes it so.
sub environment
{
	my $directory = PostgreSQL::Test::Utils::tempdir('resolver');
	my $library = "$directory/slow_resolver.so";

	PostgreSQL::Test::Utils::append_to_file("$directory/slow_resolver.c", $source);
	system('cc', '-shared', '-fPIC', '-o', $library, "$directory/slow_resolver.c", '-ldl') == 0
	  or croak 'the slow resolver cannot be compiled';
	return { LD_PRELOAD => $library };
}

1;
