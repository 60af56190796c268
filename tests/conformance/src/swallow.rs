//! A store whose replies can be swallowed, as a bad network does it.
//!
//! Wraps a [`Backend`]; what it does to a call is decided call by call through [`Swallow`]. A call
//! that gets no reply fails as a right adapter lets it fail: with `Contention`, applied `Unknown`,
//! at its deadline (INV-07).

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome,
    Moment, OwnerId, Result, Session, SessionId, Ttl,
};
use dlock_ports::{
    Attempt, Backend, Clock, Consistency, HeldGrant, Holder, InsertRequest, Kept, LockStore,
    RevokeRequest, SessionStore,
};
use tokio::sync::{oneshot, watch};

/// A method of the two stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `LockStore::try_insert`.
    Insert,
    /// `LockStore::extend`.
    Extend,
    /// `LockStore::delete_if_owner`.
    Delete,
    /// `LockStore::read`.
    Read,
    /// `LockStore::revoke`.
    Revoke,
    /// `LockStore::reap_expired`.
    Reap,
    /// `SessionStore::open`.
    Open,
    /// `SessionStore::keep_alive`.
    KeepAlive,
    /// `SessionStore::look`.
    Look,
    /// `SessionStore::forget`.
    Forget,
    /// `SessionStore::close`.
    Close,
}

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives and is done; its reply never comes.
    ReplyLost,
    /// It never arrives.
    RequestLost,
    /// It arrives and is done; its reply comes only when the case [lets it](Swallow::deliver), if
    /// that is before the deadline.
    ReplyLate,
    /// It arrives only when the case [lets it](Swallow::deliver), perhaps long after its deadline;
    /// its reply never comes. From then on it has all the time that it needs.
    Late,
}

/// What has passed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Fates handed out.
    pub met: u32,
    /// Calls with a fate that the store has done.
    pub done: u32,
    /// Inserts without a fate that were answered.
    pub shots: u32,
}

struct Shared {
    fates: Mutex<VecDeque<(Method, Fate)>>,
    tally: watch::Sender<Tally>,
    shots: Mutex<Vec<Moment>>,
    answered: Mutex<HashMap<OwnerId, u32>>,
    delivered: watch::Sender<bool>,
    clock: Arc<dyn Clock>,
}

/// The hand on the wire.
#[derive(Clone)]
pub struct Swallow(Arc<Shared>);

impl fmt::Debug for Swallow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Swallow").field(&*self.0.tally.borrow()).finish()
    }
}

impl Swallow {
    /// The backend with a hand on its wire, and the hand. Capabilities pass untouched.
    #[must_use]
    pub fn wrap(backend: &Backend, clock: Arc<dyn Clock>) -> (Backend, Self) {
        let shared = Shared {
            fates: Mutex::default(),
            tally: watch::Sender::default(),
            shots: Mutex::default(),
            answered: Mutex::default(),
            delivered: watch::Sender::new(false),
            clock,
        };
        let hand = Self(Arc::new(shared));
        let wrapped = Backend {
            locks: Arc::new(Locks { inner: Arc::clone(&backend.locks), hand: hand.clone() }),
            sessions: Arc::new(Sessions {
                inner: Arc::clone(&backend.sessions),
                hand: hand.clone(),
            }),
            ..backend.clone()
        };
        (wrapped, hand)
    }

    /// The next call of this method that has no fate yet meets this one.
    pub fn next(&self, method: Method, fate: Fate) {
        self.fates().push_back((method, fate));
    }

    /// Lets everything that is late arrive.
    pub fn deliver(&self) {
        self.0.delivered.send_replace(true);
    }

