# Failover.  A standby sends nothing; promoted, it sends nothing until somebody
# arms it, or failover_policy does, and then it asks first, since an asynchronous
# one may not know what the primary sent last.  Case 41, two primaries: with a
# synchronous standby the isolated one cannot finish a claim and sends nothing;
# without one both send the same key, and the provider removes the duplicate.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use File::Basename ();
use Test::More;

use ActionReconcile::Copies;
use ActionReconcile::Node;
use ActionReconcile::Provider;
use PostgreSQL::Test::Utils ();

my $provider = ActionReconcile::Provider->new;
my $copies = ActionReconcile::Copies->new($provider);
my $primary = $copies->original('primary');
my $promoted = qr/it was armed on another timeline: it has been restored or promoted since/;
my $number = 0;

# What was claimed and not sent is asked about when its attempt could have ended.
$copies->define($primary, 'shop', {}, attempt_timeout => '5 s');
$copies->define($primary, 'lost', { write_default => { then => 'close' } }, consistency_window => '1 s');
$copies->define($primary, 'mute', {}, operation => { lookup => 0 });
$copies->define($primary, 'keyed', { key_header => 'Idempotency-Key' },
	operation => { headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' }, key_lifetime => '1 day', key_lifetime_source => 'documented', key_replay => 'stored_reply' });
$primary->wait_worker;
$primary->backup('base');
my %standby = map { $_ => $copies->copy($primary, 'base', $_, streaming => 1, conf => "cluster_name = '$_'\n") } qw(sync own hold auto);
$_->start foreach values %standby;

# Queued on the primary, and known to every standby that follows it.
sub queue
{
	my ($operation, $count, @standbys) = @_;
	$primary->sql("SELECT reconcile.pause('$operation', 'not yet')");
	my @ids = $primary->submit_all(map { [ $operation, { number => ++$number } ] } 1 .. $count);
	my $position = $primary->sql('SELECT pg_current_wal_flush_lsn()');
	foreach my $name (@standbys)
	{
		is($standby{$name}->wait_sql("SELECT pg_last_wal_replay_lsn() >= '$position'", 't'), 't', "$name: it has followed");
	}
	return @ids;
}

# From now on it receives nothing.
sub cut
{
	my ($name) = @_;
	$standby{$name}->sql("ALTER SYSTEM SET primary_conninfo = ''");
	$standby{$name}->reload;
	is($standby{$name}->wait_sql('SELECT count(*) FROM pg_stat_wal_receiver', '0'), '0', "$name: cut off");
	return;
}

sub check_ledgers
{
	my ($title, @names) = @_;
	$copies->check_ledger($title, $_, $copies->ids($_)) foreach @names;
	return;
}

# Promoted, it has a worker and says why it sends nothing, though work is due.
sub check_promoted
{
	my ($title, $node, $because) = @_;
	$node->promote;
	isnt($node->wait_worker, '0', "$title: promoted, it has a worker");
	my $engine = $copies->engine($node);
	ok(!$engine->{armed}, "$title: not armed");
	like($engine->{disarmed_because}, $because, "$title: and why");
	$node->sql('SELECT reconcile.resume(provider) FROM reconcile.provider');
	my $new = $node->submit('shop', { number => ++$number });
	$node->sql("SELECT * FROM reconcile.wait('$new', '500 ms')");
	is($node->status($new)->{state}, 'planned', "$title: what is recorded waits");
	check_ledgers($title, 'shop');
	return $new;
}

# ---------------------------------------------------------------- a standby

like($standby{own}->sql('SELECT armed || disarmed_because FROM reconcile.health'), qr/^falsethe server is a standby$/, 'standby: health tells what it is');
my @one = $primary->submit_all(map { [ 'shop', { number => ++$number } ] } 1 .. 2);
$copies->wait_all('primary', $primary, 'succeeded', @one);
$copies->expect_one_effect('shop', @one);
check_ledgers('standby: it sends nothing', 'shop');

# ---------------------------------------------------------------- case 41, synchronous

$primary->sql("ALTER SYSTEM SET synchronous_standby_names = 'sync'");
$primary->reload;
$primary->wait_sql("SELECT sync_state FROM pg_stat_replication WHERE application_name = 'sync'", 'sync');
my @both = queue('shop', 1, 'sync');
cut('sync');

# Its clients may commit locally; its engine never does.
$primary->sql("SET synchronous_commit = local; SELECT reconcile.resume('shop')");
is($primary->wait_sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND wait_event = 'SyncRep'", '1'),
	'1', 'case 41, synchronous: the isolated primary cannot finish its claim');
my @new = check_promoted('case 41, synchronous', $standby{sync}, $promoted);
$standby{sync}->sql("SELECT reconcile.arm('failover')");
$copies->wait_all('case 41, synchronous, the new primary', $standby{sync}, 'succeeded', @both, @new);
$copies->expect_one_effect('shop', @both, @new);
is($primary->sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'action_reconcile worker' AND wait_event = 'SyncRep'"),
	'1', 'case 41, synchronous: the old primary is still alive, and still waits');
check_ledgers('case 41, synchronous', 'shop');
$standby{sync}->assert_consistent('case 41, synchronous');
$standby{sync}->stop;

# The old one comes back, and nobody waits for a standby any more.
$primary->stop('immediate');
$primary->append_conf('postgresql.auto.conf', "synchronous_standby_names = ''");
$primary->start;
$copies->wait_all('case 41, the old primary comes back', $primary, 'succeeded', @both);
like($primary->events($both[0]), qr/^submit claim recover ask found$/, 'case 41, the old primary comes back: it asks, and does not repeat');
check_ledgers('case 41, the old primary comes back', 'shop');

# ---------------------------------------------------------------- asynchronous

# What the primary sent last, no standby knows: they hold it as queued.
my @sent = queue('shop', 3, qw(own hold auto));
my @unknown = queue('lost', 2, qw(own hold auto));
my @mute = queue('mute', 1, qw(own hold auto));
my @keyed = queue('keyed', 1, qw(own hold auto));
my @unsent = $primary->submit('shop', { number => ++$number }, not_before => '2099-01-01');
queue('mute', 0, qw(own hold auto));
cut($_) foreach qw(own hold auto);
$primary->sql("SELECT reconcile.resume('$_')") foreach qw(shop lost mute);
$copies->wait_all('primary', $primary, 'succeeded', @sent, @mute);
ok($provider->wait_effects('lost', 2, 30), 'primary: two more are carried out, and their answers lost');
$copies->expect_one_effect('shop', @sent);
$copies->expect_one_effect('lost', @unknown);
$copies->expect_one_effect('mute', @mute);

my $title = 'asynchronous standby promoted';
@new = check_promoted($title, $standby{own}, $promoted);
is($standby{own}->status($_)->{state}, 'planned', "$title: what was sent looks queued") foreach @sent, @unknown, @mute;
$standby{own}->sql("SELECT reconcile.arm('failover')");
$copies->wait_all($title, $standby{own}, 'succeeded', @sent, @unknown, @keyed, @new);
$copies->wait_all("$title, nobody to ask", $standby{own}, 'manual_review', @mute);
$copies->expect_one_effect('keyed', @keyed);
$copies->expect_one_effect('shop', @new);
check_ledgers("$title and armed", qw(shop lost mute keyed));
$standby{own}->assert_consistent($title);

# Case 41: the old primary is alive and has what the new one has sent still in its queue.
is($primary->status($keyed[0])->{state}, 'planned', 'case 41, asynchronous: the old primary has it in its queue');
$primary->sql("SELECT reconcile.resume('keyed')");
$copies->wait_all('case 41, asynchronous, the old primary', $primary, 'succeeded', @keyed);
my @keys = $provider->keys_seen('keyed');
is_deeply([ map { $_->[1] } @keys ], [ 'new', 'replayed' ], 'case 41, asynchronous: both have sent it, and the provider has seen through it');
is($keys[0][0], $keys[1][0], 'case 41, asynchronous: since the key is the same');
check_ledgers('case 41, asynchronous', qw(shop lost mute keyed));
$standby{own}->stop;
$primary->stop('immediate');

# ---------------------------------------------------------------- failover_policy

# A token for it, as the administrator puts it there beforehand.
sub put_token
{
	my ($node) = @_;
	my ($file) = glob($primary->arming_dir . '/*.armed');
	my $token = $node->arming_dir . '/' . File::Basename::basename($file);
	PostgreSQL::Test::Utils::append_to_file($token, PostgreSQL::Test::Utils::slurp_file($file) =~ s/^place .*/place standby/mr);
	chmod 0600, $token;
	return;
}

put_token($standby{$_}) foreach qw(hold auto);

# By default somebody is asked, though there is a token.
@new = check_promoted('failover_policy hold', $standby{hold}, $promoted);
$standby{hold}->stop;

# Told to, it arms itself, and asks before it sends, as after arm().
$title = 'failover_policy auto';
$standby{auto}->append_conf('postgresql.conf', "action_reconcile.failover_policy = auto");
$standby{auto}->reload;
$standby{auto}->promote;
$standby{auto}->wait_for_log(qr/has armed itself after a promotion/);
$standby{auto}->sql('SELECT reconcile.resume(provider) FROM reconcile.provider');
$copies->wait_all($title, $standby{auto}, 'succeeded', @sent, @unknown, @keyed);
$copies->wait_all("$title, nobody to ask", $standby{auto}, 'manual_review', @mute);
ok($copies->engine($standby{auto})->{armed}, "$title: armed");
my $id = $standby{auto}->submit('shop', { number => ++$number });
is($standby{auto}->wait_state($id, 'succeeded'), 'succeeded', "$title: and it works");
$copies->expect_one_effect('shop', $id);
check_ledgers($title, qw(shop lost mute keyed));
$standby{auto}->assert_consistent($title);
$standby{auto}->stop;
$provider->stop;
done_testing();
