//! Every statement of ours. All names are found through the `search_path` that each transaction sets.
//!
//! They run at `READ COMMITTED`, so every statement sees what was committed before it began. What
//! decides therefore never stands in the statement that waits for a lock, but in the next one: a
//! statement that waited goes on with the old picture of every *other* row, and would take a lock
//! from a session that was born while it waited.
//!
//! A statement that grants or takes away, and relies on what those before it locked, asks whether their
//! transaction was begun: one whose `BEGIN` was refused would run alone.
//!
//! Order of locks: sessions, then rows of locks. Where a release, a settling or a revoke must end a
//! private session that it did not see before, or two acquires end each other's expired sessions,
//! PostgreSQL may find a deadlock: then nothing was done, and the transaction is made again.

/// The timeline that the database writes, as a number.
macro_rules! timeline {
    () => {
        "('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint"
    };
}

/// Deletes the holder's session if it has expired: expiry is deletion. `$1` namespace, `$2` name.
///
/// A keep-alive that was quicker makes the row pass the predicate no more (trap 25).
pub const EXPIRE_HOLDER: &str = "\
DELETE FROM dlock_sessions s USING dlock_locks l \
WHERE l.namespace = $1 AND l.name = $2 AND s.id = l.session AND s.expires_at <= clock_timestamp()";

/// The own session, kept from being deleted until the transaction ends. `$1` id.
pub const SHARE_SESSION: &str = "\
SELECT owner, ttl_ms, private, \
  floor(extract(epoch FROM (expires_at - clock_timestamp())) * 1000)::bigint AS left_ms \
FROM dlock_sessions WHERE id = $1 AND expires_at > clock_timestamp() FOR KEY SHARE";

/// The own session, looked at. `$1` id.
pub const LOOK_SESSION: &str = "\
SELECT owner, ttl_ms, private, \
  floor(extract(epoch FROM (expires_at - clock_timestamp())) * 1000)::bigint AS left_ms \
FROM dlock_sessions WHERE id = $1 AND expires_at > clock_timestamp()";

/// Makes the lock's row if it is not there, for a session that is. `$1` namespace, `$2` name, `$3`
/// session or null for nobody in particular.
pub const ENSURE_LOCK: &str = "\
INSERT INTO dlock_locks (namespace, name, fence, touched_at) \
SELECT $1, $2, 0, clock_timestamp() \
WHERE $3 IS NULL OR EXISTS (SELECT FROM dlock_sessions WHERE id = $3) \
ON CONFLICT (namespace, name) DO NOTHING";

/// Locks the lock's row: whoever decides holds this. `$1` namespace, `$2` name.
pub const LOCK_LOCK: &str = "\
SELECT FROM dlock_locks WHERE namespace = $1 AND name = $2 FOR NO KEY UPDATE";

/// Locks the private session that holds a lock, to end it. `$1` namespace, `$2` name.
pub const LOCK_PRIVATE: &str = "\
SELECT FROM dlock_sessions s WHERE s.private AND s.id = \
  (SELECT l.session FROM dlock_locks l WHERE l.namespace = $1 AND l.name = $2) \
FOR UPDATE OF s";