    /// What has happened so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        *self.0.tally.borrow()
    }

    /// When each insert began.
    #[must_use]
    pub fn shots(&self) -> Vec<Moment> {
        self.0.shots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many inserts for this owner the store has answered.
    #[must_use]
    pub fn shots_of(&self, owner: &OwnerId) -> u32 {
        self.answered().get(owner).copied().unwrap_or_default()
    }

    /// Waits until so much has happened; fails after a generous while.
    pub async fn seen(&self, what: &str, enough: impl FnMut(&Tally) -> bool) {
        let mut tally = self.0.tally.subscribe();
        let waiting = tally.wait_for(enough);
        let bound = core::time::Duration::from_secs(20);
        let seen = tokio::time::timeout(bound, waiting).await;
        assert!(seen.is_ok(), "did not come about: {what}");
    }

    fn answered(&self) -> std::sync::MutexGuard<'_, HashMap<OwnerId, u32>> {
        self.0.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fates(&self) -> std::sync::MutexGuard<'_, VecDeque<(Method, Fate)>> {
        self.0.fates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, method: Method) -> Option<Fate> {
        let mut fates = self.fates();
        let at = fates.iter().position(|(of, _)| *of == method)?;
        let (_, fate) = fates.remove(at)?;
        drop(fates);
        self.0.tally.send_modify(|tally| tally.met += 1);
        Some(fate)
    }

    /// Runs one call to its fate. The call is a task of its own: it goes on when its caller is
    /// dropped, as a request on the wire does.
    async fn run<T: Send + 'static, F>(
        &self,
        method: Method,
        by: Deadline,
        call: impl FnOnce(Deadline) -> F + Send + 'static,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        if method == Method::Insert {
            let now = self.0.clock.now();
            self.0.shots.lock().unwrap_or_else(PoisonError::into_inner).push(now);
        }
        let Some(fate) = self.fate(method) else {
            let answer = call(by).await;
            if method == Method::Insert {
                self.0.tally.send_modify(|tally| tally.shots += 1);
            }
            return answer;
        };
        let (reply, mut replied) = oneshot::channel();
        if fate != Fate::RequestLost {
            let shared = Arc::clone(&self.0);
            tokio::spawn(async move {
                let by = if fate == Fate::Late {
                    let mut delivered = shared.delivered.subscribe();
                    if delivered.wait_for(|delivered| *delivered).await.is_err() {
                        return;
                    }
                    Deadline::at(Moment::NEVER)
                } else {
                    by
                };
                // Whoever waits for it may be gone.
                let _ = reply.send(call(by).await);
                shared.tally.send_modify(|tally| tally.done += 1);
            });
        }
        if fate == Fate::ReplyLate {
            let mut delivered = self.0.delivered.subscribe();
            // Both may be dropped: neither takes anything with it.
            tokio::select! {
                biased;
                answer = async {
                    let lets = delivered.wait_for(|delivered| *delivered).await.is_ok();
                    if lets { (&mut replied).await.ok() } else { None }
                } => if let Some(answer) = answer { return answer },
                () = self.0.clock.sleep_until(by.moment()) => {}
            }
        }
        self.0.clock.sleep_until(by.moment()).await;
        Err(LockError::contention("no reply before the deadline").maybe_applied())
    }
}

struct Locks {
    inner: Arc<dyn LockStore>,
    hand: Swallow,
}

#[async_trait]
impl LockStore for Locks {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let (inner, hand) = (Arc::clone(&self.inner), self.hand.clone());
        let owner = match &request.holder {
            Holder::Session(session) => session.owner.clone(),
            Holder::Private { owner, .. } => owner.clone(),
        };
        let call = move |by: Deadline| async move {
            let answer = inner.try_insert(request, by).await;
            // Before the tally, which whoever looks is woken by.
            *hand.answered().entry(owner).or_default() += 1;
            answer
        };
        self.hand.run(Method::Insert, by, call).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let call = move |by: Deadline| async move { inner.extend(&key, token, by).await };
        self.hand.run(Method::Extend, by, call).await
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let call = move |by: Deadline| async move { inner.delete_if_owner(&key, token, by).await };
        self.hand.run(Method::Delete, by, call).await
    }

    async fn read(
        &self,
        key: &LockKey,
        consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let call = move |by: Deadline| async move { inner.read(&key, consistency, by).await };
        self.hand.run(Method::Read, by, call).await
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let (inner, key) = (Arc::clone(&self.inner), key.clone());
        let call = move |by: Deadline| async move { inner.revoke(&key, request, by).await };
        self.hand.run(Method::Revoke, by, call).await
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        let inner = Arc::clone(&self.inner);
        let call = move |by: Deadline| async move { inner.reap_expired(limit, by).await };
        self.hand.run(Method::Reap, by, call).await
    }

    fn backend_id(&self) -> &'static str {
        self.inner.backend_id()
    }
}

struct Sessions {
    inner: Arc<dyn SessionStore>,
    hand: Swallow,
}

#[async_trait]
impl SessionStore for Sessions {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let inner = Arc::clone(&self.inner);
        let call = move |by: Deadline| async move { inner.open(owner, ttl, id, by).await };
        self.hand.run(Method::Open, by, call).await
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let (inner, id, held) = (Arc::clone(&self.inner), *id, held.to_vec());
        let call = move |by: Deadline| async move { inner.keep_alive(&id, &held, by).await };
        self.hand.run(Method::KeepAlive, by, call).await
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        let (inner, id) = (Arc::clone(&self.inner), *id);
        let call = move |by: Deadline| async move { inner.look(&id, by).await };
        self.hand.run(Method::Look, by, call).await
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let (inner, key, holder) = (Arc::clone(&self.inner), key.clone(), holder.clone());
        let call =
            move |by: Deadline| async move { inner.forget(&key, &holder, attempt, by).await };
        self.hand.run(Method::Forget, by, call).await
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        let (inner, id) = (Arc::clone(&self.inner), *id);
        let call = move |by: Deadline| async move { inner.close(&id, by).await };
        self.hand.run(Method::Close, by, call).await
    }
}
