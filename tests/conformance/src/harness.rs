//! What a store brings to the suite.

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::Ttl;
use dlock_ports::{Backend, Clock, Entropy};

/// What a store says of itself, to be held to exactly: a case never skips what is absent, it
/// asserts the absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The store's name.
    pub backend_id: &'static str,
    /// Whether it tells of releases.
    pub waiter: bool,
    /// Whether it lists.
    pub directory: bool,
    /// Whether it raises floors.
    pub floors: bool,
    /// Whether ended leases are removed by `reap_expired`; otherwise they end by themselves and
    /// it answers 0.
    pub reaps: bool,
    /// Whether it counts locks and sessions and refuses one too many; otherwise whoever runs the
    /// store bounds it.
    pub limits: bool,
    /// How many attempts one session may settle.
    pub max_settled: u32,
}

/// Limits of a store that a case makes small on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `lock.max_locks`.
    pub max_locks: u32,
    /// `lock.max_sessions`.
    pub max_sessions: u32,
}

/// A fresh store for one case.
///
/// Dropping a harness removes what it made, also when the case panics.
#[async_trait]
pub trait Harness: Send + Sync + Sized + 'static {
    /// Makes a fresh, empty store.
    async fn start() -> Self;

    /// Takes the store down after a case that passed.
    async fn finish(self);

    /// What the store must offer, no more and no less.
    fn expected(&self) -> Expected;

    /// The store.
    fn backend(&self) -> Backend;

    /// The same store as another server or process sees it.
    fn backend_b(&self) -> Backend;

    /// Another fresh store of the kind, with small limits.
    async fn limited(&self, limits: Limits) -> Backend;

    /// The clock that the store and its callers share.
    fn clock(&self) -> Arc<dyn Clock>;

    /// Chance for a service over the store, another stream at every call.
    fn entropy(&self) -> Arc<dyn Entropy>;

    /// Lets this much time pass: virtual time is advanced, real time is slept through.
    async fn pass(&self, time: Duration);

    /// How long after its end a lease may still be live (late expiry is legal, bounded by this).
    fn expiry_slack(&self) -> Duration;

    /// A lifetime short enough to wait for its end, long enough not to end while a case runs.
    fn short_ttl(&self) -> Ttl;

    /// The budget of one call: more than any call needs.
    fn budget(&self) -> Duration;
}

/// A harness whose clock stands still unless a case advances it: what lies weeks or a millisecond
/// apart can be told apart.
pub trait VirtualTime: Harness {}
