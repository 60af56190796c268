//! Seeing to its end what nobody waits for any more (INV-09, traps 12 and 38).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dlock_domain::{AttemptId, FencingToken, LockError, LockHandle, LockKey, Result};
use dlock_ports::Holder;

use super::core::{Core, owner_of};

/// What may be unsettled at once; beyond it new acquires are refused, so that the backlog is
/// bounded by what could not be settled and not by who asks.
pub(crate) const MAX_UNSETTLED: usize = 10_000;

/// How long settling is tried. Far beyond every lifetime that a private lock has been given by
/// default; what is left then ends with its lease.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

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
                "lock.max_unsettled",
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
    /// A grant that was made: release it.
    Grant(LockKey, FencingToken),
    /// An attempt whose outcome is unknown: settle it.
    Attempt(LockKey, Holder, AttemptId),
}

impl Core {
    /// Starts settling, in a task of its own.
    pub(crate) fn settle(self: &Arc<Self>, loose: Loose) {
        let counted = Counted::new(self);
        let core = Arc::clone(self);
        self.spawn(async move {
            let _counted = counted;
            core.settle_to_the_end(&loose).await;
        });
    }

    /// Settles now if that works at once, else in a task.
    pub(crate) async fn release_loose(self: &Arc<Self>, loose: Loose) {
        if self.settle_once(&loose).await.is_err() {
            self.settle(loose);
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
                        // Woken early by the end of the service: one more try, and no further wait.
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
            Loose::Grant(key, token) => {
                let locks = &self.backend.locks;
                let released = locks.delete_if_owner(key, *token, self.budget()).await?;
                self.memory.released(key, *token);
                self.saw_release(key, *token, released);
                self.lines.released(key);
            }
            Loose::Attempt(key, holder, attempt) => {
                let sessions = &self.backend.sessions;
                let ended = sessions.forget(key, holder, *attempt, self.budget()).await?;
                self.saw_settled(key, owner_of(holder), *attempt, ended);
                self.lines.released(key);
            }
        }
        Ok(())
    }
}

/// A grant on its way to its caller. If it is dropped before it is claimed, nobody has it.
pub(crate) struct Unclaimed {
    handle: Option<LockHandle>,
    core: Arc<Core>,
    /// Whether the caller chose the attempt's id and may come back for the grant.
    repeatable: bool,
}

impl Unclaimed {
    pub(crate) fn new(core: &Arc<Core>, handle: LockHandle, repeatable: bool) -> Self {
        Self { handle: Some(handle), core: Arc::clone(core), repeatable }
    }

    /// Hands the grant over; `None` never happens, a grant being claimed once.
    pub(crate) fn claim(mut self) -> Option<LockHandle> {
        self.handle.take()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take()
            && !self.repeatable
        {
            self.core.settle(Loose::Grant(handle.key, handle.token));
        }
    }
}
