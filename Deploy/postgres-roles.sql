-- Roles with no more rights than their work needs. Run as the owner of the tables, in their schema, after `fanout migrate`. The
-- owner needs the attribute CREATEROLE, or somebody makes the two roles before. Roles belong to the whole server: where several
-- stores should have readers of their own, use other names.
--
--   psql -1 -v ON_ERROR_STOP=1 "$FANOUT_STORE" -f Deploy/postgres-roles.sql
--
-- Then let users in: GRANT fanout_worker TO my_worker; GRANT fanout_reader TO my_service;
-- A worker without the right to make tables needs them to be there: migrate with the owner first.
DO $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'fanout_worker') THEN CREATE ROLE fanout_worker NOLOGIN; END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'fanout_reader') THEN CREATE ROLE fanout_reader NOLOGIN; END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO fanout_worker, fanout_reader', current_schema());
END
$$;

GRANT SELECT ON setting TO fanout_worker;
GRANT SELECT, INSERT, UPDATE ON edge, post, seen, feed_trim TO fanout_worker;
-- Rows are locked before they are deleted, in the order of their keys, and a lock needs the right to update.
GRANT SELECT, INSERT, UPDATE, DELETE ON feed_row TO fanout_worker;

-- Readers get the views, which leave out what nobody must be shown, and `fanout show` reads the tables with the same rule.
GRANT SELECT ON feedback, follows, likes, favorites TO fanout_reader;
DO $$
BEGIN
  -- A distributed store has a function in its place, which everybody may call who may read the tables.
  IF to_regclass('feed') IS NOT NULL THEN GRANT SELECT ON feed TO fanout_reader; END IF;
END
$$;
GRANT SELECT ON setting, edge, post, seen, feed_row, feed_trim TO fanout_reader;
GRANT EXECUTE ON FUNCTION fanout_key(text), fanout_key(text, text) TO fanout_reader;
