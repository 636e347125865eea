# Case 33, the worker is gone and nobody notices: whatever the reason, health says so, with what helps; what was submitted is durable and is
# carried out, once, when the reason is gone.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $soon = 15;		# seconds in which health must have noticed

# The worker's state as health shows it, waited for.
sub wait_state_of_worker
{
	my ($node, $state, $title) = @_;
	return is($node->wait_sql('SELECT worker_state FROM reconcile.health', $state, $soon), $state, "$title: health tells");
}

# One check: level, detail and hint.
sub check
{
	my ($node, $name) = @_;
	return $node->rows("SELECT level, detail, hint FROM reconcile.health_check WHERE name = '$name'")->[0];
}

sub check_is
{
	my ($node, $name, $title, %expected) = @_;
	my $check = check($node, $name);
	is($check->{level}, $expected{level}, "$title: $name is $expected{level}");
	like($check->{detail}, $expected{detail}, "$title: what is seen");
	like($check->{hint} // '', $expected{hint}, "$title: what helps");
	return;
}

sub define
{
	my ($node, $name, %options) = @_;
	$provider->preset($name, delete $options{preset} // 'ok');
	$node->define_provider($name, $provider->http_url($name));
	$node->define_operation($name, $name, %options);
	return;
}

# Submits where nobody works: it is recorded, and says that nobody does. Gives the action's id.
sub submit_in_vain
{
	my ($node, $name, $title) = @_;
	my $id = $node->submit($name, {});
	is($node->sql("SELECT state, nobody_works_because FROM reconcile.unresolved WHERE action_id = '$id'"), 'planned|no engine is at work: see health_check',
		"$title: an action is recorded, and says that nobody works on it");
	is($node->sql("SELECT value FROM reconcile.metrics WHERE name = 'action_reconcile_engine_up'"), 0, "$title: so do the metrics");
	return $id;
}

sub is_carried_out
{
	my ($node, $name, $id, $title) = @_;
	is($node->wait_state($id, 'succeeded'), 'succeeded', "$title: then it is carried out");
	is($provider->effects($name), 1, "$title: once");
	is($node->events($id), 'submit claim answered_accepted', "$title: its history has nothing about the gap");
	is($node->sql("SELECT nobody_works_because FROM reconcile.unresolved LIMIT 1"), '', "$title: and nobody says that nobody works");
	return;
}

# ---------------------------------------------------------------- a server with the worker

my $node = ActionReconcile::Node->create('health', conf => 'max_prepared_transactions = 2');
define($node, 'shop');
$node->wait_worker;
is($node->sql('SELECT string_agg(name, \', \') FROM reconcile.health_check WHERE NOT ok'), '', 'at work: nothing is wrong');
like(check($node, 'engine')->{detail}, qr/^worker \d+ is at work; last sign of life \d+ s ago$/, 'at work: by the worker');
is($node->sql('SELECT lock_holder_pid = worker_pid, engine_up, worker_state FROM reconcile.health'), 't|t|running', 'at work: the worker is the engine');
$node->wait_sql("SELECT last_sign_of_life < clock_timestamp() - interval '2 s' FROM reconcile.health", 't');
my $signs = $node->sql('SELECT last_sign_of_life FROM reconcile.health');
$node->wait_sql("SELECT clock_timestamp() > '$signs'::timestamptz + interval '4 s' FROM reconcile.health", 't');
is($node->sql("SELECT last_sign_of_life = '$signs', engine_up FROM reconcile.health"), 't|t', 'idle: looking wakes nobody, and the engine counts as alive');

# It is taken out of the list, or ended and not to come back.
$node->set_conf('action_reconcile.databases', 'elsewhere');
wait_state_of_worker($node, 'not_listed', 'not listed');
check_is($node, 'engine', 'not listed', level => 'critical', detail => qr/action_reconcile\.databases does not name database "postgres"; last sign of life/, hint => qr/Name it in action_reconcile\.databases/);
my $id = submit_in_vain($node, 'shop', 'not listed');
$node->sql("UPDATE reconcile.action SET due_at = due_at - interval '2 min' WHERE action_id = '$id'");
check_is($node, 'overdue', 'not listed', level => 'critical', detail => qr/^for 2 min something has been due at provider shop, and nobody works on it$/, hint => qr/engine/);
my $reader = $node->sql('CREATE ROLE just_a_reader LOGIN IN ROLE reconcile_reader; SET ROLE just_a_reader; SELECT count(*) FROM reconcile.health_check WHERE NOT ok');
is($reader, 2, 'not listed: a reader without further rights sees the same');
my $run = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', "CALL reconcile.run('1 min', stop_when_idle => false)" ],
	'<', \undef, '>', \my $ignored, '2>&1');
is_carried_out($node, 'shop', $id, 'CALL run');
my $holder = $node->sql('SELECT lock_holder_pid FROM reconcile.health');
like(check($node, 'engine')->{detail}, qr/^process $holder is at work, by CALL run\(\); last sign of life \d+ s ago$/, 'CALL run: by a session');
$node->sql("SELECT pg_terminate_backend($holder)");
$run->finish;
is($node->sql('SELECT engine_up FROM reconcile.health'), 'f', 'CALL run: its session has ended');
$node->sql('ALTER SYSTEM RESET action_reconcile.databases');
$node->reload;
my $worker = $node->wait_worker;
is($node->sql('SELECT worker_state, engine_up FROM reconcile.health'), 'running|t', 'listed again: the worker is back');

# Ended again and again, it is started after a pause.
$node->sql("SELECT pg_terminate_backend($worker)");
wait_state_of_worker($node, 'failing', 'ended');
is($node->wait_sql('SELECT worker_failures > 0 FROM reconcile.health', 't'), 't', 'ended: and is counted');
$node->wait_worker($worker);

# ---------------------------------------------------------------- who is in the way

my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');

# A row.
$id = $node->submit('shop', { n => 2 }, not_before => $node->sql("SELECT clock_timestamp() + interval '1 s'"));
$session->query_safe("BEGIN; SELECT 1 FROM reconcile.action WHERE action_id = '$id' FOR UPDATE");
$node->sql("SELECT pg_stat_clear_snapshot()");
is($node->wait_sql('SELECT blocked_by FROM reconcile.health', "{$pid}"), "{$pid}", 'a row: health names who holds it');
is($node->sql('SELECT holds, state FROM reconcile.blockers(0)'), "the row of action $id, which is due|idle in transaction", 'a row: and blockers() says which');
check_is($node, 'blocked', 'a row', level => 'critical', detail => qr/^kept from a table or a row by process $pid$/, hint => qr/blockers\(\d+\)/);
$session->query_safe("PREPARE TRANSACTION 'it'");
is($node->wait_sql('SELECT blocked_by FROM reconcile.health', '{0}'), '{0}', 'a row: a prepared transaction has no process');
$node->sql("ROLLBACK PREPARED 'it'");
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a row: it is let go');
is($node->wait_sql('SELECT blocked_by FROM reconcile.health', '{}'), '{}', 'a row: nobody is in the way');

# A table that somebody waits to alter: nobody can read it, and health answers at once.
$session->query_safe('BEGIN; SELECT count(*) FROM reconcile.action');
my $alter = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'BEGIN', '-c', 'ALTER TABLE reconcile.action ADD COLUMN another integer', '-c', 'ROLLBACK' ],
	'<', \undef, '>', \$ignored, '2>&1');
