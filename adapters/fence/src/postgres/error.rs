//! Why a write was not let through.

use dlock_domain::StaleToken;

/// Why a token did not pass. Whatever it is, the write must not happen.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// A higher token has been seen: the lock has gone to somebody else. The database took it for
    /// no error, so the transaction still stands; it should do nothing but end, since other writers
    /// of the resource wait for that.
    #[error(transparent)]
    Stale(#[from] StaleToken),
    /// There is no transaction: the mark would move in one of its own, and whoever came between it
    /// and the write would be overwritten. Nothing was sent to the database.
    #[error("a fence guards only inside the transaction that writes, and none was begun")]
    NoTransaction,
    /// The database's own error, as the caller's driver tells it: 40001 (serialization failure) is
    /// among them, where a higher mark was committed since the transaction's first statement. The
    /// transaction is aborted, as after any error.
    #[error("the database did not let the token pass")]
    Database(#[from] diesel::result::Error),
}
