//! The acquire loop.
//!
//! It runs in a task of its own. Its caller holds the other end: when the caller goes away the
//! task notices, finishes the shot that is under way, and sees to it that nothing stays held that
//! nobody can claim (INV-09).
//!
//! Order: a place in the line is taken on arrival, then the first shot is made whatever the line.
//! Later shots are the head's alone, each on a hint: the lock was released here, the store's
//! waiter says so, or a poll found it free. A hint is never a grant.

use std::sync::Arc;
use std::time::Duration;

use dlock_domain::{
    Applied, AttemptId, Deadline, LockError, LockHandle, LockInfo, LockKey, Moment, Result, Ttl,
};
use dlock_ports::{
    AcquireRequest, Acquired, Attempt, Consistency, Holder, InsertRequest, Intent, Observed,
    ReleaseWaiter, SessionRef, WaitEnd,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::core::{Core, owner_of};
use super::line::Place;
use super::settle::{Loose, Unclaimed};
use crate::telemetry::outcome::WaitOutcome;
use crate::telemetry::{events, table, took};

/// No shot but the first starts this close to the end of a wait: its answer would come too late
/// for a caller whose own time-out is the same (C07).
const LAST_SHOT: Duration = Duration::from_millis(50);

enum Outcome {
    Granted(Unclaimed),
    NotGranted(Option<LockInfo>),
}

/// Acquires, waiting at most the request's `max_wait`.
pub(crate) async fn acquire(core: &Arc<Core>, request: AcquireRequest) -> Result<Acquired> {
    if request.max_wait > AcquireRequest::MAX_WAIT {
        return Err(LockError::invalid("max_wait_ms", "must be from 0 to 3600000 (1 h)"));
    }
    let gone = CancellationToken::new();
    // Dropped with this future: the task learns that nobody waits for it.
    let _leaving = gone.clone().drop_guard();
    let (reply, answer) = oneshot::channel();
    let task_core = Arc::clone(core);
    core.spawn(async move {
        let outcome = Acquisition::new(task_core, request, gone).run().await;
        // If nobody is there any more the outcome is dropped, and an unclaimed grant with it.
        let _ = reply.send(outcome);
    });
    match answer.await {
        Ok(Ok(Outcome::Granted(grant))) => {
            let handle = grant.claim().ok_or_else(|| LockError::contention("claimed twice"))?;
            Ok(Acquired::Granted(handle))
        }
        Ok(Ok(Outcome::NotGranted(holder))) => Ok(Acquired::NotGranted { holder }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(LockError::contention("the acquire's task died").maybe_applied()),
    }
}

struct Acquisition {
    core: Arc<Core>,
    key: LockKey,
    session: SessionRef,
    attempt: AttemptId,
    /// The caller chose the attempt's id and may repeat it.
    repeatable: bool,
    waits: bool,
    until: Moment,
    gone: CancellationToken,
    /// Some shot's outcome is unknown: the attempt may hold the lock, now or later.
    unknown: bool,
}

/// Why a wait ended without an error.
enum Next {
    Shoot,
    TimeUp,
}

impl Acquisition {
    fn new(core: Arc<Core>, request: AcquireRequest, gone: CancellationToken) -> Self {
        let until = core.clock.now().after(request.max_wait);
        let attempt = request.attempt.unwrap_or_else(|| AttemptId::from_bits(core.entropy.bits()));
        Self {
            key: request.key,
            session: request.session,
            attempt,
            repeatable: request.attempt.is_some(),
            waits: !request.max_wait.is_zero(),
            until,
            gone,
            unknown: false,
            core,
        }
    }

    async fn run(mut self) -> Result<Outcome> {
        if self.core.draining.is_cancelled() {
            return Err(Core::draining_error());
        }
        self.core.unsettled.room()?;
        if self.repeatable {
            self.core.memory.begin(self.attempt, &self.key, &self.session)?;
        }
        let place = self.waits.then(|| self.core.lines.join(&self.key));
        let mut holder = self.holder().await?;
        let outcome = self.try_until_done(place, &mut holder).await;
        match outcome {
            Ok(Outcome::NotGranted(_)) if self.unknown && self.repeatable => {
                // Settling would end what a repeat at another server may have been given by now
                // (trap 13), and "no" would be a guess.
                let error = LockError::contention(
                    "held by somebody else, but an earlier try of this attempt may be granted yet: \
                     repeat it, or forget it",
                );
                Err(error.maybe_applied())
            }
            Ok(Outcome::NotGranted(_)) if self.unknown => {
                self.settle_then_not_granted(holder).await
            }
            Err(error) if self.unknown => {
                if !self.repeatable {
                    self.core.settle(Loose::Attempt(self.key, holder, self.attempt));
                }
                Err(error.maybe_applied())
            }
            other => other,
        }
    }

    async fn try_until_done(
        &mut self,
        place: Option<Result<Place>>,
        holder: &mut Holder,
    ) -> Result<Outcome> {
        let mut failures = 0;
        loop {
            match self.shot(holder).await {
                Ok(Attempt::Granted(handle)) => return self.granted(handle).await,
                Ok(Attempt::Held(observed)) => {
                    failures = 0;
                    let next = match &place {
                        None => Next::TimeUp,
                        Some(Err(full)) => return Err(full.clone()),
                        Some(Ok(place)) => self.wait(place, &observed, holder).await?,
                    };
                    if matches!(next, Next::TimeUp) {
                        return Ok(Outcome::NotGranted(self.seen().await));
                    }
                }
                Err(error) if error.is_transient() && self.waits => {
                    self.unknown |= error.applied() == Applied::Unknown;
                    if matches!(self.pause(failures).await?, Next::TimeUp) {
                        return Err(error);
                    }
                    failures += 1;
                }
                Err(error) => {
                    self.unknown |= error.applied() == Applied::Unknown;
                    return Err(error);
                }
            }
        }
    }

    /// Who would hold the lock. A session is looked at once: its owner and lifetime never change.
    async fn holder(&self) -> Result<Holder> {
        let id = match &self.session {
            SessionRef::Private { owner, ttl } => {
                return Ok(Holder::Private { owner: owner.clone(), ttl: *ttl });
            }
            SessionRef::Id(id) => *id,
        };
        let mut failures = 0;
        loop {
            match self.core.backend.sessions.look(&id, self.budget()).await {
                Ok(Some((session, _))) => return Ok(Holder::Session(session)),
                Ok(None) => return Err(self.core.session_gone(&id)),
                Err(error) if error.is_transient() && self.waits => {
                    if matches!(self.pause(failures).await?, Next::TimeUp) {
                        return Err(error);
                    }
                    failures += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// How long a store call may take whose outcome the answer waits for: all of them together no longer
    /// than the call budget beyond the caller's own wait.
    fn budget(&self) -> Deadline {
        let last = Deadline::at(self.until.after(self.core.config.call_budget));
        self.core.budget().earlier(last)
    }

    async fn shot(&self, holder: &Holder) -> Result<Attempt> {
        let request = InsertRequest {
            key: self.key.clone(),
            holder: holder.clone(),
            attempt: self.attempt,
            intent: Intent::Acquire,
        };
        self.core.backend.locks.try_insert(request, self.budget()).await
    }

    async fn granted(&self, handle: LockHandle) -> Result<Outcome> {
        self.core.saw_granted(&handle, self.attempt);
        if self.core.draining.is_cancelled() {
            // Granted while the end began: nothing is granted after that (trap 42). Released before
            // the answer, so that the caller finds the lock free elsewhere; but a caller who can
            // repeat the attempt finds this very grant there, and it must not be ended under it.
            if self.repeatable {
                return Err(Core::draining_error().maybe_applied());
            }
            self.core.release_loose(Loose::Grant(handle.key, handle.token)).await;
            return Err(Core::draining_error());
        }
        events::lock_acquired(&handle);
        Ok(Outcome::Granted(Unclaimed::new(&self.core, handle, self.repeatable)))
    }

    /// Waits, after a shot that met `observed`, until another shot is worth while.
    async fn wait(&self, place: &Place, observed: &Observed, holder: &mut Holder) -> Result<Next> {
        let began = self.core.clock.now();
        let ended = self.wait_from(began, place, observed, holder).await;
        self.waited(
            began,
            match ended {
                Ok(Next::Shoot) => WaitOutcome::Released,
                Ok(Next::TimeUp) => WaitOutcome::Deadline,
                Err(_) => WaitOutcome::Interrupted,
            },
        );
        ended
    }

    fn waited(&self, began: Moment, how: WaitOutcome) {
        let time = self.core.clock.now().since(began);
        took(table::WAIT, self.core.backend.locks.backend_id(), how.word(), time);
    }

    async fn wait_from(
        &self,
        began: Moment,
        place: &Place,
        observed: &Observed,
        holder: &mut Holder,
    ) -> Result<Next> {
        let third = ttl_of(holder).as_duration() / 3;
        let mut waiter = self.core.backend.waiter.clone();
        let mut polls = 0;
        let mut check = self.core.clock.now().after(third);
        let mut head = place.is_head();
        loop {
            if self.core.clock.now() >= self.until {
                return Ok(Next::TimeUp);
            }
            let wake = self.until.min(check);
            let hint = async {
                match &waiter {
                    _ if !head => {
                        self.core.clock.sleep_until(wake).await;
                        WaitEnd::Deadline
                    }
                    Some(waiter) => self.hint(waiter, observed, wake).await,
                    None => {
                        let delay =
                            self.core.config.backoff.delay(polls, self.core.entropy.jitter());
                        let poll = self.core.clock.now().after(delay);
                        self.core.clock.sleep_until(poll.min(wake)).await;
                        WaitEnd::Deadline
                    }
                }
            };
            tokio::select! {
                () = self.gone.cancelled() => return Err(LockError::contention("the caller left")),
                () = self.core.draining.cancelled() => return Err(Core::draining_error()),
                // The others may be dropped: a ring that was not answered stays, a waiter leaves
                // nothing behind, a sleep neither.
                () = place.rung() => {
                    if place.is_head() {
                        return self.shoot().await;
                    }
                }
                end = hint => match end {
                    WaitEnd::Released => return self.shoot().await,
                    WaitEnd::Fallback => {
                        self.waited(began, WaitOutcome::Fallback);
                        events::wait_fallback(&self.key, owner_of(holder));
                        waiter = None;
                    }
                    WaitEnd::Deadline => {
                        let now = self.core.clock.now();
                        if now >= self.until {
                            return Ok(Next::TimeUp);
                        }
                        let due = now >= check;
                        let look = async {
                            if due {
                                self.check_session(holder).await?;
                            }
                            // Also with a waiter, now and then: what it missed is not missed for
                            // long.
                            Ok(place.is_head() && self.looks_free().await)
                        };
                        // A store that hangs keeps neither the caller nor the server's end waiting.
                        let free = tokio::select! {
                            () = self.gone.cancelled() => Err(LockError::contention("the caller left")),
                            () = self.core.draining.cancelled() => Err(Core::draining_error()),
                            free = look => free,
                        }?;
                        if free {
                            return self.shoot().await;
                        }
                        if due {
                            check = self.core.clock.now().after(third);
                        }
                        polls += 1;
                    }
                }
            }
            head = place.is_head();
        }
    }

    async fn hint(
        &self,
        waiter: &Arc<dyn ReleaseWaiter>,
        observed: &Observed,
        wake: Moment,
    ) -> WaitEnd {
        waiter.await_release(&self.key, observed, Deadline::at(wake)).await
    }

    /// A shot, unless it is too late for one.
    async fn shoot(&self) -> Result<Next> {
        if self.until.since(self.core.clock.now()) >= LAST_SHOT {
            return Ok(Next::Shoot);
        }
        self.sleep(self.until).await?;
        Ok(Next::TimeUp)
    }

    /// A pause after a failure.
    async fn pause(&self, failures: u32) -> Result<Next> {
        let now = self.core.clock.now();
        let delay = self.core.config.backoff.delay(failures, self.core.entropy.jitter());
        self.sleep(now.after(delay).min(self.until)).await?;
        self.shoot().await
    }

    async fn sleep(&self, at: Moment) -> Result<()> {
        tokio::select! {
            () = self.gone.cancelled() => Err(LockError::contention("the caller left")),
            () = self.core.draining.cancelled() => Err(Core::draining_error()),
            () = self.core.clock.sleep_until(at) => Ok(()),
        }
    }

    /// A waiter on a dead session fails while it waits, not when it is granted (C01, C02).
    async fn check_session(&self, holder: &mut Holder) -> Result<()> {
        let Holder::Session(session) = holder else { return Ok(()) };
        match self.core.backend.sessions.look(&session.id, self.budget()).await {
            Ok(Some((seen, _))) => *session = seen,
            Ok(None) => return Err(self.core.session_gone(&session.id)),
            Err(error) => tracing::debug!(%error, "a waiter's session could not be looked at"),
        }
        Ok(())
    }

    async fn looks_free(&self) -> bool {
        let budget = self.core.budget().earlier(Deadline::at(self.until));
        let read = self.core.backend.locks.read(&self.key, Consistency::Linearizable, budget);
        matches!(read.await, Ok(None))
    }

    /// The holder, as far as it can be seen in the time that is left, for people.
    async fn seen(&self) -> Option<LockInfo> {
        let budget = self.budget();
        let read = self.core.backend.locks.read(&self.key, Consistency::Linearizable, budget);
        read.await.ok().flatten().map(|info| self.core.with_waiters(info))
    }

    /// "Not granted" after a shot of unknown outcome would be a guess: the attempt, whose id nobody
    /// else knows, is settled first, so that it can never be granted behind the caller's back. That has
    /// a budget of its own: without it the answer could only be "unknown".
    async fn settle_then_not_granted(self, holder: Holder) -> Result<Outcome> {
        let forget =
            self.core.backend.sessions.forget(&self.key, &holder, self.attempt, self.core.budget());
        match forget.await {
            Ok(ended) => {
                self.core.saw_settled(&self.key, owner_of(&holder), self.attempt, ended);
                if ended {
                    self.core.lines.released(&self.key);
                }
                Ok(Outcome::NotGranted(self.seen().await))
            }
            Err(error) => {
                self.core.settle(Loose::Attempt(self.key, holder, self.attempt));
                Err(error.maybe_applied())
            }
        }
    }
}

fn ttl_of(holder: &Holder) -> Ttl {
    match holder {
        Holder::Session(session) => session.ttl,
        Holder::Private { ttl, .. } => *ttl,
    }
}
