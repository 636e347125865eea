# A key of ours makes a provider remove duplicates: then, and only while the key
# is provably alive, the very same request may be sent again to learn what became
# of the first one.  The ledger says how often it happened: once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use HTTP::Tiny;
use Test::More;

use ActionReconcile::Crash qw(crash story_problems);
use ActionReconcile::Keys;
use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Relay;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('keys');
my $k = ActionReconcile::Keys->new($node, $provider);

my $lost = { then => 'close' };
my $never = { then => 'close', commit => 'never' };
my $resent = 'submit claim answer_lost resend';
my %only_replay = (lookups => [ $k->replay ]);

# ---------------------------------------------------------------- where the key goes, and how it looks

# place => [scenario, operation]; the provider keeps the key for the first request.
my %places = (
	'bare' => [ {}, {} ],
	'structured' => [ {}, { headers => { 'Idempotency-Key' => '"{idempotency_key}"' } } ],
	'other-header' => [ { key_header => 'PayPal-Request-Id' }, { headers => { 'PayPal-Request-Id' => 'x-{idempotency_key}' } } ],
	'body-path' => [ { key_body => 'meta.key' }, { headers => {}, key_body_path => '{meta,key}' } ],
	'document' => [ { key_body => 'key' },
		{ headers => {}, reference_body_path => undef,
			body_document => { key => '{idempotency_key}', ref => '{client_reference}', amount => '{amount}', note => 'no. {amount}' } } ],
	'template' => [ { key_body => 'key' },
		{ headers => {}, reference_body_path => undef, body_template => '{"key":"{idempotency_key}","ref":"{client_reference}"}' } ],
	'query' => [ { key_query => 'key' }, { headers => {}, path => '/effects?key={idempotency_key}&x=1' } ],
	# The path names the effect, so that is what it is known by.
	'path' => [ {}, { method => 'PUT', path => '/effects/{idempotency_key}', lookups => [ $k->replay ] } ]);
$k->start("place-$_", { write => [$lost], %{ $places{$_}[0] } }, %{ $places{$_}[1] }) foreach sort keys %places;

my %formats = (
	uuid => qr/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
	hex => qr/^[0-9a-f]{32}$/,
	base32hex => qr/^[0-9a-v]{26}$/,
	base62 => qr/^[0-9A-Za-z]{22}$/,
	reference => qr/^[0-9a-f-]{36}$/);
my %length = (uuid => 36, hex => 32, base32hex => 26, base62 => 22, reference => 200);
$k->start("format-$_", { write => [$lost] }, key_format => $_, key_max_length => $length{$_}) foreach sort keys %formats;

# ---------------------------------------------------------------- resends that prove nothing about the attempt before

my %throttle = (answers => [ { statuses => '{429}', class => 'throttled' } ]);
my @stored = (
	{ statuses => '{402}', header_name => 'idempotent-replayed', header_value => 'true', applies_to => 'replay', class => 'rejected', stored_reply => 'true' });
my @not_stored = ({ statuses => '{402}', applies_to => 'replay', class => 'rejected' });
my @of_the_first = ({ statuses => '{402}', applies_to => 'first', class => 'accepted' });
my $no = { status => 402, headers => { 'Idempotent-Replayed' => 'true' } };

$k->start('refused', { write => [ $lost, { status => 403 } ] });
$k->start('refused-absent', { write => [ $never, { status => 403 } ] });
$k->start('refused-keyed', { write => [ $lost, { status => 403 } ] }, %only_replay);
$k->start('throttled', { write => [ $lost, ({ status => 429, headers => { 'Retry-After' => '0' } }) x 2 ] }, %throttle);
$k->start('throttled-first', { write => [ { status => 429 } ] }, %throttle);
$k->start('unauthorized', { write => [ $lost, { status => 401 } ] });
$k->start('closed', { write => [ { %$lost, close_listener => \1 } ], own_port => \1 });
$k->start('stored-no', { write => [ $never, $no ] }, answers => \@stored);
$k->start('stored-no-keyed', { write => [ $never, $no ] }, answers => \@stored, %only_replay);
$k->start('no-without-rule', { write => [ $lost, $no ] });
$k->start('no-not-stored', { write => [ $lost, $no ] }, answers => \@not_stored);
$k->start('rule-of-the-first', { write => [ $never, $no ] }, answers => \@of_the_first);

