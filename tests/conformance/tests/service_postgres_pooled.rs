//! C42: the service's suite on a real PostgreSQL behind a pooler in transaction mode: waiters that
//! poll, keep-alives and releases never find the same connection twice.

use dlock_conformance::stores::{Pooled, Postgres};

dlock_conformance::service_conformance!(pooled, Postgres<Pooled>);
