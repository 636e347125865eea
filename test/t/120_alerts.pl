# Each alert fires when what it is about happens, and no other does: through the shipped queries, Debian's SQL exporter, and a
# real Prometheus with the shipped rules; and is silent again when it is cured.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use ActionReconcile::Monitoring;
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $source = $ENV{AR_SOURCE_DIR} // "$FindBin::RealBin/../..";
my $rules = slurp_file("$source/monitoring/action_reconcile.rules.yml");
my @alerts = $rules =~ /^  - alert: (\w+)$/mg;

# ---------------------------------------------------------------- the rules

my $promtool = ActionReconcile::Monitoring::program('promtool');
foreach my $command ([ 'check', 'rules', "$source/monitoring/action_reconcile.rules.yml" ], [ 'test', 'rules', "$source/test/monitoring/rules_test.yml" ])
{
	my $output = '';
	ok(IPC::Run::run([ $promtool, @$command ], '>', \$output, '2>&1'), "promtool @$command[0, 1]") or diag($output);
}
my $tests = slurp_file("$source/test/monitoring/rules_test.yml");
my $drills = slurp_file("$source/doc/operations.md");
foreach my $alert (@alerts)
{
	my ($rule) = $rules =~ /^  - alert: $alert\n(.*?)(?=^  - alert|\z)/ms;
	like($rule, qr/^      severity: (critical|warning)$/m, "$alert: how bad it is");
	like($rule, qr/^      summary: '.{20,}'$/m, "$alert: what it is");
	is($rule =~ /^      runbook: (.*)$/m ? $1 : '', 'doc/operations.md#' . lc $alert, "$alert: where it says what to do");
	like($drills, qr/^### $alert$/m, "$alert: it does say it");
	like($tests, qr/alertname="$alert"/, "$alert: promtool has fired it");
}

# ---------------------------------------------------------------- for real

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('watched');
$node->sql('CREATE ROLE watcher LOGIN; GRANT reconcile_reader, pg_read_all_stats TO watcher');
$provider->preset('shop', 'ok');
$node->define_provider('shop', $provider->http_url('shop'));
$node->define_operation('shop', 'shop');
$node->wait_state($node->submit('shop', { n => 1 }), 'succeeded');

my $watch = ActionReconcile::Monitoring->new($node, 'watcher');
$watch->wait_value('action_reconcile_engine_up', 1, 'the metrics come, by their own names');
$watch->wait_alerts('', 'nothing is wrong: no alert');
$watch->wait_value('action_reconcile_finished{provider="shop",state="succeeded"}', 1, 'what was done is there');
$watch->wait_value('action_reconcile_attempts_total', 1, 'and what was tried');

# A worker that cannot come back.
$node->set_conf('action_reconcile.databases', 'elsewhere');
$watch->wait_alerts('ActionReconcileEngineDown', 'the worker is gone for good');
$node->sql("ALTER SYSTEM RESET action_reconcile.databases; SELECT pg_reload_conf()");
$node->wait_worker;
$watch->wait_alerts('', 'it is back: silent again');

# Without its token it is disarmed.
my ($token) = grep { -f } glob $node->arming_dir . '/*';
rename $token, "$token.away" or die "$token: $!";
$watch->wait_alerts('ActionReconcileDisarmed', 'the token is gone');
rename "$token.away", $token or die "$token: $!";
$watch->wait_alerts('', 'the token is back: silent again');

# A trigger is off.
$node->sql('ALTER TABLE reconcile.history DISABLE TRIGGER history_no_truncate');
$watch->wait_alerts('ActionReconcileGuardMissing', 'a guard is off');
$node->sql('ALTER TABLE reconcile.history ENABLE ALWAYS TRIGGER history_no_truncate');
$watch->wait_alerts('', 'it is on: silent again');

# Somebody locks a table; and somebody alters one behind an open transaction, so that nobody could even look.
my $session = $node->background_psql('postgres');
$session->query_safe('BEGIN; LOCK TABLE reconcile.action IN SHARE MODE');
$watch->wait_alerts('ActionReconcileBlocked', 'a table is locked');
$session->query_safe('ROLLBACK; BEGIN; SELECT count(*) FROM reconcile.action');
my $alter = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', 'BEGIN', '-c', 'ALTER TABLE reconcile.action ADD COLUMN another integer', '-c', 'ROLLBACK' ],
	'<', \undef, '>', \my $ignored, '2>&1');
