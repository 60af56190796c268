//! `dlock run`'s last act: giving the lock back, and finding out whether it still was there.

use std::time::Duration;

use dlock_domain::{Applied, Backoff, LockError, LockHandle, Moment};
use dlock_ports::{Clock, Entropy, LockService, Released};

/// What the release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The lock was held to the end.
    Released,
    /// It was not there any more.
    Lost,
    /// A promise does not hold.
    Incident,
    /// The store could not be asked in time. The lease ends by itself.
    Unanswered,
}

/// Releases, and tries again when that may help; answers by `until` at the latest.
///
/// `released: false` counts as loss only if no earlier try had an unknown outcome: it may be the
/// repeat of a release that did happen.
pub(super) async fn release(
    service: &dyn LockService,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    handle: &LockHandle,
    until: Moment,
) -> Ending {
    let backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
    let mut unknown = false;
    let mut tries = 0;
    loop {
        let outcome = tokio::select! {
            biased;
            outcome = service.release(&handle.key, handle.token, &handle.session) => outcome,
            // The lease ends, or nobody waits any longer: what was handed over is on its own now.
            () = clock.sleep_until(until) => return Ending::Unanswered,
        };
        match judge(outcome, &mut unknown) {
            Some(ending) => return ending,
            None => {
                let pause = backoff.delay(tries, entropy.jitter());
                tries = tries.saturating_add(1);
                let next = clock.now().after(pause);
                if next >= until {
                    return Ending::Unanswered;
                }
                clock.sleep_until(next).await;
            }
        }
    }
}

/// What one try says; `None`: try again.
fn judge(outcome: Result<Released, LockError>, unknown: &mut bool) -> Option<Ending> {
    use dlock_domain::ErrorKind::{InvariantViolated, LockLost, SessionExpired};
    match outcome {
        Ok(released) if released.released || *unknown => Some(Ending::Released),
        Ok(_) => Some(Ending::Lost),
        Err(error) => match error.kind() {
            LockLost | SessionExpired if *unknown => Some(Ending::Released),
            LockLost | SessionExpired => Some(Ending::Lost),
            InvariantViolated(_) => Some(Ending::Incident),
            _ => {
                *unknown |= error.applied() == Applied::Unknown;
                (!error.is_transient()).then_some(Ending::Unanswered)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use dlock_domain::{ErrorKind, Invariant};
    use dlock_ports::Current;

    use super::*;

    fn answer(released: bool) -> Result<Released, LockError> {
        Ok(Released { released, current: Current::None })
    }

    #[test]
    fn a_false_is_loss_only_without_an_unknown_try_before() {
        let mut unknown = false;
        assert_eq!(judge(answer(true), &mut unknown), Some(Ending::Released));
        assert_eq!(judge(answer(false), &mut unknown), Some(Ending::Lost));
        let refused = Err(LockError::contention("refused"));
        assert_eq!(judge(refused, &mut unknown), None);
        assert_eq!(judge(answer(false), &mut unknown), Some(Ending::Lost));
        let cut = Err(LockError::contention("cut").maybe_applied());
        assert_eq!(judge(cut, &mut unknown), None);
        assert_eq!(judge(answer(false), &mut unknown), Some(Ending::Released));
        assert_eq!(judge(Err(LockError::session_expired()), &mut unknown), Some(Ending::Released));
    }

    #[test]
    fn errors_that_answer_and_errors_that_do_not() {
        let of = |error| judge(Err(error), &mut false);
        assert_eq!(of(LockError::lost("")), Some(Ending::Lost));
        assert_eq!(of(LockError::session_expired()), Some(Ending::Lost));
        assert_eq!(of(LockError::incident(Invariant::TokensRise, "")), Some(Ending::Incident));
        assert_eq!(of(LockError::new(ErrorKind::Denied, "")), Some(Ending::Unanswered));
        assert_eq!(of(LockError::new(ErrorKind::NotLeader, "")), None);
    }
}
