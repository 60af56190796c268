//! One lock, before it is held.

use std::{fmt, sync::Arc, time::Duration};

use dlock_domain::{Applied, LockError, LockKey, LockName, Namespace, OwnerId, Result, Ttl};
use dlock_ports::{AcquireRequest, Acquired, SessionRef};
use tokio::runtime::Handle;

use super::{
    AcquireError, LockGuard, LockSession,
    hold::Hold,
    locks::{Defaults, Shared},
    pending::Pending,
};

/// One lock: what is asked, and for whom. Nothing happens before
/// [`acquire`](LockBuilder::acquire) or [`with_lock`](LockBuilder::with_lock).
#[must_use = "nothing is acquired before `acquire`"]
pub struct LockBuilder {
    shared: Arc<Shared>,
    name: Result<LockName>,
    namespace: Result<Namespace>,
    holder: Asked,
    wait: Duration,
}

/// For whom.
enum Asked {
    /// A session of the lock's own.
    Private { owner: Result<OwnerId>, ttl: Result<Ttl> },
    /// A session that several locks share; with the name of what was said that only it can say.
    Session { hold: Arc<Hold>, contradicted: Option<&'static str> },
}

impl LockBuilder {
    pub(super) fn new(shared: Arc<Shared>, defaults: Defaults, name: &str) -> Self {
        Self {
            shared,
            name: LockName::new(name),
            namespace: Ok(defaults.namespace),
            holder: Asked::Private { owner: Ok(defaults.owner), ttl: Ok(defaults.ttl) },
            wait: defaults.wait,
        }
    }

    /// The namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Namespace::new(namespace);
        self
    }

    /// How long the lock lives without being kept: 1 s to 24 h, whole milliseconds. While its
    /// guard lives it is kept, however short this is; it bounds how long others wait for a holder
    /// that died.
    pub fn ttl(mut self, new: Duration) -> Self {
        match &mut self.holder {
            Asked::Private { ttl, .. } => *ttl = Ttl::from_duration(new),
            Asked::Session { contradicted, .. } => *contradicted = Some("ttl_ms"),
        }
        self
    }

    /// How long to wait for the lock while somebody else has it: 0 (ask once) to 1 h.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The label, for people, of whoever holds the lock.
    pub fn owner(mut self, new: &str) -> Self {
        match &mut self.holder {
            Asked::Private { owner, .. } => *owner = OwnerId::new(new),
            Asked::Session { contradicted, .. } => *contradicted = Some("owner"),
        }
        self
    }

    /// Acquires in this session, whose owner and lifetime then count: whatever was said of them
    /// before is forgotten, and saying it afterwards is an error.
    pub fn session(mut self, session: &LockSession) -> Self {
        self.holder = Asked::Session { hold: session.hold().clone(), contradicted: None };
        self
    }

    /// Acquires the lock; the guard keeps it until it is released or dropped.
    ///
    /// # Errors
    /// [`AcquireError::NotGranted`] if somebody else has it for the whole wait;
    /// [`AcquireError::Failed`] otherwise, with `InvalidArgument` for a value that is none and
    /// `LockLost` for a grant whose lease had ended by the time it arrived, and `Limit` while
    /// 10,000 attempts that were given up are still being settled.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancellation
    /// Dropping the future, at any await, leaves nothing held: what the store may have granted is
    /// settled by a task of its own (INV-09, trap 38).
    pub async fn acquire(self) -> std::result::Result<LockGuard, AcquireError> {
        let key = LockKey::new(self.namespace?, self.name?);
        let (by, ttl, hold) = self.holder.checked()?;
        let shared = self.shared;
        // Before the first await: whatever happens from here on, somebody sees to the attempt.
        let pending = Pending::new(shared.clone(), Handle::current(), key, by, ttl, hold)?;
        let request = AcquireRequest { max_wait: self.wait, ..pending.request() };
        match shared.service.acquire(request).await {
            Ok(Acquired::Granted(handle)) => Ok(pending.granted(handle)?),
            Ok(Acquired::NotGranted { holder }) => {
                pending.resolved();
                // A session's id is its secret, and this one is somebody else's.
                let holder = holder.map(|mut info| {
                    info.session = None;
                    info
                });
                Err(AcquireError::NotGranted { holder })
            }
            Err(error) => {
                if error.applied() == Applied::No {
                    pending.resolved();
                }
                Err(error.into())
            }
        }
    }
}

impl Asked {
    fn checked(self) -> Result<(SessionRef, Ttl, Option<Arc<Hold>>)> {
        match self {
            Self::Private { owner, ttl } => {
                let (owner, ttl) = (owner?, ttl?);
                Ok((SessionRef::Private { owner, ttl }, ttl, None))
            }
            Self::Session { contradicted: Some(field), .. } => {
                Err(LockError::invalid(field, "is the session's, and the same for all its locks"))
            }
            Self::Session { hold, contradicted: None } => {
                Ok((SessionRef::Id(hold.session()), hold.ttl(), Some(hold)))
            }
        }
    }
}

impl fmt::Debug for LockBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
