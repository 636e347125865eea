# A server in the inner network connects where its definitions and the answers
# of providers lead, and to no inner address by either, unless it may: not by
# another spelling, not by a name that changes its address, not by a redirect.
#
# What is not tested here is a real name server: names are answered by a
# library between libcurl and the resolver, anew for each resolution.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::NameServer;
use ActionReconcile::Node;
use ActionReconcile::Provider;

# Public by its class; nobody is there, and nothing leads there.
my $far_away = '2c0f:ffff::1';

my $provider = ActionReconcile::Provider->new;
my $names = ActionReconcile::NameServer->new;
my $node = ActionReconcile::Node->create('ssrf', env => $names->environment);
my %ids;

# The service in the inner network.
$provider->scenario('inner', {});
my $inner = $provider->listener('http', 'inner');
sub connections { return $provider->listener_stats($inner)->{accepted}; }

sub define
{
	my ($name, $url, $operation, %options) = @_;
	$node->define_provider($name, $url, connect_timeout => '1 s', attempt_timeout => '3 s', %options);
	$node->define_operation($name, $name, retry_pause => '60 s', retry_pause_max => '60 s', %{ $operation // {} });
	return;
}

sub start
{
	my ($name, @definition) = @_;
	define($name, @definition);
	return $ids{$name} = $node->submit($name, { of => $name });
}

sub wait_event
{
	my ($name, $event, $count) = @_;
	$count //= 1;
	return $node->wait_sql("SELECT count(*) >= $count FROM reconcile.history WHERE action_id = '$ids{$name}' AND event = '$event'", 't');
}

# libcurl remembers for a minute what a name resolves to: another engine does not.
sub change_name
{
	my ($name, @addresses) = @_;
	$names->set($name => @addresses);
	my $pid = $node->worker_pid;
	$node->sql("SELECT pg_terminate_backend($pid)");
	$node->wait_sql("SELECT worker_pid IS NOT NULL AND worker_pid <> $pid FROM reconcile.engine()", 't');
	return;
}

# ---------------------------------------------------------------- spellings

my %inner_hosts = (
	dotted => [ '127.0.0.1', '127.0.0.1 is loopback' ],
	short => [ '127.1', '127.0.0.1 is loopback' ],
	decimal => [ '2130706433', '127.0.0.1 is loopback' ],
	hexadecimal => [ '0x7f000001', '127.0.0.1 is loopback' ],
	hexadecimal_parts => [ '0x7F.0.0.0x1', '127.0.0.1 is loopback' ],
	octal => [ '0177.0.0.1', '127.0.0.1 is loopback' ],
	octal_whole => [ '017700000001', '127.0.0.1 is loopback' ],
	encoded => [ '%31%32%37.0.0.1', '127.0.0.1 is loopback' ],
	name => [ 'localhost', qr/address (127\.0\.0\.1|::1) is loopback/ ],
	name_capital => [ 'LocalHost', qr/address (127\.0\.0\.1|::1) is loopback/ ],
	name_dot => [ 'inside.test.', '127.0.0.1 is loopback' ],
	zero => [ '0', '0.0.0.0 is unspecified' ],
	ipv6 => [ '[::1]', '::1 is loopback' ],
	ipv6_any => [ '[::]', ':: is unspecified' ],
	mapped => [ '[::ffff:127.0.0.1]', '::ffff:127.0.0.1 is loopback' ],
	mapped_hexadecimal => [ '[0:0:0:0:0:ffff:7f00:1]', '::ffff:127.0.0.1 is loopback' ],
	compatible => [ '[::127.0.0.1]', '::127.0.0.1 is loopback' ],
	nat64 => [ '[64:ff9b::7f00:1]', '64:ff9b::7f00:1 is loopback' ],
	nat64_metadata => [ '[64:ff9b::169.254.169.254]', '64:ff9b::a9fe:a9fe is cloud metadata' ],
	sixtofour => [ '[2002:7f00:1::1]', '2002:7f00:1::1 is loopback' ],
	metadata => [ '169.254.169.254', '169.254.169.254 is cloud metadata' ],
	metadata_decimal => [ '2852039166', '169.254.169.254 is cloud metadata' ],
	metadata_mapped => [ '[::ffff:a9fe:a9fe]', '::ffff:169.254.169.254 is cloud metadata' ],
	metadata_ipv6 => [ '[fd00:ec2::254]', 'fd00:ec2::254 is cloud metadata' ],
	link_local => [ '169.254.7.7', '169.254.7.7 is link-local' ],
	private_a => [ '10.1.2.3', '10.1.2.3 is private' ],
	private_b => [ '172.31.255.1', '172.31.255.1 is private' ],
	private_c => [ '192.168.0.1', '192.168.0.1 is private' ],
	unique_local => [ '[fd12::1]', 'fd12::1 is private' ],
	carrier => [ '100.64.0.1', '100.64.0.1 is carrier-grade NAT' ],
	multicast => [ '224.0.0.1', '224.0.0.1 is multicast' ],
	broadcast => [ '255.255.255.255', '255.255.255.255 is reserved' ]);

$names->set('inside.test' => '127.0.0.1');
start($_, "http://$inner_hosts{$_}[0]:$inner/s/inner", undef, allow_private_addresses => 'false') foreach sort keys %inner_hosts;
foreach my $name (sort keys %inner_hosts)
{
	my ($host, $words) = @{ $inner_hosts{$name} };
	wait_event($name, 'not_sent');
	my $end = $node->transfer($ids{$name});
	like($end->{error} // $end->{reason} // '', ref $words ? $words : qr/^address \Q$words\E and not permitted/, "$host: refused by what it means");
	is($end->{prereq_calls} // 0, 0, "$host: before the first byte");
}
is(connections(), 0, 'nobody connected to the inner service by any spelling');

# A provider that may be inside may be spelled as it likes, but there is no provider at some addresses.
foreach my $name (qw(hexadecimal decimal mapped name_dot))
{
	next if $name eq 'mapped' && !-e '/proc/net/if_inet6';
	$node->sql("UPDATE reconcile.provider SET allow_private_addresses = true WHERE provider = '$name'");
	$ids{$name} = $node->submit($name, { again => 1 });
	is($node->wait_state($ids{$name}, 'succeeded'), 'succeeded', "$inner_hosts{$name}[0]: used where it may be");
}
cmp_ok(connections(), '>=', 3, 'which the inner service notices');
my $connected = connections();
foreach my $name (qw(zero ipv6_any metadata metadata_mapped multicast))
{
	$node->sql("UPDATE reconcile.provider SET allow_private_addresses = true WHERE provider = '$name'");
	$ids{$name} = $node->submit($name, { again => 1 });
	wait_event($name, 'not_sent');
	like($node->transfer($ids{$name})->{error}, qr/not permitted/, "$inner_hosts{$name}[0]: never, whatever is allowed");
}
is(connections(), $connected, 'nor does the unspecified address lead to it');

# ---------------------------------------------------------------- parts of an address

foreach my $url ("http://example.org\@127.0.0.1:$inner", "http://127.0.0.1:$inner\@example.org", "http://user:secret\@example.org",
	"http://example.org#\@127.0.0.1", 'file:///etc/passwd', "gopher://127.0.0.1:$inner/_x", "//127.0.0.1:$inner", "http://[::1/x y")
{
	my $sql = $node->provider_sql('odd', $url);
	like($node->sql_error($sql), qr/^23514: /, "$url is no base_url");
}
start('slash', "http://far.test\\.127.0.0.1:$inner");
wait_event('slash', 'not_sent');
like($node->transfer($ids{slash})->{reason}, qr/contains the byte 0x5c/, 'a backslash in a host is refused, however somebody reads it');

# ---------------------------------------------------------------- names

$names->set('far.test' => $far_away);
$names->set('rebound.test' => $far_away);
start('rebound', "http://rebound.test:$inner/s/inner", { retry_pause => '0.2 s', retry_pause_max => '0.2 s' }, allow_private_addresses => 'false', connect_timeout => '0.3 s');
wait_event('rebound', 'not_sent');
unlike($node->transfer($ids{rebound})->{error} // '', qr/not permitted/, 'a public address is tried, and not reached');
change_name('rebound.test' => '127.0.0.1');
ok($node->wait_sql("SELECT evidence::text FROM reconcile.history WHERE action_id = '$ids{rebound}' AND evidence::text LIKE '%not permitted%' LIMIT 1", qr/127\.0\.0\.1 is loopback/),
	'the same name then leads inside: noticed at that connection');
$names->set('both.test' => $far_away, '127.0.0.1', '::1');
start('both', "http://both.test:$inner/s/inner", undef, allow_private_addresses => 'false');
wait_event('both', 'not_sent');
is($node->transfer($ids{both})->{proves}, 'not_sent', 'a name with a public and an inner address is not reached by the inner one');
is(connections(), $connected, 'nobody connected to the inner service by a name');

# The address of a write is tested; so is that of the lookup after it.
$names->set('moving.test' => '127.0.0.1');
$provider->scenario('moving', { write => [ { hold_s => 30, commit => 'before', then => 'close' } ] });
my $moving = $provider->port('moving', 'http');
start('moving', "http://moving.test:$moving/s/moving", { lookup => { max_inconclusive => 1000 } });
$provider->wait_writes('moving', 1);
change_name('moving.test' => '169.254.169.254');
wait_event('moving', 'inconclusive');
like(join(' ', map { $_->{error} // '' } $node->answers($ids{moving})), qr/169\.254\.169\.254 is cloud metadata/, 'a lookup goes to no such address either');
is($provider->reads('moving'), 0, 'and is not asked');
change_name('moving.test' => '127.0.0.1');
is($node->wait_state($ids{moving}, 'succeeded'), 'succeeded', 'back at home it is found');
is($provider->effects('moving'), 1, 'once');

# ---------------------------------------------------------------- answers that lead elsewhere

my @places = ("http://127.0.0.1:$inner/s/inner/effects", "//127.0.0.1:$inner/s/inner/effects", "http://2130706433:$inner/", "http://moving.test\@127.0.0.1:$inner/",
	"http://moving.test:$inner/", "\\\\127.0.0.1:$inner/");
my $n = 0;
foreach my $status (301, 302, 303, 307, 308)
{
	my $name = "redirected_$status";
	$provider->scenario($name, { write => [ { status => $status, headers => { Location => $places[ $n++ % @places ] }, commit => 'before' } ],
		read => [ { status => $status, headers => { Location => $places[ $n % @places ] } } ] });
	start($name, $provider->http_url($name));
	is($node->wait_state($ids{$name}, 'succeeded'), 'succeeded', "a $status: asked about at home");
	is($provider->deliveries($name), 1, "a $status: sent once");
}
foreach my $place (@places)
{
	my $name = 'paged_' . $n++;
	$provider->scenario($name, { write => [ { then => 'close' } ], paging => 'link', page_size => 1, preload => 2, order => 'newest',
		read => [ { status => 200, headers => { Link => "<$place>; rel=\"next\"" }, body => { data => [] } } ] });
	start($name, $provider->http_url($name), { lookup => { paging => 'link' } });
	is($node->wait_state($ids{$name}, 'succeeded'), 'succeeded', "a next page at $place: not read there");
	like(join(' ', map { $_->{incomplete} // $_->{problem} // '' } $node->answers($ids{$name})), qr/not at an address of the provider|cannot be read|contains the byte/, 'and said so');
}
is(connections(), $connected, 'nobody connected to the inner service because an answer said so');

# ---------------------------------------------------------------- the list of hosts

$node->set_conf('action_reconcile.allowed_hosts', 'moving.test, *.shop.test');
like($node->sql_error($node->provider_sql('denied', "http://127.0.0.1:$inner")), qr/^42501: provider "denied" cannot be at http:\/\/127\.0\.0\.1/, 'a host that the list does not name is refused');
like($node->sql_error($node->provider_sql('denied', $_)), qr/^42501: /, "$_ too")
  foreach "http://shop.test:$inner", "http://moving.test.evil.test:$inner", "http://notshop.test:$inner", "http://2130706433:$inner";
like($node->sql_error("UPDATE reconcile.provider SET base_url = 'http://127.0.0.1:$inner' WHERE provider = 'moving'"), qr/^42501: /, 'an old provider does not move there');
is($node->sql_error("UPDATE reconcile.provider SET max_in_flight = 3 WHERE provider = 'both'"), '', 'what is off the list can be changed otherwise');
$ids{moving} = $node->submit('moving', { listed => 1 });
is($node->wait_state($ids{moving}, 'succeeded'), 'succeeded', 'a host of the list is used');
$names->set('eu.shop.test' => '127.0.0.1');
start('below', "http://EU.Shop.Test.:$inner/s/inner");
is($node->wait_state($ids{below}, 'succeeded'), 'succeeded', 'and one below a name of it');
$connected = connections();
$ids{hexadecimal} = $node->submit('hexadecimal', { unlisted => 1 });
wait_event('hexadecimal', 'not_sent');
is($node->transfer($ids{hexadecimal})->{reason}, 'the host is not in action_reconcile.allowed_hosts', 'what was defined before is not sent to');
is($node->sql("SELECT reconcile.pause('moving', 'x')") // '', '', 'paused');
$provider->scenario('moving', { write => [ { hold_s => -1, then => 'close' } ] });
$node->sql("SELECT reconcile.resume('moving')");
$ids{moving} = $node->submit('moving', { lost => 1 });
$provider->wait_writes('moving', 3);
$node->set_conf('action_reconcile.allowed_hosts', '*.shop.test');
my $reads = $provider->reads('moving');
$provider->release('moving');
wait_event('moving', 'inconclusive');
is($provider->reads('moving'), $reads, 'a host that was taken off the list is not asked either');
like(join(' ', map { $_->{problem} // '' } $node->answers($ids{moving})), qr/allowed_hosts/, 'which is said');
$node->set_conf('action_reconcile.allowed_hosts', undef);
is($node->wait_state($ids{moving}, 'succeeded'), 'succeeded', 'without a list it is found');
is(connections(), $connected, 'the inner service has heard nothing more');
like($node->sql_error("ALTER SYSTEM SET action_reconcile.allowed_hosts = 'https://a/b'"), qr/^22023: invalid value/, 'a list of addresses is no list of hosts');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
