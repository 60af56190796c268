//! The one state: what it means for a grant to live, and to end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use dlock_domain::{
    AttemptId, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockName, Moment, Namespace,
    OwnerId, Result, RevocationRecord, Session, SessionId, TokenFloor, Ttl, WallTime,
    lock::{Effect, Grant, LockEvent, LockState},
};
use tokio::sync::Notify;

use crate::{At, limits::Limits, settled::Settled};

/// A session's record. A grant is live iff the record of its session is there (C1).
#[derive(Debug)]
pub(crate) struct SessionRow {
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    pub(crate) expires_at: Moment,
    /// The one lock that a private session lives and dies with.
    pub(crate) private_to: Option<LockKey>,
    pub(crate) held: BTreeSet<LockKey>,
    pub(crate) settled: HashSet<AttemptId>,
}

impl SessionRow {
    pub(crate) fn new(owner: OwnerId, ttl: Ttl, now: Moment, private_to: Option<LockKey>) -> Self {
        Self {
            owner,
            ttl,
            expires_at: now.after(ttl.as_duration()),
            private_to,
            held: BTreeSet::new(),
            settled: HashSet::new(),
        }
    }

    /// Sets the lease anew: the holder's deadline counts from before the request (INV-03).
    pub(crate) fn extend(&mut self, at: At) -> Moment {
        self.expires_at = at.now.after(self.ttl.as_duration());
        at.sent.holder_deadline(self.ttl, self.ttl)
    }

    /// The holder's deadline where this call did not set the lease (INV-03).
    pub(crate) fn deadline_from_look(&self, at: At) -> Moment {
        at.sent.holder_deadline_from_look(self.expires_at.since(at.now), self.ttl)
    }

    pub(crate) fn server_expiry(&self, at: At) -> WallTime {
        at.wall.after(self.expires_at.since(at.now))
    }

    pub(crate) fn to_session(&self, id: SessionId, client_deadline: Moment) -> Session {
        Session { id, owner: self.owner.clone(), ttl: self.ttl, client_deadline }
    }

    pub(crate) fn to_handle(
        &self,
        key: &LockKey,
        grant: &Grant,
        client_deadline: Moment,
        at: At,
    ) -> LockHandle {
        LockHandle {
            key: key.clone(),
            owner: self.owner.clone(),
            session: grant.session,
            token: grant.token,
            ttl: self.ttl,
            client_deadline,
            server_expiry: self.server_expiry(at),
        }
    }
}

/// The calls that wait for one key.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) count: u32,
    pub(crate) released: Arc<Notify>,
}

/// Everything there is.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) limits: Limits,
    /// The last token or floor drawn: one source for the whole store, so it lies at or above
    /// every fence.
    pub(crate) counter: u64,
    pub(crate) locks: BTreeMap<Namespace, BTreeMap<LockName, LockState>>,
    /// How many records `locks` holds.
    rows: usize,
    pub(crate) sessions: HashMap<SessionId, SessionRow>,
    pub(crate) floors: HashMap<Namespace, TokenFloor>,
    /// The highest fence of any record that was dropped to make room (INV-04).
    purge_floor: TokenFloor,
    pub(crate) settled: Settled,
    revocations: VecDeque<RevocationRecord>,
    pub(crate) waiting: HashMap<LockKey, Waiting>,
}

