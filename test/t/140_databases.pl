# Case 34. Databases, extensions and the server come, go and change under the worker,
# idle and with a request open: each statement ends soon, nothing is sent twice,
# nothing is made up, no worker is left behind and none is missing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(elapsed story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $limit_s = 2.5;		# the server itself would wait five seconds for a session to go
my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('databases', conf => <<'CONF');
action_reconcile.drain_timeout = 1s
allow_in_place_tablespaces = on
max_worker_processes = 16
CONF
my $postmaster = $node->sql('SELECT pg_postmaster_start_time()');
my $count = 0;

# ---------------------------------------------------------------- helpers

# A database with the extension, armed, with a worker; its name.
sub database
{
	my $name = 'd' . ++$count;
	$node->sql("CREATE DATABASE $name");
	$node->sql("CREATE EXTENSION action_reconcile; SELECT reconcile.arm('test')", $name);
	in($name, sub { isnt($node->wait_worker, '0', "$name: has a worker"); });
	return $name;
}

sub in
{
	my ($database, $what) = @_;
	local $node->{ar_database} = $database;
	return $what->();
}

sub define
{
	my ($name, $preset, %more) = @_;
	$preset ? $provider->preset($name, $preset) : $provider->scenario($name, {});
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '30 s', max_in_flight => 200, %more);
	$node->define_operation($name, $name, on_absent => 'replace');
	return;
}

# An action with an open request, in the current database.
sub open_request
{
	my ($name) = @_;
	define($name, '10-hang');
	my $id = $node->submit($name, {});
	ok($provider->wait_effects($name, 1, 20), "$name: a request is open");
	return $id;
}

