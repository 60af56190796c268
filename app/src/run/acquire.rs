//! `dlock run`'s first act: getting the lock, or the exit code that says why not.

use dlock_domain::{LockHandle, LockInfo};
use dlock_ports::{AcquireRequest, Acquired, Clock, LockService, SessionRef};

use super::{
    RunRequest, exit,
    people::{holder, say, say_error},
    signals::Signals,
    waiting::Waiting,
};

/// Acquires the lock in a session of its own; `Err` is the exit code.
///
/// A signal ends the wait at once (C51): the dropped call is settled by the service, which the
/// caller shuts down. Meanwhile people at a terminal see who has the lock; they no longer do when
/// this returns.
pub(super) async fn acquire(
    service: &dyn LockService,
    clock: &dyn Clock,
    request: &RunRequest,
    signals: &mut Signals,
) -> Result<LockHandle, u8> {
    let mut waiting = Waiting::new(request.key.clone());
    let outcome = tokio::select! {
        // A signal that came first wins over a grant.
        biased;
        signal = signals.next() => Err(signal),
        outcome = wait(service, clock, request) => Ok(outcome),
        never = waiting.tell(service, clock) => match never {},
    };
    waiting.clear(clock, request.ttl).await;
    match outcome {
        Err(signal) => Err(exit::of_signal(u8::try_from(signal.as_raw()).unwrap_or(u8::MAX))),
        Ok(Ok(Ok(handle))) => Ok(handle),
        Ok(Ok(Err(info))) => {
            let who = holder(request.key.name().as_str(), info.as_ref(), clock.wall());
            say(format_args!("not granted: {who}"));
            Err(request.conflict_exit_code)
        }
        Ok(Err(error)) => {
            say_error("cannot acquire", &error);
            Err(exit::of_error(&error))
        }
    }
}

/// Waits as long as asked, in calls of at most the longest wait that one call has.
async fn wait(
    service: &dyn LockService,
    clock: &dyn Clock,
    request: &RunRequest,
) -> dlock_domain::Result<Result<LockHandle, Option<LockInfo>>> {
    let until = clock.now().after(request.wait);
    loop {
        let left = until.since(clock.now());
        let call = AcquireRequest {
            key: request.key.clone(),
            session: SessionRef::Private { owner: request.owner.clone(), ttl: request.ttl },
            // Nobody else could repeat it: dropped or failed, the service settles it.
            attempt: None,
            max_wait: left.min(AcquireRequest::MAX_WAIT),
        };
        match service.acquire(call).await? {
            Acquired::Granted(handle) => return Ok(Ok(handle)),
            Acquired::NotGranted { holder } if left <= AcquireRequest::MAX_WAIT => {
                return Ok(Err(holder));
            }
            Acquired::NotGranted { .. } => {}
        }
    }
}
