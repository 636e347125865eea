# Upgrade of the extension, with open actions and the new library already there:
# until ALTER EXTENSION the engine says what to do and sends nothing, while
# callers go on; after it the open actions are settled, nothing twice.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use HTTP::Tiny;
use JSON::PP;
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('upgrade', extension => 0);
my $what_to_do = qr/run ALTER EXTENSION action_reconcile UPDATE/;
my (%action, %reference);

# ---------------------------------------------------------------- version 0.1

$node->sql("CREATE EXTENSION action_reconcile VERSION '0.1'");
$node->wait_for_log(qr/the engine does not work: .*$what_to_do/);
pass('the new library tells what to do');
is($node->worker_pid, '', 'and no worker is there');
like($node->sql('SELECT armed, disarmed_because FROM reconcile.health'), qr/^f\|.*$what_to_do/, 'health tells it, in the old SQL');
like($node->sql_error("SELECT reconcile.arm('test')"), qr/^55000: .*$what_to_do/, 'nothing is armed');
like($node->sql_error('CALL reconcile.run()'), qr/^55000: .*$what_to_do/, 'and run() does not work');

# As the old library armed it: the record and the file.
my $token = '0123456789abcdef0123456789abcdef';
my ($system, $database, $directory) = split /\|/, $node->sql(qq(
	INSERT INTO reconcile.arming (token, epoch, system_identifier, timeline, database_oid, armed_at, armed_by, reason)
	SELECT '$token', 7, system_identifier, (SELECT timeline_id FROM pg_control_checkpoint()), d.oid, now(), current_user, 'by 0.1'
	  FROM pg_control_system(), pg_database d WHERE datname = current_database();
	SELECT system_identifier, database_oid, to_hex(hashtext(current_setting('data_directory'))) FROM reconcile.arming));
my $file = $node->arming_dir . "/$system-$database-" . substr($token, 0, 8) . '.armed';
my $inode = (stat $node->data_dir . '/global/pg_control')[1];
open my $handle, '>', $file or die "$file: $!";
chmod 0600, $file;
printf $handle "token %s\nepoch 7\nlsn 0/0\nplace %s-%08x\n", $token, $inode, hex substr($directory, -8);
close $handle;

foreach my $name (qw(shop slow))
{
	$provider->preset($name, 'ok');
	# Without what 0.1 does not know.
	$node->sql($node->insert('provider', provider => $name, base_url => $provider->http_url($name), consistency_window => '0.3 s',
			window_source => 'documented', late_arrival_max => '0.1 s', attempt_timeout => '2 s', allow_http => 'true', allow_private_addresses => 'true'));
	$node->define_operation($name, $name, on_absent => 'replace');
}
$node->define_operation('again', 'shop', lookup => 0);

# What the old engine left behind when the server was stopped for the upgrade, and what had happened at the provider.
my %standing = (succeeded => 'confirmed/accepted', delivered => 'confirmed/pending');
my %left = (
	in_flight_arrived => { state => 'submitted', effect => 1 },
	in_flight_lost => { state => 'submitted' },
	unknown_arrived => { state => 'outcome_unknown', effect => 1 },
	unknown_lost => { state => 'outcome_unknown' },
	asking => { state => 'reconciling', attempt => 'outcome_unknown', effect => 1 },
	review => { state => 'manual_review', attempt => 'outcome_unknown', effect => 1 },
	confirmed => { state => 'delivered', effect => 1 },
	over => { state => 'succeeded', effect => 1 });