# A statement that must succeed, and soon.
sub soon
{
	my ($title, $statement, $database) = @_;
	my ($code, $out, $err);
	my $seconds = elapsed(sub { ($code, $out, $err) = $node->psql($database // 'postgres', $statement); });

	is($code, 0, "$title: $statement") or diag($err);
	cmp_ok($seconds, '<', $limit_s, "$title: in time");
	return;
}

sub workers_of
{
	my ($database) = @_;
	return $node->sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND datname = '$database'");
}

# It sends again, and what was open is settled by asking, not by sending.
sub goes_on
{
	my ($title, $database, $name, $id) = @_;
	in($database, sub {
		isnt($node->wait_worker, '0', "$title: a worker is there");
		define("$name-after");
		my $next = $node->submit("$name-after", {});
		is($node->wait_state($next, 'succeeded', 20), 'succeeded', "$title: the next action is sent");
		return unless defined $id;
		is($node->wait_state($id, 'succeeded'), 'succeeded', "$title: what was open is settled");
		is($node->events($id), 'submit claim answer_lost ask found', "$title: it was unknown, and was looked up");
		is(join("\n", story_problems($node, $provider, $name, $id)), '', "$title: nothing twice, nothing lost"); });
	return;
}

# ---------------------------------------------------------------- statements that need the database without a session

foreach my $kind ('idle', 'open')
{
	my $id;
	my $db = database();
	my $title = "a worker $kind";
	my $open = sub {
		my $name = "$_[0]$kind";
		return $kind eq 'open' ? in($db, sub { open_request($name) }) : undef;
	};
	my $offset = $node->log_offset;

	$id = $open->('copy');
	soon($title, "CREATE DATABASE copy_$kind TEMPLATE $db");
	goes_on("$title, copied", $db, "copy$kind", $id);
	is($node->sql('SELECT armed FROM reconcile.engine()', "copy_$kind"), 'f', "$title: the copy is not armed");
	soon($title, "DROP DATABASE copy_$kind");

	$id = $open->('name');
	soon($title, "ALTER DATABASE $db RENAME TO ${db}_b");
	$db = "${db}_b";
	goes_on("$title, renamed", $db, "name$kind", $id);

	$id = $open->('space');
	$node->sql("CREATE TABLESPACE space_$kind LOCATION ''");
	soon($title, "ALTER DATABASE $db SET TABLESPACE space_$kind");
	goes_on("$title, moved", $db, "space$kind", $id);

	$id = $open->('shut');
	soon($title, "ALTER DATABASE $db ALLOW_CONNECTIONS false");
	ok(wait_true(sub { workers_of($db) eq '0' }, 5), "$title: a database that is closed has no worker soon");
	soon($title, "ALTER DATABASE $db ALLOW_CONNECTIONS true");
	goes_on("$title, closed and opened", $db, "shut$kind", $id);

	# Those who may not do it do not disturb either.
	$node->sql("CREATE ROLE visitor_$kind LOGIN CREATEDB");
	my $worker = in($db, sub { $node->worker_pid });
	foreach my $statement ("DROP DATABASE $db", "ALTER DATABASE $db RENAME TO mine", "ALTER DATABASE $db SET TABLESPACE pg_default",
		"CREATE DATABASE mine TEMPLATE $db")
	{
		like($node->sql_error("SET SESSION AUTHORIZATION visitor_$kind;\n$statement;"), qr/^42501/, "$title: $statement by a visitor is refused");
	}
	is(in($db, sub { $node->worker_pid }), $worker, "$title: the worker is not disturbed by visitors");

	# A statement that fails has a worker again afterwards.
	if ($kind eq 'open')
	{
		my $session = $node->background_psql($db);
		like($node->sql_error("DROP DATABASE $db;"), qr/^55006/, "$title: a session of somebody else's still is in the way");
		$session->quit;
		in($db, sub { isnt($node->wait_worker, '0', "$title: the worker comes back after a DROP that failed"); });
	}

	$id = $open->('drop');
	soon($title, "DROP DATABASE $db");
	is(workers_of($db), '0', "$title: no worker is left");
	if ($kind eq 'open')
	{
		is($provider->deliveries('dropopen'), 1, "$title: what was open was sent once");
		ok($node->log_contains(qr/requests? (?:is|are) open when the engine stops\n.*\Q$id\E/, $offset), "$title: the log says what was open");
	}
	ok(!$node->log_contains('PANIC|was terminated by signal', $offset), "$title: nobody crashed");
}

# ---------------------------------------------------------------- the extension comes and goes

foreach my $kind ('idle', 'open')
{
	my $db = database();
	my $title = "an extension $kind";
	my $id = in($db, sub { open_request("first$kind") }) if $kind eq 'open';
	my $worker = in($db, sub { $node->worker_pid });
	my $offset = $node->log_offset;

	soon($title, 'BEGIN; DROP EXTENSION action_reconcile; ROLLBACK', $db);
	is(in($db, sub { $node->worker_pid }), $worker, "$title: an aborted DROP leaves the worker alone");
	in($db, sub {
		define("still$kind");
		my $next = $node->submit("still$kind", {});
		is($node->wait_state($next, 'succeeded', 10), 'succeeded', "$title: it works on after an aborted DROP"); });

	soon($title, 'DROP EXTENSION action_reconcile', $db);
	soon($title, 'CREATE EXTENSION action_reconcile', $db);
	in($db, sub {
		isnt($node->wait_worker($worker), '0', "$title: the new one gets a worker");
		$node->sql("SELECT reconcile.arm('again')", $db);
		define("second$kind");
		my $next = $node->submit("second$kind", {});
		is($node->wait_state($next, 'succeeded', 20), 'succeeded', "$title: the new one sends");
		is($node->events($next), 'submit claim answered_accepted', "$title: and knows only its own"); });
	is($provider->deliveries("firstopen"), 1, "$title: the request of the former one was not sent again") if $kind eq 'open';
	my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $offset);
	my @worker_errors = grep { /(?:ERROR|FATAL|PANIC):/ && !/140_databases/ } split /\n/, $log;
	is("@worker_errors", '', "$title: no error of a worker in the log");
	soon($title, "DROP DATABASE $db");
}

# ---------------------------------------------------------------- reload with other settings

{
	my $db = database();
	my $id = in($db, sub { open_request('unlisted') });
	$node->set_conf('action_reconcile.databases', 'postgres');
	ok(wait_true(sub { workers_of($db) eq '0' }, 10), 'a database that is no longer listed: its worker leaves');
	is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '$id'", $db), 'outcome_unknown', 'no longer listed: what was open is unknown');
	is(workers_of('postgres') eq '0' ? 'none' : 'one', $node->sql("SELECT CASE WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'action_reconcile') THEN 'one' ELSE 'none' END"),
		'the listed one keeps its worker');
	like($node->sql_error("ALTER SYSTEM SET action_reconcile.databases = 'not a, list';"), qr/^22023/, 'a list that cannot be read is refused');
	$node->set_conf('action_reconcile.databases', undef);
	goes_on('listed again', $db, 'unlisted', $id);

	$node->set_conf('action_reconcile.arming_dir', '/nowhere');
	in($db, sub {
		define('unarmed');
		my $next = $node->submit('unarmed', {});
		is($node->wait_sql('SELECT armed FROM reconcile.engine()', 'f', 10, $db), 'f', 'another arming_dir: not armed');
		is($node->status($next)->{state}, 'planned', 'another arming_dir: nothing is sent');
		$node->set_conf('action_reconcile.arming_dir', undef);
		is($node->wait_state($next, 'succeeded', 20), 'succeeded', 'the arming_dir is back: it is sent');
		is($provider->deliveries('unarmed'), 1, 'the arming_dir is back: once'); });
	soon('in the end', "DROP DATABASE $db");
}
is($node->sql('SELECT pg_postmaster_start_time()'), $postmaster, 'the server never restarted');

# ---------------------------------------------------------------- shutdown with 200 requests open

foreach my $mode ('fast', 'immediate')
{
	my $name = "many-$mode";
	$provider->scenario($name, { write_default => { then => 'hang' } });
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '8 s', max_in_flight => 200);
	$node->define_operation($name, $name, on_absent => 'replace');
	my @ids = split /\n/, $node->sql(
		"SELECT s.action_id FROM generate_series(1, 200) n, LATERAL reconcile.submit('$name', jsonb_build_object('n', n)) s");
	ok($provider->wait_effects($name, 200, 60), "$mode: 200 requests are open");
	my $seconds = elapsed(sub { $node->stop($mode) });
	note(sprintf '%s shutdown with 200 open requests: %.1f s', $mode, $seconds);
	cmp_ok($seconds, '<', 6, "$mode: the server is down soon");
	$node->start;
	$node->wait_worker;
	is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = '$name' AND state = 'succeeded'", '200', 90), '200',
		"$mode: all of them are settled after the start");
	is($provider->deliveries($name), 200, "$mode: none was sent again");
	is($node->sql("SELECT count(DISTINCT action_id) FROM reconcile.history h JOIN reconcile.action a USING (action_id)"
			. " WHERE a.operation = '$name' AND h.event = '" . ($mode eq 'fast' ? 'answer_lost' : 'recover') . "'"), '200',
		"$mode: each was unknown first");
	$node->assert_consistent($mode);
}
$node->stop;

