# pg_upgrade from 15 to 17 with actions in every stage.  What they were, they are
# afterwards; the new cluster is another installation, so it sends nothing until
# it is armed; then what was open is asked about, and nothing happens twice.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time usleep);

use ActionReconcile::Provider;

my ($work) = @ARGV;
my $old = '/usr/lib/postgresql/15/bin';
my $new = '/usr/lib/postgresql/17/bin';
my $provider = ActionReconcile::Provider->new;
mkdir $_, 0700 foreach "$work/arming", "$work/socket";

sub run_or_die
{
	my (@command) = @_;
	system("cd $work && { @command; } >>$work/output 2>&1") == 0 or die "@command failed:\n" . `tail -n 60 $work/output $work/*.log $work/new/pg_upgrade_output.d/*/log/* 2>/dev/null`;
	return;
}

sub sql
{
	my ($statement) = @_;
	open my $file, '>', "$work/statement.sql" or die;
	print $file $statement;
	close $file;
	my $answer = `$new/psql -X -A -t -q -v ON_ERROR_STOP=1 -h $work/socket -p 25432 -U postgres -f $work/statement.sql postgres 2>&1`;
	die "$statement:\n$answer" if $? != 0;
	chomp $answer;
	return $answer;
}

sub wait_sql
{
	my ($query, $expected) = @_;
	my $until = time + 60;
	my $answer = '';
	while (time < $until)
	{
		$answer = eval { sql($query) } // '';
		return $answer if $answer eq $expected;
		usleep(100_000);
	}
	return $answer;
}

sub make_cluster
{
	my ($bin, $name) = @_;
	run_or_die("$bin/initdb -D $work/$name -A trust -U postgres -E UTF8 --locale=C.UTF-8 --no-sync");
	open my $conf, '>>', "$work/$name/postgresql.conf" or die;
	print $conf <<"CONF";
shared_preload_libraries = 'action_reconcile'
action_reconcile.arming_dir = '$work/arming'
action_reconcile.drain_timeout = 0
listen_addresses = ''
unix_socket_directories = '$work/socket'
port = 25432
fsync = off
jit = off
CONF
	close $conf;
	return;
}

sub start { my ($bin, $name) = @_; return run_or_die("$bin/pg_ctl -D $work/$name -w -l $work/$name.log start"); }
sub stop { my ($bin, $name) = @_; return run_or_die("$bin/pg_ctl -D $work/$name -m fast -w stop"); }

sub state_of { return "SELECT state FROM reconcile.action WHERE operation = '$_[0]'"; }

