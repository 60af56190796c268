//! A session that several locks share.

use std::{fmt, sync::Arc};

use dlock_domain::{LockError, OwnerId, Result, Ttl};
use tokio::runtime::Handle;

use super::{
    LockBuilder, Locks,
    hold::{Hold, Kind},
};

/// An open session with one keeper for all its locks: what a keep-alive costs does not grow with
/// their number. Clones are the same session.
///
/// It is kept while a clone or a guard of it lives. When the last is dropped it is closed in the
/// background, best effort like the drop of a guard.
#[derive(Clone)]
pub struct LockSession {
    hold: Arc<Hold>,
    locks: Locks,
}

impl LockSession {
    pub(super) async fn open(locks: &Locks, owner: OwnerId, ttl: Ttl) -> Result<Self> {
        let runtime = Handle::current();
        let session = locks.shared.service.open_session(owner, ttl).await?;
        let hold = Hold::start(locks.shared.clone(), runtime, session, Kind::Many);
        Ok(Self { hold, locks: locks.clone() })
    }

    /// The lock of this name, to be acquired in this session.
    pub fn lock(&self, name: &str) -> LockBuilder {
        self.locks.lock(name).session(self)
    }

    /// The session's label for people.
    #[must_use]
    pub fn owner(&self) -> &OwnerId {
        self.hold.owner()
    }

    /// Its effective lifetime without being kept.
    #[must_use]
    pub fn ttl(&self) -> Ttl {
        self.hold.ttl()
    }

    /// Closes the session and frees all its locks in one store operation, also those whose guards
    /// still live: they are lost from this moment on. `false` if it was gone already.
    ///
    /// # Errors
    /// As every call; transient ones are repeated for at most the lifetime, after which the lease
    /// has ended.
    ///
    /// # Cancellation
    /// Dropped half way, it goes on in the background.
    pub async fn close(self) -> Result<bool> {
        self.hold.close().await.unwrap_or_else(|died| {
            Err(LockError::contention("the runtime is going down").maybe_applied().caused_by(died))
        })
    }

    pub(super) const fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }
}

impl fmt::Debug for LockSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockSession").field("owner", self.owner()).finish_non_exhaustive()
    }
}
