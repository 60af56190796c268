//! A schema of the test's own, stores in it, and plain connections beside them.

use std::{str::FromStr, sync::Arc, time::Duration};

use dlock_conformance::{
    SystemClock,
    kit::Caller,
    stores::{Direct, fresh_seed, postgres_url},
};
use dlock_domain::{Deadline, LockError, SessionId};
use dlock_memory::SeededEntropy;
use dlock_postgres::{ConnectError, PostgresConfig, PostgresStore};
use dlock_servers::PostgresVersion;
use tokio_postgres::{Client, Config, NoTls, config::Host};

/// The password of roles that tests make.
const PASSWORD: &str = "in-a-test";

/// A schema of the test's own with a store's tables in it.
pub(crate) struct Place {
    pub(crate) schema: String,
    url: String,
    seed: u64,
    /// Looks at others, and holds no lock.
    pub(crate) eye: Raw,
}

/// A connection that says whatever a test says.
pub(crate) struct Raw {
    pub(crate) client: Client,
    pub(crate) pid: i32,
}

impl Place {
    /// In the database that all tests share.
    pub(crate) async fn new() -> Self {
        Self::at(postgres_url::<Direct>()).await
    }

    /// In this database.
    pub(crate) async fn at(url: String) -> Self {
        let mut place = Self::bare(url).await;
        drop(place.store().await);
        place
    }

    /// In this database, without tables.
    pub(crate) async fn bare(url: String) -> Self {
        let seed = fresh_seed();
        let schema = format!("trap_{seed:016x}");
        let eye = Raw::connect(&url, &schema).await;
        Self { schema, url, seed, eye }
    }

    /// How a store here is told where it is. Its connections carry the schema as their name.
    pub(crate) fn config(&self) -> PostgresConfig {
        self.config_at(&self.url)
    }

    /// The same by another way.
    pub(crate) fn config_at(&self, url: &str) -> PostgresConfig {
        let mut config = PostgresConfig::at(named(url, &self.schema));
        config.schema.clone_from(&self.schema);
        config.pool = 8;
        config.connect_timeout = Duration::from_secs(10);
        config
    }

    /// A store like that of another server, with nothing in its memory.
    pub(crate) async fn store(&mut self) -> PostgresStore {
        let config = self.config();
        self.connect(config).await
    }

    pub(crate) async fn connect(&mut self, config: PostgresConfig) -> PostgresStore {
        self.try_connect(config).await.unwrap()
    }

    pub(crate) async fn try_connect(
        &mut self,
        config: PostgresConfig,
    ) -> Result<PostgresStore, ConnectError> {
        connect(config, self.next()).await
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.seed += 1;
        self.seed
    }

    /// Somebody who calls such a store, and gives each call twenty seconds.
    pub(crate) async fn caller(&mut self) -> Caller {
        caller(&self.store().await)
    }

    pub(crate) async fn caller_with(&mut self, config: PostgresConfig) -> Caller {
        caller(&self.connect(config).await)
    }

    /// A plain connection whose statements find our tables.
    pub(crate) async fn raw(&self) -> Raw {
        Raw::connect(&self.url, &self.schema).await
    }

    /// Waits until exactly so many connections of this test wait for a lock.
    pub(crate) async fn waiting(&self, many: i64) {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_activity \
             WHERE application_name = '{}' AND wait_event_type = 'Lock'",
            self.schema
        );
        self.eye.becomes(&sql, many).await;
    }

    /// A role that may connect.
    pub(crate) async fn bare_role(&mut self) -> String {
        let role = format!("role_{:016x}", self.next());
        self.eye.run(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")).await;
        role
    }

    /// A role that may use our tables and nothing else, with these settings, and its address.
    pub(crate) async fn role(&mut self, settings: &[&str]) -> (String, String) {
        let role = self.bare_role().await;
        let schema = &self.schema;
        for setting in settings {
            self.eye.run(&format!("ALTER ROLE {role} SET {setting}")).await;
        }
        self.eye
            .run(&format!(
                "GRANT USAGE ON SCHEMA \"{schema}\" TO {role}; \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"{schema}\" TO {role}; \
                 GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA \"{schema}\" TO {role}"
            ))
            .await;
        let url = self.url_of(&role);
        (role, url)
    }

    /// The database's address for a role of ours.
    pub(crate) fn url_of(&self, role: &str) -> String {
        let (host, port) = host_and_port(&self.url);
        let config = Config::from_str(&self.url).unwrap();
        let database = config.get_dbname().unwrap();
        format!("postgres://{role}:{PASSWORD}@{host}:{port}/{database}")
    }

    /// Roles belong to the whole server.
    pub(crate) async fn drop_role(&self, role: &str) {
        self.eye
            .run(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                 WHERE usename = '{role}'; DROP OWNED BY {role}; DROP ROLE {role}"
            ))
            .await;
    }
}

