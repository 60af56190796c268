//! C21 over each store, in a process of its own, since it measures the process.

use dlock_conformance::stores::{BareMemory, Embedded, Memory};

dlock_conformance::service_conformance_storm!(memory, Memory);
dlock_conformance::service_conformance_storm!(bare, BareMemory);
dlock_conformance::service_conformance_storm!(embedded, Embedded);
