//! The service's suite through the HTTP server and its client, over a real etcd cluster.

use dlock_conformance::stores::{Etcd, OverHttp};

dlock_conformance::service_conformance!(etcd, OverHttp<Etcd>);
