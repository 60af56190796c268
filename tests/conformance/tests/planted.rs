//! The suite sees what it is there to see: with a bug planted in the store, the case that stands
//! for it fails. Without one it passes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use dlock_conformance::{Expected, Harness, Limits, cases, stores::Memory};
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockHandle, LockInfo, LockKey, LockName, LockOutcome,
    Moment, OwnerId, Result, Session, SessionId, Ttl,
};
use dlock_ports::{
    Attempt, Backend, Clock, Consistency, Entropy, HeldGrant, Holder, InsertRequest, Kept,
    LockStore, Observed, ReleaseWaiter, RevokeRequest, SessionStore, WaitEnd,
};

/// What is wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Nothing.
    None,
    /// A release takes whatever grant is there (INV-06).
    ReleasesAnyToken,
    /// A repeat extends the lease (INV-03).
    RepeatsExtend,
    /// The deadline leaves out the margin (INV-03).
    NoMargin,
    /// Forget releases and settles nothing (trap 12).
    ForgetsOnlyTheGrant,
    /// Deadlines are not looked at.
    IgnoresDeadlines,
    /// A wait that begins after the release waits for the next one (INV-08).
    WaitsFromNow,
    /// A wait ends whenever the store feels like it.
    WakesForNothing,
    /// Names are folded (C30).
    FoldsCase,
    /// The expected token is not compared (C25).
    RevokesWhateverItIs,
    /// What is lost is not named (C15).
    KeepsQuietAboutLosses,
    /// An attempt is granted again under another's session.
    ForgetsWhoseAttempt,
    /// A listing leaves out its last lock.
    ListsOneTooFew,
}

struct Planted {
    inner: Backend,
    bug: Bug,
    clock: Arc<dyn Clock>,
}

impl Planted {
    fn is(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    fn by(&self, by: Deadline) -> Deadline {
        if self.is(Bug::IgnoresDeadlines) { Deadline::at(Moment::NEVER) } else { by }
    }

    fn key(&self, key: &LockKey) -> LockKey {
        if !self.is(Bug::FoldsCase) {
            return key.clone();
        }
        let folded = LockName::new(&key.name().as_str().to_lowercase()).unwrap();
        LockKey::new(key.namespace().clone(), folded)
    }

    fn handle(&self, handle: LockHandle) -> LockHandle {
        let more = if self.is(Bug::NoMargin) { handle.ttl.margin() } else { Duration::ZERO };
        LockHandle { client_deadline: handle.client_deadline.after(more), ..handle }
    }
}

#[async_trait]
impl LockStore for Planted {
    async fn try_insert(&self, mut request: InsertRequest, by: Deadline) -> Result<Attempt> {
        request.key = self.key(&request.key);
        let by = self.by(by);
        let before = self.inner.locks.read(&request.key, Consistency::Linearizable, by).await?;
        if self.is(Bug::ForgetsWhoseAttempt)
            && let (Some(info), Holder::Session(session)) = (&before, &mut request.holder)
            && let Some(holder) = info.session
            && let Some((theirs, _)) = self.inner.sessions.look(&holder, by).await?
        {
            *session = theirs;
        }
        match self.inner.locks.try_insert(request, by).await? {
            Attempt::Granted(handle) if self.is(Bug::RepeatsExtend) && before.is_some() => {
                let extended = self.inner.locks.extend(&handle.key, handle.token, by).await?;
                Ok(Attempt::Granted(extended.unwrap_or(handle)))
            }
            Attempt::Granted(handle) => Ok(Attempt::Granted(self.handle(handle))),
            held @ Attempt::Held(_) => Ok(held),
        }
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let extended = self.inner.locks.extend(&self.key(key), token, self.by(by)).await?;
        Ok(extended.map(|handle| self.handle(handle)))
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let (key, by) = (self.key(key), self.by(by));
        let mut token = token;
        if self.is(Bug::ReleasesAnyToken)
            && let Some(info) = self.inner.locks.read(&key, Consistency::Linearizable, by).await?
        {
            token = info.token;
        }
        self.inner.locks.delete_if_owner(&key, token, by).await
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.inner.locks.read(&self.key(key), consistency, self.by(by)).await
    }

    async fn revoke(
        &self,
        key: &LockKey,
        mut request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        if self.is(Bug::RevokesWhateverItIs) {
            request.expected = None;
        }
        self.inner.locks.revoke(&self.key(key), request, self.by(by)).await
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.inner.locks.reap_expired(limit, self.by(by)).await
    }

    fn backend_id(&self) -> &'static str {
        self.inner.locks.backend_id()
    }
}

#[async_trait]
impl SessionStore for Planted {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        self.inner.sessions.open(owner, ttl, id, self.by(by)).await
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let held = if self.is(Bug::KeepsQuietAboutLosses) { &[] } else { held };
        self.inner.sessions.keep_alive(id, held, self.by(by)).await
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        self.inner.sessions.look(id, self.by(by)).await
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let by = self.by(by);
        if self.is(Bug::ForgetsOnlyTheGrant) {
            let Holder::Session(session) = holder else { return Ok(false) };
            let looked = self.inner.sessions.look(&session.id, by).await?;
            let grants = looked.map(|(_, grants)| grants).unwrap_or_default();
            let Some(grant) = grants.into_iter().find(|grant| grant.attempt == attempt) else {
                return Ok(false);
            };
            return self.inner.locks.delete_if_owner(key, grant.token, by).await;
        }
        self.inner.sessions.forget(&self.key(key), holder, attempt, by).await
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        self.inner.sessions.close(id, self.by(by)).await
    }
}

