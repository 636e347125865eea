# What is said unasked: confirmations early, late and in a race with a
# replacement, verdicts, contradictions; and whose turn it is.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use File::Temp;
use IPC::Run;
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('inbound');

sub define
{
	my ($name, $scenario, %operation) = @_;
	$provider->scenario($name, $scenario);
	my $url = delete $operation{https} ? $provider->https_url($name) : $provider->http_url($name);
	$node->define_provider($name, $url, attempt_timeout => '5 s', max_in_flight => 64, ca_file => $provider->ca_file,
		%{ delete $operation{provider} // {} });
	$node->define_operation($name, $name, %operation);
	return;
}

sub reference { return $node->sql("SELECT client_reference FROM reconcile.action WHERE action_id = '$_[0]'"); }
sub state_of { return $node->sql("SELECT state FROM reconcile.action WHERE action_id = '$_[0]'"); }
sub confirm
{
	my ($id, $artifact, %more) = @_;
	return $node->sql('SELECT result FROM reconcile.confirm(' . join(', ', map { ActionReconcile::Node::literal($_) } reference($id), $artifact)
		  . join('', map { ", $_ => " . ActionReconcile::Node::literal($more{$_}) } sort keys %more) . ')');
}
sub incidents { return $node->sql("SELECT coalesce(string_agg(kind, ' ' ORDER BY kind), '') FROM reconcile.incident WHERE action_id = '$_[0]'"); }

# ---------------------------------------------------------------- an unknown outcome

define('unknown', { write_default => { commit => 'before', then => 'close' } }, provider => { consistency_window => '1 hour' });
my $id = $node->submit('unknown', { n => 1 });
$node->wait_state($id, 'outcome_unknown');
is(confirm($id, 'theirs-1'), 'applied', 'unknown: a confirmation is applied at once');
is($node->events($id), 'submit claim answer_lost confirm', 'unknown: the story');
my $status = $node->status($id);
is("$status->{status} $status->{artifact_id}", 'CONFIRMED theirs-1', 'unknown: it is done, and its id is known');
is(confirm($id, 'theirs-1'), 'known', 'unknown: said again, it is known');
is($node->sql("SELECT state FROM reconcile.attempt WHERE action_id = '$id'"), 'succeeded', 'unknown: the attempt is credited');
is(confirm($id, 'theirs-2'), 'contradiction', 'unknown: another object contradicts');
is(incidents($id), 'duplicate', 'unknown: and is an incident');
is($provider->deliveries('unknown'), 1, 'unknown: sent once');

$id = $node->submit('unknown', { n => 2 });
$node->wait_state($id, 'outcome_unknown');
like($node->sql_error("SELECT reconcile.verdict('" . reference($id) . "', 'accepted')"), qr/^55000: .*its delivery is pending/,
	'a verdict before delivery is refused');
is($node->sql("SELECT result FROM reconcile.take_in('unknown', 'e1', 'rejected', '" . reference($id) . "', NULL, NULL, '{}')"), 'applied',
	'an event that says no is both');
is(state_of($id), 'rejected', 'and settles it');
is($node->sql("SELECT result FROM reconcile.take_in('unknown', 'e1', 'accepted', '" . reference($id) . "', NULL, NULL, '{}')"), 'applied',
	'the same event again is the one before');
is(state_of($id), 'rejected', 'and changes nothing');
is($node->sql("SELECT result FROM reconcile.take_in('unknown', 'e2', 'accepted', '" . reference($id) . "', NULL, NULL, '{}')"), 'applied',
	'newer word: yes after all');
is(state_of($id), 'succeeded', 'which counts');
is(incidents($id), 'contradiction', 'and is an incident');
is($node->sql("SELECT result FROM reconcile.take_in('unknown', 'e3', 'rejected', '" . reference($id) . "', NULL, NULL, '{}')"), 'contradiction',
	'a no after the yes changes nothing');

# ---------------------------------------------------------------- before the answer, before the action

define('held', { write => [ { hold_s => -1 } ] });
$id = $node->submit('held', {});
ok($provider->wait_writes('held', 1), 'held: the request has left');
is(confirm($id, 'ef-early'), 'stored', 'held: a confirmation before the answer is stored');
$provider->release('held');
$node->wait_state($id, 'succeeded');
$node->wait_sql("SELECT count(*) FROM reconcile.inbox WHERE action_id = '$id' AND applied_at IS NOT NULL", '1');
is($provider->effects('held'), 1, 'held: one effect');

my $early = $node->sql("SELECT result FROM reconcile.confirm('known-before', 'x', provider => 'held')");
is($early, 'stored', 'of an action that is not there yet');
$id = $node->submit('held', { n => 2 }, client_reference => 'known-before');
$node->wait_sql("SELECT held_because FROM reconcile.action WHERE action_id = '$id'", qr/never sent/);
is($provider->deliveries('held'), 1, 'then nothing is sent before somebody has looked');
is(incidents($id), 'contradiction', 'for it is an incident');

# ---------------------------------------------------------------- late, against a queued replacement

define('late', { write_default => { then => 'close', commit => 'never' } });
$id = $node->submit('late', {});
$node->wait_state($id, 'safe_to_retry');
is(confirm($id, 'late-1'), 'applied', 'late: it did happen after all');
is(state_of($id), 'succeeded', 'late: and that counts');
is(incidents($id), 'window_violation', 'late: the window was broken');
like($node->sql_error("SELECT reconcile.replace('$id', 'x')"), qr/^55000/, 'late: it cannot be replaced any more');

define('queued', { write_default => { then => 'close', commit => 'never' } }, provider => {});
$id = $node->submit('queued', {});
$node->wait_state($id, 'safe_to_retry');
$node->sql("SELECT reconcile.pause('queued', 'test'); SELECT reconcile.replace('$id', 'again')");
is(state_of($id), 'planned', 'queued: a replacement waits');
is(confirm($id, 'late-2'), 'applied', 'queued: the late confirmation');
is($node->events($id), 'submit claim answer_lost ask absent_once ask absent replace confirm', 'queued: cancels it in one step');
$node->sql("SELECT reconcile.resume('queued')");
is($provider->deliveries('queued'), 1, 'queued: nothing more was sent');

# ---------------------------------------------------------------- the race

# Both sides go through the same actions in nearly the same order, so that about
# half of them are confirmed before they are queued, and the others around the
# moment in which they are sent; a TLS handshake makes that moment longer.
my $racers = 1000;
define('race', { write => [ map { { then => 'close', commit => 'never' } } 1 .. $racers ] }, https => 1);
my @race = $node->submit_all(map { [ 'race', { n => $_ } ] } 1 .. $racers);
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'race' AND state = 'safe_to_retry'", $racers, 120);
my %reference = map { split /\|/ } split /\n/, $node->sql("SELECT action_id, client_reference FROM reconcile.action WHERE operation = 'race'");
my $directory = File::Temp->newdir;

sub jumbled
{
	my ($width, @list) = @_;
	my @result;
	push @result, sort { rand() <=> 0.5 } splice @list, 0, $width while @list;
	return @result;
}

sub script
{
	my ($name, @statements) = @_;
	open my $file, '>', "$directory/$name" or die;
	print $file map { "$_;\n" } @statements;
	close $file;
	return IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=0', '-d', $node->connstr('postgres'), '-f', "$directory/$name" ],
		'>', \my $out, '2>', \my $err);
}
my @sides;
for my $side (0 .. 3)
{
	my @slice = map { $race[$_] } grep { $_ % 4 == $side } 0 .. $#race;
	push @sides, script("replace$side", map { "SELECT reconcile.replace('$_', 'race')" } jumbled(4, @slice)),
	  script("confirm$side", map { "SELECT result FROM reconcile.confirm('$reference{$_}', 'late-$_')" } jumbled(4, @slice));
}
$_->finish for @sides;
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'race' AND state <> 'succeeded'", '0', 120);
$node->wait_sql("SELECT count(*) FROM reconcile.inbox WHERE provider = 'race' AND applied_at IS NULL", '0', 60);

my %sent;
$sent{ $_->{ref} }++ for grep { $_->{kind} eq 'write' } @{ $provider->ledger('race')->{requests} };
my %cancelled = map { $_ => 1 } split /\n/, $node->sql(<<'SQL');
SELECT a.client_reference FROM reconcile.action a JOIN reconcile.history h USING (action_id)
 WHERE a.operation = 'race' AND h.event = 'confirm' AND h.from_state IN ('planned', 'safe_to_retry')
SQL
my @both = grep { $cancelled{$_} && $sent{$_} > 1 } values %reference;
my $replaced = grep { $sent{$_} > 1 } values %reference;
is(scalar(@both), 0, "race: of $racers none was both cancelled and sent again");
my $planned = $node->sql("SELECT count(*) FROM reconcile.action a JOIN reconcile.history h USING (action_id) WHERE a.operation = 'race' AND h.event = 'confirm' AND h.from_state = 'planned'");
my $refused = $node->sql("SELECT count(DISTINCT action_id) FROM reconcile.action a JOIN reconcile.history h USING (action_id) WHERE a.operation = 'race' AND h.event = 'not_sent'");
note("race: $replaced replacements were sent, " . keys(%cancelled) . " cancelled in time, $planned of them while queued, $refused refused at the last instant");
cmp_ok($planned + $refused, '>', 0, 'race: some were cancelled in the very act');
cmp_ok($replaced, '>', 0, 'race: and some were faster');
is(scalar(grep { $sent{$_} > 2 } values %reference), 0, 'race: none was sent a third time');
is($node->sql("SELECT count(*) FROM reconcile.incident WHERE provider = 'race' AND kind = 'duplicate'"), $replaced,
	'race: where both are there, it is an incident');
is($provider->effects('race'), $replaced, 'race: what was sent is what is there');
is($replaced + keys(%cancelled), $racers, 'race: each is one or the other');

# ---------------------------------------------------------------- order and dependence

define('order', { write => [ {}, { status => 400 } ] });
my @order = map { $node->submit('order', { n => $_ }, ordering_key => 'customer 7', $_ == 3 ? (after_failure => 'true') : ()) } 1 .. 4;
$node->wait_state($order[2], 'succeeded');
is(join(' ', map { state_of($_) } @order), 'succeeded rejected succeeded succeeded', 'order: each after the one before');
is(join(' ', map { $_->{body} =~ /"n":\s*(\d)/ ? $1 : '?' } grep { $_->{kind} eq 'write' } @{ $provider->ledger('order')->{requests} }), '1 2 3 4',
	'order: in that order');
$provider->scenario('order', { write => [ { status => 400 } ] });
@order = map { $node->submit('order', { m => $_ }, ordering_key => 'customer 8') } 1 .. 2;
$node->wait_state($order[0], 'rejected');
$node->sql('SELECT reconcile.wake()');
my $other = $node->submit('order', { m => 3 });
$node->wait_state($other, 'succeeded');
is(state_of($order[1]), 'planned', 'order: after a failure the next one waits for a person');

define('first', { write => [ {}, { status => 400 } ] });
define('second', {}, path => '/effects?parent={depends_on.1.artifact_id}');
$id = $node->submit('first', {});
my $dependent = $node->submit('second', {}, depends_on => "{$id}");
$node->wait_state($dependent, 'succeeded');
my $made = $node->status($id)->{artifact_id};
is((grep { $_->{kind} eq 'write' } @{ $provider->ledger('second')->{requests} })[0]{path}, "/s/second/effects?parent=$made",
	'dependence: the id of the first is used in the second');
$id = $node->submit('first', { n => 2 });
$dependent = $node->submit('second', { n => 2 }, depends_on => "{$id}");
$node->wait_state($dependent, 'cancelled');
is($node->events($dependent), 'submit dependency_failed', 'dependence: what can no longer come true is withdrawn');
is($provider->deliveries('second'), 1, 'dependence: and not sent');
like($node->sql_error("SELECT reconcile.submit('second', '{}', depends_on => '{00000000-0000-0000-0000-000000000001}')"), qr/^22023/,
	'dependence: on nothing is refused');

define('busy', { write => [ { hold_s => -1 } ] }, provider => { max_in_flight => 1 });
$node->submit('busy', { n => 0 });
ok($provider->wait_writes('busy', 1), 'priority: one is open');
my @urgent = map { $node->submit('busy', { n => $_ }, priority => 2 * $_ - 4) } 1 .. 3;
$provider->release('busy');
$node->wait_state($urgent[0], 'succeeded');
is(join(' ', map { $_->{body} =~ /"n":\s*(-?\d)/ ? $1 : '?' } grep { $_->{kind} eq 'write' } @{ $provider->ledger('busy')->{requests} }), '0 3 2 1',
	'priority: the higher goes first');

# ---------------------------------------------------------------- looking back, and erasing

my $now = $node->sql('SELECT clock_timestamp()');
$id = $node->submit('first', { secret => 'Eszter' });
$node->wait_state($id, 'succeeded');
my ($from, $to) = split /\|/, $node->sql("SELECT min(recorded_at), max(recorded_at) FROM reconcile.history WHERE action_id = '$id'");
is($node->sql("SELECT state FROM reconcile.action_as_of('$from', '$id')"), 'planned', 'as of its first moment it was planned');
is($node->sql("SELECT state FROM reconcile.action_as_of('$to', '$id')"), 'succeeded', 'as of its last it had succeeded');
is($node->sql("SELECT count(*) FROM reconcile.action_as_of('$now', '$id')"), '0', 'before it was there it was not');
$node->sql("SELECT reconcile.redact('$id', 'asked by the person')");
is($node->sql("SELECT payload FROM reconcile.action WHERE action_id = '$id'"), '{}', 'redacted: the payload is gone');
is($node->sql("SELECT count(*) FROM reconcile.attempt WHERE action_id = '$id' AND response_body IS NOT NULL"), '0', 'redacted: so is the answer');
unlike($node->sql("SELECT reconcile.receipt('$id')"), qr/Eszter/, 'redacted: the receipt holds none of it');
is($node->sql("SELECT count(*) FROM reconcile.verify_history('$id')"), '0', 'redacted: the chain is whole');
like($node->sql_error("SELECT reconcile.redact('$order[1]', 'x')"), qr/^55000/, 'redacted: not what may still be sent');

my $today = $node->sql("SELECT (now() AT TIME ZONE 'UTC')::date");
is($node->sql("SELECT sent, answered_yes, answered_no, open_now, verdict FROM reconcile.day_report('$today') WHERE operation = 'first'"),
	'3|2|1|0|clean', 'the day: what was sent and what came back');
is($node->sql("SELECT verdict FROM reconcile.day_report('$today') WHERE operation = 'unknown'"), 'look at the incidents', 'the day: what is to be looked at');
is($node->sql("SELECT DISTINCT verdict FROM reconcile.day_report('2001-02-03')"), 'clean: nothing was sent', 'a day without anything is there too');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
