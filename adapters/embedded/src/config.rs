//! What the embedded store can be told.

use std::path::PathBuf;
use std::time::Duration;

/// How hard a commit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Every answered write survives the machine's sudden death (`synchronous=FULL`).
    #[default]
    Full,
    /// Nothing survives the machine's death: the yardstick of benches, and useless elsewhere.
    BenchOnlyOff,
}

/// Configuration of an embedded store.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// The data directory (`embedded.path`), made with mode 0700 if it is absent.
    pub directory: PathBuf,
    /// Most sessions at once (`lock.max_sessions`).
    pub max_sessions: u64,
    /// Most lock rows, held or remembered (`lock.max_locks`).
    pub max_locks: u64,
    /// How long an idle lock's row is remembered (`lock.reap.purge_after`).
    pub purge_after: Duration,
    /// How often waiters look for what other processes did: INV-08's poll interval.
    pub poll_interval: Duration,
    /// How long to wait for another process's write before giving up with `Contention`.
    pub busy_timeout: Duration,
    /// How large the database may grow, in bytes; what does not fit is answered like a full disk.
    pub max_file_bytes: Option<u64>,
    /// How hard a commit is.
    pub durability: Durability,
}

impl EmbeddedConfig {
    /// A store in this directory, everything else at its default.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            max_sessions: 100_000,
            max_locks: 1_000_000,
            purge_after: Duration::from_secs(7 * 24 * 60 * 60),
            poll_interval: Duration::from_millis(10),
            busy_timeout: Duration::from_secs(2),
            max_file_bytes: None,
            durability: Durability::Full,
        }
    }

    /// The database file.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.directory.join("dlock.sqlite3")
    }
}
