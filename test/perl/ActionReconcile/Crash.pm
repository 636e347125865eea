package ActionReconcile::Crash;

=head1 NAME

ActionReconcile::Crash - ways to end a server, and what must hold afterwards

=head1 SYNOPSIS

  crash($node, 'worker');            # or 'postmaster', 'immediate'
  is(join("\n", story_problems($node, $provider, 'scenario', @ids)), '', 'nothing twice, nothing lost');

  my $relay = ActionReconcile::Crash->relay($provider->port('name', 'https'));
  $relay->port; $relay->wait_connection; $relay->let_through; $relay->wait_reply;

What the extension says of an action (its history) and what the provider says
(its ledger) are compared by story_problems().  It knows no state that an action
should be in: only what may never be, whatever happened.

=cut

use strict;
use warnings;

use Carp;
use Exporter 'import';
use Fcntl qw(:flock);
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use Time::HiRes qw(time usleep);

our @EXPORT_OK = qw(crash elapsed story_problems deliveries_of effects_of wait_true background finish_background);

my $limit_s = 60;

# Calls a function until it is true; returns its last value.
sub wait_true
{
	my ($what, $seconds) = @_;
	my $until = time + ($seconds // $limit_s);
	my $answer;
	until ($answer = $what->())
	{
		last if time > $until;
		usleep(20_000);
	}
	return $answer;
}

# Seconds that a call took, by a clock that nobody sets.
sub elapsed
{
	my ($what) = @_;
	my $start = Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC());
	$what->();
	return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) - $start;
}

# Ends the server or its worker without a goodbye and waits until it serves
# again, with a worker that was not there before.
sub crash
{
	my ($node, $how) = @_;
	my $worker = $node->worker_pid;

	croak 'there is no worker' if $worker eq '';
	if ($how eq 'worker')
	{
		$node->kill9($worker);
	}
	elsif ($how eq 'postmaster')
	{
		# A worker that stands at a fault point inside libcurl has its signals
		# blocked and would not notice.
		$node->kill9;
		kill 'KILL', $worker;
		$node->start_after_kill9;
	}
	elsif ($how eq 'immediate')
	{
		$node->stop('immediate');
		$node->start;
	}
	else
	{
		croak "no way to crash is called \"$how\"";
	}
	croak 'no worker after the crash' if $node->wait_worker($worker) eq '0';
	return;
}

