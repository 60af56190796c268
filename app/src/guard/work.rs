//! Work under a lock: stopped before the lease can end, joined, and only then the lock is released.

use std::{panic::resume_unwind, time::Duration};

use dlock_domain::{FencingToken, Moment};
use tokio::task::JoinError;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{LockBuilder, LockGuard, ReleaseError, WithLockError};

/// The longest time to go in peace when the lock is known to be lost: somebody else may hold it.
const LONGEST_GRACE: Duration = Duration::from_secs(5);

impl LockBuilder {
    /// Acquires the lock, runs `work` in a task of its own, and releases the lock after the work
    /// has ended.
    ///
    /// The work gets the fencing token, for whatever the lock protects, and a token that is
    /// *cancelled* when the lock is lost or in danger: when a quarter of its lifetime is left and
    /// no renewal has succeeded. Work that has not ended an eighth of the lifetime later, an eighth
    /// before the deadline, is *aborted* at its next await and *joined*; then the lock is released
    /// (trap 36). Work that blocks its thread cannot be aborted: it should look at the token.
    ///
    /// # Errors
    /// The value comes back as `Ok` only if the work was never told to stop and the release found
    /// the lock still held. Otherwise [`WithLockError`] says what was, and carries the value if
    /// there is one: work whose lock was lost may have been undone by another's, or refused by
    /// its resource, and only the caller knows what its value is worth then.
    ///
    /// # Panics
    /// With the work's panic, after the lock was released (C16). Outside a tokio runtime.
    ///
    /// # Cancellation
    /// Dropping the future aborts the work at its next await; a task of its own joins it and
    /// releases the lock afterwards.
    pub async fn with_lock<T, W, F>(self, work: W) -> Result<T, WithLockError<T>>
    where
        T: Send + 'static,
        W: FnOnce(FencingToken, CancellationToken) -> F + Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let guard = self.acquire().await?;
        let left = CancellationToken::new();
        // Dropped with this future: the conductor learns that nobody waits for it.
        let _leaving = left.clone().drop_guard();
        let hold = guard.hold().clone();
        let (token, cancelled) = (guard.token(), guard.danger().child_token());
        // Called inside the task, so that its panic is the work's like any other.
        let task = async move { work(token, cancelled).await };
        let task = AbortOnDropHandle::new(hold.runtime().spawn(task));
        let conductor = conduct(guard, task, left);
        let conductor = hold.shared().tasks.spawn_on(conductor, hold.runtime());
        // The lock's session must not be kept from closing by those who only wait.
        drop(hold);
        match conductor.await {
            Ok(ended) => ended.judge(),
            // Nothing in the conductor panics: the runtime is going down, and the work with it.
            Err(_) => Err(WithLockError::Stopped { value: None, loss: None }),
        }
    }
}

/// How it ended.
struct Ended<T> {
    work: Result<T, JoinError>,
    /// The work was told to stop.
    told: bool,
    loss: Option<super::Loss>,
    release: Result<(), ReleaseError>,
}

async fn conduct<T>(
    guard: LockGuard,
    mut task: AbortOnDropHandle<T>,
    left: CancellationToken,
) -> Ended<T> {
    let ended = tokio::select! {
        biased;
        ended = &mut task => Some(ended),
        // Those who only wait may be dropped: the task goes on until it is aborted below.
        () = left.cancelled() => None,
        () = guard.danger().cancelled() => grace(&guard, &mut task, &left).await,
    };
    let work = match ended {
        Some(ended) => ended,
        None => {
            task.abort();
            // Joined before anything else: from here on nothing of the work runs.
            task.await
        }
    };
    let loss = guard.known_loss();
    // A deadline that passed before anybody could tell counts as told.
    let told = loss.is_some() || guard.danger().is_cancelled();
    Ended { work, told, loss, release: guard.release().await }
}

/// The work was told to stop: it may end by itself until it is time to end it.
async fn grace<T>(
    guard: &LockGuard,
    task: &mut AbortOnDropHandle<T>,
    left: &CancellationToken,
) -> Option<Result<T, JoinError>> {
    let clock = &guard.hold().shared().clock;
    let end = end_of_grace(guard, clock.now());
    tokio::select! {
        biased;
        ended = task => Some(ended),
        () = left.cancelled() => None,
        () = clock.sleep_until(end) => None,
    }
}

/// An eighth of the lifetime, and an eighth of it before the deadline at the latest; less if the
/// lock is known to be lost, and nothing if its deadline has passed.
fn end_of_grace(guard: &LockGuard, now: Moment) -> Moment {
    let eighth = guard.ttl().as_duration() / 8;
    let lost = guard.known_loss().is_some();
    let longest = if lost { eighth.min(LONGEST_GRACE) } else { eighth };
    let latest = guard.last_deadline().map_or(now, |deadline| deadline.before(eighth));
    now.after(longest).min(latest)
}

impl<T> Ended<T> {
    fn judge(self) -> Result<T, WithLockError<T>> {
        let Self { work, told, loss, release } = self;
        let value = match work {
            Ok(value) => value,
            Err(end) => match end.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => return Err(WithLockError::Stopped { value: None, loss }),
            },
        };
        if told {
            return Err(WithLockError::Stopped { value: Some(value), loss });
        }
        match release {
            Ok(()) => Ok(value),
            Err(ReleaseError::Lost) => Err(WithLockError::Lost { value }),
            Err(ReleaseError::Failed(error)) => Err(WithLockError::Unconfirmed { value, error }),
        }
    }
}
