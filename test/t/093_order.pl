# Whose turn it is: what comes after another action, what needs its result, what
# goes first, what is too late, and what all of that costs while it waits.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use File::Temp;
use IPC::Run;
use JSON::PP;
use Test::More;

use ActionReconcile::Crash qw(crash story_problems wait_true);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('order');

sub literal { return ActionReconcile::Node::literal($_[0]); }

sub define
{
	my ($name, $scenario, %operation) = @_;
	my $columns = delete $operation{provider} // {};
	$provider->scenario($name, $scenario);
	# on a busy machine, nothing but what is to run into a limit shall do so
	$node->define_provider($name, $provider->http_url($name), connect_timeout => '10 s', attempt_timeout => '20 s', %$columns);
	$node->define_operation($name, $name, %operation);
	return;
}

sub state_of { return $node->sql("SELECT state FROM reconcile.action WHERE action_id = '$_[0]'"); }
sub states_of { return join ' ', map { state_of($_) } @_; }
sub count_of { return $node->sql("SELECT count(*) FROM reconcile.action WHERE $_[0]"); }
sub wait_count { return $node->wait_sql("SELECT count(*) FROM reconcile.action WHERE $_[0]", $_[1], $_[2]); }

# The values of "n" in the bodies of a scenario's writes, in the order in which they came.
sub numbers_sent
{
	return join ' ', map { $_->{body} =~ /"n":\s*(-?\d+)/ ? $1 : '?' } $provider->requests($_[0], 'write');
}

# An action of another operation has come and gone: what was to be done before it has been done.
$provider->scenario('plain');
$node->define_provider('plain', $provider->http_url('plain'));
$node->define_operation('plain', 'plain');
sub engine_has_looked
{
	$node->wait_state($node->submit('plain', {}, on_duplicate => 'new'), 'succeeded');
	return;
}

# Runs these statements in a session each, all at the same time; the output of each.
sub at_once
{
	my (@scripts) = @_;
	my $directory = File::Temp->newdir;
	my (@runs, @out, @err);
	for my $i (0 .. $#scripts)
	{
		open my $file, '>', "$directory/$i.sql" or die;
		print $file $scripts[$i];
		close $file;
		$out[$i] = $err[$i] = '';
		push @runs, IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-f', "$directory/$i.sql" ],
			'>', \$out[$i], '2>', \$err[$i]);
	}
	$_->finish foreach @runs;
	diag(join '', @err) if grep { $_ ne '' } @err;
	return @out;
}

# ---------------------------------------------------------------- case 48: the second step is throttled

define('ticket', {});
define('ticket-patch', { write => [ map { { status => 403, body => { code => 'rateLimitExceeded' } } } 1 .. 3 ] },
	method => 'PATCH', effect => 'create', path => '/effects/{depends_on.1.artifact_id}',
	body_document => '{"priority": "{priority}", "ticket": "{depends_on.1.artifact_id}", "created_as": "{depends_on.1.client_reference}"}',
	answers => [ { statuses => '{403}', body_path => '$ ? (@.code == "rateLimitExceeded")', class => 'throttled' } ]);
