//! What the service can be told.

use std::time::Duration;

use dlock_domain::Backoff;

/// Configuration of a [`Service`](super::Service); each field names its key (C5).
#[derive(Clone, Copy, Debug)]
pub struct ServiceConfig {
    /// How long one store call may take (`lock.call_budget`).
    pub call_budget: Duration,
    /// How repeats are spaced (`lock.backoff.floor`, `lock.backoff.cap`).
    pub backoff: Backoff,
    /// Calls that may wait at once (`lock.max_waiters`).
    pub max_waiters: usize,
    /// Calls that may wait for one lock (`lock.max_waiters_per_lock`).
    pub max_waiters_per_lock: usize,
    /// How often ended leases are cleared away (`lock.reap.interval`).
    pub reap_interval: Duration,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            call_budget: Duration::from_secs(5),
            backoff: Backoff::default(),
            max_waiters: 10_000,
            max_waiters_per_lock: 1_000,
            reap_interval: Duration::from_secs(10),
        }
    }
}
