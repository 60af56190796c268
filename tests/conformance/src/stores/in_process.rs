//! The stores here, served in the case's own process.

use core::time::Duration;

use async_trait::async_trait;
use dlock::ServiceConfig;
use dlock_ports::Backend;

use super::{BareMemory, Direct, Embedded, Etcd, Memory, Pooled, Postgres};
use crate::{Served, ServiceHarness, swallow::Method};

macro_rules! serve_in_process {
    ($($store:ty: $spent_budget:expr),*) => {
        $(#[async_trait]
        impl ServiceHarness for $store {
            async fn serve(&self, backend: Backend, config: ServiceConfig) -> Served {
                Served::in_process(self, backend, config)
            }

            fn shows_sessions(&self) -> bool {
                true
            }

            fn knows_whom_nobody_repeats(&self) -> bool {
                true
            }

            fn settles_by(&self) -> Method {
                Method::Forget
            }

            fn lingers(&self) -> Duration {
                Duration::ZERO
            }

            fn spent_budget(&self) -> Duration {
                $spent_budget
            }
        })*
    };
}

/// Virtual: long enough that no call runs out of it by the machine's slowness.
const VIRTUAL: Duration = Duration::from_secs(600);
/// Real: a case waits for it, and no other call there takes anything like it.
const REAL: Duration = Duration::from_secs(2);

serve_in_process!(
    Memory: VIRTUAL,
    BareMemory: VIRTUAL,
    Embedded: VIRTUAL,
    Etcd: REAL,
    Postgres<Direct>: REAL,
    Postgres<Pooled>: REAL
);
