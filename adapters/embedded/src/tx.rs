//! One open transaction: the moment it works at, the file's counters, and the rows.
//!
//! Everything that changes a row is here, so that the counters and the list of ended grants stay
//! true. The rules of who may do what are in `store`, `session` and `floor`.

use std::time::Duration;

use diesel::prelude::*;
use dlock_domain::{
    AttemptId, FencingToken, Invariant, LockError, LockKey, Moment, OwnerId, SessionId, TokenFloor,
    Ttl, WallTime,
};
use dlock_ports::Clock;

use crate::codec;
use crate::error::Step;
use crate::schema::{dlock_locks, dlock_meta, dlock_revocations, dlock_sessions, dlock_settled};

/// Bounds on what the file may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) sessions: u64,
    pub(crate) locks: u64,
    pub(crate) purge_after: Duration,
}

/// Attempts that one session may settle: bounds the marks of a session that never ends.
const SETTLED_PER_SESSION: i64 = 4_096;
/// Settled attempts without a session that are remembered.
const SETTLED_PRIVATE: i64 = 100_000;
/// How many of the oldest make room when there are that many.
const SETTLED_TRIM: i64 = 1_000;
/// How many of what has ended are cleared away to make room when a limit is reached.
const ROOM: u32 = 100;
/// Revocations that are kept.
const REVOCATIONS: i64 = 10_000;

#[derive(Clone, Debug, Queryable)]
struct Meta {
    last_token: i64,
    floor: i64,
    sessions: i64,
    locks: i64,
    settled: i64,
}

/// A live session's row.
#[derive(Clone, Debug)]
pub(crate) struct SessionRow {
    pub(crate) id: SessionId,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    pub(crate) expires_at: Moment,
    pub(crate) private: bool,
}

/// A lock's row; whether its session lives is another row's to say.
#[derive(Clone, Debug)]
pub(crate) struct LockRow {
    pub(crate) fence: u64,
    pub(crate) holder: Option<(SessionId, AttemptId)>,
    pub(crate) acquired_at: WallTime,
}

/// The session of a live grant, and the attempt that was granted.
type LiveGrant = (SessionRow, AttemptId);

type RawSession = (Vec<u8>, String, i64, i64, bool);
type RawLock = (i64, Option<Vec<u8>>, Option<Vec<u8>>, i64);

pub(crate) struct Tx<'c> {
    connection: &'c mut SqliteConnection,
    pub(crate) now: Moment,
    pub(crate) wall: WallTime,
    meta: Meta,
    changed: bool,
    ended: Vec<LockKey>,
    limits: Limits,
}

impl<'c> Tx<'c> {
    /// Starts work in a transaction that has begun. The clock is read after the first look at the
    /// file, so that "now" is never earlier than what the transaction sees (trap 24).
    pub(crate) fn begin(
        connection: &'c mut SqliteConnection,
        clock: &dyn Clock,
        limits: Limits,
    ) -> QueryResult<Self> {
        let meta = dlock_meta::table
            .select((
                dlock_meta::last_token,
                dlock_meta::floor,
                dlock_meta::sessions,
                dlock_meta::locks,
                dlock_meta::settled,
            ))
            .first(connection)?;
        let (now, wall) = (clock.now(), clock.wall());
        Ok(Self { connection, now, wall, meta, changed: false, ended: Vec::new(), limits })
    }

    /// Writes the counters and the moment back; the grants that ended, for those who wait.
    pub(crate) fn finish(self) -> QueryResult<Vec<LockKey>> {
        if self.changed {
            diesel::update(dlock_meta::table)
                .set((
                    dlock_meta::boot_nanos.eq(codec::moment_column(self.now)),
                    dlock_meta::last_token.eq(self.meta.last_token),
                    dlock_meta::floor.eq(self.meta.floor),
                    dlock_meta::sessions.eq(self.meta.sessions),
                    dlock_meta::locks.eq(self.meta.locks),
                    dlock_meta::settled.eq(self.meta.settled),
                ))
                .execute(self.connection)?;
        }
        Ok(self.ended)
    }

