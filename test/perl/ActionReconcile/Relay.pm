package ActionReconcile::Relay;

=head1 NAME

ActionReconcile::Relay - hold a connection between accept and TLS handshake

=head1 SYNOPSIS

  my $relay = ActionReconcile::Relay->new($upstream_port);
  my $connection = $relay->accept;     # the client's ClientHello waits
  ...
  $relay->pass($connection);           # bytes both ways until one side ends

In the test's own process and without threads: nothing passes but in pass().

=cut

use strict;
use warnings;

use Carp;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

sub new
{
	my ($class, $upstream_port) = @_;
	my $first = int(rand(10_000));
	foreach my $i (0 .. 9_999)
	{
		my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 20_000 + ($first + $i) % 10_000,
			Listen => 64, Proto => 'tcp') or next;
		return bless { socket => $socket, upstream_port => $upstream_port }, $class;
	}
	croak 'no free port for a relay';
}

sub port { return $_[0]->{socket}->sockport; }

# The next client; nothing is read from it.
sub accept
{
	my ($self, $seconds) = @_;
	croak 'nobody connects to the relay' unless IO::Select->new($self->{socket})->can_read($seconds // 30);
	return $self->{socket}->accept // croak "accept: $!";
}

# Connects the client through, until either side ends.
sub pass
{
	my ($self, $client, $seconds) = @_;
	my $until = time + ($seconds // 30);
	my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{upstream_port}, Proto => 'tcp')
	  // croak "relay: $!";
	my $both = IO::Select->new($client, $server);

	local $SIG{PIPE} = 'IGNORE';
	while (time < $until)
	{
		foreach my $from ($both->can_read(1))
		{
			my $to = $from == $client ? $server : $client;
			my $count = sysread($from, my $bytes, 65_536);
			if (!$count)
			{
				close $_ foreach $client, $server;
				return;
			}
			syswrite($to, $bytes);
		}
	}
	croak 'a relayed connection does not end';
}

1;
