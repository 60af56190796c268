//! Leader election: whoever holds the lock leads, and stops before its lease can end.
//!
//! `cargo run -p dlock --example leader`

use std::{collections::BTreeMap, error::Error, sync::Arc, time::Duration};

use dlock::{Locks, OsEntropy, Service, ServiceConfig, SystemClock, wiring};
use tokio::task::JoinSet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(OsEntropy));
    let backend = wiring::memory(clock.clone(), entropy.clone());
    let service = Service::new(backend, clock.clone(), entropy.clone(), ServiceConfig::default());
    let locks = Locks::new(service, clock, entropy);

    let mut candidates = JoinSet::new();
    for name in ["ada", "grace", "margaret"] {
        let lock = locks.lock("leader").owner(name).wait(Duration::from_secs(60));
        candidates.spawn(lock.with_lock(move |term, cancelled| async move {
            // Real work goes on until it is cancelled; this term ends by itself.
            let done = cancelled.run_until_cancelled(tokio::task::yield_now()).await;
            (term, name, done.is_some())
        }));
    }
    let mut terms = BTreeMap::new();
    while let Some(ended) = candidates.join_next().await {
        let (term, name, undisturbed) = ended??;
        assert!(undisturbed);
        terms.insert(term, name);
    }
    // Everybody led once, under a term of their own; the waiting ones took over in turn.
    assert_eq!(terms.len(), 3);
    Ok(())
}
