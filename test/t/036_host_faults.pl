# Faults of the host's day: rows made by hand, instants without end, a cancelled
# launcher, a locked partition, a standby that is gone, an extension that is
# replaced, an arming that is not committed yet.  Each ends in an error or in a
# wait that can be ended, never in a dead or deaf worker.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background elapsed finish_background story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('faults', conf => <<'CONF');
action_reconcile.drain_timeout = 1s
wal_level = replica
max_wal_senders = 2
CONF

# ---------------------------------------------------------------- helpers

# A session that stays open between its statements.
sub session
{
	my ($name) = @_;
	my %session = (in => '', out => '', err => '', said => 0);

	$session{handle} = IPC::Run::start(
		[ 'psql', '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $node->connstr('postgres') . " application_name=$name" ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{err}, IPC::Run::timeout(60));
	return \%session;
}

# Sends statements without waiting for them; with wait_said() afterwards.
sub say_to
{
	my ($session, $statements) = @_;
	$session->{said}++;
	$session->{in} .= "$statements\n\\echo said $session->{said}\n";
	$session->{handle}->pump while length $session->{in};
	return;
}

sub wait_said
{
	my ($session) = @_;
	$session->{handle}->pump until $session->{out} =~ /^said $session->{said}$/m;
	return $session->{err};
}

sub ask
{
	my ($session, $statements) = @_;
	say_to($session, $statements);
	return wait_said($session);
}

sub leave
{
	my ($session) = @_;
	$session->{in} .= "\\q\n";
	$session->{handle}->finish;
	return;
}

sub define
{
	my ($name, $preset, %more) = @_;
	$preset ? $provider->preset($name, $preset) : $provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => $more{attempt_timeout} // '60 s');
	$node->define_operation($name, $name);
	return;
}

# A new action of an operation that answers at once, and is sent at once.
sub sent_soon
{
	my ($title, $name) = @_;
	my $id;
	my $seconds = elapsed(sub {
		$id = $node->submit($name, {}, on_duplicate => 'new');
		is($node->wait_state($id, 'succeeded', 15), 'succeeded', "$title: an action is sent"); });
	cmp_ok($seconds, '<', 5, "$title: and promptly");
	return;
}

sub open_request
{
	my ($name) = @_;
	my $id = $node->submit($name, {});
	ok($provider->wait_writes($name, 1, 20), "$name: a request is open");
	return $id;
}

sub launcher_pid
{
	return $node->wait_sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'action_reconcile launcher'", qr/^\d+$/, 15);
}

sub is_one_worker
{
	my ($title, $database) = @_;
	is($node->sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND datname = '$database'"),
		'1', "$title: one worker in $database");
	return;
}

# Context switches and CPU time of a process: what does not sleep makes them grow.
sub exertion
{
	my ($pid) = @_;
	my $sum = 0;
	foreach my $file ("/proc/$pid/status", "/proc/$pid/stat")
	{
		open my $handle, '<', $file or return -1;
		my $text = do { local $/; <$handle> };
		$sum += $1 while $text =~ /ctxt_switches:\s+(\d+)/g;
		$sum += $1 + $2 if $text =~ /^\d+ \(.*\) (?:\S+ ){11}(\d+) (\d+) /;
	}
	return $sum;
}

sub sleeps
{
	my ($pid) = @_;
	return wait_true(sub {
		my $before = exertion($pid);
		$node->sql('SELECT 1') for 1 .. 3;
		return $before > 0 && exertion($pid) == $before; }, 10);
}

# ---------------------------------------------------------------- an arming that is open for long

define('plain');
define('held', '10-held');
my $worker = $node->wait_worker;
sent_soon('at first', 'plain');

# The worker goes on under the old token, and writes its file anew while a
# request is open: that must not remove the file of the token to come.
my ($token_file) = glob($node->arming_dir . '/*.armed');
my $token_written = (stat $token_file)[1];
my $arming = session('arming');
is(ask($arming, "BEGIN; SELECT reconcile.arm('open for long');"), '', 'an open arming');
my ($fresh_file) = grep { $_ ne $token_file } glob($node->arming_dir . '/*.armed');
ok(defined $fresh_file, 'an open arming: its file is there');
my $held = open_request('held');

# ---------------------------------------------------------------- a row made by hand

$node->sql('CREATE ROLE clerk; GRANT reconcile_submitter TO clerk');
foreach my $call ([ 'render_request', '22004' ], [ 'try_render_request', '42501' ])
{
	like($node->sql_error("SET SESSION AUTHORIZATION clerk; SELECT reconcile.$call->[0]"
			. "(jsonb_populate_record(NULL::reconcile.operation, '{}'), 'r', '{}');"),
		qr/^$call->[1]/, "$call->[0]() with a row of NULLs is an error");
}
is($node->worker_pid, $worker, 'a row of NULLs: the worker lives');
ok(!$node->log_contains('was terminated by signal'), 'a row of NULLs: nobody crashed');

# ---------------------------------------------------------------- intervals that only look positive

# Comparison counts a year as 360 days, arithmetic as twelve months.
my $negative = '-1 year 361 days';
foreach my $definition (
	$node->provider_sql('odd', 'http://localhost', consistency_window => $negative),
	$node->provider_sql('odd', 'http://localhost', attempt_timeout => $negative),
	$node->operation_sql('odd', 'plain', retry_pause => $negative),
	$node->operation_sql('odd', 'plain', lookup => { consistency_window => $negative, window_source => 'measured' }))
{
	my ($table, $column) = $definition =~ /reconcile\.(lookup_rule) .*'$negative'/s ? $1
	  : $definition =~ /reconcile\.(\w+)/;
	like($node->sql_error("BEGIN; $definition COMMIT;"), qr/^23514/, "$table: an interval of '$negative' is refused");
}

# ---------------------------------------------------------------- instants without end

foreach my $instant (qw(infinity -infinity))
{
	foreach my $column (qw(not_before not_after))
	{
		like($node->sql_error("SELECT reconcile.submit('plain', '{}', on_duplicate => 'new', $column => '$instant');"),
			qr/^23514/, "$column $instant is refused");
	}
}
$node->submit('plain', { n => 'far' }, not_before => $node->sql("SELECT now() + interval '40 days'"));
$node->submit('plain', { n => 'end' }, not_after => $node->sql("SELECT now() + interval '250000 years'"),
	not_before => $node->sql("SELECT now() + interval '240000 years'"));
sent_soon('a far not_before', 'plain');
is($node->worker_pid, $worker, 'a far not_before: it is still the same worker');
ok(sleeps($worker), 'a far not_before: and it sleeps');

# ---------------------------------------------------------------- a definition is deleted under a submit

$node->define_operation('doomed', 'plain', lookup => 0);
my $submit = session('submit');
is(ask($submit, "BEGIN; SELECT reconcile.submit('doomed', '{}');"), '', 'a submit that is not committed');
my $delete = session('delete');
say_to($delete, "DELETE FROM reconcile.operation WHERE operation = 'doomed';");
is($node->wait_sql("SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'delete'", 'Lock', 10),
	'Lock', 'a DELETE of its operation waits');
is(ask($submit, 'COMMIT;'), '', 'the submit is committed');
like(wait_said($delete), qr/ERROR:\s+55000/, 'and then the DELETE is refused');
leave($_) for $submit, $delete;

# ---------------------------------------------------------------- a locked partition

my $partition = 'reconcile.history_' . $node->sql("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')");
my $locker = session('locker');
my $waits = q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND pid = };

define('locked', '10-held');
my $id = open_request('locked');
my $offset = $node->log_offset;
is(ask($locker, "BEGIN; LOCK TABLE $partition IN SHARE MODE;"), '', 'a partition is locked');
$provider->release('locked');
is($node->wait_sql("$waits$worker", 't'), 't', 'a locked partition: the worker waits for it');
ok(wait_true(sub { $node->log_contains('due to lock timeout', $offset) }, 20), 'a locked partition: but not for ever');
is(ask($locker, 'ROLLBACK;'), '', 'the lock is gone');
is($node->wait_state($id, 'succeeded'), 'succeeded', 'the lock is gone: the worker goes on');
is($node->events($id), 'submit claim answered_accepted', 'the lock is gone: with the answer it had');
is($node->worker_pid, $worker, 'the lock is gone: it is still the same worker');

# ---------------------------------------------------------------- an error in somebody's trigger under CALL run()

# A server of its own, while the other one's file grows old.
my $preloaded = $node;
$node = ActionReconcile::Node->create('session', preload => 0, conf => 'action_reconcile.drain_timeout = 1s');
$node->sql(<<'SQL');
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.event = 'answered_accepted' AND
		EXISTS (SELECT FROM reconcile.action a WHERE a.action_id = NEW.action_id AND a.payload ->> 'n' = '3') THEN
		RAISE EXCEPTION 'number 3 is unlucky';
	END IF;
	RETURN NULL;
END $$;
SQL
foreach my $case ([ 'history', 'INSERT' ], [ 'action', 'UPDATE' ])
{
	my ($table, $change) = @$case;
	my $title = "a trigger on $table";

	define($table);
	$node->sql("CREATE TRIGGER refuse AFTER $change ON reconcile.$table FOR EACH ROW EXECUTE FUNCTION public.refuse()");
	my @ids = $node->submit_all(map { [ $table, { n => $_ } ] } 1 .. 6);
	my $run = background($node, 'CALL reconcile.run()');
	is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = '$table' AND state = 'succeeded'", '5', 20),
		'5', "$title: the answers of the others are recorded");
	$node->sql("DROP TRIGGER refuse ON reconcile.$table");
	my ($out, $err) = finish_background($run);
	is($err =~ /(ERROR.*)/ ? $1 : '', '', "$title: CALL ends in peace");
	is($node->events($_), 'submit claim answered_accepted', "$title: no answer is lost") for @ids;
	is($provider->deliveries($table), 6, "$title: six requests");
	is(join("\n", story_problems($node, $provider, $table, @ids)), '', "$title: nothing twice, nothing lost");
}
ok($node->log_contains('number 3 is unlucky'), 'the log says what it was');
$node->assert_consistent('with triggers');

