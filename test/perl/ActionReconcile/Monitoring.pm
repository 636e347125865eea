package ActionReconcile::Monitoring;

=head1 NAME

ActionReconcile::Monitoring - Debian's SQL exporter and Prometheus over what monitoring/ ships

=head1 SYNOPSIS

  my $watch = ActionReconcile::Monitoring->new($node, 'watcher');
  $watch->wait_alerts('ActionReconcileDisarmed');      # exactly this one fires
  $watch->wait_value('action_reconcile_armed', 0, 'it is not armed');
  $watch->stop;

The configuration is the shipped one; only addresses are others, once a second
is often enough to look, and alerts do not wait before they fire.  The programs
are the installed ones; otherwise the packages are fetched by apt and unpacked,
not installed, into AR_CACHE, or ~/.cache/action_reconcile.

=cut

use strict;
use warnings;

use parent 'ActionReconcile::Service';

use Carp;
use Fcntl qw(LOCK_EX);
use File::Path qw(make_path remove_tree);
use IPC::Run ();
use JSON::PP;
use PostgreSQL::Test::Utils ();
use Test::More;
use Time::HiRes qw(time usleep);

my $source = $ENV{AR_SOURCE_DIR} // '.';
my %package_of = ('prometheus-sql-exporter' => 'prometheus-sql-exporter', prometheus => 'prometheus', promtool => 'prometheus');

