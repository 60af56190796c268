//! The lock service: the use cases over whatever store it is given.
//!
//! | file | what it holds |
//! | --- | --- |
//! | `acquire` | the acquire loop |
//! | `queue`, `line` | local waiters in order per key: the pure machine, and its bells |
//! | `settle` | seeing to its end what nobody waits for any more |
//! | `memory` | what a server remembers: whose token, which attempts; bounded |
//! | `tally` | what it granted and has not seen end, for gauges and log lines; bounded |
//! | `core` | what the calls share |
//! | `reaper` | clearing ended leases away |
//!
//! The store decides who holds what; nothing in here does. Which store it is, nothing in here
//! knows.

mod acquire;
mod config;
mod core;
mod line;
mod memory;
mod queue;
mod reaper;
mod settle;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, ErrorKind, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome,
    Namespace, OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_ports::{
    AcquireRequest, Acquired, Backend, Clock, Consistency, Current, Entropy, HeldGrant, Holder,
    Kept, ListRequest, LockService, Page, Raised, Released, RevokeRequest, SessionRef,
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::ServiceConfig;

use self::core::Core;
pub(crate) use self::core::owner_of;
use crate::telemetry::{events, store};
use line::Lines;
use memory::Memory;
use settle::Unsettled;
use tally::Tally;

/// The service. Dropping it stops its background work; [`shutdown`](Self::shutdown) also waits for
/// what is under way.
pub struct Service {
    core: Arc<Core>,
}

impl Service {
    /// A service on a store. Must be called within a tokio runtime, on which its tasks run.
    #[must_use]
    pub fn new(
        backend: Backend,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        config: ServiceConfig,
    ) -> Arc<Self> {
        let core = Arc::new(Core {
            lines: Arc::new(Lines::new(config.max_waiters, config.max_waiters_per_lock)),
            memory: Memory::new(),
            tally: Tally::new(),
            unsettled: Unsettled::default(),
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
            backend: store::counted(backend),
            clock,
            entropy,
            config,
        });
        reaper::start(&core);
        Arc::new(Self { core })
    }

    /// Begins the end: waiting calls get `Draining`, nothing new is granted or opened; renewals,
    /// releases and looks go on (trap 42).
    pub fn drain(&self) {
        self.core.draining.cancel();
    }

    /// Whether the end has begun.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.core.draining.is_cancelled()
    }

    /// Drains, ends background work, and waits at most `patience` for what is under way. Answers
    /// whether everything ended.
    pub async fn shutdown(&self, patience: Duration) -> bool {
        self.drain();
        self.core.stopping.cancel();
        self.core.tasks.close();
        let end = self.core.clock.now().after(patience);
        tokio::select! {
            () = self.core.tasks.wait() => true,
            () = self.core.clock.sleep_until(end) => self.core.tasks.is_empty(),
        }
    }

    /// How many calls wait, how many attempts are being settled, how many tasks run: for gauges
    /// and for tests of boundedness.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            waiting: self.core.lines.total(),
            unsettled: self.core.unsettled.count(),
            tasks: self.core.tasks.len(),
        }
    }

    /// What this server granted and has not seen end, now. It looks at all of it.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.core.tally.sweep(self.core.clock.now());
        let (held, sessions) = self.core.tally.counts();
        Gauges { held, waiters: self.load().waiting, sessions }
    }

    /// The store's name: the label `backend` of metrics.
    #[must_use]
    pub fn backend_id(&self) -> &'static str {
        self.core.backend.locks.backend_id()
    }

    /// A real transaction on the store, within the call budget: what readiness means.
    ///
    /// # Errors
    /// `Draining` once the end has begun, else whatever the store says.
    pub async fn probe(&self) -> Result<()> {
        self.admit()?;
        self.core.backend.locks.reap_expired(1, self.core.budget()).await.map(drop)
    }

    fn admit(&self) -> Result<()> {
        if self.is_draining() { Err(Core::draining_error()) } else { Ok(()) }
    }

    /// Refuses a token that is known to be another session's, on memory's word or on a
    /// linearizable read's. What neither knows, the store operation answers.
    async fn check_session(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: SessionId,
    ) -> Result<()> {
        let core = &self.core;
        let mut of = core.memory.session_of(key, token);
        if of.is_none() {
            let read = core.backend.locks.read(key, Consistency::Linearizable, core.budget());
            of = read.await?.filter(|info| info.token == token).and_then(|info| info.session);
            if let Some(of) = of {
                core.memory.learned(key, token, of);
            }
        }
        match of {
            Some(of) if of != session => {
                Err(LockError::new(ErrorKind::Denied, "the token belongs to another session"))
            }
            _ => Ok(()),
        }
    }

    async fn current(&self, key: &LockKey, session: Option<SessionId>) -> Current {
        let budget = self.core.budget();
        match self.core.backend.locks.read(key, Consistency::Linearizable, budget).await {
            Ok(None) => Current::None,
            Ok(Some(info)) if session.is_some() && info.session == session => Current::Same,
            Ok(Some(_)) => Current::Other,
            Err(error) => {
                tracing::debug!(%error, "the look after a release failed");
                Current::Unknown
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.core.draining.cancel();
        self.core.stopping.cancel();
    }
}

/// What a service is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Calls that wait for a lock.
    pub waiting: usize,
    /// Attempts and grants that nobody claims and that are being settled.
    pub unsettled: usize,
    /// Tasks that run, the reaper's included.
    pub tasks: usize,
}

