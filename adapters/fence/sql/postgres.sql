-- The fence guard for PostgreSQL (tested on 15 and 17): run this once in the schema of what is
-- guarded, as one of your own migrations. It may be run again.
--
-- In the transaction that writes, before it reads or writes anything, in a statement of its own, and
-- with the name of that schema:
--
--     SELECT app.dlock_fence_pass('payments/batch-17', 42);
--
-- with the token of the lock that the writer holds. It returns if no higher token has been seen for
-- that resource, and remembers this one; else it raises SQLSTATE LKF01 (class LK is nobody else's),
-- whose message and detail (JSON) carry both tokens. From then on until the transaction ends, other
-- writers of that resource wait, so that what passes does so in the order of the tokens. If it
-- rolls back, the mark goes back with what was written.
--
-- Why so exactly:
-- * Outside the transaction that writes it guards nothing: another writer could come in between.
-- * With the schema's name: PostgreSQL takes the function that fits best from all of the search path,
--   so whoever may create in any schema of it could answer in place of this one. For the same reason
--   nobody may create anything in this schema who is not trusted with the writes.
-- * In a statement of its own: one that also reads does so as of before the wait, and a query in
--   WITH that nothing refers to is not run at all.
-- * First: a new holder's token has to be at the resource before the holder reads, or a late write
--   of its predecessor can still land between. At REPEATABLE READ and SERIALIZABLE, waiting for a
--   writer that then commits ends in 40001 as ever; whoever tries again is told that it is stale.
-- * A writer that stops in the middle keeps the others waiting: lock_timeout bounds their wait, and
--   idle_in_transaction_session_timeout ends such a writer.
-- * Several resources in one transaction: in one order everywhere, or writers deadlock (40P01).
-- * A mark that is deleted is forgotten: what is stale could pass again.
-- * With synchronous_commit as strong as what you guard needs: a crash that takes back the last
--   commits takes back their marks too.
--
-- Needed: SELECT, INSERT and UPDATE on the table, EXECUTE on the functions (PUBLIC's by default).

CREATE TABLE IF NOT EXISTS dlock_fence (
    resource text COLLATE "C" PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND 512),
    -- The highest token that has been seen; tokens are exact in every JSON reader.
    mark bigint NOT NULL CHECK (mark BETWEEN 1 AND 9007199254740991)
) -- A mark moves often: room on its page keeps the index out of it.
WITH (fillfactor = 50);

-- Shows a token to the resource: the highest that it has seen then, so either this one, which has
-- passed, or a higher one, which refuses it. It is written back even where it stays, since only the
-- row as it is behind the wait says for sure which token that was; a look at it in the same
-- statement would see it as it was before.
CREATE OR REPLACE FUNCTION dlock_fence_show(resource text, token bigint) RETURNS bigint
LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO dlock_fence AS held (resource, mark) VALUES ($1, $2)
    ON CONFLICT (resource) DO UPDATE SET mark = greatest(held.mark, excluded.mark)
    RETURNING mark;
END;

-- Whether the token has passed, for who would rather ask than be stopped: after `false`, write
-- nothing and roll back.
CREATE OR REPLACE FUNCTION dlock_fence_try_pass(resource text, token bigint) RETURNS boolean
LANGUAGE sql
BEGIN ATOMIC
    SELECT dlock_fence_show($1, $2) IS NOT DISTINCT FROM $2;
END;

-- Raises the refusal.
CREATE OR REPLACE FUNCTION dlock_fence_refuse(resource text, token bigint, mark bigint)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'token % is stale: % has been accepted', token, mark USING
        ERRCODE = 'LKF01',
        DETAIL = pg_catalog.json_build_object('resource', resource, 'token', token, 'mark', mark),
        HINT = 'The lock has gone to somebody else: roll back, and acquire it anew.';
END;
$$;

-- Returns if the token has passed, else raises.
CREATE OR REPLACE FUNCTION dlock_fence_pass(resource text, token bigint) RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    WITH seen AS MATERIALIZED (SELECT dlock_fence_show($1, $2) AS mark)
    SELECT dlock_fence_refuse($1, $2, seen.mark) FROM seen WHERE seen.mark IS DISTINCT FROM $2;
END;
