//! The suite on the store of an example: what others may write on `domain` and `ports` alone is
//! held to the same contract, and the example shows no store that is only almost right.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlock::ServiceConfig;
use dlock_conformance::{Expected, Harness, Limits, Served, ServiceHarness, swallow::Method};
use dlock_domain::Ttl;
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{Backend, Clock, Entropy};

#[path = "../../../app/examples/own_store/store.rs"]
#[expect(dead_code, reason = "the suite looks at no record of a revocation")]
mod store;

use store::{OneMutex, Room};

/// Attempts that one session may settle: few, since the store is a small one.
const SETTLED: u32 = 64;

/// A fresh store; its other view is the same.
struct Own {
    store: Arc<OneMutex>,
    clock: ManualClock,
    seed: AtomicU64,
}

fn open(clock: &ManualClock, seed: u64, locks: usize, sessions: usize) -> Arc<OneMutex> {
    let room = Room { locks, sessions, settled: SETTLED as usize };
    OneMutex::new(Arc::new(clock.clone()), Arc::new(SeededEntropy::new(seed)), room)
}

#[async_trait]
impl Harness for Own {
    async fn start() -> Self {
        let clock = ManualClock::new();
        let store = open(&clock, 1, 100_000, 100_000);
        Self { store, clock, seed: AtomicU64::new(3) }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        Expected {
            backend_id: "one-mutex",
            waiter: false,
            directory: false,
            floors: false,
            reaps: true,
            limits: true,
            max_settled: SETTLED,
        }
    }

    fn backend(&self) -> Backend {
        self.store.backend()
    }

    fn backend_b(&self) -> Backend {
        self.store.backend()
    }

    async fn limited(&self, limits: Limits) -> Backend {
        let (locks, sessions) = (limits.max_locks as usize, limits.max_sessions as usize);
        open(&self.clock, 2, locks, sessions).backend()
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
        Ttl::from_millis(2_000).expect("a lifetime")
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(3_600)
    }
}

#[async_trait]
impl ServiceHarness for Own {
    async fn serve(&self, backend: Backend, config: ServiceConfig) -> Served {
        Served::in_process(self, backend, config)
    }

    fn shows_sessions(&self) -> bool {
        true
    }

    fn knows_whom_nobody_repeats(&self) -> bool {
        true
    }

    fn settles_by(&self) -> Method {
        Method::Forget
    }

    fn lingers(&self) -> Duration {
        Duration::ZERO
    }

    fn spent_budget(&self) -> Duration {
        Duration::from_secs(600)
    }
}

dlock_conformance::conformance!(own, Own);
dlock_conformance::service_conformance!(own_service, Own);