    /// Has this transaction written, so that its commit shows whether the file can be written, and
    /// records its moment.
    pub(crate) fn touch(&mut self) {
        self.changed = true;
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        self.connection
    }

    // Tokens.

    pub(crate) fn highest_known(&self) -> u64 {
        codec::number(self.meta.last_token)
    }

    /// The next token for a key whose row knows `fence`; an incident instead of one that would not
    /// rise (INV-04).
    pub(crate) fn draw(&mut self, key: &LockKey, fence: u64) -> Step<FencingToken> {
        if self.highest_known() >= FencingToken::MAX {
            return Err(LockError::incident(
                Invariant::TokensRise,
                "the tokens of this store are used up: floors were raised to the end of their \
                 range; start a new store for new lock names",
            )
            .into());
        }
        let token = FencingToken::from_store(self.highest_known().saturating_add(1))?;
        let floor = fence.max(codec::number(self.meta.floor));
        if token.get() <= floor {
            return Err(LockError::incident(
                Invariant::TokensRise,
                format!(
                    "the next token for {} would be {token}, at or below {floor}: the file was set \
                     back; raise the token floor",
                    codec::place(key)
                ),
            )
            .into());
        }
        self.meta.last_token = codec::number_column(token.get());
        self.changed = true;
        Ok(token)
    }

    /// Makes every later token greater than `floor`.
    pub(crate) fn raise_floor(&mut self, floor: TokenFloor) {
        let floor = codec::number_column(floor.get());
        self.meta.last_token = self.meta.last_token.max(floor);
        self.meta.floor = self.meta.floor.max(floor);
        self.changed = true;
    }

    // Sessions.

    /// The session, if it lives. One whose lease has ended is ended here and now: expiry is
    /// deletion by whoever meets it (C1).
    pub(crate) fn live_session(&mut self, id: SessionId) -> Step<Option<SessionRow>> {
        let Some(row) = self.session(id)? else { return Ok(None) };
        if row.expires_at <= self.now {
            self.end_session(id)?;
            return Ok(None);
        }
        Ok(Some(row))
    }

    /// The session's row as it stands, expired or not: for readers.
    pub(crate) fn session(&mut self, id: SessionId) -> Step<Option<SessionRow>> {
        let raw: Option<RawSession> = dlock_sessions::table
            .find(codec::id_bytes(id.bits()).as_slice())
            .first(self.connection)
            .optional()?;
        raw.map(session_row).transpose()
    }

    pub(crate) fn insert_session(&mut self, row: &SessionRow) -> Step<()> {
        if codec::number(self.meta.sessions) >= self.limits.sessions {
            // What has ended makes room at once, not when the reaper comes.
            for ended in self.expired_sessions(ROOM)? {
                self.end_session(ended)?;
            }
        }
        if codec::number(self.meta.sessions) >= self.limits.sessions {
            return Err(LockError::limit("lock.max_sessions", "too many sessions are open").into());
        }
        diesel::insert_into(dlock_sessions::table)
            .values((
                dlock_sessions::id.eq(codec::id_bytes(row.id.bits()).as_slice()),
                dlock_sessions::owner.eq(row.owner.as_str()),
                dlock_sessions::ttl_ms.eq(codec::number_column(row.ttl.as_millis())),
                dlock_sessions::expires_at.eq(codec::moment_column(row.expires_at)),
                dlock_sessions::private.eq(row.private),
            ))
            .execute(self.connection)?;
        self.meta.sessions += 1;
        self.changed = true;
        Ok(())
    }

    /// Gives a live session its whole lifetime from now.
    pub(crate) fn extend_session(&mut self, row: &SessionRow) -> Step<SessionRow> {
        let expires_at = self.now.after(row.ttl.as_duration()).max(row.expires_at);
        diesel::update(dlock_sessions::table.find(codec::id_bytes(row.id.bits()).as_slice()))
            .set(dlock_sessions::expires_at.eq(codec::moment_column(expires_at)))
            .execute(self.connection)?;
        self.changed = true;
        Ok(SessionRow { expires_at, ..row.clone() })
    }

