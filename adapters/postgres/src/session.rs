//! Sessions: the lease that everything hangs on.

use async_trait::async_trait;
use diesel::{
    sql_query,
    sql_types::{Array, BigInt, Binary, Nullable, Text},
};
use dlock_domain::{
    AttemptId, Deadline, FencingToken, LockError, LockKey, OwnerId, Result, Session, SessionId, Ttl,
};
use dlock_ports::{HeldGrant, Holder, Kept, SessionStore};
use futures_util::FutureExt;

use crate::{
    Inner, codec,
    connection::Line,
    key::Key,
    rows::{ForgetRow, LiveRow, LookRow, Number, SessionRow, There},
    sql,
    wire::{About, Terms},
};

/// Most attempts that one session can settle.
const MARKS: i64 = 4_096;

#[async_trait]
impl SessionStore for Inner {
    async fn open(
        &self,
        owner: OwnerId,
        ttl: Ttl,
        id: Option<SessionId>,
        by: Deadline,
    ) -> Result<Session> {
        let sent = self.wire.clock.now();
        let again = id.is_some();
        let id = id.unwrap_or_else(|| SessionId::from_bits(self.entropy.bits()));
        let (bytes, text) = (codec::id_bytes(id.bits()).to_vec(), owner.as_str().to_owned());
        let ttl_column = codec::column(ttl.as_millis());
        let work = Box::new(move |line: Line| {
            // A fresh id is nobody else's: there is nothing to find or to clean up.
            let open = line.rows::<There>(
                sql_query(sql::OPEN)
                    .bind::<Binary, _>(&bytes)
                    .bind::<Text, _>(&text)
                    .bind::<BigInt, _>(ttl_column),
            );
            if !again {
                return async move { Ok((open.await?.len() == 1, None, None)) }.boxed();
            }
            let expire = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(&bytes));
            let free =
                line.rows::<There>(sql_query(sql::FREE_OF_THE_DEAD).bind::<Binary, _>(&bytes));
            let lock = line.rows::<There>(sql_query(sql::LOCK_SESSION).bind::<Binary, _>(&bytes));
            let keep = line.rows::<SessionRow>(
                sql_query(sql::KEEP_AS)
                    .bind::<Binary, _>(&bytes)
                    .bind::<Text, _>(&text)
                    .bind::<BigInt, _>(ttl_column),
            );
            let look =
                line.rows::<SessionRow>(sql_query(sql::LOOK_SESSION).bind::<Binary, _>(&bytes));
            async move {
                let (_, opened, _, _, kept, found) =
                    futures_util::try_join!(expire, open, free, lock, keep, look)?;
                Ok((opened.len() == 1, kept.into_iter().next(), found.into_iter().next()))
            }
            .boxed()
        });
        let terms = if again { Terms::TAKE } else { Terms { about: About::Others, ..Terms::TAKE } };
        let (opened, kept, found) = self.wire.transact(terms, by, work).await?;
        if opened || kept.is_some() {
            return Ok(Session { id, owner, ttl, client_deadline: sent.holder_deadline(ttl, ttl) });
        }
        if found.is_some() || !again {
            return Err(LockError::invalid(
                "session_id",
                "is open already under another owner or lifetime",
            ));
        }
        Err(LockError::contention("the session ended while it was opened again: repeat"))
    }

    async fn keep_alive(
        &self,
        id: &SessionId,
        held: &[(LockKey, FencingToken)],
        by: Deadline,
    ) -> Result<Option<Kept>> {
        let (sent, id, held) = (self.wire.clock.now(), *id, held.to_vec());
        let bytes = codec::id_bytes(id.bits()).to_vec();
        let (mut namespaces, mut names, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (key, token) in &held {
            namespaces.push(key.namespace().as_str().to_owned());
            names.push(key.name().as_str().to_owned());
            tokens.push(codec::column(token.get()));
        }
        let work = Box::new(move |line: Line| {
            let lock = line.rows::<There>(sql_query(sql::LOCK_SESSION).bind::<Binary, _>(&bytes));
            let keep = line.rows::<SessionRow>(sql_query(sql::KEEP).bind::<Binary, _>(&bytes));
            // Begun after the lease was moved, and with a picture of its own (INV-03).
            let lost = line.rows::<Number>(
                sql_query(sql::LOST)
                    .bind::<Binary, _>(&bytes)
                    .bind::<Array<Text>, _>(&namespaces)
                    .bind::<Array<Text>, _>(&names)
                    .bind::<Array<BigInt>, _>(&tokens),
            );
            let expire = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(&bytes));
            async move {
                let (_, kept, lost, ended) = futures_util::try_join!(lock, keep, lost, expire)?;
                // Looking for the grants may have taken longer than the lease lasts (C45).
                Ok((kept.into_iter().next().filter(|_| ended.is_empty()), lost))
            }
            .boxed()
        });
        let (kept, lost) = self.wire.transact(Terms::KEEP, by, work).await?;
        let Some(kept) = kept else { return Ok(None) };
        let place = |row: &Number| usize::try_from(row.number - 1).ok();
        let lost = lost.iter().filter_map(|row| held.get(place(row)?).cloned()).collect();
        Ok(Some(Kept { session: kept.renewed(id, sent)?, lost }))
    }

    async fn look(
        &self,
        id: &SessionId,
        by: Deadline,
    ) -> Result<Option<(Session, Vec<HeldGrant>)>> {
        let (sent, id) = (self.wire.clock.now(), *id);
        let bytes = codec::id_bytes(id.bits()).to_vec();
        let plain = bytes.clone();
        let work = Box::new(move |line: Line| {
            line.rows::<LookRow>(sql_query(sql::LOOK).bind::<Binary, _>(&plain)).boxed()
        });
        let mut rows = self.wire.transact(Terms::LOOK, by, work).await?;
        if rows.is_empty() {
            // A keep-alive that is being committed hides its session from those who only look.
            let certain = Box::new(move |line: Line| {
                let ended = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(&bytes));
                let look = line.rows::<LookRow>(sql_query(sql::LOOK).bind::<Binary, _>(&bytes));
                async move { Ok(futures_util::try_join!(ended, look)?.1) }.boxed()
            });
            rows = self.wire.transact(Terms::FIND_OUT, by, certain).await?;
        }
        let Some(first) = rows.first() else { return Ok(None) };
        let session = SessionRow {
            owner: first.owner.clone(),
            ttl_ms: first.ttl_ms,
            private: false,
            left_ms: first.left_ms,
        };
        let session = session.looked(id, sent)?;
        let mut grants = Vec::new();
        for row in &rows {
            let (Some(namespace), Some(name), Some(fence)) = (&row.namespace, &row.name, row.fence)
            else {
                continue;
            };
            let key = codec::key(namespace, name)?;
            let attempt = row.attempt.as_deref().unwrap_or_default();
            let attempt = codec::attempt_id(attempt, &codec::place(&key))?;
            grants.push(HeldGrant { key, token: codec::token(fence)?, attempt });
        }
        Ok(Some((session, grants)))
    }

    /// Marks under the lock's row, so that a late copy of the attempt meets the mark (trap 12).
    async fn forget(
        &self,
        key: &LockKey,
        holder: &Holder,
        attempt: AttemptId,
        by: Deadline,
    ) -> Result<bool> {
        let at = Key::of(key);
        let of = match holder {
            Holder::Session(session) => Some(codec::id_bytes(session.id.bits()).to_vec()),
            Holder::Private { .. } => None,
        };
        let attempt = codec::id_bytes(attempt.bits()).to_vec();
        let work = Box::new(move |line: Line| {
            let is_open = of.is_some();
            let id = of.as_deref().unwrap_or(codec::NO_SESSION);
            // What has expired is gone, and nothing of it is ended here.
            let ended = line.rows::<There>(sql_query(sql::EXPIRE).bind::<Binary, _>(id));
            let expire = line.rows::<There>(at.ask(sql::EXPIRE_HOLDER));
            let own = line.rows::<SessionRow>(sql_query(sql::SHARE_SESSION).bind::<Binary, _>(id));
            let private = line.rows::<There>(at.ask(sql::LOCK_PRIVATE));
            let ensure = line
                .rows::<There>(at.ask(sql::ENSURE_LOCK).bind::<Nullable<Binary>, _>(of.as_ref()));
            let lock = line.rows::<There>(at.ask(sql::LOCK_LOCK));
            let forget = line.rows::<ForgetRow>(
                at.ask(sql::FORGET)
                    .bind::<Binary, _>(&attempt)
                    .bind::<Nullable<Binary>, _>(of.as_ref())
                    .bind::<BigInt, _>(MARKS),
            );
            async move {
                let (_, _, _, own, _, locked, forgotten) =
                    futures_util::try_join!(ended, expire, private, own, ensure, lock, forget)?;
                // A row that was purged in between held nobody off: once more.
                let held_off = !locked.is_empty() || (is_open && own.is_empty());
                Ok(forgotten.into_iter().next().filter(|_| held_off))
            }
            .boxed()
        });
        let row = self.wire.transact(Terms::END, by, work).await?;
        match row {
            Some(row) if row.enough => Ok(row.number > 0),
            Some(_) => Err(LockError::limit(
                "lock.max_settled_attempts",
                "the session has settled too many attempts: close it",
            )),
            None => Err(LockError::contention("the mark was not made: repeat")),
        }
    }

    async fn close(&self, id: &SessionId, by: Deadline) -> Result<bool> {
        let bytes = codec::id_bytes(id.bits()).to_vec();
        let work = Box::new(move |line: Line| {
            let close = line.rows::<LiveRow>(sql_query(sql::CLOSE).bind::<Binary, _>(&bytes));
            async move { Ok(close.await?.first().is_some_and(|row| row.live)) }.boxed()
        });
        let terms = Terms { about: About::Others, ..Terms::END };
        self.wire.transact(terms, by, work).await
    }
}
