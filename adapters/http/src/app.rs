//! What handlers share.

use std::sync::Arc;

use dlock_domain::{LockError, Result};
use dlock_ports::{Clock, LockService};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::HttpConfig;

/// The state of the router; cheap to clone.
#[derive(Clone)]
pub(crate) struct App(Arc<Inner>);

struct Inner {
    service: Arc<dyn LockService>,
    clock: Arc<dyn Clock>,
    config: HttpConfig,
    long_polls: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(
        service: Arc<dyn LockService>,
        clock: Arc<dyn Clock>,
        config: HttpConfig,
    ) -> Self {
        let polls = (config.max_connections / 4 * 3).clamp(1, Semaphore::MAX_PERMITS);
        let long_polls = Arc::new(Semaphore::new(polls));
        Self(Arc::new(Inner { service, clock, config, long_polls }))
    }

    pub(crate) fn service(&self) -> &dyn LockService {
        &*self.0.service
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn config(&self) -> &HttpConfig {
        &self.0.config
    }

    /// Leave to occupy a connection for as long as a wait takes. Waiters must not take every
    /// connection there is, or the holders that they wait for could not renew (trap 45).
    pub(crate) fn long_poll(&self) -> Result<OwnedSemaphorePermit> {
        Arc::clone(&self.0.long_polls).try_acquire_owned().map_err(|_| {
            LockError::limit("http.max_connections", "too many calls are waiting on this server")
        })
    }
}
