# Our object is on page 3.  Every page is read before a "not there" is believed,
# in each of the ways in which providers page their lists; a page that cannot be
# read, a list without an end and a next page somewhere else prove nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Cases qw(lost lost_unexecuted found_after absent_after);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('pages');
my $cases = ActionReconcile::Cases->new($node, $provider);

# A list of everything, two rows a page, that does not know of references.
my %scan = (kind => 'list_scan', path => '/effects', canary => 'none');
my %by_url = (%scan, paging => 'next_url', paging_path => '$.next');

# ---------------------------------------------------------------- each way of paging

my %ways = (
	'link' => { spec => { paging => 'link' }, lookup => { paging => 'link' } },
	'absolute' => { spec => { paging => 'next_url' }, lookup => { paging => 'next_url', paging_path => '$.next' } },
	'relative' => {
		spec => { paging => 'next_url', next_url => 'relative' },
		lookup => { paging => 'next_url', paging_path => '$.next' } },
	'cursor' => {
		spec => { paging => 'cursor', has_more => \1 },
		lookup => { paging => 'cursor', paging_path => '$.next_cursor', paging_parameter => 'cursor', paging_more => '$.has_more' } },
	'body' => {
		spec => { paging => 'cursor' },
		lookup => {
			kind => 'search', method => 'POST', path => '/effects/search', body => { limit => 2 },
			paging => 'cursor', paging_path => '$.next_cursor', paging_body_path => '{cursor}' } },
	'offset' => { spec => { paging => 'offset' }, lookup => { paging => 'offset', paging_parameter => 'offset', page_size => 2 } },
	'page' => { spec => { paging => 'page' }, lookup => { paging => 'page', paging_parameter => 'page', page_size => 2 } });

foreach my $way (sort keys %ways)
{
	$cases->define("way-$way",
		spec => { page_size => 2, preload => 5, write => [ lost(), lost_unexecuted() ], %{ $ways{$way}{spec} } },
		lookup => { %scan, %{ $ways{$way}{lookup} } });
	$cases->submit("way-$way");
}
foreach my $way (sort keys %ways)
{
	my $story = $cases->check("way-$way", "$way: on page 3",
		state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1, reads => 3);
	is("$story->{lookups}[0]{pages} $story->{lookups}[0]{objects}", '3 6', "$way: three pages and six objects were seen");
	is("$story->{answers}[0]{pages} $story->{answers}[0]{objects}", '3 6', "$way: and the history says so");
	my %asked = map { ("$_->{path} $_->{body}" => 1) } $provider->requests("way-$way", 'read');
	is(scalar keys %asked, 3, "$way: three different questions");
	$cases->submit("way-$way", { amount => 6 });
}
foreach my $way (sort keys %ways)
{
	# six rows are three full pages: who counts has to look for a fourth
	my $pages = $way =~ /offset|^page/ ? 4 : 3;
	my $story = $cases->check("way-$way", "$way: on no page",
		state => 'safe_to_retry', events => 'submit claim answer_lost ask absent_once ask absent', status => 'FAILED',
		questions => 2, deliveries => 2, effects => 1, reads => 3 + 2 * $pages);
	is(join(', ', map { "$_->{pages} $_->{objects}" } @{ $story->{lookups} }), "$pages 6, $pages 6", "$way: every page was read, each time");
	is($story->{answers}[1]{canary}, 'no canary', "$way: that nothing vouched for the list is in the history");
}

# ---------------------------------------------------------------- a page that cannot be read

my %bad_pages = (
	'throttled' => { page => 3, status => 429, headers => { 'Retry-After' => 0 } },
	'closes' => { page => 3, then => 'close' },
	'error-page' => { page => 3, status => 200, body => '<html>maintenance</html>' },
	'no-list' => { page => 2, status => 200, body => { rows => [] } },
	'not-found' => { page => 2, status => 404 },
	'cut' => { page => 3, raw => "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"data\": [" });