# The provider has stored what it said, and that was no answer.
my %storing = (key_replay => 'stored_reply');
my $failed = { status => 500, commit => 'before' };
$k->start('stored-500', { write => [$failed] }, %storing);
$k->start('stored-500-absent', { write => [ { status => 500 } ] }, %storing);
$k->start('stored-500-keyed', { write => [$failed] }, %storing, %only_replay);
$k->start('reattempt', { write => [ { status => 500, commit => 'never' } ], key_replay => 'reattempt' }, key_replay => 'reattempt');

# The first request is still at work when the second one comes.
my @slow = ({ write => [ { hold_s => -1 } ] }, provider => { attempt_timeout => '1 s' });
my $patient = $k->replay(max_inconclusive => 1000);
$k->start('running', @slow, lookups => [ $patient, {} ]);
$k->start('running-storing', @slow, %storing, lookups => [ $patient, {} ]);
$k->start('running-keyed', @slow, %storing, lookups => [$patient]);
$k->start('running-on', { write => [ { %$failed, commit_delay_s => 0, status => 409, body => { code => 'in_progress' } } ],
		write_default => { status => 409, body => { code => 'in_progress' } } }, lookups => [ $k->replay(max_inconclusive => 3), {} ]);

# ---------------------------------------------------------------- how long a key lives

my %too_short = (key_lifetime => '20 s');		# an attempt may take as long
$k->start('too-short', { write => [$lost] }, %too_short);
$k->start('too-short-keyed', { write => [$lost] }, %too_short, %only_replay);
$k->start('short-enough', { write => [$lost] }, key_lifetime => '40 s');
$k->start('margin', { write => [$lost] }, key_margin => '3580 s');
$k->start('unknown-lifetime', { write => [$lost] }, key_lifetime => undef, key_lifetime_source => undef, lookups => [ {} ]);

# Proven not to have happened, it is replaced: with the key that does its work.
my %replaced = (on_absent => 'replace', lookups => [ {} ]);
$k->start('same-key', { write => [$never] }, %replaced);
$k->start('same-key-storing', { write => [$never] }, %replaced, %storing);
$k->start('dead-key', { write => [$never] }, %replaced, %too_short);
$k->start('stored-failure', { write => [ { status => 500 } ] }, %replaced, %storing);
$k->start('stored-failure-resent', { write => [ { status => 500 } ] }, %replaced, %storing, lookups => [ $k->replay, {} ]);
$k->start('failure-as-it-is', { write => [ { status => 500, commit => 'never' } ], key_replay => 'current_state' }, %replaced, key_replay => 'current_state');

# What providers answer a known key with, besides the same again.
my %conflict = (statuses => '{409}', body_path => '$.error.links.conflicting_resource_id');
$k->start('gocardless', { write => [$lost], key_replay => 'error_with_id' }, key_replay => 'current_state',
	answers => [ { %conflict, class => 'accepted', artifact_path => '$.error.links.conflicting_resource_id' } ]);
$k->start('paypal', { write => [$lost], key_replay => 'current_state' }, key_replay => 'current_state',
	answers => [ { applies_to => 'replay', statuses => '{200}', class => 'accepted' }, { applies_to => 'replay', statuses => '{201}', class => 'unknown' } ]);
my %nonce = (headers => {}, key_body_path => '{nonce}', key_format => 'base62', key_max_length => 25, key_replay => 'current_state');
$k->start('discord', { write => [$lost], key_body => 'nonce', key_replay => 'current_state' }, %nonce, key_lifetime => '3 minutes');
$k->start('discord-unknown', { write => [$lost], key_body => 'nonce' }, %nonce, key_lifetime => undef, key_lifetime_source => undef, lookups => [ {} ]);

