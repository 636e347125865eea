# Somebody keeps a snapshot open for long: nothing of what the engine leaves
# behind can be cleaned up, and it works on at a rate that is worth having.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(elapsed);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $batch = 500;
my $batches = 4;
my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('snapshot');
my $worker = $node->wait_worker;

$provider->scenario('many', {});
$node->define_provider('many', $provider->http_url('many'), attempt_timeout => '20 s', max_in_flight => 64);
$node->define_operation('many', 'many', on_absent => 'replace');

# Seconds from the commit of so many actions to the last result.
sub carry_out
{
	my ($title) = @_;
	my $done = $node->sql("SELECT count(*) FROM reconcile.action WHERE state = 'succeeded'") + $batch;
	return elapsed(sub {
		$node->sql("SELECT count(*) FROM generate_series(1, $batch) n, LATERAL reconcile.submit('many', jsonb_build_object('n', n), on_duplicate => 'new') s");
		is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE state = 'succeeded'", $done), $done, "$title: all of them succeed"); });
}

carry_out('to warm up');
my $without = carry_out('without');

my $reader = $node->background_psql('postgres');
my $count = $reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM reconcile.action');
my @with = map { carry_out("with an old snapshot, round $_") } 1 .. $batches;
$node->sql('VACUUM reconcile.action');
push @with, carry_out('after a VACUUM that could remove nothing');
is($reader->query_safe('SELECT count(*) FROM reconcile.action'), $count, 'the snapshot is still the old one');
note(sprintf 'rate without an old snapshot: %.0f/s; with one: %s /s', $batch / $without, join ', ', map { sprintf '%.0f', $batch / $_ } @with);
cmp_ok($with[-1], '<', 5 * $without + 5, 'the rate does not fall away');

# Other things go on as well: a lost answer, a confirmation, a cancel.
$provider->preset('lost', '10-close');
$node->define_provider('lost', $provider->http_url('lost'));
$node->define_operation('lost', 'lost', on_absent => 'replace');
my $id = $node->submit('lost', {});
is($node->wait_state($id, 'succeeded', 30), 'succeeded', 'a lost answer is looked up');
my $later = $node->submit('many', { n => 'later' }, not_before => $node->sql("SELECT now() + interval '1 day'"));
$node->sql("SELECT reconcile.cancel('$later', 'no')");
is($node->status($later)->{state}, 'cancelled', 'cancel() works');
is($node->sql('SELECT stalled_because IS NULL FROM reconcile.engine()'), 't', 'nothing stalls');
is($node->worker_pid, $worker, 'it is still the same worker');
$reader->query_safe('COMMIT');
$reader->quit;

is($provider->deliveries('many'), $batch * ($batches + 3), 'nothing is sent twice');
is($node->sql('SELECT * FROM reconcile.fold_violation()'), '', 'every action is the fold of its attempts');
$node->stop;
$provider->stop;
done_testing();
