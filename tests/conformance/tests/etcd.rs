//! The suite on a real etcd cluster, connected twice.

use dlock_conformance::stores::Etcd;

dlock_conformance::conformance!(etcd, Etcd);
