-- Profiles: what is refused, what is made of one, and what follows from it for a lost answer.
\getenv abs_srcdir PG_ABS_SRCDIR
\set helpers :abs_srcdir '/sql/include/helpers.psql'
\i :helpers
BEGIN;

-- The tier as a function of facts and time; what is not known is not there.
SELECT i AS id, k AS key, q AS query, r AS by_reference, reconcile.capability_tier(i, k, '24 hours', '1 minute', q, r) AS fresh,
	reconcile.capability_tier(i, k, '24 hours', '1 minute', q, r, '23:58:30', '90 seconds') AS "key dead", reconcile.capability_tier(i, k, NULL, NULL, q, r) AS "lifetime unknown"
FROM unnest('{f,t}'::boolean[]) i, unnest('{f,t}'::boolean[]) k, unnest('{f,t}'::boolean[]) q, unnest('{f,t}'::boolean[]) r ORDER BY i, k, q, r;
SELECT a AS age, n AS needed, reconcile.capability_tier(true, true, l, m, false, false, a, n) FROM (VALUES
	(1, '24 hours'::interval, '1 minute'::interval, '23:57:29.999999'::interval, '90 s'::interval), (2, '24 hours', '1 minute', '23:57:30', '90 s'), (3, '1 day', '00:00:00', NULL, '0'), (4, '1 day', '0', '0', NULL),
	(5, '1 mon', '0', '29 days 23:59:59', '0'), (6, '1 mon', '0', '30 days', '0'), (7, '178000000 years', '0', '100000 years', '1 day'), (8, '1 day', NULL, '0', '0'), (9, '-1 day', '0', '0', '0')) AS x(i, l, m, a, n) ORDER BY i;
