# Traps that real providers set: a quota that looks like a refusal, a success
# that says nothing, a conflict with oneself.  Each by a definition such as an
# integrator would write, against answers as these providers give them.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use JSON::PP;
use Test::More;

use ActionReconcile::Keys;
use ActionReconcile::Profiles qw(adopt hasten);
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Profiles::node('traps', map { $_ => 'Bearer test' } qw(slack square));
my $k = ActionReconcile::Keys->new($node, $provider);
my %document;

my $lost = { then => 'close' };
my $never = { then => 'close', commit => 'never' };
my $resent = 'submit claim answer_lost resend';

# A profile against a scenario, both under this name, and one action of its only operation.
sub play
{
	my ($name, $profile, $spec, $payload, %submit) = @_;
	$provider->scenario($name, { %{ $document{$profile}{scenario} // {} }, %$spec });
	my %overrides = (base_url => $provider->http_url($name), allow_http => \1, allow_private_addresses => \1,
		connect_timeout => '10 seconds', attempt_timeout => '20 seconds', late_arrival_max => '100 milliseconds');
	my ($operation) = split / /, $node->sql('SELECT array_to_string(operations, \' \') FROM reconcile.define_provider('
		. join(', ', map { ActionReconcile::Node::literal($_) } $document{$profile}{profile}, \%overrides, $name) . ')');
	hasten($node, $name);
	$k->{ids}{$name} = $node->submit($operation, $payload // $document{$profile}{payload}, %submit);
	return;
}

sub profile
{
	my ($name, $payload, $scenario, %operation) = @_;
	my %rest = (profile_version => 1, provider => { base_url => 'https://example.invalid' });
	$_->{because} = 'as its documentation says' foreach @{ $operation{answers} // [] };
	$document{$name} = { profile => { profile => $name, %rest, operations => { "$name.do" => \%operation } }, payload => $payload, scenario => $scenario };
	return;
}

my %window = (consistency_window => '5 minutes', window_source => 'documented');

# ---------------------------------------------------------------- Salesforce: a quota is a 403, and 403 is also a refusal

profile('salesforce', { LastName => 'Lovelace' }, {},
	method => 'PATCH', effect => 'create', path => '/contacts/{client_reference}', artifact_path => '$.id', claims => 'RECONCILABLE',
	answers => [ { statuses => [403], body_path => '$[*] ? (@.errorCode == "REQUEST_LIMIT_EXCEEDED")', class => 'throttled' } ],
	lookups => [ { kind => 'get_by_reference', path => '/contacts/{client_reference}', absent_statuses => [404], reference_path => '$.ref',
			artifact_path => '$.id', %window } ]);
my $quota = { status => 403, body => [ { errorCode => 'REQUEST_LIMIT_EXCEEDED', message => 'TotalRequests Limit exceeded.' } ] };
my $rights = { status => 403, body => [ { errorCode => 'INSUFFICIENT_ACCESS', message => 'insufficient access rights' } ] };
my $page = { status => 403, body => '<html>Forbidden by the gateway</html>', commit_delay_s => 0 };
play('salesforce-quota', 'salesforce', { write => [ $quota, $quota ] });
play('salesforce-rights', 'salesforce', { write => [$rights] });
play('salesforce-gateway', 'salesforce', { write => [$page] });
play('salesforce-lookup', 'salesforce', { write => [$lost], read => [ $quota, $rights, $page ] });

# ---------------------------------------------------------------- Linear: a limit is a 400, an error a 200

sub graphql { my (%data) = @_; return { status => 200, body => { data => { issueCreate => \%data } } }; }
profile('linear', { title => 'T', team => 'x' }, { ref_key => 'variables.input.id', write_default => graphql(success => \1, issue => { id => '{{id}}' }) },
	path => '/graphql', artifact_path => '$.data.issueCreate.issue.id', claims => 'RECONCILABLE',
	body_document => { query => 'mutation ($input: IssueCreateInput!) { issueCreate(input: $input) { success issue { id } } }',
		variables => { input => { id => '{client_reference}', title => '{title}', teamId => '{team}' } } },
	answers => [
		{ statuses => [ 400, 429 ], body_path => '$.errors[*].extensions ? (@.code == "RATELIMITED")', class => 'throttled' },
		{ statuses => [200], body_path => '$.data.issueCreate ? (@.success == true)', class => 'accepted' },
		{ statuses => [200], body_path => '$.data.issueCreate ? (@.success == false)', class => 'rejected' },
		{ statuses => [200], class => 'unknown' } ],
	lookups => [ { kind => 'search', method => 'POST', path => '/graphql/search', body => { filter => { ref => '{client_reference}' } },
			items_path => '$.data[*]', reference_path => '$.ref', artifact_path => '$.id', incomplete_if => '$.errors', %window } ]);
my $limited = { status => 400, body => { errors => [ { message => 'Rate limit exceeded', extensions => { code => 'RATELIMITED', type => 'ratelimited' } } ] } };
my $invalid = { status => 400, body => { errors => [ { message => 'Argument Validation Error', extensions => { code => 'INVALID_INPUT' } } ] } };
play('linear-limited', 'linear', { write => [ $limited, $limited ] });
play('linear-invalid', 'linear', { write => [$invalid] });
play('linear-no', 'linear', { write => [ { %{ graphql(success => \0) }, commit => 'never' } ] });
play('linear-partial', 'linear', { write => [ { status => 200, body => { data => undef, errors => [ { message => 'timeout' } ] } } ] });
play('linear-search-limited', 'linear', { write => [$lost], read => [ $limited, { status => 200, body => { data => [], errors => [ {} ] } } ] });

# ---------------------------------------------------------------- Square: cancelling by key succeeds on nothing

profile('square-pay', { amount => 100 }, { key_body => 'idempotency_key', ref_key => 'reference_id' },
	path => '/payments', artifact_path => '$.id', claims => 'RECONCILABLE', on_absent => 'replace',
	body_document => { idempotency_key => '{idempotency_key}', reference_id => '{client_reference}', amount => '{amount}' },
	lookups => [ { kind => 'list_scan', path => '/payments?since={since_unix}', items_path => '$.data[*]', reference_path => '$.ref', artifact_path => '$.id', %window } ]);
my $nothing = { status => 200, body => {}, commit => 'never' };
profile('square-cancel', { key => 'k', reference => 'r' }, {},
	path => '/payments/cancel', body_document => { idempotency_key => '{key}' },
	answers => [ { statuses => [200], class => 'unknown' } ]);
profile('square-cancel-seen', { payment => 'theirs' }, { preload => [ { id => 'p1', ref => 'theirs', resource => 'payments', status => 'COMPLETED' } ] },
	effect => 'update', path => '/payments/{payment}/cancel', body_document => {}, claims => 'RECONCILABLE',
	answers => [ { statuses => [200], class => 'unknown' } ],
	lookups => [ { kind => 'get_by_reference', path => '/payments/{payment}', absent_statuses => [404],
			match_values => { '$.status' => 'CANCELED', '$.ref' => '{payment}' }, %window } ]);
play('pay-late', 'square-pay', { write => [$lost], visibility_lag_s => 0.2 });
play('cancel-blind', 'square-cancel', { write => [$nothing] });
play('cancel-seen', 'square-cancel-seen', { write => [$nothing] });
play('cancel-done', 'square-cancel-seen', { read => [ {}, { status => 200, body => { id => 'p1', ref => 'theirs', status => 'CANCELED' } } ],
		write => [ { %$nothing, commit => 'before' } ] });

# ---------------------------------------------------------------- a limit on the second attempt, by Stripe's own profile

my $busy = { status => 429, body => { error => { type => 'invalid_request_error', code => 'lock_timeout' } } };
my $rate = { status => 429, headers => { 'Retry-After' => '0' }, body => { error => { type => 'rate_limit_error', message => 'Too many requests' } } };
sub stripe
{
	my ($name, @steps) = @_;
	$provider->scenario($name, { imitate => 'stripe', write => \@steps });
	adopt($node, 'stripe', $provider->http_url($name), provider => $name, attempt_timeout => '20 seconds');
	hasten($node, $name);
	$k->{ids}{$name} = $node->submit("$name.payment_intent.create", { amount => 1099, currency => 'eur' });
	return;
}
stripe('stripe-rate', $lost, $rate, $rate);
stripe('stripe-rate-first', $rate);
stripe('stripe-lock', $lost, $busy);
stripe('stripe-lock-first', $busy);

# ---------------------------------------------------------------- conflicts of an operation with a key (case 10)

my @conflicts = map { { statuses => '{409}', body_path => "\$ ? (\@.code == \"$_->[0]\")", class => $_->[1] } }
  [ in_progress => 'in_progress' ], [ exists => 'already_exists' ], [ slot_taken => 'rejected' ];
sub conflict { return { status => 409, body => { code => $_[0] }, commit => $_[1] // 'never' }; }
$k->start('exists', { write => [ conflict('exists', 'before') ] }, answers => \@conflicts);
$k->start('taken', { write => [ conflict('slot_taken') ] }, answers => \@conflicts);
$k->start('taken-second', { write => [ $lost, conflict('slot_taken') ] }, answers => \@conflicts);
$k->start('unmapped', { write => [ conflict('whatever') ] });

# ---------------------------------------------------------------- 200 with an error inside (case 44)

my @says = (
	{ statuses => '{200}', body_path => '$ ? (@ == 1)', class => 'accepted' },
	{ statuses => '{200}', body_path => '$ ? (@.error starts with "HTTP 429")', class => 'not_executed' },
	{ statuses => '{200}', body_path => '$.error', class => 'rejected' },
	{ statuses => '{200}', class => 'unknown' });
my %no_id = (artifact_path => undef, answers => \@says);
sub body { return { status => 200, body => $_[0], commit => $_[1] // 'never' }; }
$k->start('says-one', { write => [ { raw => "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\n1", commit => 'before' } ] }, %no_id);
$k->start('says-inner', { write => [ body({ error => 'HTTP 429 of the API behind' }) ],
		write_default => { status => 200, raw => "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1" } }, %no_id);
$k->start('says-no', { write => [ body({ error => 'invalid_auth' }) ] }, %no_id);
$k->start('says-text', { write => [ body('no_service') ] }, %no_id, lookups => [ {} ]);

# ---------------------------------------------------------------- Retry-After elsewhere than on a 429 (case 49)

my %asked = (none => undef, zero => '0', hours => '36000', past => 'Sun, 06 Nov 1994 08:49:37 GMT', far => 'Fri, 31 Dec 2099 23:59:59 GMT', text => 'abc', minus => '-1');
foreach my $kind (sort keys %asked)
{
	my %headers = defined $asked{$kind} ? (headers => { 'Retry-After' => $asked{$kind} }) : ();
	# A poll that is told to come back in hours comes back when its own rule says so.
	$k->start("later-$kind", { accept => 'body', write => [ {%headers} ], read => [ { status => 503, %headers } ] }, lookup => 0, lookups => undef,
		poll => { url_path => '$.status_url', state_path => '$.status', accepted => '{succeeded}', rejected => '{failed}' });
	$k->start("second-$kind", { write => [ $lost, { status => 503, %headers }, { status => 429, %headers } ] }, retry_after_max => '500 ms',
		answers => [ { statuses => '{429,503}', class => 'throttled' } ]);
	$k->start("asked-$kind", { write => [$lost], read => [ { status => 429, %headers }, { status => 503, %headers } ] }, lookups => [ {} ]);
}

# ---------------------------------------------------------------- what the ledger says

my $twice = 'submit claim not_executed claim not_executed claim answered_accepted';
foreach my $name ('salesforce-quota', 'linear-limited')
{
	$k->check($name, state => 'succeeded', events => $twice, effects => 1, deliveries => 3);
	is(join(' ', map { "$_->{transfer}{answer} $_->{transfer}{rule}" } $k->evidence($name, 'not_executed')), 'throttled 1 throttled 1', "$name: by the rule");
	is($node->sql("SELECT paused_at FROM reconcile.provider WHERE provider = '$name'"), '', "$name: a limit is no reason to stop");
}
$k->check('salesforce-rights', state => 'rejected', events => 'submit claim answered_rejected', effects => 0, deliveries => 1);
$k->check('salesforce-gateway', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
is(($k->evidence('salesforce-gateway', 'answer_lost'))[0]{transfer}{answer}, 'unknown', "salesforce-gateway: a page in its place is not the provider's word");
$k->check('salesforce-lookup', state => 'succeeded', events => 'submit claim answer_lost' . ' ask inconclusive' x 3 . ' ask found', effects => 1, deliveries => 1);

$k->check('linear-invalid', state => 'rejected', events => 'submit claim answered_rejected', effects => 0, deliveries => 1);
$k->check('linear-no', state => 'rejected', events => 'submit claim answered_rejected', effects => 0, deliveries => 1);
$k->check('linear-partial', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$k->check('linear-search-limited', state => 'succeeded', events => 'submit claim answer_lost ask inconclusive ask inconclusive ask found', effects => 1, deliveries => 1);

$k->check('pay-late', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$k->check('cancel-blind', state => 'manual_review', events => 'submit claim answer_lost no_query_surface', effects => 0, deliveries => 1);
is($node->status($k->id('cancel-blind'))->{status}, 'DENIED_UNRESOLVED', 'cancel-blind: a success on nothing is no success');
$k->check('cancel-seen', state => 'safe_to_retry', events => qr/^submit look_again looked_before claim answer_lost( ask absent_once)* ask absent$/,
	effects => 0, deliveries => 1);
$k->check('cancel-done', state => 'succeeded', events => 'submit look_again looked_before claim answer_lost ask found', effects => 1, deliveries => 1, artifact => undef);

$k->check('stripe-rate', state => 'succeeded', events => "$resent not_executed resend not_executed resend answered_accepted", effects => 1,
	keys => 'new replayed replayed replayed');
$k->check('stripe-rate-first', state => 'succeeded', events => 'submit claim not_executed claim answered_accepted', effects => 1, deliveries => 2);
$k->check('stripe-lock', state => 'succeeded', events => "$resent answer_lost resend answered_accepted", effects => 1);
is(($k->evidence('stripe-lock', 'answer_lost'))[1]{transfer}{answer}, 'in_progress', 'stripe-lock: this one may have begun');
$k->check('stripe-lock-first', state => 'succeeded', events => "$resent answered_accepted", effects => 1);

$k->check('exists', state => 'succeeded', events => "$resent answer_lost ask found", effects => 1, deliveries => 2);
is(join(' ', map { $_->{transfer}{answer} } $k->evidence('exists', 'answer_lost')), 'already_exists already_exists', 'exists: twice, then the list is asked');
$k->check('taken', state => 'rejected', events => 'submit claim answered_rejected', effects => 0, deliveries => 1);
$k->check('taken-second', state => 'succeeded', events => "$resent answered_rejected ask found", effects => 1, deliveries => 2);
$k->check('unmapped', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);

$k->check('says-one', state => 'succeeded', events => 'submit claim answered_accepted', effects => 1, deliveries => 1,
	artifact => $node->status($k->id('says-one'))->{client_reference});
$k->check('says-inner', state => 'succeeded', events => 'submit claim not_executed claim answered_accepted', effects => 1, deliveries => 2,
	artifact => $node->status($k->id('says-inner'))->{client_reference});
$k->check('says-no', state => 'rejected', events => 'submit claim answered_rejected', effects => 0, deliveries => 1);
$k->wait_event('says-text', 'inconclusive');
is($node->status($k->id('says-text'))->{delivery}, 'confirmed', 'says-text: the provider has answered, and nobody knows what');
is($node->status($k->id('says-text'))->{status}, 'DENIED_UNRESOLVED', 'says-text: so it is no success');
is($provider->deliveries('says-text'), 1, 'says-text: and it is not sent again');

foreach my $kind (sort keys %asked)
{
	$k->check("later-$kind", state => 'succeeded', events => 'submit claim answered_async poll_accepted', effects => 1, deliveries => 1);
	$k->check("second-$kind", state => 'succeeded', events => "$resent not_executed resend not_executed resend answered_accepted", effects => 1, deliveries => 4);
	is(join(' ', map { $_->{transfer}{retry_after} // '' } $k->evidence("second-$kind", 'not_executed')),
		join(' ', ($asked{$kind} // '') x 2), "second-$kind: what was asked for is kept");
	$k->check("asked-$kind", state => 'succeeded', events => 'submit claim answer_lost ask inconclusive ask inconclusive ask found', effects => 1, deliveries => 1);
}

$node->assert_consistent('in the end');
$node->stop;
done_testing();
