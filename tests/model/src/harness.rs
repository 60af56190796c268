//! What a store brings to be tested.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{Deadline, Moment};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::Backend;

/// Makes a fresh store for every case.
#[async_trait]
pub trait Harness: Send + Sync {
    /// What it is called when it fails.
    fn name(&self) -> &str;

    /// How many cases it can afford by default.
    fn cases(&self) -> u32;

    /// An empty store. `clock` is the one that the case moves: a store whose leases end exactly
    /// is built on it.
    ///
    /// # Errors
    /// Why there is no store, in words. A missing server is a failure, never a pass.
    ///
    /// # Cancellation
    /// Not cancelled.
    async fn fresh(&self, clock: &ManualClock) -> Result<Subject, String>;
}

/// A store under test.
pub struct Subject {
    /// Its ports.
    pub backend: Backend,
    /// How its leases end.
    pub expiry: Expiry,
    /// Whether a call that was dropped is done before any later call of the same caller, or never:
    /// true of stores with one queue, not of those over a network.
    pub drops_in_order: bool,
    /// Removes what the case leaves behind.
    pub guard: Box<dyn CleanUp>,
}

/// How a store's leases end.
pub enum Expiry {
    /// By the case's own clock, at the moment exactly.
    Exact,
    /// By the store's own time, somewhere around the moment. The case lets every uncertain moment
    /// pass before it asks anything.
    Window {
        /// So much before it.
        early: Duration,
        /// So much after it.
        late: Duration,
        /// The store's time.
        time: Box<dyn OwnTime>,
    },
}

/// The time of a store that keeps its own.
#[async_trait]
pub trait OwnTime: Send + Sync {
    /// Now; only differences count.
    fn now(&self) -> Moment;

    /// A deadline for a call that begins now and may take so long; one of nothing is past.
    fn deadline(&self, budget: Duration) -> Deadline;

    /// Lets time pass.
    ///
    /// # Cancellation
    /// Not cancelled.
    async fn pass(&self, duration: Duration);
}

/// What is left to do when a case is over.
#[async_trait]
pub trait CleanUp: Send {
    /// Removes what the case left.
    ///
    /// # Cancellation
    /// Not cancelled.
    async fn clean_up(self: Box<Self>);
}

/// Keeps something for as long as the case lasts, and leaves the rest to its `Drop`.
pub struct Keep<T>(pub T);

#[async_trait]
impl<T: Send> CleanUp for Keep<T> {
    async fn clean_up(self: Box<Self>) {}
}

/// The memory store as the one under test.
#[derive(Clone, Copy, Debug)]
pub struct MemoryHarness {
    /// How many cases.
    pub cases: u32,
}

#[async_trait]
impl Harness for MemoryHarness {
    fn name(&self) -> &str {
        "memory"
    }

    fn cases(&self) -> u32 {
        self.cases
    }

    async fn fresh(&self, clock: &ManualClock) -> Result<Subject, String> {
        // Another seed than the reference's, so that no id is the same by chance.
        let entropy = Arc::new(SeededEntropy::new(2));
        let store = MemoryStore::new(Arc::new(clock.clone()), entropy);
        Ok(Subject {
            backend: store.backend(),
            expiry: Expiry::Exact,
            drops_in_order: true,
            guard: Box::new(Keep(())),
        })
    }
}
