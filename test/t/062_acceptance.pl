# "Accepted" is not "done": a 202, or a 200 that says pending, leaves the action
# delivered until the provider has decided.  It is asked where it said, and
# nowhere else; no time and no bad answer makes a verdict.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use JSON::PP;
use Test::More;

use ActionReconcile::Cases qw(lost found_after);
use ActionReconcile::Crash qw(crash);
use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('acceptance');
my $cases = ActionReconcile::Cases->new($node, $provider);
my ($story, $id);

my %job = (artifact_path => '$.result.id');
my %by_header = (%job, url_header => 'location');
my %by_body = (%job, url_path => '$.status_url');
my %by_path = (path => '/effects/{artifact_id}');
my $accepted = 'submit claim answered_async poll_accepted';
my $rejected = 'submit claim answered_async poll_rejected';

sub says { return { body => { status => $_[0] } }; }

# What is true of an answer that only promises: delivered, and nothing is decided.
sub check_promise
{
	my ($what, $history) = @_;
	my ($promise) = grep { $_->{event} eq 'answered_async' } @$history;
	is("$promise->{to_state} $promise->{standing}", 'delivered confirmed/pending', "$what: taken, not decided");
	return;
}

# ---------------------------------------------------------------- where it is asked

$cases->define('header', spec => { accept => 'location', job_states => [qw(pending running succeeded)] }, poll => \%by_header);
$cases->define('body', spec => { accept => 'body', job_states => [qw(pending running succeeded)] }, poll => \%by_body);
$cases->define('path', spec => { accept => 'body', job_commit => 'accept', read => [ map { says($_) } qw(pending running succeeded) ] }, poll => \%by_path);
$cases->define('relative', spec => { write => [ { status => 202, commit => 'before', headers => { Location => '/s/relative/jobs/7?x=1' } } ], read_default => says('succeeded') },
	poll => { url_header => 'location' });
$cases->define('reference', spec => { write => [ { status => 202, commit => 'before' } ], read_default => says('succeeded') }, poll => { path => '/jobs/of/{client_reference}' });
$cases->define('bounced-header', spec => { accept => 'location', job_states => [qw(pending failed)] }, on_absent => 'replace', poll => \%by_header);
$cases->define('bounced-body', spec => { accept => 'body', job_states => [qw(pending failed)] }, on_absent => 'replace', poll => \%by_body);
$cases->define('bounced-path', spec => { accept => 'body', job_commit => 'accept', read => [ map { says($_) } qw(pending failed) ] }, on_absent => 'replace',
	poll => \%by_path);
my @done = qw(header body path relative reference);
my @bounced = qw(bounced-header bounced-body bounced-path);
$cases->submit($_) for @done, @bounced;
foreach my $name (@done)
{
	my $asked = $name =~ /relative|reference/ ? 1 : 3;
	$story = $cases->check($name, "asked by $name: done at last", state => 'succeeded', events => $accepted, status => 'CONFIRMED',
		questions => $asked, deliveries => 1, effects => 1, reads => $asked);
	check_promise("asked by $name", $story->{history});
	is(join(' ', map { "$_->{kind} $_->{result}" } @{ $story->{lookups} }), join(' ', ('poll inconclusive') x ($asked - 1), 'poll found'), "asked by $name: each poll is kept");
	is("$story->{verdicts}[0]{state}: $story->{verdicts}[0]{reason}", 'succeeded: the provider has decided', "asked by $name: the verdict is in the history");
}
is(($provider->requests('path', 'read'))[2]{path}, "/s/path/effects/" . $node->status($cases->id('path'))->{artifact_id}, 'asked by path: of this very object');
is(($provider->requests('relative', 'read'))[0]{path}, '/s/relative/jobs/7?x=1', 'asked by a relative URL: there');
is(($provider->requests('reference', 'read'))[0]{path}, '/s/reference/jobs/of/' . $cases->id('reference'), 'asked by reference: that one');
foreach my $name (@bounced)
{
	$story = $cases->check($name, "$name: no, at last", state => 'rejected', events => $rejected, status => 'FAILED', questions => 2, deliveries => 1,
		effects => $name eq 'bounced-path' ? 1 : 0);
	check_promise($name, $story->{history});
	is("$story->{verdicts}[0]{state} $story->{standing} $story->{attempt}[0]{standing}", 'failed confirmed/rejected confirmed/rejected', "$name: by the provider's word");
	like($node->sql_error("SELECT reconcile.replace('$story->{action_id}', 'again');"), qr/^55000/, "$name: a refusal is not replaced");
}

