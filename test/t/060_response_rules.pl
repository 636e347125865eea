# What an answer means is a fact about the provider: a conflict that is ours or
# somebody else's, an error inside a 200, a throttle that proves that nothing was
# done, and how long a provider may ask for patience.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('rules');
my %ids;

# A scenario with these answers to its first writes, and an operation with these rules.
sub define
{
	my ($name, $steps, $rules, %operation) = @_;
	my $position = 0;
	$provider->scenario($name, { write => $steps });
	$node->define_provider($name, $provider->http_url($name), attempt_timeout => '5 s');
	$node->define_operation($name, $name, %operation);
	$node->sql($node->insert('response_rule', operation => $name, position => ++$position, because => 'the test says so', %$_))
	  for @$rules;
	$ids{$name} = $node->submit($name, { amount => 5 });
	return;
}

sub check
{
	my ($name, $state, $events, $effects, $what) = @_;
	my $id = $ids{$name};
	is($node->wait_state($id, "^$state\$"), $state, "$what: $state");
	is($node->events($id), $events, "$what: the story");
	is($provider->effects($name), $effects, "$what: $effects effects at the provider");
	is($provider->duplicates($name), 0, "$what: none of them twice") if ref $provider->duplicates($name) eq '';
	return $node->history($id);
}

# ---------------------------------------------------------------- conflicts

my @conflicts = (
	{ statuses => '{409}', body_path => '$ ? (@.code == "in_progress")', class => 'in_progress' },
	{ statuses => '{409}', body_path => '$ ? (@.code == "exists")', class => 'already_exists' },
	{ statuses => '{409}', body_path => '$ ? (@.code == "slot_taken")', class => 'rejected' });
define('running', [ { status => 409, body => { code => 'in_progress' }, commit_delay_s => 0.2 } ], \@conflicts);
define('exists', [ { status => 409, body => { code => 'exists' }, commit_delay_s => 0 } ], \@conflicts);
define('taken', [ { status => 409, body => { code => 'slot_taken' } } ], \@conflicts);
define('unmapped', [ { status => 409, body => { code => 'whatever' }, commit_delay_s => 0 } ], \@conflicts);

# ---------------------------------------------------------------- an error inside a 200

my @ok_decides = (
	{ statuses => '{200}', body_path => '$ ? (@.ok == false)', class => 'rejected' },
	{ statuses => '{200}', body_path => '$.data.statuses[*].error', class => 'rejected' },
	{ statuses => '{200}', body_path => '$ ? (@.error.code == 429)', class => 'not_executed' },
	{ statuses => '{200}', body_path => '$.id', class => 'accepted' },
	{ statuses => '{200}', class => 'unknown' });
define('not-ok', [ { status => 200, body => { ok => \0, error => 'invalid_auth' }, commit => 'never' } ], \@ok_decides);
define('inner-status', [ { status => 200, body => { status => 'ok', data => { statuses => [ { error => 'balance' } ] } }, commit => 'never' } ],
	\@ok_decides);
define('inner-throttle', [ { status => 200, body => { error => { code => 429 } }, commit => 'never' } ], \@ok_decides);
define('no-json', [ { status => 200, body => 'no_service', commit => 'never' } ], \@ok_decides);
define('neither', [ { status => 200, body => { hello => 1 }, commit => 'never' } ], \@ok_decides);
define('success', [ { status => 200 } ], \@ok_decides);

# ---------------------------------------------------------------- patience that is asked for

my @throttle = ({ statuses => '{429}', class => 'throttled' }, { statuses => '{503}', class => 'not_executed' });
my %asked = (
	'ra-none' => undef, 'ra-zero' => '0', 'ra-hours' => '36000', 'ra-past' => 'Sun, 06 Nov 1994 08:49:37 GMT',
	'ra-far' => 'Fri, 31 Dec 2099 23:59:59 GMT', 'ra-text' => 'abc', 'ra-minus' => '-1', 'ra-huge' => '99999999999999999999');
