//! Seeing to its end what nobody waits for any more (INV-09, traps 12 and 38).

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dlock_domain::{AttemptId, LockError, LockKey, Result, SessionId};
use tokio::sync::oneshot;

use crate::core::Core;

/// What may be unsettled at once; beyond it new acquires are refused, so that the backlog is
/// bounded by what could not be settled and not by who asks.
const MAX_UNSETTLED: usize = 10_000;

/// How long settling is tried. What is left then ends with its lease.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

/// How long a call that is answered waits for its own clean-up, so that a process which ends right
/// after it leaves nothing behind.
const BRIEFLY: Duration = Duration::from_secs(1);

/// Counts what is unsettled.
#[derive(Default)]
pub(crate) struct Unsettled(AtomicUsize);

impl Unsettled {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }

    /// Refuses new work while too much is unsettled.
    pub(crate) fn room(&self) -> Result<()> {
        if self.count() >= MAX_UNSETTLED {
            return Err(LockError::limit(
                "client.max_unsettled",
                "too many attempts of unknown outcome are being settled",
            ));
        }
        Ok(())
    }
}

struct Counted(Arc<Core>);

impl Counted {
    fn new(core: &Arc<Core>) -> Self {
        core.unsettled.0.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(core))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.unsettled.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What is to be done about something that nobody claims.
#[derive(Clone, Debug)]
pub(crate) enum Loose {
    /// An attempt in somebody's session: forget it.
    Attempt(LockKey, SessionId, AttemptId),
    /// A session that nobody has: close it, and with it settle every attempt under it.
    Session(SessionId),
}

impl Core {
    /// Starts settling, in a task of its own. What comes back ends when it is settled or given up.
    pub(crate) fn settle(self: &Arc<Self>, loose: Loose) -> oneshot::Receiver<()> {
        let counted = Counted::new(self);
        let core = Arc::clone(self);
        let (done, settled) = oneshot::channel();
        self.spawn(async move {
            core.settle_to_the_end(&loose).await;
            drop(counted);
            // Mostly nobody waits for it.
            let _ = done.send(());
        });
        settled
    }

    /// Starts settling, and waits a little for it to be done.
    pub(crate) async fn settle_briefly(self: &Arc<Self>, loose: Loose) {
        let settled = self.settle(loose);
        tokio::select! {
            // Both may be dropped: the settling goes on by itself.
            _ = settled => {}
            () = self.clock.sleep_until(self.clock.now().after(BRIEFLY)) => {}
        }
    }

    async fn settle_to_the_end(&self, loose: &Loose) {
        let end = self.clock.now().after(PATIENCE);
        let mut tries = 0;
        loop {
            match self.settle_once(loose).await {
                Ok(()) => return,
                Err(error) if error.is_transient() && self.clock.now() < end => {
                    let delay = self.config.backoff.delay(tries, self.entropy.jitter());
                    tries = tries.saturating_add(1);
                    tokio::select! {
                        // Woken early by the end of the client: one more try, no further wait.
                        () = self.stopping.cancelled() => {
                            if let Err(error) = self.settle_once(loose).await {
                                tracing::warn!(%error, "left unsettled: it ends with its lease");
                            }
                            return;
                        }
                        () = self.clock.sleep_until(self.clock.now().after(delay)) => {}
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "could not be settled: it ends with its lease");
                    return;
                }
            }
        }
    }

    async fn settle_once(&self, loose: &Loose) -> Result<()> {
        match loose {
            Loose::Attempt(key, session, attempt) => {
                self.forget_attempt(key, *session, *attempt).await.map(drop)
            }
            Loose::Session(session) => self.close(*session).await.map(drop),
        }
    }
}
