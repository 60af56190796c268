//! The suite on a real PostgreSQL, connected twice.

use dlock_conformance::stores::Postgres;

dlock_conformance::conformance!(postgres, Postgres);
