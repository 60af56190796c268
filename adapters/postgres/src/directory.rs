//! Listing what is held.

use async_trait::async_trait;
use diesel::{
    sql_query,
    sql_types::{BigInt, Text},
};
use dlock_domain::{Deadline, LockInfo, Namespace, Result, WallTime};
use dlock_ports::{Directory, ListRequest, Page};
use futures_util::FutureExt;

use crate::{Inner, codec, connection::Line, rows::InfoRow, sql, wire::Terms};

#[async_trait]
impl Directory for Inner {
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        // PostgreSQL has no text with a NUL in it, and no name begins like that (trap 31).
        if request.prefix.contains('\0') {
            return Ok(Page { locks: Vec::new(), next: None });
        }
        let limit = usize::from(request.limit.max(1));
        let namespace = request.namespace.as_str().to_owned();
        let prefix = request.prefix.to_string();
        // Names are never empty, so the empty text lies before all of them.
        let after = request.after.as_ref().map_or("", |name| name.as_str()).to_owned();
        // One more than asked for tells whether there is another page.
        let rows = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let work = Box::new(move |line: Line| {
            line.rows::<InfoRow>(
                sql_query(sql::LIST)
                    .bind::<Text, _>(&namespace)
                    .bind::<Text, _>(&prefix)
                    .bind::<Text, _>(&after)
                    .bind::<BigInt, _>(rows),
            )
            .boxed()
        });
        let rows = self.wire.transact(Terms::LOOK, by, work).await?;
        let wall = self.wire.clock.wall();
        let more = rows.len() > limit;
        let locks: Vec<LockInfo> = rows
            .iter()
            .take(limit)
            .map(|row| info(&request.namespace, row, wall))
            .collect::<Result<_>>()?;
        let next = locks.last().filter(|_| more).map(|last| last.key.name().clone());
        Ok(Page { locks, next })
    }
}

/// A live lock as it is shown. Who waits for it is known above the store.
pub(crate) fn info(namespace: &Namespace, row: &InfoRow, wall: WallTime) -> Result<LockInfo> {
    let key = codec::key(namespace.as_str(), &row.name)?;
    let of = codec::place(&key);
    Ok(LockInfo {
        owner: codec::owner(&row.owner, &of)?,
        session: Some(codec::session_id(&row.session, &of)?),
        token: codec::token(row.fence)?,
        acquired_at: codec::wall(row.acquired_ms),
        server_expiry: wall.after(codec::left(row.left_ms)),
        waiter_count: 0,
        key,
    })
}
