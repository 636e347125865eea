
-- From 0.1 to 0.2, by hand: only what happens to what is there already.
--
-- What goes HERE, whenever you change sql/install/:
--
--   a new column of an old table       ALTER TABLE reconcile.t ADD COLUMN c text NOT NULL DEFAULT '';
--                                      In CREATE TABLE it must be the LAST one too, in the order of this file, and before the
--                                      table's constraints; without a default, if a fresh table has none:
--                                      ALTER TABLE reconcile.t ALTER COLUMN c DROP DEFAULT;
--   a new, changed, dropped constraint ALTER TABLE reconcile.t DROP CONSTRAINT k; ALTER TABLE reconcile.t ADD CONSTRAINT k CHECK (...);
--   a changed or dropped index         DROP INDEX reconcile.i;
--   a dropped function, or one whose arguments (types, names, defaults taken away) or result changed
--                                      DROP FUNCTION reconcile.f(uuid, text);
--   a view whose columns changed otherwise than by new ones at its end, with what takes or returns its rows
--                                      DROP FUNCTION reconcile.f(...); DROP VIEW reconcile.v;
--   a dropped trigger, policy, table   DROP TRIGGER, DROP POLICY, DROP TABLE
--   a new label of an enum             ALTER TYPE reconcile.e ADD VALUE 'x';
--   a grant that is taken back         REVOKE ...
--   a new operator or base type        as in sql/install/
--   rows to be filled in               UPDATE ...
--
-- What does NOT go here, for it is taken from sql/install/ by itself: new tables with their indexes, new and changed functions,
-- views, triggers, policies, comments, grants, the registration for dumps, new enums, new indexes, profiles.
--
-- The statements run in this order: this part, what is taken from sql/install/, and the part below AFTER THE FUNCTIONS.
-- "ci/check-upgrade" tells what was forgotten.

-- engine() tells why the worker sends nothing although it may.
DROP VIEW reconcile.health;
DROP FUNCTION reconcile.engine();

-- Limits.
ALTER TABLE reconcile.provider
	ADD COLUMN max_rate numeric,
	ADD COLUMN ambiguity_budget integer,
	ADD COLUMN max_lookups_in_flight integer NOT NULL DEFAULT 16,
	ADD COLUMN max_lookup_rate numeric,
	ADD COLUMN breaker_after integer DEFAULT 10,
	ADD COLUMN breaker_pause interval NOT NULL DEFAULT '5 seconds',
	ADD COLUMN breaker_pause_max interval NOT NULL DEFAULT '5 minutes',
	ADD COLUMN paused_by text,
	ADD CONSTRAINT provider_max_rate CHECK (max_rate BETWEEN 0.0001 AND 10000),
	ADD CONSTRAINT provider_ambiguity_budget CHECK (ambiguity_budget BETWEEN 1 AND 1000000),
	ADD CONSTRAINT provider_max_lookups_in_flight CHECK (max_lookups_in_flight BETWEEN 1 AND 1000),
	ADD CONSTRAINT provider_max_lookup_rate CHECK (max_lookup_rate BETWEEN 0.0001 AND 10000),
	ADD CONSTRAINT provider_breaker_after CHECK (breaker_after BETWEEN 1 AND 1000000),
	ADD CONSTRAINT provider_breaker_pause CHECK (extract(epoch FROM breaker_pause) >= 0.001 AND extract(epoch FROM breaker_pause) <= extract(epoch FROM breaker_pause_max)
		AND extract(epoch FROM breaker_pause_max) <= 86400);
DROP INDEX reconcile.action_replacement;
DROP FUNCTION reconcile.pause(text, text);
DROP FUNCTION reconcile.resume(text);

-- Arming anew.
ALTER TABLE reconcile.arming ADD COLUMN disarmed_because text;

-- AFTER THE FUNCTIONS: what needs functions or tables that are new.

