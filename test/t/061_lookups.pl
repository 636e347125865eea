# What an answer to a lookup proves: bad answers prove nothing, a lost right is
# caught by a canary, tombstones and markers and ids are read for what they are,
# several rules are asked in order and each behind its own window.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use JSON::PP;
use MIME::Base64;
use Test::More;

use ActionReconcile::Cases qw(lost lost_unexecuted found_after absent_after);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('lookups');
my $cases = ActionReconcile::Cases->new($node, $provider);
my $story;

my %no_canary = (canary => 'none');
my %by_name = (
	kind => 'get_by_reference', path => '/effects/{client_reference}', items_path => undef,
	absent_statuses => '{404}', canary => 'none');
my %global = (reference_is_global => 'true');

# ---------------------------------------------------------------- answers that are none

my %status = (reason => 'the status means neither found nor absent');
my %form = (reason => 'the body does not have the expected form');
my %nothing = (reason => 'no complete answer to the question');
sub raw { return { raw => "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n$_[0]" }; }
my @bad = (
	{ step => { body => '<html>we are down for maintenance, {{ref}}</html>' }, %form },
	{ step => { status => 401 }, %status },
	{ step => { status => 403 }, %status },
	{ step => { status => 404 }, %status },
	{ step => { status => 410 }, %status },
	{ step => { status => 429 }, %status },
	{ step => { status => 500, body => { data => [] } }, %status },
	{ step => { status => 503, body => { data => [] } }, %status },
	{ step => { status => 202, body => { data => [] } }, %status },
	{ step => { status => 204 }, %status },
	{ step => { status => 206, body => { data => [] } }, %status },
	{ step => { status => 300, body => [ '/effects/1', '/effects/2' ] }, %status },
	{ step => { status => 302, headers => { Location => '{{other}}' } }, %status },
	{ step => { status => 304 }, %status },
	{ step => { body => { rows => [] } }, %form },
	{ step => { body => { data => {} } }, %form },
	{ step => { body => { data => undef } }, %form },
	{ step => { body => { data => 'none' } }, %form },
	{ step => { body => [] }, %form },
	{ step => { body => 'null' }, %form },
	{ step => { body => '' }, %form },
	{ step => { body => '{"data": []' }, %form },
	{ step => { body => '{"data": []} {"data": []}' }, %form },
	{ step => { body_b64 => encode_base64("{\"data\": [], \"note\": \"\xff\"}", '') }, %form },
	{ step => { body_b64 => encode_base64("{\"data\": []}\0", '') }, %form },
	{ step => { body => '{"data": [' . '[' x 100_000 . ']' x 100_000 . ']}' }, %form },
	{ step => { body_bytes => 300_000 }, %nothing },
	{ step => { then => 'close' }, %nothing },
	{ step => { then => 'reset' }, %nothing },
	{ step => raw("Content-Length: 500\r\n\r\n{\"data\": []}"), %nothing },
	{ step => raw("Transfer-Encoding: chunked\r\n\r\nc\r\n{\"data\": []}\r\n"), %nothing },
	{ step => raw("\r\n{\"data\": []}"), reason => 'the body may have been cut' });
$cases->define('bad-answers',
	spec => { write => [ lost() ], read => [ map { $_->{step} } @bad ] },
	provider => { max_response_bytes => 262_144 }, on_absent => 'replace',
	lookup => { %no_canary, max_inconclusive => 100, pause => '10 ms', pause_max => '10 ms' });
$cases->submit('bad-answers');

# They are repeated with growing pauses, and not for ever.
$cases->define('refused-for-ever', spec => { write => [ lost() ], read_default => { status => 401 } }, on_absent => 'replace',
	lookup => { %no_canary, max_inconclusive => 5, pause => '50 ms', pause_max => '300 ms' });
$cases->submit('refused-for-ever');

$story = $cases->check('bad-answers', 'answers that are none',
	state => 'succeeded', events => found_after(('inconclusive') x @bad), questions => @bad + 1, deliveries => 1, effects => 1);
