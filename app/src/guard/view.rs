//! One grant as its holder sees it, and the task that tells when that changes.

use std::{sync::Arc, time::Duration};

use dlock_domain::{FencingToken, LockKey, Moment, Ttl};
use dlock_ports::Clock;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Loss;
use crate::keeper::{KeeperState, LossReason};

/// A passing deadline is told this much early, so that nobody hears of it late: timers wake after
/// their moment, never before.
const EARLY: Duration = Duration::from_millis(5);

/// One grant, seen through its session's keeper and the clock.
#[derive(Clone)]
pub(super) struct View {
    pub(super) state: watch::Receiver<KeeperState>,
    pub(super) closed: CancellationToken,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) key: LockKey,
    pub(super) token: FencingToken,
}

impl View {
    /// Until when the grant may be believed in, judged by the clock now (trap 35).
    pub(super) fn deadline(&self) -> Result<Moment, LossReason> {
        if self.closed.is_cancelled() {
            return Err(LossReason::SessionGone);
        }
        let deadline = {
            let state = self.state.borrow();
            match state.grants.get(&self.key) {
                Some(grant) if grant.token == self.token => match grant.lost.or(state.lost) {
                    Some(reason) => return Err(reason),
                    None => grant.deadline,
                },
                // Another grant of the key has taken its place, so it had ended before.
                _ => return Err(state.lost.unwrap_or(LossReason::Gone)),
            }
        };
        // After everything else: a pause in between counts.
        if self.clock.now() < deadline { Ok(deadline) } else { Err(LossReason::DeadlinePassed) }
    }

    /// Cancels `danger` when a quarter of the lifetime is left or the grant is lost; returns when
    /// it is lost.
    pub(super) async fn tell(&self, ttl: Ttl, danger: &CancellationToken) -> Loss {
        let mut state = self.state.clone();
        let mut kept = true;
        loop {
            state.borrow_and_update();
            let deadline = match self.deadline() {
                Ok(deadline) => deadline,
                Err(reason) => break self.end(reason, danger),
            };
            let now = self.clock.now();
            let end = deadline.before(EARLY);
            if now >= end {
                break self.end(LossReason::DeadlinePassed, danger);
            }
            let warn = deadline.before(ttl.as_duration() / 4);
            if now >= warn {
                danger.cancel();
            }
            let wake = if danger.is_cancelled() { end } else { warn };
            // All three only wait: nothing is lost by dropping them.
            tokio::select! {
                changed = state.changed(), if kept => kept = changed.is_ok(),
                () = self.closed.cancelled() => {}
                () = self.clock.sleep_until(wake) => {}
            }
        }
    }

    fn end(&self, reason: LossReason, danger: &CancellationToken) -> Loss {
        danger.cancel();
        self.loss(reason)
    }

    pub(super) fn loss(&self, reason: LossReason) -> Loss {
        Loss { key: self.key.clone(), token: self.token, reason }
    }
}