    /// Ends a session with all its grants and marks.
    pub(crate) fn end_session(&mut self, id: SessionId) -> Step<()> {
        let bytes = codec::id_bytes(id.bits());
        let bytes = bytes.as_slice();
        let held: Vec<(String, String)> = dlock_locks::table
            .filter(dlock_locks::session.eq(bytes))
            .select((dlock_locks::namespace, dlock_locks::name))
            .load(self.connection)?;
        for (namespace, name) in &held {
            self.ended.push(codec::key(namespace, name)?);
        }
        if !held.is_empty() {
            diesel::update(dlock_locks::table.filter(dlock_locks::session.eq(bytes)))
                .set((
                    dlock_locks::session.eq(None::<&[u8]>),
                    dlock_locks::attempt.eq(None::<&[u8]>),
                ))
                .execute(self.connection)?;
        }
        diesel::delete(dlock_settled::table.filter(dlock_settled::session.eq(bytes)))
            .execute(self.connection)?;
        let gone = diesel::delete(dlock_sessions::table.find(bytes)).execute(self.connection)?;
        self.meta.sessions -= i64::try_from(gone).unwrap_or(0);
        self.changed = true;
        Ok(())
    }

    /// Ends a private session with its one lock, whose row is at hand: the common way for a grant
    /// to end, and so without looking for what cannot be there.
    pub(crate) fn end_private(
        &mut self,
        id: SessionId,
        key: &LockKey,
        known: &LockRow,
        fence: u64,
    ) -> Step<()> {
        self.free(key, Some(known), fence)?;
        let gone =
            diesel::delete(dlock_sessions::table.find(codec::id_bytes(id.bits()).as_slice()))
                .execute(self.connection)?;
        self.meta.sessions -= i64::try_from(gone).unwrap_or(0);
        Ok(())
    }

    pub(crate) fn expired_sessions(&mut self, limit: u32) -> Step<Vec<SessionId>> {
        let ids: Vec<Vec<u8>> = dlock_sessions::table
            .filter(dlock_sessions::expires_at.le(codec::moment_column(self.now)))
            .order(dlock_sessions::expires_at)
            .limit(i64::from(limit))
            .select(dlock_sessions::id)
            .load(self.connection)?;
        Ok(ids.iter().map(|id| codec::session_id(id, "a session")).collect::<Result<_, _>>()?)
    }

    // Locks.

    pub(crate) fn lock(&mut self, key: &LockKey) -> Step<Option<LockRow>> {
        let raw: Option<RawLock> = dlock_locks::table
            .find((key.namespace().as_str(), key.name().as_str()))
            .select((
                dlock_locks::fence,
                dlock_locks::session,
                dlock_locks::attempt,
                dlock_locks::acquired_at,
            ))
            .first(self.connection)
            .optional()?;
        raw.map(|raw| lock_row(raw, key)).transpose()
    }

    /// The lock's row and the session of its live grant, ending what has expired.
    pub(crate) fn live_grant(
        &mut self,
        key: &LockKey,
    ) -> Step<(Option<LockRow>, Option<LiveGrant>)> {
        let Some(row) = self.lock(key)? else { return Ok((None, None)) };
        let Some((session, attempt)) = row.holder else { return Ok((Some(row), None)) };
        let live = self.live_session(session)?;
        Ok((Some(row), live.map(|session| (session, attempt))))
    }

    /// Writes a grant into the lock's row, `known` being the row as it was read.
    pub(crate) fn grant(
        &mut self,
        key: &LockKey,
        known: Option<&LockRow>,
        token: FencingToken,
        session: SessionId,
        attempt: AttemptId,
    ) -> Step<()> {
        let (session, attempt) = (codec::id_bytes(session.bits()), codec::id_bytes(attempt.bits()));
        self.write_lock(key, known, token.get(), Some((session.as_slice(), attempt.as_slice())))
    }

    /// Frees the lock and leaves `fence` behind.
    pub(crate) fn free(&mut self, key: &LockKey, known: Option<&LockRow>, fence: u64) -> Step<()> {
        if known.is_some_and(|row| row.holder.is_some()) {
            self.ended.push(key.clone());
        }
        self.write_lock(key, known, fence, None)
    }

