# A database that is armed anew does not know what another copy of it has sent
# since: everything it holds is looked up before it is sent, after a window that
# begins with the arming; what was open, settled or under review in the dump
# too.  The provider's ledger says whether anything happened twice.

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
define('keyed', 'ok', operation => { headers => '{"Idempotency-Key": "{idempotency_key}"}' });	# nobody knows how long it lives
define('locked', 'ok');
define('open', '10-held', attempt_timeout => '12 s');
define('asked', '10-close-uncommitted', operation => { on_absent => 'replace', lookup => { timeout => '60 s' } });
define('settled', '10-close-uncommitted');
define('reviewed', '10-close-uncommitted', operation => { lookup => 0 });
$provider->scenario('asked', { write => [ { then => 'close', commit => 'never' } ], read => [ { then => 'hang' } ] });
my @names = qw(sent unsent early mute later approved keyed locked);
my @others = qw(settled reviewed asked open);

# Epochs of the original that a fresh database begins below.
for (1 .. 2)
{
	my $worker = $node->wait_worker;
	$node->sql("SELECT pg_terminate_backend($worker)");
	$node->wait_worker($worker);
}
$node->sql("SELECT reconcile.pause('$_', 'until it is copied')") foreach @names;
planned($_) foreach qw(sent unsent early mute approved keyed locked);
planned('later', not_before => '2099-01-01');
my %stands = (open => 'submitted', asked => 'reconciling', settled => 'safe_to_retry', reviewed => 'manual_review');
foreach my $name (@others)
{
	planned($name);
	is($node->wait_state($action{$name}, $stands{$name}), $stands{$name}, "dumped: an action that is $stands{$name}");
}
ok($provider->wait_for('open', 30, effects => 1) && $provider->wait_for('asked', 30, reads => 1), 'one has left, about one it is asked');
my %key = map { $_ => $node->sql("SELECT coalesce(idempotency_key, '') FROM reconcile.action WHERE action_id = '$action{$_}'") } @names;

$node->command_ok([ 'pg_dump', '-Fc', '-f', "$dump/custom", 'postgres' ], 'the original is dumped');

# The original goes on: it sends some of it after the copy was made.
$node->sql("SELECT reconcile.resume('$_')") foreach qw(sent mute locked);
$node->sql("SELECT reconcile.replace('$action{settled}', 'a test')");
is($node->wait_state($action{$_}, 'succeeded'), 'succeeded', "the original sends \"$_\"") foreach qw(sent mute locked settled);
$node->stop('immediate');
$provider->release($_) foreach qw(open asked);

# ---------------------------------------------------------------- the copy

my $copy = ActionReconcile::Node->create('copy', extension => 0, conf => 'max_prepared_transactions = 2');
$copy->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'postgres', "$dump/custom" ], 'it is restored');
$copy->wait_worker;
$copy->sql("SELECT reconcile.resume('$_')") foreach @names;

sub summary { return $copy->sql("SELECT operation || ': ' || becomes || ' ' || actions FROM reconcile.arming_summary ORDER BY 1"); }