/// Decides, under the row's lock, and grants. The token is drawn here and nowhere else (trap 23):
/// after the lock, and only for a lock that is free. `$1` namespace, `$2` name, `$3` session,
/// `$4` attempt, `$5` whether the session is to be made here, `$6` its owner, `$7` its lifetime in
/// milliseconds, `$8` under which session the attempt would be settled, `$9` whether any history of
/// the database will do.
pub const GRANT: &str = concat!(
    "\
WITH state AS MATERIALIZED ( \
  SELECT l.fence, l.attempt, s.id AS session, s.owner, s.ttl_ms, s.private, \
    floor(extract(epoch FROM (s.expires_at - clock_timestamp())) * 1000)::bigint AS left_ms, \
    (SELECT m.floor FROM dlock_meta m) AS floor, \
    EXISTS (SELECT FROM dlock_settled d WHERE d.session = $8 AND d.attempt = $4) AS settled, \
    $9 OR EXISTS (SELECT FROM pg_control_system() c, (SELECT ",
    timeline!(),
    " AS number) t WHERE EXISTS ( \
        SELECT FROM dlock_meta m \
        WHERE m.system_identifier = c.system_identifier AND m.timeline = t.number \
      ) OR EXISTS ( \
        SELECT FROM dlock_histories h WHERE h.namespace = $1 \
          AND h.system_identifier = c.system_identifier AND h.timeline = t.number \
      )) \
      AS same_history, \
    ($5 OR EXISTS (SELECT FROM dlock_sessions o \
      WHERE o.id = $3 AND NOT o.private AND o.expires_at > clock_timestamp())) AS fit \
  FROM dlock_locks l LEFT JOIN dlock_sessions s ON s.id = l.session \
  WHERE l.namespace = $1 AND l.name = $2 \
), drawn AS MATERIALIZED ( \
  SELECT nextval('dlock_fencing_token_seq') AS token FROM state \
  WHERE session IS NULL AND fit AND same_history AND NOT settled \
    AND current_setting('dlock.begun', true) = 'yes' \
), good AS MATERIALIZED ( \
  SELECT d.token FROM drawn d, state s WHERE d.token > s.fence AND d.token > s.floor \
), opened AS ( \
  INSERT INTO dlock_sessions (id, owner, ttl_ms, expires_at, private) \
  SELECT $3, $6, $7, clock_timestamp() + $7 * interval '1 millisecond', true FROM good WHERE $5 \
), made AS ( \
  UPDATE dlock_locks l SET fence = g.token, session = $3, attempt = $4, \
    acquired_at = clock_timestamp(), touched_at = clock_timestamp() \
  FROM good g WHERE l.namespace = $1 AND l.name = $2 RETURNING l.fence \
) \
SELECT fence, attempt, session, owner, ttl_ms, private, left_ms, floor, settled, same_history, fit, \
  (SELECT token FROM drawn) AS drawn, (SELECT fence FROM made) AS granted FROM state"
);

/// Who holds a lock, looked at: polls and recoveries write nothing (trap 28). `$1` namespace, `$2`
/// name, `$3` under which session the attempt would be settled, `$4` attempt.
pub const LOOK_LOCK: &str = "\
SELECT l.fence, l.attempt, s.id AS session, s.owner, s.ttl_ms, s.private, \
  floor(extract(epoch FROM (s.expires_at - clock_timestamp())) * 1000)::bigint AS left_ms, \
  EXISTS (SELECT FROM dlock_settled d WHERE d.session = $3 AND d.attempt = $4) AS settled \
FROM dlock_locks l LEFT JOIN dlock_sessions s ON s.id = l.session AND s.expires_at > clock_timestamp() \
WHERE l.namespace = $1 AND l.name = $2";

/// What can be seen of a lock that is held, or was until now: where nothing is left of its lease, a
/// keep-alive may just be committed. `$1` namespace, `$2` name.
pub const READ: &str = "\
SELECT l.name, l.fence, s.id AS session, s.owner, \
  floor(extract(epoch FROM (s.expires_at - clock_timestamp())) * 1000)::bigint AS left_ms, \
  (extract(epoch FROM l.acquired_at) * 1000)::bigint AS acquired_ms \
FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session \
WHERE l.namespace = $1 AND l.name = $2";

/// The same of many, in byte order. `$1` namespace, `$2` prefix, `$3` after which name, `$4` how many.
pub const LIST: &str = "\
SELECT l.name, l.fence, s.id AS session, s.owner, \
  floor(extract(epoch FROM (s.expires_at - clock_timestamp())) * 1000)::bigint AS left_ms, \
  (extract(epoch FROM l.acquired_at) * 1000)::bigint AS acquired_ms \
FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session \
WHERE l.namespace = $1 AND l.name > $3 AND l.name >= $2 AND starts_with(l.name, $2) \
ORDER BY l.name LIMIT $4";