foreach my $how (sort keys %bad_pages)
{
	foreach my $times ('once', 'always')
	{
		my %fault = (%{ $bad_pages{$how} }, times => $times eq 'once' ? 1 : undef);
		$cases->define("$how-$times",
			spec => { page_size => 2, paging => 'link', preload => 5, write => [ lost() ], page_faults => [ \%fault ] },
			on_absent => 'replace',
			# that 404 means "not there" is said of the list, not of a page of it
			lookup => { %scan, paging => 'link', max_inconclusive => 3, absent_statuses => '{404}', pause => '20 ms' });
		$cases->submit("$how-$times");
	}
}
foreach my $how (sort keys %bad_pages)
{
	my $page = $bad_pages{$how}{page};
	my $story = $cases->check("$how-once", "$how once: found with the next question",
		state => 'succeeded', events => found_after('inconclusive'), questions => 2, deliveries => 1, effects => 1, reads => $page + 3);
	is($story->{lookups}[0]{pages}, $page, "$how once: how far it came is known");
	$story = $cases->check("$how-always", "$how always: never taken for an absence",
		state => 'manual_review', events => 'submit claim answer_lost' . ' ask inconclusive' x 3, status => 'DENIED_UNRESOLVED',
		questions => 3, deliveries => 1, effects => 1, reads => 3 * $page);
	is($story->{negatives}, 0, "$how always: no negative was counted");
	is(join(' ', map { $_->{result} } @{ $story->{answers} }), 'inconclusive inconclusive inconclusive', "$how always: each answer is classified");
}
is($node->sql("SELECT string_agg(DISTINCT k.reason, ', ' ORDER BY k.reason) FROM reconcile.lookup k JOIN reconcile.action a USING (action_id)
	 WHERE a.operation ~ '-(once|always)\$' AND k.result = 'inconclusive'"),
	'no complete answer to the question, the body does not have the expected form,'
	  . ' the status means neither found nor absent', 'a page that cannot be read: for these reasons');

# ---------------------------------------------------------------- rows that shift

# The newest come first, and with each page that we read somebody adds one.
$cases->define('shifting',
	spec => { page_size => 2, paging => 'offset', order => 'newest', shift_per_page => 1, write => [ lost() ] },
	lookup => { %scan, paging => 'offset', paging_parameter => 'offset', page_size => 2, consistency_window => '1 s', window_source => 'documented' });
my $shifting = $cases->submit('shifting');
$provider->wait_effects('shifting', 1);
$provider->preload('shifting', [ map { { age_s => 0 } } 1 .. 4 ]);
my $story = $cases->check('shifting', 'rows that shift: found, one page later',
	state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1, reads => 4);
is($story->{matches} // $story->{lookups}[0]{matches}, 1, 'rows that shift: it is one object');

# ---------------------------------------------------------------- lists without an end

$cases->define('bounded',
	spec => { page_size => 2, paging => 'link', preload => 30, write => [ lost_unexecuted() ] },
	on_absent => 'replace',
	lookup => { %scan, paging => 'link', max_pages => 3, max_inconclusive => 2 });
$cases->define('just-within',
	spec => { page_size => 2, paging => 'link', preload => 6, write => [ lost_unexecuted() ] },
	lookup => { %scan, paging => 'link', max_pages => 3 });
$cases->define('circle',
	spec => { write => [ lost() ], read_default => { body => { data => [ { id => 'x', ref => 'x' } ], next => '{{self}}' } } },
	on_absent => 'replace',
	lookup => { %by_url, max_pages => 5, max_inconclusive => 1 });
$cases->define('says-more',
	spec => { write => [ lost() ], read => [ { body => { data => [ { id => 'x', ref => 'x' } ], has_more => \1 } } ], has_more => \1 },
	lookup => { %by_url, paging_more => '$.has_more' });
# An empty page need not be the last one: a filter may have taken all of it away.
$cases->define('empty-page',
	spec => { write => [ lost() ], read => [ { body => { data => [], next => '{{self}}?page=2' } } ] },
	on_absent => 'replace', lookup => \%by_url);
$cases->define('empty-cursor',
	spec => { write => [ lost() ], read => [ { body => { data => [], next_cursor => 'more' } } ] },
	on_absent => 'replace',
	lookup => { %scan, paging => 'cursor', paging_path => '$.next_cursor', paging_parameter => 'after' });
$cases->define('bad-link',
	spec => { write => [ lost() ], read => [ { body => { data => [] }, headers => { Link => '<<next>; rel=next' } } ] },
	lookup => { %scan, paging => 'link' });
$cases->submit($_) foreach qw(bounded just-within circle says-more empty-page empty-cursor bad-link);

$story = $cases->check('bounded', 'more pages than are read',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive ask inconclusive', questions => 2, deliveries => 1,
	effects => 0, reads => 6);
is($story->{lookups}[1]{reason}, 'the answer does not show everything', 'more pages than are read: why it proves nothing');
is($story->{answers}[1]{incomplete}, 'there are more pages than are read', 'more pages than are read: and what is missing');
$cases->check('just-within', 'as many pages as are read',
	state => 'safe_to_retry', events => 'submit claim answer_lost ask absent_once ask absent', questions => 2, deliveries => 1, effects => 0,
	reads => 6);
$cases->check('circle', 'pages in a circle',
	state => 'manual_review', events => 'submit claim answer_lost ask inconclusive', questions => 1, deliveries => 1, effects => 1, reads => 5);
$story = $cases->check('says-more', 'more pages, but nowhere',
	state => 'succeeded', events => found_after('inconclusive'), questions => 2, deliveries => 1, effects => 1, reads => 2);
is($story->{answers}[0]{incomplete}, 'there are more pages, but it does not say where', 'more pages, but nowhere: the history says so');
foreach my $kind (qw(empty-page empty-cursor))
{
	$story = $cases->check($kind, "$kind: an empty page that goes on is not the last one",
		state => 'succeeded', events => found_after(), questions => 1, deliveries => 1, effects => 1, reads => 2);
	is($story->{lookups}[0]{pages}, 2, "$kind: the next one was read");
}
$story = $cases->check('bad-link', 'a Link header that nobody can read',
	state => 'succeeded', events => found_after('inconclusive'), questions => 2, deliveries => 1, effects => 1, reads => 2);
is($story->{answers}[0]{incomplete}, 'the Link header cannot be read', 'a Link header that nobody can read: the history says so');

# ---------------------------------------------------------------- a next page somewhere else

my $trap = $provider->listener('accept-hang');
my $home = $provider->port('elsewhere', 'http');
my @elsewhere = (
	'{{other}}',
	"//localhost:$home/s/elsewhere-target/effects",
	"http://127.0.0.1:$trap/s/elsewhere/effects",
	"https://127.0.0.1:$home/s/elsewhere-target/effects",
	"http://somebody\@127.0.0.1:$home/s/elsewhere-target/effects",
	"http://127.0.0.1:$home\@localhost:$trap/",
	"http://127.0.0.1.nip.invalid:$home/s/elsewhere-target/effects",
	"ftp://127.0.0.1:$home/s/elsewhere-target/effects",
	'file:///etc/passwd',
	"/s/elsewhere-target/effects ?x=1");
foreach my $kind (qw(elsewhere elsewhere-link))
{
	my @steps = map { {
		body => { data => [], $kind eq 'elsewhere' ? (next => $_) : () },
		$kind eq 'elsewhere' ? () : (headers => { Link => "<$_>; rel=\"next\"" })
	} } grep { $kind eq 'elsewhere' || !/ / } @elsewhere;
	$cases->define($kind,
		spec => { write => [ lost() ], read => \@steps },
		on_absent => 'replace',
		lookup => { ($kind eq 'elsewhere' ? %by_url : (%scan, paging => 'link')), max_inconclusive => 30, pause => '10 ms', pause_max => '10 ms' });
	$cases->submit($kind);
	my $count = @steps;
	$story = $cases->check($kind, "$kind: a next page somewhere else proves nothing",
		state => 'succeeded', events => found_after(('inconclusive') x $count), questions => $count + 1, deliveries => 1, effects => 1,
		reads => $count + 1);
	is(join("\n", map { "$_->{incomplete}" } @{ $story->{answers} }[ 0 .. $count - 1 ]),
		join("\n", ('the next page is not at an address of the provider\'s') x $count), "$kind: for this reason, each time");
	is($provider->summary("$kind-target")->{requests}, 0, "$kind: nobody there was asked");
}
is($provider->summary('elsewhere-target')->{requests}, 0, 'somewhere else: whatever path was named');
is($provider->listener_stats($trap)->{accepted}, 0, 'somewhere else: nobody was connected to');

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
