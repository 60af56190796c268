-- Fencing tokens. No cycle and no cache: a cache would hand them out of order (trap 29).
CREATE SEQUENCE dlock_fencing_token_seq AS bigint
    MINVALUE 1 MAXVALUE 9007199254740991 NO CYCLE CACHE 1;

-- One row. `floor` lies below every later token (raised floors, and whatever purged rows knew);
-- `system_identifier` and `timeline` say in which history of the database tokens began.
CREATE TABLE dlock_meta (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    floor             bigint NOT NULL DEFAULT 0 CHECK (floor >= 0),
    system_identifier bigint,
    timeline          bigint,
    reaped_at         timestamptz
);
INSERT INTO dlock_meta DEFAULT VALUES;

-- Namespaces whose floor was raised after the database went over to another history, and which
-- history that was: which of a namespace's tokens may be lost, only whoever raises its floor knows.
CREATE TABLE dlock_histories (
    namespace         text COLLATE "C" PRIMARY KEY,
    system_identifier bigint NOT NULL,
    timeline          bigint NOT NULL
);

-- A grant is live if and only if its session's row is here. Free space in every page lets
-- keep-alives rewrite a row where it lies.
CREATE TABLE dlock_sessions (
    id         bytea PRIMARY KEY CHECK (octet_length(id) = 16),
    owner      text COLLATE "C" NOT NULL,
    ttl_ms     bigint NOT NULL CHECK (ttl_ms > 0),
    expires_at timestamptz NOT NULL,
    private    boolean NOT NULL -- made for one lock, lives and dies with it
) WITH (fillfactor = 50);

-- A row outlives its grants and keeps their fence: the highest token granted or floor set. While
-- the lock is held, `fence` is the live grant's token.
CREATE TABLE dlock_locks (
    namespace   text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    fence       bigint NOT NULL CHECK (fence >= 0),
    session     bytea,
    attempt     bytea,
    acquired_at timestamptz,          -- for display
    touched_at  timestamptz NOT NULL, -- for purging
    PRIMARY KEY (namespace, name)
) WITH (fillfactor = 80);

CREATE INDEX dlock_locks_by_session ON dlock_locks (session) WHERE session IS NOT NULL;

CREATE INDEX dlock_locks_idle ON dlock_locks (touched_at);

-- Attempts settled for good: never granted again. Those of private holders carry an empty session.
CREATE TABLE dlock_settled (
    session    bytea NOT NULL,
    attempt    bytea NOT NULL,
    settled_at timestamptz NOT NULL,
    PRIMARY KEY (session, attempt)
);

CREATE INDEX dlock_settled_by_age ON dlock_settled (settled_at);

-- What operators broke, the newest kept.
CREATE TABLE dlock_revocations (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace  text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    previous   bigint,
    floor      bigint NOT NULL,
    actor      text NOT NULL,
    reason     text NOT NULL,
    revoked_at timestamptz NOT NULL
);
