//! Stores with one bug each, to show that the judges see.
//!
//! Each is the memory store behind a decorator that does one thing as a naive implementation
//! would. A bug that the search does not find within its default number of cases is a hole in the
//! judges, and fails `tests/planted.rs`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, ErrorKind, FencingToken, LockHandle, LockInfo, LockKey, LockOutcome,
    Moment, Namespace, OwnerId, Result, Session, SessionId, TokenFloor, Ttl,
};
use dlock_memory::{ManualClock, MemoryStore, SeededEntropy};
use dlock_ports::{
    Attempt, Backend, Consistency, Directory, FloorControl, HeldGrant, Holder, InsertRequest,
    Intent, Kept, ListRequest, LockStore, Observed, Page, Raised, RevokeRequest, SessionStore,
};

use crate::harness::{Expiry, Harness, Keep, Subject};

/// One mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A repeated attempt waits for itself.
    RepeatIsHeld,
    /// A repeated attempt is recognised whoever repeats it.
    AttemptIsAnybodys,
    /// Looking for an attempt's grant makes one.
    RecoverGrants,
    /// The next grant after a release has the same token.
    TokenReused,
    /// A release compares the key alone.
    DeleteIgnoresToken,
    /// An extension compares the key alone.
    ExtendIgnoresToken,
    /// Keeping a dead session alive revives it.
    KeepAliveRevives,
    /// A keep-alive extends and checks nothing.
    KeepAliveSeesNoLoss,
    /// Looking at a session extends it.
    LookExtends,
    /// A closed session's locks stay held until its lease ends.
    CloseFreesNothing,
    /// Settling an attempt releases its grant and leaves no mark.
    ForgetLeavesNoMark,
    /// A revoke ends any grant, whatever was expected.
    RevokeIgnoresExpected,
    /// A revoke's floor is the token that it ended.
    RevokeRaisesNoFloor,
    /// A raised floor ends no grant.
    RaiseEndsNothing,
    /// A private session outlives its lock.
    PrivateOutlivesLock,
    /// A listing ignores its prefix.
    ListIgnoresPrefix,
    /// Reaping takes a session that lives.
    ReapTakesTheLiving,
    /// A session lives for a moment after its lease has ended.
    ExpiryIsLate,
    /// A holder believes in a grant until the lease ends, without a margin.
    NoMargin,
    /// A call whose deadline is past is made all the same.
    LateCallsAreMade,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::RepeatIsHeld,
        Self::AttemptIsAnybodys,
        Self::RecoverGrants,
        Self::TokenReused,
        Self::DeleteIgnoresToken,
        Self::ExtendIgnoresToken,
        Self::KeepAliveRevives,
        Self::KeepAliveSeesNoLoss,
        Self::LookExtends,
        Self::CloseFreesNothing,
        Self::ForgetLeavesNoMark,
        Self::RevokeIgnoresExpected,
        Self::RevokeRaisesNoFloor,
        Self::RaiseEndsNothing,
        Self::PrivateOutlivesLock,
        Self::ListIgnoresPrefix,
        Self::ReapTakesTheLiving,
        Self::ExpiryIsLate,
        Self::NoMargin,
        Self::LateCallsAreMade,
    ];
}

/// The memory store with one bug.
#[derive(Clone, Debug)]
pub struct Planted {
    bug: Bug,
    name: String,
    cases: u32,
}

impl Planted {
    /// A harness that makes stores with this bug.
    #[must_use]
    pub fn new(bug: Bug, cases: u32) -> Self {
        Self { bug, name: format!("memory with {bug:?}"), cases }
    }
}

#[async_trait]
impl Harness for Planted {
    fn name(&self) -> &str {
        &self.name
    }

    fn cases(&self) -> u32 {
        self.cases
    }

    async fn fresh(&self, clock: &ManualClock) -> core::result::Result<Subject, String> {
        let entropy = Arc::new(SeededEntropy::new(2));
        let inner = MemoryStore::new(Arc::new(clock.clone()), entropy).backend();
        let waiter = inner.waiter.clone();
        let buggy = Arc::new(Buggy { bug: self.bug, inner, known: Mutex::default() });
        let backend = Backend {
            locks: buggy.clone(),
            sessions: buggy.clone(),
            waiter,
            directory: Some(buggy.clone()),
            floors: Some(buggy),
        };
        Ok(Subject {
            backend,
            expiry: Expiry::Exact,
            drops_in_order: true,
            guard: Box::new(Keep(())),
        })
    }
}

