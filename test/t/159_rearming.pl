# A database that is armed anew does not know what another copy of it has sent
# since: everything it holds is looked up before it is sent, after a window that
# begins with the arming.  The provider's ledger says whether anything happened
# twice.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use PostgreSQL::Test::Utils;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('original');
my $dump = PostgreSQL::Test::Utils::tempdir('dump');
my %action;

sub define
{
	my ($name, $preset, %more) = @_;
	my $operation = delete $more{operation} // {};

	$provider->preset($name, $preset);
	$node->define_provider($name, $provider->http_url($name), %more);
	$node->define_operation($name, $name, %$operation);
	return;
}

# Recorded, and kept from being sent by the original until it is dumped.
sub planned
{
	my ($name, %submit) = @_;
	$action{$name} = $node->submit($name, { of => $name }, %submit);
	return;
}

define('sent', 'ok');
define('unsent', 'ok');
define('early', 'ok', consistency_window => '2 s');
define('mute', 'ok', operation => { lookup => 0 });
define('later', 'ok', operation => { lookup => 0 });
define('approved', 'ok', operation => { requires_approval => 'true' });
define('keyed', 'ok', operation => { headers => '{"Idempotency-Key": "{idempotency_key}"}', key_lifetime => '1 hour', key_lifetime_source => 'documented' });
my @names = qw(sent unsent early mute later approved keyed);

$node->sql("SELECT reconcile.pause('$_', 'until it is copied')") foreach @names;
planned($_) foreach qw(sent unsent early mute approved keyed);
planned('later', not_before => '2099-01-01');
my %key = map { $_ => $node->sql("SELECT coalesce(idempotency_key, '') FROM reconcile.action WHERE action_id = '$action{$_}'") } @names;

$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dump/custom", 'postgres' ], 'the original is dumped');

# The original goes on: it sends some of it after the copy was made.
$node->sql("SELECT reconcile.resume('$_')") foreach qw(sent mute);
is($node->wait_state($action{$_}, 'succeeded'), 'succeeded', "the original sends \"$_\"") foreach qw(sent mute);
$node->stop;

# ---------------------------------------------------------------- the copy

my $copy = ActionReconcile::Node->create('copy', extension => 0);
$copy->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'postgres', "$dump/custom" ], 'it is restored');
$copy->wait_worker;
$copy->sql("SELECT reconcile.resume('$_')") foreach @names;

sub summary { return $copy->sql("SELECT operation || ': ' || becomes || ' ' || actions FROM reconcile.arming_summary ORDER BY 1"); }

is($copy->sql('SELECT DISTINCT armed FROM reconcile.arming_summary'), 'f', 'it is disarmed, and can be asked what arming it would do');
is(summary(), <<'SUMMARY' =~ s/\n$//r, 'before anything goes out');
approved: looked up, then held 1
early: looked up, then sent 1
keyed: looked up, then sent 1
later: sent when due 1
mute: handed to a person 1
sent: looked up, then sent 1
unsent: looked up, then sent 1
SUMMARY

$copy->sql("SELECT reconcile.arm('the original is given up')");
is($copy->wait_state($action{sent}, 'succeeded'), 'succeeded', 'what the original has sent is found');
is($copy->events($action{sent}), 'submit presume ask found', 'and was only asked about');
is($copy->wait_state($action{unsent}, 'succeeded'), 'succeeded', 'what it has not sent is sent');
like($copy->events($action{unsent}), qr/^submit presume (?:ask absent_once )?ask absent claim answered_accepted$/, 'after it was asked about');
is($copy->wait_state($action{early}, 'succeeded'), 'succeeded', 'likewise with a longer window');
is($copy->hasty_lookups($action{$_}), '', "\"$_\": nothing was asked before the window that begins with the arming") foreach qw(sent unsent early);
is($copy->wait_state($action{mute}, 'manual_review'), 'manual_review', 'what cannot be asked about is for a person');
like($copy->sql("SELECT why FROM reconcile.review_queue WHERE action_id = '$action{mute}'"), qr/another copy .* may have sent it.*no lookup rule/, 'who is told why');
is($copy->status($action{later})->{state}, 'planned', 'what is not to be sent for long stays planned');
is($copy->wait_state($action{approved}, 'planned'), 'planned', 'what waited for approval is planned again');
is($copy->sql("SELECT held || ' ' || held_because || ' ' || needs FROM reconcile.action JOIN reconcile.review_queue USING (action_id) WHERE action_id = '$action{approved}'"),
	'true it waits for approval approve', 'and still waits for it') if $copy->events($action{approved}) =~ /absent/ or fail('it was asked about');
is($copy->wait_state($action{keyed}, 'succeeded'), 'succeeded', 'with a key: it is sent');
is_deeply([ map { $_->[0] } $provider->keys_seen('keyed') ], [ $key{keyed} ], 'with the key that the original would have sent');
is($copy->sql('SELECT count(*) FROM reconcile.rearming'), '0', 'nothing is left to be dealt with');

is($provider->summary($_)->{deliveries}, 1, "one delivery to \"$_\", by whomever") foreach qw(sent unsent early mute keyed);
is($provider->summary($_)->{deliveries}, 0, "none to \"$_\"") foreach qw(later approved);
is_deeply($provider->duplicates($_), {}, "no second effect of \"$_\"") foreach @names;
$copy->assert_consistent('the copy');
$copy->stop;
done_testing();
