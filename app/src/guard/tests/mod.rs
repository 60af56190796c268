//! The guard over a real service on the reference store, on a clock that the test moves.

mod holding;
mod leaving;
mod odd;
mod sessions;
mod threads;
mod work;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use dlock_domain::{LockInfo, LockKey, LockName, Namespace, OwnerId};
use dlock_memory::{ManualClock, SeededEntropy};
use dlock_ports::{Clock, LockService, RevokeRequest};

use super::*;
use crate::{Service, ServiceConfig, wiring};
use odd::Odd;

/// A lifetime whose quarters and eighths are round.
const TTL: Duration = Duration::from_secs(8);
/// What INV-03 leaves of it.
const RELIABLE: Duration = Duration::from_millis(7_840);
/// How finely time passes.
const STEP: Duration = Duration::from_millis(10);

/// One service that misbehaves as told, and locks over it.
struct World {
    clock: ManualClock,
    service: Arc<Service>,
    odd: Arc<Odd>,
    locks: Locks,
}

fn world() -> World {
    let clock = ManualClock::new();
    let (shared, entropy) = (Arc::new(clock.clone()), Arc::new(SeededEntropy::new(11)));
    let backend = wiring::memory(shared.clone(), entropy.clone());
    let service = Service::new(backend, shared.clone(), entropy.clone(), ServiceConfig::default());
    let odd = Arc::new(Odd::new(service.clone(), clock.clone()));
    let locks =
        Locks::builder(odd.clone(), shared, entropy).owner("tester").ttl(TTL).build().unwrap();
    World { clock, service, odd, locks }
}

impl World {
    async fn guard(&self, name: &str) -> LockGuard {
        self.locks.lock(name).acquire().await.unwrap()
    }

    /// Moves time on in small steps, with room for the tasks in between.
    async fn pass(&self, time: Duration) {
        for _ in 0..time.as_millis() / STEP.as_millis() {
            self.clock.advance(STEP);
            breathe().await;
        }
    }

    /// The same in steps of a twentieth of the lifetime.
    async fn pass_quickly(&self, time: Duration) {
        let step = TTL / 20;
        for _ in 0..time.as_millis() / step.as_millis() {
            self.clock.advance(step);
            breathe().await;
        }
    }

    async fn holder(&self, name: &str) -> Option<LockInfo> {
        self.service.inspect(&key(name)).await.unwrap()
    }

    async fn revoke(&self, name: &str) {
        let request = RevokeRequest {
            actor: OwnerId::new("operator").unwrap(),
            reason: dlock_domain::Reason::new("a test").unwrap(),
            expected: None,
        };
        self.service.revoke(&key(name), request).await.unwrap();
    }
}

fn key(name: &str) -> LockKey {
    LockKey::new(Namespace::default(), LockName::new(name).unwrap())
}

/// Lets every task do what it can without time passing.
async fn breathe() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Polls a future at most so often, with room for the tasks in between; what it answered, if it
/// did. Then it is dropped.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..times {
        if let Some(output) = once(future.as_mut()) {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

fn once<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Whether a future is ready now.
fn ready<F: Future>(future: F) -> Option<F::Output> {
    once(pin!(future))
}
