# pg_cron, the real one, does what the worker and an administrator would do
# otherwise: it runs the engine each minute in a database without the worker,
# and maintains it.  It starts jobs when a minute begins, so all of it happens in
# one minute.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Cases qw(lost);
use ActionReconcile::Crash qw(elapsed);
use ActionReconcile::Node;
use ActionReconcile::Past qw(stage_past);
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('cron', preload => 0, arm => 0, conf => <<'CONF');
shared_preload_libraries = 'pg_cron'
cron.database_name = 'postgres'
cron.log_run = on
CONF
# It connects as a client does, as the role whose job it is.
$node->append_conf('postgresql.conf', "cron.host = '" . $node->host . "'");
$node->restart;

sub jobs { return $node->sql('SELECT string_agg(jobname || \' | \' || schedule || \' | \' || command, E\'\n\' ORDER BY jobid DESC) FROM cron.job'); }

# The status of the newest run of a job.
sub run_of
{
	my ($job) = @_;
	return $node->rows("SELECT d.status, d.return_message, d.runid FROM cron.job_run_details d JOIN cron.job j USING (jobid) WHERE j.jobname = '$job postgres' ORDER BY d.runid DESC LIMIT 1")->[0] // { status => 'none' };
}

# ---------------------------------------------------------------- what is registered, where, by whom

like($node->sql_error('SELECT reconcile.schedule_jobs()'), qr/^55000: pg_cron is not in this database/, 'without the extension nothing is scheduled');
$node->sql('CREATE DATABASE other');
$node->sql('CREATE EXTENSION action_reconcile', 'other');
my (undef, undef, $elsewhere) = $node->psql('other', 'SELECT reconcile.schedule_jobs()');
like($elsewhere, qr/pg_cron works from database "postgres", not from this one/, 'from another database it cannot be done');
my @statements = $elsewhere =~ /(SELECT cron\.schedule_in_database\(.*?\);)/g;
is(scalar @statements, 2, 'but what is to be done there is told');

$node->sql('CREATE EXTENSION pg_cron; CREATE ROLE dba LOGIN; GRANT reconcile_admin TO dba');
sub as_dba { return $node->psql('postgres', $_[0], extra_params => [ '-U', 'dba' ]); }
my (undef, undef, $refused) = as_dba('SELECT reconcile.schedule_jobs()');
like($refused, qr/role "dba" may not schedule jobs.*GRANT USAGE ON SCHEMA cron TO dba/s, 'whoever may not schedule jobs is told what to grant');
$node->sql('GRANT USAGE ON SCHEMA cron TO dba');
my $both = "reconcile run postgres | * * * * * | CALL reconcile.run('55 seconds', stop_when_idle => false)\nreconcile maintain postgres | 23 3 * * * | CALL reconcile.maintain()";
as_dba('SELECT reconcile.schedule_jobs()') foreach 1, 2;
is(join("\n", sort split /\n/, jobs()), join("\n", sort split /\n/, $both), 'twice scheduled, each job is there once');
as_dba('SELECT reconcile.schedule_jobs(run => false)');
is(jobs(), 'reconcile maintain postgres | 23 3 * * * | CALL reconcile.maintain()', 'without the engine');
is((as_dba('SELECT reconcile.unschedule_jobs()'))[1], '1', 'taken back');
is(jobs(), '', 'nothing is left');
$node->sql($_) foreach @statements;
is($node->sql('SELECT count(*) FROM cron.job WHERE database = \'other\''), 2, 'the statements of the hint work as they are');
$node->sql('SELECT cron.unschedule(jobid) FROM cron.job');

# ---------------------------------------------------------------- a minute of it

$provider->scenario('honest');
$provider->scenario('lossy', { write => [lost()] });
foreach my $name ('honest', 'lossy')
{
	$node->define_provider($name, $provider->http_url($name));
	$node->define_operation($name, $name);
}
# When its time is up, run() waits for the answer that is on its way.
$provider->scenario('slow', { write => [ { hold_s => 2.5 } ] });
$node->define_provider('slow', $provider->http_url('slow'), attempt_timeout => '20 s');
$node->define_operation('slow', 'slow');
$node->sql("SELECT reconcile.arm('test')");
my $slow = $node->submit('slow', { amount => 4 });
is($node->sql("CALL reconcile.run('1 s')"), '|1|1|0', 'run() waits for the answer to what it has sent');
is($node->status($slow)->{state}, 'succeeded', 'which nobody has to ask for then');
stage_past($node, 'honest', 1200);
$node->sql("INSERT INTO reconcile.retention_rule (keep_finished) VALUES ('90 days')");
is($node->sql('SELECT worker_pid FROM reconcile.engine()'), '', 'there is no worker');
my $first = $node->submit('honest', { amount => 1 });
my $lost = $node->submit('lossy', { amount => 2 });
as_dba('SELECT reconcile.schedule_jobs()');
# At the next minute instead of at night: a job of the same name is the same job.
as_dba(q(SELECT cron.schedule('reconcile maintain postgres', '* * * * *', 'CALL reconcile.maintain()')));
is($node->sql('SELECT count(*) FROM cron.job'), 2, 'two jobs');

is($node->wait_state($first, 'succeeded', 90), 'succeeded', 'an action that waited is carried out');
is($node->wait_state($lost, 'succeeded', 20), 'succeeded', 'an answer that was lost is looked up');
my $run = run_of('reconcile run');
is($run->{status}, 'running', 'the engine goes on looking');
my $second;
my $seconds = elapsed(sub {
	$second = $node->submit('honest', { amount => 3 });
	$node->wait_state($second, 'succeeded', 30);
});
is($node->status($second)->{state}, 'succeeded', 'what is submitted while it runs is carried out');
is_deeply([ @{ run_of('reconcile run') }{qw(runid status)} ], [ $run->{runid}, 'running' ], 'by the same run');
cmp_ok($seconds, '<', 10, 'soon');
is($provider->effects($_->[0]), $_->[1], "$_->[1] effects at $_->[0]") foreach [ honest => 2 ], [ lossy => 1 ];

is($node->wait_sql("SELECT status FROM cron.job_run_details d JOIN cron.job j USING (jobid) WHERE jobname = 'reconcile maintain postgres' ORDER BY runid LIMIT 1", qr/succeeded|failed/), 'succeeded', 'it was maintained')
  or diag(run_of('reconcile maintain')->{return_message});
is($node->sql('SELECT count(*) FROM reconcile.archived_action'), 1200, 'what was over long ago is archived');
is($node->sql('SELECT count(*) FROM reconcile.action'), 4, 'the others are here');
cmp_ok($node->sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass"), '>=', 4, 'the months ahead have their partitions');
is((as_dba('SELECT reconcile.unschedule_jobs()'))[1], '2', 'both jobs are taken back');
$node->assert_consistent;

$node->stop('fast');
done_testing();
