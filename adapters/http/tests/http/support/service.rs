//! Services: one that expects exact calls, one that will not come to an end.

use core::future::pending;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, ErrorKind, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome,
    Moment, Namespace, OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    AcquireRequest, Acquired, HeldGrant, Kept, ListRequest, LockService, Page, Raised, Released,
    RevokeRequest, SessionRef,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

mockall::mock! {
    pub(crate) Service {}

    #[async_trait]
    impl LockService for Service {
        async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session>;
        async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept>;
        async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)>;
        async fn close_session(&self, id: &SessionId) -> Result<bool>;
        async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired>;
        async fn acquire(&self, request: AcquireRequest) -> Result<Acquired>;
        async fn renew(&self, key: &LockKey, token: FencingToken, session: &SessionId) -> Result<LockHandle>;
        async fn release(&self, key: &LockKey, token: FencingToken, session: &SessionId) -> Result<Released>;
        async fn forget(&self, key: &LockKey, session: &SessionRef, attempt: AttemptId) -> Result<Released>;
        async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>>;
        async fn list(&self, request: ListRequest) -> Result<Page>;
        async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome>;
        async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised>;
    }
}

/// Something that happened to an acquire of [`Stubborn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Started,
    Dropped,
}

/// A service whose acquires wait until `draining` is cancelled, if ever, and report their end;
/// whose renewals succeed at once; which panics when asked to look at a session.
pub(crate) struct Stubborn {
    pub(crate) events: UnboundedSender<Event>,
    pub(crate) draining: CancellationToken,
}

struct ReportsItsEnd(UnboundedSender<Event>);

impl Drop for ReportsItsEnd {
    fn drop(&mut self) {
        // Nobody may listen any more.
        let _ = self.0.send(Event::Dropped);
    }
}

fn absent<T>() -> Result<T> {
    Err(LockError::new(ErrorKind::Unsupported, "not in this test"))
}

#[async_trait]
impl LockService for Stubborn {
    async fn open_session(&self, _: OwnerId, _: Ttl) -> Result<Session> {
        absent()
    }
    async fn keep_session(&self, _: &SessionId, _: &[(LockKey, FencingToken)]) -> Result<Kept> {
        absent()
    }
    async fn look_session(&self, _: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        panic!("planted")
    }
    async fn close_session(&self, _: &SessionId) -> Result<bool> {
        absent()
    }
    async fn try_acquire(&self, _: AcquireRequest) -> Result<Acquired> {
        absent()
    }
    async fn acquire(&self, _: AcquireRequest) -> Result<Acquired> {
        let _end = ReportsItsEnd(self.events.clone());
        self.events.send(Event::Started).unwrap();
        self.draining.cancelled().await;
        Err(LockError::new(ErrorKind::Draining, "going"))
    }
    async fn renew(&self, key: &LockKey, _: FencingToken, _: &SessionId) -> Result<LockHandle> {
        Ok(super::handle(key.clone(), Moment::NEVER))
    }
    async fn release(&self, _: &LockKey, _: FencingToken, _: &SessionId) -> Result<Released> {
        pending().await
    }
    async fn forget(&self, _: &LockKey, _: &SessionRef, _: AttemptId) -> Result<Released> {
        absent()
    }
    async fn inspect(&self, _: &LockKey) -> Result<Option<LockInfo>> {
        Ok(None)
    }
    async fn list(&self, _: ListRequest) -> Result<Page> {
        absent()
    }
    async fn revoke(&self, _: &LockKey, _: RevokeRequest) -> Result<LockOutcome> {
        absent()
    }
    async fn raise_floor(&self, _: &Namespace, _: TokenFloor) -> Result<Raised> {
        absent()
    }
}
