# A standby that is promoted arms itself only where it is told to, and only if
# somebody has put a token for a standby there beforehand.  It has not heard of
# the last sends of its primary, and repeats none of them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use PostgreSQL::Test::Utils;

my $provider = ActionReconcile::Provider->new;
my $primary = ActionReconcile::Node->create('primary', conf => "wal_level = replica\nmax_wal_senders = 4");
my %action;

foreach my $name (qw(sent unsent))
{
	$provider->preset($name, 'ok');
	$primary->define_provider($name, $provider->http_url($name));
	$primary->define_operation($name, $name);
	$primary->sql("SELECT reconcile.pause('$name', 'until the standby has it')");
	$action{$name} = $primary->submit($name, { of => $name });
}

# ---------------------------------------------------------------- a standby that lags

$primary->backup('base');
my $standby = ActionReconcile::Node->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->{ar_arming_dir} = PostgreSQL::Test::Utils::tempdir('arming_standby');
chmod 0700, $standby->arming_dir;
$standby->{ar_preload} = 1;
$standby->append_conf('postgresql.conf', "action_reconcile.arming_dir = '" . $standby->arming_dir . "'");
$standby->start;
$primary->wait_for_catchup($standby, 'replay');
$standby->sql("ALTER SYSTEM SET primary_conninfo = ''; SELECT pg_reload_conf()");
$standby->wait_sql('SELECT count(*) FROM pg_stat_wal_receiver', '0');

$primary->sql("SELECT reconcile.resume('sent')");
is($primary->wait_state($action{sent}, 'succeeded'), 'succeeded', 'the primary sends, and its standby does not hear of it');
my ($token) = glob($primary->arming_dir . '/*.armed');
my ($file) = $token =~ m{([^/]+)$};
my $contents = slurp_file($token);
$primary->stop('immediate');

# ---------------------------------------------------------------- its promotion

sub put_token
{
	my ($text) = @_;
	my $path = $standby->arming_dir . "/$file";

	unlink $path;
	append_to_file($path, $text);
	chmod 0600, $path;
	return;
}

sub because
{
	my ($pattern, $name) = @_;
	my $offset = $standby->log_offset;

	$standby->reload;
	$standby->wait_for_log(qr/sends nothing: .*$pattern/, $offset);
	is($standby->sql('SELECT armed FROM reconcile.engine()'), 'f', $name);
	return;
}

put_token($contents =~ s/^place .*/place standby/mr);
$standby->promote;
$standby->wait_worker;
$standby->wait_for_log(qr/sends nothing: it was armed on another timeline/);
is($standby->sql('SELECT armed FROM reconcile.engine()'), 'f', 'promoted, it holds, although it has a token');
$standby->sql("SELECT reconcile.resume('$_')") foreach qw(sent unsent);
is($standby->status($action{sent})->{state}, 'planned', 'and knows nothing of what was sent');

unlink $standby->arming_dir . "/$file";
$standby->append_conf('postgresql.conf', "action_reconcile.failover_policy = 'auto'");
because('does not arm itself: the token file is not on this host', 'told to arm itself, it holds without a token');
put_token($contents);
because('does not arm itself: the token file is not one for a standby', 'and with that of its primary');

put_token($contents =~ s/^place .*/place standby/mr);
$standby->sql('SELECT reconcile.wake()');
is($standby->wait_sql('SELECT armed FROM reconcile.engine()', 't'), 't', 'with a token for a standby it arms itself');
is($standby->sql("SELECT reason || ': ' || disarmed_because FROM reconcile.arming"),
	'promoted to timeline 2; action_reconcile.failover_policy is auto: it was armed on another timeline: it has been restored or promoted since', 'and says so');
is($standby->wait_state($action{$_}, 'succeeded'), 'succeeded', "$_: succeeded") foreach qw(sent unsent);
is($standby->events($action{sent}), 'submit presume ask found', 'what the primary had sent was asked about');
is($provider->summary($_)->{deliveries}, 1, "$_: one delivery, by whomever") foreach qw(sent unsent);
is_deeply($provider->duplicates($_), {}, "$_: no second effect") foreach qw(sent unsent);
$standby->assert_consistent('the standby');

# A restart does not need the token of a standby again.
$standby->restart;
is($standby->wait_sql('SELECT armed FROM reconcile.engine() WHERE worker_pid = lock_holder_pid', 't'), 't', 'restarted, it is armed still');

# ---------------------------------------------------------------- set back to before a stop

$standby->sql("SELECT reconcile.pause('unsent', 'a test')");
my $withdrawn = $standby->submit('unsent', { withdrawn => 1 });
my $data = $standby->data_dir;
my $saved = PostgreSQL::Test::Utils::tempdir('saved');

$standby->stop;
system_or_bail('cp', '-a', "$data/.", $saved);
$standby->start;
$standby->sql("SELECT reconcile.cancel('$withdrawn', 'a test'); SELECT reconcile.resume('unsent')");
$standby->wait_sql('SELECT armed FROM reconcile.engine() WHERE worker_pid = lock_holder_pid', 't');
$standby->stop;
# File by file, so that they stay the files that they are.
system_or_bail('cp', '-r', "$saved/.", $data);
$standby->start;
$standby->wait_worker;
like($standby->wait_sql("SELECT armed || ' ' || disarmed_because FROM reconcile.engine()", qr/^false/), qr/^false .*rolled back$/,
	'set back to before a stop, it is disarmed, although nothing was sent since');
$standby->sql('CREATE TABLE more AS SELECT generate_series(1, 100000); SELECT pg_switch_wal(); CHECKPOINT');
like($standby->sql("SELECT armed || ' ' || disarmed_because FROM reconcile.engine()"), qr/^false .*rolled back$/, 'and stays so, whatever it writes');
is($standby->status($withdrawn)->{state}, 'planned', 'and does not send what had been withdrawn');

$standby->stop;
done_testing();
