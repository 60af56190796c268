//! The memory store, on a clock moved by hand.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlock_domain::Ttl;
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::{Backend, Clock, Entropy};

use crate::{Expected, Harness, Limits, VirtualTime, kit::millis};

/// A fresh [`MemoryStore`]; its other view is a clone.
#[derive(Debug)]
pub struct Memory {
    store: MemoryStore,
    clock: ManualClock,
    seed: AtomicU64,
}

/// The suite's seed, anywhere.
const SEED: u64 = 20;

#[async_trait]
impl Harness for Memory {
    async fn start() -> Self {
        let clock = ManualClock::new();
        let entropy = Arc::new(SeededEntropy::new(SEED));
        Self {
            store: MemoryStore::new(Arc::new(clock.clone()), entropy),
            clock,
            seed: AtomicU64::new(SEED + 1),
        }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        Expected {
            backend_id: "memory",
            waiter: true,
            directory: true,
            floors: true,
            reaps: true,
            limits: true,
            max_settled: 4_096,
        }
    }

    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn backend_b(&self) -> Backend {
        self.store.clone().backend()
    }

    async fn limited(&self, limits: Limits) -> Backend {
        let limits = dlock_memory::Limits {
            max_locks: limits.max_locks as usize,
            max_sessions: limits.max_sessions as usize,
            ..dlock_memory::Limits::default()
        };
        MemoryStore::with_limits(self.clock(), self.entropy(), limits).backend()
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(SeededEntropy::new(self.seed.fetch_add(1, Ordering::Relaxed)))
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn expiry_slack(&self) -> Duration {
        Duration::ZERO
    }

    fn short_ttl(&self) -> Ttl {
        millis(2_000)
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(3_600)
    }
}

impl VirtualTime for Memory {}
