package ActionReconcile::Radicale;

=head1 NAME

ActionReconcile::Radicale - a real CalDAV server for a TAP test

=head1 SYNOPSIS

  my $r = ActionReconcile::Radicale->new;
  $r->calendar('alice', 'team');
  $p->scenario('cal', { upstream => $r->url, ref_suffix => '.ics', write => [ { then => 'close' } ] });
  ...
  is($r->count('alice', 'team'), 1, 'one event is stored');
  is_deeply([ $r->answers('PUT') ], [ 201, 412 ], 'what it said to the PUTs');
  $r->stop;

Radicale on a loopback port, as the test's own user, without authentication,
everybody may do everything; its storage is a temporary directory, and the files
in it are the ledger.

=cut

use strict;
use warnings;

use parent 'ActionReconcile::Service';

use Carp;
use PostgreSQL::Test::Utils ();

# Radicale is a module of the system's Python; it ends with our pipe.
my $python = '/usr/bin/python3';
my $script = <<'PYTHON';
import os, runpy, sys, threading

def until_stdin_closes():
    while os.read(0, 4096):
        pass
    os._exit(0)

threading.Thread(target=until_stdin_closes, daemon=True).start()
sys.argv = ["radicale", "--config", sys.argv[1]]
runpy.run_module("radicale", run_name="__main__", alter_sys=True)
PYTHON

sub new
{
	my ($class, %options) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('radicale');

	_write("$directory/rights", <<'RIGHTS');
[everybody]
user: .*
collection: .*
permissions: RrWw
RIGHTS
	# Another process may take the port between our look and its use.
	foreach my $try (1 .. 5)
	{
		my $port = ActionReconcile::Service::free_port();
		_write("$directory/config", <<"CONFIG");
[server]
hosts = 127.0.0.1:$port
[auth]
type = none
[rights]
type = from_file
file = $directory/rights
[storage]
filesystem_folder = $directory/storage
[logging]
level = info
CONFIG
		my $self = $class->start_service('radicale', $directory, $python, '-c', $script, "$directory/config");
		$self->{storage} = "$directory/storage/collection-root";
		return $self if $self->wait_for_port($port);
		croak "radicale does not start:\n" . $self->log_text if $try == 5;
	}
	return;
}

sub _write
{
	my ($path, $text) = @_;
	open my $file, '>', $path or croak "$path: $!";
	print {$file} $text;
	close $file or croak "$path: $!";
	return;
}

# Makes the calendar /OWNER/NAME/.
sub calendar
{
	my ($self, $owner, $name) = @_;
	foreach ([ MKCOL => "/$owner/" ], [ MKCALENDAR => "/$owner/$name/" ])
	{
		my $answer = $self->request(@$_);
		croak "$_->[0] $_->[1]: $answer->{status} $answer->{content}" if $answer->{status} !~ /^(201|405|409)$/;
	}
	croak "there is no calendar /$owner/$name/" unless -d "$self->{storage}/$owner/$name";
	return;
}

# Puts an event there past everything, as somebody else would.
sub put
{
	my ($self, $owner, $name, $uid, $summary) = @_;
	my $answer = $self->request(PUT => "/$owner/$name/$uid.ics", { 'Content-Type' => 'text/calendar' },
		event($uid, $summary));
	croak "PUT $uid: $answer->{status}" unless $answer->{success};
	return;
}

sub event
{
	my ($uid, $summary) = @_;
	return join '', map { "$_\r\n" } 'BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//EN', 'BEGIN:VEVENT', "UID:$uid",
	  'DTSTAMP:20300101T000000Z', 'DTSTART:20300107T090000Z', 'DTEND:20300107T100000Z',
	  'SUMMARY:' . ($summary // 'theirs'), 'END:VEVENT', 'END:VCALENDAR';
}

# The names of the events that are stored, without .ics, in order.
sub events
{
	my ($self, $owner, $name) = @_;
	my @found = sort map { m{([^/]+)\.ics$} ? $1 : () } glob "$self->{storage}/$owner/$name/*.ics";
	return @found;
}

sub count { return scalar(my @found = events(@_)); }

# The statuses it answered to requests with a method, in order; of all paths,
# or of those that hold a text.
sub answers
{
	my ($self, $method, $text) = @_;
	my @statuses;
	foreach (split /\n/, $self->log_text)
	{
		next unless /\Q$method\E response status for '([^']*)'.*: (\d{3}) /;
		push @statuses, $2 if index($1, $text // '') >= 0;
	}
	return @statuses;
}

1;
