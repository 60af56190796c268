//! A store of one's own, on `domain` and `ports` alone.
//!
//! It stands for whatever has transactions: here a transaction is a closure under one mutex, and
//! nothing awaits inside, so each is done whole or not at all whoever drops a future. What a lock
//! does when something happens to it is the domain's transition table; what is left to a store is
//! which session lives, which number comes next, and doing it all at once.
//!
//! Not offered, and the service copes: a [`ReleaseWaiter`](dlock_ports::ReleaseWaiter) (waiters
//! poll), a directory (`list` is unsupported), floors by hand (`raise_floor` is unsupported; a
//! floor set by a revoke holds). Not offered at all: durability, more than one process, and an end
//! to what is remembered of free locks and settled private attempts, which a store for good needs
//! (INV-10).

use std::{
    collections::{BTreeMap, HashSet},
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, Invariant, LockError, LockHandle, LockInfo, LockKey,
    LockOutcome, Moment, OwnerId, Result, RevocationRecord, Session, SessionId, TokenFloor, Ttl,
    WallTime,
    lock::{Effect, Grant, LockEvent, LockState, Proposal},
};
use dlock_ports::{
    Attempt, Backend, Clock, Consistency, Entropy, HeldGrant, Holder, InsertRequest, Intent, Kept,
    LockStore, Observed, RevokeRequest, SessionStore,
};

/// How much there may be of each thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) locks: usize,
    pub(crate) sessions: usize,
    /// Attempts that one session may settle.
    pub(crate) settled: usize,
}

/// The store.
pub(crate) struct OneMutex {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    room: Room,
}

struct State {
    /// The last number drawn, for tokens and floors alike: so every later one exceeds both (INV-04).
    drawn: u64,
    /// A free lock stays here: its fence outlives its grants.
    locks: BTreeMap<LockKey, LockState>,
    leases: BTreeMap<SessionId, Lease>,
    settled: HashSet<AttemptId>,
    revocations: Vec<RevocationRecord>,
}

/// A session. A grant is live as long as the lease of its session is here and has not ended.
struct Lease {
    owner: OwnerId,
    ttl: Ttl,
    ends: Moment,
    /// The one lock of a private session, which ends with it.
    only: Option<LockKey>,
    settled: HashSet<AttemptId>,
}

/// The time of a transaction.
#[derive(Clone, Copy)]
struct At {
    /// Before it began: what holders count from (INV-03).
    sent: Moment,
    /// Inside: what leases are compared with.
    now: Moment,
    wall: WallTime,
}

impl OneMutex {
    pub(crate) fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>, room: Room) -> Arc<Self> {
        let state = State {
            drawn: 0,
            locks: BTreeMap::new(),
            leases: BTreeMap::new(),
            settled: HashSet::new(),
            revocations: Vec::new(),
        };
        Arc::new(Self { state: Mutex::new(state), clock, entropy, room })
    }

    /// What it offers.
    pub(crate) fn backend(self: &Arc<Self>) -> Backend {
        let (locks, sessions) = (self.clone(), self.clone());
        Backend { locks, sessions, waiter: None, directory: None, floors: None }
    }

    /// Who broke which lock, and why.
    pub(crate) fn revocations(&self) -> Vec<RevocationRecord> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).revocations.clone()
    }

    /// Begun before its deadline, or not at all.
    fn transaction<T>(
        &self,
        by: Deadline,
        work: impl FnOnce(&mut State, At) -> Result<T>,
    ) -> Result<T> {
        let sent = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = At { sent, now: self.clock.now(), wall: self.clock.wall() };
        if by.is_past(at.now) {
            return Err(LockError::contention("the deadline passed before the call began"));
        }
        work(&mut state, at)
    }

    fn fresh_id(&self) -> SessionId {
        SessionId::from_bits(self.entropy.bits())
    }
}