# Byte for byte: what a provider that takes a fingerprint of the text would notice.
$k->define('bytes', { write => [$lost] });
$k->submit('bytes', '{"z":1.10,"a":369553424691494913,"\u00fc":"\u2028\\/\"","n":[{"y":null,"b":1e2}],"":"","A":true}');
like($node->sql_error('BEGIN;' . $node->operation_sql('nowhere', 'bare', provider => 'margin', headers => { X => '{idempotency_key}' },
			lookups => [ $k->replay ]) . 'COMMIT;'),
	qr/22023: operation "nowhere" cannot be asked by its key in lookup rule 1: the lifetime of the key is unknown/,
	'an unknown lifetime is none: a definition that rests on it is refused');
like($node->sql_error($node->operation_sql('nowhere', 'margin', headers => { X => '{idempotency_key}' }, key_max_length => 25)),
	qr/operation_key_max_length/, 'a key that is too long for the provider is refused');

# ---------------------------------------------------------------- what the ledger says

$k->check("place-$_", state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2, keys => 'new replayed')
  foreach sort keys %places;
like(($k->writes('place-structured'))[1]{key}, qr/^"[0-9a-f-]{36}"$/, 'a structured field is a text in quotes');
like(($k->writes('place-other-header'))[1]{key}, qr/^x-[0-9a-f-]{36}$/, 'more may stand around the key');
like(($k->writes('place-path'))[1]{path}, qr{/effects/[0-9a-f-]{36}$}, 'a key in the path');
like(($k->writes('place-query'))[1]{path}, qr{[?]key=[0-9a-f-]{36}&x=1$}, 'a key in the query');

foreach my $format (sort keys %formats)
{
	$k->check("format-$format", state => 'succeeded', events => "$resent answered_accepted", effects => 1, keys => 'new replayed');
	my ($write) = $k->writes("format-$format");
	like($write->{key}, $formats{$format}, "a key as $format");
	is($write->{key}, $write->{ref}, 'the reference is the key') if $format eq 'reference';
	cmp_ok(length $write->{key}, '<=', $length{$format}, "a key as $format is no longer than said");
}

# An answered attempt, and one before it of which nobody knows more than that.
my $attempts = $node->attempt($k->id('place-bare'));
is(join(', ', map { "$_->{state} $_->{event}" } @$attempts), 'outcome_unknown answer_lost, succeeded answered_accepted',
	'a resend that is accepted says nothing of the attempt before');
my ($claim, $resend) = ($k->evidence('place-bare', 'claim'), $k->evidence('place-bare', 'resend'));
is($claim->{dispatch}{idempotency_key}, $resend->{dispatch}{idempotency_key}, 'the history has the key of both attempts');
isnt($claim->{dispatch}{dispatch_id}, $resend->{dispatch}{dispatch_id}, 'which are two attempts');

$k->check('refused', state => 'succeeded', events => "$resent answered_rejected ask found", effects => 1, deliveries => 2);
is(join(' ', map { $_->{state} } @{ $node->attempt($k->id('refused')) }), 'succeeded rejected', 'refused: each attempt has its own end');
$k->check('refused-absent', state => 'rejected', events => qr/^$resent answered_rejected( ask absent_once)+ ask absent$/, effects => 0, deliveries => 2);
is(join(' ', map { $_->{state} } @{ $node->attempt($k->id('refused-absent')) }), 'safe_to_retry rejected', 'refused, absent: so does each here');
$k->check('refused-keyed', state => 'manual_review', events => "$resent answered_rejected no_query_surface", effects => 1, deliveries => 2);
is($node->status($k->id('refused-keyed'))->{status}, 'DENIED_UNRESOLVED', 'refused, nothing to ask: nobody says that it failed');
$k->check('throttled', state => 'succeeded', events => "$resent not_executed resend not_executed resend answered_accepted", effects => 1, deliveries => 4);
is(join(' ', map { $_->{to_state} } grep { $_->{event} eq 'not_executed' } @{ $node->history($k->id('throttled')) }),
	'outcome_unknown outcome_unknown', 'throttled: a 429 on attempt 2 proves nothing about attempt 1');
$k->check('throttled-first', state => 'succeeded', events => 'submit claim not_executed claim answered_accepted', effects => 1, deliveries => 2);
is(scalar keys %{ { map { $_->{key} => 1 } $k->writes('throttled-first') } }, 1, 'throttled at first: the same key again');

