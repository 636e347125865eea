# The wall clock is set by a day while the server runs, back and forth, the
# server is restarted in between, and its processes stand still for a while:
# no gate opens early, by a clock that nobody sets; none waits for long; and a
# key whose age is in doubt is not used.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use ActionReconcile::Crash qw(story_problems);
use ActionReconcile::Keys;
use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::WallClock;

my $day = 86_400;
my $limit_s = 0.3;		# of an attempt
my $late_s = 0.2;
my $window_s = 2;

my $provider = ActionReconcile::Provider->new;
my $clock = ActionReconcile::WallClock->new;
my $node = ActionReconcile::Node->create('wall', env => $clock->environment, conf => 'action_reconcile.drain_timeout = 0');

sub monotonic { return clock_gettime(CLOCK_MONOTONIC); }

# The real clock is what the test goes by; the server's is another one.
sub check_wall
{
	my ($title, $seconds) = @_;
	my $ahead = $node->sql('SELECT extract(epoch FROM clock_timestamp())::bigint') - time;
	cmp_ok(abs($ahead - $seconds), '<', 10, "$title: the server's wall clock is $seconds s ahead");
	return;
}

sub define
{
	my ($name, %more) = @_;
	my $operation = delete $more{operation} // {};
	my $preset = delete $more{preset} // '10-hang';

	$provider->preset($name, $preset);
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => "$limit_s s",
		late_arrival_max => "$late_s s", consistency_window => "$window_s s", %more);
	$node->define_operation($name, $name, on_absent => 'replace', %$operation);
	return;
}

# A lost answer, and something happens while its window is open.
sub gate_through
{
	my ($title, $name, $disturb, %more) = @_;

	define($name);
	my $start = monotonic();
	my $id = $node->submit($name, {});
	ok($provider->wait_effects($name, 1, 20), "$title: carried out");
	$node->wait_state($id, 'outcome_unknown');
	$disturb->();
	my $opens = $start + $limit_s + $late_s + $window_s;
	my $left = $opens - monotonic();
	ok($left <= 0 || !$provider->wait_reads($name, 1, $left), "$title: nothing is asked too early");
	is($node->wait_state($id, 'succeeded', 30), 'succeeded', "$title: the gate does open");
	cmp_ok(monotonic() - $opens, '<', $more{within} // 5, "$title: and soon") unless $more{late};
	is(join("\n", story_problems($node, $provider, $name, $id)), '', "$title: nothing twice, nothing lost");
	return;
}

$node->wait_worker;
check_wall('at first', 0);

# ---------------------------------------------------------------- the window of a lost answer

gate_through('a day ahead', 'ahead', sub { $clock->step($day); check_wall('a day ahead', $day); });
gate_through('back again', 'back', sub { $clock->step(0); check_wall('back again', 0); });
gate_through('a day behind', 'behind', sub { $clock->step(-$day); check_wall('a day behind', -$day); });
gate_through('two days ahead at once', 'leap', sub { $clock->step($day); $node->sql('SELECT reconcile.wake()'); });
gate_through('a restart, and another day', 'restart', sub {
	$node->stop('fast');
	$clock->step(2 * $day);
	$node->start;
	check_wall('a restart', 2 * $day);
}, late => 1);
gate_through('a restart, and days back', 'restart_back', sub {
	$node->stop('fast');
	$clock->step(-$day);
	$node->start;
	check_wall('a restart, back', -$day);
}, late => 1);
$clock->step(0);

# ---------------------------------------------------------------- what is queued

# A day later by the wall clock it is due; before, it is not. Nobody wakes the engine.
define('morrow', preset => 'ok');
my $morrow = $node->submit('morrow', {}, not_before => $node->sql("SELECT now() + interval '23 hours'"));
my $slept_from = monotonic();
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE action_id = '$morrow' AND state = 'planned'", '1');
$clock->step($day);

# Meanwhile: processes that stand still, as those of a suspended machine.
define('still');
my $start = monotonic();
my $id = $node->submit('still', {});
ok($provider->wait_effects('still', 1, 20), 'the worker stands still: carried out');
$node->wait_state($id, 'outcome_unknown');
my $worker = $node->worker_pid;
kill 'STOP', $worker;
my $until = monotonic() + 3;
ok(!$provider->wait_reads('still', 1, $until - monotonic()), 'the worker stands still: nothing is asked');
kill 'CONT', $worker;
is($node->wait_state($id, 'succeeded', 20), 'succeeded', 'the worker goes on: settled');
cmp_ok(monotonic() - $until, '<', 5, 'the worker goes on: at once');

# The whole server, and the wall clock runs on beside it.
define('asleep');
$start = monotonic();
$id = $node->submit('asleep', {});
ok($provider->wait_effects('asleep', 1, 20), 'the server stands still: carried out');
$node->wait_state($id, 'outcome_unknown');
my @processes = $node->_processes;
kill 'STOP', @processes;
$clock->step(2 * $day);
my $opens = $start + $limit_s + $late_s + $window_s;
ok(!$provider->wait_reads('asleep', 1, 1), 'the server stands still: nothing is asked');
kill 'CONT', @processes;
my $left = $opens - monotonic();
ok($left <= 0 || !$provider->wait_reads('asleep', 1, $left), 'the server goes on: not too early');
is($node->wait_state($id, 'succeeded', 20), 'succeeded', 'the server goes on: settled');

is($node->wait_state($morrow, 'succeeded', 45), 'succeeded', 'what was for tomorrow went when tomorrow came');
cmp_ok(monotonic() - $slept_from, '<', 45, 'and the engine noticed by itself');

# A clock that was wrong and is set right: what was queued by the wrong one is not kept for days.
define('queue', preset => 'ok');
$node->sql("SELECT reconcile.pause('queue', 'the clock is wrong')");
my $queued = $node->submit('queue', { n => 1 });
my $kept = $node->submit('queue', { n => 2 }, not_before => $node->sql("SELECT now() - interval '1 hour'"));
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'queue' AND state = 'planned'", '2');
$clock->step(0);
$node->sql("SELECT reconcile.resume('queue')");
is($node->wait_state($queued, 'succeeded', 40), 'succeeded', 'queued before the clock was set back: goes');
is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '$kept'"), 'planned', "and a caller's not_before is kept to");

# ---------------------------------------------------------------- the key

# The same request is sent again only while its key is surely alive; otherwise the provider is asked.
my $k = ActionReconcile::Keys->new($node, $provider);
sub key_through
{
	my ($title, $name, $seconds, $deliveries) = @_;

	$k->define($name, { write => [ { then => 'close' } ] }, lookups => [ $k->replay(consistency_window => '2 s'), {} ],
		provider => { consistency_window => '0.3 s', late_arrival_max => '0.1 s' });
	my $action = $k->submit($name);
	$node->wait_state($action, 'outcome_unknown');
	$clock->step($seconds);
	is($node->wait_state($action, 'succeeded', 30), 'succeeded', "$title: settled");
	is($provider->deliveries($name), $deliveries, "$title: " . ($deliveries > 1 ? 'sent again, with its key' : 'asked, not sent again'));
	is($provider->effects($name), 1, "$title: one effect");
	return;
}
# It has been two days ahead: somebody has to say that this was wrong, as the manual tells.
$node->sql('UPDATE reconcile.clock SET wall_at = clock_timestamp()');
key_through('the clock is left alone', 'key', 0, 2);
key_through('the clock is set a day ahead', 'key_ahead', $day, 1);
$node->sql('UPDATE reconcile.clock SET wall_at = clock_timestamp()');
key_through('the clock is set a minute back', 'key_back', $day - 60, 1);

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing();
