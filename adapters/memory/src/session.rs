//! Sessions: the port [`SessionStore`].

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockError, LockKey, OwnerId, Result, Session, SessionId,
    Ttl,
    lock::{Effect, LockEvent},
};
use dlock_ports::{HeldGrant, Holder, Kept, SessionStore};

use crate::{
    At, MemoryStore,
    state::{SessionRow, State},
};

#[async_trait]
impl SessionStore for MemoryStore {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let fresh = SessionId::from_bits(self.entropy.bits());
        self.enter(by, |state, at| match id {
            Some(id) => state.open_or_extend(id, owner, ttl, at),
            None if state.sessions.contains_key(&fresh) => {
                Err(LockError::contention("the id drawn for the session is taken"))
            }
            None => state.open_or_extend(fresh, owner, ttl, at),
        })
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        self.enter(by, |state, at| Ok(state.keep_alive(id, held, at)))
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        self.enter(by, |state, at| Ok(state.look(id, at)))
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        self.enter(by, |state, at| state.forget(key, holder, attempt, at))
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        self.enter(by, |state, at| {
            let live = state.meet_session(id, at.now).is_some();
            Ok(live && state.end_session(id, LockEvent::SessionClosed(*id)))
        })
    }
}

impl State {
    fn open_or_extend(
        &mut self,
        id: SessionId,
        owner: OwnerId,
        ttl: Ttl,
        at: At,
    ) -> Result<Session> {
        if let Some(row) = self.meet_session(&id, at.now) {
            if row.owner != owner || row.ttl != ttl || row.private_to.is_some() {
                return Err(LockError::invalid(
                    "session_id",
                    "is open under another owner or lifetime",
                ));
            }
            let deadline = row.extend(at);
            return Ok(row.to_session(id, deadline));
        }
        self.room_for_session(at.now)?;
        let row = SessionRow::new(owner, ttl, at.now, None);
        let session = row.to_session(id, at.sent.holder_deadline(ttl, ttl));
        self.sessions.insert(id, row);
        Ok(session)
    }

    fn keep_alive(
        &mut self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        at: At,
    ) -> Option<Kept> {
        let row = self.meet_session(id, at.now)?;
        let deadline = row.extend(at);
        let session = row.to_session(*id, deadline);
        let lost = held
            .iter()
            .filter(|(key, token)| {
                let live = self.meet(key, at.now);
                !live.is_some_and(|grant| grant.token == *token && grant.session == *id)
            })
            .cloned()
            .collect();
        Some(Kept { session, lost })
    }

    fn look(&mut self, id: &SessionId, at: At) -> Option<(Session, Vec<HeldGrant>)> {
        let row = self.meet_session(id, at.now)?;
        let session = row.to_session(*id, row.deadline_from_look(at));
        let keys: Vec<LockKey> = row.held.iter().cloned().collect();
        let grants = keys
            .into_iter()
            .filter_map(|key| {
                let grant = self.meet(&key, at.now)?;
                Some(HeldGrant { key, token: grant.token, attempt: grant.attempt })
            })
            .collect();
        Some((session, grants))
    }

    /// The mark comes first, the look at what the attempt holds second; under one lock the order
    /// cannot be seen.
    fn forget(
        &mut self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        at: At,
    ) -> Result<bool> {
        match holder {
            Holder::Session(session) => {
                let most = self.limits.max_settled_attempts;
                let Some(row) = self.meet_session(&session.id, at.now) else {
                    // With its session an attempt is settled already.
                    return Ok(false);
                };
                if row.settled.len() >= most && !row.settled.contains(&attempt) {
                    // No room for the mark: then at least nothing stays held that nobody claims
                    // (INV-09).
                    self.end_attempt(key, holder, attempt, at);
                    return Err(LockError::limit(
                        "lock.max_settled_attempts",
                        "this session has settled too many attempts: close it",
                    ));
                }
                row.settled.insert(attempt);
                if row.private_to.is_some() {
                    // Repeats of a private attempt come without a session.
                    self.settled.insert(attempt, at.now);
                }
            }
            Holder::Private { .. } => self.settled.insert(attempt, at.now),
        }
        Ok(self.end_attempt(key, holder, attempt, at))
    }

    /// Ends what the attempt holds, if it is this holder's: nobody ends another's grant by knowing
    /// its name.
    fn end_attempt(&mut self, key: &LockKey, holder: &Holder, attempt: AttemptId, at: At) -> bool {
        let own = self.meet(key, at.now).is_some_and(|grant| match holder {
            Holder::Session(session) => grant.session == session.id,
            Holder::Private { .. } => self.is_private_to(&grant.session, key),
        });
        own && matches!(self.apply(key, LockEvent::Forget(attempt)), Effect::Ended(_))
    }
}
