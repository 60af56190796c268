//! The in-memory reference store: every other store is checked against it.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `lib` | [`MemoryStore`]: one state, a clock, a random source |
//! | [`limits`](Limits) | how much it remembers |
//! | `state` | the one state, and what it means for a grant to live and to end |
//! | `settled` | the attempts that were settled without a session |
//! | `store`, `session`, `directory`, `floor` | the ports, each operation one critical section |
//! | `wait` | waiting for a release |
//! | [`clock`](ManualClock), [`entropy`](SeededEntropy) | time and chance that a test moves by hand |
//!
//! The rules of C1 in their plainest form: a grant is live iff its session exists, a session whose
//! lease has ended is deleted by whoever meets it, and every lock runs the domain's transition
//! table ([`dlock_domain::lock`]). All of it lies under one mutex and no operation awaits while it
//! holds that, so a dropped future either did everything or nothing.
//!
//! Deliberately absent: durability, and time or chance of its own.

mod clock;
mod directory;
mod entropy;
mod floor;
mod limits;
mod session;
mod settled;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod wait;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dlock_domain::{Deadline, LockError, Moment, Result, RevocationRecord, WallTime};
use dlock_ports::{Backend, Clock, Entropy};

pub use clock::ManualClock;
pub use entropy::SeededEntropy;
pub use limits::Limits;

use state::State;

/// A store in this process's memory; clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

/// The time of one operation.
#[derive(Clone, Copy)]
pub(crate) struct At {
    /// Before the operation asked for the state: what a holder counts from (INV-03).
    pub(crate) sent: Moment,
    /// Under the lock: what leases are compared with.
    pub(crate) now: Moment,
    /// The wall's opinion, for display.
    pub(crate) wall: WallTime,
}

impl MemoryStore {
    /// An empty store with the default [`Limits`].
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self::with_limits(clock, entropy, Limits::default())
    }

    /// An empty store with limits of the caller's choice.
    #[must_use]
    pub fn with_limits(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, limits: Limits) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(limits))), clock, entropy }
    }

    /// Everything that this store offers: it has all capabilities.
    #[must_use]
    pub fn backend(&self) -> Backend {
        let this = Arc::new(self.clone());
        Backend {
            locks: this.clone(),
            sessions: this.clone(),
            waiter: Some(this.clone()),
            directory: Some(this.clone()),
            floors: Some(this),
        }
    }

    /// The newest revocations, oldest first (C25).
    #[must_use]
    pub fn revocations(&self) -> Vec<RevocationRecord> {
        self.lock().revocations()
    }

    /// One operation: one critical section, begun before its deadline or not at all.
    pub(crate) fn enter<T>(
        &self,
        by: Deadline,
        operation: impl FnOnce(&mut State, At) -> Result<T>,
    ) -> Result<T> {
        let sent = self.clock.now();
        let mut state = self.lock();
        let at = At { sent, now: self.clock.now(), wall: self.clock.wall() };
        if by.is_past(at.now) {
            return Err(LockError::contention("the deadline passed before the call began"));
        }
        operation(&mut state, at)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No operation panics half way: it would be a bug, and to go on is the lesser evil.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