my $altering = $node->wait_sql("SELECT pid FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation = 'reconcile.action'::regclass", qr/^\d+$/);
my $quick = "SET statement_timeout = '3s';";
is($node->sql("$quick SELECT blocked_by @> '{$pid,$altering}', due IS NULL, engine_up, armed FROM reconcile.health"), 't|t|t|t', 'a table: both are named, and nobody waits to see it');
is($node->sql("SELECT pid, holds, waits_for FROM reconcile.blockers(0) ORDER BY pid = $pid"),
	"$altering|table action (AccessExclusiveLock, waited for)|{$pid}\n$pid|what process $altering waits for|", 'a table: who waits for whom');
is($node->sql("$quick SELECT name FROM reconcile.health_check WHERE NOT ok AND name <> 'stalled'"), 'blocked', 'a table: what is not known is not wrong');
is($node->sql("$quick SELECT value FROM reconcile.metrics WHERE name = 'action_reconcile_blockers'"), 2, 'a table: the metrics answer, too');
is($node->sql("$quick SELECT count(*) FROM regexp_matches(reconcile.metrics_text(), '# EOF')"), 1, 'a table: also as text');
$session->query_safe('COMMIT');
$alter->finish;
is($node->wait_sql("SELECT blocked_by FROM reconcile.health", '{}'), '{}', 'a table: nobody is in the way');

# The oldest transaction.
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM reconcile.action');
is($node->sql('SELECT oldest_transaction_pid FROM reconcile.health'), $pid, 'the oldest transaction is named');
$session->query_safe('COMMIT');
$session->quit;

# ---------------------------------------------------------------- clocks, and the history

