//! Listing what is held.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    sql_query,
    sql_types::{Array, BigInt, Binary, Text},
};
use dlock_domain::{Deadline, LockInfo, Namespace, Result, WallTime};
use dlock_ports::{Directory, ListRequest, Page};
use futures_util::{FutureExt, future::OptionFuture};

use crate::{
    Inner, codec,
    connection::Line,
    rows::{InfoRow, There},
    sql,
    wire::{Terms, Work},
};

/// How often a page is read again in which something seemed to have ended.
const ROUNDS: u32 = 4;

#[async_trait]
impl Directory for Inner {
    /// A page whose locks have all ended is empty, and others may follow it.
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        // PostgreSQL has no text with a NUL in it, and no name begins like that (trap 31).
        if request.prefix.contains('\0') {
            return Ok(Page { locks: Vec::new(), next: None });
        }
        let limit = usize::from(request.limit.max(1));
        let asked = Arc::new(Asked::of(&request, limit));
        let mut rows = self.wire.transact(Terms::LOOK, by, asked.work(Vec::new())).await?;
        for _ in 0..ROUNDS {
            // A keep-alive that is being committed hides what it keeps: it is waited for.
            let ended = rows.iter().filter(|row| row.may_have_ended());
            let ended: Vec<_> = ended.map(|row| row.session.clone()).collect();
            if ended.is_empty() {
                break;
            }
            rows = self.wire.transact(Terms::FIND_OUT, by, asked.work(ended)).await?;
        }
        let wall = self.wire.clock.wall();
        let last = rows.get(limit).and(rows.get(limit - 1));
        let next = last.map(|row| codec::key(request.namespace.as_str(), &row.name)).transpose()?;
        let live = rows.iter().take(limit).filter(|row| !row.may_have_ended());
        let locks = live.map(|row| info(&request.namespace, row, wall)).collect::<Result<_>>()?;
        Ok(Page { locks, next: next.map(|key| key.name().clone()) })
    }
}

/// What a page is asked for with.
struct Asked {
    namespace: String,
    prefix: String,
    after: String,
    rows: i64,
}

impl Asked {
    fn of(request: &ListRequest, limit: usize) -> Self {
        Self {
            namespace: request.namespace.as_str().to_owned(),
            prefix: request.prefix.to_string(),
            // Names are never empty, so the empty text lies before all of them.
            after: request.after.as_ref().map_or("", |name| name.as_str()).to_owned(),
            // One more than asked for tells whether there is another page.
            rows: i64::try_from(limit + 1).unwrap_or(i64::MAX),
        }
    }

    /// The page, after these sessions have been ended where they have expired.
    fn work(self: &Arc<Self>, ended: Vec<Vec<u8>>) -> Work<Vec<InfoRow>> {
        let asked = Arc::clone(self);
        Box::new(move |line: Line| {
            let expire = (!ended.is_empty()).then(|| {
                line.rows::<There>(sql_query(sql::EXPIRE_ALL).bind::<Array<Binary>, _>(&ended))
            });
            let list = line.rows::<InfoRow>(
                sql_query(sql::LIST)
                    .bind::<Text, _>(&asked.namespace)
                    .bind::<Text, _>(&asked.prefix)
                    .bind::<Text, _>(&asked.after)
                    .bind::<BigInt, _>(asked.rows),
            );
            async move {
                let (_, rows) = futures_util::try_join!(
                    OptionFuture::from(expire).map(Option::transpose),
                    list
                )?;
                Ok(rows)
            }
            .boxed()
        })
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
