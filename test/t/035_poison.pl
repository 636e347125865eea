# One row that cannot be claimed or recovered holds up no other: a trigger of
# somebody's own that raises, a session that keeps a row locked.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Crash qw(background);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('poison');

sub define
{
	my ($name, %provider) = @_;
	$node->define_provider($name, $provider->http_url($name), %provider);
	$node->define_operation($name, $name);
	return;
}

# ---------------------------------------------------------------- a trigger that raises at the claim

$provider->scenario('claim', {});
define('claim');
$node->sql(<<'SQL');
CREATE FUNCTION public.poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.payload ->> 'poison' = NEW.event THEN
		RAISE EXCEPTION 'poison at %', NEW.event;
	END IF;
	RETURN NULL;
END $$;
CREATE TRIGGER poison AFTER UPDATE ON reconcile.action FOR EACH ROW EXECUTE FUNCTION public.poison();
SQL
my $worker = $node->wait_worker;
my @ids = $node->submit_all(map { [ 'claim', { n => $_, $_ == 4 ? (poison => 'claim') : () } ] } 1 .. 9);
my $bad = splice @ids, 3, 1;
is($node->wait_state($_, 'succeeded'), 'succeeded', 'a trigger that raises at the claim: another action is sent') for @ids;
is($node->status($bad)->{state}, 'planned', 'the action at fault stays planned');
is($node->worker_pid, $worker, 'the worker lives');
is($provider->effects('claim'), 8, 'eight effects');
like($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE state = 'planned'", qr/^1$/), qr/^1$/, 'and only one waits');
$node->sql('DROP TRIGGER poison ON reconcile.action');
$node->sql("SELECT pg_terminate_backend($worker)");
$worker = $node->wait_worker($worker);
is($node->wait_state($bad, 'succeeded'), 'succeeded', 'without the trigger, a new engine sends it');
is($provider->effects('claim'), 9, 'nine effects');

# ---------------------------------------------------------------- a row that is held while it has to be recovered

$provider->preset('held', '10-hang');
$provider->scenario('free', {});
define('held', attempt_timeout => '30 s');
define('free');
my $held = $node->submit('held', {});
ok($provider->wait_writes('held', 1, 10), 'a request is open');
my $holder = background($node, "BEGIN; SELECT 1 FROM reconcile.action WHERE action_id = '$held' FOR UPDATE; SELECT pg_sleep(20); COMMIT;");
$node->wait_sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%FOR UPDATE%pg_sleep%' AND pid <> pg_backend_pid() AND wait_event = 'PgSleep'", qr/^1$/);
$node->set_conf('action_reconcile.drain_timeout', '0');
$node->sql("SELECT pg_terminate_backend($worker)");
$node->wait_worker($worker);
my $free = $node->submit('free', {});
is($node->wait_state($free, 'succeeded'), 'succeeded', 'a held row: the successor works meanwhile');
is($node->status($held)->{state}, 'submitted', 'a held row: it is left as it is');
$node->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%FOR UPDATE%pg_sleep%' AND pid <> pg_backend_pid()");
is($node->wait_state($held, 'succeeded'), 'succeeded', 'a held row: recovered and settled once it is free');
like($node->events($held), qr/^submit claim (recover|answer_lost) ask found$/, 'a held row: as unknown, by a lookup');
is($provider->deliveries('held'), 1, 'a held row: sent once');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
