//! The store on clusters of a test's own, which lose leaders, members, space and history (traps 3
//! to 18, C05, C11, C60 to C68). Each on the old and the new version of etcd.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails"
)]

mod crowds;
mod deposed;
mod going_back;
mod leaders;
mod quota;
mod tls;
mod tokens;
mod unknown;

use std::{sync::Arc, time::Duration};

use dlock_conformance::{SystemClock, kit::Caller, stores::fresh_seed};
use dlock_domain::{Deadline, LockError, Result};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::SeededEntropy;
use dlock_servers::EtcdCluster;

/// One test of each version.
macro_rules! on_both {
    ($($name:ident)*) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn old_etcd() {
                super::$name(dlock_servers::Version::Old).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn new_etcd() {
                super::$name(dlock_servers::Version::New).await;
            }
        })*
    };
}
pub(crate) use on_both;

/// Another server's store on this cluster.
async fn store(cluster: &EtcdCluster) -> EtcdStore {
    let config = EtcdConfig::at(cluster.endpoints());
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap()
}

/// Somebody who calls such a store and gives each call ten seconds.
async fn caller(cluster: &EtcdCluster) -> Caller {
    let backend = store(cluster).await.backend();
    Caller::on(backend, Arc::new(SystemClock::new()), Duration::from_secs(10))
}

/// The same of a server that is told of these members alone.
async fn caller_at(endpoints: Vec<String>) -> Caller {
    let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
    let config = EtcdConfig::at(endpoints);
    let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy).await.unwrap();
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(10))
}

/// A deadline that is near.
fn soon(caller: &Caller, millis: u64) -> Deadline {
    Deadline::at(caller.now().after(Duration::from_millis(millis)))
}

/// Asks again for as long as the answer is transient, half a minute at most.
async fn in_the_end<T, F: Future<Output = Result<T>>>(mut ask: impl FnMut() -> F) -> T {
    let mut last: Option<LockError> = None;
    for _ in 0..300 {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => {
                assert!(error.is_transient(), "INV-07: {error:?}");
                last = Some(error);
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no answer: {last:?}");
}
