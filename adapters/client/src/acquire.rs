//! Acquiring.
//!
//! A wait is cut into long polls, each a repeat of the same attempt, so that a server which goes
//! away is noticed and no answer outlives a proxy. It runs in a task of its own: when the caller
//! goes away the task hangs up, and sees to it that nothing stays held that nobody can claim
//! (INV-09, trap 38).

use core::{pin::pin, time::Duration};
use std::sync::Arc;

use dlock_domain::{
    AttemptId, LockError, LockHandle, LockInfo, LockKey, Moment, Result, SessionId,
};
use dlock_ports::{AcquireRequest, Acquired, SessionRef};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Call, Effect},
    core::Core,
    ending::{Ended, Outcome},
    failure::Failure,
    grant::GrantBody,
    private::Private,
    reply::Reply,
    tries::{Patience, Tries},
};

/// The longest wait of one HTTP call.
const POLL: Duration = Duration::from_secs(30);

/// No try but the first starts this close to the end of a wait (C07).
const LAST_TRY: Duration = Duration::from_millis(50);

#[derive(Serialize)]
struct Asked<'a> {
    name: &'a str,
    namespace: &'a str,
    session_id: String,
    max_wait_ms: u64,
    attempt_id: String,
}

/// Acquires, waiting at most the request's `max_wait`.
pub(crate) async fn acquire(core: &Arc<Core>, request: AcquireRequest) -> Result<Acquired> {
    if request.max_wait > AcquireRequest::MAX_WAIT {
        return Err(LockError::invalid("max_wait_ms", "must be from 0 to 3600000 (1 h)"));
    }
    core.unsettled.room()?;
    let place = if request.max_wait.is_zero() {
        None
    } else {
        let place = Arc::clone(&core.waiting).try_acquire_owned();
        Some(place.map_err(|_| {
            LockError::limit("client.max_waiting", "too many acquires of this client wait")
        })?)
    };
    let gone = CancellationToken::new();
    // Dropped with this future: the task learns that nobody waits for it.
    let _leaving = gone.clone().drop_guard();
    let (reply, answer) = oneshot::channel();
    let acquisition = Acquisition::new(Arc::clone(core), request, gone)?;
    core.spawn(async move {
        let outcome = acquisition.run().await;
        drop(place);
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

/// What one try found.
enum Found {
    Granted(LockHandle),
    Held(Option<LockInfo>),
}

/// In whose name.
#[derive(Clone)]
pub(crate) enum Holder {
    Session(SessionId),
    Private(Arc<Private>),
}

/// An acquire under way.
pub(crate) struct Acquisition {
    pub(crate) core: Arc<Core>,
    pub(crate) key: LockKey,
    pub(crate) holder: Holder,
    pub(crate) attempt: AttemptId,
    /// The caller chose the attempt's id and may repeat it.
    pub(crate) repeatable: bool,
    waits: bool,
    until: Moment,
    gone: CancellationToken,
    /// Some try's outcome is unknown: the attempt may hold the lock, now or later.
    pub(crate) unknown: bool,
}

impl Acquisition {
    fn new(core: Arc<Core>, request: AcquireRequest, gone: CancellationToken) -> Result<Self> {
        // Always sent, so that every try is the same attempt (C20).
        let attempt = request.attempt.unwrap_or_else(|| AttemptId::from_bits(core.entropy.bits()));
        let holder = match &request.session {
            SessionRef::Id(id) => {
                if core.known.made(*id).is_some_and(|private| private.key != request.key) {
                    return Err(LockError::invalid(
                        "session_id",
                        "is a lock's own session and ends with that lock",
                    ));
                }
                Holder::Session(*id)
            }
            SessionRef::Private { owner, ttl } => {
                let private = core.known.private(attempt, &request.key, owner, *ttl)?;
                private.enter()?;
                Holder::Private(private)
            }
        };
        let waits = !request.max_wait.is_zero();
        Ok(Self {
            until: core.clock.now().after(request.max_wait),
            key: request.key,
            repeatable: request.attempt.is_some(),
            unknown: false,
            core,
            holder,
            attempt,
            waits,
            gone,
        })
    }

    async fn run(mut self) -> Result<Outcome> {
        match self.holder.clone() {
            Holder::Session(session) => {
                let ended = self.try_until_done(session, None).await;
                self.end_shared(session, ended).await
            }
            Holder::Private(private) => {
                let core = Arc::clone(&self.core);
                let open = private.session.get_or_try_init(|| core.open_private(&private));
                let ended = match open.await.copied() {
                    Err(error) => Ended::Failed(error),
                    Ok(_) if self.gone.is_cancelled() => Ended::Left,
                    Ok(session) => self.try_until_done(session, Some(&private)).await,
                };
                self.end_private(&private, ended).await
            }
        }
    }

    async fn try_until_done(&mut self, session: SessionId, private: Option<&Private>) -> Ended {
        let core = Arc::clone(&self.core);
        let gone = self.gone.clone();
        // One for all polls: a poll that ends does not put off the next keep-alive.
        let mut lost = pin!(core.keep_waiting(session, private.filter(|_| self.waits)));
        let patience = if self.waits { Patience::Wait } else { Patience::Call };
        let mut tries = Tries::new(&core, patience);
        let mut early = 0;
        loop {
            // A `forget` in between: what it settled must not be asked for again.
            if let Some(Err(spent)) = private.map(Private::check) {
                return Ended::Failed(tries.verdict(spent));
            }
            let began = core.clock.now();
            let poll = self.until.since(began).min(POLL);
            let call = match self.ask(session, poll) {
                Ok(call) => call,
                Err(error) => return Ended::Failed(error),
            };
            let outcome = tokio::select! {
                // A try that is dropped closes its connection: its server lets go of the wait.
                reply = core.try_once(tries.server(), &call) => reply,
                () = gone.cancelled() => return Ended::Left,
                error = lost.as_mut() => return Ended::Failed(error),
            };
            let wake = match outcome.and_then(|reply| self.read(&reply, session)) {
                Ok(Found::Granted(handle)) => {
                    tries.answered(&core);
                    return Ended::Granted(handle);
                }
                Ok(Found::Held(holder)) => {
                    tries.answered(&core);
                    let now = core.clock.now();
                    let over = self.until.since(now) < LAST_TRY;
                    let wake = if over {
                        self.until
                    } else if now.since(began) < poll / 2 {
                        // A server that does not wait must not be asked in a tight loop.
                        let pause = core.config.backoff.delay(early, core.entropy.jitter());
                        early += 1;
                        now.after(pause).min(self.until)
                    } else {
                        early = 0;
                        continue;
                    };
                    if over || self.until.since(wake) < LAST_TRY {
                        tokio::select! {
                            () = core.clock.sleep_until(self.until) => {}
                            () = gone.cancelled() => return Ended::Left,
                        }
                        return Ended::NotGranted(holder);
                    }
                    wake
                }
                Err(failure) => {
                    let again = tries.failed(&core, &failure);
                    self.unknown |= tries.unknown();
                    match again {
                        Some(wake) if !self.waits || self.until.since(wake) >= LAST_TRY => wake,
                        _ => return Ended::Failed(tries.verdict(failure.error)),
                    }
                }
            };
            tokio::select! {
                () = core.clock.sleep_until(wake) => {}
                () = gone.cancelled() => return Ended::Left,
                error = lost.as_mut() => return Ended::Failed(error),
            }
        }
    }

    fn ask(&self, session: SessionId, poll: Duration) -> Result<Call> {
        let asked = Asked {
            name: self.key.name().as_str(),
            namespace: self.key.namespace().as_str(),
            session_id: session.expose(),
            max_wait_ms: u64::try_from(poll.as_millis()).unwrap_or(u64::MAX),
            attempt_id: self.attempt.to_string(),
        };
        let call = Call::post("/v1/locks/acquire", &asked, Effect::Write)?;
        Ok(call.within(self.core.config.call_timeout.saturating_add(poll)))
    }

    fn read(&self, reply: &Reply, session: SessionId) -> core::result::Result<Found, Failure> {
        if reply.status == 409
            && let Some(problem) = reply.problem()
            && problem.kind() == "not-granted"
        {
            let holder = problem.holder.as_ref();
            let holder = holder.map(|info| info.check_of(&self.key, reply)).transpose()?;
            return Ok(Found::Held(holder));
        }
        let grant: GrantBody = reply.read(200)?;
        let handle = grant.check(reply, &self.key, session)?;
        self.core.known.learned(session, &handle.owner, handle.ttl);
        Ok(Found::Granted(handle))
    }
}
