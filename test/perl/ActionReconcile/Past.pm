package ActionReconcile::Past;

=head1 NAME

ActionReconcile::Past - actions that were finished long ago

=head1 SYNOPSIS

  stage_past($node, 'operation', 1000, age => '100 days', state => 'succeeded');

Each is there as a restored dump would bring it: three entries of history whose
chain is whole, and one attempt.  They end in "state", succeeded by default, and
have an intent key "past N", and an artifact "past-N" if they succeeded.

=cut

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(stage_past);

# from => the first number, 1 by default.
sub stage_past
{
	my ($node, $operation, $count, %options) = @_;
	my $age = $options{age} // '100 days';
	my $state = $options{state} // 'succeeded';
	my $from = $options{from} // 1;
	my $standing = $state eq 'succeeded' ? 'confirmed/accepted' : $state eq 'rejected' ? 'confirmed/rejected' : 'failed/pending';
	my $hash = sub {
		my ($version, $at, $event, $before, $after, $standing, $evidence, $previous) = @_;
		return "reconcile.history_hash(id, $version, $at, NULL, '$event', $before, '$after', '$standing', '$evidence', 'past', $previous)";
	};

	$node->sql(<<"SQL", $node->{ar_database});
BEGIN;
CREATE TEMP TABLE past ON COMMIT DROP AS
SELECT n, id, at, h1, h2, h3 FROM (
	SELECT n, at, (substr(reconcile.first_id_of(at)::text, 1, 14) || '7000-8000-' || lpad(n::text, 12, '0'))::uuid AS id
	  FROM (SELECT n, now() - interval '$age' + n * interval '1 millisecond' AS at FROM generate_series($from, $from + $count - 1) n) t) i
 CROSS JOIN LATERAL (SELECT @{[ $hash->(1, 'at', 'submit', 'NULL', 'planned', 'pending/pending', '{"submit": {}}', q('\x')) ]} AS h1) a
 CROSS JOIN LATERAL (SELECT @{[ $hash->(2, 'at', 'claim', q('planned'), 'submitted', 'pending/pending', '{"dispatch": {}}', 'h1') ]} AS h2) b
 CROSS JOIN LATERAL (SELECT @{[ $hash->(3, 'at', 'answered', q('submitted'), $state, $standing, '{"transfer": {}}', 'h2') ]} AS h3) c;
INSERT INTO reconcile.action (action_id, operation, payload, intent_key, artifact_id, client_reference, provider, submitter, submitted_at, fingerprint,
	state, standing, queued, attempts, version, event, evidence, actor, recorded_at, transaction, chain_head)
SELECT id, o.operation, jsonb_build_object('past', n), 'past ' || n, CASE WHEN '$state' = 'succeeded' THEN 'past-' || n END, 'past-' || n, o.provider, session_user, at,
	reconcile.intent_fingerprint(o.method, o.path, jsonb_build_object('past', n)), '$state', '$standing', false, 1, 3, 'answered', '{"transfer": {}}', 'past', at, '3', h3
  FROM past, reconcile.operation o WHERE o.operation = '$operation';
INSERT INTO reconcile.attempt (dispatch_id, action_id, number, provider, provider_version, operation_version, base_url, request_hash, epoch, dispatched_at, ended_at,
	window_us, late_arrival_us, gate_us, state, standing, event, evidence, artifact_id, version)
SELECT gen_random_uuid(), id, 1, o.provider, 1, 1, 'https://past.example', '\\x00', 1, at, at, 0, 0, 0,
	CASE WHEN '$state' IN ('succeeded', 'rejected') THEN '$state' ELSE 'safe_to_retry' END::reconcile.state, '$standing', 'answered', '{"transfer": {}}',
	CASE WHEN '$state' = 'succeeded' THEN 'past-' || n END, 2
  FROM past, reconcile.operation o WHERE o.operation = '$operation';
INSERT INTO reconcile.history (action_id, version, recorded_at, event, from_state, to_state, standing, evidence, actor, transaction, previous_hash, hash)
SELECT id, 1, at, 'submit', NULL::reconcile.state, 'planned'::reconcile.state, 'pending/pending'::reconcile.standing, '{"submit": {}}'::jsonb, 'past', '3'::xid8, '\\x'::bytea, h1 FROM past
UNION ALL
SELECT id, 2, at, 'claim', 'planned', 'submitted', 'pending/pending', '{"dispatch": {}}', 'past', '3', h1, h2 FROM past
UNION ALL
SELECT id, 3, at, 'answered', 'submitted', '$state', '$standing', '{"transfer": {}}', 'past', '3', h2, h3 FROM past;
COMMIT;
SQL
	return;
}

1;