my $number = 0;
foreach my $name (sort keys %left)
{
	my %is = %{ $left{$name} };
	my $id = $action{$name} = sprintf 'd0000000-0000-7000-8000-%012d', ++$number;
	my $attempt = $is{attempt} // $is{state};
	my $standing = $standing{ $is{state} } // 'pending/pending';
	my $gate = $attempt =~ /submitted|unknown/ ? 2_000_000 : 'NULL';
	my $ended = $attempt eq 'submitted' ? 'NULL' : 'at';
	$reference{$name} = "old-$number";
	$node->sql(qq(
		CREATE TEMP VIEW s AS SELECT '$id'::uuid AS id, now() - interval '1 minute' AS at, '{"submit": {}}'::jsonb AS evidence,
			jsonb_build_object('of', '$name') AS payload;
		INSERT INTO reconcile.history (action_id, version, recorded_at, event, to_state, standing, evidence, actor, transaction, previous_hash, hash)
			SELECT id, 1, at, 'submit', '$is{state}', '$standing', evidence, 'test', '3', '\\x',
				reconcile.history_hash(id, 1, at, NULL, 'submit', NULL, '$is{state}', '$standing', evidence, 'test', '\\x') FROM s;
		INSERT INTO reconcile.action (action_id, operation, payload, client_reference, provider, submitter, submitted_at, fingerprint, state, standing, queued,
				attempts, dispatch_id, gate_us, eligible_at, lookup_position, version, event, evidence, actor, recorded_at, transaction, chain_head)
			SELECT id, 'shop', payload, '$reference{$name}', 'shop', current_user, at, reconcile.intent_fingerprint('POST', '/effects', payload), '$is{state}',
				'$standing', false, 1, id, CASE WHEN '$is{state}' = 'outcome_unknown' THEN 2000000 END, at, 1, 1, 'submit', s.evidence, 'test', at, '3', h.hash
			FROM s JOIN reconcile.history h ON h.action_id = id;
		INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch,
				dispatched_at, window_us, late_arrival_us, gate_us, ended_at, state, standing, event, evidence, version)
			SELECT id, id, 1, 'shop', 1, 1, (SELECT base_url FROM reconcile.provider WHERE provider = 'shop'), '\\x00', 7,
				at, 300000, 100000, 2000000, $ended, '$attempt', '$standing', 'claim', evidence, 1 FROM s;
		INSERT INTO reconcile.lookup (lookup_id, action_id, action_version, epoch, position, kind, asked_at, asked_us)
			SELECT id, id, 1, 7, 1, 'list_by_reference', at, 2000001 FROM s WHERE '$is{state}' = 'reconciling'));
	if ($is{effect})
	{
		my $answer = HTTP::Tiny->new->post($provider->http_url('shop') . '/effects',
			{ headers => { 'Content-Type' => 'application/json' }, content => encode_json({ ref => $reference{$name}, of => $name }) });
		is($answer->{status}, 201, "$name: had been carried out");
	}
}
$node->sql("INSERT INTO reconcile.clock VALUES ('before', 1900000, 0, now() - interval '1 minute')");
my $before = $provider->summary('shop');

# ---------------------------------------------------------------- the new library on the old SQL

# Callers go on; nothing crashes.
$action{new} = $node->submit('shop', { of => 'new' }, intent_key => 'a key');
is($node->submit('shop', { of => 'new' }, intent_key => 'a key'), $action{new}, 'between: submit() joins');
$action{inserted} = $node->sql(q(INSERT INTO reconcile.action (operation, payload) VALUES ('shop', '{"of": "inserted"}') RETURNING action_id));
$action{withdrawn} = $node->submit('shop', { of => 'withdrawn' });
is($node->sql("SELECT reconcile.cancel('$action{withdrawn}', 'not wanted')"), 'cancelled', 'between: cancel()');
is($node->sql("SELECT reconcile.hold('$action{inserted}', 'wait'), reconcile.release('$action{inserted}', 'go')"), 'planned|planned', 'between: hold() and release()');
$action{told} = $action{unknown_arrived};
is($node->sql(qq(SELECT reconcile.confirm('$reference{unknown_arrived}', 'an id', provider => 'shop') IS NOT NULL)), 't', 'between: confirm()');
my @asked = (
	q(SELECT count(*) FROM reconcile.action_status), q(SELECT count(*) FROM reconcile.action_history), q(SELECT count(*) FROM reconcile.unresolved),
	q(SELECT count(*) FROM reconcile.review_queue), q(SELECT count(*) FROM reconcile.transition_rule), q(SELECT count(*) FROM reconcile.provider_scorecard),
	q(SELECT count(*) FROM reconcile.provider_grade), q(SELECT count(*) FROM reconcile.window_report), q(SELECT count(*) FROM reconcile.engine()),
	q(SELECT count(*) FROM reconcile.action_as_of(now())), q(SELECT count(*) FROM reconcile.day_report(current_date)),
	qq(SELECT count(*) FROM reconcile.preview('$action{new}')), qq(SELECT reconcile.receipt('$action{new}') ->> 'operation'),
	qq(SELECT status FROM reconcile.wait('$action{new}', '0')), q(SELECT count(*) FROM reconcile.verify_history()),
	q(SELECT count(*) FROM reconcile.fold_violation()), q(SELECT reconcile.pause('slow', 'no reason')), q(SELECT reconcile.resume('slow')));
