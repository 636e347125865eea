# Two identical intents, last month's payment, a list that more than one action
# reads: one object at the provider confirms at most one action, and one that is
# only alike confirms none unless the operation says that there can be no other.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Cases qw(lost lost_unexecuted found_after absent_after);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('one');
my $cases = ActionReconcile::Cases->new($node, $provider);

my %rent = (payee => 'landlord', amount => '850.00', memo => 'rent');
my %again = (on_duplicate => 'new');

# What can be asked for by its values only.
my %alike = (
	kind => 'search',
	path => '/effects?amount={amount}',
	reference_path => undef,
	match_values => { '$.body.amount' => '{amount}', '$.body.payee' => '{payee}', '$.body.memo' => '{memo}' },
	canary => 'none');
my %unique = (%alike, match_is_unique => 'true', created_path => '$.created', skew => '2 s');

sub last_month { return { age_s => 30 * 86400, body => {%rent}, @_ }; }

# ---------------------------------------------------------------- two identical intents

$cases->define('alike', spec => { write => [ lost(), lost_unexecuted() ] }, on_absent => 'replace', lookup => \%alike);
$cases->define('both-made', spec => { write => [ lost(), lost() ] }, on_absent => 'replace', lookup => \%alike);
$cases->define('by-name', spec => { write => [ lost(), lost_unexecuted() ] }, on_absent => 'replace', lookup => { canary => 'none' });
foreach my $name (qw(alike both-made by-name))
{
	my $first = $cases->submit($name, \%rent);
	$provider->wait_writes($name, 1);
	my $second = $cases->submit($name, \%rent, %again);
	my $objects = $name eq 'both-made' ? 2 : 1;

	if ($name eq 'by-name')
	{
		$cases->check($name, 'asked by reference: the first is there',
			id => $first, state => 'succeeded', events => found_after(), questions => 1);
		my $story = $cases->check($name, 'asked by reference: the second is not, and goes out again',
			id => $second, state => 'succeeded', events => 'submit claim answer_lost ask absent_once ask absent claim answered_accepted',
			attempts => 2, deliveries => 3, effects => 2);
		is(join(' ', sort map { $_->{ref} } @{ $story->{ledger}{effects} }), join(' ', sort $first, $second),
			'asked by reference: one effect each');
		next;
	}
	foreach my $id ($first, $second)
	{
		my $story = $cases->check($name, "$name: nobody can tell whose it is",
			id => $id, state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', status => 'DENIED_UNRESOLVED',
			questions => 1, deliveries => 2, effects => $objects);
		is($story->{answers}[0]{result}, 'ambiguous', "$name: the answer is classified");
		is($story->{answers}[0]{reason}, 'objects that may be ours, but none carries the reference', "$name: why none was taken");
		is(join(' ', sort @{ $story->{answers}[0]{candidates} }), join(' ', sort map { $_->{id} } @{ $story->{ledger}{effects} }),
			"$name: the candidates are in the history");
		is($story->{artifact_id}, undef, "$name: none of them is credited");
	}
	# asking again changes nothing
	$node->sql("SELECT reconcile.look_up_now('$second', 'the test is curious')");
	$cases->check($name, "$name: nor when asked once more",
		id => $second, state => 'manual_review', events => 'submit claim answer_lost ask inconclusive look_up_now ask inconclusive', deliveries => 2);
	is($node->sql("SELECT count(*) FROM reconcile.action WHERE provider = '$name' AND artifact_id IS NOT NULL"), 0, "$name: still nobody's");
}

# The second one never reaches the provider: that is proof, without any question.
$cases->define('refused', spec => { own_port => \1, write => [ lost() ] }, on_absent => 'replace', lookup => { canary => 'none' });
my $first = $cases->submit('refused', \%rent);
$cases->check('refused', 'the second is refused a connection: the first is there', id => $first, state => 'succeeded', events => found_after());
$provider->close_ports('refused');
my $second = $cases->submit('refused', \%rent, %again);
$cases->wait_event('refused', 'not_sent');
$provider->open_ports('refused');
my $story = $cases->check('refused', 'the second is refused a connection: it goes out later',
	id => $second, state => 'succeeded', events => qr/^submit claim not_sent (claim not_sent )*claim answered_accepted$/,
	attempts => $node->wait_sql("SELECT attempts FROM reconcile.action WHERE action_id = '$second' AND state = 'succeeded'", qr/./),
	questions => 0, deliveries => 2, effects => 2);

