# A credential is a file: read when a request is made, by writes, lookups and
# polls, and seen nowhere but in the requests themselves.

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
chmod 0700, $directory;
# Whatever could be told is told.
my $node = ActionReconcile::Node->create('credentials', conf => <<"CONF");
action_reconcile.credential_dir = '$directory'
log_min_messages = debug2
log_min_error_statement = debug5
log_error_verbosity = verbose
log_statement = all
log_duration = on
CONF
my (@secrets, %ids);

# A credential that nothing else looks like.
sub secret
{
	push @secrets, sprintf('sEcReT%04d-%s', scalar @secrets, join '', map { ('a' .. 'z')[ rand 26 ] } 1 .. 24);
	return $secrets[-1];
}

# Puts a file in place at once, as a rotation does.
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

my %as_ours = ('Content-Type' => 'application/json', Authorization => 'Bearer {credential}');

sub define
{
	my ($name, $spec, %operation) = @_;
	my $file = exists $operation{credential} ? delete $operation{credential} : $name;
	$provider->scenario($name, $spec);
	$node->define_provider($name, $provider->http_url($name), connect_timeout => '10 s', attempt_timeout => '20 s', credential => $file);
	$node->define_operation($name, $name, headers => \%as_ours, lookup => { headers => { Authorization => 'Bearer {credential}' } }, %operation);
	return;
}

sub start
{
	my ($name, @definition) = @_;
	define($name, @definition);
	return $ids{$name} = $node->submit($name, { amount => 5 });
}

