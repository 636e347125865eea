# Windows, lifetimes and due times count elapsed time, and mean an instant,
# whatever the time zone of the session is: just before clocks are put forward
# or back, and before a day that an island left out.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::WallClock;

my @zones = ('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Pacific/Apia');

# The next day has 23, 25, 24.5 hours, or is another one, in one of the zones.
my %moments = (
	'2011-12-30 09:55:00' => 'Apia leaves a day out',
	'2025-03-09 06:55:00' => 'New York goes forward',
	'2025-03-30 00:55:00' => 'Berlin goes forward',
	'2025-04-05 14:55:00' => 'Lord Howe goes back by half an hour',
	'2025-10-26 00:55:00' => 'Berlin goes back');

my $provider = ActionReconcile::Provider->new;
my $clock = ActionReconcile::WallClock->new;
my ($first) = sort keys %moments;
$clock->set($first);
# Without a worker: the engine runs in a session that has the zone.
my $node = ActionReconcile::Node->create('dst', env => $clock->environment, preload => 0);

sub define
{
	my ($name, $preset, %more) = @_;
	$provider->preset($name, $preset);
	$node->define_provider($name, $provider->http_url($name), consistency_window => '1 day', breaker_after => undef, %{ delete $more{provider} // {} });
	$node->define_operation($name, $name, %more);
	return;
}

my %key = (key_body_path => '{key}', key_lifetime => '1 day', key_lifetime_source => 'documented', key_margin => '1 minute');
define('day', 'ok', %key);
define('month', 'ok', lookup => { consistency_window => '1 month', window_source => 'documented' });
$provider->scenario($_, { write_default => { then => 'close' } }) foreach qw(day month);
define('due', 'ok');

sub in_zone
{
	my ($zone, $statements) = @_;
	return $node->sql("SET timezone = '$zone'; $statements");
}

# What is read in each zone, which must be the same.
sub same_everywhere
{
	my ($title, $query) = @_;
	my %answers = map { in_zone($_, $query) => 1 } @zones;
	is(scalar(keys %answers), 1, "$title: the same in every zone") or diag(join "\n", sort keys %answers);
	return;
}

foreach my $moment (sort keys %moments)
{
	my $title = $moments{$moment};
	$clock->set($moment);
	my %spans;
	foreach my $zone (@zones)
	{
		my ($day, $month) = split /\n/, in_zone($zone, join '', map { "SELECT reconcile.submit('$_', jsonb_build_object('at', '$moment', 'in', '$zone'));" } qw(day month));
		s/^\((\S{36}),.*/$1/ foreach $day, $month;
		in_zone($zone, "CALL reconcile.run('20 s')");
		my $span = in_zone($zone, "SELECT string_agg(concat_ws(' ', a.operation, a.state, t.window_us,
				round(extract(epoch FROM a.eligible_at) - extract(epoch FROM t.ended_at), 1)), ', ' ORDER BY a.operation)
			FROM reconcile.action a JOIN reconcile.attempt t USING (action_id) WHERE a.action_id IN ('$day', '$month')");
		$spans{$span} = 1;
	}
	is(join('; ', keys %spans), 'day outcome_unknown 86400000000 86400.1, month outcome_unknown 2592000000000 2592000.1',
		"$title: a day is 24 hours for the engine in every zone, a month 30 days");
	same_everywhere("$title: when the window closes", "SELECT string_agg(extract(epoch FROM reconcile.window_open_until(a.action_id))::text, ' ' ORDER BY a.action_id)
		FROM reconcile.action a WHERE a.payload ->> 'at' = '$moment'");
	same_everywhere("$title: until when a key lives", "SELECT string_agg(reconcile.risk_of_repeating(a), ' ' ORDER BY a.action_id)
		FROM reconcile.action a WHERE a.operation = 'day' AND a.payload ->> 'at' = '$moment'");
}

# Case 50: an hour that there is twice, and one that there is not. Each is an instant, and is due once.
sub due_once
{
	my ($title, $local, $instant, %at) = @_;
	my $run = "CALL reconcile.run('20 s')";
	$clock->set($at{before});
	my $before = $provider->effects('due');
	my $id = in_zone('Europe/Berlin', "SELECT action_id FROM reconcile.submit('due', '{\"at\": \"$local\"}', not_before => '$local')");
	is($node->sql("SELECT due_at AT TIME ZONE 'UTC' FROM reconcile.action WHERE action_id = '$id'"), $instant, "$title: $local in Berlin is an instant");
	in_zone($_, $run) foreach @zones;
	is($provider->effects('due'), $before, "$title: nothing is sent before");
	$clock->set($at{after});
	in_zone($_, $run) foreach @zones;
	is($provider->effects('due'), $before + 1, "$title: sent then");
	$clock->set($at{later});
	in_zone($_, $run) foreach @zones;
	is($provider->effects('due'), $before + 1, "$title: and once");
	is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '$id'"), 'succeeded', "$title: it succeeded");
	return;
}
due_once('the hour that comes twice', '2025-10-26 02:30', '2025-10-26 01:30:00',
	before => '2025-10-26 01:29:00', after => '2025-10-26 01:30:05', later => '2025-10-26 02:30:05');
due_once('the hour that is left out', '2026-03-29 02:30', '2026-03-29 01:30:00',
	before => '2026-03-29 01:29:00', after => '2026-03-29 01:30:05', later => '2026-03-29 02:30:05');

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing();
