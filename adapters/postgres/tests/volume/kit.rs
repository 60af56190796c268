//! What the tests here share.

use std::{sync::Arc, time::Duration};

use dlock_conformance::SystemClock;
use dlock_conformance::stores::{Direct, fresh_seed, postgres_url};
use dlock_domain::{AttemptId, Deadline, LockHandle, LockKey, LockName, Namespace, OwnerId, Ttl};
use dlock_memory::SeededEntropy;
use dlock_ports::{Attempt, Backend, Clock as _, Holder, InsertRequest, Intent};
use dlock_postgres::{PostgresConfig, PostgresStore};

/// A schema of the test's own, dropped when the test is over.
pub(crate) struct Place {
    pub(crate) schema: String,
    pub(crate) raw: tokio_postgres::Client,
}

impl Place {
    pub(crate) async fn new() -> Self {
        let (raw, connection) =
            tokio_postgres::connect(&postgres_url::<Direct>(), tokio_postgres::NoTls)
                .await
                .unwrap_or_else(|error| panic!("the database is there: {error}"));
        tokio::spawn(connection);
        let schema = format!("volume_{:016x}", fresh_seed());
        Self { schema, raw }
    }

    /// A store here, which forgets idle locks after so long.
    pub(crate) async fn store(&self, purge_after: Duration) -> Backend {
        let mut config = PostgresConfig::at(postgres_url::<Direct>());
        config.schema.clone_from(&self.schema);
        config.purge_after = purge_after;
        let entropy = Arc::new(SeededEntropy::new(fresh_seed()));
        let store = PostgresStore::connect(config, Arc::new(SystemClock::new()), entropy).await;
        let backend = store.unwrap_or_else(|error| panic!("{error}")).backend();
        self.execute(&format!("SET search_path TO \"{}\"", self.schema)).await;
        backend
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.raw.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let row = self.raw.query_one(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get(0)
    }

    pub(crate) async fn finish(self) {
        self.execute(&format!("DROP SCHEMA \"{}\" CASCADE", self.schema)).await;
    }
}

pub(crate) fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::new("default").unwrap(), LockName::new(name).unwrap())
}

pub(crate) fn soon() -> Deadline {
    Deadline::at(SystemClock::new().now().after(Duration::from_secs(60)))
}

/// One attempt of a holder with a session of its own.
pub(crate) async fn try_once(backend: &Backend, key: &LockKey, ttl: Ttl) -> Option<LockHandle> {
    let request = InsertRequest {
        key: key.clone(),
        holder: Holder::Private { owner: OwnerId::new("worker").unwrap(), ttl },
        attempt: AttemptId::from_bits(u128::from(fresh_seed())),
        intent: Intent::Acquire,
    };
    match backend.locks.try_insert(request, soon()).await.unwrap_or_else(|error| panic!("{error}"))
    {
        Attempt::Granted(handle) => Some(handle),
        Attempt::Held(_) => None,
    }
}
