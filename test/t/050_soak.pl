# The guarantee as a property: whatever the provider does to the requests, and
# whatever is killed at whatever moment, no action has two effects, none is lost,
# and what the database says of each of them in the end is what happened.
#
#   AR_SOAK_ACTIONS   how many actions, 3000 if not set
#   AR_SOAK_SEED      repeats the provider's script and the choice of what is
#                     done when; where exactly it strikes is left to the machine
#
# Several sessions submit in bursts, and repeat what the server did not confirm.
# Every write and every question meets a behaviour drawn at random, while a loop
# kills, stops, restarts, locks, pauses and competes.  The provider keeps what it
# promised, no more: it executes at most late_arrival_max after the end of an
# attempt, and shows what it has executed before the consistency window is over.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Carp;
use HTTP::Tiny;
use List::Util qw(max min shuffle);
use POSIX ();
use Test::More;
use Time::HiRes qw(time usleep);

use ActionReconcile::Crash qw(elapsed wait_true);
use ActionReconcile::Mischief qw(drawn mischief);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $actions = $ENV{AR_SOAK_ACTIONS} || 3000;
my $seed = $ENV{AR_SOAK_SEED} || 1 + int rand 2**30;
srand $seed;
note("seed $seed, $actions actions");

my $window_s = 1.5;			# documented
my $late_s = 0.7;			# late_arrival_max
my $lag_s = 1.0;			# visible at most so long after the execution
my $delay_s = 0.5;			# executed so long after the end; a slow machine adds to it
my $sessions = 4;
# So many unresolved ones at most: the kills are to hit a busy engine, at any size.
my $backlog = min(4000, max(150, int($actions / 10)));
my $chaos_limit_s = 45 + $actions / 60;
my $settle_limit_s = 60 + $actions / 50;

# ---------------------------------------------------------------- the set-up

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('soak');
my $directory = PostgreSQL::Test::Utils::tempdir('soak');

# Half of the providers are asked by a list, half by name; a ledger is kept small.
my @providers = map { ("list$_", "get$_") } 1 .. POSIX::ceil($actions / 20_000);
my @operations;

sub define
{
	my ($name) = @_;
	my $kind = $name =~ /^list/ ? 'list' : 'get';
	my %ask = $kind eq 'list' ? () : (
		kind => 'get_by_reference', path => '/effects/{client_reference}', absent_statuses => '{404}', items_path => undef);

	$provider->scenario($name,
		mischief($kind, seed => $seed, writes => int($actions / @providers), lag_s => $lag_s, delay_s => $delay_s));
	my $sql = $node->provider_sql($name, $provider->http_url($name),
		consistency_window => "$window_s s", late_arrival_max => "$late_s s", attempt_timeout => '1 s',
		max_in_flight => max(8, int(96 / @providers)));
	foreach my $on_absent (qw(replace hold))
	{
		push @operations, "$on_absent.$name";
		$sql .= $node->operation_sql($operations[-1], $name,
			on_absent => $on_absent, max_replacements => 100,
			headers => { 'Content-Type' => 'application/json', 'X-Reference' => '{client_reference}' },
			lookup => { max_inconclusive => 1000, timeout => '1 s', %ask });
	}
	$node->sql("BEGIN; $sql COMMIT;");
	return;
}

define($_) foreach @providers;

# ---------------------------------------------------------------- helpers

# A statement at a server that may be on its way down or up: tried until it is carried out.
sub surely
{
	my ($statement) = @_;
	my $answer;
	wait_true(sub {
		my ($code, $out) = eval { $node->psql('postgres', $statement, timeout => 60) };
		$answer = $out if defined $code && $code == 0;
		return defined $answer;
	}, 90);
	return $answer // croak "never carried out: $statement";
}

# Waits until a query has this answer, whatever happens to the server meanwhile.
sub until_answer
{
	my ($query, $wanted, $seconds) = @_;
	my $answer;
	wait_true(sub { ($answer = surely($query)) =~ /^$wanted$/ }, $seconds);
	return $answer;
}

