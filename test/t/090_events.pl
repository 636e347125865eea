# What a provider sends unasked counts if it is signed, of now, and of our
# account: every scheme, every way of not being so, and what is kept of it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use JSON::PP;
use Test::More;

use ActionReconcile::Events;
use ActionReconcile::Node;

my %secrets = (
	standard => 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
	stripe => 'whsec_StripeEndpointSecret0001',
	github => 'GithubEndpointSecret0001',
	slack => 'SlackSigningSecret0001',
	shopify => 'ShopifySharedSecret0001',
	named => 'NamedSharedSecret0001',
	bulk => 'BulkSharedSecret0001');
my $events = ActionReconcile::Events->new('events', %secrets);
my $node = $events->node;

$node->define_provider($_, "https://$_.example") foreach keys %secrets, 'bare';
my @rules = (
	{ condition => '$.type == "nothing"', says => 'ignored' },
	{ condition => '$ ? (@.type == "done")', says => 'accepted', reference_path => '$.ref', artifact_path => '$.id', occurred_path => '$.created' },
	{ condition => '$ ? (@.type == "failed")', says => 'rejected', reference_path => '$.ref', occurred_path => '$.created' },
	{ condition => '$.flag', says => 'executed', reference_path => '$.text', reference_pattern => 'marker:([a-z0-9-]+)' });
$events->source('standard', scheme => 'standard_webhooks', rules => \@rules);
$events->source('stripe', scheme => 'stripe', rules => \@rules);
$events->source('github', scheme => 'github', rules => \@rules);
$events->source('slack', scheme => 'hmac', signature_header => 'X-Slack-Signature', signature_encoding => 'hex', signature_prefix => 'v0=',
	signed_text => 'v0:{timestamp}:{body}', timestamp_header => 'X-Slack-Request-Timestamp', event_id_path => '$.event_id', rules => \@rules);
$events->source('shopify', scheme => 'hmac', signature_header => 'X-Shopify-Hmac-Sha256', signature_encoding => 'base64', signed_text => '{body}',
	event_id_header => 'X-Shopify-Webhook-Id', rules => \@rules);
$events->source('named', scheme => 'hmac', signature_header => 'X-Signature', signature_encoding => 'hex', signed_text => '{id}.{timestamp}.{body}',
	timestamp_header => 'X-Time', event_id_header => 'X-Id', account_path => '$.account', account => 'acct_1', mode_path => '$.livemode', mode => 'true',
	rules => \@rules);
$events->source('bulk', scheme => 'hmac', signature_header => 'X-Signature', signature_encoding => 'hex', signed_text => '{body}',
	items_path => '$.events[*]', event_id_path => '$.id', rules => \@rules);
$events->source('bare', scheme => 'none', event_id_path => '$.id', rules => \@rules);

sub inbox { return $node->rows("SELECT * FROM reconcile.inbox WHERE inbox_id = $_[0]{inbox_id}")->[0]; }
sub counted { return $node->sql('SELECT count(*) FROM reconcile.inbox'); }

sub is_refused
{
	my ($answer, $expected, $what) = @_;
	like(ref $answer ? encode_json($answer) : $answer, $expected, $what);
	return;
}

# ---------------------------------------------------------------- every scheme

