package ActionReconcile::Cases;

=head1 NAME

ActionReconcile::Cases - one named case after another, held against its story and the ledger

=head1 SYNOPSIS

  my $cases = ActionReconcile::Cases->new($node, $provider);
  $cases->define('paged', spec => { page_size => 2, paging => 'link', write => [lost()] },
      lookup => { kind => 'list_scan', path => '/effects', paging => 'link' });
  $cases->submit('paged', { amount => 5 });
  my $story = $cases->check('paged', 'found on the third page',
      state => 'succeeded', events => 'submit claim answer_lost ask found',
      deliveries => 1, effects => 1, questions => 1);

A case is a scenario at the provider, and a provider and an operation of its
name in the database.  define() takes
    spec        the scenario; left out, an honest one
    provider    columns of reconcile.provider
    lookup, lookups, answers, and columns of reconcile.operation, as
                ActionReconcile::Node::define_operation does
    poll        columns of the poll rule, which reads "status" until it is
                "succeeded" or "failed"

submit() records an action, the newest of that name; further arguments are
those of submit().  check() waits for its state and compares what is given of
    state, events, status        of the action
    attempts                     how many there were; 1 if not given and it was sent
    questions                    lookups and polls recorded
    deliveries, effects, reads   of the scenario's ledger
    hasty                        true: somebody has forced a question inside the window
It returns the action's row with its history, lookups and attempts.  Always
expected: no reference has two effects (unless duplicates => 1), no window was too
short (violations => how many), nothing was asked inside the window of the rule
that asked, and what is credited to the action is the one effect with its
reference (unless artifact => says otherwise, or nothing was to be made).

=cut

use strict;
use warnings;

use Exporter 'import';
use JSON::PP;
use Test::More;

our @EXPORT_OK = qw(lost lost_unexecuted found_after absent_after);

# Steps of a write whose answer never comes: carried out, or not.
sub lost { return { then => 'close' }; }
sub lost_unexecuted { return { then => 'close', commit => 'never' }; }

# The usual stories of an answer that was lost.
sub found_after { return join ' ', 'submit claim answer_lost', (map { "ask $_" } @_), 'ask found'; }
sub absent_after { return join ' ', 'submit claim answer_lost', (map { "ask $_" } @_), 'ask absent'; }

sub new
{
	my ($class, $node, $provider) = @_;
	return bless { node => $node, provider => $provider, ids => {} }, $class;
}

sub define
{
	my ($self, $name, %case) = @_;
	my $columns = delete $case{provider} // {};
	$self->{provider}->scenario($name, delete $case{spec} // {});
	$case{poll} = { state_path => '$.status', accepted => '{succeeded}', rejected => '{failed}', pause_max => '0.3 s', %{ $case{poll} } }
	  if $case{poll};
	# on a busy machine, nothing but what is to run into a limit shall do so
	my $sql = $self->{node}->provider_sql($name, $self->{provider}->http_url($name),
		connect_timeout => '10 s', attempt_timeout => '20 s', %$columns);
	$sql .= $self->{node}->operation_sql($name, $name, %case);
	$self->{node}->sql("BEGIN; $sql COMMIT;");
	return;
}

sub submit
{
	my ($self, $name, $payload, %options) = @_;
	return $self->{ids}{$name} = $self->{node}->submit($name, $payload // { amount => 5 }, %options);
}

sub id { return $_[0]->{ids}{ $_[1] }; }

# Waits for an event in the history of the newest action of that name.
sub wait_event
{
	my ($self, $name, $event) = @_;
	my $id = $self->id($name);
	return $self->{node}->wait_sql(
		"SELECT count(*) FROM reconcile.history WHERE action_id = '$id' AND event = '$event'", qr/^[1-9]/);
}

sub check
{
	my ($self, $name, $what, %expected) = @_;
	my ($node, $provider) = @$self{qw(node provider)};
	my $id = $expected{id} // $self->id($name);
	my $story = {};

	subtest $what => sub {
		$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$id'", $expected{state});
		$story = $node->rows("SELECT a.*, o.effect, (SELECT s.status FROM reconcile.action_status s WHERE s.action_id = a.action_id) AS status
			  FROM reconcile.action a JOIN reconcile.operation o USING (operation) WHERE a.action_id = '$id'")->[0];
		$story->{$_->[0]} = $_->[1] foreach [ history => $node->history($id) ], [ lookups => $node->lookups($id) ],
		  [ attempt => $node->attempt($id) ], [ answers => [ $node->answers($id) ] ], [ verdicts => [ $node->answers($id, 'poll') ] ],
		  [ ledger => $provider->ledger($name) ];
		$self->_compare($id, $story, %expected);
	};
	return $story;
}

sub _compare
{
	my ($self, $id, $story, %expected) = @_;
	my $ledger = $story->{ledger};
	my $good = is($story->{state}, $expected{state}, "it is $expected{state}");

	$good &= like($self->{node}->events($id), ref $expected{events} ? $expected{events} : qr/^\Q$expected{events}\E$/, 'the story')
	  if exists $expected{events};
	$good &= is($story->{status}, $expected{status}, 'what a caller may rely on') if exists $expected{status};
	$good &= is(scalar @{ $story->{attempt} }, $expected{attempts} // 1, 'attempts');
	$good &= is(scalar @{ $story->{lookups} }, $expected{questions}, 'questions') if exists $expected{questions};
	$good &= is($ledger->{deliveries}, $expected{deliveries}, 'deliveries') if exists $expected{deliveries};
	$good &= is($ledger->{effect_count}, $expected{effects}, 'effects') if exists $expected{effects};
	$good &= is($ledger->{reads}, $expected{reads}, 'reads') if exists $expected{reads};
	$good &= is_deeply($ledger->{duplicates}, {}, 'no reference has two effects') unless $expected{duplicates};
	# A window that turned out to be too short is longer by now.
	my $violated = $self->{node}->sql("SELECT count(*) FROM reconcile.incident WHERE provider = '$story->{provider}' AND kind = 'window_violation'");
	$good &= is($violated, $expected{violations} // 0, 'windows that were too short');
	$good &= is($self->{node}->hasty_lookups($id), '', 'nothing was asked inside a window') unless $violated || $expected{hasty};
	$good &= $self->_compare_artifact($story)
	  if $story->{state} eq 'succeeded' && $story->{effect} eq 'create' && !exists $expected{artifact};
	$good &= is($story->{artifact_id}, $expected{artifact}, 'the artifact') if exists $expected{artifact};
	diag(join "\n", map { "$_->{event}: " . encode_json($_->{evidence}) } @{ $story->{history} }) unless $good;
	return;
}

# What the action is credited with is the one effect with its reference.
sub _compare_artifact
{
	my ($self, $story) = @_;
	my @mine = grep { ($_->{ref} // '') eq $story->{client_reference} } @{ $story->{ledger}{effects} };
	return is(join(' ', map { $_->{id} } @mine), $story->{artifact_id}, 'the artifact is the one effect');
}

1;
