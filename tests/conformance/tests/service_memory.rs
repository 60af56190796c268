//! The service's suite over the memory store, and over one without any capability.

use dlock_conformance::stores::{BareMemory, Memory};

dlock_conformance::service_conformance!(memory, Memory);
dlock_conformance::service_conformance_virtual_time!(memory_virtual_time, Memory);
dlock_conformance::service_conformance!(bare, BareMemory);
dlock_conformance::service_conformance_virtual_time!(bare_virtual_time, BareMemory);
