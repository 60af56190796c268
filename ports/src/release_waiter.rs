//! An optional capability: being told of a release instead of asking for it.

use async_trait::async_trait;
use dlock_domain::{Deadline, LockKey};

use crate::Observed;

/// How a wait ended. A hint: a grant only ever comes from `try_insert`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The grant that the failed attempt met has ended.
    Released,
    /// The deadline passed first.
    Deadline,
    /// The store cannot tell: ask again with backoff. Counted by the caller.
    Fallback,
}

/// Waits for a lock to be released.
#[async_trait]
pub trait ReleaseWaiter: Send + Sync {
    /// Waits until the grant that a failed attempt met has ended: released, revoked, expired, or
    /// its session closed. A release that happened after the attempt and before this call counts
    /// (INV-08). A renew wakes nobody.
    ///
    /// There is no error: trouble is [`WaitEnd::Fallback`].
    ///
    /// # Cancellation
    /// Dropping the future ends the wait promptly; no task, stream or entry stays behind (INV-10).
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd;

    /// How many calls wait for this key here; advisory.
    fn waiters(&self, key: &LockKey) -> u32;
}
