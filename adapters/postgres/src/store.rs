//! Grants: the seven methods of [`LockStore`].

use async_trait::async_trait;
use diesel::{
    sql_query,
    sql_types::{BigInt, Nullable, Text},
};
use dlock_domain::{
    Deadline, FencingToken, LockError, LockHandle, LockInfo, LockKey, LockOutcome, Result, Session,
    TokenFloor,
};
use dlock_ports::{Attempt, Consistency, InsertRequest, LockStore, RevokeRequest};
use futures_util::FutureExt;

use crate::{
    Inner, codec,
    connection::Line,
    directory::info,
    grant::gone_back,
    key::Key,
    rows::{ExtendRow, InfoRow, Number, RevokeRow, There},
    sql,
    wire::Terms,
};

/// Most notes of who broke what.
const NOTES: i64 = 10_000;

/// Most marks of private holders' attempts.
const PRIVATE_MARKS: i64 = 100_000;

#[async_trait]
impl LockStore for Inner {
    async fn try_insert(&self, request: InsertRequest, by: Deadline) -> Result<Attempt> {
        self.insert(request, by).await
    }

    async fn extend(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<Option<LockHandle>> {
        let sent = self.wire.clock.now();
        let at = Key::of(key);
        let token_column = codec::column(token.get());
        let work = Box::new(move |line: Line| {
            let holder =
                line.rows::<There>(at.ask(sql::LOCK_HOLDER).bind::<BigInt, _>(token_column));
            let grant =
                line.rows::<There>(at.ask(sql::SHARE_GRANT).bind::<BigInt, _>(token_column));
            let extend =
                line.rows::<ExtendRow>(at.ask(sql::EXTEND).bind::<BigInt, _>(token_column));
            let expire = line.rows::<There>(at.ask(sql::EXPIRE_HOLDER));
            async move {
                let (_, _, extended, _) = futures_util::try_join!(holder, grant, extend, expire)?;
                Ok(extended.into_iter().next())
            }
            .boxed()
        });
        let Some(row) = self.wire.transact(Terms::KEEP, by, work).await? else { return Ok(None) };
        let of = codec::place(key);
        let ttl = codec::ttl(row.ttl_ms, &of)?;
        let session = Session {
            id: codec::session_id(&row.session, &of)?,
            owner: codec::owner(&row.owner, &of)?,
            ttl,
            client_deadline: sent.holder_deadline(ttl, ttl),
        };
        Ok(Some(self.handle(key, session, token, ttl.as_duration())))
    }

    async fn delete_if_owner(
        &self,
        key: &LockKey,
        token: FencingToken,
        by: Deadline,
    ) -> Result<bool> {
        let at = Key::of(key);
        let token = codec::column(token.get());
        let work = Box::new(move |line: Line| {
            let expire = line.rows::<There>(at.ask(sql::EXPIRE_HOLDER));
            let private = line.rows::<There>(at.ask(sql::LOCK_PRIVATE));
            let lock = line.rows::<There>(at.ask(sql::LOCK_LOCK));
            let release = line.rows::<Number>(at.ask(sql::RELEASE).bind::<BigInt, _>(token));
            async move {
                let (_, _, _, released) = futures_util::try_join!(expire, private, lock, release)?;
                Ok(released.first().is_some_and(|row| row.number > 0))
            }
            .boxed()
        });
        self.wire.transact(Terms::END, by, work).await
    }

    /// The primary is asked, whatever the consistency.
    async fn read(
        &self,
        key: &LockKey,
        _consistency: Consistency,
        by: Deadline,
    ) -> Result<Option<LockInfo>> {
        let at = Key::of(key);
        let work = Box::new(move |line: Line| {
            let read = line.rows::<InfoRow>(at.ask(sql::READ));
            async move { Ok(read.await?.into_iter().next()) }.boxed()
        });
        let mut row = self.wire.transact(Terms::LOOK, by, work).await?;
        if row.as_ref().is_some_and(InfoRow::may_have_ended) {
            let at = Key::of(key);
            let certain = Box::new(move |line: Line| {
                let expire = line.rows::<There>(at.ask(sql::EXPIRE_HOLDER));
                let read = line.rows::<InfoRow>(at.ask(sql::READ));
                async move { Ok(futures_util::try_join!(expire, read)?.1.into_iter().next()) }
                    .boxed()
            });
            row = self.wire.transact(Terms::FIND_OUT, by, certain).await?;
        }
        row.map(|row| info(key.namespace(), &row, self.wire.clock.wall())).transpose()
    }

    async fn revoke(
        &self,
        key: &LockKey,
        request: RevokeRequest,
        by: Deadline,
    ) -> Result<LockOutcome> {
        let at = Key::of(key);
        let expected = request.expected.map(|token| codec::column(token.get()));
        let work = Box::new(move |line: Line| {
            let expire = line.rows::<There>(at.ask(sql::EXPIRE_HOLDER));
            let private = line.rows::<There>(at.ask(sql::LOCK_PRIVATE));
            let ensure = line.rows::<There>(at.ask(sql::ENSURE_LOCK).bind::<Nullable<
                diesel::sql_types::Binary,
            >, _>(
                None::<Vec<u8>>
            ));
            let lock = line.rows::<There>(at.ask(sql::LOCK_LOCK));
            let revoke = line.rows::<RevokeRow>(
                at.ask(sql::REVOKE)
                    .bind::<Nullable<BigInt>, _>(expected)
                    .bind::<Text, _>(request.actor.as_str())
                    .bind::<Text, _>(request.reason.as_str()),
            );
            async move {
                let (_, _, _, _, revoked) =
                    futures_util::try_join!(expire, private, ensure, lock, revoke)?;
                Ok(revoked.into_iter().next())
            }
            .boxed()
        });
        let Some(row) = self.wire.transact(Terms::TAKE, by, work).await? else {
            return Err(LockError::contention("the lock's row was forgotten meanwhile: repeat"));
        };
        let current = if row.live { Some(codec::token(row.fence)?) } else { None };
        match (row.granted, row.drawn) {
            (Some(floor), _) => {
                let floor = TokenFloor::at(codec::token(floor)?);
                Ok(match current {
                    Some(previous) => LockOutcome::Revoked { previous, floor },
                    None => LockOutcome::Free { floor },
                })
            }
            (None, None) => Ok(LockOutcome::Mismatch { current }),
            (None, Some(drawn)) => Err(gone_back(key, drawn, row.fence, row.floor)),
        }
    }

    /// Also forgets locks that nobody has held for long, behind the floor.
    async fn reap_expired(&self, limit: u32, by: Deadline) -> Result<u32> {
        let (limit, idle) = (i64::from(limit), codec::millis(self.purge_after));
        let work = Box::new(move |line: Line| {
            let reap = line.rows::<Number>(sql_query(sql::REAP).bind::<BigInt, _>(limit));
            let purge = line.rows::<There>(
                sql_query(sql::PURGE).bind::<BigInt, _>(limit).bind::<BigInt, _>(idle),
            );
            let marks = line.rows::<There>(
                sql_query(sql::PURGE_MARKS)
                    .bind::<BigInt, _>(limit)
                    .bind::<BigInt, _>(idle)
                    .bind::<BigInt, _>(PRIVATE_MARKS),
            );
            let notes = line.rows::<There>(sql_query(sql::PURGE_NOTES).bind::<BigInt, _>(NOTES));
            let reaped = line.rows::<There>(sql_query(sql::REAPED));
            async move {
                let (reap, ..) = futures_util::try_join!(reap, purge, marks, notes, reaped)?;
                Ok(reap.first().map_or(0, |row| row.number))
            }
            .boxed()
        });
        let reaped = self.wire.transact(Terms::TAKE, by, work).await?;
        Ok(u32::try_from(reaped).unwrap_or(0))
    }

    fn backend_id(&self) -> &'static str {
        "postgres"
    }
}
