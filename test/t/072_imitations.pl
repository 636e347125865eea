# Profiles against imitations of their providers, where these are awkward: ids
# that outlive their event, a stored failure, a conflict with oneself, an issue
# among others on a later page.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Profiles qw(adopt hasten story);
use ActionReconcile::Provider;
use ActionReconcile::Service;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Profiles::node('imitations');

# A profile, under this name, against an imitation with this behaviour.
sub play
{
	my ($name, $profile, %spec) = @_;
	$provider->scenario($name, { imitate => $profile, %spec });
	adopt($node, $profile, $provider->http_url($name), provider => $name);
	hasten($node, $name);
	return;
}

sub settle
{
	my ($id, $state, $what) = @_;
	$node->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$id'", qr/^(?:succeeded|rejected|safe_to_retry|manual_review)$/);
	is($node->status($id)->{state}, $state, "$what: $state") or diag(story($node, $id));
	return $node->status($id);
}

# The example of the operation, with other values where they are given.
sub submit
{
	my ($operation, %more) = @_;
	my ($row) = @{ $node->rows("SELECT example FROM reconcile.operation WHERE operation = '$operation'") };
	return $node->submit($operation, { %{ $row->{example} }, %more });
}

my $lost = [ { then => 'close' } ];
my $unsent = [ { then => 'close', commit => 'never' } ];

# ---------------------------------------------------------------- Google Calendar

play('insert-lost', 'google-calendar', write => $lost);
my $status = settle(submit('insert-lost.event.insert'), 'succeeded', 'an event whose answer is lost');
is($status->{artifact_id}, $provider->ledger('insert-lost')->{effects}[0]{id}, 'it is found by the id that was chosen for it');
is($provider->deliveries('insert-lost'), 1, 'it was sent once');

play('insert-unsent', 'google-calendar', write => $unsent);
settle(submit('insert-unsent.event.insert'), 'safe_to_retry', 'an event that never arrived');

# Somebody deletes it while we ask: it has happened all the same.
play('insert-gone', 'google-calendar', write => $lost, read => [ { hold_s => -1 } ]);
my $id = submit('insert-gone.event.insert');
ok($provider->wait_reads('insert-gone', 1), 'the question is being answered');
my ($event) = map { $_->{id} } @{ $provider->ledger('insert-gone')->{effects} };
my ($deleted) = ActionReconcile::Service::once(DELETE => $provider->http_url('insert-gone') . "/calendars/primary/events/$event");
is($deleted, 204, 'it is deleted meanwhile');
$provider->release('insert-gone');
settle($id, 'succeeded', 'an event that was made and removed since');

sub deletion
{
	my ($name, $event) = @_;
	return submit("$name.event.delete", event_id => $event);
}

my @theirs = ({ id => 'theirs1' }, { id => 'gone1', deleted => 1 });
play('delete-lost', 'google-calendar', write => $lost, preload => \@theirs);
settle(deletion('delete-lost', 'theirs1'), 'succeeded', 'a delete whose answer is lost');
is($provider->effects('delete-lost'), 1, 'one deletion');
is($provider->deliveries('delete-lost'), 1, 'sent once');

play('delete-unsent', 'google-calendar', write => $unsent, preload => \@theirs);
settle(deletion('delete-unsent', 'theirs1'), 'safe_to_retry', 'a delete that never arrived');

play('delete', 'google-calendar', preload => \@theirs);
isnt($node->wait_state(deletion('delete', 'gone1'), 'rejected|manual_review'), 'succeeded', 'what was deleted by others is not ours');
settle(deletion('delete', 'never1'), 'rejected', 'what never was');
is($provider->effects('delete'), 0, 'nothing was deleted');

# ---------------------------------------------------------------- Stripe

# The stored failure is repeated for ever; the search knows better.
play('stored-500', 'stripe', write => [ { status => 500, commit => 'before' } ]);
$status = settle(submit('stored-500.payment_intent.create'), 'succeeded', 'a failure that the key repeats');
my @keys = $provider->keys_seen('stored-500');
is_deeply([ map { $_->[1] } @keys[ 0, 1 ] ], [ 'new', 'replayed' ], 'it was asked again with the key');
is($provider->effects('stored-500'), 1, 'and happened once');
is($status->{artifact_id}, $provider->ledger('stored-500')->{effects}[0]{id}, 'its id is known');

