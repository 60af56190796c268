//! Grants: the seven methods of [`LockStore`], each one operation in the writer's transaction.

use async_trait::async_trait;
use dlock_domain::{
    Deadline, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome, Moment, Result,
    SessionId, TokenFloor,
};
use dlock_ports::{
    Attempt, Consistency, Holder, InsertRequest, Intent, LockStore, Observed, RevokeRequest,
};

use crate::error::Step;
use crate::tx::{SessionRow, Tx};
use crate::wait::Place;
use crate::{Inner, reads};

#[async_trait]
impl LockStore for Inner {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        let sent = self.clock.now();
        // Drawn even for open sessions: an operation must give the same answer when it is run
        // again after a group was rolled back.
        let fresh = SessionId::from_bits(self.entropy.bits());
        self.writer.call(by, move |tx| try_insert(tx, &request, fresh, sent)).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let (sent, key) = (self.clock.now(), key.clone());
        self.writer.call(by, move |tx| extend(tx, &key, token, sent)).await
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let key = key.clone();
        self.writer.call(by, move |tx| delete_if_owner(tx, &key, token)).await
    }

    /// Every reader sees all commits before it: both consistencies are the same here.
    async fn read(
        &self,
        key: &LockKey,
        _consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        let sought = key.clone();
        let found = self.reader.call(by, move |tx| reads::info(tx, &sought)).await?;
        Ok(found.map(|info| self.with_waiters(info)))
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let key = key.clone();
        self.writer.call(by, move |tx| revoke(tx, &key, &request)).await
    }

    /// Also forgets locks that nobody has held for long, behind the purge floor.
    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        self.writer
            .call(by, move |tx| {
                // Always written: readiness rests on it, and the moment that it records makes a
                // reboot re-arm less.
                tx.touch();
                let expired = tx.expired_sessions(limit)?;
                for id in &expired {
                    tx.end_session(*id)?;
                }
                tx.purge(limit)?;
                Ok(u32::try_from(expired.len()).unwrap_or(limit))
            })
            .await
    }

    fn backend_id(&self) -> &'static str {
        "embedded"
    }
}

fn try_insert(
    tx: &mut Tx<'_>,
    request: &InsertRequest,
    fresh: SessionId,
    sent: Moment,
) -> Step<Attempt> {
    let InsertRequest { key, holder, attempt, intent } = request;
    let open = match holder {
        Holder::Session(session) => {
            let Some(row) = tx.live_session(session.id)? else {
                return Err(LockError::session_expired().into());
            };
            Some(row)
        }
        Holder::Private { .. } => None,
    };
    if tx.is_settled(open.as_ref().map(|row| row.id), *attempt)? {
        return Err(LockError::invalid(
            "attempt_id",
            "this attempt was settled: it can never be granted; choose a new id",
        )
        .into());
    }
    let (row, live) = tx.live_grant(key)?;
    if let Some(open) = open.as_ref().filter(|open| open.private)
        && live.as_ref().is_none_or(|(session, _)| session.id != open.id)
    {
        return Err(LockError::invalid(
            "session_id",
            "this session was made for another lock: open one for several",
        )
        .into());
    }
    let fence = row.as_ref().map_or(0, |row| row.fence);
    if let Some((session, of)) = live {
        if of != *attempt {
            return Ok(held(fence));
        }
        if !is_holder(&session, holder) {
            return Err(LockError::invalid(
                "attempt_id",
                "this attempt holds the lock for another session, owner or lifetime",
            )
            .into());
        }
        // Its own grant, found again: the lease was set earlier, so only what is left of it counts.
        let token = FencingToken::from_store(fence)?;
        return Ok(Attempt::Granted(from_look(tx, key, &session, token, sent)));
    }
    if *intent == Intent::Recover {
        return Ok(held(fence));
    }
    if row.is_none() {
        tx.room_for_a_lock()?;
    }
    // Drawn before anything is written: a refusal leaves at most a gap between tokens.
    let token = tx.draw(key, fence)?;
    let (session, deadline) = match (open, holder) {
        (Some(session), _) => {
            let left = session.expires_at.since(tx.now);
            let deadline = sent.holder_deadline_from_look(left, session.ttl);
            (session, deadline)
        }
        (None, Holder::Private { owner, ttl }) => {
            let session = SessionRow {
                id: fresh,
                owner: owner.clone(),
                ttl: *ttl,
                expires_at: tx.now.after(ttl.as_duration()),
                private: true,
            };
            tx.insert_session(&session)?;
            (session, sent.holder_deadline(*ttl, *ttl))
        }
        (None, Holder::Session(_)) => return Err(LockError::session_expired().into()),
    };
    tx.grant(key, row.as_ref(), token, session.id, *attempt)?;
    Ok(Attempt::Granted(handle(tx, key, &session, token, deadline)))
}

