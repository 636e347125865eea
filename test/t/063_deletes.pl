# A delete is settled the other way round: that it is gone proves it only if
# it was seen before the send, and what is still there was not deleted.  A change
# is settled by what the object is, was, and was to become.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Cases qw(lost lost_unexecuted);
use ActionReconcile::Crash qw(crash);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('deletes');
my $cases = ActionReconcile::Cases->new($node, $provider);
my $story;

my %shown = (
	kind => 'get_by_reference', path => '/effects/{booking}', items_path => undef, reference_path => undef, artifact_path => undef,
	match_values => { '$.ref' => '{booking}' }, absent_statuses => '{404,410}');
my %delete = (method => 'DELETE', path => '/effects/{booking}', body_format => 'none', reference_body_path => undef, artifact_path => undef);
my @booking = (preload => [ { id => 'b1', ref => 'B1', body => { seats => 2 } }, { id => 'b2', ref => 'B2', body => { seats => 2 } } ]);
my $looked = 'submit look_again looked_before claim';

sub gateway { return { status => 404, body => '<html>404 no route to host</html>', @_ }; }

# A case with a booking to be deleted; spec and columns as for define().
sub define_delete
{
	my ($name, $spec, %case) = @_;
	my $lookup = delete $case{lookup} // {};
	$cases->define($name, spec => { @booking, delete => {}, %$spec }, %delete, lookup => { %shown, %$lookup }, %case);
	return;
}

# The look on which the last send rests came before it, and not long before.
sub check_look
{
	my ($what, $name, $story) = @_;
	my @order = map { $_->{method} } grep { $_->{path} =~ /B\d/ } @{ $story->{ledger}{requests} };
	is($order[0], 'GET', "$what: it is looked at before anything is sent");
	is($node->sql(<<"SQL"), 't', "$what: the send rests on a look of the last minute");
SELECT (SELECT bool_and(t.dispatched_at - l.asked_at BETWEEN interval '0' AND interval '60 s' AND l.answered_at <= t.dispatched_at)
          FROM (SELECT * FROM reconcile.attempt WHERE action_id = '$story->{action_id}' ORDER BY number DESC LIMIT 1) t
         CROSS JOIN LATERAL (SELECT * FROM reconcile.lookup k WHERE k.action_id = t.action_id AND k.asked_at < t.dispatched_at
                              ORDER BY k.asked_at DESC LIMIT 1) l)
SQL
	return;
}

# ---------------------------------------------------------------- deleted, or not

