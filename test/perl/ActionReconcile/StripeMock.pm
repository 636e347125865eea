package ActionReconcile::StripeMock;

=head1 NAME

ActionReconcile::StripeMock - somebody else's mock of Stripe's API for a TAP test

=head1 SYNOPSIS

  my $s = ActionReconcile::StripeMock->new;
  my $charge = $s->charge(1000);                       # its id
  my ($status, $body) = $s->call(POST => '/v1/refunds', "charge=$charge", 'a key');
  is(scalar $s->list('/v1/refunds'), 1, 'one refund');
  $s->stop;

The npm package stripe-stateful-mock: charges, refunds, customers, keys; it knows
no payment intents.  It is installed once with npm, from the lock file in
test/stripe_mock, into AR_CACHE, or ~/.cache/action_reconcile of the user that
the test runs as.  Without npm, or without its registry when nothing is
installed yet, new() dies: that is a failure and not a reason to skip.

=cut

use strict;
use warnings;

use parent 'ActionReconcile::Service';

use Carp;
use Cwd qw(abs_path);
use Digest::SHA;
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use IPC::Run ();
use JSON::PP;
use PostgreSQL::Test::Utils ();

my $source = abs_path(dirname(__FILE__) . '/../../stripe_mock');
our $api_key = 'sk_test_action_reconcile';

sub new
{
	my ($class) = @_;
	my $folder = _installed();
	my $directory = PostgreSQL::Test::Utils::tempdir('stripe_mock');
	my $self = $class->start_service('stripe_mock', $directory, _program('node'), "$source/server.js", $folder);
	my $port = $self->first_line;
	chomp $port;
	$self->wait_for_port($port) or croak "the mock ended:\n" . $self->log_text;
	return $self;
}

sub _program
{
	my ($name) = @_;
	foreach my $folder (split /:/, $ENV{PATH} // '')
	{
		return "$folder/$name" if $folder ne '' && -x "$folder/$name";
	}
	croak "there is no $name; run ci/setup";
}

# The folder that holds node_modules; made by the first test that needs it.
sub _installed
{
	my $cache = $ENV{AR_CACHE} // ((getpwuid $<)[7] . '/.cache/action_reconcile');
	my $version = substr Digest::SHA->new(256)->addfile("$source/package-lock.json")->hexdigest, 0, 16;
	my $folder = "$cache/stripe_mock-$version";

	make_path($cache, { mode => 0700 });
	open my $lock, '>>', "$cache/lock" or croak "$cache/lock: $!";
	flock $lock, LOCK_EX or croak "$cache/lock: $!";
	return $folder if -e "$folder/complete";

	remove_tree($folder);
	make_path($folder);
	copy("$source/$_", "$folder/$_") or croak "$_: $!" foreach qw(package.json package-lock.json);
	my $npm = _program('npm');
	my @command = ($npm, 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--cache', "$cache/npm");
	local $ENV{HOME} = $cache;
	# Node.js does not look at the system's certificates by itself.
	my $authorities = '/etc/ssl/certs/ca-certificates.crt';
	local $ENV{NODE_EXTRA_CA_CERTS} = -r $authorities ? $authorities : '';
	my $output = '';
	# In the folder, not with --prefix: that would hide npm's global settings.
	my $good = IPC::Run::run(\@command, '<', \undef, '>', \$output, '2>&1', init => sub { chdir $folder or die "$folder: $!" },
		IPC::Run::timeout(300));
	croak "npm could not install the mock of Stripe's API:\n$output" unless $good;
	open my $mark, '>', "$folder/complete" or croak "$folder/complete: $!";
	close $mark;
	return $folder;
}

# One call, past everything; a form or nothing in the body.  (status, body
# decoded, headers)
sub call
{
	my ($self, $method, $path, $form, $key) = @_;
	my %headers = (Authorization => "Bearer $api_key");
	$headers{'Content-Type'} = 'application/x-www-form-urlencoded' if defined $form;
	$headers{'Idempotency-Key'} = $key if defined $key;
	my $answer = $self->request($method, $path, \%headers, $form);
	return ($answer->{status}, decode_json($answer->{content}), $answer->{headers});
}

# A charge that can be refunded; its id.
sub charge
{
	my ($self, $amount) = @_;
	my ($status, $body) = $self->call(POST => '/v1/charges', "amount=$amount&currency=eur&source=tok_visa");
	croak "a charge is $status" unless $status == 200;
	return $body->{id};
}

# All objects of a list: the ledger.
sub list
{
	my ($self, $path) = @_;
	my ($status, $body) = $self->call(GET => $path);
	croak "GET $path is $status" unless $status == 200;
	return @{ $body->{data} };
}

1;
