# Measuring how long writes take to show, and rehearsing lost answers, with real
# writes at a provider that shows them late, never, or not to us.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background finish_background);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('windows');

# A scenario, a provider and an operation of one name.
sub define
{
	my ($server, $name, $scenario, $windows, %operation) = @_;
	$provider->scenario($name, $scenario);
	$server->define_provider($name, $provider->http_url($name), window_source => 'assumed', attempt_timeout => '20 s', %$windows);
	$server->define_operation($name, $name, example => { amount => 5 }, %operation);
	return;
}

# A CALL, its result and what it said.
sub call
{
	my ($server, $call, $before) = @_;
	my ($code, $out, $err) = $server->psql('postgres', ($before // '') . "CALL $call");
	my @said = $err =~ /NOTICE:\s+(.*)/g;
	diag("CALL $call: $err") if $code != 0;
	return { code => $code, out => $out, said => \@said, last => $said[-1] // '' };
}

sub window_of
{
	my ($server, $name) = @_;
	return $server->sql("SELECT p.consistency_window || ' ' || p.window_source || coalesce(', ' || l.consistency_window || ' ' || l.window_source, '')
		FROM reconcile.provider p LEFT JOIN reconcile.lookup_rule l ON l.operation = p.provider AND l.position = 1 WHERE p.provider = '$name'");
}

sub samples
{
	my ($server, $name) = @_;
	return $server->rows("SELECT s.*, a.drill, a.state FROM reconcile.window_sample s JOIN reconcile.action a USING (action_id) WHERE s.operation = '$name' ORDER BY sample_id");
}

# ---------------------------------------------------------------- a measurement

my @held = ({}) x 9;
define($node, 'lag', { visibility_lag_s => 0.5, write => [ @held, { hold_s => -1 } ] }, { consistency_window => '5 s' });
my $run = background($node, "CALL reconcile.measure_window('lag', 14, 4)");
$provider->wait_writes('lag', 13, 30);
# One probe waits for its answer, so the call goes on; what is measured can be read.
$node->wait_sql("SELECT count(*) FROM reconcile.window_sample WHERE operation = 'lag'", 13);
is($node->sql("SELECT count(*) FROM pg_stat_activity WHERE query ~ '^CALL reconcile.measure_window'"), 1, 'another session sees the samples while the measurement goes on');
is($node->sql("SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE query ~ '^CALL reconcile.measure_window' AND relation = 'reconcile.action'::regclass AND mode = 'RowExclusiveLock'"),
	0, 'which holds no lock of a write while it waits');
$provider->release('lag');
my ($out, $err) = finish_background($run);
my ($visible, $slowest, $recommended, $applied) = split /\|/, $out;
is($visible, 14, 'every probe became visible');
is($applied, 'f', 'nothing is changed unless it is asked for');
is(window_of($node, 'lag'), '00:00:05 assumed', 'the window is what it was');
is($node->sql("SELECT '$recommended'::interval >= '$slowest'::interval AND '$recommended'::interval >= '1 s' AND '$recommended'::interval <= greatest('1 s', '$slowest'::interval * 3 + '0.1 s')"),
	't', 'the recommendation is the slowest times three, and never below a second');
like($err, qr/NOTICE:.*[1-9]\d* of 14 visible, slowest [\d.]+ m?s/, 'it says how far it is');
like($err, qr/NOTICE:.*the slowest of 14 took .* bounds 80\.7 % of all writes.*recommended window: .* instead of 5 s \(assumed\); apply => true would set it/,
	'and what it recommends');
my @samples = @{ samples($node, 'lag') };
is(scalar @samples, 14, 'one sample for each');
is(scalar(grep { $_->{source} eq 'probe' && $_->{drill} eq 'probe' && $_->{state} eq 'succeeded' && $_->{position} == 1 } @samples), 14, 'of ordinary, marked actions');
is(scalar(grep { $_->{concurrency} == 4 } @samples), 14, 'under the stated concurrency');
my @waited = grep { defined $_->{lag_low_us} } @samples;
cmp_ok(scalar @waited, '>=', 5, 'many were asked for before they were visible');
is(scalar(grep { $_->{lag_low_us} > $_->{lag_us} } @waited), 0, 'and seen later than they were not seen');
# The provider shows an effect half a second after its commit, which comes before the end of the attempt.
is(scalar(grep { $_->{lag_us} < 50_000 || $_->{lag_us} > 10_000_000 } @waited), 0, 'the lags are what the provider does');
is(scalar(grep { $_->{lag_low_us} > 520_000 } @waited), 0, 'nobody was not seen later than that');
is($provider->effects('lag'), 14, 'fourteen real writes');
is($provider->summary('lag')->{refs}, 14, 'of fourteen references');
like($node->sql("SELECT verdict FROM reconcile.window_report WHERE operation = 'lag'"), qr/^measured maximum .* is within the window of 5 s/, 'the report agrees');
is($node->sql("SELECT probes || ' ' || (lag_max = '$slowest') FROM reconcile.window_report WHERE operation = 'lag'"), '14 true', 'and counts');
like($node->sql("SELECT xmlparse(document reconcile.window_plot('lag'))"), qr/14 probes, 0 lookups, 0 violations/, 'the plot shows them');

# ---------------------------------------------------------------- setting it

my $set = call($node, "reconcile.measure_window('lag', 13, 8, apply => true)");
(undef, undef, $recommended, $applied) = split /\|/, $set->{out};
is($applied, 't', 'with apply the window is set');
is(window_of($node, 'lag'), "$recommended measured", 'as measured');
like($set->{last}, qr/, set instead of 5 s \(assumed\)$/, 'and that is said');

$node->sql("UPDATE reconcile.provider SET consistency_window = '20 s', window_pinned = true WHERE provider = 'lag'");
my $pinned = call($node, "reconcile.measure_window('lag', 13, 13, apply => true)");
like($pinned->{out}, qr/\|f$/, 'a pinned window is not set');
is(window_of($node, 'lag'), '00:00:20 measured', 'and stays');
like($pinned->{last}, qr/the window is pinned and stays 20 s \(measured\)$/, 'as is said');
$node->sql("UPDATE reconcile.provider SET window_pinned = false WHERE provider = 'lag'");

# Another operation rests on the same window, and was not measured.
$node->define_operation('lag.other', 'lag');
my $shared = call($node, "reconcile.measure_window('lag', 13, 13, apply => true)");
(undef, undef, $recommended, $applied) = split /\|/, $shared->{out};
is(window_of($node, 'lag'), "00:00:20 measured, $recommended measured", 'a window that others rest on is not shortened for them');

# ---------------------------------------------------------------- no recommendation

my $few = call($node, "reconcile.measure_window('lag', 3, 3, apply => true)");
is($few->{out}, join('|', 3, (split /\|/, $few->{out})[1], '', 'f'), 'three samples are too few');
like($few->{said}[0], qr/^3 samples will be too few to recommend a window: 13 are needed/, 'which is said before');
like($few->{last}, qr/^3 samples are too few for a safety factor of 3: 13 are needed, so no window is recommended$/, 'and after');

define($node, 'hidden', { write => [ {}, { visibility_lag_s => 9999 } ] }, { consistency_window => '9 s' });
my $hidden = call($node, "reconcile.measure_window('hidden', 13, 13, apply => true, max_duration => '4 s')");
like($hidden->{out}, qr/^12\|[^|]+\|\|f$/, 'one probe that is never seen spoils it');
like($hidden->{last}, qr/^12 of 13 probes became visible \(1 (?:not seen yet|never seen)\): no window is recommended$/, 'in plain words');
is(window_of($node, 'hidden'), '00:00:09 assumed', 'nothing was set');

define($node, 'refused', { write_default => { status => 422 } }, {});
my $refused = call($node, "reconcile.measure_window('refused', 20, 2, apply => true)");
like($refused->{out}, qr/^0\|\|\|f$/, 'nothing can be measured where every write is refused');
like($refused->{last}, qr/^0 of 20 probes became visible \((?:[34] rejected|3 rejected, 1 not seen yet)\): no window is recommended$/, 'and it is not tried twenty times');
cmp_ok($provider->deliveries('refused'), '<=', 4, 'as the provider saw');

define($node, 'unauthorized', { write_default => { status => 401 } }, {});
my $unauthorized = call($node, "reconcile.measure_window('unauthorized', 20, 3)");
like($unauthorized->{last}, qr/^0 of 20 probes became visible \(.*\): no window is recommended; provider "unauthorized" is paused: /, 'a provider that is paused meanwhile ends it');
is($node->sql("SELECT count(*) FROM reconcile.action WHERE operation = 'unauthorized' AND state = 'planned' AND attempts = 0"), 0, 'and nothing is left to be sent later');

# ---------------------------------------------------------------- without a worker

my $plain = ActionReconcile::Node->create('plain', preload => 0);
define($plain, 'alone', { visibility_lag_s => 0.5 }, { consistency_window => '5 s' });
my $alone = call($plain, "reconcile.measure_window('alone', 13, 5, apply => true)");
like($alone->{out}, qr/^13\|[^|]+\|[^|]+\|t$/, 'without a worker it is the engine itself');
is(scalar(grep { /^\d+ of 13 visible, slowest/ } @{ $alone->{said} }) > 0, 1, 'and says how far it is');
is(scalar(grep { /is the engine/ } @{ $alone->{said} }), 0, 'without a word about engines');
is($provider->effects('alone'), 13, 'with as many writes');
like(window_of($plain, 'alone'), qr/ measured$/, 'the window is set');

# What a measurement withdraws when it ends may be leaving at this moment.
my @over = split /\n/, $plain->sql("SELECT reconcile.submit_drill('alone', '{\"amount\": 5}', 'probe') FROM generate_series(1, 2)");
my $withdraw = PostgreSQL::Test::Utils::tempdir() . '/withdraw.sql';
PostgreSQL::Test::Utils::append_to_file($withdraw, "SELECT reconcile.withdraw_drills('{$over[0],$over[1]}', 'over');\n");
my $psql = sprintf('psql -XAtq -v ON_ERROR_STOP=1 -d "%s" -f %s 2>&1', $plain->connstr('postgres'), $withdraw);
like($plain->sql("BEGIN;\nSELECT 'held' FROM reconcile.action WHERE action_id = '$over[0]' FOR UPDATE;\n\\! $psql\nCOMMIT;"), qr/^held\s*$/, 'one that somebody holds does not end it');
is($plain->status($over[0])->{state}, 'planned', 'it stays as it is');
is($plain->status($over[1])->{state}, 'cancelled', 'and the other is withdrawn');

# ---------------------------------------------------------------- rehearsals

# What each capability did, by name.
sub results
{
	my ($server, $name) = @_;
	return { map { ("$_->{scenario}: $_->{capability}" => $_) }
		@{ $server->rows("SELECT * FROM reconcile.self_test_result WHERE operation = '$name' AND run = (SELECT run FROM reconcile.self_test_result WHERE operation = '$name' ORDER BY ended_at DESC LIMIT 1)") } };
}

sub verdicts
{
	my ($found) = @_;
	return join ', ', map { "$_: " . (!defined $found->{$_}{held} ? 'not run' : $found->{$_}{held} ? 'held' : 'failed') } sort keys %$found;
}

my $short = { consistency_window => '1.5 s', late_arrival_max => '0.2 s', attempt_timeout => '5 s' };
foreach my $server ($node, $plain)
{
	my $where = $server == $node ? 'with a worker' : 'without a worker';
	define($server, 'honest', {}, $short);
	my $honest = call($server, "reconcile.self_test('honest')");
	like($honest->{out}, qr/^[0-9a-f-]{36}\|0$/, "an honest provider, $where: nothing failed");
	my $found = results($server, 'honest');
	is(verdicts($found), 'answer_lost: makes it once: held, answer_lost: settles a lost answer: held, probe: is shown by lookup 1: held, '
		. 'probe: returns an id: held, probe: works: held, request_lost: settles a lost request: held', 'every capability held');
	is(scalar(grep { /held: / } @{ $honest->{said} }), 6, 'and each is told');
	is($server->status($found->{'answer_lost: settles a lost answer'}{action_id})->{state}, 'succeeded', 'the lost answer was found');
	is($server->status($found->{'request_lost: settles a lost request'}{action_id})->{state}, 'safe_to_retry', 'the lost request was proven absent');
	is($provider->effects('honest'), 2, 'two effects at the provider: the success and the lost answer');
	is($provider->deliveries('honest'), 2, 'in two requests');
	is($server->sql("SELECT DISTINCT operation_version FROM reconcile.self_test_result WHERE operation = 'honest'"), 1, 'of the version that was tested');
	$provider->reset('honest');
}

define($node, 'replacing', {}, $short, on_absent => 'replace');
call($node, "reconcile.self_test('replacing')");
my $found = results($node, 'replacing');
is($found->{'request_lost: settles a lost request'}{held}, JSON::PP::true, 'an operation that replaces: the lost request was replaced');
is($provider->effects('replacing'), 3, 'and carried out once');
is_deeply($provider->duplicates('replacing'), {}, 'nothing twice');

# The success is shown, so the list looks sound; what was carried out without an answer is not shown.
define($node, 'losing', { write => [ {}, { visibility_lag_s => 9999 } ] }, $short);
my $losing = call($node, "reconcile.self_test('losing')");
$found = results($node, 'losing');
is(verdicts($found), 'answer_lost: makes it once: failed, answer_lost: settles a lost answer: failed, probe: is shown by lookup 1: held, '
	. 'probe: returns an id: held, probe: works: held, request_lost: settles a lost request: held', 'a list that loses objects is caught');
like($losing->{out}, qr/\|2$/, 'by two capabilities');
is($node->status($found->{'answer_lost: settles a lost answer'}{action_id})->{state}, 'safe_to_retry', 'which would have been repeated: its absence seemed proven');
is(scalar(grep { /DID NOT HOLD: expected: .*; seen: / } @{ $losing->{said} }), 2, 'what was expected, and what was seen, is said');

# Nothing is ever shown: no canary is found, and so no absence is believed.
define($node, 'hiding', { read_default => { body => { data => [] } } }, $short, lookup => { max_inconclusive => 2 });
call($node, "reconcile.self_test('hiding')");
$found = results($node, 'hiding');
is(verdicts($found), 'answer_lost: makes it once: failed, answer_lost: settles a lost answer: failed, probe: is shown by lookup 1: failed, '
	. 'probe: returns an id: held, probe: works: held, request_lost: settles a lost request: failed', 'a list that shows nothing settles nothing');
is($node->status($found->{'answer_lost: settles a lost answer'}{action_id})->{state}, 'manual_review', 'and nothing is concluded from it');

# The probe is shown to each lookup in turn.
define($node, 'twofold', {}, $short);
$node->sql($node->insert('lookup_rule', operation => 'twofold', position => 2, kind => 'get_by_reference', path => '/effects/{client_reference}',
	absent_statuses => '{404}', reference_path => '$.ref', artifact_path => '$.id', consistency_window => '2 s', window_source => 'documented'));
call($node, "reconcile.self_test('twofold')");
$found = results($node, 'twofold');
is(join(' ', map { $found->{"probe: is shown by lookup $_"}{held} ? 'held' : 'not' } 1, 2), 'held held', 'each lookup is tried');

# Taken on now, and decided later.
define($node, 'async', { accept => 'body', job_states => [ 'pending', 'succeeded' ], job_commit => 'accept' }, $short, artifact_path => undef);
$node->sql($node->insert('poll_rule', operation => 'async', url_path => '$.status_url', artifact_path => '$.result.id', state_path => '$.status', accepted => '{succeeded}', rejected => '{failed}', pause => '0.2 s', pause_max => '1 s'));
call($node, "reconcile.self_test('async')");
$found = results($node, 'async');
is(join(', ', map { $found->{$_}{held} ? 'held' : 'not' } 'probe: works', 'probe: returns an id', 'answer_lost: settles a lost answer', 'answer_lost: makes it once', 'request_lost: settles a lost request'),
	'held, held, held, held, held', 'a verdict that comes later is waited for');
is($provider->effects('async'), 2, 'and nothing is sent twice');

# A key, and nothing that could be asked.
$provider->scenario('keyed', { key_header => 'Idempotency-Key' });
$node->define_provider('keyed', $provider->http_url('keyed'), window_source => 'assumed', %$short);
$node->sql('BEGIN;' . $node->operation_sql('keyed', 'keyed', example => { amount => 5 }, headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' },
	key_lifetime => '1 day', key_lifetime_source => 'documented', key_replay => 'stored_reply', lookup => 0)
	. $node->insert('lookup_rule', operation => 'keyed', position => 1, kind => 'replay_by_key') . 'COMMIT;');
my $keyed = call($node, "reconcile.self_test('keyed')");
is(verdicts(results($node, 'keyed')), 'answer_lost: settles a lost answer: held, probe: returns an id: held, probe: works: held, request_lost: settles a lost request: held',
	'who only takes a key is sent the same again');
is($provider->effects('keyed'), 3, 'and carries out each of the three once');
is($provider->deliveries('keyed'), 4, 'in four requests: one was answered from memory');

define($node, 'blind', {}, $short, lookup => 0);
call($node, "reconcile.self_test('blind')");
is(verdicts(results($node, 'blind')), 'answer_lost: settles a lost answer: held, probe: returns an id: held, probe: works: held, request_lost: settles a lost request: held',
	'who cannot be asked: both go to a person');
is($node->sql("SELECT string_agg(drill || ' ' || state || ' ' || attempts, ', ' ORDER BY drill) FROM reconcile.action WHERE operation = 'blind'"),
	'answer_lost manual_review 1, probe succeeded 1, request_lost manual_review 1', 'and none is sent again');
is($provider->deliveries('blind'), 2, 'as the provider saw');

define($node, 'broken', { write_default => { status => 422 } }, $short);
call($node, "reconcile.self_test('broken')");
is(verdicts(results($node, 'broken')), 'answer_lost: settles a lost answer: not run, probe: works: failed, request_lost: settles a lost request: not run',
	'without an ordinary success the rest is not tried');
is($provider->deliveries('broken'), 1, 'and not sent');

$node->sql("SELECT reconcile.pause('broken', 'a test')");
my $paused = call($node, "reconcile.self_test('broken', keep => false)");
like($paused->{out}, qr/\|$/, 'nothing failed where nothing could be tried');
like($paused->{said}[0], qr/^probe, works: not run because provider "broken" is paused: a test$/, 'and why is said');
is($node->sql("SELECT count(DISTINCT run) FROM reconcile.self_test_result WHERE operation = 'broken'"), 1, 'keep => false forgets the earlier results');

# ---------------------------------------------------------------- by an admin, with a search_path of somebody else's

foreach my $server ($node, $plain)
{
	my $where = $server == $node ? 'with a worker' : 'without a worker';
	$server->sql(<<'SQL');
CREATE ROLE tester LOGIN; GRANT reconcile_admin TO tester;
CREATE SCHEMA trap; GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE DOMAIN trap.record AS integer; CREATE DOMAIN trap.uuid AS integer; CREATE DOMAIN trap.text AS integer; CREATE DOMAIN trap.jsonb AS integer; CREATE DOMAIN trap.timestamptz AS integer;
CREATE FUNCTION trap.gen_random_uuid() RETURNS pg_catalog.uuid LANGUAGE sql AS $$ SELECT (1 / 0)::pg_catalog.text::pg_catalog.uuid $$;
CREATE FUNCTION trap.sprung(pg_catalog.text, pg_catalog.text) RETURNS boolean LANGUAGE sql AS $$ SELECT 1 / 0 = 1 $$;
CREATE OPERATOR trap.= (FUNCTION = trap.sprung, LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text);
SQL
	my $trap = "SET SESSION AUTHORIZATION tester; SET search_path = trap, pg_catalog;\n";
	define($server, 'admin', {}, $short);
	like(call($server, "reconcile.measure_window('admin', 13, 13, apply => true)", $trap)->{out}, qr/^13\|.*\|t$/, "an admin measures, $where");
	like(call($server, "reconcile.self_test('admin')", $trap)->{out}, qr/\|0$/, "and rehearses, $where");
	is($server->sql("SELECT string_agg(DISTINCT submitter, ', ') FROM reconcile.action WHERE operation = 'admin'"), 'tester', 'in its own name');
}

# ---------------------------------------------------------------- a window that was too short

# Carried out, but the answer is lost; the list shows it after three seconds, the window is over after 0.4.
foreach my $name (qw(violated guarded))
{
	$provider->preset($name, '10-close', visibility_lag_s => 3);
	$node->define_provider($name, $provider->http_url($name), window_source => 'assumed', window_pinned => $name eq 'guarded' ? 'true' : 'false');
	$node->define_operation($name, $name, lookup => { negative_spacing => '4 s' });
}
my %late = map { $_ => $node->submit($_, { n => 1 }) } qw(violated guarded);
foreach my $name (qw(violated guarded))
{
	is($node->wait_state($late{$name}, 'succeeded|safe_to_retry|manual_review'), 'succeeded', "$name: found at the second question");
	my ($v) = @{ $node->rows("SELECT *, extract(epoch FROM lag) AS lag_s, old_window = '0.3 s' AS was, new_window = lag * 2 AS doubled,
		(SELECT consistency_window = v.new_window FROM reconcile.provider p WHERE p.provider = v.provider) AS is_now
		FROM reconcile.window_violation v WHERE action_id = '$late{$name}'") };
	cmp_ok($v->{lag_s}, '>=', 3, "$name: the incident says how late it was seen");
	ok($v->{was}, "$name: and what the window was");
	is($v->{outcome}, $name eq 'violated' ? 'widened' : 'pinned', "$name: what became of it");
	ok($v->{is_now}, "$name: which is so");
	ok($v->{doubled}, 'violated: twice the lag') if $name eq 'violated';
	like($node->sql("SELECT verdict FROM reconcile.window_report WHERE operation = '$name'"),
		$name eq 'violated' ? qr/^window is broken: object seen [\d.]+ s after its attempt, when the window was 300 ms; it is [\d.]+ s now$/
		: qr/^window is broken: object seen [\d.]+ s after its attempt, when the window was 300 ms; it is pinned$/, "$name: the report says so");
	like($node->sql("SELECT reconcile.window_plot('$name')"), qr/<path class="violation" d="M\d/, "$name: the plot shows it");
}
is(window_of($node, 'guarded'), '00:00:00.3 assumed', 'the pinned window is what it was');

$node->assert_consistent('with a worker');
$plain->assert_consistent('without a worker');
$plain->stop;
$node->stop;
$provider->stop;
done_testing();