my %was_there = (
	'ordinary' => {
		spec => {}, state => 'succeeded', events => "$looked answered_accepted", effects => 1, what => 'an ordinary delete' },
	'lost-gone' => {
		spec => { write => [ lost() ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1,
		reason => 'it was there before the send and is gone; not provably by us', what => 'the answer is lost, and it is gone' },
	'lost-there' => {
		spec => { write => [ lost_unexecuted() ] }, state => 'safe_to_retry', events => "$looked answer_lost ask absent", effects => 0,
		reason => 'what was to be deleted is still there', what => 'the answer is lost, and it is still there' },
	'late' => {
		spec => { write => [ { then => 'close', visibility_lag_s => 1 } ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1,
		provider => { consistency_window => '1.5 s' }, what => 'it is shown for a while after it was deleted' },
	'gateway-done' => {
		spec => { write => [ gateway(commit => 'before') ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1,
		what => 'a gateway\'s 404, and it is gone' },
	'gateway-not-done' => {
		spec => { write => [ gateway() ] }, state => 'safe_to_retry', events => "$looked answer_lost ask absent", effects => 0,
		what => 'a gateway\'s 404, and it is still there' },
	'not-found-but-there' => {
		spec => { write => [ { status => 404 } ] }, state => 'safe_to_retry', events => "$looked answer_lost ask absent", effects => 0,
		what => 'the provider\'s own 404, and it is still there' },
	'gone-page' => {
		spec => { write => [ lost() ], read => [ {}, gateway(), { status => 500 } ] }, state => 'succeeded',
		events => "$looked answer_lost ask inconclusive ask inconclusive ask found", effects => 1, what => 'a gateway\'s 404 to the question proves nothing' },
	'gone-410' => {
		spec => { delete => { get => 410 }, write => [ lost() ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1,
		what => 'a 410 says that it is gone' },
	'tombstone' => {
		spec => { delete => { get => 'cancelled' }, write => [ lost() ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1,
		lookup => { gone_path => '$ ? (@.status == "cancelled")' }, what => 'a tombstone says that it is gone' },
	'tombstone-unread' => {
		spec => { delete => { get => 'cancelled' }, write => [ lost_unexecuted() ] }, state => 'safe_to_retry', events => "$looked answer_lost ask absent",
		lookup => { gone_path => '$ ? (@.status == "cancelled")' }, effects => 0, what => 'where tombstones are known, what is alive is still there' },
	'refused' => {
		spec => { write => [ { status => 403 } ] }, state => 'rejected', events => "$looked answered_rejected", effects => 0, what => 'a delete that is refused' },
	'list' => {
		spec => { write => [ lost_unexecuted() ], read => [ {}, { incomplete => 'empty' } ] }, state => 'safe_to_retry',
		events => "$looked answer_lost ask inconclusive ask absent", effects => 0, what => 'a list that does not show everything proves no deletion',
		lookup => { kind => 'list_by_reference', path => '/effects?ref={booking}', items_path => '$.data[*]', incomplete_if => '$ ? (@.incomplete == true)' } });
foreach my $name (sort keys %was_there)
{
	my %row = %{ $was_there{$name} };
	define_delete($name, $row{spec}, lookup => $row{lookup}, provider => $row{provider});
	$cases->submit($name, { booking => 'B1' });
}
foreach my $name (sort keys %was_there)
{
	my %row = %{ $was_there{$name} };
	$story = $cases->check($name, $row{what}, state => $row{state}, events => $row{events}, deliveries => 1, effects => $row{effects});
	check_look($row{what}, $name, $story);
	is($story->{existed}, JSON::PP::true, "$row{what}: it was there before the send");
	is($story->{answers}[-1]{reason}, $row{reason}, "$row{what}: why") if $row{reason};
	ok(!grep({ $_->{ref} eq 'B2' } @{ $story->{ledger}{effects} }), "$row{what}: the other booking is left alone");
}

# Proven not to have happened, it is replaced if the operation says so, or a person.
define_delete('replaced', { write => [ lost_unexecuted() ] }, on_absent => 'replace');
$cases->submit('replaced', { booking => 'B1' });
$story = $cases->check('replaced', 'still there, and replaced', state => 'succeeded', events => "$looked answer_lost ask absent claim answered_accepted",
	attempts => 2, deliveries => 2, effects => 1);
check_look('still there, and replaced', 'replaced', $story);
$node->sql(sprintf "SELECT reconcile.replace('%s', 'it is to be gone')", $cases->id('lost-there'));
$cases->check('lost-there', 'still there, and replaced by a person', state => 'succeeded',
	events => "$looked answer_lost ask absent replace claim answered_accepted", attempts => 2, deliveries => 2, effects => 1);

# The same again, when it is done: there is nothing left to delete.
my $first = $cases->id('ordinary');
$cases->submit('ordinary', { booking => 'B1' });
$cases->check('ordinary', 'deleted twice', state => 'rejected', events => "$looked answered_rejected", status => 'FAILED', deliveries => 2, effects => 1);
is($node->status($first)->{state}, 'succeeded', 'deleted twice: the first one stays what it was');

# ---------------------------------------------------------------- what never was

my %never = (
	'never' => { spec => {}, state => 'rejected', events => "$looked answered_rejected", existed => 0, what => 'it never was' },
	'never-lost' => {
		spec => { write => [ lost_unexecuted() ] }, state => 'manual_review', events => "$looked answer_lost ask inconclusive", existed => 0,
		reason => 'it is not there, but nobody has seen that it was before the send', what => 'it never was, and the answer is lost' },
	'never-gateway' => {
		spec => { write => [ gateway() ] }, state => 'manual_review', events => "$looked answer_lost ask inconclusive", existed => 0,
		what => 'it never was, and a gateway answers' },
	'never-pages' => {
		spec => { not_found => 'html' }, state => 'manual_review', what => 'only gateways answer',
		events => 'submit' . ' look_again inconclusive' x 2 . ' look_again looked_before claim answer_lost' . ' ask inconclusive' x 3 },
	'cancelled-before' => {
		spec => { preload => [ { ref => 'B9', deleted => \1 } ], delete => { get => 'cancelled', again => 410 } }, state => 'rejected',
		events => "$looked answered_rejected", existed => 0, lookup => { gone_path => '$ ? (@.status == "cancelled")' }, what => 'it was cancelled long ago' },
	'gone-before' => {
		spec => { preload => [ { ref => 'B9', deleted => \1 } ], delete => { get => 410, again => 410 } }, state => 'rejected',
		events => "$looked answered_rejected", existed => 0, what => 'it was deleted long ago' });
foreach my $name (sort keys %never)
{
	define_delete($name, $never{$name}{spec}, on_absent => 'replace', lookup => { max_inconclusive => 3, %{ $never{$name}{lookup} // {} } });
	$cases->submit($name, { booking => 'B9' });
}
foreach my $name (sort keys %never)
{
	my %row = %{ $never{$name} };
	$story = $cases->check($name, $row{what}, state => $row{state}, events => $row{events}, deliveries => 1, effects => 0);
	is($story->{existed}, defined $row{existed} ? JSON::PP::false : undef, "$row{what}: what was seen before");
	is($story->{answers}[-1]{reason}, $row{reason}, "$row{what}: why") if $row{reason};
}

# Nobody could look before the send: then nobody can tell afterwards, unless it is still there.
foreach my $kind (qw(gone there))
{
	define_delete("blind-$kind", { write => [ $kind eq 'gone' ? lost() : lost_unexecuted() ], read => [ ({ status => 500 }) x 3 ] }, lookup => { max_inconclusive => 3 });
	$cases->submit("blind-$kind", { booking => 'B1' });
}
my $blind = 'submit look_again inconclusive look_again inconclusive look_again looked_before claim answer_lost ask';
$story = $cases->check('blind-gone', 'nobody could look, and it is gone', state => 'manual_review', events => "$blind inconclusive", deliveries => 1, effects => 1);
is($story->{existed}, undef, 'nobody could look: whether it was there is not known');
is($story->{answers}[-1]{result}, 'ambiguous', 'nobody could look, and it is gone: only a person can tell');
$cases->check('blind-there', 'nobody could look, and it is still there', state => 'safe_to_retry', events => "$blind absent", deliveries => 1, effects => 0);

# ---------------------------------------------------------------- between the look and the send

# Another action keeps the provider's only place, so that the delete waits after its look.
sub define_waiting
{
	my ($name, %spec) = @_;
	define_delete($name, { write => [ { hold_s => -1 } ], %spec }, provider => { max_in_flight => 1, attempt_timeout => '30 s' });
	$node->define_operation("$name-other", $name, lookup => 0);
	$node->submit("$name-other", {});
	$provider->wait_writes($name, 1);
	$cases->submit($name, { booking => 'B1' });
	$cases->wait_event($name, 'looked_before');
	is($node->status($cases->id($name))->{state}, 'planned', "$name: looked at, and not sent yet");
	return;
}
define_waiting('somebody-else');
is($provider->somebody('somebody-else', 'DELETE', '/effects/B1')->{status}, 204, 'somebody else deletes it before us');
$provider->release('somebody-else');
$story = $cases->check('somebody-else', 'somebody else was first: it is gone, and that is what was wanted', state => 'succeeded', status => 'CONFIRMED',
	events => "$looked answer_lost ask found", deliveries => 3, effects => 2);
is($story->{attempt}[0]{http_status}, 404, 'somebody else was first: we were told that there is nothing');
is($story->{answers}[-1]{reason}, 'it was there before the send and is gone; not provably by us', 'somebody else was first: noted');

foreach my $how (qw(worker postmaster))
{
	define_waiting("restart-$how");
	crash($node, $how);
	$provider->release("restart-$how");
	# a new postmaster knows nothing of how long ago the look was
	my $again = $how eq 'postmaster' ? 'look_again looked_before ' : '(look_again looked_before )?';
	$story = $cases->check("restart-$how", "$how killed between the look and the send", state => 'succeeded',
		events => qr/^submit look_again looked_before ${again}claim answered_accepted$/, deliveries => 2, effects => 2);
	check_look("$how killed between the look and the send", "restart-$how", $story);
}

# The look itself, and the send, are interrupted.
define_delete('look-interrupted', { read => [ { hold_s => -1 } ] }, lookup => { timeout => '30 s' });
# its gate stands where its deadline was
define_delete('send-interrupted', { write => [ { hold_s => -1 } ] }, provider => { attempt_timeout => '6 s' });
$cases->submit($_, { booking => 'B1' }) for qw(look-interrupted send-interrupted);
$provider->wait_reads('look-interrupted', 1);
$provider->wait_effects('send-interrupted', 1);
crash($node, 'worker');
$provider->release($_) for qw(look-interrupted send-interrupted);
$story = $cases->check('look-interrupted', 'killed while it looks', state => 'succeeded', events => 'submit look_again recover look_again looked_before claim answered_accepted',
	deliveries => 1, effects => 1);
check_look('killed while it looks', 'look-interrupted', $story);
$cases->check('send-interrupted', 'killed while it sends', state => 'succeeded', events => 'submit look_again looked_before claim recover ask found', deliveries => 1, effects => 1);

# ---------------------------------------------------------------- changes

my %change = (method => 'PATCH', path => '/effects/{booking}', reference_body_path => undef, body_document => { seats => '{seats}' });
my %changed = (%shown, artifact_path => '$.id', match_values => { '$.body.seats' => '{seats}' });
my $neither = 'the object is neither as it was nor as it was to become';
my %changes = (
	'change' => { spec => {}, state => 'succeeded', events => "$looked answered_accepted", effects => 1, what => 'an ordinary change' },
	'change-lost' => {
		spec => { write => [ lost() ] }, state => 'succeeded', events => "$looked answer_lost ask found", effects => 1, what => 'a change that is there',
		reason => 'the object is as it was to become' },
	'change-unsent' => {
		spec => { write => [ lost_unexecuted() ] }, state => 'safe_to_retry', events => "$looked answer_lost ask absent", effects => 0,
		what => 'a change that is not there', reason => 'the object is exactly as it was before the send' },
	'change-again' => {
		spec => { write => [ lost_unexecuted() ] }, on_absent => 'replace', state => 'succeeded', events => "$looked answer_lost ask absent claim answered_accepted",
		attempts => 2, effects => 1, what => 'a change that is replaced' },
	'change-other' => {
		spec => { write => [ lost_unexecuted() ] }, meanwhile => [ PATCH => { seats => 3 } ], state => 'manual_review', events => "$looked answer_lost ask inconclusive",
		effects => 1, what => 'somebody changes it to something else', reason => $neither },
	'change-same' => {
		spec => { write => [ lost_unexecuted() ] }, meanwhile => [ PATCH => { seats => 369553424691494913 } ], state => 'succeeded',
		events => "$looked answer_lost ask found", effects => 1, what => 'somebody changes it to just this' },
	'change-gone' => {
		spec => { delete => {}, write => [ lost_unexecuted() ] }, meanwhile => [ DELETE => undef ], state => 'manual_review',
		events => "$looked answer_lost ask inconclusive", effects => 1, what => 'somebody deletes it', reason => $neither },
	'change-blind' => {
		spec => { write => [ lost_unexecuted() ], read => [ ({ status => 500 }) x 2 ] }, lookup => { max_inconclusive => 2 }, state => 'manual_review',
		events => 'submit look_again inconclusive look_again looked_before claim answer_lost ask inconclusive', effects => 0,
		what => 'a change that nobody could compare', reason => $neither },
	'change-page' => {
		spec => { write => [ lost() ], read => [ {}, gateway(), gateway(status => 200), { status => 503 } ] }, state => 'succeeded',
		events => "$looked answer_lost" . ' ask inconclusive' x 3 . ' ask found', effects => 1, what => 'bad answers about a change' },
	'change-nearly' => {
		spec => { preload => [ { ref => 'B1', body => { seats => 369553424691494912 } } ], write => [ lost_unexecuted() ] }, state => 'safe_to_retry',
		events => "$looked answer_lost ask absent", effects => 0, what => 'a value that differs in its last digit' },
	'change-refused' => {
		spec => { write => [ { status => 422 } ] }, state => 'rejected', events => "$looked answered_rejected", effects => 0, what => 'a change that is refused' });
foreach my $name (sort keys %changes)
{
	my %row = %{ $changes{$name} };
	$cases->define($name, spec => { @booking, %{ $row{spec} } }, %change, on_absent => $row{on_absent} // 'hold',
		provider => $row{meanwhile} ? { consistency_window => '2 s' } : {}, lookup => { %changed, %{ $row{lookup} // {} } });
	$cases->submit($name, { booking => 'B1', seats => 369553424691494913 });
}
foreach my $name (sort grep { $changes{$_}{meanwhile} } keys %changes)
{
	my ($method, $body) = @{ $changes{$name}{meanwhile} };
	$cases->wait_event($name, 'answer_lost');
	like($provider->somebody($name, $method, '/effects/B1', $body)->{status}, qr/^20/, "$changes{$name}{what}: meanwhile");
}
foreach my $name (sort keys %changes)
{
	my %row = %{ $changes{$name} };
	my $sent = ($row{attempts} // 1) + ($row{meanwhile} ? 1 : 0);
	$story = $cases->check($name, $row{what}, state => $row{state}, events => $row{events}, attempts => $row{attempts} // 1, deliveries => $sent, effects => $row{effects});
	check_look($row{what}, $name, $story);
	is($story->{answers}[-1]{reason}, $row{reason}, "$row{what}: why") if $row{reason};
}

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
