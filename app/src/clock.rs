//! The system's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use dlock_domain::{Moment, WallTime};
use dlock_ports::Clock;
use rustix::time::{ClockId, clock_gettime};

/// This boot's monotonic clock that counts suspend (`CLOCK_BOOTTIME`), the same for every process
/// on the machine (trap 35).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// The runtime's timers stand still while the machine sleeps, so a sleep looks at the boot clock
/// at least this often and wakes this soon after a resume.
const SLICE: Duration = Duration::from_secs(1);

impl SystemClock {
    /// The clock.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    #[expect(clippy::disallowed_methods, reason = "this is where wall time is read")]
    fn wall(&self) -> WallTime {
        // A wall clock before 1970 shows as 1970: nothing is decided by it.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallTime::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn sleep_until(&self, at: Moment) {
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(SLICE)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleeps_to_the_moment_and_not_less() {
        let clock = SystemClock::new();
        let start = clock.now();
        clock.sleep_until(start.after(Duration::from_millis(30))).await;
        assert!(clock.now().since(start) >= Duration::from_millis(30));
        clock.sleep_until(start).await;
    }
}