for my $i (0 .. $#bad)
{
	my ($answer, $step) = ($story->{answers}[$i], encode_json($bad[$i]{step}));
	is("$answer->{result}: $answer->{reason}", "inconclusive: $bad[$i]{reason}", 'answers that are none: ' . substr($step, 0, 80));
	is($story->{lookups}[$i]{reason}, $bad[$i]{reason}, '... and the lookup says so');
}
is($story->{lookups}[1]{http_status}, 401, 'answers that are none: the status is kept');
is($provider->summary('bad-answers-target')->{requests}, 0, 'answers that are none: nobody followed the redirect');
is($node->sql("SELECT paused_at FROM reconcile.provider WHERE provider = 'bad-answers'"), '', 'answers that are none: a 401 to a question pauses no sending');

$story = $cases->check('refused-for-ever', 'refused for ever: a person has to look',
	state => 'manual_review', events => 'submit claim answer_lost' . ' ask inconclusive' x 5, status => 'DENIED_UNRESOLVED',
	questions => 5, deliveries => 1, effects => 1);
for my $i (1 .. 4)
{
	my $due = (50_000, 100_000, 200_000, 300_000)[ $i - 1 ] * 0.87;
	cmp_ok($story->{lookups}[$i]{asked_us} - $story->{lookups}[ $i - 1 ]{asked_us}, '>=', $due, "refused for ever: pause $i is long enough");
}

# A negative of the gateway's is not the provider's; only its own 404 is.
$cases->define('gateway-404', spec => { write => [ lost() ], not_found => 'html', read => [ { status => 404, body => '<html>no such host</html>' } ] },
	on_absent => 'replace', lookup => \%by_name);
$cases->define('gateway-always', spec => { write => [ lost_unexecuted() ], not_found => 'html' }, on_absent => 'replace',
	lookup => { %by_name, max_inconclusive => 3 });
$cases->define('own-404', spec => { write => [ lost_unexecuted() ] }, lookup => \%by_name);
# Asked for by its name, and something else comes back.
$cases->define('other-name', spec => { write => [ lost() ], read => [ { body => { id => 'ef_1', ref => 'somebody-else' } } ] }, on_absent => 'replace',
	lookup => \%by_name);
$cases->submit($_) for qw(gateway-404 gateway-always own-404 other-name);
$cases->check('gateway-404', 'a gateway\'s 404 is no absence', state => 'succeeded', events => found_after('inconclusive'), questions => 2,
	deliveries => 1, effects => 1);
$cases->check('gateway-always', 'a gateway\'s 404, again and again', state => 'manual_review', events => 'submit claim answer_lost' . ' ask inconclusive' x 3,
	deliveries => 1, effects => 0);
$cases->check('own-404', 'the provider\'s own 404 is one', state => 'safe_to_retry', events => absent_after('absent_once'), deliveries => 1, effects => 0);
$cases->check('other-name', 'somebody else\'s object under our name is neither', state => 'succeeded', events => found_after('inconclusive'), deliveries => 1);

# ---------------------------------------------------------------- the canary

my %ways = (list => {}, object => { %by_name, canary => 'newest' }, page => { kind => 'list_scan', path => '/effects', paging => 'offset',
		paging_parameter => 'offset', page_size => 2, canary => 'newest' });
my %blind = (list => { body => { data => [] } }, object => { status => 404 }, page => { body => { data => [] } });
foreach my $way (sort keys %ways)
{
	my %spec = $way eq 'page' ? (page_size => 2, paging => 'offset', order => 'newest') : ();
	foreach my $kind (qw(restored lost absent))
	{
		my $name = "rights-$way-$kind";
		$cases->define($name, spec => \%spec, on_absent => $kind eq 'absent' ? 'hold' : 'replace', lookup => { %{ $ways{$way} }, max_inconclusive => 3 });
		$cases->submit($name, { amount => 1 });
	}
}
foreach my $way (sort keys %ways)
{
	my %spec = $way eq 'page' ? (page_size => 2, paging => 'offset', order => 'newest') : ();
	foreach my $kind (qw(restored lost absent))
	{
		my $name = "rights-$way-$kind";
		$cases->check($name, "$name: an ordinary one", state => 'succeeded', events => 'submit claim answered_accepted');
		my %then = $kind eq 'lost' ? (write => [ lost() ], read_default => $blind{$way}) :
		  $kind eq 'restored' ? (write => [ lost() ], read => [ ($blind{$way}) x 4 ]) : (write => [ lost_unexecuted() ]);
		$provider->scenario($name, { %spec, %then });
		# the ordinary one is on page 3 now
		$provider->preload($name, [ map { { age_s => 0 } } 1 .. 4 ]) if $way eq 'page';
		$cases->submit($name, { amount => 2 });
	}
}
foreach my $way (sort keys %ways)
{
	$story = $cases->check("rights-$way-restored", "$way, lost rights that come back: found",
		state => 'succeeded', events => found_after(qw(inconclusive inconclusive)), questions => 3, deliveries => 2, effects => 2);
	is($story->{answers}[0]{reason}, 'the same lookup does not show an object that is known to be there', "$way, lost rights: why nothing was proven");
	is($story->{answers}[0]{canary}, 'not found', "$way, lost rights: the canary is in the history");
	$story = $cases->check("rights-$way-lost", "$way, rights that stay lost: nothing becomes absent",
		state => 'manual_review', events => 'submit claim answer_lost' . ' ask inconclusive' x 3, questions => 3, deliveries => 2, effects => 2);
	is($story->{negatives}, 0, "$way, rights that stay lost: no negative was counted");
	$story = $cases->check("rights-$way-absent", "$way: a negative with a canary is enough",
		state => 'safe_to_retry', events => absent_after(), questions => 1, deliveries => 2, effects => 1, reads => $way eq 'page' ? 6 : 2);
	is($story->{answers}[0]{canary}, 'found', "$way: and the history says so");
}
my @asked = map { $_->{path} } $provider->requests('rights-object-absent', 'read');
like($asked[0], qr/\Q$story->{client_reference}\E|[0-9a-f-]{36}$/, 'the canary: first ours is asked for');
isnt($asked[0], $asked[1], 'the canary: then the newest that was accepted');

$cases->define('canary-none', spec => { write => [ {}, lost_unexecuted() ] }, lookup => \%no_canary);
$cases->define('canary-first', spec => { write => [ lost_unexecuted() ] });
$cases->define('canary-fixed', spec => { write => [ lost_unexecuted() ], preload => [ { ref => 'always-there' } ] },
	lookup => { canary => 'fixed', canary_reference => 'always-there' });
$cases->define('canary-dead', spec => { write => [ lost_unexecuted() ] }, lookup => { canary => 'fixed', canary_reference => 'always-there', max_inconclusive => 2 });
$cases->define('canary-broken', spec => { write => [ lost_unexecuted() ], preload => [ { ref => 'always-there' } ], read => [ {}, { status => 500 } ] },
	lookup => { canary => 'fixed', canary_reference => 'always-there' });
$cases->submit('canary-none', { amount => 1 });
$cases->check('canary-none', 'no canary: an ordinary one', state => 'succeeded', events => 'submit claim answered_accepted');
$cases->submit($_, { amount => 2 }) for qw(canary-none canary-first canary-fixed canary-dead canary-broken);
$story = $cases->check('canary-none', 'no canary: one more negative', state => 'safe_to_retry', events => absent_after('absent_once'), questions => 2, reads => 2);
is("$story->{answers}[1]{canary} $story->{answers}[1]{negatives}", 'no canary 2', 'no canary: the history says so');
cmp_ok($story->{lookups}[1]{asked_us} - $story->{lookups}[0]{asked_us}, '>=', 100_000, 'no canary: the two are spaced apart');
$story = $cases->check('canary-first', 'nothing accepted yet: one more negative', state => 'safe_to_retry', events => absent_after('absent_once'), reads => 2);
is($story->{answers}[1]{canary}, 'no canary', 'nothing accepted yet: the history says so');
$cases->check('canary-fixed', 'a fixed canary: one negative', state => 'safe_to_retry', events => absent_after(), reads => 2);
$cases->check('canary-dead', 'a fixed canary that is gone: nothing is proven', state => 'manual_review',
	events => 'submit claim answer_lost ask inconclusive ask inconclusive', reads => 4);
$story = $cases->check('canary-broken', 'a canary that cannot be asked for: nothing is proven', state => 'safe_to_retry', events => absent_after('inconclusive'), reads => 4);
is($story->{answers}[0]{canary}, 'not found', 'a canary that cannot be asked for: the history says so');

# ---------------------------------------------------------------- answers that do not show everything

my %flagged = (%no_canary, incomplete_if => '$ ? (@.incomplete == true)');
$cases->define('says-so', spec => { write => [ lost() ], read => [ { incomplete => 'empty' }, { incomplete => 'empty' } ] }, on_absent => 'replace', lookup => \%flagged);
$cases->define('shows-it', spec => { write => [ lost() ], read => [ { incomplete => \1 } ] }, lookup => \%flagged);
$cases->submit($_) for qw(says-so shows-it);
$story = $cases->check('says-so', 'an answer that says it is not complete proves nothing', state => 'succeeded', events => found_after(qw(inconclusive inconclusive)),
	deliveries => 1, effects => 1);
is($story->{answers}[0]{incomplete}, 'the answer says itself that it is not complete', 'an answer that says it is not complete: the history repeats it');
$cases->check('shows-it', 'but what it shows is there', state => 'succeeded', events => found_after(), questions => 1, deliveries => 1);

# ---------------------------------------------------------------- markers in a text, and objects of another kind

# As issues are: a text that carries a marker, in a list that holds other things too.
sub issue { return { resource => 'issues', ref => undef, age_s => 0, body => { text => $_[0] }, @_[ 1 .. $#_ ] }; }
my @others = (
	issue('fixes it <!-- ref: order-1 -->', id => 'pr_1', pull_request => {}),
	issue('a longer one <!-- ref: order-12 -->'), issue('<!-- ref: x-order-1 -->'), issue('<!-- ref: order-1.5 -->'),
	issue('<!-- ref: order-1-a -->'), issue('<!-- ref: order-1_a -->'), issue('<!-- ref: order-1~a -->'), issue('orders-1 and border-1 and Order-1'));
my %issues = (
	%global, path => '/issues', reference_body_path => undef,
	lookup => { %no_canary, kind => 'list_scan', path => '/issues', reference_path => '$.body.text', reference_match => 'contains', exclude_path => '$.pull_request' });
my %texts = (
	'marker' => "{text}\n<!-- ref: {client_reference} -->", 'sentence' => '{text}. This is {client_reference}.', 'quoted' => '{text} ("{client_reference}")',
	'first' => '{client_reference}: {text}', 'slashes' => 'https://shop.example/{client_reference}/{text}', 'dashes' => '{text} - {client_reference} - by us',
	'list' => '{text}, {client_reference}, ...', 'only' => '{client_reference}');
foreach my $name (sort keys %texts)
{
	$cases->define("text-$name", spec => { preload => \@others, write => [ lost() ], ref_regex => '\b(order-1)\b' }, %issues, on_absent => 'replace',
		body_document => { text => $texts{$name} });
	$cases->submit("text-$name", { text => 'a bug' }, client_reference => 'order-1');
}
$cases->define('text-not-there', spec => { preload => \@others, write => [ lost_unexecuted() ] }, %issues, body_document => { text => $texts{marker} });
$cases->submit('text-not-there', { text => 'a bug' }, client_reference => 'order-1');
foreach my $name (sort keys %texts)
{
	$story = $cases->check("text-$name", "a reference in a text, $name: found, and nothing else",
		state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1);
	is("$story->{lookups}[0]{matches} $story->{lookups}[0]{objects}", '1 8', "a reference in a text, $name: the pull request is none of them");
}
$cases->check('text-not-there', 'neither a longer reference nor a pull request is ours',
	state => 'safe_to_retry', events => absent_after('absent_once'), questions => 2, deliveries => 1, effects => 0);

# ---------------------------------------------------------------- made, and removed since

my %tombstone = (%by_name, gone_path => '$ ? (@.status == "cancelled")');
$cases->define('tombstone', spec => { delete => { get => 'cancelled' }, write => [ lost() ] }, on_absent => 'replace', provider => { consistency_window => '1 s' },
	lookup => \%tombstone);
my $removed = $cases->submit('tombstone');
$provider->wait_effects('tombstone', 1);
is($provider->somebody('tombstone', 'DELETE', "/effects/$removed")->{status}, 204, 'made, and removed since: somebody removes it');
$story = $cases->check('tombstone', 'made, and removed since: it has happened',
	state => 'succeeded', events => found_after(), status => 'CONFIRMED', questions => 1, duplicates => 1,
	artifact => $provider->ledger('tombstone')->{effects}[0]{id});
is($story->{answers}[0]{gone}, JSON::PP::true, 'made, and removed since: noted');
is($story->{answers}[0]{reason}, 'the object carries the full reference, and has been removed since', 'made, and removed since: in words');
is(scalar(grep { $_->{method} eq 'POST' } $provider->requests('tombstone', 'write')), 1, 'made, and removed since: it is not made again');

# An archived object that answers 404 like one that never was, and is shown on request only.
my %archive = (absent_statuses => '{404}', gone_path => '$ ? (@.archived == true)');
$cases->define('archived',
	spec => { write => [ lost_unexecuted() ], read => [ {}, { body => { id => '77', ref => '{{ref}}', archived => \1 } } ] }, on_absent => 'replace',
	lookups => [ { %by_name, absence_proves => 'false' }, { %by_name, %archive, path => '/effects/{client_reference}?archived=true' } ]);
$cases->submit('archived');
$story = $cases->check('archived', 'archived: its 404 proves nothing, and the archive shows it',
	state => 'succeeded', events => found_after('inconclusive'), questions => 2, deliveries => 1, artifact => '77');
is($story->{answers}[0]{reason}, 'not found, where that proves nothing', 'archived: why the first rule was passed');
is($story->{answers}[1]{gone}, JSON::PP::true, 'archived: that it is gone is noted');

# ---------------------------------------------------------------- several rules, each behind its own window

my %list = (%no_canary, absence_proves => 'false', consistency_window => '0.3 s', window_source => 'documented');
my %search = (
	%no_canary, kind => 'search', method => 'POST', path => '/effects/search', body => { filter => { ref => '{client_reference}' } },
	consistency_window => '1.5 s', window_source => 'documented');
my %orders = (
	'list-shows' => { write => [ lost() ] },
	'search-shows' => { write => [ lost() ], read => [ { body => { data => [] } } ], search_lag_s => 1 },
	'list-broken' => { write => [ lost() ], read => [ { status => 500 }, { status => 500 } ] },
	'neither-shows' => { write => [ lost_unexecuted() ] },
	'search-broken' => { write => [ lost() ], read => [ { body => { data => [] } } ], read_default => { status => 500 } });
foreach my $name (sort keys %orders)
{
	$cases->define($name, spec => $orders{$name}, on_absent => $name eq 'neither-shows' ? 'hold' : 'replace',
		lookups => [ { %list, max_inconclusive => 2 }, { %search, max_inconclusive => 2 } ]);
	$cases->submit($name);
}
my %asked_by = (
	'list-shows' => [ 'succeeded', found_after(), 1 ],
	'search-shows' => [ 'succeeded', found_after('inconclusive'), 1, 2 ],
	'list-broken' => [ 'succeeded', found_after(qw(inconclusive inconclusive)), 1, 1, 2 ],
	'neither-shows' => [ 'safe_to_retry', absent_after(qw(inconclusive absent_once)), 1, 2, 2 ],
	'search-broken' => [ 'manual_review', 'submit claim answer_lost' . ' ask inconclusive' x 3, 1, 2, 2 ]);
foreach my $name (sort keys %orders)
{
	my ($state, $events, @positions) = @{ $asked_by{$name} };
	$story = $cases->check($name, "two rules: $name", state => $state, events => $events, questions => scalar @positions, deliveries => 1);
	is(join(' ', map { $_->{position} } @{ $story->{lookups} }), "@positions", "two rules: $name: asked in this order");
	my ($second) = grep { $_->{position} == 2 } @{ $story->{lookups} };
	next unless $second;
	my $gate = $story->{attempt}[0]{gate_us} + 1_200_000;
	cmp_ok($second->{asked_us}, '>=', $gate, "two rules: $name: the second not before its own window closed");
	my ($request) = grep { $_->{method} eq 'POST' } $provider->requests($name, 'read');
	is(decode_json($request->{body})->{filter}{ref}, $story->{client_reference}, "two rules: $name: the search is asked with a body");
}

# What the first rule has seen twice is worth nothing to the second one.
$cases->define('own-negatives', spec => { write => [ lost_unexecuted() ], read => [ {}, { status => 500 }, { status => 500 } ] },
	lookups => [ { %no_canary, max_inconclusive => 2 }, \%search ]);
$cases->submit('own-negatives');
$story = $cases->check('own-negatives', 'each rule counts its own negatives',
	state => 'safe_to_retry', events => absent_after(qw(absent_once inconclusive inconclusive absent_once)), questions => 5, deliveries => 1, effects => 0);
is(join(' ', map { $_->{negatives} // '-' } @{ $story->{answers} }), '1 - - 1 2', 'each rule counts its own negatives: from one');

# The window is short, but the second negative comes late enough to see it: that is an incident.
$cases->define('late-index', spec => { write => [ lost() ], read => [ { body => { data => [] } } ] }, on_absent => 'replace', lookup => \%no_canary);
$cases->submit('late-index');
$cases->check('late-index', 'absent once, then there', state => 'succeeded', events => found_after('absent_once'), deliveries => 1, effects => 1, violations => 1);

# ---------------------------------------------------------------- ids beyond 2^53

my %ids = (
	'369553424691494913' => '369553424691494913', '18446744073709551615' => '18446744073709551615', '9007199254740993' => '9007199254740993',
	'-1' => '-1', '"007"' => '007', '"369553424691494913"' => '369553424691494913', '1e400' => '1' . '0' x 400, '123456789012345678901234567890' => '123456789012345678901234567890');
my $number = 0;
my %answer_of;
foreach my $id (sort keys %ids)
{
	my $name = 'id' . ++$number;
	$answer_of{$name} = $id;
	$cases->define($name, spec => { write => [ { body => "{\"id\":$id,\"amount\":0.1}" } ] });
	$cases->define("$name-later",
		spec => { write => [ { status => 202, commit => 'before', body => "{\"id\":$id}" } ], read_default => { body => { status => 'succeeded' } } },
		poll => { path => '/things/{artifact_id}' });
	$cases->submit($_) for $name, "$name-later";
}
foreach my $name (sort keys %answer_of)
{
	my ($sent, $kept) = ($answer_of{$name}, $ids{ $answer_of{$name} });
	my $short = length($sent) > 30 ? substr($sent, 0, 30) : $sent;
	$cases->check($name, "the id $short", state => 'succeeded', events => 'submit claim answered_accepted', artifact => $kept);
	$cases->check("$name-later", "the id $short, used", state => 'succeeded', events => 'submit claim answered_async poll_accepted', artifact => $kept, deliveries => 1);
	my ($poll) = $provider->requests("$name-later", 'read');
	is($poll->{path}, "/s/$name-later/things/$kept", "the id $short: digit for digit in a later URL");
}
$cases->define('neighbours', %global,
	spec => { write => [ lost_unexecuted() ], preload => [ { id => 369553424691494900, ref => 'order-19' }, { id => 369553424691494913, ref => 'order-20' } ] });
$node->define_operation('cancellation', 'neighbours', path => '/cancellations/{id}', lookup => 0);
$cases->submit('neighbours', {}, client_reference => 'order-20');
$cases->check('neighbours', 'an id in a list', state => 'succeeded', events => found_after(), artifact => '369553424691494913');
my $cancellation = $node->submit('cancellation', { id => 369553424691494913 });
is($node->wait_state($cancellation, 'succeeded'), 'succeeded', 'an id in a list: used');
is((grep { $_->{path} =~ /cancel/ } $provider->requests('neighbours', 'write'))[0]{path}, '/s/neighbours/cancellations/369553424691494913',
	'an id in a list: digit for digit, and the neighbour is left alone');

# ---------------------------------------------------------------- accepted here, unknown there

# There is no sweep that asks again for what has been accepted; but an accepted
# object that is not shown any more makes every negative worthless, and is an
# incident of its own.
$cases->define('lost-there', spec => { write => [ { status => 201, commit => 'never' }, lost_unexecuted(), lost() ] }, on_absent => 'replace',
	lookup => { max_inconclusive => 2 });
my $accepted = $cases->submit('lost-there', { n => 1 });
$node->wait_state($accepted, 'succeeded');
$cases->check('lost-there', 'accepted, and lost by the provider', id => $accepted, state => 'succeeded', events => 'submit claim answered_accepted',
	effects => 0, artifact => $node->status($accepted)->{artifact_id});
$cases->submit('lost-there', { n => 2 });
$story = $cases->check('lost-there', 'accepted, and lost: the next negative is not believed',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive ask inconclusive', deliveries => 2, effects => 0);
is($node->sql("SELECT kind FROM reconcile.incident WHERE action_id = '$accepted'"), 'contradiction', 'accepted, and lost: an incident tells');
is($node->status($accepted)->{acceptance}, 'accepted', 'accepted, and lost: which takes nothing back');
is($story->{answers}[1]{reason}, 'the same lookup does not show an object that is known to be there', 'accepted, and lost: this is why');
$cases->submit('lost-there', { n => 3 });
$cases->check('lost-there', 'accepted, and lost: what is shown is believed', state => 'succeeded', events => found_after(), deliveries => 3, effects => 1);
is($node->status($accepted)->{status}, 'CONFIRMED', 'accepted, and lost: the acceptance stays');
is($node->events($accepted), 'submit claim answered_accepted', 'accepted, and lost: it is not sent again');

# Taken in an answer that nobody can read, and then not shown: a contradiction, not an absence.
$cases->define('taken', spec => { write => [ { status => 200, body => '<html>thank you</html>', commit => 'never' } ] }, on_absent => 'replace',
	lookup => { %no_canary, max_inconclusive => 3 });
$cases->submit('taken');
$story = $cases->check('taken', 'taken, and not shown', state => 'manual_review', events => 'submit claim answered_unreadable' . ' inconclusive' x 3,
	status => 'DENIED_UNRESOLVED', deliveries => 1, effects => 0);
is($story->{answers}[0]{reason}, 'the provider took it, and does not show it', 'taken, and not shown: the history says so');
is($story->{standing}, 'confirmed/pending', 'taken, and not shown: it stays delivered');

# ---------------------------------------------------------------- questions that cannot be asked

# It needs the id that we are looking for.
my %by_id = (%by_name, path => '/effects/{artifact_id}');
$cases->define('needs-id', spec => { write => [ lost() ] }, on_absent => 'replace', lookup => { %by_id, max_inconclusive => 2 });
$cases->define('needs-id-first', spec => { write => [ lost() ] }, on_absent => 'replace', lookups => [ { %by_id, max_inconclusive => 2 }, \%no_canary ]);
# Asked for by the time; by the reference it cannot be filtered.
$cases->define('by-time', spec => { preload => [ { age_s => 7200 }, { age_s => 7200 } ], write => [ lost() ] },
	lookup => { %no_canary, kind => 'list_scan', path => '/effects?since={since_unix}&until={until_unix}' });
$cases->define('by-time-iso', spec => { preload => [ { age_s => 7200 }, { age_s => 7200 } ], write => [ lost() ] },
	lookup => { %no_canary, kind => 'list_scan', path => '/effects?since={since_iso}&until={until_iso}' });
# A filter that the provider does not know: it answers with a few of all objects, and says nothing.
$cases->define('no-filter', spec => { page_size => 3, preload => 3 }, on_absent => 'replace',
	lookup => { path => '/effects?reference={client_reference}', max_inconclusive => 2 });
$cases->submit('no-filter', { n => 1 });
$cases->check('no-filter', 'a filter that is not known: an ordinary one', state => 'succeeded', events => 'submit claim answered_accepted');
$provider->scenario('no-filter', { page_size => 3, preload => 3, write => [ lost() ] });
$cases->submit($_, { n => 2 }) for qw(needs-id needs-id-first by-time by-time-iso no-filter);
$story = $cases->check('needs-id', 'a question that needs the answer', state => 'manual_review', events => 'submit claim answer_lost ask inconclusive ask inconclusive',
	deliveries => 1, effects => 1, reads => 0);
is($story->{answers}[0]{problem}, 'the question cannot be made from the rule', 'a question that needs the answer: the history says so');
$story = $cases->check('needs-id-first', 'a question that needs the answer, then another one', state => 'succeeded', events => found_after(qw(inconclusive inconclusive)),
	deliveries => 1, effects => 1, reads => 1);
foreach my $name (qw(by-time by-time-iso))
{
	$story = $cases->check($name, "$name: found among what was made since", state => 'succeeded', events => found_after(), deliveries => 1, effects => 1, reads => 1);
	is($story->{lookups}[0]{objects}, 1, "$name: what is older was not asked for");
}
$cases->check('no-filter', 'a filter that is not known: nothing is proven', state => 'manual_review',
	events => 'submit claim answer_lost ask inconclusive ask inconclusive', deliveries => 2, effects => 2);

# More than one, where one was asked for.
$cases->define('several', spec => { write => [ lost() ], read_default => { status => 300, body => [ '/effects/1', '/effects/2' ] } }, on_absent => 'replace',
	lookup => { %by_name, max_inconclusive => 2 });
$cases->submit('several');
$cases->check('several', 'a choice of two is no answer', state => 'manual_review', events => 'submit claim answer_lost ask inconclusive ask inconclusive',
	deliveries => 1, effects => 1);

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
