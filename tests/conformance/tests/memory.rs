//! The suite on the memory store, and on one without any capability.

use dlock_conformance::stores::{BareMemory, Memory};

dlock_conformance::conformance!(memory, Memory);
dlock_conformance::conformance_virtual_time!(memory_virtual_time, Memory);
dlock_conformance::conformance!(bare, BareMemory);
dlock_conformance::conformance_virtual_time!(bare_virtual_time, BareMemory);