$node->stop;
$node = $preloaded;

# ---------------------------------------------------------------- the arming is committed

ok(wait_true(sub { (stat $token_file)[1] != $token_written }, 20), 'an open arming: the worker writes its own file anew');
ok(-e $fresh_file, 'an open arming: its file is still there');
sent_soon('an open arming', 'plain');
is(ask($arming, 'COMMIT;'), '', 'the arming is committed');
leave($arming);
$provider->release('held');
is($node->wait_state($held, 'succeeded'), 'succeeded', 'after the arming: what was open gets its answer');
is($node->sql('SELECT armed, disarmed_because FROM reconcile.health'), 't|', 'after the arming: armed');
sent_soon('after the arming', 'plain');

# ---------------------------------------------------------------- a worker that waits for a lock is terminated

define('locked2', '10-held', attempt_timeout => '2 s');
$id = open_request('locked2');
is(ask($locker, "BEGIN; LOCK TABLE $partition IN SHARE MODE;"), '', 'the partition is locked again');
$provider->release('locked2');
is($node->wait_sql("$waits$worker", 't'), 't', 'locked again: the worker waits for it');
$node->sql("SELECT pg_terminate_backend($worker)");
my $seconds = elapsed(sub {
	is($node->wait_sql("SELECT count(*) FROM pg_stat_activity WHERE pid = $worker", '0', 15), '0', 'locked again: a terminated worker ends'); });
