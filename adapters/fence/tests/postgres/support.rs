//! A schema of the test's own on the server, and writers in it.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use diesel::{QueryableByName, connection::CacheSize, sql_query, sql_types::BigInt};
use diesel_async::{
    AnsiTransactionManager as Manager, AsyncConnection, AsyncPgConnection, RunQueryDsl as _,
    SimpleAsyncConnection as _, TransactionManager as _,
};
use dlock_fence::{
    FencingToken, Resource, StaleToken,
    postgres::{Fence, FenceError, schema},
};
use dlock_servers::{PgBouncer, PostgresServer, PostgresVersion};

/// The server of each version that all tests share; it goes with the process.
fn server(version: PostgresVersion) -> &'static PostgresServer {
    static OLD: OnceLock<PostgresServer> = OnceLock::new();
    static NEW: OnceLock<PostgresServer> = OnceLock::new();
    let shared = match version {
        PostgresVersion::Old => &OLD,
        PostgresVersion::New => &NEW,
    };
    shared.get_or_init(|| PostgresServer::start(version))
}

/// The database in which each test has a schema.
const DATABASE: &str = "postgres";

pub(crate) struct Place {
    server: &'static PostgresServer,
    pub(crate) fence: Fence,
    pub(crate) schema: String,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

impl Place {
    /// A schema with the guard's table and functions, and a table of what was written.
    pub(crate) async fn new(version: PostgresVersion) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Quotes, so that nothing relies on an easy name.
        let schema_name = format!("Fence \"{}\"", NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Self {
            server: server(version),
            fence: Fence::in_schema(&schema_name).unwrap(),
            schema: schema_name,
        };
        let mut writer = place.anywhere().await;
        let quoted = place.quoted();
        writer.run(&format!("CREATE SCHEMA {quoted}; SET search_path TO {quoted}")).await;
        writer.run(schema()).await;
        writer.run("CREATE TABLE written (n bigserial PRIMARY KEY, token bigint NOT NULL)").await;
        place
    }

    /// A connection that knows nothing of the schema.
    pub(crate) async fn anywhere(&self) -> Writer {
        let connection = AsyncPgConnection::establish(&self.server.url(DATABASE)).await.unwrap();
        Writer { connection, fence: self.fence.clone() }
    }

    /// A pooler in transaction mode before the server, with few connections for all its clients.
    pub(crate) fn pooler(&self) -> PgBouncer {
        PgBouncer::start(self.server, 2)
    }

    /// A connection through it, which prepares no statement by name for later.
    pub(crate) async fn through(&self, pooler: &PgBouncer) -> Writer {
        let mut connection = AsyncPgConnection::establish(&pooler.url(DATABASE)).await.unwrap();
        connection.set_prepared_statement_cache_size(CacheSize::Disabled);
        Writer { connection, fence: self.fence.clone() }
    }

    /// A connection of a writer's own.
    pub(crate) async fn writer(&self) -> Writer {
        let mut writer = self.anywhere().await;
        writer.run(&format!("SET search_path TO {}", self.quoted())).await;
        writer
    }

    /// Runs a script with `psql`, as of other languages: rows, or what the server said to the
    /// first statement that failed, with its state.
    pub(crate) fn psql(&self, script: &str) -> Result<Vec<Vec<String>>, String> {
        let path = format!("SET search_path TO {};", self.quoted());
        let script = format!("\\set VERBOSITY verbose\n{path}\n{script};\n");
        tokio::task::block_in_place(|| self.server.try_query(DATABASE, &script))
    }

    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.schema.replace('"', "\"\""))
    }
}

pub(crate) struct Writer {
    pub(crate) connection: AsyncPgConnection,
    fence: Fence,
}

impl Writer {
    pub(crate) async fn run(&mut self, sql: &str) {
        self.connection.batch_execute(sql).await.unwrap();
    }

    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let row: Number = sql_query(sql).get_result(&mut self.connection).await.unwrap();
        row.number
    }

    /// The mark, where there is one resource.
    pub(crate) async fn mark(&mut self) -> i64 {
        self.number("SELECT coalesce(max(mark), 0) AS number FROM dlock_fence").await
    }

    pub(crate) async fn begin(&mut self) {
        self.begin_at("READ COMMITTED").await;
    }

    pub(crate) async fn begin_at(&mut self, isolation: &str) {
        let sql = format!("BEGIN ISOLATION LEVEL {isolation}");
        Manager::begin_transaction_sql(&mut self.connection, &sql).await.unwrap();
    }

    pub(crate) async fn begin_at_savepoint(&mut self) {
        Manager::begin_transaction(&mut self.connection).await.unwrap();
    }

    pub(crate) async fn commit(&mut self) {
        Manager::commit_transaction(&mut self.connection).await.unwrap();
    }

    pub(crate) async fn roll_back(&mut self) {
        Manager::rollback_transaction(&mut self.connection).await.unwrap();
    }

    /// Shows a token, in the transaction that is open.
    pub(crate) async fn pass(&mut self, number: u64) -> Result<(), FenceError> {
        self.fence.pass(&mut self.connection, &batch(), token(number)).await
    }

    /// A whole transaction: shows its token and writes it down.
    pub(crate) async fn write(&mut self, number: u64) -> Result<(), FenceError> {
        let fence = self.fence.clone();
        let transaction = self.connection.transaction(async |connection| {
            fence.pass(connection, &batch(), token(number)).await?;
            let sql = format!("INSERT INTO written (token) VALUES ({number})");
            connection.batch_execute(&sql).await?;
            Ok(())
        });
        transaction.await
    }

    /// The tokens of what was written, in that order.
    pub(crate) async fn written(&mut self) -> Vec<i64> {
        let sql = "SELECT token AS number FROM written ORDER BY n";
        let rows: Vec<Number> = sql_query(sql).load(&mut self.connection).await.unwrap();
        rows.into_iter().map(|row| row.number).collect()
    }

    /// The server's process behind this connection.
    pub(crate) async fn pid(&mut self) -> i64 {
        self.number("SELECT pg_backend_pid()::bigint AS number").await
    }

    /// Returns when that process waits for somebody else's lock. Fails when it never does.
    pub(crate) async fn until_waits(&mut self, pid: i64) {
        let sql = format!("SELECT cardinality(pg_blocking_pids({pid}))::bigint AS number");
        for _ in 0..3_000 {
            if self.number(&sql).await > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("it does not wait");
    }
}

pub(crate) fn batch() -> Resource {
    Resource::new("payments/batch-17").unwrap()
}

pub(crate) fn token(number: u64) -> FencingToken {
    FencingToken::from_user(number).unwrap()
}

/// A refusal with both tokens.
#[track_caller]
pub(crate) fn assert_stale(ended: Result<(), FenceError>, presented: u64, highest: u64) {
    let wanted = StaleToken { presented: token(presented), highest: token(highest) };
    match ended {
        Err(FenceError::Stale(stale)) => assert_eq!(stale, wanted),
        other => panic!("{other:?}, not {wanted}"),
    }
}

/// A serialization failure: the caller's own database error.
#[track_caller]
pub(crate) fn assert_serialization(ended: Result<(), FenceError>) {
    use diesel::result::{DatabaseErrorKind::SerializationFailure, Error::DatabaseError};
    match ended {
        Err(FenceError::Database(DatabaseError(SerializationFailure, _))) => {}
        other => panic!("{other:?}, not 40001"),
    }
}
