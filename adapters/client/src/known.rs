//! What a client remembers: bounded, and never the basis of ownership.
//!
//! Of every session it meets, the owner and the lifetime, which never change; of every session
//! that it made for a lock, which attempt that was.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlock_domain::{AttemptId, LockError, LockKey, OwnerId, Result, SessionId, Ttl};
use lru::LruCache;

use crate::private::Private;

/// Entries of each kind; the least recently used go first. What is forgotten of a private session
/// costs its closing: it ends with its lease.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(16_384).expect("not zero");

/// What is remembered.
pub(crate) struct Known(Mutex<Inner>);

struct Inner {
    sessions: LruCache<SessionId, (OwnerId, Ttl)>,
    made: LruCache<SessionId, Arc<Private>>,
    attempts: LruCache<AttemptId, Arc<Private>>,
}

impl Known {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            sessions: LruCache::new(REMEMBERED),
            made: LruCache::new(REMEMBERED),
            attempts: LruCache::new(REMEMBERED),
        }))
    }

    /// Notes a session's owner and lifetime.
    pub(crate) fn learned(&self, id: SessionId, owner: &OwnerId, ttl: Ttl) {
        self.inner().sessions.put(id, (owner.clone(), ttl));
    }

    pub(crate) fn session(&self, id: SessionId) -> Option<(OwnerId, Ttl)> {
        self.inner().sessions.get(&id).cloned()
    }

    /// The call that a private session was made for.
    pub(crate) fn made(&self, id: SessionId) -> Option<Arc<Private>> {
        self.inner().made.get(&id).map(Arc::clone)
    }

    pub(crate) fn is_of(&self, id: SessionId, private: &Arc<Private>) {
        self.inner().made.put(id, Arc::clone(private));
    }

    /// The private attempt of this name, which is made up if it is new.
    ///
    /// # Errors
    /// `InvalidArgument` (`attempt_id`) when it was used for another lock, owner or lifetime.
    pub(crate) fn private(
        &self,
        attempt: AttemptId,
        key: &LockKey,
        owner: &OwnerId,
        ttl: Ttl,
    ) -> Result<Arc<Private>> {
        let mut inner = self.inner();
        let make = || Arc::new(Private::new(key.clone(), owner.clone(), ttl));
        let private = Arc::clone(inner.attempts.get_or_insert(attempt, make));
        drop(inner);
        private.is_for(key, owner, ttl).then_some(private).ok_or_else(|| {
            LockError::invalid(
                "attempt_id",
                "was used for another lock, owner or lifetime: choose a new one",
            )
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // The caches are whole between any two calls into them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
