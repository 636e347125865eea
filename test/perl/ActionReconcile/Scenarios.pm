package ActionReconcile::Scenarios;

=head1 NAME

ActionReconcile::Scenarios - many hostile scenarios at once, on one server

=head1 SYNOPSIS

  my $s = ActionReconcile::Scenarios->new($node, $provider);
  $s->run(
    { name => '10-close', proves => 'unknown', state => 'succeeded',
      deliveries => 1, effects => 1 },
    ...);

Every row becomes a scenario at the provider, and a provider and an operation
of its own in the database.  All are submitted together, then each is waited
for, then each is held against what the row expects.

A row
    name         unique; also the preset, unless there is one of these:
    preset       a preset of the provider, changed by
    override       keys for its steps
    spec         a whole scenario
    listener     a special kind of port
    url          an address of nobody's; nothing is asked of a ledger
    https        1: the TLS port, trusting the test's authority
    closed       1: the ports of its own refuse at first
    times_out    the time limit that the attempt is to run into
    provider, operation, submit, payload    as for ActionReconcile::Node
    before       so many ordinary actions succeed first, one after another
    meanwhile    called with ($self, $row) when the outcome is unknown, or
    meanwhile_state    when the action is in this state; the row is waited for
                 afterwards
What it expects; a value, a pattern, or a sub that is given the value
    proves       what the end of the first attempt proved
    answer, status, reason      of the same evidence
    state        the state of the action in the end; 'planned' is the queue
                 after an attempt, so give such a row a long retry_pause
    deliveries   writes whose head the provider read, without those of before
    effects      executions, without those of before
    attempts     of the action, default 1
    unheard      true: nobody accepted a connection on the listener
Always expected: no reference has two effects; a found effect is its artifact.

=cut

use strict;
use warnings;

use ActionReconcile::Node;
use Carp;
use Test::More;

sub new
{
	my ($class, $node, $provider) = @_;
	return bless { node => $node, provider => $provider }, $class;
}