my ($ticket, $patch) = split /\|/, $node->sql(<<'SQL');
WITH created AS (SELECT action_id FROM reconcile.submit('ticket', '{"title": "no water"}'))
SELECT created.action_id, p.action_id FROM created, reconcile.submit('ticket-patch', '{"priority": 1}', depends_on => ARRAY[created.action_id]) p
SQL
$node->wait_state($patch, 'succeeded');
my $made = $node->status($ticket)->{artifact_id};
is($node->events($ticket), 'submit claim answered_accepted', 'throttled: the ticket has a chain of its own, and is done once');
is($node->events($patch), 'submit' . ' claim not_executed' x 3 . ' claim answered_accepted', 'throttled: only the second step is repeated');
is($provider->effects('ticket') . $provider->deliveries('ticket'), '11', 'throttled: one ticket');
is($provider->effects('ticket-patch') . $provider->deliveries('ticket-patch'), '14', 'throttled: one patch, at the fourth try');
my @patches = $provider->requests('ticket-patch', 'write');
is($patches[3]{path}, "/s/ticket-patch/effects/$made", 'throttled: it goes to the ticket that was made');
is_deeply(decode_json($patches[3]{body})->{ticket}, $made, 'throttled: and names it');
is(decode_json($patches[3]{body})->{created_as}, $node->status($ticket)->{client_reference}, 'throttled: also by our reference');
is($node->sql("SELECT depends_on = ARRAY['$ticket'::uuid] FROM reconcile.action WHERE action_id = '$patch'"), 't', 'throttled: the chains are linked');
cmp_ok($node->history($patch)->[1]{recorded_at}, 'gt', $node->history($ticket)->[2]{recorded_at}, 'throttled: it left after the first was stored');

# ---------------------------------------------------------------- case 52: a stale backlog

# The outage: its own ports refuse.  What has been unknown since before has its
# time over too, and is asked about all the same.
define('backlog', { own_port => JSON::PP::true, write => [ { then => 'close' } ] },
	provider => { max_in_flight => 4, consistency_window => '2 s' }, retry_pause => '0.2 s', retry_pause_max => '0.5 s');
my $lost = $node->sql("SELECT action_id FROM reconcile.submit('backlog', '{\"n\": 0}', not_after => clock_timestamp() + interval '1 second')");
$node->wait_state($lost, 'outcome_unknown');
$provider->close_ports('backlog');
$node->sql(<<'SQL');
SELECT count(*) FROM generate_series(1, 80) n,
	reconcile.submit('backlog', jsonb_build_object('n', n), not_after => clock_timestamp() + CASE WHEN n <= 20 THEN interval '1500 ms' ELSE interval '1 hour' END)
SQL
wait_count("operation = 'backlog' AND state = 'expired'", 20);
is(count_of("operation = 'backlog' AND state IN ('planned', 'submitted')"), 60, 'backlog: what still has time waits');
is(state_of($lost), $node->wait_state($lost, 'outcome_unknown|reconciling'), 'backlog: what may have happened does not expire');
$provider->open_ports('backlog');
wait_count("operation = 'backlog' AND state = 'succeeded'", 61);
is($node->events($lost), 'submit claim answer_lost' . ($node->events($lost) =~ /( ask inconclusive)+/ ? $& : '') . ' ask found', 'backlog: it is asked about until it is known');
is(join(' ', sort { $a <=> $b } split / /, numbers_sent('backlog')), join(' ', 0, 21 .. 80), 'backlog: of the codes none was sent, of the notices each once');
is($provider->effects('backlog'), 61, 'backlog: each is there once');
is($node->sql(<<'SQL'), '20', 'backlog: the history says why');
SELECT count(*) FROM reconcile.history h JOIN reconcile.action a USING (action_id)
 WHERE a.operation = 'backlog' AND h.event = 'expire' AND (h.evidence->>'not_after')::timestamptz <= h.recorded_at
SQL

# Who is too late brings those down that need it, and lets those go that do not mind.
define('late', {}, provider => { max_in_flight => 4 });
$node->sql("SELECT reconcile.pause('late', 'test')");
my ($first, @after) = split /\n/, $node->sql(<<'SQL');
BEGIN;
CREATE TEMP TABLE late ON COMMIT DROP AS SELECT action_id FROM reconcile.submit('late', '{"n": 1}', ordering_key => 'k', not_after => clock_timestamp() + interval '300 ms');
SELECT action_id FROM late;
SELECT s.action_id FROM late, reconcile.submit('late', '{"n": 2}', ordering_key => 'k', after_failure => true) s;
SELECT s.action_id FROM late, reconcile.submit('late', '{"n": 3}', depends_on => ARRAY[late.action_id]) s;
COMMIT;
SQL
$node->wait_state($after[1], 'cancelled');
$node->sql("SELECT reconcile.resume('late')");
$node->wait_state($after[0], 'succeeded');
is(states_of($first, @after), 'expired succeeded cancelled', 'late: the next goes, what needed it does not');
is(numbers_sent('late'), '2', 'late: only that is sent');

