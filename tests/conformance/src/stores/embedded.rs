//! The embedded store, opened twice on one file, on a clock moved by hand.

use core::time::Duration;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use dlock_domain::Ttl;
use dlock_embedded::{EmbeddedConfig, EmbeddedStore};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{Backend, Clock, Entropy};
use tempfile::TempDir;

use crate::{Expected, Harness, Limits, VirtualTime, kit::millis};

/// Two handles on one fresh file in a directory of its own, removed with the harness.
pub struct Embedded {
    a: EmbeddedStore,
    b: EmbeddedStore,
    clock: ManualClock,
    folder: TempDir,
    seed: AtomicU64,
}

fn open(config: EmbeddedConfig, clock: &ManualClock, seed: u64) -> EmbeddedStore {
    EmbeddedStore::open(config, Arc::new(clock.clone()), Arc::new(SeededEntropy::new(seed)))
        .expect("a fresh embedded store opens")
}

fn config(folder: &Path, name: &str) -> EmbeddedConfig {
    let mut config = EmbeddedConfig::at(folder.join(name));
    // The suite's contention on a slow disk is not the subject.
    config.busy_timeout = Duration::from_secs(60);
    config
}

#[async_trait]
impl Harness for Embedded {
    async fn start() -> Self {
        let clock = ManualClock::new();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let a = open(config(folder.path(), "store"), &clock, 1);
        let b = open(config(folder.path(), "store"), &clock, 2);
        Self { a, b, clock, folder, seed: AtomicU64::new(4) }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        Expected {
            backend_id: "embedded",
            waiter: true,
            directory: true,
            floors: true,
            reaps: true,
            limits: true,
            max_settled: 4_096,
        }
    }

    fn backend(&self) -> Backend {
        self.a.backend()
    }

    fn backend_b(&self) -> Backend {
        self.b.backend()
    }

    async fn limited(&self, limits: Limits) -> Backend {
        let mut config = config(self.folder.path(), "limited");
        config.max_locks = limits.max_locks.into();
        config.max_sessions = limits.max_sessions.into();
        open(config, &self.clock, 3).backend()
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

impl VirtualTime for Embedded {}
