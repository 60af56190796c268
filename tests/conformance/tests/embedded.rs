//! The suite on the embedded store: one process, two handles on one file.

use dlock_conformance::stores::Embedded;

dlock_conformance::conformance!(embedded, Embedded);
dlock_conformance::conformance_virtual_time!(embedded_virtual_time, Embedded);