/// Locks the session that holds a grant. `$1` namespace, `$2` name, `$3` token.
pub const LOCK_HOLDER: &str = "\
SELECT FROM dlock_sessions s WHERE s.id = \
  (SELECT l.session FROM dlock_locks l WHERE l.namespace = $1 AND l.name = $2 AND l.fence = $3) \
FOR NO KEY UPDATE OF s";

/// Keeps a grant from being taken away until the transaction ends. `$1` namespace, `$2` name, `$3`
/// token.
pub const SHARE_GRANT: &str = "\
SELECT FROM dlock_locks WHERE namespace = $1 AND name = $2 AND fence = $3 FOR SHARE";

/// Moves the holder's expiry, its row being locked: the new time is counted from now, not from when
/// the waiting began (trap 24). `$1` namespace, `$2` name, `$3` token.
pub const EXTEND: &str = "\
UPDATE dlock_sessions s SET expires_at = clock_timestamp() + s.ttl_ms * interval '1 millisecond' \
FROM dlock_locks l \
WHERE l.namespace = $1 AND l.name = $2 AND l.fence = $3 AND s.id = l.session \
  AND s.expires_at > clock_timestamp() \
RETURNING s.id AS session, s.owner, s.ttl_ms";

/// Frees a grant, and ends its session if that was made for it. `$1` namespace, `$2` name, `$3`
/// token.
pub const RELEASE: &str = "\
WITH held AS MATERIALIZED ( \
  SELECT s.id, s.private FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session \
  WHERE l.namespace = $1 AND l.name = $2 AND l.fence = $3 \
    AND current_setting('dlock.begun', true) = 'yes' \
), freed AS ( \
  UPDATE dlock_locks l SET session = NULL, attempt = NULL, touched_at = clock_timestamp() \
  FROM held WHERE l.namespace = $1 AND l.name = $2 AND l.fence = $3 \
), ended AS ( \
  DELETE FROM dlock_sessions s USING held h WHERE s.id = h.id AND h.private \
) \
SELECT count(*) AS number FROM held";

/// Breaks a lock, raises its floor and notes who did. `$1` namespace, `$2` name, `$3` the token that
/// is expected or null, `$4` actor, `$5` reason.
pub const REVOKE: &str = "\
WITH state AS MATERIALIZED ( \
  SELECT l.fence, s.id AS session, s.private, (SELECT m.floor FROM dlock_meta m) AS floor \
  FROM dlock_locks l LEFT JOIN dlock_sessions s ON s.id = l.session \
  WHERE l.namespace = $1 AND l.name = $2 \
), drawn AS MATERIALIZED ( \
  SELECT nextval('dlock_fencing_token_seq') AS token FROM state \
  WHERE ($3 IS NULL OR (session IS NOT NULL AND fence = $3)) \
    AND current_setting('dlock.begun', true) = 'yes' \
), good AS MATERIALIZED ( \
  SELECT d.token FROM drawn d, state s WHERE d.token > s.fence AND d.token > s.floor \
), freed AS ( \
  UPDATE dlock_locks l SET fence = g.token, session = NULL, attempt = NULL, \
    touched_at = clock_timestamp() \
  FROM good g WHERE l.namespace = $1 AND l.name = $2 \
), ended AS ( \
  DELETE FROM dlock_sessions s USING state t, good g WHERE s.id = t.session AND t.private \
), noted AS ( \
  INSERT INTO dlock_revocations (namespace, name, previous, floor, actor, reason, revoked_at) \
  SELECT $1, $2, CASE WHEN t.session IS NOT NULL THEN t.fence END, g.token, $4, $5, \
    clock_timestamp() FROM state t, good g \
) \
SELECT fence, session IS NOT NULL AS live, floor, (SELECT token FROM drawn) AS drawn, \
  (SELECT token FROM good) AS granted FROM state";

