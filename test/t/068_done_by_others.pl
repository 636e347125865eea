# An attempt that was proven not to have done anything is not credited with what
# somebody else does before the next one goes out.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use HTTP::Tiny;
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('others');

# The provider says that it did nothing; what is deleted then is deleted by others.
$provider->scenario('others', {
	delete => { status => 204, get => 404, again => 404 },
	preload => [ { id => 'o-1', ref => 'o-1' } ],
	write => [ { status => 503, commit => 'never', hold_s => -1 } ] });
$node->define_provider('others', $provider->http_url('others'), attempt_timeout => '20 s');
$node->define_operation('others', 'others',
	method => 'DELETE', path => '/effects/{id}', headers => {}, body_format => 'none', reference_body_path => undef, artifact_path => undef,
	lookups => [ { kind => 'get_by_reference', path => '/effects/{id}', absent_statuses => '{404}', items_path => undef, reference_path => undef,
			artifact_path => undef, match_values => { '$.ref' => '{id}' } } ],
	answers => [ { statuses => '{503}', class => 'not_executed' } ]);
my $others = $node->submit('others', { id => 'o-1' });
$provider->wait_writes('others', 1);
$node->sql("SELECT reconcile.pause('others', 'nothing more is to be sent yet')");
$provider->release('others');
$node->wait_sql("SELECT attempts || ' ' || state FROM reconcile.action WHERE action_id = '$others'", '1 planned');
is($node->sql("SELECT existed FROM reconcile.action WHERE action_id = '$others'"), 't', 'it was there before the first send');
is(HTTP::Tiny->new->delete($provider->http_url('others') . '/effects/o-1')->{status}, 204, 'somebody else deletes it');
# Another postmaster does not know how old the look is, so it looks again.
$node->restart;
$node->sql("SELECT reconcile.resume('others')");
$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$others'", qr/^(?:succeeded|rejected|manual_review|safe_to_retry)$/);
is($node->events($others), 'submit look_again looked_before claim not_executed look_again looked_before claim answered_rejected',
	'an attempt that did nothing is not credited with what others did');
is($node->status($others)->{state}, 'rejected', 'there was nothing left for us to delete');
is($node->sql("SELECT string_agg(number || ' ' || state, ', ' ORDER BY number) FROM reconcile.attempt WHERE action_id = '$others'"),
	'1 safe_to_retry, 2 rejected', 'as both attempts say');
is($node->sql('SELECT count(*) FROM reconcile.incident'), 0, 'and no window is blamed for it');

is($node->sql('SELECT count(*) FROM reconcile.fold_violation()'), 0, 'every action stands where its attempts do');
$node->stop;
$provider->stop;
done_testing();
