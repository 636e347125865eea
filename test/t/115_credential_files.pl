# Files that credentials are read from: which are refused, that reading them
# waits for nobody, and that a new one counts whole or not at all.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils ();
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $directory = PostgreSQL::Test::Utils::tempdir('credentials');
my $elsewhere = PostgreSQL::Test::Utils::tempdir('elsewhere');
chmod 0700, $directory;
my $node = ActionReconcile::Node->create('files', conf => "action_reconcile.credential_dir = '$directory'");
my (%ids, $n);

sub put
{
	my ($name, $content, $mode) = @_;
	open my $file, '>', "$directory/.new" or die "$directory: $!";
	print {$file} $content;
	close $file;
	chmod $mode // 0600, "$directory/.new";
	rename "$directory/.new", "$directory/$name" or die "$name: $!";
	return;
}

sub start
{
	my ($name, $spec) = @_;
	$provider->scenario($name, $spec // {});
	$node->define_provider($name, $provider->http_url($name), credential => $name, max_in_flight => 4);
	$node->define_operation($name, $name, headers => { Authorization => 'Bearer {credential}' });
	return $ids{$name} = $node->submit($name, { n => ++$n });
}

sub reason_is
{
	my ($name, $reason, $what) = @_;
	$node->wait_sql("SELECT count(*) > 0 FROM reconcile.history WHERE action_id = '$ids{$name}' AND event = 'not_sent'", 't');
	is($node->transfer($ids{$name})->{reason}, "credential \"$name\": $reason", "$what: why it is not sent");
	is($provider->deliveries($name), 0, "$what: nothing is sent");
	return;
}

sub succeeds
{
	my ($name, $what, $secret) = @_;
	is($node->wait_state($ids{$name}, 'succeeded'), 'succeeded', "$what: sent");
	is($provider->effects($name), 1, "$what: once");
	my ($header) = map { $_->[1] } grep { lc $_->[0] eq 'authorization' } @{ ($provider->requests($name, 'write'))[0]{headers} };
	is($header, "Bearer $secret", "$what: with the right one");
	return;
}

# ---------------------------------------------------------------- a second name

put('linked', 'linked-credential');
link "$directory/linked", "$elsewhere/linked" or die "link: $!";
start('linked');
reason_is('linked', 'its file has another name elsewhere: a hard link', 'a hard link');
unlink "$elsewhere/linked";
succeeds('linked', 'its only name', 'linked-credential');

# Other files and ways in are in 068_credentials; here, that they do not matter to others.
mkfifo("$directory/pipe", 0600) or die "mkfifo: $!";
start('pipe');
reason_is('pipe', 'its file must be a regular one of the server\'s user, with mode 0600', 'a pipe that nobody writes to');
put('beside', 'beside-credential');
start('beside');
succeeds('beside', 'beside the pipe', 'beside-credential');
open my $sparse, '>', "$directory/.sparse" or die $!;
truncate $sparse, 4 * 1024 * 1024 * 1024;
close $sparse;
chmod 0600, "$directory/.sparse";
rename "$directory/.sparse", "$directory/huge";
start('huge');
reason_is('huge', 'its file must begin with one line of printable text', 'a file of 4 GB');

# ---------------------------------------------------------------- the directory

mkdir $node->data_dir . '/credentials', 0700 or die $!;
put('inside', 'inside-credential');
PostgreSQL::Test::Utils::append_to_file($node->data_dir . '/credentials/inside', 'inside-credential');
chmod 0600, $node->data_dir . '/credentials/inside';
$node->set_conf('action_reconcile.credential_dir', $node->data_dir . '/credentials');
start('inside');
reason_is('inside', 'its directory lies inside the data directory, whose backups would hold it', 'inside the data directory');
symlink $node->data_dir, "$elsewhere/way" or die $!;
$node->set_conf('action_reconcile.credential_dir', "$elsewhere/way/credentials");
start('around');
PostgreSQL::Test::Utils::append_to_file($node->data_dir . '/credentials/around', 'around-credential');
chmod 0600, $node->data_dir . '/credentials/around';
reason_is('around', 'its directory lies inside the data directory, whose backups would hold it', 'there by another way');
$node->set_conf('action_reconcile.credential_dir', undef);
succeeds('inside', 'outside', 'inside-credential');

# What stands in its place is looked at each time.
put('swapped', 'swapped-credential');
rename $directory, "$directory.away" or die $!;
mkdir $directory, 0755;
chmod 0755, $directory;
start('swapped');
reason_is('swapped', 'its directory must belong to the server\'s user, with mode 0700', 'a directory put in its place');
rmdir $directory;
rename "$directory.away", $directory or die $!;
succeeds('swapped', 'the old one back', 'swapped-credential');

# ---------------------------------------------------------------- changed while it is used

my @versions = map { join '', map { chr(ord('a') + $_ % 26) } $_ .. $_ + 2000 } 1 .. 20;
put('busy', $versions[0]);
start('busy');
$node->wait_state($ids{busy}, 'succeeded');
$node->sql("SELECT count(s.action_id) FROM generate_series(1, 60) i, reconcile.submit('busy', jsonb_build_object('i', i)) s");
my %is_version = map { ("Bearer $_" => 1) } @versions;
for my $round (1 .. 200)
{
	put('busy', $versions[ $round % @versions ] . "\n");
	last if $round % 20 == 0 && $provider->effects('busy') >= 61;
}
is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE operation = 'busy' AND state = 'succeeded'", '61'), '61', 'changed all the time: all are sent');
is($provider->effects('busy'), 61, 'changed all the time: each once');
is(scalar(grep { !$is_version{$_} } map { map { $_->[1] } grep { lc $_->[0] eq 'authorization' } @{ $_->{headers} } } $provider->requests('busy', 'write')), 0,
	'changed all the time: each with one of them, whole');
is($node->sql("SELECT count(*) FROM reconcile.history h JOIN reconcile.action a USING (action_id) WHERE a.operation = 'busy' AND h.event = 'not_sent'"), '0',
	'a file that has just been replaced is none with another name');

# Opened up while it is used: refused from then on.
chmod 0644, "$directory/busy";
$ids{busy} = $node->submit('busy', { last => 1 });
$node->wait_sql("SELECT count(*) > 0 FROM reconcile.history WHERE action_id = '$ids{busy}' AND event = 'not_sent'", 't');
is($provider->effects('busy'), 61, 'opened to others: not used');
chmod 0600, "$directory/busy";
is($node->wait_state($ids{busy}, 'succeeded'), 'succeeded', 'closed again: used');

# ---------------------------------------------------------------- the secrets of events

$node->sql(q{INSERT INTO reconcile.event_source (provider, scheme, secret) VALUES ('busy', 'github', 'event-secret')});
my $receive = q{SELECT * FROM reconcile.receive_event('busy', '{"X-Hub-Signature-256": "sha256=00", "X-GitHub-Delivery": "1"}', '{"a": 1}')};
put('event-secret', "webhook-credential\n", 0640);
like($node->sql_error($receive), qr/^55000: /, 'the secret of events in a file that is open to others: not used');
put('event-secret', "webhook-credential\n");
link "$directory/event-secret", "$elsewhere/event-secret";
like($node->sql_error($receive), qr/^55000: /, 'or with a second name');
unlink "$elsewhere/event-secret";
like($node->sql_error($receive), qr/^28000: /, 'set right: the signature is checked');
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/[a-z]+-credential\b/, 'none of them is in the log');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