# Every row of every table; not the arming, and not the clock, which goes on.
sub portrait
{
	my @tables = split /\n/, sql(q(SELECT relname FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind = 'r'
		AND relname NOT IN ('arming', 'clock') ORDER BY 1));
	return join "\n", map { "$_ " . sql("SET search_path = pg_catalog; SET timezone = 'UTC';
		SELECT count(*), md5(string_agg(t::text, chr(10) ORDER BY t::text)) FROM reconcile.$_ t") } @tables;
}

# ---------------------------------------------------------------- 15

make_cluster($old, 'old');
start($old, 'old');
like(sql('SHOW server_version'), qr/^15\./, 'the old cluster is 15');
sql(q(CREATE EXTENSION action_reconcile; SELECT reconcile.arm('test')));
is(wait_sql(q(SELECT count(*) >= 4 FROM pg_inherits WHERE inhparent = 'reconcile.history'::regclass), 't'), 't', 'the history has partitions');
my %presets = (done => 'ok', lost => '10-close', mute => '10-close', flying => '10-hang', waiting => 'ok', never => 'ok');
foreach my $name (sort keys %presets)
{
	$provider->preset($name, $presets{$name});
	my $url = $provider->http_url($name);
	sql(qq(BEGIN;
		INSERT INTO reconcile.provider (provider, base_url, consistency_window, window_source, late_arrival_max, attempt_timeout, allow_http, allow_private_addresses)
			VALUES ('$name', '$url', '2 s', 'documented', '0.1 s', '60 s', true, true);
		INSERT INTO reconcile.operation (operation, provider, path, reference_body_path, artifact_path, on_absent)
			VALUES ('$name', '$name', '/effects', '{ref}', '\$.id', 'replace');)
		. ($name eq 'mute' ? '' : qq(INSERT INTO reconcile.lookup_rule (operation, position, kind, path, items_path, reference_path, artifact_path)
			VALUES ('$name', 1, 'list_by_reference', '/effects?ref={client_reference}', '\$.data[*]', '\$.ref', '\$.id');)) . 'COMMIT;');
}
sql(q(SELECT reconcile.pause('waiting', 'a test')));
sql(qq(SELECT reconcile.submit('$_', '{"of": "$_"}'))) foreach qw(done mute flying waiting);
sql(q(SELECT reconcile.submit('never', '{"of": "never"}', not_before => '2099-01-01')));
is(wait_sql(state_of('done'), 'succeeded'), 'succeeded', '15: an action that succeeded');
is(wait_sql(state_of('mute'), 'manual_review'), 'manual_review', '15: one in manual review');
ok($provider->wait_for('flying', 30, effects => 1), '15: one in flight');
sql(q(SELECT reconcile.submit('lost', '{"of": "lost"}')));
is(wait_sql(state_of('lost'), 'outcome_unknown'), 'outcome_unknown', '15: one whose answer was lost');
stop($old, 'old');
start($old, 'old');			# without a worker, to see what the stop has left
run_or_die("$old/pg_ctl -D $work/old -m fast -w stop");
run_or_die("echo \"action_reconcile.databases = 'none'\" >>$work/old/postgresql.conf");
start($old, 'old');
is(sql(state_of('flying')), 'outcome_unknown', '15: what was in flight is unknown after the stop');
my $before = portrait();
my $chains = sql('SELECT count(*) FROM reconcile.verify_history()');
my $catalog = sql(q(SELECT md5(string_agg(concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, atttypid), chr(10) ORDER BY attrelid::regclass::text, attnum))
	FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'reconcile'::regnamespace AND attnum > 0 AND relkind IN ('r', 'p')));
stop($old, 'old');
my %summary = map { $_ => $provider->summary($_) } keys %presets;

# ---------------------------------------------------------------- the upgrade

make_cluster($new, 'new');
run_or_die("$new/pg_upgrade -b $old -B $new -d $work/old -D $work/new -U postgres -s $work/socket --check");
run_or_die("$new/pg_upgrade -b $old -B $new -d $work/old -D $work/new -U postgres -s $work/socket");
pass('pg_upgrade is through, with the library preloaded in both clusters');
start($new, 'new');
like(sql('SHOW server_version'), qr/^17\./, 'the new cluster is 17');
is(portrait(), $before, 'every row of every table is what it was');
is(sql(q(SELECT md5(string_agg(concat_ws(' ', attrelid::regclass, attname, atttypid::regtype, atttypid), chr(10) ORDER BY attrelid::regclass::text, attnum))
	FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE c.relnamespace = 'reconcile'::regnamespace AND attnum > 0 AND relkind IN ('r', 'p'))), $catalog,
	'the types, enums and row types are the same ones');
is(sql('SELECT count(*) FROM reconcile.verify_history()') . $chains, '00', 'every chain is whole');
is(sql('SELECT count(*) FROM reconcile.fold_violation()'), '0', 'every action is the fold of its attempts');
is(wait_sql('SELECT worker_pid = lock_holder_pid FROM reconcile.engine()', 't'), 't', 'the worker is there');
like(sql('SELECT armed, disarmed_because FROM reconcile.engine()'), qr/^f\|it was armed in another installation/, 'it is disarmed: another installation');
sql(q(SELECT reconcile.resume('waiting')));
usleep(3_000_000);			# longer than the windows: what is not to happen would have happened
is_deeply({ map { $_ => $provider->summary($_) } keys %presets }, \%summary, 'and nothing is sent or asked');

# ---------------------------------------------------------------- armed

sql(q(SELECT reconcile.arm('upgraded to 17')));
is(wait_sql(state_of($_), 'succeeded'), 'succeeded', "17: $_: settled") foreach qw(lost flying waiting);
is(sql(state_of('mute')), 'manual_review', '17: the one in review is still there');
is(sql(state_of('never')), 'planned', '17: the one for later too');
is($provider->effects($_), 1, "17: $_: one effect") foreach qw(done lost flying waiting mute);
is($provider->effects('never'), 0, '17: and none of the other');
cmp_ok($provider->reads($_), '>', 0, "17: $_: was asked about") foreach qw(lost flying);
is(sql('SELECT count(*) FROM reconcile.verify_history()') . sql('SELECT count(*) FROM reconcile.fold_violation()'), '00', '17: whole and consistent');
is(sql(q(SELECT 'confirmed/accepted'::reconcile.standing OPERATOR(reconcile.>) 'pending/pending'::reconcile.standing)), 't', '17: the types work');

stop($new, 'new');
$provider->stop;
done_testing();