# ---------------------------------------------------------------- one after another, from many sessions, killed in between

# Each round three sessions submit; then the engine is killed while their actions
# are open and others come after them.  A killed worker takes all sessions along.
my @keys = ('a' .. 'd');
my ($rounds, $each) = (3, 5);
define('keyed', { write_mix => [ [ 6, {} ], [ 2, { hold_s => 0.05 } ], [ 1, { then => 'close' } ] ], seed => 7 },
	provider => { max_in_flight => 16 });
my (@keyed, @by_session);
sub submissions
{
	my ($round, $session) = @_;
	return join '', map { "SELECT action_id FROM reconcile.submit('keyed', '{\"n\": " . ($round * 1000 + $session * 100 + $_)
		  . "}', ordering_key => '$keys[ $_ % @keys ]', after_failure => true);\n" } 1 .. $each * @keys;
}
for my $round (1 .. $rounds)
{
	my @sessions = at_once(map { submissions($round, $_) } 1 .. 3);
	push @keyed, map { split /\n/ } @sessions;
	push @by_session, @sessions;
	my $done = ($round - 1) * 3 * $each * @keys + 7;
	$node->wait_sql("SELECT count(*) >= $done FROM reconcile.action WHERE operation = 'keyed' AND state = 'succeeded'", 't');
	crash($node, 'worker');
}
my $all = $rounds * 3 * $each * @keys;
is(scalar(@keyed), $all, 'keyed: all sessions could submit');
wait_count("operation = 'keyed' AND reconcile.resolved_status(standing) <> 'DENIED_UNRESOLVED'", $all, 120);
my %of = map { $_->{client_reference} => $_ }
  @{ $node->rows("SELECT client_reference, action_id, ordering_key, submitted_at FROM reconcile.action WHERE operation = 'keyed'") };
my @writes = grep { $_->{head_complete} } $provider->requests('keyed', 'write');
for my $key (@keys)
{
	my (%seen, @sent);
	push @sent, $_ foreach grep { !$seen{$_}++ } map { $of{ $_->{ref} }{action_id} } grep { $of{ $_->{ref} }{ordering_key} eq $key } @writes;
	is_deeply(\@sent, [ sort @sent ], "keyed: what is in the ledger of key $key is in the order of the ids");
}
is(scalar(grep { my @ids = split /\n/; "@ids" ne join(' ', sort @ids) } @by_session), 0, 'keyed: ids ascend in the order in which a session submits');
is($node->sql(<<'SQL'), '', 'keyed: never two of one key were open at once');
WITH opened AS (
	SELECT a.ordering_key, a.action_id, min(h.version) FILTER (WHERE h.event = 'claim') AS first_claim, min(h.recorded_at) FILTER (WHERE h.event = 'claim') AS opened_at,
		max(h.recorded_at) AS settled_at
	  FROM reconcile.action a JOIN reconcile.history h USING (action_id) WHERE a.operation = 'keyed' GROUP BY 1, 2)
SELECT o.ordering_key, o.action_id, p.action_id FROM opened o JOIN opened p ON p.ordering_key = o.ordering_key AND p.action_id > o.action_id
 WHERE p.opened_at < o.settled_at
SQL
is(join("\n", story_problems($node, $provider, 'keyed', @keyed)), '', 'keyed: nothing twice, nothing lost');