#[async_trait]
impl LockStore for OneMutex {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let (fresh, room) = (self.fresh_id(), self.room);
        self.transaction(by, |state, at| state.insert(&request, fresh, room, at))
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.transaction(by, |state, at| {
            let Some(grant) = state.meet(key, at.now).filter(|grant| grant.token == token) else {
                return Ok(None);
            };
            Ok(state.live(&grant.session, at.now).map(|lease| {
                let deadline = lease.extend(at);
                lease.handle(key, &grant, deadline, at)
            }))
        })
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.transaction(by, |state, at| {
            state.meet(key, at.now);
            // Key and token, and nothing else about the holder (INV-06).
            Ok(matches!(state.apply(key, LockEvent::Delete(token)), Effect::Ended(_)))
        })
    }

    async fn read(&self, key: &LockKey, _: Consistency, by: Deadline) -> Result<Option<LockInfo>> {
        self.transaction(by, |state, at| {
            let Some(grant) = state.meet(key, at.now) else { return Ok(None) };
            Ok(state.live(&grant.session, at.now).map(|lease| LockInfo {
                key: key.clone(),
                owner: lease.owner.clone(),
                session: Some(grant.session),
                token: grant.token,
                acquired_at: grant.acquired_at,
                server_expiry: lease.expiry(at),
                waiter_count: 0,
            }))
        })
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let room = self.room;
        self.transaction(by, |state, at| {
            let RevokeRequest { actor, reason, expected } = request;
            let live = state.meet(key, at.now).map(|grant| grant.token);
            if expected.is_none() || expected == live {
                state.row(key, room)?;
            }
            let floor = TokenFloor::at(state.next()?);
            let Effect::Revoke(outcome) = state.apply(key, LockEvent::Revoke { expected, floor })
            else {
                return Err(LockError::incident(Invariant::TokensRise, "a floor that is too low"));
            };
            if !matches!(outcome, LockOutcome::Mismatch { .. }) {
                state.drawn = floor.get();
                let (key, previous, at) = (key.clone(), live, at.wall);
                let record = RevocationRecord { key, previous, floor, actor, reason, at };
                state.revocations.push(record);
            }
            Ok(outcome)
        })
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.transaction(by, |state, at| Ok(state.reap(limit, at.now)))
    }

    fn backend_id(&self) -> &'static str {
        "one-mutex"
    }
}

#[async_trait]
impl SessionStore for OneMutex {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let (id, room) = (id.unwrap_or_else(|| self.fresh_id()), self.room);
        self.transaction(by, |state, at| {
            if let Some(lease) = state.live(&id, at.now) {
                if lease.owner != owner || lease.ttl != ttl || lease.only.is_some() {
                    let reason = "is open under another owner or lifetime";
                    return Err(LockError::invalid("session_id", reason));
                }
                let deadline = lease.extend(at);
                return Ok(lease.session(id, deadline));
            }
            state.room_for_a_session(room, at.now)?;
            let mut lease = Lease::new(owner, ttl, None);
            let deadline = lease.extend(at);
            let session = lease.session(id, deadline);
            state.leases.insert(id, lease);
            Ok(session)
        })
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        self.transaction(by, |state, at| {
            let Some(lease) = state.live(id, at.now) else { return Ok(None) };
            let deadline = lease.extend(at);
            let session = lease.session(*id, deadline);
            // Checked after the lease was extended: a grant seen now has the new lease behind it.
            let is_lost = |(key, token): &&(LockKey, FencingToken)| {
                let grant = state.locks.get(key).and_then(LockState::grant);
                !grant.is_some_and(|grant| grant.session == *id && grant.token == *token)
            };
            let lost = held.iter().filter(is_lost).cloned().collect();
            Ok(Some(Kept { session, lost }))
        })
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        self.transaction(by, |state, at| {
            let Some(lease) = state.live(id, at.now) else { return Ok(None) };
            let session = lease.session(*id, lease.deadline_from_look(at));
            let grants = state.locks.iter().filter_map(|(key, lock)| {
                let grant = lock.grant().filter(|grant| grant.session == *id)?;
                let (key, token, attempt) = (key.clone(), grant.token, grant.attempt);
                Some(HeldGrant { key, token, attempt })
            });
            Ok(Some((session, grants.collect())))
        })
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let room = self.room;
        self.transaction(by, |state, at| {
            // First the mark, which a late copy of the attempt meets; then whatever it was granted.
            let marked = state.mark(holder, attempt, room, at.now);
            let own = state.meet(key, at.now).is_some_and(|grant| match holder {
                Holder::Session(session) => grant.session == session.id,
                Holder::Private { .. } => state.is_private_to(&grant.session, key),
            });
            let ended = own && state.apply(key, LockEvent::Forget(attempt)) != Effect::Nothing;
            marked.map(|()| ended)
        })
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        self.transaction(by, |state, at| {
            let live = state.live(id, at.now).is_some();
            state.end(id);
            Ok(live)
        })
    }
}

