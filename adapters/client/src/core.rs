//! What the calls of one client share.

use std::future::Future;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dlock_domain::{LockError, Result};
use dlock_ports::{Clock, Entropy};
use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{ConfigError, RemoteConfig, ServerUrl, http, known::Known, settle::Unsettled};

pub(crate) struct Core {
    pub(crate) http: reqwest::Client,
    pub(crate) servers: Vec<ServerUrl>,
    pub(crate) config: RemoteConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// What is known of sessions and attempts; clients of other servers may share it.
    pub(crate) known: Arc<Known>,
    pub(crate) unsettled: Unsettled,
    /// Places for acquires that wait.
    pub(crate) waiting: Arc<Semaphore>,
    /// Settling ends.
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Tasks are also started from `drop`, which may run outside the runtime.
    pub(crate) runtime: Handle,
    /// The server that answered last.
    good: AtomicUsize,
}

impl Core {
    pub(crate) fn new(
        config: RemoteConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        known: Arc<Known>,
    ) -> core::result::Result<Self, ConfigError> {
        if config.servers.is_empty() {
            return Err(ConfigError::NoServer);
        }
        if config.retry.max_tries == 0 {
            return Err(ConfigError::NoTries);
        }
        let runtime = Handle::try_current().map_err(|_| ConfigError::NoRuntime)?;
        let places = config.max_waiting.min(Semaphore::MAX_PERMITS);
        Ok(Self {
            http: http::client(&config)?,
            servers: config.servers.clone(),
            config,
            clock,
            entropy,
            known,
            unsettled: Unsettled::default(),
            waiting: Arc::new(Semaphore::new(places)),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime,
            good: AtomicUsize::new(0),
        })
    }

    /// Where calls begin.
    pub(crate) fn preferred(&self) -> usize {
        self.good.load(Ordering::Relaxed)
    }

    /// A server answered: calls begin there from now on.
    pub(crate) fn prefer(&self, server: usize) {
        self.good.store(server, Ordering::Relaxed);
    }

    /// A server failed: calls that would begin there begin at the next.
    pub(crate) fn avoid(&self, server: usize) {
        let next = (server + 1) % self.servers.len();
        // Somebody else may have moved on already.
        let _ = self.good.compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn spawn<F>(&self, work: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn_on(work, &self.runtime);
    }

    /// Sees a call to its end in a task of its own, so that a caller who goes away takes only the
    /// answer with it (trap 38).
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let task = self.tasks.spawn_on(work, &self.runtime);
        task.await.unwrap_or_else(|died| {
            Err(LockError::contention("the call's task died").maybe_applied().caused_by(died))
        })
    }
}