    fn write_lock(
        &mut self,
        key: &LockKey,
        known: Option<&LockRow>,
        fence: u64,
        holder: Option<(&[u8], &[u8])>,
    ) -> Step<()> {
        let wall = codec::wall_column(self.wall);
        let values = (
            dlock_locks::fence.eq(codec::number_column(fence)),
            dlock_locks::session.eq(holder.map(|(session, _)| session)),
            dlock_locks::attempt.eq(holder.map(|(_, attempt)| attempt)),
            dlock_locks::acquired_at.eq(wall),
            dlock_locks::touched_at.eq(wall),
        );
        let id = (key.namespace().as_str(), key.name().as_str());
        if known.is_some() {
            diesel::update(dlock_locks::table.find(id)).set(values).execute(self.connection)?;
        } else {
            self.room_for_a_lock()?;
            diesel::insert_into(dlock_locks::table)
                .values((dlock_locks::namespace.eq(id.0), dlock_locks::name.eq(id.1), values))
                .execute(self.connection)?;
            self.meta.locks += 1;
        }
        self.changed = true;
        Ok(())
    }

    /// Checked before anything is written, so that a refusal leaves nothing half done.
    pub(crate) fn room_for_a_lock(&mut self) -> Step<()> {
        if codec::number(self.meta.locks) >= self.limits.locks {
            for ended in self.expired_sessions(ROOM)? {
                self.end_session(ended)?;
            }
            self.forget_idle(ROOM, i64::MAX)?;
        }
        if codec::number(self.meta.locks) >= self.limits.locks {
            return Err(LockError::limit("lock.max_locks", "too many locks are known").into());
        }
        Ok(())
    }

    /// The keys of a namespace that some session holds, expired or not.
    pub(crate) fn held_keys(&mut self, namespace: &str) -> Step<Vec<LockKey>> {
        let names: Vec<String> = dlock_locks::table
            .filter(dlock_locks::namespace.eq(namespace))
            .filter(dlock_locks::session.is_not_null())
            .select(dlock_locks::name)
            .load(self.connection)?;
        Ok(names.iter().map(|name| codec::key(namespace, name)).collect::<Result<_, _>>()?)
    }

    // Settled attempts. A private holder has no session to hang its mark on: an empty one.

    pub(crate) fn is_settled(
        &mut self,
        session: Option<SessionId>,
        attempt: AttemptId,
    ) -> Step<bool> {
        let found: Option<i64> = dlock_settled::table
            .find((mark_session(session), codec::id_bytes(attempt.bits()).as_slice()))
            .select(dlock_settled::settled_at)
            .first(self.connection)
            .optional()?;
        Ok(found.is_some())
    }

    pub(crate) fn settle(&mut self, session: Option<SessionId>, attempt: AttemptId) -> Step<()> {
        if self.is_settled(session, attempt)? {
            return Ok(());
        }
        if session.is_some() {
            let marks: i64 = dlock_settled::table
                .filter(dlock_settled::session.eq(mark_session(session)))
                .count()
                .get_result(self.connection)?;
            if marks >= SETTLED_PER_SESSION {
                return Err(LockError::limit(
                    "lock.max_settled_attempts",
                    "the session has settled too many attempts: close it",
                )
                .into());
            }
        } else if self.meta.settled >= SETTLED_PRIVATE {
            self.trim_settled(SETTLED_TRIM, None)?;
        }
        diesel::insert_into(dlock_settled::table)
            .values((
                dlock_settled::session.eq(mark_session(session)),
                dlock_settled::attempt.eq(codec::id_bytes(attempt.bits()).as_slice()),
                dlock_settled::settled_at.eq(codec::wall_column(self.wall)),
            ))
            .execute(self.connection)?;
        self.meta.settled += i64::from(session.is_none());
        self.changed = true;
        Ok(())
    }

