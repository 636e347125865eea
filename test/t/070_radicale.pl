# A real CalDAV server: the client names the resource, and a precondition makes
# creating it happen at most once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Profiles qw(adopt hasten story);
use ActionReconcile::Provider;
use ActionReconcile::Radicale;

my $radicale = ActionReconcile::Radicale->new;
$radicale->calendar('alice', 'team');

sub ask
{
	my ($method, $uid, $headers, $content) = @_;
	return $radicale->request($method, "/alice/team/$uid.ics", { 'Content-Type' => 'text/calendar', %{ $headers // {} } },
		$content);
}

# ---------------------------------------------------------------- the server itself

my $event = ActionReconcile::Radicale::event('e1', 'Room 4');
my $created = ask(PUT => 'e1', { 'If-None-Match' => '*' }, $event);
is($created->{status}, 201, 'a new event: 201');
ok($created->{headers}{etag}, 'a new event has an ETag');
is(ask(PUT => 'e1', { 'If-None-Match' => '*' }, $event)->{status}, 412, 'the same again: 412');
is($radicale->count('alice', 'team'), 1, 'one event is stored');
like(ask(GET => 'e1')->{content}, qr/^UID:e1\r?$/m, 'it can be asked for by its name');
is(ask(GET => 'e2')->{status}, 404, 'what is not there: 404');

is(ask(DELETE => 'e1', { 'If-Match' => '"other"' })->{status}, 412, 'deleting another state of it: 412');
is(ask(DELETE => 'e1', { 'If-Match' => $created->{headers}{etag} })->{status}, 200, 'deleting it: 200');
is(ask(DELETE => 'e1')->{status}, 404, 'deleting it again: 404');
is($radicale->count('alice', 'team'), 0, 'nothing is left');
is_deeply([ $radicale->answers('PUT', 'e1') ], [ 201, 412 ], 'the log tells what was answered to whom');

# ---------------------------------------------------------------- behind a provider that loses answers

my $provider = ActionReconcile::Provider->new;
$provider->scenario('lossy', { upstream => $radicale->url, ref_suffix => '.ics', write => [ { then => 'close' } ] });
my @put = (PUT => $provider->http_url('lossy') . '/alice/team/e3.ics', { 'Content-Type' => 'text/calendar', 'If-None-Match' => '*' },
	ActionReconcile::Radicale::event('e3'));
is_deeply([ ActionReconcile::Service::once(@put) ], [], 'the answer is lost');
is_deeply([ $radicale->events('alice', 'team') ], ['e3'], 'and the event is there');
is((ActionReconcile::Service::once(@put))[0], 412, 'the same again is refused by the server');
is($provider->effects('lossy'), 1, 'the ledger has one effect');

# ---------------------------------------------------------------- the profile of the catalogue

my $node = ActionReconcile::Profiles::node('radicale');
my @writes = ([ lost => { then => 'close' } ], [ unsent => { then => 'close', commit => 'never' } ], [ honest => {} ],
	[ gateway => { status => 504, body => '<html>', commit => 'before' } ]);

# A provider of its own for each way a write may suffer.
foreach (@writes)
{
	my ($name, $step) = @$_;
	$provider->scenario($name, { upstream => $radicale->url, ref_suffix => '.ics', write => [$step] });
	adopt($node, 'caldav', $provider->http_url($name), provider => $name);
	hasten($node, $name);
}
my %event = (owner => 'alice', calendar => 'team', stamp => '20300101T000000Z', start => '20300107T090000Z',
	end => '20300107T100000Z', summary => 'Room 5');

sub check
{
	my ($scenario, $id, $state, $events, $effects, $what) = @_;
	$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$id'", qr/^(?:succeeded|rejected|safe_to_retry|manual_review)$/);
	is($node->status($id)->{state}, $state, "$what: $state") or diag(story($node, $id));
	like($node->events($id), qr/^$events$/, "$what: the story") if defined $events;
	is($provider->effects($scenario), $effects, "$what: $effects effects");
	return $node->status($id)->{client_reference};
}

my $before = $radicale->count('alice', 'team');
my $ref = check('lost', $node->submit('lost.event.put', \%event), 'succeeded', 'submit claim answer_lost ask found', 1,
	'the answer of a PUT is lost');
is_deeply([ grep { $_ eq $ref } $radicale->events('alice', 'team') ], [$ref], 'and there is one event of this name');
is_deeply([ $radicale->answers('PUT', $ref) ], [201], 'put there once');

$ref = check('gateway', $node->submit('gateway.event.put', \%event), 'succeeded', 'submit claim answer_lost ask found', 1,
	'a gateway answers for the server');
is_deeply([ $radicale->answers('PUT', $ref) ], [201], 'put there once');

$ref = check('unsent', $node->submit('unsent.event.put', \%event), 'safe_to_retry', 'submit claim answer_lost( ask absent_once)+ ask absent', 0,
	'a PUT that never arrived');
is_deeply([ $radicale->answers('PUT', $ref) ], [], 'nothing was put');
cmp_ok(scalar grep({ $_ == 404 } $radicale->answers('GET', $ref)), '>=', 2, 'which took more than one look');
is($radicale->count('alice', 'team'), $before + 2, 'two more events in all');

# Created again: what a restored backup does, which does not know that it was done.
# And somebody else's event under our name, which is not ours.
$node->sql("SELECT reconcile.pause('honest', 'others come first')");
my ($again, $taken) = $node->submit_all([ 'honest.event.put', \%event ], [ 'honest.event.put', { %event, summary => 'Room 6' } ]);
my ($again_ref, $taken_ref) = map { $node->status($_)->{client_reference} } $again, $taken;
$radicale->put('alice', 'team', $again_ref, 'Room 5');
$radicale->request(PUT => "/alice/team/$taken_ref.ics", { 'Content-Type' => 'text/calendar' }, ActionReconcile::Radicale::event('other'));
$node->sql("SELECT reconcile.resume('honest')");
check('honest', $again, 'succeeded', 'submit claim answer_lost ask found', 0, 'it is there already');
is_deeply([ $radicale->answers('PUT', $again_ref) ], [ 201, 412 ], 'the server refused to make it again');
check('honest', $taken, 'manual_review', undef, 0, 'a name that is taken by another event proves nothing');
like($radicale->request(GET => "/alice/team/$taken_ref.ics")->{content}, qr/UID:other/, 'theirs is as it was');

# ---------------------------------------------------------------- deletes

sub delete_of
{
	my ($scenario, $uid) = @_;
	return $node->submit("$scenario.event.delete", { owner => 'alice', calendar => 'team', event => $uid });
}

foreach (@writes)
{
	my ($name, $step) = @$_;
	$provider->reset($name);
	$radicale->put('alice', 'team', "booking-$name");
}
check('honest', delete_of('honest', 'booking-honest'), 'succeeded', undef, 1, 'a delete');
my $id = delete_of('lost', 'booking-lost');
check('lost', $id, 'succeeded', undef, 1, 'the answer of a delete is lost');
is_deeply([ $radicale->answers('DELETE', 'booking-lost') ], [200], 'it was deleted once, and not tried again');
is($node->sql("SELECT existed FROM reconcile.action WHERE action_id = '$id'"), 't', 'it had been seen before it was deleted');

check('unsent', delete_of('unsent', 'booking-unsent'), 'safe_to_retry', undef, 0, 'a delete that never arrived: it is still there');
check('gateway', delete_of('gateway', 'booking-gateway'), 'succeeded', undef, 1, 'a gateway answers a delete');
is_deeply([ grep { /^booking/ } $radicale->events('alice', 'team') ], ['booking-unsent'], 'one is still there');
check('honest', delete_of('honest', 'booking-never'), 'rejected', undef, 1, 'what never was cannot be deleted');

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
$radicale->stop;
done_testing();
