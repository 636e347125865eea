# People: what nobody but a person can tell is told once, by name and with a
# reason; what waits for approval waits; and a person who is wrong, or early, is
# stopped, or on record.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use JSON::PP;
use Test::More;

use ActionReconcile::Cases qw(lost lost_unexecuted);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('people');
my $cases = ActionReconcile::Cases->new($node, $provider);

$node->sql(<<'SQL');
CREATE ROLE app LOGIN; GRANT reconcile_submitter TO app;
CREATE ROLE other LOGIN; GRANT reconcile_submitter TO other;
CREATE ROLE alice LOGIN; GRANT reconcile_operator TO alice;
CREATE ROLE bob LOGIN; GRANT reconcile_operator TO bob;
CREATE ROLE dora LOGIN; GRANT reconcile_operator, reconcile_submitter TO dora;
SQL

# What a person is answered; what it is refused with.
sub as
{
	my ($who, $statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', $statement, extra_params => [ '-U', $who ]);
	return $code == 0 ? $out : "error: $err";
}

sub refusal
{
	my ($who, $statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement", extra_params => [ '-U', $who ]);
	return $code == 0 ? "accepted: $out" : join ' | ', $err =~ /(?:ERROR|DETAIL|HINT):\s+([^\n]*)/g;
}

sub rows_as
{
	my ($who, $query) = @_;
	return decode_json(as($who, "SELECT coalesce(json_agg(q), '[]') FROM ($query) q"));
}

sub submit_as
{
	my ($who, $operation, $payload, $options) = @_;
	return as($who, "SELECT action_id FROM reconcile.submit('$operation', '" . encode_json($payload) . "'" . ($options ? ", $options" : '') . ')');
}

# Who did what, by whose word, of those steps that people take.
sub by_people
{
	my ($id) = @_;
	return [ map { "$_->{event} by $_->{actor}: $_->{evidence}{reason}" } grep { exists $_->{evidence}{reason} } @{ $node->history($id) } ];
}

sub settled
{
	my ($id) = @_;
	return $node->sql("SELECT reconcile.window_open_until('$id') IS NULL");
}

# ---------------------------------------------------------------- no query surface (case 7)

my %mail = (lookup => 0, artifact_path => undef);
my %long = (consistency_window => '1 hour');

$cases->define('mail', %mail, provider => {%long}, spec => { write => [ lost(), lost() ] });
my $mail = submit_as('app', 'mail', { to => 'a@example.org' });
is($node->wait_state($mail, 'manual_review'), 'manual_review', 'mail: nobody can be asked, so a person is, at once');
like($node->history($mail)->[3]{evidence}{lookup}{reason}, qr/no lookup rule/, 'mail: which the history says');
my $entry = rows_as('alice', "SELECT * FROM reconcile.review_queue WHERE action_id = '$mail'")->[0];
is("$entry->{needs} $entry->{tier} $entry->{query_surface}", 'resolve BLIND none', 'mail: the queue says what it needs, and why it cannot be asked');
is("$entry->{method} $entry->{url}", 'POST ' . $provider->http_url('mail') . '/effects', 'mail: what was sent, and where');
is(decode_json($entry->{body})->{to}, 'a@example.org', 'mail: with its body');
is_deeply([ map { "$_->{number} $_->{state}" } @{ $entry->{attempts} } ], ['1 outcome_unknown'], 'mail: what became of it');
like($entry->{attempts}[0]{request_hash}, qr/^[0-9a-f]{64}$/, 'mail: and its hash');
like($entry->{why}, qr/nothing to ask.*no lookup rule/, 'mail: why it is there');
like($entry->{if_repeated}, qr/second effect, and nothing prevents it/, 'mail: what sending it again risks');
like($entry->{if_executed_but_not}, qr/effect is missing/, 'mail: what the other choice risks');
is($entry->{version}, 4, 'mail: and the version to pass on');
is_deeply(rows_as('app', "SELECT state, status, may_repeat, next_step_at FROM reconcile.action_status WHERE action_id = '$mail'"),
	[ { state => 'manual_review', status => 'DENIED_UNRESOLVED', may_repeat => JSON::PP::false, next_step_at => undef } ], 'mail: its submitter is told not to repeat it');
like(as('app', "SELECT next_step FROM reconcile.unresolved WHERE action_id = '$mail'"), qr/a person decides/, 'mail: and what it waits for');
like(refusal('app', "SELECT reconcile.resolve('$mail', 'executed', 'x')"), qr/^42501/, 'mail: which is not for the submitter to decide');
like(refusal('app', "SELECT reconcile.cancel('$mail', 'x')"), qr/^55000.*An attempt may have happened/, 'mail: or to call back');
is(as('alice', "SELECT reconcile.resolve('$mail', 'executed', 'delivered, seen in their console', expected_version => 4, evidence => '{\"seen\": \"console\"}')"),
	'succeeded', 'mail: an operator has seen it');
$cases->check('mail', 'mail: settled by a person', id => $mail, state => 'succeeded', events => 'submit claim answer_lost no_query_surface resolve',
	status => 'CONFIRMED', deliveries => 1, effects => 1, artifact => $mail);
is_deeply(by_people($mail), ['resolve by alice: delivered, seen in their console'], 'mail: with who, and why');
is($node->history($mail)->[4]{evidence}{evidence}{seen}, 'console', 'mail: and on what evidence');

# The other way round: somebody is sure that it is not there, and wrong.
my $again = submit_as('app', 'mail', { to => 'b@example.org' });
$node->wait_state($again, 'manual_review');
like(refusal('bob', "SELECT reconcile.replace('$again', 'send again')"), qr/^55000.*may have happened/, 'mail again: what may have happened is not sent again');
like(refusal('bob', "SELECT reconcile.resolve('$again', 'not_executed', 'not there')"), qr/^55000.*window is open until 20.*Z, by the wall clock.*force => true/,
	'mail again: "not there" is too early');
is(as('bob', "SELECT reconcile.resolve('$again', 'not_executed', 'not there, send again', force => true)"), 'safe_to_retry', 'mail again: unless it is forced');
my $forced = $node->history($again)->[4]{evidence};
is($forced->{forced}, JSON::PP::true, 'mail again: which is on record');
like($forced->{risk}, qr/^the consistency window is open until 20.*Z: it may still happen$/, 'mail again: with the risk');
is(as('bob', "SELECT reconcile.replace('$again', 'they want it')"), 'planned', 'mail again: sent again by his word');
$cases->check('mail', 'mail again: sent a second time', id => $again, state => 'succeeded', attempts => 2, status => 'CONFIRMED', duplicates => 1,
	events => 'submit claim answer_lost no_query_surface resolve replace claim answered_accepted', deliveries => 3, effects => 3, artifact => $again);
is_deeply(by_people($again), [ 'resolve by bob: not there, send again', 'replace by bob: they want it' ], 'mail again: the history names him');
is($provider->ledger('mail')->{duplicates}{$again}, 2, 'mail again: he was wrong, which nobody can prevent here');
# Now the truth comes out.
is(as('alice', "SELECT result FROM reconcile.confirm('$again', 'the-first-one', provider => 'mail')"), 'applied', 'mail again: the first one is confirmed too');
is($node->sql("SELECT kind FROM reconcile.incident WHERE action_id = '$again'"), 'duplicate', 'mail again: an incident');

# ---------------------------------------------------------------- where the provider can be asked, it is asked first

$cases->define('asked', provider => {%long}, spec => { write => [ lost() ] });
my $asked = submit_as('app', 'asked', { n => 1 });
$node->wait_state($asked, 'outcome_unknown');
is(as('bob', "SELECT reconcile.resolve('$asked', 'not_executed', 'I am sure', force => true), reconcile.replace('$asked', 'go')"), 'safe_to_retry|planned', 'asked: forced, and sent again');
$cases->check('asked', 'asked: but it was there, and so it is not', id => $asked, state => 'succeeded', attempts => 1,
	events => 'submit claim answer_lost resolve replace look_again found', deliveries => 1, effects => 1, hasty => 1);

is($node->sql("SELECT kind, details->>'decided_by', details->>'reason', details->>'forced' FROM reconcile.incident WHERE action_id = '$asked'"),
	'contradiction|bob|I am sure|true', 'asked: an incident names who was wrong');
is($node->sql("SELECT consistency_window FROM reconcile.provider WHERE provider = 'asked'"), '01:00:00', 'asked: which says nothing about the window');

$cases->define('lacking', provider => {%long}, spec => { write => [ lost_unexecuted() ] });
my $lacking = submit_as('app', 'lacking', { n => 1 });
$node->wait_state($lacking, 'outcome_unknown');
is(as('bob', "SELECT reconcile.resolve('$lacking', 'not_executed', 'I am sure', force => true), reconcile.replace('$lacking', 'go')"), 'safe_to_retry|planned', 'lacking: forced as well');
$cases->check('lacking', 'lacking: it was not there, and is sent', id => $lacking, state => 'succeeded', attempts => 2,
	events => 'submit claim answer_lost resolve replace look_again absent claim answered_accepted', deliveries => 2, effects => 1, hasty => 1);
like($node->history($lacking)->[6]{evidence}{lookup}{reason}, qr/decided by a person/, 'lacking: which rests on his word, and not on the window');

$cases->define('gone', provider => { consistency_window => '0.2 s' }, spec => { write => [ lost_unexecuted() ] }, lookup => { absence_proves => 'false', max_inconclusive => 1 });
my $gone = submit_as('app', 'gone', { n => 1 });
$node->wait_state($gone, 'manual_review');
$node->wait_sql("SELECT reconcile.window_open_until('$gone') IS NULL", 't');
# In two transactions: the lock that resolve() takes goes a moment after its commit, and the send that met it would be refused.
is(as('alice', "SELECT reconcile.resolve('$gone', 'not_executed', 'they have no trace of it')"), 'safe_to_retry', 'gone: no force is needed after the window');
is(as('alice', "SELECT reconcile.replace('$gone', 'once more')"), 'planned', 'gone: and it is wanted again');
$cases->check('gone', 'gone: sent again', id => $gone, state => 'succeeded', attempts => 2, events => qr/resolve replace claim answered_accepted$/, deliveries => 2, effects => 1);
ok(!exists $node->history($gone)->[-4]{evidence}{forced}, 'gone: nothing was forced');

# A key that is alive keeps him from doing harm; one that may be forgotten is not relied on.
my %key = (lookup => 0, headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' }, key_lifetime_source => 'documented', key_margin => '1 s');
$cases->define('keyed', %key, provider => {%long}, key_lifetime => '1 hour', spec => { key_header => 'Idempotency-Key', write => [ lost() ] });
$cases->define('stale', %key, provider => {%long}, key_lifetime => '2 s', spec => { key_header => 'Idempotency-Key', write => [ lost_unexecuted() ] });
my %with_key = map { $_ => submit_as('app', $_, { n => 1 }) } qw(keyed stale);
$node->wait_state($_, 'manual_review') foreach values %with_key;
like(as('bob', "SELECT if_repeated FROM reconcile.review_queue WHERE action_id = '$with_key{keyed}'"), qr/until 20.*Z the provider takes it for the same one, by its idempotency key; after that there is a second effect/,
	'keyed: the queue tells how long the key protects');
unlike(as('bob', "SELECT if_repeated FROM reconcile.review_queue WHERE action_id = '$with_key{stale}'"), qr/key/, 'stale: or that it does not');
is(as('bob', "SELECT reconcile.resolve('$_', 'not_executed', 'I am sure', force => true), reconcile.replace('$_', 'go')"), 'safe_to_retry|planned', 'a key: forced') foreach @with_key{qw(keyed stale)};
# Who decides holds the action's lock a moment longer than its commit takes: a send that meets it is refused, and repeated.
sub attempts_of { $node->wait_state($_[0], 'succeeded'); return scalar @{ $node->attempt($_[0]) }; }
$cases->check('keyed', 'keyed: the same key, and one effect', id => $with_key{keyed}, state => 'succeeded', attempts => attempts_of($with_key{keyed}),
	deliveries => 2, effects => 1, events => qr/^submit claim answer_lost no_query_surface resolve replace (claim not_sent )*claim answered_accepted$/);
is(join(' ', map { $_->[1] } $provider->keys_seen('keyed')), 'new replayed', 'keyed: which the provider knew');
$cases->check('stale', 'stale: another key', id => $with_key{stale}, state => 'succeeded', attempts => attempts_of($with_key{stale}), deliveries => 2, effects => 1);
my @keys = map { $_->[0] } $provider->keys_seen('stale');
isnt($keys[0], $keys[1], 'stale: which is not the first one');

# ---------------------------------------------------------------- the verdict comes later

$cases->define('later', lookup => 0, spec => { write => [ lost() ] },
	poll => { path => '/effects/{client_reference}', state_path => '$.body.amount', accepted => '{5}', rejected => '{6}', artifact_path => '$.id' });
my $later = submit_as('app', 'later', { amount => 5 });
$node->wait_state($later, 'manual_review');
is(as('alice', "SELECT reconcile.resolve('$later', 'executed', 'they have it')"), 'delivered', 'later: "it is there" is no verdict where there is one to come');
$cases->check('later', 'later: it is asked for', id => $later, state => 'succeeded', events => 'submit claim answer_lost no_query_surface resolve poll_accepted',
	deliveries => 1, effects => 1);

# ---------------------------------------------------------------- two people at the same time (case 55)

$cases->define('phone', %mail, provider => {%long}, spec => { write => [ lost() ] });
my $phone = submit_as('app', 'phone', { n => 1 });
$node->wait_state($phone, 'manual_review');
my $alice = $node->background_psql('postgres', on_error_die => 0, extra_params => [ '-U', 'alice' ]);
$alice->query_safe('BEGIN');
is($alice->query("SELECT reconcile.resolve('$phone', 'executed', 'done by phone')"), 'succeeded', 'phone: alice enters that it was done by phone');
like(refusal('bob', "SELECT reconcile.replace('$phone', 'send again')"), qr/^55P03.*somebody else/, 'phone: bob wants it sent again, and waits for nobody long');
like(refusal('bob', "SELECT reconcile.resolve('$phone', 'not_executed', 'send again', force => true)"), qr/^55P03.*at this moment/, 'phone: or at all');
$alice->query_safe('COMMIT');
$alice->quit;
like(refusal('bob', "SELECT reconcile.resolve('$phone', 'not_executed', 'send again', force => true)"),
	qr/^55000.*it is succeeded \(version 5\) \| It became succeeded by "resolve" at 20.*Z, by alice: done by phone/, 'phone: then he is told who has decided, when, and why');
like(refusal('bob', "SELECT reconcile.resolve('$phone', 'rejected', 'x', expected_version => 4)"), qr/^40001.*is at version 5, not 4: it is succeeded now/, 'phone: and that he looked at an old state');
$cases->check('phone', 'phone: the first valid decision counts', id => $phone, state => 'succeeded', events => 'submit claim answer_lost no_query_surface resolve',
	deliveries => 1, effects => 1, artifact => $phone);

# Two hundred held ones are let go together; three of them have been confirmed meanwhile.
$cases->define('many', %mail, provider => { consistency_window => '0 s', max_in_flight => 16 }, spec => { write => [ lost(), lost(), lost() ] });
my @early = map { submit_as('app', 'many', { early => $_ }) } 1 .. 3;
$node->wait_state($_, 'manual_review') foreach @early;
$node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'many' AND reconcile.window_open_until(action_id) IS NOT NULL", '0');
as('bob', "SELECT reconcile.pause('many', 'an outage')");
my $list = join ', ', map { "'$_'" } @early;
is(as('bob', "SELECT result, count(*) FROM reconcile.bulk_apply((SELECT batch FROM reconcile.bulk_preview('resolve not_executed', ARRAY[$list]::uuid[])), 'an outage') GROUP BY 1"), 'done|3', 'many: three are thought not to have happened');
is(as('bob', "SELECT result, count(*) FROM reconcile.bulk_apply((SELECT batch FROM reconcile.bulk_preview('replace', operation => 'many')), 'an outage') GROUP BY 1"), 'done|3', 'many: and queued again');
is(as('bob', "SELECT count(reconcile.hold(action_id, 'an outage')) FROM reconcile.action WHERE operation = 'many'"), 3, 'many: but held');
as('app', "SELECT count(*) FROM generate_series(1, 197) n, reconcile.submit('many', jsonb_build_object('n', n), hold => true)");
my $preview = rows_as('alice', "SELECT * FROM reconcile.bulk_preview('release', operation => 'many', held => true, reason => 'is it over?')")->[0];
is($preview->{items}, 200, 'many: two hundred are previewed');
is_deeply([ map { "$_->{provider} $_->{operation} $_->{state} $_->{count}" } @{ $preview->{totals} } ], ['many many planned 200'], 'many: with their totals');
is(scalar @{ $preview->{sample} }, 10, 'many: and a sample');
is(as('alice', "SELECT result FROM reconcile.confirm('$_', 'o-$_', provider => 'many')"), 'applied', 'many: one is confirmed meanwhile') foreach @early;
is($provider->deliveries('many'), 3, 'many: and nothing has been sent yet');
is(as('alice', "SELECT result, count(*), min(detail) FROM reconcile.bulk_apply($preview->{batch}, 'it is over') GROUP BY 1 ORDER BY 1"),
	"done|197|planned\nskipped|3|version moved: previewed as planned at version 7, it is succeeded at version 8", 'many: 197 are let go, three are left alone');
is(as('bob', "SELECT result, count(*) FROM reconcile.bulk_apply($preview->{batch}, 'again') GROUP BY 1 ORDER BY 1"), "done|197\nskipped|3", 'many: which is done once');
as('bob', "SELECT reconcile.resume('many')");
is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'many' AND state = 'succeeded'", '200'), 200, 'many: all of them succeed');
is($provider->deliveries('many'), 200, 'many: 197 were sent');
is_deeply($provider->ledger('many')->{duplicates}, {}, 'many: and none twice');
is($node->sql("SELECT count(*), count(DISTINCT h.action_id), string_agg(DISTINCT h.actor, ' '), string_agg(DISTINCT h.evidence->>'reason', ' ')
	  FROM reconcile.history h WHERE h.event = 'release' AND h.evidence->>'batch' = '$preview->{batch}'"), '197|197|alice|it is over', 'many: each entry names the person, the reason and the batch');
like($node->sql_error("UPDATE reconcile.history SET actor = 'nobody' WHERE event = 'release';"), qr/^55000/, 'many: for good');

# ---------------------------------------------------------------- an agent calls again (case 53)

$cases->define('refund', provider => { attempt_timeout => '0.5 s', consistency_window => '3 s' }, spec => { write => [ { then => 'hang' } ] });
my $call = "SELECT * FROM reconcile.submit('refund', '{\"order\": 9, \"amount\": 20.00}')";
my $first = rows_as('app', $call)->[0];
$node->wait_state($first->{action_id}, 'outcome_unknown');
foreach my $time (2, 3)
{
	my $answer = rows_as('app', $call)->[0];
	is($answer->{action_id}, $first->{action_id}, "refund: call $time is given the first action");
	ok($answer->{joined}, "refund: call $time is told so");
	is("$answer->{status} $answer->{state}", 'DENIED_UNRESOLVED outcome_unknown', "refund: call $time: not known yet");
	is($answer->{may_repeat}, JSON::PP::false, "refund: call $time: do not repeat");
	like($answer->{advice}, qr/not known yet: do not repeat/, "refund: call $time: in words too");
	like($answer->{next_step_at}, qr/^20/, "refund: call $time: when it is looked at next");
}
is(rows_as('other', $call)->[0]{joined}, JSON::PP::false, 'refund: the same call by another submitter is another intent');
my $second = rows_as('app', "SELECT * FROM reconcile.submit('refund', '{\"order\": 9, \"amount\": 20.00}', on_duplicate => 'new')")->[0];
isnt($second->{action_id}, $first->{action_id}, 'refund: "really a second one" is a second one');
$node->wait_state($_, 'succeeded') foreach $first->{action_id}, $second->{action_id};
is_deeply($provider->ledger('refund')->{duplicates}, {}, 'refund: one effect each');
is($provider->effects('refund'), 3, 'refund: no more');
is($node->sql("SELECT evidence FROM reconcile.history WHERE action_id = '$second->{action_id}' AND version = 1"), '{"submit": {"deliberate_repeat": true}}', 'refund: which the history says');
is($node->sql("SELECT string_agg(state::text || ' ' || joined_by, ', ') FROM reconcile.joined_submission WHERE action_id = '$first->{action_id}'"),
	'outcome_unknown app, outcome_unknown app', 'refund: and the calls that were joined');
is(as('other', "SELECT count(*) FROM reconcile.action_status WHERE action_id = '$first->{action_id}'"), 0, 'refund: nobody else sees them');
like(refusal('other', "SELECT reconcile.cancel('$first->{action_id}', 'x')"), qr/^42704.*Or it is not yours/, 'refund: or touches them');

# ---------------------------------------------------------------- approval before the first send

$cases->define('paid', lookup => 0, requires_approval => 'true', answers => [ { class => 'not_executed', statuses => '{429}' } ],
	spec => { write => [ { status => 429, commit => 'never' } ] });
my $paid = submit_as('app', 'paid', { amount => 5000 });
my $mine = submit_as('dora', 'paid', { amount => 1 });
my $waits = rows_as('alice', "SELECT * FROM reconcile.review_queue WHERE action_id = '$paid'")->[0];
is("$waits->{needs}: $waits->{why}", 'approve: it waits for approval', 'paid: it is in the queue');
is(decode_json($waits->{body})->{amount}, 5000, 'paid: with what is to be sent');
like($waits->{suggested}, qr/release\('$paid', reason, '$waits->{fingerprint}'\)/, 'paid: and how to approve it');
like(refusal('app', "SELECT reconcile.release('$paid', 'x', '$waits->{fingerprint}')"), qr/^42501/, 'paid: not by a submitter');
like(refusal('alice', "SELECT reconcile.release('$paid', 'x')"), qr/^22023.*must name the fingerprint/, 'paid: not without saying what');
my $other_print = $node->sql("SELECT fingerprint FROM reconcile.action WHERE action_id = '$mine'");
like(refusal('alice', "SELECT reconcile.release('$paid', 'x', '$other_print')"), qr/^55000.*not what is approved.*$waits->{fingerprint}/, 'paid: not something else');
like(refusal('dora', "SELECT reconcile.release('$mine', 'x', '$other_print')"), qr/^42501.*who submitted it/, 'paid: and nobody approves her own');
is($provider->deliveries('paid'), 0, 'paid: nothing has left');
is(as('alice', "SELECT reconcile.release('$paid', 'order 17 is fine', '$waits->{fingerprint}')"), 'planned', 'paid: alice approves it');
$cases->check('paid', 'paid: sent, and sent again after the provider did nothing, without asking her twice', id => $paid, state => 'succeeded', attempts => 2,
	events => 'submit release claim not_executed claim answered_accepted', deliveries => 2, effects => 1);
is($node->sql("SELECT approved_by FROM reconcile.action WHERE action_id = '$paid'"), 'alice', 'paid: by alice, it says');
is($node->history($paid)->[1]{evidence}{approves}, $waits->{fingerprint}, 'paid: and what she approved');
is(as('dora', "SELECT reconcile.cancel('$mine', 'nobody approves it')"), 'cancelled', 'paid: a submitter may withdraw her own');
is(as('alice', 'SELECT count(*) FROM reconcile.review_queue'), 0, 'the queue is empty in the end');

$node->assert_consistent;
done_testing();
