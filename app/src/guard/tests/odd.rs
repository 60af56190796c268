//! A service that does what a test tells it, else what the real one does, and remembers when.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome, Moment,
    Namespace, OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_memory::ManualClock;
use dlock_ports::{
    AcquireRequest, Acquired, Clock, HeldGrant, Kept, ListRequest, LockService, Page, Raised,
    Released, RevokeRequest, SessionRef,
};
use tokio::sync::Notify;

use crate::Service;

/// What to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do {
    /// Refuse it: it had no effect.
    Fail,
    /// Carry it out, and lose the reply.
    Swallow,
    /// Carry it out, and hold the reply back until [`Odd::gate`] is opened.
    HoldReply,
    /// Hold it back until [`Odd::gate`] is opened, then carry it out.
    HoldRequest,
    /// Never answer.
    Hang,
    /// Panic.
    Panic,
}

/// What was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Acquire(AttemptId),
    Keep(Vec<LockKey>),
    Release(FencingToken),
    Forget(AttemptId),
    Close,
    Look,
}

/// Instructions for one kind of call: one by one, then the same for ever.
#[derive(Debug, Default)]
pub(super) struct Script {
    next: Mutex<VecDeque<Option<Do>>>,
    then: Mutex<Option<Do>>,
}

impl Script {
    /// The next calls, `None` being the real thing.
    pub(super) fn next(&self, orders: impl IntoIterator<Item = Option<Do>>) {
        self.next.lock().unwrap().extend(orders);
    }

    /// All calls after those.
    pub(super) fn then(&self, order: Option<Do>) {
        *self.then.lock().unwrap() = order;
    }

    fn take(&self) -> Option<Do> {
        let next = self.next.lock().unwrap().pop_front();
        next.unwrap_or_else(|| *self.then.lock().unwrap())
    }
}

/// The service.
pub(super) struct Odd {
    inner: Arc<Service>,
    clock: ManualClock,
    pub(super) acquires: Script,
    pub(super) keeps: Script,
    pub(super) releases: Script,
    pub(super) forgets: Script,
    pub(super) gate: Notify,
    calls: Mutex<Vec<(Call, Moment)>>,
}

impl Odd {
    pub(super) fn new(inner: Arc<Service>, clock: ManualClock) -> Self {
        Self {
            inner,
            clock,
            acquires: Script::default(),
            keeps: Script::default(),
            releases: Script::default(),
            forgets: Script::default(),
            gate: Notify::new(),
            calls: Mutex::default(),
        }
    }

    /// Everything that was called, and when.
    pub(super) fn calls(&self) -> Vec<(Call, Moment)> {
        self.calls.lock().unwrap().clone()
    }

    /// What the keep-alives listed.
    pub(super) fn kept(&self) -> Vec<Vec<LockKey>> {
        let keeps = |(call, _)| match call {
            Call::Keep(held) => Some(held),
            _ => None,
        };
        self.calls().into_iter().filter_map(keeps).collect()
    }

    /// How many calls were like this.
    pub(super) fn count(&self, like_this: impl Fn(&Call) -> bool) -> usize {
        self.calls().iter().filter(|(call, _)| like_this(call)).count()
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push((call, self.clock.now()));
    }

    async fn obey<T>(&self, script: &Script, call: impl Future<Output = Result<T>>) -> Result<T> {
        match script.take() {
            None => call.await,
            Some(Do::Fail) => Err(LockError::contention("told to fail")),
            Some(Do::Swallow) => {
                call.await?;
                Err(LockError::contention("the reply was swallowed").maybe_applied())
            }
            Some(Do::HoldReply) => {
                let reply = call.await;
                self.gate.notified().await;
                reply
            }
            Some(Do::HoldRequest) => {
                self.gate.notified().await;
                call.await
            }
            Some(Do::Hang) => std::future::pending().await,
            Some(Do::Panic) => panic!("told to panic"),
        }
    }
}

#[async_trait]
impl LockService for Odd {
    async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session> {
        self.inner.open_session(owner, ttl).await
    }
    async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        self.note(Call::Keep(held.iter().map(|(key, _)| key.clone()).collect()));
        self.obey(&self.keeps, self.inner.keep_session(id, held)).await
    }
    async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        self.note(Call::Look);
        self.inner.look_session(id).await
    }
    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        self.note(Call::Close);
        self.inner.close_session(id).await
    }
    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        self.inner.try_acquire(request).await
    }
    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        self.note(Call::Acquire(request.attempt.unwrap()));
        self.obey(&self.acquires, self.inner.acquire(request)).await
    }
    async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<LockHandle> {
        self.inner.renew(key, token, session).await
    }
    async fn release(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<Released> {
        self.note(Call::Release(token));
        self.obey(&self.releases, self.inner.release(key, token, session)).await
    }
    async fn forget(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Released> {
        self.note(Call::Forget(attempt));
        self.obey(&self.forgets, self.inner.forget(key, session, attempt)).await
    }
    async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>> {
        self.inner.inspect(key).await
    }
    async fn list(&self, request: ListRequest) -> Result<Page> {
        self.inner.list(request).await
    }
    async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome> {
        self.inner.revoke(key, request).await
    }
    async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised> {
        self.inner.raise_floor(namespace, at_least).await
    }
}