impl Raw {
    pub(crate) async fn connect(url: &str, schema: &str) -> Self {
        let (client, connection) =
            tokio_postgres::connect(&named(url, schema), NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("SET search_path TO \"{schema}\"")).await.unwrap();
        let row = client.query_typed("SELECT pg_backend_pid()", &[]).await.unwrap();
        Self { client, pid: row[0].get(0) }
    }

    /// Runs statements.
    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The one number that this answers.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let rows = self.client.query_typed(sql, &[]).await;
        rows.unwrap_or_else(|error| panic!("{sql}: {error:?}"))[0].get(0)
    }

    /// What this answers, row after row, each as one text.
    pub(crate) async fn texts(&self, sql: &str) -> Vec<String> {
        let rows = self.client.query_typed(sql, &[]).await;
        let rows = rows.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Waits until this answers that number.
    pub(crate) async fn becomes(&self, sql: &str, number: i64) {
        let mut last = None;
        for _ in 0..3_000 {
            let now = self.number(sql).await;
            if now == number {
                return;
            }
            last = Some(now);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("did not come about: {number}, but {last:?}: {sql}");
    }
}

pub(crate) async fn connect(
    config: PostgresConfig,
    seed: u64,
) -> Result<PostgresStore, ConnectError> {
    PostgresStore::connect(config, Arc::new(SystemClock::new()), Arc::new(SeededEntropy::new(seed)))
        .await
}

pub(crate) fn caller(store: &PostgresStore) -> Caller {
    Caller::on(store.backend(), Arc::new(SystemClock::new()), Duration::from_secs(20))
}

/// Asks again for as long as the answer is transient, half a minute at most.
pub(crate) async fn in_the_end<T, F: Future<Output = Result<T, LockError>>>(
    mut ask: impl FnMut() -> F,
) -> T {
    let mut last = None;
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

/// The version of the shared server, for servers of a test's own: the suite runs once on each.
pub(crate) async fn version() -> PostgresVersion {
    let shared = Raw::connect(&postgres_url::<Direct>(), "public").await;
    let number =
        shared.number("SELECT current_setting('server_version_num')::bigint / 10000").await;
    let known = [PostgresVersion::Old, PostgresVersion::New];
    let same = |version: &PostgresVersion| version.to_string() == number.to_string();
    known.into_iter().find(same).unwrap_or(PostgresVersion::Old)
}

/// A deadline that is near.
pub(crate) fn soon(caller: &Caller, millis: u64) -> Deadline {
    Deadline::at(caller.now().after(Duration::from_millis(millis)))
}

/// A session's id, as SQL.
pub(crate) fn bytes(id: SessionId) -> String {
    format!("'\\x{:032x}'::bytea", id.bits())
}

pub(crate) fn host_and_port(url: &str) -> (String, u16) {
    let config = Config::from_str(url).unwrap();
    let Some(Host::Tcp(host)) = config.get_hosts().first() else { panic!("no host: {url}") };
    (host.clone(), config.get_ports().first().copied().unwrap_or(5_432))
}

fn named(url: &str, name: &str) -> String {
    let sign = if url.contains('?') { '&' } else { '?' };
    format!("{url}{sign}application_name={name}")
}
