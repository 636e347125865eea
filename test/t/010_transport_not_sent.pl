# No byte of the request left: proven, whatever libcurl calls it.  The action
# stays queued and goes out again by itself, and the provider counts nothing.
use strict;
use warnings;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Relay;
use ActionReconcile::Scenarios;
use ActionReconcile::SlowResolver;
use Test::More;

my $node = ActionReconcile::Node->create('unsent', env => ActionReconcile::SlowResolver::environment());
my $provider = ActionReconcile::Provider->new;
my $scenarios = ActionReconcile::Scenarios->new($node, $provider);

# Proven, queued again, and not to be tried again before the test is over.
sub not_sent
{
	return (
		proves => 'not_sent', state => 'planned', deliveries => 0, effects => 0,
		operation => { retry_pause => '1 h', retry_pause_max => '1 h' }, @_);
}

my @rows = (
	# 1: names
	{ name => '1-unknown-name', times_out => '2 s', url => 'http://nx.invalid', not_sent() },
	{ name => '1-hung-name', times_out => '2 s', url => 'http://hang.invalid', not_sent() },
	{ name => '1-unknown-name-tls', times_out => '2 s', url => 'https://nx.invalid', not_sent() },
	{ name => '1-others-go-on', preset => 'ok', proves => 'answered', state => 'succeeded', deliveries => 1, effects => 1 },

	# 2: connections
	{ name => '2-closed-port', listener => 'closed-port', unheard => 1, not_sent() },
	{ name => '2-full-backlog', times_out => '2 s', listener => 'full-backlog', unheard => 1, not_sent() },
	{ name => '2-address-denied', listener => 'http', unheard => 1, not_sent(),
		provider => { allow_private_addresses => 'false' } },
	{ name => '2-http-denied', url => 'http://127.0.0.1:1', not_sent(),
		provider => { allow_private_addresses => 'false' } },

	# queued again means sent again, once somebody listens
	{ name => '2-opens-later', spec => { own_port => 1 }, proves => 'not_sent', state => 'succeeded',
		attempts => qr/^([2-9]|\d\d)$/, deliveries => 1, effects => 1, closed => 1,
		meanwhile_state => 'planned|submitted',
		meanwhile => sub {
			my ($self, $row) = @_;
			$node->wait_sql("SELECT failures > 0 FROM reconcile.action WHERE action_id = '$row->{action_id}'", 't');
			$provider->open_ports($row->{name});
		} },
);
$scenarios->run(@rows);

my %row = map { $_->{name} => $_ } @rows;
cmp_ok($row{'1-others-go-on'}{attempt}[0]{ended_at}, 'lt', $row{'1-hung-name'}{attempt}[0]{ended_at},
	'a name that hangs keeps nobody else waiting');

my $hung_us = $row{'1-hung-name'}{attempt}[0]{evidence}{transfer}{elapsed_us};
cmp_ok($hung_us, '>', 900_000, 'it did hang');
cmp_ok($hung_us, '<', 4_000_000, 'and was given up at its own time limit');

foreach my $row (grep { $_->{state} eq 'planned' } @rows)
{
	is($node->status($row->{action_id})->{status}, 'DENIED_UNRESOLVED', "$row->{name}: it is queued, not failed");
	is($node->sql("SELECT reconcile.cancel('$row->{action_id}', 'test')"), 'cancelled', 'what was never sent can be withdrawn');
}

# 5: the state changes between the claim and the first byte.  The TLS handshake
# is held until the change is committed; then the last-instant check refuses.
my $relay = ActionReconcile::Relay->new($provider->port('-', 'https'));

sub held
{
	my ($name, %submit) = @_;
	$provider->preset($name, '5-normal');
	$node->define_provider($name, 'https://localhost:' . $relay->port . "/s/$name", ca_file => $provider->ca_file,
		connect_timeout => '60 s', attempt_timeout => '60 s');
	$node->define_operation($name, $name);
	my $id = $node->submit($name, { name => $name }, %submit);
	my $connection = $relay->accept;
	is($node->status($id)->{state}, 'submitted', "$name: claimed, connected, nothing said");
	return ($id, $connection);
}

# The reason why the first attempt was refused, and that it proves to be unsent.
sub refused
{
	my ($name, $id, $reason) = @_;
	$node->wait_sql("SELECT count(*) FROM reconcile.history WHERE action_id = '$id' AND event = 'not_sent'", '1');
	my $transfer = $node->transfer($id, 1);
	is($transfer->{proves}, 'not_sent', "$name: refused before the first byte");
	is($transfer->{reason}, $reason, "$name: and why");
	is($transfer->{prereq_calls}, 1, "$name: by the check itself");
	is($node->attempt($id)->[0]{standing}, 'failed/pending', "$name: the attempt is proven not to have happened");
	is($provider->summary($name)->{requests}, 0, "$name: nothing was delivered");
	return;
}

sub goes_out_after_all
{
	my ($name, $id) = @_;
	$relay->pass($relay->accept);
	is($node->wait_state($id, 'succeeded'), 'succeeded', "$name: goes out when it may");
	is($provider->deliveries($name), 1, "$name: once");
	is($provider->effects($name), 1, "$name: with one effect");
	return;
}

my ($paused, $connection) = held('paused');
$node->sql("SELECT reconcile.pause('paused', 'test')");
$relay->pass($connection);
refused('paused', $paused, 'the provider is paused');
is($node->status($paused)->{state}, 'planned', 'paused: it is queued again');
$node->sql("SELECT reconcile.resume('paused')");
goes_out_after_all('paused', $paused);

(my $late, $connection) = held('late', not_after => $node->sql("SELECT clock_timestamp() + interval '1.5 s'"));
$node->wait_sql("SELECT clock_timestamp() > not_after FROM reconcile.action WHERE action_id = '$late'", 't');
$relay->pass($connection);
refused('late', $late, 'its time has passed');
is($node->wait_state($late, 'expired'), 'expired', 'late: it expires, for nothing has left');

(my $disarmed, $connection) = held('disarmed');
my ($token) = glob($node->arming_dir . '/*');
rename $token, "$token.away" or die "rename: $!";
$relay->pass($connection);
refused('disarmed', $disarmed, 'the state could not be read again');
rename "$token.away", $token or die "rename: $!";
$node->sql("SELECT reconcile.wake()");
goes_out_after_all('disarmed', $disarmed);

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
