//! The PostgreSQL store, connected twice to one real database, on this machine's clock; directly, or
//! through a pooler that gives every transaction another connection.

use core::{marker::PhantomData, time::Duration};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_domain::Ttl;
use dlock_memory::SeededEntropy;
use dlock_ports::{Backend, Clock, Entropy};
use dlock_postgres::{PostgresConfig, PostgresStore};

use super::fresh_seed;
use crate::{Expected, Harness, Limits, kit::millis};

/// The way to a database.
pub trait Way: Send + Sync + 'static {
    /// The variable that says where the way begins.
    const VARIABLE: &'static str;
    /// What is there.
    const WHAT: &'static str;
}

/// Straight to the database.
#[derive(Clone, Copy, Debug)]
pub struct Direct;

/// Through PgBouncer in transaction mode.
#[derive(Clone, Copy, Debug)]
pub struct Pooled;

impl Way for Direct {
    const VARIABLE: &'static str = "TEST_DLOCK_POSTGRES_URL";
    const WHAT: &'static str = "PostgreSQL";
}

impl Way for Pooled {
    const VARIABLE: &'static str = "TEST_DLOCK_PGBOUNCER_URL";
    const WHAT: &'static str = "PgBouncer";
}

/// Two stores on one real database, in a schema of the case's own.
pub struct Postgres<W: Way = Direct> {
    a: PostgresStore,
    b: PostgresStore,
    seed: AtomicU64,
    way: PhantomData<W>,
}

/// Where a way begins, as an address.
///
/// # Panics
/// When nobody said so: a test that silently tests nothing would be worse.
#[must_use]
pub fn url<W: Way>() -> String {
    std::env::var(W::VARIABLE).unwrap_or_else(|_| {
        panic!(
            "no {} to test on: run `cargo xtask test`, which starts one, or set {} to an address \
             such as postgres://user:password@127.0.0.1:5432/database, of a role that may create \
             schemas there",
            W::WHAT,
            W::VARIABLE,
        )
    })
}

/// A store in this schema.
///
/// # Panics
/// When the database cannot be reached.
pub async fn connect<W: Way>(schema: &str, seed: u64) -> PostgresStore {
    let mut config = PostgresConfig::at(url::<W>());
    config.schema = schema.to_owned();
    // Many cases share the server.
    config.pool = 8;
    config.connect_timeout = Duration::from_secs(10);
    PostgresStore::connect(config, Arc::new(SystemClock::new()), Arc::new(SeededEntropy::new(seed)))
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", W::WHAT))
}

#[async_trait]
impl<W: Way> Harness for Postgres<W> {
    async fn start() -> Self {
        let seed = fresh_seed();
        let schema = format!("test_{seed:016x}");
        let a = connect::<W>(&schema, seed).await;
        let b = connect::<W>(&schema, seed + 1).await;
        Self { a, b, seed: AtomicU64::new(seed + 2), way: PhantomData }
    }

    async fn finish(self) {}

    fn expected(&self) -> Expected {
        Expected {
            backend_id: "postgres",
            waiter: false,
            directory: true,
            floors: true,
            reaps: true,
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
        // Whoever meets an ended lease ends it.
        Duration::ZERO
    }

    fn short_ttl(&self) -> Ttl {
        millis(3_000)
    }

    fn budget(&self) -> Duration {
        Duration::from_secs(30)
    }
}
