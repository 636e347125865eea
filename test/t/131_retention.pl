# Finished actions leave the tables, by a rule, and only when nothing can come of
# them any more; what they were is still known, here and in a restored copy.
# AR_PAST_ACTIONS: how many are archived at once, 8000 by default.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background elapsed finish_background wait_true);
use ActionReconcile::Node;
use ActionReconcile::Past qw(stage_past);
use ActionReconcile::Provider;

my $many = $ENV{AR_PAST_ACTIONS} // 8_000;
my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('retention', arm => 0);

sub maintain { return $node->sql('CALL reconcile.maintain(' . ($_[0] // '') . ')'); }
sub archived { return $node->sql('SELECT count(*) FROM reconcile.archived_action'); }
sub partitions { return $node->sql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass"); }

# A session whose transaction stays open until it is told.
sub open_session
{
	my ($statement) = @_;
	my %session = (in => "BEGIN;\n$statement;\n\\echo open\n", out => '', err => '');
	$session{handle} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
		'<', \$session{in}, '>', \$session{out}, '2>', \$session{err}, IPC::Run::timeout(120));
	$session{handle}->pump until $session{out} =~ /^open$/m;
	return \%session;
}

sub end_session
{
	my ($session, $how) = @_;
	$session->{in} .= "$how;\n\\q\n";
	IPC::Run::finish($session->{handle});
	return;
}

# Every action is in one place, and the whole of it.
sub in_one_place
{
	my ($title, $count) = @_;
	is($node->sql('SELECT (SELECT count(*) FROM reconcile.action) + (SELECT count(*) FROM reconcile.archived_action)'), $count, "$title: none is lost");
	is($node->sql('SELECT count(*) FROM reconcile.action JOIN reconcile.archived_action USING (action_id)'), 0, "$title: none is there twice");
	is($node->sql("SELECT count(*) FROM (SELECT action_id FROM reconcile.history UNION SELECT action_id FROM reconcile.attempt) x
		WHERE NOT EXISTS (SELECT FROM reconcile.action a WHERE a.action_id = x.action_id)"), 0, "$title: nothing of an archived one is left");
	$node->assert_consistent($title);
	return;
}

# ---------------------------------------------------------------- a history in use

my $reader = open_session('SELECT count(*) FROM reconcile.history');
$node->sql("SELECT reconcile.arm('test')");
$node->wait_worker;
$provider->scenario('shop');
$node->define_provider('shop', $provider->http_url('shop'));
$node->define_operation('shop', 'shop', lookup => { canary => 'none' });
my $first = $node->submit('shop', { n => 1 }, intent_key => 'first');
is($node->wait_state($first, 'succeeded'), 'succeeded', 'the engine works while somebody reads the history');
is(partitions(), 1, 'and makes no partitions');
end_session($reader, 'COMMIT');
# This month has entries already, and stays where it is.
is(wait_true(sub { $node->submit('shop', { n => rand }); partitions() >= 4 }, 20), 1, 'it makes them soon after, not a day later');

# ---------------------------------------------------------------- real actions

# Days would be long for a test.
$node->sql('ALTER TABLE reconcile.retention_rule DROP CONSTRAINT retention_rule_keep_finished');
$node->define_operation('mute', 'shop', lookup => 0);
$provider->scenario('dead', { write => [ { then => 'close' } ] });
$node->define_provider('dead', $provider->http_url('dead'));
$node->define_operation('dead', 'dead', lookup => 0);
my $unknown = $node->submit('dead', { n => 1 });
is($node->wait_state($unknown, 'manual_review'), 'manual_review', 'one that only a person can settle');
my $planned = $node->submit('shop', { n => 'later' }, not_before => '2099-01-01');
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE state = 'submitted'", '0');
my $receipt = $node->sql("SELECT reconcile.receipt('$first')");
my $total = $node->sql('SELECT count(*) FROM reconcile.action');
is((split /\|/, $node->sql("SET default_transaction_isolation = 'serializable'; CALL reconcile.maintain()"), -1)[1], 0, 'whatever the isolation level of the session');
is(maintain(), '0|0|0|0', 'without a rule nothing leaves');
is(archived(), 0, 'nothing');

$node->sql("INSERT INTO reconcile.retention_rule (keep_finished, keep_receipt) VALUES ('0', true)");
$node->wait_sql("SELECT count(*) FROM reconcile.kept_because(ARRAY(SELECT action_id FROM reconcile.action)) WHERE because IS NOT NULL", '2');
my $holder = open_session("SELECT action_id FROM reconcile.action WHERE action_id = '$first' FOR UPDATE");
my $seconds = elapsed(sub { maintain() });
cmp_ok($seconds, '<', 10, 'maintain() does not wait for whoever holds an action');
is(archived(), $total - 3, 'and leaves that one');
end_session($holder, 'COMMIT');
my $dependent = open_session("SELECT reconcile.submit('shop', '{\"n\": \"depends\"}', depends_on => ARRAY['$first']::uuid[])");
maintain();
is(archived(), $total - 3, 'nor one that somebody is about to depend on');
end_session($dependent, 'ROLLBACK');
maintain();
is(archived(), $total - 2, 'then it leaves');
is($node->sql("SELECT string_agg(state::text, ' ' ORDER BY state) FROM reconcile.action"), 'planned manual_review', 'what is not resolved stays');
in_one_place('after that', $total);

is($node->sql("SELECT state || ' ' || joined FROM reconcile.submit('shop', '{\"n\": 1}', 'first')"), 'succeeded true', 'the same intent again is that action');
is($node->sql("SELECT state FROM reconcile.wait('$first', '5 s')"), 'succeeded', 'which can be waited for');
is($node->sql("SELECT count(*) FROM reconcile.verify_receipt('$receipt')"), 0, 'the receipt that was kept before is proven by the archive');
(my $forged = $receipt) =~ s/answered_accepted/answered_rejected/;
isnt($node->sql("SELECT count(*) FROM reconcile.verify_receipt('$forged')"), 0, 'a forged one is not');
is($provider->effects('shop'), $total - 2, 'every effect is there once');

# What was on its way into the inbox when the action left is applied by the engine.
$node->sql("INSERT INTO reconcile.inbox (provider, says, reference, evidence, action_id) VALUES ('shop', 'rejected', 'x', '{}', '$first'); SELECT reconcile.wake()");
is($node->wait_sql("SELECT result FROM reconcile.inbox WHERE action_id = '$first'", 'contradiction'), 'contradiction', 'a late word finds the archived action');
is($node->sql("SELECT kind || ' ' || (details->>'said') FROM reconcile.incident WHERE action_id = '$first'"), 'contradiction rejected', 'and is an incident');

# ---------------------------------------------------------------- many, and an end in the middle

$node->sql("CREATE TABLE reconcile.history_2020_01 PARTITION OF reconcile.history FOR VALUES FROM ('2020-01-01 00:00+00') TO ('2020-02-01 00:00+00');
	CREATE UNIQUE INDEX ON reconcile.history_2020_01 (action_id, version);
	ALTER TABLE reconcile.history_2020_01 OWNER TO reconcile_owner;
	ALTER TABLE reconcile.history_2020_01 ENABLE ALWAYS TRIGGER history_append_only");
stage_past($node, 'shop', $many, age => $node->sql("SELECT now() - '2020-01-15'::timestamptz"));
$total += $many;
my $run = background($node, "CALL reconcile.maintain(batch_size => 50)");
wait_true(sub { archived() > 200 });
$node->sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'CALL reconcile.maintain(batch%'");
finish_background($run);
cmp_ok(archived(), '<', $total - 2, 'ended in the middle');
in_one_place('ended in the middle', $total);

my $before = archived();
maintain("max_duration => '0'");
cmp_ok(archived() - $before, '<=', 500, 'no longer than it may: one batch');
$before = archived();
my $spent = elapsed(sub { maintain() });
my $rest = archived() - $before;
note(sprintf '%d actions archived in %.1f s: %.0f a second', $rest, $spent, $rest / $spent);
is(archived(), $total - 2, 'the rest leaves');
in_one_place('all of them', $total);
is($node->wait_state($node->submit('shop', { n => 'after' }), 'succeeded'), 'succeeded', 'the engine works on');
$total++;

# ---------------------------------------------------------------- partitions of the past

$node->sql('VACUUM reconcile.history_2020_01');
$reader = open_session('SELECT count(*) FROM reconcile.history');
is((split /\|/, maintain(), -1)[3], '', 'an empty partition is not dropped while somebody reads the history');
end_session($reader, 'COMMIT');
is((split /\|/, maintain(), -1)[3], 1, 'then it is');
is($node->sql("SELECT to_regclass('reconcile.history_2020_01')"), '', 'it is gone');
cmp_ok(partitions(), '>=', 4, 'the others are there');

# ---------------------------------------------------------------- a dump

$node->sql(q(UPDATE reconcile.retention_rule SET keep_finished = '1 day'));
my $contents = q(SELECT count(*), md5(string_agg(x::text, ',' ORDER BY action_id)) FROM reconcile.archived_action x);
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'dumped');
$node->sql('CREATE DATABASE copy TEMPLATE template0');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'copy', $dump ], 'restored');
is($node->sql($contents, 'copy'), $node->sql($contents), 'the archive is in the copy, row for row');
is($node->sql('SELECT keep_finished, keep_receipt FROM reconcile.retention_rule', 'copy'), '1 day|t', 'so is the rule');
like($node->sql_error($_, 'copy'), qr/^55000/, "guarded there: $_") foreach 'UPDATE reconcile.archived_action SET attempts = 0', 'DELETE FROM reconcile.archived_action', 'TRUNCATE reconcile.archived_action';
is($node->sql("SELECT joined FROM reconcile.submit('shop', '{\"n\": 1}', 'first')", 'copy'), 't', 'and the intent is known by its key');

$node->stop;
done_testing();
