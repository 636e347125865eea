# Case 39: a restored backup takes what is done for queued.  A dump, made while
# everything is under way, goes back into the running server: the restored
# database sends nothing and asks nothing, says what would become of each action,
# and, armed, asks before it sends.  Also case 37 (a), a copy made by pg_dump.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Copies;
use ActionReconcile::Node;
use ActionReconcile::Provider;
use PostgreSQL::Test::Utils;

my $provider = ActionReconcile::Provider->new;
my $copies = ActionReconcile::Copies->new($provider);
my $node = $copies->original('server', extension => 0);
my $dump = PostgreSQL::Test::Utils::tempdir('dump') . '/custom';
my %action;

$node->sql('CREATE DATABASE shop');
$node->{ar_database} = 'shop';
$node->sql("CREATE EXTENSION action_reconcile; SELECT reconcile.arm('production')", 'shop');

sub submit
{
	my ($name, $count) = @_;
	$action{$name} = [ $node->submit_all(map { [ $name, { number => $_ } ] } 1 .. $count) ];
	$copies->expect_one_effect($name, @{ $action{$name} });
	return;
}

sub wait_states
{
	my ($title, %expected) = @_;
	$copies->wait_all($title, $node, $expected{$_}, @{ $action{$_} }) foreach sort keys %expected;
	return;
}

# ---------------------------------------------------------------- at the time of the backup

my %lost = (then => 'close');
$copies->define($node, 'done', {});
$copies->define($node, 'queue', {});
$copies->define($node, 'late', {});
$copies->define($node, 'mute', {}, operation => { lookup => 0 });
$copies->define($node, 'gone', { write => [ \%lost ] }, operation => { lookup => 0 });
$copies->define($node, 'lost', { write => [ \%lost, \%lost ] }, consistency_window => '6 s');
$copies->define($node, 'asked', { write => [ \%lost ], read => [ { hold_s => 600 } ] }, operation => { lookup => { timeout => '60 s' } });
$copies->define($node, 'flight', { write => [ { hold_s => 600 } ] }, attempt_timeout => '30 s');
$node->sql("SELECT reconcile.pause('$_', 'not yet')", 'shop') foreach qw(queue late mute);
submit(@$_) foreach [ done => 2 ], [ queue => 17 ], [ late => 3 ], [ mute => 2 ], [ gone => 1 ], [ asked => 1 ], [ flight => 1 ], [ lost => 2 ];
wait_states('backup', done => 'succeeded', gone => 'manual_review', asked => 'reconciling', flight => 'submitted', lost => 'outcome_unknown');
ok($provider->wait_reads('asked', 1, 30), 'backup: a question is on its way');
# Something in every table that numbers its rows.
$node->sql("SELECT reconcile.confirm('not of ours', 'x', '{}', 'done')", 'shop');
$node->sql("SELECT reconcile.bulk_preview('cancel', operation => 'late', reason => 'a test')", 'shop');

system_or_bail('pg_dump', '-Fc', '-f', $dump, $node->connstr('shop'));

# ---------------------------------------------------------------- what is done after it

$provider->release($_) foreach qw(flight asked);
$node->sql("SELECT reconcile.resume('$_')", 'shop') foreach qw(queue mute);
wait_states('after the backup', queue => 'succeeded', mute => 'succeeded', lost => 'succeeded', asked => 'succeeded', flight => 'succeeded');
$copies->check_ledger('after the backup', $_, $copies->ids($_)) foreach qw(done queue mute gone lost asked flight);
my %questions = map { $_ => $provider->reads($_) } qw(done queue late lost asked flight);

# ---------------------------------------------------------------- restored into the running server

$node->sql('DROP DATABASE shop WITH (FORCE); CREATE DATABASE shop TEMPLATE template0');
my $oid = $node->sql("SELECT oid FROM pg_database WHERE datname = 'shop'");
my $offset = $node->log_offset;
system_or_bail('pg_restore', '--exit-on-error', '-d', $node->connstr('shop'), $dump);

my ($recorded) = $copies->check_silent('case 37, restored dump', $node, qr/it was never armed, or is a restored copy/);
is($provider->reads($_), $questions{$_}, "case 37, restored dump: nobody has asked \"$_\"") foreach sort keys %questions;
$copies->check_ledger('case 37, restored dump', $_, $copies->ids($_)) foreach qw(done queue mute gone lost asked flight);
is($provider->deliveries('late'), 0, 'case 37, restored dump: nor has anything been sent that was not');
is($node->sql("SELECT state || ' ' || count(*) FROM reconcile.action WHERE operation <> 'queue' GROUP BY state ORDER BY state", 'shop'),
	"planned 5\nsubmitted 1\noutcome_unknown 1\nreconciling 1\nmanual_review 1\nsucceeded 3", 'case 39: it stands where it stood, but for what was confirmed since');
$node->assert_consistent('case 39, restored');

# What would become of each, before anything goes out.
is($node->sql("SELECT operation || ': ' || becomes || ' ' || actions FROM reconcile.arming_summary WHERE NOT armed ORDER BY 1", 'shop'), <<'SUMMARY' =~ s/\n$//r, 'case 39: the summary tells what arming it would do');
asked: looked up 1
flight: looked up 1
gone: waits for a person 1
late: looked up, then sent 3
lost: looked up 1
mute: handed to a person 2
queue: looked up, then sent 18
SUMMARY

# ---------------------------------------------------------------- armed

$node->sql("SELECT reconcile.resume('late'), reconcile.arm('restored from the dump')", 'shop');
$copies->expect_one_effect('queue', $recorded);
push @{ $action{queue} }, $recorded;
wait_states('case 39, armed', (map { $_ => 'succeeded' } qw(done queue late lost asked flight)), mute => 'manual_review', gone => 'manual_review');
$copies->check_ledger('case 39, armed', $_, $copies->ids($_)) foreach qw(done queue late mute gone lost asked flight);
like($node->events($action{late}[0]), qr/^submit (?:resume )?presume (?:ask absent_once )?ask absent claim answered_accepted$/, 'case 39, armed: what was not there was sent after asking');
like($node->events($action{queue}[0]), qr/^submit presume ask found$/, 'case 39, armed: what was there was not');
$node->assert_consistent('case 39, armed');

# ---------------------------------------------------------------- numbers go on

my @columns = split /\n/, $node->sql(<<'SQL', 'shop');
SELECT format('SELECT %L, (SELECT last_value FROM %s) >= coalesce((SELECT max(%I) FROM %s), 0)', c.relname, pg_get_serial_sequence(c.oid::regclass::text, attname), attname, c.oid::regclass)
  FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'reconcile'::regnamespace AND c.relkind IN ('r', 'p')
   AND attnum > 0 AND NOT attisdropped AND pg_get_serial_sequence(c.oid::regclass::text, attname) IS NOT NULL
SQL
cmp_ok(scalar @columns, '>=', 4, 'restored: some tables number their rows');
like($node->sql($_, 'shop'), qr/\|t$/, 'restored: and go on where they were') foreach @columns;
is($node->sql_error("SELECT reconcile.confirm('nor of ours', 'y', '{}', 'done')", 'shop'), '', 'restored: what comes in gets a number of its own');
is($node->sql_error("SELECT reconcile.bulk_preview('cancel', operation => 'late', reason => 'a test')", 'shop'), '', 'restored: and a batch');

$node->stop;
$provider->stop;
done_testing();