# The row's behaviour at the provider; returns its address.
sub _prepare
{
	my ($self, $row) = @_;
	my ($p, $name) = ($self->{provider}, $row->{name});

	return $row->{url} if defined $row->{url};
	if ($row->{spec})
	{
		$p->scenario($name, $row->{spec});
		$p->close_ports($name) if $row->{closed};
	}
	elsif (!$row->{listener})
	{
		$p->preset($name, $row->{preset} // $name, %{ $row->{override} // {} });
	}
	if ($row->{listener})
	{
		$row->{port} = $p->listener($row->{listener}, $name);
		my $host = $row->{https} ? 'https://localhost' : 'http://127.0.0.1';
		return "$host:$row->{port}/s/$name";
	}
	return $row->{https} ? $p->https_url($name) : $p->http_url($name);
}

sub _define
{
	my ($self, @rows) = @_;
	my $node = $self->{node};
	my $sql = 'BEGIN;';

	foreach my $row (@rows)
	{
		my %trust = $row->{https} ? (ca_file => $self->{provider}->ca_file) : ();
		# on a busy machine, only what is to run into a limit shall do so
		my %limits = $row->{times_out} ? (attempt_timeout => $row->{times_out}) :
		  (connect_timeout => '10 s', attempt_timeout => '20 s');
		$row->{key} = "s$row->{name}";
		$sql .= $node->provider_sql($row->{key}, $self->_prepare($row), %trust, %limits,
			%{ $row->{provider} // {} });
		$sql .= $node->operation_sql($row->{key}, $row->{key}, %{ $row->{operation} // {} });
	}
	$node->sql("$sql COMMIT;");
	return;
}

# Waits until every row has been attempted and its state matches its pattern.
sub _wait
{
	my ($self, $pattern_of, @rows) = @_;
	my %pattern = map { $_->{action_id} => $pattern_of->($_) } @rows;
	my $values = join ', ', map { "('$_'::uuid, " . ActionReconcile::Node::literal("^($pattern{$_})\$") . ')' }
	  keys %pattern;
	$self->{node}->wait_sql(
		"SELECT coalesce(string_agg(a.operation || ' is ' || a.state, ', '), 'all')
		   FROM (VALUES $values) AS v(id, pattern) JOIN reconcile.action a ON a.action_id = v.id
		  WHERE a.state::text !~ v.pattern OR a.attempts = 0", 'all') if @rows;
	return;
}

# A final state as a pattern for the server.
sub _state_pattern
{
	my ($row) = @_;
	my $state = $row->{state};
	return $state unless ref $state;
	return join '|', @$state if ref $state eq 'ARRAY';
	croak 'a state is a word or a list of words';
}

sub _submit
{
	my ($self, $number, @rows) = @_;
	return $self->{node}->submit_all(
		map {
			[ $_->{key}, { number => $number, %{ $_->{payload} // {} } }, %{ $_->{submit} // {} } ]
		} @rows);
}

sub _ordinary_first
{
	my ($self, @rows) = @_;
	for (my $number = 1; my @now = grep { ($_->{before} // 0) >= $number } @rows; $number++)
	{
		my @ids = $self->_submit(-$number, @now);
		$self->_wait(sub { 'succeeded' }, map { { action_id => $_ } } @ids);
	}
	return;
}

# Runs all of them and checks each.
sub run
{
	my ($self, @rows) = @_;
	my $node = $self->{node};

	$self->_define(@rows);
	$self->_ordinary_first(grep { $_->{before} } @rows);
	my @ids = $self->_submit(0, @rows);
	$_->{action_id} = shift @ids foreach @rows;

	foreach my $row (grep { $_->{meanwhile} } @rows)
	{
		$self->_wait(sub { $_[0]{meanwhile_state} // 'outcome_unknown|reconciling' }, $row);
		$row->{meanwhile}->($self, $row);
	}
	$self->_wait(\&_state_pattern, @rows);
	$self->_fetch(@rows);
	foreach my $row (@rows)
	{
		subtest $row->{name} => sub { $self->_check($row) };
	}
	return;
}

# What the database knows about all rows, in a few queries.
sub _fetch
{
	my ($self, @rows) = @_;
	my $node = $self->{node};
	my %by_id = map { $_->{action_id} => $_ } @rows;
	my $list = join ', ', map { "'$_'" } keys %by_id;

	$by_id{ $_->{action_id} }{action} = $_
	  foreach @{ $node->rows("SELECT * FROM reconcile.action WHERE action_id IN ($list)") };
	foreach my $kind (qw(attempt history))
	{
		my $order = $kind eq 'attempt' ? 'number' : 'version';
		push @{ $by_id{ $_->{action_id} }{$kind} }, $_
		  foreach @{ $node->rows(
				"SELECT * FROM reconcile.$kind WHERE action_id IN ($list) ORDER BY action_id, $order") };
	}
	return;
}

# Compares with a value, a pattern, a list of values, or a sub.
sub _expect
{
	my ($got, $expected, $name) = @_;
	my $shown = $got // '(none)';
	if (ref $expected eq 'Regexp')
	{
		return like($shown, $expected, $name);
	}
	elsif (ref $expected eq 'ARRAY')
	{
		my $found = grep { $_ eq $shown } @$expected;
		return ok($found, "$name: one of @$expected") || diag("it is $shown");
	}
	elsif (ref $expected eq 'CODE')
	{
		return ok($expected->($got), $name) || diag("it is $shown");
	}
	return is($got, $expected, $name);
}

sub _check
{
	my ($self, $row) = @_;
	my ($first) = grep { exists $_->{evidence}{transfer} } @{ $row->{history} };
	my $transfer = $first ? $first->{evidence}{transfer} : {};
	my $good = 1;

	$good &&= _expect($row->{action}{state}, $row->{state}, 'the action settles');
	$good &&= _expect($transfer->{proves}, $row->{proves}, 'what the transfer proves');
	foreach my $fact (qw(answer reason))
	{
		$good &&= _expect($transfer->{$fact}, $row->{$fact}, $fact) if exists $row->{$fact};
	}
	$good &&= _expect($transfer->{http_status}, $row->{status}, 'the status is kept')
	  if exists $row->{status};
	$good &&= _expect(scalar @{ $row->{attempt} }, $row->{attempts} // 1, 'attempts');
	$good &&= $self->_check_attempt($row);
	$good &&= $self->_check_ledger($row) unless defined $row->{url};
	diag(explain($row->{history})) unless $good;
	return;
}

# The first attempt stands where what it proved puts it, and what settled it.
sub _check_attempt
{
	my ($self, $row) = @_;
	my $attempt = $row->{attempt}[0];
	my ($first) = grep { ($_->{attempt_number} // 0) == 1 && exists $_->{evidence}{transfer} } @{ $row->{history} };
	my $proves = $first ? $first->{evidence}{transfer}{proves} : '';
	my %event_after = (
		not_sent => qr/^not_sent$/,
		unknown => qr/^answer_lost$/,
		answered => qr/^answered_|^not_executed$|^answer_lost$/);

	return 0 unless ok($first, 'the end of the attempt is in the history');
	return 0 unless like($first->{event}, $event_after{$proves} // qr/^$/, "the event follows from $proves");
	if ($proves eq 'not_sent')
	{
		return is("$attempt->{state} $attempt->{standing}", 'safe_to_retry failed/pending',
			'the attempt stands as proven not sent');
	}
	return is($attempt->{state}, $row->{action}{state}, 'the only attempt stands as the action does')
	  if @{ $row->{attempt} } == 1 && $row->{action}{state} !~ /^(planned|manual_review|expired|cancelled)$/;
	return 1;
}

sub _check_ledger
{
	my ($self, $row) = @_;
	my $p = $self->{provider};
	my $before = $row->{before} // 0;
	my $ledger = $p->ledger($row->{name});
	my $reference = $row->{action}{client_reference};
	my @mine = grep { ($_->{ref} // '') eq $reference } @{ $ledger->{effects} };
	my $good = 1;

	$good &&= _expect($ledger->{deliveries} - $before, $row->{deliveries}, 'deliveries')
	  if exists $row->{deliveries};
	$good &&= _expect($ledger->{effect_count} - $before, $row->{effects}, 'effects')
	  if exists $row->{effects};
	$good &&= is(scalar keys %{ $ledger->{duplicates} }, 0, 'no reference has two effects');
	$good &&= is($p->listener_stats($row->{port})->{accepted}, 0, 'nobody was connected to')
	  if $row->{unheard};
	if ($row->{action}{state} eq 'succeeded' && @mine == 1)
	{
		$good &&= is($row->{action}{artifact_id},
			$row->{operation} && exists $row->{operation}{artifact_path}
			  && !defined $row->{operation}{artifact_path} ? $reference : $mine[0]{id},
			'the artifact is that effect');
	}
	$good &&= is(scalar @mine, 0, 'what is safe to retry has no effect')
	  if $row->{action}{state} eq 'safe_to_retry';
	return $good;
}

1;
