# A superuser changes our tables while the engine works: the engine waits, says
# what it waits for, goes on by itself, and sends nothing twice.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(elapsed story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('ddl', conf => 'action_reconcile.drain_timeout = 1s');
my $month = $node->sql("SELECT 'reconcile.history_' || to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM')");
my $worker = $node->wait_worker;

sub define
{
	my ($name, $preset, %more) = @_;
	$preset ? $provider->preset($name, $preset) : $provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '30 s', max_in_flight => 32, %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

sub session
{
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("SET client_min_messages = 'error'");
	return $session;
}

sub cpu_ticks
{
	open my $handle, '<', "/proc/$worker/stat" or return -1;
	return <$handle> =~ /^\d+ \(.*\) (?:\S+ ){11}(\d+) (\d+) / ? $1 + $2 : -1;
}

# ---------------------------------------------------------------- a stream of actions, and every kind of DDL

my $total = 0;
define('stream');
define('open', '10-held');
my $open = $node->submit('open', {});
ok($provider->wait_writes('open', 1, 20), 'a request is open all the time');

my @ddl = (
	'ALTER TABLE reconcile.action ADD COLUMN note_of_mine text',
	"ALTER TABLE reconcile.attempt ADD COLUMN note_of_mine text DEFAULT 'x'",
	'ALTER TABLE reconcile.history ADD COLUMN note_of_mine integer',
	"CREATE INDEX mine_1 ON reconcile.action ((payload ->> 'n'))",
	"CREATE INDEX CONCURRENTLY mine_2 ON reconcile.action (submitted_at)",
	"CREATE INDEX mine_3 ON $month (actor)",
	'VACUUM FULL reconcile.action',
	'VACUUM FULL reconcile.attempt',
	"VACUUM FULL $month",
	'CLUSTER reconcile.action USING action_pkey',
	'ANALYZE', 'VACUUM reconcile.action',
	'REINDEX TABLE reconcile.action', "REINDEX TABLE $month", 'REINDEX TABLE CONCURRENTLY reconcile.action', 'REINDEX TABLE CONCURRENTLY reconcile.attempt',
	"ALTER TABLE reconcile.action ALTER COLUMN note_of_mine TYPE varchar(10)",
	'ALTER TABLE reconcile.action SET (fillfactor = 70)',
	'ALTER TABLE reconcile.action DROP COLUMN note_of_mine', 'ALTER TABLE reconcile.attempt DROP COLUMN note_of_mine',
	'ALTER TABLE reconcile.history DROP COLUMN note_of_mine',
	'DROP INDEX reconcile.mine_1', 'DROP INDEX CONCURRENTLY reconcile.mine_2', 'CREATE STATISTICS mine ON operation, provider FROM reconcile.action',
	'CREATE FUNCTION public.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$',
	'CREATE TRIGGER look AFTER UPDATE ON reconcile.action FOR EACH ROW EXECUTE FUNCTION public.look()', 'DROP TRIGGER look ON reconcile.action',
	'ALTER EXTENSION action_reconcile DROP STATISTICS mine');
pop @ddl;	# what is ours is not theirs to take out

foreach my $ddl (@ddl)
{
	# Some before it, some while it works.
	my @batch = map { [ 'stream', { n => ++$total } ] } 1 .. 3;
	$node->submit_all(@batch);
	my ($code, undef, $err) = $node->psql('postgres', $ddl);
	is($code, 0, $ddl) or diag($err);
}
is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'stream' AND state = 'succeeded'", $total, 60), $total,
	"all $total actions are sent and recorded");
is($node->worker_pid, $worker, 'it is still the same worker');
is($node->status($open)->{state}, 'submitted', 'the open request is still open');
$provider->release('open');
is($node->wait_state($open, 'succeeded'), 'succeeded', 'and gets its answer');
is($node->events($open), 'submit claim answered_accepted', 'and nothing else');
is($provider->deliveries('stream'), $total, 'nothing is sent twice');
ok(!$node->log_contains('ERROR:.*cached plan|nothing can be claimed'), 'no plan has become useless');

# ---------------------------------------------------------------- a table is locked for long

