package ActionReconcile::NameServer;

=head1 NAME

ActionReconcile::NameServer - names that resolve as a test says, from one moment to the next

=head1 SYNOPSIS

  my $names = ActionReconcile::NameServer->new;
  my $node = ActionReconcile::Node->create('main', env => $names->environment);
  $names->set('shop.test' => '192.0.2.1', '::1');

The server then runs with a small preloaded library that looks names which end
in .test up in a file, anew for each resolution, as a name server without
caching would answer.  Nothing else is touched.  libcurl remembers an answer for
a minute, for as long as the engine lives.

=cut

use strict;
use warnings;

use Carp;
use PostgreSQL::Test::Utils ();

my $source = <<'SOURCE';
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*resolver) (const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int
look_up(resolver next, const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	FILE	   *file = fopen(getenv("AR_TEST_NAMES"), "r");
	struct addrinfo numeric = {0};
	struct addrinfo **end = result;
	char		name[256];
	char		address[256];

	*result = NULL;
	if (hints != NULL)
		numeric = *hints;
	numeric.ai_family = AF_UNSPEC;
	numeric.ai_flags = AI_NUMERICHOST;
	node = strndup(node, strlen(node) - (node[strlen(node) - 1] == '.'));
	while (file != NULL && fscanf(file, "%255s %255s", name, address) == 2)
	{
		if (strcasecmp(name, node) == 0 && next(address, service, &numeric, end) == 0)
		{
			while (*end != NULL)
				end = &(*end)->ai_next;
		}
	}
	if (file != NULL)
		fclose(file);
	free((char *) node);
	return *result == NULL ? EAI_NONAME : 0;
}

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	resolver	next = (resolver) dlsym(RTLD_NEXT, "getaddrinfo");
	size_t		length = node ? strlen(node) : 0;

	if (length > 5 && node[length - 1] == '.')
		length--;
	if (length > 5 && strncasecmp(node + length - 5, ".test", 5) == 0 && getenv("AR_TEST_NAMES") != NULL)
		return look_up(next, node, service, hints, result);
	return next(node, service, hints, result);
}
SOURCE

sub new
{
	my ($class) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('names');
	my $self = bless { directory => $directory, names => {} }, $class;

	PostgreSQL::Test::Utils::append_to_file("$directory/names.c", $source);
	system('cc', '-shared', '-fPIC', '-o', "$directory/names.so", "$directory/names.c", '-ldl') == 0
	  or croak 'the name server cannot be compiled';
	$self->set;
	return $self;
}

# What a server has to have in its environment.
sub environment
{
	my ($self) = @_;
	return { LD_PRELOAD => "$self->{directory}/names.so", AR_TEST_NAMES => "$self->{directory}/names" };
}

# From now on the name has these addresses.
sub set
{
	my ($self, $name, @addresses) = @_;
	$self->{names}{$name} = \@addresses if defined $name;
	open my $file, '>', "$self->{directory}/new" or croak "names: $!";
	foreach my $known (sort keys %{ $self->{names} })
	{
		print {$file} "$known $_\n" foreach @{ $self->{names}{$known} };
	}
	close $file;
	rename "$self->{directory}/new", "$self->{directory}/names" or croak "names: $!";
	return;
}

1;
