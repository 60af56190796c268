//! Which server to ask next, and when: failover, backoff, budget.
//!
//! A call stays with the server that answered last. When a try fails, the next server is asked at
//! once; when all have failed, the round is repeated after a pause. A server that sent
//! `Retry-After` is not asked again by this call before then. None of it waits here: the answer is
//! a moment.

use dlock_domain::{Applied, ErrorKind, LockError, Moment, Result};

use crate::{
    call::{Call, Effect},
    core::Core,
    failure::Failure,
    reply::Reply,
};

/// How long a call is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As often as the budget has tries, and as long.
    Call,
    /// Until failures in a row have lasted for the budget's time: whoever may wait for an hour
    /// outlives a restart.
    Wait,
}

/// The tries of one call.
pub(crate) struct Tries {
    at: usize,
    failures: u32,
    patience: Patience,
    /// Since when the budget's time runs.
    since: Option<Moment>,
    /// Before when each server is not asked.
    resting: Vec<Moment>,
    unknown: bool,
}

impl Tries {
    pub(crate) fn new(core: &Core, patience: Patience) -> Self {
        Self {
            at: core.preferred(),
            failures: 0,
            patience,
            since: (patience == Patience::Call).then(|| core.clock.now()),
            resting: vec![Moment::from_nanos(0); core.servers.len()],
            unknown: false,
        }
    }

    /// Whom to ask now.
    pub(crate) fn server(&self) -> usize {
        self.at
    }

    /// Whether the outcome of some try so far is unknown.
    pub(crate) fn unknown(&self) -> bool {
        self.unknown
    }

    /// A try was answered.
    pub(crate) fn answered(&mut self, core: &Core) {
        core.prefer(self.at);
        self.failures = 0;
        if self.patience == Patience::Wait {
            self.since = None;
        }
    }

    /// A try failed: when to make the next one, or `None` if that is the end.
    pub(crate) fn failed(&mut self, core: &Core, failure: &Failure) -> Option<Moment> {
        self.unknown |= failure.error.applied() == Applied::Unknown;
        if !failure.error.is_transient() {
            core.prefer(self.at);
            return None;
        }
        let elsewhere = matches!(failure.error.kind(), ErrorKind::Draining | ErrorKind::NotLeader);
        if !failure.answered || elsewhere {
            core.avoid(self.at);
        }
        self.failures = self.failures.saturating_add(1);
        let now = core.clock.now();
        let since = *self.since.get_or_insert(now);
        let servers = u32::try_from(self.resting.len()).unwrap_or(u32::MAX).max(1);
        let retry = core.config.retry;
        let most = if retry.max_tries == 1 { 1 } else { retry.max_tries.max(servers) };
        if most == 1 || (self.patience == Patience::Call && self.failures >= most) {
            return None;
        }
        if let Some(resting) = self.resting.get_mut(self.at) {
            *resting = now.after(failure.retry_after.unwrap_or_default());
        }
        let pause = match (self.failures / servers, self.failures % servers) {
            (rounds, 0) => core.config.backoff.delay(rounds - 1, core.entropy.jitter()),
            _ => core::time::Duration::ZERO,
        };
        let earliest = now.after(pause);
        // The next in turn, unless it wants to rest and another does not.
        let count = self.resting.len();
        let in_turn = (1..=count).map(|step| (self.at + step) % count);
        let (when, next) = in_turn
            .filter_map(|server| Some(((*self.resting.get(server)?).max(earliest), server)))
            .min_by_key(|(when, _)| *when)?;
        self.at = next;
        (when.since(since) <= retry.total).then_some(when)
    }

    /// A final error, which is of unknown effect if any try was.
    pub(crate) fn verdict(&self, error: LockError) -> LockError {
        match error.kind() {
            // Certain, whatever came of an earlier try: there is nothing any more.
            ErrorKind::LockLost | ErrorKind::SessionExpired => error,
            _ if self.unknown => error.maybe_applied(),
            _ => error,
        }
    }
}

/// An answer, and whether an earlier try of the same call may have been the one that did it.
pub(crate) struct Answered<T> {
    pub(crate) value: T,
    pub(crate) after_unknown: bool,
}

impl<T> Answered<T> {
    /// The answer, unless it says that nothing was done and that may be an earlier try's doing:
    /// lost and unknown are different answers (INV-07), and who repeats the call finds out.
    pub(crate) fn certain(self, did_nothing: impl FnOnce(&T) -> bool) -> Result<T> {
        if self.after_unknown && did_nothing(&self.value) {
            return Err(LockError::contention(
                "it may have been done by an earlier try whose answer was lost",
            )
            .maybe_applied());
        }
        Ok(self.value)
    }
}

impl Core {
    /// Makes a call, as often as its budget allows.
    ///
    /// # Cancellation
    /// Gives up the try that is under way; its server sees its client hang up.
    pub(crate) async fn call<T, R>(&self, call: &Call, read: R) -> Result<Answered<T>>
    where
        R: Fn(&Reply) -> core::result::Result<T, Failure> + Send + Sync,
    {
        let mut tries = Tries::new(self, Patience::Call);
        loop {
            let reply = self.try_once(tries.server(), call).await;
            match reply.and_then(|reply| read(&reply)) {
                Ok(value) => {
                    tries.answered(self);
                    let after_unknown = tries.unknown() && call.effect == Effect::Write;
                    return Ok(Answered { value, after_unknown });
                }
                Err(failure) => match tries.failed(self, &failure) {
                    Some(when) => {
                        tracing::debug!(error = %failure.error, "trying again");
                        self.clock.sleep_until(when).await;
                    }
                    None => return Err(tries.verdict(failure.error)),
                },
            }
        }
    }
}
