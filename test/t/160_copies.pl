# Case 37: a copy of production starts sending.  Every way to copy a database
# while it has work under way: the copy sends nothing and asks nothing until it
# is armed, and the original goes on.  Armed, it finds out what was done
# meanwhile, and does not do it again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Copies qw(make_arming_dir);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $copies = ActionReconcile::Copies->new($provider);
my $original = $copies->original('original', extension => 0);

$original->sql('CREATE DATABASE shop');
$original->{ar_database} = 'shop';
$original->sql("CREATE EXTENSION action_reconcile; SELECT reconcile.arm('production')", 'shop');
$copies->cast($original);

# ---------------------------------------------------------------- copies of the running server

$original->backup('running');
my %copy = (same => $copies->copy($original, 'running', 'same', arming => 'same'), own => $copies->copy($original, 'running', 'own'));
my %because = (same => qr/the data directory is a copy of the one that was armed/, own => qr/the token file is not on this host/);
my %recorded;
foreach my $which (sort keys %copy)
{
	$copy{$which}->start;
	$recorded{$which} = $copies->check_silent("case 37, pg_basebackup, $which arming directory", $copy{$which}, $because{$which});
}

# ---------------------------------------------------------------- read-only copies

# What a dashboard asks, on a copy that cannot write.
sub check_read_only
{
	my ($title, $node, $because) = @_;
	my $health = $node->rows('SELECT * FROM reconcile.health', 'shop')->[0];

	ok(!$health->{armed}, "$title: health says that it is not armed");
	like($health->{disarmed_because}, $because, "$title: and why");
	cmp_ok($node->sql("SELECT count(*) FROM reconcile.unresolved", 'shop'), '>=', 6, "$title: what is unresolved can be read");
	cmp_ok($node->sql("SELECT sum(actions) FROM reconcile.arming_summary", 'shop'), '>=', 6, "$title: and what arming it would do");
	is($node->sql("SELECT count(*) > 0 FROM reconcile.action_history", 'shop'), 't', "$title: and the history");
	is($node->sql('SELECT * FROM reconcile.verify_history()', 'shop'), '', "$title: which is whole");
	like($node->sql_error("SELECT * FROM reconcile.submit('queue', '{}')", 'shop'), qr/^25006/, "$title: nothing can be recorded, and the error says why");
	ok(!$node->log_contains('(?:PANIC|FATAL|ERROR):  (?!25006|cannot execute|.*read-only)'), "$title: nothing else went wrong");
	return;
}

my $standby = $copies->copy($original, 'running', 'standby', arming => 'same', signal => 'standby.signal');
$standby->start;
check_read_only('case 37, hot standby', $standby, qr/the server is a standby/);
is($standby->sql("CALL reconcile.run('1 s')", 'shop') || '|0|0|0', '|0|0|0', 'case 37, hot standby: run() sends nothing there');
is($standby->sql('SELECT worker_pid IS NULL FROM reconcile.health', 'shop'), 't', 'case 37, hot standby: and has no worker');
$standby->stop;

my $frozen = $copies->copy($original, 'running', 'frozen', conf => "default_transaction_read_only = on\n");
$frozen->start;
$frozen->wait_for_log(qr/sends nothing: default_transaction_read_only is on|sends nothing: the token file is not on this host/);
my $worker = $frozen->worker_pid;
check_read_only('case 37, read-only copy', $frozen, qr/the token file is not on this host/);
is($frozen->worker_pid, $worker, 'case 37, read-only copy: its worker does not go round in circles');
$frozen->stop;

# ---------------------------------------------------------------- template and name

