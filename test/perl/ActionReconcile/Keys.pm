package ActionReconcile::Keys;

=head1 NAME

ActionReconcile::Keys - actions whose provider removes duplicates by a key

=head1 SYNOPSIS

  my $k = ActionReconcile::Keys->new($node, $provider);
  $k->define('lost', { write => [ { then => 'close' } ] });
  $k->submit('lost', { amount => 5 });
  $k->check('lost', state => 'succeeded', effects => 1, keys => 'new replayed',
    events => 'submit claim answer_lost resend answered_accepted');

A case is a scenario at the provider, and a provider and an operation in the
database, all of one name.  What is not said is: the key goes into the header
Idempotency-Key and lives for an hour; an unknown outcome is resolved by the
same request again, and after that by the list of effects.

check() holds what the database says against the ledger.  Always expected: no
reference has two effects; each delivery is an attempt; requests with one key
are the same bytes to the same place with the same headers, at the provider and
by the hashes of the attempts; a found effect is the artifact.

=cut

use strict;
use warnings;

use JSON::PP;
use Test::More;

use ActionReconcile::Node;

sub new
{
	my ($class, $node, $provider) = @_;
	return bless { node => $node, provider => $provider, ids => {} }, $class;
}

# The rule that sends the same request again; the options are its columns.
sub replay
{
	my ($self, %columns) = @_;
	return { kind => 'replay_by_key', consistency_window => '0 s', window_source => 'documented', %columns };
}

# The options are columns of the operation, with lookups, answers and poll; and
#   provider => {..}   columns of the provider
#   https => 1         on the TLS port
sub define
{
	my ($self, $name, $spec, %options) = @_;
	my $node = $self->{node};
	my %columns = %{ delete $options{provider} // {} };
	my $https = delete $options{https};

	$self->{provider}->scenario($name, { key_header => 'Idempotency-Key', %$spec });
	my $url = $columns{base_url} // ($https ? $self->{provider}->https_url($name) : $self->{provider}->http_url($name));
	delete $columns{base_url};
	# On a busy machine, only what is to run into a limit shall do so.
	$node->define_provider($name, $url, connect_timeout => '10 s', attempt_timeout => '20 s',
		$https ? (ca_file => $self->{provider}->ca_file) : (), %columns);
	$node->define_operation($name, $name,
		headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' },
		key_lifetime => '1 hour', key_lifetime_source => 'documented', key_margin => '1 s',
		lookups => [ $self->replay, {} ], %options);
	return;
}

# Options are further arguments of submit().
sub submit
{
	my ($self, $name, $payload, %options) = @_;
	return $self->{ids}{$name} = $self->{node}->submit($name, $payload // { amount => 5 }, %options);
}

# Both, for cases that need nothing in between.
sub start
{
	my ($self, $name, $spec, %options) = @_;
	$self->define($name, $spec, %options);
	return $self->submit($name);
}

sub id { return $_[0]->{ids}{ $_[1] }; }

# Waits until the history of a case has so many entries with this event.
sub wait_event
{
	my ($self, $name, $event, $count) = @_;
	$count //= 1;
	return $self->{node}->wait_sql(
		"SELECT count(*) >= $count FROM reconcile.history WHERE action_id = '$self->{ids}{$name}' AND event = '$event'", 't');
}

# The evidence of the history entries with this event.
sub evidence
{
	my ($self, $name, $event) = @_;
	return map { $_->{evidence} } grep { $_->{event} eq $event } @{ $self->{node}->history($self->{ids}{$name}) };
}

# The writes of a scenario whose head was read.
sub writes
{
	my ($self, $name) = @_;
	return grep { $_->{kind} eq 'write' && $_->{head_complete} } @{ $self->{provider}->ledger($name)->{requests} };
}

# What is expected of a case: state, events (text or pattern), effects,
# deliveries, keys: what the provider made of each, artifact: if not the effect.
sub check
{
	my ($self, $name, %expected) = @_;
	subtest $name => sub { $self->_check($name, %expected) };
	return;
}

sub _check
{
	my ($self, $name, %expected) = @_;
	my $node = $self->{node};
	my $id = $self->{ids}{$name};
	my $state = $node->wait_state($id, $expected{state});
	my $events = $node->events($id);
	my $summary = $self->{provider}->summary($name);
	my @writes = $self->writes($name);
	my $attempts = $node->attempt($id);

	is($state, $expected{state}, "it is $expected{state}");
	_matches($events, $expected{events}, 'the story');
	is($summary->{effects}, $expected{effects}, "$expected{effects} effects") if exists $expected{effects};
	is_deeply($summary->{duplicates}, {}, 'none of them twice');
	_matches(join(' ', map { $_->{key_outcome} // 'none' } @writes), $expected{keys}, 'what the provider made of the keys');
	is(scalar @writes, $expected{deliveries}, 'deliveries') if exists $expected{deliveries};
	$self->_check_requests(\@writes, $attempts);
	my $made = $self->{provider}->ledger($name)->{effects};
	my $artifact = exists $expected{artifact} ? $expected{artifact} : $made->[0]{id};
	is($node->status($id)->{artifact_id}, $artifact, 'the artifact') if $state eq 'succeeded' && @$made == 1;
	return;
}

# A text, or a pattern; nothing is expected of undef.
sub _matches
{
	my ($got, $expected, $what) = @_;
	return unless defined $expected;
	return ref $expected ? like($got, $expected, $what) : is($got, $expected, $what);
}

# Everything a server can tell two requests apart by.
sub _bytes_of
{
	my ($write) = @_;
	return JSON::PP->new->canonical->encode([ map { $write->{$_} } qw(method path headers body_sha256 body) ]);
}

sub _check_requests
{
	my ($self, $writes, $attempts) = @_;
	my (%bytes, %hashes);

	$bytes{ $_->{key} // '' }{ _bytes_of($_) }++ foreach @$writes;
	$hashes{ $_->{idempotency_key} // '' }{"$_->{request_hash} $_->{base_url}"}++ foreach @$attempts;
	is(scalar(grep { keys %$_ > 1 } values %bytes), 0, 'requests with one key are the same bytes') or diag(explain(\%bytes));
	is(scalar(grep { keys %$_ > 1 } values %hashes), 0, 'and the attempts have one hash');
	my $left = grep { $_->{event} ne 'not_sent' } @$attempts;
	cmp_ok(scalar @$writes, '<=', $left, 'each delivery is an attempt');
	my %recorded = map { $_->{idempotency_key} // '' => 1 } @$attempts;
	is_deeply([ grep { !$recorded{$_} } map { my $key = $_->{key} // ''; $key =~ s/^(?:"|x-)|"$//g; $key } @$writes ], [], 'with the key that was recorded');
	return;
}

1;
