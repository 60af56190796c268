//! The service's suite through the HTTP server and its client, over a real PostgreSQL.

use dlock_conformance::stores::{OverHttp, Postgres};

dlock_conformance::service_conformance!(postgres, OverHttp<Postgres>);
