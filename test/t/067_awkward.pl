# Three providers that break naive models: a calendar where a conflict is a
# success and a tombstone no absence, a payment whose stored failure says nothing
# about the payment, and a chain of calls whose key, object and verdict come from
# different ones.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Keys;
use ActionReconcile::Profiles qw(adopt hasten);
use ActionReconcile::Provider;
use ActionReconcile::Service;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Profiles::node('awkward');
my $k = ActionReconcile::Keys->new($node, $provider);

my $lost = { then => 'close' };
my $never = { then => 'close', commit => 'never' };
my $resent = 'submit claim answer_lost resend';
my $unseen = qr/( ask absent_once)+ ask absent/;

# A profile of the catalogue, under this name, against an imitation.
sub play
{
	my ($name, $profile, %spec) = @_;
	$provider->scenario($name, { imitate => $profile, %spec });
	adopt($node, $profile, $provider->http_url($name), provider => $name, attempt_timeout => '20 seconds');
	hasten($node, $name);
	return;
}

# The example of an operation, with other values where they are given.
sub submit
{
	my ($name, $operation, %more) = @_;
	my ($row) = @{ $node->rows("SELECT example FROM reconcile.operation WHERE operation = '$name.$operation'") };
	return $k->{ids}{$name} = $node->submit("$name.$operation", { %{ $row->{example} }, %more });
}

