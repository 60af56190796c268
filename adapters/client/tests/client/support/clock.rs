//! Time that a test moves by hand.

use core::time::Duration;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use dlock_domain::{Moment, WallTime};
use dlock_ports::Clock;
use tokio::sync::Notify;

use super::soon;

const START: Moment = Moment::from_nanos(3_600_000_000_000);
const WALL_AT_START: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

/// A clock that stands still until it is moved, and that knows who sleeps by it.
#[derive(Clone, Default)]
pub(crate) struct TestClock(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    moved: Notify,
    slept: Notify,
}

#[derive(Default)]
struct State {
    passed: Duration,
    next_id: u64,
    sleepers: BTreeMap<u64, Moment>,
}

struct Asleep(Arc<Inner>, u64);

impl Drop for Asleep {
    fn drop(&mut self) {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).sleepers.remove(&self.1);
    }
}

impl TestClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.with(|state| state.passed += by);
        self.0.moved.notify_waiters();
    }

    /// Waits until somebody sleeps, moves on to the first who is to wake, and says how far.
    pub(crate) async fn leap(&self) -> Duration {
        self.leap_within(Duration::MAX).await
    }

    /// The same, once somebody sleeps who is to wake within this time.
    pub(crate) async fn leap_within(&self, most: Duration) -> Duration {
        let leapt = async {
            loop {
                let mut slept = std::pin::pin!(self.0.slept.notified());
                slept.as_mut().enable();
                let now = self.now();
                let first = self.with(|state| {
                    state
                        .sleepers
                        .values()
                        .filter(|at| **at > now && at.since(now) <= most)
                        .min()
                        .copied()
                });
                if let Some(first) = first {
                    self.advance(first.since(now));
                    return first.since(now);
                }
                slept.await;
            }
        };
        soon(leapt).await
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl Clock for TestClock {
    fn now(&self) -> Moment {
        START.after(self.with(|state| state.passed))
    }

    fn wall(&self) -> WallTime {
        WALL_AT_START.after(self.with(|state| state.passed))
    }

    async fn sleep_until(&self, at: Moment) {
        let id = self.with(|state| {
            state.next_id += 1;
            state.sleepers.insert(state.next_id, at);
            state.next_id
        });
        let _asleep = Asleep(Arc::clone(&self.0), id);
        self.0.slept.notify_waiters();
        loop {
            let mut moved = std::pin::pin!(self.0.moved.notified());
            moved.as_mut().enable();
            if self.now() >= at {
                return;
            }
            moved.await;
        }
    }
}
