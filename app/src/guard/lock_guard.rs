//! A lock that is held.

use std::{fmt, sync::Arc, time::Duration};

use dlock_domain::{AttemptId, FencingToken, LockError, LockKey, Moment, Ttl};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{Loss, ReleaseError, hold::Hold, release::Release, view::View};

/// A lock that is held, kept by its session's keeper until the guard is released, dropped, or the
/// lock is lost.
///
/// Only the resource can tell for sure whose write comes last: hand [`token`](Self::token) to
/// whatever the lock protects. [`is_held`](Self::is_held) is the holder's own view, and an honest
/// one: it compares clocks when it is called.
///
/// # Drop
/// Renewals stop at once, and a release is begun on the runtime in which the lock was acquired. It
/// is best effort: nobody learns whether it succeeded, and nothing is done if that runtime has shut
/// down; the lease then ends by itself, within its lifetime. Prefer
/// [`release`](Self::release), or await [`Locks::settled`](super::Locks::settled) before the
/// runtime goes.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard {
    hold: Arc<Hold>,
    view: View,
    ttl: Ttl,
    attempt: AttemptId,
    loss: watch::Receiver<Option<Loss>>,
    /// The lock is lost, or no longer the guard's.
    cancelled: CancellationToken,
    /// The lock is in danger: a quarter of its lifetime is left.
    danger: CancellationToken,
    _teller: AbortOnDropHandle<()>,
    parted: bool,
}

impl LockGuard {
    pub(super) fn new(
        hold: Arc<Hold>,
        key: LockKey,
        token: FencingToken,
        ttl: Ttl,
        attempt: AttemptId,
    ) -> Self {
        let view = hold.view(key, token);
        let (cancelled, danger) = (CancellationToken::new(), CancellationToken::new());
        let (told, loss) = watch::channel(None);
        let teller = {
            let (view, cancelled, danger) = (view.clone(), cancelled.clone(), danger.clone());
            async move {
                let loss = view.tell(ttl, &danger).await;
                told.send_replace(Some(loss));
                cancelled.cancel();
            }
        };
        let _teller = AbortOnDropHandle::new(hold.runtime().spawn(teller));
        Self { hold, view, ttl, attempt, loss, cancelled, danger, _teller, parted: false }
    }

    /// The grant's token: greater than every token before it for this key. Hand it to whatever the
    /// lock protects (INV-04, INV-05).
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.view.token
    }

    /// What is held.
    #[must_use]
    pub const fn key(&self) -> &LockKey {
        &self.view.key
    }

    /// How long the lock is held even if no renewal succeeds any more; zero once it is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let now = self.view.clock.now();
        self.deadline().map_or(Duration::ZERO, |deadline| deadline.since(now))
    }

    /// Whether the lock may be believed in now: compares the deadline with the boot clock at the
    /// time of the call, so that it is `false` from the first instruction after a pause or a
    /// suspend that was too long (C10, C19, trap 35). Never `true` again once it was `false`.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.deadline().is_some()
    }

    /// Returns when the lock is lost, no later than its deadline (C12). Several may wait, before
    /// and after.
    ///
    /// Cancellation: only this waiting ends.
    pub async fn lost(&self) -> Loss {
        self.loss_watch().await
    }

    /// The same, detached from the guard.
    pub(super) fn loss_watch(&self) -> impl Future<Output = Loss> + Send + 'static {
        let (mut loss, view, ttl) = (self.loss.clone(), self.view.clone(), self.ttl);
        async move {
            let told = loss.wait_for(Option::is_some).await.ok().and_then(|loss| loss.clone());
            match told {
                Some(loss) => loss,
                // The runtime that should tell is going down: this one looks for itself.
                None => view.tell(ttl, &CancellationToken::new()).await,
            }
        }
    }

    /// A token that is cancelled when the lock is lost, no later than its deadline, and when the
    /// guard is released or dropped: work that listens to it never outlives the lock knowingly.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancelled.child_token()
    }

    /// Gives the lock back. Nothing renews it from the call on (trap 37); the release is repeated
    /// while that may help and the lease lasts.
    ///
    /// # Errors
    /// [`ReleaseError::Lost`] if the store answered that the grant was not there (where an earlier
    /// try had an unknown outcome, that is taken for its success); [`ReleaseError::Failed`] if
    /// nothing was answered in time, or the answer was a refusal.
    ///
    /// # Cancellation
    /// Dropping the future gives up the answer; the release goes on, as after a drop of the guard.
    pub async fn release(mut self) -> Result<(), ReleaseError> {
        self.part().await.unwrap_or_else(|died| {
            let error = LockError::contention("the runtime is going down").maybe_applied();
            Err(error.caused_by(died).into())
        })
    }

    /// Until when, if it is held now. What was told as lost stays lost.
    pub(super) fn deadline(&self) -> Option<Moment> {
        let deadline = self.view.deadline().ok()?;
        self.loss.borrow().is_none().then_some(deadline)
    }

    /// The deadline as it was last known, also of a lock that was lost for another reason.
    pub(super) fn last_deadline(&self) -> Option<Moment> {
        let state = self.view.state.borrow();
        let grant = state.grants.get(self.key()).filter(|grant| grant.token == self.token());
        grant.map(|grant| grant.deadline)
    }

    /// The loss, if it is lost now, whether that was told already or not.
    pub(super) fn known_loss(&self) -> Option<Loss> {
        let told = self.loss.borrow().clone();
        told.or_else(|| self.view.deadline().err().map(|reason| self.view.loss(reason)))
    }

    pub(super) const fn danger(&self) -> &CancellationToken {
        &self.danger
    }

    pub(super) const fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    pub(super) const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Lets go: stops renewing now, and begins the release.
    fn part(&mut self) -> JoinHandle<Result<(), ReleaseError>> {
        self.parted = true;
        let until = self.deadline().unwrap_or_else(|| self.view.clock.now());
        let View { key, token, .. } = &self.view;
        let expected = self.hold.part(key, *token, self.attempt);
        self.danger.cancel();
        self.cancelled.cancel();
        let (hold, key, token) = (self.hold.clone(), key.clone(), *token);
        let release = Release { hold, key, token, ttl: self.ttl, until, expected };
        self.hold.shared().tasks.spawn_on(release.run(), self.hold.runtime())
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        if !self.parted {
            // Best effort: nobody waits for the answer.
            drop(self.part());
        }
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockGuard")
            .field("key", self.key())
            .field("token", &self.token())
            .field("held", &self.is_held())
            .finish_non_exhaustive()
    }
}
