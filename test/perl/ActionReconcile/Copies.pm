package ActionReconcile::Copies;

=head1 NAME

ActionReconcile::Copies - copies of a server, and what none of them may do

=head1 SYNOPSIS

  my $copies = ActionReconcile::Copies->new($provider);
  my $original = $copies->original('original', wal_level => 'replica');
  $copies->cast($original);                  # 5 queued, 2 unknown, 1 in flight
  $original->backup('b');
  my $copy = $copies->copy($original, 'b', 'copy', arming => 'same');
  $copies->check_silent('a copy', $copy, qr/data directory is a copy/);
  $copies->settle_original($original);
  $copies->check_ledger('after all', 'queue');

The judge is the provider's ledger: no reference has two effects, and every
question was asked by a server that may ask.

=cut

use strict;
use warnings;

use Exporter 'import';
use File::Path ();
use Test::More;

use ActionReconcile::Node;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils ();

our @EXPORT_OK = qw(make_arming_dir);

sub new
{
	my ($class, $provider) = @_;
	return bless { provider => $provider }, $class;
}

# A directory for tokens that belongs to the server's user alone.
sub make_arming_dir
{
	my $directory = PostgreSQL::Test::Utils::tempdir('arming');
	chmod 0700, $directory;
	return $directory;
}

# ---------------------------------------------------------------- servers

# A server whose WAL can be streamed and backed up; archiving => 1: and archived.
sub original
{
	my ($self, $name, %options) = @_;
	my $conf = delete $options{conf} // '';
	my $archive = $self->{archive} = PostgreSQL::Test::Utils::tempdir('archive');

	$conf .= "archive_mode = on\narchive_command = 'cp \"%p\" \"$archive/%f\"'\n" if delete $options{archiving};
	return ActionReconcile::Node->create($name, %options, conf => <<"CONF");
wal_level = replica
max_wal_senders = 4
max_replication_slots = 4
hot_standby = on
wal_keep_size = 64MB
$conf
CONF
}

