//! C21 through the HTTP server and its client, in a process of its own, since it measures the
//! process.

use dlock_conformance::stores::{Memory, OverHttp};

dlock_conformance::service_conformance_storm!(memory, OverHttp<Memory>);
