//! The only place where diesel's errors become ours.

use std::path::{Path, PathBuf};

use diesel::result::Error as DieselError;
use dlock_domain::{Invariant, LockError};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory or a file in it cannot be made or opened.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory lies on a network file system, whose locks SQLite cannot trust.
    #[error("{path} is on a network file system ({kind}): use a local disk")]
    NetworkFileSystem {
        /// Where.
        path: PathBuf,
        /// Which.
        kind: String,
    },
    /// Processes that read another clock use the file (trap 33).
    #[error(
        "{path} is in use by processes on another clock (another time namespace or machine): \
         expiry could not be trusted"
    )]
    OtherClock {
        /// Which file.
        path: PathBuf,
    },
    /// A newer dlock made the file.
    #[error("{path} has schema {found}, newer than this dlock knows: use the newer dlock")]
    NewerSchema {
        /// Which file.
        path: PathBuf,
        /// Its newest migration.
        found: String,
    },
    /// The file cannot be written.
    #[error("{path} is read-only: give this user write access to the file and its directory")]
    ReadOnly {
        /// Which file.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space left for {path}: free some and start again; nothing was lost")]
    Full {
        /// Which file.
        path: PathBuf,
    },
    /// The file is not a database, or is damaged.
    #[error(
        "{path} is damaged or not a dlock database: restore a copy, then raise the token floor of \
         every namespace"
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
    },
    /// Another process did not let go of the file in time.
    #[error("{path} is busy: another process holds it; try again")]
    Busy {
        /// Which file.
        path: PathBuf,
    },
    /// Anything else that SQLite says.
    #[error("cannot open {path}: {detail}")]
    Other {
        /// Which file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
}

/// What SQLite's own words mean. diesel hands on the message and not the code; the messages are
/// fixed strings of the bundled library, and tests provoke them for real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Busy,
    Full,
    ReadOnly,
    Corrupt,
    Io,
    Other,
}

impl Cause {
    pub(crate) fn of(message: &str) -> Self {
        let has = |words: &str| message.contains(words);
        if has("database is locked") || has("database table is locked") {
            Self::Busy
        } else if has("database or disk is full") {
            Self::Full
        } else if has("readonly database") || has("unable to open database file") {
            Self::ReadOnly
        } else if has("malformed") || has("not a database") {
            Self::Corrupt
        } else if has("disk I/O error") {
            Self::Io
        } else {
            Self::Other
        }
    }
}

impl OpenError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }

    pub(crate) fn from_message(path: &Path, message: &str) -> Self {
        let path = path.to_path_buf();
        match Cause::of(message) {
            Cause::Busy => Self::Busy { path },
            Cause::Full => Self::Full { path },
            Cause::ReadOnly => Self::ReadOnly { path },
            Cause::Corrupt => Self::Corrupt { path },
            Cause::Io | Cause::Other => Self::Other { path, detail: message.into() },
        }
    }
}

/// How far a transaction had come when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// At its very beginning: nothing was run.
    Begin,
    /// Between begin and commit: it was rolled back and had no effect.
    Inside,
    /// In its commit.
    Commit,
}

/// A driver's error, as its callers see it.
pub(crate) fn driver(error: DieselError, stage: Stage) -> LockError {
    let message = error.to_string();
    let cause = Cause::of(&message);
    let ours = match cause {
        Cause::Busy => LockError::contention("another process holds the database"),
        Cause::Full => LockError::contention("the disk is full: nothing was changed"),
        Cause::ReadOnly => LockError::contention("the database is read-only: nothing was changed"),
        Cause::Corrupt => {
            LockError::incident(Invariant::RecordsReadable, "the database file is damaged")
        }
        Cause::Io => LockError::contention("the disk failed"),
        Cause::Other => LockError::contention("the database refused"),
    };
    // A commit that met a lock or a full disk was rolled back. A commit whose sync failed may be
    // found in the log after all.
    let undone = stage != Stage::Commit || matches!(cause, Cause::Busy | Cause::Full);
    let ours = if undone { ours } else { ours.maybe_applied() };
    ours.caused_by(error)
}

/// Why an operation stopped inside its transaction.
pub(crate) enum Stop {
    /// It was decided: the transaction goes on and commits what others wrote.
    Refused(LockError),
    /// The database failed: the transaction cannot go on.
    Storage(DieselError),
}

impl From<LockError> for Stop {
    fn from(error: LockError) -> Self {
        Self::Refused(error)
    }
}

impl From<DieselError> for Stop {
    fn from(error: DieselError) -> Self {
        Self::Storage(error)
    }
}

/// The result of an operation inside a transaction.
pub(crate) type Step<T> = Result<T, Stop>;

#[cfg(test)]
mod tests {
    use super::*;
    use diesel::connection::SimpleConnection;
    use diesel::prelude::*;

    /// What SQLite itself says, provoked for real: were a message to change with a new version,
    /// this fails.
    fn say(at: &str, sql: &str) -> String {
        match SqliteConnection::establish(at) {
            Ok(mut connection) => connection.batch_execute(sql).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_cause_is_known_by_what_sqlite_really_says() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let write = "CREATE TABLE t (x); INSERT INTO t VALUES (zeroblob(100000));";

        let small = format!("PRAGMA max_page_count = 3; {write}");
        assert_eq!(Cause::of(&say(&at("small"), &small)), Cause::Full);

        let mut owner = SqliteConnection::establish(&at("busy")).unwrap();
        owner.batch_execute("BEGIN IMMEDIATE").unwrap();
        assert_eq!(Cause::of(&say(&at("busy"), "BEGIN IMMEDIATE")), Cause::Busy);

        let read_only = format!("file:{}?mode=ro", at("busy"));
        drop(owner);
        assert_eq!(Cause::of(&say(&read_only, write)), Cause::ReadOnly);

        std::fs::write(at("junk"), [7_u8; 4_096]).unwrap();
        assert_eq!(Cause::of(&say(&at("junk"), write)), Cause::Corrupt);
        assert_eq!(Cause::of("no such table: x"), Cause::Other);
    }

    #[test]
    fn inv07_a_failed_commit_is_unknown_unless_it_was_surely_undone() {
        use dlock_domain::Applied;
        let error = |message: &str| {
            DieselError::DatabaseError(
                diesel::result::DatabaseErrorKind::Unknown,
                Box::new(message.to_owned()),
            )
        };
        let applied = |message, stage| driver(error(message), stage).applied();
        assert_eq!(applied("disk I/O error", Stage::Commit), Applied::Unknown);
        assert_eq!(applied("disk I/O error", Stage::Inside), Applied::No);
        assert_eq!(applied("database or disk is full", Stage::Commit), Applied::No);
        assert_eq!(applied("database is locked", Stage::Commit), Applied::No);
    }
}