$node->sql("UPDATE reconcile.clock SET wall_at = clock_timestamp() + interval '10 min'");
is($node->sql("SELECT wall_clock_behind BETWEEN '9 min' AND '10 min' FROM reconcile.health"), 't', 'the wall clock is behind its latest reading');
check_is($node, 'clock', 'the wall clock', level => 'warning', detail => qr/^the wall clock is 9 min behind/, hint => qr/by its key/);
$node->sql("UPDATE reconcile.clock SET wall_at = clock_timestamp()");

define($node, 'mute', preset => '10-close');
$node->sql("UPDATE reconcile.provider SET consistency_window = '2 h' WHERE provider = 'mute'");
my $unknown = $node->submit('mute', {});
$node->wait_state($unknown, 'outcome_unknown');
is($node->sql("SELECT gates_late < '10 s' FROM reconcile.health"), 't', 'a gate opens when it is announced');
$node->set_conf('action_reconcile.databases', 'elsewhere');
wait_state_of_worker($node, 'not_listed', 'a gate');
$node->sql("UPDATE reconcile.clock SET elapsed_us = elapsed_us - 7200000000");
is($node->sql("SELECT gates_late BETWEEN '119 min' AND '121 min' FROM reconcile.health"), 't', 'where time was lost: so much later');
check_is($node, 'clock', 'a gate', level => 'warning', detail => qr/the next gate opens (119 min|2 h) later/, hint => qr/./);
$node->sql("UPDATE reconcile.clock SET elapsed_us = elapsed_us + 4 * 7200000000");
is($node->sql("SELECT overdue_provider, clock_timestamp() - overdue_since > '3 h' FROM reconcile.health"), 'mute|t', 'a question that nobody asks is overdue');

$node->sql("INSERT INTO reconcile.history SELECT (jsonb_populate_record(h, '{\"recorded_at\": \"2199-01-01\"}')).* FROM reconcile.history h WHERE action_id = '$unknown' AND version = 1");
check_is($node, 'partitions', 'an entry far ahead', level => 'warning', detail => qr/1 entries outside/, hint => qr/create_history_partitions/);
$node->stop;

# ---------------------------------------------------------------- no worker slot

my $full = ActionReconcile::Node->create('full', start => 0);
# One is taken by the launcher, the other by that of logical replication.
$full->append_conf('postgresql.conf', 'max_worker_processes = 2');
$full->start;
$full->sql("CREATE EXTENSION action_reconcile; SELECT reconcile.arm('test')");
define($full, 'full');
wait_state_of_worker($full, 'no_room', 'no slot');
check_is($full, 'engine', 'no slot', level => 'critical', detail => qr/all worker slots of the server are taken \(tried \d+ times\); no sign of life so far/, hint => qr/max_worker_processes/);
$id = submit_in_vain($full, 'full', 'no slot');
$full->wait_sql('SELECT worker_failures > 1 FROM reconcile.health', 't');
$full->append_conf('postgresql.conf', 'max_worker_processes = 8');
$full->restart;
is_carried_out($full, 'full', $id, 'a slot');

# Not even a launcher.
$full->append_conf('postgresql.conf', 'max_worker_processes = 0');
$full->restart;
wait_state_of_worker($full, 'no_launcher', 'no launcher');
check_is($full, 'engine', 'no launcher', level => 'critical', detail => qr/no launcher/, hint => qr/max_worker_processes/);
$full->stop;

# ---------------------------------------------------------------- not preloaded

my $plain = ActionReconcile::Node->create('plain', preload => 0);
define($plain, 'plain');
is($plain->sql('SELECT worker_state, engine_up FROM reconcile.health'), 'not_preloaded|f', 'not preloaded: health tells');
check_is($plain, 'engine', 'not preloaded', level => 'critical', detail => qr/the library is not preloaded; no sign of life so far/, hint => qr/shared_preload_libraries.*CALL reconcile\.run/);
$id = submit_in_vain($plain, 'plain', 'not preloaded');
$plain->sql("CALL reconcile.run('10 s')");
is_carried_out($plain, 'plain', $id, 'run once');
is($plain->sql('SELECT engine_up, lock_holder_pid IS NULL FROM reconcile.health'), 't|t', 'run once: for a while that counts');
like(check($plain, 'engine')->{detail}, qr/^no process is at work, and there is no worker: the library is not preloaded; last sign of life \d+ s ago$/, 'run once: and says when');
$plain->sql("UPDATE reconcile.clock SET wall_at = wall_at - interval '4 min'");
is($plain->sql('SELECT level FROM reconcile.health_check WHERE name = \'engine\''), 'critical', 'run once: but not for ever');
$plain->stop;
$provider->stop;
done_testing();
