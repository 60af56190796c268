//! Grants: the port [`LockStore`].

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, Invariant, LockError, LockHandle, LockInfo, LockKey,
    LockOutcome, Result, RevocationRecord, SessionId, TokenFloor,
    lock::{Effect, Grant, LockEvent, Proposal},
};
use dlock_ports::{
    Attempt, Consistency, Holder, InsertRequest, Intent, LockStore, Observed, RevokeRequest,
};

use crate::{
    At, MemoryStore,
    state::{SessionRow, State},
    wait::Place,
};

#[async_trait]
impl LockStore for MemoryStore {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let fresh = SessionId::from_bits(self.entropy.bits());
        self.enter(by, |state, at| state.try_insert(&request, fresh, at))
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        self.enter(by, |state, at| Ok(state.extend(key, token, at)))
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        self.enter(by, |state, at| {
            state.meet(key, at.now);
            Ok(matches!(state.apply(key, LockEvent::Delete(token)), Effect::Ended(_)))
        })
    }

    async fn read(
        &self,
        key: &LockKey,
        _consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        self.enter(by, |state, at| {
            let Some(grant) = state.meet(key, at.now) else { return Ok(None) };
            let row = state.live_holder(&grant, at.now);
            Ok(row.map(|row| state.info(key, &grant, row, at)))
        })
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        self.enter(by, |state, at| state.revoke(key, request, at))
    }

    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.enter(by, |state, at| {
            let reaped = state.reap(usize::try_from(limit).unwrap_or(usize::MAX), at.now);
            Ok(u32::try_from(reaped).unwrap_or(limit))
        })
    }

    fn backend_id(&self) -> &'static str {
        "memory"
    }
}

impl State {
    /// `fresh` is the id that a private session would get.
    fn try_insert(&mut self, request: &InsertRequest, fresh: SessionId, at: At) -> Result<Attempt> {
        let InsertRequest { key, holder, attempt, intent } = request;
        let grant = self.meet(key, at.now);
        if let Holder::Session(session) = holder
            && self.meet_session(&session.id, at.now).is_none()
        {
            return Err(LockError::session_expired());
        }
        if let Holder::Session(session) = holder
            && self.is_private_to_another(&session.id, key)
        {
            return Err(LockError::invalid(
                "session_id",
                "this session was made for another lock: open one for several",
            ));
        }
        if self.is_settled(holder, *attempt) {
            return Err(LockError::invalid("attempt_id", "this attempt was settled"));
        }
        let own = grant.as_ref().filter(|grant| grant.attempt == *attempt);
        if own.is_none() && (grant.is_some() || *intent == Intent::Recover) {
            let place = Place::of(grant.as_ref());
            return Ok(Attempt::Held(Observed::new(place)));
        }
        let session = match holder {
            Holder::Session(session) => session.id,
            Holder::Private { owner, ttl } => own
                .map(|grant| grant.session)
                .filter(|id| {
                    self.is_private_to(id, key)
                        && self
                            .sessions
                            .get(id)
                            .is_some_and(|row| row.owner == *owner && row.ttl == *ttl)
                })
                .unwrap_or(fresh),
        };
        if own.is_none() {
            if let Holder::Private { .. } = holder {
                self.room_for_session(at.now)?;
                if self.sessions.contains_key(&fresh) {
                    return Err(LockError::contention("the id drawn for the session is taken"));
                }
            }
            self.ensure_row(key, at.now)?;
        }
        let token = self.next_token()?;
        let proposal = Proposal { session, attempt: *attempt, token, at: at.wall };
        match self.apply(key, LockEvent::Insert(proposal.clone())) {
            Effect::Granted => self.granted(key, holder, proposal, at),
            Effect::Recognised(token) => {
                let grant = Grant { token, ..grant_of(proposal) };
                let row = self.sessions.get(&session).ok_or_else(LockError::session_expired)?;
                let deadline = row.deadline_from_look(at);
                Ok(Attempt::Granted(row.to_handle(key, &grant, deadline, at)))
            }
            Effect::AttemptMisused => {
                Err(LockError::invalid("attempt_id", "this attempt holds the lock for another"))
            }
            effect => Err(LockError::incident(
                Invariant::TokensRise,
                format!("token {token} does not exceed the fence of {key:?} ({effect:?})"),
            )),
        }
    }

    /// A new grant: its token counts as drawn, and its session knows of it.
    fn granted(
        &mut self,
        key: &LockKey,
        holder: &Holder,
        proposal: Proposal,
        at: At,
    ) -> Result<Attempt> {
        self.counter = proposal.token.get();
        let grant = grant_of(proposal);
        if let Holder::Private { owner, ttl } = holder {
            let row = SessionRow::new(owner.clone(), *ttl, at.now, Some(key.clone()));
            self.sessions.insert(grant.session, row);
        }
        let row = self.sessions.get_mut(&grant.session).ok_or_else(LockError::session_expired)?;
        row.held.insert(key.clone());
        let deadline = match holder {
            Holder::Private { .. } => at.sent.holder_deadline(row.ttl, row.ttl),
            Holder::Session(_) => row.deadline_from_look(at),
        };
        Ok(Attempt::Granted(row.to_handle(key, &grant, deadline, at)))
    }

    fn is_settled(&self, holder: &Holder, attempt: AttemptId) -> bool {
        match holder {
            Holder::Session(session) => {
                self.sessions.get(&session.id).is_some_and(|row| row.settled.contains(&attempt))
            }
            Holder::Private { .. } => self.settled.contains(attempt),
        }
    }

    fn extend(&mut self, key: &LockKey, token: FencingToken, at: At) -> Option<LockHandle> {
        let grant = self.meet(key, at.now)?;
        if self.apply(key, LockEvent::Extend(token)) != Effect::Extended {
            return None;
        }
        let row = self.sessions.get_mut(&grant.session)?;
        let deadline = row.extend(at);
        Some(row.to_handle(key, &grant, deadline, at))
    }

    fn revoke(&mut self, key: &LockKey, request: RevokeRequest, at: At) -> Result<LockOutcome> {
        let RevokeRequest { actor, reason, expected } = request;
        let live = self.meet(key, at.now).map(|grant| grant.token);
        if expected.is_none() || expected == live {
            self.ensure_row(key, at.now)?;
        }
        // A number of its own from the one source: above every token before, below every later.
        let floor = TokenFloor::at(self.next_token()?);
        let outcome = match self.apply(key, LockEvent::Revoke { expected, floor }) {
            Effect::Revoke(outcome) => outcome,
            effect => {
                return Err(LockError::incident(
                    Invariant::TokensRise,
                    format!("floor {floor} does not exceed the fence of {key:?} ({effect:?})"),
                ));
            }
        };
        let (previous, floor) = match outcome {
            LockOutcome::Mismatch { .. } => return Ok(outcome),
            LockOutcome::Revoked { previous, floor } => (Some(previous), floor),
            LockOutcome::Free { floor } => (None, floor),
        };
        self.counter = floor.get();
        let key = key.clone();
        self.record(RevocationRecord { key, previous, floor, actor, reason, at: at.wall });
        Ok(outcome)
    }
}

fn grant_of(proposal: Proposal) -> Grant {
    let Proposal { session, attempt, token, at } = proposal;
    Grant { token, session, attempt, acquired_at: at }
}