impl State {
    fn insert(
        &mut self,
        request: &InsertRequest,
        fresh: SessionId,
        room: Room,
        at: At,
    ) -> Result<Attempt> {
        let InsertRequest { key, holder, attempt, intent } = request;
        let grant = self.meet(key, at.now);
        let settled = match holder {
            Holder::Private { .. } => self.settled.contains(attempt),
            Holder::Session(session) => {
                let lease =
                    self.live(&session.id, at.now).ok_or_else(LockError::session_expired)?;
                if lease.only.as_ref().is_some_and(|only| only != key) {
                    return Err(LockError::invalid("session_id", "was made for another lock"));
                }
                lease.settled.contains(attempt)
            }
        };
        if settled {
            return Err(LockError::invalid("attempt_id", "this attempt was settled"));
        }
        let own = grant.as_ref().filter(|grant| grant.attempt == *attempt);
        if own.is_none() && (grant.is_some() || *intent == Intent::Recover) {
            // No waiter of ours will read it.
            return Ok(Attempt::Held(Observed::new(())));
        }
        let session = match (holder, own) {
            (Holder::Session(session), _) => session.id,
            (Holder::Private { owner, ttl }, Some(own))
                if self.is_lease_of(own, key, owner, *ttl) =>
            {
                own.session
            }
            (Holder::Private { .. }, _) => fresh,
        };
        if own.is_none() {
            if matches!(holder, Holder::Private { .. }) {
                self.room_for_a_session(room, at.now)?;
            }
            self.row(key, room)?;
        }
        let token = self.next()?;
        let proposal = Proposal { session, attempt: *attempt, token, at: at.wall };
        let token = match self.apply(key, LockEvent::Insert(proposal)) {
            Effect::Granted => {
                self.drawn = token.get();
                if let Holder::Private { owner, ttl } = holder {
                    let lease = Lease::new(owner.clone(), *ttl, Some(key.clone()));
                    self.leases.insert(session, lease);
                }
                token
            }
            Effect::Recognised(token) => token,
            Effect::AttemptMisused => {
                return Err(LockError::invalid("attempt_id", "holds the lock for another"));
            }
            _ => return Err(LockError::incident(Invariant::TokensRise, "a token that is too low")),
        };
        let made = own.is_none() && matches!(holder, Holder::Private { .. });
        let lease = self.leases.get_mut(&session).ok_or_else(LockError::session_expired)?;
        // Where this call set the lease, from before it began; else what is left of it (INV-03).
        let deadline = if made { lease.extend(at) } else { lease.deadline_from_look(at) };
        let grant = Grant { token, session, attempt: *attempt, acquired_at: at.wall };
        Ok(Attempt::Granted(lease.handle(key, &grant, deadline, at)))
    }

    /// The lease of a session that lives. One that has ended is ended by whoever meets it.
    fn live(&mut self, id: &SessionId, now: Moment) -> Option<&mut Lease> {
        if self.leases.get(id)?.ends <= now {
            self.end(id);
        }
        self.leases.get_mut(id)
    }

    /// The live grant of a lock.
    fn meet(&mut self, key: &LockKey, now: Moment) -> Option<Grant> {
        let grant = self.locks.get(key)?.grant()?.clone();
        self.live(&grant.session, now).map(|_| grant)
    }

    /// Ends a session and all that it holds.
    fn end(&mut self, id: &SessionId) {
        self.leases.remove(id);
        for lock in self.locks.values_mut() {
            let (next, _) = mem::replace(lock, LockState::UNTOUCHED).apply(LockEvent::Expire(*id));
            *lock = next;
        }
    }

    /// Something happens to a lock. A private session ends with its grant.
    fn apply(&mut self, key: &LockKey, event: LockEvent) -> Effect {
        let Some(lock) = self.locks.get_mut(key) else {
            return LockState::UNTOUCHED.apply(event).1;
        };
        let before = lock.grant().map(|grant| grant.session);
        let (next, effect) = mem::replace(lock, LockState::UNTOUCHED).apply(event);
        *lock = next;
        if let (Some(session), None) = (before, lock.grant())
            && self.is_private_to(&session, key)
        {
            self.leases.remove(&session);
        }
        effect
    }