# ---------------------------------------------------------------- one possible object

my %only = (
	'this-month' => { spec => { preload => [ last_month() ], write => [ lost() ] } },
	'last-month' => { spec => { preload => [ last_month() ], write => [ lost_unexecuted() ] } },
	'next-month' => { spec => { preload => [ { body => {%rent}, age_s => -30 * 86400 } ], write => [ lost_unexecuted() ] } },
	'another-one' => { spec => { write => [ lost() ], preload => [ last_month(age_s => 0) ] } },
	'iso-time' => { spec => { preload => [ last_month() ], write => [ lost() ] }, lookup => { created_path => '$.created_at' } },
	'no-time' => { spec => { write => [ lost() ] }, lookup => { created_path => '$.never', max_inconclusive => 2 } },
	'odd-time' => { spec => { write => [ lost() ] }, lookup => { created_path => '$.body.payee', max_inconclusive => 2 } },
	'no-id' => { spec => { write => [ lost() ] }, lookup => { artifact_path => '$.number' } },
	'other-memo' => { spec => { write => [ lost_unexecuted() ], preload => [ { age_s => 0, body => { %rent, memo => 'Rent' } } ] } });
foreach my $name (sort keys %only)
{
	$cases->define($name, spec => $only{$name}{spec}, on_absent => 'hold', lookup => { %unique, %{ $only{$name}{lookup} // {} } });
	$cases->submit($name, \%rent);
}
my $absent = 'submit claim answer_lost ask absent_once ask absent';
$story = $cases->check('this-month', 'last month\'s payment is not this month\'s',
	state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1);
is($story->{answers}[0]{reason}, 'the one object with the values and the time of the attempt', 'last month\'s payment: what was found is ours');
$cases->check('iso-time', 'nor where the time is written out',
	state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1);
$cases->check('last-month', 'last month\'s payment alone is none of ours',
	state => 'safe_to_retry', events => $absent, questions => 2, deliveries => 1, effects => 0);
$cases->check('next-month', 'nor is one from a time that is yet to come',
	state => 'safe_to_retry', events => $absent, questions => 2, deliveries => 1, effects => 0);
$cases->check('other-memo', 'nor one that differs in a letter',
	state => 'safe_to_retry', events => $absent, questions => 2, deliveries => 1, effects => 0);
$story = $cases->check('another-one', 'two that could be: nobody can tell',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', questions => 1, deliveries => 1, effects => 1);
is(scalar @{ $story->{answers}[0]{candidates} }, 2, 'two that could be: both are in the history');
is($node->sql('SELECT count(*) FROM reconcile.incident'), 0, 'two that could be: that is no duplicate');
$story = $cases->check('no-id', 'one that could be, without an id: it could be credited twice',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', questions => 1, deliveries => 1, effects => 1);
foreach my $name (qw(no-time odd-time))
{
	$story = $cases->check($name, "$name: one whose time cannot be read may be ours",
		state => 'manual_review', events => 'submit claim answer_lost ask inconclusive ask inconclusive', questions => 2, deliveries => 1, effects => 1);
	is($story->{answers}[1]{reason}, 'the body does not have the expected form', "$name: why it proves nothing");
}

# Made long after the attempt could last have done it, and asked about even later.
$cases->define('afterwards',
	spec => { write => [ lost_unexecuted() ], read => [ { status => 500 } ] },
	lookup => { %unique, created_path => '$.created', skew => '0 s', max_inconclusive => 1 });
my $afterwards = $cases->submit('afterwards', \%rent);
$cases->check('afterwards', 'asked in vain', state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', deliveries => 1);
$node->wait_sql("SELECT clock_timestamp() > max(t.ended_at) + interval '2 s' FROM reconcile.attempt t WHERE t.action_id = '$afterwards'", 't');
$provider->preload('afterwards', [ { age_s => 0, body => {%rent} } ]);
$node->sql("SELECT reconcile.look_up_now('$afterwards', 'the provider is up again')");
$cases->check('afterwards', 'somebody\'s object of later on is none of ours',
	state => 'safe_to_retry', events => 'submit claim answer_lost ask inconclusive look_up_now ask absent_once ask absent', deliveries => 1, effects => 0);

# ---------------------------------------------------------------- one object, two actions

# Both are asked about at the same moment, and both see the one object.
$cases->define('claimed-once',
	spec => { write => [ lost(), lost_unexecuted() ] },
	provider => { consistency_window => '1 s' }, lookup => \%unique);
my @pair = ($cases->submit('claimed-once', \%rent));
$provider->wait_writes('claimed-once', 1);
push @pair, $cases->submit('claimed-once', \%rent, %again);
$node->wait_sql("SELECT string_agg(state::text, ' ' ORDER BY state) FROM reconcile.action WHERE operation = 'claimed-once'", 'succeeded safe_to_retry');
is($node->sql("SELECT count(DISTINCT artifact_id) || ' ' || count(artifact_id) FROM reconcile.action WHERE operation = 'claimed-once'"), '1 1',
	'two actions, one object: it confirms one of them');
is($provider->effects('claimed-once') . $provider->deliveries('claimed-once'), '12', 'two actions, one object: nothing was sent again');
is($node->hasty_lookups($_), '', 'two actions, one object: nothing was asked inside a window') foreach @pair;

# What is another's on the first page says nothing about the third one.
$cases->define('others-first',
	spec => { page_size => 1, paging => 'link', write => [ {}, lost() ] },
	on_absent => 'replace', lookup => { %unique, paging => 'link' });
my $known = $cases->submit('others-first', \%rent);
$cases->check('others-first', 'another\'s is on the first page', state => 'succeeded', events => 'submit claim answered_accepted');
$provider->preload('others-first', 1);
$cases->submit('others-first', \%rent, %again);
$story = $cases->check('others-first', 'another\'s on the first page: ours is found on a later one',
	state => 'succeeded', events => found_after(), questions => 1, deliveries => 2, effects => 2);
is($story->{lookups}[0]{pages}, 3, 'another\'s on the first page: all three were read');
isnt($story->{artifact_id}, $node->status($known)->{artifact_id}, 'another\'s on the first page: and it is another object');

# One that could be ours does not end the search for a second one.
$cases->define('spread',
	spec => { page_size => 1, paging => 'link', preload => [ last_month(age_s => 0), {} ], write => [ lost() ] },
	lookup => { %unique, paging => 'link' });
$cases->submit('spread', \%rent);
$story = $cases->check('spread', 'two that could be, pages apart: nobody can tell',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', questions => 1, deliveries => 1, effects => 1, reads => 3);
is(scalar @{ $story->{answers}[0]{candidates} }, 2, 'two that could be, pages apart: both are in the history');

# ---------------------------------------------------------------- two objects, one action

# The provider has done it twice: ours, and something that must not be.
$cases->define('twice', spec => { preload => [ { id => 'first', ref => 'order-16', age_s => 0 }, { id => 'second', ref => 'order-16', age_s => 0 } ],
		write => [ lost_unexecuted() ] },
	reference_is_global => 'true');
$cases->submit('twice', \%rent, client_reference => 'order-16');
$story = $cases->check('twice', 'two objects with our reference',
	state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, artifact => 'first');
is($story->{answers}[0]{duplicates}, 2, 'two objects with our reference: how many is in the history');
is_deeply($story->{answers}[0]{candidates}, [qw(first second)], 'two objects with our reference: and which');
is($node->sql("SELECT kind || ' ' || (details -> 'lookup' ->> 'duplicates') || ' ' || (closed_at IS NULL) FROM reconcile.incident
	 WHERE action_id = '" . $cases->id('twice') . "'"), 'duplicate 2 true', 'two objects with our reference: an incident is open');

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
