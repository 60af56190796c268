//! An acquire under way, and what becomes of it when nobody waits any more.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dlock_domain::{AttemptId, LockError, LockHandle, LockKey, Result, Session, Ttl};
use dlock_ports::{AcquireRequest, SessionRef};
use tokio::runtime::Handle;

use super::{
    LockGuard,
    hold::{Hold, Kind},
    locks::Shared,
    repeat::{Said, repeat},
};
use crate::keeper::Expected;

/// How long an attempt is settled at least, if the store does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many attempts may be unsettled at once, as in a service: beyond it nothing new is asked, so
/// that a store that does not answer cannot fill the memory (INV-10).
const MOST: usize = 10_000;

/// An attempt whose outcome is open. Dropped like that, it is settled for good in the background:
/// afterwards it holds nothing and can never be granted (INV-09, traps 12 and 13).
pub(super) struct Pending {
    shared: Arc<Shared>,
    runtime: Handle,
    key: LockKey,
    by: SessionRef,
    ttl: Ttl,
    attempt: AttemptId,
    /// The session that several locks share, with its keeper.
    hold: Option<Arc<Hold>>,
    /// Its keeper knows of the attempt: the grant is no stray.
    expected: Option<Expected>,
    open: bool,
}

impl Pending {
    pub(super) fn new(
        shared: Arc<Shared>,
        runtime: Handle,
        key: LockKey,
        by: SessionRef,
        ttl: Ttl,
        hold: Option<Arc<Hold>>,
    ) -> Result<Self> {
        if shared.unsettled.load(Ordering::Acquire) >= MOST {
            return Err(LockError::limit(
                "lock.max_unsettled",
                "too many attempts of unknown outcome are being settled",
            ));
        }
        let attempt = AttemptId::from_bits(shared.entropy.bits());
        let expected = hold.as_ref().and_then(|hold| hold.expect(attempt));
        Ok(Self { shared, runtime, key, by, ttl, attempt, hold, expected, open: true })
    }

    /// What to ask; it is named, so that it can be settled whoever serves it.
    pub(super) fn request(&self) -> AcquireRequest {
        AcquireRequest {
            key: self.key.clone(),
            session: self.by.clone(),
            attempt: Some(self.attempt),
            max_wait: Duration::ZERO,
        }
    }

    /// It holds nothing and never will.
    pub(super) fn resolved(mut self) {
        self.open = false;
    }

    /// It was granted: from here on the guard sees to it.
    ///
    /// # Errors
    /// `LockLost` if the lease has ended on the way; the grant is then given back.
    pub(super) fn granted(mut self, handle: LockHandle) -> Result<LockGuard> {
        self.open = false;
        let hold = if let Some(hold) = self.hold.take() {
            hold.add(&handle);
            hold
        } else {
            let session = Session {
                id: handle.session,
                owner: handle.owner,
                ttl: handle.ttl,
                client_deadline: handle.client_deadline,
            };
            let held = Kind::OneLock(handle.key.clone(), handle.token);
            Hold::start(self.shared.clone(), self.runtime.clone(), session, held)
        };
        // The expectation ends with `self`, after the keeper knows of the grant.
        let guard = LockGuard::new(hold, handle.key, handle.token, handle.ttl, self.attempt);
        if guard.is_held() {
            Ok(guard)
        } else {
            Err(LockError::lost("the lease had ended by the time the grant arrived"))
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let (shared, key, by) = (self.shared.clone(), self.key.clone(), self.by.clone());
        let (attempt, expected, ttl) = (self.attempt, self.expected.take(), self.ttl);
        let counted = Counted::new(&self.shared.unsettled);
        let settle = async move {
            let _counted = counted;
            let until = shared.clock.now().after(PATIENCE.max(ttl.as_duration()));
            let forget = || shared.service.forget(&key, &by, attempt);
            let outcome = repeat(&shared, ttl, until, forget, |said| match said {
                Said::Answer(Ok(_)) => Some(Ok(())),
                Said::Answer(Err(error)) if !error.is_transient() => Some(Err(error)),
                Said::Answer(Err(_)) | Said::Nothing => None,
            });
            if let Err(error) = outcome.await {
                // Nobody keeps what it may hold; in a session that lives on, its keeper finds it.
                tracing::warn!(%error, "an attempt that was given up could not be settled");
            }
            drop(expected);
        };
        self.shared.tasks.spawn_on(settle, &self.runtime);
    }
}

/// One of the unsettled, for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
