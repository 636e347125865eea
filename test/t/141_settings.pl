# Settings of the database, of a role, of a session that change what statements
# mean: the worker, CALL run() and the functions that people call do the same
# under all of them.  One is obeyed: where transactions are to be read-only
# nothing is written, and so nothing is sent.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('settings', conf => 'action_reconcile.drain_timeout = 1s');
my $is_17 = $node->sql('SHOW server_version_num') >= 170000;

# The tests' own sessions set what they need back.
my $own = join ' ', map { "-c $_" } 'statement_timeout=0', 'lock_timeout=0', 'idle_in_transaction_session_timeout=0',
  'default_transaction_read_only=off', 'session_replication_role=origin', 'search_path=public', 'default_transaction_isolation=read\ committed',
  'datestyle=ISO', 'intervalstyle=postgres', 'bytea_output=hex', 'standard_conforming_strings=on', 'timezone=UTC', 'extra_float_digits=1',
  'row_security=on', $is_17 ? 'transaction_timeout=0' : ();

# Whatever does not stop a person's own statements.
my @hostile = (
	[ default_transaction_isolation => 'serializable' ], [ default_transaction_deferrable => 'on' ],
	[ session_replication_role => 'replica' ], [ search_path => 'trap, pg_catalog' ], [ timezone => 'Australia/Lord_Howe' ],
	[ datestyle => 'German' ], [ intervalstyle => 'sql_standard' ], [ standard_conforming_strings => 'off' ],
	[ client_min_messages => 'error' ], [ work_mem => '64kB' ], [ enable_indexscan => 'off' ], [ enable_indexonlyscan => 'off' ],
	[ enable_hashjoin => 'off' ], [ jit_above_cost => '0' ], [ lc_messages => 'C' ], [ default_tablespace => '' ],
	[ bytea_output => 'escape' ], [ extra_float_digits => '-15' ], [ synchronous_commit => 'off' ], [ plan_cache_mode => 'force_custom_plan' ],
	[ array_nulls => 'off' ], [ transform_null_equals => 'on' ], [ check_function_bodies => 'off' ], [ from_collapse_limit => '1' ],
	[ join_collapse_limit => '1' ], [ lock_timeout => '1s' ], [ idle_in_transaction_session_timeout => '100ms' ]);