# A server, not started, from a backup of another.
#   arming => 'same'    the arming directory of the original; else one of its own
#   signal => NAME      an empty signal file of that name
#   streaming => 1      it follows the original
#   conf => TEXT        more lines for postgresql.conf
sub copy
{
	my ($self, $original, $backup, $name, %options) = @_;
	my $copy = ActionReconcile::Node->new($name);

	$copy->{ar_preload} = $original->{ar_preload};
	$copy->{ar_env} = {};
	$copy->{ar_database} = $original->{ar_database};
	$copy->{ar_arming_dir} = ($options{arming} // '') eq 'same' ? $original->arming_dir : make_arming_dir();
	$copy->init_from_backup($original, $backup, has_streaming => $options{streaming} // 0);
	$copy->append_conf('postgresql.conf', "action_reconcile.arming_dir = '$copy->{ar_arming_dir}'\n" . ($options{conf} // ''));
	$copy->append_conf($options{signal}, '') if defined $options{signal};
	return $copy;
}

# A file copy of a server that does not run, where backup() would have put it.
sub copy_files
{
	my ($self, $original, $backup) = @_;
	$original->backup_fs_cold($backup);
	return;
}

# The files of a backup in the very place of the server's own, whose control
# file stays the same file: as a file backup that is copied back does.
#   recovery => TEXT    it is recovered from the archive, with these settings
sub put_back
{
	my ($self, $node, $backup, %options) = @_;
	my ($from, $to) = ($node->backup_dir . "/$backup", $node->data_dir);
	my $control = 'global/pg_control';

	opendir my $directory, $to or die "could not open \"$to\": $!";
	foreach my $entry (grep { !/^(?:\.\.?|global)$/ } readdir $directory)
	{
		File::Path::remove_tree("$to/$entry");
	}
	File::Path::remove_tree(grep { !/pg_control$/ } glob("$to/global/*"));
	my $inode = (stat "$to/$control")[1];
	PostgreSQL::Test::Utils::system_or_bail('cp', '-a', "$from/.", "$to/");
	die 'the control file is another one' if (stat "$to/$control")[1] != $inode;
	return unless defined $options{recovery};
	$node->append_conf('postgresql.conf', "restore_command = 'cp \"$self->{archive}/%f\" \"%p\"'\n$options{recovery}");
	$node->append_conf('recovery.signal', '');
	return;
}

# The server of a data directory that was put into another place.
sub moved
{
	my ($self, $original, $directory, $name) = @_;
	my $moved = ActionReconcile::Node->new($name);

	$moved->{$_} = $original->{$_} foreach qw(ar_preload ar_env ar_database ar_arming_dir);
	rename $directory, $moved->data_dir or die "could not rename \"$directory\": $!";
	$moved->append_conf('postgresql.conf', "port = " . $moved->port);
	return $moved;
}

# ---------------------------------------------------------------- what is under way

# A provider and an operation of a name, in the database of the node.
sub define
{
	my ($self, $node, $name, $spec, %options) = @_;
	my $operation = delete $options{operation} // {};

	$self->{provider}->scenario($name, $spec);
	$node->define_provider($name, $self->{provider}->http_url($name), connect_timeout => '10 s', attempt_timeout => '15 s', %options);
	$node->define_operation($name, $name, on_absent => 'replace', %$operation);
	return;
}

# Case 37: five that wait, two whose answer was lost, one on its way.
sub cast
{
	my ($self, $node) = @_;

	$self->define($node, 'queue', {});
	$self->define($node, 'lost', { write => [ map { { then => 'close' } } 1 .. 2 ] }, consistency_window => '4 s');
	$self->define($node, 'flight', { write => [ { hold_s => 600 } ] }, attempt_timeout => '30 s');
	$node->sql("SELECT reconcile.pause('queue', 'not yet')", $node->{ar_database});
	$self->{queue} = [ $node->submit_all(map { [ 'queue', { number => $_ } ] } 1 .. 5) ];
	$self->{flight} = [ $node->submit('flight', {}) ];
	ok($self->{provider}->wait_effects('flight', 1, 30), 'original: one is on its way');
	$self->{lost} = [ $node->submit_all(map { [ 'lost', { number => $_ } ] } 1 .. 2) ];
	is($node->wait_state($_, 'outcome_unknown'), 'outcome_unknown', 'original: one is unknown') foreach @{ $self->{lost} };
	return;
}

# Actions that each have one effect at the provider of that name.
sub expect_one_effect
{
	my ($self, $name, @ids) = @_;
	push @{ $self->{$name} }, @ids;
	return;
}

sub ids { return @{ $_[0]->{ $_[1] } // [] }; }

# ---------------------------------------------------------------- what must hold

sub engine
{
	my ($self, $node) = @_;
	return $node->rows('SELECT * FROM reconcile.engine()', $node->{ar_database})->[0];
}

sub _attempts_and_lookups
{
	my ($node) = @_;
	return $node->sql('SELECT (SELECT count(*) FROM reconcile.attempt), (SELECT count(*) FROM reconcile.lookup)', $node->{ar_database});
}

# It has a worker that says why it sends nothing; recording and confirming work;
# and work that is due stays where it is.  Returns what was recorded in it.
sub check_silent
{
	my ($self, $title, $node, $because) = @_;
	my $database = $node->{ar_database};
	my $before = _attempts_and_lookups($node);
	my ($told) = @{ $self->{lost} };
	my ($effect) = grep { $_->{ref} eq $told } @{ $self->{provider}->ledger('lost')->{effects} };

	isnt($node->wait_worker, '0', "$title: it has a worker");
	$node->wait_for_log(qr/sends nothing: [^\n]*$because/);
	my $engine = $self->engine($node);
	ok(!$engine->{armed}, "$title: not armed");
	like($engine->{disarmed_because}, $because, "$title: and why");
	like($node->sql('SELECT armed FROM reconcile.health', $database), qr/^f$/, "$title: health says so");

	$node->sql("SELECT reconcile.resume('queue')", $database);
	my $new = $node->submit('queue', { recorded_in => $node->name . $title });
	is($node->status($new)->{state}, 'planned', "$title: an action can be recorded");
	like($node->sql("SELECT state || ' ' || result FROM reconcile.confirm('$told', '$effect->{id}', '{\"seen\": true}', 'lost')", $database),
		qr/^succeeded /, "$title: a confirmation counts");
	is($node->sql_error("SELECT * FROM reconcile.wait('$new', '700 ms')", $database), '', "$title: it can be waited for");
	is($node->status($new)->{state}, 'planned', "$title: in vain");
	is(_attempts_and_lookups($node), $before, "$title: no attempt, no question");
	return $new;
}

# Every question in the ledger was asked by one of these.
sub check_questions
{
	my ($self, $title, $name, @nodes) = @_;
	my $asked = 0;
	$asked += $_->sql("SELECT count(*) FROM reconcile.lookup k JOIN reconcile.action a USING (action_id) WHERE a.operation = '$name'", $_->{ar_database}) foreach @nodes;
	is($self->{provider}->reads($name), $asked, "$title: nobody else has asked \"$name\"");
	return;
}

# One effect for each of these actions, and none beside.
sub check_ledger
{
	my ($self, $title, $name, @ids) = @_;
	my %made;
	$made{ $_->{ref} // '?' }++ foreach @{ $self->{provider}->ledger($name)->{effects} };
	is_deeply(\%made, { map { $_ => 1 } @ids }, "$title: one effect for each at \"$name\"");
	return;
}

sub wait_all
{
	my ($self, $title, $node, $state, @ids) = @_;
	my $list = join ', ', map { "'$_'" } @ids;
	my $count = @ids;
	return if $count == 0;
	is($node->wait_sql("SELECT count(*) FROM reconcile.action WHERE action_id IN ($list) AND state = '$state'", "$count", undef, $node->{ar_database}),
		$count, "$title: all $count are $state")
	  or diag($node->sql("SELECT action_id, state, event, evidence FROM reconcile.action WHERE action_id IN ($list)", $node->{ar_database}));
	return;
}

# The original goes on, and all that it had to do is done once.
sub settle_original
{
	my ($self, $node) = @_;
	$node->sql("SELECT reconcile.resume('queue')", $node->{ar_database});
	$self->{provider}->release('flight');
	$self->wait_all('original', $node, 'succeeded', map { $self->ids($_) } qw(queue lost flight));
	ok($self->engine($node)->{armed}, 'original: it is still armed');
	$self->check_ledger('original', $_, $self->ids($_)) foreach qw(queue lost flight);
	$node->assert_consistent('original');
	return;
}

1;