fn held(fence: u64) -> Attempt {
    Attempt::Held(Observed::new(Place { fence }))
}

/// Whether a repeat of an attempt comes from the one who was granted it.
fn is_holder(session: &SessionRow, holder: &Holder) -> bool {
    match holder {
        Holder::Session(asked) => session.id == asked.id,
        Holder::Private { owner, ttl } => {
            session.private && session.owner == *owner && session.ttl == *ttl
        }
    }
}

fn extend(
    tx: &mut Tx<'_>,
    key: &LockKey,
    token: FencingToken,
    sent: Moment,
) -> Step<Option<LockHandle>> {
    let (row, live) = tx.live_grant(key)?;
    match (row, live) {
        (Some(row), Some((session, _))) if row.fence == token.get() => {
            let session = tx.extend_session(&session)?;
            let deadline = sent.holder_deadline(session.ttl, session.ttl);
            Ok(Some(handle(tx, key, &session, token, deadline)))
        }
        _ => Ok(None),
    }
}

fn delete_if_owner(tx: &mut Tx<'_>, key: &LockKey, token: FencingToken) -> Step<bool> {
    let (row, live) = tx.live_grant(key)?;
    match (row, live) {
        (Some(row), Some((session, _))) if row.fence == token.get() => {
            if session.private {
                tx.end_private(session.id, key, &row, row.fence)?;
            } else {
                tx.free(key, Some(&row), row.fence)?;
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn revoke(tx: &mut Tx<'_>, key: &LockKey, request: &RevokeRequest) -> Step<LockOutcome> {
    let (row, live) = tx.live_grant(key)?;
    let fence = row.as_ref().map_or(0, |row| row.fence);
    let current = live.as_ref().map(|_| FencingToken::from_store(fence)).transpose()?;
    if request.expected.is_some() && request.expected != current {
        return Ok(LockOutcome::Mismatch { current });
    }
    if row.is_none() {
        tx.room_for_a_lock()?;
    }
    let floor = TokenFloor::at(tx.draw(key, fence)?);
    if let Some((session, _)) = live.filter(|(session, _)| session.private) {
        tx.end_session(session.id)?;
    }
    tx.free(key, row.as_ref(), floor.get())?;
    tx.record_revocation(key, current, floor, &request.actor, request.reason.as_str())?;
    Ok(match current {
        Some(previous) => LockOutcome::Revoked { previous, floor },
        None => LockOutcome::Free { floor },
    })
}

/// A handle whose lease somebody set earlier.
fn from_look(
    tx: &Tx<'_>,
    key: &LockKey,
    session: &SessionRow,
    token: FencingToken,
    sent: Moment,
) -> LockHandle {
    let left = session.expires_at.since(tx.now);
    handle(tx, key, session, token, sent.holder_deadline_from_look(left, session.ttl))
}

fn handle(
    tx: &Tx<'_>,
    key: &LockKey,
    session: &SessionRow,
    token: FencingToken,
    client_deadline: Moment,
) -> LockHandle {
    LockHandle {
        key: key.clone(),
        owner: session.owner.clone(),
        session: session.id,
        token,
        ttl: session.ttl,
        client_deadline,
        server_expiry: tx.wall.after(session.expires_at.since(tx.now)),
    }
}
