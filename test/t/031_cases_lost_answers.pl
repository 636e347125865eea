# How people were bitten by answers that never came, and the outcome that is
# right: a slow success, a reply that is lost, a connection that dies, a
# gateway that gives up first, a list that lags behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use HTTP::Tiny;
use JSON::PP;
use Test::More;

use ActionReconcile::Crash qw(effects_of story_problems);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('cases');
my $reader = HTTP::Tiny->new(timeout => 10, proxy => undef, http_proxy => undef, https_proxy => undef);

# A provider with this scenario, and an operation of the same name.
sub define
{
	my ($name, $windows, %operation) = @_;
	$node->define_provider($name, $provider->http_url($name), %$windows);
	$node->define_operation($name, $name, on_absent => 'replace', %operation);
	return;
}

# How long after the end of the attempt it was first asked, less what was due.
sub patience
{
	my ($id) = @_;
	return $node->sql(<<"SQL");
SELECT extract(epoch FROM min(l.asked_at) - max(t.ended_at)) - max(t.late_arrival_us + t.window_us) / 1000000.0
  FROM reconcile.lookup l JOIN reconcile.attempt t USING (action_id) WHERE action_id = '$id'
SQL
}

# What is true of every case here: settled by one found object, told in one story.
sub check_found
{
	my ($title, $name, $id, %more) = @_;
	my $status = $node->status($id);
	my $ledger = $provider->ledger($name);
	my ($effect) = grep { $_->{ref} eq $status->{client_reference} } @{ $ledger->{effects} };
	my $history = $node->history($id);
	my @lookups = @{ $node->lookups($id) };

	is($status->{state}, 'succeeded', "$title: succeeded");
	is("$status->{delivery}/$status->{acceptance} $status->{status}",
		'confirmed/accepted CONFIRMED', "$title: confirmed and accepted");
	is($status->{attempts}, 1, "$title: one attempt");
	is(effects_of($ledger)->{ $status->{client_reference} }, 1, "$title: one effect");
	is($status->{artifact_id}, $effect->{id}, "$title: the provider's id was learned from the lookup");
	is(join(' ', map { $_->{event} } @$history), 'submit claim answer_lost ask found', "$title: the story in the history");
	is($history->[2]{to_state}, 'outcome_unknown', "$title: no answer is no failure");
	is($history->[2]{evidence}{transfer}{proves}, $more{proves} // 'unknown', "$title: what the transfer proves is in the history");
	is($history->[4]{evidence}{lookup}{result}, 'found', "$title: and so is the evidence that settled it");
	is(scalar @lookups, 1, "$title: one question was enough");
	cmp_ok($lookups[0]{asked_us}, '>=', $node->attempt($id)->[0]{gate_us}, "$title: asked when the gate was open");
	cmp_ok(patience($id), '>=', 0, "$title: the window counts from the end of the attempt plus the late arrival");
	return;
}

sub check_scenario
{
	my ($title, $name, @ids) = @_;
	is(join("\n", story_problems($node, $provider, $name, @ids)), '', "$title: nothing twice, nothing lost");
	return;
}

# ---------------------------------------------------------------- slow success, sent again

$provider->preset('slow', 'case-01-slow-success', hold_s => 1.5);
define('slow', { attempt_timeout => '0.6 s', late_arrival_max => '1.3 s' });
my $slow = $node->submit('slow', { customer => 7, amount => 50 }, intent_key => 'K');
$node->wait_state($slow, 'outcome_unknown');
is($provider->effects('slow'), 0, 'slow success: not carried out yet when the time was up');
my $again = $node->rows(q{SELECT * FROM reconcile.submit('slow', '{"amount": 50, "customer": 7}', intent_key => 'K')})->[0];
is($again->{action_id}, $slow, 'slow success: the same intent is the same action');
is($again->{joined}, JSON::PP::true, 'slow success: and the caller is told that it was joined');
is("$again->{state} $again->{status}", 'outcome_unknown DENIED_UNRESOLVED', 'slow success: where it stands');
like($again->{advice}, qr/not known yet: do not repeat/, 'slow success: what a caller may do');
is($node->sql('SELECT count(*) FROM reconcile.action'), 1, 'slow success: nothing else was recorded');
like($node->sql_error(q{SELECT * FROM reconcile.submit('slow', '{"amount": 51, "customer": 7}', intent_key => 'K');}),
	qr/^23505/, 'slow success: the key with another payload is refused');
$node->wait_state($slow, 'succeeded');
check_found('slow success', 'slow', $slow);
check_scenario('slow success', 'slow', $slow);
is($node->rows(q{SELECT * FROM reconcile.submit('slow', '{"amount": 50, "customer": 7}', intent_key => 'K')})->[0]{status},
	'CONFIRMED', 'slow success: the same key tells the end of the story');
is($provider->deliveries('slow'), 1, 'slow success: one request, for ever');
is($node->sql("SELECT string_agg(state || ' ' || (joined_by = session_user), ', ' ORDER BY joined_at) FROM reconcile.joined_submission WHERE action_id = '$slow'"),
	'outcome_unknown true, succeeded true', 'slow success: who submitted it again, and where it stood, is kept');
is($node->sql("SELECT jsonb_array_length(reconcile.receipt('$slow') -> 'joined_submissions')"), 2, 'slow success: and in the receipt');
like($node->sql_error('DELETE FROM reconcile.joined_submission;'), qr/^55000/, 'slow success: for good');

# ---------------------------------------------------------------- executed after we gave up

$provider->preset('late', 'case-02-reply-lost', commit_delay_s => 1.2);
define('late', { attempt_timeout => '0.5 s', late_arrival_max => '1 s', consistency_window => '0.4 s' });
my $late = $node->submit('late', { side => 'buy' });
$node->wait_state($late, 'outcome_unknown');
my $naive = $reader->get($provider->http_url('late') . "/effects?ref=$late");
is_deeply(decode_json($naive->{content})->{data}, [], 'executed late: who asks at once is told that there is nothing');
$node->wait_state($late, 'succeeded');
check_found('executed late', 'late', $late);
check_scenario('executed late', 'late', $late);
is($provider->reads('late'), 2, 'executed late: only we asked early');

# ---------------------------------------------------------------- a connection that dies

foreach my $how (qw(reset close))
{
	my $title = "dying connection, $how";
	$provider->preset("dying$how", "11-keepalive-$how");
	define("dying$how", {});
	my $first = $node->submit("dying$how", { n => 'A' });
	is($node->wait_state($first, 'succeeded'), 'succeeded', "$title: A is answered");
	my $second = $node->submit("dying$how", { n => 'B' });
	$node->wait_state($second, 'succeeded');
	check_found($title, "dying$how", $second);
	my @writes = grep { $_->{kind} eq 'write' } @{ $provider->ledger("dying$how")->{requests} };
	is(scalar @writes, 2, "$title: one request for each");
	isnt($writes[0]{connection_id}, $writes[1]{connection_id}, "$title: each on a connection of its own");
	check_scenario($title, "dying$how", $first, $second);
}

# ---------------------------------------------------------------- a gateway that gives up first

my %gateway = (
	'502-html' => qr/502 Bad Gateway/,
	'503-html' => qr/503 Service Unavailable/,
	'504-html' => qr/504 Gateway Time-out/,
	'524-html' => qr/524 Timeout/,
	'500-json' => qr/"error": ?"internal"/);
my %behind;
foreach my $kind (sort keys %gateway)
{
	$provider->preset("gw$kind", "case-05-$kind", commit_delay_s => 1);
	define("gw$kind", { late_arrival_max => '1.2 s' });
}
$behind{$_} = $node->submit("gw$_", { vm => $_ }) foreach sort keys %gateway;
foreach my $kind (sort keys %gateway)
{
	my $title = "gateway $kind";
	my ($code) = $kind =~ /^(\d+)/;
	my $id = $behind{$kind};

	$node->wait_state($id, 'outcome_unknown|reconciling|succeeded');
	is($node->history($id)->[2]{standing}, 'pending/pending', "$title: a gateway's word is no verdict");
	$node->wait_state($id, 'succeeded');
	check_found($title, "gw$kind", $id, proves => 'answered');
	my $transfer = $node->history($id)->[2]{evidence}{transfer};
	is("$transfer->{http_status} $transfer->{answer}", "$code unknown", "$title: the status is kept, and what it means");
	like($node->sql("SELECT convert_from(response_body, 'UTF8') FROM reconcile.attempt WHERE action_id = '$id'"),
		$gateway{$kind}, "$title: the body is kept");
	check_scenario($title, "gw$kind", $id);
}

# ---------------------------------------------------------------- a list that lags behind

my %lagging = (
	list => {},
	object => {
		kind => 'get_by_reference',
		path => '/effects/{client_reference}',
		items_path => undef,
		absent_statuses => '{404}'
	});
my %hidden;
foreach my $kind (sort keys %lagging)
{
	$provider->preset("lag$kind", 'case-13-lagging-index', visibility_lag_s => 1.5);
	define("lag$kind", { attempt_timeout => '0.5 s', consistency_window => '1.5 s' }, lookup => $lagging{$kind});
	my $title = "lagging $kind";
	my $id = $hidden{$kind} = $node->submit("lag$kind", { coin => 18 });

	ok($provider->wait_effects("lag$kind", 1, 10), "$title: carried out at once");
	my $ask = $kind eq 'list' ? "/effects?ref=$id" : "/effects/$id";
	my $early = $reader->get($provider->http_url("lag$kind") . $ask);
	is($early->{status}, $kind eq 'list' ? 200 : 404, "$title: who asks at once is told that there is nothing");
	is_deeply(decode_json($early->{content})->{data}, [], "$title: in so many words") if $kind eq 'list';
}
foreach my $kind (sort keys %lagging)
{
	my $title = "lagging $kind";
	my $id = $hidden{$kind};

	$node->wait_state($id, 'succeeded');
	check_found($title, "lag$kind", $id);
	check_scenario($title, "lag$kind", $id);
	is($provider->reads("lag$kind"), 2, "$title: nobody but us asked inside the window");
	is($provider->deliveries("lag$kind"), 1, "$title: one request, for ever");
}

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing();
