# TLS that fails before the request proves that nothing was sent; TLS that
# fails afterwards proves nothing.  And HTTP/1.1 is spoken, whatever is offered.
use strict;
use warnings;

use ActionReconcile::Node;
use ActionReconcile::Provider;
use ActionReconcile::Scenarios;
use Test::More;

my $node = ActionReconcile::Node->create('tls');
my $provider = ActionReconcile::Provider->new;
my $scenarios = ActionReconcile::Scenarios->new($node, $provider);

sub not_sent
{
	return (
		proves => 'not_sent', state => 'planned', https => 1, deliveries => 0, effects => 0,
		operation => { retry_pause => '1 h', retry_pause_max => '1 h' }, @_);
}

# Nobody can be asked there either, so a person has to decide.
sub unknown
{
	return (
		proves => 'unknown', state => 'manual_review', https => 1, deliveries => 0, effects => 0,
		operation => { lookup => { max_inconclusive => 2 } }, @_);
}

my @rows = (
	(map { { name => "3-$_", listener => "tls-$_", not_sent() } }
		  qw(plaintext close reset-in-handshake untrusted-ca wrong-name expired client-cert-12)),
	{ name => '3-hang', times_out => '2 s', listener => 'tls-hang', not_sent() },
	{ name => '3-missing-ca-file', listener => 'tls-good', not_sent(), provider => { ca_file => '/nonexistent/ca.pem' } },
	{ name => '3-unknown-to-the-system', listener => 'tls-good', not_sent(), provider => { ca_file => undef } },
	{ name => '3-good', listener => 'tls-good', https => 1, proves => 'answered', state => 'succeeded', deliveries => 1,
		effects => 1 },

	# 7: TLS 1.3 refuses a client when that already sends
	{ name => '7-client-cert-13', listener => 'tls-client-cert-13', unknown() },
	{ name => '7-close-after-handshake', listener => 'tls-close-after-handshake', unknown() },

	# 10 over TLS
	{ name => '10-close-tls', preset => '10-close', https => 1, proves => 'unknown', state => 'succeeded', deliveries => 1,
		effects => 1 },
	{ name => '19-short-body-close-tls', preset => '19-short-body-close', https => 1, proves => 'unknown', status => 201,
		state => 'succeeded', deliveries => 1, effects => 1 },

	# 30
	{ name => '30-h2-offered', listener => 'tls-h2-offered', https => 1, proves => 'answered', state => 'succeeded',
		deliveries => 1, effects => 1 },
	{ name => '30-h2-only', listener => 'tls-h2-only', https => 1, proves => qr/^(not_sent|unknown)$/,
		state => [qw(planned manual_review)], deliveries => qr/^[01]$/, effects => 0,
		operation => { retry_pause => '1 h', retry_pause_max => '1 h', lookup => { max_inconclusive => 2 } } },
);
$scenarios->run(@rows);

my ($write) = grep { $_->{kind} eq 'write' } @{ $provider->ledger('30-h2-offered')->{requests} };
is($write->{http_version}, 'HTTP/1.1', '30-h2-offered: HTTP/1.1 is spoken');
is($write->{alpn}, 'http/1.1', '30-h2-offered: because nothing else was asked for');

$node->assert_consistent;
$node->stop;
$provider->stop;
done_testing;
