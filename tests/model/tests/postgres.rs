//! The PostgreSQL store beside the reference, on a real database that keeps its own time: the same
//! answers to the same random sequences, lost and dropped replies included; directly, and behind a
//! pooler.

mod real;

use std::time::Duration;

use async_trait::async_trait;
use dlock_conformance::stores::{Direct, Pooled, fresh_seed, postgres_connect};
use dlock_memory::ManualClock;
use dlock_model::{Harness, Subject};

/// Whoever meets an ended lease ends it; what is asked just around its end may fall on either side.
const LATE: Duration = Duration::from_millis(200);

struct Postgres;

struct BehindAPooler;

#[async_trait]
impl Harness for Postgres {
    fn name(&self) -> &str {
        "postgres"
    }

    /// Each waits for its leases to end.
    fn cases(&self) -> u32 {
        2
    }

    async fn fresh(&self, _clock: &ManualClock) -> Result<Subject, String> {
        let seed = fresh_seed();
        let store = postgres_connect::<Direct>(&format!("model_{seed:016x}"), seed).await;
        Ok(real::subject(store.backend(), LATE))
    }
}

#[async_trait]
impl Harness for BehindAPooler {
    fn name(&self) -> &str {
        "postgres behind a pooler"
    }

    fn cases(&self) -> u32 {
        2
    }

    async fn fresh(&self, _clock: &ManualClock) -> Result<Subject, String> {
        let seed = fresh_seed();
        let store = postgres_connect::<Pooled>(&format!("model_{seed:016x}"), seed).await;
        Ok(real::subject(store.backend(), LATE))
    }
}

real::from_seeds! {
    Postgres;
    the_postgres_store_answers_as_the_reference_does_1: 1,
    the_postgres_store_answers_as_the_reference_does_2: 2,
    the_postgres_store_answers_as_the_reference_does_3: 3,
    the_postgres_store_answers_as_the_reference_does_4: 4,
    the_postgres_store_answers_as_the_reference_does_5: 5,
    the_postgres_store_answers_as_the_reference_does_6: 6,
}

real::from_seeds! {
    BehindAPooler;
    behind_a_pooler_it_answers_as_the_reference_does_1: 7,
    behind_a_pooler_it_answers_as_the_reference_does_2: 8,
    behind_a_pooler_it_answers_as_the_reference_does_3: 9,
    behind_a_pooler_it_answers_as_the_reference_does_4: 10,
}
