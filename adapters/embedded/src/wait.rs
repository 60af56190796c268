//! Being told of releases: in this process at once, from other processes within the poll interval.
//!
//! A waiter enters the [`Hub`] first and looks at the store afterwards, so a release in between
//! wakes it (INV-08). What it looks for is whether the grant that the failed attempt met is live
//! still: a renew changes nothing of that.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dlock_domain::{Deadline, LockKey, Moment};
use dlock_ports::{Observed, ReleaseWaiter, WaitEnd};
use tokio::sync::Notify;

use crate::Inner;
use crate::reads;

/// The fence that a failed attempt met. While that grant lives it is the grant's token; any later
/// one is higher.
pub(crate) struct Place {
    pub(crate) fence: u64,
}

/// Who waits for which key in this process.
#[derive(Default)]
pub(crate) struct Hub {
    slots: Mutex<HashMap<LockKey, Slot>>,
}

#[derive(Default)]
struct Slot {
    waiting: u32,
    bell: Arc<Notify>,
}

impl Hub {
    pub(crate) fn anybody(&self) -> bool {
        !self.slots().is_empty()
    }

    pub(crate) fn count(&self, key: &LockKey) -> u32 {
        self.slots().get(key).map_or(0, |slot| slot.waiting)
    }

    pub(crate) fn released(&self, keys: &[LockKey]) {
        if keys.is_empty() {
            return;
        }
        let slots = self.slots();
        for key in keys {
            if let Some(slot) = slots.get(key) {
                slot.bell.notify_waiters();
            }
        }
    }

    pub(crate) fn wake_all(&self) {
        for slot in self.slots().values() {
            slot.bell.notify_waiters();
        }
    }

    fn enter(self: &Arc<Self>, key: &LockKey) -> Entry {
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_default();
        slot.waiting += 1;
        Entry { hub: Arc::clone(self), key: key.clone(), bell: Arc::clone(&slot.bell) }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<LockKey, Slot>> {
        // Nothing in here can panic half-way through a change.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the hub, given back when it is dropped.
struct Entry {
    hub: Arc<Hub>,
    key: LockKey,
    bell: Arc<Notify>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut slots = self.hub.slots();
        if let Some(slot) = slots.get_mut(&self.key) {
            slot.waiting -= 1;
            if slot.waiting == 0 {
                slots.remove(&self.key);
            }
        }
    }
}

/// What a waiter sees of the grant it waits for.
pub(crate) enum Seen {
    Gone,
    LivesUntil(Moment),
}

#[async_trait]
impl ReleaseWaiter for Inner {
    async fn await_release(&self, key: &LockKey, since: &Observed, by: Deadline) -> WaitEnd {
        let Some(place) = since.read::<Place>() else { return WaitEnd::Fallback };
        let entry = self.hub.enter(key);
        // The writer looks for other processes' commits only while somebody waits.
        self.writer.nudge();
        loop {
            // Made before the look, so that what happens after the look rings it.
            let bell = entry.bell.notified();
            let (sought, fence) = (key.clone(), place.fence);
            let look = self.reader.call(by, move |tx| reads::grant_seen(tx, &sought, fence));
            let until = match look.await {
                Ok(Seen::Gone) => return WaitEnd::Released,
                Ok(Seen::LivesUntil(expiry)) => expiry,
                Err(_) if by.is_past(self.clock.now()) => return WaitEnd::Deadline,
                Err(_) => return WaitEnd::Fallback,
            };
            tokio::select! {
                // Each arm may be dropped: the loop looks again, and a bell rung meanwhile is
                // for a change that the next look sees.
                () = bell => {}
                () = self.clock.sleep_until(until.min(by.moment())) => {
                    if by.is_past(self.clock.now()) {
                        return WaitEnd::Deadline;
                    }
                }
            }
        }
    }

    fn waiters(&self, key: &LockKey) -> u32 {
        self.hub.count(key)
    }
}
