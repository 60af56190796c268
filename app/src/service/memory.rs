//! What one server remembers of what it has done: bounded, and never the basis of ownership.
//!
//! Two facts are worth remembering. A token has one session for all time, so whose token it is need
//! not be asked again (C3). And an attempt id belongs to one call: used for another lock or
//! session, or again after its grant has ended, it is refused (C2).

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlock_domain::{AttemptId, FencingToken, LockError, LockHandle, LockKey, Result, SessionId};
use dlock_ports::SessionRef;
use lru::LruCache;

/// Entries of each kind; the least recently used go first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(65_536).expect("not zero");

/// What is remembered.
pub(crate) struct Memory {
    inner: Mutex<Inner>,
}

struct Inner {
    grants: LruCache<(LockKey, FencingToken), (SessionId, AttemptId)>,
    attempts: LruCache<AttemptId, Used>,
}

struct Used {
    key: LockKey,
    by: SessionRef,
    ended: bool,
}

impl Memory {
    pub(crate) fn new() -> Self {
        let inner =
            Inner { grants: LruCache::new(REMEMBERED), attempts: LruCache::new(REMEMBERED) };
        Self { inner: Mutex::new(inner) }
    }

    /// Notes that an attempt id is used for this; refuses one that was used for something else, or
    /// whose grant has ended.
    pub(crate) fn begin(&self, attempt: AttemptId, key: &LockKey, by: &SessionRef) -> Result<()> {
        let mut inner = self.inner();
        if let Some(used) = inner.attempts.get(&attempt) {
            if used.key != *key || used.by != *by {
                return Err(LockError::invalid(
                    "attempt_id",
                    "was used for another lock, session, owner or lifetime: choose a new one",
                ));
            }
            if used.ended {
                return Err(LockError::invalid(
                    "attempt_id",
                    "the grant of this attempt has ended: choose a new one",
                ));
            }
            return Ok(());
        }
        inner.attempts.put(attempt, Used { key: key.clone(), by: by.clone(), ended: false });
        Ok(())
    }

    pub(crate) fn granted(&self, handle: &LockHandle, attempt: AttemptId) {
        let entry = (handle.key.clone(), handle.token);
        self.inner().grants.put(entry, (handle.session, attempt));
    }

    /// Whose token it is, if this server has seen it granted.
    pub(crate) fn session_of(&self, key: &LockKey, token: FencingToken) -> Option<SessionId> {
        self.inner().grants.get(&(key.clone(), token)).map(|(session, _)| *session)
    }

    pub(crate) fn learned(&self, key: &LockKey, token: FencingToken, session: SessionId) {
        // The attempt is not known here: nil is nobody's, ids being random.
        let nobody = AttemptId::from_bits(0);
        self.inner().grants.get_or_insert((key.clone(), token), || (session, nobody));
    }

    /// A grant was released here: its attempt is done.
    pub(crate) fn released(&self, key: &LockKey, token: FencingToken) {
        let mut inner = self.inner();
        let attempt = inner.grants.get(&(key.clone(), token)).map(|(_, attempt)| *attempt);
        if let Some(used) = attempt.and_then(|attempt| inner.attempts.get_mut(&attempt)) {
            used.ended = true;
        }
    }

    /// An attempt was settled here.
    pub(crate) fn settled(&self, attempt: AttemptId) {
        if let Some(used) = self.inner().attempts.get_mut(&attempt) {
            used.ended = true;
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // The caches are whole between any two calls into them.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dlock_domain::{LockName, Moment, Namespace, OwnerId, Ttl, WallTime};

    fn key(name: &str) -> LockKey {
        LockKey::new(Namespace::default(), LockName::new(name).unwrap())
    }

    #[test]
    fn an_attempt_belongs_to_one_call() {
        let memory = Memory::new();
        let (attempt, session) = (AttemptId::from_bits(1), SessionId::from_bits(2));
        let by = SessionRef::Id(session);
        memory.begin(attempt, &key("a"), &by).unwrap();
        memory.begin(attempt, &key("a"), &by).unwrap();
        let misused = memory.begin(attempt, &key("b"), &by).unwrap_err();
        assert_eq!(misused.field(), Some("attempt_id"));
        let other = SessionRef::Id(SessionId::from_bits(3));
        assert!(memory.begin(attempt, &key("a"), &other).is_err());

        let token = FencingToken::from_user(7).unwrap();
        let handle = LockHandle {
            key: key("a"),
            owner: OwnerId::new("me").unwrap(),
            session,
            token,
            ttl: Ttl::from_millis(1_000).unwrap(),
            client_deadline: Moment::from_nanos(0),
            server_expiry: WallTime::from_unix_millis(0),
        };
        memory.granted(&handle, attempt);
        memory.learned(&key("a"), token, SessionId::from_bits(9));
        assert_eq!(memory.session_of(&key("a"), token), Some(session), "immutable");
        memory.released(&key("a"), token);
        assert_eq!(memory.begin(attempt, &key("a"), &by).unwrap_err().field(), Some("attempt_id"));
    }
}
