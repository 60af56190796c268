//! The embedded store in lockstep with the reference, on one clock: the same answers to the same
//! random sequences, lost and dropped replies included.

use std::sync::Arc;

use async_trait::async_trait;
use dlock_embedded::{EmbeddedConfig, EmbeddedStore};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_model::{Expiry, Harness, Judges, Keep, Subject, search};

struct Embedded;

#[async_trait]
impl Harness for Embedded {
    fn name(&self) -> &str {
        "embedded"
    }

    /// Each case makes a file, and each write of it waits for the disk.
    fn cases(&self) -> u32 {
        80
    }

    async fn fresh(&self, clock: &ManualClock) -> Result<Subject, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let config = EmbeddedConfig::at(folder.path().join("data"));
        let entropy = Arc::new(SeededEntropy::new(2));
        let store = EmbeddedStore::open(config, Arc::new(clock.clone()), entropy)
            .map_err(|error| error.to_string())?;
        Ok(Subject {
            backend: store.backend(),
            expiry: Expiry::Exact,
            drops_in_order: true,
            guard: Box::new(Keep(folder)),
        })
    }
}

#[test]
fn the_embedded_store_answers_as_the_reference_does() {
    let seen = search(&Embedded, Judges::Both, 1).unwrap_or_else(|failure| panic!("{failure}"));
    for what in ["granted", "recognised", "released", "expired with grants", "revoked", "dropped"] {
        assert!(seen.contains_key(what), "{what:?} was never seen: {seen:#?}");
    }
}
