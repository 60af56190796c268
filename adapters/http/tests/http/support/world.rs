//! Time, chance and readiness, all of them decided by the test.

use core::time::Duration;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
};

use async_trait::async_trait;
use dlock_domain::{LockError, Moment, Result, WallTime};
use dlock_http::{HttpConfig, ReadinessProbe};
use dlock_ports::{Clock, Entropy};

/// The wall time of every test.
pub(crate) const WALL: u64 = 1_700_000_000_000;

/// A clock that stands at 1 s until somebody moves it.
#[derive(Clone, Debug)]
pub(crate) struct TestClock(Arc<AtomicU64>);

impl Default for TestClock {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000_000)))
    }
}

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_nanos()).unwrap(), SeqCst);
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Moment {
        Moment::from_nanos(self.0.load(SeqCst))
    }
    fn wall(&self) -> WallTime {
        WallTime::from_unix_millis(WALL)
    }
    async fn sleep_until(&self, _at: Moment) {
        core::future::pending().await
    }
}

/// Counts.
#[derive(Debug, Default)]
pub(crate) struct Chance(AtomicU64);

impl Entropy for Chance {
    fn bits(&self) -> u128 {
        u128::from(self.0.fetch_add(1, SeqCst))
    }
    fn jitter(&self) -> u64 {
        0
    }
}

/// Whether the probe was asked.
pub(crate) type Asked = Arc<AtomicBool>;

/// What a probe does.
pub(crate) enum Ready {
    Yes,
    No(LockError),
    /// Never answers.
    Hangs,
    /// As yes, and remembers that it was asked.
    Noting(Asked),
}

#[async_trait]
impl ReadinessProbe for Ready {
    async fn check(&self) -> Result<()> {
        match self {
            Self::Yes => Ok(()),
            Self::No(error) => Err(error.clone()),
            Self::Hangs => core::future::pending().await,
            Self::Noting(asked) => {
                asked.store(true, SeqCst);
                Ok(())
            }
        }
    }
}

pub(crate) fn config() -> HttpConfig {
    HttpConfig::new(Arc::new(Ready::Yes), Arc::new(Chance::default()))
}
