//! Two stores on one real server, on this machine's clock.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_domain::Ttl;
use dlock_memory::SeededEntropy;
use dlock_ports::{Backend, Clock, Entropy};

use crate::{Expected, Harness, Limits, kit::millis};

/// A server that stores connect to.
#[async_trait]
pub trait Server: Send + Sync + 'static {
    /// What a store on it is expected to be.
    const EXPECTED: Expected;
    /// How much later than a lease's end the lock may still be held.
    const SLACK: Duration;

    /// A store that shares its locks with those of the same number, with this chance.
    async fn connect(place: u64, seed: u64) -> Backend;
}

/// Two stores at a place of the case's own.
pub struct Pair<S: Server> {
    a: Backend,
    b: Backend,
    seed: AtomicU64,
    server: core::marker::PhantomData<S>,
}

#[async_trait]
impl<S: Server> Harness for Pair<S> {
    async fn start() -> Self {
        let seed = fresh_seed();
        let a = S::connect(seed, seed).await;
        let b = S::connect(seed, seed + 1).await;
        Self { a, b, seed: AtomicU64::new(seed + 2), server: core::marker::PhantomData }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        S::EXPECTED
    }

    fn backend(&self) -> Backend {
        self.a.clone()
    }

    fn backend_b(&self) -> Backend {
        self.b.clone()
    }

    async fn limited(&self, _limits: Limits) -> Backend {
        self.a.clone()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock::new())
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(SeededEntropy::new(self.seed.fetch_add(1, Ordering::Relaxed)))
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn expiry_slack(&self) -> Duration {
        S::SLACK
    }

    fn short_ttl(&self) -> Ttl {
        millis(3_000)
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(30)
    }
}

/// Chance of a seed that no other test has, here or in another process on the same server: ids are
/// drawn from it.
#[must_use]
pub fn fresh_seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let started = SystemClock::new().now().as_nanos();
    started.rotate_left(20)
        ^ u64::from(std::process::id())
        ^ NEXT.fetch_add(1 << 40, Ordering::Relaxed)
}
