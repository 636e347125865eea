#!/usr/bin/perl
# Runs programs that speak the Test Anything Protocol, and counts.
#
#   harness.pl [--jobs N] [--comments] [--exec "COMMAND ARGUMENTS"] FILE...
#
# The last line is "counted PASSED FAILED".  A file that died, that broke its
# plan or that ran nothing counts as one failure, if no failed check of its own
# says so already.  The names of the failed files are printed before it.
use strict;
use warnings;

use Getopt::Long;
use TAP::Harness;

my $jobs = 1;
my $comments = 0;
my $exec;
GetOptions('jobs=i' => \$jobs, 'comments' => \$comments, 'exec=s' => \$exec) or exit 2;

my %arguments = (jobs => $jobs, merge => 0, failures => 1, comments => $comments, timer => 1);
$arguments{exec} = [ split ' ', $exec ] if defined $exec && $exec ne '';
$arguments{exec} = sub { return [ $_[1] ] } if defined $exec && $exec eq '';
my $harness = TAP::Harness->new(\%arguments);
my $aggregate = $harness->runtests(@ARGV);

my ($passed, $failed) = (0, 0);
foreach my $parser ($aggregate->parsers)
{
	my $wrong = $parser->failed;
	$passed += $parser->passed;
	$failed += $wrong;
}
foreach my $file ($aggregate->descriptions)
{
	my ($parser) = $aggregate->parsers($file);
	my $wrong = $parser->failed;
	my $broken = $parser->parse_errors || $parser->exit || $parser->wait;
	my $nothing = $parser->tests_run == 0 && !$parser->skip_all;
	next unless $wrong || $broken || $nothing;
	$failed++ unless $wrong;
	print "failed file: $file\n";
}
print "counted $passed $failed\n";
exit($failed ? 1 : 0);
