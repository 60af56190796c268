//! C21 over a store, in a process of its own, since it measures the process.

use dlock_conformance::stores::Memory;

dlock_conformance::service_conformance_storm!(memory, Memory);
