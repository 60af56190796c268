//! The etcd store: production, many servers, one cluster.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `config`, `error` | what it can be told; the driver's errors as ours |
//! | `keys`, `codec`, `numbering` | what lies where, in which form, under which number |
//! | `wire` | the one place through which everything goes to etcd and comes back |
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
mod keys;
mod leases;
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
    /// What was said of the cluster cannot stand, or it lets nobody in.
    #[error("etcd at {endpoints}: {source}")]
    Cluster {
        /// The addresses.
        endpoints: String,
        /// Why, in the driver's words.
        source: etcd_client::Error,
    },
    /// The file with the highest revision cannot be read or written.
    #[error("the file with the highest revision: {0}")]
    StateFile(#[source] std::io::Error),
}

pub(crate) struct Inner {
    wire: Arc<Wire>,
    keys: Keys,
    entropy: Arc<dyn Entropy>,
    numberings: Numberings,
    privates: PrivateAttempts,
    marks: Marks,
    hub: Arc<Hub>,
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
        let highest = match &config.state_file {
            Some(path) => {
                let revision = state_file::read(path).map_err(ConnectError::StateFile)?;
                // Found out now and not when it would be needed.
                state_file::write(path, revision).map_err(ConnectError::StateFile)?;
                revision
            }
            None => 0,
        };
        let wire = Wire::connect(&config, highest, clock).await.map_err(|source| {
            ConnectError::Cluster { endpoints: config.endpoints.join(", "), source }
        })?;
        let wire = Arc::new(wire);
        if let Some(path) = config.state_file.clone() {
            tokio::spawn(state_file::keep(path, Arc::downgrade(&wire)));
        }
        let keys = Keys::new(&config.prefix);
        let hub = Hub::new(Arc::clone(&wire), keys.clone(), &config);
        let inner = Inner {
            wire,
            keys,
            entropy,
            numberings: Numberings::new(),
            privates: PrivateAttempts::new(),
            marks: Marks::default(),
            hub,
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
        let went_back = self.wire.went_back_from();
        if went_back.is_none()
            && let Some(meta) = self.numberings.recall(namespace)
        {
            return Ok(meta);
        }
        let get = TxnOp::get(self.keys.meta(namespace), None);
        let reply = self.wire.txn(Txn::new().and_then([get]), Effect::Reads, by).await?;
        let meta = Meta::of(reply.one(0))?;
        // The answer itself may have been the one that shows it.
        self.still_ahead(namespace, meta)?;
        self.numberings.learn(namespace, meta);
        Ok(meta)
    }

    /// Whether tokens of this numbering are greater than those that were given before the cluster
    /// went back, if it ever did.
    pub(crate) fn still_ahead(&self, namespace: &Namespace, meta: Meta) -> Result<()> {
        match self.wire.went_back_from() {
            Some(from) if meta.record.over < from => Err(LockError::incident(
                Invariant::TokensRise,
                format!(
                    "etcd has gone back in its history, from revision {from}: raise the floor of \
                     namespace {namespace} (`dlock floor raise`) before anything is granted"
                ),
            )),
            _ => Ok(()),
        }
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