SELECT reconcile.capability_tier(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

-- A profile with everything in it.
CREATE TEMP TABLE given AS SELECT $profile${
	"profile": "shop", "profile_version": 3, "title": "A shop", "documentation": "https://shop.example/doc",
	"provider": {"base_url": "https://shop.example/v1", "consistency_window": "20 seconds", "window_source": "documented", "credential": "shop"},
	"operations": {
		"shop.order.create": {
			"path": "/orders?access_token=abc", "headers": {"Authorization": "Bearer {credential}", "X-Api-Key": "k-1", "Idempotency-Key": "{idempotency_key}", "X-Secret": "s"},
			"body_document": {"customer": "{customer.name}", "amount": "{amount}", "note": "{note?}", "reference": "{client_reference}"},
			"reference_format": "hex", "key_format": "base62", "key_lifetime": "24 hours", "key_lifetime_source": "documented", "key_replay": "stored_reply",
			"artifact_path": "$.id", "claims": "FULL", "on_absent": "replace", "example": {"customer": {"name": "Ada"}, "amount": 10.50},
			"answers": [{"statuses": [402], "class": "rejected", "because": "no money"}, {"statuses": [409], "class": "in_progress", "because": "runs"}],
			"lookups": [{"kind": "replay_by_key"},
				{"kind": "search", "method": "POST", "path": "/search?token=t", "headers": {"Authorization": "{credential}"}, "body": {"reference": "{client_reference}", "amount": "{amount}", "since": 0}, "items_path": "$.data[*]", "reference_path": "$.reference", "absence_proves": false},
				{"kind": "list_by_reference", "path": "/orders?reference={client_reference}&since={since_unix}&until={until_iso}", "items_path": "$.data[*]", "reference_path": "$.reference", "consistency_window": "1 minute", "window_source": "assumed", "paging": "link"}],
			"poll": {"path": "/orders/{artifact_id}", "state_path": "$.state", "accepted": ["paid"], "rejected": ["failed"]}},
		"shop.order.delete": {"method": "DELETE", "path": "/orders/{order}", "body_format": "none", "example": {"order": "o/1"},
			"lookups": [{"kind": "get_by_reference", "path": "/orders/{order}", "absent_statuses": [404], "match_values": {"$.id": "{order}"}}]},
		"shop.mail.send": {"path": "/mails", "example": {}}},
	"facts": [{"about": "operations.shop.order.create.key_lifetime", "says": "Keys live for a day.", "source": "https://shop.example/keys", "read_on": "2100-06-01", "mark": "documented"},
		{"about": "operations.shop.order.create.lookups.3.consistency_window", "says": "A minute is ours.", "source": "https://shop.example/list", "read_on": "2100-06-01", "mark": "assumed"},
		{"about": "provider.consistency_window", "says": "Users say so.", "source": "https://forum.example/1", "read_on": "2100-06-01", "mark": "reported"},
		{"about": "operations.shop.mail.send", "says": "Old news.", "source": "https://shop.example/mail", "read_on": "2001-06-01", "mark": "documented"}]
}$profile$::jsonb AS profile;
CREATE FUNCTION pg_temp.profile(path text DEFAULT NULL, value jsonb DEFAULT NULL) RETURNS jsonb LANGUAGE sql AS $$
	SELECT CASE WHEN $1 IS NULL THEN profile WHEN $2 IS NULL THEN profile #- $1::text[] ELSE jsonb_set(profile, $1::text[], $2) END FROM given
$$;

-- Refused: an unknown key, a wrong type, a value that is none, a part that is missing, wherever it is. The place is named.
SELECT path, value, pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.profile(path, value))) AS refusal FROM (VALUES
	(1, '{prifile}', '"x"'::jsonb), (2, '{provider,max_inflight}', '1'), (3, '{operations,shop.order.create,metod}', '"PUT"'), (4, '{operations,shop.order.create,answers,1,clas}', '"rejected"'),
	(5, '{operations,shop.order.create,lookups,2,window}', '"1 s"'), (6, '{operations,shop.order.create,poll,acepted}', '[]'), (7, '{facts,1,date}', '"2026-01-01"'), (8, '{provider,version}', '7'),
	(10, '{operations,shop.order.create,position}', '1'), (11, '{provider,paused_reason}', '"x"'),
	(12, '{profile_version}', '"3"'), (13, '{profile_version}', '3.5'), (14, '{provider,max_in_flight}', '"16"'), (15, '{provider,allow_http}', '"yes"'), (16, '{provider,consistency_window}', '30'),
	(17, '{operations,shop.order.create,path}', '["/x"]'), (18, '{operations,shop.order.create,answers,0,statuses}', '[402, "403"]'), (19, '{operations,shop.order.create,answers,0,statuses}', '402'),
	(20, '{operations,shop.order.create,poll,accepted}', '["a", 1]'), (21, '{operations,shop.order.create,claims}', 'null'), (22, '{operations,shop.order.create,lookups}', '{"1": {}}'), (23, '{operations,shop.order.create,lookups,0}', '"x"'),
	(24, '{operations,shop.order.create,poll}', '[]'), (25, '{operations}', '{}'), (26, '{provider}', '"x"'), (27, '{facts}', '{}'),
	(28, '{provider,consistency_window}', '"a while"'), (29, '{operations,shop.order.create,artifact_path}', '"$."'), (30, '{operations,shop.order.create,claims}', '"PERFECT"'), (31, '{facts,0,read_on}', '"soon"'),
	(32, '{operations,shop.order.create,answers,0,class}', '"maybe"'), (33, '{profile}', NULL), (34, '{provider,base_url}', NULL), (35, '{operations,shop.order.create,path}', NULL),
	(36, '{operations,shop.order.create,answers,0,because}', NULL), (37, '{operations,shop.order.create,lookups,0,kind}', NULL), (38, '{facts,0,source}', NULL), (39, '{operations,market.order}', '{"path": "/x"}'),
	(40, '{profile}', '"Shop!"'), (41, '{facts,0,mark}', '"known"'), (42, '{facts,0,about}', '"operations.shop.order.change.path"'), (43, '{facts,0,about}', '"the weather"')) AS x(n, path, value) ORDER BY n;
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', p)) FROM unnest('{"[]","7","{}"}'::jsonb[]) p;
-- Refused by the tables, all or nothing.
SELECT path, pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.profile(path, value))) AS refusal FROM (VALUES
	(1, '{provider,base_url}', '"ftp://shop.example"'::jsonb), (2, '{operations,shop.order.create,lookups,2,items_path}', NULL), (3, '{operations,shop.order.create,lookups,2,path}', '"/a/../b"'), (4, '{provider,max_in_flight}', '0'), (5, '{operations,shop.order.create,answers,1,statuses}', '[99]'), (6, '{operations,shop.order.create,poll,url_path}', '"$.url"')) AS x(n, path, value) ORDER BY n;
SELECT count(*) AS left_behind FROM reconcile.provider WHERE provider = 'shop';