impl State {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            counter: 0,
            locks: BTreeMap::new(),
            rows: 0,
            sessions: HashMap::new(),
            floors: HashMap::new(),
            purge_floor: TokenFloor::NONE,
            settled: Settled::new(limits.max_settled_private),
            revocations: VecDeque::new(),
            waiting: HashMap::new(),
        }
    }

    /// The live grant of a key, after its holder's lease has been looked at.
    pub(crate) fn meet(&mut self, key: &LockKey, now: Moment) -> Option<Grant> {
        let session = self.grant(key)?.session;
        self.meet_session(&session, now)?;
        self.grant(key).cloned()
    }

    /// A live session; one whose lease has ended is deleted, and is not there.
    pub(crate) fn meet_session(&mut self, id: &SessionId, now: Moment) -> Option<&mut SessionRow> {
        if now >= self.sessions.get(id)?.expires_at {
            self.end_session(id, LockEvent::Expire(*id));
            return None;
        }
        self.sessions.get_mut(id)
    }

    fn grant(&self, key: &LockKey) -> Option<&Grant> {
        self.locks.get(key.namespace())?.get(key.name())?.grant()
    }

    /// Whether a grant's session lives, for those that only look.
    pub(crate) fn live_holder(&self, grant: &Grant, now: Moment) -> Option<&SessionRow> {
        self.sessions.get(&grant.session).filter(|row| now < row.expires_at)
    }

    /// Whether this is a private session that was made for another lock.
    pub(crate) fn is_private_to_another(&self, id: &SessionId, key: &LockKey) -> bool {
        let of = self.sessions.get(id).and_then(|row| row.private_to.as_ref());
        of.is_some_and(|of| of != key)
    }

    /// Whether this is the private session that was made for this lock.
    pub(crate) fn is_private_to(&self, id: &SessionId, key: &LockKey) -> bool {
        self.sessions.get(id).is_some_and(|row| row.private_to.as_ref() == Some(key))
    }

    /// Lets something happen to a lock, and draws the consequences of a grant's end.
    pub(crate) fn apply(&mut self, key: &LockKey, event: LockEvent) -> Effect {
        let Some(slot) =
            self.locks.get_mut(key.namespace()).and_then(|locks| locks.get_mut(key.name()))
        else {
            return LockState::UNTOUCHED.apply(event).1;
        };
        let before = slot.grant().cloned();
        let (next, effect) = slot.clone().apply(event);
        *slot = next;
        let still = slot.grant().is_some();
        match before {
            Some(ended) if !still => self.after_end(key, &ended),
            _ => {}
        }
        effect
    }

    /// A grant has ended: its session no longer holds it, a private session ends with its lock,
    /// and whoever waits is told (INV-08).
    fn after_end(&mut self, key: &LockKey, ended: &Grant) {
        if let Some(waiting) = self.waiting.get(key) {
            waiting.released.notify_waiters();
        }
        if let Some(row) = self.sessions.get_mut(&ended.session) {
            row.held.remove(key);
            if row.private_to.as_ref() == Some(key) {
                self.end_session(&ended.session, LockEvent::SessionClosed(ended.session));
            }
        }
    }

    /// Deletes a session and frees all that it holds; `false` if it was gone.
    pub(crate) fn end_session(&mut self, id: &SessionId, event: LockEvent) -> bool {
        let Some(row) = self.sessions.remove(id) else { return false };
        for key in &row.held {
            self.apply(key, event.clone());
        }
        true
    }

    /// Deletes at most `limit` sessions whose lease has ended, and says how many.
    pub(crate) fn reap(&mut self, limit: usize, now: Moment) -> usize {
        let mut ended: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, row)| now >= row.expires_at)
            .map(|(id, _)| *id)
            .collect();
        // Which ones go first is nobody's business, but the same run should do the same.
        ended.sort_unstable();
        ended.truncate(limit);
        for id in &ended {
            self.end_session(id, LockEvent::Expire(*id));
        }
        ended.len()
    }

    /// Room for one more session.
    pub(crate) fn room_for_session(&mut self, now: Moment) -> Result<()> {
        if self.sessions.len() >= self.limits.max_sessions {
            self.reap(usize::MAX, now);
        }
        if self.sessions.len() >= self.limits.max_sessions {
            return Err(LockError::limit("lock.max_sessions", "too many sessions are open"));
        }
        Ok(())
    }

    /// Makes sure that a key has a record, which outlives its grants and keeps their fence.
    pub(crate) fn ensure_row(&mut self, key: &LockKey, now: Moment) -> Result<()> {
        let known = |state: &Self| {
            state.locks.get(key.namespace()).is_some_and(|locks| locks.contains_key(key.name()))
        };
        if known(self) {
            return Ok(());
        }
        if self.rows >= self.limits.max_locks {
            self.reap(usize::MAX, now);
            self.drop_free_rows();
        }
        if self.rows >= self.limits.max_locks {
            return Err(LockError::limit("lock.max_locks", "too many locks are held"));
        }
        let floor = self.floors.get(key.namespace()).copied().unwrap_or_default();
        let fence = floor.max(self.purge_floor);
        self.locks
            .entry(key.namespace().clone())
            .or_default()
            .insert(key.name().clone(), LockState::Free { fence });
        self.rows += 1;
        Ok(())
    }

    /// Forgets the records of free locks behind a floor that keeps their fences (INV-04).
    fn drop_free_rows(&mut self) {
        let mut floor = self.purge_floor;
        for locks in self.locks.values_mut() {
            locks.retain(|_, lock| {
                if lock.grant().is_none() {
                    floor = floor.max(lock.fence());
                }
                lock.grant().is_some()
            });
        }
        self.locks.retain(|_, locks| !locks.is_empty());
        self.rows = self.locks.values().map(BTreeMap::len).sum();
        self.purge_floor = floor;
    }

    /// The next number of the one source; it counts as drawn once `counter` is set to it.
    pub(crate) fn next_token(&self) -> Result<FencingToken> {
        FencingToken::from_store(self.counter.saturating_add(1))
    }

    /// A grant as others see it.
    pub(crate) fn info(&self, key: &LockKey, grant: &Grant, row: &SessionRow, at: At) -> LockInfo {
        LockInfo {
            key: key.clone(),
            owner: row.owner.clone(),
            session: Some(grant.session),
            token: grant.token,
            acquired_at: grant.acquired_at,
            server_expiry: row.server_expiry(at),
            waiter_count: self.waiters(key),
        }
    }

    pub(crate) fn waiters(&self, key: &LockKey) -> u32 {
        self.waiting.get(key).map_or(0, |waiting| waiting.count)
    }

    /// Appends the record of a revocation; the oldest gives way.
    pub(crate) fn record(&mut self, record: RevocationRecord) {
        self.revocations.push_back(record);
        while self.revocations.len() > self.limits.max_revocations {
            self.revocations.pop_front();
        }
    }

    pub(crate) fn revocations(&self) -> Vec<RevocationRecord> {
        self.revocations.iter().cloned().collect()
    }
}
