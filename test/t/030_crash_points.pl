# Whatever is killed at whatever point: an attempt that may have left is
# outcome_unknown afterwards, is looked up and settled rightly, is never queued
# again by itself, and is never lost.  The provider's ledger has the last word.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(crash story_problems);
use ActionReconcile::Node;
use ActionReconcile::Provider;

plan skip_all => 'needs the library with fault points in AR_TEST_LIBDIR'
  if ($ENV{AR_TEST_LIBDIR} // '') eq '';

my $window_s = 0.4;		# consistency window and late arrival, see below

# The stories an action may tell when the engine was killed at a point.  The
# first one must be told by at least one of the actions.
my $unharmed = 'submit claim answered_accepted';
my $found = 'submit claim recover ask found';
my $absent = 'submit claim recover ask absent_once ask absent';
my %stories = (
	claim_before_commit => [$unharmed],
	claim_after_commit => [$absent],
	before_first_byte => [$absent],
	after_request => [ $found, $absent ],
	after_answer => [ $found, $absent ],
	record_before_commit => [ $found, $absent ],
	record_after_commit => [ $unharmed, $found, $absent ]);
my @points = qw(claim_before_commit claim_after_commit before_first_byte after_request
  after_answer record_before_commit record_after_commit);

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('crash', conf => 'action_reconcile.drain_timeout = 1s');
my $round = 0;

# Three actions recorded in one transaction, so that one claim takes them all.
sub submit_three
{
	my ($name) = @_;
	my $calls = join '', map { "SELECT action_id FROM reconcile.submit('$_->[0]', '{\"n\": $_->[1]}');\n" }
	  [ "replace$name", 1 ], [ "hold$name", 2 ], [ "replace$name", 3 ];
	return split /\n/, $node->sql("BEGIN;\n${calls}COMMIT;");
}

# Was anything asked before the window of the recovered attempt had closed?  By
# the clock that opens gates, exactly; and by the wall clock, but for the moment
# between reading the one and recording the other.
sub asked_too_early
{
	my ($id) = @_;
	return $node->sql(<<"SQL");
SELECT l.asked_us - t.gate_us, l.asked_at - h.recorded_at
  FROM reconcile.history h JOIN reconcile.attempt t ON t.action_id = h.action_id AND t.number = h.attempt_number
  JOIN reconcile.lookup l ON l.action_id = h.action_id
 WHERE h.action_id = '$id' AND h.event = 'recover' AND h.from_state = 'submitted'
   AND (l.asked_us < t.gate_us OR l.asked_at < h.recorded_at + interval '$window_s s' - interval '50 milliseconds');
SQL
}

sub check_one
{
	my ($id, $allowed, $title) = @_;
	my $events = $node->events($id);
	my $replaced = $events =~ s/^\Q$absent\E claim answered_accepted$/$absent/;
	my $status = $node->status($id);
	my $replaces = $status->{operation} =~ /^replace/;

	ok((grep { $events eq $_ } @$allowed), "$title: the story of $status->{operation}") or diag($events);
	is($status->{state}, $events eq $absent && !$replaces ? 'safe_to_retry' : 'succeeded', "$title: its end");
	is($replaced ? 1 : 0, $events eq $absent && $replaces ? 1 : 0, "$title: replaced only after proof, and if wanted");
	is(asked_too_early($id), '', "$title: nothing was asked inside the window");
	return $events;
}

sub crash_at
{
	my ($point, $how) = @_;
	my $title = "$how at $point";
	my $name = ++$round;

	# An answer must not come between the request and the kill.
	$provider->scenario("s$name", $point eq 'after_request' ? { write => [ ({ hold_s => -1 }) x 3 ] } : {});
	$node->define_provider("p$name", $provider->http_url("s$name"));
	$node->define_operation("replace$name", "p$name", on_absent => 'replace');
	$node->define_operation("hold$name", "p$name");

	$node->set_fault_point($point);
	my @ids = submit_three($name);
	$node->wait_fault($point);
	if ($point =~ /^claim|^before/)
	{
		is($provider->deliveries("s$name"), 0, "$title: nothing has left yet");
	}
	else
	{
		ok($provider->wait_effects("s$name", 1, 20), "$title: the provider has carried it out");
	}
	if ($point eq 'claim_before_commit')
	{
		is($node->sql("SELECT count(*) FROM reconcile.attempt WHERE action_id = '$ids[0]'"), 0, "$title: no trace yet");
	}
	elsif ($point !~ /record_after/)
	{
		is($node->sql("SELECT state FROM reconcile.attempt WHERE action_id = '$ids[0]'"),
			'submitted', "$title: the intent to send is durable");
	}
	$node->clear_fault_point;
	crash($node, $how);

	$node->wait_state($_, 'succeeded|safe_to_retry') foreach @ids;
	my @events = map { check_one($_, $stories{$point}, $title) } @ids;
	ok((grep { $_ eq $stories{$point}[0] } @events), "$title: the expected story was among them") or diag(explain(\@events));
	is(join("\n", story_problems($node, $provider, "s$name", @ids)), '', "$title: nothing twice, nothing lost");
	$node->assert_consistent($title);
	return;
}

foreach my $how (qw(worker postmaster immediate))
{
	crash_at($_, $how) foreach @points;
}

$node->stop;
$provider->stop;
done_testing();