# One try; whether it worked is of no interest.
sub perhaps
{
	my ($statement) = @_;
	eval { $node->psql('postgres', $statement, timeout => 60); };
	return;
}

my $main = $$;
my (%children, $born);

# Something in a process of its own, which ends with it.
sub apart
{
	my ($what) = @_;
	$born++;
	my $pid = fork // croak "no process: $!";
	if ($pid == 0)
	{
		srand($seed + $born);
		my $good = eval { $what->(); 1 } or warn $@;
		POSIX::_exit($good ? 0 : 1);
	}
	$children{$pid} = 1;
	return $pid;
}

sub reap
{
	my ($block) = @_;
	foreach my $pid (keys %children)
	{
		delete $children{$pid} if waitpid($pid, $block ? 0 : POSIX::WNOHANG()) != 0;
	}
	return;
}

# A moment is so much work further on, or so long if nothing moves.
sub moment
{
	my ($seconds, $busy) = @_;
	my $name = $providers[ rand @providers ];
	my $further = $busy // 1 + int rand 25;
	$provider->wait_for($name, drawn(0.02, $seconds), deliveries => $provider->deliveries($name) + $further);
	return;
}

# ---------------------------------------------------------------- submitting

# One burst: in one transaction or each on its own.  Returns what was confirmed.
sub burst
{
	my (@keys) = @_;
	my $together = rand() < 0.5;
	my $calls = join '', map {
		my $operation = $operations[ $_ % @operations ];
		"SELECT 'key $_ is ' || action_id FROM reconcile.submit('$operation', '{\"n\": $_}', intent_key => 'k$_');\n"
	} @keys;
	$calls = "BEGIN;\n$calls COMMIT;\n" if $together;

	my ($code, $out) = eval {
		$node->psql('postgres', "SELECT count(*) < $backlog AS room FROM reconcile.unresolved \\gset\n"
			  . "\\if :room\n$calls\\echo all of it\n\\endif\n", timeout => 60)
	};
	my %confirmed = ($out // '') =~ /^key (\d+) is (\S+)$/mg;
	return $together && ($out // '') !~ /^all of it$/m ? {} : \%confirmed;
}

# A session's share; what was not confirmed is submitted again under its key.
sub submit_share
{
	my ($number) = @_;
	my @open = shuffle(grep { $_ % $sessions == $number || $_ % 20 == $number } 0 .. $actions - 1);

	open my $file, '>', "$directory/confirmed.$number" or croak "confirmed.$number: $!";
	while (@open && getppid == $main)
	{
		my @keys = splice @open, 0, 1 + int rand 40;
		my $confirmed = burst(@keys);
		print $file map { "$_ $confirmed->{$_}\n" } keys %$confirmed;
		push @open, grep { !$confirmed->{$_} } @keys;
		usleep(50_000) unless %$confirmed;
	}
	close $file or croak "confirmed.$number: $!";
	return;
}

# ---------------------------------------------------------------- what happens to the server

my (%done, $last_worker);

# A pid that is a process of this server, or nothing.
sub ours
{
	my ($pid) = @_;
	return ($pid // '') =~ /^[1-9]\d*$/ && (readlink("/proc/$pid/cwd") // '') eq $node->data_dir ? $pid : undef;
}

# Most often the next blow waits until there is an engine again.
sub recovered
{
	my ($old) = @_;
	surely('SELECT 1');
	return if rand() < 0.3;
	$old //= 0;
	until_answer("SELECT worker_pid <> $old AND worker_pid = lock_holder_pid FROM reconcile.engine()", 't', 30);
	return;
}

sub signal_engine
{
	my ($signal, $column) = @_;
	my $pid = ours(surely("SELECT $column FROM reconcile.engine()")) // return;
	return kill($signal, $pid) ? $pid : undef;
}

sub hold
{
	my ($statement) = @_;
	my $seconds = drawn(0.1, 0.7);
	return apart(sub { perhaps("BEGIN; $statement; SELECT pg_sleep($seconds); COMMIT;") });
}

my @tables = qw(action attempt lookup history provider operation lookup_rule clock arming);
my %blows = (
	kill_engine => sub { recovered(signal_engine('KILL', 'lock_holder_pid') // return 0) },
	kill_postmaster => sub {
		my $worker = ours(surely('SELECT worker_pid FROM reconcile.engine()'));
		$node->kill9;
		kill 'KILL', $worker if defined $worker && rand() < 0.5;
		$node->start_after_kill9;
		recovered();
	},
	immediate => sub { $node->stop('immediate'); $node->start; recovered(); },
	fast => sub { $node->stop('fast'); $node->start; recovered(); },
	kill_checkpointer => sub {
		my $pid = ours(surely("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")) // return 0;
		kill 'KILL', $pid;
		recovered();
	},
	terminate => sub {
		surely('SELECT pg_terminate_backend(lock_holder_pid) FROM reconcile.engine()');
		recovered();
	},
	compete => sub {
		my $call = "CALL reconcile.run('" . drawn(0.3, 1.5) . " s', false);";
		apart(sub { perhaps($call) for 1 .. 3; });
		surely('SELECT pg_terminate_backend(worker_pid) FROM reconcile.engine()') if rand() < 0.7;
	},
	hangups => sub {
		my $drain = int rand 1500;
		surely("ALTER SYSTEM SET action_reconcile.drain_timeout = '$drain ms'");
		foreach (1 .. 30)
		{
			$node->reload if $_ % 10 == 0;
			signal_engine('HUP', 'worker_pid') if $_ % 5 == 0;
		}
	},
	pause => sub {
		my $name = $providers[ rand @providers ];
		surely("SELECT reconcile.pause('$name', 'soak')");
		moment(0.6, 50);
		surely("SELECT reconcile.resume('$name')");
	},
	lock_table => sub { hold('LOCK TABLE reconcile.' . $tables[ rand @tables ] . ' IN ACCESS EXCLUSIVE MODE') },
	lock_rows => sub {
		hold("SELECT FROM reconcile.action WHERE state IN ('submitted', 'reconciling', 'outcome_unknown')"
			  . ' ORDER BY random() LIMIT 60 FOR UPDATE');
	},
	stop_worker => sub {
		my $pid = signal_engine('STOP', 'worker_pid') // return 0;
		moment(1.8, 1000);
		kill 'CONT', $pid;
	});
my %weights = (
	kill_engine => 5, kill_postmaster => 2, immediate => 2, fast => 1, kill_checkpointer => 1, terminate => 4,
	compete => 3, hangups => 2, pause => 3, lock_table => 4, lock_rows => 2, stop_worker => 2);
my @dealt;

sub strike
{
	@dealt = shuffle(map { ($_) x $weights{$_} } sort keys %blows) unless @dealt;
	my $kind = shift @dealt;
	my $result = $blows{$kind}->();
	$done{$kind}++ unless defined $result && $result eq '0';
	return;
}

# ---------------------------------------------------------------- the story

my $unsettled = "SELECT count(*) FROM reconcile.action WHERE state NOT IN ('succeeded', 'safe_to_retry', 'rejected',"
  . " 'manual_review', 'cancelled', 'expired', 'abandoned')";

my $start = time;
my @submitters = map { my $number = $_; apart(sub { submit_share($number) }) } 0 .. $sessions - 1;
while ((grep { $children{$_} } @submitters) && time < $start + $chaos_limit_s)
{
	moment(0.8);
	strike();
	reap();
}
my $chaos_s = time - $start;
ok(wait_true(sub { reap(); return !%children }, $settle_limit_s), 'every session has submitted its share');
surely("SELECT reconcile.resume(provider) FROM reconcile.provider");
is(until_answer($unsettled, 0, $settle_limit_s), 0, 'every action settles');
my $settled_s = time - $start;

# Nothing more leaves, and what was still to be executed is.
my %after = map { $_ => $provider->deliveries($_) } @providers;
ok(!$provider->wait_for($_, 3 / @providers, deliveries => $after{$_} + 1), "$_ hears no more") foreach @providers;

# ---------------------------------------------------------------- both sides in tables

sub load_ledger
{
	my ($name) = @_;
	my $file = "$directory/$name.json";
	open my $out, '>:raw', $file or croak "$file: $!";
	my $answer = HTTP::Tiny->new(timeout => 300)->get("http://127.0.0.1:$provider->{ports}{control}/ledger/$name",
		{ data_callback => sub { print $out $_[0] } });
	croak "the ledger of $name: $answer->{status}" unless $answer->{success};
	close $out or croak "$file: $!";
	$node->sql(<<"SQL");
INSERT INTO effect SELECT '$name', e.* FROM json_to_recordset(pg_read_file('$file')::json->'effects')
	AS e(ref text, id text, request int, received_at float8, committed_at float8, visible_at float8);
INSERT INTO request SELECT '$name', r.* FROM json_to_recordset(pg_read_file('$file')::json->'requests')
	AS r(ref text, n int, kind text, head_complete boolean, complete boolean, at float8, outcome text);
SQL
	return;
}

$node->sql(<<'SQL');
CREATE TABLE effect (provider text, ref text, id text, request int, received_at float8, committed_at float8, visible_at float8);
CREATE TABLE request (provider text, ref text, n int, kind text, head_complete boolean, complete boolean, at float8, outcome text);
CREATE TABLE confirmed (key int, action_id uuid);
SQL
load_ledger($_) foreach @providers;
$node->sql("COPY confirmed FROM '$directory/confirmed.$_' (DELIMITER ' ')") foreach 0 .. $sessions - 1;

# An effect that came later than the provider promises is the machine's fault: too
# slow for these windows.  Its action proves nothing, in either direction.
$node->sql(<<"SQL");
CREATE TABLE too_late AS
	SELECT DISTINCT a.action_id FROM effect e JOIN reconcile.action a ON a.provider = e.provider AND a.client_reference = e.ref
	CROSS JOIN LATERAL (SELECT max(extract(epoch FROM t.ended_at)) AS ended_at FROM reconcile.attempt t
		WHERE t.action_id = a.action_id AND extract(epoch FROM t.dispatched_at) <= e.received_at) t
	WHERE e.committed_at > greatest(e.received_at, t.ended_at) + $late_s;
CREATE TABLE story AS
	SELECT a.action_id, a.client_reference AS ref, a.provider, o.on_absent, a.state, a.artifact_id, a.attempts,
		coalesce(e.effects, 0) AS effects, e.ids, coalesce(r.deliveries, 0) AS deliveries, coalesce(r.complete, 0) AS complete,
		h.not_sent, h.proofs
	FROM reconcile.action a JOIN reconcile.operation o USING (operation)
	LEFT JOIN (SELECT provider, ref, count(*) AS effects, array_agg(id) AS ids FROM effect GROUP BY 1, 2) e
		ON e.provider = a.provider AND e.ref = a.client_reference
	LEFT JOIN (SELECT provider, ref, count(*) FILTER (WHERE head_complete) AS deliveries, count(*) FILTER (WHERE complete) AS complete
		FROM request WHERE kind = 'write' GROUP BY 1, 2) r ON r.provider = a.provider AND r.ref = a.client_reference
	JOIN (SELECT action_id, count(*) FILTER (WHERE event = 'not_sent') AS not_sent,
			count(*) FILTER (WHERE event IN ('not_executed', 'absent')) AS proofs
		FROM reconcile.history GROUP BY 1) h USING (action_id)
	WHERE a.action_id NOT IN (SELECT action_id FROM too_late);
SQL

# ---------------------------------------------------------------- what must be

# Everything known about one action, from both sides, in the order of time.
sub timeline
{
	my ($id) = @_;
	return $node->sql(<<"SQL");
SELECT to_char(x.at, 'HH24:MI:SS.MS') || ' ' || x.what FROM (
	SELECT recorded_at AS at, 'history: ' || concat_ws(' ', version, event, to_state, 'attempt ' || attempt_number, evidence) AS what
	  FROM reconcile.history WHERE action_id = '$id'
	UNION ALL SELECT to_timestamp(r.at), 'ledger: request ' || concat_ws(' ', r.n, r.kind, CASE WHEN r.complete THEN 'complete' END, r.outcome)
	  FROM request r JOIN reconcile.action a ON (a.provider, a.client_reference) = (r.provider, r.ref) WHERE a.action_id = '$id'
	UNION ALL SELECT to_timestamp(e.committed_at), format('ledger: effect %s of request %s, visible at %s', e.id, e.request, to_timestamp(e.visible_at))
	  FROM effect e JOIN reconcile.action a ON (a.provider, a.client_reference) = (e.provider, e.ref) WHERE a.action_id = '$id'
	UNION ALL SELECT asked_at, format('lookup: %s, %s, until %s', result, reason, answered_at) FROM reconcile.lookup WHERE action_id = '$id'
	) x ORDER BY x.at
SQL
}

# No row may come back; the first column is an action or empty.
sub none
{
	my ($title, $query) = @_;
	my @rows = split /\n/, $node->sql("SELECT * FROM ($query) q LIMIT 1000");
	is(scalar @rows, 0, $title) and return;
	diag("seed $seed, $actions actions: $title: " . @rows . ' rows');
	foreach my $row (@rows[ 0 .. min(2, $#rows) ])
	{
		my ($id) = split /\|/, $row;
		diag("$row\n" . ($id =~ /^[0-9a-f-]{36}$/ ? timeline($id) : ''));
	}
	return;
}

is($node->sql('SELECT count(*), count(DISTINCT intent_key) FROM reconcile.action'), "$actions|$actions", 'no action is lost, none is there twice');
none('a key that was confirmed stays with its action',
	"SELECT c.action_id, c.key FROM confirmed c LEFT JOIN reconcile.action a ON a.action_id = c.action_id AND a.intent_key = 'k' || c.key"
	  . ' WHERE a.action_id IS NULL');
none('no reference has more than one effect', 'SELECT action_id, ref, effects FROM story WHERE effects > 1');
none('every effect belongs to an action', 'SELECT NULL, e.provider, e.ref, e.id FROM effect e LEFT JOIN reconcile.action a'
	  . ' ON a.provider = e.provider AND a.client_reference = e.ref WHERE a.action_id IS NULL');
none('what has an effect is succeeded', "SELECT action_id, state FROM story WHERE effects > 0 AND state <> 'succeeded'");
none('what has none is safe to retry', "SELECT action_id, state FROM story WHERE effects = 0 AND state <> 'safe_to_retry'");
none('what is to be replaced has its effect', "SELECT action_id, state FROM story WHERE on_absent = 'replace' AND effects <> 1");
none('the artifact is the effect in the ledger',
	"SELECT action_id, artifact_id, ids FROM story WHERE state = 'succeeded' AND artifact_id IS DISTINCT FROM ids[1]");
none('no attempt is open',
	"SELECT action_id, number, state FROM reconcile.attempt WHERE state NOT IN ('succeeded', 'safe_to_retry')");
none('between two claims there is a proof', <<'SQL');
SELECT h.action_id, h.n FROM (SELECT action_id, event, to_state, count(*) FILTER (WHERE event = 'claim') OVER w AS n,
		count(*) FILTER (WHERE event = 'claim') OVER (PARTITION BY action_id) AS claims
	FROM reconcile.history WINDOW w AS (PARTITION BY action_id ORDER BY version)) h
 WHERE h.n BETWEEN 1 AND h.claims - 1 GROUP BY 1, 2
HAVING count(*) FILTER (WHERE h.event IN ('not_sent', 'not_executed', 'absent') AND h.to_state IN ('planned', 'safe_to_retry')) = 0
SQL
none('no more requests were heard than attempts may have left', 'SELECT action_id, attempts, not_sent, deliveries FROM story WHERE deliveries > attempts - not_sent');
none('no whole request without proof about the one before', 'SELECT action_id, proofs, complete FROM story WHERE complete > 1 + proofs');
# The row of an attempt has the moment when its end was recorded, which may be
# later; a transfer began after its claim.  The wall clock is not the one that decides.
none('no negative from inside the window', <<"SQL");
SELECT l.action_id, l.asked_at, h.attempt_number, e.ended_at FROM reconcile.lookup l JOIN reconcile.history h USING (action_id)
  JOIN reconcile.attempt t ON t.action_id = h.action_id AND t.number = h.attempt_number AND t.dispatched_at < l.asked_at
 CROSS JOIN LATERAL (SELECT CASE h.event WHEN 'recover' THEN t.ended_at ELSE
	t.dispatched_at + coalesce((h.evidence->'transfer'->>'elapsed_us')::bigint, 0) * interval '1 us' END AS ended_at) e
 WHERE l.result = 'absent' AND h.event IN ('answer_lost', 'recover') AND h.from_state = 'submitted'
   AND l.asked_at < e.ended_at + interval '${\($window_s + $late_s)} s' - interval '10 ms'
UNION ALL
SELECT action_id, recorded_at, version, NULL FROM reconcile.history WHERE event IN ('absent', 'absent_once')
   AND (evidence->'lookup'->>'asked_us')::bigint < coalesce((evidence->'lookup'->>'gate_us')::bigint, 9223372036854775807)
SQL
cmp_ok($node->sql('SELECT count(*) FROM too_late'), '<=', $actions / 100, 'the machine was fast enough for these windows');
$node->assert_consistent;
ok(!$node->log_contains(qr/PANIC:|TRAP:|terminated by signal (?!9:)/), 'nothing crashed by itself');

# ---------------------------------------------------------------- figures

sub counted { return join ', ', map { my ($n, $what) = split /\|/; "$n $what" } split /\n/, $node->sql($_[0]); }

my @figures = (
	sprintf('seed %d, %d actions: %.1f s of blows, settled after %.1f s, checked after %.1f s', $seed, $actions, $chaos_s, $settled_s, time - $start),
	'blows: ' . join(', ', map { "$done{$_} $_" } sort keys %done),
	'attempts: ' . counted("SELECT count(*), event FROM reconcile.history WHERE attempt_number IS NOT NULL AND event <> 'claim' AND event IN"
		  . " (SELECT r.event FROM reconcile.transition_rule r WHERE r.from_state = 'submitted') GROUP BY 2 ORDER BY 1 DESC"),
	'lookups: ' . counted('SELECT count(*), result FROM reconcile.lookup GROUP BY 2 ORDER BY 1 DESC'),
	'actions: ' . counted('SELECT count(*), state FROM reconcile.action GROUP BY 2 ORDER BY 1 DESC')
	  . ', at most ' . $node->sql('SELECT max(attempts) FROM reconcile.action') . ' attempts',
	'ledger: ' . counted("SELECT count(*), kind FROM request GROUP BY 2 ORDER BY 2") . ', ' . $node->sql('SELECT count(*) FROM effect')
	  . ' effects, ' . $node->sql('SELECT count(*) FROM too_late') . ' later than promised');
note($_) foreach @figures;
diag(join "\n", @figures) unless Test::More->builder->is_passing;

$node->stop;
$provider->stop;
done_testing();
