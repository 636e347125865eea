# A dump carries everything but the right to send.  It is restored beside the
# original, with a worker waiting there already, and into a cluster that has
# never loaded the library: without an error, row for row, guarded, disarmed.
# Armed then, the copy settles what was unknown and repeats nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use PostgreSQL::Test::Utils;

my $window_s = 4;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('original');
my $dump = PostgreSQL::Test::Utils::tempdir('dump');
my %action;

# What is to be the same: every row of every table, and the guards and keys of
# every partition.  Not the arming, and not the clock, which goes on.
my $portrait = join ' UNION ALL ',
  (map { "SELECT '$_ ' || count(*), coalesce(md5(string_agg(t::text, E'\\n' ORDER BY t::text)), '') FROM reconcile.$_ t" }
	  qw(installation provider operation lookup_rule action attempt lookup history history_default)),
  "SELECT 'partition ' || c.relname, pg_get_expr(relpartbound, c.oid) || ' ' || count(t.*) || ' ' || md5(coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), ''))
	FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid LEFT JOIN reconcile.history t ON t.tableoid = c.oid
	WHERE inhparent = 'reconcile.history'::regclass GROUP BY c.oid, c.relname, relpartbound",
  "SELECT 'trigger ' || c.relname || ' ' || tgname, tgenabled::text || ' ' || tgtype || ' ' || tgfoid::regproc
	FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = 'reconcile'::regnamespace AND NOT tgisinternal",
  "SELECT 'index ' || indexrelid::regclass, indisunique || ' ' || indisvalid || ' ' || replace(pg_get_indexdef(indexrelid), 'ON ONLY', 'ON')
	FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE relnamespace = 'reconcile'::regnamespace",
  "SELECT 'policy ' || polname, coalesce(pg_get_expr(polqual, polrelid), '') || pg_get_expr(polwithcheck, polrelid) FROM pg_policy WHERE polrelid = 'reconcile.action'::regclass",
  "SELECT 'rights on ' || relname, relrowsecurity || ' ' || coalesce(relacl::text, '') FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'v', 'p')";
$portrait = "SELECT * FROM ($portrait) p (what, value) ORDER BY what COLLATE \"C\"";

sub portrait_of
{
	my ($server, $database) = @_;
	return $server->sql("SET search_path = pg_catalog; SET timezone = 'UTC'; $portrait", $database);
}

sub lines { return { map { split /\|/, $_, 2 } split /\n/, $_[0] }; }

# ---------------------------------------------------------------- the original

sub define
{
	my ($name, $preset, %more) = @_;
	my $operation = delete $more{operation} // {};

	$provider->preset($name, $preset);
	$node->define_provider($name, $provider->http_url($name), late_arrival_max => '0.1 s', %more);
	$node->define_operation($name, $name, on_absent => 'replace', %$operation);
	return;
}

sub settle
{
	my ($name, $state, %submit) = @_;
	$action{$name} = $node->submit($name, { of => $name }, %submit);
	is($node->wait_state($action{$name}, $state), $state, "original: an action that is $state");
	return;
}

$node->wait_worker;
$node->wait_sql("SELECT count(*) >= 4 FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass", 't');
define('done', 'ok');
define('lost', '10-close', consistency_window => "$window_s s");
define('mute', '10-close', operation => { lookup => 0 });
define('waits', 'ok');
define('moves', 'ok');
define('never', 'ok');
define('fresh', 'ok');
settle('done', 'succeeded', client_reference => 'mine', intent_key => 'a key');
settle('mute', 'manual_review');
$node->sql("SELECT reconcile.pause('$_', 'a test')") foreach qw(waits moves);
settle('waits', 'planned');
settle('moves', 'planned');
settle('never', 'planned', not_before => '2099-01-01');
$node->sql("SELECT reconcile.cancel('$action{never}', 'a test')");

# Something from a month that has no partition.
$node->sql(q[
	WITH old AS (SELECT 'd0000000-0000-7000-8000-000000000001'::uuid AS id, '2020-02-02 02:02:02+00'::timestamptz AS at), entry AS (
	INSERT INTO reconcile.history (action_id, version, recorded_at, event, to_state, standing, evidence, actor, transaction, previous_hash, hash)
	SELECT id, 1, at, 'submit', 'succeeded', 'confirmed/accepted', '{"submit": {}}', 'test', '3', '\x',
		reconcile.history_hash(id, 1, at, NULL, 'submit', NULL, 'succeeded', 'confirmed/accepted', '{"submit": {}}', 'test', '\x')
	FROM old RETURNING *)
	INSERT INTO reconcile.action (action_id, operation, payload, client_reference, provider, submitter, submitted_at, fingerprint, state, standing, queued, version, event, evidence, actor, recorded_at, transaction, chain_head)
	SELECT action_id, 'done', '{"old": 1}', 'old', 'done', current_user, recorded_at, reconcile.intent_fingerprint('POST', '/effects', '{"old": 1}'), to_state, standing, false, 1, event, evidence, actor, recorded_at, transaction, hash
	FROM entry;
	INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch, dispatched_at, window_us, late_arrival_us, gate_us, state, standing, event, evidence, version)
	SELECT action_id, action_id, 1, provider, 1, 1, 'https://x.example', '\x00', 1, recorded_at, 0, 0, 0, state, standing, 'claim', '{}', 1
	FROM reconcile.action WHERE client_reference = 'old']);
