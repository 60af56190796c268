//! C42: the service's suite through the HTTP server and its client, over a real PostgreSQL behind a
//! pooler in transaction mode.

use dlock_conformance::stores::{OverHttp, Pooled, Postgres};

dlock_conformance::service_conformance!(pooled, OverHttp<Postgres<Pooled>>);
