# The whole catalogue, adopted, dumped and restored: the definitions come back as
# they were, with their claims, although a dump brings an operation before the
# rules that bear them.  And a first definition where nothing can be armed.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use PostgreSQL::Test::Utils;

my $node = ActionReconcile::Node->create('catalogue', arm => 0);
my $folder = PostgreSQL::Test::Utils::tempdir('dump');
my $tables = join ' UNION ALL ',
  map { "SELECT '$_', count(*), md5(string_agg(t::text, E'\\n' ORDER BY t::text COLLATE \"C\")) FROM reconcile.$_ t" }
  qw(provider operation response_rule lookup_rule poll_rule profile_fact provider_override profile_catalog);

sub psql
{
	my ($database, $statement) = @_;
	my ($code, $out, $err) = $node->psql($database, $statement, on_error_stop => 1);
	is($code, 0, "accepted: $statement") or diag($err);
	return ($out, $err);
}

# ---------------------------------------------------------------- nothing to arm with

$node->set_conf('action_reconcile.arming_dir' => '');
my ($out, $err) = psql('postgres', "SELECT reconcile.adopt_profile('sendgrid')");
like($err, qr/^psql:<stdin>:1: NOTICE:  database "postgres" cannot be armed: action_reconcile\.arming_dir is not set$/m,
	'a first definition that cannot arm says so');
like($err, qr/^HINT:  Set action_reconcile\.arming_dir.*Then call reconcile\.arm\(reason\)/m, 'and what to do');
is($node->sql('SELECT armed FROM reconcile.health', 'postgres'), 'f', 'it is not armed');
is($node->sql("SELECT count(*) FROM reconcile.operation WHERE provider = 'sendgrid'", 'postgres'), '1', 'and the provider is defined');

# ---------------------------------------------------------------- there and back

psql('postgres', "SELECT reconcile.adopt_profile(profile, '{\"max_in_flight\": 3}') FROM reconcile.profile_catalog");
my $claims = $node->sql('SELECT count(*) FROM reconcile.operation WHERE claims IS NOT NULL', 'postgres');
cmp_ok($claims, '>', 20, 'the operations of the catalogue claim their tiers');
my $before = $node->sql($tables, 'postgres');
my $grades = $node->sql('SELECT * FROM reconcile.provider_grade ORDER BY operation', 'postgres');

for my $way (
	[ 'plain', [ 'pg_dump', '-f', "$folder/plain" ], sub { [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$folder/plain", '-d', $_[0] ] } ],
	[ 'inserts', [ 'pg_dump', '--inserts', '-f', "$folder/inserts" ], sub { [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', "$folder/inserts", '-d', $_[0] ] } ],
	[ 'custom', [ 'pg_dump', '-Fc', '-f', "$folder/custom" ], sub { [ 'pg_restore', '-e', '-d', $_[0], "$folder/custom" ] } ])
{
	my ($name, $dump, $restore) = @$way;

	$node->command_ok([ @$dump, '-d', $node->connstr('postgres') ], "$name: dumped");
	$node->sql("CREATE DATABASE copy_$name", 'postgres');
	$node->command_ok($restore->($node->connstr("copy_$name")), "$name: restored without an error");
	is($node->sql($tables, "copy_$name"), $before, "$name: row for row");
	is($node->sql('SELECT * FROM reconcile.provider_grade ORDER BY operation', "copy_$name"), $grades, "$name: with the same grades");
	like($node->sql_error("UPDATE reconcile.operation SET claims = 'FULL' WHERE operation = 'sendgrid.mail.send'", "copy_$name"),
		qr/operation "sendgrid\.mail\.send" claims FULL, but is PARTIAL/, "$name: and a claim is judged again");
	is($node->sql("SELECT bool_and(changed = '{}') FROM reconcile.profile_catalog c, reconcile.adopt_profile(c.profile)", "copy_$name"), 't',
		"$name: adopting it again changes nothing");
}

$node->stop;
done_testing();
