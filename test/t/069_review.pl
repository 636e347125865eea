# Where evidence could be taken for more than it is: pages that were not read,
# questions that could not be made, objects that others own or that have no date,
# a provider asked through another account; and what nobody would look at again.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin/../perl";

use PostgreSQL::Test::Utils;
use Test::More;

use ActionReconcile::Node;
use ActionReconcile::Provider;

my $secrets = PostgreSQL::Test::Utils::tempdir('secrets');
chmod 0700, $secrets;
for my $name (qw(account_a account_b))
{
	open my $file, '>', "$secrets/$name" or die;
	print $file "Bearer $name\n";
	close $file;
	chmod 0600, "$secrets/$name";
}

my $provider = ActionReconcile::Provider->new;
my $node = ActionReconcile::Node->create('review', conf => <<"CONF");
timezone = 'America/New_York'
action_reconcile.credential_dir = '$secrets'
max_prepared_transactions = 2
CONF

my %lost = (then => 'close', commit => 'never');
my %kept = (then => 'close');

# A provider for one scenario, and an operation of the same name there.
sub define
{
	my ($name, $scenario, %options) = @_;
	my $limits = delete $options{provider} // {};
	$provider->scenario($name, $scenario);
	$node->define_provider($name, $provider->http_url($name), %$limits);
	$node->define_operation($name, $name, %options);
	return;
}

# What is alike and made in the time of the attempt is ours, if nobody else owns it.
sub alike
{
	return {
		kind => 'list_scan', path => '/effects', reference_path => undef, match_values => { '$.body.amount' => '{amount}' },
		match_is_unique => 'true', created_path => '$.created', max_inconclusive => 2, @_ };
}

