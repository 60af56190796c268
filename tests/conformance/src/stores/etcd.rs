//! The etcd store, connected twice to one real cluster, on this machine's clock.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_domain::Ttl;
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_ports::{Backend, Clock, Entropy};

use crate::{Expected, Harness, Limits, kit::millis};

/// The variable that says where the cluster is: addresses with commas between them.
const ENDPOINTS: &str = "TEST_DLOCK_ETCD_ENDPOINTS";

/// Two stores on one real cluster, below a prefix of the case's own.
pub struct Etcd {
    a: EtcdStore,
    b: EtcdStore,
    seed: AtomicU64,
}

/// The cluster's addresses.
///
/// # Panics
/// When nobody said where a cluster is: a test that silently tests nothing would be worse.
#[must_use]
pub fn endpoints() -> Vec<String> {
    let Ok(given) = std::env::var(ENDPOINTS) else {
        panic!(
            "no etcd to test on: run `cargo xtask test`, which starts one, or set {ENDPOINTS} to \
             the addresses of a cluster, such as http://127.0.0.1:2379"
        )
    };
    given.split(',').map(str::to_owned).collect()
}

/// Chance of a seed that no other test has, here or in another process on the same cluster: ids are
/// drawn from it.
#[must_use]
pub fn fresh_seed() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let started = SystemClock::new().now().as_nanos();
    started.rotate_left(20)
        ^ u64::from(std::process::id())
        ^ NEXT.fetch_add(1 << 40, Ordering::Relaxed)
}

async fn connect(prefix: &str, seed: u64) -> EtcdStore {
    let mut config = EtcdConfig::at(endpoints());
    config.prefix = prefix.to_owned();
    EtcdStore::connect(config, Arc::new(SystemClock::new()), Arc::new(SeededEntropy::new(seed)))
        .await
        .expect("the cluster is there")
}

#[async_trait]
impl Harness for Etcd {
    async fn start() -> Self {
        let seed = fresh_seed();
        let prefix = format!("/test/{seed:016x}");
        let a = connect(&prefix, seed).await;
        let b = connect(&prefix, seed + 1).await;
        Self { a, b, seed: AtomicU64::new(seed + 2) }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        Expected {
            backend_id: "etcd",
            waiter: true,
            directory: true,
            floors: true,
            reaps: false,
            limits: false,
            max_settled: 4_096,
        }
    }

    fn backend(&self) -> Backend {
        self.a.backend()
    }

    fn backend_b(&self) -> Backend {
        self.b.backend()
    }

    async fn limited(&self, _limits: Limits) -> Backend {
        self.a.backend()
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
        // etcd looks for ended leases every half a second, and ends so many at a time.
        Duration::from_secs(2)
    }

    fn short_ttl(&self) -> Ttl {
        millis(3_000)
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(30)
    }
}
