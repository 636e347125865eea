# A mock of Stripe's API that others wrote: forms, keys, lists.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

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

$provider->stop;
$stripe->stop;
done_testing();
