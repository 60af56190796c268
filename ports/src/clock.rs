//! Time, handed in.

use async_trait::async_trait;
use dlock_domain::{Moment, WallTime};

/// A source of time; clones of one clock agree.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Now, on this boot's monotonic clock that counts suspend (trap 35).
    fn now(&self) -> Moment;

    /// Now on the wall, for display only: it may jump (C18).
    fn wall(&self) -> WallTime;

    /// Sleeps until `at`, or returns at once if that is past; wakes on time after a suspend.
    ///
    /// Cancellation: dropping the future ends the sleep and leaves nothing behind.
    async fn sleep_until(&self, at: Moment);
}
