//! Time that a test moves by hand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{Moment, WallTime};
use dlock_ports::Clock;
use tokio::sync::Notify;

/// A clock that stands still until somebody advances it; clones are one clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    now: Mutex<Moment>,
    moved: Notify,
}

/// An hour after boot, so that looking back needs no care.
const START: Moment = Moment::from_nanos(3_600_000_000_000);
const WALL_AT_START: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

impl ManualClock {
    /// A clock at some moment after its boot.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner { now: Mutex::new(START), moved: Notify::new() }))
    }

    /// Moves time on, on the wall too, and wakes every sleeper whose moment has come.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.after(by);
        drop(now);
        self.0.moved.notify_waiters();
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wall(&self) -> WallTime {
        WALL_AT_START.after(self.now().since(START))
    }

    async fn sleep_until(&self, at: Moment) {
        loop {
            let mut moved = std::pin::pin!(self.0.moved.notified());
            // Listening before looking: an advance in between is not missed.
            moved.as_mut().enable();
            if self.now() >= at {
                return;
            }
            moved.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_at_its_moment_and_not_before() {
        let clock = ManualClock::new();
        let start = clock.now();
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep_until(start.after(Duration::from_secs(2))).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        sleeper.await.unwrap();
        clock.sleep_until(start).await;
    }

    #[test]
    fn the_wall_moves_along() {
        let clock = ManualClock::new();
        let wall = clock.wall();
        clock.advance(Duration::from_millis(1_500));
        assert_eq!(clock.wall().since(wall), Duration::from_millis(1_500));
    }
}
