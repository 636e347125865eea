# Case 43. The database cannot be written while the provider works: a full disk, no
# memory for locks, no room for WAL.  An answer that came back is kept and
# stored later, or what was open is unknown after a crash; nothing new is sent
# meanwhile; each action has one effect.  (Read-only: 141; locked tables: 142.)

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background crash finish_background story_problems wait_true);
use ActionReconcile::FullDisk;
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $disk = ActionReconcile::FullDisk->new;
my $node = ActionReconcile::Node->create('full', env => $disk->environment, conf => <<'CONF');
action_reconcile.drain_timeout = 1s
autovacuum = off
wal_recycle = off
max_locks_per_transaction = 10
max_connections = 20
CONF

# An answer so large, and so little alike, that it needs a page of its own.
sub large
{
	return join '', map { chr 33 + int rand 90 } 1 .. 7000;
}

# Holds its answers back until release().
sub define
{
	my ($name, %more) = @_;
	$provider->scenario($name, { write_default => { hold_s => -1, headers => { 'X-Noise' => 'n' }, body => { id => 'ef_{ref}', noise => large() } } });
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '30 s', max_in_flight => 400, %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

sub define_prompt
{
	my ($name) = @_;
	$provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '10 s', max_in_flight => 400);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

sub submit_many
{
	my ($name, $count, $more) = @_;
	return split /\n/, $node->sql("SELECT s.action_id FROM generate_series(1, $count) n,"
			. " LATERAL reconcile.submit('$name', jsonb_build_object('n', n)" . ($more // '') . ') s');
}

sub reason
{
	return $node->sql("SELECT coalesce(stalled_because, '') FROM reconcile.engine()");
}

sub wait_reason
{
	my ($title, $pattern) = @_;
	ok(wait_true(sub { reason() =~ $pattern }, 30), "$title: health says why") or diag(reason());
	return;
}

sub count_state
{
	my ($name, $state) = @_;
	return $node->sql("SELECT count(*) FROM reconcile.action WHERE operation = '$name' AND state = '$state'");
}

sub all_succeed
{
	my ($title, $name, $count, $seconds) = @_;
	is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = '$name' AND state = 'succeeded'", $count, $seconds // 60), $count,
		"$title: all of $name succeed");
	return;
}

# What everybody of a kind has been through.
sub stories
{
	my ($name) = @_;
	return $node->sql("SELECT string_agg(DISTINCT story, ' / ') FROM (SELECT string_agg(h.event, ' ' ORDER BY h.version) AS story"
			. " FROM reconcile.history h JOIN reconcile.action a USING (action_id) WHERE a.operation = '$name' GROUP BY a.action_id) s");
}

# ---------------------------------------------------------------- full after the send, before the result

{
	my $title = 'full after the send';
	my $worker = $node->wait_worker;
	define('after');
	define_prompt('due');
	my @ids = submit_many('after', 20);
	ok($provider->wait_effects('after', 20, 30), "$title: twenty requests are open");
	my ($due) = submit_many('due', 1, ", not_before => clock_timestamp() + '1.5 s'");
	my $offset = $node->log_offset;
	$disk->fill('base');
	$provider->release('after');
	wait_reason($title, qr/could not extend file/);
	$node->wait_sql("SELECT clock_timestamp() > due_at + interval '2 s' FROM reconcile.action WHERE action_id = '$due'", 't');
	cmp_ok(count_state('after', 'submitted'), '>', 0, "$title: answers cannot be stored");
	is($provider->deliveries('due'), 0, "$title: and nothing new is sent");
	is($node->worker_pid, $worker, "$title: the worker lives");
	is($node->sql('SELECT armed FROM reconcile.health'), 't', "$title: it is not disarmed by it");
	$disk->free;
	all_succeed($title, 'after', 20);
	all_succeed($title, 'due', 1);
	is(stories('after'), 'submit claim answered_accepted', "$title: no answer is lost");
	is($provider->deliveries('after'), 20, "$title: nothing is sent again");
	is($node->worker_pid, $worker, "$title: the worker lived through it");
	is(reason(), '', "$title: health forgets it");
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset);
	my @lines = $log =~ /(the engine cannot write.*)/g;
	cmp_ok(scalar @lines, '<=', 5, "$title: the log is not filled as well") or diag(join "\n", @lines);
	like($log, qr/the engine can write to the database again/, "$title: and says when it is over");
	is(join("\n", story_problems($node, $provider, 'after', @ids)), '', "$title: nothing twice, nothing lost");
}

# ---------------------------------------------------------------- full, and then a crash

foreach my $how ('worker', 'immediate')
{
	my $title = "full, then a crash ($how)";
	define("crash-$how", attempt_timeout => '6 s');
	my @ids = submit_many("crash-$how", 20);
	ok($provider->wait_effects("crash-$how", 20, 30), "$title: twenty requests are open");
	$disk->fill('base');
	$provider->release("crash-$how");
	wait_reason($title, qr/could not extend file/);
	my $stored = count_state("crash-$how", 'succeeded');
	$disk->free if $how eq 'immediate';
	$node->kill9($node->worker_pid) if $how eq 'worker';
	$disk->free;
	crash($node, 'immediate') if $how eq 'immediate';
	all_succeed($title, "crash-$how", 20, 90);
	is($provider->deliveries("crash-$how"), 20, "$title: nothing is sent again");
	like(stories("crash-$how"), qr/submit claim recover ask found/, "$title: what was not stored was unknown, and was looked up");
	is(join("\n", story_problems($node, $provider, "crash-$how", @ids)), '', "$title: nothing twice, nothing lost");
}

# ---------------------------------------------------------------- full before the intent

{
	my $title = 'full before the intent';
	define_prompt('before');
	my @ids = submit_many('before', 300, ", not_before => clock_timestamp() + '3 s'");
	$disk->fill('base');
	wait_reason($title, qr/could not extend file/);
	is($provider->deliveries('before'), 0, "$title: nothing is sent");
	is(count_state('before', 'planned'), '300', "$title: nothing is claimed");
	$disk->free;
	all_succeed($title, 'before', 300);
	is($provider->deliveries('before'), 300, "$title: each is sent once");
	is(stories('before'), 'submit claim answered_accepted', "$title: in one go");
}

# ---------------------------------------------------------------- no memory for locks

{
	my $title = 'no memory for locks';
	my $worker = $node->wait_worker;
	define('locks');
	define_prompt('locks-due');
	my ($id) = submit_many('locks', 1);
	ok($provider->wait_effects('locks', 1, 30), "$title: a request is open");
	my ($due) = submit_many('locks-due', 1, ", not_before => clock_timestamp() + '1 s'");
	my $due_by_now = time + 3;
	my $offset = $node->log_offset;
	my $greedy = $node->background_psql('postgres', on_error_stop => 0);
	$greedy->query('SELECT count(pg_advisory_lock(n)) FROM generate_series(1, 100000) n');
	$provider->release('locks');
	# Nobody can connect now.
	ok(wait_true(sub { $node->log_contains('the engine cannot write to the database and sends nothing: out of shared memory', $offset) }, 30),
		"$title: the log says why");
	wait_true(sub { time > $due_by_now });
	is($provider->deliveries('locks-due'), 0, "$title: nothing new is sent");
	$greedy->quit;
	all_succeed($title, 'locks', 1);
	all_succeed($title, 'locks-due', 1);
	is($node->events($id), 'submit claim answered_accepted', "$title: the answer was kept");
	is($node->worker_pid, $worker, "$title: the worker lived through it");
}

# ---------------------------------------------------------------- no temporary files

{
	$node->set_conf('work_mem', '64kB');
	$node->set_conf('temp_file_limit', '0');
	define_prompt('temp');
	submit_many('temp', 300);
	all_succeed('no temporary files', 'temp', 300);
	$node->set_conf($_, undef) foreach 'work_mem', 'temp_file_limit';
}

# ---------------------------------------------------------------- run() with a full disk

{
	my $title = 'full under run()';
	$node->set_conf('action_reconcile.databases', 'none');
	$node->wait_sql('SELECT lock_holder_pid IS NULL FROM reconcile.engine()', 't');
	define('called', attempt_timeout => '6 s');
	my @ids = submit_many('called', 20);
	my $run = background($node, "CALL reconcile.run('5 s', false)");
	ok($provider->wait_effects('called', 20, 30), "$title: twenty requests are open");
	$disk->fill('base');
	$provider->release('called');
	my ($out, $err) = finish_background($run);
	like($err, qr/WARNING:.*the engine sends nothing: could not extend file/, "$title: it says so");
	unlike($err, qr/ERROR|FATAL/, "$title: and ends in peace");
	$disk->free;
	$node->set_conf('action_reconcile.databases', undef);
	all_succeed($title, 'called', 20, 90);
	is($provider->deliveries('called'), 20, "$title: nothing is sent again");
	is(join("\n", story_problems($node, $provider, 'called', @ids)), '', "$title: nothing twice, nothing lost");
}

# ---------------------------------------------------------------- no room for WAL

{
	my $title = 'no room for WAL';
	$node->wait_worker;
	define('wal', attempt_timeout => '6 s');
	my @ids = submit_many('wal', 5);
	ok($provider->wait_effects('wal', 5, 30), "$title: five requests are open");
	my $postmaster = PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/ ? $1 : 0;
	$node->sql('CREATE TABLE public.bulk (t text)');
	$disk->fill('pg_wal');
	# All that is there is used up.
	$node->psql('postgres', 'INSERT INTO public.bulk SELECT repeat(md5(n::text), 50) FROM generate_series(1, 40000) n');
	$provider->release('wal');
	ok(wait_true(sub { $node->log_contains('PANIC:.*could not write to file "pg_wal') }, 60), "$title: the server panics");
	ok(wait_true(sub { !kill 0, $postmaster }, 60), "$title: and cannot come back as long as there is none");
	$disk->free;
	$node->start_after_kill9;
	$node->wait_worker;
	all_succeed($title, 'wal', 5, 90);
	is($provider->deliveries('wal'), 5, "$title: nothing is sent again");
	is(stories('wal'), 'submit claim recover ask found', "$title: all were unknown, and looked up");
	is(join("\n", story_problems($node, $provider, 'wal', @ids)), '', "$title: nothing twice, nothing lost");
}

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
