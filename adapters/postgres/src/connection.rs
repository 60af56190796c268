//! A connection whose statements have no names.
//!
//! A pooler in transaction mode gives every transaction another server connection, so a statement
//! that was prepared by name is not there when it is wanted, or is there already, from another
//! client (trap 31). diesel-async's own connection prepares everything by name; this one sends text,
//! parameters and the order to run in one message, as nameless statements.
//!
//! What is asked for before an earlier answer came is sent at once and runs in that order: several
//! statements, begun and committed, cost one journey ([`Wire`](crate::wire::Wire)).

use std::sync::Arc;

use diesel::{
    ConnectionError, ConnectionResult, QueryResult,
    connection::{CacheSize, Instrumentation, InstrumentationEvent},
    deserialize::QueryableByName,
    pg::{Pg, PgMetadataLookup, PgQueryBuilder, PgTypeMetadata},
    query_builder::{
        AsQuery, QueryBuilder, QueryFragment, QueryId, bind_collector::RawBytesBindCollector,
    },
};
use diesel_async::{
    AnsiTransactionManager, AsyncConnection, AsyncConnectionCore, SimpleAsyncConnection,
    pooled_connection::PoolableConnection,
};
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream::BoxStream};
use tokio_postgres::{Client, types::Type};

use crate::{
    error::Failure,
    row::{Parameter, Row},
};

/// A connection. Dropping it says good-bye to the server; [`cut`](Self::cut) does not.
pub(crate) struct Connection {
    line: Line,
    transactions: AnsiTransactionManager,
    silence: Silence,
    /// Reads and writes the socket.
    driver: tokio::task::JoinHandle<()>,
}

/// What is said over a connection. Several may speak at once; they are answered in turn.
#[derive(Clone)]
pub(crate) struct Line(Arc<Client>);

/// Nobody listens to diesel's events here.
struct Silence;

impl Instrumentation for Silence {
    fn on_connection_event(&mut self, _event: InstrumentationEvent<'_>) {}
}

/// All our parameters are of types that every server has.
struct BuiltInOnly;

impl PgMetadataLookup for BuiltInOnly {
    fn lookup_type(&mut self, _name: &str, _schema: Option<&str>) -> PgTypeMetadata {
        PgTypeMetadata::new(0, 0)
    }
}

impl Connection {
    /// Over a client that is connected, and the task that drives it.
    pub(crate) fn new(client: Client, driver: tokio::task::JoinHandle<()>) -> Self {
        let line = Line(Arc::new(client));
        Self { line, transactions: AnsiTransactionManager::default(), silence: Silence, driver }
    }

    /// A handle to speak through.
    pub(crate) fn line(&self) -> Line {
        self.line.clone()
    }

    /// Ends it without a word: whoever is at the other end does not answer.
    pub(crate) fn cut(self) {
        self.driver.abort();
    }
}

type Statement = (String, Vec<(Parameter, Type)>);

impl Line {
    /// Runs statements without parameters. Sent when first polled.
    pub(crate) fn batch(&self, sql: impl Into<String>) -> BoxFuture<'static, Result<(), Failure>> {
        let (client, sql) = (Arc::clone(&self.0), sql.into());
        async move { client.batch_execute(&sql).await.map_err(Failure::from) }.boxed()
    }

    /// Runs a statement and reads all its rows. Sent when first polled.
    pub(crate) fn rows<T>(
        &self,
        query: impl QueryFragment<Pg>,
    ) -> BoxFuture<'static, Result<Vec<T>, Failure>>
    where
        T: QueryableByName<Pg> + Send + 'static,
    {
        let (client, statement) = (Arc::clone(&self.0), statement(&query));
        async move {
            let (sql, parameters) = statement?;
            let mut rows = std::pin::pin!(client.query_typed_raw(&sql, parameters).await?);
            let mut all = Vec::new();
            while let Some(row) = rows.try_next().await? {
                all.push(T::build(&Row::new(row)?).map_err(Failure::unreadable)?);
            }
            Ok(all)
        }
        .boxed()
    }

