-- One row for the whole file. `last_token` is the one source of fencing tokens; `floor` lies below
-- every later token (raised floors, and whatever purged rows knew); `boot_*` say which clock the
-- moments in this file were read from.
CREATE TABLE dlock_meta (
    id              INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    boot_id         TEXT    NOT NULL,
    time_namespace  TEXT    NOT NULL,
    boot_nanos      INTEGER NOT NULL,
    last_token      INTEGER NOT NULL CHECK (last_token >= 0),
    floor           INTEGER NOT NULL CHECK (floor >= 0),
    sessions        INTEGER NOT NULL,
    locks           INTEGER NOT NULL,
    settled         INTEGER NOT NULL
);

-- A grant is live if and only if its session's row is here.
CREATE TABLE dlock_sessions (
    id         BLOB    NOT NULL PRIMARY KEY,
    owner      TEXT    NOT NULL,
    ttl_ms     INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, -- nanoseconds on the boot clock
    private    BOOLEAN NOT NULL  -- made for one lock, lives and dies with it
) WITHOUT ROWID;

CREATE INDEX dlock_sessions_by_expiry ON dlock_sessions (expires_at);

-- A row outlives its grants and keeps their fence: the highest token granted or floor set. While
-- the lock is held, `fence` is the live grant's token.
CREATE TABLE dlock_locks (
    namespace   TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    fence       INTEGER NOT NULL,
    session     BLOB,
    attempt     BLOB,
    acquired_at INTEGER NOT NULL, -- unix milliseconds, for display
    touched_at  INTEGER NOT NULL, -- unix milliseconds, for purging
    PRIMARY KEY (namespace, name)
) WITHOUT ROWID;

CREATE INDEX dlock_locks_by_session ON dlock_locks (session) WHERE session IS NOT NULL;

-- What can be forgotten, the longest idle first: purging never walks past what is held.
CREATE INDEX dlock_locks_idle ON dlock_locks (touched_at) WHERE session IS NULL;

-- Attempts settled for good: never granted again. Those of a session go with it; those of private
-- holders carry an empty session and go by age.
CREATE TABLE dlock_settled (
    session    BLOB    NOT NULL,
    attempt    BLOB    NOT NULL,
    settled_at INTEGER NOT NULL, -- unix milliseconds
    PRIMARY KEY (session, attempt)
) WITHOUT ROWID;

CREATE INDEX dlock_settled_by_age ON dlock_settled (session, settled_at);

-- What operators broke, the newest kept.
CREATE TABLE dlock_revocations (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    namespace  TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    previous   INTEGER,
    floor      INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    revoked_at INTEGER NOT NULL  -- unix milliseconds
);
