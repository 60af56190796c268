//! Sessions: the lease that everything hangs on.

use async_trait::async_trait;
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockError, LockKey, Moment, OwnerId, Result, Session,
    SessionId, Ttl,
};
use dlock_ports::{HeldGrant, Holder, Kept, SessionStore};

use crate::error::Step;
use crate::tx::{SessionRow, Tx};
use crate::{Inner, reads};

#[async_trait]
impl SessionStore for Inner {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let sent = self.clock.now();
        let id = id.unwrap_or_else(|| SessionId::from_bits(self.entropy.bits()));
        self.writer.call(by, move |tx| open(tx, &owner, ttl, id, sent)).await
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let (sent, id, held) = (self.clock.now(), *id, held.to_vec());
        self.writer.call(by, move |tx| keep_alive(tx, id, &held, sent)).await
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        let (sent, id) = (self.clock.now(), *id);
        let found = self.reader.call(by, move |tx| reads::session(tx, id)).await?;
        Ok(found.map(|(row, now, grants)| {
            let left = row.expires_at.since(now);
            let deadline = sent.holder_deadline_from_look(left, row.ttl);
            (session(&row, deadline), grants)
        }))
    }

    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let key = key.clone();
        let of = match holder {
            Holder::Session(session) => Some(session.id),
            Holder::Private { .. } => None,
        };
        self.writer.call(by, move |tx| forget(tx, &key, of, attempt)).await
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        let id = *id;
        self.writer
            .call(by, move |tx| {
                let live = tx.live_session(id)?.is_some();
                if live {
                    tx.end_session(id)?;
                }
                Ok(live)
            })
            .await
    }
}

fn open(tx: &mut Tx<'_>, owner: &OwnerId, ttl: Ttl, id: SessionId, sent: Moment) -> Step<Session> {
    let deadline = sent.holder_deadline(ttl, ttl);
    if let Some(row) = tx.live_session(id)? {
        if row.owner != *owner || row.ttl != ttl || row.private {
            return Err(LockError::invalid(
                "session_id",
                "is open already under another owner or lifetime",
            )
            .into());
        }
        let row = tx.extend_session(&row)?;
        return Ok(session(&row, deadline));
    }
    let row = SessionRow {
        id,
        owner: owner.clone(),
        ttl,
        expires_at: tx.now.after(ttl.as_duration()),
        private: false,
    };
    tx.insert_session(&row)?;
    Ok(session(&row, deadline))
}

fn keep_alive(
    tx: &mut Tx<'_>,
    id: SessionId,
    held: &[(LockKey, FencingToken)],
    sent: Moment,
) -> Step<Option<Kept>> {
    let Some(row) = tx.live_session(id)? else { return Ok(None) };
    let row = tx.extend_session(&row)?;
    let mut lost = Vec::new();
    for (key, token) in held {
        let there = tx.lock(key)?.is_some_and(|lock| {
            lock.fence == token.get() && lock.holder.is_some_and(|(session, _)| session == id)
        });
        if !there {
            lost.push((key.clone(), *token));
        }
    }
    let deadline = sent.holder_deadline(row.ttl, row.ttl);
    Ok(Some(Kept { session: session(&row, deadline), lost }))
}

/// Marks first, then looks: whatever comes later meets the mark.
fn forget(tx: &mut Tx<'_>, key: &LockKey, of: Option<SessionId>, attempt: AttemptId) -> Step<bool> {
    if let Some(id) = of {
        let Some(row) = tx.live_session(id)? else {
            // What it held is gone, and nothing more can be granted to it. (A private attempt is
            // known to its holder by its grant, whose end makes any later copy a new call.)
            return Ok(false);
        };
        // Repeats of a private attempt come without a session, and look among those marks.
        if let Err(full) = tx.settle(of.filter(|_| !row.private), attempt) {
            // No room for the mark: then at least nothing stays held that nobody claims (INV-09).
            end_attempt(tx, key, of, attempt)?;
            return Err(full);
        }
    } else {
        tx.settle(None, attempt)?;
    }
    end_attempt(tx, key, of, attempt)
}

/// Ends what the attempt holds, if it is this holder's.
fn end_attempt(
    tx: &mut Tx<'_>,
    key: &LockKey,
    of: Option<SessionId>,
    attempt: AttemptId,
) -> Step<bool> {
    let (row, live) = tx.live_grant(key)?;
    match (row, live) {
        (Some(row), Some((session, granted))) if granted == attempt => match of {
            Some(id) if session.id == id && !session.private => {
                tx.free(key, Some(&row), row.fence)?;
                Ok(true)
            }
            Some(id) if session.id == id => {
                tx.end_session(id)?;
                Ok(true)
            }
            None if session.private => {
                tx.end_session(session.id)?;
                Ok(true)
            }
            _ => Ok(false),
        },
        _ => Ok(false),
    }
}

fn session(row: &SessionRow, client_deadline: Moment) -> Session {
    Session { id: row.id, owner: row.owner.clone(), ttl: row.ttl, client_deadline }
}
