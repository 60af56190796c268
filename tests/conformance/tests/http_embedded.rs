//! The service's suite through the HTTP server and its client, over the embedded store: two
//! servers, two handles on one file.

use dlock_conformance::stores::{Embedded, OverHttp};

dlock_conformance::service_conformance!(embedded, OverHttp<Embedded>);
dlock_conformance::service_conformance_virtual_time!(embedded_virtual_time, OverHttp<Embedded>);