sub new
{
	my ($class, $node, $role) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('monitoring');
	my $exporter_port = ActionReconcile::Service::free_port();
	my $port = ActionReconcile::Service::free_port();

	my $place = sprintf 'host=%s&port=%s', $node->host, $node->port;
	_configure('sql_exporter.yml', $directory,
		[ qr{'postgres://watcher\@localhost/postgres\?} => "'postgres://$role\@/postgres?$place&" ], [ qr/interval: 30s/ => 'interval: 1s' ]);
	_configure('prometheus.yml', $directory,
		[ qr/localhost:9237/ => "127.0.0.1:$exporter_port" ], [ qr/scrape_interval: 30s/ => 'scrape_interval: 1s' ]);
	PostgreSQL::Test::Utils::append_to_file("$directory/prometheus.yml", "global:\n  evaluation_interval: 1s\n");
	_configure('action_reconcile.rules.yml', $directory, [ qr/^    for: .*\n/m => '' ]);

	my $exporter = $class->start_service('sql_exporter', $directory, _until_stdin_closes(program('prometheus-sql-exporter'),
		'-config.file', "$directory/sql_exporter.yml", '-web.listen-address', "127.0.0.1:$exporter_port"));
	$exporter->wait_for_port($exporter_port) or croak "the exporter ended:\n" . $exporter->log_text;
	my $self = $class->start_service('prometheus', $directory, _until_stdin_closes(program('prometheus'),
		"--config.file=$directory/prometheus.yml", "--storage.tsdb.path=$directory/tsdb", "--web.listen-address=127.0.0.1:$port"));
	$self->{exporter} = $exporter;
	$self->wait_for_port($port) or croak "Prometheus ended:\n" . $self->log_text;
	# It listens before it can answer.
	my $until = time + 60;
	usleep(50_000) while $self->request(GET => '/-/ready')->{status} != 200 && time < $until;
	return $self;
}

# A shipped file, with what must be otherwise here; each of it must be there.
sub _configure
{
	my ($name, $directory, @changes) = @_;
	my $text = PostgreSQL::Test::Utils::slurp_file("$source/monitoring/$name");
	foreach my $change (@changes)
	{
		my ($what, $by) = @$change;
		$text =~ s/$what/$by/g or croak "monitoring/$name has no $what";
	}
	PostgreSQL::Test::Utils::append_to_file("$directory/$name", $text);
	return;
}

# These programs do not look at their standard input.
sub _until_stdin_closes
{
	my (@command) = @_;
	return ('/bin/sh', '-c', '"$@" >&2 & child=$!; trap : TERM; cat >/dev/null; kill $child; wait $child', 'sh', @command);
}

# Where a program is; see above.
sub program
{
	my ($name) = @_;
	foreach my $folder (split /:/, $ENV{PATH} // '')
	{
		return "$folder/$name" if $folder ne '' && -x "$folder/$name";
	}
	my $cache = $ENV{AR_CACHE} // ((getpwuid $<)[7] . '/.cache/action_reconcile');
	my $folder = "$cache/$package_of{$name}";
	make_path($cache, { mode => 0700 });
	open my $lock, '>>', "$cache/lock" or croak "$cache/lock: $!";
	flock $lock, LOCK_EX or croak "$cache/lock: $!";
	_unpack($package_of{$name}, $folder) unless -x "$folder/usr/bin/$name";
	return "$folder/usr/bin/$name";
}

sub _unpack
{
	my ($package, $folder) = @_;
	my $output = '';
	remove_tree($folder);
	make_path("$folder.deb", $folder);
	my $good = IPC::Run::run([ 'apt-get', 'download', '-q', $package ], '<', \undef, '>', \$output, '2>&1',
		init => sub { chdir "$folder.deb" or die "$folder.deb: $!" }, IPC::Run::timeout(300));
	my ($file) = glob "$folder.deb/*.deb";
	$good &&= defined $file && IPC::Run::run([ 'dpkg-deb', '-x', $file, $folder ], '<', \undef, '>', \$output, '2>&1');
	remove_tree("$folder.deb");
	croak "package $package could not be fetched, run ci/setup:\n$output" unless $good;
	return;
}

# What Prometheus answers to a query, as (labels => value) for each series.
sub query
{
	my ($self, $expression) = @_;
	$expression =~ s/([^A-Za-z0-9_])/sprintf '%%%02X', ord $1/ge;
	my $answer = decode_json($self->request(GET => "/api/v1/query?query=$expression")->{content});
	croak "Prometheus: $answer->{error}" unless $answer->{status} eq 'success';
	return map { [ $_->{metric}, $_->{value}[1] ] } @{ $answer->{data}{result} };
}

# The value of one series; undef if there is none.
sub value
{
	my ($self, $expression) = @_;
	my @found = $self->query($expression);
	croak "$expression is " . @found . ' series' if @found > 1;
	return @found ? $found[0][1] : undef;
}

# What explains a failure: the end of what both say.
sub _tell
{
	my ($self) = @_;
	foreach my $service ($self->{exporter}, $self)
	{
		diag("$service->{name}: " . substr $service->log_text, -1500);
	}
	return 0;
}

# Waits until a series has that value; tells what it has if the time is over.
sub wait_value
{
	my ($self, $expression, $expected, $title, $seconds) = @_;
	my $until = time + ($seconds // 60);
	my $value;
	while (time < $until)
	{
		$value = $self->value($expression);
		last if defined $value && $value == $expected;
		usleep(200_000);
	}
	return is($value, $expected, $title) || $self->_tell;
}

# The names of the alerts that fire, in order, each once.
sub alerts
{
	my ($self) = @_;
	my %firing = map { $_->{labels}{alertname} => 1 }
	  grep { $_->{state} eq 'firing' } @{ decode_json($self->request(GET => '/api/v1/alerts')->{content})->{data}{alerts} };
	return join ' ', sort keys %firing;
}

# Waits until exactly these fire, for about a second; tells what does if the time is over.
sub wait_alerts
{
	my ($self, $expected, $title, $seconds) = @_;
	my $until = time + ($seconds // 60);
	my $times = 0;
	my $alerts;
	while (time < $until && $times < 3)
	{
		$alerts = $self->alerts;
		$times = $alerts eq $expected ? $times + 1 : 0;
		usleep(300_000);
	}
	return is($alerts, $expected, $title) || $self->_tell;
}

sub stop
{
	my ($self) = @_;
	my $exporter = delete $self->{exporter};
	$exporter->stop if $exporter;
	return $self->SUPER::stop;
}

1;
