# It must never harm the server it lives in: databases and extensions come and
# go while the worker is idle and while a request is open, shutdowns end in
# time, a dead worker comes back, and without the library preloaded the same
# engine runs in a session.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background elapsed finish_background story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('host', conf => 'action_reconcile.drain_timeout = 1s');
my $postmaster = $node->sql('SELECT pg_postmaster_start_time()');

# A statement that must succeed, and soon.
sub soon
{
	my ($title, $statement, $limit, $database) = @_;
	my ($code, $out, $err);
	my $seconds = elapsed(sub { ($code, $out, $err) = $node->psql($database // 'postgres', $statement); });

	is($code, 0, "$title: $statement") or diag($err);
	cmp_ok($seconds, '<', $limit // 3, "$title: in time");
	return;
}

# Defines what does not answer its first write, and the operation for it.
sub define_hanging
{
	my ($name, %more) = @_;
	$provider->preset($name, '10-hang');
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '30 s', %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

# An action with an open request.
sub open_request
{
	my ($name) = @_;
	my $id = $node->submit($name, {});
	ok($provider->wait_effects($name, 1, 20), "$name: a request is open");
	return $id;
}

sub check_settled
{
	my ($title, $name, $story, @ids) = @_;
	foreach my $id (@ids)
	{
		is($node->wait_state($id, 'succeeded'), 'succeeded', "$title: settled");
		like($node->events($id), $story, "$title: the story");
	}
	is(join("\n", story_problems($node, $provider, $name, @ids)), '', "$title: nothing twice, nothing lost");
	$node->assert_consistent($title);
	return;
}

# ---------------------------------------------------------------- databases and extensions come and go

sub come_and_go
{
	my ($title, $name) = @_;
	my $worker = $node->wait_worker;
	my $open = $name =~ /open/;

	define_hanging($name);
	my $id = $open ? open_request($name) : undef;

	soon($title, 'CREATE DATABASE other');
	soon($title, 'ALTER DATABASE other RENAME TO another');
	soon($title, 'DROP DATABASE another');
	soon($title, 'CREATE DATABASE other2');
	soon($title, 'CREATE EXTENSION action_reconcile', 3, 'other2');
	soon($title, 'DROP EXTENSION action_reconcile', 3, 'other2');
	soon($title, 'DROP DATABASE other2');
	$node->reload;
	soon($title, 'CHECKPOINT');
	soon($title, 'VACUUM reconcile.action');
	is($node->worker_pid, $worker, "$title: it is still the same worker");
	if ($open)
	{
		is($node->status($id)->{state}, 'submitted', "$title: and its request is still open");
		is($node->events($id), 'submit claim', "$title: nothing was made up about it");
	}

	my $offset = $node->log_offset;
	soon($title, 'DROP EXTENSION action_reconcile');
	$node->wait_sql("SELECT count(*) FROM pg_stat_activity WHERE pid = $worker", '0', 10);
	if ($open)
	{
		$node->wait_for_log(qr/reference "\Q$id\E" could not be stored/, $offset);
		pass("$title: the log says what was open");
	}
	soon($title, 'CREATE EXTENSION action_reconcile');
	isnt($node->wait_worker($worker), '0', "$title: a worker comes for the new one");
	$node->sql("SELECT reconcile.arm('test')");

	# The new one does its work, and knows nothing of the old request.
	$provider->scenario("after$name");
	$node->define_provider('after', $provider->http_url("after$name"));
	$node->define_operation('after', 'after');
	my $next = $node->submit('after', {});
	check_settled($title, "after$name", qr/^submit claim answered_accepted$/, $next);
	is($provider->deliveries($name), $open ? 1 : 0, "$title: the old request was not sent again");
	ok(!$node->log_contains('PANIC|was terminated by signal|exited with exit code [1-9]', $offset), "$title: nobody crashed");
	return;
}

come_and_go('idle', 'idle');
come_and_go('with an open request', 'open');

is($node->sql('SELECT pg_postmaster_start_time()'), $postmaster, 'the server never restarted');

# ---------------------------------------------------------------- a second database

$node->sql('CREATE DATABASE second');
$node->sql("CREATE EXTENSION action_reconcile; SELECT reconcile.arm('test')", 'second');
{
	local $node->{ar_database} = 'second';
	my $here = $node->wait_worker;
	isnt($here, '0', 'a second database has a worker');
	isnt($here, $node->sql('SELECT worker_pid FROM reconcile.engine()', 'postgres'), 'a second database: of its own');
	define_hanging('second', attempt_timeout => '1 s');
	check_settled('a second database', 'second', qr/^submit claim answer_lost ask found$/, open_request('second'));

	define_hanging('doomed');
	open_request('doomed');
	soon('a database with a worker', 'DROP DATABASE second WITH (FORCE)', 6);
	is($provider->deliveries('doomed'), 1, 'a database with a worker: its request was sent once');
}
is($node->sql('SELECT pg_postmaster_start_time()'), $postmaster, 'the server still never restarted');

# ---------------------------------------------------------------- a worker comes back

define_hanging('ended');
my $worker = $node->wait_worker;
my $id = open_request('ended');
my $seconds = elapsed(sub {
	$node->sql("SELECT pg_terminate_backend($worker)");
	isnt($node->wait_worker($worker), '0', 'a terminated worker: another comes'); });
cmp_ok($seconds, '<', 10, 'a terminated worker: soon');
check_settled('a terminated worker', 'ended', qr/^submit claim answer_lost ask found$/, $id);
is($node->history($id)->[2]{evidence}{transfer}{reason}, 'the engine stopped', 'a terminated worker: the history says why');

# ---------------------------------------------------------------- shutdown

define_hanging('shutdown');
$id = open_request('shutdown');
cmp_ok(elapsed(sub { $node->stop('fast') }), '<', 6, 'fast shutdown with a request open: in time');
$node->start;
$node->wait_worker;
like($node->events($id), qr/^submit claim answer_lost/, 'fast shutdown: unknown before the server was down');
check_settled('fast shutdown', 'shutdown', qr/^submit claim answer_lost ask found$/, $id);

$node->set_conf('action_reconcile.drain_timeout', '10s');
$provider->preset('drained', '10-answer-late', hold_s => 1);
$node->define_provider('drained', $provider->http_url('drained'), attempt_timeout => '30 s');
$node->define_operation('drained', 'drained');
$id = open_request('drained');
cmp_ok(elapsed(sub { $node->stop('fast') }), '<', 8, 'fast shutdown with an answer under way: no longer than needed');
$node->start;
is($node->events($id), 'submit claim answered_accepted', 'fast shutdown: the answer was waited for');
$node->stop;

# ---------------------------------------------------------------- without the preloaded library

$node = ActionReconcile::Node->create('session', preload => 0, conf => 'action_reconcile.drain_timeout = 1s');
is($node->sql('SELECT worker_pid IS NULL AND armed FROM reconcile.health'), 't', 'not preloaded: no worker, but armed');

define_hanging('session', attempt_timeout => '0.5 s', consistency_window => '3 s');
$id = $node->submit('session', {});
is($node->status($id)->{state}, 'planned', 'not preloaded: recorded and waiting');
is($node->sql('CALL reconcile.run()'), '|1|0|0', 'run(): one sent, none answered, none asked');
is($node->status($id)->{state}, 'outcome_unknown', 'run(): the answer is lost');
ok(wait_true(sub { $node->sql('CALL reconcile.run()'); $node->status($id)->{state} eq 'succeeded' }), 'run(): settled by later calls');
check_settled('run()', 'session', qr/^submit claim answer_lost ask found$/, $id);

# The whole story in one call.
define_hanging('whole', attempt_timeout => '0.5 s');
$id = $node->submit('whole', {});
is($node->sql("CALL reconcile.run('3 s', false)"), '|1|0|1', 'run() for a while: sent and asked');
check_settled('run() for a while', 'whole', qr/^submit claim answer_lost ask found$/, $id);

# Where it could not commit it refuses, and has claimed nothing.
$provider->scenario('refused');
$node->define_provider('refused', $provider->http_url('refused'));
$node->define_operation('refused', 'refused');
$id = $node->submit('refused', {});
$node->sql(<<'SQL');
CREATE FUNCTION public.call_run() RETURNS void LANGUAGE plpgsql AS $$
DECLARE h integer; s integer; a integer; q integer;
BEGIN
	CALL reconcile.run('10 s', true, h, s, a, q);
END $$;
CREATE PROCEDURE public.set_run() LANGUAGE plpgsql SET work_mem = '1MB' AS $$
DECLARE h integer; s integer; a integer; q integer;
BEGIN
	CALL reconcile.run('10 s', true, h, s, a, q);
END $$;
CREATE PROCEDURE public.guarded_run() LANGUAGE plpgsql AS $$
DECLARE h integer; s integer; a integer; q integer;
BEGIN
	CALL reconcile.run('10 s', true, h, s, a, q);
EXCEPTION WHEN division_by_zero THEN
	NULL;
END $$;
CREATE PROCEDURE public.loop_run() LANGUAGE plpgsql AS $$
DECLARE h integer; s integer; a integer; q integer; r record;
BEGIN
	FOR r IN SELECT * FROM pg_class LIMIT 3 LOOP
		CALL reconcile.run('10 s', true, h, s, a, q);
	END LOOP;
END $$;
SQL
like($node->sql_error("BEGIN; CALL reconcile.run(); COMMIT;"), qr/^25001/, 'run() in a transaction block is refused');
like($node->sql_error('SELECT public.call_run();'), qr/^25001/, 'run() in a function is refused');
like($node->sql_error('CALL public.set_run();'), qr/^25001/, 'run() in a procedure with SET is refused');
like($node->sql_error("SELECT reconcile.run('10 s');"), qr/^42809/, 'run() is no function');
like($node->sql_error('CALL public.guarded_run();'), qr/^(?:25001|2D000)/, 'run() in a block with an exception clause is refused');
is($node->events($id), 'submit', 'a refused run() has claimed nothing');
is($node->sql('SELECT lock_holder_pid IS NULL FROM reconcile.health'), 't', 'and is not the engine');

# Where a procedure may commit, it works.
is($node->sql_error('CALL public.loop_run();'), '', 'run() in a procedure with an open cursor');
check_settled('run() in a procedure', 'refused', qr/^submit claim answered_accepted$/, $id);

# A call that ends in the middle: cancelled by a timeout, by a person, terminated.
foreach my $end ('statement_timeout', 'pg_cancel_backend', 'pg_terminate_backend')
{
	my $name = lc $end;
	define_hanging($name);
	$node->sql("UPDATE reconcile.provider SET attempt_timeout = '3 s' WHERE provider = '$name'");
	$id = $node->submit($name, {});
	my $timeout = $end eq 'statement_timeout' ? '1s' : '0';
	my $run = background($node, "SET statement_timeout = '$timeout'", 'CALL reconcile.run()');
	ok($provider->wait_effects($name, 1, 20), "$end: a request is open");
	my $holder = $node->wait_sql('SELECT lock_holder_pid FROM reconcile.engine()', qr/^\d+$/);
	$node->sql("SELECT $end($holder)") if $end =~ /^pg_/;
	my (undef, $err) = finish_background($run);
	like($err, $end eq 'pg_terminate_backend' ? qr/57P01/ : qr/57014/, "$end: the call ends");
	is($node->status($id)->{state}, 'submitted', "$end: the attempt is open");
	$node->wait_sql('SELECT lock_holder_pid IS NULL FROM reconcile.engine()', 't');
	ok(wait_true(sub { $node->sql('CALL reconcile.run()'); $node->status($id)->{state} eq 'succeeded' }), "$end: the next call takes over");
	check_settled($end, $name, qr/^submit claim recover ask found$/, $id);
}

# One engine at a time; and the extension may go from under it.
define_hanging('vanish');
$id = $node->submit('vanish', {});
my $offset = $node->log_offset;
my $run = background($node, 'CALL reconcile.run()');
ok($provider->wait_effects('vanish', 1, 20), 'vanish: a request is open');
my $holder = $node->wait_sql('SELECT lock_holder_pid FROM reconcile.engine()', qr/^\d+$/);
is($node->sql('CALL reconcile.run()'), "$holder|0|0|0", 'a second run() names the first');
soon('run() with an open request', 'DROP EXTENSION action_reconcile');
my ($out, $err) = finish_background($run);
unlike($err, qr/ERROR|FATAL/, 'run() without its extension ends in peace');
ok($node->log_contains(qr/reference "\Q$id\E" could not be stored/, $offset), 'and the log says what was open');
is($provider->deliveries('vanish'), 1, 'and nothing was sent again');

$node->stop;
$provider->stop;
done_testing();
