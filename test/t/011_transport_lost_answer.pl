# The request has left and no complete answer came: the outcome is unknown,
# whatever libcurl calls it.  Nothing is sent a second time.  After the gate
# the provider is asked, and its ledger says what the verdict must be.
use strict;
use warnings;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Scenarios;
use Test::More;

# Freed memory is overwritten, so that a use of it after that shows.
my $node = ActionReconcile::Node->create('lost', env => { MALLOC_PERTURB_ => '165' });
my $provider = ActionReconcile::Provider->new;
my $scenarios = ActionReconcile::Scenarios->new($node, $provider);

# More than a provider with a small receive buffer takes off our hands unread.
my %large = (payload => { blob => 'x' x 900_000 });

# Unknown, executed once, found; and unknown, not executed, absent.
sub executed { return (proves => 'unknown', state => 'succeeded', deliveries => 1, effects => 1, @_); }
sub not_executed { return (proves => 'unknown', state => 'safe_to_retry', deliveries => 1, effects => 0, @_); }

sub memory_kb
{
	my ($pid) = @_;
	open(my $file, '<', "/proc/$pid/status") or return 0;
	my ($peak) = map { /^VmHWM:\s+(\d+)/ ? $1 : () } <$file>;
	return $peak;
}

my $worker = $node->wait_worker;
my $memory_before = memory_kb($worker);