# ---------------------------------------------------------------- worker slots, twenty databases

$node->append_conf('postgresql.conf', "max_worker_processes = 8\naction_reconcile.databases = '*'");
$node->start;
$node->wait_worker;
my @many = map { "m$_" } 1 .. 20;
my $offset = $node->log_offset;
$node->sql('CREATE DATABASE m1');
$node->sql('CREATE EXTENSION action_reconcile', 'm1');
$node->sql("CREATE DATABASE $_ TEMPLATE m1") foreach grep { $_ ne 'm1' } @many;
$node->sql("SELECT reconcile.arm('test')", $_) foreach @many;
ok($node->wait_for_log(qr/no worker could be started .*all worker slots are taken/, $offset), 'no slots: the log says so');
my $working = sub {
	return $node->sql("SELECT count(DISTINCT datname) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND datname ~ '^m'"); };
cmp_ok($working->(), '<', 20, 'no slots: not all have a worker');
my ($without) = split /\n/, $node->sql("SELECT datname FROM pg_database WHERE datname ~ '^m' AND datname NOT IN"
		. " (SELECT datname FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker') LIMIT 1");
in($without, sub {
	define('patient');
	my $id = $node->submit('patient', {});
	is($node->sql('SELECT worker_pid IS NULL FROM reconcile.engine()', $without), 't', 'no slots: the database that has none knows');
	is($node->status($id)->{state}, 'planned', 'no slots: submitting works');
	# Room: a database that has one goes.
	my ($with) = split /\n/, $node->sql("SELECT datname FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND datname ~ '^m' LIMIT 1");
	foreach my $gone (grep { $_ ne $without } split /\n/, $node->sql("SELECT datname FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND datname ~ '^m'"))
	{
		$node->sql("DROP DATABASE $gone");
	}
	is($node->wait_state($id, 'succeeded', 90), 'succeeded', 'room again: the one that waited gets a worker, and sends');
	is($provider->deliveries('patient'), 1, 'room again: once'); });

$node->append_conf('postgresql.conf', 'max_worker_processes = 32');
$node->restart;
my $left = $node->sql("SELECT count(*) FROM pg_database WHERE datname ~ '^m'");
ok(wait_true(sub { $working->() eq $left }, 60), "more slots: all $left databases have a worker");
cmp_ok(elapsed(sub { $node->stop('fast') }), '<', 6, 'and the server is down soon');
$provider->stop;
done_testing();
