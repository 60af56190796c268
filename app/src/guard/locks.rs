//! Where locks come from.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use dlock_domain::{FencingToken, Namespace, OwnerId, Result, Ttl};
use dlock_ports::{Clock, Entropy, LockService};
use rustix::{process::getpid, system::uname};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{LockBuilder, LockSession, WithLockError};

/// The lifetime of a lock that names none.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// A cheap handle on a [`LockService`], with what to assume where a lock says nothing. Clones share
/// everything.
#[derive(Clone)]
pub struct Locks {
    pub(super) shared: Arc<Shared>,
    pub(super) defaults: Defaults,
}

/// What everything that came from one [`Locks`] shares.
pub(super) struct Shared {
    pub(super) service: Arc<dyn LockService>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// What drops left behind, and guarded work.
    pub(super) tasks: TaskTracker,
    /// How many attempts of unknown outcome are being settled.
    pub(super) unsettled: Arc<AtomicUsize>,
}

#[derive(Clone)]
pub(super) struct Defaults {
    pub(super) namespace: Namespace,
    pub(super) owner: OwnerId,
    pub(super) ttl: Ttl,
    pub(super) wait: Duration,
}

/// Says what [`Locks`] assume; see [`Locks::builder`].
#[must_use = "nothing is built before `build`"]
pub struct LocksBuilder {
    shared: Shared,
    namespace: Option<String>,
    owner: Option<String>,
    ttl: Duration,
    wait: Duration,
}

impl Locks {
    /// Locks of a service, in the namespace `default`, for the owner `host:pid`, with a lifetime
    /// of 30 s and no waiting.
    ///
    /// `clock` must agree with the moments in the service's answers: the same clock that the
    /// service got, or that a client counts with.
    #[must_use]
    pub fn new(
        service: Arc<dyn LockService>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let defaults = Defaults {
            namespace: Namespace::default(),
            owner: this_process(),
            ttl: default_ttl(),
            wait: Duration::ZERO,
        };
        Self { shared: Arc::new(Shared::new(service, clock, entropy)), defaults }
    }

    /// The same, with other assumptions.
    pub fn builder(
        service: Arc<dyn LockService>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> LocksBuilder {
        LocksBuilder {
            shared: Shared::new(service, clock, entropy),
            namespace: None,
            owner: None,
            ttl: DEFAULT_TTL,
            wait: Duration::ZERO,
        }
    }

    /// The lock of this name: say more about it, then [`acquire`](LockBuilder::acquire). A name
    /// that is none is reported there.
    pub fn lock(&self, name: &str) -> LockBuilder {
        LockBuilder::new(self.shared.clone(), self.defaults.clone(), name)
    }

    /// Opens a session whose one keeper keeps any number of locks, for as long as the session or
    /// one of its guards lives.
    ///
    /// # Errors
    /// `InvalidArgument` for an owner or a lifetime (1 s to 24 h) that is none; as
    /// [`LockService::open_session`] besides.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Cancellation
    /// Dropped half way it may leave an empty session, which ends with its lease.
    pub async fn session(&self, owner: &str, ttl: Duration) -> Result<LockSession> {
        LockSession::open(self, OwnerId::new(owner)?, Ttl::from_duration(ttl)?).await
    }

    /// Runs work under the lock of this name, with what this handle assumes: short for
    /// `lock(name).with_lock(work)`, see [`LockBuilder::with_lock`].
    ///
    /// # Errors
    /// As there.
    pub fn with_lock<T, W, F>(
        &self,
        name: &str,
        work: W,
    ) -> impl Future<Output = std::result::Result<T, WithLockError<T>>> + Send + use<T, W, F>
    where
        T: Send + 'static,
        W: FnOnce(FencingToken, CancellationToken) -> F + Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.lock(name).with_lock(work)
    }

    /// Returns when nothing is under way that a drop left behind: releases, attempts to settle,
    /// sessions to close; guarded work counts too. To be awaited before a runtime is shut down.
    ///
    /// What cannot be done, because the store does not answer, is given up with its lease, so this
    /// takes at most about a lifetime (at least a minute where an acquire was dropped).
    ///
    /// Cancellation: only the waiting ends.
    pub async fn settled(&self) {
        self.shared.tasks.wait().await;
    }
}

impl LocksBuilder {
    /// The namespace of locks that name none.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The label, for people, of whoever holds the locks.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.to_owned());
        self
    }

    /// The lifetime of locks that name none: 1 s to 24 h, whole milliseconds.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long to wait for a lock that says nothing: 0 to 1 h.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The locks.
    ///
    /// # Errors
    /// `InvalidArgument` naming the first value that is none.
    pub fn build(self) -> Result<Locks> {
        let namespace = self.namespace.as_deref().map(Namespace::new).transpose()?;
        let owner = self.owner.as_deref().map(OwnerId::new).transpose()?;
        let defaults = Defaults {
            namespace: namespace.unwrap_or_default(),
            owner: owner.unwrap_or_else(this_process),
            ttl: Ttl::from_duration(self.ttl)?,
            wait: self.wait,
        };
        Ok(Locks { shared: Arc::new(self.shared), defaults })
    }
}

impl Shared {
    fn new(
        service: Arc<dyn LockService>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let tasks = TaskTracker::new();
        // Closed from the start: waiting for it then means waiting until nothing is under way.
        tasks.close();
        Self { service, clock, entropy, tasks, unsettled: Arc::default() }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("owner", &self.defaults.owner).finish_non_exhaustive()
    }
}

impl fmt::Debug for LocksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocksBuilder").field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// `host:pid`, with whatever could not be shown replaced.
#[expect(clippy::expect_used, reason = "printable and short by construction")]
fn this_process() -> OwnerId {
    let host = uname().nodename().to_string_lossy().into_owned();
    let shown = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    let host: String = host.chars().map(shown).take(100).collect();
    let pid = getpid().as_raw_nonzero();
    OwnerId::new(&format!("{host}:{pid}")).expect("a printable owner")
}

#[expect(clippy::expect_used, reason = "a constant")]
fn default_ttl() -> Ttl {
    Ttl::from_duration(DEFAULT_TTL).expect("a lifetime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_is_valid() {
        assert_eq!(default_ttl().as_duration(), DEFAULT_TTL);
        let owner = this_process();
        let (_, pid) = owner.as_str().rsplit_once(':').unwrap();
        assert_eq!(pid, std::process::id().to_string());
    }
}