$k->wait_event('unauthorized', 'not_executed');
is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '" . $k->id('unauthorized') . "'"), 'outcome_unknown',
	'a credential refused on attempt 2: attempt 1 stays unknown');
$node->wait_sql("SELECT paused_at IS NOT NULL FROM reconcile.provider WHERE provider = 'unauthorized'", 't');
is($provider->deliveries('unauthorized'), 2, 'and nothing more is sent');
$node->sql("SELECT reconcile.resume('unauthorized')");
$k->check('unauthorized', state => 'succeeded', events => "$resent not_executed resend answered_accepted", effects => 1, deliveries => 3);

$k->wait_event('closed', 'not_sent', 2);
is(join(' ', map { $_->{to_state} } (grep { $_->{event} eq 'not_sent' } @{ $node->history($k->id('closed')) })[ 0, 1 ]),
	'outcome_unknown outcome_unknown', 'a resend that never left: attempt 1 stays unknown');
is($node->status($k->id('closed'))->{status}, 'DENIED_UNRESOLVED', 'and nobody says that it failed');
$provider->open_ports('closed');
$k->check('closed', state => 'succeeded', events => qr/^$resent not_sent( resend not_sent)+ resend answered_accepted$/, effects => 1, deliveries => 2);

foreach my $name ('stored-no', 'stored-no-keyed')
{
	$k->check($name, state => 'rejected', events => "$resent answered_rejected", effects => 0, deliveries => 2);
	is(join(', ', map { "$_->{state} $_->{event}" } @{ $node->attempt($k->id($name)) }), 'rejected replayed, rejected answered_rejected',
		"$name: the stored reply is the reply to both attempts");
}
$k->check('no-without-rule', state => 'succeeded', events => "$resent answer_lost resend answered_accepted", effects => 1, deliveries => 3);
$k->check('no-not-stored', state => 'succeeded', events => "$resent answered_rejected ask found", effects => 1, deliveries => 2);
$k->check('rule-of-the-first', state => 'succeeded', events => "$resent answer_lost resend answered_accepted", effects => 1, deliveries => 3);

$k->check('stored-500', state => 'succeeded', events => "$resent answer_lost ask found", effects => 1, keys => 'new replayed');
$k->check('stored-500-absent', state => 'safe_to_retry', events => qr/^$resent answer_lost( ask absent_once)+ ask absent$/, effects => 0, keys => 'new replayed');
$k->check('stored-500-keyed', state => 'manual_review', events => qr/^$resent answer_lost( resend answer_lost)* no_query_surface$/, effects => 1);
$k->check('reattempt', state => 'succeeded', events => qr/^$resent answered_accepted$/, effects => 1);

foreach my $name ('running', 'running-storing', 'running-keyed')
{
	$k->wait_event($name, 'answer_lost', 2);
	my ($first, $second) = $k->evidence($name, 'answer_lost');
	is($first->{transfer}{proves}, 'unknown', "$name: the first answer does not come in time");
	is($second->{transfer}{answer}, 'in_progress', "$name: the provider is still at it");
	$provider->release($name);
	$k->check($name, state => 'succeeded', events => qr/^$resent answer_lost( resend answer_lost)* resend answered_accepted$/, effects => 1,
		keys => qr/^new in_progress( in_progress)* replayed$/);
}

$k->check('running-on', state => 'succeeded', events => "$resent answer_lost" . ' resend answer_lost' x 2 . ' ask found', effects => 1);