cmp_ok($seconds, '<', 3, 'locked again: while it waits');
is(ask($locker, 'ROLLBACK;'), '', 'the lock is gone again');
leave($locker);
is($node->wait_state($id, 'succeeded'), 'succeeded', 'the lock is gone again: the next worker finds out');
is(join("\n", story_problems($node, $provider, 'locked2', $id)), '', 'the lock is gone again: nothing twice, nothing lost');
$worker = $node->wait_worker($worker);

# ---------------------------------------------------------------- the launcher is cancelled and terminated

my $launcher = launcher_pid();
is($node->sql("SELECT pg_cancel_backend($launcher)"), 't', 'the launcher is cancelled');
$node->sql('CREATE ROLE squatter; CREATE DATABASE second');
$node->sql('CREATE SCHEMA reconcile AUTHORIZATION squatter', 'second');
like($node->sql_error('CREATE EXTENSION action_reconcile;', 'second'), qr/^42P06/, 'a schema of somebody else is refused');
$node->sql('DROP SCHEMA reconcile; CREATE EXTENSION action_reconcile', 'second');
{
	local $node->{ar_database} = 'second';
	isnt($node->wait_worker, '0', 'a cancelled launcher: it starts the worker of another database');
}
is(launcher_pid(), $launcher, 'a cancelled launcher: it lives');
is($node->worker_pid, $worker, 'a cancelled launcher: the worker lives');
is_one_worker('a cancelled launcher', $_) for 'postgres', 'second';
sent_soon('a cancelled launcher', 'plain');