# ---------------------------------------------------------------- what promises, and what does not

my %pending_200 = (answers => [ { statuses => '{200,201}', body_path => '$ ? (@.status == "pending")', class => 'accepted_async' } ]);
$cases->define('says-pending', %pending_200, poll => \%by_path,
	spec => { write => [ { status => 200, body => { id => '{{id}}', status => 'pending' } } ], read => [ says('pending'), says('succeeded') ] });
$cases->define('says-done', %pending_200, poll => \%by_path, spec => { write => [ { status => 200, body => { id => '{{id}}', status => 'done' } } ] });
$cases->define('final-202', spec => { accept => 'body', job_commit => 'accept' }, answers => [ { statuses => '{202}', class => 'accepted' } ], poll => \%by_path);
$cases->submit($_) for qw(says-pending says-done final-202);
$story = $cases->check('says-pending', 'a 200 that says pending', state => 'succeeded', events => $accepted, questions => 2, deliveries => 1, effects => 1);
check_promise('a 200 that says pending', $story->{history});
is($story->{history}[2]{evidence}{transfer}{rule}, 1, 'a 200 that says pending: by this rule');
$cases->check('says-done', 'a 200 that says done', state => 'succeeded', events => 'submit claim answered_accepted', questions => 0, reads => 0);
$cases->check('final-202', 'a 202 that is final by a rule', state => 'succeeded', events => 'submit claim answered_accepted', questions => 0, reads => 0);

# ---------------------------------------------------------------- bad answers to a poll

my @bad = (
	{ status => 500, body => { status => 'succeeded' } }, { status => 404, body => { status => 'failed' } }, { status => 410 }, { status => 401 },
	{ status => 302, headers => { Location => '{{other}}' }, body => { status => 'succeeded' } },
	{ body => '<html>succeeded</html>' }, { body => '' }, { status => 204 }, { body => '{"status": "succeeded"' }, { body => 'succeeded' },
	{ body => { status => undef } }, { body => { status => 7 } }, { body => { status => [ 'succeeded' ] } }, { body => { state => 'succeeded' } },
	{ body => { status => 'Succeeded' } }, { body => { status => 'succeeded ' } }, { body => { status => 'cancelling' } },
	{ then => 'close' }, { then => 'reset' }, { raw => "HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{\"status\": \"succeeded\"}" },
	{ raw => "HTTP/1.1 200 OK\r\n\r\n{\"status\": \"succeeded\"}" });
foreach my $end (qw(succeeded failed))
{
	$cases->define("bad-$end", spec => { accept => 'body', job_commit => 'accept', read => [ @bad, says($end) ] }, on_absent => 'replace',
		poll => { %by_path, pause => '10 ms', pause_max => '20 ms' });
	$cases->submit("bad-$end");
}
foreach my $end (qw(succeeded failed))
{
	$story = $cases->check("bad-$end", "bad answers, then $end", state => $end eq 'failed' ? 'rejected' : 'succeeded',
		events => $end eq 'failed' ? $rejected : $accepted, questions => @bad + 1, deliveries => 1, effects => 1);
	is(join(' ', map { $_->{result} } @{ $story->{lookups} }), join(' ', ('inconclusive') x @bad, 'found'), "bad answers, then $end: none of them is a verdict");
}
is(join(', ', map { $_->{reason} } @{ $story->{lookups} }[ 0, 11, 15 ]), 'no state could be read, the provider has not decided yet, the provider has not decided yet',
	'bad answers: what each was');
is($provider->summary('bad-failed-target')->{requests}, 0, 'bad answers: nobody followed the redirect');

# Pauses grow, and a provider that asks for patience gets it.
$cases->define('patient', spec => { accept => 'location', job_states => [ ('pending') x 4, 'succeeded' ] }, poll => { %by_header, pause => '50 ms', pause_max => '200 ms' });
$cases->define('asks-for-patience', spec => { accept => 'location', job_states => ['succeeded'], read => [ { status => 503, headers => { 'Retry-After' => 1 } } ] },
	poll => { %by_header, pause => '10 ms', pause_max => '3 s' });
