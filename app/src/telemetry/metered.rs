//! A lock service that times its calls.

use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome, Moment, Namespace,
    OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    AcquireRequest, Acquired, Clock, HeldGrant, Kept, ListRequest, LockService, Page, Raised,
    Released, RevokeRequest, SessionRef,
};

use super::outcome::{AcquireOutcome, ReleaseOutcome, RenewOutcome, RevokeOutcome};
use super::{table, took};

/// A lock service that times acquires, renewals, releases and revocations of another, by what
/// they came to ([`outcome`](super::outcome)); everything else it only passes on.
///
/// # Cancellation
/// As the inner service's. A call that is dropped before its answer counts nowhere: what it came
/// to is not known here.
pub struct Metered {
    inner: Arc<dyn LockService>,
    clock: Arc<dyn Clock>,
    backend: &'static str,
}

impl Metered {
    /// Times the calls of `inner` on `clock`; `backend` is the label (`backend_id`).
    #[must_use]
    pub fn new(inner: Arc<dyn LockService>, clock: Arc<dyn Clock>, backend: &'static str) -> Self {
        Self { inner, clock, backend }
    }

    fn record(&self, metric: &'static str, outcome: Option<&'static str>, began: Moment) {
        if let Some(outcome) = outcome {
            took(metric, self.backend, outcome, self.clock.now().since(began));
        }
    }

    fn acquired(&self, result: &Result<Acquired>, waits: bool, began: Moment) {
        let outcome = AcquireOutcome::of(result, waits).map(AcquireOutcome::word);
        self.record(table::ACQUIRE, outcome, began);
    }
}

#[async_trait]
impl LockService for Metered {
    async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session> {
        self.inner.open_session(owner, ttl).await
    }

    async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        self.inner.keep_session(id, held).await
    }

    async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        self.inner.look_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        self.inner.close_session(id).await
    }

    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        let began = self.clock.now();
        let result = self.inner.try_acquire(request).await;
        self.acquired(&result, false, began);
        result
    }

    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        let (began, waits) = (self.clock.now(), !request.max_wait.is_zero());
        let result = self.inner.acquire(request).await;
        self.acquired(&result, waits, began);
        result
    }

    async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<LockHandle> {
        let began = self.clock.now();
        let result = self.inner.renew(key, token, session).await;
        let outcome = RenewOutcome::of(&result).map(RenewOutcome::word);
        self.record(table::RENEW, outcome, began);
        result
    }

    async fn release(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<Released> {
        let began = self.clock.now();
        let result = self.inner.release(key, token, session).await;
        let outcome = ReleaseOutcome::of(&result).map(ReleaseOutcome::word);
        self.record(table::RELEASE, outcome, began);
        result
    }

    async fn forget(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Released> {
        self.inner.forget(key, session, attempt).await
    }

    async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>> {
        self.inner.inspect(key).await
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.inner.list(request).await
    }

    async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome> {
        let began = self.clock.now();
        let result = self.inner.revoke(key, request).await;
        let outcome = RevokeOutcome::of(&result).map(RevokeOutcome::word);
        self.record(table::REVOKE, outcome, began);
        result
    }

    async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised> {
        self.inner.raise_floor(namespace, at_least).await
    }
}
