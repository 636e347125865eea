# A mock of Stripe's API that others wrote: forms, keys, lists.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Profiles qw(adopt hasten);
use ActionReconcile::Provider;
use ActionReconcile::StripeMock;

my $stripe = ActionReconcile::StripeMock->new;

# ---------------------------------------------------------------- the mock itself

my $charge = $stripe->charge(1000);
like($charge, qr/^ch_/, 'a form makes a charge');
my $form = "charge=$charge&amount=300&metadata[client_reference]=r1";
my ($status, $refund) = $stripe->call(POST => '/v1/refunds', $form, 'key 1');
is($status, 200, 'a refund: 200');
is($refund->{metadata}{client_reference}, 'r1', 'nested members of a form are understood');

my ($again, $same, $headers) = $stripe->call(POST => '/v1/refunds', $form, 'key 1');
is("$again $same->{id}", "200 $refund->{id}", 'the same key: the same answer');
is($headers->{'idempotent-replayed'}, 'true', 'and it says so');
my ($refused, $error) = $stripe->call(POST => '/v1/refunds', "charge=$charge&amount=301", 'key 1');
is("$refused $error->{error}{type}", '400 idempotency_error', 'the key with other parameters: 400');
is(scalar $stripe->list('/v1/refunds'), 1, 'one refund was made');

$stripe->call(POST => '/v1/refunds', "charge=$charge&amount=$_", "key $_") foreach 10, 20, 30;
my ($ok, $page) = $stripe->call(GET => '/v1/refunds?limit=3');
is(scalar @{ $page->{data} }, 3, 'a list has pages');
ok($page->{has_more}, 'and tells of more');
(undef, $page) = $stripe->call(GET => "/v1/refunds?limit=3&starting_after=$page->{data}[-1]{id}");
is(scalar @{ $page->{data} }, 1, 'the rest');
ok(!$page->{has_more}, 'and that is all');
is($stripe->request(GET => '/v1/refunds')->{status}, 401, 'nobody without a credential');

# ---------------------------------------------------------------- behind a provider that loses answers

my $provider = ActionReconcile::Provider->new;
$provider->scenario('lossy', { upstream => $stripe->url, ref_key => 'metadata.client_reference', write => [ { then => 'close' } ] });
my @post = (POST => $provider->http_url('lossy') . '/v1/refunds',
	{ 'Content-Type' => 'application/x-www-form-urlencoded', 'Idempotency-Key' => 'key 2',
		Authorization => "Bearer $ActionReconcile::StripeMock::api_key" },
	"charge=$charge&amount=40&metadata[client_reference]=r2");
is_deeply([ ActionReconcile::Service::once(@post) ], [], 'the answer is lost');
my ($found) = grep { ($_->{metadata}{client_reference} // '') eq 'r2' } $stripe->list('/v1/refunds');
ok($found, 'and the refund is there');
like((ActionReconcile::Service::once(@post))[1], qr/"id":"$found->{id}"/, 'the same key again tells its id');
is(scalar $stripe->list('/v1/refunds'), 5, 'and makes no other');

# ---------------------------------------------------------------- the profile of the catalogue

my $node = ActionReconcile::Profiles::node('stripe_mock', stripe => "Bearer $ActionReconcile::StripeMock::api_key");

# A provider of its own for each way a write may suffer; columns of its operation.
sub define
{
	my ($name, $step, %columns) = @_;
	$provider->scenario($name, { upstream => $stripe->url, ref_key => 'metadata.client_reference', write => [$step] });
	adopt($node, 'stripe', $provider->http_url($name), provider => $name);
	hasten($node, $name);
	my $set = join ', ', map { "$_ = " . ActionReconcile::Node::literal($columns{$_}) } sort keys %columns;
	$node->sql("UPDATE reconcile.operation SET $set WHERE provider = '$name'") if $set;
	return;
}

sub refund
{
	my ($name, $amount) = @_;
	return $node->submit("$name.refund.create", { charge => $charge, amount => $amount });
}

# The refunds that carry the reference of an action.
sub made
{
	my ($id) = @_;
	my $reference = $node->status($id)->{client_reference};
	return grep { ($_->{metadata}{client_reference} // '') eq $reference } $stripe->list('/v1/refunds');
}

define('honest', {});
my $id = refund('honest', 7);
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a refund succeeds');
my @made = made($id);
is($node->status($id)->{artifact_id}, $made[0]{id}, 'and its id is known');
is($made[0]{amount}, 7, 'the amount is what was asked for');

define('lost', { then => 'close' });
$id = refund('lost', 8);
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a lost answer: the same request with its key tells');
@made = made($id);
is(scalar @made, 1, 'one refund was made');
is($node->status($id)->{artifact_id}, $made[0]{id}, 'and its id is known');
my @sent = grep { $_->{kind} eq 'write' } @{ $provider->ledger('lost')->{requests} };
is(scalar @sent, 2, 'it was sent twice');
is($sent[0]{key}, $sent[1]{key}, 'with the same key');
is($sent[0]{body_sha256}, $sent[1]{body_sha256}, 'and the same bytes');
is($provider->ledger('lost')->{requests}[0]{answer_status}, undef, 'the first answer never arrived');

define('unsent', { then => 'close', commit => 'never' });
$id = refund('unsent', 9);
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a request that never arrived: sent again with its key');
is(scalar(@made = made($id)), 1, 'one refund was made');

# A key that is dead by the time it is needed is never sent again.
my @dead_key = (key_lifetime => '2 seconds', key_margin => '2 seconds', claims => undef);
define('dead-key', { then => 'close' }, @dead_key);
$id = refund('dead-key', 10);
is($node->wait_state($id, 'succeeded'), 'succeeded', 'a lost answer and a dead key: the list tells');
is(scalar(@made = made($id)), 1, 'one refund was made');
is($provider->deliveries('dead-key'), 1, 'it was sent once');
is($node->status($id)->{artifact_id}, $made[0]{id}, 'its id is known from the list');

$stripe->call(POST => '/v1/refunds', "charge=" . $stripe->charge(50) . "&amount=1&metadata[n]=$_") foreach 1 .. 120;
define('dead-and-unsent', { then => 'close', commit => 'never' }, @dead_key);
$id = refund('dead-and-unsent', 11);
is($node->wait_state($id, 'safe_to_retry'), 'safe_to_retry', 'a request that never arrived: the list proves it');
is(scalar(@made = made($id)), 0, 'no refund was made');
is($provider->deliveries('dead-and-unsent'), 1, 'it was sent once');
my @looks = grep { $_->{result} eq 'absent' } @{ $node->lookups($id) };
cmp_ok(scalar @looks, '>=', 2, 'after more than one look');
is_deeply([ map { $_->{pages} >= 2 && $_->{objects} >= 120 } @looks ], [ map { 1 } @looks ], 'each of all pages');

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
$stripe->stop;
done_testing();