$k->check('too-short', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$k->check('too-short-keyed', state => 'manual_review', events => 'submit claim answer_lost no_query_surface', effects => 1, deliveries => 1);
$k->check('short-enough', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);
$k->check('margin', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$k->check('unknown-lifetime', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);

# The keys of a case, in the order of their first use, by generation.
sub generations
{
	my ($name) = @_;
	my $id = $k->id($name);
	return $node->sql(<<"SQL");
SELECT string_agg(coalesce(g.n::text, '?'), ' ' ORDER BY t.number) FROM reconcile.attempt t
  LEFT JOIN LATERAL (SELECT n FROM generate_series(0, 5) n WHERE reconcile.make_identifier(t.action_id, n, 'uuid') = t.idempotency_key) g ON true
 WHERE t.action_id = '$id'
SQL
}

my $gone = 'submit claim answer_lost( ask absent_once)+ ask absent claim answered_accepted';
foreach my $case ([ 'same-key', '0 0' ], [ 'same-key-storing', '0 0' ], [ 'failure-as-it-is', '0 0' ], [ 'dead-key', '0 1' ], [ 'stored-failure', '0 1' ])
{
	my ($name, $keys) = @$case;
	$k->check($name, state => 'succeeded', events => qr/^$gone$/, effects => 1, deliveries => 2);
	is(generations($name), $keys, "$name: the keys of the two attempts");
}
$k->check('stored-failure-resent', state => 'succeeded', events => qr/^$resent answer_lost( ask absent_once)+ ask absent claim answered_accepted$/,
	effects => 1, deliveries => 3, keys => 'new replayed new');
is(generations('stored-failure-resent'), '0 0 1', 'a key that would only repeat a failure is not used for the replacement');

$k->check('gocardless', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);
is($node->attempt($k->id('gocardless'))->[1]{http_status}, 409, 'the id stands inside an error');
$k->check('paypal', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);
is($node->attempt($k->id('paypal'))->[1]{http_status}, 200, 'a repetition is told from a first answer by its status');
$k->check('discord', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);
cmp_ok(length(($k->writes('discord'))[0]{key}), '<=', 25, 'a nonce of 25 characters at most');
$k->check('discord-unknown', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$k->check('bytes', state => 'succeeded', events => "$resent answered_accepted", effects => 1, keys => 'new replayed');
like(($k->writes('bytes'))[1]{body}, qr/369553424691494913.*1\.10/s, 'numbers go out digit for digit');

# ---------------------------------------------------------------- what changes between two attempts

# Loses the first answer while the provider is paused, so that nothing is sent again yet.
sub lose_while_paused
{
	my ($name, @definition) = @_;
	$k->define($name, @definition);
	$k->submit($name);
	$provider->wait_writes($name, 1);
	$node->sql("SELECT reconcile.pause('$name', 'the test wants to look')");
	$provider->release($name);
	$k->wait_event($name, 'answer_lost');
	return;
}

my %held = (write => [ { hold_s => -1, then => 'close' } ]);
my %changes = (
	'other-header' => q{headers = headers || '{"X-New": "1"}'},
	'other-path' => q{path = '/effects?v=2'},
	'other-body' => q{reference_body_path = '{reference}'},
	'other-method' => q{method = 'PATCH'},
	'impossible' => q{headers = headers || '{"X-New": "{nobody has this}"}'});
lose_while_paused($_, { %held, key_mismatch => 'replay_anyway', ref_regex => '"ref(?:erence)?": ?"([^"]*)"' }) foreach sort keys %changes;
lose_while_paused($_, \%held) foreach qw(nothing-new there-and-back other-address);

$node->sql("UPDATE reconcile.operation SET $changes{$_} WHERE operation = '$_'") foreach sort keys %changes;
$node->sql(q{UPDATE reconcile.operation SET path = '/elsewhere' WHERE operation = 'there-and-back';
	UPDATE reconcile.operation SET path = '/effects' WHERE operation = 'there-and-back'});
like($node->sql_error(q{UPDATE reconcile.provider SET base_url = 'http://127.0.0.1:1' WHERE provider = 'other-address'}),
	qr/55000: the address of provider "other-address" cannot change while 1 of its actions are unresolved/, 'a key is of no use elsewhere: the address stays');
$node->sql("SELECT reconcile.resume(provider) FROM reconcile.provider WHERE paused_at IS NOT NULL");

# Qonto would have said yes to another body; it is not asked.
$k->check($_, state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1) foreach sort keys %changes;
$k->check($_, state => 'succeeded', events => "$resent answered_accepted", effects => 1, keys => 'new replayed')
  foreach qw(nothing-new there-and-back other-address);
is(join(' ', map { $_->{operation_version} } @{ $node->attempt($k->id('there-and-back')) }), '1 3', 'other versions of a definition may make the same bytes');

# What nobody wants any more is asked about, and not sent again: it may never have arrived.
my $until = $node->sql(q{SELECT clock_timestamp() + interval '4 s'});
$k->define('past-its-time', \%held);
$k->submit('past-its-time', undef, not_after => $until);
$provider->wait_writes('past-its-time', 1);
$node->wait_sql("SELECT clock_timestamp() > '$until'", 't');
$provider->release('past-its-time');
$k->check('past-its-time', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);

# ---------------------------------------------------------------- a body that is written anew each time (case 8)

$k->define('case-8', \%held);
$k->submit('case-8', '{"amount": 100, "payee": {"name": "x", "iban": "y"}, "createdAt": 1}', intent_key => 'order 9');
$provider->wait_writes('case-8', 1);
my $again = $node->rows(q{SELECT * FROM reconcile.submit('case-8', '{"createdAt":1,"payee":{"iban":"y","name":"x"},"amount":100}', intent_key => 'order 9')});
is("$again->[0]{action_id} $again->[0]{joined}", $k->id('case-8') . ' 1', 'case 8: the members in another order are the same intent');
like($node->sql_error(q{SELECT * FROM reconcile.submit('case-8', '{"createdAt":2,"payee":{"iban":"y","name":"x"},"amount":100}', intent_key => 'order 9')}),
	qr/23505: intent key "order 9" already names another intent: action "[0-9a-f-]+"/, 'case 8: another body under the same name is refused');
$provider->release('case-8');
$k->check('case-8', state => 'succeeded', events => "$resent answered_accepted", effects => 1, keys => 'new replayed');

# ---------------------------------------------------------------- a key that the provider knows with something else (case 12)

my %mismatch = (answers => [ { statuses => '{422}', body_path => '$ ? (@.code == "key_mismatch")', class => 'key_mismatch' } ]);
my $used = { status => 422, body => { code => 'key_mismatch' } };
$k->define('case-12', {}, %mismatch);
$node->sql("SELECT reconcile.pause('case-12', 'somebody else comes first')");
$k->submit('case-12', { amount => 100 });
my $leaked = $node->sql("SELECT idempotency_key FROM reconcile.action WHERE action_id = '" . $k->id('case-12') . "'");
my $foreign = HTTP::Tiny->new->post($provider->http_url('case-12') . '/effects',
	{ headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => $leaked }, content => '{"amount": 1}' });
is($foreign->{status}, 201, 'case 12: the key leaks into a call of somebody else');
$node->sql("SELECT reconcile.resume('case-12')");
is($node->wait_state($k->id('case-12'), 'manual_review'), 'manual_review', 'case 12: a fault of ours, for a person to clear up');
is($node->status($k->id('case-12'))->{status}, 'DENIED_UNRESOLVED', 'case 12: and never a rejection');
is($node->events($k->id('case-12')), 'submit claim key_mismatch', 'case 12: it has an event of its own');
is($node->transfer($k->id('case-12'))->{rule}, 1, 'case 12: the history names the rule');
$node->sql("SELECT reconcile.look_up_now('" . $k->id('case-12') . "', 'the other call was found')");
is($node->wait_state($k->id('case-12'), 'safe_to_retry'), 'safe_to_retry', 'case 12: a person has it asked, not sent');
is($provider->deliveries('case-12'), 2, 'case 12: nothing is sent under that key again');
is($provider->effects('case-12'), 1, 'case 12: one effect, of the other call');

$k->start('mismatch', { write => [ $lost, $used ] }, %mismatch);
$k->check('mismatch', state => 'manual_review', events => "$resent key_mismatch", effects => 1, deliveries => 2);
$node->sql("SELECT reconcile.look_up_now('" . $k->id('mismatch') . "', 'look at the list')");
$k->check('mismatch', state => 'succeeded', events => "$resent key_mismatch look_up_now ask found", effects => 1, deliveries => 2);

# A correction is an intent of its own, with a key of its own.
$k->start('corrected', \%held);
$provider->wait_writes('corrected', 1);
my $correction = $node->submit('corrected', { amount => 120 });
$provider->release('corrected');
is($node->wait_state($correction, 'succeeded'), 'succeeded', 'a correction goes its own way');
is($node->wait_state($k->id('corrected'), 'succeeded'), 'succeeded', 'and so does what it corrects');
is(join(' ', map { $_->[1] } sort { $a->[1] cmp $b->[1] } $provider->keys_seen('corrected')), 'new new replayed', 'no key with two bodies');
is($provider->effects('corrected'), 2, 'one effect each');

# ---------------------------------------------------------------- a key that dies between the claim and the first byte

$provider->scenario('last-instant', { key_header => 'Idempotency-Key', write => [$lost], own_port => \1 });
my $relay = ActionReconcile::Relay->new($provider->port('last-instant', 'https'));
$k->define('last-instant', { write => [$lost], own_port => \1 }, https => 1, key_lifetime => '17 s',
	provider => { base_url => 'https://localhost:' . $relay->port . '/s/last-instant', attempt_timeout => '10 s', connect_timeout => '9.9 s' });
$k->submit('last-instant');
$relay->pass($relay->accept);
my $slow = $relay->accept;				# the resend: its handshake waits
$k->wait_event('last-instant', 'resend');
is($node->sql("SELECT state FROM reconcile.action WHERE action_id = '" . $k->id('last-instant') . "'"), 'submitted', 'claimed while the key was alive');
$node->wait_sql("SELECT clock_timestamp() > key_first_at + interval '6 s' FROM reconcile.action WHERE action_id = '" . $k->id('last-instant') . "'", 't');
$relay->pass($slow);
$relay->pass($relay->accept);			# the question
$k->check('last-instant', state => 'succeeded', events => "$resent not_sent ask found", effects => 1, deliveries => 1);
is(($k->evidence('last-instant', 'not_sent'))[0]{transfer}{reason}, 'the provider may have forgotten its key', 'the last look before the first byte sees it');

# ---------------------------------------------------------------- a wall clock that has been set back

$node->sql(q{UPDATE reconcile.clock SET wall_at = clock_timestamp() + interval '1 hour'});
$k->start('clock-back', { write => [$lost] });
$k->check('clock-back', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
crash($node, 'worker');
$k->start('clock-back-still', { write => [$lost] });
$k->check('clock-back-still', state => 'succeeded', events => 'submit claim answer_lost ask found', effects => 1, deliveries => 1);
$node->sql(q{UPDATE reconcile.clock SET wall_at = clock_timestamp()});
$k->start('clock-right', { write => [$lost] });
$k->check('clock-right', state => 'succeeded', events => "$resent answered_accepted", effects => 1, deliveries => 2);

# ---------------------------------------------------------------- killed between the two

SKIP:
{
	skip 'needs the library with fault points in AR_TEST_LIBDIR', 1 if ($ENV{AR_TEST_LIBDIR} // '') eq '';
	foreach my $point (qw(claim_before_commit claim_after_commit before_first_byte after_request after_answer record_before_commit record_after_commit))
	{
		my $name = "crash-$point";
		$name =~ tr/_/-/;
		# An answer must not come between the request and the kill.
		lose_while_paused($name, { write => [ @{ $held{write} }, $point eq 'after_request' ? { hold_s => -1 } : () ] },
			provider => { attempt_timeout => '2 s' });
		$node->set_fault_point($point);
		$node->sql("SELECT reconcile.resume('$name')");
		$node->wait_fault($point);
		$provider->wait_writes($name, 2) if $point eq 'after_request';
		is($provider->deliveries($name), $point =~ /^claim|^before/ ? 1 : 2, "$point: sent again or not");
		$node->clear_fault_point;
		crash($node, 'worker');
		$provider->release($name);
		$k->check($name, state => 'succeeded', effects => 1,
			events => $point eq 'claim_before_commit' || $point eq 'record_after_commit' ? "$resent answered_accepted" :
			  "$resent recover resend answered_accepted");
		is(join("\n", story_problems($node, $provider, $name, $k->id($name))), '', "$point: nothing twice, nothing lost");
	}
}

$node->assert_consistent('in the end');

$node->stop;
done_testing();