struct Buggy {
    bug: Bug,
    inner: Backend,
    known: Mutex<Known>,
}

/// What a bug needs to remember.
#[derive(Default)]
struct Known {
    granted: HashSet<FencingToken>,
    /// The token that a key's grants are shown with, and the real one behind it.
    shown: HashMap<LockKey, (FencingToken, FencingToken)>,
    sessions: Vec<Session>,
    /// Sessions that were made for a lock and outlive it.
    lasting: HashSet<SessionId>,
    /// Attempts without a session of their own that were settled.
    settled: HashSet<(LockKey, AttemptId)>,
}

/// What a lease is too long by.
const EXTRA: Duration = Duration::from_millis(1);

impl Buggy {
    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn by(&self, by: Deadline) -> Deadline {
        if self.has(Bug::LateCallsAreMade) { Deadline::at(Moment::NEVER) } else { by }
    }

    /// What a key's live grant is, as the inner store sees it.
    async fn live(&self, key: &LockKey, by: Deadline) -> Result<Option<LockInfo>> {
        self.inner.locks.read(key, Consistency::Linearizable, by).await
    }

    async fn attempt_of(&self, info: &LockInfo, by: Deadline) -> Result<Option<AttemptId>> {
        let Some(session) = info.session else { return Ok(None) };
        let looked = self.inner.sessions.look(&session, by).await?;
        let grants = looked.map(|(_, grants)| grants).unwrap_or_default();
        Ok(grants.into_iter().find(|grant| grant.token == info.token).map(|grant| grant.attempt))
    }

    /// The lifetime that the inner store is asked for.
    fn lengthened(&self, ttl: Ttl) -> Result<Ttl> {
        if !self.has(Bug::ExpiryIsLate) {
            return Ok(ttl);
        }
        Ttl::from_duration(ttl.as_duration() + EXTRA)
    }

    /// A lifetime and a deadline as they were before that.
    fn shortened(&self, ttl: Ttl, deadline: Moment) -> (Ttl, Moment) {
        if !self.has(Bug::ExpiryIsLate) {
            return (ttl, deadline);
        }
        let own = Ttl::from_duration(ttl.as_duration() - EXTRA).unwrap_or(ttl);
        (own, deadline.before(EXTRA).after(ttl.margin() - own.margin()))
    }

    fn show_session(&self, mut session: Session) -> Session {
        (session.ttl, session.client_deadline) =
            self.shortened(session.ttl, session.client_deadline);
        session
    }

    /// The handle as the caller is shown it.
    fn show(&self, mut handle: LockHandle) -> LockHandle {
        if self.has(Bug::TokenReused) {
            let mut known = self.known();
            let shown = known.shown.get(&handle.key).map_or(handle.token, |(shown, _)| *shown);
            known.shown.insert(handle.key.clone(), (shown, handle.token));
            handle.token = shown;
        }
        (handle.ttl, handle.client_deadline) = self.shortened(handle.ttl, handle.client_deadline);
        if self.has(Bug::NoMargin) {
            handle.client_deadline = handle.client_deadline.after(handle.ttl.margin());
        }
        handle
    }

    /// The real token behind one that was shown.
    fn real(&self, key: &LockKey, token: FencingToken) -> FencingToken {
        match self.known().shown.get(key) {
            Some((shown, real)) if *shown == token => *real,
            _ => token,
        }
    }

    /// Somebody else's grant, as if it were the caller's.
    async fn as_if_own(&self, key: &LockKey, by: Deadline) -> Result<Option<Attempt>> {
        let Some(info) = self.live(key, by).await? else { return Ok(None) };
        let Some(session) = info.session else { return Ok(None) };
        let Some((session, _)) = self.inner.sessions.look(&session, by).await? else {
            return Ok(None);
        };
        Ok(Some(Attempt::Granted(LockHandle {
            key: info.key,
            owner: session.owner,
            session: session.id,
            token: info.token,
            ttl: session.ttl,
            client_deadline: session.client_deadline,
            server_expiry: info.server_expiry,
        })))
    }