# Its own database cannot be copied while the worker is connected.
sub without_worker
{
	my ($statement) = @_;
	$original->sql("ALTER SYSTEM SET action_reconcile.databases = 'none'");
	$original->reload;
	$original->sql("SELECT pg_terminate_backend(worker_pid) FROM reconcile.engine() WHERE worker_pid IS NOT NULL", 'shop');
	is($original->wait_sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'shop'", '0'), '0', 'original: its worker has ended');
	$original->sql($statement);
	$original->sql("ALTER SYSTEM RESET action_reconcile.databases");
	$original->reload;
	return;
}

without_worker('CREATE DATABASE branch TEMPLATE shop');
isnt($original->wait_worker, '0', 'original: it has a worker again');
{
	local $original->{ar_database} = 'branch';
	my $oid = $original->sql("SELECT oid FROM pg_database WHERE datname = 'branch'");
	$original->wait_for_log(qr/\(OID $oid\) sends nothing: it was armed as another database/);
	$recorded{branch} = $copies->check_silent('case 37, template', $original, qr/it was armed as another database/);
}

without_worker('ALTER DATABASE shop RENAME TO store');
$original->{ar_database} = 'store';
isnt($original->wait_worker, '0', 'renamed: it has a worker');
ok($copies->engine($original)->{armed}, 'renamed: it is still armed');
my $after = $original->submit('lost', { after => 'renaming' });
is($original->wait_state($after, 'succeeded'), 'succeeded', 'renamed: and works');

# ---------------------------------------------------------------- file copy of a server that crashed

$original->stop('immediate');
$copies->copy_files($original, 'files');
$original->start;
foreach my $arming ('same', 'own')
{
	my $title = "case 37, file copy, $arming arming directory";
	my $copy = $copy{"files $arming"} = $copies->copy($original, 'files', "files_$arming", arming => $arming);
	$copy->start;
	$recorded{"files $arming"} = $copies->check_silent($title, $copy, $because{$arming});
}

# ---------------------------------------------------------------- the original goes on

push @{ $copies->{lost} }, $after;
$copies->settle_original($original);
$copies->check_questions('case 37', $_, $original) foreach qw(queue lost flight);

# ---------------------------------------------------------------- a copy is armed

# Once the original is given up, a copy may take its place.  It does not know
# that the work is done, and what it alone was told must be done once.
sub arm_copy
{
	my ($title, $node, $mine) = @_;
	$node->sql("SELECT reconcile.arm('the original is given up')", $node->{ar_database});
	$copies->wait_all($title, $node, 'succeeded', $mine, (map { $copies->ids($_) } qw(queue flight)), @{ $copies->{lost} }[ 0, 1 ]);
	$node->assert_consistent($title);
	return;
}

$original->sql("SELECT reconcile.pause(provider, 'given up') FROM reconcile.provider", 'store');
# Nor is what the original has in a directory that they share taken away, however long it lies there.
utime time - 3 * 86400, time - 3 * 86400, glob($original->arming_dir . '/*.armed');
arm_copy('case 37, armed copy of the running server', $copy{same}, $recorded{same});
arm_copy('case 37, armed file copy', $copy{'files own'}, $recorded{'files own'});
{
	local $original->{ar_database} = 'branch';
	arm_copy('case 37, armed template copy', $original, $recorded{branch});
}
ok($copies->engine($original)->{armed}, 'case 37: arming a copy leaves the original armed');
ok(!$copies->engine($copy{own})->{armed}, 'case 37: and another copy disarmed');
$copies->check_ledger('case 37, copies armed', 'queue', $copies->ids('queue'), @recorded{ 'same', 'files own', 'branch' });
$copies->check_ledger('case 37, copies armed', $_, $copies->ids($_)) foreach qw(lost flight);
$_->stop foreach values %copy;

# ---------------------------------------------------------------- the same directory in another place

$original->sql("SELECT reconcile.resume(provider) FROM reconcile.provider", 'store');
my $before = $original->data_dir;
$original->stop;
rename $before, "$before.moved" or die "could not rename: $!";
my $moved = $copies->moved($original, "$before.moved", 'moved');
$moved->start;
my $new = $copies->check_silent('moved data directory', $moved, qr/the data directory is a copy of the one that was armed/);
$moved->sql("SELECT reconcile.arm('the data directory was moved')", 'store');
is($moved->wait_state($new, 'succeeded'), 'succeeded', 'moved data directory: armed, it works');
push @{ $copies->{queue} }, @recorded{ 'same', 'files own', 'branch' }, $new;
$copies->check_ledger('moved data directory', $_, $copies->ids($_)) foreach qw(queue lost flight);
$moved->assert_consistent('moved data directory');

$moved->stop;
$provider->stop;
done_testing();
