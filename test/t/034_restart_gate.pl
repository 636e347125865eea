# The durable clock: whatever restarts, a gate never opens before its window has
# really passed, by a monotonic clock outside of the server; and it does open.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use ActionReconcile::Crash qw(crash story_problems);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $limit_s = 0.3;		# of the attempt
my $late_s = 0.2;
my $window_s = 2.5;

my $provider = ActionReconcile::Provider->new;
my $begin = monotonic();
my $node = ActionReconcile::Node->create('clock', conf => 'action_reconcile.drain_timeout = 0');

sub monotonic { return clock_gettime(CLOCK_MONOTONIC); }

# The database's clock counts elapsed time, and no more than has elapsed.
sub check_clock
{
	my ($title) = @_;
	my $counted = $node->sql('SELECT elapsed_us / 1000000.0 FROM reconcile.clock');
	cmp_ok($counted, '<=', monotonic() - $begin, "$title: the clock is not ahead");
	return;
}

# Lets time pass in which nothing may be asked.
sub quiet_until
{
	my ($title, $name, $moment) = @_;
	my $left = $moment - monotonic();
	ok($left <= 0 || !$provider->wait_reads($name, 1, $left), "$title: nothing is asked too early");
	return;
}

# disturb gets the action and returns nothing, or the moment from which the window counts anew
sub gate_through
{
	my ($title, $name, $disturb, %more) = @_;
	my $limit = $more{limit} // $limit_s;

	$provider->preset($name, '10-hang');
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => "$limit s",
		late_arrival_max => "$late_s s", consistency_window => "$window_s s");
	$node->define_operation($name, $name, on_absent => 'replace');

	my $start = monotonic();
	my $id = $node->submit($name, {});
	ok($provider->wait_effects($name, 1, 20), "$title: carried out");
	$node->wait_state($id, 'outcome_unknown') unless $more{open};
	check_clock("$title, before");
	my $anew = $disturb->($name, $title);
	my $end = $more{open} ? $anew : $start + $limit_s;

	quiet_until($title, $name, $end + $late_s + $window_s);
	check_clock("$title, after");
	is($node->wait_state($id, 'succeeded', 30), 'succeeded', "$title: the gate does open");
	if (defined $more{within})
	{
		cmp_ok(monotonic() - $end - $late_s - $window_s, '<', $more{within}, "$title: and soon");
	}
	is($node->events($id), $more{open} ? 'submit claim recover ask found' : 'submit claim answer_lost ask found', "$title: the story");
	is(join("\n", story_problems($node, $provider, $name, $id)), '', "$title: nothing twice, nothing lost");
	return;
}

# Half of the window passes, quietly.
sub half
{
	my ($name, $title) = @_;
	quiet_until("$title, first half", $name, monotonic() + $window_s / 2);
	return;
}

# Within one lifetime of the postmaster no time is lost.
gate_through('undisturbed', 'calm', sub { }, within => 3);
gate_through('worker killed', 'worker', sub { half(@_); crash($node, 'worker'); return; }, within => 3);

# In another one nobody knows how much time has passed: late, but never early.
gate_through('fast restart', 'fast', sub { half(@_); $node->restart; return; });
gate_through('postmaster killed', 'postmaster', sub { half(@_); crash($node, 'postmaster'); return; });
gate_through('two shutdowns', 'two', sub {
	foreach my $mode (qw(immediate fast))
	{
		half(@_);
		$node->stop($mode);
		half(@_);
		$node->start;
	}
	return;
});

# A machine that was started anew: the stored reading belongs to another count.
gate_through('another boot, longer up', 'boot', sub {
	$node->sql('UPDATE reconcile.clock SET monotonic_us = 0');
	crash($node, 'postmaster');
	return;
});
gate_through('another boot, shorter up', 'reboot', sub {
	$node->sql('UPDATE reconcile.clock SET monotonic_us = 1000000000000000');
	crash($node, 'postmaster');
	return;
});

# An attempt found open ended, for all we know, when it was found.
gate_through('worker killed with the request open', 'open',
	sub { my $killed = monotonic(); crash($node, 'worker'); return $killed; }, open => 1, limit => 1);
gate_through('postmaster killed with the request open', 'opener',
	sub { my $killed = monotonic(); crash($node, 'postmaster'); return $killed; }, open => 1, limit => 1);

# Also when it stood still for longer than the attempt could have lasted.
gate_through('worker stopped, then killed', 'stopped', sub {
	my ($name, $title) = @_;
	kill 'STOP', $node->worker_pid;
	quiet_until("$title, stopped", $name, monotonic() + 2.5);
	my $killed = monotonic();
	crash($node, 'worker');
	return $killed;
}, open => 1, limit => 1);

# The window never shrinks below what was stored at the dispatch.
my $dispatched = monotonic();
gate_through('killed at once', 'early', sub { crash($node, 'worker'); return $dispatched + 4; }, open => 1, limit => 4);

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing();
