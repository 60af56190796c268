//! The etcd store, connected twice to one real cluster, below a prefix of the case's own.

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_ports::Backend;

use super::real::{Pair, Server};
use crate::Expected;

/// The variable that says where the cluster is: addresses with commas between them.
const ENDPOINTS: &str = "TEST_DLOCK_ETCD_ENDPOINTS";

/// Two stores on one real cluster.
pub type Etcd = Pair<Cluster>;

/// The cluster that the environment names.
#[derive(Clone, Copy, Debug)]
pub struct Cluster;

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

#[async_trait]
impl Server for Cluster {
    const EXPECTED: Expected = Expected {
        backend_id: "etcd",
        waiter: true,
        directory: true,
        floors: true,
        reaps: false,
        limits: false,
        max_settled: 4_096,
    };
    /// etcd looks for ended leases every half a second, and ends so many at a time.
    const SLACK: Duration = Duration::from_secs(2);

    async fn connect(place: u64, seed: u64) -> Backend {
        let mut config = EtcdConfig::at(endpoints());
        config.prefix = format!("/test/{place:016x}");
        let entropy = Arc::new(SeededEntropy::new(seed));
        let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await;
        store.expect("the cluster is there").backend()
    }
}