foreach my $case ([ 'reconcile.action', 'ACCESS EXCLUSIVE' ], [ 'reconcile.history', 'SHARE' ], [ 'reconcile.provider', 'EXCLUSIVE' ],
	[ 'reconcile.inbox', 'SHARE ROW EXCLUSIVE' ], [ $month, 'ACCESS EXCLUSIVE' ])
{
	my ($table, $mode) = @$case;
	(my $name = lc "$table-$mode") =~ s/[^a-z0-9]+/-/g;
	my $title = "$table locked in $mode mode";
	my $offset = $node->log_offset;
	my $locker = session();

	# An answer is on its way, and another action is due.
	define($name, '10-held');
	define("$name-due");
	my $id = $node->submit($name, {});
	ok($provider->wait_writes($name, 1, 20), "$title: a request is open");
	my $due = $node->submit("$name-due", {}, not_before => $node->sql("SELECT clock_timestamp() + interval '0.7 s'"));
	$locker->query_safe("BEGIN; LOCK TABLE $table IN $mode MODE");
	$provider->release($name);
	my $because = '';
	ok(wait_true(sub { $because = reason(); $because ne '' }, 30), "$title: it is told that it waits");
	like($because, qr/locked|lock timeout/, "$title: and for what");
	$node->wait_sql('SELECT clock_timestamp() > ' . ActionReconcile::Node::literal($node->sql("SELECT clock_timestamp() + interval '1 s'")) . '::timestamptz', 't');
	is($provider->deliveries("$name-due"), 0, "$title: nothing is sent that could not be recorded");
	my $before = cpu_ticks();
	$node->sql('SELECT pg_sleep(1)');
	cmp_ok(cpu_ticks() - $before, '<', 30, "$title: it waits without turning");
	is($node->worker_pid, $worker, "$title: the worker lives");
	$locker->query_safe('ROLLBACK');
	$locker->quit;
	is($node->wait_state($id, 'succeeded', 20), 'succeeded', "$title: over, and the answer is recorded");
	is($node->events($id), 'submit claim answered_accepted', "$title: the one that came");
	is($node->wait_state($due, 'succeeded', 20), 'succeeded', "$title: over, and what is due is sent");
	is($provider->deliveries($name), 1, "$title: once");
	is($provider->deliveries("$name-due"), 1, "$title: and once");
	is($node->wait_sql('SELECT stalled_because IS NULL FROM reconcile.engine()', 't', 10), 't', "$title: health forgets it");
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset);
	my @lines = $log =~ /(the engine (?:waits|cannot write|met an error).*)/g;
	cmp_ok(scalar @lines, '<=', 3, "$title: the log says it and does not repeat it") or diag(join "\n", @lines);
}

# Does not touch a table that may be locked.
sub reason
{
	return $node->sql("SELECT coalesce(stalled_because, '') FROM reconcile.engine()");
}

# ---------------------------------------------------------------- a request that is about to leave

# Its connection is made when the table is locked already: it must not leave.
my $relay = ActionReconcile::Crash->relay($provider->port('default', 'https'));
$provider->scenario('late');
$node->define_provider('late', 'https://localhost:' . $relay->port . '/s/late', ca_file => $provider->ca_file,
	connect_timeout => '20 s', attempt_timeout => '20 s');
$node->define_operation('late', 'late', on_absent => 'replace');
my $id = $node->submit('late', {});
$relay->wait_connection;
my $locker = session();
$locker->query_safe('BEGIN; LOCK TABLE reconcile.attempt IN ACCESS EXCLUSIVE MODE');
$relay->let_through;
ok(wait_true(sub { reason() ne '' }, 20), 'locked before the first byte: it waits');
is($provider->deliveries('late'), 0, 'locked before the first byte: nothing leaves');
$locker->query_safe('ROLLBACK');
$locker->quit;
is($node->wait_state($id, 'succeeded', 30), 'succeeded', 'locked before the first byte: sent when it is free');
like($node->events($id), qr/^submit claim not_sent (?:claim not_sent )*claim answered_accepted$/, 'locked before the first byte: the attempt before was not sent');
is($provider->deliveries('late'), 1, 'locked before the first byte: once');

$node->assert_consistent('in the end');
is($node->worker_pid, $worker, 'it is the same worker in the end');
$node->stop;
$provider->stop;
done_testing();
