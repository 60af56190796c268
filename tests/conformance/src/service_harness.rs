//! A service over a harness's store.

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock::{Service, ServiceConfig};
use dlock_client::RemoteLocks;
use dlock_ports::{Backend, LockService};

use crate::{Harness, swallow::Method};

/// A running service, as its users see it and from the inside.
#[derive(Clone)]
pub struct Served {
    /// What users talk to: the service itself, or a client over a wire.
    pub front: Arc<dyn LockService>,
    /// The service at the other end.
    pub service: Arc<Service>,
    /// The client, if users talk to one: what it does by itself counts as the service's.
    pub client: Option<RemoteLocks>,
}

impl Served {
    /// A service that its users talk to directly.
    pub fn in_process<H: Harness>(h: &H, backend: Backend, config: ServiceConfig) -> Self {
        let service = Service::new(backend, h.clock(), h.entropy(), config);
        Self { front: Arc::clone(&service) as _, service, client: None }
    }
}

/// A store with a way to serve it.
#[async_trait]
pub trait ServiceHarness: Harness {
    /// Serves this backend, which is the harness's own behind whatever the case has put before it.
    async fn serve(&self, backend: Backend, config: ServiceConfig) -> Served;

    /// Whether users are shown whose session holds a lock: not over a wire.
    fn shows_sessions(&self) -> bool;

    /// Whether the service can tell an attempt that nobody will repeat: not over a wire, where the
    /// client names every attempt, since it may have to repeat it itself (C20). There the service
    /// must leave what is unknown alone (trap 13) and say so, and it is the client that settles it:
    /// the caller is told `Unknown`, not that nothing was done.
    fn knows_whom_nobody_repeats(&self) -> bool;

    /// The store call by which an attempt of a lock with a session of its own is settled: `forget`,
    /// or the close of that session if it is a client who opened it.
    fn settles_by(&self) -> Method;

    /// How long an answer may be held back until its own clean-up is done.
    fn lingers(&self) -> Duration;

    /// The budget of a store call that a case lets run out: less than any session's life there, and
    /// less than any one call over a wire waits.
    fn spent_budget(&self) -> Duration;
}