$scenarios->run(
	# 6: over before anything was read.  A reset may also be seen while connecting.
	{ name => '6-accept-close', proves => qr/^(unknown|not_sent)$/,
		state => [qw(safe_to_retry succeeded)], attempts => qr/^[12]$/, deliveries => qr/^[01]$/, effects => qr/^[01]$/ },
	{ name => '6-accept-reset', proves => qr/^(unknown|not_sent)$/,
		state => [qw(safe_to_retry succeeded)], attempts => qr/^[12]$/, deliveries => qr/^[01]$/, effects => qr/^[01]$/ },

	# 8: nobody reads.  Cut off with a reset, a large request never completes;
	# a small one may wait whole in the peer's buffer.
	{ name => '8-never-read', times_out => '2 s', not_executed(deliveries => 0) },
	{ name => '8-never-read-large', times_out => '2 s', preset => '8-never-read', %large, not_executed(deliveries => 0) },
	{ name => '8-never-read-tls', times_out => '2 s', preset => '8-never-read', https => 1, not_executed(deliveries => 0) },
	{ name => '8-never-read-tls-large', times_out => '2 s', preset => '8-never-read', https => 1, %large, not_executed(deliveries => 0) },
	{ name => '8-read-late', times_out => '2 s', provider => { late_arrival_max => '2.5 s' },
		not_executed(state => [qw(safe_to_retry succeeded)], deliveries => qr/^[01]$/, effects => qr/^[01]$/) },
	{ name => '8-read-late-large', times_out => '2 s', preset => '8-read-late', %large, provider => { late_arrival_max => '2.5 s' },
		not_executed(deliveries => qr/^[01]$/) },
	{ name => '8-read-late-tls', times_out => '2 s', preset => '8-read-late', https => 1, provider => { late_arrival_max => '2.5 s' },
		not_executed(state => [qw(safe_to_retry succeeded)], deliveries => qr/^[01]$/, effects => qr/^[01]$/) },
	{ name => '8-read-late-tls-large', times_out => '2 s', preset => '8-read-late', https => 1, %large,
		provider => { late_arrival_max => '2.5 s' }, not_executed(deliveries => qr/^[01]$/) },

	# 9: part of it read
	{ name => '9-ten-bytes-reset', not_executed(deliveries => 0) },
	{ name => '9-head-reset', not_executed() },
	{ name => '9-head-hang', times_out => '2 s', not_executed() },
	# what acts on the head alone knows no reference but one in the head
	{ name => '9-head-commit-hang', times_out => '2 s', executed(),
		spec => { ref_header => 'X-Reference', write => [ { preset => '9-head-commit-hang' } ] },
		operation => { headers => { 'Content-Type' => 'application/json', 'X-Reference' => '{client_reference}' } } },

	# 10: all of it read
	{ name => '10-close', executed() },
	{ name => '10-reset', executed() },
	{ name => '10-hang', times_out => '2 s', executed() },
	{ name => '10-close-uncommitted', not_executed() },
	{ name => '10-hang-uncommitted', times_out => '2 s', not_executed() },
	{ name => '10-answer-late', times_out => '2 s', override => { hold_s => 4 }, executed() },
	{ name => '10-late-execution', times_out => '1 s', provider => { late_arrival_max => '2 s' }, executed() },
	{ name => '10-commit-after-close', provider => { late_arrival_max => '1 s' }, executed() },
	{ name => '10-close-lagging', spec => { write => [ { then => 'close' } ], visibility_lag_s => 1 },
		provider => { consistency_window => '2 s' }, executed() },

	# 11: the connection of an earlier request would invite a silent second one
	{ name => '11-keepalive-close', before => 1, executed() },
	{ name => '11-keepalive-reset', before => 1, executed() },
	{ name => '11-keepalive-listener-down', before => 1, executed(),
		operation => { lookup => { max_inconclusive => 1000 } },
		meanwhile => sub {
			my ($self, $row) = @_;
			$node->wait_sql("SELECT count(*) > 0 FROM reconcile.lookup WHERE action_id = '$row->{action_id}'
				AND result = 'inconclusive'", 't');
			$provider->open_ports($row->{name});
		} },

	# 16: interim answers only
	{ name => '16-100-hang', times_out => '2 s', executed() },
	{ name => '16-100-close', executed() },
	{ name => '16-103-close', executed() },
	{ name => '16-endless-1xx', executed() },

	# 17: not quite HTTP
	(map { { name => $_, executed() } }
		  qw(17-htt-close 17-garbage 17-http09 17-http5 17-status-9999 17-final-101)),

	# 18: libcurl reports success for a head that was cut
	{ name => '18-cut-head-close', executed() },
	{ name => '18-cut-head-reset', executed() },

	# 19: the body cut, the status known
	(map { { name => $_, executed(status => 201) } }
		  qw(19-short-body-close 19-short-body-reset 19-bad-chunk 19-no-last-chunk)),
	{ name => '19-short-body-hang', times_out => '4 s', executed(status => 201) },

	# 22: heads without measure
	(map { { name => $_, executed() } } qw(22-megabyte-header 22-endless-headers 22-many-headers)),

	# 23: bodies without measure
	{ name => '23-endless-body', executed(status => 201) },
	{ name => '23-large-body', executed(status => 201) },

	# 24: drop by drop
	{ name => '24-slow-body', times_out => '4 s', executed(status => 201) },
	{ name => '24-slow-headers', times_out => '2 s', executed() },

	# 29: the answer overtakes the request, and then nobody reads
	{ name => '29-early-200-stall', times_out => '2 s', %large, not_executed() },
);

# 12: eight connections that an HTTP library would keep, each dead on its next use
subtest '12-eight-idle' => sub {
	$provider->preset('12-eight-idle', '12-eight-idle');
	$node->define_provider('eight', $provider->http_url('12-eight-idle'), max_in_flight => 8);
	$node->define_operation('eight', 'eight');
	my @first = $node->submit_all(map { [ 'eight', { n => $_ } ] } 1 .. 8);
	is($node->wait_state($_, 'succeeded'), 'succeeded', 'answered') foreach @first;
	my @second = $node->submit_all(map { [ 'eight', { n => $_ } ] } 9 .. 16);
	foreach my $id (@second)
	{
		is($node->wait_state($id, 'succeeded'), 'succeeded', 'found');
		is($node->transfer($id)->{proves}, 'unknown', 'after a lost answer');
	}
	my $summary = $provider->summary('12-eight-idle');
	is($summary->{deliveries}, 16, 'each was delivered once');
	is($summary->{effects}, 16, 'each was executed once');
	is_deeply($summary->{duplicates}, {}, 'no reference has two effects');
};

is($node->wait_worker, $worker, 'the same worker lived through all of it');
my $grown = memory_kb($worker) - $memory_before;
note("memory grew by $grown kB");
cmp_ok($grown, '<', 200_000, 'with bounded memory');
$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