settle('lost', 'outcome_unknown');

# The dump and what it must hold, by the same snapshot, whatever goes on meanwhile.
sub take_dump
{
	my ($code, $out, $err) = $node->psql('postgres', <<"SQL");
SET search_path = pg_catalog;
SET timezone = 'UTC';
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT pg_export_snapshot() AS snapshot \\gset
\\setenv SNAPSHOT :snapshot
\\! pg_dump --snapshot="\$SNAPSHOT" -f $dump/plain.sql postgres
\\! pg_dump --snapshot="\$SNAPSHOT" -Fc -f $dump/custom postgres
$portrait;
COMMIT;
SQL
	is("$code $err", '0 ', 'the original is dumped');
	ok(-s "$dump/$_", "$_ is there") foreach qw(plain.sql custom);
	return $out;
}

my $original = take_dump();
like($original, qr/^history_default 1\|/m, 'one entry is in the partition of the rest');
like($original, qr/^partition history_20\d\d_\d\d\|.* [1-9]\d* \w+$/m, 'the others in the one of their month');
unlike(slurp_file("$dump/plain.sql"), qr/COPY reconcile\.arming/, 'the arming is not in the dump');

# ---------------------------------------------------------------- restoring

sub run_clean
{
	my ($title, $server, @command) = @_;
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, PGHOST => $server->host, PGPORT => $server->port);
	my $ok = IPC::Run::run(\@command, '<', \undef, '>', \$out, '2>', \$err);

	ok($ok, "$title: restored without an error");
	is($err, '', "$title: and without a word");
	return;
}

