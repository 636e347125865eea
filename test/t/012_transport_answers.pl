# A complete answer came: its class follows from its status, one request was
# sent for it, and nothing of what the answer asks for by itself is done.
use strict;
use warnings;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Scenarios;
use Test::More;

my $node = ActionReconcile::Node->create('answers');
my $provider = ActionReconcile::Provider->new;
my $scenarios = ActionReconcile::Scenarios->new($node, $provider);

# More than a provider with a small receive buffer takes off our hands unread.
my %large = (payload => { blob => 'x' x 900_000 });

sub accepted { return (proves => 'answered', answer => 'accepted', state => 'succeeded', deliveries => 1, effects => 1, @_); }
sub rejected { return (proves => 'answered', answer => 'rejected', state => 'rejected', deliveries => 1, effects => 0, @_); }

# A status that says nothing about the execution: window, lookup, absence.
sub unclear
{
	my ($status, @more) = @_;
	return (proves => 'answered', status => $status, answer => 'unknown', state => 'safe_to_retry', deliveries => 1,
		effects => 0, @more);
}

# An answer that was complete for libcurl, and whose id could not be believed.
sub unreadable
{
	return (proves => qr/^(answered|unknown)$/, state => 'succeeded', deliveries => 1, effects => 1, @_);
}

# Sent by this status to a pause of the provider; goes on when that is resumed.
sub refused_credential
{
	return (
		proves => 'answered', answer => 'not_executed', status => 401, state => 'succeeded', attempts => 2,
		deliveries => 2, effects => 1, operation => { retry_pause => '0.1 s' },
		resume => 1, @_);
}

my @rows = (
	{ name => '5-normal', accepted(status => 201) },

	# 13: a promise to keep the connection, broken at once
	{ name => '13-keepalive-lie', before => 1, accepted() },

	# 14: a second answer to the first request is not the answer to the second
	{ name => '14-stray-response', before => 1, accepted() },

	# 15: an answer to nothing carries no id, so it is not believed; what is not found then is a contradiction
	{ name => '15-unsolicited-executed', unreadable(answer => 'accepted', proves => 'answered') },
	{ name => '15-unsolicited-201', proves => 'answered', state => 'manual_review', deliveries => 1, effects => 0,
		operation => { lookup => { max_inconclusive => 3 } } },

	# 20: the body ends with the connection: the status stands, the id in the body does not
	{ name => '20-no-length-close', unreadable(status => 201) },
	{ name => '20-no-length-abrupt', unreadable(status => 201) },
	{ name => '20-no-length-whole', unreadable(status => 201, proves => 'answered') },
	{ name => '20-no-length-abrupt-tls', preset => '20-no-length-abrupt', https => 1, unreadable(status => 201) },
	{ name => '20-status-decides', preset => '20-no-length-close', accepted(status => 201),
		operation => { artifact_path => undef } },

	# 21: framing that contradicts itself
	(map { { name => $_, unreadable() } }
		  qw(21-negative-length 21-huge-length 21-duplicate-length 21-length-and-chunked 21-nul-in-header 21-204-with-body)),

	# 23: asked for or not, a compressed body is not unpacked
	{ name => '23-gzip-bomb', unreadable(status => 201) },

	# 25: no Expect is sent, and a 417 is not a reason to repeat
	{ name => '25-417-always', unclear(417) },
	{ name => '25-417-on-expect', accepted() },

	# 26: a challenge is an answer like any other
	(map { { name => "26-401-$_", refused_credential() } } qw(basic digest ntlm negotiate)),
	{ name => '26-407', unclear(407) },

	# 27: the target of a redirect is never asked
	(map {
		my $status = $_;
		map { { name => "27-$status-$_", unclear($status) } } qw(self other file)
	} 301, 302, 303, 307, 308),

	# 28: no automatic repetition by status
	(map { { name => "28-$_", unclear($_) } } 408, 421, 429, 500, 502, 503, 504),
	{ name => '28-425', unclear(425, answer => 'in_progress') },
	# a gateway's error page, and the effect two seconds later
	(map {
		{ name => "case-05-$_", proves => 'answered', answer => 'unknown', state => 'succeeded', deliveries => 1,
			effects => 1, provider => { late_arrival_max => '3 s' } }
	} qw(502-html 503-html 504-html 524-html 500-json)),

	# 29: a "no" may overtake a request of 8 MB
	{ name => '29-early-403-close', %large, rejected(status => 403) },
	{ name => '29-early-413-close', %large, rejected(status => 413) },
	{ name => '29-early-403-reset', %large, proves => qr/^(answered|unknown)$/,
		state => [qw(rejected safe_to_retry)], deliveries => 1, effects => 0 },

	# the statuses that mean no
	(map {
		{ name => "no-$_", spec => { write => [ { status => $_ } ] }, rejected(status => $_) }
	} 400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422),
	# 202: taken, not decided; then found
	{ name => 'yes-202', spec => { write => [ { status => 202 } ] }, proves => 'answered', answer => 'accepted_async',
		status => 202, state => 'delivered', deliveries => 1, effects => 1 },
	(map { { name => "yes-$_", spec => { write => [ { status => $_ } ] }, accepted(status => $_) } } 200, 201, 203),
);

# A provider that refused the credential stands still until somebody resumes it.
foreach my $row (grep { $_->{resume} } @rows)
{
	$row->{meanwhile_state} = 'planned';
	$row->{meanwhile} = sub {
		my ($self, $it) = @_;
		$node->wait_sql("SELECT paused_reason ~ '401' FROM reconcile.provider WHERE provider = '$it->{key}'", 't');
		is($provider->deliveries($it->{name}), 1, "$it->{name}: nothing is sent while it is paused");
		$node->sql("SELECT reconcile.resume('$it->{key}')");
	};
}

$scenarios->run(@rows);

foreach my $row (grep { $_->{name} =~ /^27-/ } @rows)
{
	is($provider->summary("$row->{name}-target")->{requests}, 0, "$row->{name}: the target was not contacted");
}
is($provider->summary('14-stray-response')->{connections},
	$provider->summary('14-stray-response')->{requests}, 'every request has a connection of its own');

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
