# A real CalDAV server: the client names the resource, and a precondition makes
# creating it happen at most once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Provider;
use ActionReconcile::Radicale;

my $radicale = ActionReconcile::Radicale->new;
$radicale->calendar('alice', 'work');

sub ask
{
	my ($method, $uid, $headers, $content) = @_;
	return $radicale->request($method, "/alice/work/$uid.ics", { 'Content-Type' => 'text/calendar', %{ $headers // {} } },
		$content);
}

# ---------------------------------------------------------------- the server itself

my $event = ActionReconcile::Radicale::event('e1', 'Room 4');
my $created = ask(PUT => 'e1', { 'If-None-Match' => '*' }, $event);
is($created->{status}, 201, 'a new event: 201');
ok($created->{headers}{etag}, 'a new event has an ETag');
is(ask(PUT => 'e1', { 'If-None-Match' => '*' }, $event)->{status}, 412, 'the same again: 412');
is($radicale->count('alice', 'work'), 1, 'one event is stored');
like(ask(GET => 'e1')->{content}, qr/^UID:e1\r?$/m, 'it can be asked for by its name');
is(ask(GET => 'e2')->{status}, 404, 'what is not there: 404');

is(ask(DELETE => 'e1', { 'If-Match' => '"other"' })->{status}, 412, 'deleting another state of it: 412');
is(ask(DELETE => 'e1', { 'If-Match' => $created->{headers}{etag} })->{status}, 200, 'deleting it: 200');
is(ask(DELETE => 'e1')->{status}, 404, 'deleting it again: 404');
is($radicale->count('alice', 'work'), 0, 'nothing is left');
is_deeply([ $radicale->answers('PUT', 'e1') ], [ 201, 412 ], 'the log tells what was answered to whom');

# ---------------------------------------------------------------- behind a provider that loses answers

my $provider = ActionReconcile::Provider->new;
$provider->scenario('lossy', { upstream => $radicale->url, ref_suffix => '.ics', write => [ { then => 'close' } ] });
my @put = (PUT => $provider->http_url('lossy') . '/alice/work/e3.ics', { 'Content-Type' => 'text/calendar', 'If-None-Match' => '*' },
	ActionReconcile::Radicale::event('e3'));
is_deeply([ ActionReconcile::Service::once(@put) ], [], 'the answer is lost');
is_deeply([ $radicale->events('alice', 'work') ], ['e3'], 'and the event is there');
is((ActionReconcile::Service::once(@put))[0], 412, 'the same again is refused by the server');
is($provider->effects('lossy'), 1, 'the ledger has one effect');

$provider->stop;
$radicale->stop;
done_testing();
