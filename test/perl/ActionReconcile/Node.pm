package ActionReconcile::Node;

=head1 NAME

ActionReconcile::Node - a throwaway server with action_reconcile in it

=head1 SYNOPSIS

  my $node = ActionReconcile::Node->create('main');
  $node->define_provider('p', $url, max_in_flight => 4);
  $node->define_operation('op', 'p', on_absent => 'replace');
  my $id = $node->submit('op', { amount => 5 });
  is($node->wait_state($id, qr/succeeded|safe_to_retry/), 'succeeded', '...');
  is($node->attempt($id)->[0]{evidence}{transfer}{proves}, 'answered', '...');
  $node->assert_consistent;

A PostgreSQL::Test::Cluster on a Unix socket, so everything of that works too.
The library is the installed one, or the one in AR_TEST_LIBDIR if that is set.
What is defined without further options has short windows: a lost answer is
settled within a second of the end of its attempt.

=cut

use strict;
use warnings;

use parent 'PostgreSQL::Test::Cluster';

use Carp;
use JSON::PP;
use PostgreSQL::Test::Utils ();
use Test::More;
use Time::HiRes qw(time usleep);

our $timeout = $ENV{PG_TEST_TIMEOUT_DEFAULT} || 60;
my $poll_pause_us = 40_000;