/// Settles an attempt and ends what it holds, the lock's row being locked. `$1` namespace, `$2`
/// name, `$3` attempt, `$4` its session or null for a private holder, `$5` most marks of a session.
pub const FORGET: &str = "\
WITH of AS MATERIALIZED ( \
  SELECT CASE WHEN $4 IS NULL OR (SELECT private FROM dlock_sessions WHERE id = $4) \
    THEN ''::bytea ELSE $4 END AS mark, \
    $4 IS NULL OR EXISTS (SELECT FROM dlock_sessions WHERE id = $4) AS there \
), room AS MATERIALIZED ( \
  SELECT $4 IS NULL OR (SELECT count(*) FROM (SELECT FROM dlock_settled d \
    WHERE d.session = $4 AND d.attempt <> $3 LIMIT $5) others) < $5 AS enough \
), marked AS ( \
  INSERT INTO dlock_settled (session, attempt, settled_at) \
  SELECT o.mark, $3, clock_timestamp() FROM of o, room r WHERE o.there AND r.enough \
    AND current_setting('dlock.begun', true) = 'yes' \
  ON CONFLICT (session, attempt) DO NOTHING \
), held AS MATERIALIZED ( \
  SELECT s.id, s.private FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session \
  WHERE l.namespace = $1 AND l.name = $2 AND l.attempt = $3 \
    AND current_setting('dlock.begun', true) = 'yes' \
    AND CASE WHEN $4 IS NULL THEN s.private ELSE s.id = $4 END \
), freed AS ( \
  UPDATE dlock_locks l SET session = NULL, attempt = NULL, touched_at = clock_timestamp() \
  FROM held WHERE l.namespace = $1 AND l.name = $2 AND l.attempt = $3 \
), ended AS ( \
  DELETE FROM dlock_sessions s USING held h WHERE s.id = h.id AND h.private \
) \
SELECT (SELECT count(*) FROM held) AS number, r.enough AS enough FROM room r";

/// Opens a session. `$1` id, `$2` owner, `$3` lifetime in milliseconds.
pub const OPEN: &str = "\
INSERT INTO dlock_sessions (id, owner, ttl_ms, expires_at, private) \
VALUES ($1, $2, $3, clock_timestamp() + $3 * interval '1 millisecond', false) \
ON CONFLICT (id) DO NOTHING RETURNING id";

/// Frees what a session of this id held before it ended, where this very transaction has opened it anew:
/// the id comes to life again, its old grants must not. `$1` id.
pub const FREE_OF_THE_DEAD: &str = "\
UPDATE dlock_locks SET session = NULL, attempt = NULL \
WHERE session = $1 AND EXISTS (SELECT FROM dlock_sessions \
  WHERE id = $1 AND xmin = pg_current_xact_id_if_assigned()::xid)";

/// Locks a session's row. `$1` id.
pub const LOCK_SESSION: &str = "SELECT FROM dlock_sessions WHERE id = $1 FOR NO KEY UPDATE";

/// Moves a session's expiry, its row being locked. `$1` id.
pub const KEEP: &str = "\
UPDATE dlock_sessions SET expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond' \
WHERE id = $1 AND expires_at > clock_timestamp() RETURNING owner, ttl_ms, private, ttl_ms AS left_ms";

/// As [`KEEP`], for a session that is what the caller says. `$1` id, `$2` owner, `$3` lifetime.
pub const KEEP_AS: &str = "\
UPDATE dlock_sessions SET expires_at = clock_timestamp() + ttl_ms * interval '1 millisecond' \
WHERE id = $1 AND expires_at > clock_timestamp() AND owner = $2 AND ttl_ms = $3 AND NOT private \
RETURNING owner, ttl_ms, private, ttl_ms AS left_ms";

/// Which of the listed grants are not there: their places in the list. `$1` session, `$2`
/// namespaces, `$3` names, `$4` tokens.
pub const LOST: &str = "\
SELECT h.place AS number FROM unnest($2, $3, $4) WITH ORDINALITY AS h (namespace, name, token, place) \
WHERE NOT EXISTS (SELECT FROM dlock_locks l WHERE l.namespace = h.namespace AND l.name = h.name \
  AND l.fence = h.token AND l.session = $1)";