-- Made: with a notice for each fact that is not documented, or old.
SET client_min_messages = notice;
SELECT provider, profile_version, operations, unnest(changed) AS changed FROM reconcile.define_provider(pg_temp.profile());
SELECT provider, profile_version, operations, changed FROM reconcile.define_provider(pg_temp.profile());
SELECT version, profile, profile_version, base_url, consistency_window, window_source, credential FROM reconcile.provider WHERE provider = 'shop';
SELECT operation, version, effect, body_format, claims FROM reconcile.operation WHERE provider = 'shop' ORDER BY 1;
SELECT * FROM reconcile.profile_fact WHERE provider = 'shop' ORDER BY position;

-- Changed: what differs, and only that.
SELECT unnest(changed) AS changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '4'));
SELECT unnest(changed) AS changed FROM reconcile.define_provider(jsonb_set(jsonb_set(pg_temp.profile('{profile_version}', '5') #- '{operations,shop.order.create,answers,0}' #- '{operations,shop.order.create,poll}',
	'{operations,shop.order.create,lookups,2,pause}', '"2 s"'), '{operations,shop.order.delete,retry_pause}', '"3 s"'));
SELECT o.version, (SELECT count(*) FROM reconcile.response_rule r WHERE r.operation = o.operation) AS answers, (SELECT pause FROM reconcile.lookup_rule l WHERE l.operation = o.operation AND position = 3),
	(SELECT count(*) FROM reconcile.poll_rule r WHERE r.operation = o.operation) AS polls FROM reconcile.operation o WHERE operation = 'shop.order.create';
-- An older version is not taken, nor a provider of another kind.
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.profile()));
INSERT INTO reconcile.provider (provider, base_url) VALUES ('byhand', 'https://byhand.example');
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L, provider => %L)', pg_temp.profile(), 'byhand'));
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L, provider => %L)', jsonb_build_object('profile', 'other', 'profile_version', 1, 'provider', pg_temp.profile() -> 'provider', 'operations', '{"other.x": {"path": "/x"}}'::jsonb), 'shop'));
SELECT pg_temp.refusal($$SELECT reconcile.adopt_profile('nothing')$$);
-- An operation that is no longer in it stays, for its actions.
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{operations,shop.mail.send}') || '{"profile_version": 6, "facts": []}');

-- What is different here stays different, until it is taken back.
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '6') || '{"facts": []}', '{"base_url": "http://127.0.0.1:8080", "allow_http": true, "credential": "test"}');
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '7') || '{"facts": []}');
SELECT base_url, allow_http, credential, profile_version, overrides FROM reconcile.provider JOIN reconcile.provider_override USING (provider) WHERE provider = 'shop';
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '7') || '{"facts": []}', '{}');
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L, %L)', pg_temp.profile('{profile_version}', '7'), o)) FROM unnest('{"{\"base\": 1}","[]","{\"allow_http\": 1}"}'::jsonb[]) o;
-- A window that was measured here is not narrowed by a profile, unless it is said so.
UPDATE reconcile.provider SET consistency_window = '5 minutes', window_source = 'measured' WHERE provider = 'shop';
UPDATE reconcile.lookup_rule SET consistency_window = '10 minutes', window_source = 'measured' WHERE operation = 'shop.order.create' AND position IN (2, 3);
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '7') || '{"facts": []}');
SELECT consistency_window, window_source FROM reconcile.provider WHERE provider = 'shop' UNION ALL SELECT consistency_window, window_source FROM reconcile.lookup_rule WHERE operation = 'shop.order.create' AND position > 1;
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '7') || '{"facts": []}', '{"consistency_window": "40 seconds", "window_source": "assumed"}');
-- A second account: its operations are named after it.
SELECT provider, operations FROM reconcile.define_provider(pg_temp.profile() || '{"facts": []}', provider => 'shop_test');
SELECT provider, profile, count(*) FROM reconcile.provider JOIN reconcile.operation USING (provider) WHERE profile = 'shop' GROUP BY 1, 2 ORDER BY 1;

-- A rule that actions rest on does not go.
SELECT count(pg_temp.stage_action(pg_temp.id(1), 'shop.order.create', 'outcome_unknown'));
SELECT pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.profile('{profile_version}', '8') #- '{operations,shop.order.create,lookups,1}'));
SELECT changed FROM reconcile.define_provider(pg_temp.profile('{profile_version}', '8') || '{"facts": []}');

-- What follows for a lost answer.
SET client_min_messages = warning;
SELECT operation, claims, tier, key_lifetime, key_lifetime_source, tier_after_key, query_surface, missing FROM reconcile.provider_grade WHERE provider = 'shop' ORDER BY 1;
SELECT operation, on_lost_answer FROM reconcile.provider_grade WHERE provider = 'shop' ORDER BY 1;

