package ActionReconcile::Service;

=head1 NAME

ActionReconcile::Service - a real server that lives as long as a TAP test

=head1 SYNOPSIS

  package My::Server;
  use parent 'ActionReconcile::Service';
  my $self = $class->start_service('name', $directory, @command);
  $self->wait_for_port($port);
  my $answer = $self->request(GET => '/path', { Header => 'value' }, $content);
  $self->stop;

The command must end when its standard input closes, so that not even a test
that is killed leaves it running.  Its output is in $directory/name.log.

=cut

use strict;
use warnings;

use Carp;
use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use HTTP::Tiny;
use IO::Select;
use IO::Socket::INET;
use POSIX qw(WNOHANG);
use Time::HiRes qw(time usleep);

sub start_service
{
	my ($class, $name, $directory, @command) = @_;
	my $log = "$directory/$name.log";

	pipe(my $theirs, my $ours) or croak "pipe: $!";
	pipe(my $reader, my $writer) or croak "pipe: $!";
	my $pid = fork // croak "fork: $!";
	if ($pid == 0)
	{
		open STDIN, '<&', $theirs or POSIX::_exit(127);
		open STDOUT, '>&', $writer or POSIX::_exit(127);
		open STDERR, '>>', $log or POSIX::_exit(127);
		close $ours;
		{ no warnings 'exec'; exec { $command[0] } @command; }
		print {*STDERR} "cannot start $command[0]: $!\n";
		POSIX::_exit(127);
	}
	# A server started later must not hold our end open after our exit.
	fcntl($_, F_SETFD, fcntl($_, F_GETFD, 0) | FD_CLOEXEC) for $ours, $reader;
	close $_ foreach $theirs, $writer;
	return bless {
		name => $name,
		pid => $pid,
		owner => $$,
		in => $ours,
		out => $reader,
		log => $log,
		http => HTTP::Tiny->new(timeout => 30, keep_alive => 0, max_redirect => 0, proxy => undef,
			http_proxy => undef, https_proxy => undef)
	}, $class;
}

# The first line that the service prints; dies with its log if there is none.
sub first_line
{
	my ($self, $seconds) = @_;
	my $line = IO::Select->new($self->{out})->can_read($seconds // 60) ? readline($self->{out}) : undef;
	return $line // croak "$self->{name} did not start:\n" . $self->log_text;
}

# Whether the service has come to accept connections; false if it ended first.
sub wait_for_port
{
	my ($self, $port, $seconds) = @_;
	my $until = time + ($seconds // 60);
	while (time < $until)
	{
		if (waitpid($self->{pid}, WNOHANG) == $self->{pid})
		{
			delete $self->{pid};
			return 0;
		}
		if (IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp'))
		{
			$self->{port} = $port;
			return 1;
		}
		usleep(50_000);
	}
	croak "$self->{name} does not listen:\n" . $self->log_text;
}

sub log_text
{
	my ($self) = @_;
	open my $file, '<', $self->{log} or return '';
	local $/ = undef;
	return readline($file) // '';
}

sub port { return $_[0]->{port}; }
sub url { return "http://127.0.0.1:$_[0]->{port}"; }

# One request to it, past everything that may stand between; HTTP::Tiny's answer.
sub request
{
	my ($self, $method, $path, $headers, $content) = @_;
	my %options = (headers => $headers // {});
	$options{content} = $content if defined $content;
	my $answer = $self->{http}->request($method, $self->url . $path, \%options);
	croak "$self->{name}: $method $path: $answer->{content}" if $answer->{status} == 599;
	return $answer;
}

# One request on a connection of its own, never repeated (HTTP::Tiny repeats a
# PUT whose answer is lost): (status, the rest), or nothing if no answer came.
sub once
{
	my ($method, $url, $headers, $content) = @_;
	my ($host, $path) = $url =~ m{^http://([^/]+)(/.*)$} or croak "no URL: $url";
	my $socket = IO::Socket::INET->new(PeerAddr => $host, Proto => 'tcp', Timeout => 10) // croak "$host: $!";
	my %all = (Host => $host, Connection => 'close', 'Content-Length' => length($content // ''), %{ $headers // {} });
	my $head = join '', "$method $path HTTP/1.1\r\n", map { "$_: $all{$_}\r\n" } sort keys %all;

	local $SIG{PIPE} = 'IGNORE';
	print {$socket} "$head\r\n" . ($content // '');
	my $answer = '';
	1 while IO::Select->new($socket)->can_read(30) && sysread($socket, $answer, 65_536, length $answer);
	return unless $answer =~ m{^HTTP/1\.\d (\d{3})[^\n]*\n(.*)$}s;
	return ($1, $2);
}

# A port of nobody's, below those that outgoing connections take.
sub free_port
{
	foreach (1 .. 200)
	{
		my $port = 20_000 + int(rand(12_000));
		return $port if IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp', Listen => 1);
	}
	croak 'no free port';
}

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;
	return if $self->{owner} != $$;
	close $self->{in};
	kill 'TERM', $pid;
	my $until = time + 10;
	while (waitpid($pid, WNOHANG) == 0)
	{
		kill 'KILL', $pid if time > $until;
		usleep(20_000);
	}
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $@, $!);
	$self->stop;
	return;
}

1;