    /// A private session that is opened like any other.
    async fn insert_with_lasting_session(
        &self,
        mut request: InsertRequest,
        by: Deadline,
    ) -> Result<Attempt> {
        let Holder::Private { owner, ttl } = &request.holder else {
            return self.inner.locks.try_insert(request, by).await;
        };
        if let Some(info) = self.live(&request.key, by).await? {
            let looked = match info.session {
                Some(id) => self.inner.sessions.look(&id, by).await?,
                None => None,
            };
            if let Some((session, _)) = looked
                && self.known().lasting.contains(&session.id)
                && (&session.owner, session.ttl) == (owner, *ttl)
            {
                request.holder = Holder::Session(session);
            }
        } else if request.intent == Intent::Acquire && !self.is_settled(&request) {
            let session = self.inner.sessions.open(owner.clone(), *ttl, None, by).await?;
            self.known().lasting.insert(session.id);
            request.holder = Holder::Session(session);
        }
        self.inner.locks.try_insert(request, by).await
    }

    fn is_settled(&self, request: &InsertRequest) -> bool {
        self.known().settled.contains(&(request.key.clone(), request.attempt))
    }

    /// Settles the attempt of a private session that was opened like any other.
    async fn forget_lasting(
        &self,
        key: &LockKey,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        self.known().settled.insert((key.clone(), attempt));
        let Some(info) = self.live(key, by).await? else { return Ok(false) };
        let own = info.session.is_some_and(|id| self.known().lasting.contains(&id));
        if !own || self.attempt_of(&info, by).await? != Some(attempt) {
            return Ok(false);
        }
        self.inner.locks.delete_if_owner(key, info.token, by).await
    }
}

#[async_trait]
impl LockStore for Buggy {
    async fn try_insert(&self, mut request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let by = self.by(by);
        if self.has(Bug::RecoverGrants) {
            request.intent = Intent::Acquire;
        }
        if let Holder::Private { ttl, .. } = &mut request.holder {
            *ttl = self.lengthened(*ttl)?;
        }
        let key = request.key.clone();
        let attempt = if self.has(Bug::PrivateOutlivesLock) {
            self.insert_with_lasting_session(request, by).await
        } else {
            self.inner.locks.try_insert(request, by).await
        };
        let handle = match attempt {
            Ok(Attempt::Granted(handle)) => handle,
            Err(error)
                if self.has(Bug::AttemptIsAnybodys)
                    && error.kind() == ErrorKind::InvalidArgument { field: "attempt_id" } =>
            {
                return self.as_if_own(&key, by).await?.ok_or(error);
            }
            other => return other,
        };
        let first = self.known().granted.insert(handle.token);
        if self.has(Bug::RepeatIsHeld) && !first {
            return Ok(Attempt::Held(Observed::new(())));
        }
        Ok(Attempt::Granted(self.show(handle)))
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let by = self.by(by);
        let mut token = self.real(key, token);
        if self.has(Bug::ExtendIgnoresToken) {
            token = self.live(key, by).await?.map_or(token, |info| info.token);
        }
        let extended = self.inner.locks.extend(key, token, by).await?;
        Ok(extended.map(|handle| self.show(handle)))
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let by = self.by(by);
        let mut token = self.real(key, token);
        if self.has(Bug::DeleteIgnoresToken) {
            token = self.live(key, by).await?.map_or(token, |info| info.token);
        }
        self.inner.locks.delete_if_owner(key, token, by).await
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        let mut info = self.inner.locks.read(key, consistency, self.by(by)).await?;
        if let (Some(info), Some((shown, _))) = (&mut info, self.known().shown.get(key)) {
            info.token = *shown;
        }
        Ok(info)
    }

