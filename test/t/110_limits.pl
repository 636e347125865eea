# Limits: a burst goes out at the rate of its provider and delays nobody else, an
# outage is met by one probe at a time, what a provider asks for is kept within
# bounds, and what nobody knows about is bounded too.  The provider's ledger judges.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use List::Util qw(max min);
use Test::More;
use Time::HiRes qw(time);

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('limits');

# A scenario, a provider and an operation of that name.  Nothing but what is to run into a limit shall do so.
sub define
{
	my ($name, $spec, $limits, %operation) = @_;
	$provider->scenario($name, $spec);
	$node->define_provider($name, $provider->http_url($name), connect_timeout => '20 s', attempt_timeout => '30 s', %$limits);
	$node->define_operation($name, $name, %operation);
	return;
}

sub submit_many
{
	my ($name, $count, $more) = @_;
	$node->sql("INSERT INTO reconcile.action (operation, payload" . ($more ? ', ' . join(', ', sort keys %$more) : '') . ')'
		. " SELECT '$name', jsonb_build_object('n', n)" . join('', map { ", $more->{$_}" } sort keys %{ $more // {} })
		. " FROM generate_series(1, $count) n");
	return;
}

sub limits { return $node->rows("SELECT * FROM reconcile.provider_limits WHERE provider = '$_[0]'")->[0]; }

sub wait_for
{
	my ($name, $condition, $value) = @_;
	return $node->wait_sql("SELECT $condition FROM reconcile.provider_limits WHERE provider = '$name'", $value // 't');
}

sub states
{
	my ($name) = @_;
	return $node->sql("SELECT coalesce(string_agg(format('%s %s', state, n), ', ' ORDER BY state), '') FROM
		(SELECT state, count(*) AS n FROM reconcile.action WHERE operation = '$name' GROUP BY state) s");
}

sub wait_states
{
	my ($name, $expected) = @_;
	return $node->wait_sql("SELECT coalesce(string_agg(format('%s %s', state, n), ', ' ORDER BY state), '') FROM
		(SELECT state, count(*) AS n FROM reconcile.action WHERE operation = '$name' GROUP BY state) s", $expected, 120);
}

sub writes { return sort { $a->{at} <=> $b->{at} } grep { $_->{kind} eq 'write' } @{ $provider->ledger($_[0])->{requests} }; }

# The most that had arrived by any moment, beyond what the rate gives until then:
# late ones do no harm, and what is saved up while nothing goes would show.
sub beyond_rate
{
	my ($rate, @writes) = @_;
	my ($start, $n, $most) = ($writes[0]{at}, 0, 0);
	$most = max($most, ++$n - $rate * ($_->{at} - $start)) foreach @writes;
	return $most;
}

my @throttle = ({ statuses => '{429}', class => 'throttled' });
my @down = ({ statuses => '{503}', class => 'not_executed' });

# ---------------------------------------------------------------- case 36: a burst

# 12 000 at once, of which the rate lets a part go while we look; meanwhile others go at once.
my $rate = 100;
define('burst', {}, { max_rate => $rate, max_in_flight => 16 });
define('other', {}, {});
submit_many('burst', 12_000);
my @delays;
for my $n (1 .. 10)
{
	my $start = time;
	my $id = $node->submit('other', { n => $n }, priority => -2);
	$node->wait_state($id, 'succeeded');
	push @delays, time - $start;
	$provider->wait_writes('burst', 80 * $n, 60);
}
cmp_ok(min(@delays), '<', 0.5, 'a flooded provider delays no other');
cmp_ok((sort { $a <=> $b } @delays)[5], '<', 2, 'nor as a rule');
like($node->sql("SELECT state FROM reconcile.action WHERE operation = 'burst' ORDER BY action_id DESC LIMIT 1"), qr/planned/, 'while it is still flooded');
cmp_ok(max(map { $_->{n} // 0 } { n => limits('burst')->{in_flight} }), '<=', 16, 'never more in flight than may be');
$node->sql("SELECT reconcile.pause('burst', 'enough')");
wait_for('burst', 'in_flight = 0');
my @arrived = writes('burst');
cmp_ok(scalar @arrived, '>=', 800, 'it goes on all the time');
cmp_ok(beyond_rate($rate, @arrived), '<', $rate / 2, 'never faster than its rate');
is($provider->duplicates('burst'), 0, 'nothing twice') unless ref $provider->duplicates('burst');
is($node->sql("SELECT count(*) FROM reconcile.action WHERE operation = 'burst' AND state NOT IN ('planned', 'succeeded')"), '0',
	'nothing is unknown by our own fault: the time limit starts with the send');

# After a pause the backlog goes out at the rate again, although it has waited.
my $before = $provider->deliveries('burst');
$node->wait_sql("SELECT clock_timestamp() > paused_at + interval '2 s' FROM reconcile.pause_period WHERE name = 'burst'", 't');
$node->sql("SELECT reconcile.resume('burst')");
$provider->wait_writes('burst', $before + 3 * $rate, 60);
my @after = writes('burst');
cmp_ok(beyond_rate($rate, @after[ $before .. $#after ]), '<', $rate / 2, 'nor after a pause');
$node->sql("SELECT reconcile.pause('burst', 'enough')");

# A provider that is asked too much, without a rate of ours: it says 429 and asks for a second's patience.
my $allowed = 40;
define('limited', { write_limit => { per_s => $allowed, step => { status => 429, headers => { 'Retry-After' => '1' } } } }, {},
	answers => \@throttle, retry_pause => '0.1 s');
submit_many('limited', 200);
is(wait_states('limited', 'succeeded 200'), 'succeeded 200', 'a provider that throttles gets all of it in the end');
is($provider->effects('limited'), 200, 'each once');
my @refused = grep { $_->{answer_status} == 429 } writes('limited');
cmp_ok(scalar @refused, '<', 150, 'and is not asked by each for itself: ' . @refused . ' refusals');
cmp_ok($node->sql("SELECT max(attempts) FROM reconcile.action WHERE operation = 'limited'"), '<', 10, 'no action is tried again and again');

# ---------------------------------------------------------------- case 36: no endless spin

# Down for good: one probe at a time, farther and farther apart.
sub outage
{
	my ($name, $spec, $down, $up) = @_;
	define($name, $spec, { breaker_after => 5, breaker_pause => '0.2 s', breaker_pause_max => '1 s', max_in_flight => 4 },
		answers => \@down, retry_pause => '0.01 s', retry_pause_max => '0.05 s');
	$down->();
	submit_many($name, 300);
	wait_for($name, "breaker <> 'closed' AND failures > 8");
	my $limits = limits($name);
	my $tries = $node->sql("SELECT sum(attempts) FROM reconcile.action WHERE operation = '$name'");
	cmp_ok($tries, '<=', $limits->{failures} + 5, "$name: what was tried are the failures that opened it, and probes");
	cmp_ok($node->sql("SELECT count(*) FROM reconcile.history h JOIN reconcile.action a USING (action_id) WHERE a.operation = '$name'"), '<=', 300 + 2 * $tries + 2,
		"$name: the history does not grow otherwise");
	like($node->sql("SELECT next_step FROM reconcile.unresolved WHERE operation = '$name' AND state = 'planned' ORDER BY since LIMIT 1"),
		qr/^it is sent when (the breaker of provider "$name" lets a probe go at|a probe has shown)/, "$name: and everybody can see why nothing goes");

	# A restart is no reason to try everything again.
	$node->restart;
	$node->wait_worker;
	is($node->sql("SELECT failures >= $limits->{failures} FROM reconcile.breaker WHERE provider = '$name'"), 't', "$name: remembered over a restart");
	$up->();
	is(wait_states($name, 'succeeded 300'), 'succeeded 300', "$name: afterwards everything goes");
	is($provider->effects($name), 300, "$name: once");
	is(limits($name)->{breaker}, 'closed', "$name: the breaker is closed");
	is(limits($name)->{sends_when}, undef, "$name: and nothing is waited for");
	return $tries;
}

outage('answers-503', { write_default => { status => 503 } }, sub { }, sub { $provider->scenario('answers-503', {}) });
outage('refuses', { own_port => 1 }, sub { $provider->close_ports('refuses') }, sub { $provider->open_ports('refuses') });

# One that is out of reach delays nobody, and what is asked about meanwhile is asked.
define('half-down', { write_default => { status => 503, commit_delay_s => 0 } }, { breaker_after => 1, breaker_pause => '30 s' });
submit_many('half-down', 1);
is(wait_states('half-down', 'succeeded 1'), 'succeeded 1', 'a lookup passes an open breaker');
is(limits('half-down')->{breaker}, 'open', 'which a lookup does not close');
submit_many('half-down', 1, { intent_key => "'second'" });
$node->submit('other', { n => 'meanwhile' });
is($provider->deliveries('half-down'), 1, 'nothing is sent through it');
$provider->scenario('half-down', {});
$node->sql("SELECT reconcile.resume('half-down')");
is(wait_states('half-down', 'succeeded 2'), 'succeeded 2', 'resume() lets a probe go at once');

# ---------------------------------------------------------------- case 49: Retry-After

my %asked = (none => undef, zero => '0', hours => '36000', past => 'Sun, 06 Nov 1994 08:49:37 GMT', far => 'Fri, 31 Dec 2099 23:59:59 GMT',
	text => 'abc', minus => '-1');
for my $name (sort keys %asked)
{
	my %headers = defined $asked{$name} ? (headers => { 'Retry-After' => $asked{$name} }) : ();
	define("ra-$name", { write => [ ({ status => 429, %headers }) x 2 ] }, { max_in_flight => 1 }, answers => \@throttle, retry_after_max => '1200 ms');
	submit_many("ra-$name", 3);
}
for my $name (sort keys %asked)
{
	is(wait_states("ra-$name", 'succeeded 3'), 'succeeded 3', "Retry-After $name: all of it is done");
	my @writes = writes("ra-$name");
	is(scalar @writes, 5, "Retry-After $name: two were refused, each once");
	my $pause = $writes[1]{at} - $writes[0]{at};
	if ($name eq 'hours' || $name eq 'far')
	{
		# also the other two, which nobody has told anything
		cmp_ok($pause, '>', 1.15, "Retry-After $name: honoured, for the whole provider");
		cmp_ok($writes[2]{at} - $writes[1]{at}, '>', 1.15, "Retry-After $name: each time");
	}
	cmp_ok($pause, '<', 20, "Retry-After $name: up to the bound");
}
# Nothing that is said with a 503, or on acceptance, makes an exception.
define('ra-503', { write => [ { status => 503, headers => { 'Retry-After' => '36000' }, commit_delay_s => 0 } ] }, { max_in_flight => 1 },
	retry_after_max => '1200 ms');
submit_many('ra-503', 2);
is(wait_states('ra-503', 'succeeded 2'), 'succeeded 2', '503 with Retry-After: unknown, and looked up');
my @writes = writes('ra-503');
is(scalar @writes, 2, '503 with Retry-After: each was sent once');
cmp_ok($writes[1]{at} - $writes[0]{at}, '>', 1.15, '503 with Retry-After: the other one waits');
define('ra-202', { write => [ { status => 202, headers => { 'Retry-After' => '36000' } } ] }, { max_in_flight => 1 }, retry_after_max => '36000 s');
submit_many('ra-202', 2);
is($provider->wait_writes('ra-202', 2, 60) ? 2 : 0, 2, '202 with Retry-After is about its own verdict');

# ---------------------------------------------------------------- the ambiguity budget

my $budget = 6;
define('lossy', { write_default => { then => 'close' } }, { ambiguity_budget => $budget, max_in_flight => 4, consistency_window => '1 hour', breaker_after => undef });
submit_many('lossy', 40);
wait_for('lossy', "uncertain = $budget AND in_flight = 0");
is($provider->deliveries('lossy'), $budget, 'with so many open questions nothing new is sent');
like($node->sql("SELECT min(next_step) FROM reconcile.unresolved WHERE operation = 'lossy' AND state = 'planned'"),
	qr/^it is sent when fewer than $budget actions of provider "lossy" are uncertain or being sent: its ambiguity budget$/, 'and it is told why');
my @open = split /\n/, $node->sql("SELECT client_reference FROM reconcile.action WHERE operation = 'lossy' AND state = 'outcome_unknown' ORDER BY action_id LIMIT 2");
$node->sql("SELECT reconcile.confirm('$_')") foreach @open;
ok($provider->wait_writes('lossy', $budget + 2, 60), 'what is settled makes room');
wait_for('lossy', "uncertain = $budget AND in_flight = 0");
is($provider->deliveries('lossy'), $budget + 2, 'and no more than that');

# ---------------------------------------------------------------- lookups have limits of their own

define('asked', { write_default => { then => 'close' }, read_default => { hold_s => -1 } },
	{ max_lookups_in_flight => 3, max_in_flight => 16, consistency_window => '0 s', late_arrival_max => '0 s' }, lookup => { timeout => '60 s' });
submit_many('asked', 12);
wait_states('asked', 'outcome_unknown 9, reconciling 3');
define('asked-too', { write_default => { then => 'close' } }, {});
submit_many('asked-too', 5);
is(wait_states('asked-too', 'succeeded 5'), 'succeeded 5', 'a provider that does not answer questions delays no others');
is(states('asked'), 'outcome_unknown 9, reconciling 3', 'and is asked so many at a time');
is(limits('asked')->{lookups_in_flight}, 3, 'as everybody can see');
define('slowly', { write_default => { then => 'close' } }, { max_lookup_rate => 2, consistency_window => '0 s', late_arrival_max => '0 s', breaker_after => undef });
submit_many('slowly', 7);
is(wait_states('slowly', 'succeeded 7'), 'succeeded 7', 'questions go at a rate of their own');
my @reads = sort { $a->{at} <=> $b->{at} } grep { $_->{kind} eq 'read' } @{ $provider->ledger('slowly')->{requests} };
cmp_ok(beyond_rate(2, @reads), '<', 2.5, 'not faster');

# ---------------------------------------------------------------- case 48: the second step is rate-limited

define('ticket', {}, {});
define('patch', { write => [ ({ status => 403, body => { error => 'rateLimitExceeded' } }) x 3 ] }, {}, method => 'PATCH', effect => 'create',
	answers => [ { statuses => '{403}', body_path => '$ ? (@.error == "rateLimitExceeded")', class => 'throttled' } ]);
my $ticket = $node->submit('ticket', { title => 'x' });
my $patch = $node->submit('patch', { of => 'ticket' }, depends_on => "{$ticket}");
is($node->wait_state($patch, 'succeeded'), 'succeeded', 'case 48: the second step is done in the end');
is($provider->effects('ticket') . $provider->effects('patch'), '11', 'case 48: one ticket, one patch');
is($provider->deliveries('ticket'), 1, 'case 48: the first step is not repeated');
is($node->status($patch)->{attempts}, 4, 'case 48: the second alone is');

# ---------------------------------------------------------------- case 52: a stale backlog

define('back', { own_port => 1 }, { max_rate => 20, breaker_after => 2, breaker_pause => '0.3 s', breaker_pause_max => '0.5 s' }, retry_pause => '0.05 s', retry_pause_max => '0.1 s');
$provider->close_ports('back');
submit_many('back', 30, { not_after => "now() + interval '2 s'" });
submit_many('back', 60, { deliberate_repeat => 'true' });
wait_states('back', qr/^planned 60, expired 30$|^expired 30, planned 60$/);
$provider->open_ports('back');
like(wait_states('back', qr/succeeded 60/), qr/expired 30/, 'case 52: what is too late is expired, the rest is done');
is($provider->deliveries('back'), 60, 'case 52: what has expired was never sent');
cmp_ok(beyond_rate(20, writes('back')), '<', 12, 'case 52: and the backlog goes out at its rate');

# ---------------------------------------------------------------- a setting that is wrong

# Our own fault, the same for every action: told once in a while, not by each.
$node->set_conf('action_reconcile.credential_dir', PostgreSQL::Test::Utils::tempdir('credentials'));
define('misconfigured', {}, { credential => 'nowhere', breaker_after => 3, breaker_pause => '1 s' }, headers => { 'Content-Type' => 'application/json', Authorization => '{credential}' },
	retry_pause => '0.05 s', retry_pause_max => '0.1 s');
submit_many('misconfigured', 100);
wait_for('misconfigured', "breaker <> 'closed'");
like(limits('misconfigured')->{breaker_reason}, qr/credential/, 'a wrong setting opens the breaker, with the reason');
cmp_ok($node->sql("SELECT sum(attempts) FROM reconcile.action WHERE operation = 'misconfigured'"), '<', 25, 'and is not tried with each action');
is($provider->summary('misconfigured')->{requests}, 0, 'nothing was sent');

$provider->release('asked');
$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