# The first request still runs when it is asked again: a conflict with oneself.
play('conflict', 'stripe', write => [ { hold_s => -1, commit => 'after_hold' } ]);
$id = submit('conflict.payment_intent.create');
ok($provider->wait_writes('conflict', 2), 'it is asked again while the first one runs');
$provider->release('conflict');
settle($id, 'succeeded', 'a conflict with oneself');
is($provider->effects('conflict'), 1, 'it happened once');
is((grep { $_->[1] eq 'in_progress' } $provider->keys_seen('conflict')) > 0, 1, 'there was a conflict');

# A refusal that the key keeps.
play('declined', 'stripe', write => $lost);
settle(submit('declined.payment_intent.charge', payment_method => 'pm_card_chargeDeclined'), 'rejected', 'a decline whose answer is lost');
is($provider->effects('declined'), 0, 'nothing was charged');

# ---------------------------------------------------------------- GitHub

# Others write issues and pull requests, so ours is on the second page.
play('issue-lost', 'github', write => $lost, read => [ { hold_s => -1 } ]);
$id = submit('issue-lost.issue.create');
ok($provider->wait_reads('issue-lost', 1), 'the question is being answered');
$provider->preload('issue-lost', [ map { { title => "theirs $_", $_ % 2 ? (pull_request => {}) : () } } 1 .. 150 ]);
$provider->release('issue-lost');
$status = settle($id, 'succeeded', 'an issue on the second page');
is($status->{artifact_id}, $provider->ledger('issue-lost')->{effects}[0]{id}, 'it is ours');
is($provider->deliveries('issue-lost'), 1, 'it was sent once');

# A pull request that quotes our text is no issue of ours.
play('issue-unsent', 'github', write => $unsent, read => [ { hold_s => -1 } ]);
$id = submit('issue-unsent.issue.create');
ok($provider->wait_reads('issue-unsent', 1), 'the question is being answered');
my $reference = $node->status($id)->{client_reference};
$provider->preload('issue-unsent', [ { title => 'fix', body => "<!-- reference $reference -->", pull_request => {} } ]);
$provider->release('issue-unsent');
settle($id, 'safe_to_retry', 'an issue that never arrived');

# ---------------------------------------------------------------- Adyen, PayPal, SQS

foreach ([ adyen => 'payment.create' ], [ paypal => 'order.create' ], [ sqs => 'message.send_fifo' ])
{
	my ($profile, $operation) = @$_;
	play("$profile-lost", $profile, write => $lost);
	$status = settle(submit("$profile-lost.$operation"), 'succeeded', "$profile: a lost answer");
	is($provider->effects("$profile-lost"), 1, "$profile: it happened once");
	is($status->{artifact_id}, $provider->ledger("$profile-lost")->{effects}[0]{id}, "$profile: the key tells its id");

	play("$profile-unsent", $profile, write => $unsent);
	settle(submit("$profile-unsent.$operation"), 'succeeded', "$profile: a request that never arrived");
	is($provider->effects("$profile-unsent"), 1, "$profile: it happened once all the same");
}
play('adyen-running', 'adyen', write => [ { hold_s => -1, commit => 'after_hold' } ]);
$id = submit('adyen-running.payment.create');
ok($provider->wait_writes('adyen-running', 2), 'adyen: it is asked again while the first one runs');
$provider->release('adyen-running');
settle($id, 'succeeded', 'adyen: a conflict with oneself');
is($provider->effects('adyen-running'), 1, 'adyen: it happened once');

# ---------------------------------------------------------------- SendGrid

play('mail-lost', 'sendgrid', write => $lost);
settle(submit('mail-lost.mail.send'), 'manual_review', 'a mail whose answer is lost: nobody can be asked');
is($provider->deliveries('mail-lost'), 1, 'it is not sent again');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
