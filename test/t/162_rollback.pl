# A database that was set back does not know what it has sent since.  Point-in-
# time recovery and a data directory put back behind its token file: it sends
# nothing, for good, however much is written to it afterwards.  Armed, it asks
# before it sends (case 39), and a crash alone never disarms it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Copies;
use ActionReconcile::Crash qw(crash);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $copies = ActionReconcile::Copies->new($provider);
my $node = $copies->original('production', archiving => 1);
my $rolled_back = qr/it has been rolled back/;
my $number = 0;

$copies->define($node, 'shop', {});
$copies->define($node, 'mute', {}, operation => { lookup => 0 });
$node->wait_worker;

# Queued work that waits until it is let go.
sub queue
{
	my ($operation, $count) = @_;
	$node->sql("SELECT reconcile.pause('$operation', 'not yet')");
	return $node->submit_all(map { [ $operation, { number => ++$number } ] } 1 .. $count);
}

sub let_go
{
	my ($title, $operation, @ids) = @_;
	$node->sql("SELECT reconcile.resume('$operation')");
	$copies->wait_all($title, $node, 'succeeded', @ids);
	return;
}

# It has a worker, work is due, and stays where it is.
sub check_silent
{
	my ($title, $because) = @_;
	$node->wait_worker;
	$node->sql('SELECT reconcile.resume(provider) FROM reconcile.provider WHERE paused_at IS NOT NULL');
	my $engine = $copies->engine($node);
	ok(!$engine->{armed}, "$title: not armed");
	like($engine->{disarmed_because}, $because, "$title: and why");
	my $new = $node->submit('shop', { number => ++$number });
	$node->sql("SELECT * FROM reconcile.wait('$new', '500 ms')");
	is($node->status($new)->{state}, 'planned', "$title: what is recorded waits");
	return $new;
}

# ---------------------------------------------------------------- a crash is no rollback

foreach my $how ('worker', 'postmaster', 'immediate')
{
	my @ids = $node->submit_all(map { [ 'shop', { number => ++$number } ] } 1 .. 5);
	$copies->wait_all("before a crash ($how)", $node, 'succeeded', @ids);
	crash($node, $how);
	my $id = $node->submit('shop', { number => ++$number });
	is($node->wait_state($id, 'succeeded'), 'succeeded', "crash ($how): still armed, and working");
	$copies->expect_one_effect('shop', @ids, $id);
}

# ---------------------------------------------------------------- put back into its own place

# Everything that the directory has since done is gone, and nothing about the
# directory itself tells: not its path, and not the file that is written in place.
sub roll_back
{
	my ($backup) = @_;
	$node->stop('immediate');
	$copies->put_back($node, $backup);
	$node->start;
	return;
}

sub check_rolled_back
{
	my ($title, $done, $mute) = @_;
	my @recorded = check_silent($title, $rolled_back);

	# What it writes now takes it past the place where it had been.
	$node->sql('CREATE TABLE filler AS SELECT repeat(md5(i::text), 20) AS x FROM generate_series(1, 20000) i; SELECT pg_switch_wal(); DROP TABLE filler');
	my ($file) = glob($node->arming_dir . '/*.armed');
	my ($position) = PostgreSQL::Test::Utils::slurp_file($file) =~ /^lsn (\S+)/m;
	is($node->sql("SELECT pg_current_wal_flush_lsn() > '$position'"), 't', "$title: it has written more than its token file says");
	push @recorded, check_silent("$title, much more written", $rolled_back);
	$node->restart;
	push @recorded, check_silent("$title, restarted", $rolled_back);
	foreach my $id (@$done)
	{
		is($node->status($id)->{state}, 'planned', "$title: what was done looks queued");
	}
	$copies->check_ledger("$title, before it is armed", 'shop', $copies->ids('shop'), @$done);

	$node->sql("SELECT reconcile.arm('put back from a file backup')");
	$copies->wait_all("$title, armed", $node, 'succeeded', @$done, @recorded);
	$copies->wait_all("$title, armed, nobody to ask", $node, 'manual_review', @$mute);
	$copies->expect_one_effect('shop', @$done, @recorded);
	$copies->expect_one_effect('mute', @$mute);
	$copies->check_ledger("$title, armed", $_, $copies->ids($_)) foreach qw(shop mute);
	my $id = $node->submit('shop', { number => ++$number });
	is($node->wait_state($id, 'succeeded'), 'succeeded', "$title, armed: it works");
	$copies->expect_one_effect('shop', $id);
	$node->assert_consistent($title);
	return;
}

# The engine has had no other life since the backup.
my @done = queue('shop', 3);
my @mute = queue('mute', 1);
$node->backup('same_life');
let_go('case 39, same life', 'shop', @done);
let_go('case 39, same life', 'mute', @mute);
roll_back('same_life');
check_rolled_back('case 39, put back, same life of the engine', \@done, \@mute);

# It has been started anew since.
@done = queue('shop', 2);
@mute = ();
$node->backup('other_life');
$node->restart;
$node->wait_worker;
let_go('case 39, other life', 'shop', @done);
roll_back('other_life');
check_rolled_back('case 39, put back, another life of the engine', \@done, \@mute);

# ---------------------------------------------------------------- recovered to a point in time

# Case 39: of what the restored database takes for queued, most was done, one
# was not, and for one nobody can be asked.
my @before = queue('shop', 4);
@mute = queue('mute', 1);
$node->backup('nightly');
my @later = $node->submit_all(map { [ 'shop', { number => ++$number } ] } 1 .. 2);
$node->sql("SELECT pg_create_restore_point('noon')");
$node->sql("SELECT reconcile.cancel('$before[3]', 'not any more')");
my @lost = queue('shop', 2);
let_go('case 39, after the point', 'shop', @before[ 0 .. 2 ], @later, @lost);
let_go('case 39, after the point', 'mute', @mute);
my $end = $node->sql('SELECT pg_walfile_name(pg_current_wal_lsn())');
$node->sql('SELECT pg_switch_wal()');
$node->wait_sql("SELECT last_archived_wal >= '$end' FROM pg_stat_archiver", 't');
$node->stop('immediate');
# Not even where a standby would arm itself.
my ($token) = glob($node->arming_dir . '/*.armed');
my $text = PostgreSQL::Test::Utils::slurp_file($token) =~ s/^place .*/place standby/mr;
unlink $token;
PostgreSQL::Test::Utils::append_to_file($token, $text);
chmod 0600, $token;
$copies->put_back($node, 'nightly', recovery => "recovery_target_name = 'noon'\nrecovery_target_action = 'promote'\naction_reconcile.failover_policy = auto\n");
$node->start;
$node->wait_sql('SELECT pg_is_in_recovery()', 'f');
is($node->sql("SELECT count(*) FROM reconcile.action WHERE action_id IN ('$lost[0]', '$lost[1]')"), '0', 'case 39, point in time: what was recorded afterwards is not known');
my $new = check_silent('case 39, point in time', qr/it was armed on another timeline: it has been restored or promoted since/);
$node->sql("SELECT reconcile.arm('recovered to noon')");
$copies->wait_all('case 39, point in time', $node, 'succeeded', @before, @later, $new);
$copies->wait_all('case 39, point in time, nobody to ask', $node, 'manual_review', @mute);
$copies->expect_one_effect('shop', @before, @later, @lost, $new);
$copies->expect_one_effect('mute', @mute);
$copies->check_ledger('case 39, point in time', $_, $copies->ids($_)) foreach qw(shop mute);
$node->assert_consistent('case 39, point in time');

$node->stop;
$provider->stop;
done_testing();
