//! A lock that is held, for programs without an async runtime.

use std::{fmt, sync::Arc, time::Duration};

use dlock_domain::{FencingToken, LockKey, Result};
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use crate::guard::{self, Loss, ReleaseError};

/// A lock that is held and kept by the private runtime, until the guard is released, dropped, or
/// the lock is lost; as [`guard::LockGuard`](crate::guard::LockGuard).
///
/// Dropping it stops renewals at once and begins a release, best effort. The last drop of all
/// waits for that, at most one second.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    // Dropped before the engine, on which its release runs.
    guard: guard::LockGuard,
    engine: Arc<Engine>,
}

impl LockGuard {
    pub(super) const fn new(guard: guard::LockGuard, engine: Arc<Engine>) -> Self {
        Self { guard, engine }
    }

    /// The grant's token, for whatever the lock protects.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.guard.token()
    }

    /// What is held.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        self.guard.key()
    }

    /// How long the lock is held even if no renewal succeeds any more; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Whether the lock may be believed in now, by the clock at the time of the call (C10).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.guard.is_held()
    }

    /// A token that is cancelled when the lock is lost, no later than its deadline, and when the
    /// guard is released or dropped: to be looked at between the steps of the work.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.guard.cancellation()
    }

    /// Waits until the lock is lost, at most this long.
    ///
    /// # Errors
    /// `Unsupported` inside an async runtime.
    pub fn lost(&self, at_most: Duration) -> Result<Option<Loss>> {
        let loss = self.guard.loss_watch();
        let clock = self.guard.hold().shared().clock.clone();
        let until = clock.now().after(at_most);
        self.engine.call(async move {
            tokio::select! {
                biased;
                loss = loss => Some(loss),
                () = clock.sleep_until(until) => None,
            }
        })
    }

    /// Gives the lock back, blocking this thread until the store has answered or the lease is
    /// over.
    ///
    /// # Errors
    /// As [`guard::LockGuard::release`](crate::guard::LockGuard::release); `Unsupported` inside an
    /// async runtime, where the release is begun as by a drop.
    pub fn release(self) -> std::result::Result<(), ReleaseError> {
        let Self { guard, engine } = self;
        engine.call(guard.release())?
    }

    pub(super) fn danger(&self) -> CancellationToken {
        self.guard.danger().child_token()
    }

    pub(super) fn known_loss(&self) -> Option<Loss> {
        self.guard.known_loss()
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