# An earlier one that is wanted again waits until what has overtaken it is settled,
# and holds up what comes after it.
define('again', { write => [ { then => 'close', commit => 'never' }, { hold_s => -1 }, { hold_s => -1 } ] }, provider => { max_in_flight => 8 });
my @again = $node->submit_all([ 'again', { n => 1 }, ordering_key => 'k' ], [ 'again', { n => 2 }, ordering_key => 'k', after_failure => 'true' ]);
ok($provider->wait_writes('again', 2), 'again: the second goes when the first is proven not to have happened');
is(states_of(@again), 'safe_to_retry submitted', 'again: the second is open');
$node->sql("SELECT reconcile.replace('$again[0]', 'wanted after all')");
push @again, $node->submit('again', { n => 3 }, ordering_key => 'k', after_failure => 'true');
engine_has_looked();
is(states_of(@again), 'planned submitted planned', 'again: the first waits for the second, and the third for both');
is($node->sql("SELECT next_step FROM reconcile.unresolved WHERE action_id = '$again[0]'"), "it is sent when action $again[1] is settled", 'again: and says so');
$provider->release('again');
ok($provider->wait_writes('again', 3), 'again: then the first is sent again');
engine_has_looked();
is(states_of(@again), 'submitted succeeded planned', 'again: alone');
$provider->release('again');
$node->wait_state($again[2], 'succeeded');
is(numbers_sent('again'), '1 2 1 3', 'again: in turn');

my @rows = split /\n/, $node->sql("INSERT INTO reconcile.action (operation, payload, ordering_key) SELECT 'again', jsonb_build_object('n', n), 'many' FROM generate_series(10, 40) n RETURNING action_id");
is(scalar(@rows), 31, 'again: many in one statement');
is("@rows", join(' ', sort @rows), 'again: the ids of one statement are in its order');
$node->wait_state($rows[-1], 'succeeded');
like(numbers_sent('again'), qr/@{[ join ' ', 10 .. 40 ]}$/, 'again: and so are its sends');

# Who submits with a key waits for others who do, but the server's lock table is not filled with keys.
define('many', {}, provider => { max_in_flight => 64 });
my ($locks) = $node->sql(<<'SQL') =~ /^(\d+)$/m;
BEGIN;
INSERT INTO reconcile.action (operation, payload, ordering_key) SELECT 'many', jsonb_build_object('n', n), 'key ' || n FROM generate_series(1, 600) n;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
COMMIT;
SQL
cmp_ok($locks, '<', 300, 'many: keys do not fill the lock table');
wait_count("operation = 'many' AND state = 'succeeded'", 600);

# ---------------------------------------------------------------- who needs whom

define('chain', {}, provider => { max_in_flight => 8 });
define('link', {}, path => '/effects/{depends_on.1.artifact_id}', provider => { max_in_flight => 8 });

# The first is given, each of four others needs the one before it.
sub chain
{
	my ($payload, %options) = @_;
	my @ids = ($node->submit('chain', $payload, %options));
	push @ids, $node->submit('link', { n => 10 * $payload->{n} + $_ }, depends_on => "{$ids[-1]}") foreach 2 .. 5;
	return @ids;
}
$node->sql("SELECT reconcile.pause('chain', 'test')");
my @chain = chain({ n => 1 });
$node->sql("SELECT reconcile.resume('chain')");
$node->wait_state($chain[4], 'succeeded');
my @made = map { $node->status($_)->{artifact_id} } @chain;
is(join(' ', map { $_->{path} } $provider->requests('link', 'write')), join(' ', map { "/s/link/effects/$_" } @made[ 0 .. 3 ]),
	'chain: each goes out with what the one before has made');
is(numbers_sent('link'), '12 13 14 15', 'chain: and after it');

