//! A store without any capability, as others may bring: the memory store, stripped.

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock_domain::Ttl;
use dlock_ports::{Backend, Clock, Entropy};

use super::Memory;
use crate::{Expected, Harness, Limits, VirtualTime};

/// [`Memory`] without waiter, directory and floors.
#[derive(Debug)]
pub struct BareMemory(Memory);

fn strip(backend: Backend) -> Backend {
    Backend { waiter: None, directory: None, floors: None, ..backend }
}

#[async_trait]
impl Harness for BareMemory {
    async fn start() -> Self {
        Self(Memory::start().await)
    }

    async fn finish(self) {
        self.0.finish().await;
    }

    fn expected(&self) -> Expected {
        Expected { waiter: false, directory: false, floors: false, ..self.0.expected() }
    }

    fn backend(&self) -> Backend {
        strip(self.0.backend())
    }

    fn backend_b(&self) -> Backend {
        strip(self.0.backend_b())
    }

    async fn limited(&self, limits: Limits) -> Backend {
        strip(self.0.limited(limits).await)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock()
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        self.0.entropy()
    }

    async fn pass(&self, time: Duration) {
        self.0.pass(time).await;
    }

    fn expiry_slack(&self) -> Duration {
        self.0.expiry_slack()
    }

    fn short_ttl(&self) -> Ttl {
        self.0.short_ttl()
    }

    fn budget(&self) -> Duration {
        self.0.budget()
    }
}

impl VirtualTime for BareMemory {}