sub end_of
{
	my ($id, $pattern, $seconds) = @_;
	return $node->wait_state($id, $pattern // 'succeeded|rejected|safe_to_retry|manual_review', $seconds);
}

sub reason
{
	my ($id) = @_;
	return $node->sql("SELECT reason FROM reconcile.lookup WHERE action_id = '$id' ORDER BY asked_us DESC, asked_at DESC LIMIT 1");
}

# The most memory that a process has had, or undef.
sub peak_memory_kb
{
	open my $status, '<', "/proc/$_[0]/status" or return undef;
	return join('', <$status>) =~ /^VmHWM:\s+(\d+)/m ? $1 : undef;
}

my %id;

# ---------------------------------------------------------------- a look that takes longer than a send may rest on it

define('slow', { preload => [ { ref => 'thing' } ], read_default => { hold_s => 61 } }, method => 'DELETE', path => '/effects/{name}',
	reference_body_path => undef, artifact_path => undef,
	lookup => { kind => 'get_by_reference', path => '/effects/{name}', items_path => undef, reference_path => undef, artifact_path => undef,
		match_values => { '$.ref' => '{name}' }, absent_statuses => '{404}', max_inconclusive => 1, timeout => '2 min' });
$id{slow} = $node->submit('slow', { name => 'thing' });

# ---------------------------------------------------------------- pages

my @forward = (paging => 'cursor', paging_parameter => 'cursor', paging_path => '$.next_cursor');

define('owned', { page_size => 1, paging => 'cursor', write => [ {}, {%kept} ] },
	on_absent => 'replace', lookup => alike(@forward));
$id{first} = $node->submit('owned', { amount => 5 });
is(end_of($id{first}), 'succeeded', 'owned: the first of two that are alike succeeded');
$id{owned} = $node->submit('owned', { amount => 5 }, on_duplicate => 'new');

define('faults', { page_size => 1, paging => 'cursor', preload => 2, write => [ {%kept} ],
		page_faults => [ { page => 2, times => 4, status => 404, body => { error => 'no such cursor' } } ] },
	on_absent => 'replace',
	lookup => { kind => 'list_scan', path => '/effects', absent_statuses => '{404}', max_inconclusive => 20, @forward });
$id{faults} = $node->submit('faults', { amount => 5 });

define('two_links', { write => [ {%lost} ],
		read_default => { status => 200, body => { data => [] },
			headers => [ [ 'Link', '<https://example.com/style>; rel="preload"' ], [ 'Link', '<{{self}}?page=2>; rel="next"' ] ] } },
	lookup => { kind => 'list_scan', path => '/effects', paging => 'link', max_pages => 3, max_inconclusive => 2 });
$id{two_links} = $node->submit('two_links', { amount => 5 });

define('empty_page', { write => [ {%lost} ], read_default => { status => 200, body => { data => [], next_cursor => 'more' } } },
	lookup => { kind => 'list_scan', path => '/effects', max_pages => 3, max_inconclusive => 2, @forward });
$id{empty_page} = $node->submit('empty_page', { amount => 5 });

define('relative', { write => [ {%kept} ], preload => 2, page_size => 1, paging => 'link',
		page_faults => [ { page => 1, times => undef, status => 200, headers => { Link => '<?cursor={{cursor}}>; rel="next"' }, body => { data => [] } } ] },
	lookup => { kind => 'list_scan', path => '/effects', paging => 'link', max_pages => 2, max_inconclusive => 1 });
$id{relative} = $node->submit('relative', { amount => 5 });

define('from_zero', { write => [ {%lost} ], read_default => { status => 200, body => { data => [ { id => 'other', ref => 'other' } ] } } },
	lookup => { kind => 'list_scan', path => '/effects?page=0&sort=age', paging => 'page', paging_parameter => 'page', page_size => 1,
		max_pages => 3, max_inconclusive => 1 });
$id{from_zero} = $node->submit('from_zero', { amount => 5 });

define('number', { write => [ {%lost} ], paging => 'offset', page_size => 1, preload => 2 },
	lookup => { kind => 'search', method => 'POST', path => '/effects/search', body => { limit => 1, offset => 0 }, paging => 'offset',
		paging_body_path => '{offset}', page_size => 1, max_inconclusive => 2 });
$id{number} = $node->submit('number', { amount => 5 });

is(end_of($id{owned}), 'succeeded', 'owned: an object of another action on the first page does not end the list');
is($provider->effects('owned'), 2, 'owned: and nothing is sent again');
is(end_of($id{faults}), 'succeeded', 'faults: a further page that is not found is no absence');
is($provider->effects('faults'), 1, 'faults: and nothing is sent again');
is(end_of($id{two_links}), 'manual_review', 'two links: the next page is found in the second one');
is(end_of($id{empty_page}), 'manual_review', 'empty page: a page with nothing on it is not the last if it names another');
end_of($id{relative});
ok((grep { ($_->{path} // '') =~ m{/effects\?cursor=} } @{ $provider->ledger('relative')->{requests} }),
	'relative: a reference is resolved against the page that holds it');
is(end_of($id{from_zero}), 'manual_review', 'from zero: the list is longer than what is read');
my @asked = map { $_->{path} =~ /(page=\d+)/ ? $1 : () } grep { ($_->{method} // '') eq 'GET' } @{ $provider->ledger('from_zero')->{requests} };
is("@asked[0 .. 2]", 'page=0 page=1 page=2', 'from zero: pages are counted from where the path begins');
end_of($id{number});
my ($second) = grep { ($_->{body} // '') =~ /"offset": ?"?1"?/ } @{ $provider->ledger('number')->{requests} };
like($second->{body} // 'no second page', qr/"offset": ?1\b/, 'number: an offset in a body is a number');

# ---------------------------------------------------------------- questions that cannot be made, objects without a date

define('no_member', { write => [ {%kept} ] }, on_absent => 'replace',
	lookup => { reference_path => undef, match_values => { '$.ref' => '{client_reference}', '$.body.note' => '{note}' }, max_inconclusive => 2 });
$id{no_member} = $node->submit('no_member', { amount => 5 });

define('by_key', { write => [ {%kept} ] }, on_absent => 'replace', key_body_path => '{key}',
	lookup => { kind => 'list_scan', path => '/effects', reference_path => undef, match_values => { '$.body.key' => '{idempotency_key}' },
		match_is_unique => 'true', created_path => '$.created' });
$id{by_key} = $node->submit('by_key', { amount => 5 });

define('undated', { write => [ {%kept} ] }, on_absent => 'replace', lookup => alike(created_path => '$.made_at'));
$id{undated} = $node->submit('undated', { amount => 5 });

define('no_zone', { write => [ {%kept} ] }, on_absent => 'replace', lookup => alike(created_path => '$.body.at'));
$id{no_zone} = $node->submit('no_zone', { amount => 5, at => $node->sql(q{SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS')}) });

define('nine', { write => [ ({}) x 9, {%lost} ] }, lookup => alike());
my @nine = map { $node->submit('nine', { amount => 5 }, on_duplicate => 'new') } 1 .. 9;
end_of($_) for @nine;
$id{nine} = $node->submit('nine', { amount => 5 }, on_duplicate => 'new');

define('nameless', { write => [ {}, {%lost} ] }, lookup => alike(artifact_path => undef));
is(end_of($node->submit('nameless', { amount => 5 })), 'succeeded', 'nameless: the first succeeded');
$id{nameless} = $node->submit('nameless', { amount => 5 }, on_duplicate => 'new');

define('later', { write => [ {%lost} ], read => [ { status => 500 }, { status => 500 } ] }, lookup => alike(skew => '0 s'));
$id{later} = $node->submit('later', { amount => 5 });

is(end_of($id{no_member}), 'manual_review', 'no member: a condition that cannot be made is no absence');
is($provider->effects('no_member'), 1, 'no member: and nothing is sent again');
is(end_of($id{by_key}), 'succeeded', 'by key: the key can be a condition');
is($provider->effects('by_key'), 1, 'by key: and nothing is sent again');
is(end_of($id{undated}), 'manual_review', 'undated: what is alike but has no date may be ours');
is($provider->effects('undated'), 1, 'undated: and nothing is sent again');
is(end_of($id{no_zone}), 'succeeded', 'no zone: an instant without a zone is UTC, whatever zone the server has');
is($provider->effects('no_zone'), 1, 'no zone: and nothing is sent again');
isnt(end_of($id{nine}), 'succeeded', 'nine: the ninth object that others own is not ours either');
isnt(end_of($id{nameless}), 'succeeded', 'nameless: an object without an id cannot be told from that of another action');
is(end_of($id{later}), 'manual_review', 'later: nobody knows yet');
$node->wait_sql("SELECT clock_timestamp() > ended_at + interval '2.5 s' FROM reconcile.attempt WHERE action_id = '$id{later}'", 't');
$provider->preload('later', [ { age_s => 0, body => { amount => 5 } } ]);
$node->sql("SELECT reconcile.look_up_now('$id{later}', 'the test says so')");
$node->wait_sql("SELECT count(*) > 2 FROM reconcile.lookup WHERE action_id = '$id{later}' AND answered_at IS NOT NULL", 't');
isnt(end_of($id{later}), 'succeeded', 'later: what was made after the gate is not ours');

# ---------------------------------------------------------------- another account

define('account', { key_header => 'Idempotency-Key', write => [ {%kept} ] }, provider => { credential => 'account_a', consistency_window => '1 hour' },
	headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}', Authorization => '{credential}' },
	key_lifetime => '1 day', key_lifetime_source => 'documented');
$id{account} = $node->submit('account', { amount => 5 });
end_of($id{account}, 'outcome_unknown');
like($node->sql_error("UPDATE reconcile.provider SET credential = 'account_b' WHERE provider = 'account'"), qr/^55000: .*credential/,
	'account: another account cannot be asked about, nor sent the same again');
define('typo', { write => [ {%kept} ] }, provider => { credential => 'acount' }, headers => { Authorization => '{credential}' });
$id{typo} = $node->submit('typo', { amount => 5 });
$node->wait_sql("SELECT failures > 0 FROM reconcile.action WHERE action_id = '$id{typo}'", 't');
$node->sql("UPDATE reconcile.provider SET credential = 'account_a' WHERE provider = 'typo'");
is(end_of($id{typo}), 'succeeded', 'account: what has certainly not happened may go through another one');

# ---------------------------------------------------------------- keys

my %keyed = (
	headers => { 'Content-Type' => 'application/json', 'Idempotency-Key' => '{idempotency_key}' },
	key_lifetime => '1 day', key_lifetime_source => 'documented');

define('same_key', { write => [ {%kept, visibility_lag_s => 1000}, { status => 409 } ] }, %keyed, on_absent => 'replace', lookup => { max_inconclusive => 1 },
	answers => [ { applies_to => 'first', statuses => '{409}', class => 'rejected' }, { applies_to => 'replay', statuses => '{409}', class => 'unknown' } ]);
$id{same_key} = $node->submit('same_key', { amount => 5 });

define('too_late', { write => [ {%lost} ] }, provider => { consistency_window => '2 s' }, %keyed, lookups => [ { kind => 'replay_by_key' }, {} ]);
$id{too_late} = $node->submit('too_late', { amount => 5 }, not_after => $node->sql(q{SELECT clock_timestamp() + interval '1.5 s'}));

$node->wait_sql("SELECT state FROM reconcile.attempt WHERE action_id = '$id{same_key}' AND number = 2", qr/rejected|outcome_unknown/);
isnt(end_of($id{same_key}, 'rejected|outcome_unknown|reconciling|safe_to_retry|manual_review|succeeded'), 'rejected',
	'same key: the rules for a key that was sent before read the answer to a replacement');
is(end_of($id{too_late}), 'safe_to_retry', 'too late: what must not be sent any more is asked about');
is(scalar @{ $node->attempt($id{too_late}) }, 1, 'too late: not tried again and again');

# ---------------------------------------------------------------- deletes

define('remove', { preload => [ { ref => 'thing' } ], write => [ {%lost} ], read => [ {} ], read_default => { status => 200, body => { error => 'try again' } } },
	method => 'DELETE', path => '/effects/{name}', reference_body_path => undef, artifact_path => undef,
	lookup => { kind => 'get_by_reference', path => '/effects/{name}', items_path => undef, reference_path => undef, artifact_path => undef,
		match_values => { '$.ref' => '{name}' }, absent_statuses => '{404}', max_inconclusive => 2 });
$id{remove} = $node->submit('remove', { name => 'thing' });
is(end_of($id{remove}), 'manual_review', 'remove: an answer that shows something else does not show that it is gone');

# ---------------------------------------------------------------- looked at again

define('probe', { visibility_lag_s => 1000 });
$id{probe} = $node->sql(q{SELECT reconcile.submit_drill('probe', '{"amount": 5}', 'probe')});
$node->wait_sql("SELECT count(*) > 1 FROM reconcile.lookup WHERE action_id = '$id{probe}'", 't');
$node->sql(q{DELETE FROM reconcile.lookup_rule WHERE operation = 'probe'});
is($node->wait_sql("SELECT gate_us IS NULL FROM reconcile.action WHERE action_id = '$id{probe}'"
	. " AND NOT EXISTS (SELECT FROM reconcile.lookup WHERE action_id = '$id{probe}' AND answered_at IS NULL)", 't', 20),
	't', 'probe: without a rule it is not watched any more');

my $letters = join '', map { chr(97 + int rand 26) } 1 .. 9000;
define('long_id', { write => [ {%kept} ] }, lookup => { artifact_path => '$.body.blob' });
$id{long_id} = $node->submit('long_id', { blob => $letters });
is(end_of($id{long_id}, undef, 20), 'succeeded', 'long id: an id that cannot be kept does not hold up what was found');

define('set_back', { write => [ {%kept} ], read => [ { status => 200, body => { data => [] } } ] },
	lookup => { canary => 'none', negative_spacing => '2 s' });
$id{set_back} = $node->submit('set_back', { amount => 5 });
$node->wait_sql("SELECT result FROM reconcile.lookup WHERE action_id = '$id{set_back}'", 'absent');
$node->sql("UPDATE reconcile.lookup SET asked_at = asked_at + interval '1 hour' WHERE action_id = '$id{set_back}'");
is(end_of($id{set_back}, undef, 20), 'succeeded', 'set back: a wall clock that was set back holds up nothing');

define('poison', { write => [ {%kept} ] }, lookup => { max_inconclusive => 2 });
$node->sql(<<'SQL');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a trigger of somebody else''s'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON reconcile.window_sample FOR EACH ROW WHEN (NEW.operation = 'poison') EXECUTE FUNCTION refuse();
SQL
$id{poison} = $node->submit('poison', { amount => 5 });
is(end_of($id{poison}, undef, 60), 'manual_review', 'poison: an answer that cannot be stored does not hold the action for ever');
is(reason($id{poison}), 'the answer could not be stored', 'poison: and that is told');

# Nested so deep that it can be read, but not searched.
$node->sql(<<'SQL');
CREATE FUNCTION depths_beyond_search() RETURNS SETOF integer LANGUAGE plpgsql AS $$
DECLARE
	document jsonb;
BEGIN
	FOR depth IN 1000 .. 60000 BY 250 LOOP
		document := reconcile.try_jsonb(repeat('[', depth) || repeat(']', depth));
		EXIT WHEN document IS NULL;
		BEGIN
			PERFORM jsonb_path_exists(document, '$.** ? (@ == "no")', '{}', true);
		EXCEPTION WHEN statement_too_complex THEN
			RETURN NEXT depth;
		END;
	END LOOP;
END $$;
SQL
my $depth = $node->sql('SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY d) FROM depths_beyond_search() d');
ok($depth, 'deep: there is such a depth');
define('deep', { write => [ { body => ('[' x $depth) . (']' x $depth) } ] }, answers => [ { body_path => '$.** ? (@ == "no")', class => 'rejected' } ]);
$id{deep} = $node->submit('deep', { amount => 5 });
is(end_of($id{deep}, undef, 60), 'succeeded', 'deep: an answer that cannot be judged is looked up, not held for ever');
is($node->events($id{deep}), 'submit claim answer_lost ask found', 'deep: until then its outcome was unknown');
is($provider->deliveries('deep'), 1, 'deep: it was sent once');

define('exhausted', { write => [ {%kept} ], read => [ { status => 500 } ] }, %keyed, key_lifetime => '1 s', key_margin => '0',
	lookups => [ { max_inconclusive => 1 }, { kind => 'replay_by_key' } ]);
$id{exhausted} = $node->submit('exhausted', { amount => 5 });
is(end_of($id{exhausted}), 'manual_review', 'exhausted: no rule is left');
$node->sql("SELECT reconcile.look_up_now('$id{exhausted}', 'the test says so')");
is(end_of($id{exhausted}, 'succeeded', 20), 'succeeded', 'exhausted: another round begins with the first rule');

define('held', {}, lookup => { consistency_window => '0.3 s', window_source => 'documented' });
$id{held} = $node->submit('held', { amount => 5 });
is(end_of($id{held}), 'succeeded', 'held: succeeded');
$node->sql("BEGIN; SELECT FROM reconcile.operation WHERE operation = 'held' FOR UPDATE; PREPARE TRANSACTION 'held'");
is($node->sql("SET lock_timeout = '1 s'; SELECT reconcile.note_window_violation('$id{held}', 1, 5000000)"), 'f',
	'held: a broken window waits for nobody, not for the operation either');
$node->sql("ROLLBACK PREPARED 'held'");

define('large', { write => [ {%lost} ], read_default => { status => 200, body => { next_cursor => 'more',
			data => [ map { { id => "other$_", ref => "other$_", body => { text => 'x' x 60 } } } 1 .. 3000 ] } } },
	lookup => { kind => 'list_scan', path => '/effects', max_pages => 10, max_inconclusive => 1, @forward });
my $worker = $node->worker_pid;
my $memory_before = peak_memory_kb($worker);
$id{large} = $node->submit('large', { amount => 5 });
is(end_of($id{large}), 'manual_review', 'large: more pages than are read');
SKIP:
{
	skip 'the memory of a process cannot be read here', 1 if !defined $memory_before;
	cmp_ok(peak_memory_kb($worker) - $memory_before, '<', 102400, 'large: of a page only what it shows is kept');
}

is(end_of($id{slow}, undef, 90), 'safe_to_retry', 'slow: looked at in vain, it is not looked at for ever');
is($provider->deliveries('slow'), 0, 'slow: and nothing was sent');

define('proves_no_more', { write => [ {%lost} ] });
$id{proves_no_more} = $node->submit('proves_no_more', { amount => 5 });
is(end_of($id{proves_no_more}), 'safe_to_retry', 'proves no more: absent');
$node->sql(q{UPDATE reconcile.lookup_rule SET absence_proves = false WHERE operation = 'proves_no_more'});
$node->assert_consistent('before the restart');
$node->restart;		# so that no look is fresh
$node->sql("SELECT reconcile.replace('$id{proves_no_more}', 'the test says so')");
$node->wait_sql("SELECT count(*) > 2 FROM reconcile.lookup WHERE action_id = '$id{proves_no_more}'", 't', 20);
is(end_of($id{proves_no_more}, 'safe_to_retry', 20), 'safe_to_retry', 'proves no more: it does not wait for a proof that no rule gives');

$node->assert_consistent('in the end');

# ---------------------------------------------------------------- what is finished is not read

define('crowd', { key_header => 'Idempotency-Key', write => [ {%kept}, {%kept}, { status => 500, commit => 'never' } ] }, %keyed,
	lookups => [ { kind => 'replay_by_key', max_inconclusive => 1 }, {} ]);
define('crowd_later', { write => [ { status => 202, body => {} } ], read_default => { status => 200, body => { state => 'done' } } },
	poll => { path => '/effects/{client_reference}', state_path => '$.state', accepted => '{done}' });
$node->sql(<<'SQL');
INSERT INTO reconcile.action (action_id, operation, client_reference, deliberate_repeat, provider, submitter, submitted_at, fingerprint, state, standing, queued,
	attempts, dispatch_id, artifact_id, due_at, version, event, evidence, actor, recorded_at, transaction, chain_head)
SELECT reconcile.new_action_id(), 'crowd', 'finished' || i, true, 'crowd', 'finished', now(), reconcile.intent_fingerprint('POST', '/effects', '{}'),
	'succeeded', 'confirmed/accepted', false, 1, gen_random_uuid(), 'finished' || i, now(), 3, 'answered_accepted', '{"transfer": {}}', 'x', now(),
	pg_current_xact_id(), sha256('x') FROM generate_series(1, 20000) i;
INSERT INTO reconcile.attempt (action_id, number, dispatch_id, provider, provider_version, operation_version, base_url, request_hash, epoch, dispatched_at, ended_at,
	window_us, late_arrival_us, gate_us, state, standing, event, evidence, version)
SELECT action_id, 1, dispatch_id, provider, 1, 1, 'http://finished', sha256('x'), 1, now(), now(), 0, 0, 0, state, standing, event, evidence, 2
  FROM reconcile.action WHERE submitter = 'finished';
SELECT pg_stat_force_next_flush();
SQL
my $read = q{SELECT sum(seq_tup_read + idx_tup_fetch), sum(n_tup_ins) FROM pg_stat_user_tables WHERE schemaname = 'reconcile' AND relname IN ('action', 'attempt')};
$node->wait_sql($read, qr/\|4\d{4}$/);
my ($read_before, $made_before) = split /\|/, $node->sql($read);
$id{crowd} = $node->submit('crowd', { amount => 5 });
$id{crowd_later} = $node->submit('crowd_later', { amount => 5 });
is(end_of($id{crowd}), 'succeeded', 'crowd: sent again, then asked about');
is(end_of($id{crowd_later}), 'succeeded', 'crowd: asked for its verdict');
$node->wait_sql("SELECT made >= $made_before + 4 FROM ($read) t(read, made)", qr/^t$/);
my ($read_after) = split /\|/, $node->sql($read);
cmp_ok($read_after - $read_before, '<', 10000, 'crowd: and the finished ones were not read for it');

$node->stop;
done_testing();
