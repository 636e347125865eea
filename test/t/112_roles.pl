# Who may do what: a submitter sees and waits for its own alone, by whatever it
# asks; the engine and the functions work as an owner that is nobody.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('roles');

foreach my $role (qw(ada bob ops boss))
{
	$node->sql("CREATE ROLE $role LOGIN");
}
$node->sql('GRANT reconcile_submitter TO ada, bob; GRANT reconcile_operator TO ops; GRANT reconcile_admin TO boss');

# What a role is answered, and what it is told if it is refused.
sub ask_as
{
	my ($role, $statement) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement", connstr => $node->connstr('postgres') . " user=$role");
	return "$out\n$err";
}

# ---------------------------------------------------------------- what is another's

# Words that only ada's actions hold; nothing of them reaches bob.
my %mark = (payload => 'adaspayload', key => 'adaskey', reference => 'adasreference', ordering => 'adasorder', reason => 'adasreason');
$provider->scenario('shop', { write => [ { status => 201, body => { id => 'adasartifact' } }, { then => 'close' } ] });
$node->define_provider('shop', $provider->http_url('shop'), consistency_window => '1 hour');
$node->define_operation('shop', 'shop');
$node->sql(q{INSERT INTO reconcile.event_source (provider, scheme) VALUES ('shop', 'none');
	INSERT INTO reconcile.event_rule (provider, position, condition, says, reference_path, because) VALUES ('shop', 1, '$.ref', 'executed', '$.ref', 'a test')});
my @adas = map { /([0-9a-f]{8}-[0-9a-f-]{27})/ ? $1 : '' }
  ask_as('ada', qq{SELECT action_id FROM reconcile.submit('shop', '{"a": "$mark{payload}"}', intent_key => '$mark{key}', client_reference => '$mark{reference}', ordering_key => '$mark{ordering}')});
is($node->wait_state($adas[0], 'succeeded'), 'succeeded', 'an action of ada');
push @adas, map { /([0-9a-f]{8}-[0-9a-f-]{27})/ ? $1 : '' } ask_as('ada', qq{SELECT action_id FROM reconcile.submit('shop', '{"b": "$mark{payload}"}')});
is($node->wait_state($adas[1], 'outcome_unknown'), 'outcome_unknown', 'and one that is not known');
ask_as('ada', qq{SELECT reconcile.confirm('$mark{reference}', 'adasartifact', '{"note": "$mark{reason}"}')});
my $fingerprint = $node->sql("SELECT fingerprint FROM reconcile.action WHERE action_id = '$adas[0]'");
my $full_reference = $node->sql("SELECT client_reference FROM reconcile.action WHERE action_id = '$adas[0]'");
my $hidden = join '|', map { quotemeta } @adas, values %mark, 'adasartifact', $fingerprint, $full_reference;