my %more = (named => { account => 'acct_1', livemode => \1 });
foreach my $name (sort keys %secrets)
{
	next if $name eq 'bulk';
	my $timed = $name !~ /github|shopify/;
	my %document = (%{ $more{$name} // {} }, type => 'done', ref => "ref-$name", id => "obj-$name", created => 1700000000, event_id => "evt-$name");
	my $body = JSON::PP->new->canonical->pretty->encode({%document});
	my $before = counted();

	is_refused($events->receive($name, $body, headers => {}), qr/^28000: event of provider "$name" is refused: it has no signature/, "$name: no signature");
	is_refused($events->receive($name, $body, secret => 'whsec_AAAA'), qr/^28000: .* its signature is wrong$/, "$name: another secret");
	my $headers = $events->sign($name, $body);
	is_refused($events->receive($name, "$body ", headers => $headers), qr/^28000: .* its signature is wrong$/, "$name: a blank more");
	unlike(join('', $events->hint, values %$headers), qr/\Q$secrets{$name}\E/, "$name: the hint does not repeat the secret");
	if ($timed)
	{
		is_refused($events->receive($name, $body, at => time - 400), qr/^28000: .* it was sent too long ago$/, "$name: too old");
		is_refused($events->receive($name, $body, at => time + 400), qr/^28000: .* it was sent in the future$/, "$name: from the future");
	}
	is(counted(), $before, "$name: nothing of that was kept");

	my $row = $events->receive($name, $body, at => time - 200);
	is($row->{result}, 'stored', "$name: taken in, and no action yet") or diag(explain($row));
	my $kept = inbox($row);
	is("$kept->{says} $kept->{reference} $kept->{artifact_id}", "accepted ref-$name obj-$name", "$name: read by its rules");
	is($kept->{verified}, JSON::PP::true, "$name: verified");
	like($kept->{occurred_at}, qr/^2023-11-14T22:13:20/, "$name: when it happened");
	is($kept->{evidence}{rule}, 2, "$name: the rule is named");
	is($kept->{body}, '\x' . unpack('H*', $body), "$name: the body is kept as it was");

	# Names of headers in any case, one value as a list, other headers beside.
	$headers = $events->sign($name, $body, id => 'again');
	my %shouted = ((map { uc($_) => $headers->{$_} } keys %$headers), Accept => '*/*', 'X-Twice' => [ 'a', 'b' ]);
	is($events->receive($name, $body, headers => \%shouted)->{result}, 'stored', "$name: names of headers in capitals");
	is($events->receive($name, $body, headers => { map { lc($_) => [ $headers->{$_} ] } keys %$headers })->{result}, 'stored', "$name: values in lists");
	my ($signature) = grep { /sign|hmac/i } keys %$headers;
	is_refused($events->receive($name, $body, headers => { %$headers, uc($signature) . '' => 'x', lc($signature) => 'y' }), qr/^22023: header .* is not one text/,
		"$name: a header that is there twice");

	# The secret is exchanged: both count, then the new one only.
	my $new = $name eq 'standard' ? 'whsec_bmV3IHNlY3JldCBvZiB0aGUgZW5kcG9pbnQ=' : "New$secrets{$name}";
	$events->secret($name, "$new $secrets{$name}");
	is($events->receive($name, $body, secret => $secrets{$name}, id => 'rotated 1')->{result}, 'stored', "$name: the old secret while both are there");
	is($events->receive($name, $body, secret => $new, id => 'rotated 2')->{result}, 'stored', "$name: the new one");
	$events->secret($name, $new);
	is_refused($events->receive($name, $body, secret => $secrets{$name}), qr/^28000: .* its signature is wrong$/, "$name: the old one is gone");
	$events->secret($name, $secrets{$name});
}

# ---------------------------------------------------------------- the secret

chmod 0644, "$events->{directory}/github";
is_refused($events->receive('github', { type => 'done', ref => 'r' }), qr/^55000: events of provider "github" cannot be checked: the secret cannot be read$/,
	'a secret that others can read is not read');
chmod 0600, "$events->{directory}/github";
$events->secret('standard', 'no base64!');
is_refused($events->receive('standard', { type => 'done', ref => 'r' }, secret => 'whsec_AAAA'), qr/^55000: .* the file of its secret holds none$/, 'a secret that is none');
$events->secret('standard', $secrets{standard});
is_refused($events->receive('nobody', {}, headers => {}), qr/^42704: provider "nobody" has no source of events$/, 'a provider without a source');

# ---------------------------------------------------------------- the body

is_refused($events->receive('github', $_->[0]), qr/^22023: the body of an event of provider "github" is no JSON document$/, "no JSON: $_->[1]")
  foreach [ 'ref=1&x=2', 'a form' ], [ '', 'nothing' ], [ '{"a":1', 'cut' ], [ '7', 'a number' ], [ "{\"a\":\"\xff\"}", 'no UTF-8' ], [ "{\"a\":\"\\u0000\"}", 'a NUL' ],
  [ '[' x 100_000, 'too deep' ];
is_refused($events->ask(q{SELECT row_to_json(r) FROM reconcile.receive_event('github', '{}', convert_to(repeat('x', 1048577), 'UTF8')) r}),
	qr/^22023: .* larger than one megabyte$/, 'too large');
is_refused($events->ask(qq{SELECT row_to_json(r) FROM reconcile.receive_event('github', $_, '{}') r}), qr/^22023: the headers of an event must be/, "headers: $_")
  foreach q{'[]'}, q{'"x"'}, q{jsonb_build_object('a', (SELECT jsonb_agg(n) FROM generate_series(1, 20000) n))};
is_refused($events->ask(qq{SELECT row_to_json(r) FROM reconcile.receive_event($_) r}), qr/^22004: an event has/, "a null: $_")
  foreach q{'github', NULL, '{}'}, q{'github', '{}', NULL::bytea};
is($events->ask('SELECT row_to_json(r) FROM reconcile.receive_event(' . join(', ', map { ActionReconcile::Node::literal($_) } 'github',
			$events->sign('github', '{"type":"done","ref":"as text"}'), '{"type":"done","ref":"as text"}') . ') r')->{result}, 'stored', 'the body as text');
my $umlaut = "{\"type\":\"done\",\"ref\":\"\xc3\xbc\"}";
is(inbox($events->receive('github', $umlaut))->{reference}, "\x{fc}", 'the body is UTF-8');

# ---------------------------------------------------------------- what it means

sub kept_of { return inbox($events->receive('github', $_[0])); }
is(kept_of({ type => 'other', ref => 'r' })->{result}, 'ignored', 'an event that no rule is about');
is(kept_of({ type => 'nothing', ref => 'r' })->{evidence}{rule}, 1, 'a predicate holds where it is true');
is(kept_of({ type => 'done', other => 1 })->{evidence}{names_nothing}, JSON::PP::true, 'an event that names nothing is ignored, and says why');
is(kept_of({ type => 'done', id => { a => 1 } })->{says}, 'ignored', 'an object is no id');
is(kept_of('{"type":"done","id":36955342469149491300000007}')->{artifact_id}, '36955342469149491300000007', 'an id digit for digit');
is(kept_of({ flag => \1, text => "Please do.\n<!-- marker:ref-17 -->" })->{reference}, 'ref-17', 'a reference inside a text');
is(kept_of({ flag => \1, text => 'no such thing' })->{says}, 'ignored', 'or none');
is(kept_of({ flag => \0, text => 'marker:a' })->{evidence}{rule}, undef, 'false is no condition that holds');
is(kept_of({ type => 'done', ref => 'x' x 201, id => 'y' x 1001 })->{says}, 'ignored', 'what is too long is not ours');
my %times = ('1700000000' => '2023-11-14T22:13:20', '1700000000123' => '2023-11-14T22:13:20.123', '2023-11-14T22:13:20Z' => '2023-11-14T22:13:20',
	'2023-11-15T00:13:20.5+02:00' => '2023-11-14T22:13:20.5', '2023-11-14 22:13:20' => '2023-11-14T22:13:20', 'now' => undef, 'infinity' => undef,
	'2999-01-01T00:00:00Z' => undef, '99999999999' => undef, 'soon' => undef, '2023-13-45' => undef, '-1' => undef);
foreach my $given (sort keys %times)
{
	my $got = kept_of({ type => 'done', ref => 'r', created => $given })->{occurred_at};
	like($got // 'NULL', defined $times{$given} ? qr/^\Q$times{$given}\E/ : qr/^NULL$/, "the time $given");
}

# ---------------------------------------------------------------- once for an id

my %document = (type => 'done', ref => 'once', created => 1);
my $first = $events->receive('standard', \%document, id => 'msg_once');
my $again = $events->receive('standard', \%document, id => 'msg_once', at => time - 7);
is_deeply($again, $first, 'the same id again: what became of the first');
is($events->receive('standard', { %document, ref => 'twice' }, id => 'msg_once')->{inbox_id}, $first->{inbox_id}, 'a signed id is enough');
$first = $events->receive('github', \%document, id => 'delivery');
is_deeply($events->receive('github', \%document, id => 'delivery'), $first, 'an id that is not signed, with the same body');
isnt($events->receive('github', { %document, ref => 'twice' }, id => 'delivery')->{inbox_id}, $first->{inbox_id}, 'but not with another one');
foreach my $id ('', '  ')
{
	$first = $events->receive('github', \%document, id => $id);
	isnt($events->receive('github', \%document, id => $id)->{inbox_id}, $first->{inbox_id}, "a blank id is none: '$id'");
	is(inbox($first)->{event_id}, undef, 'and none is kept');
}
is_refused($events->receive('standard', \%document, id => ''), qr/^28000: .* it has no id, which the signature covers$/, 'where it is signed it has to be there');
is_refused($events->receive('github', \%document, id => 'x' x 301), qr/^22023: the id of an event .* is longer than 300 bytes$/, 'nor may it be too long');
$first = $events->receive('stripe', { %document, id => 'evt_1' });
is($events->receive('stripe', { %document, id => 'evt_1' })->{inbox_id}, $first->{inbox_id}, 'stripe: the id is in the body');
isnt($events->receive('github', { %document, id => 'evt_1' })->{inbox_id}, $first->{inbox_id}, 'ids are a provider\'s own');

# ---------------------------------------------------------------- several at once

my $rows = $events->receive('bulk', { events => [ map { { type => 'done', ref => "bulk-$_", id => "b$_" } } 1 .. 3 ] });
is(join(' ', map { inbox($_)->{reference} } @$rows), 'bulk-1 bulk-2 bulk-3', 'three events in one body');
$rows = $events->receive('bulk', { events => [ map { { type => 'done', ref => "bulk-$_", id => "b$_" } } 3, 4 ] });
is(inbox($rows->[0])->{event_id} . ' ' . @$rows, 'b3 2', 'one of them was there already');
is($node->sql(q{SELECT count(*) FROM reconcile.inbox WHERE provider = 'bulk'}), 4, 'it is stored once');
is($events->receive('bulk', { ping => 1 })->{result}, 'ignored', 'a body without any is kept');
is_refused($events->receive('bulk', { events => [ (1) x 1001 ] }), qr/^22023: more than 1000 events/, 'not any number');

# ---------------------------------------------------------------- account and mode

my %ours = (type => 'done', ref => 'r', account => 'acct_1', livemode => \1);
is($events->receive('named', \%ours)->{result}, 'stored', 'of our account and mode');
is_refused($events->receive('named', { %ours, account => 'acct_2' }), qr/^28000: .* it is not of our account$/, 'of another account');
is_refused($events->receive('named', { %ours, livemode => \0 }), qr/^28000: .* it is not of our mode$/, 'of the test mode');
is_refused($events->receive('named', { type => 'done', ref => 'r', livemode => \1 }), qr/^28000: .* account$/, 'that names no account');

# ---------------------------------------------------------------- definitions

like($node->sql_error($node->insert('event_source', provider => 'bare2', %{ $_->[1] })), qr/$_->[0]/, "refused: $_->[0]")
  foreach [ 'event_source_scheme', { scheme => 'sha1', secret => 'x' } ],
  [ 'event_source_secret', { scheme => 'github' } ],
  [ 'event_source_secret', { scheme => 'github', secret => '../x' } ],
  [ 'event_source_form', { scheme => 'hmac', secret => 'x', signature_header => 'X' } ],
  [ 'event_source_form', { scheme => 'stripe', secret => 'x', signature_header => 'X' } ],
  [ 'event_source_signed_text', { scheme => 'hmac', secret => 'x', signature_header => 'X', signature_encoding => 'hex', signed_text => 'body' } ],
  [ 'event_source_timestamp', { scheme => 'hmac', secret => 'x', signature_header => 'X', signature_encoding => 'hex', signed_text => '{timestamp}{body}' } ],
  [ 'event_source_signed_id', { scheme => 'hmac', secret => 'x', signature_header => 'X', signature_encoding => 'hex', signed_text => '{id}{body}' } ],
  [ 'event_source_headers', { scheme => 'hmac', secret => 'x', signature_header => 'X Y', signature_encoding => 'hex', signed_text => '{body}' } ],
  [ 'event_source_one_id', { scheme => 'standard_webhooks', secret => 'x', event_id_path => '$.id' } ],
  [ 'event_source_account', { scheme => 'github', secret => 'x', account => 'a' } ],
  [ 'event_source_tolerance', { scheme => 'github', secret => 'x', tolerance => '2 days' } ];
like($node->sql_error($node->insert('event_rule', provider => 'bare', position => 9, condition => '$', because => 'x', %{ $_->[1] })), qr/$_->[0]/, "refused: $_->[0]")
  foreach [ 'event_rule_about_something', { says => 'executed' } ], [ 'event_rule_says', { says => 'maybe', reference_path => '$' } ],
  [ 'event_rule_pattern', { says => 'executed', reference_path => '$', reference_pattern => 'x' } ], [ '2201B', { says => 'executed', reference_path => '$', reference_pattern => '(' } ];

# ---------------------------------------------------------------- the catalogue

# Another server for these, since its providers have the names of profiles.
my $adopted = ActionReconcile::Events->new('adopted');
$adopted->adopt($_) foreach qw(stripe github razorpay);
sub read_as { my ($provider, $document) = @_; my $row = $adopted->receive($provider, $document); return ref $row ? read_row($row) : $row; }
sub read_row
{
	my $kept = $adopted->node->rows("SELECT * FROM reconcile.inbox WHERE inbox_id = $_[0]{inbox_id}")->[0];
	return join ' ', map { $_ // '-' } @$kept{qw(says reference artifact_id occurred_at)};
}
my $number = 0;
sub stripe_event
{
	my ($type, %object) = @_;
	return { id => 'evt_' . ++$number, object => 'event', api_version => '2024-10-28', created => 1700000000, livemode => \1, type => $type,
		data => { object => { id => 'pi_1', metadata => { client_reference => 'ref-1' }, %object } } };
}
my $when = '2023-11-14T22:13:20+00:00';
is(read_as('stripe', stripe_event('payment_intent.created')), "executed ref-1 pi_1 $when", 'stripe: made');
is(read_as('stripe', stripe_event('payment_intent.succeeded')), "accepted ref-1 pi_1 $when", 'stripe: paid');
is(read_as('stripe', stripe_event('payment_intent.payment_failed')), 'ignored - - -', 'stripe: a failed try is no verdict on the intent');
is(read_as('stripe', stripe_event('refund.updated', id => 're_1', status => 'succeeded')), "accepted ref-1 re_1 $when", 'stripe: refunded');
is(read_as('stripe', stripe_event('refund.updated', id => 're_1', status => 'failed')), "rejected ref-1 re_1 $when", 'stripe: not refunded');
is(read_as('stripe', stripe_event('refund.updated', id => 're_1', status => 'pending')), 'ignored - - -', 'stripe: a refund under way');
is(read_as('stripe', { %{ stripe_event('payment_intent.succeeded') }, livemode => \0 }), '28000: event of provider "stripe" is refused: it is not of our mode',
	'stripe: of the test mode');
my %issue = (number => 7, html_url => 'https://github.com/o/r/issues/7', created_at => '2023-11-14T22:13:20Z', body => "Broken.\n\n<!-- reference ref-2 -->");
is(read_as('github', { action => 'opened', issue => \%issue }), "executed ref-2 https://github.com/o/r/issues/7 $when", 'github: opened');
is(read_as('github', { action => 'opened', issue => { %issue, body => 'Broken.' } }), 'ignored - - -', 'github: somebody else\'s');
is(read_as('github', { action => 'opened', issue => { %issue, body => undef } }), 'ignored - - -', 'github: without a text');
is(read_as('github', { action => 'edited', issue => \%issue }), 'ignored - - -', 'github: edited');
is(read_as('github', { zen => 'Keep it logically awesome.', hook_id => 1 }), 'ignored - - -', 'github: a ping');
sub payout_event
{
	return { entity => 'event', event => "payout.$_[0]", created_at => 1700000000,
		payload => { payout => { entity => { id => 'pout_1', reference_id => 'ref-3', status => $_[0] } } } };
}
is(read_as('razorpay', payout_event('processed')), "accepted ref-3 pout_1 $when", 'razorpay: paid');
is(read_as('razorpay', payout_event('reversed')), "rejected ref-3 pout_1 $when", 'razorpay: returned');
is(read_as('razorpay', payout_event('queued')), "executed ref-3 pout_1 $when", 'razorpay: taken');
$adopted->node->stop;

# ---------------------------------------------------------------- nothing leaks

my $dump = '';
foreach my $table (split /\n/, $node->sql(q{SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind = 'r'}))
{
	$dump .= $node->sql("SELECT t::text FROM $table t");
}
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
foreach my $name (sort keys %secrets)
{
	unlike($dump, qr/\Q$secrets{$name}\E/, "$name: the secret is in no table");
	unlike($log =~ s/STATEMENT:.*//gr, qr/\Q$secrets{$name}\E/, "$name: and in no message of the log");
}
unlike($dump, qr/v1,[A-Za-z0-9+\/]{43}=|sha256=[0-9a-f]{64}/, 'no signature is in a table');

$node->stop;
done_testing();