# Writes in the ledger whose whole head was read, by reference.
sub deliveries_of
{
	my ($ledger) = @_;
	my %count;
	foreach my $request (@{ $ledger->{requests} })
	{
		next unless $request->{kind} eq 'write' && $request->{head_complete};
		# Whose it was cannot be said of one that was cut before its reference.
		$count{ $request->{ref} // '?' }++ if defined $request->{ref} || $request->{complete};
	}
	return \%count;
}

sub effects_of
{
	my ($ledger) = @_;
	my %count;
	$count{ $_->{ref} // '?' }++ foreach @{ $ledger->{effects} };
	return \%count;
}

# The history of one action: every attempt ended once, and none was followed by
# another unless it was proven that it did not happen.
sub _history_problems
{
	my ($history) = @_;
	my ($claims, $proofs, $open, @problems) = (0, 0, 0);
	my %proves = map { $_ => 1 } qw(not_sent not_executed absent);
	my %ends = map { $_ => 1 } qw(not_sent not_executed answered_accepted answered_async
	  answered_unreadable answered_rejected answer_lost key_mismatch recover);

	foreach my $h (@$history)
	{
		my $event = $h->{event};
		if ($event eq 'claim')
		{
			$claims++;
			push @problems, "claim $claims after $proofs proofs" if $claims > $proofs + 1;
			push @problems, 'claimed while an attempt is open' if $open;
			$open = 1;
		}
		elsif ($event eq 'resend')
		{
			push @problems, 'sent again while an attempt is open' if $open;
			push @problems, 'sent again without a key' unless defined $h->{evidence}{dispatch}{idempotency_key};
			$open = 1;
		}
		elsif (($h->{from_state} // '') eq 'submitted')
		{
			push @problems, "an attempt ended by \"$event\"" unless $ends{$event};
			push @problems, "recovered to $h->{to_state}"
			  if $event eq 'recover' && $h->{to_state} ne 'outcome_unknown';
			$open = 0;
		}
		$proofs++ if $proves{$event} && $h->{to_state} =~ /^(?:planned|safe_to_retry)$/;
		if ($event eq 'absent' || $event eq 'absent_once')
		{
			my $lookup = $h->{evidence}{lookup};
			push @problems, 'a negative from inside the window'
			  if !defined $lookup->{gate_us} || $lookup->{asked_us} < $lookup->{gate_us};
		}
	}
	push @problems, 'an attempt is still open' if $open;
	return @problems;
}

# What must not be, for these actions, all of one scenario: a list of sentences.
# "mute" are refs that reach the provider in a form it cannot read.
sub story_problems
{
	my ($node, $provider, $scenario, @ids) = @_;
	my $ledger = $provider->ledger($scenario);
	my ($deliveries, $effects) = (deliveries_of($ledger), effects_of($ledger));
	my @problems;

	foreach my $id (@ids)
	{
		my $status = $node->status($id);
		unless (defined $status)
		{
			push @problems, "action $id is lost";
			next;
		}
		my $ref = $status->{client_reference};
		my $made = delete $effects->{$ref} // 0;
		my $delivered = delete $deliveries->{$ref} // 0;
		my $history = $node->history($id);
		my $absences = grep { $_->{event} eq 'absent' } @$history;
		my $resends = grep { $_->{event} eq 'resend' } @$history;
		my @wrong = _history_problems($history);

		push @wrong, "$made effects" if $made > 1;
		push @wrong, "$delivered deliveries, $absences proofs of absence, $resends resends"
		  if $delivered > 1 + $absences + $resends;
		push @wrong, "$made effects, and it is $status->{state}"
		  if $status->{status} eq 'CONFIRMED' ? $made != 1 : $status->{status} eq 'FAILED' && $made != 0;
		push @problems, map { "$ref: $_ [" . join(' ', map { $_->{event} } @$history) . ']' } @wrong;
	}
	push @problems, map { "reference $_ is nobody's" } sort keys %{ { %$effects, %$deliveries } };
	return @problems;
}

# ---------------------------------------------------------------- in the background

# Statements in a session of its own; finish_background() returns its output and
# its error output.
sub background
{
	my ($node, @statements) = @_;
	my %run = (out => '', err => '');

	$run{handle} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose',
			'-d', $node->connstr('postgres'), map { ('-c', $_) } @statements ],
		'<', \undef, '>', \$run{out}, '2>', \$run{err});
	return \%run;
}

sub finish_background
{
	my ($run) = @_;
	IPC::Run::finish($run->{handle});
	chomp $run->{out};
	return ($run->{out}, $run->{err});
}

# ---------------------------------------------------------------- a relay

# Listens on a loopback port and passes each connection on to another port, but
# not a byte before let_through(): a handshake that takes as long as we want.
sub relay
{
	my ($class, $target) = @_;
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 64, ReuseAddr => 1)
	  or croak "no port: $@";
	pipe(my $go_out, my $go_in) or croak "no pipe: $!";
	pipe(my $news_out, my $news_in) or croak "no pipe: $!";

	my $pid = fork // croak "no process: $!";
	if ($pid == 0)
	{
		close $go_in;
		close $news_out;
		eval { _relay_all($listener, $target, $go_out, $news_in); };
		require POSIX;
		POSIX::_exit(0);
	}
	close $go_out;
	close $news_in;
	my $port = $listener->sockport;
	close $listener;
	return bless { pid => $pid, owner => $$, port => $port, go => $go_in, news => $news_out }, $class;
}

sub _relay_all
{
	my ($listener, $target, $go, $news) = @_;
	my $select = IO::Select->new($listener, $go);
	my $open = 0;
	my (@waiting, %other);

	while (1)
	{
		foreach my $ready ($select->can_read)
		{
			if ($ready == $listener)
			{
				push @waiting, scalar $listener->accept;
				syswrite $news, 'c';
			}
			elsif ($ready == $go)
			{
				sysread($go, my $word, 1) or return;
				$open = 1;
			}
			elsif (!sysread($ready, my $bytes, 65536))
			{
				my $peer = delete $other{$ready};
				delete $other{$peer} if defined $peer;
				$select->remove($ready, $peer // ());
				close $_ foreach grep { defined } $ready, $peer;
			}
			else
			{
				syswrite $other{$ready}, $bytes if defined $other{$ready};
				syswrite $news, 'r' if $ready->peerport == $target;
			}
		}
		next unless $open;
		while (my $client = shift @waiting)
		{
			my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $target) or next;
			$other{$client} = $server;
			$other{$server} = $client;
			$select->add($client, $server);
		}
	}
}

sub port { return $_[0]->{port}; }

sub _wait_news
{
	my ($self, $wanted) = @_;
	my $word = '';
	until ($word eq $wanted)
	{
		IO::Select->new($self->{news})->can_read($limit_s) or croak 'nothing happened on the relay';
		sysread $self->{news}, $word, 1 or croak 'the relay is gone';
	}
	return;
}

# Waits until one more connection has come; until bytes of an answer have passed.
sub wait_connection { return $_[0]->_wait_news('c'); }
sub wait_reply { return $_[0]->_wait_news('r'); }

# From now on everything passes, also what has waited.
sub let_through
{
	my ($self) = @_;
	syswrite $self->{go}, 'g';
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $@, $!);
	return if !defined $self->{pid} || $self->{owner} != $$;
	close $self->{go};
	waitpid delete $self->{pid}, 0;
	return;
}

1;