# A started server, the extension created, the database armed.
#   preload => 0    without shared_preload_libraries: there is no worker
#   extension => 0  the extension is not created
#   arm => 0        the database is not armed
#   start => 0      the server is only initialized
#   conf => TEXT    more lines for postgresql.conf
#   env => {..}     environment of the server, at every start
sub create
{
	my ($class, $name, %options) = @_;
	my $self = $class->SUPER::new($name // 'main');
	my $preload = $options{preload} // 1;

	$self->{ar_arming_dir} = PostgreSQL::Test::Utils::tempdir('arming');
	chmod 0700, $self->{ar_arming_dir};
	$self->{ar_preload} = $preload;
	$self->{ar_env} = $options{env} // {};
	$self->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
	my $conf = <<"CONF";
action_reconcile.arming_dir = '$self->{ar_arming_dir}'
restart_after_crash = on
log_statement = none
log_min_messages = info
max_connections = 40
max_worker_processes = 16
shared_buffers = 32MB
CONF
	$conf .= "shared_preload_libraries = 'action_reconcile'\n" if $preload;
	$conf .= "dynamic_library_path = '$ENV{AR_TEST_LIBDIR}:\$libdir'\n"
	  if ($ENV{AR_TEST_LIBDIR} // '') ne '';
	$conf .= "$options{conf}\n" if defined $options{conf};
	$self->append_conf('postgresql.conf', $conf);
	return $self unless $options{start} // 1;

	$self->start;
	return $self unless $options{extension} // 1;
	$self->sql('CREATE EXTENSION action_reconcile');
	$self->sql("SELECT reconcile.arm('test')") if $options{arm} // 1;
	return $self;
}

sub start
{
	my ($self, %options) = @_;
	local %ENV = (%ENV, %{ $self->{ar_env} // {} });
	return $self->SUPER::start(%options);
}

# The directory that holds the arming token.
sub arming_dir { return $_[0]->{ar_arming_dir}; }

# ---------------------------------------------------------------- SQL

# A value as an SQL literal: undef is NULL, a hash or an array is JSON.
sub literal
{
	my ($value) = @_;
	return 'NULL' unless defined $value;
	$value = JSON::PP->new->canonical->allow_nonref->encode($value) if ref $value;
	$value =~ s/'/''/g;
	return "'$value'";
}

# The text that a statement answers; dies on an error.
sub sql
{
	my ($self, $statement, $database) = @_;
	return $self->safe_psql($database // 'postgres', $statement);
}

# The rows of a query, each as a hash.
sub rows
{
	my ($self, $query, $database) = @_;
	return decode_json(
		$self->sql("SELECT coalesce(json_agg(q), '[]') FROM ($query) q",
			$database));
}

# The SQLSTATE and the message of a statement that must fail; empty if it does not.
sub sql_error
{
	my ($self, $statement, $database) = @_;
	my ($code, $out, $err) = $self->psql($database // 'postgres',
		"\\set VERBOSITY verbose\n$statement");
	return '' if $code == 0;
	return $err =~ /ERROR:\s+(.*)/ ? $1 : $err;
}

# Repeats a query until its whole answer matches; returns the last answer, and
# tells what it was if the time is over.
sub wait_sql
{
	my ($self, $query, $expected, $seconds, $database) = @_;
	my $until = time + ($seconds // $timeout);
	my $pattern = ref $expected ? $expected : qr/^\Q$expected\E$/;
	my ($answer, $error);

	while (1)
	{
		# The server may die while psql is still being told what to ask.
		my ($code, $out, $err) = eval { $self->psql($database // 'postgres', $query) };
		($code, $err) = (1, $@) if $@;
		($answer, $error) = ($out // '', $err // '');
		return $answer if $code == 0 && $answer =~ $pattern;
		last if time > $until;
		usleep($poll_pause_us);
	}
	diag("timed out waiting for $pattern\nquery: $query\nlast answer: $answer $error");
	return $answer;
}

# ---------------------------------------------------------------- definitions

sub insert
{
	my ($self, $table, %columns) = @_;
	my @names = sort keys %columns;
	return sprintf('INSERT INTO reconcile.%s (%s) VALUES (%s);',
		$table, join(', ', @names), join(', ', map { literal($columns{$_}) } @names));
}

# A provider with a short, documented window, and whose answers may get lost again and
# again without a breaker that opens; options are columns of the table.
sub define_provider
{
	my ($self, @definition) = @_;
	$self->sql($self->provider_sql(@definition), $self->{ar_database});
	return;
}

# The statement that defines it, for many at once.
sub provider_sql
{
	my ($self, $name, $url, %options) = @_;
	my %columns = (
		provider => $name,
		base_url => $url,
		consistency_window => '0.3 s',
		window_source => 'documented',
		late_arrival_max => '0.1 s',
		connect_timeout => '1 s',
		attempt_timeout => '2 s',
		breaker_after => undef,
		allow_http => 'true',
		allow_private_addresses => 'true',
		%options);
	return $self->insert('provider', %columns);
}

# An operation that posts JSON to /effects with the client reference in "ref",
# reads the answer's "id", and is looked up in the list of effects.
#   lookup => {..}  columns of the lookup rule that are to be otherwise
#   lookup => 0     no lookup rule
#   lookups => [..] these rules in this order, each as lookup; a replay_by_key has no list
#   answers => [..] response rules in this order
#   poll => {..}    a poll rule
# other options are columns of the table
sub define_operation
{
	my ($self, @definition) = @_;
	$self->sql('BEGIN;' . $self->operation_sql(@definition) . 'COMMIT;', $self->{ar_database});
	return;
}

sub operation_sql
{
	my ($self, $name, $provider, %options) = @_;
	my $lookup = delete $options{lookup} // {};
	my @lookups = @{ delete $options{lookups} // [ $lookup ? $lookup : () ] };
	my @answers = @{ delete $options{answers} // [] };
	my $poll = delete $options{poll};
	my %columns = (
		operation => $name,
		provider => $provider,
		path => '/effects',
		reference_body_path => '{ref}',
		artifact_path => '$.id',
		retry_pause => '0.2 s',
		retry_pause_max => '1 s',
		%options);
	my $statements = $self->insert('operation', %columns);
	my $position = 0;
	$statements .= $self->insert('lookup_rule', operation => $name, position => ++$position, _lookup_columns($_))
	  foreach @lookups;
	$position = 0;
	$statements .= $self->insert('response_rule', operation => $name, position => ++$position, because => 'the test says so', %$_)
	  foreach @answers;
	$statements .= $self->insert('poll_rule', operation => $name, pause => '0.1 s', pause_max => '0.5 s', %$poll) if $poll;
	return $statements;
}

# A lookup rule: of the list, unless it is the same request again.
sub _lookup_columns
{
	my ($given) = @_;
	my %rule = (negative_spacing => '0.1 s', pause => '0.1 s', pause_max => '0.5 s', timeout => '2 s');
	my %list = (
		kind => 'list_by_reference',
		path => '/effects?ref={client_reference}',
		items_path => '$.data[*]',
		reference_path => '$.ref',
		artifact_path => '$.id');
	$given = {} unless ref $given;
	return (%rule, ($given->{kind} // '') eq 'replay_by_key' ? () : %list, %$given);
}

# ---------------------------------------------------------------- actions

sub _submit_call
{
	my ($operation, $payload, %options) = @_;
	return 'SELECT action_id FROM reconcile.submit('
	  . join(', ', literal($operation), literal($payload // {}),
		map { "$_ => " . literal($options{$_}) } sort keys %options)
	  . ');';
}

# Records an action; the options are further arguments of submit().
sub submit
{
	my ($self, $operation, $payload, %options) = @_;
	return $self->sql(_submit_call($operation, $payload, %options),
		$self->{ar_database});
}

# Records many, each in a transaction of its own: [operation, payload, options..]
sub submit_all
{
	my ($self, @calls) = @_;
	return split /\n/,
	  $self->sql(join("\n", map { _submit_call(@$_) } @calls),
		$self->{ar_database});
}

# The row of action_status.
sub status
{
	my ($self, $action_id) = @_;
	return $self->rows("SELECT * FROM reconcile.action_status WHERE action_id = '$action_id'",
		$self->{ar_database})->[0];
}

# The rows of the history, attempts, lookups of an action, in order.
sub history
{
	my ($self, $action_id) = @_;
	return $self->rows("SELECT * FROM reconcile.history WHERE action_id = '$action_id' ORDER BY version",
		$self->{ar_database});
}

sub attempt
{
	my ($self, $action_id) = @_;
	return $self->rows("SELECT * FROM reconcile.attempt WHERE action_id = '$action_id' ORDER BY number",
		$self->{ar_database});
}

sub lookups
{
	my ($self, $action_id) = @_;
	return $self->rows("SELECT * FROM reconcile.lookup WHERE action_id = '$action_id' ORDER BY asked_at",
		$self->{ar_database});
}

# What the end of an attempt (the last one) proved: the transfer's evidence as
# it was recorded, whatever was learned afterwards.
sub transfer
{
	my ($self, $action_id, $number) = @_;
	my @ends = grep {
		exists $_->{evidence}{transfer}
		  && (!defined $number || $_->{attempt_number} == $number)
	} @{ $self->history($action_id) };
	return @ends ? $ends[-1]{evidence}{transfer} : {};
}

# The evidence of each answer to a lookup, or of each poll that decided, in order.
sub answers
{
	my ($self, $action_id, $kind) = @_;
	$kind //= 'lookup';
	return map { $_->{evidence}{$kind} }
	  grep { exists $_->{evidence}{$kind}{reason} } @{ $self->history($action_id) };
}

# What was asked inside the window of the rule that asked, and all that was
# taken for an absence there: there must be none.
sub hasty_lookups
{
	my ($self, $action_id) = @_;
	return $self->sql(<<"SQL", $self->{ar_database});
SELECT string_agg(format('rule %s asked %s us too soon: %s', k.position, g.gate_us - k.asked_us, k.result), ', ')
  FROM reconcile.lookup k
  JOIN reconcile.action a USING (action_id)
  JOIN reconcile.provider p ON p.provider = a.provider
  JOIN reconcile.lookup_rule l ON l.operation = a.operation AND l.position = k.position
  JOIN reconcile.attempt t ON t.action_id = k.action_id AND t.ended_at <= k.asked_at AND t.event NOT LIKE 'not_%'
 CROSS JOIN LATERAL (SELECT t.gate_us - t.window_us
	+ (extract(epoch FROM coalesce(l.consistency_window, p.consistency_window)) * 1000000)::bigint AS gate_us) g
 WHERE k.action_id = '$action_id' AND k.asked_us < g.gate_us
SQL
}

# The events of an action's history in one line.
sub events
{
	my ($self, $action_id) = @_;
	return join ' ', map { $_->{event} } @{ $self->history($action_id) };
}

# Waits until the state of an action matches; returns the last state seen.
sub wait_state
{
	my ($self, $action_id, $pattern, $seconds) = @_;
	my $whole = qr/^(?:$pattern)$/;
	my $state = $self->wait_sql("SELECT state FROM reconcile.action WHERE action_id = '$action_id'",
		$whole, $seconds, $self->{ar_database});
	diag(explain($self->history($action_id))) unless $state =~ $whole;
	return $state;
}

# Two checks: every action is the fold of its attempts, every history is whole.
sub assert_consistent
{
	my ($self, $name) = @_;
	$name = defined $name ? "$name: " : '';
	is($self->sql('SELECT * FROM reconcile.fold_violation()', $self->{ar_database}),
		'', "${name}every action is the fold of its attempts");
	is($self->sql('SELECT * FROM reconcile.verify_history()', $self->{ar_database}),
		'', "${name}every history is whole");
	return;
}

# ---------------------------------------------------------------- faults

# The end of the log now, for wait_for_log().
sub log_offset { return -s $_[0]->logfile // 0; }

# Puts a setting into effect for the postmaster, and for the worker before
# anything that the caller does next.
sub set_conf
{
	my ($self, $name, $value) = @_;
	my $load = $self->{ar_preload} ? '' : "LOAD 'action_reconcile';\n";
	my $how = defined $value ? 'SET ' . $name . ' = ' . literal($value) : "RESET $name";

	$self->sql("${load}ALTER SYSTEM $how");
	$self->reload;
	my $pid = $self->{ar_preload} ? $self->worker_pid : '';
	kill 'HUP', $pid if $pid ne '';
	my $shown = defined $value ? "= " . literal($value) : 'IS NOT NULL';
	$self->wait_sql("${load}SELECT current_setting('$name') $shown", 't');
	return;
}

# Test builds only.  The engine stops at the point until it is killed; clear
# the point before killing, or its successor stops there too.
sub set_fault_point
{
	my ($self, $name) = @_;
	$self->{ar_fault_offset} = $self->log_offset;
	$self->set_conf('action_reconcile.fault_point', $name);
	return;
}

sub clear_fault_point
{
	my ($self) = @_;
	$self->set_conf('action_reconcile.fault_point', undef);
	return;
}

# Waits until the engine stands at the point since set_fault_point().
sub wait_fault
{
	my ($self, $name) = @_;
	$self->wait_for_log(qr/fault point "$name" reached/, $self->{ar_fault_offset} // 0);
	return 1;
}

# The process of this database's worker; empty if there is none.
sub worker_pid
{
	my ($self) = @_;
	return $self->sql('SELECT worker_pid FROM reconcile.engine()', $self->{ar_database});
}

# Waits for a worker that is not the given one, and returns its pid.
sub wait_worker
{
	my ($self, $other_than) = @_;
	my $except = defined $other_than && $other_than ne '' ? "worker_pid <> $other_than" : 'true';
	return $self->wait_sql(
		"SELECT coalesce((SELECT worker_pid FROM reconcile.engine() WHERE worker_pid = lock_holder_pid AND $except), 0)",
		qr/^[1-9]/, undef, $self->{ar_database});
}

# kill -9: of one process, or of the postmaster.
sub kill9
{
	my ($self, $pid) = @_;
	return $self->SUPER::kill9 unless defined $pid;
	kill('KILL', $pid) == 1 or croak "could not kill process $pid: $!";
	return;
}

# The processes of this server: those that work in its data directory.
sub _processes
{
	my ($self) = @_;
	my $directory = $self->data_dir;
	return grep { (readlink("/proc/$_/cwd") // '') eq $directory }
	  map { m{^/proc/(\d+)$} ? $1 : () } glob('/proc/[0-9]*');
}

# Starts the server after kill9() of its postmaster, when its processes are gone.
sub start_after_kill9
{
	my ($self) = @_;
	my $until = time + $timeout;
	while (my @left = $self->_processes)
	{
		croak "processes @left of the killed server are still there" if time > $until;
		usleep($poll_pause_us);
	}
	# A dead postmaster that nobody has waited for still has its number.
	unlink $self->data_dir . '/postmaster.pid',
	  $self->host . '/.s.PGSQL.' . $self->port . '.lock';
	$self->{_pid} = undef;
	$self->start;
	return;
}

1;