$provider->scenario('chain', { write => [ { status => 422, commit => 'never' } ] });
$node->sql("SELECT reconcile.pause('chain', 'test')");
@chain = chain({ n => 2 });
my ($heard) = at_once(<<"SQL");
LISTEN reconcile;
SELECT reconcile.resume('chain');
SELECT state FROM reconcile.wait('$chain[4]', '30 s');
SELECT 1;
SQL
is(states_of(@chain), 'rejected' . ' cancelled' x 4, 'chain: the first is refused, so the others are withdrawn');
my %heard = map { /"action_id" *: *"([^"]+)", *"state" *: *"(\w+)", *"status" *: *"(\w+)"/ ? ($1 => "$2 $3") : () } split /\n/, $heard;
is(join(', ', map { $heard{$_} // 'nothing' } @chain), join(', ', 'rejected FAILED', ('cancelled FAILED') x 4), 'chain: who listens hears of each');
is($node->history($chain[4])->[1]{evidence}{dependency}[0], $chain[3], 'chain: the history names whom it needed');
is($provider->deliveries('link'), 4, 'chain: and nothing was sent');

$provider->scenario('chain', { write => [ { then => 'close', commit => 'never' } ] });
@chain = chain({ n => 3 });
$node->wait_state($chain[0], 'safe_to_retry');
engine_has_looked();
is(states_of(@chain), 'safe_to_retry' . ' planned' x 4, 'chain: what did not happen may still be wanted, so the others wait');
$node->sql("SELECT reconcile.replace('$chain[0]', 'wanted after all')");
$node->wait_state($chain[4], 'succeeded');
is($node->events($chain[1]), 'submit claim answered_accepted', 'chain: they go when it has happened');
is(($provider->requests('link', 'write'))[4]{path}, '/s/link/effects/' . $node->status($chain[0])->{artifact_id}, 'chain: with what it has made');

@chain = chain({ n => 4 }, hold => 'true');
$node->sql("SELECT reconcile.cancel('$chain[0]', 'not wanted')");
$node->wait_state($chain[4], 'cancelled');

# Two of them, and both are needed.
my @two = $node->submit_all([ 'chain', { n => 5 } ], [ 'chain', { n => 6 }, hold => 'true' ]);
my $both = $node->submit('link', { n => 10 }, depends_on => "{$two[0],$two[1]}");
$node->wait_state($two[0], 'succeeded');
engine_has_looked();
is(state_of($both), 'planned', 'both: one is not enough');
$node->sql("SELECT reconcile.cancel('$two[1]', 'not wanted')");
$node->wait_state($both, 'cancelled');

# What is known to have happened, but not what it has made, is not enough for who needs its id.
define('unnamed', { write => [ { then => 'close' } ] }, lookup => 0);
my $unnamed = $node->submit('unnamed', {});
my @needing = ($node->submit('link', { n => 20 }, depends_on => "{$unnamed}"), $node->submit('ticket', { n => 21 }, depends_on => "{$unnamed}"));
$node->wait_state($unnamed, 'manual_review');
$node->sql("SELECT reconcile.resolve('$unnamed', 'executed', 'seen by a person')");
$node->wait_state($needing[1], 'succeeded');
engine_has_looked();
is($node->events($needing[0]), 'submit', 'unnamed: who needs the id waits, who does not has gone');
like($node->sql("SELECT next_step FROM reconcile.unresolved WHERE action_id = '$needing[0]'"), qr/tells the id.*$unnamed/, 'unnamed: and says so');
is($node->sql("SELECT result FROM reconcile.confirm('$unnamed', 'told-1', provider => 'unnamed')"), 'applied', 'unnamed: it is told');
$node->wait_state($needing[0], 'succeeded');
is(($provider->requests('link', 'write'))[-1]{path}, '/s/link/effects/told-1', 'unnamed: and used');
is($node->sql("SELECT count(*) FROM reconcile.incident WHERE action_id = '$unnamed'"), 0, 'unnamed: that is no second object');
is($node->sql("SELECT result FROM reconcile.confirm('$unnamed', 'told-1', provider => 'unnamed')"), 'known', 'unnamed: once');
is($node->sql("SELECT result FROM reconcile.confirm('$unnamed', 'told-2', provider => 'unnamed')"), 'contradiction', 'unnamed: another one would be');

# ---------------------------------------------------------------- who goes first

define('first', { write => [ { hold_s => -1 } ] }, provider => { max_in_flight => 1 });
$node->submit('first', { n => 0 });
ok($provider->wait_writes('first', 1), 'priority: the only place is taken');
$node->submit_all(map { [ 'first', { n => $_ }, priority => $_ % 5 - 2 ] } 1 .. 20);
$provider->release('first');
wait_count("operation = 'first' AND state = 'succeeded'", 21);
is(numbers_sent('first'), join(' ', 0, map { my $rest = $_; grep { $_ % 5 == $rest } 1 .. 20 } 4, 3, 2, 1, 0),
	'priority: the higher goes first, and of equal ones the older');
like($node->sql_error("SELECT reconcile.submit('first', '{}', priority => 3)"), qr/^23514/, 'priority: there are five');
$node->assert_consistent('in the end');
$node->stop;

# ---------------------------------------------------------------- what it costs to wait

my $busy = ActionReconcile::Node->create('waiting', conf => <<'CONF');
shared_preload_libraries = 'action_reconcile,pg_stat_statements'
pg_stat_statements.track = all
autovacuum = off
CONF
$busy->sql('CREATE EXTENSION pg_stat_statements');
$provider->scenario('waiting', {});
$busy->define_provider('waiting', $provider->http_url('waiting'), max_in_flight => 8, connect_timeout => '10 s', attempt_timeout => '20 s');
$busy->define_operation('waiting', 'waiting');
my $held = $busy->submit('waiting', { n => 0 }, hold => 'true', ordering_key => 'one');
$busy->sql("SELECT count(*) FROM generate_series(1, 1000) n, reconcile.submit('waiting', jsonb_build_object('n', n), ordering_key => 'one')");
$busy->sql("SELECT count(*) FROM generate_series(1001, 2000) n, reconcile.submit('waiting', jsonb_build_object('n', n), depends_on => ARRAY['$held'::uuid])");

# How often the engine has asked of the database what is to be done, and what its slowest question took, in milliseconds.
sub engine_asked
{
	my $row = $busy->sql(q{SELECT coalesce(sum(calls), 0), coalesce(round(max(max_exec_time)), 0) FROM pg_stat_statements WHERE toplevel AND query ~ 'SKIP LOCKED'});
	$busy->sql('SELECT pg_stat_statements_reset()');
	return split /\|/, $row;
}
$busy->wait_state($busy->submit('waiting', { first => 1 }), 'succeeded');
is($busy->sql('SELECT due FROM reconcile.health'), 0, 'waiting: what waits is not due');
engine_asked();
my @meanwhile = map { my $id = $busy->submit('waiting', { other => $_ }); $busy->wait_state($id, 'succeeded'); $id } 1 .. 20;
my ($asked, $slowest) = engine_asked();
cmp_ok($slowest, '<', 200, 'waiting: two thousand make no question slow');
cmp_ok($asked, '<', 20 * 40, 'waiting: nor many of them');
is($busy->sql("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY h.recorded_at - a.submitted_at) < interval '500 ms' FROM reconcile.action a JOIN reconcile.history h USING (action_id)
	WHERE h.event = 'claim' AND a.action_id IN ('" . join("', '", @meanwhile) . "')"), 't', 'waiting: what is due is claimed promptly');
my $late = $busy->submit('waiting', { other => 21 }, not_before => $busy->sql("SELECT clock_timestamp() + interval '3 seconds'"));
$busy->wait_state($late, 'succeeded');
($asked) = engine_asked();
cmp_ok($asked, '<', 100, 'waiting: for seconds in which nothing is due the engine asks nothing');

# Whom they wait for is withdrawn.
$busy->sql("SELECT reconcile.cancel('$held', 'not wanted')");
$busy->wait_sql("SELECT count(*) FROM reconcile.action WHERE state = 'cancelled'", 1001);
is($busy->sql("SELECT count(*) FROM reconcile.action WHERE state = 'planned'"), 1000, 'waiting: who came after it waits for a person');
is($provider->deliveries('waiting'), 22, 'waiting: nothing of all that was sent');
$busy->assert_consistent('waiting');
$busy->stop;
done_testing();
