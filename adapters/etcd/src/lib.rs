//! The etcd store: production, many servers, one cluster.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `error` | what it can be told; the driver's errors as ours |
//! | `keys`, `codec`, `numbering` | what lies where, in which form, under which number |
//! | `members` | the cluster's members, and which of them is spoken to |
//! | `wire` | the one place through which everything goes to etcd and comes back |
//! | `history` | the highest revision known, and a cluster that goes back |
//! | `leases` | what is left of a lease, and giving it its whole lifetime again, provably |
//! | `store`, `grant` | grants: the port [`LockStore`](dlock_ports::LockStore), and its one transaction |
//! | `session`, `forget` | sessions, and attempts that are settled for good |
//! | `floor`, `directory` | raising floors, listing |
//! | `state_file` | the highest revision known, over a restart |
//! | `watch`, `wait` | one watch per store, and who waits for what it sees |
//!
//! A grant is a key that its granting transaction wrote and that nobody writes again: the revision
//! of that transaction is the token for the grant's whole life (trap 1). A session is a lease with a
//! key of its own; expiry is the lease's end and needs no reaper. Ownership is decided by
//! transactions only, never by what some member says it remembers.
//!
//! What etcd does not promise: after its leader was paused it can end a lease early (trap 4). Then
//! fencing is the only protection.

mod codec;
mod config;
mod directory;
mod error;
mod floor;
mod forget;
mod grant;
mod history;
mod keys;
mod leases;
mod members;
mod numbering;
mod session;
mod state_file;
mod store;
mod wait;
mod watch;
mod wire;

use std::sync::Arc;

use dlock_domain::{Deadline, Invariant, LockError, Namespace, Result};
use dlock_ports::{Backend, Clock, Entropy};
use etcd_client::{Txn, TxnOp};

pub use config::{EtcdConfig, Ping, Tls, User};

use error::Effect;
use forget::Marks;
use grant::PrivateAttempts;
use history::History;
use keys::Keys;
use numbering::{Meta, Numberings};
use watch::Hub;
use wire::Wire;

/// A connected store. Cheap to clone; the connections close when the last clone and the last part
/// of its [`Backend`] are dropped.
#[derive(Clone)]
pub struct EtcdStore {
    inner: Arc<Inner>,
}

/// Why a store could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The cluster does not let this user in.
    #[error("etcd at {endpoints}: {source}")]
    Denied {
        /// The addresses.
        endpoints: String,
        /// Why, in the cluster's words.
        source: etcd_client::Error,
    },
    /// What was said of the cluster cannot stand.
    #[error("etcd at {endpoints}: {source}")]
    Cluster {
        /// The addresses.
        endpoints: String,
        /// Why, in the driver's words.
        source: etcd_client::Error,
    },
    /// The file with the highest revision cannot be read or written.
    #[error("lock.state_file: {0}")]
    StateFile(#[source] std::io::Error),
}

pub(crate) struct Inner {
    wire: Arc<Wire>,
    keys: Keys,
    entropy: Arc<dyn Entropy>,
    numberings: Arc<Numberings>,
    privates: PrivateAttempts,
    marks: Marks,
    hub: Arc<Hub>,
    /// Holds the state file against other servers.
    _own_file: Option<std::fs::File>,
}

