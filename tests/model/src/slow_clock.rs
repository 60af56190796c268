//! A clock that goes slow: leases of a store built on it end late.

use std::time::Duration;

use async_trait::async_trait;
use dlock_domain::{Moment, WallTime};
use dlock_memory::ManualClock;
use dlock_ports::Clock;

/// A clock that started with another one and falls behind it.
#[derive(Clone, Debug)]
pub struct SlowClock {
    clock: ManualClock,
    start: Moment,
    permille: u32,
}

impl SlowClock {
    /// A clock that agrees with `clock` now, and moves `permille` thousandths as fast (at least
    /// one).
    #[must_use]
    pub fn new(clock: &ManualClock, permille: u32) -> Self {
        Self { clock: clock.clone(), start: clock.now(), permille: permille.max(1) }
    }
}

#[async_trait]
impl Clock for SlowClock {
    fn now(&self) -> Moment {
        let elapsed = self.clock.now().since(self.start);
        self.start.after(elapsed / 1_000 * self.permille)
    }

    fn wall(&self) -> WallTime {
        self.clock.wall()
    }

    async fn sleep_until(&self, at: Moment) {
        let slow = at.since(self.start);
        let elapsed = slow.checked_mul(1_000).unwrap_or(Duration::MAX) / self.permille;
        self.clock.sleep_until(self.start.after(elapsed)).await;
    }
}