sub change { my ($name, $set) = @_; $node->sql("UPDATE reconcile.operation SET $set WHERE provider = '$name'"); return; }
sub status { return $node->status($k->id($_[0])); }
sub reasons { return join '; ', map { $_->{lookup}{reason} // () } map { $k->evidence($_[0], $_) } qw(found absent inconclusive); }

# Records an action but sends nothing before resume(): what it will send is known by then.
sub submit_paused
{
	my ($name, @rest) = @_;
	$node->sql("SELECT reconcile.pause('$name', 'the test prepares something')");
	return submit($name, @rest);
}

sub resume { $node->sql("SELECT reconcile.resume('$_[0]')"); return; }

# ---------------------------------------------------------------- A. Google Calendar: whoever is asked by a name of ours

my $limit = { status => 403, commit_delay_s => 0, body => { error => { code => 403, errors => [ { reason => 'rateLimitExceeded' } ] } } };

# It said that it did nothing, and had done it: the conflict afterwards is our own.
play('conflict', 'google-calendar', write => [$limit]);
submit('conflict', 'event.insert');

# The same, and somebody deletes the event before we ask: done, then deleted.
play('tombstone', 'google-calendar', write => [$limit], read => [ { hold_s => -1 } ]);
submit('tombstone', 'event.insert');

# An event of somebody else has our id.
play('collision', 'google-calendar');
submit_paused('collision', 'event.insert');
$provider->preload('collision', [ { id => status('collision')->{client_reference}, summary => 'theirs' } ]);
resume('collision');

# It is shown only after the window that we had believed in.
play('late', 'google-calendar', write => [$lost], read => [ ({ status => 404 }) x 3 ]);
submit('late', 'event.insert');

# Nothing was made, and that is proven: nothing is sent by itself.
play('unsent', 'google-calendar', write => [$never]);
submit('unsent', 'event.insert');

# ---------------------------------------------------------------- B. Stripe: a stored failure

my $failure = { status => 500, body => { error => { type => 'api_error', message => 'An unknown error occurred.' } } };

# The charge is rolled forward a moment later; the search has not heard of it.
play('forward', 'stripe', write => [ { %$failure, commit_delay_s => 0.5 } ], search_lag_s => 3600);
submit('forward', 'payment_intent.create');

# Nothing comes of it; a person has it done after all.
play('failed', 'stripe', write => [$failure]);
submit('failed', 'payment_intent.create');

# The key is dead before anybody could ask with it.
my $dead = q{claims = NULL, key_lifetime = '5 minutes 20 seconds'};
play('dead', 'stripe', write => [ { %$failure, commit_delay_s => 0 } ]);
play('dead-unsent', 'stripe', write => [$failure]);
change($_, $dead) foreach qw(dead dead-unsent);
submit($_, 'payment_intent.create') foreach qw(dead dead-unsent);

# v2 turns it round: the same key does again what had failed.
my %v2 = (key_replay => 'reattempt');
$k->start('v2-failed', { write => [ { %$failure, commit => 'never' }, { %$failure, commit => 'never' } ], %v2 }, %v2);
$k->start('v2-done', { write => [ { %$failure, commit => 'before' } ], %v2 }, %v2);

# ---------------------------------------------------------------- C. Plaid, Adyen, HubSpot: key, object and verdict apart

# The key of the second call is what the first one made.
my %ref = (reference_body_path => undef);
$k->start('plaid-authorization', { write => [$lost], ref_key => 'ref' });
my %transfer = (%ref, headers => {}, key_lifetime => undef, key_lifetime_source => undef, lookups => [ {} ],
	body_document => { authorization_id => '{authorization_id}', amount => '{amount}', metadata => { ref => '{client_reference}' } });
$k->define("plaid-$_->[0]", { key_body => 'authorization_id', ref_key => 'metadata.ref', write => $_->[1] }, %transfer, on_absent => 'replace')
  foreach [ 'transfer', [$lost] ], [ 'unsent', [$never] ];
is($node->wait_state($k->id('plaid-authorization'), 'succeeded'), 'succeeded', 'the first call of a chain');
my $authorization = status('plaid-authorization')->{artifact_id};
$k->submit("plaid-$_", { authorization_id => $authorization, amount => 5 }) foreach qw(transfer unsent);

# Adyen can be asked only with the key.
play('adyen-key', 'adyen', write => [$lost]);
play('adyen-busy', 'adyen', write => [ $lost, { status => 503, body => '<html>Bad gateway</html>' }, { status => 503 } ]);
play('adyen-refused', 'adyen', write => [$lost]);
play('adyen-known', 'adyen', write => [ $lost, { status => 422, body => { status => 422, errorCode => '704', message => 'x' } } ]);
play('adyen-dead', 'adyen', write => [$lost]);
play('adyen-pending', 'adyen', write => [$lost]);
change('adyen-dead', q{claims = NULL, key_lifetime = '60 minutes 20 seconds'});
change('adyen-pending', q{acceptance_max_age = '1 second'});
submit("adyen-$_", 'payment.create') foreach qw(key busy known dead);
my %card = (type => 'scheme', encryptedCardNumber => 'test_4111111111111111');
submit('adyen-refused', 'payment.create', paymentMethod => { %card, holderName => 'DECLINED' });
submit('adyen-pending', 'payment.create', paymentMethod => { %card, holderName => 'PENDING' });

# HubSpot says at once that it has the mail, and only later whether it goes.
my %sends = (headers => {}, key_body_path => '{message,sendId}', artifact_path => '$.id',
	poll => { url_path => '$.status_url', state_path => '$.status', accepted => '{SENT,IDEMPOTENT_IGNORE}',
		rejected => '{IDEMPOTENT_FAIL,BLOCKED_DOMAIN,INVALID_TO_ADDRESS,PORTAL_SUSPENDED}' });
sub hubspot
{
	my ($name, $states, %more) = @_;
	my %spec = (key_body => 'message.sendId', accept => 'body', job_states => $states, job_success => 'SENT', %{ $more{spec} // {} });
	delete $more{spec};
	$k->define("hubspot-$name", \%spec, %sends, lookups => [ $k->replay ], %more);
	$k->submit("hubspot-$name", { emailId => 1, message => { to => 'a@example.com' } });
	return;
}
hubspot('sent', [qw(PENDING PROCESSING SENT)]);
hubspot('lost', [qw(PENDING SENT)], spec => { write => [$lost] });
# What the first send has done is ignored the second time: that is the success we asked about.
hubspot('ignored', [qw(PENDING IDEMPOTENT_IGNORE)], spec => { write => [$lost], job_commit => 'accept' });
hubspot('blocked', [qw(PENDING BLOCKED_DOMAIN)], spec => { write => [$lost] });
hubspot('endless', ['QUEUED'], acceptance_max_age => '2 s');

# ---------------------------------------------------------------- what became of them

$k->check('conflict', state => 'succeeded', events => 'submit claim not_executed claim answer_lost ask found', effects => 1, deliveries => 2);
is(($k->evidence('conflict', 'answer_lost'))[0]{transfer}{answer}, 'already_exists', 'a conflict is neither success nor failure');

$provider->wait_reads('tombstone', 1);
my $event = $provider->ledger('tombstone')->{effects}[0]{id};
my ($deleted) = ActionReconcile::Service::once(DELETE => $provider->http_url('tombstone') . "/calendars/primary/events/$event");
is($deleted, 204, 'somebody deletes the event');
$provider->release('tombstone');
is($node->wait_state($k->id('tombstone'), 'succeeded'), 'succeeded', 'done, then deleted: it has succeeded');
my ($found) = $k->evidence('tombstone', 'found');
ok($found->{lookup}{gone}, 'and the evidence says that it is gone');
like($found->{lookup}{reason}, qr/removed since/, 'in words, too');
is($provider->deliveries('tombstone'), 3, 'it is not made again');

is($node->wait_state($k->id('collision'), 'manual_review'), 'manual_review', 'an id that is taken by somebody else is for a person');
is(status('collision')->{status}, 'DENIED_UNRESOLVED', 'neither a success nor a failure');
is($provider->effects('collision'), 0, 'we have made nothing');
is($provider->deliveries('collision'), 1, 'and asked for it once');

$k->check('late', state => 'safe_to_retry', events => qr/^submit claim answer_lost$unseen$/, effects => 1, deliveries => 1);
$node->sql("SELECT reconcile.replace('" . $k->id('late') . "', 'it is wanted still')");
$k->check('late', state => 'succeeded', events => qr/^submit claim answer_lost$unseen replace claim answer_lost ask found$/, effects => 1, deliveries => 2);
is(($k->evidence('late', 'answer_lost'))[1]{transfer}{answer}, 'already_exists', 'a window that was too short makes no second event of one id');
$k->check('unsent', state => 'safe_to_retry', events => qr/^submit claim answer_lost$unseen$/, effects => 0, deliveries => 1);

$k->check('forward', state => 'succeeded', effects => 1,
	events => qr/^$resent answer_lost( resend answer_lost)* ask inconclusive ask found$/);
is(join(' ', map { "$_->{kind} $_->{result}" } @{ $node->lookups($k->id('forward')) }), 'search inconclusive list_scan found',
	'what the search does not show proves nothing; the list shows it');
is(scalar keys %{ { map { $_->[0] => 1 } $provider->keys_seen('forward') } }, 1, 'under one key all the time');
like(reasons('forward'), qr/not found, where that proves nothing/, 'the history says so');

$k->check('failed', state => 'safe_to_retry', events => qr/^$resent answer_lost ask inconclusive$unseen$/, effects => 0, keys => 'new replayed');
$node->sql("SELECT reconcile.replace('" . $k->id('failed') . "', 'the customer still wants it')");
$k->check('failed', state => 'succeeded', events => qr/$unseen replace( look_again absent)? claim answered_accepted$/, effects => 1, keys => 'new replayed new');
my @keys = map { $_->[0] } $provider->keys_seen('failed');
isnt($keys[2], $keys[0], 'the key that would only repeat the failure is not used again');

$k->check('dead', state => 'succeeded', events => qr/^submit claim answer_lost ask found$/, effects => 1, deliveries => 1);
$k->check('dead-unsent', state => 'safe_to_retry', events => qr/^submit claim answer_lost ask inconclusive$unseen$/, effects => 0, deliveries => 1);
is(scalar $provider->keys_seen('dead-unsent'), 1, 'a dead key is not followed by another one by itself');

$k->check('v2-failed', state => 'succeeded', events => "$resent answer_lost resend answered_accepted", effects => 1, deliveries => 3);
$k->check('v2-done', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);

$k->check('plaid-authorization', state => 'succeeded', events => "$resent answered_accepted", effects => 1);
foreach my $case ([ transfer => qr/^submit claim answer_lost ask found$/, 1 ], [ unsent => qr/^submit claim answer_lost$unseen claim answered_accepted$/, 2 ])
{
	my ($name, $events, $deliveries) = @$case;
	is($node->wait_state($k->id("plaid-$name"), 'succeeded'), 'succeeded', "plaid $name: settled");
	like($node->events($k->id("plaid-$name")), $events, "plaid $name: the story");
	is($provider->effects("plaid-$name"), 1, "plaid $name: once");
	is(join(' ', map { $_->[0] } $provider->keys_seen("plaid-$name")), join(' ', ($authorization) x $deliveries), "plaid $name: by the key that another call has made");
}
is($node->sql("SELECT count(*) FROM reconcile.attempt WHERE action_id = '" . $k->id('plaid-transfer') . "' AND idempotency_key IS NOT NULL"), 0,
	'which is no key of ours: it is not sent again on the strength of it');

$k->check('adyen-key', state => 'succeeded', events => "$resent answered_accepted", effects => 1, keys => 'new replayed');
$k->check('adyen-busy', state => 'succeeded', events => "$resent answer_lost resend answer_lost resend answered_accepted", effects => 1, deliveries => 4);
$k->check('adyen-refused', state => 'rejected', events => "$resent answered_rejected", effects => 0, keys => 'new replayed');
is(join(' ', map { $_->{event} } @{ $node->attempt($k->id('adyen-refused')) }), 'replayed answered_rejected', 'the stored refusal is the refusal of both attempts');
$k->check('adyen-known', state => 'manual_review', events => "$resent key_mismatch", effects => 1, deliveries => 2);
is(status('adyen-known')->{status}, 'DENIED_UNRESOLVED', 'a key that is known with something else is no refusal');
$k->check('adyen-dead', state => 'manual_review', events => 'submit claim answer_lost no_query_surface', effects => 1, deliveries => 1);
$node->sql("SELECT reconcile.look_up_now('" . $k->id('adyen-dead') . "', 'once more')");
$k->check('adyen-dead', state => 'manual_review', events => qr/look_up_now no_query_surface$/, effects => 1, deliveries => 1);
is($node->sql("SELECT tier_after_key FROM reconcile.provider_grade WHERE provider = 'adyen-key'"), 'PARTIAL', 'the grade says that its key is all there is');
$k->check('adyen-pending', state => 'manual_review', events => "$resent answered_async overdue", effects => 1, keys => 'new replayed');
is(status('adyen-pending')->{delivery} . ' ' . status('adyen-pending')->{acceptance}, 'confirmed pending', 'a verdict that does not come: it stays open, delivered');

$k->check('hubspot-sent', state => 'succeeded', events => 'submit claim answered_async poll_accepted', effects => 1, deliveries => 1);
$k->check('hubspot-lost', state => 'succeeded', events => "$resent answered_async poll_accepted", effects => 1, keys => 'new replayed');
$k->check('hubspot-ignored', state => 'succeeded', events => "$resent answered_async poll_accepted", effects => 1, keys => 'new replayed');
is(($k->evidence('hubspot-ignored', 'poll_accepted'))[0]{poll}{state}, 'IDEMPOTENT_IGNORE', 'ignored: done by the attempt before');
$k->check('hubspot-blocked', state => 'rejected', events => "$resent answered_async poll_rejected", effects => 0, keys => 'new replayed');
is(join(' ', map { $_->{state} } @{ $node->attempt($k->id('hubspot-blocked')) }), 'rejected rejected', 'blocked: for both attempts');
$k->check('hubspot-endless', state => 'manual_review', events => 'submit claim answered_async overdue', effects => 0, deliveries => 1);
is(status('hubspot-endless')->{status}, 'DENIED_UNRESOLVED', 'a state that nobody has listed is no verdict, however long');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
