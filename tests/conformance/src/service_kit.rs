//! Short words for the service's cases: a desk at which users ask.

use core::{pin::pin, time::Duration};
use std::sync::Arc;

use dlock::{Service, ServiceConfig};
use dlock_client::RemoteLocks;
use dlock_domain::{AttemptId, LockHandle, LockInfo, LockKey, Result, SessionId, Ttl};
use dlock_ports::{AcquireRequest, Acquired, Backend, Clock, LockService, Released, SessionRef};
use tokio::task::JoinHandle;

use crate::{
    Served, ServiceHarness,
    kit::{drive, long, owner, until},
    swallow::{Swallow, Tally},
};

/// A service over a store with a [hand](Swallow) on its wire.
pub struct Desk {
    /// What users talk to.
    pub front: Arc<dyn LockService>,
    /// The service at the other end.
    pub service: Arc<Service>,
    /// The client, if users talk to one.
    pub client: Option<RemoteLocks>,
    /// The hand on the wire between service and store.
    pub hand: Swallow,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// A configuration whose call budget no call runs out of.
pub fn config<H: ServiceHarness>(h: &H) -> ServiceConfig {
    ServiceConfig { call_budget: h.budget(), ..ServiceConfig::default() }
}

/// A configuration with a call budget that a case lets run out.
pub fn short_of_time<H: ServiceHarness>(h: &H) -> ServiceConfig {
    ServiceConfig { call_budget: h.spent_budget(), ..ServiceConfig::default() }
}

/// A service over the store.
pub async fn desk<H: ServiceHarness>(h: &H) -> Desk {
    desk_with(h, h.backend(), config(h)).await
}

/// Another service over the same store.
pub async fn desk_b<H: ServiceHarness>(h: &H) -> Desk {
    desk_with(h, h.backend_b(), config(h)).await
}

/// A service over this backend.
pub async fn desk_with<H: ServiceHarness>(h: &H, backend: Backend, config: ServiceConfig) -> Desk {
    let (backend, hand) = Swallow::wrap(&backend, h.clock());
    let Served { front, service, client } = h.serve(backend, config).await;
    Desk { front, service, client, hand, clock: h.clock() }
}

/// For whom, with a session of the lock's own that no case outlives.
pub fn alone(name: &str) -> SessionRef {
    alone_for(name, long())
}

/// For whom, with a session of the lock's own.
pub fn alone_for(name: &str, ttl: Ttl) -> SessionRef {
    SessionRef::Private { owner: owner(name), ttl }
}

/// A wish without an attempt of the user's own.
pub fn wish(key: &LockKey, session: &SessionRef, max_wait: Duration) -> AcquireRequest {
    AcquireRequest { key: key.clone(), session: session.clone(), attempt: None, max_wait }
}

/// The handle of an acquire that must be granted.
pub fn got(answer: Result<Acquired>) -> LockHandle {
    match answer {
        Ok(Acquired::Granted(handle)) => handle,
        other => panic!("expected a grant, got {other:?}"),
    }
}

/// The holder that an acquire which must not be granted reports.
pub fn refused(answer: Result<Acquired>) -> Option<LockInfo> {
    match answer {
        Ok(Acquired::NotGranted { holder }) => holder,
        other => panic!("expected no grant, got {other:?}"),
    }
}

/// A task's result, which must come without anybody moving the clock.
pub async fn promptly<T>(what: &str, task: impl Future<Output = T>) -> T {
    let bound = Duration::from_secs(30);
    match tokio::time::timeout(bound, task).await {
        Ok(output) => output,
        Err(_) => panic!("slept on: {what}"),
    }
}

/// A task's result, which must come without anybody moving the clock, except for the little by
/// which a client [holds it back](ServiceHarness::lingers) for its clean-up.
pub async fn lingering<H: ServiceHarness, T>(
    h: &H,
    what: &str,
    task: impl Future<Output = T>,
) -> T {
    let mut task = pin!(task);
    // Twice: the clean-up counts from a moment that may be in the midst of this.
    match drive(h, h.lingers() * 2, &mut task).await {
        Some(output) => output,
        None => promptly(what, task).await,
    }
}

/// The longest wait.
pub const PATIENT: Duration = AcquireRequest::MAX_WAIT;

impl Desk {
    /// Opens a session, which must succeed.
    pub async fn open(&self, name: &str, ttl: Ttl) -> SessionId {
        self.front.open_session(owner(name), ttl).await.expect("a session opens").id
    }

