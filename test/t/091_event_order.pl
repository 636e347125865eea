# Events come before the answer, before the action, before the id of the object
# is known, long after a verdict, twice, and in the wrong order. Whoever brings
# one that is rightly signed, the provider has spoken.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Events;
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $events = ActionReconcile::Events->new('order', map { $_ => "SecretOf-$_" }
	qw(flight uncommitted late queued orders bounce early-bounce final replay object found forwarded prepared busy));
my $node = $events->node;
my @rules = (
	{ condition => '$ ? (@.type == "made")', says => 'executed', reference_path => '$.ref', artifact_path => '$.id', occurred_path => '$.at' },
	{ condition => '$ ? (@.type == "done")', says => 'accepted', reference_path => '$.ref', artifact_path => '$.id', occurred_path => '$.at' },
	{ condition => '$ ? (@.type == "failed")', says => 'rejected', reference_path => '$.ref', artifact_path => '$.id', occurred_path => '$.at' });
$node->sql('CREATE ROLE forwarder LOGIN; GRANT reconcile_submitter TO forwarder; CREATE ROLE gone LOGIN; GRANT reconcile_submitter TO gone');

sub define
{
	my ($name, $scenario, %operation) = @_;
	$provider->scenario($name, $scenario);
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '20 s', %{ delete $operation{provider} // {} });
	$node->define_operation($name, $name, reference_is_global => 'true', %operation);
	$events->source($name, scheme => 'stripe', event_id_path => '$.event', rules => \@rules);
	return;
}

my $number = 0;
sub event { my ($type, %more) = @_; return { type => $type, event => 'evt_' . ++$number, %more }; }
sub reference { return $node->sql("SELECT client_reference FROM reconcile.action WHERE action_id = '$_[0]'"); }
sub state_of { return $node->sql("SELECT state FROM reconcile.action WHERE action_id = '$_[0]'"); }
sub incidents { return $node->sql("SELECT coalesce(string_agg(kind, ' ' ORDER BY kind), '') FROM reconcile.incident WHERE action_id = '$_[0]'"); }
sub result_of { return $node->sql("SELECT coalesce(result, 'waits') FROM reconcile.inbox WHERE inbox_id = $_[0]{inbox_id}"); }
sub wait_result { return $node->wait_sql("SELECT result FROM reconcile.inbox WHERE inbox_id = $_[0]{inbox_id}", qr/./); }
sub lookups { return $node->sql("SELECT count(*) FROM reconcile.lookup WHERE action_id = '$_[0]'"); }

# ---------------------------------------------------------------- while the request is in flight

define('flight', { write => [ { hold_s => -1, then => 'close' }, { hold_s => -1 } ] }, provider => { consistency_window => '1 hour' });
my $id = $node->submit('flight', { n => 1 });
ok($provider->wait_writes('flight', 1), 'in flight: the request has left');
my $row = $events->receive('flight', event('done', ref => reference($id), id => 'obj-1'));
is($row->{result}, 'stored', 'in flight: the event is stored');
is($row->{action_id}, $id, 'in flight: and knows its action');
is(state_of($id), 'submitted', 'in flight: which is left alone');
$provider->release('flight');
$node->wait_state($id, 'succeeded');
is($node->events($id), 'submit claim answer_lost confirm', 'in flight: the answer is lost, the event counts');
is(lookups($id), 0, 'in flight: nobody had to be asked');
is($node->status($id)->{artifact_id}, 'obj-1', 'in flight: the id is that of the event');
my ($confirmed) = grep { $_->{event} eq 'confirm' } @{ $node->history($id) };
is($confirmed->{evidence}{event}{verified}, JSON::PP::true, 'in flight: the history says that it was signed');
is($provider->deliveries('flight'), 1, 'in flight: sent once');

$id = $node->submit('flight', { n => 2 });
ok($provider->wait_writes('flight', 2), 'before the answer: the request has left');
$row = $events->receive('flight', event('failed', ref => reference($id)));
is($row->{result}, 'stored', 'before the answer: a no is stored');
$provider->release('flight');
$node->wait_state($id, 'succeeded');
is(wait_result($row), 'contradiction', 'before the answer: the yes of the answer stands against it');
is(incidents($id), 'contradiction', 'before the answer: which is for a person');

# ---------------------------------------------------------------- before the action

$row = $events->receive('flight', event('done', ref => 'coming-soon', id => 'obj-2'));
is($row->{action_id}, undef, 'before the action: there is none');
is($node->sql(q{SELECT reference FROM reconcile.unmatched_event WHERE provider = 'flight'}), 'coming-soon', 'before the action: it is shown as unmatched');
$id = $node->submit('flight', { n => 3 }, client_reference => 'coming-soon');
is(wait_result($row), 'contradiction', 'before the action: it is applied when the action appears');
is($node->sql("SELECT held FROM reconcile.action WHERE action_id = '$id'"), 't', 'before the action: which is held, for we had sent nothing');
is($node->sql('SELECT count(*) FROM reconcile.unmatched_event'), 0, 'before the action: it is not unmatched any more');
is($provider->deliveries('flight'), 2, 'before the action: it is not sent');

# The action is recorded, but not committed, when the event comes.
define('uncommitted', {});
my $call = $events->call('uncommitted', event('done', ref => 'not-yet'));
my $file = PostgreSQL::Test::Utils::tempdir() . '/event.sql';
PostgreSQL::Test::Utils::append_to_file($file, "SELECT result FROM $call;\n");
my $psql = sprintf('psql -XAtq -d "%s" -f %s', $node->connstr('postgres'), $file);
like($node->sql("BEGIN;\nSELECT action_id FROM reconcile.submit('uncommitted', '{}', client_reference => 'not-yet');\n\\! $psql\nCOMMIT;"), qr/^stored$/m,
	'not committed: the event is stored');
$id = $node->sql(q{SELECT action_id FROM reconcile.action WHERE client_reference = 'not-yet'});
$node->wait_sql("SELECT held FROM reconcile.action WHERE action_id = '$id'", 't');
like($node->events($id), qr/^submit claim not_sent( claim not_sent)* hold$/, 'not committed: the last check before the first byte saw it');
is($provider->deliveries('uncommitted'), 0, 'not committed: nothing was sent');
is(incidents($id), 'contradiction', 'not committed: a person looks');

# What somebody says who may not speak of it is in nobody's way.
$node->sql(q{SET SESSION AUTHORIZATION forwarder; SELECT reconcile.confirm('not-yours', provider => 'uncommitted')});
$node->sql(q{SET SESSION AUTHORIZATION gone; SELECT reconcile.confirm('not-yours', provider => 'uncommitted')});
$node->sql('DROP OWNED BY gone; DROP ROLE gone');
$id = $node->submit('uncommitted', { n => 2 }, client_reference => 'not-yours');
is($node->wait_state($id, 'succeeded'), 'succeeded', 'another\'s word, and that of a role that is gone, stop nothing');
is($node->sql(q{SELECT count(*) FROM reconcile.unmatched_event WHERE reference = 'not-yours'}), 2, 'and stay unmatched');

# ---------------------------------------------------------------- before the id of the object is known

define('object', { write => [ { hold_s => -1 } ] });
$id = $node->submit('object', {});
ok($provider->wait_effects('object', 1), 'by the object: it is made');
my $object = $provider->ledger('object')->{effects}[0]{id};
$row = $events->receive('object', event('done', id => $object));
is($row->{action_id}, undef, 'by the object: nobody knows whose it is');
$provider->release('object');
$node->wait_state($id, 'succeeded');
is(wait_result($row), 'known', 'by the object: until the answer brings its id');
is($node->sql("SELECT action_id FROM reconcile.inbox WHERE inbox_id = $row->{inbox_id}"), $id, 'by the object: it was ours');

define('found', { write => [ { then => 'close' } ] });
$node->sql(q{SELECT reconcile.pause('found', 'the test')});
$id = $node->submit('found', {});
$node->sql(q{SELECT reconcile.resume('found')});
ok($provider->wait_effects('found', 1), 'found: it is made');
$object = $provider->ledger('found')->{effects}[0]{id};
$row = $events->receive('found', event('made', id => $object));
$node->wait_state($id, 'succeeded');
is(wait_result($row), 'known', 'found: until a lookup brings its id');

# ---------------------------------------------------------------- long after a verdict

define('late', { write_default => { then => 'close', commit => 'never' } });
$id = $node->submit('late', {});
$node->wait_state($id, 'safe_to_retry');
is($events->receive('late', event('made', ref => reference($id), id => 'late-1'))->{result}, 'applied', 'late: it did happen');
is($node->events($id), 'submit claim answer_lost ask absent_once ask absent confirm', 'late: the story');
is(incidents($id), 'window_violation', 'late: the window was broken');

define('queued', { write_default => { then => 'close', commit => 'never' } });
$id = $node->submit('queued', {});
$node->wait_state($id, 'safe_to_retry');
$node->sql("SELECT reconcile.pause('queued', 'the test'); SELECT reconcile.replace('$id', 'wanted again')");
is($events->receive('queued', event('failed', ref => reference($id)))->{result}, 'known', 'queued: a no is no news');
is(state_of($id), 'planned', 'queued: the replacement waits on');
is($events->receive('queued', event('done', ref => reference($id), id => 'late-2'))->{result}, 'applied', 'queued: a late yes');
is(state_of($id), 'succeeded', 'queued: cancels it');
$node->sql(q{SELECT reconcile.resume('queued')});
is($provider->deliveries('queued'), 1, 'queued: nothing more was sent');

# ---------------------------------------------------------------- the wrong order

my @async = (answers => [ { statuses => '{202}', class => 'accepted_async' } ]);
my %at = (e1 => 1700000700, e2 => 1700000820, e3 => 1700001600);
define('orders', { write_default => { status => 202 } }, @async);
$id = $node->submit('orders', { n => 1 });
$node->wait_state($id, 'delivered');
is($events->receive('orders', event('done', ref => reference($id), at => $at{e2}))->{result}, 'applied', 'order: E2, yes');
is($events->receive('orders', event('failed', ref => reference($id), at => $at{e1}))->{result}, 'older', 'order: E1, an older no, comes afterwards');
is(state_of($id) . incidents($id), 'succeeded', 'order: nothing is overwritten, and nobody is alarmed');
is($events->receive('orders', event('refunded', ref => reference($id), at => $at{e3}))->{result}, 'ignored', 'order: E3 is a later fact');
is($events->receive('orders', event('failed', ref => reference($id), at => $at{e3}))->{result}, 'contradiction', 'order: a newer no');
is(state_of($id) . ' ' . incidents($id), 'succeeded contradiction', 'order: is no rewrite either, but an incident');
is($node->sql("SELECT string_agg(says || ' ' || result, ', ' ORDER BY inbox_id) FROM reconcile.inbox WHERE action_id = '$id' OR provider = 'orders' AND action_id IS NULL"),
	'accepted applied, rejected older, ignored ignored, rejected contradiction', 'order: all of it is kept');

$id = $node->submit('orders', { n => 2 });
$node->wait_state($id, 'delivered');
is($events->receive('orders', event('made', ref => reference($id), at => $at{e2}))->{result}, 'known', 'order: it has it, as we know');
is($events->receive('orders', event('failed', ref => reference($id), at => $at{e1}))->{result}, 'older', 'order: an older no does not refuse it');
is(state_of($id), 'delivered', 'order: it is still open');
is($events->receive('orders', event('failed', ref => reference($id), at => $at{e3}))->{result}, 'applied', 'order: a newer one does');
is($events->receive('orders', event('done', ref => reference($id), at => $at{e2}))->{result}, 'older', 'order: and no older yes takes that back');
is($events->receive('orders', event('done', ref => reference($id), at => $at{e3} + 1))->{result}, 'applied', 'order: only a newer one');
is(state_of($id) . ' ' . incidents($id), 'succeeded contradiction', 'order: which is for a person to look at');

# ---------------------------------------------------------------- taken, then bounced

define('bounce', { write => [ { status => 202 } ] }, @async);
$id = $node->submit('bounce', {});
$node->wait_state($id, 'delivered');
is($events->receive('bounce', event('failed', ref => reference($id)))->{result}, 'applied', 'bounce: the provider says no in the end');
is($node->status($id)->{status}, 'FAILED', 'bounce: it has failed');
is($node->events($id), 'submit claim answered_async refuse', 'bounce: the story');

define('early-bounce', { write => [ { status => 202, hold_s => -1 } ] }, @async);
$id = $node->submit('early-bounce', {});
ok($provider->wait_writes('early-bounce', 1), 'early bounce: the request has left');
$row = $events->receive('early-bounce', event('failed', ref => reference($id)));
is($row->{result}, 'stored', 'early bounce: before the 202');
$provider->release('early-bounce');
$node->wait_state($id, 'rejected');
is($node->events($id), 'submit claim answered_async refuse', 'early bounce: the story is the same');

define('final', { write => [ { status => 202 } ] }, answers => [ { statuses => '{202}', class => 'accepted' } ]);
$id = $node->submit('final', {});
$node->wait_state($id, 'succeeded');
is($events->receive('final', event('failed', ref => reference($id)))->{result}, 'contradiction', 'final: where 202 is a yes, a bounce is a further fact');
is(state_of($id) . ' ' . incidents($id), 'succeeded contradiction', 'final: with an alarm');
is($provider->deliveries($_), 1, "$_: one request") foreach qw(bounce early-bounce final);

# ---------------------------------------------------------------- twice

define('replay', { write_default => { then => 'close' } }, provider => { consistency_window => '1 hour' });
$id = $node->submit('replay', {});
$node->wait_state($id, 'outcome_unknown');
my $once = event('done', ref => reference($id), id => 'obj');
$row = $events->receive('replay', $once);
is_deeply($events->receive('replay', $once), $row, 'twice: the same answer') foreach 1 .. 3;
is($row->{result}, 'applied', 'twice: which says what the first one did');
is($node->events($id), 'submit claim answer_lost confirm', 'twice: applied once');

# ---------------------------------------------------------------- who brings it

define('forwarded', { write_default => { then => 'close' } }, provider => { consistency_window => '1 hour' });
$id = $node->submit('forwarded', { n => 1 });
$node->wait_state($id, 'outcome_unknown');
like($events->ask("SELECT row_to_json(c) FROM reconcile.confirm('" . reference($id) . "') c", 'forwarder'), qr/^42704:/, 'a submitter cannot confirm what is another\'s');
is($events->ask("SELECT row_to_json(c) FROM reconcile.confirm('" . reference($id) . "', provider => 'forwarded') c", 'forwarder')->{result}, 'stored',
	'nor by saying of which provider');
is($events->receive('forwarded', event('done', ref => reference($id)), role => 'forwarder', secret => 'guessed'),
	'28000: event of provider "forwarded" is refused: its signature is wrong', 'nor by an event that it signs itself');
is(state_of($id), 'outcome_unknown', 'all of that changes nothing');
$row = $events->receive('forwarded', event('done', ref => reference($id)), role => 'forwarder');
is($row->{result}, 'applied', 'but it can forward what the provider has signed');
is($row->{action_id}, undef, 'and does not hear of which action it was');
is($node->sql("SELECT actor FROM reconcile.history WHERE action_id = '$id' AND event = 'confirm'"), 'forwarder', 'the history names who brought it');

# ---------------------------------------------------------------- somebody holds the action

define('busy', { write_default => { then => 'close' } }, provider => { consistency_window => '1 hour' });
$id = $node->submit('busy', {});
$node->wait_state($id, 'outcome_unknown');
$call = $events->call('busy', event('done', ref => reference($id)));
$file = PostgreSQL::Test::Utils::tempdir() . '/event.sql';
PostgreSQL::Test::Utils::append_to_file($file, "SELECT result FROM $call;\n");
$psql = sprintf('psql -XAtq -d "%s" -f %s', $node->connstr('postgres'), $file);
like($node->sql("BEGIN;\nSELECT 1 FROM reconcile.action WHERE action_id = '$id' FOR UPDATE;\n\\! $psql\nCOMMIT;"), qr/^stored$/m, 'held by somebody: it is not waited for');
is($node->wait_state($id, 'succeeded'), 'succeeded', 'held by somebody: the engine applies it afterwards');

# ---------------------------------------------------------------- two-phase commit

define('prepared', { write_default => { then => 'close' } }, provider => { consistency_window => '1 hour' });
$id = $node->submit('prepared', { n => 1 });
$node->wait_state($id, 'outcome_unknown');
like($events->ask('BEGIN; SELECT row_to_json(r) FROM ' . $events->call('prepared', event('done', ref => reference($id))) . " r; PREPARE TRANSACTION 'x'"),
	qr/^0A000: /, 'prepared: what is told by NOTIFY cannot be prepared');
like($events->hint, qr/COMMIT/, 'prepared: the hint says what to do instead');
is(state_of($id), 'outcome_unknown', 'prepared: nothing of it happened');
$call = $events->call('prepared', event('done', ref => 'prepared-later'));
$node->sql("BEGIN; SELECT * FROM $call; PREPARE TRANSACTION 'stored only'");
is($node->sql("SELECT count(*) FROM reconcile.inbox WHERE reference = 'prepared-later'"), 0, 'prepared: what is only stored can be');
$id = $node->submit('prepared', { n => 2 }, client_reference => 'prepared-later');
$node->wait_state($id, 'outcome_unknown');
$node->sql("COMMIT PREPARED 'stored only'");
is($node->sql("SELECT count(*) FROM reconcile.unmatched_event WHERE reference = 'prepared-later'"), 1, 'prepared: it was recorded before its action was');
$node->sql("UPDATE reconcile.provider SET consistency_window = '0.3 s' WHERE provider = 'prepared'");
is($events->receive('prepared', event('made', ref => 'prepared-later'))->{result}, 'applied', 'prepared: the next word is about the same action');
is($node->sql("SELECT count(*) FROM reconcile.unmatched_event WHERE reference = 'prepared-later'"), 1, 'prepared: the first one is not lost');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