$cases->submit($_) for qw(patient asks-for-patience);
$story = $cases->check('patient', 'pauses between polls', state => 'succeeded', events => $accepted, questions => 5);
my @polled = map { $_->{asked_us} } @{ $story->{lookups} };
cmp_ok($polled[$_] - $polled[ $_ - 1 ], '>=', (50_000, 100_000, 200_000, 200_000)[ $_ - 1 ] * 0.87, "pauses between polls: number $_ is long enough") for 1 .. 4;
$story = $cases->check('asks-for-patience', 'patience that is asked for', state => 'succeeded', events => $accepted, questions => 2);
cmp_ok($story->{lookups}[1]{asked_us} - $story->{lookups}[0]{asked_us}, '>=', 1_000_000, 'patience that is asked for: and given');

# ---------------------------------------------------------------- no verdict at all

my %soon = (acceptance_max_age => '1 s');
$cases->define('for-ever', spec => { accept => 'location', job_states => ['pending'] }, on_absent => 'replace', %soon, poll => \%by_header);
$cases->define('for-ever-bad', spec => { accept => 'location', read_default => { status => 500 } }, %soon, poll => \%by_header);
$cases->define('no-poll', spec => { accept => 'body', job_commit => 'accept' }, on_absent => 'replace', %soon);
$cases->define('nothing-to-ask', spec => { accept => 'body', job_commit => 'accept' }, %soon, lookup => 0);
$cases->submit($_) for qw(for-ever for-ever-bad no-poll nothing-to-ask);
my $overdue = 'submit claim answered_async overdue';
foreach my $name (qw(for-ever for-ever-bad no-poll nothing-to-ask))
{
	my $asks = $name =~ /for-ever/;
	$story = $cases->check($name, "$name: too long is no verdict", state => 'manual_review', events => $overdue, status => 'DENIED_UNRESOLVED', deliveries => 1,
		$asks ? () : (questions => 0, reads => 0));
	is("$story->{standing} $story->{attempt}[0]{standing}", 'confirmed/pending confirmed/pending', "$name: it stays delivered, undecided");
	cmp_ok(scalar @{ $story->{lookups} }, '>=', 2, "$name: asked until then") if $asks;
	is($node->sql("SELECT bool_and(h.recorded_at >= t.ended_at + interval '1 s') FROM reconcile.history h JOIN reconcile.attempt t USING (action_id)
		 WHERE action_id = '$story->{action_id}' AND h.event = 'overdue'"), 't', "$name: not before its time");
}
is($story->{verdicts}[0]{reason}, 'no verdict came, and the operation has no poll rule', 'nothing to ask: the history says why');
# A person may have it asked once more; then the provider's word counts, whenever it comes.
my $late = $cases->id('for-ever');
$node->sql("SELECT reconcile.look_up_now('$late', 'they say it is done soon')");
$cases->check('for-ever', 'asked once more, still undecided', state => 'manual_review', events => "$overdue look_up_now overdue", deliveries => 1);
$provider->set_jobs('for-ever', 'succeeded');
$node->sql("SELECT reconcile.look_up_now('$late', 'they say it is done')");
$cases->check('for-ever', 'asked once more, done', state => 'succeeded', events => "$overdue look_up_now overdue look_up_now poll_accepted", deliveries => 1, effects => 1);

# ---------------------------------------------------------------- a verdict somewhere else

my $trap = $provider->listener('accept-hang');
my $home = $provider->port('elsewhere', 'http');
my @elsewhere = ('{{other}}', "//localhost:$home/s/x-target/jobs", "http://127.0.0.1:$trap/jobs", "https://127.0.0.1:$home/s/x-target/jobs",
	"http://somebody\@127.0.0.1:$home/s/x-target/jobs", "http://127.0.0.1:$home\@localhost:$trap/", 'file:///etc/passwd', 'mailto:nobody', '');
my %where;
for my $i (0 .. $#elsewhere)
{
	foreach my $place (qw(header body))
	{
		my $name = "elsewhere-$place-$i";
		$where{$name} = $elsewhere[$i];
		my %step = $place eq 'header' ? (headers => { Location => $elsewhere[$i] }) : (body => { id => '{{id}}', status_url => $elsewhere[$i] });
		$cases->define($name, spec => { write => [ { status => 202, commit => 'before', %step } ] }, on_absent => 'replace', %soon,
			poll => $place eq 'header' ? { url_header => 'location' } : { url_path => '$.status_url' });
		$cases->submit($name);
	}
}
foreach my $name (sort keys %where)
{
	$story = $cases->check($name, "a verdict at \"$where{$name}\", $name", state => 'manual_review', events => $overdue, deliveries => 1, effects => 1, reads => 0);
	is("$story->{lookups}[0]{result}: $story->{verdicts}[0]{problem}", 'inconclusive: the question cannot be made from the rule', "$name: nobody was asked, and it says so");
	is($provider->summary("$name-target")->{requests} + $provider->summary('x-target')->{requests}, 0, "$name: not even there");
}
is($provider->listener_stats($trap)->{accepted}, 0, 'a verdict somewhere else: nobody was connected to');

# ---------------------------------------------------------------- found by a lookup, decided by a poll

my $found = 'submit claim answer_lost ask found';
my %then = (
	'then-done' => { spec => { read => [ {}, says('pending'), says('succeeded') ] }, poll => \%by_path, state => 'succeeded', events => "$found poll_accepted" },
	'then-failed' => { spec => { read => [ {}, says('pending'), says('failed') ] }, poll => \%by_path, state => 'rejected', events => "$found poll_rejected" },
	'then-by-name' => { spec => { read => [ {}, says('succeeded') ] }, poll => { path => '/effects/{client_reference}' }, state => 'succeeded', events => "$found poll_accepted" },
	'then-nothing' => { spec => { read => [ {}, ] , read_default => says('pending') }, poll => \%by_path, state => 'manual_review', events => "$found overdue" },
	# the address of the verdict was in the answer that never came
	'then-nowhere' => { spec => {}, poll => \%by_header, state => 'manual_review', events => "$found overdue" });
foreach my $name (sort keys %then)
{
	$cases->define($name, spec => { write => [ lost() ], %{ $then{$name}{spec} } }, poll => $then{$name}{poll}, on_absent => 'replace', %soon, lookup => { canary => 'none' });
	$cases->submit($name);
}
foreach my $name (sort keys %then)
{
	$story = $cases->check($name, "found by a lookup, $name", state => $then{$name}{state}, events => $then{$name}{events}, deliveries => 1, effects => 1);
	my ($shown) = grep { $_->{event} eq 'found' } @{ $story->{history} };
	is("$shown->{to_state} $shown->{standing}", 'delivered confirmed/pending', "found by a lookup, $name: there, but not decided");
	is($story->{artifact_id}, $story->{ledger}{effects}[0]{id}, "found by a lookup, $name: its id is known");
}

# ---------------------------------------------------------------- a restart in between

foreach my $how (qw(worker postmaster))
{
	my $name = "restart-$how";
	$cases->define($name, spec => { accept => 'location', read => [ { hold_s => -1 } ], job_states => [qw(pending succeeded)] }, poll => { %by_header, timeout => '30 s' });
	$cases->define("$name-before", spec => { accept => 'location', job_states => [qw(succeeded)] }, poll => { %by_header, pause => '3 s', pause_max => '3 s' });
	$cases->submit($_) for $name, "$name-before";
	$provider->wait_reads($name, 1);
	$cases->wait_event("$name-before", 'answered_async');
	crash($node, $how);
	$provider->release($name);
	$story = $cases->check($name, "$how killed while a poll is open", state => 'succeeded', events => $accepted, deliveries => 1, effects => 1);
	is($story->{lookups}[0]{result}, 'lost', "$how killed while a poll is open: its answer is lost");
	is($story->{lookups}[-1]{result}, 'found', "$how killed while a poll is open: it is asked again");
	$story = $cases->check("$name-before", "$how killed before the first poll", state => 'succeeded', events => $accepted, questions => 1, deliveries => 1, effects => 1);
	is($node->sql("SELECT l.asked_at >= t.ended_at + interval '2.6 s' FROM reconcile.lookup l JOIN reconcile.attempt t USING (action_id) WHERE action_id = '$story->{action_id}'"),
		't', "$how killed before the first poll: its pause is kept");
}

# What has been taken can be neither called back nor sent again.
$cases->define('delivered', spec => { accept => 'location', job_states => ['pending'] }, poll => \%by_header);
$id = $cases->submit('delivered');
$node->wait_state($id, 'delivered');
like($node->sql_error("SELECT reconcile.cancel('$id', 'no longer wanted');"), qr/^55000/, 'delivered: it cannot be cancelled');
like($node->sql_error("SELECT reconcile.replace('$id', 'again');"), qr/^55000/, 'delivered: nor replaced');
is($node->sql("SELECT joined FROM reconcile.submit('delivered', '{\"amount\": 5}')"), 't', 'delivered: an equal intent joins it');
$provider->set_jobs('delivered', 'failed');
$cases->check('delivered', 'delivered, and then refused', state => 'rejected', events => $rejected, deliveries => 1, effects => 0);

$node->assert_consistent('in the end');
$node->stop;
$provider->stop;
done_testing();
