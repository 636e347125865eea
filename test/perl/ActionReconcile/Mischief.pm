package ActionReconcile::Mischief;

=head1 NAME

ActionReconcile::Mischief - a provider that misbehaves at random, but keeps its promises

=head1 SYNOPSIS

  srand $seed;
  $provider->scenario('p', mischief('list', seed => $seed, writes => 1000, lag_s => 1, delay_s => 0.5));

The script of a scenario in which every write and every question meets a
behaviour drawn by weight.  What it promises: a write is executed at most delay_s
after it was read or its connection ended, and shows at most lag_s later; no
answer says what is not so.
    kind       'list': asked for a list of effects; 'get': asked by name, 404 is absence
    writes     so many are drawn here, by rand(); later ones by the provider
The client reference must be in the header X-Reference, so that it is known of
writes whose body was never read.

=cut

use strict;
use warnings;

use Exporter 'import';
use JSON::PP;
use List::Util qw(sum0);

our @EXPORT_OK = qw(drawn mischief);

# A number between two, of two digits.
sub drawn
{
	my ($low, $high) = @_;
	return 0 + sprintf('%.2f', $low + rand($high - $low));
}

# A behaviour out of [weight, behaviour], ..
sub _choose
{
	my @table = @_;
	my $dart = rand sum0(map { $_->[0] } @table);
	foreach my $row (@table)
	{
		$dart -= $row->[0];
		return $row->[1] if $dart < 0;
	}
	return $table[-1][1];
}

# What may be done to a write that was read, by weight.
sub _write_table
{
	my (%limits) = @_;
	my $suffer = sub {
		my ($preset, %more) = @_;
		return { preset => $preset, visibility_lag_s => drawn(0, $limits{lag_s}), %more };
	};
	my $late = sub { return (commit_delay_s => drawn(0.1, $limits{delay_s})); };
	my @table = (
		[ 26, $suffer->('ok') ], [ 2, $suffer->('13-keepalive-lie') ], [ 2, $suffer->('14-stray-response') ],
		[ 5, $suffer->('10-close') ], [ 4, $suffer->('10-reset') ], [ 3, $suffer->('10-hang') ],
		[ 3, $suffer->('10-close-uncommitted') ], [ 2, $suffer->('10-hang-uncommitted') ],
		[ 3, $suffer->('10-answer-late', hold_s => drawn(0.1, 0.8)) ],
		[ 2, $suffer->('10-answer-late', hold_s => 1.5) ],
		[ 3, $suffer->('10-commit-after-close') ], [ 2, $suffer->('10-hang', commit => 'after') ],
		[ 2, $suffer->('9-ten-bytes-reset') ], [ 2, $suffer->('9-head-reset') ],
		[ 1, $suffer->('9-head-hang') ], [ 1, $suffer->('9-head-commit-hang') ],
		[ 2, $suffer->('28-503', commit => 'before') ], [ 1, $suffer->('28-429', commit => 'before') ],
		[ 1, $suffer->('24-slow-body') ], [ 1, $suffer->('27-307-self') ]);
	push @table, [ 2, $suffer->('10-late-execution', then => $_, $late->()) ]
	  foreach qw(close reset);
	push @table, [ 1, $suffer->("case-05-$_", $late->()) ]
	  foreach qw(502-html 503-html 504-html 524-html 500-json);
	push @table, [ 1, $suffer->($_) ]
	  foreach qw(16-100-close 16-103-close 17-htt-close 17-garbage 17-http09 17-http5 17-status-9999 17-final-101
	  18-cut-head-close 18-cut-head-reset 19-short-body-close 19-short-body-reset 19-short-body-hang 19-bad-chunk
	  19-no-last-chunk 20-no-length-close 20-no-length-whole 21-negative-length 21-duplicate-length 21-204-with-body
	  28-408 28-421 28-425 28-429 28-500 28-502 28-503 28-504);
	return @table;
}

# What may be done to a question: its answer, or one that proves nothing and
# often looks like "not there".
sub _read_table
{
	my ($kind) = @_;
	my $ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
	my $empty = '{"data":[]}';
	my @table = (
		[ 70, {} ], [ 6, { hold_s => 0.3 } ],
		[ 3, { then => 'close' } ], [ 2, { then => 'reset' } ], [ 1, { then => 'hang' } ],
		[ 2, { status => 500 } ], [ 2, { status => 503, body => '<html>Service Unavailable</html>' } ],
		[ 2, { status => 429, headers => { 'Retry-After' => '0' } } ], [ 1, { status => 403 } ],
		[ 2, { body => '<html><body>No results</body></html>' } ], [ 1, { body => '' } ],
		[ 1, { body => '{"data":[' } ], [ 1, { body => {} } ], [ 1, { status => 204 } ],
		[ 1, { raw => ["HTTP/1.1 404 Not Found\r\nContent-Le"] } ],
		[ 1, { raw => ["HTTP/1.1 404 Not Found\r\nContent-Length: 90\r\n\r\n{\"error\":\"not found\"}"] } ]);
	if ($kind eq 'list')
	{
		push @table, [ 2, { raw => ["${ok}Content-Length: 90\r\n\r\n$empty"] } ], [ 2, { raw => ["${ok}\r\n$empty"] } ],
		  [ 2, { raw => ["${ok}Transfer-Encoding: chunked\r\n\r\nb\r\n$empty\r\n"] } ], [ 1, { status => 404 } ],
		  [ 1, { status => 206, body => { data => [] } } ], [ 1, { status => 500, body => { data => [] } } ],
		  [ 1, { body => { data => undef } } ], [ 1, { body => { data => {} } } ], [ 1, { body => { items => [] } } ];
	}
	else
	{
		push @table, [ 1, { body => { id => 'ef_0', ref => 'another' } } ], [ 1, { body => $empty } ], [ 1, { status => 410 } ];
	}
	return @table;
}

# The first writes are drawn here, because an end at accept cannot stand in a mix.
sub mischief
{
	my ($kind, %limits) = @_;
	my @at_accept = ([ 3, { preset => '6-accept-close' } ], [ 2, { preset => '6-accept-reset' } ]);
	return {
		own_port => JSON::PP::true,
		ref_header => 'X-Reference',
		seed => $limits{seed},
		write => [ map { _choose(_write_table(%limits), @at_accept) } 1 .. $limits{writes} ],
		write_mix => [ map { _write_table(%limits) } 1 .. 3 ],
		read_mix => [ _read_table($kind) ] };
}

1;
