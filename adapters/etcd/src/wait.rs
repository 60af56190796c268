//! Waiting for a release: the port [`ReleaseWaiter`].

use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{Deadline, LockKey};
use dlock_ports::{Observed, ReleaseWaiter, WaitEnd};
use etcd_client::{Txn, TxnOp};

use crate::{Inner, error::Effect, watch::Verdict};

/// A place in this store's history: the revision at which a shot was decided, and the grant that it
/// met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) revision: i64,
    /// The revision that granted it; `None`: the lock was free.
    pub(crate) grant: Option<i64>,
}

/// How often a wait looks for itself, though nothing was heard: what is promised must not hang on
/// one stream.
const LOOKS_EVERY: Duration = Duration::from_secs(10);

/// How long a wait goes on while there is no watch.
const PATIENCE: Duration = Duration::from_secs(3);

#[async_trait]
impl ReleaseWaiter for Inner {
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd {
        let Some(place) = since.read::<Place>() else { return WaitEnd::Fallback };
        let Some(grant) = place.grant else { return WaitEnd::Released };
        let clock = &self.wire.clock;
        if by.is_past(clock.now()) {
            return WaitEnd::Deadline;
        }
        let lock = self.keys.lock(key);
        let waiting = self.hub.join(&lock);
        let mut revision = place.revision;
        let mut look_at = clock.now().after(LOOKS_EVERY);
        let mut give_up_at = clock.now().after(PATIENCE);
        loop {
            // Listening before looking: what comes in between is not missed (INV-08).
            let mut news = std::pin::pin!(waiting.news());
            news.as_mut().enable();
            let now = clock.now();
            let verdict = waiting.verdict(revision);
            match verdict {
                Verdict::Deleted => return WaitEnd::Released,
                Verdict::NothingSince => give_up_at = now.after(PATIENCE),
                // Trap 19: the watch is up and began later, so one look fills the gap.
                Verdict::BeganLater => look_at = now,
                Verdict::NoWatch if now >= give_up_at => return WaitEnd::Fallback,
                Verdict::NoWatch => {}
                Verdict::Broken => return WaitEnd::Fallback,
            }
            if now >= look_at {
                let txn = Txn::new().and_then([TxnOp::get(lock.clone(), None)]);
                let budget = by.earlier(Deadline::at(now.after(PATIENCE)));
                match self.wire.txn(txn, Effect::Reads, budget).await {
                    Ok(reply) if reply.one(0).map(|kv| kv.mod_revision) == Some(grant) => {
                        revision = reply.revision;
                        look_at = clock.now().after(LOOKS_EVERY);
                        // What was heard during the look is judged before any sleep.
                        continue;
                    }
                    Ok(_) => return WaitEnd::Released,
                    Err(_) if by.is_past(clock.now()) => return WaitEnd::Deadline,
                    Err(_) => return WaitEnd::Fallback,
                }
            }
            if by.is_past(now) {
                return WaitEnd::Deadline;
            }
            // A watch that comes or goes from here on is news.
            let idle = if verdict == Verdict::NoWatch { give_up_at } else { look_at };
            let until = by.moment().min(look_at).min(idle);
            // Each arm only says when to judge again, so dropping the other loses nothing.
            tokio::select! {
                () = &mut news => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    fn waiters(&self, key: &LockKey) -> u32 {
        self.hub.count(&self.keys.lock(key))
    }
}