-- Claims that do not hold, each with what is missing; and definitions whose parts contradict each other.
CREATE FUNCTION pg_temp.with(op jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_build_object('profile', 'try', 'profile_version', 1, 'provider', '{"base_url": "https://try.example"}'::jsonb, 'operations', jsonb_build_object('try.it', '{"path": "/x"}' || $1))
$$;
CREATE TEMP TABLE piece (name text PRIMARY KEY, op jsonb);
INSERT INTO piece VALUES ('id', '{"artifact_path": "$.id"}'), ('key', '{"headers": {"Key": "{idempotency_key}"}}'), ('life', '{"key_lifetime": "1 day", "key_lifetime_source": "documented"}'),
	('short', '{"key_lifetime": "2 minutes", "key_lifetime_source": "documented"}'), ('ref', '{"reference_body_path": ["ref"]}'),
	('list', '{"lookups": [{"kind": "list_by_reference", "path": "/x?r={client_reference}", "items_path": "$[*]", "reference_path": "$.ref"}]}'),
	('alike', '{"lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.a": "{a}"}}]}'),
	('unique', '{"lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.a": "{a}"}, "match_is_unique": true, "created_path": "$.at"}]}'),
	('replay', '{"lookups": [{"kind": "replay_by_key"}]}');
CREATE FUNCTION pg_temp.made_of(names text) RETURNS jsonb LANGUAGE sql AS $$
	SELECT coalesce(jsonb_object_agg(e.key, e.value), '{}') FROM piece, jsonb_each(op) e WHERE name = ANY (string_to_array($1, ' '))
$$;
SELECT names AS "made of", claim, (SELECT string_agg(regexp_replace(r, 'ACCEPTED.*', 'ACCEPTED'), ' ') FROM pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.with(pg_temp.made_of(names) || jsonb_build_object('claims', claim)))) r
	WHERE r NOT LIKE 'HINT%') AS answer
FROM unnest(ARRAY['', 'id', 'key', 'key life', 'id key short', 'id key life', 'id ref', 'id ref list', 'id alike', 'id unique', 'id key life alike', 'id key life ref list', 'ref list']) WITH ORDINALITY AS x(names, n),
	unnest('{FULL,RECONCILABLE,KEYED,PARTIAL,BLIND}'::text[]) WITH ORDINALITY AS c(claim, m) ORDER BY n, m;
SELECT what, pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.with(op))) AS refusal FROM (VALUES
	(1, 'replay without a key', '{"lookups": [{"kind": "replay_by_key"}]}'::jsonb), (2, 'replay without a lifetime', pg_temp.made_of('key replay')), (3, 'lifetime without a key', pg_temp.made_of('life')),
	(4, 'replay meaning without a key', '{"key_replay": "reattempt"}'), (5, 'key format without a key', '{"key_format": "hex"}'), (6, 'key length without a key', '{"key_max_length": 40}'), (7, 'key shorter than its format', '{"headers": {"K": "{idempotency_key}"}, "key_max_length": 30}'),
	(8, 'key as long as a reference', '{"headers": {"K": "{idempotency_key}"}, "key_format": "reference", "key_max_length": 64}'), (9, 'reference shorter than its format', '{"reference_max_length": 25}'),
	(10, 'lookup by a key that is not sent', '{"lookups": [{"kind": "get_by_reference", "path": "/x/{idempotency_key}", "absent_statuses": [404], "match_values": {"$.k": "{idempotency_key}"}}]}'),
	(11, 'answer about a key that is not sent', '{"answers": [{"statuses": [409], "class": "key_mismatch", "because": "x"}]}'), (12, 'replay rule without a key', '{"answers": [{"statuses": [409], "applies_to": "replay", "class": "unknown", "because": "x"}]}'),
	(13, 'reference that is not sent', pg_temp.made_of('list')), (14, 'poll without an id', '{"poll": {"path": "/x/{artifact_id}", "state_path": "$.s", "accepted": ["a"]}}'),
	(15, 'delete that is not named', '{"method": "DELETE", "path": "/x/{a}", "lookups": [{"kind": "get_by_reference", "path": "/x/{b}", "absent_statuses": [404], "match_values": {"$.id": "{b}"}}]}'),
	(16, 'update that is not named', '{"method": "PATCH", "path": "/x/{a}", "lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.b": "{b}"}}]}'),
	(17, 'PUT over somebody else', '{"method": "PUT", "path": "/x/{a}", "reference_body_path": ["ref"], "lookups": [{"kind": "get_by_reference", "path": "/x/{a}", "absent_statuses": [404], "reference_path": "$.ref"}]}'),
	(18, 'DELETE that makes something', '{"method": "DELETE", "effect": "create"}'), (19, 'list without objects', '{"lookups": [{"kind": "list_scan", "path": "/x", "match_values": {"$.a": "{a}"}}]}'),
	(20, 'unique match without a time', '{"lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.a": "{a}"}, "match_is_unique": true}]}'),
	(21, 'cursor without its place', '{"lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.a": "{a}"}, "paging": "cursor", "paging_parameter": "c"}]}'),
	(22, 'offset without a page size', '{"lookups": [{"kind": "list_scan", "path": "/x", "items_path": "$[*]", "match_values": {"$.a": "{a}"}, "paging": "offset", "paging_parameter": "o"}]}')) AS x(n, what, op) ORDER BY n;
