//! What the calls of one service share.

use std::future::Future;
use std::sync::Arc;

use dlock_domain::{
    AttemptId, Deadline, ErrorKind, FencingToken, LockError, LockHandle, LockInfo, LockKey,
    OwnerId, Result, SessionId,
};
use dlock_ports::{Backend, Clock, Entropy, Holder};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::config::ServiceConfig;
use super::line::Lines;
use super::memory::Memory;
use super::settle::Unsettled;
use super::tally::Tally;
use crate::telemetry::events;

pub(crate) struct Core {
    pub(crate) backend: Backend,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) config: ServiceConfig,
    pub(crate) lines: Arc<Lines>,
    pub(crate) memory: Memory,
    pub(crate) tally: Tally,
    pub(crate) unsettled: Unsettled,
    /// Nothing new is started.
    pub(crate) draining: CancellationToken,
    /// Background work ends.
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Tasks are also started from `drop`, which may run outside the runtime.
    pub(crate) runtime: Handle,
}

impl Core {
    pub(crate) fn budget(&self) -> Deadline {
        Deadline::at(self.clock.now().after(self.config.call_budget))
    }

    /// Runs work in a task of its own; its log lines stand in the span of whoever started it.
    pub(crate) fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn_on(work.in_current_span(), &self.runtime);
    }

    /// Many locks may have been released: rings every head, where the store has no waiter that
    /// wakes the right ones by itself.
    pub(crate) fn released_many(&self) {
        if self.backend.waiter.is_none() {
            self.lines.released_many();
        }
    }

    /// Runs a store operation in a task of its own, so that a caller who goes away in the middle
    /// takes only the answer with it (trap 41).
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let task = self.tasks.spawn_on(work.in_current_span(), &self.runtime);
        task.await.unwrap_or_else(|died| {
            Err(LockError::contention("the call's task died").maybe_applied().caused_by(died))
        })
    }

    /// The store granted this.
    pub(crate) fn saw_granted(&self, handle: &LockHandle, attempt: AttemptId) {
        self.memory.granted(handle, attempt);
        self.tally.granted(handle, attempt);
    }

    /// The store answered a release: whether or not it ended the grant, there is none any more.
    pub(crate) fn saw_release(&self, key: &LockKey, token: FencingToken, released: bool) {
        let owner = self.tally.ended(key, token);
        events::lock_released(key, owner.as_ref(), Some(token), released);
    }

    /// The store settled an attempt, and `ended` the grant that it had.
    pub(crate) fn saw_settled(
        &self,
        key: &LockKey,
        owner: &OwnerId,
        attempt: AttemptId,
        ended: bool,
    ) {
        self.memory.settled(attempt);
        let token = self.tally.settled(key, attempt);
        if ended {
            events::lock_released(key, Some(owner), token, true);
        }
    }

    /// The store says that the grant is not there.
    pub(crate) fn saw_lost(&self, key: &LockKey, token: FencingToken) {
        let owner = self.tally.ended(key, token);
        events::lock_lost(key, owner.as_ref(), token);
    }

    /// The store says that the session is not there.
    pub(crate) fn session_gone(&self, session: &SessionId) -> LockError {
        self.tally.session_ended(session);
        LockError::session_expired()
    }

    pub(crate) fn draining_error() -> LockError {
        LockError::new(ErrorKind::Draining, "this server is shutting down: ask another")
    }

    /// The waiters of this server and those that the adapter knows of; the head of a line is known
    /// to both.
    pub(crate) fn with_waiters(&self, info: LockInfo) -> LockInfo {
        let waiter_count = info.waiter_count.max(self.lines.waiting(&info.key));
        LockInfo { waiter_count, ..info }
    }
}

pub(crate) fn owner_of(holder: &Holder) -> &OwnerId {
    match holder {
        Holder::Session(session) => &session.owner,
        Holder::Private { owner, .. } => owner,
    }
}