    /// Takes a free lock.
    pub async fn take(&self, key: &LockKey, session: &SessionRef) -> LockHandle {
        got(self.front.try_acquire(wish(key, session, Duration::ZERO)).await)
    }

    /// Asks for a lock that is held, without waiting: its holder.
    pub async fn meet(&self, key: &LockKey, session: &SessionRef) -> Option<LockInfo> {
        refused(self.front.try_acquire(wish(key, session, Duration::ZERO)).await)
    }

    /// One acquire under this attempt, without waiting.
    ///
    /// # Errors
    /// The service's.
    pub async fn acquire_as(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Acquired> {
        let wish = wish(key, session, Duration::ZERO);
        self.front.acquire(AcquireRequest { attempt: Some(attempt), ..wish }).await
    }

    /// An acquire in a task of its own.
    pub fn acquiring(&self, request: AcquireRequest) -> JoinHandle<Result<Acquired>> {
        let front = Arc::clone(&self.front);
        tokio::spawn(async move { front.acquire(request).await })
    }

    /// Begins to wait for a held lock, and returns once the wait has truly begun: the first shot
    /// has met the holder and the place in the line is taken.
    pub async fn wait(
        &self,
        key: &LockKey,
        session: &SessionRef,
        max_wait: Duration,
    ) -> JoinHandle<Result<Acquired>> {
        let (waiting, shots) = (self.service.load().waiting, self.hand.tally().shots);
        // Others in line shoot too, whenever one of them becomes the head.
        let own = match session {
            SessionRef::Private { owner, .. } => Some((owner, self.hand.shots_of(owner))),
            SessionRef::Id(_) => None,
        };
        let task = self.acquiring(wish(key, session, max_wait));
        let first = |tally: &Tally| match own {
            Some((owner, before)) => self.hand.shots_of(owner) > before,
            None => tally.shots > shots,
        };
        self.hand.seen("the first shot", first).await;
        until("the wait begins", || self.service.load().waiting > waiting).await;
        task
    }

    /// Releases a grant.
    pub async fn release(&self, handle: &LockHandle) -> Released {
        let answer = self.front.release(&handle.key, handle.token, &handle.session).await;
        answer.expect("release answers")
    }

    /// Renews a grant.
    ///
    /// # Errors
    /// The service's.
    pub async fn renew(&self, handle: &LockHandle) -> Result<LockHandle> {
        self.front.renew(&handle.key, handle.token, &handle.session).await
    }

    /// The live grant.
    pub async fn inspect(&self, key: &LockKey) -> Option<LockInfo> {
        self.front.inspect(key).await.expect("inspect answers")
    }

    /// How much is being settled, by the service or by its client.
    pub fn unsettled(&self) -> usize {
        let clients = self.client.as_ref().map_or(0, RemoteLocks::unsettled);
        self.service.load().unsettled + clients
    }

    /// Until nothing is being settled, and nobody waits or asks any more.
    pub async fn at_rest(&self) {
        until("the service comes to rest", || {
            // The client first: what it has ended asks nothing of the service any more.
            let clients = self.client.as_ref().map_or(0, RemoteLocks::under_way);
            let load = self.service.load();
            (clients, load.waiting, load.unsettled) == (0, 0, 0) && load.tasks <= 1
        })
        .await;
    }
}
