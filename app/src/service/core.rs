//! What the calls of one service share.

use std::future::Future;
use std::sync::Arc;

use dlock_domain::{Deadline, ErrorKind, LockError, LockInfo, Result};
use dlock_ports::{Backend, Clock, Entropy};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::ServiceConfig;
use super::line::Lines;
use super::memory::Memory;
use super::settle::Unsettled;

pub(crate) struct Core {
    pub(crate) backend: Backend,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) config: ServiceConfig,
    pub(crate) lines: Arc<Lines>,
    pub(crate) memory: Memory,
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

    pub(crate) fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn_on(work, &self.runtime);
    }

    /// Runs a store operation in a task of its own, so that a caller who goes away in the middle
    /// takes only the answer with it (trap 41).
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let task = self.tasks.spawn_on(work, &self.runtime);
        let answer = task.await.unwrap_or_else(|died| {
            Err(LockError::contention("the call's task died").maybe_applied().caused_by(died))
        });
        if let Err(error) = &answer {
            note(error);
        }
        answer
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

/// An incident is for an operator to see, whoever the caller was.
pub(crate) fn note(error: &LockError) {
    if let ErrorKind::InvariantViolated(invariant) = error.kind() {
        tracing::error!(event = "lock_incident", %invariant, detail = error.detail(), "incident");
    }
}