# All there is to read, and everything there is to call with the id of another's action.
my @relations = split /\n/, $node->sql(q{SELECT oid::regclass FROM pg_class WHERE relnamespace = 'reconcile'::regnamespace AND relkind IN ('r', 'v', 'p') ORDER BY 1});
cmp_ok(scalar @relations, '>', 40, 'there is much to look at');
my $readable = 0;
foreach my $relation (@relations)
{
	my $columns = $node->sql("SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attrelid = '$relation'::regclass AND attnum > 0 AND NOT attisdropped
		AND has_column_privilege('bob', attrelid, attnum, 'SELECT')");
	next if $columns eq '';
	$readable++;
	unlike(ask_as('bob', "SELECT $columns FROM $relation"), qr/$hidden/, "$relation: nothing of ada's for bob");
	like(ask_as('ada', "SELECT $columns FROM $relation"), qr/$hidden/, "$relation: but for ada") if $relation =~ /action_status|action_history|unresolved|\.action$/;
}
cmp_ok($readable, '>=', 4, 'there are relations that bob may read');

my @calls = (
	"SELECT reconcile.receipt('$adas[0]')", "SELECT * FROM reconcile.wait('$adas[1]', '0.1 s')", "SELECT reconcile.wait_until_resolved('$adas[1]', '0.1 s')",
	"SELECT * FROM reconcile.preview('$adas[0]'::uuid)", "SELECT * FROM reconcile.preview('$adas[1]'::uuid)", "SELECT * FROM reconcile.action_as_of(now())",
	"SELECT * FROM reconcile.action_as_of(now(), '$adas[0]')", "SELECT * FROM reconcile.day_report((now() AT TIME ZONE 'UTC')::date)",
	"SELECT reconcile.cancel('$adas[1]', 'x')", "SELECT * FROM reconcile.confirm('$mark{reference}', 'x')", "SELECT * FROM reconcile.confirm('$full_reference', 'x', provider => 'shop')",
	"SELECT * FROM reconcile.verdict('$mark{reference}', 'rejected')", "SELECT * FROM reconcile.verdict('$full_reference', 'rejected', provider => 'shop')",
	qq{SELECT * FROM reconcile.receive_event('shop', '{}', '{"ref": "$full_reference"}')},
	qq{SELECT * FROM reconcile.submit('shop', '{"c": 1}', depends_on => ARRAY['$adas[0]'::uuid])},
	qq{SELECT * FROM reconcile.submit('shop', '{"a": "$mark{payload}"}', intent_key => '$mark{key}', hold => true)}, qq{SELECT * FROM reconcile.submit('shop', '{"b": "$mark{payload}"}', hold => true)},
	qq{SELECT * FROM reconcile.submit('shop', '{"d": 1}', client_reference => '$mark{reference}')},
	qq{INSERT INTO reconcile.action (operation, payload, client_reference) VALUES ('shop', '{"d": 2}', '$mark{reference}') RETURNING action_id},
	qq{INSERT INTO reconcile.action (action_id, operation, payload) VALUES ('$adas[0]', 'shop', '{"d": 3}')},
	qq{INSERT INTO reconcile.action (action_id, operation, payload) VALUES ('$adas[0]', 'shop', '{"d": 3}') ON CONFLICT DO NOTHING RETURNING action_id},
	"UPDATE reconcile.action SET payload = '{}' RETURNING action_id", "DELETE FROM reconcile.action RETURNING action_id", "COPY reconcile.action TO STDOUT",
	"COPY reconcile.action (action_id) TO STDOUT", "SELECT most_common_vals, histogram_bounds FROM pg_stats WHERE schemaname = 'reconcile'",
	"SELECT reconcile.verify_history('$adas[0]')", "SELECT * FROM reconcile.history_hash(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
	"SET ROLE ada", "SET ROLE reconcile_owner", "SET SESSION AUTHORIZATION ada");
$node->sql('ANALYZE');
foreach my $call (@calls)
{
	my $answer = ask_as('bob', $call);
	# What bob says himself comes back to him, and an equal payload has an equal fingerprint.
	my $said = $call . ($call =~ /$mark{payload}/ ? $fingerprint : '');
	my $others = join '|', grep { index($said, $_) < 0 } @adas, values %mark, 'adasartifact', $fingerprint, $full_reference;
	$answer =~ s/^LINE \d+:.*//mg;
	unlike($answer, qr/$others/, "bob learns nothing by: $call");
}
is($node->sql("SELECT string_agg(state::text, ' ' ORDER BY submitted_at) FROM reconcile.action WHERE submitter = 'ada'"), 'succeeded outcome_unknown', 'and changes nothing of ada\'s');
is($node->sql("SELECT count(*) FROM reconcile.action a WHERE submitter = 'bob' AND payload::text LIKE '%$mark{payload}%'"), 2, 'an equal intent, an equal key of his are actions of his own');
like(ask_as('bob', "SELECT count(*) FROM reconcile.action_status"), qr/^[1-9]/, 'which he sees');
like(ask_as('ops', "SELECT count(DISTINCT submitter) FROM reconcile.action_status"), qr/^2/, 'an operator sees those of both');

# A wait is answered to whom it belongs.
like(ask_as('bob', "SELECT * FROM reconcile.wait('$adas[1]', '0.1 s')"), qr/42704/, 'bob cannot wait for what is ada\'s');
like(ask_as('ada', "SELECT status FROM reconcile.wait('$adas[1]', '0.1 s')"), qr/DENIED_UNRESOLVED/, 'ada can');

# ---------------------------------------------------------------- whose rights count

# Who is at work is asked where it writes.
$node->sql(q{
	CREATE TABLE public.at_work (what text, who name);
	GRANT INSERT ON public.at_work TO PUBLIC;
	CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.at_work VALUES (TG_ARGV[0], current_user); RETURN NULL; END $$;
	CREATE TRIGGER note AFTER INSERT ON reconcile.action FOR EACH STATEMENT EXECUTE FUNCTION public.note('submit');
	CREATE TRIGGER note AFTER INSERT ON reconcile.attempt FOR EACH STATEMENT EXECUTE FUNCTION public.note('claim');
	CREATE TRIGGER note_end AFTER UPDATE ON reconcile.attempt FOR EACH STATEMENT EXECUTE FUNCTION public.note('record');});
my ($own) = map { /([0-9a-f]{8}-[0-9a-f-]{27})/ ? $1 : '' } ask_as('ada', q{SELECT action_id FROM reconcile.submit('shop', '{"e": 1}')});
is($node->wait_state($own, 'succeeded'), 'succeeded', 'one more is sent');
is($node->sql(q{SELECT string_agg(DISTINCT what || ' ' || who, ', ' ORDER BY what || ' ' || who) FROM public.at_work}), 'claim reconcile_owner, record reconcile_owner, submit reconcile_owner',
	'submit() and the engine work as the owner');

# By CALL run() too, for somebody who owns nothing.
$node->set_conf('action_reconcile.databases', 'none');
my $worker = $node->worker_pid;
$node->sql("SELECT pg_terminate_backend($worker)") if $worker ne '';
$node->wait_sql('SELECT lock_holder_pid IS NULL FROM reconcile.engine()', 't');
$node->sql('TRUNCATE public.at_work');
($own) = map { /([0-9a-f]{8}-[0-9a-f-]{27})/ ? $1 : '' } ask_as('ada', q{SELECT action_id FROM reconcile.submit('shop', '{"e": 2}')});
ask_as('ops', "CALL reconcile.run('20 s')");
is($node->status($own)->{state}, 'succeeded', 'an operator runs the engine');
is($node->sql(q{SELECT string_agg(DISTINCT what || ' ' || who, ', ' ORDER BY what || ' ' || who) FROM public.at_work}), 'claim reconcile_owner, record reconcile_owner, submit reconcile_owner',
	'which works as the owner there as well');
like(ask_as('ops', 'SELECT session_user, current_user'), qr/^ops\|ops/, 'and leaves the operator what it is');
like(ask_as('ada', "CALL reconcile.run('1 s')"), qr/42501/, 'a submitter does not run it');
$node->set_conf('action_reconcile.databases', undef);

# What the owner cannot do.
is($node->sql(q{SELECT string_agg(p, ' ') FROM unnest('{pg_read_file(text),pg_read_binary_file(text),pg_ls_dir(text),lo_import(text)}'::text[]) p
	WHERE has_function_privilege('reconcile_owner', 'pg_catalog.' || p, 'EXECUTE')}), '', 'the owner reads no files');
is($node->sql(q{SELECT has_table_privilege('reconcile_owner', 'pg_catalog.pg_authid', 'SELECT') OR has_table_privilege('reconcile_owner', 'public.at_work', 'SELECT')}), 'f', 'and no tables of others');
is($node->sql(q{SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_inherits JOIN pg_class ON oid = inhrelid WHERE inhparent = 'reconcile.history'::regclass}), 'reconcile_owner',
	'partitions that the engine has made are the owner\'s');
like($node->sql_error('DROP ROLE reconcile_owner'), qr/^2BP01/, 'it stays as long as something is its');

# ---------------------------------------------------------------- an owner that is somebody

$node->sql("CREATE DATABASE second TEMPLATE template0");
foreach my $power (qw(LOGIN SUPERUSER CREATEROLE CREATEDB REPLICATION BYPASSRLS))
{
	$node->sql("ALTER ROLE reconcile_owner $power");
	like($node->sql_error('CREATE EXTENSION action_reconcile', 'second'), qr/^55000: role "reconcile_owner" can log in, or has a power/, "no owner with $power");
	$node->sql("ALTER ROLE reconcile_owner NO$power");
}
$node->sql('GRANT reconcile_owner TO bob');
like($node->sql_error('CREATE EXTENSION action_reconcile', 'second'), qr/^55000: role "reconcile_owner" has members/, 'no owner with members');
$node->sql('REVOKE reconcile_owner FROM bob');
$node->sql('GRANT reconcile_reader TO reconcile_owner');
like($node->sql_error('CREATE EXTENSION action_reconcile', 'second'), qr/^55000: role "reconcile_owner" has members, or is a member/, 'none that is a member');
$node->sql('REVOKE reconcile_reader FROM reconcile_owner');
is($node->sql_error('CREATE EXTENSION action_reconcile', 'second'), '', 'as nobody it is taken');
is($node->sql('DROP EXTENSION action_reconcile; CREATE EXTENSION action_reconcile; SELECT count(*) FROM pg_extension', 'second'), 2, 'once more too');
like($node->sql_error("SET ROLE boss; DROP EXTENSION action_reconcile", 'second'), qr/^42501/, 'an admin does not drop it');
like($node->sql_error("SET ROLE boss; CREATE TABLE reconcile.x (a int)"), qr/^42501/, 'or put something beside it');

$node->assert_consistent('in the end');
$node->stop;
done_testing();