#[async_trait]
impl ReleaseWaiter for Planted {
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd {
        let waiter = self.inner.waiter.as_ref().unwrap();
        let read = self.inner.locks.read(key, Consistency::Linearizable, by).await;
        if self.is(Bug::WaitsFromNow) && matches!(read, Ok(None)) {
            self.clock.sleep_until(by.moment()).await;
            return WaitEnd::Deadline;
        }
        if self.is(Bug::WakesForNothing) {
            let soon = self.clock.now().after(Duration::from_millis(1));
            self.clock.sleep_until(soon).await;
            return WaitEnd::Released;
        }
        waiter.await_release(key, since, by).await
    }

    fn waiters(&self, key: &LockKey) -> u32 {
        self.inner.waiter.as_ref().unwrap().waiters(key)
    }
}

struct ShortDirectory(Backend);

#[async_trait]
impl dlock_ports::Directory for ShortDirectory {
    async fn list(
        &self,
        request: dlock_ports::ListRequest,
        by: Deadline,
    ) -> Result<dlock_ports::Page> {
        let mut page = self.0.directory.as_ref().unwrap().list(request, by).await?;
        if page.next.is_none() {
            page.locks.pop();
        }
        Ok(page)
    }
}

/// The memory store with a bug.
struct Broken {
    inner: Memory,
    bug: Bug,
}

impl Broken {
    fn plant(&self, backend: Backend) -> Backend {
        let planted =
            Arc::new(Planted { inner: backend.clone(), bug: self.bug, clock: self.clock() });
        Backend {
            locks: planted.clone(),
            sessions: planted.clone(),
            waiter: Some(planted),
            directory: if self.bug == Bug::ListsOneTooFew {
                Some(Arc::new(ShortDirectory(backend.clone())))
            } else {
                backend.directory.clone()
            },
            floors: backend.floors,
        }
    }
}

#[async_trait]
impl Harness for Broken {
    async fn start() -> Self {
        Self { inner: Memory::start().await, bug: Bug::None }
    }

    async fn finish(self) {
        self.inner.finish().await;
    }

    fn expected(&self) -> Expected {
        self.inner.expected()
    }

    fn backend(&self) -> Backend {
        self.plant(self.inner.backend())
    }

    fn backend_b(&self) -> Backend {
        self.plant(self.inner.backend_b())
    }

    async fn limited(&self, limits: Limits) -> Backend {
        self.plant(self.inner.limited(limits).await)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock()
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        self.inner.entropy()
    }

    async fn pass(&self, time: Duration) {
        self.inner.pass(time).await;
    }

    fn expiry_slack(&self) -> Duration {
        self.inner.expiry_slack()
    }

    fn short_ttl(&self) -> Ttl {
        self.inner.short_ttl()
    }

    fn budget(&self) -> Duration {
        self.inner.budget()
    }
}

/// One test for each bug: its case passes on the sound store and fails on the broken one.
macro_rules! seen {
    ($($name:ident: $bug:ident by $group:ident::$case:ident;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for (bug, sound) in [(Bug::None, true), (Bug::$bug, false)] {
                let broken = Broken { bug, ..Broken::start().await };
                let case = async move { cases::$group::$case(&broken).await };
                let passed = tokio::spawn(case).await.is_ok();
                assert_eq!(passed, sound, "{bug:?}");
            }
        })*
    };
}

seen! {
    a_stale_release_is_seen: ReleasesAnyToken by release::c22_a_stale_holder_touches_nothing;
    a_wrong_token_is_seen: ReleasesAnyToken by release::inv06_only_the_very_token_releases;
    a_longer_belief_is_seen: RepeatsExtend by attempts::inv03_a_repeat_lengthens_nothing;
    a_missing_margin_is_seen: NoMargin by grant::a_private_grant_has_a_session_of_its_own;
    an_unsettled_attempt_is_seen: ForgetsOnlyTheGrant
        by forget::a_late_request_of_a_settled_attempt_is_refused;
    a_late_grant_is_seen: ForgetsOnlyTheGrant
        by unknown::inv09_forget_settles_whatever_became_of_it;
    a_deadline_not_looked_at_is_seen: IgnoresDeadlines
        by deadlines::a_deadline_in_the_past_does_nothing;
    the_gap_is_seen: WaitsFromNow by waiting::inv08_a_release_before_the_wait_counts;
    a_false_wake_is_seen: WakesForNothing by waiting::a_renew_wakes_nobody;
    folded_names_are_seen: FoldsCase by input::c30_odd_names_are_different_locks;
    a_careless_revoke_is_seen: RevokesWhateverItIs by revoke::c25_a_wrong_expectation_changes_nothing;
    a_silent_loss_is_seen: KeepsQuietAboutLosses by keep_alive::c15_exactly_the_lost_grant_is_named;
    a_misused_attempt_is_seen: ForgetsWhoseAttempt
        by attempts::an_attempt_of_somebody_else_is_refused;
    a_missing_lock_is_seen: ListsOneTooFew by directory::limits_are_exact;
}
