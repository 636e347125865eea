#!/usr/bin/perl
# Prints the upgrade script that leads from an earlier version to this one:
#
#   perl sql/upgrade/generate.pl VERSION FROM.sql ... INSTALL.sql
#
# FROM.sql are the hand-written parts, from the oldest version on: what happens to tables that exist.  Everything else is
# taken from the joined install script, statement by statement, in a form that may be repeated, so that nothing is written
# twice: functions and views are replaced, triggers and policies are made anew, tables, indexes and enums are made if they are
# missing, comments, grants and the registration for dumps are said again.  What cannot be repeated safely is refused.
use strict;
use warnings;

die "usage: generate.pl VERSION FROM.sql ... INSTALL.sql\n" if @ARGV < 3;
my $version = shift @ARGV;
my $install = pop @ARGV;
my ($dir) = $0 =~ m{^(.*)/} or die "call it by its path\n";
my $only_at_first = qr/^-- Only when the extension is created\b/m;
my $after_functions = qr/^-- AFTER THE FUNCTIONS\b.*\n/m;

sub slurp
{
	my ($path) = @_;
	open my $file, '<', $path or die "$path: $!\n";
	local $/;
	return scalar <$file>;
}

# The statements of a script, each with the comments before it.
sub statements
{
	my ($sql) = @_;
	my @statements;
	my $current = '';
	while ($sql =~ /\G( --[^\n]*\n? | (\$\w*\$).*?\2 | '(?:[^']|'')*' | "[^"]*" | ; | [^-\$'";]+ | . )/gsx)
	{
		my $token = $1;
		if ($token ne ';')
		{
			$current .= $token;
			next;
		}
		push @statements, "$current;";
		$current = '';
	}
	die "generate.pl: the install script does not end with a statement\n" if $current =~ /^[^-\s]/m;
	return @statements;
}

# The same statement where the objects of an earlier version are there already.
sub again
{
	my ($statement) = @_;
	return '' if $statement =~ $only_at_first;
	my ($comments, $body) = $statement =~ /\A((?:\s|--[^\n]*\n)*)(.*)\z/s;
	my $head = substr $body, 0, 70;
	$head =~ s/\s+/ /g;

	return '' if $body =~ /^\\echo/;
	if ($body =~ /^CREATE (?:FUNCTION|PROCEDURE|VIEW) /)
	{
		# Grants of others on them stay, and what others have built on them.
		$body =~ s/^CREATE/CREATE OR REPLACE/;
	}
	elsif ($body =~ /^CREATE (?:TABLE|INDEX|UNIQUE INDEX|SEQUENCE) /)
	{
		$body =~ s/^(CREATE (?:TABLE|UNIQUE INDEX|INDEX|SEQUENCE)) /$1 IF NOT EXISTS /;
	}
	elsif ($body =~ /^CREATE (?:CONSTRAINT )?TRIGGER (\w+) .*? ON (reconcile\.\w+)/s)
	{
		$body = "DROP TRIGGER IF EXISTS $1 ON $2;\n$body";
	}
	elsif ($body =~ /^CREATE POLICY (\w+) ON (reconcile\.\w+)/)
	{
		$body = "DROP POLICY IF EXISTS $1 ON $2;\n$body";
	}
	elsif ($body =~ /^CREATE TYPE (reconcile\.\w+) AS /)
	{
		$body = "DO \$upgrade\$ BEGIN\n\tIF pg_catalog.to_regtype('$1') IS NULL THEN\n\t\t$body\n\tEND IF;\nEND \$upgrade\$;";
	}
	elsif ($body =~ /^CREATE (?:TYPE|OPERATOR|OPERATOR CLASS) /)
	{
		return '';			# a new one belongs into the hand-written part
	}
	elsif ($body =~ /^ALTER TABLE / && $body =~ /\b(?:ADD|DROP|RENAME)\b/
		|| $body =~ /^INSERT / && $body !~ /^INSERT INTO reconcile\.profile_catalog /
		|| $body !~ /^(?:ALTER|COMMENT|GRANT|REVOKE|DO|LOCK|INSERT|SELECT pg_catalog\.pg_extension_config_dump) ?/)
	{
		die "generate.pl: this cannot be repeated in an upgrade: $head\n"
			. "Say it in a form that can, or put \"-- Only when the extension is created.\" before it and, if need be,"
			. " what corresponds into the hand-written part.\n";
	}
	return $comments . $body;
}

my @before = ();
my @after = ();
for my $path (@ARGV)
{
	my @parts = split $after_functions, slurp($path);
	die "$path: \"-- AFTER THE FUNCTIONS\" has to stand there once\n" if @parts != 2;
	push @before, $parts[0];
	push @after, $parts[1];
}
my $generated = join '', map { again($_) } statements(slurp($install));
my $begin = slurp("$dir/begin.sql");
$begin =~ s/\@VERSION\@/$version/g;
print join "\n", $begin, @before, $generated, @after;
