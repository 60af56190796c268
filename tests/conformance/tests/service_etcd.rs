//! The service's suite over a real etcd cluster: two services, two connections.

use dlock_conformance::stores::Etcd;

dlock_conformance::service_conformance!(etcd, Etcd);
