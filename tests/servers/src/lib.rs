//! Real servers for tests: clusters of etcd that a test starts for itself, pauses, kills, starts
//! again, and leaves nothing of.
//!
//! | file | what it holds |
//! | --- | --- |
//! | [`version`](Version) | which etcd, and where one is found: told by `cargo xtask test`, or installed |
//! | [`cluster`](EtcdCluster) | the cluster: what a test calls |
//! | `process`, `container` | a member as a process of this machine, or in a container |
//! | `gateway` | what a member says of itself over HTTP |
//! | `ports` | an address of this process's own, and ports on it |
//! | `watchdog` | who cleans up when the test process is killed |
//! | `wait` | waiting for something, with an end |
//!
//! # What stays true
//! - A server that cannot be had fails the test and says what to do; nothing is skipped here.
//! - `cargo xtask test` leaves out by name what a machine cannot have, and says so: a test that
//!   needs one version has `old_etcd` or `new_etcd` in its name, one that needs a container engine
//!   has `in_a_container`.
//! - Everything is gone when the cluster is dropped, also by a panic, and when the process ends in
//!   any other way, `kill -9` among them: processes, containers, networks, data.
//! - Clusters of tests that run at the same time do not meet, in one process or in several.
//!
//! All calls block, and may be made inside a runtime of tokio. They hold up the thread that makes
//! them: where tasks must go on meanwhile, the test's runtime needs several threads.

mod bouncer;
mod cluster;
mod container;
mod gateway;
mod place;
mod plain;
mod ports;
mod postgres;
mod process;
mod source;
mod tree;
mod version;
mod wait;
mod watchdog;

pub use bouncer::{PgBouncer, Upstream};
pub use cluster::{Backup, EtcdCluster};
pub use postgres::{PostgresBackup, PostgresServer, PostgresVersion};
pub use version::Version;
