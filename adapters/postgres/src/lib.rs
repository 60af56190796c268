//! The PostgreSQL store: for teams that run PostgreSQL already (C1).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `error` | what it can be told; the driver's errors as ours |
//! | `connection`, `row` | a connection without named statements, so that poolers do not matter |
//! | `pool`, `wire` | two pools, and the one place through which transactions go |
//! | `schema`, `sql` | the tables, and every statement |
//! | `rows`, `codec` | answers, and columns as records |
//! | `store`, `grant` | grants: the port [`LockStore`](dlock_ports::LockStore), and how one is made |
//! | `session` | sessions, and attempts that are settled for good |
//! | `floor`, `directory` | raising floors, listing |
//!
//! A grant is live if and only if its session's row is there; expiry is deletion, on the database's
//! own clock, by whoever meets it. Tokens come from one sequence, drawn under the lock's row. There is
//! no waiting in the store ([`ReleaseWaiter`](dlock_ports::ReleaseWaiter)): waiters poll.
//!
//! What PostgreSQL does not promise: after a restore, or when a standby takes over that lagged, the
//! sequence goes back. That is noticed by the database's identity and timeline, and nothing is granted
//! until the floor is raised (trap 29). Its clock must go forward: there is no other.

mod codec;
mod config;
mod connection;
mod directory;
mod error;
mod floor;
mod grant;
mod key;
mod pool;
mod row;
mod rows;
mod schema;
mod session;
#[doc(hidden)]
pub mod sql;
mod store;
mod wire;

use std::sync::Arc;

use dlock_ports::{Backend, Entropy};

pub use config::{AfterFailover, PostgresConfig, Tls, check_schema};
pub use pool::{BadConfig, database_of};
pub use schema::{ConnectError, schema_sql};

use grant::RecentlyHeld;
use pool::{Connector, Pools};
use wire::Wire;

/// A connected store. Cheap to clone; the connections close when the last clone and the last part of
/// its [`Backend`] are dropped.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    wire: Arc<Wire>,
    entropy: Arc<dyn Entropy>,
    recently_held: RecentlyHeld,
    /// Any history of the database will do: by configuration, or because it cannot be asked for.
    any_history: bool,
    knows_history: bool,
    purge_after: std::time::Duration,
}

impl PostgresStore {
    /// Connects to the database, and makes its tables if they are not there. Call it inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// As [`ConnectError`] says; each names what to do.
    ///
    /// # Cancellation
    /// The tables may have been made.
    pub async fn connect(
        config: PostgresConfig,
        clock: Arc<dyn dlock_ports::Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, ConnectError> {
        check_schema(&config.schema).map_err(BadConfig::Schema)?;
        let connector = Arc::new(Connector::of(&config)?);
        let knows_history = schema::prepare(&connector, &config.schema).await?;
        let pools = Pools::new(connector, &config);
        let inner = Inner {
            wire: Arc::new(Wire::new(pools, clock, config.schema.clone())),
            entropy,
            recently_held: RecentlyHeld::default(),
            any_history: config.after_failover == AfterFailover::Trust || !knows_history,
            knows_history,
            purge_after: config.purge_after,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the store offers: everything but being told of releases.
    #[must_use]
    pub fn backend(&self) -> Backend {
        Backend {
            locks: Arc::clone(&self.inner) as _,
            sessions: Arc::clone(&self.inner) as _,
            waiter: None,
            directory: Some(Arc::clone(&self.inner) as _),
            floors: Some(Arc::clone(&self.inner) as _),
        }
    }
}
