# A secret goes out in a request and nowhere else: through successes, refusals,
# lost answers, failing TLS and providers that repeat what they were sent, it is
# looked for in the log, in what the server shows of its sessions and statements,
# in every table, in dumps, and in every file of the data directory.  That the
# search finds what is there, a planted word proves.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use File::Find;
use MIME::Base64;
use PostgreSQL::Test::Utils ();
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $directory = PostgreSQL::Test::Utils::tempdir('credentials');
chmod 0700, $directory;
my $node = ActionReconcile::Node->create('leak', conf => <<"CONF");
shared_preload_libraries = 'pg_stat_statements, action_reconcile'
action_reconcile.credential_dir = '$directory'
pg_stat_statements.track = all
pg_stat_statements.track_utility = on
log_min_messages = debug1
log_min_error_statement = debug5
log_error_verbosity = verbose
log_statement = all
log_parameter_max_length = -1
log_parameter_max_length_on_error = -1
log_min_duration_statement = 0
track_activity_query_size = 16kB
CONF
$node->sql('CREATE EXTENSION pg_stat_statements');

# Of every kind: what we send, with what has to be escaped; what providers hand out.
my (%secret, %ids);
sub secret
{
	my ($name) = @_;
	return $secret{$name} //= sprintf 'sEcReT/%s+"%s', $name, join '', map { ('a' .. 'z')[ rand 26 ] } 1 .. 24;
}

sub put
{
	my ($name, $content) = @_;
	open my $file, '>', "$directory/$name" or die "$directory: $!";
	print {$file} $content;
	close $file;
	chmod 0600, "$directory/$name";
	return;
}