# What stands in the way of whoever looks for a name in the search_path.
$node->sql(<<'SQL');
CREATE SCHEMA trap;
CREATE FUNCTION trap.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the trap has sprung'; END $$;
CREATE FUNCTION trap.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT CASE WHEN trap.spring() THEN pg_catalog.now() END';
CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT CASE WHEN trap.spring() THEN pg_catalog.now() END';
CREATE FUNCTION trap.text_equal(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT trap.spring()';
CREATE FUNCTION trap.uuid_equal(uuid, uuid) RETURNS boolean LANGUAGE sql AS 'SELECT trap.spring()';
CREATE FUNCTION trap.int_equal(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT trap.spring()';
CREATE FUNCTION trap.get(jsonb, text) RETURNS text LANGUAGE sql AS 'SELECT trap.spring()::text';
CREATE OPERATOR trap.= (leftarg = text, rightarg = text, function = trap.text_equal);
CREATE OPERATOR trap.= (leftarg = uuid, rightarg = uuid, function = trap.uuid_equal);
CREATE OPERATOR trap.= (leftarg = integer, rightarg = integer, function = trap.int_equal);
CREATE OPERATOR trap.->> (leftarg = jsonb, rightarg = text, function = trap.get);
CREATE TABLE trap.action (no text);
CREATE TABLE trap.operation (no text);
CREATE FUNCTION trap.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_object';
GRANT USAGE ON SCHEMA trap TO PUBLIC;
SQL

my $set_hostile = join '', map { setting('', $_) . ";\n" } @hostile;

# What a session that has them answers.
sub spoiled
{
	my ($statement) = @_;
	return $node->sql($set_hostile . $statement);
}

sub alter
{
	my (@changes) = @_;
	local $ENV{PGOPTIONS} = $own;
	my $old = $node->wait_worker;
	$node->sql(join '', 'BEGIN;', (map { "ALTER $_;" } @changes), 'COMMIT;');
	return $node->wait_worker($old);
}

sub setting
{
	my ($whom, $setting) = @_;
	my ($name, $value) = @$setting;
	return "$whom SET $name = " . ($name eq 'search_path' ? $value : "'$value'");
}

sub define
{
	my ($name, $preset, %more) = @_;
	$preset ? $provider->preset($name, $preset) : $provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '2 s', %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

# What does not differ between two stories of one kind.
sub story
{
	my ($id) = @_;
	return join ' ', map { "$_->{event}:$_->{to_state}:$_->{standing}" } @{ $node->history($id) };
}

# ---------------------------------------------------------------- what people call, from such a session

define('plain');
define('slow', '10-hang', consistency_window => '1 h');
define('mute', '10-hang');
$node->sql("DELETE FROM reconcile.lookup_rule WHERE operation = 'mute'");
my $worker = $node->wait_worker;

my %story;
foreach my $who ('clean', 'spoiled')
{
	my $sql = $who eq 'clean' ? sub { return $node->sql($_[0]); } : \&spoiled;
	my $title = "a $who session";

	my $sent = $sql->(q{SELECT action_id FROM reconcile.submit('plain', E'{"amount": 10.50, "text": "a\\\\\\\\b", "n": [1e2, null]}', intent_key => '} . $who . q{')});
	is($node->wait_state($sent, 'succeeded'), 'succeeded', "$title: submit()");
	is($sql->(qq{SELECT status FROM reconcile.wait('$sent', '5 s')}), 'CONFIRMED', "$title: wait()") if $who eq 'clean';
	my $inserted = $sql->(qq{INSERT INTO reconcile.action (operation, payload, deliberate_repeat) VALUES ('plain', '{"n": 7}', true) RETURNING action_id});
	is($node->wait_state($inserted, 'succeeded'), 'succeeded', "$title: INSERT");
	my $later = $sql->(q{SELECT action_id FROM reconcile.submit('plain', '{"n": 1}', on_duplicate => 'new', not_before => pg_catalog.now() + '1 hour')});
	$sql->(qq{SELECT reconcile.hold('$later', 'wait')});
	$sql->(qq{SELECT reconcile.release('$later', 'go')});
	$sql->(qq{SELECT reconcile.cancel('$later', 'no')});
	is($node->events($later), 'submit hold release cancel', "$title: hold(), release(), cancel()");

	$provider->reset('slow');
	my $unknown = $sql->(qq{SELECT action_id FROM reconcile.submit('slow', '{"n": "$who"}')});
	is($node->wait_state($unknown, 'outcome_unknown'), 'outcome_unknown', "$title: an answer is lost");
	my $reference = $node->status($unknown)->{client_reference};
	like($sql->(qq{SELECT result FROM reconcile.confirm('$reference', 'ef_1', '{"seen": "by me"}', 'slow')}), qr/^(?:applied|stored)$/, "$title: confirm()");
	is($node->wait_state($unknown, 'succeeded'), 'succeeded', "$title: confirm() settles it");

	$provider->reset('mute');
	my $review = $sql->(qq{SELECT action_id FROM reconcile.submit('mute', '{"n": "$who"}')});
	is($node->wait_state($review, 'manual_review'), 'manual_review', "$title: nobody to ask");
	$sql->(qq{SELECT reconcile.resolve('$review', 'executed', 'seen in their console', 'ef_$who')});
	is($node->status($review)->{state}, 'succeeded', "$title: resolve()");

	is($sql->('SELECT count(*) FROM reconcile.verify_history()'), '0', "$title: verify_history()");
	is($sql->('SELECT count(*) FROM reconcile.fold_violation()'), '0', "$title: fold_violation()");
	foreach my $view (qw(action_status unresolved review_queue action_history incident provider_scorecard window_report health))
	{
		like($sql->("SELECT count(*) FROM reconcile.$view"), qr/^\d+$/, "$title: $view can be read");
	}
	$story{$who} = join "\n", map { story($_) } $sent, $inserted, $later, $unknown, $review;
	# The same text is sent, and the same fingerprint is taken of it.
	$story{$who} .= "\n" . $node->sql("SELECT fingerprint FROM reconcile.action WHERE action_id = '$sent'");
}
is($story{spoiled}, $story{clean}, 'a spoiled session makes the same stories as a clean one');
my ($one, $two) = map { my $body = $_->{body}; $body =~ s/"ref":\s*"[^"]*"//; $body } ($provider->requests('plain', 'write'))[ 0, 2 ];
is($two, $one, 'and the same requests') if defined $one;
is($node->worker_pid, $worker, 'sessions do not disturb the worker');

# ---------------------------------------------------------------- the worker of a database that has them

foreach my $whom ('DATABASE postgres', 'ROLE ALL')
{
	(my $name = lc $whom) =~ s/ /-/;
	my $new = alter(map { setting($whom, $_) } @hostile, [ statement_timeout => '1ms' ],
		[ lock_timeout => '1ms' ], [ idle_in_transaction_session_timeout => '1ms' ], $is_17 ? [ transaction_timeout => '1ms' ] : ());
	local $ENV{PGOPTIONS} = $own;
	isnt($new, '0', "$name: a worker with these settings comes");
	define($name, '10-close');
	my @ids = $node->submit_all(map { [ $name, { n => $_ } ] } 1 .. 10);
	is($node->wait_state($_, 'succeeded'), 'succeeded', "$name: sent, or looked up") foreach @ids;
	is($node->worker_pid, $new, "$name: the worker lives");
	is(join("\n", story_problems($node, $provider, $name, @ids)), '', "$name: nothing twice, nothing lost");
	$node->assert_consistent($name);
	alter("$whom RESET ALL");
}

# ---------------------------------------------------------------- read-only

# Nothing more is sent until it is over; what is open ends as it does.
sub stays_unsent
{
	my ($title, $id, $name) = @_;
	$node->wait_sql("SELECT stalled_because ~ 'read-only' FROM reconcile.health", 't');
	like($node->sql('SELECT stalled_because FROM reconcile.engine()'), qr/default_transaction_read_only/, "$title: health says why");
	is($node->sql('SELECT armed FROM reconcile.health'), 't', "$title: it is not disarmed");
	is($node->events($id), 'submit', "$title: nothing is claimed");
	is($provider->deliveries($name), 0, "$title: nothing is sent");
	return;
}

{
	local $ENV{PGOPTIONS} = $own;
	define('readonly');
	my $old = $node->wait_worker;
	$node->sql('ALTER DATABASE postgres SET default_transaction_read_only = on');
	$node->wait_sql("SELECT coalesce(worker_pid, $old) <> $old FROM reconcile.engine()", 't');
	my $id = $node->submit('readonly', {});
	stays_unsent('a read-only database', $id, 'readonly');
	is($node->sql('SELECT lock_holder_pid IS NULL FROM reconcile.engine()'), 't', 'a read-only database: nobody is the engine');
	$node->sql('ALTER DATABASE postgres RESET default_transaction_read_only');
	is($node->wait_state($id, 'succeeded', 20), 'succeeded', 'a read-only database: over, and sent');
	is($provider->deliveries('readonly'), 1, 'a read-only database: once');
	is($node->sql('SELECT stalled_because IS NULL FROM reconcile.health'), 't', 'a read-only database: health forgets it');

	# The whole server, with a request open: its answer is kept until it can be stored.
	define('whole', '10-held', attempt_timeout => '30 s');
	define('next');
	my $open = $node->submit('whole', {});
	ok($provider->wait_writes('whole', 1, 20), 'a read-only server: a request is open');
	my $offset = $node->log_offset;
	my $worker_pid = $node->worker_pid;
	{
		local $ENV{PGOPTIONS} = '';		# or the test would not see it itself
		$node->set_conf('default_transaction_read_only', 'on');
	}
	my $next = $node->submit('next', {});
	$provider->release('whole');
	stays_unsent('a read-only server', $next, 'next');
	is($node->status($open)->{state}, 'submitted', 'a read-only server: nothing is recorded');
	$node->sql('BEGIN READ WRITE; ALTER TABLE reconcile.action SET (fillfactor = 80); COMMIT');
	$node->set_conf('default_transaction_read_only', undef);
	is($node->wait_state($open, 'succeeded', 20), 'succeeded', 'a read-only server: over, and the answer is stored');
	is($node->events($open), 'submit claim answered_accepted', 'a read-only server: it was kept, not lost')
	  or diag(explain($node->history($open)));
	is($node->wait_state($next, 'succeeded', 20), 'succeeded', 'a read-only server: over, and sent');
	is($node->worker_pid, $worker_pid, 'a read-only server: the worker lived through it');
}

# ---------------------------------------------------------------- CALL run() from such sessions

$node->set_conf('action_reconcile.databases', 'none');
ok(wait_true(sub { $node->sql('SELECT lock_holder_pid IS NULL AND worker_pid IS NULL FROM reconcile.engine()') eq 't' }, 20), 'the worker is gone');
define('called', '10-close');
{
	my @ids = $node->submit_all(map { [ 'called', { n => $_ } ] } 1 .. 6);
	my $run = q{CALL reconcile.run('20 s')};
	ok(wait_true(sub {
		spoiled($run);
		return $node->sql("SELECT count(*) FROM reconcile.action WHERE operation = 'called' AND state <> 'succeeded'") eq '0'; }), 'run() in a spoiled session settles everything');
	is(join("\n", story_problems($node, $provider, 'called', @ids)), '', 'run(): nothing twice, nothing lost');
	is($node->sql(q{SET timezone = 'Asia/Tokyo'; SET work_mem = '5MB'; SET session_replication_role = 'replica'; CALL reconcile.run();
		SELECT current_setting('timezone'), current_setting('work_mem'), current_setting('session_replication_role'), current_setting('search_path')}) =~ s/.*\n//sr,
		'Asia/Tokyo|5MB|replica|"$user", public', 'run() leaves the settings of the session as they were');

	my $id = $node->submit('called', { n => 'ro' });
	like($node->sql_error('SET default_transaction_read_only = on; CALL reconcile.run();'), qr/^25006/, 'run() in a read-only session is refused');
	is($node->events($id), 'submit', 'run() in a read-only session claims nothing');
	if ($is_17)
	{
		define('patient', '10-answer-late', hold_s => 2, attempt_timeout => '10 s');
		my $slow = $node->submit('patient', {});
		is($node->sql_error("SET transaction_timeout = '500ms'; CALL reconcile.run();"), '', 'run() outlives a transaction_timeout');
		is($node->status($slow)->{state}, 'succeeded', 'run() outlives a transaction_timeout: with its answer');
	}
}
$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
