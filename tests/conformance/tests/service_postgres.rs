//! The service's suite over a real PostgreSQL: two services, two pools, and waiters that poll.

use dlock_conformance::stores::Postgres;

dlock_conformance::service_conformance!(postgres, Postgres);
