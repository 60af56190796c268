//! The etcd store beside the reference, on a real cluster that keeps its own time: the same answers
//! to the same random sequences, lost and dropped replies included.

mod real;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_conformance::stores::{etcd_endpoints, fresh_seed};
use dlock_etcd::{EtcdConfig, EtcdStore};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_model::{Harness, Subject};

struct Etcd;

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
        Ok(real::subject(store.backend(), Duration::from_millis(1_500)))
    }
}

real::from_seeds! {
    Etcd;
    the_etcd_store_answers_as_the_reference_does_1: 1,
    the_etcd_store_answers_as_the_reference_does_2: 2,
    the_etcd_store_answers_as_the_reference_does_3: 3,
    the_etcd_store_answers_as_the_reference_does_4: 4,
    the_etcd_store_answers_as_the_reference_does_5: 5,
    the_etcd_store_answers_as_the_reference_does_6: 6,
    the_etcd_store_answers_as_the_reference_does_7: 7,
    the_etcd_store_answers_as_the_reference_does_8: 8,
}
