# Pausing: everything, a provider, an operation.  It holds at the last instant, stops nothing
# but sends, and everybody can see who did it and why.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Relay;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('pause');
my $relay = ActionReconcile::Relay->new($provider->port('-', 'https'));

# Two operations at one provider, one at another; and one whose handshake we hold.
foreach my $name (qw(one two))
{
	$provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '20 s');
}
$node->define_operation('one.a', 'one');
$node->define_operation('one.b', 'one');
$node->define_operation('two.a', 'two');
$provider->preset('held', '5-normal');
$node->define_provider('held', 'https://localhost:' . $relay->port . '/s/held', ca_file => $provider->ca_file,
	connect_timeout => '60 s', attempt_timeout => '60 s');
$node->define_operation('held', 'held');

sub settles { return $node->wait_state($_[0], 'succeeded') eq 'succeeded'; }

sub next_step { return $node->sql("SELECT next_step FROM reconcile.unresolved WHERE action_id = '$_[0]'"); }

# Under this pause these operations wait, and the others do not.
sub check_scope
{
	my ($what, $pause, $resume, $why, %waits) = @_;
	$node->sql("SELECT reconcile.pause($pause)");
	my %ids = map { $_ => $node->submit($_, { under => $what }) } qw(one.a one.b two.a);
	foreach my $operation (grep { !$waits{$_} } sort keys %ids)
	{
		ok(settles($ids{$operation}), "$what: $operation goes on");
	}
	# They had been there before one that was sent, or before the engine had looked in vain.
	$node->wait_sql("SELECT count(*) FROM reconcile.health WHERE due >= " . keys %waits, '1');
	foreach my $operation (sort keys %waits)
	{
		is($node->status($ids{$operation})->{state}, 'planned', "$what: $operation waits");
		is(next_step($ids{$operation}), "it is sent when somebody resumes $why", "$what: and everybody can see for whom");
		is($node->sql("SELECT next_step_at FROM reconcile.unresolved WHERE action_id = '$ids{$operation}'"), '', "$what: not for a moment");
	}
	$node->sql("SELECT reconcile.resume($resume)");
	ok(settles($ids{$_}), "$what: $_ is sent when it is over") foreach sort keys %waits;
	return;
}

my $user = $node->sql('SELECT session_user');
check_scope('a provider', "'one', 'incident 1'", "'one'", qq{provider "one", paused by $user because: incident 1}, 'one.a' => 1, 'one.b' => 1);
check_scope('an operation', "operation => 'one.a', reason => 'incident 2'", "operation => 'one.a'",
	qq{operation "one.a", paused by $user because: incident 2}, 'one.a' => 1);
check_scope('everything', "reason => 'incident 3'", '', "everything, paused by $user because: incident 3",
	'one.a' => 1, 'one.b' => 1, 'two.a' => 1);
is($node->sql("SELECT string_agg(format('%s %s %s %s', scope, name, reason, resumed_at IS NOT NULL AND resumed_by = session_user), ', ' ORDER BY pause_id) FROM reconcile.pause_period"),
	'provider one incident 1 t, operation one.a incident 2 t, everything  incident 3 t', 'each of them was recorded');

# ---------------------------------------------------------------- again and again

$node->sql("SELECT reconcile.pause('one', 'first'), reconcile.pause('one', 'second'), reconcile.pause(reason => 'third'), reconcile.pause(reason => 'fourth')");
is($node->sql("SELECT string_agg(reason, ', ' ORDER BY reason) FROM reconcile.pause_period WHERE resumed_at IS NULL"), 'first, third', 'the first reason stays');
my $both = $node->submit('one.a', { n => 1 });
$node->sql('SELECT reconcile.resume(), reconcile.resume()');
ok(settles($node->submit('two.a', { n => 1 })), 'what is not paused otherwise goes on');
is($node->status($both)->{state}, 'planned', 'what is stays so');

# A pause holds over a restart.
$node->restart;
$node->wait_worker;
ok(settles($node->submit('two.a', { n => 2 })), 'after a restart the others go on');
is($node->status($both)->{state}, 'planned', 'and the paused one does not');
$node->sql("SELECT reconcile.resume('one'), reconcile.resume('one')");
ok(settles($both), 'resumed, it is sent');

# ---------------------------------------------------------------- at the last instant

# Claimed, connected, and its first byte not gone: that is not too late.
sub check_last_instant
{
	my ($pause, $resume, $reason) = @_;
	my $id = $node->submit('held', { reason => $reason });
	my $connection = $relay->accept;
	is($node->status($id)->{state}, 'submitted', "$reason: claimed and connected");
	$node->sql("SELECT reconcile.pause($pause)");
	my $before = $provider->deliveries('held');
	$relay->pass($connection);
	$node->wait_sql("SELECT count(*) FROM reconcile.history WHERE action_id = '$id' AND event = 'not_sent'", '1');
	is($node->transfer($id, 1)->{reason}, $reason, "$reason: refused by the last-instant check");
	is($provider->deliveries('held'), $before, "$reason: nothing was delivered");
	is($node->sql("SELECT failures FROM reconcile.provider_limits WHERE provider = 'held'"), 0, "$reason: that is no failure of the provider");
	$node->sql("SELECT reconcile.resume($resume)");
	$relay->pass($relay->accept);
	ok(settles($id), "$reason: it is sent when it is over");
	is($provider->deliveries('held'), $before + 1, "$reason: once");
	return;
}

check_last_instant("'held', 'x'", "'held'", 'the provider is paused');
check_last_instant("operation => 'held', reason => 'x'", "operation => 'held'", 'the operation is paused');
check_last_instant("reason => 'x'", '', 'everything is paused');

# ---------------------------------------------------------------- what goes on

# What has left is waited for, what is unknown is asked about.
$provider->scenario('one', { write => [ { hold_s => -1 }, { then => 'close' } ] });
my $open = $node->submit('one.a', { n => 'open' });
$provider->wait_writes('one', $provider->deliveries('one') + 1, 60);
$node->sql("UPDATE reconcile.provider SET consistency_window = '2 s' WHERE provider = 'one'");
my $lost = $node->submit('one.b', { n => 'lost' });
$node->wait_state($lost, 'outcome_unknown');
$node->sql("SELECT reconcile.pause(reason => 'x')");
$provider->release('one');
ok(settles($open), 'the answer to what has left is taken');
ok(settles($lost), 'and what is unknown is asked about and settled');
my $confirmed = $node->submit('two.a', { n => 'confirmed' });
$node->sql("SELECT reconcile.cancel('$confirmed', 'not wanted')");
is($node->status($confirmed)->{state}, 'cancelled', 'submitting and withdrawing stay possible');
$node->sql('SELECT reconcile.resume()');

# The engine pauses too.
$provider->scenario('two', { write => [ { status => 401 } ] });
my $unauthorized = $node->submit('two.a', { n => 'unauthorized' });
$node->wait_sql("SELECT paused_by FROM reconcile.provider_limits WHERE provider = 'two'", 'engine');
is($node->sql("SELECT reason FROM reconcile.pause_period WHERE resumed_at IS NULL AND paused_by = 'engine'"),
	'the provider refuses our credential: answer 401', 'a dead credential pauses in the name of the engine');
$node->sql("SELECT reconcile.resume('two')");
ok(settles($unauthorized), 'and resume() ends that too');

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
