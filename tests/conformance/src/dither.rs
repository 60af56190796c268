//! A store that dawdles: each call yields a few times before and after, as chance has it, so that
//! callers can be dropped at ever different awaits.

use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, OwnerId, Result,
    Session, SessionId, Ttl,
};
use dlock_ports::{
    Attempt, Backend, Consistency, Entropy, HeldGrant, Holder, InsertRequest, Kept, LockStore,
    RevokeRequest, SessionStore,
};

/// The backend, dawdling. Capabilities pass untouched.
#[must_use]
pub fn dithering(backend: &Backend, entropy: Arc<dyn Entropy>) -> Backend {
    let store = Arc::new(Dithering {
        locks: Arc::clone(&backend.locks),
        sessions: Arc::clone(&backend.sessions),
        entropy,
    });
    Backend { locks: store.clone(), sessions: store, ..backend.clone() }
}

struct Dithering {
    locks: Arc<dyn LockStore>,
    sessions: Arc<dyn SessionStore>,
    entropy: Arc<dyn Entropy>,
}

impl Dithering {
    async fn dawdle<T>(&self, call: impl Future<Output = T> + Send) -> T {
        self.pause().await;
        let answer = call.await;
        self.pause().await;
        answer
    }

    async fn pause(&self) {
        for _ in 0..self.entropy.jitter() % 4 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl LockStore for Dithering {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        self.dawdle(self.locks.try_insert(request, by)).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.dawdle(self.locks.extend(key, token, by)).await
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.dawdle(self.locks.delete_if_owner(key, token, by)).await
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.dawdle(self.locks.read(key, consistency, by)).await
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        self.dawdle(self.locks.revoke(key, request, by)).await
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.dawdle(self.locks.reap_expired(limit, by)).await
    }

    fn backend_id(&self) -> &'static str {
        self.locks.backend_id()
    }
}

#[async_trait]
impl SessionStore for Dithering {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        self.dawdle(self.sessions.open(owner, ttl, id, by)).await
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        self.dawdle(self.sessions.keep_alive(id, held, by)).await
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        self.dawdle(self.sessions.look(id, by)).await
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        self.dawdle(self.sessions.forget(key, holder, attempt, by)).await
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        self.dawdle(self.sessions.close(id, by)).await
    }
}