# What authorized the requests of a kind, in their order.
sub authorized
{
	my ($name, $kind) = @_;
	return map { my %h = map { lc $_->[0] => $_->[1] } @{ $_->{headers} }; $h{authorization} // 'nothing' }
	  grep { $_->{kind} eq $kind } @{ $provider->ledger($name)->{requests} };
}

sub wait_event
{
	my ($name, $event, $count) = @_;
	$count //= 1;
	return $node->wait_sql("SELECT count(*) >= $count FROM reconcile.history WHERE action_id = '$ids{$name}' AND event = '$event'", 't');
}

sub reason { return $node->transfer($ids{ $_[0] })->{reason} // ''; }

sub settles
{
	my ($name, $state, $events, $effects, $deliveries) = @_;
	is($node->wait_state($ids{$name}, $state), $state, "$name: $state");
	ref $events ? like($node->events($ids{$name}), $events, "$name: the story") : is($node->events($ids{$name}), $events, "$name: the story");
	is($provider->effects($name), $effects, "$name: $effects effects");
	is($provider->deliveries($name), $deliveries, "$name: $deliveries deliveries");
	return;
}

# ---------------------------------------------------------------- files that are not used

my $regular = 'its file must be a regular one of the server\'s user, with mode 0600';
my $line = 'its file must begin with one line of printable text';
my %unusable = (
	'missing' => [ sub { }, 'its file cannot be opened' ],
	'group' => [ sub { put($_[0], secret() . "\n", 0640) }, $regular ],
	'others' => [ sub { put($_[0], secret() . "\n", 0604) }, $regular ],
	'link' => [ sub { put('target', secret() . "\n"); symlink "$directory/target", "$directory/$_[0]" }, 'its file cannot be opened' ],
	'directory' => [ sub { mkdir "$directory/$_[0]", 0700 }, $regular ],
	'fifo' => [ sub { mkfifo("$directory/$_[0]", 0600) }, $regular ],
	'blank' => [ sub { put($_[0], '') }, $line ],
	'blank-line' => [ sub { put($_[0], "\n" . secret() . "\n") }, $line ],
	'control' => [ sub { put($_[0], secret() . "\x01x\n") }, $line ],
	'nul' => [ sub { put($_[0], secret() . "\0x\n") }, $line ],
	'injection' => [ sub { put($_[0], secret() . "\x0b: x\n") }, $line ],
	'too-long' => [ sub { put($_[0], secret() x 1000 . "\n") }, $line ]);
foreach my $name (sort keys %unusable)
{
	$unusable{$name}[0]->($name);
	start($name, {});
}
start('unnamed', {}, credential => undef);

foreach my $name (sort keys %unusable)
{
	wait_event($name, 'not_sent');
	is(reason($name), "credential \"$name\": $unusable{$name}[1]", "$name: why it is not sent");
	is($provider->deliveries($name), 0, "$name: nothing is sent");
	is($node->status($ids{$name})->{state}, 'planned', "$name: it waits") if $node->status($ids{$name})->{state} ne 'submitted';
}
wait_event('unnamed', 'not_sent');
is(reason('unnamed'), 'credential "": the provider names none', 'unnamed: why it is not sent');
is($provider->deliveries('unnamed'), 0, 'unnamed: nothing is sent');

# Set right, it is used without being told.
foreach my $name (sort keys %unusable)
{
	rmdir "$directory/$name" if -d "$directory/$name" && !-l "$directory/$name";
	put($name, my $right = secret());
	settles($name, 'succeeded', qr/^submit( claim not_sent)+ claim answered_accepted$/, 1, 1);
	is(join(' ', authorized($name, 'write')), "Bearer $right", "$name: with the right one");
}

like($node->sql_error("UPDATE reconcile.provider SET credential = '../outside' WHERE provider = 'missing'"), qr/23514/, 'a way out of the directory is no name');
like($node->sql_error("UPDATE reconcile.provider SET credential = '.new' WHERE provider = 'missing'"), qr/23514/, 'nor is a hidden file');

# ---------------------------------------------------------------- the directory

my %directories = (
	'unset' => [ '', 'action_reconcile.credential_dir is not set to an absolute path' ],
	'relative' => [ 'credentials', 'action_reconcile.credential_dir is not set to an absolute path' ],
	'gone' => [ "$directory/none", 'action_reconcile.credential_dir cannot be opened' ],
	'linked' => [ PostgreSQL::Test::Utils::tempdir('link') . '/link', 'action_reconcile.credential_dir cannot be opened' ],
	'open' => [ PostgreSQL::Test::Utils::tempdir('open'), 'its directory must belong to the server\'s user, with mode 0700' ]);
symlink $directory, $directories{linked}[0];
chmod 0750, $directories{open}[0];
$directories{'not-ours'} = [ '/', $directories{open}[1] ] if (stat '/')[4] != $>;
foreach my $name (sort keys %directories)
{
	put("dir-$name", secret());
	$node->set_conf('action_reconcile.credential_dir', $directories{$name}[0]);
	start("dir-$name", {});
	wait_event("dir-$name", 'not_sent');
	is(reason("dir-$name"), "credential \"dir-$name\": $directories{$name}[1]", "directory $name: why it is not sent");
	is($provider->deliveries("dir-$name"), 0, "directory $name: nothing is sent");
}
$node->set_conf('action_reconcile.credential_dir', undef);
foreach my $name (map { "dir-$_" } sort keys %directories)
{
	settles($name, 'succeeded', qr/^submit( claim not_sent)+ claim answered_accepted$/, 1, 1);
}

# ---------------------------------------------------------------- files that are used, and changed

my ($two, $crlf, $utf8) = map { secret() } 1 .. 3;
put('two-lines', "$two\nnot this\n");
put('crlf', "$crlf\r\n");
put('utf8', "$utf8\xc3\xbc");
start($_, {}) foreach qw(two-lines crlf utf8);
settles($_, 'succeeded', 'submit claim answered_accepted', 1, 1) foreach qw(two-lines crlf utf8);
is((authorized('two-lines', 'write'))[0], "Bearer $two", 'two lines: the first one counts');
is((authorized('crlf', 'write'))[0], "Bearer $crlf", 'a line of another system');

my ($old, $new, $newer) = map { secret() } 1 .. 3;
put('rotated', $old);
start('rotated', { key_header => 'Idempotency-Key', write => [ {}, { hold_s => -1, then => 'close' } ] },
	headers => { %as_ours, 'Idempotency-Key' => '{idempotency_key}' }, key_lifetime => '1 hour', key_lifetime_source => 'documented',
	lookups => [ { kind => 'replay_by_key', consistency_window => '0 s', window_source => 'documented' } ]);
settles('rotated', 'succeeded', 'submit claim answered_accepted', 1, 1);
put('rotated', $new);
$ids{rotated} = $node->submit('rotated', { amount => 6 });
$provider->wait_writes('rotated', 2);
put('rotated', $newer);
$provider->release('rotated');
is($node->wait_state($ids{rotated}, 'succeeded'), 'succeeded', 'rotated: the second one succeeds');
is($node->events($ids{rotated}), 'submit claim answer_lost resend answered_accepted', 'rotated: a new credential is no other request');
is(join(' ', authorized('rotated', 'write')), "Bearer $old Bearer $new Bearer $newer", 'rotated: each new one counts at once');
is($provider->effects('rotated'), 2, 'rotated: one effect each');

my ($refused, $accepted) = (secret(), secret());
put('refused', $refused);
start('refused', { write => [ { status => 401 } ] });
wait_event('refused', 'not_executed');
is($node->wait_sql(q{SELECT paused_reason FROM reconcile.provider WHERE provider = 'refused'}, qr/./),
	'the provider refuses our credential: answer 401', 'refused: the provider is paused');
put('refused', $accepted);
$node->sql("SELECT reconcile.resume('refused')");
settles('refused', 'succeeded', 'submit claim not_executed claim answered_accepted', 1, 2);
is(join(' ', authorized('refused', 'write')), "Bearer $refused Bearer $accepted", 'refused: the next one is taken');

# ---------------------------------------------------------------- questions

my $asking = secret();
put('asking', $asking);
start('asking', { write => [ { then => 'close' } ] });
settles('asking', 'succeeded', 'submit claim answer_lost ask found', 1, 1);
is((authorized('asking', 'read'))[0], "Bearer $asking", 'a lookup has it');

# Without it nothing is known, and that is no absence.
put('asking-in-vain', secret());
start('asking-in-vain', { write => [ { hold_s => -1, then => 'close' } ] }, lookup => { headers => { 'X-Key' => '{credential}' }, max_inconclusive => 1000 });
$provider->wait_writes('asking-in-vain', 1);
unlink "$directory/asking-in-vain";
$provider->release('asking-in-vain');
wait_event('asking-in-vain', 'inconclusive', 2);
my ($inconclusive) = grep { $_->{event} eq 'inconclusive' } @{ $node->history($ids{'asking-in-vain'}) };
is($inconclusive->{evidence}{lookup}{problem}, 'credential "asking-in-vain": its file cannot be opened', 'a lookup without it says why');
is($provider->reads('asking-in-vain'), 0, 'and is not asked');
put('asking-in-vain', secret());
settles('asking-in-vain', 'succeeded', qr/^submit claim answer_lost( ask inconclusive)+ ask found$/, 1, 1);

my $polling = secret();
my %poll = (lookups => [], poll => { url_header => 'location', headers => { Authorization => '{credential}' }, state_path => '$.status', accepted => '{succeeded}' });
put('polling', $polling);
start('polling', { accept => 'location', job_states => [ ('pending') x 2, 'succeeded' ] }, %poll, artifact_path => undef);
settles('polling', 'succeeded', 'submit claim answered_async poll_accepted', 1, 1);
is(join(' ', authorized('polling', 'read')), join(' ', ($polling) x 3), 'polls have it');

# ---------------------------------------------------------------- nobody else gets it

sub target_requests { return scalar @{ $provider->ledger("$_[0]-target")->{requests} }; }
put($_, secret()) foreach qw(moved paged polled-elsewhere);
start('moved', { write => [ { status => 307, headers => { Location => '{{other}}' }, commit_delay_s => 0 } ] });
settles('moved', 'succeeded', 'submit claim answer_lost ask found', 1, 1);
start('paged', { write => [ { then => 'close' } ], paging => 'next_url', read => [ { body => { data => [], next => '{{other}}' } } ] },
	lookup => { headers => { Authorization => '{credential}' }, paging => 'next_url', paging_path => '$.next' });
settles('paged', 'succeeded', qr/^submit claim answer_lost( ask inconclusive)+ ask found$/, 1, 1);
start('polled-elsewhere', { write => [ { status => 202, headers => { Location => '{{other}}' } } ] }, %poll, artifact_path => undef);
$node->wait_sql("SELECT count(*) >= 2 FROM reconcile.lookup WHERE action_id = '$ids{'polled-elsewhere'}' AND result = 'inconclusive'", 't');
is($node->status($ids{'polled-elsewhere'})->{status}, 'DENIED_UNRESOLVED', 'polled elsewhere: nothing is known');
is(target_requests($_), 0, "$_: another host gets nothing") foreach qw(moved paged polled-elsewhere);

# Who may submit cannot have it written where the operation does not.
put('noted', secret());
define('noted', {}, headers => { %as_ours, 'X-Request-Id' => '{note}' });
like($node->sql_error(q{SELECT * FROM reconcile.submit('noted', '{"note": "{credential}"}')}), qr/22023: .*credential/, 'a payload cannot name the credential');
$ids{noted} = $node->submit('noted', { note => 'x', credential => 'from the payload' });
settles('noted', 'succeeded', 'submit claim answered_accepted', 1, 1);
is((authorized('noted', 'write'))[0], "Bearer $secrets[-1]", 'nor take its place');

# ---------------------------------------------------------------- nowhere is it seen

# A provider that repeats what it was sent, in a body and in headers that are kept.
my $echoed = secret();
put('echoing', $echoed);
start('echoing', { write => [ { status => 422, headers => { 'X-Request-Id' => "id-$echoed" }, body => { error => "Bearer $echoed is not known", a => $echoed } } ] });
settles('echoing', 'rejected', 'submit claim answered_rejected', 0, 1);
put('echoed-id', my $as_id = secret());
start('echoed-id', { write => [ { status => 201, body => { id => $as_id } } ] });
settles('echoed-id', 'succeeded', 'submit claim answered_accepted', 1, 1);

# While a request is open.
put('held', secret());
start('held', { write => [ { hold_s => -1 } ] });
$provider->wait_writes('held', 1);
my $activity = $node->sql('SELECT string_agg(a::text, E\'\\n\') FROM pg_stat_activity a');
$provider->release('held');
settles('held', 'succeeded', 'submit claim answered_accepted', 1, 1);

# As text, and as the bytes of an answer are shown.
sub leaks
{
	my ($where, $text) = @_;
	my @found = grep { index($text, $_) >= 0 || index($text, unpack 'H*', $_) >= 0 } @secrets;
	is(scalar @found, 0, "$where: no credential") or diag("found: @found");
	return;
}
cmp_ok(scalar @secrets, '>', 30, 'there is something to look for');
leaks('pg_stat_activity', $activity);
leaks('the log', PostgreSQL::Test::Utils::slurp_file($node->logfile));
my ($dump) = PostgreSQL::Test::Utils::run_command([ 'pg_dump', '--inserts', '-d', $node->connstr('postgres') ]);
like($dump, qr/INSERT INTO reconcile\.attempt/, 'a dump has the attempts');
leaks('a dump', $dump);
foreach my $table (split /\n/, $node->sql(<<'SQL'))
SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'p', 'v') ORDER BY 1
SQL
{
	leaks($table, $node->sql("SELECT t::text FROM $table t"));
}

foreach my $name (qw(asking polling))
{
	my $preview = $node->sql("SELECT p::text FROM reconcile.preview('$ids{$name}') p");
	like($preview, qr/\*\*\*/, "preview of $name: masked");
	unlike($preview, qr/Bearer/, "preview of $name: also what stands around it");
	leaks("preview of $name", $preview);
}

$node->assert_consistent('in the end');
$node->stop;
done_testing();
