# How people were bitten by their workers, and the outcome that is right: one
# killed between the send and the record, one bad result that takes the batch
# along, one that was only thought to be dead.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background crash deliveries_of effects_of elapsed finish_background story_problems);
use ActionReconcile::Node;
use ActionReconcile::Provider;

plan skip_all => 'needs the library with fault points in AR_TEST_LIBDIR'
  if ($ENV{AR_TEST_LIBDIR} // '') eq '';

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('worker');

my $unharmed = 'submit claim answered_accepted';
my $found = 'submit claim recover ask found';
my $replaced = 'submit claim recover ask absent_once ask absent claim answered_accepted';

sub check_scenario
{
	my ($title, $name, @ids) = @_;
	is(join("\n", story_problems($node, $provider, $name, @ids)), '', "$title: nothing twice, nothing lost");
	$node->assert_consistent($title);
	return;
}

# ---------------------------------------------------------------- killed between send and record

# point: the fault point to wait for; reach: what else tells that it is time to kill
sub kill_worker_when
{
	my ($title, $name, $story, %how) = @_;
	my $url = $how{url} // $provider->http_url($name);

	$node->define_provider($name, $url, attempt_timeout => '4 s');
	$node->define_operation($name, $name, on_absent => 'replace');
	$node->set_fault_point($how{point}) if $how{point};
	my $id = $node->submit($name, $how{payload} // {});
	$node->wait_fault($how{point}) if $how{point};
	$how{reach}->() if $how{reach};
	is($node->status($id)->{state}, 'submitted', "$title: killed while the attempt is open");
	$node->clear_fault_point if $how{point};
	crash($node, 'worker');

	is($node->wait_state($id, 'succeeded'), 'succeeded', "$title: settled");
	is($node->events($id), $story, "$title: the story");
	my $recovery = $node->history($id)->[2];
	is($recovery->{to_state}, 'outcome_unknown', "$title: unknown first");
	is($recovery->{evidence}{recovery}{found}, 'submitted', "$title: and the history says why");
	is($provider->effects($name), 1, "$title: one effect");
	check_scenario($title, $name, $id);
	return;
}

$provider->scenario('kill1');
kill_worker_when('before the first byte', 'kill1', $replaced, point => 'before_first_byte');

# Half a megabyte does not fit into a receive buffer of 4 kB.  What the kernel
# still holds must go with the process.
$provider->preset('kill2', '8-read-late', read_after_s => 1);
kill_worker_when('half the body sent', 'kill2', $replaced, point => 'after_request',
	payload => { text => join('', map { sprintf '%08x', int rand 2**32 } 1 .. 65536) });
my ($cut) = grep { $_->{kind} eq 'write' } @{ $provider->ledger('kill2')->{requests} };
ok(!$cut->{complete}, 'half the body sent: the rest never arrived');

$provider->preset('kill3', 'case-29-held-reply');
kill_worker_when('request complete', 'kill3', $found, reach => sub { $provider->wait_effects('kill3', 1, 20) });

$provider->preset('kill4', 'case-29-half-reply');
my $relay = ActionReconcile::Crash->relay($provider->port('kill4', 'http'));
$relay->let_through;
kill_worker_when('half the reply read', 'kill4', $found,
	url => 'http://127.0.0.1:' . $relay->port . '/s/kill4',
	reach => sub { $relay->wait_reply; });

$provider->scenario('kill5');
kill_worker_when('reply read, not recorded', 'kill5', $found, point => 'record_before_commit');

# ---------------------------------------------------------------- one bad result among twenty

sub submit_twenty
{
	my ($name) = @_;
	my $calls = join '', map { "SELECT action_id FROM reconcile.submit('$name', '{\"n\": $_}');\n" } 1 .. 20;
	return split /\n/, $node->sql("BEGIN;\n${calls}COMMIT;");
}

sub define_batch
{
	my ($name, %more) = @_;
	$node->define_provider($name, $provider->http_url($name), max_in_flight => 32, attempt_timeout => '10 s', %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

sub check_twenty
{
	my ($title, $name, $bad, @ids) = @_;
	my $ledger = $provider->ledger($name);

	is(scalar(grep { $_ ne ($bad // '') && $node->events($_) eq $unharmed } @ids), defined $bad ? 19 : 20,
		"$title: all others are recorded on their own");
	is($ledger->{deliveries}, 20, "$title: twenty requests, for ever");
	is($ledger->{effect_count}, 20, "$title: twenty effects");
	check_scenario($title, $name, @ids);
	return;
}

# A trigger of a user that refuses the result of number 13.
$provider->scenario('trigger');
define_batch('trigger');
$node->sql(<<'SQL');
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.event = 'answered_accepted' AND
		EXISTS (SELECT FROM reconcile.action a WHERE a.action_id = NEW.action_id AND a.payload->>'n' = '13') THEN
		RAISE EXCEPTION 'number 13 is unlucky';
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER refuse AFTER UPDATE ON reconcile.attempt FOR EACH ROW EXECUTE FUNCTION public.refuse();
SQL
my $worker = $node->worker_pid;
my $offset = $node->log_offset;
my @ids = submit_twenty('trigger');
my $bad = $ids[12];
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'trigger' AND state = 'succeeded'", '19', 5);
is($node->status($bad)->{status}, 'DENIED_UNRESOLVED', 'a refused result: the others did not wait for it');
$node->wait_state($bad, 'succeeded');
is($node->events($bad), 'submit claim answer_lost ask found', 'a refused result: unknown, then looked up');
is($node->history($bad)->[2]{evidence}{transfer}{reason}, 'the result could not be stored', 'a refused result: the reason is in the history');
ok($node->log_contains('number 13 is unlucky', $offset), 'a refused result: the error is in the log');
is($node->worker_pid, $worker, 'a refused result: the worker lives');
check_twenty('a refused result', 'trigger', $bad, @ids);
$node->sql('DROP TRIGGER refuse ON reconcile.attempt');

# A reply without an end.
$provider->preset('endless', 'case-30-one-endless-of-20');
define_batch('endless', max_response_bytes => 65536);
@ids = submit_twenty('endless');
$node->wait_state($_, 'succeeded') foreach @ids;
my $thirteenth = (grep { $_->{kind} eq 'write' } @{ $provider->ledger('endless')->{requests} })[12]{ref};
my ($cut_id) = $node->sql("SELECT action_id FROM reconcile.action WHERE client_reference = '$thirteenth'");
is($node->events($cut_id), 'submit claim answer_lost ask found', 'an endless reply: not believed, looked up');
my $attempt = $node->attempt($cut_id)->[0];
is($attempt->{http_status}, 201, 'an endless reply: its status is kept');
cmp_ok($node->sql("SELECT length(response_body) FROM reconcile.attempt WHERE action_id = '$cut_id'"), '<=', 8192,
	'an endless reply: its body is cut');
is($node->worker_pid, $worker, 'an endless reply: the worker lives');
check_twenty('an endless reply', 'endless', $cut_id, @ids);

# Somebody holds the row of number 13 while the results come in.
$provider->scenario('locked', { write_default => { hold_s => -1 } });
define_batch('locked');
@ids = submit_twenty('locked');
ok($provider->wait_effects('locked', 20, 20), 'a locked row: twenty are open');
my $holder = background($node, 'BEGIN', "SELECT FROM reconcile.action WHERE action_id = '$ids[12]' FOR UPDATE",
	'SELECT pg_advisory_lock(1313)', 'SELECT pg_sleep(60)');
my $pid = $node->wait_sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 1313 AND granted", qr/^\d+$/);
$provider->release('locked');
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'locked' AND state = 'succeeded'", '19', 8);
is($node->status($ids[12])->{state}, 'submitted', 'a locked row: nobody waits for it');
$node->sql("SELECT pg_terminate_backend($pid)");
finish_background($holder);
is($node->wait_state($ids[12], 'succeeded', 5), 'succeeded', 'a locked row: recorded when it is free');
check_twenty('a locked row', 'locked', undef, @ids);

# Settings of the database or the role that would spoil a transaction.
my %spoilers = (
	'isolation' => [
		"DATABASE postgres SET default_transaction_isolation = 'repeatable read'",
		'DATABASE postgres SET default_transaction_deferrable = on' ],
	'serializable' => ["ROLE CURRENT_USER SET default_transaction_isolation = 'serializable'"],
	'timeouts' => [
		"ROLE CURRENT_USER SET statement_timeout = '1ms'",
		"DATABASE postgres SET statement_timeout = '1ms'",
		"DATABASE postgres SET lock_timeout = '1ms'",
		"DATABASE postgres SET idle_in_transaction_session_timeout = '1ms'" ],
	'habits' => [
		"DATABASE postgres SET search_path = 'nowhere'",
		"DATABASE postgres SET session_replication_role = 'replica'",
		"DATABASE postgres SET synchronous_commit = 'off'",
		"DATABASE postgres SET datestyle = 'German'",
		"DATABASE postgres SET intervalstyle = 'sql_standard'",
		"DATABASE postgres SET bytea_output = 'escape'",
		"DATABASE postgres SET timezone = 'Australia/Lord_Howe'",
		'DATABASE postgres SET standard_conforming_strings = off',
		"DATABASE postgres SET row_security = 'off'",
		"DATABASE postgres SET extra_float_digits = '-10'" ]);

# The worker that comes when settings of its session have changed.
sub after_alter
{
	my (@changes) = @_;
	my $old = $node->wait_worker;
	$node->sql(join '', 'BEGIN;', (map { "ALTER $_;" } @changes), 'COMMIT;');
	return $node->wait_worker($old);
}

foreach my $kind (sort keys %spoilers)
{
	local $ENV{PGOPTIONS} = '-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0'
	  . ' -c session_replication_role=origin -c search_path=public'
	  . ' -c default_transaction_isolation=read\ committed -c datestyle=ISO -c bytea_output=hex';
	my $title = "spoiled by $kind";

	$provider->scenario($kind);
	define_batch($kind);
	my $new = after_alter(@{ $spoilers{$kind} });
	@ids = submit_twenty($kind);
	$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = '$kind' AND state = 'succeeded'", '20', 20);
	is($node->worker_pid, $new, "$title: the worker lives");
	check_twenty($title, $kind, undef, @ids);
	$worker = after_alter('DATABASE postgres RESET ALL', 'ROLE CURRENT_USER RESET ALL');
}

# ---------------------------------------------------------------- not dead, only stopped

# The engine's place is taken: whoever tries is told by whom, at once.
sub check_run_names_holder
{
	my ($title) = @_;
	my ($out, $err);
	my $seconds = elapsed(sub { ($out, $err) = finish_background(background($node, 'CALL reconcile.run()')); });

	is($out, "$worker|0|0|0", "$title: run() names the holder");
	like($err, qr/process $worker is the engine of this database/, "$title: and says so");
	cmp_ok($seconds, '<', 3, "$title: at once");
	is($node->sql('SELECT lock_holder_pid FROM reconcile.health'), $worker, "$title: the health view names it, too");
	return;
}

# Later than the time limit of the attempt.
sub wait_past_limit
{
	my ($id) = @_;
	return $node->wait_sql(
		"SELECT clock_timestamp() > dispatched_at + interval '2.5 s' FROM reconcile.attempt WHERE action_id = '$id'", 't');
}

sub define_handshake
{
	my ($name, $port, $limit) = @_;
	$provider->scenario($name);
	$node->define_provider($name, "https://localhost:$port/s/$name", ca_file => $provider->ca_file,
		connect_timeout => $limit, attempt_timeout => $limit);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

foreach my $case ([ 'stopped long before the first byte', 'stop1', '2 s', "submit claim not_sent claim answered_accepted" ],
	[ 'stopped shortly before the first byte', 'stop2', '30 s', $unharmed ])
{
	my ($title, $name, $limit, $story) = @$case;
	my $handshake = ActionReconcile::Crash->relay($provider->port('default', 'https'));

	define_handshake($name, $handshake->port, $limit);
	my $id = $node->submit($name, {});
	$handshake->wait_connection;
	kill 'STOP', $worker;
	check_run_names_holder($title);
	is($provider->deliveries($name), 0, "$title: nothing has left");
	like($node->sql_error("SELECT reconcile.cancel('$id', 'too slow')"), qr/^55000/, "$title: too late to cancel it");
	$handshake->let_through;
	wait_past_limit($id) if $name eq 'stop1';
	is($node->status($id)->{state}, 'submitted', "$title: nobody has taken it over");
	kill 'CONT', $worker;
	is($node->wait_state($id, 'succeeded'), 'succeeded', "$title: settled");
	is($node->events($id), $story, "$title: the story");
	is($provider->deliveries($name), 1, "$title: one request");
	is($provider->effects($name), 1, "$title: one effect");
	check_scenario($title, $name, $id);
}

$provider->preset('stop3', 'case-32-held-reply');
$node->define_provider('stop3', $provider->http_url('stop3'));
$node->define_operation('stop3', 'stop3', on_absent => 'replace');
my $held = $node->submit('stop3', {});
ok($provider->wait_effects('stop3', 1, 20), 'stopped during the reply: carried out');
kill 'STOP', $worker;
check_run_names_holder('stopped during the reply');
$provider->release('stop3');
wait_past_limit($held);
is($node->status($held)->{state}, 'submitted', 'stopped during the reply: nobody has taken it over');
kill 'CONT', $worker;
is($node->wait_state($held, 'succeeded'), 'succeeded', 'stopped during the reply: settled');
like($node->events($held), qr/^(?:$unharmed|submit claim answer_lost ask found)$/, 'stopped during the reply: one end, once');
is($provider->deliveries('stop3'), 1, 'stopped during the reply: one request, for ever');
check_scenario('stopped during the reply', 'stop3', $held);
is($node->worker_pid, $worker, 'the worker that was stopped is still the worker');

$node->stop;
$provider->stop;
done_testing();
