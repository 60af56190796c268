//! Why there is no lock, or no lock any more.

use std::fmt;

use dlock_domain::{FencingToken, LockError, LockInfo, LockKey};

use crate::keeper::LossReason;

/// Why an acquire gave no lock.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AcquireError {
    /// Somebody else had it until the wait was over.
    #[error("not granted: {}", Held(holder.as_ref()))]
    NotGranted {
        /// Who, if that could still be seen; never with their session, which is a secret.
        holder: Option<LockInfo>,
    },
    /// The question could not be asked, or was not answered. What a grant of unknown outcome might
    /// hold is settled in the background (INV-09).
    #[error("the lock could not be acquired")]
    Failed(#[from] LockError),
}

/// Why a release did not end a grant.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReleaseError {
    /// The grant was not there any more: the lock was lost before.
    #[error("the lock was not there any more when it was released")]
    Lost,
    /// The store could not be asked while the lock was held. It ends with its lease.
    #[error("the lock could not be released: it ends with its lease")]
    Failed(#[from] LockError),
}

/// The end of a lock that its holder did not ask for (C2: lost, never "unknown", INV-07).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock was lost: {reason}")]
pub struct Loss {
    /// What was held.
    pub key: LockKey,
    /// The token that no longer counts.
    pub token: FencingToken,
    /// How that is known.
    pub reason: LossReason,
}

/// The outcome of guarded work that is not "done, and the lock was held from first to last".
#[derive(Clone, Debug, thiserror::Error)]
pub enum WithLockError<T> {
    /// There was no lock; the work was not begun.
    #[error("the work was not begun")]
    NotAcquired(#[from] AcquireError),
    /// The lock was in danger or lost, and the work was told to stop. It has ended, and did so
    /// before the lease could, unless it blocked its thread.
    #[error("the work was stopped")]
    Stopped {
        /// What it answered, if it ended by itself; none if it was aborted.
        value: Option<T>,
        /// The loss; none if the lock was only in danger.
        #[source]
        loss: Option<Loss>,
    },
    /// The work ended by itself, and the release found the lock gone: revoked, say. Some of the
    /// work was done without it.
    #[error("the lock was lost during the work")]
    Lost {
        /// What the work answered.
        value: T,
    },
    /// The work ended by itself while the lock was believed in; the release was not answered, so
    /// that nothing confirms it. The lock ends with its lease.
    #[error("the work was done, and the lock could not be released")]
    Unconfirmed {
        /// What the work answered.
        value: T,
        /// What became of the release.
        #[source]
        error: LockError,
    },
}

impl<T> WithLockError<T> {
    /// What the work answered, if it came to that.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::NotAcquired(_) => None,
            Self::Stopped { value, .. } => value,
            Self::Lost { value } | Self::Unconfirmed { value, .. } => Some(value),
        }
    }
}

struct Held<'a>(Option<&'a LockInfo>);

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(info) => write!(f, "{} holds the lock", info.owner),
            None => f.write_str("somebody else held the lock"),
        }
    }
}