$node->sql("SELECT pg_terminate_backend($launcher)");
isnt($node->wait_sql("SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE backend_type = 'action_reconcile launcher'"
		. " AND pid <> $launcher AND wait_event IS NOT NULL), 0)", qr/^[1-9]/, 20),
	'0', 'a terminated launcher: another comes');
is($node->worker_pid, $worker, 'a terminated launcher: the worker lives');
is_one_worker('a terminated launcher', $_) for 'postgres', 'second';
sent_soon('a terminated launcher', 'plain');
$node->sql("SELECT pg_terminate_backend($worker)");
my $next = $node->wait_worker($worker);
isnt($next, '0', 'a worker that the former launcher has started comes back');
is_one_worker('the new launcher', $_) for 'postgres', 'second';
sent_soon('the new launcher', 'plain');

# ---------------------------------------------------------------- a database of another encoding

$node->sql(q{CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0});
like($node->sql_error('CREATE EXTENSION action_reconcile;', 'latin'), qr/^0A000/, 'a database in LATIN1 is refused');

# ---------------------------------------------------------------- the extension is replaced in one transaction

$node->assert_consistent('before it is replaced');
foreach my $round (1 .. 3)
{
	# The launcher's pause grows with every end of a worker, so there are two of them.
	my %former;
	foreach my $database ('postgres', 'second')
	{
		local $node->{ar_database} = $database;
		$former{$database} = $node->wait_worker;
		$node->sql('BEGIN; DROP EXTENSION action_reconcile; CREATE EXTENSION action_reconcile; COMMIT;', $database);
	}
	foreach my $database ('postgres', 'second')
	{
		local $node->{ar_database} = $database;
		isnt($node->wait_worker($former{$database}), '0', "replaced, round $round: a worker for the new one in $database");
	}
}
$node->sql("SELECT reconcile.arm('replaced')");
define('plain');
sent_soon('replaced', 'plain');
is_one_worker('replaced', $_) for 'postgres', 'second';

# ---------------------------------------------------------------- a standby that is gone

define('standby', '10-hang');
$id = open_request('standby');
is($node->wait_state($id, 'submitted'), 'submitted', 'a request is open');
$node->set_conf('synchronous_standby_names', 'nobody');
# It is in force when a commit waits.
$node->sql('SET synchronous_commit = local; CREATE TABLE public.replicated ()');
my $commit = background($node, "SET application_name = 'commit'",
	'DO $$ BEGIN LOOP INSERT INTO public.replicated DEFAULT VALUES; COMMIT; END LOOP; END $$');
is($node->wait_sql("SELECT wait_event FROM pg_stat_activity WHERE application_name = 'commit'", 'SyncRep', 20),
	'SyncRep', 'a standby that is gone: commits wait');
{
	local $ENV{PGCTLTIMEOUT} = 20;
	$seconds = elapsed(sub { $node->stop('fast', fail_ok => 1) });
}
cmp_ok($seconds, '<', 8, 'a standby that is gone: a fast shutdown ends');
finish_background($commit);
$node->append_conf('postgresql.auto.conf', "synchronous_standby_names = ''");
$node->start;
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a standby that is gone: settled after the restart');
like($node->events($id), qr/^submit claim answer_lost ask found$/, 'a standby that is gone: unknown before the server was down');
is(join("\n", story_problems($node, $provider, 'standby', $id)), '', 'a standby that is gone: nothing twice, nothing lost');
$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