my @failed = grep { !/^ok/ } map { my ($code, $out, $err) = $node->psql('postgres', $_); $code == 0 ? 'ok' : "$_: $err" } @asked;
is("@failed", '', 'between: what the old SQL offers can be called');

# It does not even start one again and again, and it sent nothing.
$node->sql('CREATE DATABASE more');		# the launcher looks everywhere
$node->wait_sql(q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker'), '0');
my $said = () = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /the engine does not work/g;
cmp_ok($said, '<=', 4, 'between: the log is not flooded');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/terminated by signal|PANIC|ERROR:  (?!library and|the engine does)/, 'between: no crash, no other error');
is_deeply($provider->summary('shop'), $before, 'between: the provider was not asked, and nothing was sent to it');

# ---------------------------------------------------------------- the update

my $postmaster = $node->sql('SELECT pg_postmaster_start_time()');
my $updated_at = $node->sql('ALTER EXTENSION action_reconcile UPDATE; SELECT clock_timestamp()');
is($node->sql('SELECT reconcile.library_version() = extversion FROM pg_extension WHERE extname = \'action_reconcile\''), 't', 'the update is through');
$node->wait_worker;
is($node->sql('SELECT armed, disarmed_because FROM reconcile.engine()'), 't|', 'the worker came by itself, and the arming of 0.1 holds');

foreach my $name (qw(in_flight_arrived in_flight_lost unknown_arrived unknown_lost asking new inserted))
{
	is($node->wait_state($action{$name}, 'succeeded'), 'succeeded', "$name: settled");
}
is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '$action{$_->[0]}'"), $_->[1], "$_->[0]: as it was")
  foreach [ review => 'manual_review' ], [ over => 'succeeded' ], [ withdrawn => 'cancelled' ], [ confirmed => 'delivered' ];
is($node->sql("SELECT reconcile.resolve('$action{review}', 'accepted', 'seen there', 'x')"), 'succeeded', 'review: a person decides');

# The ledger judges.
my $ledger = $provider->ledger('shop');
is_deeply($ledger->{duplicates}, {}, 'nothing was done twice');
my %effects = map { $_->{ref} => 1 } @{ $ledger->{effects} };
ok($effects{ $reference{$_} }, "$_: happened") foreach qw(in_flight_arrived in_flight_lost unknown_arrived unknown_lost asking);
is($ledger->{effect_count}, scalar(grep { $_->{effect} } values %left) + 4, 'and nothing else');
is($node->attempt($action{in_flight_lost})->[0]{state}, 'safe_to_retry', 'what was in flight and never arrived was looked up first');
is($node->hasty_lookups($action{$_}) // '', '', "$_: nobody asked too early") foreach qw(in_flight_arrived in_flight_lost unknown_lost);
$node->assert_consistent;
is($node->sql('SELECT pg_postmaster_start_time()'), $postmaster, 'without a restart');

# ---------------------------------------------------------------- the other way round

# An extension that is newer than the library.
$node->sql(q(UPDATE pg_extension SET extversion = '99.0' WHERE extname = 'action_reconcile'));
$action{late} = $node->submit('shop', { of => 'late' });
$node->wait_sql('SELECT disarmed_because FROM reconcile.engine()', qr/restart the server/);
$node->wait_sql(q(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker'), '0');
$node->wait_for_log(qr/the engine stops: .*restart the server/);
is($provider->effects('shop'), $ledger->{effect_count}, 'an extension newer than the library: nothing is sent');
like($node->sql_error('ALTER EXTENSION action_reconcile UPDATE'), qr/no update path/, 'and cannot be updated backwards');

$node->stop;
$provider->stop;
done_testing();
