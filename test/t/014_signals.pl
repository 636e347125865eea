# Signals while requests are open, lookups and hung names included: storms of
# them change nothing, and a worker that is told to end does so in bounded
# time, leaves what it cannot know as unknown, and nothing is sent twice.
use strict;
use warnings;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::SlowResolver;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = ActionReconcile::Node->create('signals', env => ActionReconcile::SlowResolver::environment());
my $provider = ActionReconcile::Provider->new;
my %patient = (attempt_timeout => '40 s', connect_timeout => '20 s');

$node->define_provider('hung', 'http://hang.invalid', %patient);
$node->define_operation('hung', 'hung', retry_pause => '1 h', retry_pause_max => '1 h');

# Actions whose requests the provider has, and holds.
sub open_requests
{
	my ($name, $count, $step) = @_;
	$provider->scenario($name, { write_default => $step });
	$node->define_provider($name, $provider->http_url($name), %patient);
	$node->define_operation($name, $name);
	my @ids = $node->submit_all(map { [ $name, { n => $_ } ] } 1 .. $count);
	ok($provider->wait_writes($name, $count, 30), "$name: the provider has the requests");
	return @ids;
}

# One more whose name is being resolved.
sub resolving
{
	my ($name) = @_;
	my $id = $node->submit('hung', { name => $name });
	is($node->wait_state($id, 'submitted'), 'submitted', "$name: a name is being resolved");
	return $id;
}

sub gone_after
{
	my ($pid, $start, $seconds, $name) = @_;
	usleep(10_000) while -e "/proc/$pid" && time - $start < 30;
	my $took = time - $start;
	cmp_ok($took, '<', $seconds, "$name: the process ends in time");
	note(sprintf('%s: it took %.2f s', $name, $took));
	return;
}

# All settled, each sent once, each executed once.
sub settled_once
{
	my ($name, $first_end, @ids) = @_;
	foreach my $id (@ids)
	{
		is($node->wait_state($id, 'succeeded'), 'succeeded', "$name: settled");
		like($node->events($id), qr/^submit claim $first_end/, "$name: after it ended as it had to");
		is(scalar @{ $node->attempt($id) }, 1, "$name: by one attempt");
	}
	my $summary = $provider->summary($name);
	is($summary->{deliveries}, scalar @ids, "$name: each was delivered once");
	is($summary->{effects}, scalar @ids, "$name: each was executed once");
	is_deeply($summary->{duplicates}, {}, "$name: no reference has two effects");
	return;
}

sub not_sent
{
	my ($name, $id) = @_;
	$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$id'", 'planned');
	is($node->transfer($id)->{proves}, 'not_sent', "$name: what was still resolving is proven unsent");
	return;
}

my %hold = (hold_s => -1);
my %never = (then => 'hang');

subtest 'storm' => sub {
	my $worker = $node->wait_worker;
	my @ids = open_requests('storm', 8, {%hold});
	my $hung = resolving('storm');
	$provider->scenario('asked', { write_default => { then => 'close' }, read => [ ({ then => 'hang' }) x 3 ] });
	$node->define_provider('asked', $provider->http_url('asked'), %patient);
	$node->define_operation('asked', 'asked', lookup => { timeout => '40 s' });
	my @asked = $node->submit_all(map { [ 'asked', { n => $_ } ] } 1 .. 3);
	ok($provider->wait_reads('asked', 3, 30), 'three lookups are open');

	# Each question in between lets the worker run, so that signals do not only pile up.
	my $sent = 0;
	foreach my $round (1 .. 30)
	{
		foreach my $signal (('HUP', 'USR1', 'INT') x 20)
		{
			$sent += kill $signal, $worker;
		}
		kill 'HUP', $node->{_pid};
		$node->sql('SELECT 1');
	}
	is($sent, 1800, 'the worker lives through the storm');
	$provider->release($_) foreach 'storm', 'asked';
	settled_once('storm', 'answered_accepted$', @ids);
	settled_once('asked', 'answer_lost ask', @asked);
	not_sent('storm', $hung);
	is($node->worker_pid, $worker, 'it is the same worker');
};

subtest 'drained' => sub {
	$node->set_conf('action_reconcile.drain_timeout', '20s');
	my $worker = $node->wait_worker;
	my @ids = open_requests('drained', 4, {%hold});
	my $start = time;
	kill 'TERM', $worker;
	my $later = $node->submit('drained', { n => 'later' });
	$provider->release('drained');
	gone_after($worker, $start, 5, 'drained');
	my $next = $node->wait_worker($worker);
	$provider->wait_writes('drained', 5, 30);
	$provider->release('drained');
	settled_once('drained', 'answered_accepted$', @ids, $later);
	my $epochs = $node->sql("SELECT count(DISTINCT epoch) FROM reconcile.attempt WHERE provider = 'drained'");
	is($epochs, 2, 'a worker that ends claims nothing more');
};

foreach my $how ('SIGTERM', 'SIGTERM storm', 'pg_terminate_backend')
{
	(my $name = lc $how) =~ tr/ /-/;
	subtest $how => sub {
		$node->set_conf('action_reconcile.drain_timeout', '500ms');
		my $worker = $node->wait_worker;
		my @ids = open_requests($name, 4, {%never});
		my $hung = resolving($name);
		my $start = time;
		if ($how eq 'pg_terminate_backend')
		{
			is($node->sql("SELECT pg_terminate_backend($worker)"), 't', 'told by SQL');
		}
		else
		{
			kill 'TERM', $worker foreach 1 .. ($how =~ /storm/ ? 500 : 1);
		}
		gone_after($worker, $start, 2, $name);
		settled_once($name, 'answer_lost ask', @ids);
		not_sent($name, $hung);
		isnt($node->wait_worker($worker), $worker, 'another worker has taken over');
	};
}

subtest 'fast shutdown' => sub {
	$node->set_conf('action_reconcile.drain_timeout', '500ms');
	my $worker = $node->wait_worker;
	my @ids = open_requests('shutdown', 4, {%never});
	my $hung = resolving('shutdown');
	my $start = time;
	$node->stop('fast');
	cmp_ok(time - $start, '<', 5, 'the server stops in time');
	ok(!-e "/proc/$worker", 'the worker is gone');
	$node->start;
	settled_once('shutdown', 'answer_lost ask', @ids);
	not_sent('shutdown', $hung);
};

unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/terminated by signal|PANIC|TRAP/, 'nothing crashed');
$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