    async fn count(&self, statement: QueryResult<Statement>) -> QueryResult<usize> {
        let (sql, parameters) = statement?;
        let rows = self.0.query_typed_raw(&sql, parameters).await.map_err(Failure::from)?;
        let mut rows = std::pin::pin!(rows);
        while rows.try_next().await.map_err(Failure::from)?.is_some() {}
        Ok(rows.rows_affected().and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }

    async fn stream(
        &self,
        statement: QueryResult<Statement>,
    ) -> QueryResult<BoxStream<'static, QueryResult<Row>>> {
        let (sql, parameters) = statement?;
        let rows = self.0.query_typed_raw(&sql, parameters).await.map_err(Failure::from)?;
        Ok(rows
            .map(|row| row.map_err(Failure::from).and_then(Row::new).map_err(Into::into))
            .boxed())
    }
}

/// A query as text and parameters.
fn statement(query: &impl QueryFragment<Pg>) -> QueryResult<Statement> {
    let mut text = PgQueryBuilder::default();
    query.to_sql(&mut text, &Pg)?;
    let mut binds = RawBytesBindCollector::<Pg>::new();
    query.collect_binds(&mut binds, &mut BuiltInOnly, &Pg)?;
    let mut parameters = Vec::with_capacity(binds.binds.len());
    for (metadata, bytes) in binds.metadata.iter().zip(binds.binds) {
        let oid = metadata
            .oid()
            .map_err(|error| diesel::result::Error::SerializationError(Box::new(error)))?;
        let of = Type::from_oid(oid).ok_or_else(|| {
            diesel::result::Error::SerializationError("a parameter of an unknown type".into())
        })?;
        parameters.push((Parameter(bytes), of));
    }
    Ok((text.finish(), parameters))
}

impl SimpleAsyncConnection for Connection {
    async fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
        Ok(self.line.batch(query).await?)
    }
}

impl AsyncConnectionCore for Connection {
    type ExecuteFuture<'conn, 'query> = BoxFuture<'conn, QueryResult<usize>>;
    type LoadFuture<'conn, 'query> = BoxFuture<'conn, QueryResult<Self::Stream<'conn, 'query>>>;
    type Stream<'conn, 'query> = BoxStream<'static, QueryResult<Row>>;
    type Row<'conn, 'query> = Row;
    type Backend = Pg;

    fn load<'conn, 'query, T>(&'conn mut self, source: T) -> Self::LoadFuture<'conn, 'query>
    where
        T: AsQuery + 'query,
        T::Query: QueryFragment<Pg> + QueryId + 'query,
    {
        let statement = statement(&source.as_query());
        self.line.stream(statement).boxed()
    }

    fn execute_returning_count<'conn, 'query, T>(
        &'conn mut self,
        source: T,
    ) -> Self::ExecuteFuture<'conn, 'query>
    where
        T: QueryFragment<Pg> + QueryId + 'query,
    {
        let statement = statement(&source);
        self.line.count(statement).boxed()
    }
}

impl AsyncConnection for Connection {
    type TransactionManager = AnsiTransactionManager;

    /// Connections are made by the pool, which knows the certificates and the password.
    async fn establish(_url: &str) -> ConnectionResult<Self> {
        Err(ConnectionError::BadConnection("connections are made by the pool".to_owned()))
    }

    fn transaction_state(&mut self) -> &mut AnsiTransactionManager {
        &mut self.transactions
    }

    fn instrumentation(&mut self) -> &mut dyn Instrumentation {
        &mut self.silence
    }

    fn set_instrumentation(&mut self, _instrumentation: impl Instrumentation) {}

    /// Nothing is prepared, so nothing is kept.
    fn set_prepared_statement_cache_size(&mut self, _size: CacheSize) {}
}

impl PoolableConnection for Connection {
    fn is_broken(&mut self) -> bool {
        self.line.0.is_closed()
    }
}