/// Deletes a session that has expired. `$1` id.
pub const EXPIRE: &str =
    "DELETE FROM dlock_sessions WHERE id = $1 AND expires_at <= clock_timestamp() RETURNING id";

/// Deletes those of many sessions that have expired, in the order that everybody locks them in, after
/// whoever is keeping them alive. `$1` ids.
pub const EXPIRE_ALL: &str = "\
WITH gone AS MATERIALIZED ( \
  SELECT id FROM dlock_sessions WHERE id = ANY($1) AND expires_at <= clock_timestamp() ORDER BY id \
  FOR UPDATE \
) \
DELETE FROM dlock_sessions s USING gone g WHERE s.id = g.id AND s.expires_at <= clock_timestamp()";

/// A session and what it holds, of one moment. `$1` id.
pub const LOOK: &str = "\
SELECT s.owner, s.ttl_ms, \
  floor(extract(epoch FROM (s.expires_at - clock_timestamp())) * 1000)::bigint AS left_ms, \
  l.namespace, l.name, l.fence, l.attempt \
FROM dlock_sessions s LEFT JOIN dlock_locks l ON l.session = s.id \
WHERE s.id = $1 AND s.expires_at > clock_timestamp() ORDER BY l.namespace, l.name";

/// Ends a session, and with it all that it holds. `$1` id.
pub const CLOSE: &str = "\
DELETE FROM dlock_sessions WHERE id = $1 RETURNING expires_at > clock_timestamp() AS live";

/// Deletes sessions that have expired. `$1` how many at most.
pub const REAP: &str = "\
WITH gone AS MATERIALIZED ( \
  SELECT id FROM dlock_sessions WHERE expires_at <= clock_timestamp() ORDER BY id LIMIT $1 \
  FOR UPDATE SKIP LOCKED \
), reaped AS ( \
  DELETE FROM dlock_sessions s USING gone g \
  WHERE s.id = g.id AND s.expires_at <= clock_timestamp() RETURNING s.id \
) \
SELECT count(*) AS number FROM reaped";

/// Forgets locks that nobody has held for long, behind the floor; what is held still counts as
/// touched. A row that was granted meanwhile passes the predicate no more. `$1` how many at most,
/// `$2` how long in milliseconds.
pub const PURGE: &str = "\
WITH idle AS MATERIALIZED ( \
  SELECT l.namespace, l.name, l.fence, l.session FROM dlock_locks l \
  WHERE l.touched_at < clock_timestamp() - $2 * interval '1 millisecond' \
  ORDER BY l.touched_at LIMIT $1 FOR UPDATE SKIP LOCKED \
), gone AS ( \
  DELETE FROM dlock_locks l USING idle i WHERE l.namespace = i.namespace AND l.name = i.name \
    AND NOT EXISTS (SELECT FROM dlock_sessions s WHERE s.id = i.session) RETURNING l.fence \
), held AS ( \
  UPDATE dlock_locks l SET touched_at = clock_timestamp() FROM idle i \
  WHERE l.namespace = i.namespace AND l.name = i.name \
    AND EXISTS (SELECT FROM dlock_sessions s WHERE s.id = i.session) \
) \
UPDATE dlock_meta m SET floor = GREATEST(m.floor, g.highest) \
FROM (SELECT max(fence) AS highest FROM gone) g WHERE g.highest > m.floor";

