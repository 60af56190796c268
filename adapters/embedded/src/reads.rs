//! What readers see: expired sessions are left out, nothing is changed.

use diesel::prelude::*;
use dlock_domain::{LockInfo, LockKey, Moment, SessionId};
use dlock_ports::{HeldGrant, ListRequest, Page};

use crate::codec;
use crate::error::Step;
use crate::schema::{dlock_locks, dlock_sessions};
use crate::tx::{SessionRow, Tx};
use crate::wait::Seen;

/// The live grant of a key.
pub(crate) fn info(tx: &mut Tx<'_>, key: &LockKey) -> Step<Option<LockInfo>> {
    let Some(row) = tx.lock(key)? else { return Ok(None) };
    let Some((session, _)) = row.holder else { return Ok(None) };
    let Some(session) = unexpired(tx, session)? else { return Ok(None) };
    Ok(Some(LockInfo {
        key: key.clone(),
        owner: session.owner,
        session: Some(session.id),
        token: codec::token(codec::number_column(row.fence))?,
        acquired_at: row.acquired_at,
        server_expiry: tx.wall.after(session.expires_at.since(tx.now)),
        waiter_count: 0,
    }))
}

/// Whether the grant that a failed attempt met is live still.
pub(crate) fn grant_seen(tx: &mut Tx<'_>, key: &LockKey, fence: u64) -> Step<Seen> {
    let Some(row) = tx.lock(key)? else { return Ok(Seen::Gone) };
    let Some((session, _)) = row.holder else { return Ok(Seen::Gone) };
    if row.fence != fence {
        return Ok(Seen::Gone);
    }
    let session = unexpired(tx, session)?;
    Ok(session.map_or(Seen::Gone, |session| Seen::LivesUntil(session.expires_at)))
}

/// A session and what it holds.
pub(crate) fn session(
    tx: &mut Tx<'_>,
    id: SessionId,
) -> Step<Option<(SessionRow, Moment, Vec<HeldGrant>)>> {
    let Some(session) = unexpired(tx, id)? else { return Ok(None) };
    let rows: Vec<(String, String, i64, Option<Vec<u8>>)> = dlock_locks::table
        .filter(dlock_locks::session.eq(codec::id_bytes(id.bits()).as_slice()))
        .order((dlock_locks::namespace, dlock_locks::name))
        .select((
            dlock_locks::namespace,
            dlock_locks::name,
            dlock_locks::fence,
            dlock_locks::attempt,
        ))
        .load(tx.connection())?;
    let mut grants = Vec::with_capacity(rows.len());
    for (namespace, name, fence, attempt) in rows {
        let key = codec::key(&namespace, &name)?;
        let attempt = codec::attempt_id(&attempt.unwrap_or_default(), &codec::place(&key))?;
        grants.push(HeldGrant { key, token: codec::token(fence)?, attempt });
    }
    Ok(Some((session, tx.now, grants)))
}

/// One page of live locks, in byte order.
pub(crate) fn list(tx: &mut Tx<'_>, request: &ListRequest) -> Step<Page> {
    let limit = usize::from(request.limit.max(1));
    let after = request.after.as_ref().map_or("", |name| name.as_str());
    let rows: Vec<(String, i64, i64, Vec<u8>, String, i64)> = dlock_locks::table
        .inner_join(
            dlock_sessions::table.on(dlock_sessions::id.nullable().eq(dlock_locks::session)),
        )
        .filter(dlock_locks::namespace.eq(request.namespace.as_str()))
        // Names are never empty, so the empty text lies before all of them.
        .filter(dlock_locks::name.gt(after))
        .filter(dlock_locks::name.ge(&*request.prefix))
        .filter(dlock_sessions::expires_at.gt(codec::moment_column(tx.now)))
        .order(dlock_locks::name)
        .limit(i64::try_from(limit + 1).unwrap_or(i64::MAX))
        .select((
            dlock_locks::name,
            dlock_locks::fence,
            dlock_locks::acquired_at,
            dlock_sessions::id,
            dlock_sessions::owner,
            dlock_sessions::expires_at,
        ))
        .load(tx.connection())?;
    let mut locks = Vec::new();
    // Sorted by bytes, the names with the prefix stand together.
    for (name, fence, acquired_at, session, owner, expires_at) in
        rows.into_iter().take_while(|row| row.0.starts_with(&*request.prefix))
    {
        let key = codec::key(request.namespace.as_str(), &name)?;
        let of = codec::place(&key);
        locks.push(LockInfo {
            owner: codec::owner(&owner, &of)?,
            session: Some(codec::session_id(&session, &of)?),
            token: codec::token(fence)?,
            acquired_at: codec::wall(acquired_at),
            server_expiry: tx.wall.after(codec::moment(expires_at).since(tx.now)),
            waiter_count: 0,
            key,
        });
    }
    let more = locks.len() > limit;
    locks.truncate(limit);
    let next = locks.last().filter(|_| more).map(|last| last.key.name().clone());
    Ok(Page { locks, next })
}

fn unexpired(tx: &mut Tx<'_>, id: SessionId) -> Step<Option<SessionRow>> {
    let now = tx.now;
    Ok(tx.session(id)?.filter(|session| session.expires_at > now))
}
