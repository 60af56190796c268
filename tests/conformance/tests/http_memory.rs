//! The service's suite through the HTTP server and its client, over the memory store and over one
//! without any capability.

use dlock_conformance::stores::{BareMemory, Memory, OverHttp};

dlock_conformance::service_conformance!(memory, OverHttp<Memory>);
dlock_conformance::service_conformance_virtual_time!(memory_virtual_time, OverHttp<Memory>);
dlock_conformance::service_conformance!(bare, OverHttp<BareMemory>);
dlock_conformance::service_conformance_virtual_time!(bare_virtual_time, OverHttp<BareMemory>);
