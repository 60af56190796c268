//! Waiting for a release: the port [`ReleaseWaiter`].

use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::{Deadline, FencingToken, LockKey, Moment, lock::Grant};
use dlock_ports::{Observed, ReleaseWaiter, WaitEnd};
use tokio::sync::Notify;

use crate::{MemoryStore, state::State};

/// A place in this store's history: the grant that was met. Tokens are never given twice, so its
/// token names it for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(Option<FencingToken>);

impl Place {
    pub(crate) fn of(grant: Option<&Grant>) -> Self {
        Self(grant.map(|grant| grant.token))
    }
}

/// One call that waits: counted while it exists, gone when it is dropped (INV-10).
struct Waiter<'a> {
    store: &'a MemoryStore,
    key: &'a LockKey,
    released: Arc<Notify>,
}

impl<'a> Waiter<'a> {
    fn register(store: &'a MemoryStore, key: &'a LockKey) -> Self {
        let mut state = store.lock();
        let waiting = state.waiting.entry(key.clone()).or_default();
        waiting.count += 1;
        let released = waiting.released.clone();
        drop(state);
        Self { store, key, released }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.store.lock();
        if let Some(waiting) = state.waiting.get_mut(self.key) {
            waiting.count -= 1;
            if waiting.count == 0 {
                state.waiting.remove(self.key);
            }
        }
    }
}

#[async_trait]
impl ReleaseWaiter for MemoryStore {
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd {
        let Some(place) = since.read::<Place>() else { return WaitEnd::Fallback };
        let waiter = Waiter::register(self, key);
        loop {
            let mut released = pin!(waiter.released.notified());
            // Listening before looking: a release in between is not missed (INV-08).
            released.as_mut().enable();
            let now = self.clock.now();
            let Some(lease_end) = self.lock().lease_end(key, *place, now) else {
                return WaitEnd::Released;
            };
            if by.is_past(now) {
                return WaitEnd::Deadline;
            }
            // Each arm only says when to look again, so dropping the others loses nothing. The
            // lease may have been extended by then: a renew wakes nobody, it makes this look idle.
            tokio::select! {
                () = &mut released => {}
                () = self.clock.sleep_until(lease_end) => {}
                () = self.clock.sleep_until(by.moment()) => {}
            }
        }
    }

    fn waiters(&self, key: &LockKey) -> u32 {
        self.lock().waiters(key)
    }
}

impl State {
    /// When the lease behind the grant that was met ends; `None` if the grant has ended.
    fn lease_end(&mut self, key: &LockKey, place: Place, now: Moment) -> Option<Moment> {
        let grant = self.meet(key, now)?;
        if place.0 != Some(grant.token) {
            return None;
        }
        self.sessions.get(&grant.session).map(|row| row.expires_at)
    }
}