SELECT what, pg_temp.refusal(format('SELECT reconcile.define_provider(%L)', pg_temp.with(op))) LIKE 'ACCEPTED%' AS accepted FROM (VALUES
	(1, 'delete by its name', '{"method": "DELETE", "path": "/x/{a}", "claims": "RECONCILABLE", "lookups": [{"kind": "get_by_reference", "path": "/x/{a}", "absent_statuses": [404], "match_values": {"$.id": "{a}"}}]}'::jsonb),
	(2, 'update told by its values', '{"method": "PATCH", "path": "/x/{a}", "claims": "RECONCILABLE", "lookups": [{"kind": "get_by_reference", "path": "/x/{a}", "absent_statuses": [404], "match_values": {"$.b": "{b}"}}]}'),
	(3, 'PUT that replaces, where absence proves nothing', '{"method": "PUT", "path": "/x/{a}", "reference_body_path": ["ref"], "lookups": [{"kind": "get_by_reference", "path": "/x/{a}", "absent_statuses": [404], "reference_path": "$.ref", "absence_proves": false}]}'),
	(4, 'key that is the reference', '{"body_document": {"id": "{idempotency_key}"}, "key_format": "reference", "claims": "RECONCILABLE", "lookups": [{"kind": "get_by_reference", "path": "/x/{client_reference}", "absent_statuses": [404], "reference_path": "$.id"}]}'),
	(5, 'lookup by the key', '{"body_document": {"id": "{idempotency_key}"}, "claims": "RECONCILABLE", "lookups": [{"kind": "get_by_reference", "path": "/x/{idempotency_key}", "absent_statuses": [404], "match_values": {"$.id": "{idempotency_key}"}}]}'),
	(6, 'id that only an answer carries', '{"claims": "PARTIAL", "answers": [{"statuses": [409], "class": "accepted", "artifact_path": "$.error.id", "because": "x"}]}'),
	(7, 'PUT to a place of its own', '{"method": "PUT", "path": "/x/{client_reference}", "claims": "PARTIAL"}')) AS x(n, what, op) ORDER BY n;

-- What is said of each kind of effect, and of matches that are not by the reference.
SELECT count(reconcile.define_provider(jsonb_build_object('profile', 'say' || n, 'profile_version', 1, 'provider', '{"base_url": "https://try.example", "late_arrival_max": "0 s"}'::jsonb,
		'operations', jsonb_build_object('say' || n || '.it', '{"path": "/x"}' || op))))
FROM (VALUES (1, '{"path": "/x/{a}", "method": "PATCH", "lookups": [{"kind": "get_by_reference", "path": "/x/{a}", "absent_statuses": [404], "match_values": {"$.b": "{b}"}, "canary": "none"}]}'::jsonb),
	(2, pg_temp.made_of('alike')), (3, pg_temp.made_of('unique')), (4, pg_temp.made_of('key life')), (5, pg_temp.made_of('key life replay')),
	(6, pg_temp.made_of('ref') || '{"lookups": [{"kind": "search", "path": "/x?q={client_reference}", "items_path": "$[*]", "reference_path": "$.r", "absence_proves": false, "consistency_window": "0 s", "window_source": "measured"}]}')) AS x(n, op);
SELECT operation, on_lost_answer FROM reconcile.provider_grade WHERE provider ~ '^say' ORDER BY 1;