impl EtcdStore {
    /// Connects to the cluster. Call it inside a tokio runtime.
    ///
    /// No member need be there yet: calls fail as transient until one is. A user is let in first.
    ///
    /// # Errors
    /// Addresses or certificates that are none, a user who is not let in, a file that cannot be read
    /// or written; each says which.
    pub async fn connect(
        config: EtcdConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> std::result::Result<Self, ConnectError> {
        let remembered = match &config.state_file {
            Some(path) => Some(state_file::open(path).map_err(ConnectError::StateFile)?),
            None => None,
        };
        let (remembered, own_file) = remembered.unzip();
        let remembered = remembered.unwrap_or_default();
        let numberings = Numberings::new(remembered.namespaces, remembered.ended.len());
        let numberings = Arc::new(numberings);
        let history = History::new(remembered.highest, remembered.ended);
        let wire = Wire::connect(&config, history, clock).await.map_err(|source| {
            let endpoints = config.endpoints.join(", ");
            if error::is_denial(&source) {
                ConnectError::Denied { endpoints, source }
            } else {
                ConnectError::Cluster { endpoints, source }
            }
        })?;
        let wire = Arc::new(wire);
        if let Some(path) = config.state_file.clone() {
            let (wire, numberings) = (Arc::downgrade(&wire), Arc::downgrade(&numberings));
            tokio::spawn(state_file::keep(path, wire, numberings));
        }
        let keys = Keys::new(&config.prefix);
        let hub = Hub::new(Arc::clone(&wire), keys.clone(), &config);
        let inner = Inner {
            wire,
            keys,
            entropy,
            numberings: Arc::clone(&numberings),
            privates: PrivateAttempts::new(),
            marks: Marks::default(),
            hub,
            _own_file: own_file,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What the store offers: everything.
    #[must_use]
    pub fn backend(&self) -> Backend {
        Backend {
            locks: Arc::clone(&self.inner) as _,
            sessions: Arc::clone(&self.inner) as _,
            waiter: Some(Arc::clone(&self.inner) as _),
            directory: Some(Arc::clone(&self.inner) as _),
            floors: Some(Arc::clone(&self.inner) as _),
        }
    }
}

impl Inner {
    /// The namespace's numbering, by which tokens may be mapped.
    ///
    /// # Errors
    /// An incident while the cluster has gone back in its history and nobody raised the floor since
    /// (trap 15).
    pub(crate) async fn numbering(&self, namespace: &Namespace, by: Deadline) -> Result<Meta> {
        if let Some(meta) = self.numberings.recall(namespace) {
            // A transaction that uses it compares it; whether it is high enough shows here.
            if self.still_ahead(namespace, meta).is_ok() {
                return Ok(meta);
            }
        }
        let get = TxnOp::get(self.keys.meta(namespace), None);
        let reply = self.wire.txn(Txn::new().and_then([get]), Effect::Reads, by).await?;
        let meta = Meta::of(reply.one(0))?;
        // The answer itself may have been the one that shows it.
        self.learn(namespace, meta);
        self.still_ahead(namespace, meta)?;
        Ok(meta)
    }

    /// Remembers a numbering that was seen.
    pub(crate) fn learn(&self, namespace: &Namespace, meta: Meta) {
        self.numberings.learn(namespace, meta, &self.wire.history.ended());
    }

    /// Whether tokens of this numbering are greater than those that were given before the cluster
    /// went back, if it ever did.
    ///
    /// # Errors
    /// An incident that names the number to raise the floor to.
    pub(crate) fn still_ahead(&self, namespace: &Namespace, meta: Meta) -> Result<()> {
        let ended = self.wire.history.ended();
        let required = self.numberings.required(namespace, meta, &ended);
        if meta.namespace_floor() >= required {
            return Ok(());
        }
        Err(LockError::incident(
            Invariant::TokensRise,
            format!(
                "etcd has gone back in its history: raise the floor of namespace {namespace} to at \
                 least {required}, and above every token that a resource has accepted (`dlock floor \
                 raise`), before anything is granted"
            ),
        ))
    }

    /// Ends a lease that nothing is to be held by, without keeping anybody waiting. Where it does
    /// not succeed the lease ends by itself.
    pub(crate) fn let_go(&self, lease: i64) {
        let wire = Arc::clone(&self.wire);
        let by = Deadline::at(wire.clock.now().after(std::time::Duration::from_secs(10)));
        tokio::spawn(async move {
            if let Err(error) = wire.revoke(lease, by).await {
                tracing::debug!(%error, "a lease is left to end by itself");
            }
        });
    }
}