    fn is_private_to(&self, id: &SessionId, key: &LockKey) -> bool {
        self.leases.get(id).is_some_and(|lease| lease.only.as_ref() == Some(key))
    }

    fn is_lease_of(&self, grant: &Grant, key: &LockKey, owner: &OwnerId, ttl: Ttl) -> bool {
        let lease = self.leases.get(&grant.session);
        let same = lease.is_some_and(|lease| lease.owner == *owner && lease.ttl == ttl);
        same && self.is_private_to(&grant.session, key)
    }

    /// The number to be drawn next. It counts as drawn once it is used.
    fn next(&self) -> Result<FencingToken> {
        FencingToken::from_store(self.drawn + 1)
    }

    /// Marks an attempt as settled, where it will be looked for.
    fn mark(&mut self, holder: &Holder, attempt: AttemptId, room: Room, now: Moment) -> Result<()> {
        let Holder::Session(session) = holder else {
            self.settled.insert(attempt);
            return Ok(());
        };
        // With its session an attempt is settled already.
        let Some(lease) = self.live(&session.id, now) else { return Ok(()) };
        if lease.settled.len() >= room.settled && !lease.settled.contains(&attempt) {
            let limit = "lock.max_settled_attempts";
            return Err(LockError::limit(limit, "this session has settled too many attempts"));
        }
        lease.settled.insert(attempt);
        if lease.only.is_some() {
            // Repeats of a private attempt come without a session.
            self.settled.insert(attempt);
        }
        Ok(())
    }

    fn reap(&mut self, limit: u32, now: Moment) -> u32 {
        let ended = self.leases.iter().filter(|(_, lease)| lease.ends <= now).map(|(id, _)| *id);
        let ended: Vec<_> = ended.take(usize::try_from(limit).unwrap_or(usize::MAX)).collect();
        ended.iter().for_each(|id| self.end(id));
        u32::try_from(ended.len()).unwrap_or(limit)
    }

    fn room_for_a_session(&mut self, room: Room, now: Moment) -> Result<()> {
        if self.leases.len() >= room.sessions && self.reap(u32::MAX, now) == 0 {
            return Err(LockError::limit("lock.max_sessions", "too many sessions are open"));
        }
        Ok(())
    }

    /// Makes sure that a lock has a place, if there is room.
    fn row(&mut self, key: &LockKey, room: Room) -> Result<()> {
        if !self.locks.contains_key(key) {
            if self.locks.len() >= room.locks {
                return Err(LockError::limit("lock.max_locks", "too many locks are known"));
            }
            self.locks.insert(key.clone(), LockState::UNTOUCHED);
        }
        Ok(())
    }
}

impl Lease {
    fn new(owner: OwnerId, ttl: Ttl, only: Option<LockKey>) -> Self {
        Self { owner, ttl, ends: Moment::from_nanos(0), only, settled: HashSet::new() }
    }

    /// Sets the lease anew; until when its holder may believe in it.
    fn extend(&mut self, at: At) -> Moment {
        self.ends = at.now.after(self.ttl.as_duration());
        at.sent.holder_deadline(self.ttl, self.ttl)
    }

    /// The same where this call did not set it.
    fn deadline_from_look(&self, at: At) -> Moment {
        at.sent.holder_deadline_from_look(self.ends.since(at.now), self.ttl)
    }

    fn expiry(&self, at: At) -> WallTime {
        at.wall.after(self.ends.since(at.now))
    }

    fn session(&self, id: SessionId, client_deadline: Moment) -> Session {
        Session { id, owner: self.owner.clone(), ttl: self.ttl, client_deadline }
    }

    fn handle(&self, key: &LockKey, grant: &Grant, client_deadline: Moment, at: At) -> LockHandle {
        LockHandle {
            key: key.clone(),
            owner: self.owner.clone(),
            session: grant.session,
            token: grant.token,
            ttl: self.ttl,
            client_deadline,
            server_expiry: self.expiry(at),
        }
    }
}
