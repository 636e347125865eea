-- What a dump carries: everything but the arming, so that a restored copy sends nothing, the breakers, which soon find out anew, and
-- the catalogue, which the extension brings.

SELECT pg_catalog.pg_extension_config_dump('reconcile.installation', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.provider', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.operation', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.response_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.lookup_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.poll_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.profile_fact', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.provider_override', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.event_source', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.event_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.action', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.attempt', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.lookup', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.history', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.history_default', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.joined_submission', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.archived_action', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.retention_rule', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.inbox', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.inbox_inbox_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_batch', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_batch_batch_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.bulk_item', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.incident', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.incident_incident_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.window_sample', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.window_sample_sample_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.clock', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.pause_period', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.pause_period_pause_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('reconcile.self_test_result', '');
