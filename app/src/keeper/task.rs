//! The task that carries the plan out, and the one that watches over it.

use std::sync::Arc;

use dlock_domain::{ErrorKind, LockError, Moment, Result};
use dlock_ports::{HeldGrant, Kept, SessionRef};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Shared,
    plan::{Call, Step},
};

/// Runs the keeping task and starts it again when it panics (C17). The books survive: a restarted
/// task goes on where the last one stopped, and what nobody could keep is lost by its deadline.
pub(super) async fn supervise(shared: Arc<Shared>) {
    loop {
        // Aborted with this task, if that is dropped.
        let life = AbortOnDropHandle::new(tokio::spawn(keep(shared.clone())));
        match life.await {
            Ok(()) => return,
            Err(end) if end.is_panic() => shared.restarted(),
            // The runtime is going down, and its watchers with it.
            Err(_) => return,
        }
    }
}

/// Keeps the session until it is lost or the keeper is stopped.
async fn keep(shared: Arc<Shared>) {
    loop {
        if shared.stop.is_cancelled() {
            return;
        }
        match shared.step() {
            Step::End => return,
            Step::Sleep(until) => tokio::select! {
                // All three only wait: nothing is lost by dropping them.
                () = shared.stop.cancelled() => return,
                () = shared.changed.notified() => {}
                () = shared.clock.sleep_until(until) => {}
            },
            Step::Call(call) => shared.call(&call).await,
            Step::Look(until) => tokio::select! {
                biased;
                () = shared.stop.cancelled() => return,
                // Keeping comes first. A look extends nothing; a forget that was begun is seen to
                // its end by the service, and repeated by the next look if it was not.
                () = shared.clock.sleep_until(until) => {}
                () = shared.sweep() => {}
            },
        }
    }
}

impl Shared {
    fn step(&self) -> Step {
        let now = self.clock.now();
        self.change(|books| books.plan.expire(now));
        self.books().plan.step(now)
    }

    async fn call(&self, call: &Call) {
        let outcome = tokio::select! {
            // A deadline that has passed counts before a reply that came with it (C19).
            biased;
            // Giving up on a call is safe: at worst the lease was extended and nobody knows.
            () = self.clock.sleep_until(call.limit) => None,
            outcome = self.service.keep_session(&self.session, &call.listed) => Some(outcome),
        };
        let now = self.clock.now();
        self.settle(call, outcome, now);
    }

    fn settle(&self, call: &Call, outcome: Option<Result<Kept>>, now: Moment) {
        let random = self.entropy.jitter();
        match outcome {
            Some(Ok(kept)) => self.change(|books| books.plan.kept(call, &kept, now, random)),
            Some(Err(error)) if says_gone(&error) => {
                self.change(|books| books.plan.session_gone());
            }
            // Whatever else it says, it does not say that the session is gone (INV-07).
            Some(Err(error)) => {
                // An incident is reported by the service that met it, once.
                tracing::debug!(%error, "a keep-alive failed");
                self.books().plan.failed(now, random);
            }
            None => {
                tracing::debug!("a keep-alive was not answered in time");
                self.books().plan.failed(now, random);
            }
        }
    }

    /// Looks for strays and releases them.
    async fn sweep(&self) {
        let grants = match self.service.look_session(&self.session).await {
            Ok((_, grants)) => grants,
            Err(error) if says_gone(&error) => {
                self.change(|books| books.plan.session_gone());
                return;
            }
            Err(error) => {
                tracing::debug!(%error, "a look for strays failed");
                return;
            }
        };
        for stray in self.judge(grants) {
            let session = SessionRef::Id(self.session);
            match self.service.forget(&stray.key, &session, stray.attempt).await {
                Ok(_) => tracing::info!(
                    event = "lock_released",
                    namespace = %stray.key.namespace(),
                    key = %stray.key.name(),
                    owner = self.owner,
                    token = stray.token.get(),
                    "a stray grant was released"
                ),
                Err(error) => tracing::warn!(%error, "a stray grant could not be released"),
            }
        }
    }

    fn judge(&self, grants: Vec<HeldGrant>) -> Vec<HeldGrant> {
        let mut books = self.books();
        let super::Books { plan, strays, .. } = &mut *books;
        strays.judge(grants, |grant| plan.keeps(&grant.key, grant.token))
    }

    fn restarted(&self) {
        let now = self.clock.now();
        let random = self.entropy.jitter();
        self.change(|books| {
            books.restarts += 1;
            // A pause, or a task that panics at once would spin.
            books.plan.failed(now, random);
            Vec::new()
        });
        tracing::error!("the keeper's task panicked and was restarted");
    }
}

fn says_gone(error: &LockError) -> bool {
    matches!(error.kind(), ErrorKind::SessionExpired | ErrorKind::LockLost)
}