-- Plain SQL is judged too, when it commits: rules may come after their operation, in one transaction.
INSERT INTO reconcile.operation (operation, provider, path, reference_body_path, claims) VALUES ('byhand.x', 'byhand', '/x', '{ref}', 'RECONCILABLE');
INSERT INTO reconcile.lookup_rule (operation, kind, path, items_path, reference_path) VALUES ('byhand.x', 'list_by_reference', '/x?r={client_reference}', '$[*]', '$.ref');
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
SELECT operation, tier FROM reconcile.provider_grade WHERE provider = 'byhand';
SAVEPOINT whole;
DELETE FROM reconcile.lookup_rule WHERE operation = 'byhand.x';
\set VERBOSITY terse
SET CONSTRAINTS ALL IMMEDIATE;
\set VERBOSITY default
ROLLBACK TO whole;
SELECT pg_temp.refusal(s || '; SET CONSTRAINTS ALL IMMEDIATE') FROM unnest(ARRAY[$$UPDATE reconcile.operation SET claims = 'FULL' WHERE operation = 'byhand.x'$$, $$UPDATE reconcile.operation SET reference_body_path = NULL WHERE operation = 'byhand.x'$$,
	$$UPDATE reconcile.lookup_rule SET kind = 'replay_by_key', path = NULL, items_path = NULL, reference_path = NULL WHERE operation = 'byhand.x'$$,
	$$INSERT INTO reconcile.poll_rule (operation, path, state_path, accepted) VALUES ('byhand.x', '/x/{artifact_id}', '$.s', '{a}')$$,
	$$INSERT INTO reconcile.response_rule (operation, position, statuses, class, because) VALUES ('byhand.x', 1, '{400}', 'key_mismatch', 'x')$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
-- A longer timeout can take a key's life.
UPDATE reconcile.operation SET headers = '{"K": "{idempotency_key}"}', key_lifetime = '10 minutes', key_lifetime_source = 'assumed', artifact_path = '$.id', claims = 'FULL' WHERE operation = 'byhand.x';
SET CONSTRAINTS ALL IMMEDIATE;
SELECT pg_temp.refusal($$UPDATE reconcile.provider SET attempt_timeout = '9 minutes' WHERE provider = 'byhand'$$);
ROLLBACK TO whole;
-- A dump is restored table by table, with bodies of functions unchecked.
SET LOCAL check_function_bodies = off;
INSERT INTO reconcile.operation (operation, provider, path, claims) VALUES ('byhand.y', 'byhand', '/y', 'FULL');
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK TO whole;

-- Previews: what is sent and asked, with secrets masked.
CREATE FUNCTION pg_temp.shown(url text) RETURNS text LANGUAGE sql AS $$ SELECT regexp_replace(regexp_replace($1, 'since=[0-9]{10}', 'since=SECONDS'), 'until=20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}%3A[0-9]{2}%3A[0-9]{2}Z', 'until=TIME') $$;
SELECT part, method, pg_temp.shown(url) AS url, headers, body, note FROM reconcile.preview('shop.order.create');
SELECT reconcile.installation_prefix() IS NOT NULL AS has_prefix;
SELECT part, replace(pg_temp.shown(url), reconcile.installation_prefix(), 'PREFIX') AS url, replace(body, reconcile.installation_prefix(), 'PREFIX') AS body, replace(note, reconcile.installation_prefix(), 'PREFIX') AS note
FROM reconcile.preview('shop.order.create', '{"customer": {"name": "Bob"}, "amount": 1, "note": "n"}', 'abc') WHERE part IN ('request', 'lookup 3');
SELECT part, method, url, headers, body, note FROM reconcile.preview('shop.order.delete');
SELECT replace(pg_temp.refusal(s), reconcile.installation_prefix(), 'PREFIX') AS refusal FROM unnest(ARRAY[$$SELECT reconcile.preview('nothing')$$, $$SELECT reconcile.preview('byhand.x')$$, $$SELECT reconcile.preview('shop.order.create', '{"amount": 1}')$$, $$SELECT reconcile.preview('shop.order.create', NULL, 'not hex')$$,
	$$SELECT reconcile.preview('00000000-0000-7000-8000-000000000009')$$, $$SELECT reconcile.preview('00000000-0000-7000-8000-000000000009'::uuid)$$]) WITH ORDINALITY AS x(s, n) ORDER BY n;
SELECT s.action_id AS mine FROM reconcile.submit('shop.order.delete', '{"order": "o/2"}') s \gset
SELECT part, method, url, headers, body, regexp_replace(note, :'mine', 'ID') AS note FROM reconcile.preview(:'mine');
SELECT count(*) FROM reconcile.preview(:'mine'::uuid);
ROLLBACK;
