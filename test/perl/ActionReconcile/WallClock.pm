package ActionReconcile::WallClock;

=head1 NAME

ActionReconcile::WallClock - a wall clock for a server that a test may set

=head1 SYNOPSIS

  my $clock = ActionReconcile::WallClock->new;
  my $node = ActionReconcile::Node->create('clock', env => $clock->environment);
  $clock->step(86_400);          # a day ahead of the real one from now on, also in processes that run
  $clock->set('2026-03-29 00:59:00');    # UTC

By a small library (test/wall_clock/) that the server preloads.  The monotonic
clocks stay the real ones.

=cut

use strict;
use warnings;

use Carp;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils ();
use Time::Local qw(timegm);

my $source = abs_path(dirname(__FILE__) . '/../../wall_clock/wall_clock.c');

sub new
{
	my ($class) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('wall_clock');
	my $self = bless { library => "$directory/wall_clock.so", file => "$directory/offset" }, $class;
	system('cc', '-O2', '-Wall', '-shared', '-fPIC', '-o', $self->{library}, $source) == 0 or croak "could not compile $source";
	open my $handle, '>', $self->{file} or croak "$self->{file}: $!";
	print $handle pack 'q', 0;
	close $handle or croak "$self->{file}: $!";
	return $self;
}

# For the server, at every start.
sub environment
{
	my ($self) = @_;
	return { LD_PRELOAD => $self->{library}, WALL_CLOCK_OFFSET => $self->{file} };
}

# So many seconds ahead of the real clock, or behind it. The server has the file mapped: it is written in place.
sub step
{
	my ($self, $seconds) = @_;
	open my $handle, '+<', $self->{file} or croak "$self->{file}: $!";
	syswrite($handle, pack 'q', $seconds) == 8 or croak "$self->{file}: $!";
	close $handle;
	return;
}

# As if it were that instant now, in UTC: YYYY-MM-DD hh:mm:ss.
sub set
{
	my ($self, $instant) = @_;
	my ($year, $month, $day, $hour, $minute, $second) = $instant =~ /^(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+)$/
	  or croak "no instant: $instant";
	$self->step(timegm($second, $minute, $hour, $day, $month - 1, $year) - time);
	return;
}

1;