/// What a service granted and has not seen end (C4): what it has seen, not what the store holds. A
/// lease that passed without being extended at this server has ended, as far as it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauges {
    /// Locks that it granted; at most 1,000,000 are counted.
    pub held: usize,
    /// Calls that wait for a lock.
    pub waiters: usize,
    /// Sessions that it opened, those of single locks left out; at most 1,000,000 are counted.
    pub sessions: usize,
}

#[async_trait]
impl LockService for Service {
    async fn open_session(&self, owner: OwnerId, ttl: Ttl) -> Result<Session> {
        self.admit()?;
        let core = Arc::clone(&self.core);
        let open = async move {
            let session = core.backend.sessions.open(owner, ttl, None, core.budget()).await?;
            core.tally.opened(&session);
            events::session_opened(&session);
            Ok(session)
        };
        self.core.run(open).await
    }

    async fn keep_session(&self, id: &SessionId, held: &[(LockKey, FencingToken)]) -> Result<Kept> {
        let (core, id, held) = (Arc::clone(&self.core), *id, held.to_vec());
        let keep = async move {
            let kept = core.backend.sessions.keep_alive(&id, &held, core.budget()).await?;
            let Some(kept) = kept else { return Err(core.session_gone(&id)) };
            core.tally.extended(&id, kept.session.client_deadline, kept.session.ttl);
            for (key, token) in &kept.lost {
                core.saw_lost(key, *token);
            }
            Ok(kept)
        };
        self.core.run(keep).await
    }

