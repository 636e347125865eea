package ActionReconcile::Events;

=head1 NAME

ActionReconcile::Events - sign events as providers do, and hand them to receive_event()

=head1 SYNOPSIS

  my $events = ActionReconcile::Events->new('events', shop => 'whsec_...');
  my $node = $events->node;
  $events->source('shop', scheme => 'stripe', rules => [ { condition => '$.ok', says => 'executed', reference_path => '$.ref' } ]);
  my $row = $events->receive('shop', { ok => \1, ref => '...' });
  is($row->{result}, 'applied', '...');

Each provider has a file of the same name with its secrets; secret() writes it.
receive() signs with the first of them; what it returns is the row, or the
error as "SQLSTATE: message".

=cut

use strict;
use warnings;

use Carp;
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex);
use JSON::PP;
use MIME::Base64 qw(decode_base64 encode_base64);
use PostgreSQL::Test::Utils ();

use ActionReconcile::Node;

my $json = JSON::PP->new->canonical->allow_nonref;

# A server with these secrets (name => line).
sub new
{
	my ($class, $name, %secrets) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir('credentials');
	chmod 0700, $directory or croak "$directory: $!";
	my $self = bless { directory => $directory, sources => {}, secrets => {}, number => 0 }, $class;
	$self->secret($_, $secrets{$_}) foreach keys %secrets;
	$self->{node} = ActionReconcile::Node->create($name,
		conf => "action_reconcile.credential_dir = '$directory'\nmax_prepared_transactions = 4");
	return $self;
}

sub node { return $_[0]->{node}; }

# Writes the file of a secret.
sub secret
{
	my ($self, $name, $line) = @_;
	my $path = "$self->{directory}/$name";
	open my $file, '>', $path or croak "$path: $!";
	print {$file} "$line\n";
	close $file;
	chmod 0600, $path or croak "$path: $!";
	$self->{secrets}{$name} = $line;
	return;
}

# The source of a provider's events, with the secret of its name.
#   rules => [..]  rules in this order; other options are columns
sub source
{
	my ($self, $provider, %columns) = @_;
	my @rules = @{ delete $columns{rules} // [] };
	my $position = 0;
	%columns = (provider => $provider, $columns{scheme} eq 'none' ? () : (secret => $provider), %columns);
	my $statements = $self->{node}->insert('event_source', %columns);
	$statements .= $self->{node}->insert('event_rule', provider => $provider, position => ++$position, because => 'the test says so', %$_)
	  foreach @rules;
	$self->{node}->sql("BEGIN; $statements COMMIT;");
	$self->{sources}{$provider} = \%columns;
	return;
}

# The same by a profile of the catalogue.
sub adopt
{
	my ($self, $profile) = @_;
	my $node = $self->{node};
	$node->sql("SELECT reconcile.adopt_profile('$profile')");
	$self->{sources}{$profile} = $node->rows("SELECT * FROM reconcile.event_source WHERE provider = '$profile'")->[0];
	my $file = $self->{sources}{$profile}{secret};
	$self->secret($file, "SecretFor$file");
	$self->{secrets}{$profile} = "SecretFor$file";
	return;
}

# The headers of a delivery.
#   secret, at (seconds since 1970), id: other than usual
sub sign
{
	my ($self, $provider, $body, %options) = @_;
	my $source = $self->{sources}{$provider};
	my $secret = $options{secret} // (split / /, $self->{secrets}{$provider} // '')[0];
	my $at = $options{at} // time;
	my $id = $options{id} // 'msg_' . ++$self->{number};

	if ($source->{scheme} eq 'standard_webhooks')
	{
		my $key = decode_base64($secret =~ s/^whsec_//r);
		return { 'webhook-id' => $id, 'webhook-timestamp' => "$at",
			'webhook-signature' => 'v1,' . encode_base64(hmac_sha256("$id.$at.$body", $key), '') };
	}
	return { 'Stripe-Signature' => "t=$at,v1=" . hmac_sha256_hex("$at.$body", $secret) . ',v0=' . '0' x 64 } if $source->{scheme} eq 'stripe';
	return { 'X-Hub-Signature-256' => 'sha256=' . hmac_sha256_hex($body, $secret), 'X-GitHub-Delivery' => $id } if $source->{scheme} eq 'github';
	return {} if $source->{scheme} eq 'none';
	my $text = $source->{signed_text} =~ s/\{timestamp\}/$at/r =~ s/\{id\}/$id/r =~ s/\{body\}/$body/r;
	my $mac = $source->{signature_encoding} eq 'hex' ? hmac_sha256_hex($text, $secret) : encode_base64(hmac_sha256($text, $secret), '');
	return { $source->{signature_header} => ($source->{signature_prefix} // '') . $mac,
		defined $source->{timestamp_header} ? ($source->{timestamp_header} => "$at") : (),
		defined $source->{event_id_header} ? ($source->{event_id_header} => $id) : () };
}

# The call, for whoever is to make it; body is text, or a document.
sub call
{
	my ($self, $provider, $body, %options) = @_;
	$body = $json->encode($body) if ref $body;
	my $headers = delete $options{headers} // $self->sign($provider, $body, %options);
	return sprintf('reconcile.receive_event(%s, %s, %s::bytea)', ActionReconcile::Node::literal($provider),
		ActionReconcile::Node::literal($headers), ActionReconcile::Node::literal('\x' . unpack('H*', $body)));
}

# Hands an event in; role => NAME as that user.
sub receive
{
	my ($self, $provider, $body, %options) = @_;
	my $role = delete $options{role};
	return $self->ask('SELECT row_to_json(r) FROM ' . $self->call($provider, $body, %options) . ' r', $role);
}

# The answer to a query that gives JSON, or its error as text.
sub ask
{
	my ($self, $query, $role) = @_;
	my ($code, $out, $err) = $self->{node}->psql('postgres', "\\set VERBOSITY verbose\n" .
		(defined $role ? "SET SESSION AUTHORIZATION $role;\n" : '') . "$query;");
	if ($code != 0)
	{
		$self->{hint} = $err =~ /^HINT:\s+(.*)$/m ? $1 : '';
		return $err =~ /ERROR:\s+(.*)/ ? $1 : $err;
	}
	my @rows = map { $json->decode($_) } split /\n/, $out;
	return @rows > 1 ? \@rows : $rows[0];
}

# The hint of the last error.
sub hint { return $_[0]->{hint}; }

1;
