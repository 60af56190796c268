//! Raising a namespace's floor.
//!
//! All tokens of a file come from one counter, so one floor serves every namespace: raising it for
//! one lets the others' tokens leap, which nobody minds. Only the named namespace's grants end.

use async_trait::async_trait;
use dlock_domain::{Deadline, Namespace, Result, TokenFloor};
use dlock_ports::{FloorControl, Raised};

use crate::Inner;
use crate::error::Step;
use crate::tx::Tx;

#[async_trait]
impl FloorControl for Inner {
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        let namespace = namespace.clone();
        self.writer.call(by, move |tx| raise(tx, &namespace, at_least)).await
    }
}

fn raise(tx: &mut Tx<'_>, namespace: &Namespace, at_least: TokenFloor) -> Step<Raised> {
    at_least.check_leap(tx.highest_known())?;
    let floor = at_least.max(TokenFloor::new(tx.highest_known())?);
    let mut grants_ended = 0;
    for key in tx.held_keys(namespace.as_str())? {
        let (row, live) = tx.live_grant(&key)?;
        let Some((session, _)) = live else { continue };
        grants_ended += 1;
        if session.private {
            tx.end_session(session.id)?;
        } else {
            let fence = row.as_ref().map_or(0, |row| row.fence);
            tx.free(&key, row.as_ref(), fence)?;
        }
    }
    tx.raise_floor(floor);
    Ok(Raised { floor, grants_ended })
}