    async fn look_session(&self, id: &SessionId) -> Result<(Session, Vec<HeldGrant>)> {
        let looked = self.core.backend.sessions.look(id, self.core.budget()).await?;
        looked.ok_or_else(|| self.core.session_gone(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        let (core, id) = (Arc::clone(&self.core), *id);
        let close = async move {
            let closed = core.backend.sessions.close(&id, core.budget()).await?;
            let owner = core.tally.session_ended(&id);
            events::session_closed(owner.as_ref(), closed);
            core.released_many();
            Ok(closed)
        };
        self.core.run(close).await
    }

    async fn try_acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        self.acquire(AcquireRequest { max_wait: Duration::ZERO, ..request }).await
    }

    async fn acquire(&self, request: AcquireRequest) -> Result<Acquired> {
        acquire::acquire(&self.core, request).await
    }

    async fn renew(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<LockHandle> {
        self.check_session(key, token, *session).await?;
        let (core, lock) = (Arc::clone(&self.core), key.clone());
        let extend = async move {
            let extended = core.backend.locks.extend(&lock, token, core.budget()).await?;
            match &extended {
                Some(handle) => {
                    core.tally.extended(&handle.session, handle.client_deadline, handle.ttl);
                }
                None => core.saw_lost(&lock, token),
            }
            Ok(extended)
        };
        match self.core.run(extend).await? {
            Some(handle) if handle.session == *session => Ok(handle),
            Some(_) => {
                Err(LockError::new(ErrorKind::Denied, "the token belongs to another session"))
            }
            None => Err(LockError::lost("the grant is not there")),
        }
    }

    async fn release(
        &self,
        key: &LockKey,
        token: FencingToken,
        session: &SessionId,
    ) -> Result<Released> {
        self.check_session(key, token, *session).await?;
        let (core, lock) = (Arc::clone(&self.core), key.clone());
        let delete = async move {
            let released = core.backend.locks.delete_if_owner(&lock, token, core.budget()).await?;
            core.saw_release(&lock, token, released);
            if released {
                core.memory.released(&lock, token);
                core.lines.released(&lock);
            }
            Ok(released)
        };
        let released = self.core.run(delete).await?;
        Ok(Released { released, current: self.current(key, Some(*session)).await })
    }

    async fn forget(
        &self,
        key: &LockKey,
        session: &SessionRef,
        attempt: AttemptId,
    ) -> Result<Released> {
        let holder = match session {
            SessionRef::Private { owner, ttl } => {
                Some(Holder::Private { owner: owner.clone(), ttl: *ttl })
            }
            SessionRef::Id(id) => {
                let looked = self.core.backend.sessions.look(id, self.core.budget()).await?;
                if looked.is_none() {
                    self.core.tally.session_ended(id);
                }
                looked.map(|(session, _)| Holder::Session(session))
            }
        };
        // A dead session's attempts hold nothing, and nothing more can be granted to it.
        let released = match holder {
            None => false,
            Some(holder) => {
                let (core, lock) = (Arc::clone(&self.core), key.clone());
                let forget = async move {
                    let sessions = &core.backend.sessions;
                    let ended = sessions.forget(&lock, &holder, attempt, core.budget()).await?;
                    core.saw_settled(&lock, owner_of(&holder), attempt, ended);
                    if ended {
                        core.lines.released(&lock);
                    }
                    Ok(ended)
                };
                self.core.run(forget).await?
            }
        };
        let id = match session {
            SessionRef::Id(id) => Some(*id),
            SessionRef::Private { .. } => None,
        };
        Ok(Released { released, current: self.current(key, id).await })
    }

    async fn inspect(&self, key: &LockKey) -> Result<Option<LockInfo>> {
        let budget = self.core.budget();
        let found = self.core.backend.locks.read(key, Consistency::Linearizable, budget).await?;
        Ok(found.map(|info| self.core.with_waiters(info)))
    }

    async fn list(&self, request: ListRequest) -> Result<Page> {
        let directory = self.core.backend.directory.as_ref().ok_or_else(|| {
            LockError::new(ErrorKind::Unsupported, "this store cannot list locks")
        })?;
        let page = directory.list(request, self.core.budget()).await?;
        let locks = page.locks.into_iter().map(|info| self.core.with_waiters(info)).collect();
        Ok(Page { locks, ..page })
    }

    async fn revoke(&self, key: &LockKey, request: RevokeRequest) -> Result<LockOutcome> {
        let (core, lock, actor) = (Arc::clone(&self.core), key.clone(), request.actor.clone());
        let revoke = async move {
            let outcome = core.backend.locks.revoke(&lock, request, core.budget()).await?;
            let owner = match outcome {
                LockOutcome::Revoked { floor, .. } => core.tally.revoked(&lock, floor),
                LockOutcome::Free { floor } => {
                    // What was counted had ended before.
                    core.tally.revoked(&lock, floor);
                    None
                }
                LockOutcome::Mismatch { .. } => None,
            };
            events::lock_revoked(&lock, owner.as_ref(), &actor, &outcome);
            core.lines.released(&lock);
            Ok(outcome)
        };
        self.core.run(revoke).await
    }

    async fn raise_floor(&self, namespace: &Namespace, at_least: TokenFloor) -> Result<Raised> {
        let floors = self.core.backend.floors.clone().ok_or_else(|| {
            LockError::new(ErrorKind::Unsupported, "this store cannot raise floors")
        })?;
        let (core, raised) = (Arc::clone(&self.core), namespace.clone());
        let raise = async move {
            let answer = floors.raise(&raised, at_least, core.budget()).await?;
            core.tally.floor_raised(&raised, answer.floor);
            core.released_many();
            Ok(answer)
        };
        self.core.run(raise).await
    }
}