is($copy->sql('SELECT DISTINCT armed FROM reconcile.arming_summary'), 'f', 'it is disarmed, and can be asked what arming it would do');
is(summary(), <<'SUMMARY' =~ s/\n$//r, 'before anything goes out');
approved: looked up, then held 1
asked: looked up 1
early: looked up, then sent 1
keyed: looked up, then sent 1
later: sent when due 1
locked: looked up, then sent 1
mute: handed to a person 1
open: looked up 1
reviewed: waits for a person 1
sent: looked up, then sent 1
unsent: looked up, then sent 1
SUMMARY

$copy->sql(q[BEGIN; INSERT INTO reconcile.action (operation, payload) VALUES ('unsent', '{"prepared": 1}'); PREPARE TRANSACTION 'it''s open']);
like($copy->sql_error("SELECT reconcile.arm('a test')"), qr/^55000: .*prepared transactions hold actions that may have been sent: 'it''s open'$/,
	'what is prepared is settled first');
$copy->sql(q[ROLLBACK PREPARED 'it''s open']);
$copy->sql("BEGIN; SELECT FROM reconcile.action WHERE action_id = '$action{locked}' FOR NO KEY UPDATE; PREPARE TRANSACTION 'lock'");

# Wherever the engine is with it when the server dies, it goes on afterwards.
$copy->sql("SELECT reconcile.arm('the original is given up')");
$copy->stop('immediate');
$copy->start;
is($copy->sql('SELECT disarmed_because FROM reconcile.arming'), 'it was never armed, or is a restored copy', 'it is kept why it was disarmed');
is($copy->wait_state($action{sent}, 'succeeded'), 'succeeded', 'what the original has sent is found');
is($copy->events($action{sent}), 'submit presume ask found', 'and was only asked about');
is($copy->wait_state($action{unsent}, 'succeeded'), 'succeeded', 'what it has not sent is sent');
like($copy->events($action{unsent}), qr/^submit presume (?:ask absent_once )?ask absent claim answered_accepted$/, 'after it was asked about');
is($copy->wait_state($action{early}, 'succeeded'), 'succeeded', 'likewise with a longer window');
is($copy->hasty_lookups($action{$_}), '', "\"$_\": nothing was asked before the window that begins with the arming") foreach qw(sent unsent early);
is($copy->sql(qq[SELECT min(k.asked_at) - m.armed_at >= '2.1 s' FROM reconcile.lookup k, reconcile.arming m WHERE k.action_id = '$action{early}' GROUP BY m.armed_at]),
	't', 'which is as long as the provider says');
is($copy->wait_state($action{mute}, 'manual_review'), 'manual_review', 'what cannot be asked about is for a person');
like($copy->sql("SELECT why FROM reconcile.review_queue WHERE action_id = '$action{mute}'"), qr/another copy .* may have sent it.*no lookup rule/, 'who is told why');
is($copy->status($action{later})->{state}, 'planned', 'what is not to be sent for long stays planned');
is($copy->wait_state($action{approved}, 'planned'), 'planned', 'what waited for approval is planned again');
is($copy->sql("SELECT held || ' ' || held_because || ' ' || needs FROM reconcile.action JOIN reconcile.review_queue USING (action_id) WHERE action_id = '$action{approved}'"),
	'true it waits for approval approve', 'and still waits for it') if $copy->events($action{approved}) =~ /absent/ or fail('it was asked about');
is($copy->wait_state($action{keyed}, 'succeeded'), 'succeeded', 'with a key: it is sent');
is_deeply([ map { $_->[0] } $provider->keys_seen('keyed') ], [ $key{keyed} ], 'with the key that the original would have sent');
is($copy->wait_state($action{open}, 'succeeded'), 'succeeded', 'an attempt that was open is found');
is($copy->events($action{open}), 'submit claim recover presume ask found', 'after both it and another one were taken for possible');
is($copy->wait_state($action{asked}, 'succeeded'), 'succeeded', 'a question that was open is asked again, and what did not happen is replaced');
is($copy->hasty_lookups($action{asked}), '', 'not before the window that begins with the arming');
is($copy->status($action{settled})->{state}, 'safe_to_retry', 'what was settled stays so');
$copy->sql("SELECT reconcile.replace('$action{settled}', 'a test')");
is($copy->wait_state($action{settled}, 'succeeded'), 'succeeded', 'until it is to be repeated: then the repetition of the original is found');
like($copy->events($action{settled}), qr/ replace presume ask found$/, 'by a lookup that is asked after the arming');
is($copy->status($action{reviewed})->{state}, 'manual_review', 'what was under review stays so');
$copy->wait_sql("SELECT reconcile.window_open_until('$action{reviewed}') IS NULL", 't');
$copy->sql("SELECT reconcile.resolve('$action{reviewed}', 'not_executed', 'seen there'); SELECT reconcile.replace('$action{reviewed}', 'a test')");
is($copy->wait_state($action{reviewed}, 'succeeded'), 'succeeded', 'and is sent once a person has answered for it, where nothing can be asked');

is($copy->status($action{locked})->{state}, 'planned', 'what somebody holds has not been touched');
is($copy->sql("SELECT string_agg(action_id::text, ' ') FROM reconcile.rearming"), $action{locked}, 'and alone is left to be dealt with');
$copy->sql("ROLLBACK PREPARED 'lock'");
is($copy->wait_state($action{locked}, 'succeeded'), 'succeeded', 'let go, it is found');
is($copy->events($action{locked}), 'submit presume ask found', 'and was only asked about');
is($copy->sql('SELECT count(*) FROM reconcile.rearming'), '0', 'nothing is left to be dealt with');

is($provider->summary($_)->{deliveries}, 1, "one delivery to \"$_\", by whomever") foreach qw(sent unsent early mute keyed locked open);
is($provider->summary($_)->{deliveries}, 2, "two to \"$_\": the first was lost") foreach qw(asked settled reviewed);
is($provider->summary($_)->{deliveries}, 0, "none to \"$_\"") foreach qw(later approved);
is_deeply($provider->duplicates($_), {}, "no second effect of \"$_\"") foreach @names, @others;
$copy->assert_consistent('the copy');
$copy->stop;
done_testing();