$node->wait_sql("SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'", 1);
$watch->wait_alerts('ActionReconcileBlocked', 'a table waits to be altered');
$watch->wait_value('action_reconcile_blockers', 2, 'by two sessions: who waits, and whom it waits for');
$session->query_safe('ROLLBACK');
$alter->finish;
$session->quit;
$watch->wait_alerts('', 'both have ended: silent again');

# An engine that holds its lock and does nothing.
my $worker = $node->worker_pid;
kill 'STOP', $worker;
my $late = $node->submit('shop', { n => 2 });
$node->sql("UPDATE reconcile.action SET due_at = due_at - interval '10 min' WHERE action_id = '$late'");
$watch->wait_alerts('ActionReconcileOverdue', 'something is due and nobody works on it');
cmp_ok($watch->value('action_reconcile_overdue_seconds'), '>', 600, 'for ten minutes');
kill 'CONT', $worker;
is($node->wait_state($late, 'succeeded'), 'succeeded', 'the engine goes on');
is($provider->effects('shop'), 2, 'and does it once');
$watch->wait_alerts('', 'silent again');

# A credential that is refused.
$provider->scenario('bank', { write => [ { status => 401 } ] });
$node->define_provider('bank', $provider->http_url('bank'));
$node->define_operation('bank', 'bank');
$node->submit('bank', {});
$watch->wait_alerts('ActionReconcileCredentialRefused', 'a credential is refused');
$node->sql("SELECT reconcile.resume('bank')");
$watch->wait_alerts('', 'it was put right: silent again');

# Somebody pauses everything.
$node->sql("SELECT reconcile.pause(reason => 'a test')");
$watch->wait_alerts('ActionReconcilePaused', 'everything is paused');
$node->sql('SELECT reconcile.resume()');

# A provider that cannot be reached.
$provider->scenario('far', { own_port => 1 });
$node->define_provider('far', $provider->http_url('far'), breaker_after => 1, breaker_pause => '1 h', breaker_pause_max => '1 h');
$node->define_operation('far', 'far');
$provider->close_ports('far');
my $far = $node->submit('far', {});
$watch->wait_alerts('ActionReconcileBreakerOpen', 'a provider cannot be reached');
$provider->open_ports('far');
$node->sql("SELECT reconcile.resume('far')");
is($node->wait_state($far, 'succeeded'), 'succeeded', 'a probe gets through');
$watch->wait_alerts('', 'silent again');

# More is uncertain than may be; a person decides, and is contradicted.
$provider->preset('mute', '10-close');
$node->define_provider('mute', $provider->http_url('mute'), ambiguity_budget => 1);
$node->define_operation('mute', 'mute', lookup => 0);
my $id = $node->submit('mute', {});
$node->wait_state($id, 'manual_review');
$watch->wait_alerts('ActionReconcileBudgetUsed', 'the ambiguity budget is used up');
$node->wait_sql("SELECT reconcile.window_open_until('$id') IS NULL", 't');
$node->sql("SELECT reconcile.resolve('$id', 'not_executed', 'it is not in their list')");
$node->sql("SELECT reconcile.confirm(client_reference, 'object 1', '{}', provider => 'mute') FROM reconcile.action WHERE action_id = '$id'");
$watch->wait_alerts('ActionReconcileIncident', 'a decision was wrong');
$watch->wait_value('action_reconcile_incidents_open{kind="contradiction"}', 1, 'a contradiction');
$node->sql("SELECT reconcile.close_incident(incident_id, 'looked into') FROM reconcile.incident");
$watch->wait_alerts('', 'somebody has closed it: silent again');


$watch->stop;
$node->stop;
$provider->stop;
done_testing();