    /// Drops at most `limit` of the oldest private marks, those settled before `before` only.
    fn trim_settled(&mut self, limit: i64, before: Option<i64>) -> Step<()> {
        let oldest: Vec<Vec<u8>> = dlock_settled::table
            .filter(dlock_settled::session.eq(mark_session(None)))
            .filter(dlock_settled::settled_at.lt(before.unwrap_or(i64::MAX)))
            .order(dlock_settled::settled_at)
            .limit(limit)
            .select(dlock_settled::attempt)
            .load(self.connection)?;
        for attempt in &oldest {
            diesel::delete(dlock_settled::table.find((mark_session(None), attempt.as_slice())))
                .execute(self.connection)?;
        }
        if !oldest.is_empty() {
            self.meta.settled -= i64::try_from(oldest.len()).unwrap_or(0);
            self.changed = true;
        }
        Ok(())
    }

    // Records and housekeeping.

    pub(crate) fn record_revocation(
        &mut self,
        key: &LockKey,
        previous: Option<FencingToken>,
        floor: TokenFloor,
        actor: &OwnerId,
        reason: &str,
    ) -> Step<()> {
        let id: i64 = diesel::insert_into(dlock_revocations::table)
            .values((
                dlock_revocations::namespace.eq(key.namespace().as_str()),
                dlock_revocations::name.eq(key.name().as_str()),
                dlock_revocations::previous.eq(previous.map(|t| codec::number_column(t.get()))),
                dlock_revocations::floor.eq(codec::number_column(floor.get())),
                dlock_revocations::actor.eq(actor.as_str()),
                dlock_revocations::reason.eq(reason),
                dlock_revocations::revoked_at.eq(codec::wall_column(self.wall)),
            ))
            .returning(dlock_revocations::id)
            .get_result(self.connection)?;
        diesel::delete(dlock_revocations::table)
            .filter(dlock_revocations::id.le(id - REVOCATIONS))
            .execute(self.connection)?;
        self.changed = true;
        Ok(())
    }

    /// Forgets at most `limit` locks that nobody has held for long, behind a floor that keeps
    /// their tokens from coming back (INV-04), and private marks as old.
    pub(crate) fn purge(&mut self, limit: u32) -> Step<()> {
        let age = u64::try_from(self.limits.purge_after.as_millis()).unwrap_or(u64::MAX);
        let before = WallTime::from_unix_millis(self.wall.as_unix_millis().saturating_sub(age));
        let before = codec::wall_column(before);
        self.forget_idle(limit, before)?;
        self.trim_settled(i64::from(limit), Some(before))
    }

    /// Forgets at most `limit` free locks that were last touched before then.
    fn forget_idle(&mut self, limit: u32, before: i64) -> Step<()> {
        let idle: Vec<(String, String, i64)> = dlock_locks::table
            .filter(dlock_locks::session.is_null())
            .filter(dlock_locks::touched_at.lt(before))
            .order(dlock_locks::touched_at)
            .limit(i64::from(limit))
            .select((dlock_locks::namespace, dlock_locks::name, dlock_locks::fence))
            .load(self.connection)?;
        for (namespace, name, fence) in &idle {
            self.meta.floor = self.meta.floor.max(*fence);
            diesel::delete(dlock_locks::table.find((namespace, name))).execute(self.connection)?;
        }
        if !idle.is_empty() {
            self.meta.locks -= i64::try_from(idle.len()).unwrap_or(0);
            self.changed = true;
        }
        Ok(())
    }
}

fn session_row((id, owner, ttl, expires_at, private): RawSession) -> Step<SessionRow> {
    let of = "a session";
    Ok(SessionRow {
        id: codec::session_id(&id, of)?,
        owner: codec::owner(&owner, of)?,
        ttl: codec::ttl(ttl, of)?,
        expires_at: codec::moment(expires_at),
        private,
    })
}

fn lock_row((fence, session, attempt, acquired_at): RawLock, key: &LockKey) -> Step<LockRow> {
    let holder = match (session, attempt) {
        (Some(session), Some(attempt)) => {
            let of = codec::place(key);
            Some((codec::session_id(&session, &of)?, codec::attempt_id(&attempt, &of)?))
        }
        _ => None,
    };
    Ok(LockRow { fence: codec::number(fence), holder, acquired_at: codec::wall(acquired_at) })
}

fn mark_session(session: Option<SessionId>) -> Vec<u8> {
    session.map_or_else(Vec::new, |id| codec::id_bytes(id.bits()).to_vec())
}
