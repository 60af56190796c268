//! C42: the suite on a real PostgreSQL behind a pooler in transaction mode.

use dlock_conformance::stores::{Pooled, Postgres};

dlock_conformance::conformance!(pooled, Postgres<Pooled>);
