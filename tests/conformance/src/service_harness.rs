//! A service over a harness's store.

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock::{Service, ServiceConfig};
use dlock_ports::{Backend, LockService};

use crate::Harness;

/// A running service, as its users see it and from the inside.
#[derive(Clone)]
pub struct Served {
    /// What users talk to: the service itself, or a client over a wire.
    pub front: Arc<dyn LockService>,
    /// The service at the other end.
    pub service: Arc<Service>,
}

impl Served {
    /// A service that its users talk to directly.
    pub fn in_process<H: Harness>(h: &H, backend: Backend, config: ServiceConfig) -> Self {
        let service = Service::new(backend, h.clock(), h.entropy(), config);
        Self { front: Arc::clone(&service) as _, service }
    }
}

/// A store with a way to serve it.
#[async_trait]
pub trait ServiceHarness: Harness {
    /// Serves this backend, which is the harness's own behind whatever the case has put before it.
    async fn serve(&self, backend: Backend, config: ServiceConfig) -> Served;

    /// Whether users are shown whose session holds a lock: not over a wire.
    fn shows_sessions(&self) -> bool;

    /// The budget of a store call that a case lets run out: less than any session's life there.
    fn spent_budget(&self) -> Duration;
}
