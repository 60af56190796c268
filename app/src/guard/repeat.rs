//! Asking again until it is answered, or until it is no longer worth while.

use std::time::Duration;

use dlock_domain::{Backoff, LockError, Moment, Result, Ttl};

use super::locks::Shared;

/// What came of one try.
pub(super) enum Said<T> {
    /// The service's answer.
    Answer(Result<T>),
    /// Nothing in time: it may have happened, or still happen.
    Nothing,
}

/// Calls until `judge` has an outcome, pausing in between; the last failure if a pause would end
/// after `until`. One try is always made, and none is waited for longer than a third of `ttl`, so
/// that one dead connection is not the end.
pub(super) async fn repeat<T, O, F>(
    shared: &Shared,
    ttl: Ttl,
    until: Moment,
    call: impl Fn() -> F,
    mut judge: impl FnMut(Said<T>) -> Option<Result<O>>,
) -> Result<O>
where
    F: Future<Output = Result<T>>,
{
    let Shared { clock, entropy, .. } = shared;
    let backoff = Backoff::new(Duration::from_millis(20), ttl.as_duration() / 10);
    let mut tries = 0;
    loop {
        let limit = clock.now().after(ttl.as_duration() / 3);
        let said = tokio::select! {
            biased;
            answer = call() => Said::Answer(answer),
            // A call that is given up counts as one whose reply was lost.
            () = clock.sleep_until(limit) => Said::Nothing,
        };
        let failure = match &said {
            Said::Answer(Err(error)) => error.clone(),
            _ => LockError::contention("the call was not answered in time").maybe_applied(),
        };
        if let Some(outcome) = judge(said) {
            return outcome;
        }
        let next = clock.now().after(backoff.delay(tries, entropy.jitter()));
        if next >= until {
            return Err(failure);
        }
        tries = tries.saturating_add(1);
        clock.sleep_until(next).await;
    }
}
