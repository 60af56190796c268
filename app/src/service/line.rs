//! The queue with bells: where acquire tasks wait for their turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dlock_domain::{LockError, LockKey};
use tokio::sync::Notify;

use super::queue::{Full, Queue, Ticket};

/// All lines of a service.
pub(crate) struct Lines {
    queue: Mutex<Queue<LockKey, Arc<Notify>>>,
}

impl Lines {
    pub(crate) fn new(max_total: usize, max_line: usize) -> Self {
        Self { queue: Mutex::new(Queue::new(max_total, max_line)) }
    }

    /// Takes a place; dropping it gives the place back and wakes the next head.
    pub(crate) fn join(self: &Arc<Self>, key: &LockKey) -> Result<Place, LockError> {
        let bell = Arc::new(Notify::new());
        match self.queue().join(key, Arc::clone(&bell)) {
            Ok(ticket) => Ok(Place { lines: Arc::clone(self), key: key.clone(), ticket, bell }),
            Err(Full::Line) => Err(LockError::limit(
                "lock.max_waiters_per_lock",
                "too many calls wait for this lock",
            )),
            Err(Full::Everything) => {
                Err(LockError::limit("lock.max_waiters", "too many calls wait on this server"))
            }
        }
    }

    /// The lock was released here: its head need not wait for the store to say so.
    pub(crate) fn released(&self, key: &LockKey) {
        if let Some(bell) = self.queue().head_bell(key) {
            bell.notify_one();
        }
    }

    /// Many locks may have been released here, and the store will not say which.
    pub(crate) fn released_many(&self) {
        for bell in self.queue().all_heads() {
            bell.notify_one();
        }
    }

    pub(crate) fn waiting(&self, key: &LockKey) -> u32 {
        u32::try_from(self.queue().len(key)).unwrap_or(u32::MAX)
    }

    pub(crate) fn total(&self) -> usize {
        self.queue().total()
    }

    fn queue(&self) -> MutexGuard<'_, Queue<LockKey, Arc<Notify>>> {
        // Nothing in the queue panics half-way through a change.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a line.
pub(crate) struct Place {
    lines: Arc<Lines>,
    key: LockKey,
    ticket: Ticket,
    bell: Arc<Notify>,
}

impl Place {
    pub(crate) fn is_head(&self) -> bool {
        self.lines.queue().is_head(&self.key, self.ticket)
    }

    /// Until this place becomes the head, or, being the head, the lock is released here. A bell
    /// rung before the call counts. Dropping the future loses no ring that was not yet answered.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = self.lines.queue().leave(&self.key, self.ticket);
        if let Some(bell) = next {
            bell.notify_one();
        }
    }
}