for my $name (sort keys %asked)
{
	my %headers = defined $asked{$name} ? (headers => { 'Retry-After' => $asked{$name} }) : ();
	define($name, [ { status => 429, %headers } ], \@throttle, retry_after_max => '1500 ms');
}
define('unavailable', [ { status => 503, headers => { 'Retry-After' => '1' } } ], \@throttle);
define('unstated', [ { status => 429, headers => { 'Retry-After' => '1' }, commit_delay_s => 0 } ], []);

# ---------------------------------------------------------------- outcomes

my $history = check('running', 'succeeded', 'submit claim answer_lost ask found', 1, 'still running');
is($history->[2]{evidence}{transfer}{rule}, 1, 'still running: the history names the rule');
is($history->[2]{evidence}{transfer}{operation_version}, 1, 'still running: and the version');
$history = check('exists', 'succeeded', 'submit claim answer_lost ask found', 1, 'exists already');
is($history->[2]{evidence}{transfer}{answer}, 'already_exists', 'exists already: by the rule');
check('taken', 'rejected', 'submit claim answered_rejected', 0, 'taken by somebody else');
$history = check('unmapped', 'succeeded', 'submit claim answer_lost ask found', 1, 'an unmapped conflict');
is($history->[2]{evidence}{transfer}{rule}, undef, 'an unmapped conflict: no rule decided');

check('not-ok', 'rejected', 'submit claim answered_rejected', 0, 'ok is false');
check('inner-status', 'rejected', 'submit claim answered_rejected', 0, 'an error in the list');
check('inner-throttle', 'succeeded', 'submit claim not_executed claim answered_accepted', 1, 'a throttle inside');
is($provider->deliveries('inner-throttle'), 2, 'a throttle inside: sent again, for it was proof');
$node->wait_sql("SELECT event FROM reconcile.action WHERE action_id = '$ids{'no-json'}'", qr/inconclusive/);
is($node->status($ids{'no-json'})->{delivery}, 'confirmed', 'no JSON: the provider has answered');
is($node->status($ids{'no-json'})->{status}, 'DENIED_UNRESOLVED', 'no JSON: but nobody knows what');
is($provider->deliveries('no-json'), 1, 'no JSON: it is not sent again');
check('neither', 'safe_to_retry', 'submit claim answer_lost ask absent_once ask absent', 0, 'neither yes nor no');
check('success', 'succeeded', 'submit claim answered_accepted', 1, 'a success by the rule');

for my $name (sort keys %asked)
{
	$history = check($name, 'succeeded', 'submit claim not_executed claim answered_accepted', 1, "Retry-After $name");
	is($history->[2]{evidence}{transfer}{retry_after}, $asked{$name}, "Retry-After $name: kept in the history");
	my $pause = $node->sql(<<"SQL");
SELECT extract(epoch FROM max(recorded_at) FILTER (WHERE event = 'claim') - max(recorded_at) FILTER (WHERE event = 'not_executed'))
  FROM reconcile.history WHERE action_id = '$ids{$name}'
SQL
	my $long = $name =~ /hours|far|huge/ && $name ne 'ra-huge';
	cmp_ok($pause, '>=', $long ? 1.45 : 0.15, "Retry-After $name: not sooner");
	cmp_ok($pause, '<', 12, "Retry-After $name: not for hours");
}
check('unavailable', 'succeeded', 'submit claim not_executed claim answered_accepted', 1, 'a 503 that says it did nothing');
check('unstated', 'succeeded', 'submit claim answer_lost ask found', 1, 'a throttle that proves nothing');
is($provider->deliveries('unstated'), 1, 'a throttle that proves nothing: sent once');

like($node->sql_error($node->insert('response_rule', operation => 'success', position => 9, class => 'accepted', because => 'x')),
	qr/response_rule_says_something/, 'a rule without a condition is refused');
like($node->sql_error($node->insert('response_rule', operation => 'success', position => 9, statuses => '{200}', class => 'accepted', because => ' ')),
	qr/response_rule_because/, 'a rule without a source is refused');
like($node->sql_error($node->insert('response_rule', operation => 'success', position => 9, header_name => 'set-cookie', header_value => 'x',
			class => 'accepted', because => 'x')), qr/response_rule_header_name/, 'a header that is not kept is refused');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
