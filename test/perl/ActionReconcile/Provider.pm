package ActionReconcile::Provider;

=head1 NAME

ActionReconcile::Provider - run the scriptable hostile provider from a TAP test

=head1 SYNOPSIS

  my $p = ActionReconcile::Provider->new;
  $p->preset('slow', '10-answer-late', hold_s => 5);
  my $base = $p->http_url('slow');         # http://127.0.0.1:PORT/s/slow
  ...
  ok($p->wait_writes('slow', 1, 10), 'the provider has the write');
  is($p->effects('slow'), 1, 'one effect');
  is($p->deliveries('slow'), 1, 'one delivery');
  $p->stop;

Define a scenario before asking for its URL: some behaviours need a port of
their own.  What can be scripted is described in test/provider/hostile_provider.py.
Every call dies if the provider refuses it.

=cut

use strict;
use warnings;

use Carp;
use Cwd qw(abs_path);
use Fcntl qw(F_GETFD F_SETFD FD_CLOEXEC);
use File::Basename qw(dirname);
use HTTP::Tiny;
use IO::Select;
use IPC::Run;
use JSON::PP;
use Symbol qw(gensym);

my $script =
  abs_path(dirname(__FILE__) . '/../../provider/hostile_provider.py');

# Starts a provider; it ends with stop(), with this object, or with our exit.
# log => FILE keeps its log of requests; python => the interpreter.
sub new
{
	my ($class, %options) = @_;
	my @command = ($options{python} // $ENV{PYTHON} // 'python3', $script);
	push @command, '--log', $options{log} if defined $options{log};

	my ($in, $out) = (gensym, gensym);
	my $run = IPC::Run::start(\@command, '<pipe', $in, '>pipe', $out);

	# A server started later must not hold the pipe open after our exit.
	fcntl($_, F_SETFD, fcntl($_, F_GETFD, 0) | FD_CLOEXEC) for $in, $out;

	my $self = bless {
		run => $run,
		in => $in,
		out => $out,
		owner => $$,
		urls => {},
		http => HTTP::Tiny->new(timeout => 120, keep_alive => 0, proxy => undef,
			http_proxy => undef, https_proxy => undef)
	}, $class;

	croak 'the hostile provider did not start within 30 s'
	  unless IO::Select->new($out)->can_read(30);
	my $line = readline($out) // croak 'the hostile provider died at start';
	$self->{ports} = decode_json($line);
	return $self;
}

# One control call; the decoded answer.
sub call
{
	my ($self, $method, $path, $body) = @_;
	my %request = (headers => { 'Content-Type' => 'application/json' });
	$request{content} = encode_json($body) if defined $body;
	my $answer = $self->{http}->request($method,
		"http://127.0.0.1:$self->{ports}{control}$path", \%request);
	croak "provider: $method $path: $answer->{status} $answer->{content}"
	  unless $answer->{success};
	return decode_json($answer->{content});
}

# Defines what the provider does to this scenario's requests.
sub scenario
{
	my ($self, $name, $spec) = @_;
	return $self->{urls}{$name} =
	  $self->call('PUT', "/scenario/$name", $spec // {});
}

# A preset; further keys are merged into its steps: hold_s => 1.
sub preset
{
	my ($self, $name, $preset, %override) = @_;
	return $self->scenario($name,
		{ preset => $preset, override => \%override });
}

sub port
{
	my ($self, $name, $kind) = @_;
	return ($self->{urls}{$name} // $self->{ports})->{$kind};
}

sub http_url
{
	my ($self, $name) = @_;
	return 'http://127.0.0.1:' . $self->port($name, 'http') . "/s/$name";
}

sub https_url
{
	my ($self, $name) = @_;
	return 'https://localhost:' . $self->port($name, 'https') . "/s/$name";
}

# The authority a client must trust to accept the good certificate.
sub ca_file { return $_[0]->{ports}{ca_file}; }

sub ledger
{
	my ($self, $name) = @_;
	return $self->call('GET', "/ledger/$name");
}

# Counts only: requests, deliveries, complete_writes, reads, effects, refs,
# connections, and duplicates, which maps a reference to its effects if many.
sub summary
{
	my ($self, $name) = @_;
	return $self->call('GET', "/ledger/$name?summary=1");
}

sub effects { return $_[0]->summary($_[1])->{effects}; }
sub deliveries { return $_[0]->summary($_[1])->{deliveries}; }
sub reads { return $_[0]->summary($_[1])->{reads}; }
sub duplicates { return $_[0]->summary($_[1])->{duplicates}; }

# Waits until so many of each are in the ledger; true if they came in time.
# wanted: writes, deliveries, effects, reads, requests.
sub wait_for
{
	my ($self, $name, $timeout, %wanted) = @_;
	$timeout //= 30;
	my $query = join '&', map { "$_=$wanted{$_}" } sort keys %wanted;
	my $answer = $self->call('GET', "/wait/$name?$query&timeout=$timeout");
	return $answer->{reached} ? 1 : 0;
}

sub wait_writes { return $_[0]->wait_for($_[1], $_[3], writes => $_[2]); }
sub wait_effects { return $_[0]->wait_for($_[1], $_[3], effects => $_[2]); }
sub wait_reads { return $_[0]->wait_for($_[1], $_[3], reads => $_[2]); }

# Ends the holds and hangs going on now.
sub release { return $_[0]->call('POST', "/release/$_[1]"); }

# Forgets the ledger of a scenario and starts its script again.
sub reset { return $_[0]->call('POST', "/reset/$_[1]"); }

# More objects of other people, made just now: so many, or descriptions.
sub preload { return $_[0]->call('POST', "/preload/$_[1]", { objects => $_[2] }); }

# Every key the provider knows now is past its lifetime.
sub expire_keys { return $_[0]->call('POST', "/expire/$_[1]"); }

# Jobs accepted so far are in this state from now on; id: only this one, by its
# id or its reference.  Returns all jobs.
sub set_jobs
{
	my ($self, $name, $state, $id) = @_;
	return $self->call('POST', "/job/$name", { state => $state, defined $id ? (id => $id) : () });
}

# The key and what the provider made of it (new replayed mismatch in_progress),
# of each write.
sub keys_seen
{
	my ($self, $name) = @_;
	return map { [ $_->{key}, $_->{key_outcome} ] } grep { $_->{kind} eq 'write' } @{ $self->ledger($name)->{requests} };
}

# The requests of a kind (write, read), in the order in which they came.
sub requests
{
	my ($self, $name, $kind) = @_;
	return grep { $_->{kind} eq $kind } @{ $self->ledger($name)->{requests} };
}

# What somebody else than the extension asks of a scenario: method, path under
# its address, and a body.  It is in the ledger like everything else.
sub somebody
{
	my ($self, $name, $method, $path, $body) = @_;
	my %request = defined $body ? (content => encode_json($body), headers => { 'Content-Type' => 'application/json' }) : ();
	return $self->{http}->request($method, $self->http_url($name) . $path, \%request);
}

# A scenario's own ports refuse connections, and listen again.
sub close_ports { return $_[0]->call('POST', "/close/$_[1]"); }
sub open_ports { return $_[0]->call('POST', "/open/$_[1]"); }

# Opens a port of a special kind; returns its number.
sub listener
{
	my ($self, $kind, $scenario) = @_;
	my %body = (kind => $kind);
	$body{scenario} = $scenario if defined $scenario;
	return $self->call('POST', '/listener', \%body)->{port};
}

# accepted, open, handshakes, errors, bytes_read of a port listener() opened.
sub listener_stats { return $_[0]->call('GET', "/listener/$_[1]"); }

# accepted and open connections of all ports together.
sub stats { return $_[0]->call('GET', '/stats'); }

sub stop
{
	my ($self) = @_;
	my $run = delete $self->{run} or return;
	return if $self->{owner} != $$;
	close $self->{in};
	IPC::Run::kill_kill($run, grace => 5)
	  unless IO::Select->new($self->{out})->can_read(5);
	eval { IPC::Run::finish($run); };
	return;
}

sub DESTROY
{
	my ($self) = @_;
	local ($?, $@, $!);
	$self->stop;
	return;
}

1;