    async fn revoke(
        &self,
        key: &LockKey,
        mut request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let by = self.by(by);
        if self.has(Bug::RevokeIgnoresExpected) {
            request.expected = None;
        }
        request.expected = request.expected.map(|token| self.real(key, token));
        if self.has(Bug::RevokeRaisesNoFloor)
            && let Some(info) = self.live(key, by).await?
            && request.expected.is_none_or(|token| token == info.token)
        {
            self.inner.locks.delete_if_owner(key, info.token, by).await?;
            let previous = info.token;
            return Ok(LockOutcome::Revoked { previous, floor: TokenFloor::at(previous) });
        }
        self.inner.locks.revoke(key, request, by).await
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        let by = self.by(by);
        let reaped = self.inner.locks.reap_expired(limit, by).await?;
        let newest = self.known().sessions.last().map(|session| session.id);
        if let (Bug::ReapTakesTheLiving, Some(id), true) = (self.bug, newest, limit > reaped) {
            self.inner.sessions.close(&id, by).await?;
        }
        Ok(reaped)
    }

    fn backend_id(&self) -> &'static str {
        "planted"
    }
}

#[async_trait]
impl SessionStore for Buggy {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let ttl = self.lengthened(ttl)?;
        let session = self.inner.sessions.open(owner, ttl, id, self.by(by)).await?;
        self.known().sessions.push(session.clone());
        Ok(self.show_session(session))
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let by = self.by(by);
        let mut kept = self.inner.sessions.keep_alive(id, held, by).await?;
        let known = self.known().sessions.iter().rfind(|session| session.id == *id).cloned();
        if let (Bug::KeepAliveRevives, None, Some(Session { owner, ttl, .. })) =
            (self.bug, &kept, known)
        {
            let session = self.inner.sessions.open(owner, ttl, Some(*id), by).await?;
            kept = Some(Kept { session, lost: Vec::new() });
        }
        if let (Bug::KeepAliveSeesNoLoss, Some(kept)) = (self.bug, &mut kept) {
            kept.lost.clear();
        }
        Ok(kept.map(|kept| Kept { session: self.show_session(kept.session), lost: kept.lost }))
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        let by = self.by(by);
        if self.has(Bug::LookExtends) {
            self.inner.sessions.keep_alive(id, &[], by).await?;
        }
        let looked = self.inner.sessions.look(id, by).await?;
        Ok(looked.map(|(session, grants)| (self.show_session(session), grants)))
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let by = self.by(by);
        if let (Bug::PrivateOutlivesLock, Holder::Private { .. }) = (self.bug, holder) {
            self.inner.sessions.forget(key, holder, attempt, by).await?;
            return self.forget_lasting(key, attempt, by).await;
        }
        if !self.has(Bug::ForgetLeavesNoMark) {
            return self.inner.sessions.forget(key, holder, attempt, by).await;
        }
        let Some(info) = self.live(key, by).await? else { return Ok(false) };
        let own = match holder {
            Holder::Session(session) => info.session == Some(session.id),
            Holder::Private { .. } => {
                !self.known().sessions.iter().any(|session| info.session == Some(session.id))
            }
        };
        if !own || self.attempt_of(&info, by).await? != Some(attempt) {
            return Ok(false);
        }
        self.inner.locks.delete_if_owner(key, info.token, by).await
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        let by = self.by(by);
        if self.has(Bug::CloseFreesNothing) {
            return Ok(self.inner.sessions.look(id, by).await?.is_some());
        }
        self.inner.sessions.close(id, by).await
    }
}

#[async_trait]
impl Directory for Buggy {
    async fn list(&self, mut request: ListRequest, by: Deadline) -> Result<Page> {
        if self.has(Bug::ListIgnoresPrefix) {
            request.prefix = "".into();
        }
        match &self.inner.directory {
            Some(directory) => directory.list(request, self.by(by)).await,
            None => Ok(Page { locks: Vec::new(), next: None }),
        }
    }
}

#[async_trait]
impl FloorControl for Buggy {
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        match &self.inner.floors {
            Some(floors) if !self.has(Bug::RaiseEndsNothing) => {
                floors.raise(namespace, at_least, self.by(by)).await
            }
            _ => Ok(Raised { floor: at_least, grants_ended: 0 }),
        }
    }
}