/// Forgets old marks of attempts whose session is gone, and the oldest of too many. `$1` how many at
/// most, `$2` how old in milliseconds, `$3` most marks of private holders.
pub const PURGE_MARKS: &str = "\
DELETE FROM dlock_settled d USING ( \
  (SELECT o.session, o.attempt FROM dlock_settled o \
   WHERE o.settled_at < clock_timestamp() - $2 * interval '1 millisecond' \
     AND NOT EXISTS (SELECT FROM dlock_sessions s WHERE s.id = o.session) \
   ORDER BY o.settled_at LIMIT $1) \
  UNION ALL \
  (SELECT o.session, o.attempt FROM dlock_settled o WHERE o.session = ''::bytea \
   ORDER BY o.settled_at DESC OFFSET $3 LIMIT $1) \
) old WHERE d.session = old.session AND d.attempt = old.attempt";

/// Keeps the newest notes of who broke what. `$1` how many.
pub const PURGE_NOTES: &str = "\
DELETE FROM dlock_revocations WHERE id <= (SELECT max(id) FROM dlock_revocations) - $1";

/// Says when the store was last looked after: always written, so that readiness is a real commit.
pub const REAPED: &str = "UPDATE dlock_meta SET reaped_at = clock_timestamp()";

/// The highest token or floor that anything here knows of.
pub const HIGHEST: &str = "\
SELECT GREATEST((SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM dlock_fencing_token_seq), \
  (SELECT max(fence) FROM dlock_locks), (SELECT floor FROM dlock_meta)) AS number";

/// Lets tokens go on above a floor. `$1` the floor, at least 1.
pub const SET_SEQUENCE: &str = "SELECT setval('dlock_fencing_token_seq', $1, true) AS number";

/// Locks the private sessions that hold locks of a namespace, to end them. `$1` namespace.
pub const LOCK_ALL_PRIVATE: &str = "\
SELECT FROM dlock_sessions s WHERE s.private AND EXISTS ( \
  SELECT FROM dlock_locks l WHERE l.session = s.id AND l.namespace = $1) \
ORDER BY s.id FOR UPDATE OF s";

/// Ends all grants of a namespace and counts those that were live. `$1` namespace.
pub const END_ALL: &str = "\
WITH held AS MATERIALIZED ( \
  SELECT l.name, s.id, s.private, s.expires_at > clock_timestamp() AS live \
  FROM dlock_locks l JOIN dlock_sessions s ON s.id = l.session WHERE l.namespace = $1 \
), freed AS ( \
  UPDATE dlock_locks l SET session = NULL, attempt = NULL, touched_at = clock_timestamp() \
  FROM held h WHERE l.namespace = $1 AND l.name = h.name \
), ended AS ( \
  DELETE FROM dlock_sessions s USING held h WHERE s.id = h.id AND h.private \
) \
SELECT count(*) FILTER (WHERE live) AS number FROM held";

/// Notes a floor. `$1` the floor.
pub const NOTE_FLOOR: &str = "\
INSERT INTO dlock_meta AS m (floor) VALUES ($1) \
ON CONFLICT (one) DO UPDATE SET floor = GREATEST(m.floor, excluded.floor)";

/// Takes the database's present history for one that a namespace's tokens may go on in. `$1` namespace.
pub const NOTE_HISTORY: &str = concat!(
    "\
INSERT INTO dlock_histories (namespace, system_identifier, timeline) \
SELECT $1, c.system_identifier, ",
    timeline!(),
    " FROM pg_control_system() c \
ON CONFLICT (namespace) DO UPDATE \
SET system_identifier = excluded.system_identifier, timeline = excluded.timeline"
);

/// Takes the database's present history for the one that all tokens begin in, where none was noted
/// yet.
pub const NOTE_FIRST_HISTORY: &str = concat!(
    "\
UPDATE dlock_meta SET (system_identifier, timeline) = (SELECT c.system_identifier, ",
    timeline!(),
    " FROM pg_control_system() c) WHERE system_identifier IS NULL"
);

/// Whether this role may ask which history the database is in.
pub const KNOWS_HISTORY: &str = "\
SELECT has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') \
  AND has_function_privilege('pg_catalog.pg_walfile_name(pg_lsn)', 'EXECUTE') \
  AND has_function_privilege('pg_catalog.pg_current_wal_insert_lsn()', 'EXECUTE') AS yes";
