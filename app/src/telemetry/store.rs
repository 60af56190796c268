//! A backend that counts its errors, and reports incidents: the one place that every answer of a
//! store passes on its way to the service.

use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, ErrorKind, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome,
    Namespace, OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    Attempt, Backend, Consistency, Directory, FloorControl, HeldGrant, Holder, InsertRequest, Kept,
    ListRequest, LockStore, Page, Raised, RevokeRequest, SessionStore,
};

use super::events::{self, About};
use super::table;
use crate::service::owner_of;

/// The same backend, counted. Its waiter has no errors to count.
pub(crate) fn counted(backend: Backend) -> Backend {
    let store = backend.locks.backend_id();
    Backend {
        locks: Arc::new(Counted { inner: backend.locks, store }),
        sessions: Arc::new(Counted { inner: backend.sessions, store }),
        waiter: backend.waiter,
        directory: backend.directory.map(|inner| Arc::new(Counted { inner, store }) as _),
        floors: backend.floors.map(|inner| Arc::new(Counted { inner, store }) as _),
    }
}

/// A part of a backend, counted. A call that is dropped before its answer counts nowhere.
struct Counted<P: ?Sized> {
    inner: Arc<P>,
    store: &'static str,
}

impl<P: ?Sized> Counted<P> {
    fn see<T>(&self, answer: Result<T>, about: About<'_>) -> Result<T> {
        if let Err(error) = &answer {
            let kind = error.kind();
            metrics::counter!(
                table::STORE_ERRORS, "backend" => self.store, "kind" => kind.name()
            )
            .increment(1);
            if let ErrorKind::InvariantViolated(invariant) = kind {
                metrics::counter!(table::INCIDENTS, "backend" => self.store).increment(1);
                events::lock_incident(invariant, error, about);
            }
        }
        answer
    }
}

#[async_trait]
impl LockStore for Counted<dyn LockStore> {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let (key, owner) = (request.key.clone(), owner_of(&request.holder).clone());
        let answer = self.inner.try_insert(request, by).await;
        self.see(answer, About { owner: Some(&owner), ..About::key(&key) })
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let answer = self.inner.extend(key, token, by).await;
        self.see(answer, About { token: Some(token), ..About::key(key) })
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let answer = self.inner.delete_if_owner(key, token, by).await;
        self.see(answer, About { token: Some(token), ..About::key(key) })
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        let answer = self.inner.read(key, consistency, by).await;
        self.see(answer, About::key(key))
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let answer = self.inner.revoke(key, request, by).await;
        self.see(answer, About::key(key))
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        let answer = self.inner.reap_expired(limit, by).await;
        self.see(answer, About::default())
    }

    fn backend_id(&self) -> &'static str {
        self.store
    }
}

#[async_trait]
impl SessionStore for Counted<dyn SessionStore> {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let answer = self.inner.open(owner.clone(), ttl, id, by).await;
        self.see(answer, About { owner: Some(&owner), ..About::default() })
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let answer = self.inner.keep_alive(id, held, by).await;
        self.see(answer, About::default())
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        let answer = self.inner.look(id, by).await;
        self.see(answer, About::default())
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let answer = self.inner.forget(key, holder, attempt, by).await;
        self.see(answer, About { owner: Some(owner_of(holder)), ..About::key(key) })
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        let answer = self.inner.close(id, by).await;
        self.see(answer, About::default())
    }
}

#[async_trait]
impl Directory for Counted<dyn Directory> {
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        let namespace = request.namespace.clone();
        let answer = self.inner.list(request, by).await;
        self.see(answer, About { namespace: Some(&namespace), ..About::default() })
    }
}

#[async_trait]
impl FloorControl for Counted<dyn FloorControl> {
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        let answer = self.inner.raise(namespace, at_least, by).await;
        self.see(answer, About { namespace: Some(namespace), ..About::default() })
    }
}
