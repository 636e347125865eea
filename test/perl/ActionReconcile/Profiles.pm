package ActionReconcile::Profiles;

=head1 NAME

ActionReconcile::Profiles - profiles of the catalogue, against what plays their provider

=head1 SYNOPSIS

  my $node = ActionReconcile::Profiles::node('profiles');
  adopt($node, 'stripe', $provider->http_url('stripe'));
  hasten($node, 'stripe');
  my $id = $node->submit('stripe.payment_intent.create', { ... });

adopt() takes a profile as it is shipped; only the address, the trust that a
test on loopback needs, and the time limits differ.  hasten() shortens windows
and pauses, since nobody waits 15 minutes for a test: which rules there are, in
which order, and what they prove stays as the profile says.

=cut

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils ();

use ActionReconcile::Node;

our @EXPORT_OK = qw(adopt hasten story);

# A server that finds the credentials, those given (name => text) and a general
# one for all eight.
sub node
{
	my ($name, %credentials) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('credentials');
	chmod 0700, $directory or die "$directory: $!";
	my %all = ((map { $_ => 'Bearer test' } qw(stripe paypal google-calendar caldav github adyen sendgrid sqs)), %credentials);
	foreach my $provider (keys %all)
	{
		open my $file, '>', "$directory/$provider" or die "$directory/$provider: $!";
		print {$file} "$all{$provider}\n";
		close $file;
		chmod 0600, "$directory/$provider" or die "$directory/$provider: $!";
	}
	return ActionReconcile::Node->create($name, conf => "action_reconcile.credential_dir = '$directory'");
}

# provider => NAME names it and its operations otherwise; other options are
# columns of the provider.
sub adopt
{
	my ($node, $profile, $url, %overrides) = @_;
	my $name = ActionReconcile::Node::literal(delete $overrides{provider});
	my $all = ActionReconcile::Node::literal({
		base_url => $url, allow_http => \1, allow_private_addresses => \1, late_arrival_max => '100 milliseconds',
		connect_timeout => '10 seconds', attempt_timeout => '3 seconds', %overrides });
	return $node->sql("SELECT array_to_string(operations, ' ') FROM reconcile.adopt_profile('$profile', $all, $name)");
}

# Windows become so short and pauses too; a window of nothing stays one.
sub hasten
{
	my ($node, $provider, $window) = @_;
	$window //= '300 milliseconds';
	$node->sql(<<"SQL");
BEGIN;
UPDATE reconcile.lookup_rule r SET consistency_window = CASE consistency_window WHEN '0' THEN consistency_window ELSE '$window' END,
	negative_spacing = '100 milliseconds', pause = '100 milliseconds', pause_max = '500 milliseconds'
  FROM reconcile.operation o WHERE o.operation = r.operation AND o.provider = '$provider';
UPDATE reconcile.poll_rule r SET pause = '100 milliseconds', pause_max = '500 milliseconds'
  FROM reconcile.operation o WHERE o.operation = r.operation AND o.provider = '$provider';
UPDATE reconcile.operation SET retry_pause = '200 milliseconds', retry_pause_max = '500 milliseconds' WHERE provider = '$provider';
COMMIT;
SQL
	return;
}

# An action's history in short, for a person: events with what was learned.
sub story
{
	my ($node, $id) = @_;
	return join "\n", map {
		my $e = $_->{evidence};
		join ' ', $_->{event}, "($_->{to_state})", map { $_ // () } $e->{lookup}{reason}, $e->{lookup}{result}, $e->{transfer}{answer},
		  $e->{transfer}{http_status}, $e->{transfer}{reason}
	} @{ $node->history($id) };
}

1;
