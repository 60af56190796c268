//! The PostgreSQL store, connected twice to one real database; directly, or through a pooler that gives
//! every transaction another connection.

use core::{marker::PhantomData, time::Duration};
use std::sync::Arc;

use async_trait::async_trait;
use dlock::SystemClock;
use dlock_memory::SeededEntropy;
use dlock_ports::Backend;
use dlock_postgres::{PostgresConfig, PostgresStore};

use super::real::{Pair, Server};
use crate::Expected;

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
pub type Postgres<W = Direct> = Pair<Database<W>>;

/// The database that the environment names, by this way.
#[derive(Clone, Copy, Debug)]
pub struct Database<W: Way>(PhantomData<W>);

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
impl<W: Way> Server for Database<W> {
    const EXPECTED: Expected = Expected {
        backend_id: "postgres",
        waiter: false,
        directory: true,
        floors: true,
        reaps: true,
        limits: false,
        max_settled: 4_096,
    };
    /// Whoever meets an ended lease ends it.
    const SLACK: Duration = Duration::ZERO;

    async fn connect(place: u64, seed: u64) -> Backend {
        connect::<W>(&format!("test_{place:016x}"), seed).await.backend()
    }
}
