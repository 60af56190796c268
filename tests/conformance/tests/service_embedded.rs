//! The service's suite over the embedded store: two services, two handles on one file.

use dlock_conformance::stores::Embedded;

dlock_conformance::service_conformance!(embedded, Embedded);
dlock_conformance::service_conformance_virtual_time!(embedded_virtual_time, Embedded);
