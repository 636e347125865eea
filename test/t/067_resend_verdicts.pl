# A request whose answer is lost goes out again with its key, and the provider
# says that it has taken it: what it decides later, it decides for both attempts.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('verdicts');

# The first answer is lost, the second is a promise; the job then comes to these states.
sub start
{
	my ($name, @job_states) = @_;
	$provider->scenario($name, { key_header => 'Idempotency-Key', accept => 'body', job_states => \@job_states, write => [ { then => 'close' } ] });
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '20 s', consistency_window => '0.1 s', late_arrival_max => '0.1 s');
	$node->sql('BEGIN;' . $node->operation_sql($name, $name, headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' },
		key_lifetime => '1 day', key_lifetime_source => 'documented', key_replay => 'stored_reply', artifact_path => '$.id', lookup => 0)
		. $node->insert('lookup_rule', operation => $name, position => 1, kind => 'replay_by_key')
		. $node->insert('poll_rule', operation => $name, url_path => '$.status_url', state_path => '$.status', accepted => '{succeeded}', rejected => '{failed}',
			pause => '0.1 s', pause_max => '1 s') . 'COMMIT;');
	return $node->submit($name, { amount => 5 });
}

sub attempts_of
{
	my ($id) = @_;
	return $node->sql("SELECT string_agg(number || ' ' || event || ' ' || state, ', ' ORDER BY number) FROM reconcile.attempt WHERE action_id = '$id'");
}

my $refused = start('refused', 'pending', 'failed');
my $done = start('done', 'pending', 'succeeded');

$node->wait_sql("SELECT string_agg(DISTINCT state::text, ' ' ORDER BY state::text) FROM reconcile.action", 'rejected succeeded');
is($node->status($refused)->{state}, 'rejected', 'what it refuses is rejected');
is(attempts_of($refused), '1 poll_rejected rejected, 2 poll_rejected rejected', 'and so are both attempts: they are one request to it');
is($node->sql("SELECT count(*) FROM reconcile.attempt WHERE action_id = '$refused' AND evidence -> 'poll' ->> 'state' = 'failed'"), 2, 'by the same evidence');
is($provider->effects('refused'), 0, 'nothing was done');
is($provider->deliveries('refused'), 2, 'in two requests');
is($node->status($done)->{state}, 'succeeded', 'what it carries out has succeeded');
is(attempts_of($done), '1 answer_lost outcome_unknown, 2 poll_accepted succeeded', 'by the attempt that it answered');
is($provider->effects('done'), 1, 'once');
# A person says of two attempts without an answer that the provider has it: its verdict, when it comes, is on both.
$provider->scenario('sworn', { key_header => 'Idempotency-Key', write_default => { commit => 'before', then => 'close' } });
$node->define_provider('sworn', $provider->http_url('sworn'), attempt_timeout => '20 s', consistency_window => '0.1 s', late_arrival_max => '0.1 s');
$node->sql('BEGIN;' . $node->operation_sql('sworn', 'sworn', headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' },
	key_lifetime => '1 day', key_lifetime_source => 'documented', key_replay => 'stored_reply', artifact_path => '$.id', lookup => { kind => 'replay_by_key' },
	poll => { path => '/effects?ref={client_reference}', state_path => '$.data[0].body.amount', accepted => '{6}', rejected => '{5}' }) . 'COMMIT;');
my $sworn = $node->submit('sworn', { amount => 5 });
$node->wait_sql("SELECT count(*) > 1 FROM reconcile.attempt WHERE action_id = '$sworn'", 't');
$node->sql("SELECT reconcile.pause('sworn', 'a person looks into it')");
$node->wait_sql("SELECT state IN ('outcome_unknown', 'manual_review') FROM reconcile.action WHERE action_id = '$sworn'", 't');
is($node->sql("SELECT reconcile.resolve('$sworn', 'executed', 'seen in their console')"), 'delivered', 'what a person says that it has waits for its verdict');
$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$sworn'", 'rejected');
is($node->sql("SELECT string_agg(DISTINCT state::text, ' ') FROM reconcile.attempt WHERE action_id = '$sworn' AND event <> 'not_sent'"),
	'rejected', 'and all its attempts are refused');
is($node->sql('SELECT count(*) FROM reconcile.fold_violation()'), 0, 'every action stands where its attempts do');
is($node->sql('SELECT count(*) FROM reconcile.verify_history()'), 0, 'and every history is whole');

$node->stop;
$provider->stop;
done_testing();