sub restore_plain
{
	my ($title, $server, $database, @options) = @_;
	run_clean($title, $server, 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', @options, '-o', '/dev/null', '-d', $database, '-f', "$dump/plain.sql");
	return;
}

sub restore_custom
{
	my ($title, $server, $database, @options) = @_;
	run_clean($title, $server, 'pg_restore', '--exit-on-error', @options, '-d', $database, "$dump/custom");
	return;
}

# In two parts, what $is_first chooses and the rest, between which a worker starts and looks.
sub restore_parts
{
	my ($title, $server, $database, $is_first) = @_;
	my $oid = $server->sql("SELECT oid FROM pg_database WHERE datname = '$database'");
	my @entries = grep { /^\d/ } split /\n/, (run_command([ 'pg_restore', '-l', "$dump/custom" ]))[0];
	my @first = grep { $is_first->($_) } @entries;
	my %first = map { $_ => 1 } @first;
	local $server->{ar_database} = $database;

	ok(@first && @first < @entries, "$title: there is a first part, and a rest");
	append_to_file("$dump/$database.first", join("\n", @first));
	append_to_file("$dump/$database.rest", join("\n", grep { !$first{$_} } @entries));
	restore_custom("$title, first", $server, $database, '-L', "$dump/$database.first");

	my $worker = $server->wait_worker;
	my $offset = $server->log_offset;
	$server->sql("SELECT pg_terminate_backend($worker)", $database);
	$server->wait_worker($worker);
	$server->wait_for_log(qr/database \(OID $oid\) sends nothing/, $offset);
	restore_custom("$title, the rest", $server, $database, '-L', "$dump/$database.rest");
	return;
}

# The extension alone is there for the worker to see.
sub restore_late { return restore_parts(@_, sub { $_[0] =~ /^\d+; \d+ \d+ (?:SCHEMA|EXTENSION) / }); }

# Its actions are there, and neither their attempts nor the rules to ask by.
sub restore_halfway
{
	my $data = 0;
	return restore_parts(@_, sub {
		$data ||= $_[0] =~ /^\d+; \d+ \d+ TABLE DATA /;
		return !$data || $_[0] =~ / TABLE DATA reconcile action /;
	});
}

# pg_restore does not know the foreign keys inside an extension: what it loads at
# the same time must not be the data of our tables.
sub restore_parallel
{
	my ($title, $server, $database) = @_;
	restore_custom("$title, before", $server, $database, '--section=pre-data', '-j', '2');
	restore_custom("$title, the data", $server, $database, '--section=data');
	restore_custom("$title, after", $server, $database, '--section=post-data', '-j', '2');
	return;
}

# ---------------------------------------------------------------- what a copy is

my @attacks = (
	q[UPDATE reconcile.action SET state = 'succeeded' WHERE state = 'planned'],
	q[UPDATE reconcile.action SET version = version + 1, event = 'cancel', state = 'cancelled', queued = false, standing = 'failed/pending', evidence = '{"reason": "x"}' WHERE state = 'outcome_unknown'],
	q[DELETE FROM reconcile.action],
	q[TRUNCATE reconcile.action],
	q[UPDATE reconcile.attempt SET state = 'safe_to_retry', standing = 'failed/pending'],
	q[DELETE FROM reconcile.attempt],
	q[UPDATE reconcile.history SET evidence = '{}'],
	q[DELETE FROM reconcile.history],
	q[TRUNCATE reconcile.history],
	q[TRUNCATE reconcile.history_default],
	q[UPDATE reconcile.operation SET operation = 'x'],
	q[DELETE FROM reconcile.lookup_rule WHERE operation = 'lost']);

sub check_guards
{
	my ($title, $server, $database) = @_;
	my @partitions = split /\n/, $server->sql("SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass", $database);
	my %wrong;

	cmp_ok(scalar @partitions, '>=', 5, "$title: four months and the rest");
	foreach my $attack (@attacks, map { ("TRUNCATE $_", "UPDATE $_ SET event = 'x'", "DELETE FROM $_") } @partitions)
	{
		foreach my $role ('origin', 'replica')
		{
			next if $role eq 'replica' && $attack =~ /reconcile\.(?:operation|lookup_rule)/;
			my $error = $server->sql_error("SET session_replication_role = $role; BEGIN; $attack; ROLLBACK;", $database);
			# An empty partition has no row that could be changed.
			next if $attack =~ /^(?:UPDATE|DELETE).*history_\d/ && $error eq '';
			$wrong{"$role: $attack"} = $error unless $error =~ /^55000/;
		}
	}
	is_deeply(\%wrong, {}, "$title: the guards refuse what they refused");
	return;
}

sub check_copy
{
	my ($title, $server, $database) = @_;
	local $server->{ar_database} = $database;

	is_deeply(lines(portrait_of($server, $database)), lines($original), "$title: row for row, guard for guard");
	$server->assert_consistent($title);
	like($server->sql("SELECT armed || ' ' || disarmed_because FROM reconcile.engine()", $database), qr/^false it was never armed, or is a restored copy$/, "$title: disarmed");
	check_guards($title, $server, $database);
	return;
}

sub attempts_and_lookups
{
	my ($server, $database) = @_;
	return $server->sql('SELECT (SELECT count(*) FROM reconcile.attempt), (SELECT count(*) FROM reconcile.lookup), (SELECT count(*) FROM reconcile.action WHERE attempts > 0)', $database);
}

# Work for it is there, it looks, and nothing leaves.
sub check_silence
{
	my ($title, $database) = @_;
	my $before = attempts_and_lookups($node, $database);
	local $node->{ar_database} = $database;
	my $oid = $node->sql("SELECT oid FROM pg_database WHERE datname = '$database'");

	$node->wait_worker;
	$node->wait_for_log(qr/database \(OID $oid\) sends nothing: it was never armed, or is a restored copy/);
	$node->sql("SELECT reconcile.resume('waits')", $database);
	my $new = $node->submit('fresh', { copy => $database });
	is($node->status($new)->{state}, 'planned', "$title: an action can be recorded");
	like($node->sql_error("SELECT * FROM reconcile.wait('$new', '300 ms')", $database), qr/^$/, "$title: it can be waited for");
	is($node->status($new)->{state}, 'planned', "$title: in vain");
	is(attempts_and_lookups($node, $database), $before, "$title: no attempt, no question");
	return $new;
}

# ---------------------------------------------------------------- (a) beside the original

my %silent;
my %restore = (late => \&restore_late, halfway => \&restore_halfway, plain => \&restore_plain,
	single => sub { restore_plain(@_, '--single-transaction') }, parallel => \&restore_parallel);
foreach my $database (sort keys %restore)
{
	my $title = "beside, $database";
	$node->sql("CREATE DATABASE $database TEMPLATE template0");
	$restore{$database}->($title, $node, $database);
	check_copy($title, $node, $database);
	$silent{$database} = check_silence($title, $database);
}

# The original goes on meanwhile.
$node->sql("SELECT reconcile.resume('waits')");
is($node->wait_state($action{waits}, 'succeeded'), 'succeeded', 'the original sends what had to wait');
is($node->wait_state($action{lost}, 'succeeded'), 'succeeded', 'the original settles what was unknown');
my $more = $node->submit('done', { more => 1 });
is($node->wait_state($more, 'succeeded'), 'succeeded', 'the original carries out more');
is($node->sql('SELECT armed FROM reconcile.engine()'), 't', 'the original is still armed');
is($provider->summary($_)->{deliveries}, 1, "one delivery to $_") foreach qw(waits lost mute);
is($provider->summary('done')->{deliveries}, 2, 'two deliveries to done: none of a copy');
is($provider->summary($_)->{deliveries}, 0, "none to $_") foreach qw(moves never fresh);
is($provider->reads('lost'), scalar @{ $node->lookups($action{lost}) }, 'every question was the original\'s');
$node->assert_consistent('original');

# Armed, as the manual says: what is planned may have been sent by the original.
sub arm_copy
{
	my ($title, $database) = @_;
	local $node->{ar_database} = $database;

	is($node->sql("SELECT count(reconcile.cancel(action_id, 'restored')) FROM reconcile.action_status WHERE state = 'planned' AND action_id <> '$silent{$database}'", $database), 2, "$title: what was planned is cancelled");
	$node->sql("SELECT reconcile.resume(provider) FROM reconcile.provider WHERE paused_at IS NOT NULL; SELECT reconcile.arm('the original is given up')", $database);
	is($node->wait_state($action{lost}, 'succeeded'), 'succeeded', "$title: armed, it settles what was unknown");
	is($node->wait_state($silent{$database}, 'succeeded'), 'succeeded', "$title: and sends what was recorded in it");
	is($node->status($action{$_->[0]})->{state}, $_->[1], "$title: $_->[0] is still $_->[1]") foreach [qw(done succeeded)], [qw(mute manual_review)];
	is($node->sql("SELECT joined || ' ' || state FROM reconcile.submit('done', '{\"of\": \"done\"}', 'a key')", $database), 'true succeeded', "$title: an intent of the original is known by its key");
	is($node->sql('SELECT armed FROM reconcile.engine()', $database), 't', "$title: armed");
	$node->assert_consistent("$title, armed");
	return;
}

arm_copy("beside, $_", $_) foreach qw(halfway late plain);
is($node->sql('SELECT armed FROM reconcile.engine()'), 't', 'arming a copy leaves the original armed');
is($node->sql('SELECT armed FROM reconcile.engine()', 'single'), 'f', 'and the other copies disarmed');
is($provider->summary($_)->{deliveries}, 1, "still one delivery to $_") foreach qw(waits lost mute);
is($provider->summary('done')->{deliveries}, 2, 'still two to done');
is($provider->summary('fresh')->{deliveries}, 3, 'one to fresh for each armed copy');
is_deeply($provider->duplicates($_), {}, "no second effect at $_") foreach qw(done waits lost mute moves fresh);

# ---------------------------------------------------------------- (b) in a cluster without the library

my $other = ActionReconcile::Node->create('other', preload => 0, extension => 0);
foreach my $database ('plain', 'custom')
{
	my $title = "elsewhere, $database";
	$other->sql("CREATE DATABASE $database TEMPLATE template0");
	($database eq 'plain' ? \&restore_plain : \&restore_custom)->($title, $other, $database);
	check_copy($title, $other, $database);
	is($other->sql("CALL reconcile.run('5 s')", $database), '|0|0|0', "$title: an engine there sends nothing");
}
{
	local $other->{ar_database} = 'custom';
	is($other->sql("SELECT count(reconcile.cancel(action_id, 'restored')) FROM reconcile.action_status WHERE state = 'planned' AND provider = 'waits'", 'custom'), 1, 'elsewhere: what the original has sent since is cancelled');
	$other->sql("SELECT reconcile.resume('moves'); SELECT reconcile.arm('the original is given up')", 'custom');
	$other->wait_sql("CALL reconcile.run('5 s'); SELECT count(*) FROM reconcile.unresolved WHERE state <> 'manual_review'", qr/^0$/m, 30, 'custom');
	is($other->status($action{lost})->{state}, 'succeeded', 'elsewhere: armed, it settles what was unknown');
	is($other->status($action{moves})->{state}, 'succeeded', 'elsewhere: and sends what nobody has sent');
	is($other->status($action{done})->{state}, 'succeeded', 'elsewhere: what was done is done');
	$other->assert_consistent('elsewhere, armed');
}
is($provider->summary('moves')->{deliveries}, 1, 'one delivery of it');
is($provider->summary($_)->{deliveries}, 1, "and still one to $_") foreach qw(waits lost mute);
is_deeply($provider->duplicates($_), {}, "no second effect at $_, by whomever") foreach qw(done waits lost mute moves);

$other->stop;
$node->stop;
done_testing();
