//! Somebody who calls a store.

use core::time::Duration;
use std::sync::Arc;

use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, Moment, Result,
    Session, SessionId, Ttl, WallTime,
};
use dlock_ports::{
    Attempt, Backend, Clock, Consistency, HeldGrant, Holder, InsertRequest, Intent, Kept, Observed,
};

use super::{attempt, granted, held, owner, revocation};
use crate::Harness;

/// Somebody who calls a store, giving every call the same budget.
#[derive(Clone)]
pub struct Caller {
    /// The store.
    pub backend: Backend,
    clock: Arc<dyn Clock>,
    budget: Duration,
}

/// A caller of the harness's store.
pub fn a<H: Harness>(h: &H) -> Caller {
    Caller::new(h, h.backend())
}

/// A caller of the same store through another server or process.
pub fn b<H: Harness>(h: &H) -> Caller {
    Caller::new(h, h.backend_b())
}

impl Caller {
    /// A caller of this store.
    pub fn new<H: Harness>(h: &H, backend: Backend) -> Self {
        Self::on(backend, h.clock(), h.budget())
    }

    /// A caller outside any harness.
    pub fn on(backend: Backend, clock: Arc<dyn Clock>, budget: Duration) -> Self {
        Self { backend, clock, budget }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Now, on the wall.
    #[must_use]
    pub fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    /// The deadline of a call that begins now.
    #[must_use]
    pub fn by(&self) -> Deadline {
        Deadline::at(self.now().after(self.budget))
    }

    /// Opens a session, which must succeed.
    pub async fn open(&self, name: &str, ttl: Ttl) -> Session {
        self.try_open(name, ttl, None).await.expect("a session opens")
    }

    /// Opens a session.
    ///
    /// # Errors
    /// The store's.
    pub async fn try_open(&self, name: &str, ttl: Ttl, id: Option<SessionId>) -> Result<Session> {
        self.backend.sessions.open(owner(name), ttl, id, self.by()).await
    }

    /// One shot.
    ///
    /// # Errors
    /// The store's.
    pub async fn shot(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        intent: Intent,
    ) -> Result<Attempt> {
        let request = InsertRequest { key: key.clone(), holder: holder.clone(), attempt, intent };
        self.backend.locks.try_insert(request, self.by()).await
    }

    /// One shot to acquire, under this attempt.
    ///
    /// # Errors
    /// The store's.
    pub async fn insert(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
    ) -> Result<Attempt> {
        self.shot(key, holder, attempt, Intent::Acquire).await
    }

    /// Takes a lock, which must be granted.
    pub async fn take(&self, key: &LockKey, holder: &Holder) -> LockHandle {
        granted(self.insert(key, holder, attempt()).await)
    }

    /// Takes a lock under this attempt, which must be granted.
    pub async fn take_as(&self, key: &LockKey, holder: &Holder, attempt: AttemptId) -> LockHandle {
        granted(self.insert(key, holder, attempt).await)
    }

    /// Shoots at a lock that must be held.
    pub async fn meet(&self, key: &LockKey, holder: &Holder) -> Observed {
        held(self.insert(key, holder, attempt()).await)
    }

    /// Extends the lease behind a grant.
    pub async fn extend(&self, handle: &LockHandle) -> Option<LockHandle> {
        self.extend_token(&handle.key, handle.token).await
    }

    /// Extends the lease behind whatever this key and token name.
    pub async fn extend_token(&self, key: &LockKey, token: FencingToken) -> Option<LockHandle> {
        self.backend.locks.extend(key, token, self.by()).await.expect("extend answers")
    }

    /// Releases a grant.
    pub async fn release(&self, handle: &LockHandle) -> bool {
        self.release_token(&handle.key, handle.token).await
    }

    /// Releases whatever this key and token name.
    pub async fn release_token(&self, key: &LockKey, token: FencingToken) -> bool {
        self.backend.locks.delete_if_owner(key, token, self.by()).await.expect("release answers")
    }

    /// Reads a lock, linearizably.
    pub async fn read(&self, key: &LockKey) -> Option<LockInfo> {
        let consistency = Consistency::Linearizable;
        self.backend.locks.read(key, consistency, self.by()).await.expect("read answers")
    }

    /// Revokes a lock.
    pub async fn revoke(&self, key: &LockKey, expected: Option<FencingToken>) -> LockOutcome {
        self.backend
            .locks
            .revoke(key, revocation(expected), self.by())
            .await
            .expect("revoke answers")
    }

    /// Removes at most so many ended sessions.
    pub async fn reap(&self, limit: u32) -> u32 {
        self.backend.locks.reap_expired(limit, self.by()).await.expect("reaping answers")
    }

    /// Keeps a session alive and checks these grants.
    pub async fn keep(&self, id: &SessionId, grants: &[&LockHandle]) -> Option<Kept> {
        let listed: Vec<_> = grants.iter().map(|g| (g.key.clone(), g.token)).collect();
        self.keep_listed(id, &listed).await
    }

    /// Keeps a session alive and checks whatever these keys and tokens name.
    pub async fn keep_listed(
        &self,
        id: &SessionId,
        listed: &[(LockKey, FencingToken)],
    ) -> Option<Kept> {
        self.backend.sessions.keep_alive(id, listed, self.by()).await.expect("keep-alive answers")
    }

    /// Looks at a session; its grants in the order of their keys.
    pub async fn look(&self, id: &SessionId) -> Option<(Session, Vec<HeldGrant>)> {
        let (session, mut grants) =
            self.backend.sessions.look(id, self.by()).await.expect("look answers")?;
        grants.sort_by(|x, y| x.key.cmp(&y.key));
        Some((session, grants))
    }

    /// Settles an attempt.
    pub async fn forget(&self, key: &LockKey, holder: &Holder, attempt: AttemptId) -> bool {
        self.try_forget(key, holder, attempt).await.expect("forget answers")
    }

    /// Settles an attempt.
    ///
    /// # Errors
    /// The store's.
    pub async fn try_forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
    ) -> Result<bool> {
        self.backend.sessions.forget(key, holder, attempt, self.by()).await
    }

    /// Closes a session.
    pub async fn close(&self, id: &SessionId) -> bool {
        self.backend.sessions.close(id, self.by()).await.expect("close answers")
    }
}