sub start
{
	my ($name, $spec, %options) = @_;
	my $at = delete $options{provider} // {};
	my $url = delete $at->{url};
	put($name, secret($name));
	$provider->scenario($name, $spec);
	$node->define_provider($name, $url // $provider->http_url($name), credential => $name, connect_timeout => '2 s', attempt_timeout => '3 s', %$at);
	$node->define_operation($name, $name, headers => { 'Content-Type' => 'application/json', Authorization => 'Bearer {credential}' },
		lookup => { headers => { Authorization => 'Bearer {credential}' } }, %options);
	return $ids{$name} = $node->submit($name, { of => $name });
}

sub url_encoded { my ($text) = @_; $text =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ge; return $text; }
sub json_escaped { my ($text) = @_; $text =~ s{([/"\\])}{\\$1}g; return $text; }

# ---------------------------------------------------------------- a life with everything

my %echo = map { ($_ => secret($_)) } qw(echo_401 echo_422 echo_json echo_url echo_id);
start('ok', {});
start('echo_401', { write => [ { status => 401, headers => { 'WWW-Authenticate' => "Bearer error=\"$echo{echo_401}\"" }, body => { error => "Bearer $echo{echo_401}", Authorization => "Bearer $echo{echo_401}" } } ] });
start('echo_422', { write => [ { status => 422, headers => { 'X-Request-Id' => "id $echo{echo_422}", 'Set-Cookie' => 'session=' . secret('cookie') }, body => "Bearer $echo{echo_422}" } ] });
start('echo_json', { write => [ { status => 201, headers => { 'Content-Type' => 'application/json' }, body => '{"id": "' . json_escaped($echo{echo_json}) . '"}' } ] });
start('echo_url', { write => [ { status => 422, body => 'see https://x.test/?key=' . url_encoded($echo{echo_url}) } ] });
start('echo_id', { write => [ { status => 201, headers => { 'X-Message-Id' => "msg-$echo{echo_id}" } } ] }, artifact_path => undef, artifact_header => 'X-Message-Id');
start('handed_out', { write => [ { status => 422, body => { client_secret => secret('client_secret'), nested => { accessToken => secret('access') },
	text => 'Authorization: Bearer ' . secret('header'), url => 'https://x.test/?access_token=' . url_encoded(secret('parameter')) . '&a=1' } } ] });
start('lost', { write => [ { then => 'close' } ] });
start('timeout', { write => [ { hold_s => 4, then => 'close' } ] });
start('location', { accept => 'location', write => [ { status => 202, headers => { Location => '/s/location/jobs/1?sig=' . url_encoded(secret('sig')) . '&token=' . url_encoded(secret('token')) . '&v=1' } } ] },
	lookups => [], artifact_path => undef, poll => { url_header => 'location', headers => { Authorization => '{credential}' }, state_path => '$.status', accepted => '{succeeded}' });
start('linked', { write => [ { then => 'close' } ], read => [ { headers => { Link => '</s/linked/effects?ref=x&access_token=' . url_encoded(secret('link')) . '>; rel="next"' }, body => { data => [] } } ] },
	lookup => { headers => { Authorization => '{credential}' }, paging => 'link' });
start('untrusted', {}, provider => { url => 'https://localhost:' . $provider->listener('tls-untrusted-ca'), ca_file => $provider->ca_file });
start('refused', {}, provider => { url => 'http://127.0.0.1:' . $provider->listener('closed-port') });
start('cut', { write => [ { status => 201, headers => { 'Content-Length' => 500 }, body => "{\"token\": \"" . secret('cut') , then => 'close' } ] });
$node->sql(q{INSERT INTO reconcile.event_source (provider, scheme, secret) VALUES ('ok', 'github', 'webhook');
	INSERT INTO reconcile.event_rule (provider, position, condition, says, because) VALUES ('ok', 1, '$.ref', 'ignored', 'a test')});
put('webhook', secret('webhook'));
$node->sql_error(q{SELECT * FROM reconcile.receive_event('ok', '{"X-Hub-Signature-256": "sha256=00"}', '{"a": 1}')});
$node->sql_error(q{SELECT * FROM reconcile.receive_event('ok', '{}', 'no json')});

my %ends = (ok => 'succeeded', echo_422 => 'rejected', echo_json => 'succeeded', echo_url => 'rejected', echo_id => 'succeeded', handed_out => 'rejected', lost => 'succeeded',
	timeout => 'succeeded', linked => 'succeeded', cut => qr/succeeded|delivered|manual_review/);
is($node->wait_state($ids{$_}, $ends{$_}), $node->status($ids{$_})->{state}, "$_: settled") foreach sort keys %ends;
$node->wait_sql("SELECT count(DISTINCT action_id) FROM reconcile.history WHERE event IN ('not_sent', 'not_executed') AND action_id IN ('$ids{untrusted}', '$ids{refused}', '$ids{echo_401}')", '3');
$node->wait_sql("SELECT count(*) > 0 FROM reconcile.lookup WHERE action_id = '$ids{location}'", 't');
is($node->attempt($ids{location})->[0]{poll_url}, $provider->http_url('location') . '/jobs/1?v=1', 'a status URL is kept without its tokens');
like($node->attempt($ids{echo_422})->[0]{evidence}{transfer}{headers}{'x-request-id'} // '', qr/^id \*+$/, 'the id of an exchange is kept, without our credential');

# While a request is open.
put('held', secret('held'));
$provider->scenario('held', { write => [ { hold_s => -1 } ] });
start('held', { write => [ { hold_s => -1 } ] });
$provider->wait_writes('held', 1);
my $activity = join "\n", map { $node->sql('SELECT a::text FROM pg_stat_activity a') } 1 .. 5;
$provider->release('held');
is($node->wait_state($ids{held}, 'succeeded'), 'succeeded', 'held: settled');
my $shown = join "\n", map { $node->sql("SELECT p::text FROM reconcile.preview('$ids{$_}') p; SELECT reconcile.receipt('$ids{$_}')") } sort keys %ids;

# ---------------------------------------------------------------- where it is looked for

# The word that is there, in a payload and in a statement.
my $planted = 'pLaNtEd' . join '', map { ('a' .. 'z')[ rand 26 ] } 1 .. 24;
$node->submit('ok', { planted => $planted });
$node->sql("SELECT 1 AS \"$planted\"");

sub spellings
{
	my ($word) = @_;
	my @bytes = ($word, json_escaped($word), url_encoded($word), lc url_encoded($word));
	# Base64 of it, wherever it begins in a longer text: without the ends that depend on what is beside.
	return (@bytes, unpack('H*', $word), map { substr encode_base64(('x' x $_) . $word, ''), 4, -8 } 0 .. 2);
}
my $searched = join '|', map { quotemeta } map { spellings($_) } values %secret;
my $positive = join '|', map { quotemeta } spellings($planted);

sub search
{
	my ($where, $text, $has_planted) = @_;
	my @found = $text =~ /($searched)/g;
	is(scalar @found, 0, "$where: no secret") or diag("found: @found[0 .. ($#found > 3 ? 3 : $#found)]");
	like($text, qr/$positive/, "$where: and it would be found") if $has_planted;
	return;
}

cmp_ok(scalar keys %secret, '>=', 22, 'there is something to look for');
$node->sql('CHECKPOINT');
search('the log', PostgreSQL::Test::Utils::slurp_file($node->logfile), 1);
search('pg_stat_activity', $activity);
search('pg_stat_activity now', $node->sql("SELECT a::text /* $planted */ FROM pg_stat_activity a"), 1);
search('pg_stat_statements', $node->sql('SELECT query FROM pg_stat_statements'), 1);
search('previews and receipts', $shown);
my $tables = '';
foreach my $table (split /\n/, $node->sql(q{SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'p', 'm') AND relpersistence = 'p' AND NOT relispartition ORDER BY 1}))
{
	$tables .= $node->sql("COPY (SELECT * FROM $table) TO STDOUT");
}
search('every table, the catalogs too', $tables, 1);
foreach my $format (qw(plain custom))
{
	my ($dump) = PostgreSQL::Test::Utils::run_command([ 'pg_dump', '-d', $node->connstr('postgres'), $format eq 'custom' ? ('-Fc', '-Z0') : () ]);
	search("a $format dump", $dump, 1);
}
my ($everything) = PostgreSQL::Test::Utils::run_command([ 'pg_dumpall', '-d', $node->connstr('postgres') ]);
search('pg_dumpall', $everything, 1);

$node->assert_consistent('in the end');
$node->stop;
my ($files, $bytes) = (0, '');
find({ no_chdir => 1, wanted => sub {
	return unless -f $_ && -r $_;
	$files++;
	my $content = PostgreSQL::Test::Utils::slurp_file($_);
	$bytes .= join "\n", $content =~ /(?:$searched|$positive)/g;
} }, $node->data_dir);
cmp_ok($files, '>', 500, 'the files of the data directory');
search('the files of the data directory, WAL too', $bytes, 1);

done_testing();
