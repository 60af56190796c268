//! What is left of a lease, provably.
//!
//! A leader that was deposed and does not know it yet still answers keep-alives and questions about
//! leases (trap 3). So whatever was heard of a lease counts only if a linearizable look that began
//! afterwards was answered in the same term: until then another leader may have been ending it.

use std::time::Duration;

use dlock_domain::{Deadline, LockError, Moment, Result, Ttl, WallTime};
use etcd_client::Txn;

use crate::{
    Inner,
    error::Effect,
    members::Line,
    wire::{Beat, Reply, Rest},
};

/// How often an answer of another term is asked for again.
const TRIES: u32 = 4;

impl Inner {
    /// Gives a lease its whole lifetime again and *then* looks, in the same term. `None`: there was
    /// no lease to renew.
    pub(crate) async fn renew_then_look(
        &self,
        lease: i64,
        look: &Txn,
        by: Deadline,
    ) -> Result<Option<(Beat, Reply)>> {
        for _ in 0..TRIES {
            let Some(beat) = self.wire.beat(lease, by).await? else { return Ok(None) };
            let look = look.clone();
            let reply = self.wire.txn_on(Line::Beats, look, Effect::Reads, by).await?;
            if reply.term == beat.term {
                return Ok(Some((beat, reply)));
            }
        }
        Err(terms_differ())
    }

    /// Asks what is left of a lease and *then* looks, in the same term. `None`: there is no lease.
    pub(crate) async fn rest_then_look(
        &self,
        lease: i64,
        with_keys: bool,
        look: &Txn,
        by: Deadline,
    ) -> Result<Option<(Rest, Reply)>> {
        for _ in 0..TRIES {
            let Some(rest) = self.wire.rest(lease, with_keys, by).await? else { return Ok(None) };
            let reply = self.wire.txn(look.clone(), Effect::Reads, by).await?;
            if reply.term == rest.term {
                return Ok(Some((rest, reply)));
            }
        }
        Err(terms_differ())
    }

    /// When a lease with so much left will have ended, for people.
    pub(crate) fn shown_expiry(&self, left: Duration) -> WallTime {
        self.wire.clock.wall().after(left)
    }
}

impl Beat {
    /// Until when a holder may believe in the lease (INV-03).
    pub(crate) fn holder_deadline(&self, asked: Ttl, ttl: Ttl) -> Moment {
        let effective = lifetime(self.seconds).unwrap_or(ttl);
        self.sent.holder_deadline(asked, effective.min(ttl))
    }
}

impl Rest {
    /// At least so much is left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_secs(u64::try_from(self.seconds).unwrap_or(0))
    }

    /// Until when somebody who did not set the lease may believe in it (INV-03).
    pub(crate) fn holder_deadline(&self, ttl: Ttl) -> Moment {
        self.sent.holder_deadline_from_look(self.left(), ttl)
    }
}

/// A lease's lifetime in whole seconds, rounded up.
pub(crate) fn seconds(ttl: Ttl) -> i64 {
    i64::try_from(ttl.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX)
}

/// What etcd granted; `None` if it is no lifetime of ours.
pub(crate) fn lifetime(seconds: i64) -> Option<Ttl> {
    let millis = u64::try_from(seconds).ok()?.checked_mul(1_000)?;
    Ttl::from_millis(millis).ok()
}

/// The key is there, and whoever was asked knows no lease of it: that is no loss.
pub(crate) fn is_missing(whose: &str) -> LockError {
    LockError::contention(format!(
        "etcd knows the {whose} and not its lease, which is about to end or was answered for by a \
         member that lags behind"
    ))
}

fn terms_differ() -> LockError {
    LockError::new(
        dlock_domain::ErrorKind::NotLeader,
        "etcd's leader changed between the answer about the lease and the look that confirms it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_rounded_up_and_compared_by_the_smaller() {
        let ttl = |millis| Ttl::from_millis(millis).unwrap();
        assert_eq!([1_000, 1_001, 86_400_000].map(|ms| seconds(ttl(ms))), [1, 2, 86_400]);
        assert_eq!(lifetime(2), Some(ttl(2_000)));
        assert_eq!([0, -1, 86_401, i64::MAX].map(lifetime), [None; 4]);
        let beat = Beat { sent: Moment::from_nanos(0), seconds: 2, term: 1 };
        let deadline = beat.holder_deadline(ttl(1_500), ttl(2_000));
        assert_eq!(deadline.since(beat.sent), Duration::from_millis(1_450));
    }
}
