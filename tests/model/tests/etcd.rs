//! The etcd store beside the reference, on a real cluster that keeps its own time: the same answers
//! to the same random sequences, lost and dropped replies included.
//!
//! A case mostly waits for leases to end, so a few of them run at once, each from a seed of its own.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_conformance::stores::{etcd_endpoints, fresh_seed};
use dlock_domain::{Deadline, Moment};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_model::{Expiry, Harness, Judges, Keep, OwnTime, Seen, Subject, search};
use dlock_ports::Clock as _;

struct Etcd;

struct RealTime;

#[async_trait]
impl OwnTime for RealTime {
    fn now(&self) -> Moment {
        SystemClock::new().now()
    }

    fn deadline(&self, budget: Duration) -> Deadline {
        Deadline::at(self.now().after(budget))
    }

    async fn pass(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[async_trait]
impl Harness for Etcd {
    fn name(&self) -> &str {
        "etcd"
    }

    /// Each waits for its leases to end.
    fn cases(&self) -> u32 {
        2
    }

    async fn fresh(&self, _clock: &ManualClock) -> Result<Subject, String> {
        let seed = fresh_seed();
        let mut config = EtcdConfig::at(etcd_endpoints());
        config.prefix = format!("/model/{seed:016x}");
        let entropy = Arc::new(SeededEntropy::new(seed));
        let store = EtcdStore::connect(config, Arc::new(SystemClock::new()), entropy)
            .await
            .map_err(|error| error.to_string())?;
        Ok(Subject {
            backend: store.backend(),
            expiry: Expiry::Window {
                early: Duration::from_millis(200),
                late: Duration::from_millis(1_500),
                time: Box::new(RealTime),
            },
            drops_in_order: false,
            guard: Box::new(Keep(())),
        })
    }
}

macro_rules! from_seeds {
    ($($name:ident: $seed:literal,)*) => {
        $(#[test]
        fn $name() {
            let seen: Seen = search(&Etcd, Judges::Both, $seed)
                .unwrap_or_else(|failure| panic!("{failure}"));
            assert!(seen.contains_key("granted"), "{seen:#?}");
        })*
    };
}

from_seeds! {
    the_etcd_store_answers_as_the_reference_does_1: 1,
    the_etcd_store_answers_as_the_reference_does_2: 2,
    the_etcd_store_answers_as_the_reference_does_3: 3,
    the_etcd_store_answers_as_the_reference_does_4: 4,
    the_etcd_store_answers_as_the_reference_does_5: 5,
    the_etcd_store_answers_as_the_reference_does_6: 6,
    the_etcd_store_answers_as_the_reference_does_7: 7,
    the_etcd_store_answers_as_the_reference_does_8: 8,
}
